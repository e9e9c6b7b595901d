/* Execution traces: written from a plan, or simulated on a cluster. */
#include "experiments/cli/execution.h"

#include "data/base/free.h"
#include "data/base/output.h"
#include "data/base/version.h"
#include "data/formats/trace/trace.h"
#include "experiments/answers.h"
#include "experiments/cli/limits.h"
#include "sim/flow/execution.h"

#include <string.h>

bool command_execution_check(const CommandExecution *to, GError **error)
{
    g_autofree char *first = to->chakra ? g_strconcat(to->chakra, ".0.et", NULL) : NULL;
    if (to->messages && !to->chakra)
        return refuse(error, "--messages is for --chakra; GOAL always has messages");
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
    return output_take(to->goal, goal_write(traces, error), error);
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

/* The largest rank of which there is a file; -1: there is none. */
static int64_t last_rank(const char *before, const char *after)
{
    g_autofree char *folder = g_path_get_dirname(before);
    g_autofree char *prefix = g_path_get_basename(before);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    const char *name;
    int64_t last = -1;
    while (dir && (name = g_dir_read_name(dir))) {
        char *end;
        const char *digits = name + strlen(prefix);
        if (!g_str_has_prefix(name, prefix) || !g_ascii_isdigit(*digits))
            continue;
        const guint64 rank = g_ascii_strtoull(digits, &end, 10);
        if (strcmp(end, after) == 0 && rank < TRACE_MAX_RANKS)
            last = MAX(last, (int64_t)rank);
    }
    return last;
}

/* One line about nodes that the traces lack. */
static void note_dangling(const char *file, const GPtrArray *traces,
                          const CommandOptions *options)
{
    uint64_t n = 0, ranks = 0;
    const Trace *first = NULL;
    pointers_each (const Trace, trace, traces) {
        n += trace->n_dangling;
        ranks += trace->n_dangling > 0;
        first = !first && trace->n_dangling > 0 ? trace : first;
    }
    if (first && !options->quiet)
        limits_note(
            "%s: %" G_GUINT64_FORMAT " dependencies of %" G_GUINT64_FORMAT
            " ranks on nodes that are not there count as done, first that of node "
            "%" G_GUINT64_FORMAT " on node %" G_GUINT64_FORMAT,
            file, n, ranks, first->dangling_node, first->dangling_id);
}

static GPtrArray *read_ranks(const char *file, GHashTable **groups,
                             const CommandOptions *options, GError **error)
{
    g_autofree char *before = NULL, *after = NULL;
    g_autoptr(GPtrArray) traces =
        g_ptr_array_new_with_free_func((GDestroyNotify)trace_free);
    const bool ranks = split_name(file, &before, &after);
    const int64_t last = ranks ? MAX(last_rank(before, after), 0) : 0;
    for (uint32_t r = 0; r <= last; r++) {
        g_autofree char *name =
            ranks ? g_strdup_printf("%s%u%s", before, r, after) : g_strdup(file);
        if (last > 0 && !g_file_test(name, G_FILE_TEST_EXISTS))
            return refused(error,
                           "%s: no such file: the trace of rank %u of 0 to %d is missing",
                           name, r, (int)last);
        Trace *trace = trace_read(name, error);
        if (!trace)
            return NULL;
        g_ptr_array_add(traces, trace);
    }
    note_dangling(file, traces, options);
    g_autofree char *listed = ranks ? g_strconcat(before, "groups.json", NULL) : NULL;
    if (listed && g_file_test(listed, G_FILE_TEST_EXISTS) &&
        !(*groups = trace_groups_read(listed, error)))
        return NULL;
    return g_steal_pointer(&traces);
}

static json_t *execution_report_json(const char *file, const char *cluster,
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
    g_autoptr(GHashTable) groups = NULL;
    g_autoptr(GPtrArray) traces = read_ranks(file, &groups, options, error);
    g_autoptr(ClusterView) view = cluster_view(
        setting.cluster, how->granularity ? setting.granularity : GRANULARITY_GPU);
    g_autoptr(SimExecutionReport) report =
        traces ? sim_execution_run(traces, groups, view, &options->planner.sim, error)
               : NULL;
    if (!report)
        return false;
    command_report(options, execution_report_json(file, cluster, report),
                   ANSWER_EXECUTION, NULL);
    return true;
}
