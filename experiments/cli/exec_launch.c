/* Starting kilter exec again under mpirun. */
#include "experiments/cli/exec_launch.h"

#include <glib-unix.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data/base/output.h"
#include "exec/exec.h"

/* In seconds: ranks end themselves RANK_GRACE_S after mpirun's limit, in case mpirun does not end
 * them; mpirun is killed if it has not ended its ranks STOP_GRACE_S after a request. */
enum { RANK_GRACE_S = 10, STOP_GRACE_S = 5 };

/* The words of mpirun when its --timeout has passed. */
#define TIME_LIMIT_TEXT "time limit"

bool exec_is_rank(void)
{
    return g_getenv("OMPI_COMM_WORLD_SIZE") || g_getenv("PMIX_RANK") ||
           g_getenv("PMI_RANK");
}

static bool exec_is_first_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(names); i++)
        if (g_getenv(names[i]))
            return strcmp(g_getenv(names[i]), "0") == 0;
    return true;
}

/* "mpirun -n 4 --oversubscribe ... /path/of/kilter exec ..."; shared: folder of the memory that
 * ranks share, NULL: Open MPI's own place. */
static char **exec_launch_command_of(const char *mpirun, const char *self,
                                     uint32_t n_ranks, uint32_t timeout_s,
                                     const char *shared, const char *const *arguments)
{
    /* By the names of Open MPI 4 and 5. */
    static const char *const PLACE[] = {"btl_vader_backing_directory",
                                        "btl_sm_backing_directory"};
    g_autoptr(GStrvBuilder) command = g_strv_builder_new();
    g_autofree char *ranks = g_strdup_printf("%u", n_ranks),
                    *timeout = g_strdup_printf("%u", timeout_s);
    g_strv_builder_add_many(command, mpirun, "-n", ranks, "--oversubscribe", "--timeout",
                            timeout, NULL);
    /* Ranks that wait must give up their core if others need it. */
    if (n_ranks > g_get_num_processors())
        g_strv_builder_add_many(command, "--mca", "mpi_yield_when_idle", "1", NULL);
    for (uint32_t i = 0; shared && i < G_N_ELEMENTS(PLACE); i++)
        g_strv_builder_add_many(command, "--mca", PLACE[i], shared, NULL);
    if (geteuid() == 0)
        g_strv_builder_add(command, "--allow-run-as-root");
    g_strv_builder_add(command, self);
    g_strv_builder_addv(command, (const char **)arguments);
    return g_strv_builder_end(command);
}

/* Fails with the first message of a rank, or of mpirun, in their stderr. */
static bool fail_as_ranks(const char *text, int status, uint32_t timeout_s,
                          GError **error)
{
    if (strstr(text, TIME_LIMIT_TEXT))
        return kilter_fail(error, KILTER_ERROR_FAILED,
                           "the ranks took more than the %u s of --timeout", timeout_s);
    const int code = status == KILTER_ERROR_INPUT || status == KILTER_ERROR_INFEASIBLE
                         ? status
                         : KILTER_ERROR_FAILED;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++)
        if (g_str_has_prefix(*line, "kilter: "))
            return kilter_fail(error, (KilterError)code, "%s",
                               *line + strlen("kilter: "));
    for (char **line = lines; *line; line++)
        if (strstr(*line, "exited on signal"))
            return kilter_fail(error, KILTER_ERROR_FAILED, "%s", *line);
    for (char **line = lines; *line; line++)
        if (g_ascii_isalpha(**line))
            return kilter_fail(error, KILTER_ERROR_FAILED, "mpirun: %s", *line);
    return kilter_fail(error, KILTER_ERROR_FAILED, "the ranks ended with status %d",
                       status);
}

/* --- waiting for the ranks --- */

/* Signals that end the ranks before the command ends. */
static const int STOPS[] = {SIGINT, SIGTERM, SIGHUP};

typedef struct {
    GPid mpirun;                              /* 0: it has ended */
    guint source[G_N_ELEMENTS(STOPS)], force; /* sources of the main context; 0: none */
    bool stopped;
    int status;       /* of its end, as waitpid() has it */
    char *out, *text; /* of its stdout and stderr */
    GError *trouble;  /* why it did not start */
} Wait;

static void wait_clear(Wait *wait)
{
    for (uint32_t i = 0; i < G_N_ELEMENTS(STOPS); i++)
        g_clear_handle_id(&wait->source[i], g_source_remove);
    g_clear_handle_id(&wait->force, g_source_remove);
    g_free(wait->out);
    g_free(wait->text);
    g_clear_error(&wait->trouble);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Wait, wait_clear)

static void wait_kill(const Wait *wait, int signal)
{
    if (wait->mpirun > 0)
        kill(wait->mpirun, signal);
}

static gboolean end_by_force(gpointer data)
{
    Wait *wait = data;
    wait_kill(wait, SIGKILL);
    wait->force = 0;
    return G_SOURCE_REMOVE;
}

/* The first signal asks mpirun to end its ranks, another one does not wait for it. */
static gboolean launch_stop(gpointer data)
{
    Wait *wait = data;
    wait_kill(wait, wait->stopped ? SIGKILL : SIGTERM);
    if (!wait->stopped)
        wait->force = g_timeout_add_seconds(STOP_GRACE_S, end_by_force, wait);
    wait->stopped = true;
    return G_SOURCE_CONTINUE;
}

static void take_status(GPid mpirun, int status, gpointer data)
{
    Wait *wait = data;
    g_spawn_close_pid(mpirun);
    wait->mpirun = 0;
    wait->status = status;
}

/* The text of a file in memory, which is closed. */
static char *take_text(int fd)
{
    g_autofree char *place = g_strdup_printf("/proc/self/fd/%d", fd);
    char *text;
    const bool good = g_file_get_contents(place, &text, NULL, NULL);
    close(fd);
    return good ? text : g_strdup("");
}

/* In a child: ends with its parent, however that ends. */
static void end_with_parent(gpointer unused)
{
    (void)unused;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
}

/* Starts mpirun and waits for its end, unless there is an error in `wait`. */
static void wait_for(Wait *wait, char **command)
{
    const int out = memfd_create("out", MFD_CLOEXEC),
              text = memfd_create("err", MFD_CLOEXEC);
    g_spawn_async_with_fds(NULL, command, NULL, G_SPAWN_DO_NOT_REAP_CHILD,
                           end_with_parent, NULL, &wait->mpirun, -1, out, text,
                           &wait->trouble);
    for (uint32_t i = 0; wait->mpirun > 0 && i < G_N_ELEMENTS(STOPS); i++) {
        struct sigaction before;
        if (sigaction(STOPS[i], NULL, &before) == 0 && before.sa_handler != SIG_IGN)
            wait->source[i] = g_unix_signal_add(STOPS[i], launch_stop, wait);
    }
    if (wait->mpirun > 0)
        g_child_watch_add(wait->mpirun, take_status, wait);
    while (wait->mpirun > 0)
        g_main_context_iteration(NULL, TRUE);
    wait->out = take_text(out);
    wait->text = take_text(text);
}

/* A folder for the memory that ranks share, which killed ranks leave behind; NULL: no place. */
static char *shared_folder_new(void)
{
    char *folder = g_strdup(EXEC_SHARED "XXXXXX");
    if (!g_mkdtemp(folder))
        g_clear_pointer(&folder, g_free);
    return folder;
}

bool exec_launch(uint32_t n_ranks, uint32_t timeout_s, const char *const *arguments,
                 bool quiet, GError **error)
{
    g_autofree char *mpirun = g_find_program_in_path("mpirun");
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    if (!mpirun || !self)
        return kilter_fail(error, KILTER_ERROR_FAILED,
                           "no mpirun on the PATH: the mpi backend needs Open MPI "
                           "(openmpi-bin)");
    g_autofree char *shared = shared_folder_new();
    g_auto(GStrv) command =
        exec_launch_command_of(mpirun, self, n_ranks, timeout_s, shared, arguments);
    g_auto(Wait) wait = {0};
    g_autofree char *doing = g_strdup_printf("running %u ranks", n_ranks);
    Pace *pace = pace_begin(doing, quiet);
    wait_for(&wait, command);
    pace_end(pace);
    output_forget(shared);
    if (wait.stopped)
        return kilter_fail(error, KILTER_ERROR_FAILED,
                           "stopped by a signal; the %u ranks were ended", n_ranks);
    if (wait.trouble)
        return kilter_fail(error, KILTER_ERROR_FAILED, "mpirun: %s",
                           wait.trouble->message);
    const int status = WIFEXITED(wait.status) ? WEXITSTATUS(wait.status) : -1;
    if (status != 0)
        return fail_as_ranks(wait.text, status, timeout_s, error);
    fputs(wait.out, stdout);
    return true;
}

/* --- on the ranks --- */

void exec_rank_options(GStrvBuilder *list, const CommandOptions *options,
                       const ExecTiming *timing)
{
    g_autofree char *seed =
        g_strdup_printf("--seed=%" G_GUINT64_FORMAT, options->planner.seed);
    g_autofree char *warm_ups = g_strdup_printf("--warm-up=%d", timing->warm_up);
    g_autofree char *runs = g_strdup_printf("--repeats=%d", timing->repeats);
    g_autofree char *timeout = g_strdup_printf("--timeout=%d", timing->timeout_s);
    g_strv_builder_add_many(list, seed, warm_ups, runs, timeout, NULL);
    if (options->json)
        g_strv_builder_add(list, "--json");
    if (options->quiet)
        g_strv_builder_add(list, "--quiet");
    if (options->verbose)
        g_strv_builder_add(list, "--verbose");
}

bool exec_as_rank(uint32_t timeout_s, bool alone,
                  bool (*work)(ExecRank rank, void *data, GError **error), void *data,
                  GError **error)
{
    ExecRank rank = {1, 0};
    alarm(timeout_s + RANK_GRACE_S);
    if (!alone)
        end_with_parent(NULL);
    const ExecMpi *mpi = alone ? NULL : exec_mpi(error);
    if (!alone && (!mpi || !mpi->start(&rank.n, &rank.rank, error)))
        return false;
    if (!work(rank, data, error))
        return false;
    if (!alone)
        mpi->stop();
    return true;
}

bool exec_rank_ends(bool good)
{
    if (!good && exec_is_rank() && !exec_is_first_rank())
        g_usleep(RANK_GRACE_S * G_USEC_PER_SEC);
    return good;
}
