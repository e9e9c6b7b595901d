/* FILE-lock: the processes that write a store, one line each, so that no two machines write one.
 *
 * SQLite keeps processes of one machine apart, and they may share a store. It cannot be trusted to
 * do so between machines: a write-ahead log needs memory in common, and locks of network file
 * systems fail silently. So a line names its machine. A line of this machine counts as long as its
 * process runs. A line of another machine counts as long as it changes, which its process sees to;
 * no two clocks are compared. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/base/error.h"
#include "data/store/database.h"

enum {
    LEASE_S = 60, /* a machine that says nothing for so long does not write any more */
    MOST_LEASE_S = 86400,
    BEATS_A_LEASE = 10,
    POLL_US = 100 * 1000,
    MOST_POLLS = 100, /* for the file itself, which nobody keeps for long */
    MOST_BYTES = 1 << 16,
    FIELDS = 5, /* host, pid, process, since, beats */
};
static const char MAGIC[] = "kilter-lock 1\n";

static gint64 lease_us(void)
{
    guint64 seconds = LEASE_S;
    const char *text = g_getenv("KILTER_LEASE_S");
    if (text && !g_ascii_string_to_unsigned(text, 10, 1, MOST_LEASE_S, &seconds, NULL))
        seconds = LEASE_S;
    return (gint64)seconds * G_USEC_PER_SEC;
}

/* --- processes --- */

static void *read_boot(void *unused)
{
    enum { LETTERS = 8 };
    g_autofree char *id = NULL;
    (void)unused;
    if (!g_file_get_contents("/proc/sys/kernel/random/boot_id", &id, NULL, NULL))
        return g_strdup("unknown");
    return g_strndup(id, LETTERS);
}

/* The start of the machine, as a word that tells machines of one name apart. The kernel draws it
 * once. */
static const char *boot(void)
{
    static GOnce once = G_ONCE_INIT;
    return g_once(&once, read_boot, NULL);
}

/* When a process was started, in the machine's ticks; 0: it does not run. */
static guint64 start_of(sqlite3_int64 pid)
{
    enum { START = 19 }; /* fields after the name, proc(5) */
    g_autofree char *file = g_strdup_printf("/proc/%lld/stat", (long long)pid);
    g_autofree char *text = NULL;
    if (!g_file_get_contents(file, &text, NULL, NULL))
        return 0;
    const char *rest = strrchr(text, ')');
    g_auto(GStrv) field = g_strsplit(rest ? rest + 1 : "", " ", START + 3);
    /* a zombie does not write */
    return g_strv_length(field) > START + 1 && *field[1] != 'Z'
               ? g_ascii_strtoull(field[START + 1], NULL, 10)
               : 0;
}

bool store_process_runs(const char *host, sqlite3_int64 pid, const char *process)
{
    g_auto(GStrv) part = g_strsplit(process, ".", 3);
    return g_strv_length(part) == 3 && strcmp(host, g_get_host_name()) == 0 &&
           strcmp(part[0], boot()) == 0 && pid > 0 &&
           g_ascii_strtoull(part[1], NULL, 10) == start_of(pid);
}

static void name_process(Store *store)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    store->host = g_strdelimit(g_strdup(g_get_host_name()), " \t\n", '_');
    store->pid = getpid();
    /* Processes that start in one tick of the clock may have their stores at one address. */
    store->process =
        g_strdup_printf("%s.%" G_GUINT64_FORMAT ".%d-%zx", boot(), start_of(store->pid),
                        (int)store->pid, (size_t)store);
    store->locked = g_date_time_format(now, "%Y-%m-%dT%H:%M:%SZ");
}

/* --- the file, which is read and written while it is held --- */

typedef struct {
    const char *path;
    int descriptor;
    GPtrArray *ours,
        *others; /* lines of this machine's processes that run, and all that is not known to be of it */
} Lock;

static void lock_clear(Lock *lock)
{
    if (lock->descriptor >= 0)
        close(lock->descriptor);
    lock->descriptor = -1;
    g_clear_pointer(&lock->ours, g_ptr_array_unref);
    g_clear_pointer(&lock->others, g_ptr_array_unref);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Lock, lock_clear)

static bool lock_failed(const char *path, const char *what, GError **error)
{
    return kilter_fail(error, KILTER_ERROR_FAILED, "%s: cannot %s: %s", path, what,
                       g_strerror(errno));
}

/* Opens and holds the file; another process may have removed it in between. */
static bool hold(Lock *lock, GError **error)
{
    for (int i = 0; i < MOST_POLLS; i++) {
        struct stat held, named;
        lock->descriptor =
            open(lock->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (lock->descriptor < 0)
            return lock_failed(lock->path, "write the lock", error);
        const int code = flock(lock->descriptor, LOCK_EX | LOCK_NB);
        if (code != 0 && errno != EWOULDBLOCK)
            return true; /* a file system without such locks: nothing better is to be had */
        if (code == 0 && fstat(lock->descriptor, &held) == 0 &&
            stat(lock->path, &named) == 0 && held.st_ino == named.st_ino &&
            held.st_dev == named.st_dev)
            return true;
        close(lock->descriptor);
        lock->descriptor = -1;
        g_usleep(POLL_US);
    }
    return kilter_fail(error, KILTER_ERROR_FAILED,
                       "%s: another program has held the lock for %d s", lock->path,
                       (int)(MOST_POLLS * (gint64)POLL_US / G_USEC_PER_SEC));
}

static void sort_line(Lock *lock, const char *line)
{
    g_auto(GStrv) field = g_strsplit(line, " ", -1);
    const bool whole = g_strv_length(field) == FIELDS;
    const bool is_ours = whole && strcmp(field[0], g_get_host_name()) == 0 &&
                         g_str_has_prefix(field[2], boot());
    if (!is_ours)
        g_ptr_array_add(lock->others, g_strdup(line));
    else if (store_process_runs(field[0], g_ascii_strtoll(field[1], NULL, 10), field[2]))
        g_ptr_array_add(lock->ours, g_strdup(line));
}

static bool lock_open(Lock *lock, const char *path, GError **error)
{
    *lock = (Lock){.path = path,
                   .descriptor = -1,
                   .ours = g_ptr_array_new_with_free_func(g_free),
                   .others = g_ptr_array_new_with_free_func(g_free)};
    if (!hold(lock, error))
        return false;
    g_autofree char *text = g_malloc0(MOST_BYTES + 1);
    const ssize_t n = pread(lock->descriptor, text, MOST_BYTES, 0);
    if (n < 0)
        return lock_failed(path, "read the lock", error);
    if (n > 0 && (n == MOST_BYTES || !g_str_has_prefix(text, MAGIC)))
        return refuse(error, "%s: not the lock of a Kilter store; left untouched", path);
    g_auto(GStrv) line = g_strsplit(text, "\n", -1);
    for (uint32_t i = 1; n > 0 && line[i]; i++)
        if (*line[i])
            sort_line(lock, line[i]);
    return true;
}

static void append(GString *text, const GPtrArray *lines)
{
    for (guint i = 0; i < lines->len; i++)
        g_string_append_printf(text, "%s\n", (const char *)lines->pdata[i]);
}

/* Writes the lines, or removes a file without any. */
static bool lock_write(const Lock *lock, GError **error)
{
    g_autoptr(GString) text = g_string_new(MAGIC);
    append(text, lock->ours);
    append(text, lock->others);
    if (lock->ours->len + lock->others->len == 0) {
        unlink(lock->path);
        return true;
    }
    return (pwrite(lock->descriptor, text->str, text->len, 0) == (ssize_t)text->len &&
            ftruncate(lock->descriptor, (off_t)text->len) == 0) ||
           lock_failed(lock->path, "write the lock", error);
}

static char *own_line(const Store *store)
{
    return g_strdup_printf("%s %lld %s %s %" G_GUINT64_FORMAT, store->host,
                           (long long)store->pid, store->process, store->locked,
                           store->beats);
}

/* Removes the line of this store, if it is there. */
static void remove_own(const Store *store, Lock *lock)
{
    g_autofree char *word = g_strdup_printf(" %s ", store->process);
    for (guint i = lock->ours->len; i-- > 0;)
        if (strstr(lock->ours->pdata[i], word))
            g_ptr_array_remove_index(lock->ours, i);
}

static bool add_own(Store *store, Lock *lock, GError **error)
{
    remove_own(store, lock);
    const bool alone = lock->ours->len + lock->others->len == 0;
    g_ptr_array_add(lock->ours, own_line(store));
    store->beat_us = g_get_monotonic_time();
    const bool written = lock_write(lock, error);
    if (!written && alone)
        unlink(lock->path);
    return written;
}

/* --- machines --- */

/* "process 12 of HOST, since TIME" of a line. Caller frees. */
static char *who(const char *line)
{
    g_auto(GStrv) field = g_strsplit(line, " ", -1);
    return g_strv_length(field) == FIELDS
               ? g_strdup_printf("process %s of %s, since %s", field[1], field[0],
                                 field[3])
               : g_strdup("a process that its lock does not name well");
}

/* Waits until no line of another machine changes for a lease. True: the file is held, without such
 * lines; *gone gets who was removed from it, if any was. */
static bool lock_alone(Lock *lock, const char *path, char **gone, GError **error)
{
    g_autofree char *first = NULL;
    gint64 start_us = 0;
    for (;;) {
        if (!lock_open(lock, path, error))
            return false;
        if (lock->others->len == 0)
            return true;
        g_autoptr(GString) text = g_string_new("");
        append(text, lock->others);
        g_autofree char *writer = who(lock->others->pdata[0]);
        const gint64 now_us = g_get_monotonic_time();
        if (!first) {
            first = g_strdup(text->str);
            start_us = now_us;
        } else if (strcmp(first, text->str) != 0) {
            return kilter_fail(
                error, KILTER_ERROR_FAILED,
                "%s: written by another machine now (%s); two machines must not "
                "write one database",
                path, writer);
        } else if (now_us - start_us > lease_us()) {
            *gone = g_steal_pointer(&writer);
            g_ptr_array_set_size(lock->others, 0);
            return true;
        }
        lock_clear(lock);
        g_usleep(POLL_US);
    }
}

static char *lock_of(const char *file)
{
    return g_strconcat(file, "-lock", NULL);
}

/* Whether a lock can be kept beside the file. Else SQLite says why nothing can be written. */
static bool can_have_lock(const char *file)
{
    g_autofree char *folder = g_path_get_dirname(file);
    return *file && access(folder, W_OK) == 0;
}

bool store_lock_take(Store *store, GError **error)
{
    name_process(store);
    errno = 0;
    if (!can_have_lock(store->file))
        return errno != EROFS || lock_failed(store->file, "write the store", error);
    g_autofree char *path = lock_of(store->file), *gone = NULL;
    g_auto(Lock) lock = {.descriptor = -1};
    if (!lock_alone(&lock, path, &gone, error) || !add_own(store, &lock, error))
        return false;
    store->lock = g_steal_pointer(&path);
    if (gone)
        store->note =
            g_strdup_printf("%s: taken over; %s, has not written for %d s", store->file,
                            gone, (int)(lease_us() / G_USEC_PER_SEC));
    return true;
}

bool store_lock_beat(Store *store, GError **error)
{
    if (!store->lock ||
        (guint64)(g_get_monotonic_time() - store->beat_us) <
            (guint64)lease_us() / BEATS_A_LEASE) /* a clock that ran back: beats */
        return true;
    g_auto(Lock) lock = {.descriptor = -1};
    if (!lock_open(&lock, store->lock, error))
        return false;
    if (lock.others->len > 0) {
        g_autofree char *writer = who(lock.others->pdata[0]);
        return kilter_fail(error, KILTER_ERROR_FAILED,
                           "%s: taken over by another machine (%s)", store->file, writer);
    }
    store->beats++;
    return add_own(store, &lock, error);
}

void store_lock_release(Store *store)
{
    g_auto(Lock) lock = {.descriptor = -1};
    if (!store->lock || !lock_open(&lock, store->lock, NULL))
        return;
    remove_own(store, &lock);
    lock_write(&lock, NULL);
}

bool store_lock_wait(const char *file, GError **error)
{
    g_autofree char *path = lock_of(file), *gone = NULL;
    g_auto(Lock) lock = {.descriptor = -1};
    if (!can_have_lock(file) || !g_file_test(path, G_FILE_TEST_EXISTS))
        return true;
    return lock_alone(&lock, path, &gone, error) && lock_write(&lock, error);
}
