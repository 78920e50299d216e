/* ref_pair.h - the twins of isa_pair.h for one element type; ref_body.h includes it. */

static void REF(div)(int64_t rows, int64_t cols, double a, const void *x, int64_t ldx, const void *w, int64_t ldw,
                     const void *y, int64_t ldy, void *z, int64_t ldz, int acc) {
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t j = 0; j < cols; j++) {
      const big top = (real)a * get(x, r * ldx + j) * (w ? get(w, r * ldw + j) : 1);
      put_or_add(z, r * ldz + j, top / get(y, r * ldy + j), acc);
    }
  }
}

static void REF(where)(int64_t rows, int64_t cols, const void *c, int64_t ldc, const void *x, int64_t ldx,
                       const void *y, int64_t ldy, void *z, int64_t ldz, int acc) {
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t j = 0; j < cols; j++) {
      const big if_yes = x ? get(x, r * ldx + j) : 0;
      const big if_no = y ? get(y, r * ldy + j) : 0;
      const big test = get(c, r * ldc + j);
      put_or_add(z, r * ldz + j, isnan(test) ? NAN : test > 0 ? if_yes : if_no, acc);
    }
  }
}

static void REF(mul_row)(int64_t rows, int64_t cols, const void *x, int64_t ldx, const void *v, void *z, int64_t ldz,
                         int acc) {
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t j = 0; j < cols; j++) {
      put_or_add(z, r * ldz + j, get(x, r * ldx + j) * get(v, j), acc);
    }
  }
}

static void REF(mul_col)(int64_t rows, int64_t cols, const void *x, int64_t ldx, const void *s, int64_t lds, void *z,
                         int64_t ldz, int acc) {
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t j = 0; j < cols; j++) {
      put_or_add(z, r * ldz + j, get(x, r * ldx + j) * get(s, r * lds), acc);
    }
  }
}

static void REF(coldot)(int64_t rows, int64_t cols, const void *x, int64_t ldx, const void *y, int64_t ldy, void *out,
                        int acc) {
  for (int64_t j = 0; j < cols; j++) {
    big s = 0;
    for (int64_t r = 0; r < rows; r++) {
      s += get(x, r * ldx + j) * get(y, r * ldy + j);
    }
    put_or_add(out, j, s, acc);
  }
}

static big dot(int64_t n, const void *x, int64_t at_x, const void *y, int64_t at_y) {
  big s = 0;
  for (int64_t j = 0; j < n; j++) {
    s += get(x, at_x + j) * get(y, at_y + j);
  }
  return s;
}

static void REF(rowdot)(int64_t rows, int64_t cols, const void *x, int64_t ldx, const void *y, int64_t ldy, void *out,
                        int64_t ldo) {
  for (int64_t r = 0; r < rows; r++) {
    put(out, r * ldo, dot(cols, x, r * ldx, y, r * ldy));
  }
}

static void REF(softmax)(int64_t rows, int64_t cols, const void *x, int64_t ldx, void *y, int64_t ldy) {
  for (int64_t r = 0; r < rows && cols > 0; r++) {
    big most = get(x, r * ldx);
    big sum = 0;
    for (int64_t j = 1; j < cols; j++) {
      most = get(x, r * ldx + j) > most ? get(x, r * ldx + j) : most;
    }
    for (int64_t j = 0; j < cols; j++) {
      sum += expl(get(x, r * ldx + j) - most);
    }
    for (int64_t j = 0; j < cols; j++) {
      put(y, r * ldy + j, expl(get(x, r * ldx + j) - most) / sum);
    }
  }
}

static void REF(softmax_bwd)(int64_t rows, int64_t cols, const void *y, int64_t ldy, const void *gy, int64_t ldg,
                             void *gx, int64_t ldgx, int acc) {
  for (int64_t r = 0; r < rows; r++) {
    const big mean = dot(cols, y, r * ldy, gy, r * ldg);
    for (int64_t j = 0; j < cols; j++) {
      put_or_add(gx, r * ldgx + j, get(y, r * ldy + j) * (get(gy, r * ldg + j) - mean), acc);
    }
  }
}
