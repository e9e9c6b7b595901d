/* A loop on several threads. */
#include "data/base/parallel.h"

typedef struct {
    const Parallel *work;
    gint next; /* the first round that has not begun; atomic */
    GMutex lock;
    uint32_t failed; /* the lowest round that failed; n: none */
    GError *error;   /* its error */
} Shared;

static void note_failure(Shared *shared, uint32_t i, GError *error)
{
    g_mutex_lock(&shared->lock);
    if (i < shared->failed) {
        g_clear_error(&shared->error);
        shared->error = error;
        shared->failed = i;
    } else {
        g_clear_error(&error);
    }
    g_atomic_int_set(&shared->next, (gint)shared->work->n);
    g_mutex_unlock(&shared->lock);
}

static gpointer run_rounds(gpointer data)
{
    Shared *shared = data;
    const Parallel *work = shared->work;
    void *own = work->begin ? work->begin(work->context) : NULL;
    uint32_t i;
    while ((i = (uint32_t)g_atomic_int_add(&shared->next, 1)) < work->n) {
        GError *error = NULL;
        if (!work->round(work->context, own, i, &error))
            note_failure(shared, i, error);
    }
    if (work->end)
        work->end(own);
    return NULL;
}

uint32_t parallel_threads(uint32_t asked, uint32_t n)
{
    enum { MOST_PER_CORE = 4 };
    const uint32_t cores = g_get_num_processors(),
                   most = MIN(asked ? asked : cores, MOST_PER_CORE * cores);
    return MAX(1, MIN(most, n));
}

bool parallel_run(const Parallel *work, uint32_t *failed, GError **error)
{
    const uint32_t threads = parallel_threads(work->threads, work->n);
    /* every thread increments `next` past the end once */
    g_assert(work->round && work->n < (uint32_t)G_MAXINT - threads);
    g_autofree GThread **thread = g_new(GThread *, threads);
    Shared shared = {.work = work, .failed = work->n};
    g_mutex_init(&shared.lock);
    for (uint32_t t = 1; t < threads; t++)
        thread[t] = g_thread_new("round", run_rounds, &shared);
    run_rounds(&shared);
    for (uint32_t t = 1; t < threads; t++)
        g_thread_join(thread[t]);
    g_mutex_clear(&shared.lock);
    if (shared.failed == work->n)
        return true;
    if (failed)
        *failed = shared.failed;
    g_propagate_error(error, shared.error);
    return false;
}

typedef struct {
    bool (*each)(void *context, uint32_t i, GError **error);
    void *context;
} Each;

static bool call_each(void *context, void *own, uint32_t i, GError **error)
{
    (void)own;
    const Each *work = context;
    return work->each(work->context, i, error);
}

bool parallel_each(uint32_t n, uint32_t threads,
                   bool (*each)(void *context, uint32_t i, GError **error), void *context,
                   GError **error)
{
    Each one = {each, context};
    const Parallel work = {
        .n = n, .threads = threads, .context = &one, .round = call_each};
    return parallel_run(&work, NULL, error);
}
