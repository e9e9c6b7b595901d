/* Schedules of pipelines. */
#include "synth/pipeline/pipeline.h"

/* The number of forward steps of a group before its first backward step. */
static uint32_t warm_up(SynthSchedule schedule, uint32_t n_chunks, uint32_t n_groups,
                        uint32_t n_microbatches, uint32_t group)
{
    const uint32_t all = n_chunks * n_microbatches, after = n_groups - 1 - group;
    switch (schedule) {
    case SCHEDULE_GPIPE:
        return all;
    case SCHEDULE_1F1B:
    case SCHEDULE_ZB_H1:
        return MIN(all, after);
    case SCHEDULE_ZB_H2:
        return MIN(all, 2 * after);
    case SCHEDULE_INTERLEAVED:
        return n_microbatches == n_groups
                   ? all
                   : MIN(all, 2 * after + (n_chunks - 1) * n_groups);
    case SCHEDULES:
        break;
    }
    g_assert_not_reached();
}

/* The k-th step in a direction: chunks take turns, each for n_groups microbatches. */
static SynthStep step_at(uint32_t k, bool backward, uint32_t n_chunks, uint32_t n_groups,
                         uint32_t group)
{
    g_assert(n_chunks > 0 && group < n_groups);
    const uint32_t round = n_chunks == 1 ? 1 : n_groups;
    const uint32_t chunk = k / round % n_chunks;
    return (SynthStep){.stage =
                           (backward ? n_chunks - 1 - chunk : chunk) * n_groups + group,
                       .microbatch = k / (round * n_chunks) * round + k % round,
                       .backward = backward};
}

static bool check(SynthSchedule schedule, uint32_t n_stages, uint32_t n_groups,
                  uint32_t n_microbatches, GError **error)
{
    if (n_groups == 0 || n_stages == 0 || n_stages % n_groups != 0)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "%u stages cannot be dealt to %u groups", n_stages, n_groups);
    if ((schedule == SCHEDULE_1F1B || schedule_splits(schedule)) && n_stages != n_groups)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "%s: expected a stage per group, got %u stages for %u groups",
                           schedule_name(schedule), n_stages, n_groups);
    if (n_stages != n_groups && n_microbatches % n_groups != 0)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "several stages a group: expected a multiple of %u "
                           "microbatches, got %u",
                           n_groups, n_microbatches);
    return true;
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
    g_assert(depth.ahead <= n &&
             check(schedule, n_stages, n_groups, n_microbatches, NULL));
    GArray *steps = g_array_new(false, false, sizeof(SynthStep));
    for (uint32_t k = 0; k < n + depth.ahead; k++) {
        if (k < n) {
            const SynthStep forward = step_at(k, false, n_chunks, n_groups, group);
            g_array_append_val(steps, forward);
        }
        if (k < depth.ahead)
            continue;
        const uint32_t done = k - depth.ahead;
        const SynthStep backward = step_at(done, true, n_chunks, n_groups, group);
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
        const SynthDepth own =
            depth ? depth[g]
                  : synth_schedule_depth(schedule, n_stages, n_groups, n_microbatches, g);
        GArray *of = schedule_steps(schedule, n_stages, n_groups, n_microbatches, g, own);
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
