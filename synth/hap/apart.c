/* The best ratios of a program by segment. */
#include "synth/hap/apart.h"

#include <string.h>

#include "balance/balance.h"
#include "data/base/free.h"
#include "synth/answer/complete.h"

enum {
    FAILURES = 2, /* linear programs of a cluster that go in circles take a second each */
};

FREE_DEFINE(apart_free, Apart, one, g_free(one->ratio));

CLEAR_DEFINE(followed_clear, Followed, followed, g_free(followed->of));

void followed_init(Followed *followed, const Alternation *a)
{
    const uint32_t n = graph_n_ops(a->graph);
    g_autofree uint32_t *number = g_new0(uint32_t, G_MAXUINT16 + 1u);
    *followed = (Followed){.of = g_memdup2(a->segment, n * sizeof *a->segment)};
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (OpId id = 0; id < n; id++) {
            const Op *op = graph_get_op(a->graph, id);
            if ((op->pass == PASS_UPDATE) != (pass == 1))
                continue;
            const OpId with = op->pass == PASS_BACKWARD ? op->of : id;
            uint32_t *own = &number[a->segment[with]];
            if (*own == 0)
                *own = ++followed->n;
            followed->of[id] = (uint16_t)(*own - 1);
        }
        if (pass == 0)
            followed->n_forward = followed->n;
    }
}

/* Remembers the ratios [joined segment * n_devices] of a program as ratios of the segments asked
 * for; a segment in which nothing is sharded has the common ones. */
static void remember(Alternation *a, const Program *program, const uint16_t *joined,
                     const double *ratio, const double *common, double time_s)
{
    const uint32_t n = a->view->n_devices;
    g_auto(Followed) segments = {0};
    followed_init(&segments, a);
    g_autofree bool *sharded = plan_sharded_ops(program, a->graph);
    Apart *one = g_new(Apart, 1);
    *one = (Apart){time_s, g_new(double, (gsize)segments.n *n)};
    for (uint32_t k = 0; k < segments.n; k++)
        memcpy(&one->ratio[(gsize)k * n], common, n * sizeof *common);
    for (OpId id = graph_n_ops(a->graph); id-- > 0;)
        if (sharded[id])
            memcpy(&one->ratio[(gsize)segments.of[id] * n], &ratio[(gsize)joined[id] * n],
                   n * sizeof *ratio);
    g_ptr_array_add(a->apart, one);
}

/* Rounds a plan with segments, by time where that can make it the best. */
static bool complete(Alternation *a, Plan *plan, const SimLinear *linear,
                     const SimMemory *memory, GError **error)
{
    if (!answer_complete(a->answer, plan, a->question, error))
        return false;
    g_autofree double *exact = sim_shares(linear, a->view, plan->ratio);
    g_autofree double *share = sim_plan_shares(plan, linear);
    plan->fractional_time_s = sim_linear_time(linear, a->view, exact, NULL, NULL);
    alternation_climb(a, linear, memory, share, plan);
    return true;
}

bool apart_consider(Alternation *a, const Program *program, const double *common,
                    GError **error)
{
    g_autofree uint16_t *segment = g_new(uint16_t, graph_n_ops(a->graph));
    const uint32_t n_segments =
        balance_segments_join(program, a->graph, a->segment, segment);
    if (n_segments == 1 || a->apart_failed == FAILURES)
        return true;
    g_autoptr(SimLinear) linear =
        sim_linear(program, a->graph, a->view, segment, a->options->bucket_bytes);
    g_autoptr(SimMemory) memory =
        sim_memory(program, a->graph, linear, segment, a->view->runtime);
    g_autofree double *ratio = g_new(double, (gsize)n_segments * a->view->n_devices);
    BalanceReport report;
    const gint64 start = g_get_monotonic_time();
    g_autoptr(GError) failed = NULL;
    const bool solved =
        balance_ratios(linear, memory, a->view, n_segments, ratio, &report, &failed);
    a->balance_s += (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    a->apart_failed += !solved && failed->code == KILTER_ERROR_FAILED;
    if (!solved) /* the common ratios may still fit, and be solved for */
        return failed->code != KILTER_ERROR_INPUT ||
               (g_propagate_error(error, g_steal_pointer(&failed)), false);
    g_autoptr(Plan) candidate = plan_new();
    candidate->bucket_bytes = a->options->bucket_bytes;
    plan_set(candidate, a->graph, a->view, program_copy(program), common);
    plan_set_segments(candidate, ratio, segment, n_segments);
    if (!complete(a, candidate, linear, memory, error))
        return false;
    remember(a, program, segment, ratio, common, report.time_s);
    plan_keep_better(&a->best_apart, g_steal_pointer(&candidate));
    return true;
}
