/* Kernels that add along rows: layer norm, losses, norms, sums; and the optimizers and scans. */
#include "kern_trial.h"

/* tiles: 0 x, 1 gamma, 2 beta, 3 y, 4 stat */
static void run_layernorm(const ph_kern *k, trial *q) {
  k->layernorm(q->m, q->n, q->a, q->v[0].at, q->v[0].ld, q->v[1].at, q->v[2].at, q->v[3].at, q->v[3].ld, q->v[4].at);
}

static void layernorm_all_sizes(void **state) {
  (void)state;
  EACH_TYPE(type) EACH_SIZE(m) EACH_SIZE(n) {
    trial q = {.type = type, .m = m, .n = n, .a = 1e-5};
    tile_new(&q, 0, m, n, n % 3);
    tile_new(&q, 1, 1, n, 0);
    tile_new(&q, 2, 1, n, 0);
    tile_new(&q, 3, m, n, m % 3);
    tile_new(&q, 4, n ? m : 0, 2, 0);
    /* two features of one row may lie close together: 1/std up to 1/sqrt(eps) = 316 multiplies the rounding of x - mean */
    trial_run("layernorm", run_layernorm, &q, 8 | 16, 16 * trial_eps(type) * (n == 2 ? 3000 : 1),
              (n == 2 ? 3000 : 16) * trial_eps(type));
  }
}

/* tiles: 0 x, 1 gamma, 2 stat, 3 gy, 4 gx, 5 ggamma, 6 gbeta; flag 1: gx is gy, 2: acc_x, 4: no gx; flag2 1: acc_p, 2: no ggamma, 4: no gbeta */
static void run_layernorm_bwd(const ph_kern *k, trial *q) {
  tile *gx = q->flag & 1 ? &q->v[3] : &q->v[4];
  k->layernorm_bwd(q->m, q->n, q->v[0].at, q->v[0].ld, q->v[1].at, q->v[2].at, q->v[3].at, q->v[3].ld,
                   q->flag & 4 ? NULL : gx->at, gx->ld, q->flag == 2, q->flag2 & 2 ? NULL : q->v[5].at,
                   q->flag2 & 4 ? NULL : q->v[6].at, q->flag2 & 1);
}

static void layernorm_bwd_all_sizes(void **state) {
  (void)state;
  EACH_TYPE(type) EACH_SIZE(m) EACH_SIZE(n) for (int c = 0; c < 8; c++) {
    static const int flags[] = {0, 1, 2, 4};
    trial q = {.type = type, .m = m, .n = n, .flag = flags[c % 4], .flag2 = (m + n + c) % 8};
    tile_new(&q, 0, m, n, n % 3);
    tile_new(&q, 1, 1, n, 0);
    tile_new(&q, 2, m, 2, 0);
    tile_new(&q, 3, m, n, (c + 1) % 3);
    tile_new(&q, 4, m, n, m % 3);
    tile_new(&q, 5, 1, n, 0);
    tile_new(&q, 6, 1, n, 0);
    trial_run("layernorm_bwd", run_layernorm_bwd, &q,
              (q.flag & 1   ? 8u
               : q.flag & 4 ? 0u
                            : 16u) |
                  (q.flag2 & 2 ? 0u : 32u) | (q.flag2 & 4 ? 0u : 64u),
              trial_eps(type) * (16 + m), 4 * trial_eps(type));
  }
}

/* A constant row: finite, and its gradient is finite. */
static void layernorm_of_a_constant_row(void **state) {
  (void)state;
  EACH_TYPE(type) {
    const ph_kern *k = ph_kern_get(type);
    double x[40];
    double g[40];
    double b[40];
    double y[40];
    double stat[4];
    double gx[40];
    for (int i = 0; i < 33; i++) {
      set_elem(type, x, i, 0.1);
      set_elem(type, g, i, 1);
      set_elem(type, b, i, 0.5);
    }
    k->layernorm(1, 33, 1e-5, x, 33, g, b, y, 33, stat);
    k->layernorm_bwd(1, 33, x, 33, g, stat, b, 33, gx, 33, 0, NULL, NULL, 0);
    for (int i = 0; i < 33; i++) {
      ph_near(0.5, elem(type, y, i), 1e-4, 0, "rounding of the mean times 316");
      ph_near(0, elem(type, gx, i), 1e-3, 0, "a constant cotangent has no effect");
    }
  }
}

/* Rows whose squares overflow: what does not depend on the size of a row does not, and its gradient is smaller by that size. */
static void layernorm_of_any_size(void **state) {
  (void)state;
  EACH_TYPE(type) {
    const ph_kern *k = ph_kern_get(type);
    const double size = ldexp(1, type == PH_F32 ? 100 : 700);
    double x[2][40];
    double g[40];
    double b[40];
    double y[2][40];
    double stat[2];
    double gx[2][40];
    for (int i = 0; i < 33; i++) {
      double v = trial_random();
      set_elem(type, x[0], i, v);
      set_elem(type, x[1], i, elem(type, x[0], i) * size);
      set_elem(type, g, i, trial_random());
      set_elem(type, b, i, trial_random());
    }
    for (int i = 0; i < 2; i++) {
      k->layernorm(1, 33, 1e-30, x[i], 33, g, b, y[i], 33, stat);
      k->layernorm_bwd(1, 33, x[i], 33, g, stat, b, 33, gx[i], 33, 0, NULL, NULL, 0);
    }
    for (int i = 0; i < 33; i++) {
      ph_near(elem(type, y[0], i), elem(type, y[1], i), 16 * trial_eps(type), 64 * trial_eps(type), "sums of 33");
      ph_near(elem(type, gx[0], i), elem(type, gx[1], i) * size, 64 * trial_eps(type), 64 * trial_eps(type),
              "sums of 33");
    }
    for (int i = 0; i < 33; i++) {
      set_elem(type, x[1], i, size);
    }
    k->layernorm(1, 33, 1e-5, x[1], 33, g, b, y[1], 33, stat);
    for (int i = 0; i < 33; i++) {
      ph_near(elem(type, b, i), elem(type, y[1], i), 0, 0, "a constant row has no deviation");
    }
  }
}

/* tiles: 0 x, 1 g (or t), 2 losses and 3 hits as elements of the trial */
static void run_softmax(const ph_kern *k, trial *q) {
  double loss[80] = {0};
  int32_t hit[80] = {0};
  double weight[80];
  for (int j = 0; j < 80; j++) {
    weight[j] = 0.25 * (j % 5);
  }
  k->softmax_ce(q->m, q->n, q->v[0].at, q->v[0].ld, q->label, q->b, q->flag2 ? weight : NULL, q->a, loss, hit,
                q->flag ? q->v[1].at : NULL, q->v[1].ld);
  for (int r = 0; r < q->m; r++) {
    tile_set(q, 2, r, 0, loss[r]);
    tile_set(q, 3, r, 0, hit[r]);
  }
}

/* how: hard labels, smoothed, weighted, both */
static void softmax_all_sizes(void **state) {
  (void)state;
  EACH_TYPE(type) EACH_SIZE(m) EACH_SIZE(n) for (int how = 0; how < 8; how++) {
    int g = how & 1;
    int32_t label[80];
    for (int r = 0; r < 80; r++) {
      label[r] = n ? (r * 7 + 3) % n : 0;
    }
    trial q = {.type = type,
               .m = m,
               .n = n,
               .flag = g,
               .flag2 = how & 2,
               .a = 1.0 / 3,
               .b = how & 4 ? 0.2 : 0,
               .label = label};
    tile_new(&q, 0, m, n, n % 3);
    tile_new(&q, 1, m, n, m % 3);
    tile_new(&q, 2, m, 1, 0);
    tile_new(&q, 3, m, 1, 0);
    for (int64_t i = 0; i < m; i++) {
      for (int64_t j = 0; j < n; j++) {
        tile_set(&q, 0, i, j, 20 * tile_get(&q, 0, i, j));
      }
    }
    for (int64_t j = 0; m > 1 && j < n; j++) {
      tile_set(&q, 0, 1, j, 3); /* all equal: only label 0 is a hit */
    }
    double tol = (8 + (how > 1 ? (double)n : 0)) * trial_eps(type); /* shares add up with a rounding each */
    trial_run("softmax_ce", run_softmax, &q, g && n ? 2 | 4 | 8 : 4 | 8, tol, tol);
  }
}

static void softmax_beyond_the_range(void **state) {
  (void)state;
  EACH_TYPE(type) {
    const ph_kern *k = ph_kern_get(type);
    double x[4];
    double g[4];
    double loss[1];
    const int32_t label = 1;
    int32_t hit;
    for (int i = 0; i < 3; i++) {
      set_elem(type, x, i, i == 1 ? 3e4 : -3e4);
    }
    k->softmax_ce(1, 3, x, 3, &label, 0, NULL, 1, loss, &hit, g, 3);
    assert_true(loss[0] == 0 && hit == 1 && elem(type, g, 1) == 0);
    set_elem(type, x, 2, NAN);
    k->softmax_ce(1, 3, x, 3, &label, 0, NULL, 1, loss, &hit, g, 3);
    assert_true(isnan(loss[0]) && hit == 0 && isnan(elem(type, g, 0)));
    set_elem(type, x, 2, INFINITY);
    k->softmax_ce(1, 3, x, 3, &label, 0, NULL, 1, loss, &hit, g, 3);
    assert_true(!isfinite(loss[0]) && hit == 0);
  }
}

static void run_misfit(const ph_kern *k, trial *q) {
  double loss[80] = {0};
  k->misfit((ph_misfit)q->flag2, 0.7, q->m, q->n, q->v[0].at, q->v[0].ld, q->v[1].at, q->v[1].ld, q->a, loss,
            q->flag ? q->v[2].at : NULL, q->v[2].ld);
  for (int r = 0; r < q->m; r++) {
    tile_set(q, 3, r, 0, loss[r]);
  }
}

static void misfit_all_sizes(void **state) {
  (void)state;
  EACH_TYPE(type) EACH_SIZE(m) EACH_SIZE(n) for (int how = 0; how < 2 * PH_MISFIT_COUNT; how++) {
    int g = how & 1;
    trial q = {.type = type, .m = m, .n = n, .flag = g, .flag2 = how / 2, .a = 0.3};
    for (int i = 0; i < 3; i++) {
      tile_new(&q, i, m, n, (m + i) % 3);
    }
    tile_new(&q, 3, m, 1, 0);
    trial_run("misfit", run_misfit, &q, g ? 4 | 8 : 8, trial_eps(type), 16 * trial_eps(type));
  }
}

static void run_norms(const ph_kern *k, trial *q) {
  double out[80] = {0};
  k->rownorm(q->m, q->n, q->v[0].at, q->v[0].ld, out);
  for (int r = 0; r < q->m; r++) {
    tile_set(q, 1, r, 0, out[r]);
  }
  tile_set(q, 2, 0, 0, k->sumsq(q->n, q->v[0].at));
}

static void norms_all_sizes(void **state) {
  (void)state;
  EACH_TYPE(type) EACH_SIZE(m) EACH_SIZE(n) {
    trial q = {.type = type, .m = m, .n = m ? n : 0};
    tile_new(&q, 0, m, n, 2);
    tile_new(&q, 1, m, 1, 0);
    tile_new(&q, 2, 1, 1, 0);
    trial_run("rownorm, sumsq", run_norms, &q, 2 | 4, 0, 16 * trial_eps(type));
  }
}

static void run_dot(const ph_kern *k, trial *q) { tile_set(q, 2, 0, 0, k->dot(q->n, q->v[0].at, q->v[1].at)); }

static void dot_all_sizes(void **state) {
  (void)state;
  EACH_TYPE(type) EACH_SIZE(n) {
    trial q = {.type = type, .n = n};
    tile_new(&q, 0, 1, n, 0);
    tile_new(&q, 1, 1, n, 0);
    tile_new(&q, 2, 1, 1, 0);
    trial_run("dot", run_dot, &q, 4, 65 * trial_eps(type), trial_eps(type)); /* 65 products of size 1 */
  }
}

/* Each product is rounded before it is added: contracted, the second would leave its rounding error. */
static void dot_rounds_products(void **state) {
  (void)state;
  const double a[2] = {-(1 + 0x1p-30) * (1 + 0x1p-30), 1 + 0x1p-30};
  const double b[2] = {1, 1 + 0x1p-30};
  assert_true(ph_kern_get(PH_F64)->dot(2, a, b) == 0);
}

/* (3, 4) times any power of two has norm 5 times it, to the ends of the range. */
static void rownorm_is_scaled(void **state) {
  (void)state;
  const ph_kern *k32 = ph_kern_get(PH_F32);
  const ph_kern *k64 = ph_kern_get(PH_F64);
  double out;
  for (int e = -1074; e <= 1020; e += 2) {
    const double x[2] = {ldexp(3, e), ldexp(-4, e)};
    k64->rownorm(1, 2, x, 2, &out);
    assert_true(out == ldexp(5, e));
  }
  for (int e = -149; e <= 125; e++) {
    const float x[2] = {ldexpf(-3, e), ldexpf(4, e)};
    k32->rownorm(1, 2, x, 2, &out);
    assert_true(out == ldexp(5, e));
  }
  const double bad[3] = {1, INFINITY, NAN};
  k64->rownorm(1, 3, bad, 3, &out);
  assert_true(isnan(out));
  k64->rownorm(1, 2, bad, 2, &out);
  assert_true(isinf(out));
  k64->rownorm(1, 0, bad, 0, &out);
  assert_true(out == 0);
}

static void run_adam(const ph_kern *k, trial *q) {
  ph_adam o = {.lr = 0.01,
               .beta1 = 0.9,
               .beta2 = 0.999,
               .eps = 1e-8,
               .weight_decay = q->flag ? 0.1 : 0,
               .c1 = 1 / 0.1,
               .c2 = 1 / 0.001};
  k->adam(q->n, q->v[0].at, q->v[1].at, q->v[2].at, q->v[3].at, &o);
}

static void run_sgd(const ph_kern *k, trial *q) {
  k->sgd(q->n, q->v[0].at, q->v[1].at, q->v[2].at, 0.1, 0.9, q->flag ? 0.01 : 0);
}

static void optimizers_all_sizes(void **state) {
  (void)state;
  EACH_TYPE(type) EACH_SIZE(n) for (int decay = 0; decay < 2; decay++) {
    trial q = {.type = type, .m = 1, .n = n, .flag = decay};
    for (int i = 0; i < 4; i++) {
      tile_new(&q, i, 1, n, 0);
    }
    for (int64_t j = 0; j < n; j++) {
      tile_set(&q, 3, 0, j, fabs(tile_get(&q, 3, 0, j)));
    }
    trial_run("adam", run_adam, &q, 1 | 4 | 8, 4 * trial_eps(type), 4 * trial_eps(type));
    trial p = {.type = type, .m = 1, .n = n, .flag = decay};
    for (int i = 0; i < 3; i++) {
      tile_new(&p, i, 1, n, 0);
    }
    trial_run("sgd", run_sgd, &p, 1 | 4, 4 * trial_eps(type), 0);
  }
}

static void nonfinite_is_found(void **state) {
  (void)state;
  static const char *const names[] = {"portable", "avx2", "avx512", "neon"};
  enum { N = 9000 };
  double *x = ph_mem_new(N, sizeof(double));
  for (int t = 0; t < PH_COUNT(names); t++) {
    EACH_TYPE(type) {
      const ph_kern *k = ph_kern_find(type, names[t]);
      if (!k) {
        continue;
      }
      for (int i = 0; i < N; i++) {
        set_elem(type, x, i, i % 2 ? 3e38 : -1e-40);
      }
      assert_int_equal(-1, k->first_nonfinite(N, x));
      assert_int_equal(-1, k->first_nonfinite(0, x));
      for (int i = N - 1; i >= 0; i -= 1 + i / 50) {
        set_elem(type, x, i, i % 3 ? NAN : i % 2 ? INFINITY : -INFINITY);
        assert_int_equal(i, k->first_nonfinite(N, x));
        assert_int_equal(i, k->first_nonfinite(i + 1, x));
        assert_int_equal(-1, k->first_nonfinite(i, x));
      }
    }
  }
  ph_mem_free(x);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PH_TEST(layernorm_all_sizes),   PH_TEST(layernorm_bwd_all_sizes), PH_TEST(layernorm_of_a_constant_row),
      PH_TEST(layernorm_of_any_size), PH_TEST(softmax_all_sizes),       PH_TEST(softmax_beyond_the_range),
      PH_TEST(misfit_all_sizes),      PH_TEST(norms_all_sizes),         PH_TEST(dot_all_sizes),
      PH_TEST(dot_rounds_products),   PH_TEST(rownorm_is_scaled),       PH_TEST(optimizers_all_sizes),
      PH_TEST(nonfinite_is_found),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
