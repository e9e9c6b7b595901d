/* Mixes of a fast program and one of little memory, where some layers are computed again as well.
 *
 * A layer can save memory in two ways: it is computed again, or it is done as by a program that
 * takes less. How many layers go the first way (again.h) and how many the second, those with most
 * parameters first, is chosen together, by moves from the plan that saves all it can to ones that
 * are faster and still fit.
 *
 * The other program is the fastest one if memory costs what recomputation asks for it: the time
 * that all layers take to be computed again, for each byte that they save (HAP's search with a
 * charge for memory, synth.h). */
#include <math.h>
#include <stdlib.h>

#include "data/base/order.h"
#include "synth/answer/complete.h"
#include "synth/train/again.h"
#include "synth/train/train.h"

typedef struct {
    const Question *question;
    Answer *answer;
    const Plan *first;     /* of the fast program */
    const Program *frugal; /* the one of little memory */
    const Again *again;
    uint32_t n_layers;
    const uint32_t *heaviest; /* [n_layers]: the order in which layers come from it */
    double *seen; /* [frugal layers * (n + 1) + layers again]: seconds, NAN: not yet */
} Mix;

/* A point of the search: how many layers come from the frugal program, and how many are computed
 * again. */
typedef struct {
    uint32_t frugal, full;
} Point;

/* The plan of the mix before it gets the techniques; NULL if nothing joins the programs. */
static Plan *mixed_plan(const Mix *m, uint32_t n_frugal)
{
    g_autofree bool *frugal = g_new0(bool, m->n_layers);
    for (uint32_t k = 0; k < n_frugal; k++)
        frugal[m->heaviest[k]] = true;
    Program *program = synth_mix(m->question->graph, m->question->view, m->first->ratio,
                                 m->first->program, m->frugal, frugal, NULL);
    if (!program || !synth_pins_hold(m->question->pins, m->question->graph, program)) {
        program_free(program);
        return NULL;
    }
    Plan *plan = training_plan_of(m->question, m->first, program);
    training_set_apart(m->question, plan);
    return plan;
}

/* Sets *time_s to the seconds of a point, INFINITY if it does not fit. */
static bool time_at(const Mix *m, Point at, double *time_s, GError **error)
{
    double *seen = &m->seen[at.frugal * (m->again->n + 1) + at.full];
    if (isnan(*seen)) {
        g_autoptr(Plan) made = mixed_plan(m, at.frugal);
        g_autoptr(Plan) plan =
            made ? training_plan_of(m->question, made, program_copy(made->program))
                 : NULL;
        const Training t = {m->question, m->answer, plan, made ? made->program : NULL,
                            made};
        if (made && !training_give_layers(&t, m->again, at.full, error))
            return false;
        *seen = made && plan->feasible ? plan->iteration_time_s : INFINITY;
    }
    *time_s = *seen;
    return true;
}

static uint32_t moved(uint32_t from, int by, uint32_t most)
{
    const int64_t to = (int64_t)from + by;
    return (uint32_t)CLAMP(to, 0, (int64_t)most);
}

/* Moves to faster points until none of the moves by `step` is faster. */
static bool descend(const Mix *m, int step, Point *best, double *best_s, GError **error)
{
    static const int move[][2] = {{-1, 0}, {0, -1}, {-1, 1}, {1, -1}};
    for (bool any = true; any;) {
        any = false;
        for (uint32_t i = 0; i < G_N_ELEMENTS(move) && !any; i++) {
            const Point to = {moved(best->frugal, move[i][0] * step, m->n_layers),
                              moved(best->full, move[i][1] * step, m->again->n)};
            double time_s;
            if (!time_at(m, to, &time_s, error))
                return false;
            if (time_s < *best_s) {
                *best = to;
                *best_s = time_s;
                any = true;
            }
        }
    }
    return true;
}

/* The best point of the mixes with one frugal program; *best_s: INFINITY if none fits. */
static bool find_point(const Mix *m, Point *best, double *best_s, GError **error)
{
    *best = (Point){m->n_layers, m->again->n};
    if (!time_at(m, *best, best_s, error))
        return false;
    for (int step = (int)(m->n_layers + 1) / 2; step > 0 && isfinite(*best_s); step /= 2)
        if (!descend(m, step, best, best_s, error))
            return false;
    return true;
}

/* --- the frugal programs --- */

typedef struct {
    uint32_t layer;
    uint64_t bytes;
} Weight;

static ORDER_DEFINE(compare_weights, Weight, DESCENDING(bytes), ASCENDING(layer));

/* The layers, those with most parameters first. Caller frees. */
static uint32_t *heaviest_first(const Graph *graph)
{
    const uint32_t n = graph_n_layers(graph);
    g_autofree Weight *weight = g_new0(Weight, n);
    uint32_t *order = g_new(uint32_t, n);
    for (uint32_t l = 0; l < n; l++)
        weight[l].layer = l;
    ops_each (op, id, graph) {
        for (uint32_t i = 0; i < op->n_in && op->pass == PASS_FORWARD; i++)
            if (graph_tensor(graph, op->in[i])->role == ROLE_PARAMETER)
                weight[op->layer].bytes += tensor_bytes(graph_tensor(graph, op->in[i]));
    }
    qsort(weight, n, sizeof *weight, compare_weights);
    for (uint32_t k = 0; k < n; k++)
        order[k] = weight[k].layer;
    return order;
}

static double all_memory(const Plan *plan)
{
    return sum_over(double, j, plan->n_devices, (double)plan->memory_bytes[j]);
}

/* Seconds that recomputing all layers takes for each byte of a GPU that it saves; 0: it saves
 * nothing. */
static bool find_price(const Question *question, Answer *answer, const Plan *first,
                       const Again *again, double *price, GError **error)
{
    g_autoptr(Plan) plan =
        training_plan_of(question, first, program_copy(first->program));
    const Training t = {question, answer, plan, first->program, first};
    if (!training_give_layers(&t, again, 0, error))
        return false;
    const double time_s = plan->iteration_time_s, bytes = all_memory(plan);
    if (!training_give_layers(&t, again, again->n, error))
        return false;
    const double saved = bytes - all_memory(plan);
    *price = saved > 0 ? fmax(0, plan->iteration_time_s - time_s) / saved : 0;
    return true;
}

/* Charges for memory in multiples of the price, at either point of the iteration (SynthPoint). */
static const double CHARGE[][SYNTH_POINTS] = {{2, 0}, {4, 4}};

static bool find_frugal(const Question *question, const Answer *answer, const Plan *first,
                        double price, const double *charge, Program **program,
                        GError **error)
{
    const uint32_t n = question->view->n_devices;
    g_autofree double *memory_s = g_new(double, SYNTH_POINTS *n);
    for (uint32_t i = 0; i < SYNTH_POINTS * n; i++)
        memory_s[i] = price * charge[i / n];
    const SynthOptions options = {.beam = question->options->beam,
                                  .bucket_bytes = question->options->bucket_bytes,
                                  .memory_s = memory_s,
                                  .deadline_us = answer->deadline_us};
    SynthResult result;
    const bool done = synth_search(answer->space, question->view, first->ratio, &options,
                                   &result, error);
    *program = done ? result.program : NULL;
    return done;
}

bool training_mix(const Question *question, Answer *answer, const Plan *first,
                  Plan **mixed, GError **error)
{
    Again again = {.mode = "none"};
    g_autofree uint32_t *order = again_order(question->graph, &again.n);
    g_autofree uint32_t *heaviest = heaviest_first(question->graph);
    const uint32_t n_layers = graph_n_layers(question->graph);
    const uint32_t points = (n_layers + 1) * (again.n + 1);
    double price, best_s = INFINITY;
    *mixed = NULL;
    again.order = order;
    if (!find_price(question, answer, first, &again, &price, error))
        return false;
    for (uint32_t i = 0; i < G_N_ELEMENTS(CHARGE) && price > 0; i++) {
        g_autoptr(Program) frugal = NULL;
        if (!find_frugal(question, answer, first, price, CHARGE[i], &frugal, error))
            return false;
        if (!frugal)
            continue;
        g_autofree double *seen = g_new(double, points);
        for (uint32_t p = 0; p < points; p++)
            seen[p] = NAN;
        const Mix m = {question, answer, first, frugal, &again, n_layers, heaviest, seen};
        Point best;
        double time_s;
        if (!find_point(&m, &best, &time_s, error))
            return false;
        if (time_s < best_s) {
            plan_free(*mixed);
            *mixed = mixed_plan(&m, best.frugal);
            best_s = time_s;
        }
    }
    return true;
}
