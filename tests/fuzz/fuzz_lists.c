/* Fuzz target: bytes as the ranks of groups beside execution traces, and as the index of a
 * checkpoint, are read or refused. */
#include "data/data.h"
#include "tests/fuzz/fuzz.h"

bool fuzz_read(const void *data, size_t size)
{
    int memory;
    g_autoptr(GError) error = NULL, other = NULL;
    g_autofree char *file = fuzz_file_open(data, size, &memory);
    CheckpointIndex index;
    GHashTable *groups = trace_groups_read(file, &error);
    const bool good = checkpoint_index_read(file, &index, &other);
    fuzz_file_close(memory);
    fuzz_check(!groups == !!error && good == !other, "either an answer or an error");
    if (error)
        fuzz_check_refused(error, file);
    if (other)
        fuzz_check_refused(other, file);
    fuzz_check(!good ||
                   (index.tensors > 0 && index.files > 0 &&
                    index.files <= index.tensors && index.in_layers <= index.tensors),
               "numbers of tensors");
    const bool any = groups || good;
    if (good)
        fuzz_note("%u %u %u", (guint)index.tensors, (guint)index.files,
                  (guint)index.in_layers);
    if (groups)
        g_hash_table_unref(groups);
    return any;
}
