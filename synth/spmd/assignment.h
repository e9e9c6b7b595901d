/* An assignment: all decisions of a search, before conversions are put in place (private to
 * synth). */
#pragma once

#include "synth/spmd/backward.h"
#include "synth/spmd/price.h"

typedef struct {
    Rule *rule; /* [op] */
    /* [op]: whether a backward op runs after the contributions' conversions */
    bool *deferred;
    /* [tensor]: for an activation the form in which its gradient is accumulated */
    Form *gradient;
    /* [tensor]: for a parameter or optimizer state the form in which it rests between iterations */
    Form *rest;
} Assignment;

void assignment_init(Assignment *assignment, const Graph *graph);
AUTOCLEAR(assignment_clear, Assignment)

/* Where a parameter and its optimizer states rest and where the update runs, given the forms that
 * the ops need. */
typedef struct {
    Form rest, update; /* the update reads and writes everything in form `update` */
    bool closes;       /* some gradient or updated value is communicated */
    /* Communication of the parameter before the forward, of its gradient, and of the updated value
     * back to `rest`; charge_s is the charge for memory. */
    double comm_s, charge_s;
    Times initial; /* inner communication before the forward */
    Times work;    /* the update's work, and inner communication before it */
    Times tail;    /* inner communication after it */
} ParameterPlan;

/* The op that updates a parameter; GRAPH_NONE: it is frozen, and has neither gradient nor
 * states. */
OpId parameter_update(const Graph *graph, TensorId parameter);
/* Whether the op has a rule under which all of its operands have the form. */
bool op_rule_in(const Graph *graph, OpId op, Form form, Rule *rule);
/* Fills the rule of an update whose operands all have the form, in which it can work. */
void parameter_update_rule(const Graph *graph, OpId update, Form form, Rule *rule);

/* Whether a parameter's update can work on it in that form: an update that sees whole rows and
 * columns cannot work on parts of them. */
bool parameter_updates_in(const Graph *graph, TensorId parameter, Form form);

/* A step that converts one tensor; `known` once it has been priced. */
typedef struct {
    bool known, can;
    Step step;
} KnownStep;

/* The costs of a parameter's plans that do not depend on its readers, filled in when asked for.
 * Start from zero. */
typedef struct {
    /* from the form in which it is made to the update's form */
    KnownStep gradient[FORM_MAX][FORM_MAX];
    KnownStep next[FORM_MAX][FORM_MAX]; /* updated values, from the update to rest */
    bool known[FORM_MAX];
    Times update[FORM_MAX]; /* work of the update, by its form */
} ParameterPrices;

/* ParameterPlans that none dominates, out of: replicated; sharded on a dim, with the update where
 * the shard lives; replicated with a sharded update (ZeRO). `read`: forms that ops read; `kept`:
 * those of them that backward ops read; `made`: the form in which its gradient is made. `prices`
 * are the parameter's prices by this pricer. */
GArray *parameter_plans(const Pricer *pricer, TensorId parameter, ParameterPrices *prices,
                        FormSet read, FormSet kept, Form made);

/* The charge for the memory of a parameter at rest and in the other forms that the backward reads,
 * of its optimizer states, and of its gradient in the form in which it is made. */
double parameter_plan_memory(const Pricer *pricer, TensorId parameter, FormSet kept,
                             Form made, const ParameterPlan *plan);

/* Writes the plan's rules and forms into the assignment. */
void parameter_plan_apply(const Graph *graph, TensorId parameter,
                          const ParameterPlan *plan, Assignment *assignment);

/* The program of an assignment; see synth/synth.h for the order. KILTER_ERROR_FAILED if a form
 * cannot be reached. */
Program *synth_emit(const Pricer *pricer, const Assignment *assignment, GError **error);

/* Evaluates a program at fractional ratios (one segment) with the analytic model. */
double synth_time(const Pricer *pricer, const Program *program, const double *ratio,
                  uint64_t bucket_bytes);
