/* The search's view of one forward op and its backward ops: the tensors that they read, their
 * rules, and the rules' prices (private to synth). */
#pragma once

#include "synth/hap/exact/index.h"
#include "synth/spmd/assignment.h"

enum { TRANSITION_IN = 2, TRANSITION_OUT = 2 };

/* Tensors that an op and its backward ops read, as slots: its outputs, their gradients, activation
 * inputs, and all inputs by position for parameters. Graph inputs are free in every form and have
 * no slot. */
enum {
    SLOT_OUT = 0,
    SLOT_DY = SLOT_OUT + TRANSITION_OUT,
    SLOT_IN = SLOT_DY + TRANSITION_OUT,
    SLOT_PARAMETER = SLOT_IN + TRANSITION_IN,
    SLOT_FREE = SLOT_PARAMETER + OP_MAX_IN,
    SLOTS
};

/* A rule with its price. */
typedef struct {
    Rule rule;
    Times work;
} PricedRule;

typedef struct {
    OpId op;
    uint32_t n_in, n_out;
    uint8_t slot[OP_MAX_IN];
    /* backward: the forward input to which output o contributes */
    uint8_t makes[OP_MAX_OUT];
    bool can_wait; /* backward: it makes gradients of parameters only */
    uint32_t n_rules;
    PricedRule *rule;
} OpReads;

/* Undominated plans of a parameter, for given forms that are read, forms of these that backward ops
 * read, and the form in which its gradient is made. */
typedef struct {
    FormSet read, kept;
    Form made;
    GArray *plans; /* ParameterPlan */
    /* the least relaxed cost of any plan, by class; INFINITY if there is none */
    Times least;
} PlanSet;

typedef struct {
    Index keys;      /* forms read, kept, made -> index in `sets` */
    GPtrArray *sets; /* PlanSet */
    ParameterPrices *prices;
} Plans;

typedef struct {
    OpId op;
    /* number of activation inputs (made by a forward op) */
    uint32_t n_in;
    uint32_t input[TRANSITION_IN]; /* their positions */
    TensorId tensor[TRANSITION_IN];
    /* the tensors that are added to their gradients (GRAPH_NONE: none) */
    TensorId contribution[TRANSITION_IN];
    /* the output whose gradient is that contribution itself, or -1 */
    int8_t alias[TRANSITION_IN];
    /* the op that adds the contribution, or GRAPH_NONE */
    OpId accumulation[TRANSITION_IN];
    Times accumulation_work[TRANSITION_IN][FORM_MAX];
    FormSet accumulates[TRANSITION_IN]; /* forms in which the sum can be kept */
    OpReads forward;
    uint32_t n_backward;
    OpReads backward[MAX_BACKWARD];
    uint32_t n_parameters;
    uint32_t parameter[OP_MAX_IN]; /* positions */
    Plans plans[OP_MAX_IN];        /* one per parameter */
} OpView;

/* Reads how an op and its backward ops are connected. KILTER_ERROR_FAILED for graphs outside the
 * space: a parameter with several consumers, more than two activation inputs. */
bool op_view_read(const Graph *graph, OpId op, OpView *view, GError **error);

/* Appends everything that the op's choices depend on to `key`, so that ops with equal choices have
 * equal keys. */
void op_view_describe(const Pricer *pricer, const OpView *view, GString *key);

/* Finds the rules of a view that was read, and prices them. KILTER_ERROR_INPUT if the pins leave
 * the op no rule; the view must be cleared all the same. */
bool op_view_find(const Pricer *pricer, OpView *view, GError **error);
void op_view_clear(OpView *view);

/* Takes new prices for the rules and the plans found so far. */
void op_view_price(const Pricer *pricer, OpView *view);

/* The index in `sets` of a set of plans of the `p`-th parameter; a set is priced when it is first
 * asked for. */
uint32_t op_view_plans(const Pricer *pricer, OpView *view, uint32_t p, FormSet read,
                       FormSet kept, Form made);

/* Whether the gradient of output `o` is itself a contribution to some input's gradient. */
bool op_view_is_alias(const OpView *view, uint32_t o);

static inline const PlanSet *op_view_plan_set(const OpView *view, uint32_t p,
                                              uint32_t number)
{
    return view->plans[p].sets->pdata[number];
}
