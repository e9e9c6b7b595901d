/* Devices and links that fail, and links that get slower, at given times. Private to sim.
 *
 * Routes are static: flows over a failed link stand still. The iteration fails when a device fails
 * before its end or flows stand still. It is then over, or, with a restart time, starts again that
 * much later with everything that failed replaced. */
#pragma once

#include "sim/evaluate.h"
#include "sim/network/network.h"

typedef struct {
    char *name;
    double time_s;
    bool device;    /* true: a device; false: a link */
    uint32_t index; /* of the device or link */
    double factor;  /* factor on a link's bandwidth from then on; 0: it fails */
} SimFault;

/* The faults that the options ask for; array of SimFault. topology: NULL on a crossbar.
 * KILTER_ERROR_INPUT names the option and what is wrong. */
GArray *sim_faults_new(const SimCase *sim, const Topology *topology, GError **error);

/* Schedules the faults of links. Both arguments must outlive the run. */
void sim_faults_schedule(const GArray *faults, SimNetwork *network);

/* The first failure of a run that ended at end_s, or that did not end (`stalled`); NULL if there is
 * none. */
const SimFault *sim_faults_first(const GArray *faults, double end_s, bool stalled);
