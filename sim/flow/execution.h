/* A plan as execution traces (data/trace/trace.h), and what traces take on a cluster: part of sim's public interface,
 * included by sim/sim.h. */
#ifndef KILTER_SIM_FLOW_EXECUTION_H
#define KILTER_SIM_FLOW_EXECUTION_H

#include "data/data.h"
#include "sim/options.h"

/* One trace a device (GPtrArray of Trace; free with g_ptr_array_unref) of what the flow fidelity runs. Transfers between groups
 * and traffic with a server are sends and receives; collectives too where `messages` asks for it, by the algorithm that
 * flow takes, in rounds. Otherwise they are nodes whose bytes are padded to the largest rank's, the rank's own beside them, in
 * groups whose ranks *groups gets as a JSON object (may be NULL; caller frees). Jitter, stragglers and faults are left out.
 * KILTER_ERROR_INPUT: too many nodes; the errors of sim_evaluate_with. */
GPtrArray *sim_execution(const Plan *plan, const Graph *graph, const ClusterView *view,
                         const SimOptions *options, bool messages, char **groups,
                         GError **error);

/* What traces take. */
typedef struct {
    uint32_t n_ranks;
    uint64_t n_nodes;
    double time_s;
    double *compute_s; /* [rank] */
    double *
        comm_s; /* [rank]: sum over its collectives and messages, from its own start to the end */
} SimExecutionReport;

/* Runs traces, one a device of the view, from the first: a rank computes one node after another in the order in which they
 * become ready, of nodes that are ready at once in the order of the trace; what runs on the host, memory and metadata take their
 * durations beside. The k-th collective of a group on each of its ranks is one collective, which starts when all are ready; the
 * ranks of a group "" or "0" are all of them, of another one those whose traces name it. A send does not wait for
 * its receive; the two meet by ranks and tag. Both kinds share the links of the cluster's topology. A collective without a
 * type takes its duration.
 * KILTER_ERROR_INPUT: more ranks than devices; collectives that differ between ranks; a
 * receive that nobody sends, ranks that wait for one another. */
SimExecutionReport *sim_execution_run(const GPtrArray *traces, const ClusterView *view,
                                      const SimOptions *options, GError **error);
void sim_execution_report_free(SimExecutionReport *report);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimExecutionReport, sim_execution_report_free)

#endif
