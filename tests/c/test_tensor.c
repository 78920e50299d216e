#include "ph_test.h"

#include "base/tensor.h"

static const ph_dtype every[] = {PH_F32, PH_F64, PH_I32, PH_U8, PH_I64};

static ph_tensor *vector_of(ph_dtype dtype, int64_t n, const double *values) {
  ph_tensor *t = NULL;
  ph_ok(ph_tensor_new(&t, dtype, 1, &n, NULL));
  for (int64_t i = 0; i < n; i++) {
    ph_tensor_set(t, i, values[i]);
  }
  return t;
}

static void dtypes_have_names_and_sizes(void **state) {
  (void)state;
  static const size_t sizes[] = {4, 8, 4, 1, 8};
  for (int i = 0; i < PH_COUNT(every); i++) {
    ph_dtype found = PH_U8;
    assert_int_equal(sizes[i], ph_dtype_size(every[i]));
    assert_true(ph_dtype_find(ph_dtype_name(every[i]), &found));
    assert_int_equal(every[i], found);
  }
  ph_dtype kept = PH_I64;
  assert_false(ph_dtype_find("f16", &kept));
  assert_int_equal(PH_I64, kept);
}

static void new_is_zero_and_knows_its_shape(void **state) {
  (void)state;
  const int64_t dim[] = {2, 3, 4, 5};
  for (int rank = 0; rank <= PH_RANK_MAX; rank++) {
    for (int i = 0; i < PH_COUNT(every); i++) {
      ph_tensor *t = NULL;
      ph_ok(ph_tensor_new(&t, every[i], rank, dim, NULL));
      int64_t want = 1;
      for (int k = 0; k < rank; k++) {
        want *= dim[k];
      }
      assert_int_equal(want, ph_tensor_count(t));
      assert_int_equal((size_t)want * ph_dtype_size(every[i]), ph_tensor_bytes(t));
      for (int k = rank; k < PH_RANK_MAX; k++) {
        assert_int_equal(1, t->dim[k]);
      }
      for (int64_t k = 0; k < want; k++) {
        assert_true(ph_tensor_get(t, k) == 0);
      }
      ph_tensor_free(t);
    }
  }
}

static void bad_shapes_are_refused(void **state) {
  (void)state;
  ph_tensor *t = NULL;
  ph_err err;
  const int64_t negative[] = {2, -1};
  const int64_t huge[] = {INT64_MAX, 2, 1, 1};
  const int64_t many[] = {(int64_t)1 << 61};
  ph_fails(PH_E_ARG, "rank must be 0 to 4, got 5", ph_tensor_new(&t, PH_F32, 5, huge, &err), err);
  ph_fails(PH_E_ARG, "rank must be 0 to 4, got -1", ph_tensor_new(&t, PH_F32, -1, huge, &err), err);
  ph_fails(PH_E_ARG, "dimension 2 is -1", ph_tensor_new(&t, PH_F32, 2, negative, &err), err);
  ph_fails(PH_E_ARG, "element type 9", ph_tensor_new(&t, (ph_dtype)9, 0, NULL, &err), err);
  ph_fails(PH_E_LIMIT, "too many", ph_tensor_new(&t, PH_U8, 2, huge, &err), err);
  ph_fails(PH_E_LIMIT, "too many", ph_tensor_new(&t, PH_F64, 1, many, &err), err);
  ph_fails(PH_E_NOMEM, "no memory", ph_tensor_new(&t, PH_U8, 1, huge, &err), err);
  assert_null(t);
}

static void empty_tensors_are_fine_wherever_the_zero_stands(void **state) {
  (void)state;
  const int64_t dim[][4] = {{0, INT64_MAX, INT64_MAX, 2}, {INT64_MAX, 3, 0, 9}, {INT64_MAX, INT64_MAX, 9, 0}};
  for (int i = 0; i < 3; i++) {
    ph_tensor *t = NULL;
    ph_tensor *c = NULL;
    ph_ok(ph_tensor_new(&t, PH_F64, 4, dim[i], NULL));
    ph_ok(ph_tensor_copy(&c, t, NULL));
    assert_int_equal(0, ph_tensor_count(c));
    assert_int_equal(-1, ph_tensor_first_nonfinite(c));
    ph_tensor_free(t);
    ph_tensor_free(c);
  }
}

static void copy_is_independent(void **state) {
  (void)state;
  ph_tensor *t = vector_of(PH_F64, 3, (double[]){1, NAN, -0.0});
  ph_tensor *c = NULL;
  ph_ok(ph_tensor_copy(&c, t, NULL));
  assert_true(ph_tensor_same_shape(t, c));
  assert_memory_equal(t->data, c->data, 24);
  ph_tensor_set(c, 0, 5);
  assert_true(ph_tensor_get(t, 0) == 1);
  ph_tensor_free(t);
  ph_tensor_free(c);
}

static void casts_convert(void **state) {
  (void)state;
  ph_tensor *t = vector_of(PH_F64, 4, (double[]){0.1, 2.9, 7, 255.5});
  ph_tensor *c = NULL;
  for (int i = 0; i < PH_COUNT(every); i++) {
    ph_ok(ph_tensor_cast(&c, t, every[i], NULL));
    assert_int_equal(every[i], c->dtype);
    bool whole = every[i] != PH_F32 && every[i] != PH_F64;
    assert_true(ph_tensor_get(c, 0) == (whole ? 0 : every[i] == PH_F32 ? (double)0.1f : 0.1));
    assert_true(ph_tensor_get(c, 1) == (whole ? 2 : every[i] == PH_F32 ? (double)2.9f : 2.9));
    assert_true(ph_tensor_get(c, 3) == (whole ? 255 : 255.5));
    ph_tensor_free(c);
  }
  ph_tensor_free(t);
}

static void casts_refuse_what_an_integer_cannot_hold(void **state) {
  (void)state;
  static const struct {
    double value;
    ph_dtype dtype;
    bool fits;
  } cases[] = {
      {NAN, PH_I32, false},    {INFINITY, PH_I64, false},     {256, PH_U8, false},
      {-1, PH_U8, false},      {-0.5, PH_U8, true},           {0x1p31, PH_I32, false},
      {-0x1p31, PH_I32, true}, {-0x1p31 - 0.5, PH_I32, true}, {-0x1p31 - 1, PH_I32, false},
      {0x1p63, PH_I64, false}, {-0x1p63, PH_I64, true},       {-0x1.0000000000001p63, PH_I64, false},
  };
  for (int i = 0; i < PH_COUNT(cases); i++) {
    ph_tensor *t = vector_of(PH_F64, 2, (double[]){1, cases[i].value});
    ph_tensor *c = NULL;
    ph_err err;
    if (cases[i].fits) {
      ph_ok(ph_tensor_cast(&c, t, cases[i].dtype, &err));
      assert_true(ph_tensor_get(c, 1) == trunc(cases[i].value));
      ph_tensor_free(c);
    } else {
      ph_fails(PH_E_LIMIT, "element 2", ph_tensor_cast(&c, t, cases[i].dtype, &err), err);
      assert_null(c);
    }
    ph_tensor_free(t);
  }
}

static void integer_casts_are_exact_beyond_double(void **state) {
  (void)state;
  ph_tensor *t = vector_of(PH_I64, 2, (double[]){0, 0});
  ph_tensor *c = NULL;
  ((int64_t *)t->data)[0] = INT64_MAX;
  ((int64_t *)t->data)[1] = 9007199254740993; /* 2^53 + 1 */
  ph_ok(ph_tensor_cast(&c, t, PH_I64, NULL));
  assert_memory_equal(t->data, c->data, 16);
  ph_tensor_free(c);
  ph_err err;
  ph_fails(PH_E_LIMIT, "element 1", ph_tensor_cast(&c, t, PH_I32, &err), err);
  ph_tensor_free(t);
  t = vector_of(PH_I32, 2, (double[]){INT32_MIN, 200});
  ph_ok(ph_tensor_cast(&c, t, PH_I64, NULL));
  assert_int_equal(INT32_MIN, ((int64_t *)c->data)[0]);
  ph_tensor_free(c);
  ph_tensor_free(t);
}

static void set_saturates(void **state) {
  (void)state;
  ph_tensor *t = vector_of(PH_U8, 4, (double[]){300, -3, NAN, 4.7});
  assert_memory_equal("\xff\0\0\4", t->data, 4);
  ph_tensor_free(t);
  t = vector_of(PH_I64, 3, (double[]){INFINITY, -INFINITY, -2.5});
  assert_true(((int64_t *)t->data)[0] == INT64_MAX && ((int64_t *)t->data)[1] == INT64_MIN);
  assert_int_equal(-2, ((int64_t *)t->data)[2]);
  ph_tensor_free(t);
}

static void first_nonfinite_is_found(void **state) {
  (void)state;
  static const double bad[] = {NAN, INFINITY, -INFINITY};
  for (int i = 0; i < 3; i++) {
    for (int dtype = PH_F32; dtype <= PH_F64; dtype++) {
      ph_tensor *t = vector_of((ph_dtype)dtype, 4, (double[]){1e30, 0, bad[i], bad[i]});
      assert_int_equal(2, ph_tensor_first_nonfinite(t));
      ph_tensor_set(t, 2, 0);
      ph_tensor_set(t, 3, 0);
      assert_int_equal(-1, ph_tensor_first_nonfinite(t));
      ph_tensor_free(t);
    }
  }
}

static void same_shape_compares_rank_too(void **state) {
  (void)state;
  const int64_t dim[] = {3, 1};
  ph_tensor *a = NULL;
  ph_tensor *b = NULL;
  ph_ok(ph_tensor_new(&a, PH_F32, 1, dim, NULL));
  ph_ok(ph_tensor_new(&b, PH_F64, 2, dim, NULL));
  assert_false(ph_tensor_same_shape(a, b));
  b->rank = 1;
  assert_true(ph_tensor_same_shape(a, b));
  ph_tensor_free(a);
  ph_tensor_free(b);
}

static void describe_prints_and_cuts(void **state) {
  (void)state;
  const int64_t dim[] = {3, 4, 5};
  char buf[64];
  char small[6];
  ph_tensor *t = NULL;
  ph_ok(ph_tensor_new(&t, PH_F32, 2, dim, NULL));
  assert_string_equal("f32 (3, 4)", ph_tensor_describe(t, buf, sizeof buf));
  assert_string_equal("f32 (", ph_tensor_describe(t, small, sizeof small));
  ph_tensor_free(t);
  ph_ok(ph_tensor_new(&t, PH_U8, 0, NULL, NULL));
  assert_string_equal("u8 ()", ph_tensor_describe(t, buf, sizeof buf));
  ph_tensor_free(t);
}

static ph_status make_copy_and_cast(void) {
  const int64_t dim[] = {2, 3};
  ph_tensor *a = NULL;
  ph_tensor *b = NULL;
  ph_tensor *c = NULL;
  ph_status st = ph_tensor_new(&a, PH_F32, 2, dim, NULL);
  if (!st) {
    st = ph_tensor_copy(&b, a, NULL);
  }
  if (!st) {
    st = ph_tensor_cast(&c, a, PH_F64, NULL);
  }
  ph_tensor_free(a);
  ph_tensor_free(b);
  ph_tensor_free(c);
  return st;
}

static void every_failed_allocation_is_reported(void **state) {
  (void)state;
  ph_each_failed_allocation(make_copy_and_cast());
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PH_TEST(dtypes_have_names_and_sizes),
      PH_TEST(new_is_zero_and_knows_its_shape),
      PH_TEST(bad_shapes_are_refused),
      PH_TEST(empty_tensors_are_fine_wherever_the_zero_stands),
      PH_TEST(copy_is_independent),
      PH_TEST(casts_convert),
      PH_TEST(casts_refuse_what_an_integer_cannot_hold),
      PH_TEST(integer_casts_are_exact_beyond_double),
      PH_TEST(set_saturates),
      PH_TEST(first_nonfinite_is_found),
      PH_TEST(same_shape_compares_rank_too),
      PH_TEST(describe_prints_and_cuts),
      PH_TEST(every_failed_allocation_is_reported),
  };
  return cmocka_run_group_tests_name("tensor", tests, NULL, NULL);
}
