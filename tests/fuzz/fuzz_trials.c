/* Fuzz target: a CSV file of measured iterations is refused with one line, or makes trials. */
#include <string.h>

#include "experiments/calibration/trial_file.h"
#include "tests/fuzz/fuzz.h"

#define LINK "{latency: 65 us, bandwidth: 1.3 GB/s}"
/* Each trial copies it, so it is short. */
static const char CLUSTER[] =
    "name: c\ndevice_types: [{name: v100, rate: 10 TFLOP/s, memory: 16 GiB, source: s}]\n"
    "machines: [{name: a, count: 2, type: v100, gpus: 1, source: s}]\n"
    "collectives: {all_reduce: " LINK ", all_gather: " LINK ", grouped_all_gather: " LINK
    ", reduce_scatter: " LINK ", grouped_reduce_scatter: " LINK ", all_to_all: " LINK
    ", source: s}\n";

bool fuzz_read(const void *data, size_t size)
{
    /* made once, since a fuzzer calls this a million times */
    static Cluster *cluster = NULL;
    static Sheets *sheets = NULL;
    g_autoptr(GError) error = NULL;
    g_autofree char *text = g_strndup(data, size);
    if (!cluster)
        cluster = cluster_parse("c", CLUSTER, strlen(CLUSTER), NULL);
    if (!sheets)
        sheets = sheets_load(NULL);
    g_autoptr(GArray) trials =
        trial_file_parse("any.csv", text, size, cluster, sheets, &error);
    fuzz_check(!trials == !!error, "either trials or an error");
    if (!trials)
        fuzz_check_refused(error, "any.csv");
    for (uint32_t i = 0; trials && i < trials->len; i++) {
        const Trial *trial = &g_array_index(trials, Trial, i);
        fuzz_note("%s %s %s %s %u %d %.12g %.12g", trial->name, trial->model,
                  trial->planner, trial->options, cluster_gpus(trial->cluster),
                  trial->failed, trial->measured_s, trial->measured_bytes);
    }
    return trials && trials->len > 0;
}
