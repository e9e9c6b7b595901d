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
    uint32_t total = 0, added;
    /* All parts are good before anything is written. */
    for (int i = 0; i < n; i++) {
        bool tried;
        if (is_same_file(database, part[i]))
            return refuse(error, "%s: expected another store than the one to merge into",
                          part[i]);
        if (!store_merge_check(part[i], &tried, error))
            return false;
    }
    g_autoptr(Store) store = store_open(database, error);
    for (int i = 0; store && i < n; i++, total += added)
        if (!store_merge(store, part[i], &added, error))
            return kilter_prefix(error, "%s: ", part[i]);
    if (!store)
        return false;
    command_report(options,
                   json_pack("{s:s, s:i, s:i}", "database", database, "parts", n, "added",
                             (int)total),
                   "{database}: {added} results added from {parts} stores\n", NULL);
    return true;
}
