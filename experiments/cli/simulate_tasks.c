/* kilter simulate TASKS.json: a task graph of given times, run by the rules of TAG's simulator. */
#include <stdio.h>

#include "experiments/cli/simulate_tasks.h"

static json_t *numbers(const uint64_t *number, uint32_t n)
{
    json_t *array = json_array();
    for (uint32_t i = 0; i < n; i++)
        json_array_append_new(array, json_integer((json_int_t)number[i]));
    return array;
}

static json_t *report_json(const char *file, const SimTaskFileReport *report)
{
    return json_pack("{s:s, s:I, s:I, s:I, s:f, s:o, s:o, s:I, s:I, s:s}", "tasks", file,
                     "n_tasks", (json_int_t)report->n_tasks, "n_devices",
                     (json_int_t)report->n_devices, "time_us",
                     (json_int_t)report->time_us, "iteration_time_s",
                     (double)report->time_us / G_USEC_PER_SEC, "peak_bytes",
                     numbers(report->peak_bytes, report->n_devices), "busy_us",
                     numbers(report->busy_us, report->n_devices), "collective_us",
                     (json_int_t)report->collective_us, "transfer_us",
                     (json_int_t)report->transfer_us, "version", KILTER_VERSION);
}

static void print_text(const char *file, const SimTaskFileReport *report)
{
    printf("%s: %u tasks on %u devices take %" G_GUINT64_FORMAT " us\n", file,
           report->n_tasks, report->n_devices, report->time_us);
    for (uint32_t j = 0; j < report->n_devices; j++) {
        g_autofree char *peak =
            units_format((double)report->peak_bytes[j], QUANTITY_BYTES);
        printf("  device %-4u computes %" G_GUINT64_FORMAT
               " us, peak %s (%" G_GUINT64_FORMAT " bytes)\n",
               j, report->busy_us[j], peak, report->peak_bytes[j]);
    }
}

bool command_simulate_tasks(const char *file, const CommandOptions *options,
                            GError **error)
{
    g_autoptr(SimTaskFile) tasks = sim_task_file_read(file, error);
    g_autoptr(SimTaskFileReport) report =
        tasks ? sim_task_file_run(tasks, &options->planner.sim, error) : NULL;
    if (!report) {
        if (tasks)
            g_prefix_error(error, "%s: ", file);
        return false;
    }
    if (options->json)
        command_print_json(report_json(file, report));
    else if (!options->quiet)
        print_text(file, report);
    return true;
}
