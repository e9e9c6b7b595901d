/* The one serialiser of clusters. Private to data. */
#pragma once

#include <jansson.h>

#include "data/cluster/tuning.h"

/* The cluster under the keys of its file (data/cluster/read.c), in the file's order; numbers are
 * texts with units, exact to the bit. Consecutive equal machines with numbered names are one entry
 * with a count. The caller owns the value. */
json_t *cluster_json(const Cluster *cluster);

/* The same for a table of rules, without a source. */
json_t *tuning_json(const Tuning *tuning);
