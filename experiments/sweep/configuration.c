/* Configurations: identity and evaluation. */
#include "experiments/sweep/configuration.h"

#include <string.h>

#include "data/base/free.h"
#include "data/base/units.h"
#include "data/plan/fidelity.h"
#include "data/store/store.h"

/* A configuration that owns its texts, which it takes over, and a copy of the options. */
static Configuration *configuration_owner(ConfigurationOwn own)
{
    Configuration *c = g_new0(Configuration, 1);
    c->own = g_memdup2(&own, sizeof own);
    c->model = c->own->model;
    c->canonical_model = c->own->canonical_model;
    c->cluster_name = c->own->cluster_name;
    c->options = &c->own->options;
    c->seed = own.options.seed;
    return c;
}

Configuration *configuration_new(const ConfigurationAsk *ask, GError **error)
{
    const char *known = ask->fidelity ? fidelity_find(ask->fidelity, error) : NULL;
    if (ask->fidelity && !known)
        return NULL;
    g_autoptr(ClusterView) view = cluster_view(ask->cluster, ask->granularity);
    g_autoptr(Question) question =
        question_open(ask->planner, ask->model, view, ask->options, error);
    if (!question)
        return NULL;
    g_autoptr(Configuration) c = configuration_owner(
        (ConfigurationOwn){g_strdup(ask->model), g_strdup(question_spec(question)),
                           g_strdup(ask->cluster_name), *ask->options});
    c->opened = g_steal_pointer(&question);
    c->view = g_steal_pointer(&view);
    c->cluster = ask->cluster;
    c->granularity = ask->granularity;
    c->planner = ask->planner;
    c->fidelity = known;
    return g_steal_pointer(&c);
}

Configuration *configuration_of_subject(const char *model, Subject *subject,
                                        const char *cluster_name, const Cluster *cluster,
                                        Granularity granularity, const Planner *planner,
                                        const PlannerOptions *options)
{
    Configuration *c = g_new0(Configuration, 1);
    c->model = model;
    c->canonical_model = subject_model(subject);
    c->subject = subject;
    c->cluster_name = cluster_name;
    c->cluster = cluster;
    c->granularity = granularity;
    c->planner = planner;
    c->options = options;
    c->seed = options->seed;
    return c;
}

StoreAsked configuration_asked(const Configuration *c, const char *experiment)
{
    return (StoreAsked){.experiment = experiment,
                        .hash = c->hash,
                        .model = c->model,
                        .cluster = c->cluster_name,
                        .entry = c->entry     ? c->entry
                                 : c->planner ? c->planner->name
                                              : "none",
                        .axes = c->axes,
                        .ordinal = c->ordinal};
}

uint32_t configuration_points(const Configuration *first)
{
    uint32_t n = 0;
    g_assert(!first->is_twin);
    for (const Configuration *c = first; c; c = c->twin)
        n++;
    return n;
}

bool configuration_record_twins(const Configuration *first, Store *store,
                                const char *experiment, GError **error)
{
    bool good = true, has = true;
    for (const Configuration *c = first->twin; good && c; c = c->twin) {
        const StoreAsked asked = configuration_asked(c, experiment);
        good = store_find(store, &asked, 1, &has, error);
        g_assert(!good || has);
    }
    return good;
}

static bool parse_exchange(const char *kind, const char *bytes, const char *share,
                           Exchange *exchange, GError **error)
{
    exchange->kind = collective_from_name(kind);
    if ((int)exchange->kind >= COLLECTIVES_PRICED)
        return refuse(error, "unknown collective '%s', expected one such as all_gather",
                      kind);
    if (!number_read(share, 0, 1, &exchange->share))
        return refuse(error, "expected a share from 0 to 1, got '%s'", share);
    return units_parse(bytes, QUANTITY_BYTES, &exchange->bytes, error);
}

Configuration *configuration_of_exchange(const char *kind, const char *bytes,
                                         const char *share, const char *cluster_name,
                                         const Cluster *cluster, Granularity granularity,
                                         GError **error)
{
    Exchange exchange;
    if (!parse_exchange(kind, bytes, share, &exchange, error))
        return NULL;
    char *model = g_strdup_printf("%s:bytes=%.10g,share=%.10g", kind, exchange.bytes,
                                  exchange.share);
    g_autoptr(Configuration) c = configuration_owner(
        (ConfigurationOwn){model, g_strdup(model), g_strdup(cluster_name), {0}});
    c->cluster = cluster;
    c->granularity = granularity;
    c->exchange = exchange;
    c->fidelity = fidelity_name(FIDELITY_ANALYTIC);
    return g_steal_pointer(&c);
}

double configuration_exchange_s(const Configuration *c)
{
    g_autoptr(ClusterView) view = cluster_view(c->cluster, c->granularity);
    double others =
        view->n_devices > 1 ? (1 - c->exchange.share) / (view->n_devices - 1) : 0;
    double largest = MAX(c->exchange.share, others);
    return sim_collective_s(view, c->exchange.kind, c->exchange.bytes, largest, largest);
}

void configuration_free(Configuration *c)
{
    if (!c)
        return;
    question_free(c->opened);
    cluster_view_free(c->view);
    if (c->own)
        free_each(c->own->model, c->own->canonical_model, c->own->cluster_name, c->own);
    g_free(c->axes);
    store_question_clear(&c->question);
    free_each(c->hash, c);
}

bool granularity_find(const char *name, Granularity *granularity, GError **error)
{
    return granularity_parse(name, granularity) ||
           refuse(error, "unknown granularity '%s', expected machine or gpu", name);
}

bool seed_parse(const char *text, uint64_t *seed, GError **error)
{
    guint64 value;
    if (!g_ascii_string_to_unsigned(text, 10, 0, G_MAXINT64, &value, NULL))
        return refuse(error, "expected a seed from 0 to 2^63 - 1, got '%s'", text);
    *seed = value;
    return true;
}

bool option_assign(PlannerOptions *options, const char *pair, GError **error)
{
    const char *equals = strchr(pair, '=');
    if (!equals)
        return refuse(error, "expected key=value, got '%s'", pair);
    g_autofree char *key = g_strndup(pair, (gsize)(equals - pair));
    return planner_options_set(options, key, equals + 1, error);
}

bool options_assign(PlannerOptions *options, const Spec *spec, GError **error)
{
    /* Pins accumulate. */
    if (!spec_check_once(spec, "pin", error))
        return false;
    for (uint32_t i = 0; i < spec->n; i++) {
        if (!spec->value[i])
            return refuse(error, "expected key=value, got '%s'", spec->key[i]);
        if (!planner_options_set(options, spec->key[i], spec->value[i], error))
            return false;
    }
    return true;
}

static const char *configuration_fidelity(const char *fidelity, const Plan *plan)
{
    return fidelity ? fidelity : plan_fidelity(plan);
}

/* Makes the plan, with its graph and report. */
static bool plan_with(const Question *question, const Configuration *c,
                      Evaluation *evaluation, SimReport **planned, GError **error)
{
    g_autoptr(Answer) answer = question_answer(question, c->cluster_name, NULL, error);
    if (!answer)
        return false;
    evaluation->plan = answer_take_plan(answer);
    evaluation->graph = question_graph(question);
    *planned = answer_take_report(answer);
    evaluation->notes = answer_take_notes(answer);
    evaluation->stopped = answer_is_stopped(answer);
    ClusterView *chosen = answer_take_view(answer);
    if (chosen) {
        cluster_view_free(evaluation->view);
        evaluation->view = chosen;
    }
    return true;
}

/* Plans by the question that the check opened, or by a new one. */
static bool make_plan(const Configuration *c, Evaluation *evaluation, SimReport **planned,
                      GError **error)
{
    PlannerOptions options = *c->options;
    options.seed = c->seed;
    if (c->opened)
        return plan_with(c->opened, c, evaluation, planned, error);
    g_autoptr(Graph) graph = c->subject ? subject_take(c->subject, error) : NULL;
    if (c->subject && !graph)
        return false;
    g_autoptr(Question) question =
        graph ? question_open_on(c->planner, c->canonical_model, graph, evaluation->view,
                                 &options, error)
              : question_open(c->planner, c->canonical_model, evaluation->view, &options,
                              error);
    return question && plan_with(question, c, evaluation, planned, error);
}

static bool simulate(const Configuration *c, Evaluation *evaluation, GError **error)
{
    evaluation->report = sim_evaluate_with(
        evaluation->plan, evaluation->graph, evaluation->view,
        configuration_fidelity(c->fidelity, evaluation->plan), &evaluation->sim, error);
    return evaluation->report != NULL;
}

bool configuration_evaluate(const Configuration *c, Evaluation *evaluation,
                            GError **error)
{
    if (c->impossible)
        return refuse(error, "%s", c->impossible);
    *evaluation = (Evaluation){.view = cluster_view(c->cluster, c->granularity),
                               .sim = c->options->sim,
                               .searched = planner_can(c->planner, PLANNER_SEARCHES)};
    evaluation->sim.seed = c->seed;
    g_autoptr(SimReport) planned = NULL;
    bool done = make_plan(c, evaluation, &planned, error);
    if (done &&
        strcmp(configuration_fidelity(c->fidelity, evaluation->plan),
               plan_fidelity(evaluation->plan)) == 0 &&
        !planner_options_of_simulation(c->options))
        evaluation->report = g_steal_pointer(&planned);
    else
        done = done && simulate(c, evaluation, error);
    if (!done)
        evaluation_clear(evaluation);
    return done;
}
