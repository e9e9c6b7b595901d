/* balance: sharding ratios for a fixed program (HAP Sec. 5).
 *
 * The ratios of all segments k and devices j solve the linear program (HAP Eq. 3)
 *
 *     min   sum_i ( comm_i + T_i ) + sum_t seconds_t M_t
 *     s.t.  T_i >= (R_i + sum_k S_ik B_kj) / rate_j + inner_ij   every stage i, j   (1)
 *           M_t >= B_kj                                     every term t, its k, j   (2)
 *           held_j + sum_k bytes_kj B_kj <= memory_j         every memory point, j   (3)
 *           sum_j B_kj = 1,  B >= 0                                every segment k   (4)
 *
 * Where microbatches take turns, stages join (sim/sim.h, equation 4): a turn has one T, at least
 * every sum of communication and computation in it, with L_q the largest share of the segments that
 * its terms depend on
 *
 *           T >= sum_(k<=i) ( comm_k + sum_(t in k) seconds_t L_q(t) )
 *                + comp_ij + sum_(k>i) comp_kj                      every i of it, j  (1)
 *           L_q >= B_kj                                     every pair q, its k, j   (5)
 *
 * Equal devices share a column: an LP over classes has the same optimum, since averaging equal
 * devices never hurts a convex objective. Every solution is checked (primal feasibility, duality
 * gap) before it is returned. */
#pragma once

#include "sim/sim.h"

typedef struct {
    double time_s; /* objective at the solution: equals sim_linear_time of its shares */
    double dual_s; /* objective of the dual solution: a lower bound on any ratios */
    uint32_t rows, columns; /* of the last LP solved */
    double solve_s;         /* wall clock */
} BalanceReport;

/* Solves the LP. ratio: out, [segment * n_devices + device]; a device of rate 0 gets 0.
 * memory may be NULL (no rows (3)).
 * KILTER_ERROR_INPUT: a number that is negative or not finite, or replicated computation
 * on a device of rate 0; KILTER_ERROR_INFEASIBLE: no ratios fit the memory (names the
 * device class and bytes missing); KILTER_ERROR_FAILED: the solver failed or its answer
 * did not pass the check. */
bool balance_ratios(const SimLinear *linear, const SimMemory *memory,
                    const ClusterView *view, uint32_t n_segments, double *ratio,
                    BalanceReport *report, GError **error);

/* --- segments ---
 *
 * A segment is a set of ops with ratios of its own, [op] its number. Tensors cross from one into
 * another where they are converted (data/plan/plan.h, plan_segments). */

/* Segments of about equal FLOPs between which few bytes flow, by METIS (G. Karypis, V. Kumar,
 * SIAM J. Sci. Comput. 20(1), 1998); with fewer than 16 ops per segment, runs of consecutive ops
 * instead. segment: out, [op]. KILTER_ERROR_INPUT if n_segments exceeds the number of forward
 * ops. */
bool balance_segments_metis(const Graph *graph, uint32_t n_segments, uint16_t *segment,
                            GError **error);

/* Groups of all ops, backward and updates included, of about equal time between which few bytes
 * flow, by METIS; the longest may take `imbalance` times the average (TAG, TPDS 2023, Sec. 4.1.2).
 * An update joins the group of the op that makes the gradient or of one that reads the parameter,
 * whichever exchanges more bytes with it. time_s: [op]. group: out, [op], numbered by their first
 * ops. Returns the number of groups, at most n_groups, or 0 with KILTER_ERROR_FAILED. */
uint32_t balance_groups_metis(const Graph *graph, const double *time_s, uint32_t n_groups,
                              double imbalance, uint16_t *group, GError **error);

/* As well with runs of layers as groups: the backward and updates of a layer go with it. */
uint32_t balance_groups_layers(const Graph *graph, const double *time_s,
                               uint32_t n_groups, uint16_t *group);

/* Task `to` waits for task `from`, and for `seconds` more when they are on different processors. */
typedef struct {
    uint32_t from, to;
    double seconds;
} BalanceArc;

/* The favourite child of each of n tasks: the one that should follow it on the same processor
 * (Hanen and Munier 1995; m-SCT in Baechi, SoCC'20, Sec. 3.3): with x_ij in [0, 1], 0 where j is
 * i's,
 *
 *     min w   s.t.  s_j >= s_i + p_i + c_ij x_ij,   w >= s_i + p_i,
 *                   sum_j (1 - x_ij) <= 1 of every i,   sum_i (1 - x_ij) <= 1 of every j
 *
 * relaxed to real x_ij; a favourite has x_ij < 1/2. favourite: out, [n], UINT32_MAX for none.
 * KILTER_ERROR_FAILED if the solver failed. */
bool balance_favourites(uint32_t n, const double *time_s, uint32_t n_arcs,
                        const BalanceArc *arc, uint32_t *favourite, GError **error);

/* Completes `segment` [op], whose forward ops are set: a backward op gets the segment of the op
 * that it belongs to, an update the segment of the first op that reads the parameter. */
void balance_segments_follow(const Graph *graph, uint16_t *segment);

/* The finest unions of segments under which no op of the program has an input cut anew. joined:
 * out, [op]; returns the number of unions. Ops without a sharded operand are in segment 0. */
uint32_t balance_segments_join(const Program *program, const Graph *graph,
                               const uint16_t *segment, uint16_t *joined);
