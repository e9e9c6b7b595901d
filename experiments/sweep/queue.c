/* The order in which a sweep starts what its store lacks. */
#include "experiments/sweep/queue.h"

#include "data/store/store.h"

struct Queue {
    Store *store;
    char *experiment;
    uint32_t flags; /* of claims */
    /* Configurations that are new, that others work on, and that ended a process. */
    GQueue fresh, taken, suspect;
    GPtrArray *poison;
    uint32_t answered;
    gint64 looked_us; /* when `taken` was looked at last */
};

Queue *queue_new(Store *store, const char *experiment, const GPtrArray *missing,
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

void queue_free(Queue *queue)
{
    if (!queue)
        return;
    g_queue_clear(&queue->fresh);
    g_queue_clear(&queue->taken);
    g_queue_clear(&queue->suspect);
    g_ptr_array_unref(queue->poison);
    g_free(queue->experiment);
    g_free(queue);
}

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

bool queue_next(Queue *queue, uint32_t in_flight, const Configuration **next,
                GError **error)
{
    const gint64 patience_us = G_USEC_PER_SEC / 5, now_us = g_get_monotonic_time();
    *next = NULL;
    bool good = try_all(queue, &queue->fresh, 0, next, error);
    if (good && !*next && queue->taken.length > 0 &&
        now_us - queue->looked_us > patience_us) {
        queue->looked_us = now_us;
        good = try_all(queue, &queue->taken, 0, next, error);
    }
    if (good && !*next && in_flight == 0 && queue->taken.length == 0)
        good = try_all(queue, &queue->suspect, STORE_ALONE, next, error);
    return good;
}

bool queue_give_back(Queue *queue, const Configuration *configuration, GError **error)
{
    g_queue_push_head(&queue->fresh, (gpointer)configuration);
    return store_give_up(queue->store, configuration->hash, NULL, error);
}

bool queue_is_done(const Queue *queue)
{
    return queue->fresh.length + queue->taken.length + queue->suspect.length == 0;
}

bool queue_waits(const Queue *queue)
{
    return queue->fresh.length == 0 && queue->taken.length > 0;
}

uint32_t queue_answered(const Queue *queue)
{
    return queue->answered;
}

const GPtrArray *queue_poison(const Queue *queue)
{
    return queue->poison;
}
