/* ref_act.h - the twins of the activations (core/kernels/activations.h): y = f(x), and f' from x or y as the row says. */
#ifndef PH_REF_ACT_H
#define PH_REF_ACT_H

#include <assert.h>
#include <math.h>

#include "ref.h"

typedef long double big;

static inline big ref_normal(big x) { return erfcl(-x / sqrtl(2)) / 2; }

static inline big twin_tanh(big x) { return tanhl(x); }
static inline big twin_slope_tanh(big y) { return 1 - y * y; }

static inline big twin_relu(big x) { return x <= 0 ? 0 : x; }
static inline big twin_slope_relu(big y) { return y <= 0 ? 0 : 1; }

/* 0 times an infinity where the other factor falls faster: the limit is 0. */
static inline big ref_product(big x, big y) { return y == 0 ? 0 : x * y; }

static inline big twin_gelu(big x) { return ref_product(x, ref_normal(x)); }
static inline big twin_slope_gelu(big x) {
  return ref_normal(x) + ref_product(x, expl(-x * x / 2)) / sqrtl(2 * acosl(-1));
}

static inline big twin_sigmoid(big x) { return 1 / (1 + expl(-x)); }
static inline big twin_slope_sigmoid(big y) { return y * (1 - y); }

static inline big twin_softplus(big x) { return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x)); }
static inline big twin_slope_softplus(big x) { return twin_sigmoid(x); }

static inline big twin_silu(big x) { return ref_product(x, twin_sigmoid(x)); }
static inline big twin_slope_silu(big x) {
  big s = twin_sigmoid(x);
  return s + ref_product(x, s * twin_sigmoid(-x));
}

static inline big twin_hardtanh(big x) { return x > 1 ? 1 : x < -1 ? -1 : x; }
static inline big twin_slope_hardtanh(big y) { return fabsl(y) >= 1 ? 0 : 1; }

static inline big twin_softsign(big x) { return isinf(x) ? copysignl(1, x) : x / (1 + fabsl(x)); }
static inline big twin_slope_softsign(big x) { return 1 / ((1 + fabsl(x)) * (1 + fabsl(x))); }

static inline big twin_exp(big x) { return expl(x); }
static inline big twin_slope_exp(big y) { return y; }

static inline big twin_log(big x) { return logl(x); }
static inline big twin_slope_log(big x) { return x < 0 ? NAN : 1 / x; }

static inline big twin_sin(big x) { return sinl(x); }
static inline big twin_slope_sin(big x) { return cosl(x); }

static inline big twin_cos(big x) { return cosl(x); }
static inline big twin_slope_cos(big x) { return -sinl(x); }

static inline big twin_square(big x) { return x * x; }
static inline big twin_slope_square(big x) { return 2 * x; }

static inline big twin_abs(big x) { return fabsl(x); }
static inline big twin_slope_abs(big x) { return x > 0 ? 1 : x < 0 ? -1 : x; }

static inline big ph_ref_act(ph_act f, big x) {
  switch (f) {
#define ROW(NAME, name, ...) \
  case PH_ACT_##NAME: return twin_##name(x);
    PH_ACTIVATIONS(ROW)
#undef ROW
  default: assert(!"activation"); return 0;
  }
}

/* v: x or y */
static inline big ph_ref_act_slope(ph_act f, big v) {
  switch (f) {
#define ROW(NAME, name, ...) \
  case PH_ACT_##NAME: return twin_slope_##name(v);
    PH_ACTIVATIONS(ROW)
#undef ROW
  default: assert(!"activation"); return 0;
  }
}

#endif
