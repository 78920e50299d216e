/* activations.h - the elementwise functions: one row each, and all there is to say of one but its code.
 *
 *   ROW(NAME, name, TAKES, FROM, LIPSCHITZ, BOUND, AT_ZERO, EQUATION, DOC)
 *
 *   NAME, name   PH_ACT_NAME; value_name and slope_name in isa_act.h, twin_name and twin_slope_name in tests/ref/ref_act.h
 *   TAKES        x: any number; a: numbers above 0, of others f is not finite
 *   FROM         what f' is made from and backward keeps: IN (x) or OUT (y)
 *   LIPSCHITZ    largest |f'|, rounded up; INFINITY when there is none
 *   BOUND        largest |f|, 0 when there is none
 *   AT_ZERO      f(0)
 *
 * A new one is its row here, its pair of functions in isa_act.h and its twins in tests/ref/ref_act.h: the op table, the language,
 * certificates, tests, benchmarks and the reference page are made from these.
 */
#ifndef PH_KERNELS_ACTIVATIONS_H
#define PH_KERNELS_ACTIVATIONS_H

#include <math.h>
#include <stdbool.h>

#define PH_ACTIVATIONS(ROW)                                                                                      \
  ROW(TANH, tanh, x, OUT, 1, 1, 0, "y = tanh x", "Hyperbolic tangent; |y| <= 1 also in float32.")                \
  ROW(RELU, relu, x, OUT, 1, 0, 0, "y = max(0, x)", "Rectifier; the derivative at 0 is 0.")                      \
  ROW(GELU, gelu, x, IN, 1.1290, 0, 0, "y = x Phi(x)",                                                           \
      "Gaussian error linear unit with the exact normal distribution function.")                                 \
  ROW(SIGMOID, sigmoid, x, OUT, 0.25, 1, 0.5, "y = 1/(1 + e^{-x})", "Logistic function.")                        \
  ROW(SOFTPLUS, softplus, x, IN, 1, 0, 0.69314718055994530942, "y = ln(1 + e^x)", "Smooth rectifier, positive.") \
  ROW(SILU, silu, x, IN, 1.0999, 0, 0, "y = x/(1 + e^{-x})", "Sigmoid-weighted linear unit.")                    \
  ROW(HARDTANH, hardtanh, x, OUT, 1, 1, 0, "y = max(-1, min(1, x))",                                             \
      "Identity between -1 and 1, constant outside; the derivative at -1 and 1 is 0.")                           \
  ROW(SOFTSIGN, softsign, x, IN, 1, 1, 0, "y = x/(1 + |x|)",                                                     \
      "Bounded like tanh; nears its bounds slowly, like 1 - 1/|x|.")                                             \
  ROW(EXP, exp, x, OUT, INFINITY, 0, 1, "y = e^x", "Exponential, elementwise.")                                  \
  ROW(LOG, log, a, IN, INFINITY, 0, -INFINITY, "y = ln x",                                                       \
      "Natural logarithm, elementwise; of 0 -infinity, of a negative number NaN: the run diverges.")             \
  ROW(SIN, sin, x, IN, 1, 1, 0, "y = sin x", "Sine, elementwise, accurate for every finite number.")             \
  ROW(COS, cos, x, IN, 1, 1, 1, "y = cos x", "Cosine, elementwise, accurate for every finite number.")           \
  ROW(SQUARE, square, x, IN, INFINITY, 0, 0, "y = x^2", "Square, elementwise.")                                  \
  ROW(ABS, abs, x, IN, 1, 0, 0, "y = |x|", "Magnitude, elementwise; the derivative at 0 is 0.")

typedef enum ph_act {
#define ROW(NAME, ...) PH_ACT_##NAME,
  PH_ACTIVATIONS(ROW)
#undef ROW
      PH_ACT_COUNT
} ph_act;

enum { PH_ACT_FROM_IN, PH_ACT_FROM_OUT };

/* "tanh" */
static inline const char *ph_act_name(ph_act f) {
  static const char *const names[] = {
#define ROW(NAME, name, ...) #name,
      PH_ACTIVATIONS(ROW)
#undef ROW
  };
  return names[f];
}

/* Whether the derivative is made from y = f(x) instead of x. */
static inline bool ph_act_from_output(ph_act f) {
  static const bool from_output[] = {
#define ROW(NAME, name, TAKES, FROM, ...) PH_ACT_FROM_##FROM,
      PH_ACTIVATIONS(ROW)
#undef ROW
  };
  return from_output[f];
}

#endif
