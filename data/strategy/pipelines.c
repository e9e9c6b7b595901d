/* Strategies whose replicas are pipelines with unlike stages: each is laid out on its own. */

#include <string.h>

#include "data/base/error.h"
#include "data/base/free.h"
#include "data/plan/plan.h"
#include "data/strategy/strategy.h"

typedef struct {
    const Strategy *s;
    const Graph *graph;
    char **layers; /* [n]: the pipelines' lists */
    uint32_t n, n_stages, n_devices;
    uint32_t *stages, *microbatches; /* [n] */
    /* [n + 1]: first of `device` */
    uint32_t *first;
    uint32_t *device;
} Pipelines;

OWN_CLEAR_DEFINE(pipelines_clear, Pipelines, p, g_strfreev(p->layers),
                 free_each(p->stages, p->microbatches, p->first, p->device));

static uint32_t words(const char *text)
{
    g_auto(GStrv) item = g_strsplit(text, " ", -1);
    return *text ? g_strv_length(item) : 0;
}

/* Checks that no key is given that says the same in another way, or that only equal stages have. */
static bool check_keys(const Strategy *s, GError **error)
{
    static const char KEYS[] =
        "pipeline_layers, pipeline_shares, tp, cp, cp_comm, a2a_ranks, ep, etp, "
        "imbalance, expert_tokens, microbatches, pieces, "
        "schedule, ranks, recompute, sequence_parallel, zero";
    const char *other = strategy_beside(s, KEYS);
    if (other)
        return refuse(error, "pipeline_layers with %s: expected only %s", other, KEYS);
    return (s->zero <= 1 && schedule_row((Schedule)s->schedule)->chunks == 1 &&
            s->schedule != SCHEDULE_DUALPIPE) ||
           refuse(error, "pipeline_layers: expected zero=0 or zero=1, and a schedule "
                         "with one stage per device");
}

static bool count_stages(Pipelines *p, GError **error)
{
    p->layers = g_strsplit(p->s->pipeline_layers, "; ", -1);
    p->n = g_strv_length(p->layers);
    if (p->n < 2)
        return refuse(
            error, "pipeline_layers: expected two lists or more, as in '20 4; 6 6 6 6'");
    p->stages = g_new(uint32_t, p->n);
    for (uint32_t k = 0; k < p->n; k++) {
        p->stages[k] = words(p->layers[k]);
        p->n_stages += p->stages[k];
        if (p->stages[k] == 0)
            return refuse(error,
                          "pipeline_layers: expected layers of pipeline %u, got none", k);
    }
    return true;
}

/* Divides the microbatches by the shares. */
static bool count_microbatches(Pipelines *p, GError **error)
{
    g_auto(GStrv) item =
        g_strsplit(p->s->pipeline_shares ? p->s->pipeline_shares : "", " ", -1);
    const uint32_t n_shares = p->s->pipeline_shares ? g_strv_length(item) : 0;
    g_autofree double *share = g_new(double, p->n);
    double sum = 0;
    if (n_shares > 0 && n_shares != p->n)
        return refuse(error,
                      "pipeline_shares: expected %u numbers, one per pipeline, got %u",
                      p->n, n_shares);
    for (uint32_t k = 0; k < p->n; k++)
        sum += share[k] = n_shares ? g_ascii_strtod(item[k], NULL) : 1;
    for (uint32_t k = 0; k < p->n; k++)
        share[k] /= sum;
    p->microbatches = g_new(uint32_t, p->n);
    split_round(share, p->n, p->s->microbatches, p->microbatches);
    for (uint32_t k = 0; k < p->n; k++)
        if (p->microbatches[k] == 0)
            return refuse(error, "microbatches=%u: pipeline %u gets none",
                          p->s->microbatches, k);
    return true;
}

/* Without ranks the pipelines have equally many devices. */
static bool divide_devices(Pipelines *p, GError **error)
{
    if (p->n_devices % p->n != 0)
        return refuse(error,
                      "pipeline_layers: expected ranks, since %u GPUs are no multiple of "
                      "%u pipelines",
                      p->n_devices, p->n);
    for (uint32_t k = 0; k <= p->n; k++)
        p->first[k] = p->n_devices / p->n * k;
    for (uint32_t j = 0; j < p->n_devices; j++)
        p->device[j] = j;
    return true;
}

/* Takes the ranks of stage `s`, of pipeline `k`. */
static bool take_stage(Pipelines *p, uint32_t k, uint32_t s, const char *ranks,
                       bool *seen, GError **error)
{
    uint32_t n;
    if (!strategy_take_ranks(ranks, p->n_devices, seen, p->device + p->first[k + 1], &n,
                             error))
        return false;
    if (n == 0)
        return refuse(error, "ranks: expected GPUs of stage %u of pipeline %u, got none",
                      s, k);
    p->first[k + 1] += n;
    return p->first[k + 1] - p->first[k] == (s + 1) * n ||
           refuse(error,
                  "ranks: expected as many for stage %u of pipeline %u as for the stages "
                  "before it, got %u",
                  s, k, n);
}

static bool take_ranks(Pipelines *p, GError **error)
{
    g_auto(GStrv) stage = g_strsplit(p->s->ranks, "; ", -1);
    g_autofree bool *seen = g_new0(bool, p->n_devices + 1);
    if (g_strv_length(stage) != p->n_stages)
        return refuse(error, "ranks: expected %u lists, one per stage, got %u",
                      p->n_stages, g_strv_length(stage));
    for (uint32_t k = 0, at = 0; k < p->n; k++) {
        p->first[k + 1] = p->first[k];
        for (uint32_t s = 0; s < p->stages[k]; s++)
            if (!take_stage(p, k, s, stage[at++], seen, error))
                return false;
    }
    return p->first[p->n] == p->n_devices ||
           refuse(error, "ranks: expected each GPU from 0 to %u once, got %u of them",
                  p->n_devices - 1, p->first[p->n]);
}

/* The words of a list for the stages of pipeline `k`, if it has one for each stage of all. */
static const char *pipelines_words_of(const Pipelines *p, uint32_t k, const char *list)
{
    if (!list || words(list) != p->n_stages)
        return list;
    g_auto(GStrv) item = g_strsplit(list, " ", -1);
    g_autoptr(GString) own = g_string_new("");
    const uint32_t before = sum_over(uint32_t, i, k, p->stages[i]);
    for (uint32_t s = 0; s < p->stages[k]; s++)
        g_string_append_printf(own, "%s%s", s ? " " : "", item[before + s]);
    return g_intern_string(own->str);
}

static bool lay_out_one(const Pipelines *p, uint32_t k, StrategyLayout *layout,
                        GError **error)
{
    Strategy own = *p->s;
    own.pipeline_layers = own.pipeline_shares = own.ranks = NULL;
    own.layers = g_intern_string(p->layers[k]);
    own.pp = p->stages[k];
    own.microbatches = p->microbatches[k];
    own.recompute = pipelines_words_of(p, k, p->s->recompute);
    own.sequence_parallel = pipelines_words_of(p, k, p->s->sequence_parallel);
    const uint32_t n = p->first[k + 1] - p->first[k];
    if (!strategy_lay_out(&own, p->graph, n, layout, error))
        return kilter_prefix(error, "pipeline %u: ", k);
    for (uint32_t i = 0; i < n; i++)
        layout->device[i] = p->device[p->first[k] + layout->device[i]];
    return true;
}

/* Two pipelines over the same devices in opposite directions, half of the microbatches in each. */
static bool lay_out_both_ways(const Strategy *s, const Graph *graph, uint32_t n_devices,
                              StrategyPipelines *pipelines, GError **error)
{
    pipelines->n = 2;
    put_block(pipelines->pipeline, g_new0(StrategyLayout, 2));
    items_each (StrategyLayout, l, pipelines->pipeline, 2) {
        if (!strategy_lay_out(s, graph, n_devices, l, error))
            return false;
        if (l->stage || s->sync_every > 1 || s->zero > 1 || l->n_microbatches % 2)
            return refuse(error,
                          "dualpipe: expected equal stages, sync_every=1, zero=0 or "
                          "1, and an even number of microbatches");
        l->n_microbatches /= 2;
    }
    const StrategyLayout *there = &pipelines->pipeline[0], *back = there + 1;
    const uint32_t n = layout_devices(there, 0);
    for (uint32_t p = 0; p < there->pp; p++)
        memcpy(&back->device[p * n], &there->device[(there->pp - 1 - p) * n],
               n * sizeof *there->device);
    return true;
}

bool strategy_lay_out_pipelines(const Strategy *s, const Graph *graph, uint32_t n_devices,
                                StrategyPipelines *pipelines, GError **error)
{
    g_auto(Pipelines) p = {.s = s, .graph = graph, .n_devices = n_devices};
    *pipelines = (StrategyPipelines){.n = 1, .pipeline = g_new0(StrategyLayout, 1)};
    if (s->schedule == SCHEDULE_DUALPIPE && !s->pipeline_layers)
        return lay_out_both_ways(s, graph, n_devices, pipelines, error);
    if (!s->pipeline_layers)
        return strategy_lay_out(s, graph, n_devices, pipelines->pipeline, error);
    if (!check_keys(s, error) || !count_stages(&p, error) ||
        !count_microbatches(&p, error))
        return false;
    p.first = g_new0(uint32_t, p.n + 1);
    p.device = g_new0(uint32_t, n_devices);
    if (!(s->ranks ? take_ranks(&p, error) : divide_devices(&p, error)))
        return false;
    pipelines->n = p.n;
    put_block(pipelines->pipeline, g_new0(StrategyLayout, p.n));
    for (uint32_t k = 0; k < p.n; k++)
        if (!lay_out_one(&p, k, &pipelines->pipeline[k], error))
            return false;
    return true;
}

bool strategy_check_effects(const Strategy *s, const StrategyPipelines *pipelines,
                            GError **error)
{
    bool stages = false, replicas = false, microbatches = false;
    items_each (const StrategyLayout, l, pipelines->pipeline, pipelines->n) {
        stages |= l->pp > 1;
        for (uint32_t g = 0; g < l->pp; g++) {
            const StageDegrees of = layout_degrees(l, g);
            replicas |= of.dp * of.cp > 1;
        }
        microbatches |= l->n_microbatches > 1;
    }
    const StrategyLayout *first = &pipelines->pipeline[0];
    const bool split = schedule_splits(first->schedule) || first->n_stages > first->pp;
    const bool alone = first->dp > (s->zero ? first->zero_ranks : 1);
    /* gradients, or parameters, that are not divided lie on the host, too */
    const bool hosts = first->zero > 1 && strategy_offloads(s, OFFLOAD_OPTIMIZER);
    const OptionRule rule[] = {
        {s->sequence_parallel && first->tp == 1, "sequence_parallel", "tp above 1", NULL},
        {s->etp > 0 && first->tp == 1, "etp", "tp above 1", NULL},
        {(s->imbalance > 1 || s->expert_tokens) && first->ep == 1 && !first->experts,
         s->expert_tokens ? "expert_tokens" : "imbalance", "ep above 1",
         "as devices with all experts have the same tokens"},
        {s->cp_comm && first->cp == 1, "cp_comm", "cp above 1", NULL},
        {first->zero > 0 && !replicas && !hosts, "zero",
         "dp or cp above 1, or zero from 2 on with offload=optimizer", NULL},
        {s->zero_ranks > 0 && s->zero == 0, "zero_ranks", "zero above 0", NULL},
        {s->sync_every > 1 && (first->cp > 1 || first->ep > 1 || !alone), "sync_every",
         "cp=1, ep=1 and more replicas than divide states", NULL},
        {split && !stages, "schedule", "pp above 1", NULL},
        {first->schedule == SCHEDULE_GPIPE && !microbatches, "schedule",
         "gpipe with several microbatches", NULL},
    };
    return options_obey(rule, G_N_ELEMENTS(rule), "", " has no effect here", error);
}

CLEAR_DEFINE(strategy_pipelines_clear, StrategyPipelines, pipelines,
             clear_items(pipelines->pipeline, pipelines->n, strategy_layout_clear),
             g_free(pipelines->pipeline), *pipelines = (StrategyPipelines){0});
