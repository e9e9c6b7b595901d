#include "experiments/sweep/configuration.h"

#include <string.h>

#include "experiments/json_values.h"
#include "experiments/planners/complete.h"

static json_t *link_json(const LinkCost *link)
{
    return json_pack("{s:o, s:o}", "bandwidth", json_number(link->bandwidth), "latency_s",
                     json_number(link->latency_s));
}

static json_t *ops_json(const OpCost *op)
{
    json_t *object = json_object();
    for (uint32_t kind = 0; kind < OP_KINDS; kind++) {
        if (op[kind].largest == 0)
            continue;
        json_t *cost =
            json_pack("[o, o, o]", json_number(op[kind].overhead_s),
                      json_number(op[kind].rate), json_number(op[kind].bandwidth));
        if (op[kind].launch_s > 0 || op[kind].wave > 0) {
            json_array_append_new(cost, json_number(op[kind].launch_s));
            json_array_append_new(cost, json_integer(op[kind].wave));
        }
        json_object_set_new(object, op_kind_name((OpKind)kind), cost);
    }
    return object;
}

static json_t *rates_json(const DeviceType *type)
{
    json_t *object = json_object();
    for (Numbers n = 0; n < NUMBERS; n++)
        if (type->rates[n] > 0)
            json_object_set_new(object, numbers_name(n), json_number(type->rates[n]));
    return object;
}

static json_t *machine_json(const Cluster *cluster, const Machine *machine)
{
    const DeviceType *type = &cluster->type[machine->type];
    json_t *object = json_pack(
        "{s:s, s:s, s:i, s:o, s:I, s:o}", "name", machine->name, "type", type->name,
        "gpus", (int)machine->gpus, "rate", json_number(type->rate), "memory_bytes",
        (json_int_t)type->memory_bytes, "inner", link_json(&machine->inner));
    if (device_type_has_rates(type))
        json_object_set_new(object, "rates", rates_json(type));
    if (type->slowdown > 1)
        json_object_set_new(object, "slowdown", json_number(type->slowdown));
    if (machine->stretch > 1)
        json_object_set_new(object, "stretch", json_number(machine->stretch));
    if (type->launch_s > 0)
        json_object_set_new(object, "launch_s", json_number(type->launch_s));
    if (type->op)
        json_object_set_new(object, "ops", ops_json(type->op));
    return object;
}

static json_t *collective_json(const LinkCost *line, const CollectivePieces *pieces)
{
    json_t *object = link_json(line);
    if (pieces->n > 0)
        json_object_set_new(object, "pieces", json_array());
    for (uint32_t i = 0; i < pieces->n; i++) {
        json_t *piece = link_json(&pieces->piece[i].line);
        json_object_set_new(piece, "up_to_bytes", json_number(pieces->piece[i].up_to));
        json_array_append_new(json_object_get(object, "pieces"), piece);
    }
    return object;
}

/* All that results depend on: the numbers, and the names that reports give, but no sources. */
static json_t *cluster_json(const Cluster *cluster)
{
    json_t *machines = json_array();
    for (uint32_t i = 0; i < cluster->n_machines; i++)
        json_array_append_new(machines, machine_json(cluster, &cluster->machine[i]));
    json_t *collectives = json_object();
    for (int kind = 0; kind < COLLECTIVES_PRICED; kind++)
        json_object_set_new(
            collectives, collective_name((Collective)kind),
            collective_json(&cluster->collective[kind], &cluster->pieces[kind]));
    return json_pack("{s:s, s:o, s:o}", "name", cluster->name, "machines", machines,
                     "collectives", collectives);
}

static json_t *options_json(const PlannerOptions *options)
{
    json_t *object = json_object();
    g_auto(GStrv) list = planner_options_list(options);
    for (char **pair = list; pair[0] && pair[1]; pair += 2)
        json_object_set_new(object, pair[0], json_string(pair[1]));
    return object;
}

static void seal(Configuration *c)
{
    json_t *object = json_pack(
        "{s:s, s:o, s:s, s:s, s:s, s:o, s:I, s:s}", "model", c->canonical_model,
        "cluster", cluster_json(c->cluster), "granularity",
        granularity_name(c->granularity), "planner", c->planner->name, "fidelity",
        c->fidelity ? c->fidelity : "planned", "options", options_json(&c->options),
        "seed", (json_int_t)c->options.seed, "version", KILTER_VERSION);
    c->json = json_canonical(object);
    c->hash = g_compute_checksum_for_string(G_CHECKSUM_SHA256, c->json, -1);
}

Configuration *configuration_new(const char *model, const char *cluster_name,
                                 const Cluster *cluster, Granularity granularity,
                                 const Planner *planner, const char *fidelity,
                                 const PlannerOptions *options, GError **error)
{
    const char *known = fidelity ? fidelity_find(fidelity, error) : NULL;
    if (fidelity && !known)
        return NULL;
    /* Building the graph is the one check that knows which parameters fit together. */
    char *canonical = NULL;
    g_autoptr(Graph) graph = model_build(model, cluster_gpus(cluster), &canonical, error);
    if (!graph || !planner_check(planner, options, graph, error)) {
        g_free(canonical);
        return NULL;
    }
    Configuration *c = g_new0(Configuration, 1);
    c->model = g_strdup(model);
    c->canonical_model = canonical;
    c->cluster_name = g_strdup(cluster_name);
    c->cluster = cluster;
    c->granularity = granularity;
    c->planner = planner;
    c->fidelity = known;
    c->options = *options;
    seal(c);
    return c;
}

static bool parse_exchange(const char *kind, const char *bytes, const char *share,
                           Exchange *exchange, GError **error)
{
    char *end;
    exchange->kind = collective_from_name(kind);
    if ((int)exchange->kind >= COLLECTIVES_PRICED)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "unknown collective '%s', expected one such as all_gather",
                           kind);
    exchange->share = g_ascii_strtod(share, &end);
    if (end == share || *end || !(exchange->share >= 0 && exchange->share <= 1))
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "expected a share from 0 to 1, got '%s'", share);
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
    Configuration *c = g_new0(Configuration, 1);
    c->model = g_strdup_printf("%s:bytes=%.10g,share=%.10g", kind, exchange.bytes,
                               exchange.share);
    c->canonical_model = g_strdup(c->model);
    c->cluster_name = g_strdup(cluster_name);
    c->cluster = cluster;
    c->granularity = granularity;
    c->exchange = exchange;
    c->fidelity = "analytic";
    c->json = json_canonical(json_pack(
        "{s:{s:s, s:o, s:o}, s:o, s:s, s:s}", "exchange", "collective", kind, "bytes",
        json_number(exchange.bytes), "share", json_number(exchange.share), "cluster",
        cluster_json(cluster), "granularity", granularity_name(granularity), "version",
        KILTER_VERSION));
    c->hash = g_compute_checksum_for_string(G_CHECKSUM_SHA256, c->json, -1);
    return c;
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
    g_free(c->model);
    g_free(c->canonical_model);
    g_free(c->cluster_name);
    g_free(c->json);
    g_free(c->hash);
    g_free(c);
}

const char *fidelity_find(const char *name, GError **error)
{
    const SimFidelity *fidelity = sim_fidelity_find(name, error);
    return fidelity ? fidelity->name : NULL;
}

bool granularity_find(const char *name, Granularity *granularity, GError **error)
{
    if (granularity_parse(name, granularity))
        return true;
    return kilter_fail(error, KILTER_ERROR_INPUT,
                       "unknown granularity '%s', expected machine or gpu", name);
}

bool seed_parse(const char *text, uint64_t *seed, GError **error)
{
    guint64 value;
    if (!g_ascii_string_to_unsigned(text, 10, 0, G_MAXINT64, &value, NULL))
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "expected a seed from 0 to 2^63 - 1, got '%s'", text);
    *seed = value;
    return true;
}

bool option_assign(PlannerOptions *options, const char *pair, GError **error)
{
    const char *equals = strchr(pair, '=');
    if (!equals)
        return kilter_fail(error, KILTER_ERROR_INPUT, "expected key=value, got '%s'",
                           pair);
    g_autofree char *key = g_strndup(pair, (gsize)(equals - pair));
    return planner_options_set(options, key, equals + 1, error);
}

bool options_assign(PlannerOptions *options, const Spec *spec, GError **error)
{
    for (uint32_t i = 0; i < spec->n; i++) {
        if (!spec->value[i])
            return kilter_fail(error, KILTER_ERROR_INPUT, "expected key=value, got '%s'",
                               spec->key[i]);
        if (!planner_options_set(options, spec->key[i], spec->value[i], error))
            return false;
    }
    return true;
}

static const char *fidelity_of(const char *fidelity, const Plan *plan)
{
    return fidelity ? fidelity : plan_fidelity(plan);
}

bool configuration_evaluate(const Configuration *c, Evaluation *evaluation,
                            GError **error)
{
    *evaluation = (Evaluation){.view = cluster_view(c->cluster, c->granularity)};
    evaluation->plan =
        planner_plan(c->planner, c->canonical_model, c->cluster_name, evaluation->view,
                     &c->options, &evaluation->graph, error);
    evaluation->searched = planner_searches(c->planner);
    SimOptions sim = c->options.sim;
    sim.seed = c->options.seed;
    if (evaluation->plan)
        evaluation->report =
            sim_evaluate_with(evaluation->plan, evaluation->graph, evaluation->view,
                              fidelity_of(c->fidelity, evaluation->plan), &sim, error);
    if (!evaluation->report)
        evaluation_clear(evaluation);
    return evaluation->report != NULL;
}

Plan *evaluation_read(const char *file, Graph **graph, Cluster **cluster, GError **error)
{
    g_autoptr(Graph) built = NULL;
    g_autoptr(Plan) plan = plan_read(file, &built, error);
    if (!plan)
        return NULL;
    *cluster = cluster_load(plan->cluster, error);
    if (!*cluster) {
        g_prefix_error(error, "%s: key 'cluster': ", file);
        return NULL;
    }
    *graph = g_steal_pointer(&built);
    return g_steal_pointer(&plan);
}

bool evaluation_of_plan(Plan *plan, Graph *graph, const Cluster *cluster,
                        const char *fidelity, const SimOptions *options,
                        Evaluation *evaluation, GError **error)
{
    *evaluation = (Evaluation){
        .graph = graph, .plan = plan, .view = cluster_view(cluster, plan->granularity)};
    if (evaluation->view->n_devices != plan->n_devices)
        kilter_fail(error, KILTER_ERROR_INPUT,
                    "the plan is for %u devices, cluster %s has %u at this granularity",
                    plan->n_devices, plan->cluster, evaluation->view->n_devices);
    else
        evaluation->report = sim_evaluate_with(
            plan, graph, evaluation->view, fidelity_of(fidelity, plan), options, error);
    if (!evaluation->report)
        evaluation_clear(evaluation);
    return evaluation->report != NULL;
}

void evaluation_clear(Evaluation *evaluation)
{
    g_clear_pointer(&evaluation->report, sim_report_free);
    g_clear_pointer(&evaluation->plan, plan_free);
    g_clear_pointer(&evaluation->view, cluster_view_free);
    g_clear_pointer(&evaluation->graph, graph_free);
}

char *evaluation_misfit(const Evaluation *evaluation)
{
    const SimReport *report = evaluation->report;
    const Device *device = &evaluation->view->device[report->worst_device];
    g_autofree char *missing =
        units_format((double)report->missing_bytes, QUANTITY_BYTES);
    return g_strdup_printf("device %s (%s) misses %" G_GUINT64_FORMAT " bytes (%s) at %s",
                           device->name, device->type_name, report->missing_bytes,
                           missing,
                           report->worst_instr ? report->worst_instr : "its peak");
}
