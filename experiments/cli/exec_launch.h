/* Ranks of kilter exec and profile: starting them, and the work of a process that is a rank. */
#pragma once

#include "experiments/cli/command.h"

/* Whether mpirun (or a process manager that speaks PMI) started this process. */
bool exec_is_rank(void);

/* Runs `kilter arguments...` on n_ranks ranks of this machine, even more than it has cores, and
 * waits, with a line on a terminal unless quiet. If the ranks succeed, their stdout goes to ours.
 * KILTER_ERROR_FAILED (or the ranks' own code) with their first message if they fail, if there is
 * no mpirun, if they take more than timeout_s, or if SIGINT, SIGTERM or SIGHUP ended them early.
 * The ranks never outlive this process, even if it is killed. */
bool exec_launch(uint32_t n_ranks, uint32_t timeout_s, const char *const *arguments,
                 bool quiet, GError **error);

enum { EXEC_MOST = 1000000 };

/* How often both commands repeat a measurement, and when they give up; these are the defaults. */
/* clang-format off */
#define TIMING_OPTIONS(X)                         \
    X(COUNT, warm_up, "warm-up", 0, 0, EXEC_MOST)      \
    X(COUNT, repeats, "repeats", 0, 1, EXEC_MOST)      \
    X(COUNT, timeout_s, "timeout", 0, 1, EXEC_MOST)
typedef struct {
    TIMING_OPTIONS(COMMAND_MEMBER)
} ExecTiming;
COMMAND_RANGES(ExecTiming, exec_timing, TIMING_OPTIONS)
/* As a kind of COMMAND_OPTIONS, of the member `timing`. */
#define TIMING_ENTRY(kind, ...) COMMAND_PICK(3, COMMAND_KIND_##kind(own.timing, __VA_ARGS__))
#define COMMAND_KIND_TIMING(at, member) \
    (ExecTiming member;), (), (TIMING_OPTIONS(TIMING_ENTRY)), (&&exec_timing_in_range(&own->member, error))
/* clang-format on */

/* The options that both commands pass on to their ranks. */
void exec_rank_options(GStrvBuilder *list, const CommandOptions *options,
                       const ExecTiming *timing);

/* This process' rank, and the number of ranks. */
typedef struct {
    uint32_t n, rank;
} ExecRank;

/* Joins the world of the ranks (not if `alone`: a world of one), works, and leaves. `work` has to
 * free its backend, which must not outlive the world. The process is ended if it has not ended by
 * itself soon after timeout_s. */
bool exec_as_rank(uint32_t timeout_s, bool alone,
                  bool (*work)(ExecRank rank, void *data, GError **error), void *data,
                  GError **error);

/* To be called before a process ends, after success or failure: an error on all ranks is printed by
 * the first one only, and its end ends the others. */
bool exec_rank_ends(bool good);
