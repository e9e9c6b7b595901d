/* kilter merge: the parts of a sharded sweep become one store. */
#include <sys/stat.h>

#include "data/store/store.h"
#include "experiments/cli/command.h"

static bool is_same_file(const char *a, const char *b)
{
    struct stat first, second;
    return stat(a, &first) == 0 && stat(b, &second) == 0 &&
           first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

COMMAND_PLAIN(merge)
{
    const char *database = argv[1];
    char **part = argv + 2;
    const int n = argc - 2;
    g_autoptr(Store) store = store_open(database, error);
    uint32_t total = 0;
    for (int i = 0; store && i < n; i++) {
        uint32_t added = 0;
        if (is_same_file(database, part[i]))
            return refuse(error, "%s: expected another store than the one to merge into",
                          part[i]);
        if (!store_merge(store, part[i], &added, error))
            return kilter_prefix(error, "%s: ", part[i]);
        total += added;
    }
    if (!store)
        return false;
    command_report(options,
                   json_pack("{s:s, s:i, s:i}", "database", database, "parts", n, "added",
                             (int)total),
                   "{database}: {added} results added from {parts} stores\n", NULL);
    return true;
}
