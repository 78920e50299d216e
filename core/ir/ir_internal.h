/* ir_internal.h - shape rules of segments, shared by parser and builder. Nothing outside core/ir includes it. */
#ifndef PH_IR_IR_INTERNAL_H
#define PH_IR_IR_INTERNAL_H

#include "ir/ir.h"

ph_shape ph_ir_ref_shape(const ph_ir_segment *s, ph_ir_ref r);
/* Sets `in` and `state` from what enters the segment. */
ph_status ph_ir_segment_open(ph_ir_segment *s, ph_shape in, ph_err *err) PH_MUST_CHECK;
/* Fills n->shape by the op's rule. */
ph_status ph_ir_node_shape(const ph_ir_segment *s, ph_ir_node *n, ph_err *err) PH_MUST_CHECK;
/* Checks result and read, sets `out`. */
ph_status ph_ir_segment_close(ph_ir_segment *s, ph_err *err) PH_MUST_CHECK;

/* The shortest decimal text that reads back as v. */
void ph_ir_number(double v, char buf[32]);

#endif
