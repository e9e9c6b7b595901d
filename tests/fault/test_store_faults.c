/* A sweep whose store lies on a bad disk: each read, write, sync and lock of SQLite fails in turn,
 * and power is lost at each write or sync, when any of the writes since a file's last sync may be
 * gone. The store stays whole, and the same sweep completes it to the same rows. KILTER_POINTS: how
 * many calls of each kind are tried, spread over all; those of a loss of power also more often
 * than there are calls, each time with other writes lost. */
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data/store/store.h"
#include "experiments/sweep/sweep.h"
#include "tests/support/program.h"

static const char EXPERIMENT[] =
    "name: s\ngrid:\n  model: ['vit:layers=1,hidden=64,heads=4,ffn=128']\n"
    "  cluster: [hap-8, hap-16]\n  planner: [dp-ev, dp-cp]\n";

enum { POWER_LOST = 77 };

/* --- a file system that fails --- */

typedef enum {
    DISK_READ,
    DISK_WRITE,
    DISK_SYNC,
    DISK_LOCK,
    DISK_POWER,
    DISK_FAULTS
} Fault;
static const char *const FAULTS[] = {"read", "write", "sync", "lock", "power"};

/* A write since the file's last sync: what was there before. */
typedef struct {
    char *file;
    sqlite3_int64 at;
    GBytes *before;
} Unsynced;

/* The disk of this process, which sweeps once. */
static struct {
    Fault fault;
    uint64_t when, n; /* which call of that kind fails, and how many there were */
    uint32_t seed;
    GArray *unsynced;
    sqlite3_vfs vfs, *real;
    sqlite3_io_methods io;
} disk;

typedef struct {
    sqlite3_file base;
    char *name;
    sqlite3_file real; /* the last member: it is longer */
} DiskFile;

static sqlite3_file *real_of(sqlite3_file *file)
{
    return &((DiskFile *)(void *)file)->real;
}

/* Ends the process as a loss of power does. */
static void disk_lose_power(void)
{
    GRand *random = g_rand_new_with_seed(disk.seed);
    for (uint32_t i = disk.unsynced->len; i-- > 0;) {
        const Unsynced *one = &g_array_index(disk.unsynced, Unsynced, i);
        gsize n = 0;
        const void *before = g_bytes_get_data(one->before, &n);
        const int file = g_rand_boolean(random) ? open(one->file, O_WRONLY) : -1;
        if (file >= 0 && pwrite(file, before, n, one->at) < 0)
            _exit(1);
        if (file >= 0)
            close(file);
    }
    _exit(POWER_LOST);
}

/* Whether this call of that kind is the one that fails. */
static bool disk_fails(Fault kind)
{
    const bool counts = disk.fault == kind || (disk.fault == DISK_POWER &&
                                               (kind == DISK_WRITE || kind == DISK_SYNC));
    const bool now = counts && disk.n++ == disk.when;
    if (now && disk.fault == DISK_POWER)
        disk_lose_power();
    return now;
}

static int disk_read(sqlite3_file *file, void *to, int n, sqlite3_int64 at)
{
    return disk_fails(DISK_READ)
               ? SQLITE_IOERR_READ
               : real_of(file)->pMethods->xRead(real_of(file), to, n, at);
}

static int disk_write(sqlite3_file *file, const void *from, int n, sqlite3_int64 at)
{
    if (disk_fails(DISK_WRITE))
        return SQLITE_FULL;
    g_autofree char *before = g_malloc0((gsize)n);
    real_of(file)->pMethods->xRead(real_of(file), before, n, at); /* zeros past the end */
    const Unsynced one = {g_strdup(((DiskFile *)(void *)file)->name), at,
                          g_bytes_new(before, (gsize)n)};
    if (one.file)
        g_array_append_val(disk.unsynced, one);
    return real_of(file)->pMethods->xWrite(real_of(file), from, n, at);
}

static int disk_sync(sqlite3_file *file, int flags)
{
    if (disk_fails(DISK_SYNC))
        return SQLITE_IOERR_FSYNC;
    for (uint32_t i = disk.unsynced->len; i-- > 0;)
        if (g_strcmp0(g_array_index(disk.unsynced, Unsynced, i).file,
                      ((DiskFile *)(void *)file)->name) == 0)
            g_array_remove_index(disk.unsynced, i);
    (void)flags;
    return SQLITE_OK; /* the disk below loses no power */
}

static int disk_lock(sqlite3_file *file, int level)
{
    return disk_fails(DISK_LOCK) ? SQLITE_IOERR_LOCK
                                 : real_of(file)->pMethods->xLock(real_of(file), level);
}

static int disk_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
    return disk_fails(DISK_LOCK)
               ? SQLITE_IOERR_SHMLOCK
               : real_of(file)->pMethods->xShmLock(real_of(file), offset, n, flags);
}

static int disk_close(sqlite3_file *file)
{
    return real_of(file)->pMethods->xClose(real_of(file));
}

/* The other calls go to the real file. */
#define PASS(name, method, declared, ...)                                     \
    static int name declared                                                  \
    {                                                                         \
        return real_of(file)->pMethods->method(real_of(file), ##__VA_ARGS__); \
    }
/* clang-format off */
PASS(disk_truncate, xTruncate, (sqlite3_file *file, sqlite3_int64 n), n)
PASS(disk_size, xFileSize, (sqlite3_file *file, sqlite3_int64 *n), n)
PASS(disk_unlock, xUnlock, (sqlite3_file *file, int level), level)
PASS(disk_reserved, xCheckReservedLock, (sqlite3_file *file, int *out), out)
PASS(disk_control, xFileControl, (sqlite3_file *file, int op, void *data), op, data)
PASS(disk_sector, xSectorSize, (sqlite3_file *file))
PASS(disk_traits, xDeviceCharacteristics, (sqlite3_file *file))
PASS(disk_shm_map, xShmMap, (sqlite3_file *file, int page, int n, int extend, void volatile **at),
     page, n, extend, at)
PASS(disk_shm_unmap, xShmUnmap, (sqlite3_file *file, int remove), remove)
/* clang-format on */

static void disk_shm_barrier(sqlite3_file *file)
{
    real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int disk_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                     int *got)
{
    (void)vfs;
    DiskFile *own = (DiskFile *)(void *)file;
    own->name = g_strdup(name);
    const int code = disk.real->xOpen(disk.real, name, &own->real, flags, got);
    file->pMethods = own->real.pMethods ? &disk.io : NULL;
    return code;
}

static void disk_init(Fault fault, uint64_t when, uint32_t seed)
{
    disk.fault = fault;
    disk.when = when;
    disk.seed = seed;
    disk.unsynced = g_array_new(FALSE, FALSE, sizeof(Unsynced));
    disk.real = sqlite3_vfs_find(NULL);
    disk.vfs = *disk.real;
    disk.vfs.zName = "bad disk";
    disk.vfs.szOsFile = (int)sizeof(DiskFile) + disk.real->szOsFile;
    disk.vfs.xOpen = disk_open;
    disk.io = (sqlite3_io_methods){.iVersion = 2,
                                   .xClose = disk_close,
                                   .xRead = disk_read,
                                   .xWrite = disk_write,
                                   .xTruncate = disk_truncate,
                                   .xSync = disk_sync,
                                   .xFileSize = disk_size,
                                   .xLock = disk_lock,
                                   .xUnlock = disk_unlock,
                                   .xCheckReservedLock = disk_reserved,
                                   .xFileControl = disk_control,
                                   .xSectorSize = disk_sector,
                                   .xDeviceCharacteristics = disk_traits,
                                   .xShmMap = disk_shm_map,
                                   .xShmLock = disk_shm_lock,
                                   .xShmBarrier = disk_shm_barrier,
                                   .xShmUnmap = disk_shm_unmap};
    sqlite3_vfs_register(&disk.vfs, 1);
}

/* --- sweeps --- */

static bool sweep_once(const char *experiment, const char *file, GError **error)
{
    const ExperimentChange change = {0};
    g_autoptr(Experiment) asks = experiment_load(experiment, &change, error);
    g_autoptr(Store) store = asks ? store_open(file, error) : NULL;
    const SweepOptions options = {.threads = 1};
    SweepProgress progress;
    return store && store_begin_run(store, "sweep", "", error) &&
           sweep_run(asks, store, &options, &progress, error);
}

/* In a process of its own: 0, 1 after a failure, POWER_LOST; *calls gets the number of calls of
 * that kind. */
static int sweep_apart(const char *experiment, const char *file, Fault fault,
                       uint64_t when, uint32_t seed, uint64_t *calls)
{
    int end[2];
    assert_int_equal(pipe(end), 0);
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        g_autoptr(GError) error = NULL;
        disk_init(fault, when, seed);
        const bool good = sweep_once(experiment, file, &error);
        if (error && when == UINT64_MAX)
            print_error("%s\n", error->message);
        _exit(write(end[1], &disk.n, sizeof disk.n) != sizeof disk.n ? 2
              : good                                                 ? 0
              : error                                                ? 1
                                                                     : 3);
    }
    close(end[1]);
    int status = 0;
    assert_int_equal(waitpid(child, &status, 0), child);
    *calls = 0;
    const bool said = read(end[0], calls, sizeof *calls) == sizeof *calls;
    close(end[0]);
    assert_true(WIFEXITED(status));
    assert_true(said || WEXITSTATUS(status) == POWER_LOST);
    return WEXITSTATUS(status);
}

static void add_row(uint32_t n, char **value, char **column, void *data)
{
    (void)column;
    for (uint32_t i = 0; i < n; i++)
        g_string_append_printf(data, "%s ", value[i] ? value[i] : "-");
}

/* The answers of the store, which is whole, without times of this machine. */
static char *rows_of(const char *file)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Store) store = store_open_read(file, &error);
    assert_no_error(error);
    GString *text = g_string_new(NULL);
    store_query(store, "PRAGMA integrity_check", add_row, text, &error);
    assert_no_error(error);
    assert_string_equal(text->str, "ok ");
    store_query(store,
                "SELECT hash, planner, cluster, status, iteration_time_s FROM result "
                "ORDER BY hash, planner, cluster",
                add_row, text, &error);
    assert_no_error(error);
    return g_string_free(text, FALSE);
}

static void drop_store(const char *file)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-journal", "-lock"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(ends); i++) {
        g_autofree char *name = g_strconcat(file, ends[i], NULL);
        g_remove(name);
    }
}

static void test_bad_disks(void **state)
{
    (void)state;
    enum { POINTS = 4, LEAST_CALLS = 4 };
    const char *given = g_getenv("KILTER_POINTS");
    const uint64_t points = given ? strtoull(given, NULL, 10) : POINTS;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "s.yaml", EXPERIMENT);
    g_autofree char *experiment = g_build_filename(box->folder, "s.yaml", NULL);
    g_autofree char *file = g_build_filename(box->folder, "r.db", NULL);
    uint64_t calls, unused, failed[DISK_FAULTS] = {0};
    assert_int_equal(sweep_apart(experiment, file, DISK_READ, UINT64_MAX, 0, &calls), 0);
    g_autofree char *want = rows_of(file);
    for (Fault fault = 0; fault < DISK_FAULTS; fault++) {
        drop_store(file);
        sweep_apart(experiment, file, fault, UINT64_MAX, 0, &calls);
        assert_true(calls >= LEAST_CALLS);
        const uint64_t n = fault == DISK_POWER ? points : MIN(points, calls);
        for (uint64_t k = 0; k < n; k++) {
            drop_store(file);
            const uint64_t when = n > calls ? k % calls : k * calls / n;
            const int code =
                sweep_apart(experiment, file, fault, when, (uint32_t)k, &unused);
            failed[fault] += code != 0;
            if (code != 0 && code != 1 && code != POWER_LOST)
                fail_msg("%s %u fails: exit %d", FAULTS[fault], (unsigned)when, code);
            if (sweep_apart(experiment, file, DISK_READ, UINT64_MAX, 0, &unused) != 0)
                fail_msg("%s %u fails: the sweep cannot go on", FAULTS[fault],
                         (unsigned)when);
            g_autofree char *rows = rows_of(file);
            if (strcmp(rows, want) != 0)
                fail_msg("%s %u fails: rows %s in place of %s", FAULTS[fault],
                         (unsigned)when, rows, want);
        }
    }
    print_message("%u points at which power is lost\n", (unsigned)failed[DISK_POWER]);
    for (Fault fault = 0; fault < DISK_FAULTS; fault++)
        if (failed[fault] == 0)
            fail_msg("no failing %s was seen", FAULTS[fault]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bad_disks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
