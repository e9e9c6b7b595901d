/* The search's view of one forward op and its backward ops: who reads what, under which rules,
 * at what price (private to synth). */
#ifndef KILTER_SYNTH_EXACT_OP_VIEW_H
#define KILTER_SYNTH_EXACT_OP_VIEW_H

#include "synth/assignment.h"
#include "synth/exact/index.h"

enum { TRANSITION_IN = 2, TRANSITION_OUT = 2 };

/* Tensors that an op and its backward ops read, as slots: its outputs, their gradients, activation
 * inputs, and all inputs by position for parameters. Graph inputs are free in every form and have
 * none. */
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
    uint8_t
        makes[OP_MAX_OUT]; /* backward: forward input whose contribution output o is */
    bool can_wait;         /* backward: it makes gradients of parameters only */
    uint32_t n_rules;
    PricedRule *rule;
} OpReads;

/* Undominated plans of a parameter, for the forms that are read, those of them that backward ops
 * read, and the form its gradient is made in. */
typedef struct {
    FormSet read, kept;
    Form made;
    GArray *plans; /* ParameterPlan */
    /* Least relaxed cost of any of them, by class; INFINITY if there is none. */
    Times least;
} PlanSet;

typedef struct {
    Index keys;      /* forms read, kept, made -> */
    GPtrArray *sets; /* PlanSet */
    ParameterPrices *prices;
} Plans;

typedef struct {
    OpId op;
    uint32_t n_in;                 /* activation inputs (those that a forward op made), */
    uint32_t input[TRANSITION_IN]; /* their positions, */
    TensorId tensor[TRANSITION_IN];
    /* what is added to their gradients (GRAPH_NONE: nothing), */
    TensorId contribution[TRANSITION_IN];
    int8_t alias[TRANSITION_IN]; /* the output whose gradient that is itself, or -1, */
    OpId accumulation[TRANSITION_IN]; /* and the op that adds it, or GRAPH_NONE */
    Times accumulation_work[TRANSITION_IN][FORM_MAX];
    FormSet accumulates[TRANSITION_IN]; /* forms in which the sum can be kept */
    OpReads forward;
    uint32_t n_backward;
    OpReads backward[MAX_BACKWARD];
    uint32_t n_parameters;
    uint32_t parameter[OP_MAX_IN]; /* positions */
    Plans plans[OP_MAX_IN];        /* by n_parameters */
} OpView;

/* Reads how an op and its backward ops are connected. KILTER_ERROR_FAILED for graphs outside the
 * space: a parameter with several consumers, more than two activation inputs. */
bool op_view_read(const Graph *graph, OpId op, OpView *view, GError **error);

/* Appends to `key` everything that the op's choices depend on: equal for ops that look alike. */
void op_view_describe(const Pricer *pricer, const OpView *view, GString *key);

/* Finds the rules of a view that was read, and prices them. KILTER_ERROR_INPUT for pins that leave
 * the op no rule; the view is then to be cleared all the same. */
bool op_view_find(const Pricer *pricer, OpView *view, GError **error);
void op_view_clear(OpView *view);

/* Takes other prices, for rules and the plans that are known. */
void op_view_price(const Pricer *pricer, OpView *view);

/* The number of a set of plans of the `p`-th parameter in its `sets`; they are priced when they are
 * met first. */
uint32_t op_view_plans(const Pricer *pricer, OpView *view, uint32_t p, FormSet read,
                       FormSet kept, Form made);

/* Whether the gradient of output `o` is itself what some input's gradient gets. */
bool op_view_is_alias(const OpView *view, uint32_t o);

static inline const PlanSet *op_view_plan_set(const OpView *view, uint32_t p,
                                              uint32_t number)
{
    return view->plans[p].sets->pdata[number];
}

#endif
