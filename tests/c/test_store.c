/* Run files: what is put into an image comes back equal, equal contents are equal bytes, and damage of any kind is a status. */
#include "ph_test.h"

#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/file.h"
#include "store/store.h"

static ph_err err;

/* A forged size makes HDF5 ask for more memory than there is; the sanitizer is to let malloc say no. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
/* HDF5 itself loses a few blocks when it gives up on a damaged file. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libhdf5"; }

#define ok(call)                                              \
  do {                                                        \
    if ((call) != PH_OK) {                                    \
      fail_msg("%s: %s", ph_status_name(err.code), err.text); \
    }                                                         \
  } while (0)
#define refused(want, call)                                                                                \
  do {                                                                                                     \
    ph_status got_ = (call);                                                                               \
    if (got_ != (want)) {                                                                                  \
      fail_msg("wanted %s, got %s: %s", ph_status_name(want), ph_status_name(got_), got_ ? err.text : ""); \
    }                                                                                                      \
    assert_int_equal(err.code, want);                                                                      \
    assert_null(strchr(err.text, '\n'));                                                                   \
  } while (0)

static ph_tensor *ramp(ph_dtype dtype, int rank, const int64_t *dim) {
  ph_tensor *t;
  ok(ph_tensor_new(&t, dtype, rank, dim, &err));
  for (int64_t i = 0; i < ph_tensor_count(t); i++) {
    ph_tensor_set(t, i, (double)(i % 100) + (dtype <= PH_F64 ? 0.25 : 0));
  }
  return t;
}

/* ---- a file with one of everything ---- */

static char long_text[40000];
static const ph_dtype dtypes[] = {PH_F32, PH_F64, PH_I32, PH_U8, PH_I64};

static ph_status put_all(ph_image *im) {
  const int64_t dim[4] = {3, 2, 5, 4};
  char path[64];
  ph_status s = PH_OK;
  for (int d = 0; d < 5 && !s; d++) {
    for (int rank = 0; rank <= 4 && !s; rank++) {
      ph_tensor *t = ramp(dtypes[d], rank, dim);
      snprintf(path, sizeof path, "/tensors/%s/rank%d", ph_dtype_name(dtypes[d]), rank);
      s = ph_image_tensor(im, path, t, &err);
      ph_tensor_free(t);
    }
  }
  for (size_t i = 0; i < sizeof long_text; i++) {
    long_text[i] = (char)('a' + i % 23);
  }
  if (!s) {
    s = ph_image_text(im, "/text/short", "x = 1\ngr\xc3\xbc\xc3\x9f", 12, &err);
  }
  if (!s) {
    s = ph_image_text(im, "/text/empty", "", 0, &err);
  }
  if (!s) {
    s = ph_image_text(im, "/text/spaces", "  a  ", 5, &err);
  }
  if (!s) {
    s = ph_image_text(im, "/text/long", long_text, sizeof long_text, &err);
  }
  if (!s) {
    s = ph_image_text(im, "/text/nul", "a\0b\0", 4, &err);
  }
  if (!s) {
    s = ph_image_text(im, "/text/latin1", "caf\xe9", 4, &err);
  }
  if (!s) {
    s = ph_image_attr_f64(im, "/", "lr", 0.1, &err);
  }
  if (!s) {
    s = ph_image_attr_i64(im, "/", "seed", INT64_MIN, &err);
  }
  if (!s) {
    s = ph_image_attr_text(im, "/", "status", "done", &err);
  }
  if (!s) {
    s = ph_image_attr_text(im, "/text", "empty", "", &err);
  }
  if (!s) {
    s = ph_image_attr_f64(im, "/text/long", "nan", NAN, &err);
  }
  return s;
}

static char *make_all(size_t *n) {
  ph_image *im;
  void *bytes;
  ok(ph_image_new(&im, &err));
  ok(put_all(im));
  ok(ph_image_finish(im, &bytes, n, &err));
  ph_image_free(im);
  return bytes;
}

static void check_text(ph_reader *r, const char *path, const char *want, size_t n) {
  char *text;
  size_t got;
  ok(ph_reader_text(r, path, &text, &got, &err));
  assert_int_equal(got, n);
  assert_memory_equal(text, want, n);
  assert_int_equal(text[n], 0);
  assert_int_equal(ph_reader_kind(r, path), PH_ITEM_TEXT);
  ph_mem_free(text);
}

static void check_all(ph_reader *r) {
  const int64_t dim[4] = {3, 2, 5, 4};
  char path[64];
  char *text;
  double f;
  int64_t i;
  for (int d = 0; d < 5; d++) {
    for (int rank = 0; rank <= 4; rank++) {
      ph_tensor *want = ramp(dtypes[d], rank, dim);
      ph_tensor *got;
      snprintf(path, sizeof path, "/tensors/%s/rank%d", ph_dtype_name(dtypes[d]), rank);
      ok(ph_reader_tensor(r, path, &got, &err));
      assert_int_equal(got->dtype, want->dtype);
      assert_true(ph_tensor_same_shape(got, want));
      assert_memory_equal(got->data, want->data, ph_tensor_bytes(want));
      assert_int_equal(ph_reader_kind(r, path), PH_ITEM_TENSOR);
      ph_tensor_free(want);
      ph_tensor_free(got);
    }
  }
  check_text(r, "/text/short", "x = 1\ngr\xc3\xbc\xc3\x9f", 12);
  check_text(r, "/text/empty", "", 0);
  check_text(r, "/text/spaces", "  a  ", 5);
  check_text(r, "/text/long", long_text, sizeof long_text);
  check_text(r, "/text/nul", "a\0b\0", 4);
  check_text(r, "/text/latin1", "caf\xe9", 4);
  ok(ph_reader_attr_f64(r, "/", "lr", &f, &err));
  assert_true(f == 0.1);
  ok(ph_reader_attr_i64(r, "/", "seed", &i, &err));
  assert_true(i == INT64_MIN);
  ok(ph_reader_attr_text(r, "/", "status", &text, &err));
  assert_string_equal(text, "done");
  ph_mem_free(text);
  ok(ph_reader_attr_text(r, "/text", "empty", &text, &err));
  assert_string_equal(text, "");
  ph_mem_free(text);
  ok(ph_reader_attr_f64(r, "/text/long", "nan", &f, &err));
  assert_true(isnan(f));
}

static void test_round_trip(void **state) {
  (void)state;
  size_t n;
  char *bytes = make_all(&n);
  ph_reader *r;
  ok(ph_reader_open_bytes(&r, "memory", bytes, n, &err));
  ph_mem_free(bytes); /* the reader has its own copy */
  check_all(r);
  ph_reader_close(r);
}

static void test_same_contents_same_bytes(void **state) {
  (void)state;
  size_t na;
  size_t nb;
  mallopt(M_PERTURB, 0x5a); /* memory that HDF5 forgets to clear would show */
  char *a = make_all(&na);
  mallopt(M_PERTURB, 0xa7);
  sleep(1); /* so would a time stamp */
  char *b = make_all(&nb);
  mallopt(M_PERTURB, 0);
  assert_int_equal(na, nb);
  assert_memory_equal(a, b, na);
  ph_mem_free(a);
  ph_mem_free(b);
}

static void test_empty_and_zero_sized(void **state) {
  (void)state;
  ph_image *im;
  ph_reader *r;
  void *bytes;
  size_t n;
  const int64_t dim[2] = {0, 7};
  ph_tensor *t = ramp(PH_F64, 2, dim);
  ph_tensor *got;
  ok(ph_image_new(&im, &err));
  ok(ph_image_tensor(im, "/none", t, &err));
  ok(ph_image_finish(im, &bytes, &n, &err));
  refused(PH_E_ARG, ph_image_tensor(im, "/late", t, &err));
  refused(PH_E_ARG, ph_image_finish(im, &bytes, &n, &err));
  ph_image_free(im);
  ok(ph_reader_open_bytes(&r, "memory", bytes, n, &err));
  ok(ph_reader_tensor(r, "/none", &got, &err));
  assert_true(ph_tensor_same_shape(got, t));
  ph_tensor_free(got);
  ph_tensor_free(t);
  ph_mem_free(bytes);
  ph_reader_close(r);
}

/* ---- what an image refuses ---- */

static void test_image_refuses(void **state) {
  (void)state;
  ph_image *im;
  ph_tensor *t = ramp(PH_F32, 0, NULL);
  char *huge = ph_mem_new(70001, 1);
  memset(huge, 'x', 70000);
  ok(ph_image_new(&im, &err));
  ok(ph_image_tensor(im, "/a/b", t, &err));
  static const char *const bad[] = {"", "a", "a/b", "/a/", "//a", "/a//b", "/.", "/a/../b", "/a/."};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    refused(PH_E_ARG, ph_image_tensor(im, bad[i], t, &err));
  }
  refused(PH_E_EXISTS, ph_image_tensor(im, "/a/b", t, &err));
  refused(PH_E_EXISTS, ph_image_text(im, "/a", "x", 1, &err));
  refused(PH_E_EXISTS, ph_image_text(im, "/", "x", 1, &err));
  refused(PH_E_EXISTS, ph_image_text(im, "/a/b/c", "x", 1, &err)); /* below a dataset */
  refused(PH_E_NOTFOUND, ph_image_attr_i64(im, "/c", "n", 1, &err));
  refused(PH_E_NOTFOUND, ph_image_attr_i64(im, "/c/d", "n", 1, &err));
  refused(PH_E_ARG, ph_image_attr_i64(im, "/a", "", 1, &err));
  refused(PH_E_ARG, ph_image_attr_i64(im, "/a", "encoding", 1, &err));
  refused(PH_E_ARG, ph_image_attr_text(im, "/a", "t", "\xff", &err));
  refused(PH_E_LIMIT, ph_image_attr_text(im, "/a", "t", huge, &err));
  ok(ph_image_attr_i64(im, "/a", "n", 1, &err));
  refused(PH_E_EXISTS, ph_image_attr_i64(im, "/a", "n", 2, &err));
  ph_image_free(im);
  ph_mem_free(huge);
  ph_tensor_free(t);
}

static void test_reader_refuses(void **state) {
  (void)state;
  size_t n;
  char *bytes = make_all(&n);
  char *text;
  ph_reader *r;
  ph_tensor *t;
  double f;
  int64_t i;
  ok(ph_reader_open_bytes(&r, "run.h5", bytes, n, &err));
  ph_mem_free(bytes);
  refused(PH_E_NOTFOUND, ph_reader_tensor(r, "/nothing", &t, &err));
  assert_string_equal(err.text, "run.h5: has no '/nothing'");
  refused(PH_E_NOTFOUND, ph_reader_tensor(r, "/text/short/below", &t, &err));
  refused(PH_E_NOTFOUND, ph_reader_tensor(r, "no slash", &t, &err));
  refused(PH_E_DTYPE, ph_reader_tensor(r, "/text/short", &t, &err));
  refused(PH_E_DTYPE, ph_reader_tensor(r, "/text/long", &t, &err));
  refused(PH_E_DTYPE, ph_reader_tensor(r, "/text", &t, &err));
  refused(PH_E_DTYPE, ph_reader_text(r, "/tensors/u8/rank1", &text, &n, &err));
  refused(PH_E_NOTFOUND, ph_reader_attr_f64(r, "/", "nothing", &f, &err));
  refused(PH_E_NOTFOUND, ph_reader_attr_f64(r, "/nothing", "lr", &f, &err));
  refused(PH_E_DTYPE, ph_reader_attr_i64(r, "/", "lr", &i, &err));
  refused(PH_E_DTYPE, ph_reader_attr_f64(r, "/", "status", &f, &err));
  refused(PH_E_DTYPE, ph_reader_attr_text(r, "/", "seed", &text, &err));
  assert_true(ph_reader_has_attr(r, "/", "lr"));
  assert_false(ph_reader_has_attr(r, "/", "mr"));
  assert_false(ph_reader_has_attr(r, "/nothing", "lr"));
  assert_int_equal(ph_reader_kind(r, "/nothing"), PH_ITEM_NONE);
  ph_reader_close(r);
}

/* ---- listing ---- */

typedef struct listing {
  char text[2000];
  int left; /* entries until it stops */
} listing;

static int note_path(void *ctx, const char *path, ph_item kind) {
  listing *l = ctx;
  snprintf(l->text + strlen(l->text), sizeof l->text - strlen(l->text), "%s:%d ", path, (int)kind);
  return --l->left == 0 ? 7 : 0;
}

static int note_name(void *ctx, const char *name) { return note_path(ctx, name, PH_ITEM_NONE); }

static void test_walk(void **state) {
  (void)state;
  size_t n;
  char *bytes = make_all(&n);
  ph_reader *r;
  ok(ph_reader_open_bytes(&r, "memory", bytes, n, &err));
  ph_mem_free(bytes);
  listing a = {"", 1000};
  listing b = {"", 3};
  listing c = {"", 1000};
  listing d = {"", 1000};
  listing e = {"", 1000};
  assert_int_equal(ph_reader_walk(r, "/text", note_path, &a), 0);
  assert_string_equal(a.text, "/text/empty:3 /text/latin1:3 /text/long:3 /text/nul:3 /text/short:3 /text/spaces:3 ");
  assert_int_equal(ph_reader_walk(r, "/", note_path, &b), 7);
  assert_string_equal(b.text, "/tensors:1 /tensors/f32:1 /tensors/f32/rank0:2 ");
  assert_int_equal(ph_reader_walk(r, "/nothing", note_path, &c), 0);
  assert_int_equal(ph_reader_walk(r, "/text/long", note_path, &c), 0);
  assert_string_equal(c.text, "");
  assert_int_equal(ph_reader_attrs(r, "/", note_name, &d), 0);
  assert_string_equal(d.text, "lr:0 seed:0 status:0 ");
  assert_int_equal(ph_reader_attrs(r, "/text/long", note_name, &e), 0); /* `encoding` is ours */
  assert_string_equal(e.text, "nan:0 ");
  ph_reader_close(r);
}

/* ---- damage ---- */

static int read_item(void *ctx, const char *path, ph_item kind) {
  ph_reader *r = ctx;
  ph_tensor *t = NULL;
  char *text = NULL;
  size_t n;
  if (kind == PH_ITEM_TENSOR && ph_reader_tensor(r, path, &t, &err) == PH_OK) {
    ph_tensor_free(t);
  }
  if (kind == PH_ITEM_TEXT && ph_reader_text(r, path, &text, &n, &err) == PH_OK) {
    ph_mem_free(text);
  }
  return 0;
}

/* A damaged file must be refused as one, or be whole after all (a byte that carries nothing). */
static void check_damaged(const char *bytes, size_t n) {
  ph_reader *r;
  ph_status s = ph_reader_open_bytes(&r, "damaged.h5", bytes, n, &err);
  if (s == PH_OK) {
    check_all(r);
    ph_reader_close(r);
    return;
  }
  assert_int_equal(s, PH_E_FORMAT);
  assert_ptr_equal(strstr(err.text, "damaged.h5: "), err.text);
  assert_null(strchr(err.text, '\n'));
}

static void test_cut_anywhere(void **state) {
  (void)state;
  size_t n;
  ph_reader *r;
  char *bytes = make_all(&n);
  for (size_t i = 0; i < n; i += i < 1200 ? 1 : 397) {
    refused(PH_E_FORMAT, ph_reader_open_bytes(&r, "damaged.h5", bytes, i, &err));
    check_damaged(bytes, i);
  }
  ph_mem_free(bytes);
}

static void test_flip_anywhere(void **state) {
  (void)state;
  size_t n;
  size_t caught = 0;
  char *bytes = make_all(&n);
  for (size_t i = 0; i < n; i += i < 2600 ? 1 : 211) {
    bytes[i] ^= (char)(1 << (i % 8));
    check_damaged(bytes, n);
    if (err.code == PH_E_FORMAT) {
      caught++;
    }
    bytes[i] ^= (char)(1 << (i % 8));
    err.code = PH_OK;
  }
  assert_true(caught > 2000);
  ph_mem_free(bytes);
}

/* Without our first line HDF5 is the only judge: what it refuses is a status, what it accepts may be wrong, nothing crashes. */
static void read_unsealed(const char *bytes, size_t n) {
  ph_reader *r;
  if (ph_reader_open_bytes(&r, "other.h5", bytes, n, &err) != PH_OK) {
    assert_int_equal(err.code, PH_E_FORMAT);
    return;
  }
  (void)ph_reader_walk(r, "/", read_item, r);
  ph_reader_close(r);
}

static void test_damaged_file_of_another_program(void **state) {
  (void)state;
  size_t n;
  char *bytes = make_all(&n);
  memset(bytes, 0, 512);
  for (size_t i = 1; i < n; i += 131) {
    read_unsealed(bytes, i);
  }
  for (size_t i = 512; i < n; i += i < 4000 ? 7 : 61) {
    char was = bytes[i];
    bytes[i] = (char)(i % 3 ? was ^ (1 << (i % 8)) : 0xff);
    read_unsealed(bytes, n);
    bytes[i] = was;
  }
  ph_mem_free(bytes);
}

static void test_not_hdf5(void **state) {
  (void)state;
  ph_reader *r;
  refused(PH_E_FORMAT, ph_reader_open_bytes(&r, "x", "", 0, &err));
  refused(PH_E_FORMAT, ph_reader_open_bytes(&r, "x", "plain text", 10, &err));
  refused(PH_E_NOTFOUND, ph_reader_open(&r, "/nowhere/run.h5", &err));
  refused(PH_E_IO, ph_reader_open(&r, "/tmp", &err));
}

static ph_status write_and_read(void) {
  const int64_t dim = 3;
  ph_image *im = NULL;
  ph_reader *r = NULL;
  ph_tensor *t = NULL;
  ph_tensor *back = NULL;
  void *bytes = NULL;
  char *text = NULL;
  char *attr = NULL;
  size_t size;
  size_t n;
  ph_status s = ph_tensor_new(&t, PH_F64, 1, &dim, &err);
  if (!s) {
    s = ph_image_new(&im, &err);
  }
  if (!s) {
    s = ph_image_tensor(im, "/a/b", t, &err);
  }
  if (!s) {
    s = ph_image_text(im, "/a/t", "text", 4, &err);
  }
  if (!s) {
    s = ph_image_attr_text(im, "/a", "n", "text", &err);
  }
  if (!s) {
    s = ph_image_finish(im, &bytes, &size, &err);
  }
  if (!s) {
    s = ph_reader_open_bytes(&r, "memory", bytes, size, &err);
  }
  if (!s) {
    s = ph_reader_tensor(r, "/a/b", &back, &err);
  }
  if (!s) {
    s = ph_reader_text(r, "/a/t", &text, &n, &err);
  }
  if (!s) {
    s = ph_reader_attr_text(r, "/a", "n", &attr, &err);
  }
  ph_image_free(im);
  ph_reader_close(r);
  ph_tensor_free(t);
  ph_tensor_free(back);
  ph_mem_free(bytes);
  ph_mem_free(text);
  ph_mem_free(attr);
  return s;
}

static void test_no_memory(void **state) {
  (void)state;
  ph_each_failed_allocation(write_and_read());
}

/* ---- other programs ---- */

static char *temp_file(const char *bytes, size_t n) {
  static char path[64];
  strcpy(path, "/tmp/phrun-store-XXXXXX");
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, bytes, n), n);
  close(fd);
  return path;
}

static void run_on_file(const char *program, const char *format) {
  size_t n;
  char command[2000];
  char *bytes = make_all(&n);
  char *path = temp_file(bytes, n);
  ph_mem_free(bytes);
  snprintf(command, sizeof command, "%s >/dev/null 2>&1", program);
  int have = system(command);
  if (have == 0) {
    snprintf(command, sizeof command, format, path);
    int rc = system(command);
    unlink(path);
    assert_int_equal(rc, 0);
  } else {
    unlink(path);
    print_message("pending: '%s' does not run here\n", program);
    skip();
  }
}

static void test_h5dump_reads_it(void **state) {
  (void)state;
  run_on_file("h5dump --version",
              "h5dump -d /text/short '%1$s' | grep -q 'x = 1' && h5dump -r -d /text/long '%1$s' | grep -q abcdefgh "
              "&& h5dump -a lr '%1$s' | grep -q '0.1'");
}

static void test_h5py_reads_it(void **state) {
  (void)state;
  run_on_file("/usr/bin/python3 -c 'import h5py'",
              "/usr/bin/python3 -c \"import h5py\nf = h5py.File('%1$s')\n"
              "assert f['text/short'][()].decode() == 'x = 1\\ngr\\u00fc\\u00df'\n"
              "assert f['text/empty'][()] == b''\nassert bytes(f['text/nul'][()]) == b'a\\\\0b\\\\0'\n"
              "assert f['text/long'].attrs['encoding'].decode() == 'utf-8' and len(f['text/long']) == 40000\n"
              "assert f['tensors/f32/rank3'].shape == (3, 2, 5) and f['tensors/f32/rank3'][1, 1, 1] == 16.25\n"
              "assert f.attrs['lr'] == 0.1 and f.attrs['seed'] == -2**63\n\"");
}

/* A file that h5py wrote: chunks and deflate, strings of any length, other widths, links out of the file. */
static void test_reads_h5py(void **state) {
  (void)state;
  static const char script[] =
      "import h5py, numpy as np, sys\nf = h5py.File(sys.argv[1], 'w')\n"
      "f['packed'] = 0; del f['packed']; f.create_dataset('packed', data=np.arange(10000.), compression=9, "
      "chunks=(100,))\n"
      "f['vlen'] = 'gr\\u00fcn'; f.attrs['vlen'] = 'blau'; f['half'] = np.float16([1.5, 2]); f['u16'] = "
      "np.uint16([65535])\n"
      "f['i8'] = np.int8([-1]); f['be'] = np.array([1, 2], '>i4'); f['u64'] = np.uint64([2**63]); f['deep'] = "
      "np.zeros((1,) * 5)\n"
      "f['out'] = h5py.ExternalLink('/etc/passwd', '/'); f['soft'] = h5py.SoftLink('/be'); f['strings'] = ['a', 'b']\n"
      "f.create_dataset('sparse', (10**12,), 'f8', chunks=(1000,)); g = f.create_group('loop'); g['me'] = g; g['root'] "
      "= f['/']\n"
      "f.create_dataset('raw', (4,), 'u1', external=[('/etc/hostname', 0, 4)]); f['bool'] = "
      "np.bool_([True])\nf.close()\n";
  char command[4000];
  char path[] = "/tmp/phrun-h5py-XXXXXX";
  if (system("/usr/bin/python3 -c 'import h5py' 2>/dev/null") != 0) {
    print_message("pending: no h5py here\n");
    skip();
  }
  close(mkstemp(path));
  snprintf(command, sizeof command, "/usr/bin/python3 -c \"%s\" %s", script, path);
  assert_int_equal(system(command), 0);
  ph_reader *r;
  ph_tensor *t;
  char *text;
  ok(ph_reader_open(&r, path, &err));
  unlink(path);
  ok(ph_reader_tensor(r, "/packed", &t, &err));
  assert_true(t->dtype == PH_F64 && ph_tensor_get(t, 9999) == 9999);
  ph_tensor_free(t);
  check_text(r, "/vlen", "gr\xc3\xbcn", 5);
  ok(ph_reader_attr_text(r, "/", "vlen", &text, &err));
  assert_string_equal(text, "blau");
  ph_mem_free(text);
  static const struct {
    const char *path;
    ph_dtype dtype;
    double first;
  } good[] = {{"/half", PH_F32, 1.5},
              {"/u16", PH_I32, 65535},
              {"/i8", PH_I32, -1},
              {"/be", PH_I32, 1},
              {"/loop/root/be", PH_I32, 1}};
  for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
    ok(ph_reader_tensor(r, good[i].path, &t, &err));
    assert_int_equal(t->dtype, good[i].dtype);
    assert_true(ph_tensor_get(t, 0) == good[i].first);
    ph_tensor_free(t);
  }
  refused(PH_E_DTYPE, ph_reader_tensor(r, "/u64", &t, &err));
  refused(PH_E_SHAPE, ph_reader_tensor(r, "/deep", &t, &err));
  refused(PH_E_NOTFOUND, ph_reader_tensor(r, "/out", &t, &err));
  refused(PH_E_NOTFOUND, ph_reader_tensor(r, "/soft", &t, &err));
  refused(PH_E_DTYPE, ph_reader_tensor(r, "/strings", &t, &err));
  refused(PH_E_DTYPE, ph_reader_tensor(r, "/bool", &t, &err));
  refused(PH_E_FORMAT, ph_reader_tensor(r, "/sparse", &t, &err));
  refused(PH_E_FORMAT, ph_reader_tensor(r, "/raw", &t, &err));
  listing l = {"", 1000};
  assert_int_equal(ph_reader_walk(r, "/loop", note_path, &l), 0);
  assert_non_null(strstr(l.text, "/loop/me:1 /loop/root:1 /loop/root/be:2 "));
  assert_null(strstr(l.text, "/loop/root/loop/me"));
  ph_reader_close(r);
}

/* A program that used the store ends well: HDF5 has nothing to do at exit. */
static void test_exit_is_clean(void **state) {
  (void)state;
  pid_t pid = fork();
  assert_true(pid >= 0);
  if (pid == 0) {
    ph_image *im;
    if (ph_image_new(&im, &err) != PH_OK) {
      _exit(9);
    }
    exit(0); /* with an image still open */
  }
  int status;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PH_TEST(test_round_trip),
      PH_TEST(test_same_contents_same_bytes),
      PH_TEST(test_empty_and_zero_sized),
      PH_TEST(test_image_refuses),
      PH_TEST(test_reader_refuses),
      PH_TEST(test_walk),
      PH_TEST(test_cut_anywhere),
      PH_TEST(test_flip_anywhere),
      PH_TEST(test_damaged_file_of_another_program),
      PH_TEST(test_not_hdf5),
      PH_TEST(test_no_memory),
      PH_TEST(test_h5dump_reads_it),
      PH_TEST(test_h5py_reads_it),
      PH_TEST(test_reads_h5py),
      PH_TEST(test_exit_is_clean),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
