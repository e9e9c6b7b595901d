/* The search `best`, and the order in which all methods look at op groups. */
#include "data/base/free.h"
#include "data/base/order.h"
#include "synth/tag/search_state.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { BEAM = 4, MANY = 1000 };
/* The part of many evaluations that anneals; the rest polishes. */
static const double ANNEALED = 0.85;

CLEAR_DEFINE(tag_result_clear, TagResult, result, let_go(result->action, g_free));

/* --- order --- */

typedef struct {
    double key;
    uint32_t group;
} Ranked;

static ORDER_DEFINE(compare_ranked, Ranked, ASCENDING(key), ASCENDING(group));

/* Op groups by time or by gradients, most first, and by their first ops. */
static void find_order(TagState *t)
{
    const TagWork *work = t->work;
    g_autofree Ranked *by_cost = g_new0(Ranked, t->n);
    g_autofree Ranked *by_place = g_new0(Ranked, t->n);
    for (uint32_t i = 0; i < t->n; i++) {
        by_cost[i].group = by_place[i].group = i;
        by_place[i].key = INFINITY;
    }
    ops_each (op, id, work->graph) {
        if (!t->search->by_gradients)
            by_cost[work->group[id]].key -= work->time_s[id];
        else if (op->pass == PASS_UPDATE)
            by_cost[work->group[id]].key -=
                (double)tensor_bytes(graph_tensor(work->graph, op->in[0]));
        by_place[work->group[id]].key = fmin(by_place[work->group[id]].key, id);
    }
    qsort(by_cost, t->n, sizeof *by_cost, compare_ranked);
    qsort(by_place, t->n, sizeof *by_place, compare_ranked);
    for (uint32_t i = 0; i < t->n; i++) {
        t->by_cost[i] = by_cost[i].group;
        t->by_place[i] = by_place[i].group;
    }
}

/* --- best --- */

typedef struct {
    uint16_t *action; /* [rank * n] */
    TagScore score[BEAM];
    uint32_t n;
} Beam;

static void beam_add(const TagState *t, Beam *beam, const uint16_t *action,
                     TagScore score)
{
    uint32_t at = beam->n;
    for (uint32_t k = 0; k < beam->n; k++)
        if (memcmp(&beam->action[k * t->n], action, t->n * sizeof *action) == 0)
            return;
    while (at > 0 && tag_is_better(score, beam->score[at - 1]))
        at--;
    if (at == BEAM)
        return;
    beam->n = MIN(beam->n + 1, BEAM);
    for (uint32_t k = beam->n - 1; k > at; k--) {
        beam->score[k] = beam->score[k - 1];
        memcpy(&beam->action[k * t->n], &beam->action[(k - 1) * t->n],
               t->n * sizeof *action);
    }
    beam->score[at] = score;
    memcpy(&beam->action[at * t->n], action, t->n * sizeof *action);
}

static void try_uniform(TagState *t, Beam *beam)
{
    g_autofree uint16_t *action = g_new(uint16_t, t->n);
    for (uint32_t s = 0; s < t->space->n_actions && !tag_state_is_over(t); s++) {
        for (uint32_t i = 0; i < t->n; i++)
            action[i] = (uint16_t)s;
        beam_add(t, beam, action, tag_state_try(t, action, INFINITY));
    }
}

/* Tries every action of one group after the other, costly groups first, in the strategies of the
 * beam; the beam is wide while evaluations are plentiful, and at the end only the best strategy. */
static void sweep(TagState *t, Beam *beam, uint32_t width)
{
    g_autofree uint16_t *action = g_new(uint16_t, t->n);
    g_autofree uint16_t *base = g_new(uint16_t, (gsize)BEAM * t->n);
    for (uint32_t i = 0; i < t->n && !tag_state_is_over(t); i++) {
        const uint32_t n = MIN(beam->n, width);
        memcpy(base, beam->action, (gsize)n * t->n * sizeof *base);
        for (uint32_t k = 0; k < n; k++)
            for (uint32_t s = 0; s < t->space->n_actions && !tag_state_is_over(t); s++) {
                memcpy(action, &base[k * t->n], t->n * sizeof *action);
                action[t->by_cost[i]] = (uint16_t)s;
                beam_add(t, beam, action,
                         tag_state_try(t, action, beam->score[beam->n - 1].time_s));
            }
    }
}

static uint32_t below(TagState *t, uint32_t n)
{
    return (uint32_t)g_rand_int_range(t->rand, 0, (gint32)n);
}

/* A random move: changes one group, or a run of neighbours, or copies a neighbour's action, or
 * replaces one action by another everywhere. */
static void tag_move(TagState *t, uint16_t *action)
{
    const uint32_t kind = below(t, 4), at = below(t, t->n);
    const uint16_t to = (uint16_t)below(t, t->space->n_actions),
                   from = action[t->by_place[at]];
    if (kind == 0) {
        action[t->by_place[at]] = to;
    } else if (kind == 1) {
        const uint32_t length = 2 + below(t, MAX(1, t->n / 4)),
                       end = MIN(t->n, at + length);
        const uint16_t like = below(t, 2) ? to : action[t->by_place[below(t, t->n)]];
        for (uint32_t i = at; i < end; i++)
            action[t->by_place[i]] = like;
    } else if (kind == 2) {
        const uint32_t other = at ? at - 1 : MIN(1, t->n - 1);
        action[t->by_place[at]] = action[t->by_place[other]];
    } else {
        for (uint32_t i = 0; i < t->n; i++)
            if (action[i] == from)
                action[i] = to;
    }
}

/* Local moves from the beam's strategies in turn, uphill with falling chance; a strategy that has
 * not improved for long starts anew. */
static void anneal(TagState *t, const Beam *beam)
{
    /* Temperatures, as parts of the time: a twentieth is what a group's place changes, a thousandth
     * is less than plans are told apart by. At four temperatures a step is taken once in fifty
     * times, and need not be known exactly. */
    static const double FIRST = 0.05, LAST = 0.001, SELDOM = 4;
    /* Steps without a gain before it begins anew: a sixth of all, so that several strategies are
     * begun from; steps in a row that met known strategies only, before all near ones are taken to
     * be known; every third step is a double one. */
    enum { PATIENCE = 40, BEGINNINGS = 6, IDLE = 200, IDLE_PER_GROUP = 20, DOUBLE = 3 };
    g_autofree uint16_t *now = g_new(uint16_t, t->n);
    g_autofree uint16_t *next = g_new(uint16_t, t->n);
    const uint32_t begin = tag_evaluations(t->evaluator), budget = t->search->evaluations,
                   end = MAX(budget < MANY ? budget : (uint32_t)(ANNEALED * budget),
                             begin + 1);
    const uint32_t patience = MAX(PATIENCE, (end - begin) / BEGINNINGS);
    uint32_t turn = 0, still = 0, idle = 0;
    TagScore score = t->best_score;
    memcpy(now, t->best, t->n * sizeof *now);
    while (!tag_state_is_over(t) && tag_evaluations(t->evaluator) < end &&
           idle < IDLE + IDLE_PER_GROUP * t->n) {
        const uint32_t before = tag_evaluations(t->evaluator);
        const double done = (double)(before - begin) / (end - begin);
        const double heat = FIRST * pow(LAST / FIRST, done) * score.time_s;
        memcpy(next, now, t->n * sizeof *next);
        tag_move(t, next);
        if (below(t, DOUBLE) == 0)
            tag_move(t, next);
        const TagScore other = tag_state_try(t, next, score.time_s + SELDOM * heat);
        idle = tag_evaluations(t->evaluator) > before ? 0 : idle + 1;
        const bool better = tag_is_better(other, score);
        const double worse = other.time_s - score.time_s;
        if (better || (other.lacks <= score.lacks &&
                       g_rand_double(t->rand) < exp(-worse / fmax(heat, DBL_MIN)))) {
            score = other;
            memcpy(now, next, t->n * sizeof *now);
        }
        still = better ? 0 : still + 1;
        if (still > patience) {
            still = 0;
            const bool anew = beam->n > 0 && turn++ % 2;
            score = anew ? beam->score[turn / 2 % beam->n] : t->best_score;
            memcpy(now, anew ? &beam->action[turn / 2 % beam->n * t->n] : t->best,
                   t->n * sizeof *now);
        }
    }
}

/* Tries each group, and each pair of neighbours, with each of the actions of the best strategy,
 * until nothing improves. */
static void polish(TagState *t)
{
    g_autofree uint16_t *action = g_new(uint16_t, t->n);
    g_autofree bool *used = g_new(bool, t->space->n_actions);
    TagScore before;
    do {
        before = t->best_score;
        memset(used, 0, t->space->n_actions * sizeof *used);
        for (uint32_t i = 0; i < t->n; i++)
            used[t->best[i]] = true;
        for (uint32_t k = 0; k < 2 * t->n && !tag_state_is_over(t); k++)
            for (uint32_t s = 0; s < t->space->n_actions && !tag_state_is_over(t); s++) {
                if (!used[s])
                    continue;
                memcpy(action, t->best, t->n * sizeof *action);
                action[t->by_place[k % t->n]] = (uint16_t)s;
                action[t->by_place[(k % t->n + k / t->n) % t->n]] = (uint16_t)s;
                tag_state_try(t, action, t->best_score.time_s);
            }
    } while (tag_is_better(t->best_score, before) && !tag_state_is_over(t));
}

static void tag_search_best(TagState *t)
{
    Beam beam = {.action = g_new(uint16_t, (gsize)BEAM * t->n)};
    const uint64_t a_sweep = (uint64_t)t->n * t->space->n_actions;
    const uint32_t budget = t->search->evaluations;
    for (uint32_t k = 0; k < t->n_starts && !tag_state_is_over(t); k++) {
        const uint16_t *start = &t->start[(gsize)k * t->n];
        beam_add(t, &beam, start, tag_state_try(t, start, INFINITY));
    }
    try_uniform(t, &beam);
    if (t->best_score.time_s < INFINITY)
        beam_add(t, &beam, t->best, t->best_score);
    if (budget == 0 || a_sweep * BEAM < budget / 2)
        sweep(t, &beam, BEAM);
    else if (a_sweep < budget / 2)
        sweep(t, &beam, 1);
    anneal(t, &beam);
    polish(t);
    g_free(beam.action);
}

/* --- FlexFlow: a Markov chain over the op groups' actions --- */

static bool is_taken(TagState *t, TagScore next, TagScore now, double heat_s)
{
    if (tag_is_better(next, now))
        return true;
    return next.lacks <= now.lacks &&
           g_rand_double(t->rand) < exp(-(next.time_s - now.time_s) / heat_s);
}

static void tag_search_chain(TagState *t)
{
    g_autofree uint16_t *action = g_new(uint16_t, t->n);
    for (uint32_t i = 0; i < t->n; i++)
        action[i] = (uint16_t)tag_data_parallel(t->space);
    TagScore now = tag_state_try(t, action, INFINITY);
    const double heat_s = t->search->heat * now.time_s;
    /* As in the paper proposals are counted, also of strategies evaluated before. */
    while (t->result->iterations++ < t->search->evaluations && !tag_state_is_late(t)) {
        const uint32_t at = below(t, t->n);
        const uint16_t before = action[at];
        action[at] = (uint16_t)below(t, t->space->n_actions);
        const TagScore next = tag_state_try(t, action, INFINITY);
        if (is_taken(t, next, now, heat_s))
            now = next;
        else
            action[at] = before;
    }
}

/* --- all of them --- */

void synth_tag_search(const TagSpace *space, const TagWork *work, SimQuick *quick,
                      const TagSearch *search, const uint16_t *start, uint32_t n_starts,
                      TagResult *result)
{
    const uint32_t n = work->n_groups;
    g_autofree uint32_t *by_cost = g_new(uint32_t, n + 1);
    g_autofree uint32_t *by_place = g_new(uint32_t, n + 1);
    g_autoptr(TagEvaluator) evaluator =
        tag_evaluator_new(space, work, quick, search->objective);
    *result = (TagResult){.action = g_new0(uint16_t, n + 1)};
    TagState t = {.space = space,
                  .work = work,
                  .quick = quick,
                  .search = search,
                  .evaluator = evaluator,
                  .n = n,
                  .start = start,
                  .n_starts = n_starts,
                  .by_cost = by_cost,
                  .by_place = by_place,
                  .best = result->action,
                  .best_score = {INFINITY, INFINITY},
                  .rand = g_rand_new_with_seed((guint32)search->seed),
                  .result = result};
    find_order(&t);
    for (uint32_t i = 0; i < n; i++)
        result->action[i] = (uint16_t)tag_data_parallel(space);
    for (uint32_t k = 0; k < n_starts && search->method != TAG_BEST; k++)
        tag_state_try(&t, &start[(gsize)k * n], INFINITY);
    const SimQuickTimes parallel = tag_times(evaluator, result->action);
    if (search->method != TAG_MCTS) /* mcts counts iterations itself */
        t.dp_s = search->objective == TAG_BY_FLOW ? parallel.flow_s : parallel.stage_s;
    if (search->method == TAG_MCTS)
        tag_search_tree(&t);
    else if (search->method == TAG_EXACT)
        tag_search_exact(&t);
    else if (search->method == TAG_CHAIN)
        tag_search_chain(&t);
    else if (search->method == TAG_OWN)
        search->own(&t);
    else
        tag_search_best(&t);
    const SimQuickTimes times = tag_times(evaluator, result->action);
    result->stage_s = times.stage_s;
    result->flow_s = times.flow_s;
    result->time_s = search->objective == TAG_BY_FLOW ? times.flow_s : times.stage_s;
    result->fits = tag_evaluate(evaluator, result->action, INFINITY).lacks <= 0;
    result->evaluations = tag_evaluations(evaluator);
    g_rand_free(t.rand);
}
