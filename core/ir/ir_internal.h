/* ir_internal.h - what reading and printing of models share. Nothing outside core/ir includes it. */
#ifndef PH_IR_IR_INTERNAL_H
#define PH_IR_IR_INTERNAL_H

#include "ir/ir.h"

/* ---- shapes (ir.c) ---- */

/* Sets the shapes `in`, `input` and, unless it starts from zero, `state` from what enters the segment. */
ph_status ph_ir_segment_open(ph_ir_segment *s, ph_shape in, ph_err *err) PH_MUST_CHECK;
/* Fills n->shape by the op's rule. */
ph_status ph_ir_node_shape(const ph_ir_segment *s, ph_ir_node *n, ph_err *err) PH_MUST_CHECK;
/* Checks result and read, sets `out`. */
ph_status ph_ir_segment_close(ph_ir_segment *s, ph_err *err) PH_MUST_CHECK;

/* The first segment before s that has its name, or NULL. */
const ph_ir_segment *ph_ir_namesake(const ph_ir *ir, const ph_ir_segment *s);
/* p of segment s is as every earlier segment of the same name declares it. */
ph_status ph_ir_param_shared(const ph_ir *ir, const ph_ir_segment *s, const ph_ir_param *p, ph_err *err) PH_MUST_CHECK;

/* ---- lines (lines.c) ---- */

enum { PH_IR_WORDS = 16, PH_IR_LINE = 512 };

/* A text cut into lines, and the current line into words. A line that starts with `table` may have any length: its first two
 * words are cut, the numbers follow at `rest`. */
typedef struct ph_ir_lines {
  const char *text;
  size_t n, at;
  int line;
  char buf[PH_IR_LINE];
  char *word[PH_IR_WORDS];
  int words;              /* 0 at the end of the text */
  const char *rest, *end; /* of a table line; `end` is its newline */
  ph_err *err;
} ph_ir_lines;

/* Cuts the next line. */
ph_status ph_ir_next(ph_ir_lines *l) PH_MUST_CHECK;
/* PH_E_PARSE: "line N: what, got 'first word'". */
ph_status ph_ir_bad(const ph_ir_lines *l, const char *what);
/* Is the first word `word`, and is this the number of words? */
bool ph_ir_is(const ph_ir_lines *l, const char *word);
bool ph_ir_integer(const char *w, int64_t lo, int64_t hi, int64_t *out);
bool ph_ir_finite(const char *w, double *out);
/* A name: a letter or _, then letters, digits and _, shorter than PH_IR_NAME. Copies it. */
bool ph_ir_name(const char *w, char out[PH_IR_NAME]);
/* Words first.. as a shape: POS FEAT or H W FEAT, nothing after it. */
bool ph_ir_shape(const ph_ir_lines *l, int first, ph_shape *out);

/* Room for one more in an array of `used`; at most `limit` of what it holds. */
ph_status ph_ir_room(ph_ir_lines *l, const char *what, void **array, int used, int limit, size_t size) PH_MUST_CHECK;

/* ---- tables (tables.c) ---- */

/* Reads the current line, `table NAME C0 C1 ...`, with n numbers. of: what they are for, "iterations". */
ph_status ph_ir_table_read(ph_ir_lines *l, ph_ir_tables *to, int64_t n, const char *of) PH_MUST_CHECK;
/* Number of the table of a name, -1 when there is none. */
int ph_ir_table_find(const ph_ir_tables *t, const char *name);
void ph_ir_tables_free(ph_ir_tables *t);

/* ---- parts of the text ---- */

/* The body of a segment, from the line after its head to `end` (segment.c). version: that of the text. */
ph_status ph_ir_segment_body(ph_ir_lines *l, ph_ir *ir, ph_ir_segment *s, int version) PH_MUST_CHECK;

/* ---- printing (print.c) ---- */

/* The shortest decimal text that reads back as v. */
void ph_ir_number(double v, char buf[32]);

#endif
