/* Schedules of pipelines. */
#include "synth/pipeline/pipeline.h"

/* --- schedules that go to the last group and back --- */

/* The steps of a group as they are written. Chunk 0 is stage `group`, chunk 1 the one on the way
 * back. */
typedef struct {
    GArray *steps;
    uint32_t stage[2], n_microbatches;
    uint32_t forward[2], backward[2], weights[2]; /* steps written, by chunk */
    GArray *owed; /* chunks whose gradients of weights wait, in order */
} Writing;

static void write_step(Writing *w, uint32_t chunk, uint32_t microbatch, bool backward,
                       bool weights)
{
    const SynthStep step = {w->stage[chunk], microbatch, backward, weights};
    if (microbatch < w->n_microbatches)
        g_array_append_val(w->steps, step);
}

static void write_forward(Writing *w, uint32_t chunk)
{
    write_step(w, chunk, w->forward[chunk]++, false, false);
}

static void write_backward(Writing *w, uint32_t chunk)
{
    write_step(w, chunk, w->backward[chunk]++, true, false);
}

static void write_weights(Writing *w, uint32_t chunk)
{
    write_step(w, chunk, w->weights[chunk]++, true, true);
}

static void write_whole(Writing *w, uint32_t chunk)
{
    write_backward(w, chunk);
    write_weights(w, chunk);
}

/* --- zb-v --- */

/* Qi et al. 2024, as PyTorch's ScheduleZBVZeroBubble has it. Fewer than 2 P - 1 microbatches are
 * the first ones of so many. */
static void write_zb_v(Writing *w, uint32_t n_groups, uint32_t group)
{
    const uint32_t n = MAX(2 * n_groups - 1, w->n_microbatches);
    for (uint32_t i = 0; i < 2 * (n_groups - group) - 1; i++)
        write_forward(w, 0);
    for (uint32_t i = 0; i < group; i++) {
        write_forward(w, 1);
        write_forward(w, 0);
    }
    for (uint32_t i = group; i < n_groups; i++) {
        write_forward(w, 1);
        write_whole(w, 1);
    }
    while (w->forward[1] < w->forward[0] || w->forward[0] < n) {
        if (w->forward[0] < n)
            write_forward(w, 0);
        write_whole(w, 0);
        write_forward(w, 1);
        write_whole(w, 1);
    }
    for (uint32_t i = 0; i < group; i++) {
        write_backward(w, 0);
        write_backward(w, 1);
    }
    for (uint32_t i = group; i < n_groups; i++) {
        write_backward(w, 0);
        write_weights(w, 0);
    }
    for (uint32_t chunk = 2; chunk-- > 0;)
        while (w->weights[chunk] < w->backward[chunk])
            write_weights(w, chunk);
}

/* --- dualpipev --- */

/* A backward whose gradients of weights wait, or not. */
static void write_owing(Writing *w, uint32_t chunk, bool owes)
{
    if (!owes) {
        write_whole(w, chunk);
        return;
    }
    write_backward(w, chunk);
    g_array_append_val(w->owed, chunk);
}

static void write_owed(Writing *w)
{
    write_weights(w, g_array_index(w->owed, uint32_t, 0));
    g_array_remove_index(w->owed, 0);
}

/* The first half: forwards, until backwards arrive. */
static void write_dualpipev_begin(Writing *w, uint32_t n_groups, uint32_t group)
{
    const uint32_t after = n_groups - 1 - group;
    for (uint32_t i = 0; i < 2 * after; i++)
        write_forward(w, 0);
    for (uint32_t i = 0; i <= group; i++) {
        write_forward(w, 0);
        write_forward(w, 1);
    }
    for (uint32_t i = 0; i < after; i++) {
        write_owing(w, 1, true);
        write_owed(w);
        write_forward(w, 1);
    }
}

/* DeepSeek 2025, in the order of its dualpipev.py. */
static void write_dualpipev(Writing *w, uint32_t n_groups, uint32_t group)
{
    const uint32_t after = n_groups - 1 - group;
    bool owes = false;
    write_dualpipev_begin(w, n_groups, group);
    for (uint32_t i = 2 * n_groups - group - 1; i < w->n_microbatches; i++) {
        write_forward(w, 0);
        write_whole(w, 1);
        write_forward(w, 1);
        write_whole(w, 0);
    }
    for (uint32_t i = 0; i < after; i++) {
        write_whole(w, 1);
        write_forward(w, 1);
        write_whole(w, 0);
    }
    for (uint32_t i = 0; i <= group; i++) {
        owes |= i == (group + 1) / 2 && group % 2 == 1;
        write_owing(w, 1, owes);
        owes |= i == (group + 1) / 2 && group % 2 == 0;
        write_owing(w, 0, owes);
    }
    for (uint32_t i = 0; i < after; i++) {
        write_owed(w);
        write_owing(w, 0, true);
    }
    while (w->owed->len > 0)
        write_owed(w);
}

/* --- v-half, v-min --- */

enum { FORWARD_0, FORWARD_1, BACKWARD_1, BACKWARD_0, PASSES, PERIOD = 6 };

/* When a pass of microbatch 0 runs: first[pass] on group 0, then later or earlier on the next. */
typedef struct {
    int64_t first[PASSES], slope[PASSES];
} Pattern;

static int64_t pattern_at(const Pattern *p, uint32_t pass, uint32_t group)
{
    return p->first[pass] + p->slope[pass] * group;
}

/* Whether the passes up to `pass` never meet, in any group and period. */
static bool pattern_is_free(const Pattern *p, uint32_t pass, uint32_t n_groups)
{
    for (uint32_t g = 0; g < MIN(n_groups, PERIOD); g++)
        for (uint32_t before = 0; before < pass; before++)
            if ((pattern_at(p, pass, g) - pattern_at(p, before, g)) % PERIOD == 0)
                return false;
    return true;
}

/* The earliest times from pass `pass` on, each after the one before it where the microbatch turns
 * around; false: none. */
static bool pattern_find(Pattern *p, uint32_t pass, uint32_t n_groups)
{
    if (pass == PASSES)
        return true;
    const uint32_t turn = pass == BACKWARD_1 ? 0 : n_groups - 1;
    const int64_t least = pattern_at(p, pass - 1, turn) + 1 - p->slope[pass] * turn;
    for (p->first[pass] = least; p->first[pass] < least + PERIOD; p->first[pass]++)
        if (pattern_is_free(p, pass, n_groups) && pattern_find(p, pass + 1, n_groups))
            return true;
    return false;
}

/* The next time after `at` at which no pass runs. */
static int64_t next_free(const bool *taken, int64_t at)
{
    do
        at++;
    while (taken[at % PERIOD]);
    return at;
}

/* Repeats the pattern, with gradients of weights between its passes (Qi et al. 2024, Sec. 3). */
static void write_pattern(Writing *w, Pattern pattern, uint32_t n_groups, uint32_t group)
{
    int64_t at[PERIOD];
    bool taken[PERIOD] = {false};
    const bool found = pattern_find(&pattern, FORWARD_1, n_groups);
    g_assert(found);
    for (uint32_t pass = 0; pass < PASSES; pass++)
        taken[(at[pass] = pattern_at(&pattern, pass, group)) % PERIOD] = true;
    for (uint32_t chunk = 2; chunk-- > 0;) {
        const uint32_t rest = PASSES + 1 - chunk;
        at[rest] = next_free(taken, at[chunk ? BACKWARD_1 : BACKWARD_0]);
        taken[at[rest] % PERIOD] = true;
    }
    const int64_t end = at[PASSES + 1] + (int64_t)PERIOD * w->n_microbatches;
    for (int64_t now = 0; now < end; now++)
        for (uint32_t k = 0; k < PERIOD; k++) {
            const int64_t since = now - at[k];
            if (since < 0 || since % PERIOD != 0)
                continue;
            const bool rest = k >= PASSES, backward = rest || k >= BACKWARD_1;
            const uint32_t chunk =
                rest ? PASSES + 1 - k : (k == FORWARD_1 || k == BACKWARD_1);
            write_step(w, chunk, (uint32_t)(since / PERIOD), backward, rest);
        }
}

/* The steps of `group`, in order; dualpipev needs 2 n_groups microbatches. Free with
 * g_array_unref. */
static GArray *schedule_v_steps(SynthSchedule schedule, uint32_t n_groups,
                                uint32_t n_microbatches, uint32_t group)
{
    g_assert(schedule_row(schedule)->v && group < n_groups);
    g_autoptr(GArray) owed = g_array_new(false, false, sizeof(uint32_t));
    Writing w = {.steps = g_array_new(false, false, sizeof(SynthStep)),
                 .stage = {group, schedule_stage(schedule, 1, group, n_groups)},
                 .n_microbatches = n_microbatches,
                 .owed = owed};
    if (schedule == SCHEDULE_ZB_V)
        write_zb_v(&w, n_groups, group);
    else if (schedule == SCHEDULE_DUALPIPEV)
        write_dualpipev(&w, n_groups, group);
    else if (schedule == SCHEDULE_V_HALF)
        write_pattern(&w, (Pattern){.slope = {1, -2, 1, -2}}, n_groups, group);
    else
        write_pattern(&w, (Pattern){.slope = {1, -1, 1, -1}}, n_groups, group);
    return w.steps;
}

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
        return refuse(error, "%u stages cannot be dealt to %u groups", n_stages,
                      n_groups);
    const uint32_t n_chunks = n_stages / n_groups;
    if (schedule != SCHEDULE_GPIPE &&
        (n_chunks < row->least_chunks || n_chunks > row->most_chunks))
        return refuse(error,
                      "%s: expected %u stage%s per group, got %u stages for %u groups",
                      row->name, row->least_chunks, row->least_chunks > 1 ? "s" : "",
                      n_stages, n_groups);
    return schedule != SCHEDULE_DUALPIPEV || n_microbatches >= 2 * n_groups ||
           refuse(error, "dualpipev: expected at least 2 pp = %u microbatches, got %u",
                  2 * n_groups, n_microbatches);
}

/* The steps of one of two directions: device g and the one as far from the other end have the steps
 * of dualpipev's group g. */
static GArray *order_both_ways(uint32_t n_groups, uint32_t n_microbatches, GError **error)
{
    if (n_groups % 2 != 0 || n_microbatches < n_groups)
        return refused(error,
                       "dualpipe: expected an even pp, got %u, and at least 2 pp "
                       "microbatches, got %u",
                       n_groups, 2 * n_microbatches);
    return synth_schedule_order(SCHEDULE_DUALPIPEV, n_groups, n_groups / 2,
                                n_microbatches, NULL, error);
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
    if (schedule == SCHEDULE_DUALPIPE)
        return order_both_ways(n_groups, n_microbatches, error);
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
        values_at (const GArray *, of, g, steps->pdata, n_groups) {
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
