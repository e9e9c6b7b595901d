/* Schedules of pipelines. */
#include "synth/pipeline/schedule_v.h"

/* How stages of a group take turns: rounds of `size` microbatches, the first `n_longer` of them one
 * longer. */
typedef struct {
    uint32_t size, n_longer;
} Rounds;

static Rounds rounds_of(SynthSchedule schedule, uint32_t n_chunks, uint32_t n_groups,
                        uint32_t n_microbatches)
{
    if (n_chunks == 1)
        return (Rounds){1, 0};
    const uint32_t n =
        schedule == SCHEDULE_BREADTH_FIRST ? 1 : MAX(n_microbatches / n_groups, 1);
    return (Rounds){n_microbatches / n, n_microbatches % n};
}

/* The number of forward steps of a group before its first backward step. */
static uint32_t warm_up(SynthSchedule schedule, uint32_t n_chunks, uint32_t n_groups,
                        uint32_t n_microbatches, uint32_t group)
{
    const uint32_t all = n_chunks * n_microbatches, after = n_groups - 1 - group;
    const Rounds rounds = rounds_of(schedule, n_chunks, n_groups, n_microbatches);
    switch (schedule) {
    case SCHEDULE_GPIPE:
    case SCHEDULE_BREADTH_FIRST:
        return all;
    case SCHEDULE_1F1B:
    case SCHEDULE_ZB_H1:
        return MIN(all, after);
    case SCHEDULE_ZB_H2:
        return MIN(all, 2 * after);
    case SCHEDULE_INTERLEAVED:
        return n_microbatches == n_groups
                   ? all
                   : MIN(all, 2 * after +
                                  (n_chunks - 1) * (rounds.size + (rounds.n_longer > 0)));
    default:
        g_assert_not_reached();
    }
}

/* The k-th step in a direction. */
static SynthStep step_at(uint32_t k, bool backward, uint32_t n_chunks, uint32_t n_groups,
                         Rounds rounds, uint32_t group)
{
    const uint32_t longer = rounds.n_longer * (rounds.size + 1),
                   before = k < longer * n_chunks ? 0 : longer,
                   size = rounds.size + (k < longer * n_chunks);
    g_assert(n_chunks > 0 && group < n_groups);
    k -= before * n_chunks;
    const uint32_t chunk = k / size % n_chunks;
    return (SynthStep){.stage =
                           (backward ? n_chunks - 1 - chunk : chunk) * n_groups + group,
                       .microbatch = before + k / (size * n_chunks) * size + k % size,
                       .backward = backward};
}

static bool check(SynthSchedule schedule, uint32_t n_stages, uint32_t n_groups,
                  uint32_t n_microbatches, GError **error)
{
    const ScheduleRow *row = schedule_row(schedule);
    if (n_groups == 0 || n_stages == 0 || n_stages % n_groups != 0)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "%u stages cannot be dealt to %u groups", n_stages, n_groups);
    const uint32_t n_chunks = n_stages / n_groups;
    if (schedule != SCHEDULE_GPIPE &&
        (n_chunks < row->least_chunks || n_chunks > row->most_chunks))
        return kilter_fail(
            error, KILTER_ERROR_INPUT,
            "%s: expected %u stage%s per group, got %u stages for %u groups", row->name,
            row->least_chunks, row->least_chunks > 1 ? "s" : "", n_stages, n_groups);
    return schedule != SCHEDULE_DUALPIPEV || n_microbatches >= 2 * n_groups ||
           kilter_fail(error, KILTER_ERROR_INPUT,
                       "dualpipev: expected at least 2 pp = %u microbatches, got %u",
                       2 * n_groups, n_microbatches);
}

/* Adds the step of the rest of a split backward that is due after `done` backward steps. */
static void add_rest(GArray *steps, uint32_t group, uint32_t lag, uint32_t done,
                     uint32_t n_microbatches)
{
    if (done <= lag || done > n_microbatches + lag)
        return;
    const SynthStep step = {group, done - 1 - lag, true, true};
    g_array_append_val(steps, step);
}

SynthDepth synth_schedule_depth(SynthSchedule schedule, uint32_t n_stages,
                                uint32_t n_groups, uint32_t n_microbatches,
                                uint32_t group)
{
    return (SynthDepth){
        warm_up(schedule, n_stages / n_groups, n_groups, n_microbatches, group),
        schedule_lag(schedule, group)};
}

static GArray *schedule_steps(SynthSchedule schedule, uint32_t n_stages,
                              uint32_t n_groups, uint32_t n_microbatches, uint32_t group,
                              SynthDepth depth)
{
    const uint32_t n_chunks = n_stages / n_groups, n = n_chunks * n_microbatches;
    const bool splits = schedule_splits(schedule) && group > 0;
    const Rounds rounds = rounds_of(schedule, n_chunks, n_groups, n_microbatches);
    g_assert(depth.ahead <= n && !schedule_row(schedule)->v &&
             check(schedule, n_stages, n_groups, n_microbatches, NULL));
    GArray *steps = g_array_new(false, false, sizeof(SynthStep));
    for (uint32_t k = 0; k < n + depth.ahead; k++) {
        if (k < n) {
            const SynthStep forward =
                step_at(k, false, n_chunks, n_groups, rounds, group);
            g_array_append_val(steps, forward);
        }
        if (k < depth.ahead)
            continue;
        const uint32_t done = k - depth.ahead;
        const SynthStep backward = step_at(done, true, n_chunks, n_groups, rounds, group);
        g_array_append_val(steps, backward);
        if (splits)
            add_rest(steps, group, depth.lag, done + 1, n);
    }
    for (uint32_t k = 1; splits && k <= depth.lag; k++)
        add_rest(steps, group, depth.lag, n + k, n);
    return steps;
}

/* Whether all steps that a step needs have run. done: [stage * m + microbatch] for m microbatches,
 * 1 after the forward, 2 after the backward, 3 after its rest where it is split. */
static bool schedule_is_ready(const uint8_t *done, uint32_t n_stages, uint32_t m,
                              SynthStep step)
{
    const uint8_t *mine = &done[(size_t)step.stage * m + step.microbatch];
    if (!step.backward)
        return step.stage == 0 || *(mine - m) > 0;
    if (step.weights)
        return mine[0] == 2;
    return mine[0] == 1 && (step.stage + 1 == n_stages || mine[m] >= 2);
}

GArray *synth_schedule_order(SynthSchedule schedule, uint32_t n_stages, uint32_t n_groups,
                             uint32_t n_microbatches, const SynthDepth *depth,
                             GError **error)
{
    if (!check(schedule, n_stages, n_groups, n_microbatches, error))
        return NULL;
    GArray *order = g_array_new(FALSE, FALSE, sizeof(SynthStep));
    g_autoptr(GPtrArray) steps =
        g_ptr_array_new_with_free_func((GDestroyNotify)g_array_unref);
    g_autofree uint32_t *next = g_new0(uint32_t, n_groups);
    g_autofree uint8_t *done = g_new0(uint8_t, ((size_t)n_stages + 1) * n_microbatches);
    uint32_t n_steps = 0;
    for (uint32_t g = 0; g < n_groups; g++) {
        GArray *of = schedule_row(schedule)->v
                         ? schedule_v_steps(schedule, n_groups, n_microbatches, g)
                         : schedule_steps(
                               schedule, n_stages, n_groups, n_microbatches, g,
                               depth ? depth[g]
                                     : synth_schedule_depth(schedule, n_stages, n_groups,
                                                            n_microbatches, g));
        g_ptr_array_add(steps, of);
        n_steps += of->len;
    }
    for (bool any = true; any;) {
        any = false;
        for (uint32_t g = 0; g < n_groups; g++) {
            const GArray *of = steps->pdata[g];
            if (next[g] == of->len)
                continue;
            const SynthStep step = g_array_index(of, SynthStep, next[g]);
            if (!schedule_is_ready(done, n_stages, n_microbatches, step))
                continue;
            done[(size_t)step.stage * n_microbatches + step.microbatch]++;
            next[g]++;
            any = true;
            g_array_append_val(order, step);
        }
    }
    g_assert(order->len == n_steps); /* no step waits for ever */
    return order;
}
