/* The order of the fastest plans by flow, in which messages share links and steps overlap. */
#include "synth/auto/tries.h"

#include <math.h>

#include "data/base/order.h"
#include "data/base/units.h"

static ORDER_POINTERS(portfolio_by_flow, PortfolioChoice, ASCENDING(flow_s));

/* The choice's plan, with its times. Caller frees. */
static char *portfolio_flow_words(const PortfolioChoice *choice)
{
    g_autofree char *flow = units_format(choice->flow_s, QUANTITY_TIME),
                    *own = units_format(choice->report->iteration_time_s, QUANTITY_TIME);
    return g_strdup_printf("%s on %s takes %s (%s by %s)", choice->best->planner->name,
                           choice->machines, flow, own, choice->report->fidelity);
}

/* The times by flow of the first choices' plans and of the other plans on them, of those that are
 * at most `most_s` by the planners' fidelity; returns the least. */
static double portfolio_flows(PortfolioRun *run, PortfolioChoice **choice, double most_s)
{
    double least_s = INFINITY;
    uint64_t work = 0;
    for (uint32_t i = 0; i < run->portfolio->choices->len; i++) {
        PortfolioChoice *c = choice[i];
        if (!c->report || c->report->iteration_time_s > most_s ||
            !portfolio_compares(i, c->plan, MOST_INSTRUCTIONS, &work))
            break;
        c->flow_s = portfolio_flow_s(run, c->plan, c->graph, c->view);
        least_s = fmin(least_s, c->flow_s);
    }
    pointers_each (Task, t, run->others) {
        const bool near = t->choice->flow_s > 0 && t->report->iteration_time_s <= most_s;
        t->flow_s = near ? portfolio_flow_s(run, t->plan, t->graph, t->view) : INFINITY;
        least_s = fmin(least_s, t->flow_s);
    }
    return least_s;
}

/* Makes the plan again as its own command does, which has no plan to be faster than. */
static void portfolio_make_alone(const PortfolioRun *run, Task *t)
{
    if (!isfinite(t->upper_s))
        return;
    task_clear(t);
    t->upper_s = INFINITY;
    t->enough_s = 0;
    portfolio_make_flow(run, t);
}

/* Puts the fastest plans in order by flow, if one is then clearly faster than the one that was
 * first, of which the time must be known. */
void portfolio_rank_by_flow(PortfolioRun *run)
{
    static const double clearly = 0.99;
    PortfolioChoice **choice = (PortfolioChoice **)(void *)run->portfolio->choices->pdata;
    PortfolioChoice *const first = choice[0];
    const double most_s = TRIES_FAR * first->report->iteration_time_s,
                 least_s = portfolio_flows(run, choice, most_s);
    if (!isfinite(first->flow_s) || least_s >= clearly * first->flow_s)
        return;
    g_autofree char *before = portfolio_flow_words(first);
    pointers_each (Task, t, run->others) {
        if (t->flow_s < clearly * t->choice->flow_s)
            portfolio_make_alone(run, t);
        if (t->flow_s < clearly * t->choice->flow_s)
            portfolio_keep(t);
    }
    uint32_t n = 0;
    while (n < run->portfolio->choices->len && choice[n]->flow_s > 0)
        n++;
    qsort(choice, n, sizeof *choice, portfolio_by_flow);
    portfolio_climb_by_flow(run, choice[0]);
    g_autofree char *now = portfolio_flow_words(choice[0]);
    g_ptr_array_add(run->portfolio->notes,
                    g_strdup_printf("ranks change by flow, in which messages share links "
                                    "and hide behind computations: %s, %s",
                                    now, before));
}
