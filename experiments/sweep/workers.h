/* The threads of a sweep: configurations go in, outcomes come out.
 *
 * A configuration costs a transaction for its claim and its row. Where configurations are short,
 * more of them are started than there are threads, so that a transaction has many: up to what the
 * threads finish in some milliseconds. Where they are long, each thread has one. Used by one
 * thread, that of the store. */
#pragma once

#include "experiments/sweep/result.h"

/* The outcome of a configuration: a row, or an error. */
typedef struct {
    const Configuration *configuration;
    Result result;
    GError *error;
    gint64 took_us;
} Outcome;

void outcome_free(Outcome *outcome);

typedef struct Workers Workers;

/* `experiment`: the name that asks; borrowed. */
Workers *workers_new(const char *experiment, uint32_t threads);
/* Waits for what is being evaluated. */
AUTOPTR(workers_free, Workers)

/* How many were started and whose outcomes were not taken. */
uint32_t workers_in_flight(const Workers *workers);
/* How many may be in flight now, at least one per thread. */
uint32_t workers_most(const Workers *workers);
void workers_start(Workers *workers, const Configuration *configuration);

/* Waits up to `wait_us` for an outcome and, if one came, for others as long as no thread runs out
 * of work. NULL: none. */
Outcome *workers_wait(Workers *workers, gint64 wait_us);
/* One more, without waiting. */
Outcome *workers_take(Workers *workers);
/* One that was started and that no thread has begun, no longer evaluated. NULL: none. */
const Configuration *workers_take_back(Workers *workers);
