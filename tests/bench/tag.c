/* Evaluating a strategy of TAG on its testbed, time and peaks: a completely different one, and one
 * with a single group's action changed. */
#include <math.h>

#include "balance/balance.h"
#include "data/data.h"
#include "synth/answer/ratios.h"
#include "synth/synth.h"
#include "synth/tag/case.h"
#include "tests/bench/bench.h"

enum { GROUPS = 60 };

static const char *const MODELS[] = {"vgg19:image=224,global_batch=96,classes=1000",
                                     "tag-bert-large:global_batch=16"};

typedef struct {
    TagCase tag;
    TagEvaluator *evaluator;
    uint16_t *action;
    GRand *rand;
} Job;

static uint32_t below(Job *job, uint32_t n)
{
    return (uint32_t)g_rand_int_range(job->rand, 0, (gint32)n);
}

static void another(void *data)
{
    Job *job = data;
    for (uint32_t i = 0; i < job->tag.work.n_groups; i++)
        job->action[i] = (uint16_t)below(job, job->tag.space->n_actions);
    tag_evaluate(job->evaluator, job->action, INFINITY);
}

static void change(void *data)
{
    Job *job = data;
    job->action[below(job, job->tag.work.n_groups)] =
        (uint16_t)below(job, job->tag.space->n_actions);
    tag_evaluate(job->evaluator, job->action, INFINITY);
}

static void change_without_memory(void *data)
{
    Job *job = data;
    job->action[below(job, job->tag.work.n_groups)] =
        (uint16_t)below(job, job->tag.space->n_actions);
    tag_evaluate(job->evaluator, job->action, 0);
}

static void bench_model(const char *model, const ClusterView *view, GError **error)
{
    g_autoptr(Graph) graph = model_build(model, 1, NULL, error);
    g_autofree double *ratio = ratios_even(view);
    Job job = {.rand = g_rand_new_with_seed(1)};
    TagCase *tag = &job.tag;
    if (!graph || !tag_case_open(tag, graph, view, ratio, error))
        g_error("%s: %s", model, (*error)->message);
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        tag->time_s[id] = sim_quick_place_s(tag->quick, tag->space->single[0], id, 0);
    const uint32_t n = balance_groups_layers(graph, tag->time_s, GROUPS, tag->group);
    tag->work = (TagWork){.graph = graph,
                          .batch = tag->batch,
                          .n_groups = n,
                          .group = tag->group,
                          .time_s = tag->time_s};
    job.evaluator = tag_evaluator_new(tag->space, &tag->work, tag->quick, TAG_BY_STAGE);
    job.action = g_new0(uint16_t, n);
    printf("%s: %u ops, %u groups, %u actions\n", model, graph_n_ops(graph), n,
           tag->space->n_actions);
    bench_run("another strategy", another, &job);
    bench_run("one group changed", change, &job);
    bench_run("one group changed, time only", change_without_memory, &job);
    tag_evaluator_free(job.evaluator);
    g_free(job.action);
    g_rand_free(job.rand);
    tag_case_clear(tag);
}

int main(void)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load("tag-testbed", &error);
    if (!cluster)
        g_error("%s", error->message);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    bench_print_header("TAG on tag-testbed");
    for (uint32_t m = 0; m < G_N_ELEMENTS(MODELS); m++)
        bench_model(MODELS[m], view, &error);
}
