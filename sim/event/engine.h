/* The discrete-event kernel: handlers run in the order of simulated time. Private to sim.
 *
 * Time is a double in seconds. Events are handled in the total order (time, priority,
 * sequence number): lower first, and the sequence number is the order of scheduling, so a
 * run is reproducible to the bit. The kernel knows no models, only handlers; an engine
 * has no state outside itself, so each thread can run its own. */
#pragma once

#include <stdint.h>

#include "data/base/free.h"

typedef struct SimEngine SimEngine;

/* Handles one event; may schedule further ones. */
typedef void (*SimHandler)(SimEngine *engine, void *context, uint64_t argument);

SimEngine *sim_engine_new(void);
AUTOPTR(sim_engine_free, SimEngine)

/* Seconds at the event being handled, or the last one handled; 0 before the first. */
double sim_engine_now(const SimEngine *engine);

/* Adds an event at `time_s`, which must not lie before now. */
void sim_engine_schedule(SimEngine *engine, double time_s, uint32_t priority,
                         SimHandler handler, void *context, uint64_t argument);

/* Handles events until none is left; returns how many it handled. */
uint64_t sim_engine_run(SimEngine *engine);
