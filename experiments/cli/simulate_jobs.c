/* kilter simulate A.json B.json --cluster CLUSTER: several plans on one network. */
#include "experiments/cli/simulate_jobs.h"

#include "data/plan/fidelity.h"
#include "experiments/answers/jobs.h"
#include "sim/flow/jobs.h"

enum { ITERATIONS = 10 };

typedef struct {
    uint32_t n;
    char **file;
    Evaluation *plan;
    uint32_t **place;
    SimJobTime *time;
} Side;

static void side_clear(Side *side)
{
    for (uint32_t i = 0; i < side->n; i++) {
        evaluation_clear(&side->plan[i]);
        g_free(side->place[i]);
    }
    g_free(side->plan);
    g_free(side->place);
    g_free(side->time);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Side, side_clear)

static bool side_read(Side *side, const CommandOptions *options, GError **error)
{
    const CommandPlanning how = {0};
    for (uint32_t i = 0; i < side->n; i++) {
        char *argv[] = {(char *)"simulate", side->file[i], NULL};
        if (!command_check_plan_file(side->file[i], &how, options, error) ||
            !command_evaluate(&how, 2, argv, fidelity_name(FIDELITY_STAGE), options,
                              &side->plan[i], error))
            return false;
    }
    return true;
}

static bool side_run(Side *side, const ClusterView *view, uint32_t iterations,
                     const CommandOptions *options, GError **error)
{
    SimOptions sim = options->planner.sim;
    sim.seed = options->planner.seed;
    g_autofree SimJob *job = g_new0(SimJob, side->n);
    for (uint32_t i = 0; i < side->n; i++)
        job[i] = (SimJob){side->plan[i].plan, side->plan[i].graph, side->plan[i].view,
                          side->place[i]};
    return sim_jobs(job, side->n, view, &sim, iterations, side->time, error);
}

/* The machines that a plan's devices are placed on. */
static json_t *machines_json(const ClusterView *view, const uint32_t *place, uint32_t n)
{
    json_t *names = json_array();
    g_autofree bool *named = g_new0(bool, view->cluster->n_machines);
    for (uint32_t d = 0; d < n; d++) {
        const uint32_t machine = view->device[place[d]].machine;
        if (!named[machine])
            json_array_append_new(names,
                                  json_string(view->cluster->machine[machine].name));
        named[machine] = true;
    }
    return names;
}

static json_t *side_json(const Side *side, const ClusterView *view)
{
    json_t *jobs = json_array();
    for (uint32_t i = 0; i < side->n; i++) {
        const Evaluation *plan = &side->plan[i];
        const SimJobTime *time = &side->time[i];
        json_array_append_new(
            jobs, json_pack("{s:s, s:s, s:i, s:o, s:f, s:f, s:f, s:i}", "plan",
                            side->file[i], "model", plan->plan->model, "devices",
                            (int)plan->view->n_devices, "machines",
                            machines_json(view, side->place[i], plan->view->n_devices),
                            "alone_s", time->alone_s, "together_s", time->together_s,
                            "slowdown", time->together_s / time->alone_s, "iterations",
                            (int)time->iterations));
    }
    return json_pack("{s:s, s:o}", "cluster", view->cluster->name, "jobs", jobs);
}

/* clang-format off */
static const char TEXT[] =
    "{jobs:count} plans on {cluster}, one iteration by flow:\n"
    "       alone    together  slowdown  plan\n"
    "[*jobs:{alone_s:12time}{together_s:12time}{slowdown:10.3f}  {plan} on {machines:names}\n]";
/* clang-format on */

bool command_simulate_jobs(char **file, uint32_t n, const char *cluster,
                           const char *order, uint32_t iterations,
                           const CommandOptions *options, GError **error)
{
    g_assert(n > 0 && n <= JOBS_MOST);
    if (order && !command_check_choice("--place", order, JOBS_ORDER_NAMES, error))
        return false;
    g_autoptr(Cluster) shared = cluster_load(cluster, error);
    if (!shared)
        return false;
    g_auto(Side) side = {.n = n,
                         .file = file,
                         .plan = g_new0(Evaluation, n),
                         .place = g_new0(uint32_t *, n),
                         .time = g_new0(SimJobTime, n)};
    if (!side_read(&side, options, error))
        return false;
    g_autoptr(ClusterView) view = cluster_view(shared, side.plan[0].view->granularity);
    const bool spread = g_strcmp0(order, JOBS_ORDER_NAMES[JOBS_SPREAD]) == 0;
    if (!jobs_place(side.plan, file, n, view, spread ? JOBS_SPREAD : JOBS_PACKED,
                    side.place, error) ||
        !side_run(&side, view, iterations > 0 ? iterations : ITERATIONS, options, error))
        return false;
    command_report(options, side_json(&side, view), TEXT, NULL);
    return true;
}
