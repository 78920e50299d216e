/* Kernels on two tiles, a tile and a row, a tile and a column; softmax: every table against the twin over all sizes, gaps,
 * accumulation, aliasing; what they do at 0, infinity and NaN. */
#include "kern_trial.h"

enum { PLAIN, ADD, IN_PLACE };

/* Tile 4 receives, unless the first operand does. */
static tile *target(trial *q) { return &q->v[q->flag == IN_PLACE ? 0 : 4]; }

static void run_div(const ph_kern *k, trial *q) {
  tile *z = target(q);
  k->div(q->m, q->n, q->a, q->v[0].at, q->v[0].ld, q->flag2 ? q->v[1].at : NULL, q->v[1].ld, q->v[2].at, q->v[2].ld,
         z->at, z->ld, q->flag == ADD);
}

static void run_where(const ph_kern *k, trial *q) {
  tile *z = target(q);
  k->where(q->m, q->n, q->v[0].at, q->v[0].ld, q->flag2 == 1 ? NULL : q->v[1].at, q->v[1].ld,
           q->flag2 == 2 ? NULL : q->v[2].at, q->v[2].ld, z->at, z->ld, q->flag == ADD);
}

static void run_mul_row(const ph_kern *k, trial *q) {
  tile *z = target(q);
  k->mul_row(q->m, q->n, q->v[0].at, q->v[0].ld, q->v[3].at, z->at, z->ld, q->flag == ADD);
}

static void run_mul_col(const ph_kern *k, trial *q) {
  tile *z = target(q);
  k->mul_col(q->m, q->n, q->v[0].at, q->v[0].ld, q->v[5].at, q->v[5].ld, z->at, z->ld, q->flag == ADD);
}

static void run_coldot(const ph_kern *k, trial *q) {
  k->coldot(q->m, q->n, q->v[0].at, q->v[0].ld, q->v[1].at, q->v[1].ld, q->v[3].at, q->flag == ADD);
}

static void run_rowdot(const ph_kern *k, trial *q) {
  k->rowdot(q->m, q->n, q->v[0].at, q->v[0].ld, q->v[1].at, q->v[1].ld, q->v[5].at, q->v[5].ld);
}

static void run_softmax(const ph_kern *k, trial *q) {
  tile *z = target(q);
  k->softmax(q->m, q->n, q->v[0].at, q->v[0].ld, z->at, z->ld);
}

static void run_softmax_bwd(const ph_kern *k, trial *q) {
  tile *z = target(q);
  k->softmax_bwd(q->m, q->n, q->v[2].at, q->v[2].ld, q->v[0].at, q->v[0].ld, z->at, z->ld, q->flag == ADD);
}

/* Tiles: 0, 1, 2 and 4 (m, n); 3 a row of n; 5 a column of m. Divisors keep away from 0. */
static trial tiles(ph_dtype type, int m, int n, int c) {
  trial q = {.type = type, .m = m, .n = n, .flag = c % 3, .flag2 = c / 3 % 3, .a = c % 2 ? -1 : 1};
  for (int i = 0; i < 5; i++) {
    tile_new(&q, i, i == 3 ? 1 : m, n, (m + i + c) % 3);
  }
  tile_new(&q, 5, m, 1, c % 3);
  for (int64_t r = 0; r < m; r++) {
    for (int64_t j = 0; j < n; j++) {
      const double v = tile_get(&q, 2, r, j);
      tile_set(&q, 2, r, j, v + (v < 0 ? -0.5 : 0.5));
    }
  }
  return q;
}

static void pairs_all_sizes(void **state) {
  (void)state;
  static const struct {
    const char *name;
    trial_fn *fn;
    int out; /* the tile that receives; 4: or tile 0 */
    int sum; /* terms are summed over: 0 none, 1 columns, 2 rows */
  } rows[] = {
      {"div", run_div, 4, 0},         {"where", run_where, 4, 0},
      {"mul_row", run_mul_row, 4, 0}, {"mul_col", run_mul_col, 4, 0},
      {"coldot", run_coldot, 3, 2},   {"rowdot", run_rowdot, 5, 1},
      {"softmax", run_softmax, 4, 1}, {"softmax_bwd", run_softmax_bwd, 4, 1},
  };
  EACH_TYPE(type) {
    EACH_SIZE(m) {
      EACH_SIZE(n) {
        for (int i = 0; i < PH_COUNT(rows); i++) {
          trial q = tiles(type, m, n, m + n + i);
          const unsigned out = 1u << (rows[i].out == 4 && q.flag == IN_PLACE ? 0 : rows[i].out);
          const double terms = rows[i].sum == 1 ? n : rows[i].sum == 2 ? m : 0;
          const double tolerance =
              trial_eps(type) * (4 + terms); /* a few roundings of numbers of size 1, one more a term */
          trial_run(rows[i].name, rows[i].fn, &q, out, tolerance, tolerance);
        }
      }
    }
  }
}

static void quotients_and_choices_at_the_ends(void **state) {
  (void)state;
  EACH_TYPE(type) {
    const ph_kern *k = ph_kern_get(type);
    double x[4];
    double y[4];
    double c[4];
    double z[4];
    static const double top[] = {1, -1, 0, NAN};
    static const double condition[] = {1, 0, -0.0, NAN};
    for (int i = 0; i < 4; i++) {
      set_elem(type, x, i, top[i]);
      set_elem(type, y, i, 0);
      set_elem(type, c, i, condition[i]);
    }
    k->div(1, 4, 1, x, 4, NULL, 0, y, 4, z, 4, 0);
    assert_true(elem(type, z, 0) == INFINITY && elem(type, z, 1) == -INFINITY);
    assert_true(isnan(elem(type, z, 2)) && isnan(elem(type, z, 3)));
    k->where(1, 4, c, 4, x, 4, y, 4, z, 4, 0); /* zero is not above zero; what is unknown stays unknown */
    assert_true(elem(type, z, 0) == 1 && elem(type, z, 1) == 0 && elem(type, z, 2) == 0 && isnan(elem(type, z, 3)));
  }
}

static void softmax_at_the_ends(void **state) {
  (void)state;
  static const double row[][3] = {
      {1000, 1000, -1000}, {-INFINITY, 0, 0}, {0, NAN, 1}, {0, INFINITY, 1}, {-INFINITY, -INFINITY, -INFINITY}};
  static const double want[][3] = {{0.5, 0.5, 0}, {0, 0.5, 0.5}, {NAN, NAN, NAN}, {NAN, NAN, NAN}, {NAN, NAN, NAN}};
  EACH_TYPE(type) {
    for (int i = 0; i < PH_COUNT(row); i++) {
      double x[3];
      double y[3];
      for (int j = 0; j < 3; j++) {
        set_elem(type, x, j, row[i][j]);
      }
      ph_kern_get(type)->softmax(1, 3, x, 3, y, 3);
      for (int j = 0; j < 3; j++) {
        assert_true(isnan(want[i][j]) ? isnan(elem(type, y, j)) : elem(type, y, j) == want[i][j]);
      }
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PH_TEST(pairs_all_sizes),
      PH_TEST(quotients_and_choices_at_the_ends),
      PH_TEST(softmax_at_the_ends),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
