/* Sites: parts of a wired cluster between which the network may be narrower than the machines'
 * ports (private to data). */
#pragma once

#include "data/cluster/cluster.h"

enum { SITES_MAX = 64 };

/* Whether links lead from each region of a machine to all others; KILTER_ERROR_INPUT names two
 * without. */
bool regions_are_joined(const Cluster *cluster, GError **error);

/* Finds the view's sites; n_sites stays 0 where there is one only, or where machines do not have
 * one switch each. */
void sites_find(ClusterView *view);

/* Gives a copy of a view sites of its own. */
void sites_copy(ClusterView *copy);
