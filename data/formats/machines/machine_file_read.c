/* A machine's own file, of any of the formats. */
#include <string.h>

#include "data/base/error.h"
#include "data/base/text.h"
#include "data/formats/format.h"
#include "data/formats/machines/machine_file.h"

/* Both ends of a link may list it, or one of them. */
static void join_ends(MachineFile *machine)
{
    Peers *peers = &machine->peers;
    for (uint32_t a = 0; a < peers->n; a++)
        for (uint32_t b = 0; b < a; b++)
            peers->link[a][b] = peers->link[b][a] =
                MAX(peers->link[a][b], peers->link[b][a]);
    peers->n = machine->nvswitch ? 0 : peers->n;
}

MachineFile *machine_file_parse(const char *file, const char *text, size_t length,
                                const Sheets *sheets, GError **error)
{
    g_autoptr(MachineFile) machine = g_new0(MachineFile, 1);
    machine->file = g_strdup(file);
    machine->warning = g_ptr_array_new_with_free_func(g_free);
    const FileFormat format = format_of_text(text, length, FORMAT_MACHINE);
    machine->format = format == FORMAT_NCCL_TOPOLOGY ? MACHINE_FILE_NCCL
                      : format == FORMAT_ROCM_SMI    ? MACHINE_FILE_ROCM_SMI
                                                     : MACHINE_FILE_NVIDIA_SMI;
    if (length > MACHINE_FILE_BYTES || strlen(text) != length ||
        !g_utf8_validate(text, (gssize)length, NULL))
        return refused(error, "%s: expected at most %d bytes of text in UTF-8", file,
                       MACHINE_FILE_BYTES);
    const bool good = machine->format == MACHINE_FILE_NCCL
                          ? nccl_topology_parse(text, length, sheets, machine, error)
                      : machine->format == MACHINE_FILE_ROCM_SMI
                          ? rocm_smi_parse(text, sheets, machine, error)
                          : smi_matrix_parse(text, sheets, machine, error);
    if (!good)
        return NULL;
    join_ends(machine);
    items_each (MachineGpu, gpu, machine->gpu, machine->n_gpus)
        gpu->sheet = *gpu->product ? sheets_find_product(sheets, gpu->product)
                                   : sheets_find_pci(sheets, gpu->pci);
    return g_steal_pointer(&machine);
}

MachineFile *machine_file_read(const char *file, const Sheets *sheets, GError **error)
{
    gsize length;
    g_autofree char *text = file_read(file, MACHINE_FILE_BYTES, &length, error);
    return text ? machine_file_parse(file, text, length, sheets, error) : NULL;
}
