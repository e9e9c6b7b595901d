/* Execution traces: written from a plan, or simulated on a cluster. */
#include "experiments/cli/execution.h"

#include <string.h>

void command_execution_clear(CommandExecution *to)
{
    g_free(to->chakra);
    g_free(to->goal);
}

bool command_execution_check(const CommandExecution *to, GError **error)
{
    g_autofree char *first = to->chakra ? g_strconcat(to->chakra, ".0.et", NULL) : NULL;
    if (to->chakra && !*to->chakra)
        return kilter_fail(error, KILTER_ERROR_INPUT, "--chakra: expected a PREFIX");
    if (to->messages && !to->chakra)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "--messages is for --chakra; GOAL always has messages");
    return (!first || output_check(first, error)) &&
           (!to->goal || output_check(to->goal, error));
}

/* --- writing --- */

static bool write_rank(const char *prefix, uint32_t rank, const Trace *trace,
                       GError **error)
{
    g_autoptr(GBytes) bytes = trace_write(trace, error);
    if (!bytes)
        return false;
    g_autofree char *file = g_strdup_printf("%s.%u.et", prefix, rank);
    gsize length;
    const char *data = g_bytes_get_data(bytes, &length);
    return output_write(file, data, (gssize)length, error);
}

static bool write_chakra(const CommandExecution *to, const GPtrArray *traces,
                         const char *groups, GError **error)
{
    g_autofree char *file = g_strconcat(to->chakra, ".groups.json", NULL);
    for (uint32_t r = 0; r < traces->len; r++)
        if (!write_rank(to->chakra, r, traces->pdata[r], error))
            return false;
    return output_write(file, groups, -1, error);
}

bool command_execution_write(const CommandExecution *to, const Evaluation *evaluation,
                             const SimOptions *sim, GError **error)
{
    if (!to->chakra && !to->goal)
        return true;
    g_autoptr(SimExecution) execution = sim_execution_new(
        evaluation->plan, evaluation->graph, evaluation->view, sim, error);
    g_autofree char *groups = NULL;
    /* GOAL has messages only, which are Chakra's where these are asked for */
    const bool messages = to->messages || !to->chakra;
    g_autoptr(GPtrArray) traces =
        execution ? sim_execution_traces(execution, messages, &groups, error) : NULL;
    if (!traces || (to->chakra && !write_chakra(to, traces, groups, error)))
        return false;
    if (!to->goal)
        return true;
    if (!messages) {
        g_ptr_array_unref(traces);
        if (!(traces = sim_execution_traces(execution, true, NULL, error)))
            return false;
    }
    g_autofree char *text = goal_write(traces, error);
    return text && output_write(to->goal, text, -1, error);
}

/* --- running --- */

/* Splits a file's name into the parts before and after the rank: "run." and ".et" of run.3.et;
 * false if it has no rank. */
static bool split_name(const char *file, char **before, char **after)
{
    const char *end = g_strrstr(file, ".et");
    const char *first = end;
    while (first && first > file && g_ascii_isdigit(first[-1]))
        first--;
    if (!end || first == end || first == file || first[-1] != '.')
        return false;
    *before = g_strndup(file, (gsize)(first - file));
    *after = g_strdup(end);
    return true;
}

static GPtrArray *read_ranks(const char *file, GError **error)
{
    g_autofree char *before = NULL, *after = NULL;
    g_autoptr(GPtrArray) traces =
        g_ptr_array_new_with_free_func((GDestroyNotify)trace_free);
    const bool ranks = split_name(file, &before, &after);
    for (uint32_t r = 0; r < TRACE_MAX_RANKS; r++) {
        g_autofree char *name =
            ranks ? g_strdup_printf("%s%u%s", before, r, after) : g_strdup(file);
        if (r > 0 && (!ranks || !g_file_test(name, G_FILE_TEST_EXISTS)))
            break;
        Trace *trace = trace_read(name, error);
        if (!trace)
            return NULL;
        g_ptr_array_add(traces, trace);
    }
    return g_steal_pointer(&traces);
}

/* clang-format off */
static const char TEXT[] =
    "{traces}: {ranks} rank{ranks:s}, {nodes} nodes on {cluster}\n"
    "  iteration time {iteration_time_s:time}\n"
    "[*rank_times<16:  rank {#:-5} computes {compute_s:9time}, communicates {communication_s:9time}\n]"
    "[{?rank_times>16}              and {rank_times:.16over} more\n]";
/* clang-format on */

static json_t *report_json(const char *file, const char *cluster,
                           const SimExecutionReport *report)
{
    json_t *ranks = json_array();
    for (uint32_t r = 0; r < report->n_ranks; r++)
        json_array_append_new(ranks,
                              json_pack("{s:f, s:f}", "compute_s", report->compute_s[r],
                                        "communication_s", report->comm_s[r]));
    return json_pack("{s:s, s:s, s:i, s:I, s:f, s:o, s:s}", "traces", file, "cluster",
                     cluster, "ranks", (int)report->n_ranks, "nodes",
                     (json_int_t)report->n_nodes, "iteration_time_s", report->time_s,
                     "rank_times", ranks, "version", KILTER_VERSION);
}

bool command_simulate_execution(const char *file, const char *cluster,
                                const CommandPlanning *how, const CommandOptions *options,
                                GError **error)
{
    g_auto(CommandSetting) setting = {0};
    if (!command_setting(how, cluster, &setting, error))
        return false;
    g_autoptr(GPtrArray) traces = read_ranks(file, error);
    g_autoptr(ClusterView) view = cluster_view(
        setting.cluster, how->granularity ? setting.granularity : GRANULARITY_GPU);
    g_autoptr(SimExecutionReport) report =
        traces ? sim_execution_run(traces, view, &options->planner.sim, error) : NULL;
    if (!report)
        return false;
    command_report(options, report_json(file, cluster, report), TEXT, NULL);
    return true;
}
