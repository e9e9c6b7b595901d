/* Fuzz target: JSON as a task graph is refused with one line, or runs to an end that is no
 * earlier than any device's work. */
#include "sim/sim.h"
#include "sim/tasks/task_file.h"
#include "tests/fuzz/fuzz.h"

static void run(const SimTaskFile *tasks)
{
    g_autoptr(GError) error = NULL;
    SimOptions options;
    sim_options_init(&options);
    g_autoptr(SimTaskFileReport) report = sim_task_file_run(tasks, &options, &error);
    fuzz_check(!report == !!error, "either a report or an error");
    if (error)
        fuzz_check_refused(error, NULL);
    if (report)
        fuzz_note("%" G_GUINT64_FORMAT, report->time_us);
    for (uint32_t i = 0; report && i < report->n_devices; i++)
        fuzz_check(report->busy_us[i] <= report->time_us, "a device ends in time");
}

bool fuzz_read(const void *data, size_t size)
{
    int memory;
    g_autoptr(GError) error = NULL;
    g_autofree char *file = fuzz_file_open(data, size, &memory);
    g_autoptr(SimTaskFile) tasks = sim_task_file_read(file, &error);
    fuzz_file_close(memory);
    fuzz_check(!tasks == !!error, "either tasks or an error");
    if (tasks)
        run(tasks);
    else
        fuzz_check_refused(error, file);
    return tasks != NULL;
}
