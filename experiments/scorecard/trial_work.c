/* Predicting trials on threads. */
#include "experiments/scorecard/trial_work.h"

static bool work_one(TrialWork *work, uint32_t i, GError **error)
{
    if (work->plan)
        return trial_plan_predict(&work->plan[i], work->parameter, &work->time_s[i],
                                  work->detail ? &work->detail[i] : NULL, error);
    g_auto(TrialPlan) plan = {0};
    return trial_plan_make(&g_array_index(work->set->trial, Trial, work->index[i]),
                           work->parameter, &plan, error) &&
           trial_plan_predict(&plan, work->parameter, &work->time_s[i], &work->detail[i],
                              error);
}

static gpointer work_thread(gpointer data)
{
    TrialWork *work = data;
    uint32_t i;
    while ((i = (uint32_t)g_atomic_int_add(&work->next, 1)) < work->n) {
        g_autoptr(GError) trouble = NULL;
        const bool good = work_one(work, i, &trouble);
        g_mutex_lock(&work->lock);
        if (!good && !work->error)
            work->error = g_steal_pointer(&trouble);
        if (!good)
            g_atomic_int_set(&work->next, (gint)work->n);
        g_mutex_unlock(&work->lock);
    }
    return NULL;
}

bool trial_work_run(TrialWork *work, uint32_t threads, GError **error)
{
    const uint32_t n = MIN(threads ? threads : g_get_num_processors(), MAX(work->n, 1));
    g_autofree GThread **thread = g_new(GThread *, n);
    g_mutex_init(&work->lock);
    work->next = 0;
    for (uint32_t i = 0; i < n; i++)
        thread[i] = g_thread_new("score", work_thread, work);
    for (uint32_t i = 0; i < n; i++)
        g_thread_join(thread[i]);
    g_mutex_clear(&work->lock);
    if (!work->error)
        return true;
    g_propagate_error(error, g_steal_pointer(&work->error));
    return false;
}
