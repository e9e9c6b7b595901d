/* data: the nouns. Everything else in Kilter turns one of these into another.
 *
 *     model spec  --model_build-->       Graph     the program of one device        models/, graph/
 *     op table                           Rule      forms of inputs -> of outputs     graph/rule.h
 *     YAML        --cluster_load-->      Cluster   machines, devices, links          cluster/
 *     view        --topology_of_view-->  Topology  nodes, links, routes              cluster/
 *     planner     ------------->         Program   instructions that devices run     program/
 *                                        Plan      program + ratios + sizes + cost   plan/
 *     YAML        --strategy_read-->     Strategy  degrees, stages, microbatches     strategy/
 *     sweep       ------------->         Store     SQLite rows                       store/store.h, a header of its own
 *     CSV         --csv_each-->          rows      cells by names of columns         base/csv.h
 *                 --measurements_read--> GArray of Measurement: times of ops, links  measured/
 *
 * base/ is the toolbox for readers and writers of files. For programs: the modules
 * include the headers that they need.
 * Failures are reported through GError (data/base/error.h); the code is the exit status. */
#pragma once

#include "data/base/assert.h"
#include "data/base/csv.h"
#include "data/base/error.h"
#include "data/base/heap.h"
#include "data/base/json.h"
#include "data/base/names.h"
#include "data/base/options.h"
#include "data/base/output.h"
#include "data/base/parallel.h"
#include "data/base/path.h"
#include "data/base/stream.h"
#include "data/base/text.h"
#include "data/base/units.h"
#include "data/base/yaml.h"
#include "data/cluster/change.h"
#include "data/cluster/cluster.h"
#include "data/cluster/kernel_device.h"
#include "data/cluster/price.h"
#include "data/cluster/runtime.h"
#include "data/cluster/sheet.h"
#include "data/cluster/topology.h"
#include "data/cluster/tuning.h"
#include "data/formats/export/export.h"
#include "data/formats/format.h"
#include "data/formats/launch/launch.h"
#include "data/formats/machines/machine_file.h"
#include "data/formats/machines/slurm.h"
#include "data/formats/measured/kineto.h"
#include "data/formats/measured/layer_profile.h"
#include "data/formats/measured/memory_snapshot.h"
#include "data/formats/measured/training_log.h"
#include "data/formats/trace/trace.h"
#include "data/graph/facts.h"
#include "data/graph/graph.h"
#include "data/graph/op.h"
#include "data/graph/rule.h"
#include "data/measured/measurement.h"
#include "data/models/checkpoint_index.h"
#include "data/models/model.h"
#include "data/plan/buffers.h"
#include "data/plan/fidelity.h"
#include "data/plan/layout.h"
#include "data/plan/plan.h"
#include "data/program/batch.h"
#include "data/program/program.h"
#include "data/strategy/strategy.h"
