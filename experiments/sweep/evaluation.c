/* Plans with their graphs, clusters and reports: read from files, simulated, written. */
#include "experiments/sweep/evaluation.h"

#include <math.h>
#include <string.h>

#include "data/base/units.h"
#include "data/plan/fidelity.h"

char *evaluation_plan_text(const Evaluation *evaluation)
{
    Plan *plan = evaluation->plan;
    if (!plan->cluster_text)
        plan->cluster_text = cluster_json_text(evaluation->view->cluster);
    return plan_write(plan, evaluation->graph);
}

Cluster *evaluation_cluster(const Plan *plan, const char *file, GError **error)
{
    if (plan->cluster_text) {
        g_autofree char *where = g_strdup_printf("%s: cluster_content", file);
        return cluster_parse(where, plan->cluster_text, strlen(plan->cluster_text),
                             error);
    }
    Cluster *cluster = cluster_load(plan->cluster, error);
    if (!cluster)
        kilter_prefix(error, "%s: key 'cluster': ", file);
    return cluster;
}

Plan *evaluation_read(const char *file, Graph **graph, Cluster **cluster, GError **error)
{
    g_autoptr(Graph) built = NULL;
    g_autoptr(Plan) plan = plan_read(file, &built, error);
    if (!plan)
        return NULL;
    *cluster = evaluation_cluster(plan, file, error);
    if (!*cluster)
        return NULL;
    *graph = g_steal_pointer(&built);
    return g_steal_pointer(&plan);
}

/* Whether the plan has the same time here as on the cluster that it was made for, so that its
 * proofs still hold. */
static bool costs_what_it_did(const Evaluation *evaluation, const SimOptions *given)
{
    static const double rounding = 1e-9;
    const Plan *plan = evaluation->plan;
    if (!(plan->lower_bound_s > 0) && !plan->optimal && !(plan->fractional_time_s > 0))
        return true;
    const bool same = strcmp(evaluation->report->fidelity, plan_fidelity(plan)) == 0;
    SimOptions options;
    sim_options_init(&options);
    options.time_only = true;
    options.costs = given->costs;
    g_autoptr(SimReport) again =
        same ? NULL
             : sim_evaluate_with(plan, evaluation->graph, evaluation->view,
                                 plan_fidelity(plan), &options, NULL);
    const SimReport *report = same ? evaluation->report : again;
    return report && fabs(report->iteration_time_s - plan->iteration_time_s) <=
                         rounding * plan->iteration_time_s;
}

bool evaluation_open(Plan *plan, Graph *graph, const Cluster *cluster,
                     Evaluation *evaluation, GError **error)
{
    *evaluation = (Evaluation){
        .graph = graph, .plan = plan, .view = cluster_view(cluster, plan->granularity)};
    sim_options_init(&evaluation->sim);
    if (evaluation->view->n_devices == plan->n_devices)
        return true;
    refuse(error, "the plan is for %u devices, cluster %s has %u at this granularity",
           plan->n_devices, plan->cluster, evaluation->view->n_devices);
    evaluation_clear(evaluation);
    return false;
}

bool evaluation_of_plan(Plan *plan, Graph *graph, const Cluster *cluster,
                        const char *fidelity, const SimOptions *options,
                        Evaluation *evaluation, GError **error)
{
    if (!evaluation_open(plan, graph, cluster, evaluation, error))
        return false;
    evaluation->sim = *options;
    evaluation->report =
        sim_evaluate_shortly(plan, graph, evaluation->view,
                             fidelity ? fidelity : plan_fidelity(plan), options, error);
    if (!evaluation->report)
        evaluation_clear(evaluation);
    else if (!costs_what_it_did(evaluation, options))
        plan_drop_proofs(evaluation->plan);
    return evaluation->report != NULL;
}

void evaluation_record(Evaluation *evaluation)
{
    const char *fidelity = evaluation->report->fidelity;
    if (evaluation->report->timeline || !fidelity_can(fidelity, FIDELITY_LANES))
        return;
    sim_report_free(evaluation->report);
    evaluation->report =
        sim_evaluate_with(evaluation->plan, evaluation->graph, evaluation->view, fidelity,
                          &evaluation->sim, NULL);
}

CLEAR_DEFINE(evaluation_clear, Evaluation, evaluation,
             let_go(evaluation->report, sim_report_free),
             let_go(evaluation->plan, plan_free),
             let_go(evaluation->view, cluster_view_free),
             let_go(evaluation->cluster, cluster_free),
             let_go(evaluation->graph, graph_free),
             let_go(evaluation->notes, g_ptr_array_unref));

char *evaluation_misfit(const Evaluation *evaluation)
{
    const SimReport *report = evaluation->report;
    if (report->missing_bytes == 0 && report->host_missing_bytes > 0) {
        g_autofree char *lacks =
            units_format((double)report->host_missing_bytes, QUANTITY_BYTES);
        return g_strdup_printf("the host's memory of machine %s lacks %" G_GUINT64_FORMAT
                               " bytes (%s)",
                               evaluation->view->cluster->machine[report->host].name,
                               report->host_missing_bytes, lacks);
    }
    const Device *device = &evaluation->view->device[report->worst_device];
    g_autofree char *missing =
        units_format((double)report->missing_bytes, QUANTITY_BYTES);
    const char *at = report->worst_instr ? report->worst_instr : "its peak";
    return g_strdup_printf("device %s (%s) lacks %" G_GUINT64_FORMAT
                           " bytes (%s) at %.*s",
                           device->name, device->type_name, report->missing_bytes,
                           missing, (int)strcspn(at, "|("), at); /* its tensor */
}

/* Whether machines of several GPUs are devices of the plan, with one share for all of them. */
static bool has_whole_machines(const ClusterView *view)
{
    return any_of(d, view->n_devices, view->device[d].gpus > 1);
}

char *evaluation_ways_to_fit(const Evaluation *evaluation)
{
    const Plan *plan = evaluation->plan;
    g_autoptr(GString) ways = g_string_new(NULL);
    if (g_strcmp0(plan->planner, "auto") != 0)
        g_string_append(ways, "--planner auto, ");
    if (has_whole_machines(evaluation->view))
        g_string_append(ways, "--granularity gpu, ");
    if (graph_precision(evaluation->graph) == PRECISION_SINGLE)
        g_string_append(ways, "precision=mixed in the model, ");
    if (!plan->strategy.recompute)
        g_string_append(ways, "--set recompute=auto, ");
    g_string_append(ways, "a smaller batch");
    return g_string_free(g_steal_pointer(&ways), FALSE);
}
