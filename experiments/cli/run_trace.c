/* kilter run-trace: work that was recorded, or written down, instead of a plan. */
#include "data/base/json.h"
#include "data/base/version.h"
#include "data/formats/format.h"
#include "experiments/answers.h"
#include "experiments/cli/command.h"
#include "experiments/cli/execution.h"
#include "sim/tasks/task_file.h"

/* --- task graphs --- */

static json_t *numbers(const uint64_t *number, uint32_t n)
{
    return json_list(places_before(i, n), json_integer((json_int_t)number[i]));
}

static json_t *simulate_tasks_devices_json(const SimTaskFileReport *report)
{
    json_t *devices = json_array();
    for (uint32_t j = 0; j < report->n_devices; j++)
        json_array_append_new(
            devices, json_pack("{s:I, s:I}", "busy_us", (json_int_t)report->busy_us[j],
                               "peak_bytes", (json_int_t)report->peak_bytes[j]));
    return devices;
}

/* Simulates the file under the simulation's options and prints time and peaks. */
static bool command_simulate_tasks(const char *file, const CommandOptions *options,
                                   GError **error)
{
    g_autoptr(SimTaskFile) tasks = sim_task_file_read(file, error);
    g_autoptr(SimTaskFileReport) report =
        tasks ? sim_task_file_run(tasks, &options->planner.sim, error) : NULL;
    if (!report) {
        if (tasks)
            kilter_prefix(error, "%s: ", file);
        return false;
    }
    json_t *answer = json_pack(
        "{s:s, s:I, s:I, s:I, s:f, s:o, s:o, s:I, s:I, s:s, s:o}", "tasks", file,
        "n_tasks", (json_int_t)report->n_tasks, "n_devices",
        (json_int_t)report->n_devices, "time_us", (json_int_t)report->time_us,
        "iteration_time_s", (double)report->time_us / G_USEC_PER_SEC, "peak_bytes",
        numbers(report->peak_bytes, report->n_devices), "busy_us",
        numbers(report->busy_us, report->n_devices), "collective_us",
        (json_int_t)report->collective_us, "transfer_us", (json_int_t)report->transfer_us,
        "version", KILTER_VERSION, "devices", simulate_tasks_devices_json(report));
    command_report(options, answer, ANSWER_RUN_TRACE, NULL);
    return true;
}

/* clang-format off */
#define RUN_TRACE_OPTIONS(X) \
    X(GRANULARITY, how)      \
    X(SLOWDOWN, how)         \
    X(CHANGED, how)
/* clang-format on */
COMMAND_OPTIONS(Own, run_trace_options, RUN_TRACE_OPTIONS)

COMMAND(run_trace, Own, RUN_TRACE_OPTIONS, 0)
{
    const FileFormat format = format_of_file(argv[1], FORMAT_EXECUTION);
    if (format == FORMAT_CHAKRA && argc == 3)
        return command_simulate_execution(argv[1], argv[2], &own->how, options, error);
    if (format == FORMAT_CHAKRA)
        return refuse(error, "%s: a trace runs on a cluster: expected TRACE.0.et CLUSTER",
                      argv[1]);
    if (argc == 3)
        return refuse(error, "%s: expected an execution trace of Chakra before a cluster",
                      argv[1]);
    if (own->how.slowdown || own->how.granularity || command_changes(&own->how))
        return refuse(error, "options of the cluster are for traces; %s is a task graph",
                      argv[1]);
    return command_simulate_tasks(argv[1], options, error);
}
