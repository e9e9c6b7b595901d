/* TAG's baselines (TPDS 2023, Sec. 5.2) in TAG's terms: with the same op groups, evaluator and
 * programs, but each with its own space of strategies and its own search. */
#include "balance/balance.h"
#include "synth/answer/complete.h"
#include "synth/answer/ratios.h"
#include "synth/tag/case.h"
#include "synth/tag/make.h"
#include "synth/tag/search.h"

static void leave_parallel(TagSpace *space)
{
    space->n_actions = 1;
    g_assert(tag_data_parallel(space) == 0);
}

bool tag_make_dp_factors(const Question *question, Answer *answer, GError **error)
{
    const TagLimits limits = {
        .method = TAG_BEST, .factors = true, .narrow = leave_parallel};
    return tag_make_within(question, answer, &limits, error);
}

/* FlexFlow with its sample dimension only, as if devices were equal, which TAG says of it. Its
 * other dimensions, tensor parallelism, are left out. */
bool tag_make_flexflow(const Question *question, Answer *answer, GError **error)
{
    const TagLimits limits = {
        .method = TAG_CHAIN, .alike = true, .narrow = synth_tag_all_reduced};
    return tag_make_within(question, answer, &limits, error);
}

/* HeteroG's space, searched by `best` in place of its network. Shares are even or by speed for the
 * whole plan, where HeteroG's may differ from op to op. */
bool tag_make_heterog(const Question *question, Answer *answer, GError **error)
{
    const TagLimits limits = {
        .method = TAG_BEST, .shares = true, .narrow = synth_tag_all_or_one};
    return tag_make_within(question, answer, &limits, error);
}

/* --- Baechi --- */

/* Finds favourite children, from the mean time of each task and the longest time of each arc. */
static bool find_favourites(const TagList *list, uint32_t *favourite, GError **error)
{
    g_autofree BalanceArc *arc = g_new(BalanceArc, list->n_arcs + 1);
    for (uint32_t a = 0; a < list->n_arcs; a++)
        arc[a] = (BalanceArc){list->arc[a].from, list->arc[a].to, list->arc[a].longest_s};
    return balance_favourites(list->n, list->mean_s, list->n_arcs, arc, favourite, error);
}

/* Makes every layer a group, with its backward pass and its update. */
static bool rivals_find_layers(const Question *question, const double *ratio, TagCase *l,
                               GError **error)
{
    const Graph *graph = question->graph;
    const uint32_t n_layers = MIN(graph_n_layers(graph), UINT16_MAX);
    if (!tag_case_open(l, graph, question->view, ratio, error))
        return false;
    batch_forms_free(l->batch);
    if (!(l->batch = tag_batch(question->options, graph, error)))
        return false;
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        l->time_s[id] = sim_quick_place_s(l->quick, l->space->single[0], id, 0);
    const uint32_t n = balance_groups_layers(graph, l->time_s, n_layers, l->group);
    l->work = (TagWork){.graph = graph,
                        .batch = l->batch,
                        .n_groups = n,
                        .group = l->group,
                        .time_s = l->time_s,
                        .n_microbatches = tag_microbatches(question->options)};
    return true;
}

/* Makes the program of a placement, with as much computed again as makes it fit. */
static bool give_program(const Question *question, TagCase *l,
                         const TagPlacement *placement, const double *ratio,
                         Answer *answer, GError **error)
{
    Plan *plan = answer->plan;
    const Graph *graph = question->graph;
    const char *recompute = NULL;
    for (uint32_t i = 0; (recompute = tag_recompute(question->options, i)); i++) {
        Recompute *modes;
        if (i > 0 && plan->feasible)
            break;
        if (!tag_modes(graph, recompute, &modes, error))
            return false;
        l->work.recompute = modes;
        plan_set(plan, graph, question->view,
                 synth_tag_program(l->space, &l->work, placement, false), ratio);
        l->work.recompute = NULL;
        g_free(modes);
        if (!answer_complete(answer, plan, question, error))
            return false;
    }
    return true;
}

bool tag_make_list(const Question *question, Answer *answer, GError **error)
{
    const TagListRule rule = (TagListRule)question->planner->variant;
    const gint64 begin = g_get_monotonic_time();
    const Graph *graph = question->graph;
    g_autofree double *ratio = ratios_even(question->view);
    g_auto(TagCase) l = {0};
    if (!rivals_find_layers(question, ratio, &l, error))
        return false;
    g_autoptr(TagList) list = synth_tag_list(l.space, &l.work, l.quick);
    g_autofree uint32_t *favourite = g_new(uint32_t, list->n + 1);
    g_autofree uint32_t *device = g_new(uint32_t, list->n + 1);
    if (rule == TAG_SCT && !find_favourites(list, favourite, error))
        return false;
    synth_tag_list_place(list, question->view, rule, rule == TAG_SCT ? favourite : NULL,
                         device);
    g_autoptr(TagPlacement) placement = synth_tag_placement_new(graph);
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        placement->group[id] = l.space->single[device[l.group[id]]];
    answer->plan->search_time_s =
        (double)(g_get_monotonic_time() - begin) / G_USEC_PER_SEC;
    return give_program(question, &l, placement, ratio, answer, error);
}
