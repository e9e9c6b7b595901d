/* The planner auto: the fastest plan that any planner makes on any of the machines.
 *
 * Its plan is on its own cluster, the machines that it uses. The plan's file carries this cluster,
 * so everything that reads the file works on these machines. The bound is over every plan on any of
 * the machines. */
#include "synth/auto/make.h"
#include "synth/amp/amp.h"
#include "synth/auto/portfolio.h"

/* Signs the plan as auto's: its maker, its machines, and its bound. */
static void sign(Plan *plan, const Portfolio *portfolio, const char *cluster)
{
    const PortfolioChoice *choice = g_ptr_array_index(portfolio->choices, 0);
    put_block(plan->cluster, choice->only
                                 ? g_strdup_printf("%s only %s", cluster, choice->only)
                                 : g_strdup(cluster));
    plan->maker = plan->planner;
    plan->planner = g_strdup("auto");
    plan_drop_proofs(plan);
    plan->search_time_s = portfolio->elapsed_s;
    plan->balance_time_s = 0;
    plan->certificate_time_s = 0;
    plan->lower_bound_s = portfolio->bound_s;
    if (plan->lower_bound_s > 0)
        plan->bound_over =
            g_strdup("every plan on any of the machines, by computation alone on "
                     "all devices at once");
}

/* Adds the bound on strategies that a framework runs, if it says more. */
static void auto_add_bound(Plan *plan, const PortfolioChoice *choice,
                           const Cluster *cluster)
{
    const char *runtime =
        planner_runtime(planner_find("manual", NULL), &choice->options, cluster);
    g_autoptr(ClusterView) view =
        planner_view(&choice->options, runtime, cluster, GRANULARITY_GPU);
    const double bound_s = view ? synth_amp_inside_bound_s(choice->graph, view) : 0;
    g_autofree char *over =
        g_strdup_printf("stages with replicas and tensor parallelism inside machines, in "
                        "any schedule%s%s",
                        runtime ? ", run by " : "", runtime ? runtime : "");
    if (bound_s > plan->lower_bound_s)
        plan_add_bound(plan, bound_s, g_intern_string(over));
}

bool auto_make(const Question *question, Answer *answer, GError **error)
{
    Plan *plan = answer->plan;
    const PortfolioOptions how = {.prune = true, .some = true, .flow = true};
    g_autoptr(Portfolio) portfolio = portfolio_new(
        question->model, question->cluster->cluster, question->options, &how, error);
    if (!portfolio)
        return false;
    g_autofree char *cluster = g_strdup(plan->cluster);
    g_autoptr(Plan) best = portfolio_take(portfolio, &answer->view, &answer->report);
    const Plan blank = *plan;
    *plan = *best;
    *best = blank;
    sign(plan, portfolio, cluster);
    auto_add_bound(plan, g_ptr_array_index(portfolio->choices, 0),
                   question->cluster->cluster);
    answer->notes = g_ptr_array_ref(portfolio->notes);
    return true;
}
