/* Elementwise and row kernels: every table against the twin over all sizes, gaps between rows, accumulation, aliasing. */
#include "kern_trial.h"
#include "ref_act.h"

static void run_act(const ph_kern *k, trial *q) {
  tile *y = q->flag ? &q->v[0] : &q->v[1];
  k->act(q->f, q->m, q->n, q->v[0].at, q->v[0].ld, y->at, y->ld);
}

static void act_all_sizes(void **state) {
  (void)state;
  EACH_TYPE(type) EACH_SIZE(m) EACH_SIZE(n) for (int f = 0; f < PH_ACT_COUNT; f++) {
    trial q = {.type = type, .m = m, .n = n, .f = (ph_act)f, .flag = (m + n + f) % 2};
    tile_new(&q, 0, m, n, (m + f) % 3);
    tile_new(&q, 1, m, n, (n + f) % 3);
    for (int64_t i = 0; i < m; i++) {
      for (int64_t j = 0; j < n; j++) {
        tile_set(&q, 0, i, j, 8 * tile_get(&q, 0, i, j));
      }
    }
    trial_run("act", run_act, &q, q.flag ? 1 : 2, 0, 4 * trial_eps(type)); /* a few roundings of relative size */
  }
}

/* tiles: 0 x, 1 y, 2 gy, 3 gx; flag 1: gx is gy, 2: acc (never both); flag2: leave out what the derivative does not use */
static void run_act_bwd(const ph_kern *k, trial *q) {
  const int from_y = ph_act_from_output(q->f);
  tile *gx = q->flag & 1 ? &q->v[2] : &q->v[3];
  k->act_bwd(q->f, q->m, q->n, q->flag2 && from_y ? NULL : q->v[0].at, q->v[0].ld,
             q->flag2 && !from_y ? NULL : q->v[1].at, q->v[1].ld, q->v[2].at, q->v[2].ld, gx->at, gx->ld, q->flag == 2);
}

static void act_bwd_all_sizes(void **state) {
  (void)state;
  EACH_TYPE(type) EACH_SIZE(m) EACH_SIZE(n) for (int f = 0; f < PH_ACT_COUNT; f++) {
    trial q = {.type = type, .m = m, .n = n, .f = (ph_act)f, .flag = (m + n + f) % 3, .flag2 = (m + f) % 2};
    for (int i = 0; i < 4; i++) {
      tile_new(&q, i, m, n, (m + f + i) % 3);
    }
    for (int64_t i = 0; i < m; i++) {
      for (int64_t j = 0; j < n; j++) {
        const double x = 6 * tile_get(&q, 0, i, j);
        tile_set(&q, 0, i, j, x);
        tile_set(&q, 1, i, j, (double)ph_ref_act((ph_act)f, x));
      }
    }
    trial_run("act_bwd", run_act_bwd, &q, q.flag & 1 ? 4 : 8, 4 * trial_eps(type), 4 * trial_eps(type));
  }
}

/* f' agrees with central differences of f in float64. */
static void act_slope_is_the_derivative(void **state) {
  (void)state;
  const ph_kern *k = ph_kern_get(PH_F64);
  const double h = 1e-4;
  const double one = 1;
  for (int f = 0; f < PH_ACT_COUNT; f++) {
    for (double x = -9.05; x < 9; x += 0.1) {
      const double at[5] = {x - 2 * h, x - h, x, x + h, x + 2 * h};
      double y[5];
      double g;
      k->act((ph_act)f, 1, 5, at, 5, y, 5);
      k->act_bwd((ph_act)f, 1, 1, &x, 1, &y[2], 1, &one, 1, &g, 1, 0);
      const double slope = (8 * (y[3] - y[1]) - (y[4] - y[0])) / (12 * h);
      ph_near(slope, g, 1e-9, 1e-9, "h^4 f^(5) / 30 and eps / h");
    }
  }
}

/* NaN stays NaN; limits at infinity. */
static void act_at_the_ends(void **state) {
  (void)state;
  static const char *const names[] = {"portable", "avx2", "avx512", "neon"};
  for (int t = 0; t < PH_COUNT(names); t++) {
    EACH_TYPE(type) {
      const ph_kern *k = ph_kern_find(type, names[t]);
      double buf[4];
      double out[4];
      for (int f = 0; k && f < PH_ACT_COUNT; f++) {
        set_elem(type, buf, 0, INFINITY);
        set_elem(type, buf, 1, -INFINITY);
        set_elem(type, buf, 2, NAN);
        k->act((ph_act)f, 1, 3, buf, 3, out, 3);
        ph_near((double)ph_ref_act((ph_act)f, INFINITY), elem(type, out, 0), 0, 0, "exact limit");
        ph_near((double)ph_ref_act((ph_act)f, -INFINITY), elem(type, out, 1), 0, 0, "exact limit");
        assert_true(isnan(elem(type, out, 2)));
      }
    }
  }
}

static void run_axpby(const ph_kern *k, trial *q) {
  tile *z = &q->v[q->flag];
  k->axpby(q->m, q->n, q->a, q->v[0].at, q->v[0].ld, q->b, q->flag2 ? q->v[1].at : NULL, q->v[1].ld, z->at, z->ld);
}

static void run_mul(const ph_kern *k, trial *q) {
  k->mul(q->m, q->n, q->v[0].at, q->v[0].ld, q->v[1].at, q->v[1].ld, q->v[2].at, q->v[2].ld, q->flag);
}

static void run_colsum(const ph_kern *k, trial *q) {
  k->colsum(q->m, q->n, q->v[0].at, q->v[0].ld, q->v[1].at, q->flag);
}

static void run_add_row(const ph_kern *k, trial *q) {
  tile *y = &q->v[q->flag ? 0 : 2];
  k->add_row(q->m, q->n, q->v[0].at, q->v[0].ld, q->v[1].at, y->at, y->ld);
}

static void axpby_all_sizes(void **state) {
  (void)state;
  static const double factors[] = {1, -1, 0.1, 0, 2.5};
  EACH_TYPE(type) EACH_SIZE(m) EACH_SIZE(n) for (int c = 0; c < 6; c++) {
    trial q = {.type = type,
               .m = m,
               .n = n,
               .flag = c % 3,
               .flag2 = c % 3 == 1 || c > 3,
               .a = factors[(m + c) % 5],
               .b = factors[(n + c) % 5]};
    for (int i = 0; i < 3; i++) {
      tile_new(&q, i, m, n, (m + c + i) % 3);
    }
    trial_run("axpby", run_axpby, &q, 1u << q.flag, 2 * trial_eps(type),
              trial_eps(type)); /* a x rounded, then the sum */
  }
}

static void mul_all_sizes(void **state) {
  (void)state;
  EACH_TYPE(type) EACH_SIZE(m) EACH_SIZE(n) for (int acc = 0; acc < 2; acc++) {
    trial q = {.type = type, .m = m, .n = n, .flag = acc};
    for (int i = 0; i < 3; i++) {
      tile_new(&q, i, m, n, (m + i) % 3);
    }
    trial_run("mul", run_mul, &q, 4, trial_eps(type), 0);
  }
}

static void colsum_all_sizes(void **state) {
  (void)state;
  EACH_TYPE(type) EACH_SIZE(m) EACH_SIZE(n) for (int acc = 0; acc < 2; acc++) {
    trial q = {.type = type, .m = m, .n = n, .flag = acc};
    tile_new(&q, 0, m, n, n % 3);
    tile_new(&q, 1, 1, n, 0);
    trial_run("colsum", run_colsum, &q, 2, trial_eps(type) * (m + 1), 0);
  }
}

static void add_row_all_sizes(void **state) {
  (void)state;
  EACH_TYPE(type) EACH_SIZE(m) EACH_SIZE(n) for (int same = 0; same < 2; same++) {
    trial q = {.type = type, .m = m, .n = n, .flag = same};
    tile_new(&q, 0, m, n, n % 3);
    tile_new(&q, 1, 1, n, 0);
    tile_new(&q, 2, m, n, m % 3);
    trial_run("add_row", run_add_row, &q, same ? 1 : 4, 0, trial_eps(type) / 2);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PH_TEST(act_all_sizes),    PH_TEST(act_bwd_all_sizes), PH_TEST(act_slope_is_the_derivative),
      PH_TEST(act_at_the_ends),  PH_TEST(axpby_all_sizes),   PH_TEST(mul_all_sizes),
      PH_TEST(colsum_all_sizes), PH_TEST(add_row_all_sizes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
