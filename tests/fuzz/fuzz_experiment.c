/* Fuzz target: a text as an experiment is refused with one line, or has configurations. */
#include "data/base/error.h"
#include "experiments/sweep/experiment.h"
#include "tests/fuzz/fuzz.h"

bool fuzz_read(const void *data, size_t size)
{
    int memory;
    g_autoptr(GError) error = NULL;
    g_autofree char *file = fuzz_file_open(data, size, &memory);
    g_autoptr(Experiment) experiment = experiment_load(file, NULL, &error);
    const ExperimentChange change = {.column = "best"};
    g_autoptr(Experiment) column = experiment_load(file, &change, NULL);
    fuzz_file_close(memory);
    fuzz_check(!experiment == !!error, "either an experiment or an error");
    if (experiment)
        fuzz_check(experiment_count(experiment) > 0, "there are configurations");
    else
        fuzz_check_refused(error, NULL);
    if (column)
        fuzz_check(experiment_count(column) > 0, "a column has configurations");
    return experiment != NULL;
}
