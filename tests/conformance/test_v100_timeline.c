/* A measured iteration of PyTorch DDP on 4 V100 (traces published with HiDup), simulated with the
 * durations of its kernels and the sizes of its gradient buckets: kernels on one stream in the
 * order of the trace; an all-reduce waits for the last kernel that had ended before it began, and
 * the updates wait for all of them. */
#include "sim/flow/flow.h"
#include "tests/support/rows.h"

typedef struct {
    double start_s, end_s, bytes;
    bool collective, update;
    uint32_t task;
} TraceKernel;

/* A barrier at the end is left out. */
static bool read_kernel(const Csv *csv, void *kernels, GError **error)
{
    (void)error;
    const double start_s = 1e-6 * test_number(csv, "start_us");
    const TraceKernel kernel = {.start_s = start_s,
                                .end_s = start_s + 1e-6 * test_number(csv, "dur_us"),
                                .collective = test_is(csv, "class", "comm"),
                                .update = test_is(csv, "phase", "update")};
    if (!test_is(csv, "phase", "other"))
        g_array_append_val((GArray *)kernels, kernel);
    return true;
}

/* Sizes of the 12 buckets of the first iteration. */
static bool read_size(const Csv *csv, void *data, GError **error)
{
    (void)error;
    GArray *kernels = data;
    if (!test_is(csv, "trace", "1x4_ddp") || !test_is(csv, "iter", "0"))
        return true;
    for (uint32_t k = 0; k < kernels->len; k++) {
        TraceKernel *kernel = &g_array_index(kernels, TraceKernel, k);
        if (kernel->collective && kernel->bytes == 0) {
            kernel->bytes = test_number(csv, "payload_bytes");
            break;
        }
    }
    return true;
}

/* --- the task graph --- */

typedef struct {
    GArray *task, *dep;
} Build;

static uint32_t add(Build *build, SimTask task, uint32_t first_dep)
{
    task.first_dep = first_dep;
    task.n_deps = build->dep->len - first_dep;
    task.instr = build->task->len;
    g_array_append_val(build->task, task);
    return task.instr;
}

static void add_kernels(Build *build, GArray *kernels, bool updates)
{
    for (uint32_t i = 0; i < kernels->len; i++) {
        TraceKernel *kernel = &g_array_index(kernels, TraceKernel, i);
        if (kernel->collective || kernel->update != updates)
            continue;
        const uint32_t first_dep = build->dep->len;
        for (uint32_t k = 0; updates && k < kernels->len; k++)
            if (g_array_index(kernels, TraceKernel, k).collective)
                g_array_append_val(build->dep,
                                   g_array_index(kernels, TraceKernel, k).task);
        kernel->task = add(build,
                           (SimTask){.kind = TASK_COMPUTE,
                                     .duration_s = kernel->end_s - kernel->start_s},
                           first_dep);
    }
}

/* In reverse of the measured order, which the streams must restore. */
static void add_collectives(Build *build, GArray *kernels)
{
    for (uint32_t i = kernels->len; i-- > 0;) {
        TraceKernel *kernel = &g_array_index(kernels, TraceKernel, i);
        if (!kernel->collective)
            continue;
        const uint32_t first_dep = build->dep->len;
        uint32_t last = 0;
        for (uint32_t k = 0; k < kernels->len; k++) {
            const TraceKernel *other = &g_array_index(kernels, TraceKernel, k);
            if (!other->collective && !other->update && other->end_s <= kernel->start_s)
                last = other->task;
        }
        g_array_append_val(build->dep, last);
        kernel->task = add(build,
                           (SimTask){.kind = TASK_COLLECTIVE,
                                     .collective = COLLECTIVE_ALL_REDUCE,
                                     .bytes = kernel->bytes,
                                     .from = UINT32_MAX,
                                     .to = UINT32_MAX,
                                     .n_fused = 1,
                                     .gradient = true},
                           first_dep);
    }
}

static SimTeams *one_team(uint32_t n_devices)
{
    SimTeams *teams = g_new0(SimTeams, 1);
    teams->n_devices = n_devices;
    teams->n_lanes = teams->n_teams = 1;
    teams->lane = g_new0(uint32_t, n_devices);
    teams->device = g_new0(uint32_t, 1);
    teams->team = g_new0(SimTeam, 1);
    teams->team[0] = (SimTeam){.n_lanes = 1,
                               .lane = g_new0(uint32_t, 1),
                               .n_sets = 1,
                               .n = n_devices,
                               .device = g_new(uint32_t, n_devices)};
    for (uint32_t j = 0; j < n_devices; j++)
        teams->team[0].device[j] = j;
    return teams;
}

/* Four devices that do the same share one lane. */
static SimTasks *make_tasks(GArray *kernels, uint32_t n_devices)
{
    SimTasks *tasks = g_new0(SimTasks, 1);
    Build build = {g_array_new(false, false, sizeof(SimTask)),
                   g_array_new(false, false, sizeof(uint32_t))};

    add_kernels(&build, kernels, false);
    add_collectives(&build, kernels);
    add_kernels(&build, kernels, true);
    tasks->n_tasks = build.task->len;
    tasks->n_deps = build.dep->len;
    tasks->task = (SimTask *)(void *)g_array_free(build.task, false);
    tasks->dep = (uint32_t *)(void *)g_array_free(build.dep, false);
    tasks->teams = one_team(n_devices);
    tasks->transfers = g_ptr_array_new();
    tasks->share = g_array_new(false, false, sizeof(double));
    tasks->bucket = g_new(uint32_t, tasks->n_tasks);
    for (uint32_t i = 0; i < tasks->n_tasks; i++)
        tasks->bucket[i] = SIM_NO_TASK;
    return tasks;
}

static SimTimeline *run(SimTasks *tasks, const ClusterView *view)
{
    g_autoptr(GError) error = NULL;
    SimOptions options;
    sim_options_init(&options);
    const SimCase sim = {.view = view, .options = &options};
    g_auto(SimFlowCase) flow = {.sim = &sim, .tasks = tasks};
    flow.streams = sim_streams_new(tasks, &options);
    flow.topology = topology_of_view(view, &error);
    assert_no_error(error);
    flow.faults = sim_faults_new(&sim, flow.topology, &error);
    assert_no_error(error);
    SimTimeline *timeline = sim_tasks_timeline(tasks, tasks->n_tasks);
    sim_flow_run(&flow, 0, true, timeline, &error);
    assert_no_error(error);
    return timeline;
}

static void test_ddp_iteration(void **state)
{
    (void)state;
    const char *trace = test_shared("measured/hidup_1x4_v100/1x4_ddp_iter.csv");
    const char *sizes =
        test_shared("measured/hidup_1x4_v100/collectives_inferred_sizes.csv");
    if (!trace || !sizes)
        skip();
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) kernels = g_array_new(false, false, sizeof(TraceKernel));
    test_rows(trace, read_kernel, kernels);
    g_autoptr(Cluster) cluster = cluster_load("hidup-1x4", &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    for (uint32_t j = 0; j < view->n_devices; j++)
        view->device[j].slowdown = 1; /* the measured durations include the slowdown */
    test_rows(sizes, read_size, kernels);
    g_autoptr(SimTimeline) timeline = run(make_tasks(kernels, view->n_devices), view);

    const double measured_s =
        g_array_index(kernels, TraceKernel, kernels->len - 1).end_s -
        g_array_index(kernels, TraceKernel, 0).start_s;
    const double simulated_s = sim_timeline_end_s(timeline);
    print_message("measured %.1f ms, simulated %.1f ms\n", 1e3 * measured_s,
                  1e3 * simulated_s);
    assert_close(simulated_s, measured_s, 0.05);
    double before_s = -1;
    uint32_t n = 0;
    for (uint32_t i = 0; i < kernels->len; i++) {
        const TraceKernel *kernel = &g_array_index(kernels, TraceKernel, i);
        if (!kernel->collective)
            continue;
        const SimSpan *span = &timeline->span[kernel->task];
        assert_true(span->start_s > before_s);
        assert_at_most(fabs(span->start_s - kernel->start_s), 0.05 * measured_s);
        before_s = span->start_s;
        n++;
    }
    assert_int_equal(n, 12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ddp_iteration),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
