/* Random clusters, and random plans of a program on them. */
#ifndef KILTER_TESTS_SUPPORT_RANDOM_PLAN_H
#define KILTER_TESTS_SUPPORT_RANDOM_PLAN_H

#include "sim/sim.h"

/* A cluster of 1 to `max_machines` machines of 1 to 3 device types with 1 to 4 devices
 * each. */
Cluster *random_cluster(GRand *rand, uint32_t max_machines);

/* Gives about half of its device types fitted op costs, and its collectives pieces. Advances no
 * random numbers. */
void random_fit(const GRand *rand, Cluster *cluster);

/* A plan with random ratios and random rounded splits, one or two segments, with or
 * without buckets. Takes the program over. */
Plan *random_plan(GRand *rand, const Graph *graph, const ClusterView *view,
                  Program *program);

#endif
