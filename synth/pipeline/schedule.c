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

GArray *synth_schedule_steps(SynthSchedule schedule, uint32_t n_stages, uint32_t n_groups,
                             uint32_t n_microbatches, uint32_t group, SynthDepth depth)
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

GArray *synth_schedule(SynthSchedule schedule, uint32_t n_stages, uint32_t n_groups,
                       uint32_t n_microbatches, uint32_t group, GError **error)
{
    if (!check(schedule, n_stages, n_groups, n_microbatches, error))
        return NULL;
    const SynthDepth depth =
        synth_schedule_depth(schedule, n_stages, n_groups, n_microbatches, group);
    return synth_schedule_steps(schedule, n_stages, n_groups, n_microbatches, group,
                                depth);
}
