/* Shares that are even, by speed, and by a linear program. */
#include "synth/tag/shares.h"

#include "synth/answer/ratios.h"

/* Adds a vector, which is taken over, unless it is there. */
static void shares_add(GPtrArray *shares, double *ratio, uint32_t n)
{
    for (uint32_t i = 0; i < shares->len; i++)
        if (ratios_same(shares->pdata[i], ratio, n)) {
            g_free(ratio);
            return;
        }
    g_ptr_array_add(shares, ratio);
}

/* The best shares of data parallelism where devices have a part of their memory, or, if none fit in
 * it, in any case. */
static double *solve(const Question *question, const SimLinear *linear,
                     const SimMemory *memory, double part, GError **error)
{
    double *ratio = ratios_even(question->view);
    if (ratios_balance(linear, memory, question->view, 1, part, ratio, NULL) ||
        ratios_balance(linear, NULL, question->view, 1, part, ratio, error))
        return ratio;
    g_free(ratio);
    return NULL;
}

/* Within all of the memory and, since shares are rounded, within the least room of a balance. */
static bool add_solved(const Question *question, GPtrArray *shares, GError **error)
{
    const ClusterView *view = question->view;
    g_autofree double *even = ratios_even(view);
    SynthResult result;
    if (!synth_baseline(question->graph, view, even, BASELINE_DATA_PARALLEL, &result,
                        error))
        return false;
    g_autoptr(Program) program = result.program;
    g_autoptr(SimLinear) linear =
        sim_linear(program, question->graph, view, NULL, question->options->bucket_bytes);
    g_autoptr(SimMemory) memory =
        sim_memory(program, question->graph, linear, NULL, view->runtime);
    for (uint32_t i = 0; i < RATIOS_ROOMS; i += RATIOS_ROOMS - 1) {
        double *ratio = solve(question, linear, memory, RATIOS_ROOM[i], error);
        if (!ratio)
            return false;
        shares_add(shares, ratio, view->n_devices);
    }
    return true;
}

GPtrArray *tag_shares(const Question *question, bool by_speed, GError **error)
{
    const ClusterView *view = question->view;
    const RatiosChoice choice = planner_ratios(question->options);
    const uint32_t n = view->n_devices;
    g_autoptr(GPtrArray) shares = g_ptr_array_new_with_free_func(g_free);
    double *fixed = ratios_pinned(view, question->options);
    shares_add(shares, fixed ? fixed : ratios_even(view), n);
    if (choice == RATIOS_BEST || (choice == RATIOS_OWN && by_speed))
        shares_add(shares, ratios_proportional(view), n);
    if (choice == RATIOS_BEST && !add_solved(question, shares, error))
        return NULL;
    g_assert(shares->len > 0);
    return g_steal_pointer(&shares);
}
