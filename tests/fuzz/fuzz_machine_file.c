/* Fuzz target: any bytes as a topology file are either refused with one line, or a machine of which
 * a cluster can be made that is written and read again. */
#include <string.h>

#include "data/data.h"
#include "tests/fuzz/fuzz.h"

static void check_cluster(const MachineFile *machine, const Sheets *sheets)
{
    g_autoptr(GError) error = NULL;
    const MachineImport import = {.name = "any",
                                  .sheet = sheets_device(sheets, "h100", NULL),
                                  .nic = sheets_link(sheets, "ib-ndr", NULL),
                                  .nics = 1,
                                  .nodes = 2};
    g_autoptr(Cluster) cluster = machine_file_cluster(machine, sheets, &import, &error);
    fuzz_check(cluster != NULL, "a cluster");
    fuzz_check(cluster_gpus(cluster) == 2 * machine->n_gpus, "all GPUs");
    if (!(machine_file_inner(machine, sheets, import.sheet) > 0))
        return; /* links without bandwidth: reported when the file is used */
    g_autofree char *text = cluster_write(cluster);
    fuzz_note("%s", text);
    g_autoptr(Cluster) again = cluster_parse("any.yaml", text, strlen(text), &error);
    fuzz_check(again && !error, "its file is read again");
}

bool fuzz_read(const void *data, size_t size)
{
    static Sheets *sheets =
        NULL; /* made once, since a fuzzer calls this a million times */
    if (!sheets)
        sheets = sheets_load(NULL);
    fuzz_check(sheets != NULL, "the bundled data sheets");
    g_autofree char *text = g_strndup((const char *)data, size);
    g_autoptr(GError) error = NULL;
    g_autoptr(MachineFile) machine =
        machine_file_parse("any.xml", text, strlen(text), sheets, &error);
    fuzz_check(!machine == !!error, "either a machine or an error");
    if (!machine) {
        fuzz_check_refused(error, NULL);
        return false;
    }
    fuzz_check(machine->n_gpus > 0 && machine->n_gpus <= MACHINE_MAX_GPUS, "GPUs");
    check_cluster(machine, sheets);
    return true;
}
