/* Graphs and strategies that HiDup's published searcher read and wrote (../shared/reference/hidup),
 * for tests and benches.
 *
 * A graph names nodes with their signatures: forms of inputs and outputs. Nodes that compute become
 * the chain; what they read besides is data, free in any form, or parameters, each of which rests
 * replicated or cut. As in the artifact both microbatches gather and synchronize parameters.
 * Prices: the forward's work is in the file, the backward has twice that; a microbatch is half the
 * batch; a collective takes its bytes divided by its bandwidth. */
#ifndef KILTER_TESTS_SUPPORT_HIDUP_ARTIFACT_H
#define KILTER_TESTS_SUPPORT_HIDUP_ARTIFACT_H

#include "synth/hidup/duplex.h"

typedef struct Artifact Artifact;

/* Bytes a second of each collective, and work a second of a device. */
typedef struct {
    double all_gather, reduce_scatter, all_reduce, all_to_all, rate;
    uint32_t n_devices;
} ArtifactProfile;

/* NULL if the file is not one. */
Artifact *artifact_read(const char *file, const ArtifactProfile *profile);
void artifact_free(Artifact *artifact);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(Artifact, artifact_free)

const DuplexProblem *artifact_problem(const Artifact *artifact);
void artifact_set_cost(Artifact *artifact, DuplexCost cost);

/* Time of a published strategy under the artifact's cost; NAN if the file is not one of the graph. */
double artifact_strategy_s(const Artifact *artifact, const char *file);

#endif
