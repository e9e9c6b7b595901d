/* Techniques that planners leave to the user (synth/auto/technique.h). */
#include "synth/auto/technique.h"

#include <math.h>
#include <string.h>

#include "data/base/names.h"

/* Facts about the question without which a technique brings nothing. */
enum { NO_NEED = 0, ATTENTION = 1, HOSTS = 2, SCORES = 4, FUSED = 8 };

/* Sets for the planners with an ability and without another one. Planners of strategies search
 * degrees, placements and cuts for each of them. */
#define STRATEGIES PLANNER_STRATEGY, PLANNER_LAST
static const struct {
    uint32_t with, without, needs;
    TechniqueWhen when;
    const char *set;
} SET[] = {
    {STRATEGIES, NO_NEED, TECHNIQUE_NEAR, "zero=1"},
    {STRATEGIES, ATTENTION, TECHNIQUE_EARLY, "sequence_parallel=on"},
    {STRATEGIES, ATTENTION, TECHNIQUE_NEAR, "zero=1 sequence_parallel=on"},
    {STRATEGIES, NO_NEED, TECHNIQUE_NEAR, "zero=1 schedule=interleaved"},
    {STRATEGIES, SCORES, TECHNIQUE_NEAR, "zero=1 recompute=selective"},
    {STRATEGIES, SCORES, TECHNIQUE_NEAR,
     "zero=1 sequence_parallel=on recompute=selective"},
    {STRATEGIES, FUSED, TECHNIQUE_NEAR, "zero=1 recompute=alternate"},
    {STRATEGIES, FUSED, TECHNIQUE_NEAR,
     "zero=1 sequence_parallel=on recompute=alternate"},
    {STRATEGIES, ATTENTION, TECHNIQUE_NEAR,
     "zero=1 sequence_parallel=on schedule=interleaved"},
    {STRATEGIES, NO_NEED, TECHNIQUE_NEAR, "zero=1 recompute=full"},
    {STRATEGIES, ATTENTION, TECHNIQUE_MISFIT,
     "zero=1 sequence_parallel=on recompute=full"},
    {STRATEGIES, NO_NEED, TECHNIQUE_REFUSED, "zero=2"},
    {STRATEGIES, NO_NEED, TECHNIQUE_MISFIT, "zero=3"},
    {STRATEGIES, NO_NEED, TECHNIQUE_MISFIT, "zero=3 recompute=full"},
    {STRATEGIES, HOSTS, TECHNIQUE_NEAR, "zero=1 offload=optimizer"},
    {STRATEGIES, HOSTS, TECHNIQUE_MISFIT, "zero=2 offload=optimizer"},
    {STRATEGIES, HOSTS, TECHNIQUE_MISFIT, "zero=2 recompute=full offload=optimizer"},
    {STRATEGIES, HOSTS, TECHNIQUE_MISFIT,
     "zero=3 recompute=full offload=optimizer+parameters"},
    {STRATEGIES, HOSTS, TECHNIQUE_MISFIT,
     "zero=3 recompute=full offload=optimizer+parameters+activations"},
    {PLANNER_SHARES | PLANNER_HOSTS, 0, HOSTS, TECHNIQUE_MISFIT, "offload=optimizer"},
    {PLANNER_CERTIFIES, 0, NO_NEED, TECHNIQUE_NEAR, "bucket=25MiB"},
    {PLANNER_CERTIFIES, PLANNER_TURNS, NO_NEED, TECHNIQUE_MISFIT, "recompute=auto"},
    {PLANNER_CERTIFIES | PLANNER_ZERO, 0, NO_NEED, TECHNIQUE_MISFIT, "zero=3"},
    {PLANNER_CERTIFIES | PLANNER_ZERO, 0, NO_NEED, TECHNIQUE_MISFIT,
     "zero=3 recompute=auto"},
};

/* The words of a set, each split into key and value; free with g_strfreev. */
static char **technique_pairs(const char *set)
{
    char **pair = g_strsplit(set, " ", -1);
    for (uint32_t i = 0; pair[i]; i++)
        *strchr(pair[i], '=') = '\0';
    return pair;
}

static const char *technique_value(const char *pair)
{
    return pair + strlen(pair) + 1;
}

TechniqueNeeds technique_needs(const Graph *graph)
{
    TechniqueNeeds has = {0};
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        const OpKind kind = graph_get_op(graph, id)->kind;
        const char *name = op_kind_name(kind);
        has.attention |= strstr(name, "attention") != NULL;
        has.fused |= g_str_has_prefix(name, "fused_attention");
        has.experts |= op_kind_is_of_experts(kind);
    }
    has.scores = has.attention && !has.fused;
    return has;
}

bool technique_has_hosts(const Cluster *cluster)
{
    const bool all = all_of(m, cluster->n_machines,
                            cluster->machine[m].host_memory_bytes > 0 &&
                                cluster->machine[m].host_link > 0 &&
                                cluster->machine[m].host_bandwidth > 0);
    return all;
}

/* Whether the set says more than the user does, and nothing else of the keys that the user sets. */
static bool technique_adds(char **pair, const PlannerOptions *options)
{
    bool adds = false;
    for (uint32_t i = 0; pair[i]; i++) {
        const Option *option = options_find(&strategy_table, pair[i]);
        g_autofree char *asked = option ? option_get(option, &options->strategy) : NULL;
        const bool open = planner_options_is_default(options, pair[i]);
        if ((!open && g_strcmp0(asked, technique_value(pair[i])) != 0) ||
            (strcmp(pair[i], "schedule") == 0 && options->strategy.virtual_stages > 0))
            return false;
        adds |= open;
    }
    return adds;
}

/* No framework gets a plan with states on hosts. */
static bool technique_is_open(uint32_t row, TechniqueNeeds has,
                              const PlannerOptions *options)
{
    g_auto(GStrv) pair = technique_pairs(SET[row].set);
    const uint32_t given = (has.attention ? ATTENTION : 0) | (has.scores ? SCORES : 0) |
                           (has.fused ? FUSED : 0) |
                           (has.hosts && !planner_options_target(options) ? HOSTS : 0);
    return (SET[row].needs & ~given) == 0 && technique_adds(pair, options);
}

const char *technique_next(const Planner *planner, TechniqueNeeds has,
                           const PlannerOptions *options, uint32_t *row)
{
    while (*row < G_N_ELEMENTS(SET)) {
        const uint32_t i = (*row)++;
        if (planner_can(planner, SET[i].with) &&
            !(SET[i].without && planner_can(planner, SET[i].without)) &&
            technique_is_open(i, has, options))
            return SET[i].set;
    }
    return NULL;
}

TechniqueWhen technique_when(const char *set)
{
    const uint32_t i = NAME_PLACE(SET, G_N_ELEMENTS(SET), set, set);
    g_assert(i < G_N_ELEMENTS(SET));
    return SET[i].when;
}

void technique_apply(const char *set, PlannerOptions *options)
{
    if (!*set)
        return;
    g_auto(GStrv) pair = technique_pairs(set);
    for (uint32_t i = 0; pair[i]; i++) {
        const bool known =
            planner_options_set(options, pair[i], technique_value(pair[i]), NULL);
        g_assert(known);
    }
}

/* The best of the planner's plans on the choice without a technique; else one that failed; NULL:
 * none was tried. */
static const PortfolioTry *technique_without(const PortfolioChoice *choice,
                                             const char *key)
{
    const PortfolioTry *best = NULL;
    array_each (const PortfolioTry, t, choice->tries)
        if (t->planner == choice->best->planner &&
            t->granularity == choice->best->granularity && !strstr(t->set, key) &&
            (isfinite(t->iteration_s) ? !best || t->iteration_s < best->iteration_s
                                      : !best && t->reason))
            best = t;
    return best;
}

char *technique_words(const PortfolioChoice *choice)
{
    if (!*choice->best->set)
        return NULL;
    g_auto(GStrv) pair = technique_pairs(choice->best->set);
    g_autoptr(GString) text = g_string_new("");
    for (uint32_t i = 0; pair[i]; i++) {
        const PortfolioTry *other = technique_without(choice, pair[i]);
        if (strcmp(pair[i], "zero") == 0 && choice->plan->strategy.dp == 1)
            continue; /* it has no effect */
        g_string_append_printf(text, "%s%s=%s", text->len ? "; " : "", pair[i],
                               technique_value(pair[i]));
        if (other && isfinite(other->iteration_s))
            g_string_append_printf(
                text, ": %.1f %%",
                100 * (choice->best->iteration_s / other->iteration_s - 1));
        else if (other)
            g_string_append_printf(text, ": without it no plan (%s)", other->reason);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}
