/* data: the nouns. Everything else in Kilter turns one of these into another.
 *
 *     model spec  --model_build-->   Graph      the single-device training program      data/graph.h
 *     op table                       Rule       which forms an op maps to which         data/op.h, data/rule.h
 *     YAML        --cluster_load-->  Cluster    machines, devices, links                data/cluster.h
 *     view        --topology_of_view-->  Topology  nodes, links, routes                 data/topology.h
 *     planner     ------------->     Program    instructions every device runs          data/program.h
 *                                    Plan       program + ratios + rounded sizes + cost data/plan.h
 *     sweep       ------------->     Store      SQLite rows                             data/store.h
 *     CSV         --csv_each-->      rows       cells by the names of their columns      data/csv.h
 *                 --measurements_read-->  GArray of Measurement  times of ops, links    data/measurement.h
 *
 * Other modules include this header only. Failures are reported through GError (data/error.h); the code is
 * the exit status. */
#ifndef KILTER_DATA_DATA_H
#define KILTER_DATA_DATA_H

#include "data/batch.h"
#include "data/cluster.h"
#include "data/csv.h"
#include "data/error.h"
#include "data/graph.h"
#include "data/layer_profile.h"
#include "data/measurement.h"
#include "data/model.h"
#include "data/op.h"
#include "data/path.h"
#include "data/plan.h"
#include "data/program.h"
#include "data/rule.h"
#include "data/store.h"
#include "data/topology.h"
#include "data/tuning.h"
#include "data/units.h"
#include "data/yaml.h"

#endif
