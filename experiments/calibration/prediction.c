/* Intervals and domains of predictions. */
#include "experiments/calibration/prediction.h"

#include "data/base/json.h"
#include "data/base/names.h"

#include <math.h>
#include <string.h>

/* The types are sorted and joined by "+". */
const char *prediction_types(const ClusterView *view)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    for (uint32_t j = 0; j < view->n_devices; j++) {
        const char *name = view->device[j].type_name;
        if (TEXT_PLACE(names->pdata, names->len, name) == names->len)
            g_ptr_array_add(names, (gpointer)name);
    }
    g_ptr_array_sort(names, names_compare);
    g_ptr_array_add(names, NULL);
    g_autofree char *text = g_strjoinv("+", (char **)names->pdata);
    return g_intern_string(text);
}

/* The last extent of the first op's output: for an embedding it is the width of all layers. */
static uint32_t prediction_width_of(const Graph *graph)
{
    const Tensor *first = graph_tensor(graph, graph_get_op(graph, 0)->out[0]);
    return first->rank > 0 ? first->dim[first->rank - 1] : 0;
}

/* The plan's place among the trials; runtime: "" for its own. Strings are interned or borrowed. */
static FittedPoint prediction_point(const Plan *plan, const char *planner,
                                    const char *fidelity, const char *runtime,
                                    const Graph *graph, const ClusterView *view)
{
    const SimWorkload work = sim_workload(plan, graph, view);
    const uint32_t tp = MAX(plan->strategy.tp, 1), pp = MAX(plan->strategy.pp, 1);
    return (FittedPoint){
        .fidelity = fidelity,
        .planner = planner,
        .software = *runtime ? runtime : plan->runtime,
        .types = prediction_types(view),
        .at = {[FITTED_TP] = tp,
               [FITTED_PP] = pp,
               [FITTED_SHARED] = tp * pp,
               [FITTED_RANKS] = work.gpus,
               [FITTED_WIDTH] = prediction_width_of(graph),
               [FITTED_SEQUENCE] =
                   work.samples > 0 ? (uint32_t)(work.tokens / work.samples) : 0}};
}

static void widen(Fitted *fitted, const FittedPoint *point)
{
    for (FittedRange r = 0; r < FITTED_RANGES; r++) {
        fitted->least[r] = MIN(fitted->least[r], point->at[r]);
        fitted->most[r] = MAX(fitted->most[r], point->at[r]);
    }
}

FittedPoint prediction_point_of_trial(const TrialPlan *plan)
{
    g_autoptr(ClusterView) view = cluster_view(plan->cluster, GRANULARITY_GPU);
    return prediction_point(plan->plan, plan->trial->planner, trial_fidelity(plan->trial),
                            plan->options.runtime, plan->graph, view);
}

Fitted *prediction_record(const TrialPlan *plan, const double *held_out_s, uint32_t n)
{
    Fitted *record = g_new0(Fitted, 1);
    record->error = g_new0(FittedError, n + 1);
    for (FittedRange r = 0; r < FITTED_RANGES; r++)
        record->least[r] = UINT32_MAX;
    for (uint32_t k = 0; k < n; k++) {
        const FittedPoint point = prediction_point_of_trial(&plan[k]);
        widen(record, &point);
        record->error[record->n_errors++] = (FittedError){
            g_strdup(point.types), log(plan[k].trial->measured_s / held_out_s[k])};
        if (point.software && !fitted_names_have(record->software, point.software)) {
            g_autofree char *others = record->software;
            record->software = others ? g_strjoin("+", others, point.software, NULL)
                                      : g_strdup(point.software);
        }
        if (k > 0)
            continue;
        record->fidelity = g_strdup(point.fidelity);
        record->planner = g_strdup(point.planner);
    }
    return record;
}

bool prediction_interval(const ClusterView *view, double coverage, double time_s,
                         double ends[2])
{
    const Fitted *fitted = view->cluster->fitted;
    double factor;
    if (!fitted || !fitted_interval(fitted, prediction_types(view), coverage, &factor))
        return false;
    ends[0] = time_s / factor;
    ends[1] = time_s * factor;
    return true;
}

static json_t *prediction_interval_json(const ClusterView *view, double coverage,
                                        double time_s)
{
    double ends[2];
    return prediction_interval(view, coverage, time_s, ends)
               ? json_pack("[f, f]", ends[0], ends[1])
               : json_null();
}

void prediction_add(json_t *object, const Plan *plan, const Graph *graph,
                    const ClusterView *view, const SimReport *report)
{
    const Fitted *fitted = view->cluster->fitted;
    if (!fitted)
        return;
    const FittedPoint point =
        prediction_point(plan, plan->planner ? plan->planner : "", report->fidelity,
                         report->runtime, graph, view);
    g_autoptr(GPtrArray) outside = fitted_outside(fitted, &point);
    const double time_s = report->iteration_time_s;
    json_object_update_new(
        object, json_pack("{s:o, s:o, s:b, s:o}", "interval_50_s",
                          prediction_interval_json(view, 0.5, time_s), "interval_90_s",
                          prediction_interval_json(view, 0.9, time_s), "out_of_domain",
                          outside->len > 0, "outside", json_texts(outside)));
}

/* --- which one is faster --- */

static bool is_same_fit(const Fitted *a, const Fitted *b)
{
    bool same = a->n_errors == b->n_errors;
    for (uint32_t i = 0; same && i < a->n_errors; i++)
        same = a->error[i].error == b->error[i].error &&
               strcmp(a->error[i].types, b->error[i].types) == 0;
    return same;
}

/* Copies the errors of the types, or all errors if there are fewer than `enough`; returns their
 * number. */
static uint32_t errors_of(const Fitted *fitted, const char *types, uint32_t enough,
                          double *error)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < fitted->n_errors; i++)
        if (strcmp(fitted->error[i].types, types) == 0)
            error[n++] = fitted->error[i].error;
    if (n < enough)
        for (n = 0; n < fitted->n_errors; n++)
            error[n] = fitted->error[n].error;
    return n;
}

bool prediction_faster(const Fitted *a, const Fitted *b, const char *types, double a_s,
                       double b_s, double *probability)
{
    enum { LEAST = 10, ENOUGH = 19 };
    if (!a || !b || !is_same_fit(a, b))
        return false;
    g_autofree double *error = g_new(double, a->n_errors + 1);
    const uint32_t n = errors_of(a, types, ENOUGH, error);
    const double lead = log(b_s / a_s);
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++) {
            const double margin = lead + error[j] - error[i];
            sum += i == j ? 0 : margin > 0 ? 1 : margin == 0 ? 0.5 : 0;
        }
    *probability = n < LEAST ? NAN : sum / ((double)n * (n - 1));
    return n >= LEAST;
}

json_t *prediction_faster_json(const ClusterView *a, double a_s, const ClusterView *b,
                               double b_s)
{
    g_assert(a_s > 0 && b_s > 0);
    const char *types = prediction_types(a);
    double probability;
    if (strcmp(types, prediction_types(b)) != 0)
        types = ""; /* no trial's: all errors count */
    return prediction_faster(a->cluster->fitted, b->cluster->fitted, types, a_s, b_s,
                             &probability)
               ? json_real(probability)
               : json_null();
}
