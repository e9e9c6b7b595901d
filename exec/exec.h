/* exec: runs programs for real, and proves them.
 *
 *     exec/tensor.h     exec_run_graph     the reference: the single-device graph in C, float64
 *     exec/theory.h     exec_theory_check  every rule of an op, by running it on shards
 *     exec/backend.h    ExecBackend        where ranks keep shards, compute and communicate
 *     exec/replay.h     ExecReplay         a plan's program on a backend
 *     exec/verify.h     exec_verify        a plan against the single-device graph
 *     exec/measure.h    exec_measure       how long a plan takes on a backend
 *     exec/profile.h    exec_profile_ops   ops and collectives one by one, to calibrate
 *     exec/limits.h     exec_limits        the best rates that a device reaches
 *     exec/shrink.h     exec_is_small      what of shrunk models can be run, and is still the same
 * model */
#pragma once

#include "exec/backend.h"
#include "exec/half.h"
#include "exec/limits.h"
#include "exec/measure.h"
#include "exec/profile.h"
#include "exec/replay.h"
#include "exec/shrink.h"
#include "exec/tensor.h"
#include "exec/theory.h"
#include "exec/verify.h"
