/* The replay of a plan: its program, instruction by instruction, on the ranks of a backend.
 *
 *     g_autoptr(ExecReplay) replay = exec_replay_new(backend, plan, graph, &error);
 *     exec_replay_load(replay, seed, &error);      the LOAD instructions: inputs, states at rest
 *     exec_replay_run(replay, &error);             the others, once per iteration
 *
 * A dimension in form Gather is cut by the plan's split, or, where the plan has none, by its ratios
 * rounded to the dimension's units. An op of another segment than one of its inputs gets that input
 * cut anew. A contribution to a sum over the batch is computed in memory of its own and then added.
 *
 * As a proof (exec/verify.h), every instance (group, microbatch, tensor, form) keeps its memory
 * until the replay is freed, and every iteration starts from the values that were loaded. A replay
 * that *trains* frees each value after its last use, and works in place, as the memory model counts
 * (data/plan/buffers.h): the next iteration starts from the updated values. It holds other memory
 * than the model says
 *
 *   - inputs: loaded once, they stay for the next iteration;
 *   - what an op keeps for its backward beside tensors (dropout masks): made again, never kept;
 *   - slices of values at rest: copies, not views;
 *   - temporary memory: contributions to sums, inputs that are cut anew, and the workspace of ops,
 *     which only ExecMemory knows. */
#pragma once

#include "data/plan/buffers.h"
#include "exec/cuts.h"

typedef struct ExecReplay ExecReplay;

/* Backend, plan and graph must outlive the replay. KILTER_ERROR_INPUT if the backend's ranks are
 * not the plan's devices. */
ExecReplay *exec_replay_new(ExecBackend *backend, const Plan *plan, const Graph *graph,
                            GError **error);
AUTOPTR(exec_replay_free, ExecReplay)

/* Makes the replay train; the program must have been checked (program_check). To be called before
 * anything is loaded. */
void exec_replay_train(ExecReplay *replay);

/* Makes the replay free every instance after the instruction that reads or makes it last, but for
 * those of tensors in keep [n_tensors], which must outlive it. To be called as the one above. */
void exec_replay_lean(ExecReplay *replay, const bool *keep);

/* Loads the values of exec_value_new, in the forms in which they lie at rest. */
bool exec_replay_load(ExecReplay *replay, uint64_t seed, GError **error);

/* Runs the other instructions once. KILTER_ERROR_FAILED names the instruction that uses an instance
 * that was not made before, or for which memory ran out. Waits for the backend at the end only, so
 * that computation and communication may overlap. */
bool exec_replay_run(ExecReplay *replay, GError **error);
/* The same, waiting for the backend after every instruction to time it. */
bool exec_replay_run_timed(ExecReplay *replay, GError **error);

/* Slows computation on this process's ranks down: each op takes `factor` times its own time, factor
 * >= 1. */
void exec_replay_slow(ExecReplay *replay, double factor);

/* The shards of an instance, [n_ranks] (only local ones have data), or NULL if it was not made. */
const ExecShard *exec_replay_shards(const ExecReplay *replay, uint32_t group,
                                    uint32_t microbatch, TensorId tensor, Form form);

/* Whether the replicas' instances are still to be summed. */
bool exec_replay_is_partial(const ExecReplay *replay, uint32_t group, TensorId tensor,
                            Form form);

/* The form that a group loaded a tensor in; FORM_MAX if it did not. */
Form exec_replay_rest(const ExecReplay *replay, uint32_t group, TensorId tensor);

const ExecCuts *exec_replay_cuts(const ExecReplay *replay);

/* Which devices of a group take part in an exchange together: those that differ only in the axes
 * named here, a set of positions, shards and replicas. */
typedef enum { EXEC_INSIDE = 1, EXEC_SHARDS = 2, EXEC_ACROSS = 4 } ExecMembers;
bool exec_replay_exchange(const ExecReplay *replay, uint32_t group, ExecMembers members,
                          Collective kind, const ExecShard *from, ExecShard *to,
                          GError **error);

/* Seconds that the local ranks spent on each instruction of the program in the last timed run. */
const double *exec_replay_seconds(const ExecReplay *replay);

/* The most bytes that a local rank has held at once, on the local rank that held most, by category;
 * MEMORY_RUNTIME: temporary memory. */
typedef struct {
    uint64_t total, bytes[MEMORY_CATEGORIES];
} ExecHeld;
const ExecHeld *exec_replay_peak(const ExecReplay *replay);

/* The most bytes that all local ranks of a replay that trains will hold at once, without temporary
 * memory. */
uint64_t exec_replay_bytes_needed(ExecReplay *replay);
