/* Transitions: every way to run one forward op together with its backward ops (private to synth).
 *
 * At a cut of the forward order a live tensor has one form that readers start from, and its
 * gradient will be accumulated in another. A transition leads from the states of the op's inputs to
 * the states of its outputs, and has the cost that this adds to the iteration. It is a *half*, the
 * rules of the op and its backward ops, with plans for its parameters and with the conversions that
 * the states ask for.
 *
 * The relaxation needs only the least cost of any transition between two states: an *arc*.
 * Transitions themselves are found when the search reaches their arc. Ops that look alike share all
 * of this. */
#pragma once

#include "synth/hap/exact/index.h"
#include "synth/hap/exact/op_view.h"

/* State of one live tensor. */
typedef struct {
    Form form, gradient;
} Held;

/* All states that a tensor can be in, numbered form * n_gradients + gradient. */
typedef struct {
    uint32_t n, n_forms, n_gradients;
    Form form[FORM_MAX], gradient[FORM_MAX];
    uint8_t form_at[FORM_MAX];
} Range;

Range range_of(const Graph *graph, TensorId tensor);

static inline Held range_held(const Range *range, uint32_t i)
{
    return (Held){range->form[i / range->n_gradients],
                  range->gradient[i % range->n_gradients]};
}

/* Rounding differences must not prune the optimum itself. */
static const double SEARCH_ROUNDING = 1e-12;

/* The cost of a choice, split by the open stages that it extends. Communication adds up wherever it
 * happens. Computation goes to the forward's end, to the backward's front in two portions with a
 * step after each, and to the final stage. */
enum { CLOSES_FORWARD = 1, CLOSES_LATE = 2, CLOSES_EARLY = 4, CLOSES_FINAL = 8 };
typedef struct {
    uint8_t closes; /* the steps that hold a priced collective */
    /* communication; charge_s is the charge for memory */
    double comm_s, charge_s;
    /* added to the forward's first stage: inner communication of parameters */
    Times initial;
    /* appended to the forward's open stage, after its step has closed the stage before */
    Times forward;
    /* put before the backward's open stage: accumulation, and deferred ops; then the contributions'
     * step */
    Times late;
    /* put before `late`: the backward ops; then the step of dy and saved tensors */
    Times early;
    /* added to the final stage */
    Times update;
    /* added to the stage in which updated values are communicated */
    Times tail;
} Cost;

typedef struct {
    /* [class]: seconds that it adds if only this class's computation counts and no stage waits */
    Times relaxed;
    Cost cost;
    Form gradient[TRANSITION_OUT]; /* forms in which the outputs' gradients arrive */
    uint8_t forward_rule, backward_rule[MAX_BACKWARD], plan[OP_MAX_IN];
    uint8_t deferred; /* bit k: backward op k runs after the contributions' step */
} Transition;

/* The forms that a half needs from its surroundings, and the forms that it makes. */
typedef struct {
    Form reads[TRANSITION_IN];    /* forms in which the op reads its activation inputs */
    FormSet saved[TRANSITION_IN]; /* forms in which backward ops read them */
    Form makes[TRANSITION_IN];    /* forms in which the contributions are made */
    /* forms in which backward ops read outputs' gradients */
    FormSet wanted_dy[TRANSITION_OUT];
    Form out[TRANSITION_OUT]; /* forms of the outputs */
} Needs;

typedef struct {
    uint8_t forward_rule, backward_rule[MAX_BACKWARD];
    FormSet wanted_out[TRANSITION_OUT]; /* forms in which backward ops read the outputs */
    uint16_t plans[OP_MAX_IN]; /* [parameter]: number of a set, see op_view_plans */
    uint32_t next;             /* next half of equal needs, UINT32_MAX after the last */
    /* relaxed cost that does not depend on states, with the cheapest plans */
    Times least;
} Half;

/* All halves of equal needs. */
typedef struct {
    Needs needs;
    uint32_t first; /* its first half */
    Times least;
} Group;

/* Arcs, by number: the state after each, see Choices, and the least relaxed cost of any
 * transition. */
typedef struct {
    GArray *to;    /* uint32_t */
    GArray *least; /* double, [arc * n_classes + class] */
} Arcs;

/* An op's choices. `in` numbers the states of its activation inputs (range[0] outermost; one range
 * if both are one tensor); `to` numbers the states of the inputs that live on, with their forms
 * afterwards, and then of the live outputs. */
typedef struct {
    const Pricer *pricer;
    OpView view;
    const Op *op;
    bool same;                       /* both inputs are one tensor */
    bool survives[TRANSITION_IN];    /* the input lives on */
    bool lives[TRANSITION_OUT];      /* the output is read */
    Range in[TRANSITION_IN];         /* n == 1 if there is none */
    Range out[TRANSITION_OUT];       /* likewise */
    uint32_t n_in, n_to;             /* states */
    GArray *halves, *groups;         /* Half, Group */
    struct Elimination *elimination; /* finds the arcs */
    Arcs arcs;                       /* by `in` */
    uint32_t *first_arc;             /* [n_in + 1] */
    Index asked;                     /* arcs whose transitions were asked for -> */
    GArray *found;                   /* Found, by the number of `asked` */
    GPtrArray *lists;                /* of transitions */
} Choices;

/* The choices of a view that was read; takes over the view's contents. `survives`, `lives`: see
 * Choices. The choices do not depend on prices, so choices_price can replace them. NULL with the
 * errors of op_view_find. */
Choices *choices_new(const Pricer *pricer, const OpView *view,
                     const bool survives[TRANSITION_IN], const bool lives[TRANSITION_OUT],
                     GError **error);
void choices_free(Choices *choices);

/* Takes the prices of a pricer of the same graph and pins, which has to outlive their use. Forgets
 * all transitions found before. */
void choices_price(Choices *choices, const Pricer *pricer);

/* held: out, the states of the op's inputs that number `in` stands for. */
void choices_inputs(const Choices *choices, uint32_t in, Held held[TRANSITION_IN]);

/* The undominated transitions along an arc of `in` that cost each class by itself at most `slack`
 * more than the arc. They stay valid as long as the prices. */
const GArray *choices_along(Choices *choices, uint32_t in, uint32_t arc,
                            const Times *slack);

static inline uint32_t choices_arc_to(const Choices *choices, uint32_t arc)
{
    return g_array_index(choices->arcs.to, uint32_t, arc);
}

/* The least cost of an arc, by class. */
static inline const double *choices_arc_least(const Choices *choices, uint32_t arc)
{
    return &g_array_index(choices->arcs.least, double, 0) +
           (size_t)arc * choices->pricer->n_classes;
}

/* Writes a transition of op `id` (which looks like the choices' own) into an assignment. */
void transition_apply(Choices *choices, OpId id, uint32_t in,
                      const Transition *transition, Assignment *assignment);

/* The charge for memory in a transition's cost, at the pricer's present rates. */
double transition_memory(Choices *choices, const Transition *transition);

/* --- between the files of this header --- */

/* The forms that chosen rules read and make. */
typedef struct {
    FormSet wanted[SLOTS];   /* forms that the rules read, by slot */
    FormSet kept[OP_MAX_IN]; /* of parameters, those that backward rules read */
    Form made[OP_MAX_IN];    /* forms of contributions, by forward input */
} Choice;

/* All rules of a half. */
Choice choice_of(const OpView *view, uint8_t forward_rule,
                 const uint8_t backward_rule[MAX_BACKWARD]);

/* The charge for the activations that the backward reads and for which the op pays. */
double choices_saved_memory(const Choices *choices, const Needs *needs,
                            const Choice *choice);
double half_memory(const Choices *choices, const Needs *needs, const Half *half);

/* The first function fills halves and groups without costs, the second fills in their costs. */
void choices_enumerate(Choices *choices);
void choices_price_halves(Choices *choices);

/* Finds the arcs once there are groups; choices_price_arcs fills in the arcs' costs once groups
 * have costs. */
struct Elimination *elimination_new(const Choices *choices);
void elimination_free(struct Elimination *elimination);
void choices_price_arcs(Choices *choices);

/* The numbers of the forms from which later ops may start after a step has converted an input: the
 * form that a priced collective made or, if both forms are shards, also the form before; otherwise
 * both numbers are equal. Later ops repeat free conversions. Whatever partial sums can become, a
 * shard can become at the same price, and a replica can become everything. */
static inline void choices_after(const Range *range, Form held, Form reads,
                                 const Step *before, uint8_t after[2])
{
    bool both = form_is_gather(held) && form_is_gather(reads);
    after[0] = range->form_at[before->closes ? reads : held];
    after[1] = both ? range->form_at[held] : after[0];
}

/* Whether input `i`, held in a form, can be read in the forms `wanted`: a shard from another
 * segment is cut by other ratios, and no conversion changes these alone. */
static inline bool choices_can_read(const Choices *choices, uint32_t i, Form held,
                                    FormSet wanted)
{
    return !(form_is_gather(held) && (wanted >> held & 1u)) ||
           !price_is_foreign(choices->pricer, choices->view.tensor[i], choices->view.op);
}

/* Whether the contribution to input `i`, which exists in the forms `held`, can be added to a sum in
 * the form `sum`, for the same reason. */
static inline bool choices_can_give(const Choices *choices, uint32_t i, FormSet held,
                                    Form sum)
{
    return i >= choices->view.n_in || choices_can_read(choices, i, sum, held);
}

/* Transitions along an arc, and by how much they may cost more than the arc. */
typedef struct {
    Times slack;
    GArray *transitions;
} Found;
