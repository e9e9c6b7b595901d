/* Schedules of two stages per group, which go to the last group and back. */
#include "synth/pipeline/schedule_v.h"

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

/* When a pass of microbatch 0 runs: first[pass] on group 0, then later or earlier on each next
 * group. */
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

GArray *schedule_v_steps(SynthSchedule schedule, uint32_t n_groups,
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
