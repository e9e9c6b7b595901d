/* The threads of a sweep. */
#include "experiments/sweep/workers.h"

#include <math.h>
#include <signal.h>

#include "data/base/free.h"

enum {
    /* Others wait about so long for configurations that a process has claimed and not begun. */
    AHEAD_US = 20 * 1000,
    MOST_AHEAD = 64,
    /* The mean follows the times of the last so many outcomes. */
    REMEMBERED = 8,
};

struct Workers {
    const char *experiment;
    uint32_t n, in_flight;
    GThread **thread;
    GAsyncQueue *started, *outcomes; /* Configuration, Outcome */
    /* of an evaluation, or the last one's if that is longer; INFINITY: none yet */
    double mean_us;
};

/* In place of a configuration: the thread ends. */
static const char END = 0;

FREE_DEFINE(outcome_free, Outcome, outcome, result_clear(&outcome->result),
            g_clear_error(&outcome->error));

static Outcome *evaluate(const Configuration *configuration, const char *experiment)
{
    Outcome *outcome = g_new0(Outcome, 1);
    const gint64 start_us = g_get_monotonic_time();
    outcome->configuration = configuration;
    result_evaluate(configuration, experiment, &outcome->result, &outcome->error);
    outcome->took_us = MAX(g_get_monotonic_time() - start_us, 0);
    return outcome;
}

static void *work(void *data)
{
    enum { STACK = 1 << 16 };
    const Workers *workers = data;
    /* For handlers of signals when this thread's own stack is full. */
    g_autofree char *space = g_malloc(STACK);
    const stack_t stack = {.ss_sp = space, .ss_size = STACK},
                  none = {.ss_flags = SS_DISABLE};
    sigaltstack(&stack, NULL);
    for (;;) {
        void *item = g_async_queue_pop(workers->started);
        if (item == &END) {
            sigaltstack(&none, NULL);
            return NULL;
        }
        g_async_queue_push(workers->outcomes, evaluate(item, workers->experiment));
    }
}

Workers *workers_new(const char *experiment, uint32_t threads)
{
    g_assert(experiment && threads > 0);
    Workers *workers = g_new0(Workers, 1);
    workers->experiment = experiment;
    workers->n = threads;
    workers->started = g_async_queue_new();
    workers->outcomes = g_async_queue_new_full((GDestroyNotify)outcome_free);
    workers->mean_us = INFINITY;
    workers->thread = g_new(GThread *, threads);
    for (uint32_t i = 0; i < threads; i++)
        workers->thread[i] = g_thread_new("sweep", work, workers);
    return workers;
}

void workers_free(Workers *workers)
{
    if (!workers)
        return;
    while (workers_take_back(workers))
        ;
    for (uint32_t i = 0; i < workers->n; i++)
        g_async_queue_push(workers->started, (gpointer)&END);
    for (uint32_t i = 0; i < workers->n; i++)
        g_thread_join(workers->thread[i]);
    g_async_queue_unref(workers->started);
    g_async_queue_unref(workers->outcomes);
    free_each(workers->thread, workers);
}

uint32_t workers_in_flight(const Workers *workers)
{
    return workers->in_flight;
}

/* How many the threads finish in AHEAD_US. */
static uint32_t ahead(const Workers *workers)
{
    const double n = AHEAD_US * (double)workers->n / MAX(workers->mean_us, 1);
    return n < MOST_AHEAD ? (uint32_t)n : MOST_AHEAD;
}

uint32_t workers_most(const Workers *workers)
{
    return workers->n + ahead(workers);
}

void workers_start(Workers *workers, const Configuration *configuration)
{
    g_assert(configuration && workers->in_flight < workers->n + MOST_AHEAD);
    workers->in_flight++;
    g_async_queue_push(workers->started, (gpointer)configuration);
}

static Outcome *account(Workers *workers, Outcome *outcome)
{
    if (!outcome)
        return NULL;
    const double took_us = (double)outcome->took_us;
    g_assert(workers->in_flight > 0 && took_us >= 0);
    workers->in_flight--;
    if (isinf(workers->mean_us) || took_us > workers->mean_us)
        workers->mean_us = took_us;
    else
        workers->mean_us += (took_us - workers->mean_us) / REMEMBERED;
    return outcome;
}

Outcome *workers_wait(Workers *workers, gint64 wait_us)
{
    Outcome *first =
        account(workers, g_async_queue_timeout_pop(workers->outcomes, (guint64)wait_us));
    const gint waiting = g_async_queue_length(workers->started); /* -threads if idle */
    if (!first && workers->in_flight > 0 && workers->mean_us < (double)wait_us)
        workers->mean_us =
            (double)wait_us; /* what is being evaluated takes at least that */
    if (first && waiting > 0) {
        const double all_us = waiting * workers->mean_us / workers->n;
        g_usleep((gulong)MIN(all_us / 2, AHEAD_US));
    }
    return first;
}

Outcome *workers_take(Workers *workers)
{
    return account(workers, g_async_queue_try_pop(workers->outcomes));
}

const Configuration *workers_take_back(Workers *workers)
{
    const Configuration *configuration = g_async_queue_try_pop(workers->started);
    workers->in_flight -= configuration != NULL;
    return configuration;
}
