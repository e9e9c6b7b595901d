/* Brute force over the space that synth/synth.h states, for small graphs.
 *
 * It tries every assignment: rules of all ops, forms in which gradients are accumulated, places of
 * parameters. It writes the program of each, with conversions as the space has them, and times it
 * by the analytic model. It uses nothing of synth: conversions are priced separately on every
 * device, and no choice is left out because another one seems better. It skips only prefixes whose
 * bound is too large: the time of one device alone, exactly the least of all ways to go on (found
 * by trying them all). */
#ifndef KILTER_TESTS_SUPPORT_BRUTE_FORCE_H
#define KILTER_TESTS_SUPPORT_BRUTE_FORCE_H

#include "sim/sim.h"

enum { MAX_DEVICES = 8, MAX_TENSORS = 80, MAX_OPS = 48, MAX_IN = 2, MAX_BACK = 4 };

typedef uint32_t Forms; /* bit f: form f */

/* The cheapest collective, or two, between two forms. */
typedef struct {
    bool can, closes;
    Form via; /* FORM_MAX: one collective */
    Collective kind, then;
    double comm_s, inner_s[MAX_DEVICES];
} Way;

/* A step of conversions, and the computations after it. */
typedef struct {
    bool closes;
    double comm_s, work_s[MAX_DEVICES];
} Portion;

/* A forward op with its backward ops. */
typedef struct {
    uint32_t n_in, in[MAX_IN]; /* positions of activation inputs */
    uint32_t n_parameters, parameter[OP_MAX_IN];
    uint32_t n_back;
    OpId back[MAX_BACK];
    bool can_wait[MAX_BACK]; /* it makes only gradients of parameters */
    GHashTable
        *rest; /* state -> least seconds of all ops from here on, for each device */
} Unit;

/* A place of a parameter: where it rests and is updated, and the cost. */
typedef struct {
    Form rest, update;
    double comm_s, initial_s[MAX_DEVICES], final_s[MAX_DEVICES];
} Place;

/* The stages so far, without the maximum of the last one, since updates may join it, and of the
 * first one, since inner communication of parameters joins it. */
typedef struct {
    bool begun, ended; /* the first and the last stage are complete */
    double s;          /* communication, and the other complete stages */
    double first_s[MAX_DEVICES], forward_s[MAX_DEVICES], backward_s[MAX_DEVICES],
        last_s[MAX_DEVICES];
} Stages;

typedef struct {
    const Graph *graph;
    const ClusterView *view;
    const double *ratio;
    uint32_t m; /* devices */
    OpId n_ops; /* forward */
    double max_share;
    /* The pin: one tensor or none. */
    TensorId pinned;
    Forms pin_made, pin_read;
    Way way[MAX_TENSORS][FORM_MAX][FORM_MAX];
    uint32_t n_rules[MAX_OPS];
    Rule all[MAX_OPS][OP_MAX_RULES];
    double work_s[MAX_OPS][OP_MAX_RULES][MAX_DEVICES];
    Unit unit[MAX_OPS];
    GHashTable *places; /* (parameter, forms read, form made) -> GArray of Place */
    /* The assignment. */
    uint32_t rule[MAX_OPS]; /* index in all */
    bool deferred[MAX_OPS]; /* a backward op that runs after the contributions' step */
    Form sum[MAX_TENSORS];  /* form in which gradients of an activation are accumulated */
    Place place[MAX_TENSORS];
    /* later ops start from the form of the input before its conversion */
    bool keeps[MAX_OPS][MAX_IN];
    Form held[MAX_TENSORS]; /* of activations, during the forward pass */
    Program *program;       /* the program written out; NULL: only priced */
    double below_s;         /* programs that take longer do not matter */
    double best_s;
    bool prepared;
    uint64_t steps, max_steps;
} Brute;

/* --- brute_program.c: what an assignment costs --- */

bool brute_can_hold(const Graph *graph, TensorId tensor, Form form);
/* Prices the conversions of all tensors. */
void brute_find_ways(Brute *b);

/* Converts the activations before the forward op; a collective replaces the form it starts from,
 * unless that is kept. saved: the forms that the backward pass finds. */
bool brute_forward(Brute *b, OpId id, Forms saved[MAX_IN], Portion *portion);
/* Converts dy, from the form in which it was accumulated, and saved tensors; then runs the backward
 * ops that are not deferred. */
bool brute_backward(Brute *b, OpId id, const Forms saved[MAX_IN], Forms dy[OP_MAX_OUT],
                    Portion *portion);
/* The op's contributions to the gradients of its inputs, in the forms in which those are
 * accumulated, and its deferred ops. */
bool brute_sums(Brute *b, OpId id, Forms dy[OP_MAX_OUT], Portion *portion);

/* The gradient of an output, unless there is none or it is the constant 1, which is free in every
 * form. */
TensorId brute_gradient(const Brute *b, TensorId output);
/* The places (Place) of the p-th parameter of a unit with chosen rules; owned by b. */
const GArray *brute_places(Brute *b, OpId id, uint32_t p);

/* The time of the assignment's program. */
double brute_program_s(Brute *b);

/* --- brute_force.c: trying everything --- */

/* The portions of a forward op: its own; dy's step and the backward ops; the contributions' step,
 * deferred ops and sums. */
typedef struct {
    Portion forward, early, late;
} Run;

/* Visits every way to run an op and its backward ops from the forms held, which are restored
 * afterwards. */
typedef void (*BruteVisit)(Brute *b, OpId id, const Run *run, void *data);
void brute_each_run(Brute *b, OpId id, BruteVisit visit, void *data);

/* The forms of the activations that are made before op `id` and read by it or later ops. */
uint64_t brute_state(const Brute *b, OpId id);

/* Adds an op's portions to the stages; the caller adds the places of parameters. */
Stages brute_after(const Brute *b, const Stages *before, const Run *run);
void brute_add_seconds(const Brute *b, double *sum_s, const double *more_s);

Brute *brute_new(const Graph *graph, const ClusterView *view, const double *ratio);
void brute_free(Brute *b);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Brute, brute_free)

/* Limits the forms in which a tensor may be made (or rest) and read; to be called before anything
 * is tried. */
void brute_pin(Brute *b, TensorId tensor, Forms made, Forms read);

/* Prices all choices, once. */
void brute_prepare(Brute *b);

/* The least time below `below_s`, infinite if there is none; NaN if there are too many to try. */
double brute_least(Brute *b, double below_s, uint64_t max_steps);

/* brute_pruned.c: the time of the best program if only one prefix is kept per state, chosen by one
 * number: its closed cost (among equal ones, the shortest open stages) or, with_open, its time if
 * it ended there. */
double brute_pruned(Brute *b, bool with_open);

#endif
