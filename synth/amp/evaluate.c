/* The strategy of a choice of degrees, and the assignment of its layers. */
#include "synth/amp/search.h"

bool amp_assign_layers(const AmpSearch *search, AmpStrategy *strategy, AmpCost *cost)
{
    g_autoptr(AmpRows) rows = amp_rows_new(
        search->model, search->cluster, search->options, search->layers, strategy, true);
    double total;
    if (!rows)
        return false;
    rows->problem.work = search->options->work;
    if (!synth_amp_assign(&rows->problem, strategy->first, &total))
        return false;
    *cost = amp_rows_cost(rows, strategy->first);
    return cost->fits || !rows->host;
}

AmpStrategy amp_strategy_of(const AmpSearch *search, const AmpDegrees *c)
{
    return amp_strategy_new(c, amp_chunks(search->options));
}
