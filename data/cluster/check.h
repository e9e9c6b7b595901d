/* The promises of every cluster, whether its file was read, it was changed, or it was made of a
 * foreign file. */
#pragma once

#include "data/cluster/cluster.h"

/* KILTER_ERROR_INPUT names the first number, name or network that no cluster file may have. A
 * cluster that passes is written as a file that reads as an equal one, and all planners can work on
 * it. */
bool cluster_check(const Cluster *cluster, GError **error);
/* The same but for the network as a whole, of which the reader of files knows the line. */
bool cluster_check_parts(const Cluster *cluster, GError **error);
