/* Graphs and strategies that HiDup's published searcher read and wrote (../shared/reference/hidup),
 * and its costs, for tests and benches.
 *
 * A graph names nodes with their signatures: forms of inputs and outputs. Nodes that compute become
 * the chain; their other inputs are data, free in any form, or parameters, each of which rests
 * replicated or cut. Both microbatches gather and synchronize parameters.
 *
 * The prices are the artifact's: each microbatch counts as the whole batch; a collective takes a
 * latency and its bytes divided by its bandwidth; the forward's work is in the file, the backward
 * has twice that. A stage begins where a tensor changes its form, even at no cost. With
 * communication f forward and b backward and forward computation c its cost sums over stages
 *
 *     max(c_(i-1), f_i) + max(c_i, f_i) +
 *         by its code:  2 c_(i-1) + b_i + 2 c_i + b_i
 *         by Eq. 5:     max(2 c_(i-1), b_i) + max(2 c_i, b_i)
 *
 * and adds c of the last stage, but not what the second microbatch computes backward there. */
#ifndef KILTER_TESTS_SUPPORT_HIDUP_ARTIFACT_H
#define KILTER_TESTS_SUPPORT_HIDUP_ARTIFACT_H

#include "synth/hidup/duplex.h"

typedef struct Artifact Artifact;

/* Bytes per second of each collective, and work per second of a device. */
typedef struct {
    double all_gather, reduce_scatter, all_reduce, all_to_all, latency_s, rate;
    uint32_t n_devices;
} ArtifactProfile;

/* The prices with which it wrote its results: "NVLink (g11)" in its exp/config.py. */
ArtifactProfile artifact_nvlink(double rate);

/* NULL if the file is not a graph of the artifact. */
Artifact *artifact_read(const char *file, const ArtifactProfile *profile);
void artifact_free(Artifact *artifact);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Artifact, artifact_free)

const DuplexProblem *artifact_problem(const Artifact *artifact);
void artifact_set_cost(Artifact *artifact, DuplexCost cost);

/* In seconds: the artifact's cost, and the time that it leaves out. */
typedef struct {
    double cost_s, left_out_s;
} ArtifactCost;

/* The cost of a published strategy, with DUPLEX_SERIAL_BACK by the artifact's code, else by Eq. 5;
 * false if the file is not a strategy of the graph. */
bool artifact_strategy(const Artifact *artifact, const char *file, ArtifactCost *cost);

#endif
