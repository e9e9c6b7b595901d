/* Evaluation of a plan by a fidelity, and its report. */
#include "sim/evaluate.h"
#include "data/base/free.h"
#include "data/program/period.h"
#include "sim/flow/memory_timeline.h"
#include "sim/tasks/buffers.h"
#include "sim/tasks/layer_times.h"

#include <math.h>
#include <string.h>

#define EVALUATOR(name, word, abilities, words) sim_##word,
static SimEvaluator *const EVALUATORS[] = {FIDELITY_TABLE(EVALUATOR)};

double *sim_plan_shares(const Plan *plan, const SimLinear *linear)
{
    const uint32_t n = plan->n_devices;
    double *share = g_new(double, (size_t)linear->n_splits *n);
    items_at (const SimSplit, key, k, linear->split, linear->n_splits) {
        const Split *split =
            plan_find_split(plan, &(Split){.segment = key->segment, .units = key->units});
        for (uint32_t j = 0; j < n; j++)
            share[k * n + j] = split ? (double)split->count[j] / split->units
                                     : plan->ratio[key->segment * n + j];
    }
    return share;
}

/* Peak bytes of one GPU of a device and the instruction there: at any time if the
 * fidelity recorded memory, else at any point of the program. */
static double peak_of(const SimCase *sim, const SimReport *report,
                      const SimMemory *memory, uint32_t device, uint32_t *instr)
{
    g_assert(device < report->n_devices);
    const SimTimeline *timeline = report->timeline;
    const SimMemoryStep *step =
        timeline ? sim_timeline_memory_peak(timeline, timeline->lane[device]) : NULL;
    uint32_t point;
    if (step || !memory) {
        *instr = step ? step->instr : 0;
        return step ? step->bytes : 0;
    }
    const double peak = sim_memory_peak(memory, sim->view, sim->share, device, &point);
    *instr = memory->n_points ? memory->instr[point] : 0;
    return peak;
}

/* Peaks of the devices of a program with groups; devices of one lane have the same peak. */
static void report_group_memory(const SimCase *sim, SimReport *report)
{
    const SimTimeline *timeline = report->timeline;
    g_autoptr(PlanBuffers) buffers = timeline->memory ? NULL : sim_held_buffers(sim);
    g_autofree double *peak = g_new(double, timeline->n_lanes);
    g_autofree uint32_t *instr = g_new0(uint32_t, timeline->n_lanes);
    g_autofree uint32_t *first = g_new0(uint32_t, timeline->n_lanes);
    for (uint32_t j = report->n_devices; j-- > 0;)
        first[timeline->lane[j]] = j;
    for (uint32_t l = 0; !buffers && l < timeline->n_lanes; l++)
        peak[l] = peak_of(sim, report, NULL, first[l], &instr[l]);
    if (buffers &&
        !sim_buffers_peaks(sim, buffers, first, timeline->n_lanes, peak, instr))
        report->iteration_time_s = NAN;
    values_at (const uint32_t, l, j, timeline->lane, report->n_devices) {
        report->memory_bytes[j] = sim_whole_bytes(peak[l]);
        report->memory_instr[j] = instr[l];
    }
}

static void report_spmd_memory(const SimCase *sim, SimReport *report)
{
    /* where the fidelity recorded memory nothing else is read */
    g_autoptr(SimMemory) memory =
        report->timeline && report->timeline->memory ? NULL : sim_memory_of(sim);
    g_auto(SimKinds) kinds = sim_kinds(sim->view, sim->linear->n_splits, sim->share);
    for (uint32_t j = 0; j < report->n_devices; j++) {
        const uint32_t first = kinds.first[kinds.of[j]];
        if (first < j && !report->timeline) {
            report->memory_bytes[j] = report->memory_bytes[first];
            report->memory_instr[j] = report->memory_instr[first];
        } else {
            report->memory_bytes[j] = sim_whole_bytes(
                peak_of(sim, report, memory, j, &report->memory_instr[j]));
        }
    }
}

/* The memory of hosts that the devices take, and whether it is there. */
static void report_hosts(const SimCase *sim, SimReport *report)
{
    const Cluster *cluster = sim->view->cluster;
    g_autoptr(PlanBuffers) buffers = sim_host_buffers(sim);
    g_autofree double *bytes = g_new0(double, cluster->n_machines);
    for (uint32_t j = 0; j < sim->view->n_devices; j++)
        bytes[sim->view->device[j].machine] += sim_host_bytes(sim, buffers, j);
    double worst = -INFINITY;
    for (uint32_t m = 0; m < cluster->n_machines; m++) {
        const double over = bytes[m] - (double)cluster->machine[m].host_memory_bytes;
        if (over <= worst)
            continue;
        worst = over;
        report->host = m;
        report->host_bytes = (uint64_t)ceil(bytes[m]);
    }
    report->host_missing_bytes = worst > 0 ? (uint64_t)ceil(worst) : 0;
    report->feasible &= worst <= 0;
}

/* Whether the peaks fit, the worst device, and the instruction at its peak. */
static void report_fit(const SimCase *sim, SimReport *report)
{
    const Program *program = sim->plan->program;
    const ProgramBlocks *blocks = sim->options->blocks;
    double worst = -INFINITY;
    for (uint32_t j = 0; j < report->n_devices; j++) {
        const double over =
            (double)report->memory_bytes[j] - (double)cluster_view_capacity(sim->view, j);
        if (over > worst) {
            worst = over;
            report->worst_device = j;
        }
    }
    report->feasible = worst <= 0;
    report->missing_bytes = report->feasible ? 0 : (uint64_t)worst;
    const uint32_t at = report->memory_instr[report->worst_device];
    if (program->n > 0)
        report->worst_instr = instr_text(
            &program->instr[blocks ? program_blocks_place(blocks, at) : at], sim->graph);
}

/* Peaks of all devices, whether they fit, and the worst device. */
static void report_memory(const SimCase *sim, SimReport *report)
{
    if (sim->linear)
        report_spmd_memory(sim, report);
    else
        report_group_memory(sim, report);
    for (uint32_t j = 0; j < report->n_devices; j++)
        report->memory_bytes[j] += (uint64_t)ceil(
            sim_runtime_bytes(sim->runtime, sim->plan, &sim->view->device[j],
                              (double)report->memory_bytes[j]));
    report_fit(sim, report);
    if (sim->plan->strategy.offload)
        report_hosts(sim, report);
}

static SimReport *new_report(const SimCase *sim, const char *fidelity)
{
    const SimLinear *linear = sim->linear;
    const uint32_t n = sim->view->n_devices;
    const uint32_t n_stages = linear ? linear->n_stages : sim->parts->layout.n_groups;
    SimReport *report = g_new0(SimReport, 1);
    report->fidelity = fidelity;
    report->runtime = sim->runtime ? g_intern_string(sim->runtime->name) : "";
    report->n_devices = n;
    report->n_stages = n_stages;
    report->busy_s = g_new0(double, n);
    report->comm_busy_s = g_new0(double, n);
    report->idle_s = g_new0(double, n);
    report->hidden_s = g_new0(double, n);
    report->memory_bytes = g_new0(uint64_t, n);
    report->memory_instr = g_new0(uint32_t, n);
    report->stage = g_new0(SimStageReport, n_stages);
    for (uint32_t i = 0; i < n_stages; i++) {
        report->stage[i].first = linear ? linear->stage[i].first : 0;
        report->stage[i].n = linear ? linear->stage[i].n : sim->plan->program->n;
    }
    return report;
}

bool sim_check_plan(const Plan *plan, const Graph *graph, const ClusterView *view,
                    const SimOptions *options, GError **error)
{
    if (plan->n_devices != view->n_devices)
        return refuse(error, "the plan is for %u devices, the cluster has %u",
                      plan->n_devices, view->n_devices);
    return plan_check_groups(plan, error) &&
           (options->blocks || program_check(plan->program, graph, error));
}

void sim_report_times(SimReport *report, SimTally *tally, const SimPath *path,
                      const uint32_t *lane, bool successive)
{
    g_assert(path->end_s >= 0);
    g_autofree SimBreakdown *of = g_new(SimBreakdown, tally->n_lanes);
    uint32_t slowest = 0;
    sim_tally_breakdown(tally, path->end_s, of);
    sim_tally_stages(tally, path->end_s, report);
    report->iteration_time_s =
        successive ? sim_tally_period_s(tally, &slowest) : path->end_s;
    for (uint32_t j = 0; j < report->n_devices; j++) {
        report->busy_s[j] = of[lane[j]].compute_s;
        report->comm_busy_s[j] = of[lane[j]].exposed_s;
        report->hidden_s[j] = of[lane[j]].hidden_s;
    }
    report->comm_s = path->comm_s;
    report->comp_s = path->comp_s;
    report->launch_s = path->launch_s;
    if (report->iteration_time_s < path->end_s) { /* on the device that sets the pace */
        report->comm_s = fmin(of[slowest].exposed_s, report->iteration_time_s);
        report->comp_s = report->iteration_time_s - report->comm_s;
        report->launch_s = 0;
    }
}

/* Times from the timeline; `stage` has those of an SPMD program's stages. */
static void report_times(const SimCase *sim, SimReport *report)
{
    const SimTimeline *timeline = report->timeline;
    const bool staged = !sim->linear || fidelity_can(report->fidelity, FIDELITY_STREAMS);
    g_autoptr(SimTally) tally =
        sim_timeline_tally(timeline, sim->plan->program, staged ? report->n_stages : 0);
    SimPath along = {.end_s = sim_timeline_end_s(timeline)};
    uint32_t n_path;
    g_autofree uint32_t *path = sim_timeline_critical_path(timeline, &n_path);
    for (uint32_t i = 0; i < n_path; i++)
        sim_path_add(&along, &timeline->span[path[i]]);
    sim_report_times(report, tally, &along, timeline->lane,
                     sim->plan->program->successive);
    report->iteration_time_s += timeline->lost_s;
}

CLEAR_DEFINE(sim_prepared_clear, SimPrepared, prepared,
             let_go(prepared->layers, sim_layer_times_free),
             let_go(prepared->share, g_free), let_go(prepared->linear, sim_linear_free),
             let_go(prepared->parts, sim_parts_free),
             let_go(prepared->priced, cluster_view_free),
             let_go(prepared->loaded, runtime_free),
             let_go(prepared->measured, cluster_view_free));

/* The view on which the ops have the times that the graph and the options say, in `prepared`. */
static bool prepare_view(SimPrepared *prepared, const Plan *plan, const Graph *graph,
                         const ClusterView *view, const SimOptions *options,
                         GError **error)
{
    if (graph_has_times(graph))
        view = prepared->measured = cluster_view_measured(view);
    const Runtime *runtime = view->runtime;
    const char *name = *options->runtime ? options->runtime : plan->runtime;
    if (name && !(runtime && strcmp(runtime->name, name) == 0) &&
        !(runtime = prepared->loaded = runtime_load(name, error)))
        return false;
    if (!sim_options_check(options, graph, view, error))
        return false;
    prepared->priced = sim_options_view(options, runtime, view);
    prepared->sim.view = prepared->priced ? prepared->priced : view;
    prepared->sim.runtime = runtime;
    return true;
}

bool sim_prepare(SimPrepared *prepared, const Plan *plan, const Graph *graph,
                 const ClusterView *view, const SimOptions *options, GError **error)
{
    SimCase *sim = &prepared->sim;
    *prepared = (SimPrepared){.sim = {.plan = plan, .graph = graph, .options = options}};
    if (!sim_check_plan(plan, graph, view, options, error) ||
        !cluster_view_check_times(view, graph, error) ||
        !prepare_view(prepared, plan, graph, view, options, error) ||
        !(sim->parts = prepared->parts = sim_parts_new(plan, graph, error)))
        return false;
    if (program_is_spmd(plan->program)) {
        sim->linear = prepared->linear = sim_linear(plan->program, graph, sim->view,
                                                    plan->segment, plan->bucket_bytes);
        sim->share = prepared->share = sim_plan_shares(plan, sim->linear);
    }
    if (*options->layer_times)
        sim->layers = prepared->layers =
            sim_layer_times_new(options->layer_times, sim->parts, sim->view, error);
    return sim->layers || !*options->layer_times;
}

/* Whether the fidelity takes the plan and the options. */
static bool check_takes(const char *fidelity, const Plan *plan, const SimOptions *options,
                        GError **error)
{
    g_autofree char *lanes = fidelity_list(FIDELITY_LANES),
                    *groups = fidelity_list(FIDELITY_GROUPS);
    if (*options->layer_times && !fidelity_can(fidelity, FIDELITY_LANES))
        return refuse(error, "option 'layer_times': expected fidelity %s, got %s", lanes,
                      fidelity);
    return fidelity_can(fidelity, FIDELITY_GROUPS) || program_is_spmd(plan->program) ||
           refuse(error,
                  "the %s fidelity is for programs of one group and one microbatch; "
                  "expected %s",
                  fidelity, groups);
}

bool sim_check_steps(const Plan *plan, GError **error)
{
    return plan->strategy.sync_every < 2 ||
           refuse(error,
                  "expected a plan with sync_every=1 here, got one whose replicas "
                  "exchange every %u steps",
                  plan->strategy.sync_every);
}

/* Runs one step. */
static bool run_step(const SimCase *sim, SimReport *report, GError **error)
{
    if (!EVALUATORS[fidelity_of(report->fidelity)](sim, report, error))
        return false;
    if (report->timeline && !sim->options->blocks)
        report_times(sim, report);
    return true;
}

/* Makes the times of a step with an exchange the mean ones of its round: the other steps of local
 * SGD (Stich 2019; Douillard et al. 2023, DiLoCo, Algorithm 1) leave out the all-reduces over
 * replicas. What is exchanged has the bytes of the gradients. */
static bool average_round(const SimCase *sim, SimReport *report, GError **error)
{
    const double every = sim->plan->strategy.sync_every;
    SimCase alone = *sim;
    alone.alone = true;
    g_autoptr(SimReport) step = new_report(sim, report->fidelity);
    if (!run_step(&alone, step, error))
        return false;
    double *mean[] = {&report->iteration_time_s, &report->comm_s, &report->comp_s,
                      &report->launch_s},
           *also[] = {&step->iteration_time_s, &step->comm_s, &step->comp_s,
                      &step->launch_s},
           *of[] = {report->busy_s, report->comm_busy_s, report->hidden_s},
           *and[] = {step->busy_s, step->comm_busy_s, step->hidden_s};
    for (uint32_t k = 0; k < G_N_ELEMENTS(mean); k++)
        *mean[k] = *also[k] + (*mean[k] - *also[k]) / every;
    for (uint32_t k = 0; k < G_N_ELEMENTS(of); k++)
        for (uint32_t j = 0; j < report->n_devices; j++)
            of[k][j] = and[k][j] + (of[k][j] - and[k][j]) / every;
    return true;
}

/* US dollars of a step for what is sent between regions, in the mean of its round. */
static bool find_toll(const SimCase *sim, double *toll, GError **error)
{
    double alone_toll = 0;
    SimCase alone = *sim;
    alone.alone = true;
    if (!sim_flow_toll(sim, toll, error) || (sim->plan->strategy.sync_every > 1 &&
                                             !sim_flow_toll(&alone, &alone_toll, error)))
        return false;
    if (sim->plan->strategy.sync_every > 1)
        *toll = alone_toll + (*toll - alone_toll) / sim->plan->strategy.sync_every;
    return true;
}

SimReport *sim_evaluate_part(const Plan *plan, const Graph *graph,
                             const ClusterView *view, const char *fidelity,
                             const SimOptions *options, GError **error)
{
    fidelity = fidelity_find(fidelity, error);
    if (!fidelity || !check_takes(fidelity, plan, options, error))
        return NULL;
    g_auto(SimPrepared) prepared = {0};
    if (!sim_prepare(&prepared, plan, graph, view, options, error))
        return NULL;
    const SimCase *sim = &prepared.sim;
    g_autoptr(SimReport) report = new_report(sim, fidelity);
    report->kernels = prepared.priced != NULL;
    if (!run_step(sim, report, error) ||
        (plan->strategy.sync_every > 1 && !average_round(sim, report, error)))
        return NULL;
    for (uint32_t j = 0; j < report->n_devices; j++)
        report->idle_s[j] =
            fmax(report->iteration_time_s - report->busy_s[j] - report->comm_busy_s[j],
                 plan->program->successive ? 0 : -INFINITY);
    report->feasible = true;
    if (options->time_only ||
        (options->enough_s > 0 && report->iteration_time_s >= options->enough_s))
        return g_steal_pointer(&report);
    report_memory(sim, report);
    if (!find_toll(sim, &report->toll, error))
        return NULL;
    return g_steal_pointer(&report);
}

SimReport *sim_evaluate_with(const Plan *plan, const Graph *graph,
                             const ClusterView *view, const char *fidelity,
                             const SimOptions *options, GError **error)
{
    g_autoptr(Program) all =
        plan->program->left_out > 0 ? program_copy(plan->program) : NULL;
    Plan whole = *plan;
    if (all)
        program_whole(&all);
    whole.program = all ? all : plan->program;
    return sim_evaluate_part(&whole, graph, view, fidelity, options, error);
}

SimReport *sim_evaluate(const Plan *plan, const Graph *graph, const ClusterView *view,
                        const char *fidelity, GError **error)
{
    SimOptions options;
    sim_options_init(&options);
    return sim_evaluate_with(plan, graph, view, fidelity, &options, error);
}

bool sim_record_memory(const Plan *plan, const Graph *graph, const ClusterView *view,
                       SimReport *report, GError **error)
{
    g_auto(SimPrepared) prepared = {0};
    SimOptions options;
    sim_options_init(&options);
    options.runtime = report->runtime;
    if (!report->timeline->memory) {
        if (!sim_prepare(&prepared, plan, graph, view, &options, error))
            return false;
        sim_memory_record(&prepared.sim, report->timeline);
    }
    return true;
}

uint32_t sim_busiest(const SimReport *report)
{
    uint32_t most = 0;
    for (uint32_t j = 1; j < report->n_devices; j++)
        if (report->busy_s[j] > report->busy_s[most])
            most = j;
    return most;
}

FREE_DEFINE(sim_report_free, SimReport, report,
            free_each(report->busy_s, report->comm_busy_s, report->idle_s,
                      report->hidden_s, report->memory_bytes, report->memory_instr,
                      report->stage, report->worst_instr),
            sim_timeline_free(report->timeline));
