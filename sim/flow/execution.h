/* A plan as execution traces (data/formats/trace/trace.h), and the time that traces take on a
 * cluster: part of sim's public interface, included by sim/sim.h. */
#pragma once

#include "data/plan/plan.h"
#include "sim/options.h"

/* A plan lowered to the tasks that the flow fidelity runs. Plan, graph and view must outlive it.
 * KILTER_ERROR_INPUT for too many ranks; also the errors of sim_evaluate_with. */
typedef struct SimExecution SimExecution;
SimExecution *sim_execution_new(const Plan *plan, const Graph *graph,
                                const ClusterView *view, const SimOptions *options,
                                GError **error);
AUTOPTR(sim_execution_free, SimExecution)

/* One trace per device (GPtrArray of Trace; free with g_ptr_array_unref) of these tasks. Transfers
 * between groups and traffic with a server become sends and receives; with `messages` so do
 * collectives, in the rounds of the algorithm that flow takes. Otherwise a collective is one node
 * per rank, with the bytes of the largest rank and the rank's own bytes beside them. *groups (may
 * be NULL; caller frees) gets a JSON object with the ranks of each group. Jitter, stragglers and
 * faults are left out. KILTER_ERROR_INPUT for too many nodes. */
GPtrArray *sim_execution_traces(const SimExecution *execution, bool messages,
                                char **groups, GError **error);

/* The times that traces take. */
typedef struct {
    uint32_t n_ranks;
    uint64_t n_nodes;
    double time_s;
    double *compute_s; /* [rank] */
    double *
        /* [rank]: sum over its collectives and messages, each from the rank's own start to the
         * end */
        comm_s;
} SimExecutionReport;

/* Runs traces, trace i on device i of the view. A rank computes one node after another, in the
 * order in which they become ready; nodes that become ready together run in the order of the trace.
 * Nodes of the host, of memory and of metadata take their durations beside computation. The k-th
 * nodes of a group on each of its ranks are one collective, which starts when all are ready. Group
 * "" or "0" has all ranks, another group those of `groups` (trace_groups_read) or, where that is
 * NULL or does not have it, the ranks whose traces name it. A send does not wait for its receive;
 * the two meet by ranks and tag. Both kinds share the links of the cluster's topology. A collective
 * without a type takes its duration. KILTER_ERROR_INPUT for more ranks than devices, collectives
 * that differ between ranks or to which a rank never comes, a rank of a group without a trace, a
 * receive without a send, or ranks that wait for one another. */
SimExecutionReport *sim_execution_run(const GPtrArray *traces, GHashTable *groups,
                                      const ClusterView *view, const SimOptions *options,
                                      GError **error);
AUTOPTR(sim_execution_report_free, SimExecutionReport)
