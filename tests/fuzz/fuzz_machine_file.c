/* Fuzz target: any bytes as a topology file are either refused with one line, or a machine of which a
 * cluster can be made that is written and read again.
 *
 *     CC=clang cmake -B build-fuzz -DKILTER_SANITIZE=ON -DCMAKE_C_FLAGS=-fsanitize=fuzzer-no-link
 *     cmake --build build-fuzz --target fuzz_machine_file
 *
 * The same function runs over damaged files in tests/fault/test_machine_file_mutations.c. */
#include <string.h>

#include "data/data.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Unlike assert, stays in release builds; the fuzzer reports the abort. */
static void check(bool holds, const char *what)
{
    if (!holds)
        g_error("broken: %s", what);
}

static void check_cluster(const MachineFile *machine, const Sheets *sheets)
{
    g_autoptr(GError) error = NULL;
    const MachineImport import = {.name = "any",
                                  .sheet = sheets_device(sheets, "h100", NULL),
                                  .nic = sheets_link(sheets, "ib-ndr", NULL),
                                  .nics = 1,
                                  .nodes = 2};
    g_autoptr(Cluster) cluster = machine_file_cluster(machine, sheets, &import, &error);
    check(cluster != NULL, "a cluster");
    check(cluster_gpus(cluster) == 2 * machine->n_gpus, "all GPUs");
    if (!(machine_file_inner(machine, sheets, import.sheet) > 0))
        return; /* links that count nothing: the file's reader says so when it is used */
    g_autofree char *text = cluster_write(cluster);
    g_autoptr(Cluster) again = cluster_parse("any.yaml", text, strlen(text), &error);
    check(again && !error, "its file is read again");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static Sheets *sheets = NULL; /* once: a fuzzer calls this a million times */
    if (!sheets)
        sheets = sheets_load(NULL);
    check(sheets != NULL, "the bundled data sheets");
    g_autofree char *text = g_strndup((const char *)data, size);
    g_autoptr(GError) error = NULL;
    g_autoptr(MachineFile) machine =
        machine_file_parse("any.xml", text, strlen(text), sheets, &error);
    check(!machine == !!error, "either a machine or an error");
    if (error) {
        check(error->domain == KILTER_ERROR && error->code == KILTER_ERROR_INPUT,
              "an input error");
        check(!strpbrk(error->message, "\r\n"), "message is one line");
        return 0;
    }
    check(machine->n_gpus > 0 && machine->n_gpus <= MACHINE_MAX_GPUS, "GPUs");
    check_cluster(machine, sheets);
    return 0;
}
