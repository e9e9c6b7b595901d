/* The measurements of kilter exec, beside the predictions: as text, as JSON, as a row of the
 * store. */
#pragma once

#include <jansson.h>

#include "exec/exec.h"
#include "sim/sim.h"

typedef struct {
    const Plan *plan;
    const Graph *graph;
    const ExecMeasurement *measured;
    /* by `analytic` under the same slowdowns; NULL: the cluster is not known */
    SimReport *predicted;
    /* number of instructions outside of the sizes that the cluster was calibrated on */
    uint32_t unmeasured;
    const char *backend, *dtype;
    char **slowdown; /* "1=2", ...; may be NULL */
    uint32_t warm_up;
    uint64_t seed;
} ExecReport;

/* Fills `predicted` and `unmeasured`, using the plan's own cluster. */
void exec_report_predict(ExecReport *report);
void exec_report_clear(ExecReport *report);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(ExecReport, exec_report_clear)

/* The report, and the template of its text. */
json_t *exec_report_json(const ExecReport *report);
extern const char EXEC_REPORT_TEXT[];

/* Adds a row of fidelity `exec` to a store (data/store/store.h), in one transaction: the measured
 * iteration, and in `detail` the content of exec_report_json. A store keeps the first measurement
 * of a configuration (plan, backend, numbers, slowdowns, host); *kept says whether it is this one.
 * `command`: the command line. */
bool exec_report_store(const ExecReport *report, const char *file, const char *command,
                       bool *kept, GError **error);
