/* IDX files: what is sound is read to the byte, what is not is refused with file, byte, expected and found. */
#include "ph_test.h"

#include <unistd.h>
#include <zlib.h>

#include "data/idx.h"

enum { IMAGES = 3, SIDE = 28, HEADER = 16, SOUND = HEADER + IMAGES * SIDE * SIDE };

static ph_err err;
static unsigned char sound[SOUND]; /* a sound file of 3 images */
static char temp[64];

static const char *golden(const char *name) {
  char path[128];
  snprintf(path, sizeof path, "golden/idx/%s", name);
  return ph_test_path(path);
}

static int make_sound(void **state) {
  (void)state;
  static const unsigned char head[HEADER] = {0, 0, 8, 3, 0, 0, 0, IMAGES, 0, 0, 0, SIDE, 0, 0, 0, SIDE};
  memcpy(sound, head, HEADER);
  for (int i = HEADER; i < SOUND; i++) {
    sound[i] = (unsigned char)(i * 7919 >> 5);
  }
  strcpy(temp, "/tmp/phrun-idx-XXXXXX");
  int fd = mkstemp(temp);
  return fd < 0 ? -1 : close(fd);
}

static int remove_temp(void **state) {
  (void)state;
  return unlink(temp);
}

/* gzip of n bytes, *size set; freed by free(). */
static unsigned char *gzip(const void *bytes, size_t n, size_t *size) {
  z_stream z = {0};
  assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
  size_t room = deflateBound(&z, n);
  unsigned char *out = malloc(room);
  z.next_in = (unsigned char *)bytes;
  z.avail_in = (uInt)n;
  z.next_out = out;
  z.avail_out = (uInt)room;
  assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
  *size = z.total_out;
  deflateEnd(&z);
  return out;
}

/* Makes `temp` hold n bytes; without the fsync of ph_file_write, for there are thousands. */
static void put(const void *bytes, size_t n) {
  FILE *f = fopen(temp, "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(bytes, 1, n, f), n);
  assert_int_equal(fclose(f), 0);
}

static ph_status read_bytes(const void *bytes, size_t n, ph_tensor **t) {
  put(bytes, n);
  return ph_idx_read(temp, 0, t, &err);
}

static void check_sound(const ph_tensor *t) {
  assert_true(t->dtype == PH_U8 && t->rank == 3 && t->dim[0] == IMAGES && t->dim[1] == SIDE && t->dim[2] == SIDE);
  assert_memory_equal(t->data, sound + HEADER, SOUND - HEADER);
}

/* Ten images announced, 64 MB of zeros behind: refused at the byte where the tenth ends, in bounded memory. First of all
 * tests, while the peak of memory is still low. */
static void stops_a_bomb(void **state) {
  (void)state;
  static const unsigned char head[HEADER] = {0, 0, 8, 3, 0, 0, 0, 10, 0, 0, 0, SIDE, 0, 0, 0, SIDE};
  size_t n = 64 << 20;
  size_t size;
  ph_tensor *t;
  unsigned char *zeros = calloc(1, n);
  memcpy(zeros, head, HEADER);
  unsigned char *bomb = gzip(zeros, n, &size);
  ph_fails(PH_E_FORMAT, "byte 7856 (inflated): expected the end of the file, found more bytes",
           read_bytes(bomb, size, &t), err);
  assert_true(ph_mem_now().peak < 1 << 20);
  free(bomb);
  free(zeros);
}

static void reads_plain_and_gzip(void **state) {
  (void)state;
  size_t size;
  ph_tensor *t;
  unsigned char *gz = gzip(sound, SOUND, &size);
  ph_ok(read_bytes(sound, SOUND, &t));
  check_sound(t);
  ph_tensor_free(t);
  ph_ok(read_bytes(gz, size, &t)); /* by its first bytes: the name does not end in .gz */
  check_sound(t);
  ph_tensor_free(t);
  free(gz);
}

/* gzip -c a b > c is a gzip file too. */
static void reads_concatenated_gzip(void **state) {
  (void)state;
  size_t na;
  size_t nb;
  ph_tensor *t;
  unsigned char *a = gzip(sound, 1000, &na);
  unsigned char *b = gzip(sound + 1000, SOUND - 1000, &nb);
  unsigned char *both = malloc(na + nb);
  memcpy(both, a, na);
  memcpy(both + na, b, nb);
  ph_ok(read_bytes(both, na + nb, &t));
  check_sound(t);
  ph_tensor_free(t);
  free(a);
  free(b);
  free(both);
}

static void reads_every_rank(void **state) {
  (void)state;
  for (int rank = 1; rank <= PH_RANK_MAX; rank++) {
    unsigned char file[4 + 16 + 16] = {0, 0, 8, (unsigned char)rank};
    size_t head = 4 + 4 * (size_t)rank;
    size_t count = (size_t)1 << rank;
    ph_tensor *t;
    for (int i = 0; i < rank; i++) {
      file[4 + 4 * i + 3] = 2;
    }
    for (size_t i = 0; i < count; i++) {
      file[head + i] = (unsigned char)(200 + i);
    }
    ph_ok(read_bytes(file, head + count, &t));
    assert_int_equal(t->rank, rank);
    assert_memory_equal(t->data, file + head, count);
    ph_tensor_free(t);
  }
}

/* Broken files, each with the words that its message must hold. */
static void refuses(void **state) {
  (void)state;
  static const struct {
    const char *file;
    ph_status code;
    const char *words;
  } cases[] = {
      {"idx_bad_magic.idx3-ubyte", PH_E_FORMAT, "byte 0: expected 00 00, found DE AD"},
      {"idx_bad_type.idx3-ubyte", PH_E_FORMAT, "byte 2: expected element type 08 (unsigned bytes), found 0A"},
      {"idx_zero_ndim.idx0-ubyte", PH_E_FORMAT, "byte 3: expected 1 to 4 dimensions, found 0"},
      {"idx_short_header.idx3-ubyte", PH_E_FORMAT,
       "byte 6: expected 16 bytes of header for 3 dimensions, found the end"},
      {"idx_count_too_big.idx3-ubyte", PH_E_FORMAT,
       "byte 2368: expected 78416 bytes (100 x 28 x 28 elements behind a header of 16), found 2368"},
      {"idx_trailing.idx3-ubyte", PH_E_FORMAT, "byte 2368: expected the end of the file, found more bytes"},
      {"idx_dims_2_31.idx3-ubyte", PH_E_LIMIT, "found dimensions 2147483648 x 2147483648 x 2147483648"},
      {"idx_product_wraps_to_0.idx3-ubyte", PH_E_LIMIT, "byte 4: expected at most 2147483648 elements"},
      {"truncated.idx3-ubyte.gz", PH_E_FORMAT,
       "byte 214: expected the rest of the gzip stream, found the end of the file"},
      {"bad_crc.idx3-ubyte.gz", PH_E_FORMAT, "byte 313: expected CRC-32 "},
      {"not_gzip.idx3-ubyte.gz", PH_E_FORMAT, "byte 0: expected a gzip stream (1F 8B), found "},
      {"empty.idx3-ubyte", PH_E_FORMAT, "byte 0: expected 4 bytes 00 00 type rank, found the end after 0"},
      {"empty.idx3-ubyte.gz", PH_E_FORMAT, "byte 0: expected a gzip stream (1F 8B), found an empty file"},
      {"nothing", PH_E_NOTFOUND, "nothing: cannot open"},
      {"", PH_E_IO, "it is a directory"},
  };
  for (int i = 0; i < PH_COUNT(cases); i++) {
    ph_tensor *t = NULL;
    ph_fails(cases[i].code, cases[i].words, ph_idx_read(golden(cases[i].file), 0, &t, &err), err);
    assert_ptr_equal(strstr(err.text, golden(cases[i].file)), err.text); /* the file comes first */
    assert_null(t);
  }
}

static void refuses_made_up(void **state) {
  (void)state;
  size_t size;
  ph_tensor *t;
  static const unsigned char little[8] = {3, 8, 0, 0, 3, 0, 0, 0};
  static const unsigned char real[8] = {0, 0, 0x0d, 1, 0, 0, 0, 1};
  static const unsigned char deep[4] = {0, 0, 8, 5};
  static const unsigned char huge[16] = {0, 0, 8, 3, 0, 1, 0, 0, 0, 0, 0, 128, 0, 0, 0, 128};
  ph_fails(PH_E_FORMAT, "found 03 08 (little-endian header?)", read_bytes(little, 8, &t), err);
  ph_fails(PH_E_FORMAT, "found 0D (float32)", read_bytes(real, 8, &t), err);
  ph_fails(PH_E_FORMAT, "found 5", read_bytes(deep, 4, &t), err);
  unsigned char *gz = gzip(huge, 16, &size); /* 2^30 elements in a small file: refused before memory is taken */
  ph_fails(PH_E_FORMAT, "expected 1073741840 bytes", read_bytes(huge, 16, &t), err);
  ph_fails(PH_E_FORMAT, "a gzip stream that can hold at most", read_bytes(gz, size, &t), err);
  assert_true(ph_mem_now().peak < 1 << 20);
  free(gz);
  put(sound, SOUND);
  ph_fails(PH_E_LIMIT, "expected at most 100 elements, found dimensions 3 x 28 x 28", ph_idx_read(temp, 100, &t, &err),
           err);
  gz = gzip(sound, SOUND, &size);
  gz = realloc(gz, size + 2);
  gz[size] = gz[size + 1] = 'x';
  ph_fails(PH_E_FORMAT, "expected the end of the file behind the gzip stream, found 2 more bytes",
           read_bytes(gz, size + 2, &t), err);
  free(gz);
}

/* Cut at any byte, plain or gzip: refused. */
static void refuses_every_cut(void **state) {
  (void)state;
  size_t size;
  ph_tensor *t;
  unsigned char *gz = gzip(sound, SOUND, &size);
  for (size_t i = 0; i < SOUND; i += i < 40 ? 1 : 61) {
    assert_int_equal(read_bytes(sound, i, &t), PH_E_FORMAT);
  }
  for (size_t i = 0; i < size; i += i < 40 || i > size - 40 ? 1 : 17) {
    assert_int_equal(read_bytes(gz, i, &t), PH_E_FORMAT);
  }
  free(gz);
}

/* A bit flipped anywhere in a gzip file: refused, or (in the fields of its header that mean nothing) the same images. */
static void refuses_or_reads_every_flip(void **state) {
  (void)state;
  size_t size;
  int refused = 0;
  unsigned char *gz = gzip(sound, SOUND, &size);
  for (size_t bit = 0; bit < 8 * size; bit += bit < 400 ? 1 : 13) {
    ph_tensor *t = NULL;
    gz[bit / 8] ^= (unsigned char)(1 << bit % 8);
    ph_status s = read_bytes(gz, size, &t);
    gz[bit / 8] ^= (unsigned char)(1 << bit % 8);
    if (s == PH_OK) {
      check_sound(t);
    } else {
      refused++;
    }
    assert_true(s == PH_OK || s == PH_E_FORMAT || s == PH_E_LIMIT);
    ph_tensor_free(t);
  }
  assert_true(refused > 300);
  free(gz);
}

static void pairs(void **state) {
  (void)state;
  char images[1024];
  char labels[1024];
  ph_tensor *x = NULL;
  ph_tensor *y = NULL;
  static const unsigned char three[11] = {0, 0, 8, 1, 0, 0, 0, 3, 9, 0, 5};
  snprintf(images, sizeof images, "%s", golden("idx_pair_images.idx3-ubyte"));
  snprintf(labels, sizeof labels, "%s", golden("idx_pair_labels.idx1-ubyte"));
  ph_fails(PH_E_SHAPE, "byte 4: expected 3 labels, one per image in", ph_idx_pair(images, labels, 10, &x, &y, &err),
           err);
  assert_non_null(strstr(err.text, "found 4"));
  assert_true(!x && !y);
  put(three, sizeof three);
  ph_ok(ph_idx_pair(images, temp, 10, &x, &y, &err));
  assert_true(x->dim[0] == 3 && y->rank == 1 && ph_tensor_get(y, 2) == 5);
  ph_tensor_free(x);
  ph_tensor_free(y);
  ph_fails(PH_E_FORMAT, "byte 8: expected a label below 9, found 9", ph_idx_pair(images, temp, 9, &x, &y, &err), err);
  ph_ok(ph_idx_pair(images, temp, 0, &x, &y, &err)); /* any label */
  ph_tensor_free(x);
  ph_tensor_free(y);
  ph_fails(PH_E_SHAPE, "expected 3 dimensions (images), found 1", ph_idx_pair(temp, temp, 10, &x, &y, &err), err);
  ph_fails(PH_E_SHAPE, "expected 1 dimension (labels), found 3", ph_idx_pair(images, images, 10, &x, &y, &err), err);
  ph_fails(PH_E_NOTFOUND, "none", ph_idx_pair(images, "/none", 10, &x, &y, &err), err);
}

/* Label 10 at index 2 of otherwise sound labels, with as many images. */
static void refuses_a_label_of_no_class(void **state) {
  (void)state;
  unsigned char images[16 + 4] = {0, 0, 8, 3, 0, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 1};
  ph_tensor *x;
  ph_tensor *y;
  put(images, sizeof images);
  const char *labels = golden("idx_label_10.idx1-ubyte");
  ph_fails(PH_E_FORMAT, "byte 10: expected a label below 10, found 10", ph_idx_pair(temp, labels, 10, &x, &y, &err),
           err);
}

static void memory_runs_out(void **state) {
  (void)state;
  ph_tensor *t = NULL;
  ph_status s;
  put(sound, SOUND);
  ph_each_failed_allocation((s = ph_idx_read(temp, 0, &t, &err), s == PH_OK ? (ph_tensor_free(t), s) : s));
}

/* ---- the real files, where they are ---- */

static bool find_set(const char *const *folders, char *found) {
  for (; *folders; folders++) {
    snprintf(found, 512, "%s/train-images-idx3-ubyte.gz", *folders);
    if (access(found, R_OK) == 0) {
      snprintf(found, 512, "%s", *folders);
      return true;
    }
  }
  return false;
}

static int64_t sum_of(const ph_tensor *t) {
  int64_t sum = 0;
  for (int64_t i = 0; i < ph_tensor_count(t); i++) {
    sum += ((const unsigned char *)t->data)[i];
  }
  return sum;
}

typedef struct facts {
  const char *part;
  int64_t count, pixel_sum;
  int first[10], per_class[10]; /* first labels; how often each label occurs */
} facts;

static void check_set(const char *folder, const facts *f) {
  char images[600];
  char labels[600];
  int seen[10] = {0};
  ph_tensor *x;
  ph_tensor *y;
  snprintf(images, sizeof images, "%s/%s-images-idx3-ubyte.gz", folder, f->part);
  snprintf(labels, sizeof labels, "%s/%s-labels-idx1-ubyte.gz", folder, f->part);
  ph_ok(ph_idx_pair(images, labels, 10, &x, &y, &err));
  const unsigned char *label = y->data;
  assert_true(x->dim[0] == f->count && x->dim[1] == 28 && x->dim[2] == 28);
  assert_int_equal(sum_of(x), f->pixel_sum);
  for (int64_t i = 0; i < f->count; i++) {
    seen[label[i]]++;
  }
  for (int i = 0; i < 10; i++) {
    assert_int_equal(label[i], f->first[i]);
    assert_int_equal(seen[i], f->per_class[i]);
  }
  ph_tensor_free(x);
  ph_tensor_free(y);
}

static void reads_mnist(void **state) {
  (void)state;
  static const facts train = {"train",
                              60000,
                              1567298545,
                              {5, 0, 4, 1, 9, 2, 1, 3, 1, 4},
                              {5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949}};
  static const facts test = {"t10k",
                             10000,
                             264923200,
                             {7, 2, 1, 0, 4, 1, 4, 9, 5, 9},
                             {980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009}};
  const char *folders[] = {PHRUN_TEST_DIR "/../../shared/data/mnist", NULL};
  char folder[512];
  if (!find_set(folders, folder)) {
    print_message("pending: MNIST is not here\n");
    skip();
  }
  check_set(folder, &train);
  check_set(folder, &test);
}

static void reads_fashion_mnist(void **state) {
  (void)state;
  static const facts train = {"train",
                              60000,
                              3431114169,
                              {9, 0, 0, 3, 0, 2, 7, 2, 5, 5},
                              {6000, 6000, 6000, 6000, 6000, 6000, 6000, 6000, 6000, 6000}};
  static const facts test = {"t10k",
                             10000,
                             573469082,
                             {9, 2, 1, 1, 6, 1, 4, 6, 5, 7},
                             {1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000, 1000}};
  const char *folders[] = {"/usr/share/datasets/fashion-mnist", NULL};
  char folder[512];
  if (!find_set(folders, folder)) {
    print_message("pending: Fashion-MNIST is not here (Debian package dataset-fashion-mnist)\n");
    skip();
  }
  check_set(folder, &train);
  check_set(folder, &test);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PH_TEST(stops_a_bomb),
      PH_TEST(reads_plain_and_gzip),
      PH_TEST(reads_concatenated_gzip),
      PH_TEST(reads_every_rank),
      PH_TEST(refuses),
      PH_TEST(refuses_made_up),
      PH_TEST(refuses_every_cut),
      PH_TEST(refuses_or_reads_every_flip),
      PH_TEST(pairs),
      PH_TEST(refuses_a_label_of_no_class),
      PH_TEST(memory_runs_out),
      PH_TEST(reads_mnist),
      PH_TEST(reads_fashion_mnist),
  };
  return cmocka_run_group_tests(tests, make_sound, remove_temp);
}
