/* Which layers of a program are computed again: the fewest that make it fit, more where that leaves
 * room for faster ratios, and in small graphs any set. */
#include <math.h>
#include <string.h>

#include "balance/balance.h"
#include "synth/answer/complete.h"
#include "synth/pipeline/pipeline.h"
#include "synth/train/again.h"
#include "synth/train/train.h"

Plan *training_plan_like(const Plan *plan)
{
    Plan *other = plan_new();
    other->bucket_bytes = plan->bucket_bytes;
    other->granularity = plan->granularity;
    return other;
}

Plan *training_plan_of(const Question *question, const Plan *like, Program *program)
{
    Plan *plan = training_plan_like(like);
    plan_set(plan, question->graph, question->view, program, like->ratio);
    plan_set_segments(plan, like->ratio, like->segment, like->n_segments);
    return plan;
}

void training_set_apart(const Question *question, Plan *made)
{
    const Graph *graph = question->graph;
    const uint32_t n = made->n_devices, n_ops = graph_n_ops(graph);
    if (made->n_segments > 1 || question->options->segments ||
        !planner_can(question->planner, PLANNER_SEARCHES) ||
        !question_wants_best_ratios(question))
        return;
    g_autofree uint16_t *own = g_new(uint16_t, n_ops), *joined = g_new(uint16_t, n_ops);
    for (OpId id = 0; id < n_ops; id++)
        own[id] = graph_get_op(graph, id)->pass == PASS_UPDATE;
    const uint32_t n_segments = balance_segments_join(made->program, graph, own, joined);
    g_assert(n_segments <= 2);
    if (n_segments == 1)
        return;
    g_autofree double *ratio = g_new(double, (gsize)n_segments *n);
    for (uint32_t k = 0; k < n_segments; k++)
        memcpy(&ratio[(gsize)k * n], made->ratio, n * sizeof *ratio);
    Split *rounded = g_steal_pointer(&made->split); /* of the batch stays what it was */
    const uint32_t n_splits = made->n_splits;
    made->n_splits = 0;
    plan_set_segments(made, ratio, joined, n_segments);
    made->split = rounded;
    made->n_splits = n_splits;
}

bool training_give(const Training *t, const Strategy *strategy, GError **error)
{
    const Question *question = t->question;
    Plan *plan = t->plan;
    const uint32_t all[] = {0, graph_n_layers(question->graph)};
    Recompute *modes = NULL;
    const bool good =
        strategy_layer_modes(strategy, question->graph, 1, all, &modes, error);
    Program *program = good ? synth_train(t->program, question->graph, plan->n_devices,
                                          MAX(strategy->microbatches, 1), modes, error)
                            : NULL;
    g_free(modes);
    if (!program)
        return false;
    program_free(plan->program);
    plan->program = program;
    plan->strategy = *strategy;
    plan->optimal = false;
    plan_set_segments(plan, t->made->ratio, t->made->segment, t->made->n_segments);
    if (!plan_round(plan, question->graph, error))
        return false;
    plan_copy_counts(plan, t->made);
    return answer_complete(t->answer, plan, question, error) &&
           (!question_wants_best_ratios(question) ||
            answer_balance(t->answer, plan, question, error));
}

/* --- which layers --- */

bool training_give_layers(const Training *t, const Again *again, uint32_t n_full,
                          GError **error)
{
    Strategy strategy = t->question->options->strategy;
    strategy.recompute = again_text(again->order, again->n, n_full, again->mode);
    return training_give(t, &strategy, error);
}

/* The fewest layers that make the plan fit, with their plan; more than the number of layers if none
 * does. */
static bool find_fewest(const Training *t, const Again *again, uint32_t *fewest,
                        GError **error)
{
    uint32_t low = 0, high = again->n, given = 0;
    *fewest = again->n + 1;
    if (!training_give_layers(t, again, 0, error))
        return false;
    if (t->plan->feasible) {
        *fewest = 0;
        return true;
    }
    if (!training_give_layers(t, again, given = again->n, error))
        return false;
    if (!t->plan->feasible)
        return true;
    while (low + 1 < high) {
        given = (low + high) / 2;
        if (!training_give_layers(t, again, given, error))
            return false;
        *(t->plan->feasible ? &high : &low) = given;
    }
    *fewest = high;
    return given == high || training_give_layers(t, again, high, error);
}

/* Recomputing more layers than necessary leaves room for faster ratios: climbs from `best`, whose
 * plan is given, to a number of layers that is faster than its neighbours. */
static bool climb(const Training *t, const Again *again, uint32_t *best, GError **error)
{
    double best_s = t->plan->iteration_time_s;
    for (uint32_t step = (again->n - *best + 1) / 2, least = *best; step > 0; step /= 2) {
        const uint32_t at = *best;
        const uint32_t near[] = {MIN(at + step, again->n),
                                 at > least + step ? at - step : least};
        for (uint32_t i = 0; i < G_N_ELEMENTS(near) && *best == at; i++) {
            if (near[i] == at)
                continue;
            if (!training_give_layers(t, again, near[i], error))
                return false;
            if (t->plan->feasible && t->plan->iteration_time_s < best_s) {
                best_s = t->plan->iteration_time_s;
                *best = near[i];
            }
        }
    }
    return training_give_layers(t, again, *best, error);
}

/* Finds the best number of layers; *fits: whether any number fits. */
static bool train_find_layers(const Training *t, const Again *again, bool *fits,
                              uint32_t *n_full, GError **error)
{
    if (!find_fewest(t, again, n_full, error))
        return false;
    *fits = *n_full <= again->n;
    *n_full = MIN(*n_full, again->n);
    return !*fits || !question_wants_best_ratios(t->question) ||
           climb(t, again, n_full, error);
}

/* Whether selective recomputation saves nothing, as with fused attention. */
static bool is_idle(const Graph *graph)
{
    g_autofree bool *read = synth_forward_reads(graph);
    return !any_in(ops_each (op, id, graph),
                   op->pass == PASS_FORWARD && synth_makes_inner(graph, read, id));
}

/* The faster of two ways: recomputing only these layers, or also attention's inner part in all
 * others. *chosen gets the mode and the number of layers. */
static bool choose_mode(const Training *t, Again *chosen, uint32_t *n_full,
                        GError **error)
{
    uint32_t beside;
    bool fits, fits_beside = false;
    const Again none = *chosen, selective = {none.order, none.n, "selective"};
    if (!train_find_layers(t, &none, &fits, n_full, error))
        return false;
    if (*n_full == 0)
        return true;
    /* where all layers again do not fit, less of each does not either */
    const bool idle = !fits || is_idle(t->question->graph);
    const double plain_s = fits ? t->plan->iteration_time_s : INFINITY;
    if (!idle && !train_find_layers(t, &selective, &fits_beside, &beside, error))
        return false;
    if (!idle && fits_beside && t->plan->iteration_time_s < plain_s) {
        *chosen = selective;
        *n_full = beside;
        return true;
    }
    return !fits || training_give_layers(t, &none, *n_full, error);
}

/* --- any set of layers --- */

typedef struct {
    const Training *t;
    const char *mode;
    uint32_t *order, n, n_full; /* the first n_full ones are computed again */
    double best_s;
} Set;

static void exchange(uint32_t *order, uint32_t i, uint32_t j)
{
    const uint32_t layer = order[i];
    order[i] = order[j];
    order[j] = layer;
}

/* Exchanges two places of the order with n_full layers, and keeps that if it is faster. */
static bool move_layer(Set *s, uint32_t i, uint32_t j, uint32_t n_full, bool *any,
                       GError **error)
{
    const Again again = {s->order, s->n, s->mode};
    exchange(s->order, i, j);
    if (!training_give_layers(s->t, &again, n_full, error))
        return false;
    if (s->t->plan->feasible && s->t->plan->iteration_time_s < s->best_s) {
        s->best_s = s->t->plan->iteration_time_s;
        s->n_full = n_full;
        *any = true;
    } else
        exchange(s->order, i, j);
    return true;
}

/* Programs of searches within limits do layers differently that are alike, so that it matters which
 * of them are computed again: leaves out, adds and exchanges single layers while that is faster. */
static bool refine(const Training *t, const Again *chosen, uint32_t n_full,
                   GError **error)
{
    g_autofree uint32_t *order =
        g_memdup2(chosen->order, (chosen->n + 1) * sizeof *order);
    Set s = {t,      chosen->mode,
             order,  chosen->n,
             n_full, t->plan->feasible ? t->plan->iteration_time_s : INFINITY};
    for (bool any = true; any;) {
        any = false;
        for (uint32_t i = 0; i < s.n_full; i++)
            if (!move_layer(&s, i, s.n_full - 1, s.n_full - 1, &any, error))
                return false;
        for (uint32_t j = s.n_full; j < s.n; j++)
            if (!move_layer(&s, s.n_full, j, s.n_full + 1, &any, error))
                return false;
        for (uint32_t i = 0; i < s.n_full; i++)
            for (uint32_t j = s.n_full; j < s.n; j++)
                if (!move_layer(&s, i, j, s.n_full, &any, error))
                    return false;
    }
    const Again best = {order, s.n, s.mode};
    return training_give_layers(t, &best, s.n_full, error);
}

bool training_is_small(const Question *question)
{
    enum { MOST_OPS = 600 };
    return graph_n_ops(question->graph) <= MOST_OPS;
}

bool training_choose_layers(const Training *t, GError **error)
{
    uint32_t n_full;
    Again chosen = {.mode = "none"};
    g_autofree uint32_t *order = again_order(t->question->graph, &chosen.n);
    chosen.order = order;
    return choose_mode(t, &chosen, &n_full, error) &&
           (!training_is_small(t->question) || !question_wants_best_ratios(t->question) ||
            refine(t, &chosen, n_full, error));
}
