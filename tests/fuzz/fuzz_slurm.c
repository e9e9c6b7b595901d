/* Fuzz target: any bytes as a list of Slurm's nodes are either refused with one line, or nodes
 * of which a cluster can be made. */
#include <string.h>

#include "data/data.h"
#include "tests/fuzz/fuzz.h"

bool fuzz_read(const void *data, size_t size)
{
    static Sheets *sheets =
        NULL; /* made once, since a fuzzer calls this a million times */
    if (!sheets)
        sheets = sheets_load(NULL);
    fuzz_check(sheets != NULL, "the bundled data sheets");
    g_autofree char *text = g_strndup((const char *)data, size);
    g_autoptr(GError) error = NULL;
    g_autoptr(SlurmFile) slurm = slurm_parse("any.txt", text, &error);
    fuzz_check(!slurm == !!error, "either nodes or an error");
    if (!slurm) {
        fuzz_check_refused(error, "any.txt");
        return false;
    }
    fuzz_check(slurm->node->len > 0 && slurm->node->len <= SLURM_MOST_NODES, "nodes");
    fuzz_check(slurm_gpus(slurm) > 0, "GPUs");
    fuzz_note("%u nodes, %u GPUs", slurm->node->len, slurm_gpus(slurm));
    if (slurm->node->len > 20 || size % 16 != 0) /* a cluster reads all data sheets */
        return true;
    const MachineImport import = {.name = "any",
                                  .sheet = sheets_device(sheets, "t4", NULL),
                                  .nic = sheets_link(sheets, "eth-10", NULL)};
    g_autoptr(Cluster) cluster = slurm_cluster(slurm, sheets, &import, &error);
    fuzz_check(!cluster == !!error, "either a cluster or an error");
    fuzz_check(!cluster || cluster_gpus(cluster) == slurm_gpus(slurm), "all GPUs");
    if (!cluster)
        fuzz_check_refused(error, NULL);
    return true;
}
