/* Sweeping an experiment's configurations on all cores. */
#include "experiments/sweep/sweep.h"

#include <math.h>
#include <string.h>

#include "data/base/free.h"
#include "data/base/parallel.h"
#include "data/store/store.h"
#include "experiments/sweep/configuration.h"
#include "experiments/sweep/workers.h"

/* --- the order of work --- */

/* The order in which a sweep starts what its store lacks, shared with other processes by claims
 * (data/store/store.h).
 *
 * A configuration that a process ended with is started after all others and alone, so that a second
 * end shows that it was the cause. What another process works on waits until that has an answer, or
 * has ended. */

typedef struct {
    Store *store;
    char *experiment;
    uint32_t flags; /* of claims */
    /* Configurations that are new, that others work on, and that ended a process. */
    GQueue fresh, taken, suspect;
    GPtrArray *poison; /* those that are not started, as they ended processes */
    uint32_t answered; /* by other processes meanwhile */
    gint64 looked_us;  /* when `taken` was looked at last */
} Queue;

/* `missing`: Configurations, borrowed. `experiment`: the name that asks. `again`: configurations
 * that ended processes are tried again. */
static Queue *queue_new(Store *store, const char *experiment, const GPtrArray *missing,
                        bool again)
{
    Queue *queue = g_new0(Queue, 1);
    queue->store = store;
    queue->experiment = g_strdup(experiment);
    queue->flags = again ? STORE_AGAIN : 0;
    queue->poison = g_ptr_array_new();
    for (guint i = 0; i < missing->len; i++)
        g_queue_push_tail(&queue->fresh, missing->pdata[i]);
    return queue;
}

OWN_FREE_DEFINE(queue_free, Queue, queue, g_queue_clear(&queue->fresh),
                g_queue_clear(&queue->taken), g_queue_clear(&queue->suspect),
                g_ptr_array_unref(queue->poison), g_free(queue->experiment));

/* Claims one, or puts it where it belongs. */
static bool try_one(Queue *queue, Configuration *c, uint32_t flags,
                    const Configuration **next, GError **error)
{
    StoreClaim claim;
    const StoreAsked asked = configuration_asked(c, queue->experiment);
    if (!store_claim(queue->store, &asked, queue->flags | flags, &claim, error))
        return false;
    switch (claim) {
    case STORE_CLAIMED:
        *next = c;
        break;
    case STORE_TAKEN:
        g_queue_push_tail(&queue->taken, c);
        break;
    case STORE_ANSWERED:
        queue->answered += configuration_points(c);
        return configuration_record_twins(c, queue->store, queue->experiment, error);
    case STORE_SUSPECT:
        g_queue_push_tail(&queue->suspect, c);
        break;
    case STORE_POISON:
        g_ptr_array_add(queue->poison, c);
        break;
    }
    return true;
}

/* Looks at each of a list once, until one can be started. */
static bool try_all(Queue *queue, GQueue *list, uint32_t flags,
                    const Configuration **next, GError **error)
{
    bool good = true;
    for (guint n = list->length; good && n > 0 && !*next; n--)
        good = try_one(queue, g_queue_pop_head(list), flags, next, error);
    return good;
}

/* Claims the next configuration while `in_flight` others are worked on. *next: NULL if none may
 * start now. */
static bool queue_next(Queue *queue, uint32_t in_flight, const Configuration **next,
                       GError **error)
{
    const guint64 patience_us = G_USEC_PER_SEC / 5;
    const gint64 now_us = g_get_monotonic_time();
    *next = NULL;
    bool good = try_all(queue, &queue->fresh, 0, next, error);
    if (good && !*next && queue->taken.length > 0 &&
        (guint64)(now_us - queue->looked_us) > patience_us) { /* also where it ran back */
        queue->looked_us = now_us;
        good = try_all(queue, &queue->taken, 0, next, error);
    }
    if (good && !*next && in_flight == 0 && queue->taken.length == 0)
        good = try_all(queue, &queue->suspect, STORE_ALONE, next, error);
    return good;
}

/* Ends the claim of one that was not begun: it is again the next to be started. */
static bool queue_give_back(Queue *queue, const Configuration *configuration,
                            GError **error)
{
    g_queue_push_head(&queue->fresh, (gpointer)configuration);
    return store_give_up(queue->store, configuration->hash, NULL, error);
}

typedef struct {
    const SweepOptions *options;
    SweepProgress *progress;
    Store *store;
    Queue *queue;
    Workers *workers;
    uint32_t present; /* at the start */
    gint64 start_us;
    GError *first; /* why the first failed configuration failed, or the store */
    bool stopped;
    bool broken; /* the store failed; it is not written any more */
} Sweep;

static void watch(Sweep *sweep)
{
    sweep->progress->elapsed_s =
        (double)(g_get_monotonic_time() - sweep->start_us) / G_USEC_PER_SEC;
    sweep->progress->present = sweep->present + sweep->queue->answered;
    if (!sweep->stopped && sweep->options->watch &&
        !sweep->options->watch(sweep->progress, sweep->options->data)) {
        sweep->stopped = true;
        /* Configurations in flight are finished; they are not blamed if the process is killed
         * meanwhile. */
        store_give_up(sweep->store, NULL, NULL, NULL);
    }
}

/* A sweep whose store fails is over. Takes the error. */
static void break_off(Sweep *sweep, GError *error)
{
    sweep->stopped = sweep->broken = true;
    if (sweep->first)
        g_error_free(error);
    else
        sweep->first = error;
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

/* Writes an outcome for all points of the grid that ask for it, or notes why there is no result.
 * Returns their number. */
static uint32_t sweep_take(Sweep *sweep, Outcome *outcome)
{
    SweepProgress *p = sweep->progress;
    const StoreResult *row = &outcome->result.row;
    const uint32_t n = configuration_points(outcome->configuration);
    GError *error = NULL;
    if (sweep->broken) {
        p->failed += n;
    } else if (outcome->error) {
        p->failed += n;
        if (!store_give_up(sweep->store, outcome->configuration->hash,
                           outcome->error->message, &error))
            break_off(sweep, error);
        keep_first(sweep, outcome->configuration, g_steal_pointer(&outcome->error));
    } else if (store_put(sweep->store, row, &error) &&
               configuration_record_twins(outcome->configuration, sweep->store,
                                          row->asked.experiment, &error)) {
        p->done += n;
        p->oom += strcmp(row->status, "oom") == 0 ? n : 0;
        p->impossible += strcmp(row->status, "impossible") == 0 ? n : 0;
    } else {
        p->failed += n;
        break_off(sweep, error);
    }
    outcome_free(outcome);
    return n;
}

static uint32_t shard_of(const char *hash, uint32_t shards)
{
    enum { DIGITS = 8 }; /* of the hash: far more values than there are shards */
    g_autofree char *digits = g_strndup(hash, DIGITS);
    return (uint32_t)(g_ascii_strtoull(digits, NULL, 16) % shards);
}

/* Configurations that the store (NULL: an empty one) lacks, in grid order; of those that ask the
 * same, the first. */
static GPtrArray *missing(const Experiment *experiment, Store *store,
                          const SweepOptions *options, SweepProgress *progress,
                          GError **error)
{
    const uint32_t all = experiment_count(experiment);
    g_autoptr(GPtrArray) list = g_ptr_array_new();
    g_autofree StoreAsked *asked = experiment_asked(experiment);
    g_autofree uint32_t *index = g_new(uint32_t, all);
    g_autofree bool *has = g_new0(bool, all);
    uint32_t n = 0, n_missing = 0;
    for (uint32_t i = 0; i < all; i++)
        if (options->shards == 0 ||
            shard_of(asked[i].hash, options->shards) == options->shard) {
            index[n] = i;
            asked[n++] = asked[i];
        }
    if (store && !store_find(store, asked, n, has, error))
        return NULL;
    for (uint32_t i = 0; i < n; i++) {
        const Configuration *c = experiment_at(experiment, index[i]);
        n_missing += !has[i];
        if (!has[i] && !c->is_twin)
            g_ptr_array_add(list, (gpointer)c);
    }
    progress->total = n;
    progress->present = n - n_missing;
    return g_steal_pointer(&list);
}

/* Claims as many as may be in flight. */
static void claim(Sweep *sweep, GPtrArray *started)
{
    const uint32_t in_flight = workers_in_flight(sweep->workers);
    const uint32_t most = workers_most(sweep->workers);
    const Configuration *next = NULL;
    do {
        GError *error = NULL;
        if (sweep->stopped || in_flight + started->len >= most)
            return;
        if (!queue_next(sweep->queue, in_flight + started->len, &next, &error)) {
            break_off(sweep, error);
            return;
        }
        if (next)
            g_ptr_array_add(started, (gpointer)next);
    } while (next);
}

/* Configurations that no thread has begun are for others if all threads work long on theirs, and
 * for nobody if the sweep is stopped, when its claims have ended already. */
static void take_back(Sweep *sweep, bool is_late)
{
    const Configuration *c = NULL;
    while ((is_late || sweep->stopped) && (c = workers_take_back(sweep->workers))) {
        GError *error = NULL;
        if (!sweep->stopped && !queue_give_back(sweep->queue, c, &error))
            break_off(sweep, error);
    }
}

/* Writes outcomes, from this one (or NULL) on, and claims what comes next, in one transaction. */
static void exchange(Sweep *sweep, Outcome *outcome, GPtrArray *started)
{
    GError *error = NULL;
    SweepProgress *p = sweep->progress;
    const SweepProgress before = *p;
    const bool is_late = !outcome && workers_in_flight(sweep->workers) > 0;
    uint32_t n = 0;
    if (!sweep->broken &&
        !(store_keep(sweep->store, &error) && store_begin(sweep->store, &error)))
        break_off(sweep, error);
    for (; outcome; outcome = workers_take(sweep->workers))
        n += sweep_take(sweep, outcome);
    take_back(sweep, is_late);
    claim(sweep, started);
    if (!sweep->broken && !store_commit(sweep->store, &error))
        break_off(sweep, error);
    if (sweep->broken) { /* nothing of it is written */
        g_ptr_array_set_size(started, 0);
        p->done = before.done;
        p->oom = before.oom;
        p->impossible = before.impossible;
        p->failed = before.failed + n;
    }
}

/* Keeps all threads busy until nothing is left; stopping needs no cancellation. */
static void drive(Sweep *sweep)
{
    const gint64 poll_us = G_USEC_PER_SEC / 5;
    g_autoptr(GPtrArray) started = g_ptr_array_new();
    watch(sweep);
    while (workers_in_flight(sweep->workers) > 0 ||
           (!sweep->stopped && sweep->queue->fresh.length + sweep->queue->taken.length +
                                       sweep->queue->suspect.length >
                                   0)) {
        const bool waits =
            workers_in_flight(sweep->workers) > 0 ||
            (sweep->queue->fresh.length == 0 && sweep->queue->taken.length > 0);
        exchange(sweep, waits ? workers_wait(sweep->workers, poll_us) : NULL, started);
        for (guint i = 0; i < started->len; i++)
            workers_start(sweep->workers, started->pdata[i]);
        g_ptr_array_set_size(started, 0);
        watch(sweep);
    }
}

/* Adds which configurations are not tried any more. */
static void add_poison(const Sweep *sweep, GString *text)
{
    enum { NAMED = 8 };
    const GPtrArray *poison = sweep->queue->poison;
    if (poison->len == 0)
        return;
    g_string_append_printf(text, "%s%u of %u configurations ended %d processes each: ",
                           text->len ? "; " : "", poison->len, sweep->progress->total,
                           STORE_DEATHS);
    for (guint i = 0; i < MIN(poison->len, NAMED); i++) {
        const Configuration *c = poison->pdata[i];
        g_string_append_printf(text, "%s%s on %s with %s", i ? ", " : "", c->model,
                               c->cluster_name, c->entry ? c->entry : "no planner");
    }
    if (poison->len > NAMED)
        g_string_append(text, " and others");
    g_string_append(text, "; --retry tries them again");
}

static bool verdict(const Sweep *sweep, GError **error)
{
    const SweepProgress *p = sweep->progress;
    uint32_t poison = 0;
    for (guint i = 0; i < sweep->queue->poison->len; i++)
        poison += configuration_points(sweep->queue->poison->pdata[i]);
    const uint32_t left = p->total - p->present - p->done - poison;
    g_autoptr(GString) text = g_string_new(NULL);
    if (p->failed > 0)
        g_string_printf(text, "%u of %u configurations failed, first %s", p->failed,
                        p->total, sweep->first->message);
    else if (sweep->broken)
        g_string_append(text, sweep->first->message);
    else if (left > 0)
        g_string_printf(
            text, "stopped with %u of %u configurations to do; the same command resumes",
            left, p->total);
    add_poison(sweep, text);
    return text->len == 0 || kilter_fail(error, KILTER_ERROR_FAILED, "%s", text->str);
}

/* Graphs shared by configurations of the list are kept until the last of these is done. */
static void expect(const GPtrArray *list)
{
    pointers_each (const Configuration, c, list)
        if (c->subject)
            subject_expect(c->subject);
}

bool sweep_run(const Experiment *experiment, Store *store, const SweepOptions *options,
               SweepProgress *progress, GError **error)
{
    *progress = (SweepProgress){0};
    g_autoptr(GPtrArray) list = missing(experiment, store, options, progress, error);
    if (!list)
        return false;
    expect(list);
    const char *name = experiment_name(experiment);
    g_autoptr(Workers) workers =
        workers_new(name, parallel_threads(options->threads, list->len));
    g_autoptr(Queue) queue = queue_new(store, name, list, options->again);
    Sweep sweep = {.options = options,
                   .progress = progress,
                   .store = store,
                   .queue = queue,
                   .workers = workers,
                   .present = progress->present,
                   .start_us = g_get_monotonic_time()};
    if (options->faults)
        options->faults(store_fault_file(store));
    drive(&sweep);
    if (options->faults)
        options->faults(NULL);
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
            g_clear_error(&cause); /* the sweep will report it */
        estimate->tried++;
        now = g_get_monotonic_time();
    }
    estimate->each_s =
        estimate->tried ? (double)(now - start) / G_USEC_PER_SEC / (double)estimate->tried
                        : NAN;
    estimate->all_s = list->len == 0 ? 0
                                     : estimate->each_s * (double)list->len /
                                           parallel_threads(options->threads, list->len);
    return true;
}

typedef struct {
    const Experiment *experiment;
    SweepStatus *status;
    uint32_t shards;
    SweepFailed failed;
    void *data;
    bool *known; /* [configuration]: it has a result, or was tried */
} Count;

static SweepStatus *sweep_status_of(const Count *count, uint32_t index)
{
    const char *hash = experiment_at(count->experiment, index)->hash;
    return &count->status[count->shards ? shard_of(hash, count->shards) : 0];
}

static void count_row(uint32_t n_columns, char **value, char **column, void *data)
{
    (void)column;
    g_assert(n_columns == 2);
    const Count *count = data;
    const uint32_t index = (uint32_t)g_ascii_strtoull(value[0], NULL, 10) - 1;
    SweepStatus *status = sweep_status_of(count, index);
    count->known[index] = true;
    status->missing--;
    status->ok += strcmp(value[1], "ok") == 0;
    status->oom += strcmp(value[1], "oom") == 0;
    status->impossible += strcmp(value[1], "impossible") == 0;
}

/* Counts what is worked on, and what failed: by an error, or by all processes that it may end. */
static void count_attempt(const StoreAttempt *attempt, void *data)
{
    const Count *count = data;
    const uint32_t all = experiment_count(count->experiment);
    for (uint32_t i = 0; i < all; i++) {
        const Configuration *c = experiment_at(count->experiment, i);
        if (strcmp(c->hash, attempt->hash) != 0)
            continue;
        const uint32_t n = configuration_points(c);
        SweepStatus *status = sweep_status_of(count, i);
        count->known[i] = true;
        status->running += attempt->runs ? n : 0;
        if (!attempt->runs && (attempt->message || attempt->deaths >= STORE_DEATHS))
            status->failed += n;
        if (count->failed && !attempt->runs)
            count->failed(c, attempt, count->data);
        return;
    }
}

SweepStatus *sweep_status(const Experiment *experiment, Store *store, uint32_t shards,
                          SweepFailed failed, void *data, GError **error)
{
    g_autofree SweepStatus *status = g_new0(SweepStatus, MAX(shards, 1));
    const uint32_t n = experiment_count(experiment);
    g_autofree bool *known = g_new0(bool, n + 1);
    Count count = {experiment, status, shards, failed, data, known};
    for (uint32_t i = 0; i < n; i++) {
        SweepStatus *of = sweep_status_of(&count, i);
        of->total++;
        of->missing++;
    }
    if (!experiment_select(experiment, store, error) ||
        !store_query(store, "SELECT ordinal, status FROM result", count_row, &count,
                     error) ||
        !store_attempts(store, count_attempt, &count, error))
        return NULL;
    for (uint32_t i = 0; failed && i < n; i++)
        if (!known[i])
            failed(experiment_at(experiment, i), NULL, data);
    return g_steal_pointer(&status);
}
