/* Several jobs on one network. */
#include "sim/flow/jobs.h"

#include "sim/network/transport.h"

/* A job as it is simulated: what is made of its plan, and how far it is. */
typedef struct Jobs Jobs;
typedef struct {
    Jobs *jobs;
    SimPrepared prepared;
    SimFlowCase flow;
    SimTimeline *timeline;
    SimFabric fabric;
    SimFlowRun *run;
    uint32_t ended; /* iterations */
    double ended_s; /* when the last one of them ended */
} Job;

struct Jobs {
    const ClusterView *view;
    const Topology *topology;
    SimOptions options;
    uint32_t n, iterations;
    uint32_t behind; /* jobs that have not run their iterations yet */
    Job *job;
};

static CLEAR_DEFINE(job_clear, Job, job, sim_flow_clear(&job->flow),
                    sim_timeline_free(job->timeline), sim_prepared_clear(&job->prepared));
static CLEAR_DEFINE(jobs_clear, Jobs, jobs, clear_items(jobs->job, jobs->n, job_clear),
                    g_free(jobs->job));
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Jobs, jobs_clear)

static bool jobs_check(const SimJob *job, uint32_t n, const ClusterView *view,
                       const SimOptions *options, GError **error)
{
    if (*options->fail || *options->slow_link)
        return refuse(error, "options fail and slow_link are for one plan, got %u", n);
    g_autofree bool *taken = g_new0(bool, view->n_devices);
    for (uint32_t j = 0; j < n; j++)
        for (uint32_t d = 0; d < job[j].view->n_devices; d++) {
            const uint32_t place = job[j].place[d];
            if (place >= view->n_devices || taken[place])
                return refuse(
                    error,
                    "job %u: its device %u takes place %u, expected a free one below %u",
                    j, d, place, view->n_devices);
            taken[place] = true;
        }
    return true;
}

static bool job_prepare(Job *job, const SimJob *of, Jobs *jobs, GError **error)
{
    job->jobs = jobs;
    job->fabric.view = jobs->view;
    job->fabric.device = of->place;
    if (!sim_check_steps(of->plan, error) ||
        !sim_prepare(&job->prepared, of->plan, of->graph, of->view, &jobs->options,
                     error) ||
        !sim_flow_prepare(&job->prepared.sim, &job->flow, error))
        return false;
    job->timeline = sim_tasks_timeline(job->flow.tasks, of->plan->program->n);
    return true;
}

static void job_begin(Job *job);

/* An iteration has ended; another one follows while some job is behind. */
static void job_ended(SimEngine *engine, void *context, uint64_t argument)
{
    Job *job = context;
    Jobs *jobs = job->jobs;
    (void)argument;
    if (jobs->behind == 0)
        return;
    job->ended++;
    job->ended_s = sim_engine_now(engine);
    if (job->ended == jobs->iterations)
        jobs->behind--;
    if (jobs->behind > 0 && job->ended_s > 0)
        job_begin(job);
}

static void job_begin(Job *job)
{
    sim_flow_begin(job->run, job->ended, job_ended, job);
}

/* Runs n jobs from `first` on on one network; false with an error if one does not end. */
static bool jobs_run(Jobs *jobs, uint32_t first, uint32_t n, GError **error)
{
    g_autoptr(SimEngine) engine = sim_engine_new();
    g_autoptr(SimNetwork) network = sim_network_new(engine, jobs->topology);
    bool good = true;
    jobs->behind = n;
    for (uint32_t j = first; good && j < first + n; j++) {
        Job *job = &jobs->job[j];
        job->ended = 0;
        job->ended_s = 0;
        job->fabric.network = network;
        job->run = sim_flow_open(&job->flow, job->timeline, engine, &job->fabric, error);
        good = job->run != NULL;
    }
    for (uint32_t j = first; good && j < first + n; j++)
        job_begin(&jobs->job[j]);
    if (good)
        sim_engine_run(engine);
    for (uint32_t j = first; j < first + n; j++) {
        Job *job = &jobs->job[j];
        if (good && !(job->ended_s > 0))
            good = refuse(error, "job %u: its iterations take no time, or do not end", j);
        g_clear_pointer(&job->run, sim_flow_close);
    }
    return good;
}

bool sim_jobs(const SimJob *job, uint32_t n, const ClusterView *view,
              const SimOptions *options, uint32_t iterations, SimJobTime *time,
              GError **error)
{
    g_assert(n > 0 && iterations > 0);
    if (!jobs_check(job, n, view, options, error))
        return false;
    g_autoptr(Topology) topology = topology_of_view(view, error);
    if (!topology)
        return false;
    g_auto(Jobs) jobs = {.view = view,
                         .topology = topology,
                         .options = *options,
                         .n = n,
                         .iterations = iterations,
                         .job = g_new0(Job, n)};
    jobs.options.separate = true;
    jobs.options.network = SIM_CROSSBAR; /* the plans' own networks are not used */
    for (uint32_t j = 0; j < n; j++)
        if (!job_prepare(&jobs.job[j], &job[j], &jobs, error))
            return false;
    for (uint32_t j = 0; j < n; j++) {
        if (!jobs_run(&jobs, j, 1, error))
            return false;
        time[j].alone_s = jobs.job[j].ended_s / jobs.job[j].ended;
    }
    if (!jobs_run(&jobs, 0, n, error))
        return false;
    for (uint32_t j = 0; j < n; j++) {
        time[j].iterations = jobs.job[j].ended;
        time[j].together_s = jobs.job[j].ended_s / jobs.job[j].ended;
    }
    return true;
}
