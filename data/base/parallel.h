/* Equal work on several threads: a loop whose rounds do not need one another. */
#ifndef KILTER_DATA_BASE_PARALLEL_H
#define KILTER_DATA_BASE_PARALLEL_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint32_t n;       /* rounds, 0 to n - 1, begun in this order */
    uint32_t threads; /* at most so many; 0: as many as there are processors */
    void *context;
    /* what a thread has for itself, `own` of its rounds; both may be NULL */
    void *(*begin)(void *context);
    void (*end)(void *own);
    bool (*round)(void *context, void *own, uint32_t i, GError **error);
} Parallel;

/* Runs all rounds. After one that failed no further ones begin, and the error is that of the first by number, however many
 * threads there are; *failed (may be NULL) is its number. */
bool parallel_run(const Parallel *work, uint32_t *failed, GError **error);

/* The same of rounds that need nothing but their number. */
bool parallel_each(uint32_t n, uint32_t threads,
                   bool (*each)(void *context, uint32_t i, GError **error), void *context,
                   GError **error);

#endif
