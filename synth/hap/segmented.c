/* Ratios by segment, alternating with programs searched at them.
 *
 * At common ratios a search sees no program that pays only where segments differ, for example where
 * convolutions are divided by speed, and large weights evenly, since collectives take as long as
 * the largest share. */
#include "synth/hap/segmented.h"

#include <math.h>
#include <string.h>

#include "synth/answer/complete.h"
#include "synth/answer/ratios.h"
#include "synth/hap/apart.h"

enum {
    STARTS = 4, /* programs whose ratios are places to start from, the fastest ones */
    PLACES = 4, /* places at which the model is cut in two, and single segments */
    OPS =
        2000, /* in models of more there are fewer places, so that all searches take some seconds */
};

/* Segments with equal ratios are one to the search, which may then leave shards that cross between
 * them as they are. merged: out, [segment], its number among them. distinct: out, their ratios.
 * Returns how many there are. */
static uint32_t merge(uint32_t n_segments, uint32_t n, const double *ratio,
                      uint16_t *merged, double *distinct)
{
    uint32_t n_merged = 0;
    for (uint32_t k = 0; k < n_segments; k++) {
        uint32_t m = 0;
        while (m < n_merged &&
               !ratios_same(&distinct[(gsize)m * n], &ratio[(gsize)k * n], n))
            m++;
        if (m == n_merged)
            memcpy(&distinct[(gsize)n_merged++ * n], &ratio[(gsize)k * n],
                   n * sizeof *ratio);
        merged[k] = (uint16_t)m;
    }
    return n_merged;
}

typedef struct {
    Alternation *a;
    Followed segments;
    const double *proportional, *even;
} Steer;

/* The best program for ratios by segment; NULL where there is none, or all ratios are equal. */
static bool find_program(const Steer *s, const double *ratio, Program **program,
                         GError **error)
{
    Alternation *a = s->a;
    const uint32_t n = a->view->n_devices, n_ops = graph_n_ops(a->graph);
    g_autofree uint16_t *merged = g_new(uint16_t, s->segments.n),
                        *of = g_new(uint16_t, n_ops);
    g_autofree double *distinct = g_new(double, (gsize)s->segments.n *n);
    const uint32_t n_merged = merge(s->segments.n, n, ratio, merged, distinct);
    *program = NULL;
    if (n_merged == 1)
        return true;
    for (OpId id = 0; id < n_ops; id++)
        of[id] = merged[s->segments.of[id]];
    const SynthOptions options = {.beam = a->options->beam,
                                  .bucket_bytes = a->options->bucket_bytes,
                                  .deadline_us = a->answer->deadline_us};
    g_autoptr(SynthSpace) space =
        synth_space_of_segments(a->graph, a->question->pins, of, n_merged);
    SynthResult result;
    if (!synth_search(space, a->view, distinct, &options, &result, error))
        return false;
    a->search_s += result.search_s;
    a->search_labels += result.labels;
    *program = result.program;
    return true;
}

/* Alternates from these ratios, in place, until a round makes no faster plan. */
static bool alternate(const Steer *s, double *ratio, GError **error)
{
    Alternation *a = s->a;
    const uint32_t n = a->view->n_devices;
    double before_s = INFINITY;
    for (uint32_t i = 0; i < a->options->max_rounds && !answer_is_late(a->answer); i++) {
        g_autoptr(Program) program = NULL;
        if (!find_program(s, ratio, &program, error))
            return false;
        if (!program)
            return true;
        const uint32_t met = a->apart->len;
        g_autofree double *common = g_memdup2(s->proportional, n * sizeof *common);
        bool feasible = false;
        Known *known = alternation_know(a, program);
        if (known->balanced) /* met before, also by segment */
            return true;
        if (!alternation_balance(a, known, common, &feasible, error))
            return false;
        if (a->apart->len == met)
            return true;
        const Apart *latest = a->apart->pdata[a->apart->len - 1];
        if (latest->time_s >= before_s)
            return true;
        before_s = latest->time_s;
        memcpy(ratio, latest->ratio, (gsize)s->segments.n * n * sizeof *ratio);
    }
    return true;
}

/* Segments from `first` on, up to `end`, are divided evenly and the others by speed, or the other
 * way round; what updates alone keep, evenly. */
static bool alternate_between(const Steer *s, uint32_t first, uint32_t end, bool evenly,
                              GError **error)
{
    const uint32_t n = s->a->view->n_devices, forward = s->segments.n_forward;
    g_autofree double *ratio = g_new(double, (gsize)s->segments.n *n);
    for (uint32_t k = 0; k < s->segments.n; k++)
        memcpy(&ratio[(gsize)k * n],
               k >= forward || (k >= first && k < end) == evenly ? s->even
                                                                 : s->proportional,
               n * sizeof *ratio);
    return alternate(s, ratio, error);
}

/* Starts from all of the model by speed, from divisions of it in two parts, and from single
 * segments apart. */
static bool alternate_from_parts(const Steer *s, GError **error)
{
    const uint32_t n = s->segments.n_forward,
                   most = (uint32_t)(PLACES * (uint64_t)OPS /
                                     (graph_n_ops(s->a->graph) + OPS)),
                   places = MIN(n - 1, most + 1);
    if (!alternate_between(s, 0, 0, true, error))
        return false;
    for (uint32_t i = 1; i <= places; i++) {
        const uint32_t at = n * i / (places + 1);
        if (!alternate_between(s, at, n, true, error) ||
            !alternate_between(s, at, n, false, error))
            return false;
    }
    for (uint32_t k = 0; k < n && n <= 2 * PLACES; k++)
        if (!alternate_between(s, k, k + 1, true, error))
            return false;
    return true;
}

static int compare_times(gconstpointer a, gconstpointer b)
{
    const double x = (*(Apart *const *)a)->time_s, y = (*(Apart *const *)b)->time_s;
    return (x > y) - (x < y);
}

/* Starts from the ratios of the fastest programs met so far. */
static bool alternate_from_programs(const Steer *s, GError **error)
{
    Alternation *a = s->a;
    const gsize size = (gsize)s->segments.n * a->view->n_devices;
    g_ptr_array_sort(a->apart, compare_times);
    const uint32_t starts = MIN(a->apart->len, STARTS);
    g_autofree double *start = g_new(double, starts *size + 1);
    for (uint32_t i = 0; i < starts; i++)
        memcpy(&start[i * size], ((Apart *)a->apart->pdata[i])->ratio,
               size * sizeof *start);
    for (uint32_t i = 0; i < starts; i++)
        if (!alternate(s, &start[i * size], error))
            return false;
    return true;
}

bool segmented_search(Alternation *a, const double *proportional, const double *even,
                      GError **error)
{
    g_assert(a->segment);
    Steer s = {.a = a, .proportional = proportional, .even = even};
    followed_init(&s.segments, a);
    const bool done =
        alternate_from_programs(&s, error) &&
        (s.segments.n == 1 || ratios_same(proportional, even, a->view->n_devices) ||
         alternate_from_parts(&s, error));
    followed_clear(&s.segments);
    if (a->best_apart)
        plan_keep_better(&a->best, g_steal_pointer(&a->best_apart));
    return done;
}
