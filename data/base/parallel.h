/* A loop with independent rounds, run on several threads. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint32_t n;       /* number of rounds; they begin in the order 0 to n - 1 */
    uint32_t threads; /* most threads; 0: the number of processors */
    void *context;
    /* make and free the state of a thread, `own` in its rounds; both may be NULL */
    void *(*begin)(void *context);
    void (*end)(void *own);
    bool (*round)(void *context, void *own, uint32_t i, GError **error);
} Parallel;

/* How many threads are worth having for n pieces of work, of `asked` (0: one per core): not more
 * than pieces, nor than four for each core, and at least one. */
uint32_t parallel_threads(uint32_t asked, uint32_t n);

/* Runs all rounds. After a failure no further rounds begin. The error is that of the failed
 * round with the lowest number, whatever the number of threads; *failed (may be NULL) gets that
 * number. */
bool parallel_run(const Parallel *work, uint32_t *failed, GError **error);

/* The same for rounds without a state per thread. */
bool parallel_each(uint32_t n, uint32_t threads,
                   bool (*each)(void *context, uint32_t i, GError **error), void *context,
                   GError **error);
