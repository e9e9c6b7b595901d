/* Limits on memory, failures of output, and notes about commands that take long. */
#include "experiments/cli/limits.h"

#include <fcntl.h>
#include <gsl/gsl_errno.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "data/base/error.h"
#include "data/base/text.h"
#include "data/base/units.h"
#include "experiments/cli/screen.h"

enum { SAY_AFTER_S = 60, LOOK_EVERY_S = 1 };
static const double SAY_BYTES = 0x1p31, LEAST_BYTES = 0x1p26;

/* 1: notes are turned off. */
static gint hushed;

/* The file that an end by the program's own fault makes; empty: none. */
static char fault_file[4096];

/* The words for the limit at the end of the memory; empty: the machine's own. */
static char limit_words[120];

/* Memory in use, in bytes; 0 where the system does not say. */
static double resident_bytes(void)
{
    g_autofree char *text = NULL;
    if (!g_file_get_contents("/proc/self/statm", &text, NULL, NULL))
        return 0;
    const char *second = text + strcspn(text, " "); /* after all pages: resident ones */
    return g_ascii_strtod(second, NULL) * (double)sysconf(_SC_PAGESIZE);
}

/* --- lines on stderr --- */

/* The ends of a program that must not allocate any more: what a line begins and ends with. */
typedef struct {
    const char *begin, *end;
} Frame;

static Frame failure = {"kilter: ", "\n"}, interrupted = {"kilter: ", "\n"};
static char *program; /* "kilter COMMAND" where lines are JSON; NULL: they are text */

/* Puts the message of an error of this status between two halves of its JSON. */
static Frame frame_of(int status)
{
    static const char hole[] = "@";
    json_auto_t *object =
        json_pack("{s:{s:s, s:i}, s:{s:i, s:s}}", "format", "name", program, "version", 1,
                  "error", "status", status, "message", hole);
    char *text = json_dumps(object, JSON_COMPACT), *at = strrchr(text, hole[0]);
    *at = '\0';
    return (Frame){text, g_strconcat(at + 1, "\n", NULL)};
}

/* From here on lines are JSON. */
static void speak_json(const char *command)
{
    enum { INTERRUPTED = 128 + SIGINT }; /* what a shell calls the end by a signal */
    program = g_strdup_printf("kilter %s", command);
    failure = frame_of(KILTER_ERROR_FAILED);
    interrupted = frame_of(INTERRUPTED);
}

/* Where nobody can be told, the exit status has to say it. */
static void write_all(const char *text, size_t n)
{
    if (write(STDERR_FILENO, text, n) < 0)
        return;
}

/* Writes one line without allocating. */
static void write_line(const Frame *frame, const char *message, size_t n)
{
    write_all(frame->begin, strlen(frame->begin));
    write_all(message, n);
    write_all(frame->end, strlen(frame->end));
}

void limits_note(const char *format, ...)
{
    TEXT_OF_ARGUMENTS(text, format);
    if (!program) {
        screen_print(stderr, "kilter: %s\n", text);
        return;
    }
    json_auto_t *object = json_pack("{s:{s:s, s:i}, s:s}", "format", "name", program,
                                    "version", 1, "note", text);
    g_autofree char *line = json_dumps(object, JSON_COMPACT);
    fprintf(stderr, "%s\n", line);
}

/* --- what is watched --- */

/* Watches until both time and memory were worth a line. */
static gpointer limits_watch(gpointer unused)
{
    (void)unused;
    bool long_said = false, large_said = false;
    for (int s = 0; !(long_said && large_said); s += LOOK_EVERY_S) {
        const double bytes = resident_bytes();
        const bool large = bytes >= SAY_BYTES;
        if (g_atomic_int_get(
                &hushed)) /* much memory is said all the same: it may harm others */
            long_said = true;
        if ((s >= SAY_AFTER_S && !long_said) || (large && !large_said)) {
            g_autofree char *used = units_format(bytes, QUANTITY_BYTES);
            limits_note("still working after %d s, with %s of memory%s", s, used,
                        large ? "; --memory-limit bounds it" : "");
            long_said = long_said || s >= SAY_AFTER_S;
            large_said = large_said || large;
        }
        g_usleep(LOOK_EVERY_S * G_USEC_PER_SEC);
    }
    return NULL;
}

/* Makes the file. It may only call what a signal handler may. */
static void mark_fault(void)
{
    const int file =
        *fault_file ? open(fault_file, O_WRONLY | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (file >= 0)
        close(file);
}

static void end_without_memory(const char *domain, GLogLevelFlags level,
                               const char *message, gpointer unused);

/* GLib asks no handler where there is no memory for a lock (it aborts) or for the words that would
 * say so (it calls itself until the stack ends): both are said as elsewhere. */
static void check_room(void)
{
    enum { ROOM = 1 << 20 };
    void *room =
        mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        end_without_memory(NULL, G_LOG_LEVEL_ERROR, "failed to allocate", NULL);
    munmap(room, ROOM);
}

static void end_by_fault(int number)
{
    if (number == SIGABRT || number == SIGSEGV)
        check_room();
    mark_fault();
    signal(number, SIG_DFL);
    raise(number);
}

void limits_mark_faults(const char *path)
{
    g_strlcpy(fault_file, path ? path : "", sizeof fault_file);
#ifndef KILTER_SANITIZED /* whose own handlers report more */
    static const int SIGNAL[] = {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL};
    const struct sigaction act = {.sa_handler = end_by_fault, .sa_flags = SA_ONSTACK};
    for (size_t i = 0; path && i < G_N_ELEMENTS(SIGNAL); i++)
        sigaction(SIGNAL[i], &act, NULL);
#endif
}

/* GLib ends a program whose allocation fails; this reports it in one line instead of dumping core.
 * It must not allocate. */
static void end_without_memory(const char *domain, GLogLevelFlags level,
                               const char *message, gpointer unused)
{
    static const char what[] = "out of memory: ";
    (void)domain, (void)level, (void)unused;
    const char *bytes = strstr(message, "failed to allocate");
    const char *say = bytes ? bytes : message;
    mark_fault();
    write_all(failure.begin, strlen(failure.begin));
    write_all(what, sizeof what - 1);
    write_all(say, strcspn(say, "\n\"\\"));
    write_all(limit_words, strlen(limit_words));
    write_all(failure.end, strlen(failure.end));
    _exit(KILTER_ERROR_FAILED);
}

/* GSL would dump core as well, whatever went wrong. It must not allocate. */
static void end_in_gsl(const char *reason, const char *file, int line, int code)
{
    (void)file, (void)line;
    if (code == GSL_ENOMEM)
        end_without_memory(NULL, G_LOG_LEVEL_ERROR, reason, NULL);
    mark_fault();
    write_line(&failure, reason, strcspn(reason, "\n\"\\"));
    _exit(KILTER_ERROR_FAILED);
}

/* Called also where a library prints and exits, as for --help. */
static void flush_output(void)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return;
    static const char what[] = "cannot write to standard output";
    write_line(&failure, what, sizeof what - 1);
    _exit(KILTER_ERROR_FAILED);
}

/* Says that the command was interrupted, and ends it as the signal does. It may only call what a
 * signal handler may. */
static void say_interrupted(int number)
{
    static const char what[] = "interrupted";
    write_line(&interrupted, what, sizeof what - 1);
    signal(number, SIG_DFL);
    raise(number);
}

void limits_catch_interrupts(void)
{
    struct sigaction before;
    const struct sigaction after = {.sa_handler = say_interrupted};
    if (sigaction(SIGINT, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
        sigaction(SIGINT, &after, NULL);
}

/* The first number of a file; INFINITY if there is none. */
static double number_in_file(const char *path)
{
    g_autofree char *text = NULL;
    if (!g_file_get_contents(path, &text, NULL, NULL))
        return INFINITY;
    char *end;
    const double bytes = g_ascii_strtod(text, &end);
    return end > text ? bytes : INFINITY;
}

/* The memory of this machine, or of the container that the program runs in. */
static double machine_bytes(void)
{
    const double own = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE),
                 group =
                     fmin(number_in_file("/sys/fs/cgroup/memory.max"),
                          number_in_file("/sys/fs/cgroup/memory/memory.limit_in_bytes"));
    return fmin(own, group);
}

static bool bound_memory(double bytes, bool for_good)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_DATA, &limit) != 0)
        return false;
    const rlim_t wanted = (rlim_t)bytes;
    limit =
        (struct rlimit){MIN(wanted, limit.rlim_max), for_good ? wanted : limit.rlim_max};
    return setrlimit(RLIMIT_DATA, &limit) == 0;
}

/* Half of the machine's memory, unless a smaller limit is set. Sanitizers need more than that. */
static void bound_by_machine(void)
{
#ifndef KILTER_SANITIZED
    const double half = machine_bytes() / 2;
    struct rlimit limit;
    if (half < LEAST_BYTES || getrlimit(RLIMIT_DATA, &limit) != 0 ||
        (double)limit.rlim_cur <= half || !bound_memory(half, false))
        return;
    g_autofree char *size = units_format(half, QUANTITY_BYTES);
    g_snprintf(
        limit_words, sizeof limit_words,
        "; the limit is half of this machine's memory, %s, and --memory-limit sets "
        "another",
        size);
#endif
}

void limits_lift(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur != limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_DATA, &limit);
    }
}

static sqlite3_mem_methods sqlite_own;

static void *sqlite_given(void *block)
{
    if (!block)
        end_without_memory(NULL, G_LOG_LEVEL_ERROR, "failed to allocate", NULL);
    return block;
}

static void *sqlite_malloc(int bytes)
{
    return sqlite_given(sqlite_own.xMalloc(bytes));
}

static void *sqlite_realloc(void *block, int bytes)
{
    return sqlite_given(sqlite_own.xRealloc(block, bytes));
}

void limits_begin(const char *command)
{
    /* Without these, Jansson leaves out members and SQLite cells for which there is no memory. */
    json_set_alloc_funcs(g_malloc, g_free);
    sqlite3_config(SQLITE_CONFIG_GETMALLOC, &sqlite_own);
    sqlite3_mem_methods memory = sqlite_own;
    memory.xMalloc = sqlite_malloc;
    memory.xRealloc = sqlite_realloc;
    sqlite3_config(SQLITE_CONFIG_MALLOC, &memory);
    if (command)
        speak_json(command);
    bound_by_machine();
    limits_catch_interrupts();
    signal(SIGXFSZ, SIG_IGN); /* a write beyond ulimit -f fails, as on a full disk */
    atexit(flush_output);
    g_log_set_handler("GLib", G_LOG_LEVEL_ERROR | G_LOG_FLAG_FATAL, end_without_memory,
                      NULL);
    gsl_set_error_handler(end_in_gsl);
#ifndef KILTER_SANITIZED
    static char stack[1 << 16]; /* for an end by a full stack */
    sigaltstack(&(const stack_t){.ss_sp = stack, .ss_size = sizeof stack}, NULL);
    const struct sigaction act = {.sa_handler = end_by_fault, .sa_flags = SA_ONSTACK};
    sigaction(SIGABRT, &act, NULL);
    sigaction(SIGSEGV, &act, NULL);
#endif
    g_thread_unref(g_thread_new("watch", limits_watch, NULL));
}

void limits_hush(void)
{
    g_atomic_int_set(&hushed, 1);
}

bool limits_set_memory(const char *size, GError **error)
{
    double bytes;
    if (!units_parse(size, QUANTITY_BYTES, &bytes, error))
        return false;
    *limit_words = '\0';
    return (bytes >= LEAST_BYTES && bound_memory(bytes, true)) ||
           refuse(error, "expected at least 64 MiB that the system allows, got '%s'",
                  size);
}
