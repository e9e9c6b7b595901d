/* Sweeping an experiment's configurations on all cores. */
#include "experiments/sweep/sweep.h"

#include <math.h>
#include <string.h>

#include "experiments/sweep/result.h"

/* The result of a worker: a row, or an error. */
typedef struct {
    const Configuration *configuration;
    Result result;
    GError *error;
} Outcome;

static void outcome_free(Outcome *outcome)
{
    result_clear(&outcome->result);
    g_clear_error(&outcome->error);
    g_free(outcome);
}

static Outcome *evaluate(const Configuration *configuration, const char *experiment)
{
    Outcome *outcome = g_new0(Outcome, 1);
    outcome->configuration = configuration;
    result_evaluate(configuration, experiment, &outcome->result, &outcome->error);
    return outcome;
}

/* --- the pool --- */

typedef struct {
    const Experiment *experiment;
    GAsyncQueue *outcomes;
} Work;

static void work(gpointer item, gpointer data)
{
    const Work *shared = data;
    g_async_queue_push(shared->outcomes,
                       evaluate(item, experiment_name(shared->experiment)));
}

typedef struct {
    const SweepOptions *options;
    SweepProgress *progress;
    Store *store;
    gint64 start_us;
    GError *first; /* why the first failed configuration failed, or the store */
    bool stopped;
} Sweep;

static void watch(Sweep *sweep)
{
    sweep->progress->elapsed_s =
        (double)(g_get_monotonic_time() - sweep->start_us) / G_USEC_PER_SEC;
    if (sweep->options->watch &&
        !sweep->options->watch(sweep->progress, sweep->options->data))
        sweep->stopped = true;
}

static void keep_first(Sweep *sweep, const Configuration *c, GError *error)
{
    if (sweep->first) {
        g_error_free(error);
        return;
    }
    kilter_prefix(&error, "%s on %s with %s: ", c->model, c->cluster_name,
                   c->planner ? c->planner->name : "no planner");
    sweep->first = error;
}

static void take(Sweep *sweep, Outcome *outcome)
{
    GError *error = g_steal_pointer(&outcome->error);
    const bool evaluated = !error;
    if (evaluated && store_put(sweep->store, &outcome->result.row, &error)) {
        sweep->progress->done++;
        sweep->progress->oom += strcmp(outcome->result.row.status, "oom") == 0;
        sweep->progress->impossible +=
            strcmp(outcome->result.row.status, "impossible") == 0;
    } else {
        sweep->progress->failed++;
        sweep->stopped |= evaluated; /* what cannot be written is not worth computing */
        keep_first(sweep, outcome->configuration, error);
    }
    outcome_free(outcome);
}

static uint32_t shard_of(const char *hash, uint32_t shards)
{
    enum { DIGITS = 8 }; /* of the hash: far more values than there are shards */
    g_autofree char *digits = g_strndup(hash, DIGITS);
    return (uint32_t)(g_ascii_strtoull(digits, NULL, 16) % shards);
}

static bool is_mine(const SweepOptions *options, const char *hash)
{
    return options->shards == 0 || shard_of(hash, options->shards) == options->shard;
}

/* Configurations that the store (NULL: an empty one) lacks, in grid order. */
static GPtrArray *missing(const Experiment *experiment, Store *store,
                          const SweepOptions *options, SweepProgress *progress,
                          GError **error)
{
    const uint32_t all = experiment_count(experiment);
    g_autoptr(GPtrArray) list = g_ptr_array_new();
    g_autofree StoreAsked *asked = experiment_asked(experiment);
    g_autofree uint32_t *index = g_new(uint32_t, all);
    g_autofree bool *has = g_new0(bool, all);
    uint32_t n = 0;
    for (uint32_t i = 0; i < all; i++)
        if (is_mine(options, asked[i].hash)) {
            index[n] = i;
            asked[n++] = asked[i];
        }
    if (store && !store_find(store, asked, n, has, error))
        return NULL;
    for (uint32_t i = 0; i < n; i++)
        if (!has[i]) {
            g_ptr_array_add(list, (gpointer)experiment_at(experiment, index[i]));
        }
    progress->total = n;
    progress->present = n - list->len;
    return g_steal_pointer(&list);
}

/* Keeps as many configurations in flight as there are threads: then stopping needs no cancellation. */
static void drive(Sweep *sweep, GThreadPool *pool, GAsyncQueue *outcomes,
                  const GPtrArray *list, uint32_t threads)
{
    const guint64 poll_us = G_USEC_PER_SEC / 5;
    uint32_t next = 0, in_flight = 0;
    watch(sweep);
    while (in_flight > 0 || (next < list->len && !sweep->stopped)) {
        while (in_flight < threads && next < list->len && !sweep->stopped) {
            g_thread_pool_push(pool, list->pdata[next++], NULL);
            in_flight++;
        }
        Outcome *outcome = g_async_queue_timeout_pop(outcomes, poll_us);
        if (outcome) {
            take(sweep, outcome);
            in_flight--;
        }
        watch(sweep);
    }
}

static bool verdict(const Sweep *sweep, GError **error)
{
    const SweepProgress *p = sweep->progress;
    uint32_t left = p->total - p->present - p->done;
    if (p->failed > 0)
        return kilter_fail(error, KILTER_ERROR_FAILED,
                           "%u of %u configurations failed, first %s", p->failed,
                           p->total, sweep->first->message);
    if (left > 0)
        return kilter_fail(
            error, KILTER_ERROR_FAILED,
            "stopped with %u of %u configurations to do; the same command resumes", left,
            p->total);
    return true;
}

/* The graphs that the list's configurations have in common are kept until the last of them is done. */
static void expect(const GPtrArray *list)
{
    for (uint32_t i = 0; i < list->len; i++) {
        const Configuration *c = list->pdata[i];
        if (c->subject)
            subject_expect(c->subject);
    }
}

static uint32_t threads_of(const SweepOptions *options)
{
    return options->threads ? options->threads : g_get_num_processors();
}

bool sweep_run(const Experiment *experiment, Store *store, const SweepOptions *options,
               SweepProgress *progress, GError **error)
{
    *progress = (SweepProgress){0};
    g_autoptr(GPtrArray) list = missing(experiment, store, options, progress, error);
    if (!list)
        return false;
    expect(list);
    const uint32_t threads = threads_of(options);
    g_autoptr(GAsyncQueue) outcomes = g_async_queue_new();
    Work shared = {.experiment = experiment, .outcomes = outcomes};
    GThreadPool *pool = g_thread_pool_new(work, &shared, (int)threads, FALSE, error);
    if (!pool)
        return false;
    Sweep sweep = {.options = options,
                   .progress = progress,
                   .store = store,
                   .start_us = g_get_monotonic_time()};
    drive(&sweep, pool, outcomes, list, threads);
    g_thread_pool_free(pool, FALSE, TRUE);
    bool good = verdict(&sweep, error);
    g_clear_error(&sweep.first);
    return good;
}

/* --- without evaluating all of it --- */

bool sweep_estimate(const Experiment *experiment, Store *store,
                    const SweepOptions *options, SweepEstimate *estimate, GError **error)
{
    enum { TRIES = 16, LONGEST_US = 2 * G_USEC_PER_SEC };
    SweepProgress progress = {0};
    g_autoptr(GPtrArray) list = missing(experiment, store, options, &progress, error);
    if (!list)
        return false;
    *estimate = (SweepEstimate){.total = progress.total, .present = progress.present};
    const uint32_t n = MIN(list->len, TRIES);
    const gint64 start = g_get_monotonic_time();
    gint64 now = start;
    for (uint32_t i = 0; i < n && now - start < LONGEST_US; i++) {
        g_auto(Result) result = {0};
        GError *cause = NULL;
        if (!result_evaluate(list->pdata[(uint64_t)i * list->len / n],
                             experiment_name(experiment), &result, &cause))
            g_clear_error(&cause); /* the sweep will say so */
        estimate->tried++;
        now = g_get_monotonic_time();
    }
    estimate->each_s =
        estimate->tried ? (double)(now - start) / G_USEC_PER_SEC / (double)estimate->tried
                        : NAN;
    estimate->all_s = list->len == 0 ? 0
                                     : estimate->each_s * (double)list->len /
                                           MIN(threads_of(options), list->len);
    return true;
}

typedef struct {
    const Experiment *experiment;
    SweepStatus *status;
    uint32_t shards;
} Count;

static SweepStatus *status_of(const Count *count, uint32_t index)
{
    const char *hash = experiment_at(count->experiment, index)->hash;
    return &count->status[count->shards ? shard_of(hash, count->shards) : 0];
}

static void count_row(uint32_t n_columns, char **value, char **column, void *data)
{
    (void)column;
    g_assert(n_columns == 2);
    const Count *count = data;
    SweepStatus *status =
        status_of(count, (uint32_t)g_ascii_strtoull(value[0], NULL, 10) - 1);
    status->missing--;
    status->ok += strcmp(value[1], "ok") == 0;
    status->oom += strcmp(value[1], "oom") == 0;
    status->impossible += strcmp(value[1], "impossible") == 0;
}

SweepStatus *sweep_status(const Experiment *experiment, Store *store, uint32_t shards,
                          GError **error)
{
    g_autofree SweepStatus *status = g_new0(SweepStatus, MAX(shards, 1));
    Count count = {experiment, status, shards};
    for (uint32_t i = 0; i < experiment_count(experiment); i++) {
        SweepStatus *of = status_of(&count, i);
        of->total++;
        of->missing++;
    }
    return experiment_select(experiment, store, error) &&
                   store_query(store, "SELECT ordinal, status FROM result", count_row,
                               &count, error)
               ? g_steal_pointer(&status)
               : NULL;
}
