/* Fuzz target: a CSV file of measured iterations is refused with one line, or makes trials. */
#include "experiments/calibration/trial_file.h"
#include "tests/fuzz/fuzz.h"

bool fuzz_read(const void *data, size_t size)
{
    static Cluster *cluster =
        NULL; /* made once, since a fuzzer calls this a million times */
    g_autoptr(GError) error = NULL;
    g_autofree char *text = g_strndup(data, size);
    if (!cluster)
        cluster = cluster_load("hap-8", NULL);
    g_autoptr(GArray) trials = trial_file_parse("any.csv", text, size, cluster, &error);
    fuzz_check(!trials == !!error, "either trials or an error");
    if (!trials)
        fuzz_check_refused(error, "any.csv");
    return trials && trials->len > 0;
}
