/* Queues of tasks that are ready, one for each stream of each lane. */
#include "sim/flow/ready.h"

#include "data/base/free.h"

struct SimReady {
    const SimStreams *streams;
    /* [stream * n_lanes + lane]: tasks; the first one runs, or is about to */
    GQueue *queue;
    uint32_t *behind; /* [task]: queues in which others are before it */
    GArray *started;  /* uint32_t */
};

SimReady *sim_ready_new(const SimStreams *streams)
{
    SimReady *ready = g_new0(SimReady, 1);
    const uint32_t n = streams->n_streams * streams->tasks->teams->n_lanes;
    ready->streams = streams;
    ready->queue = g_new(GQueue, n);
    for (uint32_t i = 0; i < n; i++)
        g_queue_init(&ready->queue[i]);
    ready->behind = g_new0(uint32_t, streams->tasks->n_tasks + 1);
    ready->started = g_array_new(false, false, sizeof(uint32_t));
    return ready;
}

FREE_DEFINE(sim_ready_free, SimReady, ready,
            clear_items(ready->queue,
                        ready->streams->n_streams * ready->streams->tasks->teams->n_lanes,
                        g_queue_clear),
            free_each(ready->queue, ready->behind), g_array_unref(ready->started));

/* The queue of the task's stream on a lane; without overlap a lane has one for all. */
static GQueue *queue_of(const SimReady *ready, uint32_t task, uint32_t lane)
{
    const SimStreams *streams = ready->streams;
    const uint32_t stream = streams->overlap ? streams->stream[task] : 0;
    return &ready->queue[stream * streams->tasks->teams->n_lanes + lane];
}

bool sim_ready_join(SimReady *ready, uint32_t task)
{
    const SimTasks *tasks = ready->streams->tasks;
    uint32_t n;
    const uint32_t *lane = sim_task_lanes(tasks, &tasks->task[task], &n);
    KILTER_ASSERT(ready->behind[task] == 0);
    for (uint32_t k = 0; k < n; k++) {
        GQueue *queue = queue_of(ready, task, lane[k]);
        ready->behind[task] += !g_queue_is_empty(queue);
        g_queue_push_tail(queue, GUINT_TO_POINTER(task));
    }
    return ready->behind[task] == 0;
}

const GArray *sim_ready_leave(SimReady *ready, uint32_t task)
{
    const SimTasks *tasks = ready->streams->tasks;
    uint32_t n;
    const uint32_t *lane = sim_task_lanes(tasks, &tasks->task[task], &n);
    g_array_set_size(ready->started, 0);
    for (uint32_t k = 0; k < n; k++) {
        GQueue *queue = queue_of(ready, task, lane[k]);
        const uint32_t first = GPOINTER_TO_UINT(g_queue_pop_head(queue));
        g_assert(first == task);
        if (g_queue_is_empty(queue))
            continue;
        const uint32_t next = GPOINTER_TO_UINT(g_queue_peek_head(queue));
        KILTER_ASSERT(ready->behind[next] > 0);
        if (--ready->behind[next] == 0)
            g_array_append_val(ready->started, next);
    }
    return ready->started;
}
