/* synth: planners. A planner takes a question (model, cluster, options) and gives a plan.
 *
 *     question/    what is asked: opened and checked once, then only read
 *     answer/      from a program and ratios to a plan: rounded, evaluated, the better of two
 *     spmd/        programs of one device group: assignments, conversions, prices
 *     pipeline/    programs of stages and replicas, microbatch by microbatch
 *     hap/         HAP (EuroSys'24): exact search, ratios in turn, bounds and certificates
 *     hidup/       HiDup (SoCC'22): two microbatches that take turns
 *     amp/         AMP (NeurIPS'22): pipelines, replicas, tensor parallelism
 *     tag/         TAG (TPDS 2023) and its rivals: op groups on subsets of the devices
 *     joint/       pipelines whose stages differ in devices, programs, layers and recomputation
 *     baselines/   known strategies, and strategies by hand
 *     train/       microbatches and recomputation around any planner of one program
 *     planners/    the table of planners, and the options of their questions
 *     auto/        all planners on all choices of machines
 *
 * A planner's make.c begins the reading of its room. This header is for other modules; files of
 * synth include the headers of the rooms. */
#pragma once

#include "synth/amp/amp.h"
#include "synth/hap/search.h"
#include "synth/hidup/hidup.h"
#include "synth/joint/joint.h"
#include "synth/pipeline/pipeline.h"
#include "synth/pipeline/strategy.h"
#include "synth/spmd/spmd.h"
#include "synth/tag/net.h"
#include "synth/tag/search.h"
#include "synth/tag/sfb.h"
#include "synth/tag/sfb_graph.h"
#include "synth/tag/tag.h"
