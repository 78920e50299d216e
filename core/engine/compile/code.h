/* code.h - instructions over slots: what the programs of both phases are made of. Private to core/engine.
 *
 * An instruction names its operands by slot. Each phase keeps the slots in a table of its own, for a tile and a stack of
 * matrices lie in memory in different ways; the instructions, and the pass that makes backward ones, are the same.
 */
#ifndef PH_ENGINE_CODE_H
#define PH_ENGINE_CODE_H

#include "engine/compile/graph.h"

typedef enum ph_ins_kind {
  PH_INS_PRODUCT, /* out = d + bias + a Wt */
  PH_INS_OP,      /* out = op(in) */
  PH_INS_AXPBY,   /* out = alpha a + beta b (b may be -1) */
  PH_INS_WGRAD,   /* weight cotangent of a product: (+)= a^T b */
  PH_INS_COLSUM,  /* bias cotangent: (+)= sum of rows of a */
  PH_INS_DGRAD,   /* out = d + a Wn */
  PH_INS_OP_BWD,  /* cotangents of op's arguments, from that of its output: a */
  PH_INS_ZERO     /* out = 0 */
} ph_ins_kind;

typedef struct ph_ins {
  ph_ins_kind kind;
  int a, b, d, out; /* slots, -1 when absent */
  int product;      /* PRODUCT, WGRAD, DGRAD */
  ph_coef alpha;
  double beta;
  const ph_op *op;
  int nargs;
  int in[PH_OP_ARGS]; /* OP, OP_BWD: slots; -1 where the argument is a weight */
  int weight
      [PH_OP_ARGS]; /* OP, OP_BWD: weights of the stream phase, -1 where the argument is a slot. COLSUM: the first */
  int aux;
  int gin[PH_OP_ARGS]; /* OP_BWD: slots; -1 where no cotangent is wanted or the argument is a weight */
  bool acc[PH_OP_ARGS];
  ph_shape in_shape[PH_OP_ARGS], out_shape;
  ph_coef attr[PH_OP_ATTRS];
} ph_ins;

typedef struct ph_list {
  int n, room;
  ph_ins *ins;
} ph_list;

typedef struct ph_code {
  const ph_graph *g;
  int *value, *aux; /* slot of each graph node's value, and of what its op keeps for its adjoint; -1 */
  ph_list fwd;
  int64_t op_scratch; /* elements of what one op takes at most (ph_call.scratch) */
  bool failed;        /* out of memory while building; what is emitted then is lost */
} ph_code;

void ph_code_init(ph_code *c, const ph_graph *g);
void ph_code_fini(ph_code *c);
ph_status ph_code_no_memory(ph_err *err);

/* Room for one more element behind the `used` ones of `array`; *failed when memory is short, the array stays as it was. */
void *ph_code_room(void *array, int used, int *room, size_t size, bool *failed);

/* The place of n elements at the end of *total. Places start at multiples of 16 elements: a cache line of float32. */
int64_t ph_code_take(int64_t *total, int64_t n);

/* An instruction whose operands are all absent. */
ph_ins ph_ins_of(ph_ins_kind kind);
/* op(in) of a node, with operands where the node's arguments and its value lie. */
ph_ins ph_code_call(const ph_code *c, int node);
void ph_code_emit(ph_code *c, ph_list *list, const ph_ins *i);
/* out = alpha a + beta b; of a shape that all have */
void ph_code_axpby(ph_code *c, ph_list *list, ph_shape shape, int out, ph_coef alpha, int a, double beta, int b);
void ph_code_copy(ph_code *c, ph_list *list, ph_shape shape, int out, int a);
void ph_code_zero(ph_code *c, ph_list *list, int out);
/* What a node's op takes besides its operands, for `samples` samples; the code makes room for its scratch. */
ph_needs ph_code_needs(ph_code *c, int node, int64_t samples);

/* ---- reverse accumulation (reverse.c) ---- */

/* The cotangent of a node: nothing yet, another's slot (a sum hands its own to its terms unchanged), or a slot of its own. */
typedef enum ph_cot_kind { PH_COT_NOTHING, PH_COT_ALIAS, PH_COT_OWN } ph_cot_kind;

typedef struct ph_cot {
  ph_cot_kind kind;
  int slot;
} ph_cot;

typedef struct ph_reverse {
  ph_code *code;
  ph_list *list;                              /* where backward instructions go */
  ph_cot *cot;                                /* of each graph node */
  bool with_state, with_input;                /* beside those of parameters, these cotangents are wanted */
  int (*own)(struct ph_reverse *r, int node); /* makes a slot for a cotangent of this node */
} ph_reverse;

/* The phase has set all but cot. r->code->failed when memory is short. */
void ph_reverse_init(ph_reverse *r);
void ph_reverse_fini(ph_reverse *r);
bool ph_reverse_wanted(const ph_reverse *r, int node);
/* cot(node) += alpha slot */
void ph_reverse_give(ph_reverse *r, int node, ph_coef alpha, int slot);
/* The slot that is now the node's own; *have: where its cotangent was until now, -1 when it was nothing. The caller writes what was
 * there plus what it adds. */
int ph_reverse_claim(ph_reverse *r, int node, int *have);
/* The node's cotangent lies in a slot of its own, be it zero. */
void ph_reverse_settle(ph_reverse *r, int node);
/* The adjoint of a node's op, from the node's cotangent, which is something. */
void ph_reverse_op(ph_reverse *r, int node);

#endif
