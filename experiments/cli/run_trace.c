/* kilter run-trace: work that was recorded, or written down, instead of a plan. */
#include "data/formats/format.h"
#include "experiments/cli/execution.h"
#include "experiments/cli/simulate_tasks.h"

bool command_run_trace(int argc, char **argv, const CommandPlanning *how,
                       const CommandOptions *options, GError **error)
{
    const FileFormat format = format_of_file(argv[1], FORMAT_EXECUTION);
    if (format == FORMAT_CHAKRA && argc == 3)
        return command_simulate_execution(argv[1], argv[2], how, options, error);
    if (format == FORMAT_CHAKRA)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "%s: a trace runs on a cluster: expected TRACE.0.et CLUSTER",
                           argv[1]);
    if (argc == 3)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "%s: expected an execution trace of Chakra before a cluster",
                           argv[1]);
    if (how->slowdown || how->granularity || command_changes(how))
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "options of the cluster are for traces; %s is a task graph",
                           argv[1]);
    return command_simulate_tasks(argv[1], options, error);
}

bool cmd_run_trace(int argc, char **argv, GError **error)
{
    g_auto(CommandPlanning) how = {0};
    g_auto(CommandOptions) options = {0};
    const GOptionEntry entries[] = {
        {"granularity", 0, 0, G_OPTION_ARG_STRING, &how.granularity,
         "What a rank runs on: gpu (default) or machine", "LEVEL"},
        COMMAND_SLOWDOWN_ENTRY(how),
        COMMAND_CHANGE_ENTRIES(how),
        G_OPTION_ENTRY_NULL};
    const CommandSyntax syntax = {
        .name = "run-trace",
        .arguments = "TRACE.0.et CLUSTER | TASKS.json",
        .min_arguments = 1,
        .max_arguments = 2,
        .summary =
            "Simulates work that is no plan. Chakra execution traces, one file per rank, "
            "run on the first\nGPUs of a cluster: ops take the durations of the trace, "
            "collectives those of the cluster. A task\ngraph TASKS.json (computations, "
            "transfers and collectives with given times;\nsim/tasks/task_file.h "
            "describes it) runs by the rules of TAG's simulator, which give time_us and "
            "the\npeak_bytes of each device.",
        .example = "kilter simulate vgg19 hap-8 --planner dp-ev --granularity gpu "
                   "--chakra run\n"
                   "  kilter run-trace run.0.et hap-8 --scale network=2",
        .entries = entries,
    };
    return command_parse(&syntax, &argc, argv, &options, error) &&
           command_run_trace(argc, argv, &how, &options, error);
}
