/* Work on many trials, shared by threads. */
#include "experiments/calibration/trial_work.h"

typedef struct {
    bool (*one)(void *data, uint32_t i, GError **error);
    void *data;
    uint32_t n;
    gint next;
    GMutex lock;
    GError *error; /* the first */
} TrialWork;

static gpointer work_thread(gpointer data)
{
    TrialWork *work = data;
    uint32_t i;
    while ((i = (uint32_t)g_atomic_int_add(&work->next, 1)) < work->n) {
        g_autoptr(GError) trouble = NULL;
        if (work->one(work->data, i, &trouble))
            continue;
        g_mutex_lock(&work->lock);
        if (!work->error)
            work->error = g_steal_pointer(&trouble);
        g_atomic_int_set(&work->next, (gint)work->n);
        g_mutex_unlock(&work->lock);
    }
    return NULL;
}

bool trial_work_each(uint32_t n, uint32_t threads,
                     bool (*one)(void *data, uint32_t i, GError **error), void *data,
                     GError **error)
{
    TrialWork work = {.one = one, .data = data, .n = n};
    const uint32_t n_threads = MIN(threads ? threads : g_get_num_processors(), MAX(n, 1));
    g_autofree GThread **thread = g_new(GThread *, n_threads);
    g_mutex_init(&work.lock);
    for (uint32_t i = 0; i < n_threads; i++)
        thread[i] = g_thread_new("trial", work_thread, &work);
    for (uint32_t i = 0; i < n_threads; i++)
        g_thread_join(thread[i]);
    g_mutex_clear(&work.lock);
    if (!work.error)
        return true;
    g_propagate_error(error, work.error);
    return false;
}
