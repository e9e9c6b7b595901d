/* Orders of device sets and of devices, cuts by time, and moves of cuts. */
#include "synth/tag/pipeline.h"

#include <math.h>
#include <string.h>

enum { SETS_IN_ANY_ORDER = 4 };
/* Moves of cuts that are tried in all: each costs a whole evaluation. */
enum { MOVES = 60 };

typedef struct {
    const TagSpace *space;
    const TagWork *work;
    TagTry try;
    void *context;
    uint32_t *order; /* op groups in the order of their first ops */
    double *until_s; /* [place in the order + 1]: time of all groups before */
    uint16_t *action;
    /* the pipeline in hand, and the fastest: the action of each run, and where it ends */
    uint32_t n, best_n;
    uint16_t *run, *best_run;
    uint32_t *end, *best_end;
    double best_s;
} Pipelines;

static void order_groups(Pipelines *p)
{
    const TagWork *work = p->work;
    g_autofree double *time_s = g_new0(double, work->n_groups + 1);
    g_autofree bool *seen = g_new0(bool, work->n_groups + 1);
    uint32_t n = 0;
    for (OpId id = 0; id < graph_n_ops(work->graph); id++) {
        const uint32_t group = work->group[id];
        time_s[group] += work->time_s[id];
        if (!seen[group])
            p->order[n++] = group;
        seen[group] = true;
    }
    g_assert(n == work->n_groups);
    for (uint32_t i = 0; i < n; i++)
        p->until_s[i + 1] = p->until_s[i] + time_s[p->order[i]];
}

/* --- one pipeline --- */

static bool try_cuts(Pipelines *p, GError **error)
{
    double time_s = INFINITY;
    for (uint32_t k = 0, i = 0; k < p->n; k++)
        for (; i < p->end[k]; i++)
            p->action[p->order[i]] = p->run[k];
    if (!p->try(p->context, p->action, &time_s, error))
        return false;
    if (time_s < p->best_s) {
        p->best_s = time_s;
        p->best_n = p->n;
        memcpy(p->best_run, p->run, p->n * sizeof *p->run);
        memcpy(p->best_end, p->end, p->n * sizeof *p->end);
    }
    return true;
}

/* The sum of the rates of the devices of an action. */
static double pipeline_rate_of(const TagSpace *space, const TagAction *action)
{
    double rate = 0;
    for (uint32_t j = 0; j < space->view->n_devices; j++)
        if (action->option == TAG_ONE ? action->subset == j
                                      : action->subset >> space->set[j] & 1u)
            rate += space->view->device[j].rate;
    return rate;
}

/* Cuts where each run takes its part of the time by the rates; no run is empty. */
static void cut_by_rates(Pipelines *p)
{
    const uint32_t n_groups = p->work->n_groups;
    double all = 0, sum = 0;
    for (uint32_t k = 0; k < p->n; k++)
        all += pipeline_rate_of(p->space, &p->space->action[p->run[k]]);
    for (uint32_t k = 0, i = 0; k < p->n; k++) {
        sum += pipeline_rate_of(p->space, &p->space->action[p->run[k]]);
        const double until = p->until_s[n_groups] * (all > 0 ? sum / all : 1);
        i++;
        while (i < n_groups - (p->n - 1 - k) &&
               (k + 1 == p->n || (p->until_s[i] + p->until_s[i + 1]) / 2 < until))
            i++;
        p->end[k] = i;
    }
}

static bool try_runs(Pipelines *p, GError **error)
{
    if (p->n < 2 || p->n > p->work->n_groups)
        return true;
    cut_by_rates(p);
    return try_cuts(p, error);
}

/* --- orders --- */

/* The action of replicas on a single set, or of a single device; UINT16_MAX: there is none. */
static uint16_t find_action(const TagSpace *space, TagOption option, uint32_t subset)
{
    for (uint32_t s = 0; s < space->n_actions; s++)
        if (space->action[s].option == option && space->action[s].subset == subset)
            return (uint16_t)s;
    return UINT16_MAX;
}

/* All orders of sets that go on from those in hand. */
static bool try_orders(Pipelines *p, uint32_t used, GError **error)
{
    if (!try_runs(p, error))
        return false;
    for (uint32_t s = 0; s < p->space->n_sets; s++) {
        const uint16_t action = find_action(p->space, TAG_AR, 1u << s);
        if (used >> s & 1u || action == UINT16_MAX)
            continue;
        p->run[p->n++] = action;
        if (!try_orders(p, used | 1u << s, error))
            return false;
        p->n--;
    }
    return true;
}

/* Sorts the runs in hand by rate, fastest first; equal ones stay in order. */
static void sort_runs(Pipelines *p)
{
    for (uint32_t k = 1; k < p->n; k++)
        for (uint32_t i = k; i > 0; i--) {
            const uint16_t a = p->run[i - 1], b = p->run[i];
            if (pipeline_rate_of(p->space, &p->space->action[a]) >=
                pipeline_rate_of(p->space, &p->space->action[b]))
                break;
            p->run[i - 1] = b;
            p->run[i] = a;
        }
}

/* Runs on all of n places, fastest first and fastest last. */
static bool try_by_speed(Pipelines *p, TagOption option, uint32_t n, GError **error)
{
    p->n = 0;
    for (uint32_t k = 0; k < n; k++) {
        const uint16_t action =
            find_action(p->space, option, option == TAG_ONE ? k : 1u << k);
        if (action != UINT16_MAX)
            p->run[p->n++] = action;
    }
    sort_runs(p);
    if (!try_runs(p, error))
        return false;
    for (uint32_t k = 0; k < p->n / 2; k++) {
        const uint16_t a = p->run[k];
        p->run[k] = p->run[p->n - 1 - k];
        p->run[p->n - 1 - k] = a;
    }
    return try_runs(p, error);
}

/* Moves each cut of the fastest pipeline by one group, as long as that gains. */
static bool move_cuts(Pipelines *p, GError **error)
{
    uint32_t moves = 0;
    double before;
    do {
        before = p->best_s;
        for (uint32_t c = 0; c < 2 * (p->best_n - 1) && moves < MOVES; c++) {
            const uint32_t k = c / 2;
            p->n = p->best_n;
            memcpy(p->run, p->best_run, p->n * sizeof *p->run);
            memcpy(p->end, p->best_end, p->n * sizeof *p->end);
            p->end[k] += c % 2 ? 1 : -1;
            if (p->end[k] == (k > 0 ? p->end[k - 1] : 0) || p->end[k] == p->end[k + 1])
                continue;
            moves++;
            if (!try_cuts(p, error))
                return false;
        }
    } while (p->best_s < before && moves < MOVES);
    return true;
}

bool tag_try_pipelines(const TagSpace *space, const TagWork *work, TagTry try,
                       void *context, GError **error)
{
    const uint32_t most = MAX(space->n_sets, space->view->n_devices), n = work->n_groups;
    g_autofree uint32_t *order = g_new(uint32_t, n + 1);
    g_autofree double *until_s = g_new0(double, n + 1);
    g_autofree uint16_t *action = g_new0(uint16_t, n + 1);
    g_autofree uint16_t *run = g_new(uint16_t, most), *best_run = g_new(uint16_t, most);
    g_autofree uint32_t *end = g_new(uint32_t, most), *best_end = g_new(uint32_t, most);
    Pipelines p = {.space = space,
                   .work = work,
                   .try = try,
                   .context = context,
                   .order = order,
                   .until_s = until_s,
                   .action = action,
                   .run = run,
                   .best_run = best_run,
                   .end = end,
                   .best_end = best_end,
                   .best_s = INFINITY};
    order_groups(&p);
    const bool tried = space->n_sets <= SETS_IN_ANY_ORDER
                           ? try_orders(&p, 0, error)
                           : try_by_speed(&p, TAG_AR, space->n_sets, error);
    return tried && try_by_speed(&p, TAG_ONE, space->view->n_devices, error) &&
           (p.best_n == 0 || move_cuts(&p, error));
}
