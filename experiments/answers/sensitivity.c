/* Sensitivity: how much each number of a cluster matters. */
#include "experiments/answers/sensitivity.h"

#include <math.h>

#include "data/base/free.h"
#include "data/base/json.h"
#include "data/base/order.h"
#include "data/cluster/change.h"
#include "experiments/answers/evaluation_report.h"

static const double STEP = 0.01; /* relative step of a derivative */

/* A number of the cluster, with its name for --scale. */
typedef struct {
    char *what;
    double better;  /* the factor of an upgrade */
    bool replanned; /* it matters only for new plans */
    double slope;   /* change of the time in percent for one percent more */
    double kept_s;  /* time with the upgrade and the same plan; NaN: none */
    double again_s; /* time with a new plan; NaN: not requested, or no plan */
} Knob;

typedef struct {
    const Evaluation *evaluation;
    /* NULL: the plan is from a file and not made again */
    const Configuration *configuration;
    double time_s;
    GArray *knob; /* Knob */
} Survey;

static void add_knob(Survey *s, char *what, double better, bool replanned)
{
    const Knob knob = {what, better, replanned, NAN, NAN, NAN};
    g_array_append_val(s->knob, knob);
}

static void list_knobs(Survey *s)
{
    const double more = 2, less = 0.5;
    const Cluster *cluster = s->evaluation->view->cluster;
    const bool inside = any_of(i, cluster->n_machines, cluster->machine[i].gpus > 1);
    for (uint32_t t = 0; t < cluster->n_types; t++) {
        const char *name = cluster->type[t].name;
        add_knob(s, g_strdup_printf("%s.rate", name), more, false);
        if (cluster->type[t].op)
            add_knob(s, g_strdup_printf("%s.bandwidth", name), more, false);
        add_knob(s, g_strdup_printf("%s.memory", name), more, true);
    }
    if (inside)
        add_knob(s, g_strdup("inner"), more, false);
    if (cluster->n_machines > 1) {
        add_knob(s, g_strdup("network"), more, false);
        add_knob(s, g_strdup("latency"), less, false);
    }
}

static Cluster *sensitivity_scaled(const Cluster *cluster, const char *what,
                                   double factor, GError **error)
{
    g_autofree char *change = g_strdup_printf("%s=%.17g", what, factor);
    g_autoptr(Cluster) copy = cluster_copy(cluster, error);
    return copy && cluster_change(copy, CHANGE_SCALE, change, error)
               ? g_steal_pointer(&copy)
               : NULL;
}

/* The time of the same plan on the changed cluster. */
static bool reprice(const Survey *s, const char *what, double factor, double *time_s,
                    GError **error)
{
    const Evaluation *e = s->evaluation;
    g_autoptr(Cluster) cluster =
        sensitivity_scaled(e->view->cluster, what, factor, error);
    if (!cluster)
        return false;
    g_autoptr(ClusterView) view = cluster_view(cluster, e->plan->granularity);
    g_autoptr(SimReport) report =
        sim_evaluate_with(e->plan, e->graph, view, e->report->fidelity, &e->sim, error);
    if (report)
        *time_s = report->iteration_time_s;
    return report != NULL;
}

/* The time of a plan made for the changed cluster; NaN if none fits. */
static bool replan(const Survey *s, const Knob *knob, double *time_s, GError **error)
{
    const Configuration *c = s->configuration;
    g_autoptr(Cluster) cluster =
        sensitivity_scaled(c->cluster, knob->what, knob->better, error);
    if (!cluster)
        return false;
    const ConfigurationAsk ask = {.model = c->canonical_model,
                                  .cluster_name = c->cluster_name,
                                  .cluster = cluster,
                                  .granularity = c->granularity,
                                  .planner = c->planner,
                                  .fidelity = c->fidelity,
                                  .options = c->options};
    g_autoptr(Configuration) changed = configuration_new(&ask, error);
    g_auto(Evaluation) evaluation = {0};
    if (!changed || !configuration_evaluate(changed, &evaluation, error))
        return false;
    *time_s = evaluation.report->feasible ? evaluation.report->iteration_time_s : NAN;
    return true;
}

static bool turn(const Survey *s, Knob *knob, GError **error)
{
    double near_s;
    if (!knob->replanned) {
        if (!reprice(s, knob->what, 1 + STEP, &near_s, error) ||
            !reprice(s, knob->what, knob->better, &knob->kept_s, error))
            return false;
        knob->slope = (near_s / s->time_s - 1) / STEP;
    }
    if (!s->configuration)
        return true;
    if (!replan(s, knob, &knob->again_s, error))
        return false;
    /* the old plan stays possible on a better machine, in its time on more memory */
    knob->again_s = fmin(knob->again_s, knob->replanned ? s->time_s : knob->kept_s);
    return true;
}

/* The time of the better plan: the same one or the new one. */
static double upgraded_s(const Knob *knob)
{
    return fmin(fmin(knob->kept_s, knob->again_s), INFINITY); /* of numbers, if any */
}

static ORDER_DEFINE(by_gain, Knob,
                    (upgraded_s(x) > upgraded_s(y)) - (upgraded_s(x) < upgraded_s(y)));

static json_t *knob_json(const Survey *s, const Knob *knob)
{
    const double time_s = upgraded_s(knob);
    return json_pack(
        "{s:s, s:o, s:o, s:o, s:o, s:o}", "what", knob->what, "elasticity",
        json_number(knob->slope), "factor", json_number(knob->better), "kept_s",
        json_number(knob->kept_s), "replanned_s", json_number(knob->again_s), "gain",
        isfinite(time_s) ? json_number(s->time_s / time_s - 1) : json_null());
}

static char *sensitivity_words_of(const Survey *s)
{
    const Knob *best = &g_array_index(s->knob, Knob, 0);
    const double time_s = upgraded_s(best);
    if (!(time_s < s->time_s * (1 - 1e-6)))
        return g_strdup("No upgrade of a single number makes the iteration faster.");
    return g_strdup_printf(
        "Largest gain: %s x %g, %.1f %% more throughput. %s", best->what, best->better,
        100 * (s->time_s / time_s - 1),
        s->configuration
            ? "The effects of 1 % are those on the same plan."
            : "The plan is kept; give MODEL CLUSTER to see new plans as well.");
}

static json_t *survey_json(const Survey *s)
{
    const Plan *plan = s->evaluation->plan;
    json_t *knobs = json_list(places_before(i, s->knob->len),
                              knob_json(s, &g_array_index(s->knob, Knob, i)));
    g_autofree char *words = sensitivity_words_of(s);
    return json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:s}", "model", plan->model,
                     "cluster", plan->cluster, "planner", plan->planner, "fidelity",
                     s->evaluation->report->fidelity, "iteration_time_s",
                     json_number(s->time_s), "knobs", knobs, "words", words);
}

json_t *sensitivity_json(const Evaluation *evaluation, const Configuration *configuration,
                         GError **error)
{
    g_autoptr(GArray) knobs = array_owning(Knob, free_first);
    Survey s = {evaluation, configuration, evaluation->report->iteration_time_s, knobs};
    if (!evaluation_check_fits(evaluation, error))
        return NULL;
    list_knobs(&s);
    for (uint32_t i = 0; i < knobs->len; i++)
        if (!turn(&s, &g_array_index(knobs, Knob, i), error))
            return NULL;
    g_array_sort(knobs, by_gain);
    return survey_json(&s);
}
