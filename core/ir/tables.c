/* tables.c - lists of numbers in the text of a model, each a line of any length. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ir/ir_internal.h"

int ph_ir_table_find(const ph_ir_tables *t, const char *name) {
  for (int i = 0; i < t->n; i++) {
    if (strcmp(t->at[i].name, name) == 0) {
      return i;
    }
  }
  return -1;
}

void ph_ir_tables_free(ph_ir_tables *t) {
  for (int i = 0; i < t->n; i++) {
    ph_mem_free(t->at[i].value);
  }
  ph_mem_free(t->at);
}

/* Reads the numbers at l->rest, each after one space, up to the newline. False unless there are t->n, all finite. */
static bool numbers(const ph_ir_lines *l, const ph_ir_table *t) {
  const char *at = l->rest;
  for (int64_t i = 0; i < t->n; i++) {
    char *after = NULL;
    if (*at != ' ' || at[1] == ' ' || at[1] == '\n') {
      return false;
    }
    t->value[i] = strtod(at + 1, &after); /* stops at the newline at the latest */
    if (after == at + 1 || !isfinite(t->value[i])) {
      return false;
    }
    at = after;
  }
  return at == l->end;
}

ph_status ph_ir_table_read(ph_ir_lines *l, ph_ir_tables *to, int64_t n, const char *of) {
  ph_ir_table t = {.n = n};
  if (l->words != 2 || !ph_ir_name(l->word[1], t.name)) {
    return ph_ir_bad(l, "expected 'table NAME NUMBERS'");
  }
  if (ph_ir_table_find(to, t.name) >= 0) {
    return ph_ir_bad(l, "a table name must be used once in a segment");
  }
  ph_status st = ph_ir_room(l, "tables", (void **)&to->at, to->n, PH_IR_MAX_TABLES, sizeof t);
  if (st) {
    return st;
  }
  t.value = ph_mem_new((size_t)n, sizeof *t.value);
  if (!t.value) {
    return ph_err_set(l->err, PH_E_NOMEM, "out of memory while reading a model");
  }
  to->at[to->n++] = t;
  return numbers(l, &t)
             ? PH_OK
             : ph_err_set(l->err, PH_E_PARSE, "line %d: a table must have one finite number for each of %lld %s",
                          l->line, (long long)n, of);
}
