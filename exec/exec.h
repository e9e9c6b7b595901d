/* exec: runs programs for real, and proves them.
 *
 *     exec_run_graph     the single-device graph, in plain C and float64: the reference   exec/tensor.h
 *     exec_theory_check  every rule of an op, by running it on shards                     exec/theory.h
 *     ExecBackend        where ranks keep shards, compute and communicate                 exec/backend.h
 *     ExecReplay         a plan's program on a backend                                    exec/replay.h
 *     exec_verify        a plan against the single-device graph                           exec/verify.h
 *     exec_measure       how long a plan takes on a backend                               exec/measure.h
 *     exec_profile_ops   ops and collectives alone, to calibrate                          exec/profile.h
 *     exec_limits        what a device reaches at best                                    exec/limits.h
 *     exec_shrink        a model of the same structure with small dims                    exec/shrink.h */
#ifndef KILTER_EXEC_EXEC_H
#define KILTER_EXEC_EXEC_H

#include "exec/backend.h"
#include "exec/limits.h"
#include "exec/measure.h"
#include "exec/profile.h"
#include "exec/replay.h"
#include "exec/shrink.h"
#include "exec/tensor.h"
#include "exec/theory.h"
#include "exec/verify.h"

#endif
