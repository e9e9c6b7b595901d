/* Starting kilter exec again under mpirun. */
#include "experiments/cli/exec_launch.h"

#include <gio/gio.h>
#include <string.h>
#include <unistd.h>

#include "exec/exec.h"

/* Ranks end themselves if mpirun does not; after its own limit, in seconds. */
enum { RANK_GRACE_S = 10 };

/* How mpirun says that its --timeout has passed. */
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

/* "mpirun -n 4 --oversubscribe ... /path/of/kilter exec ..." */
static GPtrArray *command_of(const char *mpirun, const char *self, uint32_t n_ranks,
                             uint32_t timeout_s, const char *const *arguments)
{
    GPtrArray *command = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(command, g_strdup(mpirun));
    g_ptr_array_add(command, g_strdup("-n"));
    g_ptr_array_add(command, g_strdup_printf("%u", n_ranks));
    g_ptr_array_add(command, g_strdup("--oversubscribe"));
    g_ptr_array_add(command, g_strdup("--timeout"));
    g_ptr_array_add(command, g_strdup_printf("%u", timeout_s));
    /* Ranks that wait on a core that others need must give it up. */
    if (n_ranks > g_get_num_processors()) {
        g_ptr_array_add(command, g_strdup("--mca"));
        g_ptr_array_add(command, g_strdup("mpi_yield_when_idle"));
        g_ptr_array_add(command, g_strdup("1"));
    }
    if (geteuid() == 0)
        g_ptr_array_add(command, g_strdup("--allow-run-as-root"));
    g_ptr_array_add(command, g_strdup(self));
    for (; *arguments; arguments++)
        g_ptr_array_add(command, g_strdup(*arguments));
    g_ptr_array_add(command, NULL);
    return command;
}

/* The first message of a rank, or of mpirun, in what they wrote to stderr. */
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

bool exec_launch(uint32_t n_ranks, uint32_t timeout_s, const char *const *arguments,
                 GError **error)
{
    g_autofree char *mpirun = g_find_program_in_path("mpirun");
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    if (!mpirun || !self)
        return kilter_fail(error, KILTER_ERROR_FAILED,
                           "no mpirun on the PATH: the mpi backend needs Open MPI "
                           "(openmpi-bin)");
    g_autoptr(GPtrArray) command =
        command_of(mpirun, self, n_ranks, timeout_s, arguments);
    g_autoptr(GError) trouble = NULL;
    g_autoptr(GSubprocess) ranks = g_subprocess_newv(
        (const char *const *)command->pdata, G_SUBPROCESS_FLAGS_STDERR_PIPE, &trouble);
    g_autofree char *text = NULL;
    if (!ranks ||
        !g_subprocess_communicate_utf8(ranks, NULL, NULL, NULL, &text, &trouble))
        return kilter_fail(error, KILTER_ERROR_FAILED, "mpirun: %s", trouble->message);
    const int status =
        g_subprocess_get_if_exited(ranks) ? g_subprocess_get_exit_status(ranks) : -1;
    return status == 0 || fail_as_ranks(text, status, timeout_s, error);
}

/* --- on the ranks --- */

bool exec_timing_check(const ExecTiming *timing, GError **error)
{
    enum { MOST = 1000000 };
    return command_check_range("--warm-up", timing->warm_up, 0, MOST, error) &&
           command_check_range("--repeats", timing->repeats, 1, MOST, error) &&
           command_check_range("--timeout", timing->timeout_s, 1, MOST, error);
}

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
    if (!alone && !exec_mpi_start(&rank.n, &rank.rank, error))
        return false;
    if (!work(rank, data, error))
        return false;
    if (!alone)
        exec_mpi_stop();
    return true;
}

bool exec_rank_ends(bool good)
{
    if (!good && exec_is_rank() && !exec_is_first_rank())
        g_usleep(RANK_GRACE_S * G_USEC_PER_SEC);
    return good;
}
