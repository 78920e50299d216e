/* fuzz_ir.c - any bytes as IR text: no crash, and what parses prints back as it was. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ir/ir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds, const char *what) {
  if (holds) {
    return;
  }
  fprintf(stderr, "broken: %s\n", what);
  abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  ph_mem_stats before = ph_mem_now();
  ph_err err = {.code = PH_OK};
  ph_ir *ir = NULL;
  ph_status st = ph_ir_parse(&ir, (const char *)data, size, &err);
  if (st) {
    check(!ir && err.code == st && err.text[0], "a refusal has a code and a text, and no result");
  } else {
    char *text = NULL;
    size_t n = 0;
    check(ph_ir_print(ir, &text, &n, &err) == PH_OK, "what parses can be printed");
    check(n == size && !memcmp(text, data, n), "print(parse(s)) == s");
    ph_mem_free(text);
    ph_ir_free(ir);
  }
  check(ph_mem_now().bytes == before.bytes, "nothing leaks");
  return 0;
}
