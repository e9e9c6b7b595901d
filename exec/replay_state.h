/* The state of a replay, the instances that it holds, and the functions that run each kind of
 * instruction. Private to exec. */
#ifndef KILTER_EXEC_REPLAY_STATE_H
#define KILTER_EXEC_REPLAY_STATE_H

#include "exec/replay.h"

struct ExecReplay {
    ExecBackend *backend;
    const Plan *plan;
    const Graph *graph;
    ExecCuts *cuts;
    ExecShard **held; /* [instance]: [n_ranks], NULL until made */
    bool *partial;    /* [instance]: the replicas still have to be summed */
    uint32_t *added;  /* [instance]: microbatches that have added to it */
    bool *moved;      /* [instance]: its contents have gone to another instance */
    Form *rest;       /* [group * n_tensors + tensor] */
    double *seconds;  /* [program->n] */
    double slow;
    uint64_t bytes;
    uint32_t at; /* the instruction that is running */
};

/* Sets KILTER_ERROR_FAILED, naming the instruction that is running; returns false. */
bool replay_fail(const ExecReplay *replay, GError **error, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/* --- instances --- */

/* Number of an instance, or GRAPH_NONE. */
uint32_t replay_instance(const ExecReplay *replay, uint32_t group, uint32_t microbatch,
                         TensorId tensor, Form form);
/* The instance, with memory; NULL and an error if memory runs out. */
ExecShard *replay_make(ExecReplay *replay, uint32_t group, uint32_t microbatch,
                       TensorId tensor, Form form, GError **error);
/* The instance of the instruction's group and microbatch, which must have been made. */
ExecShard *replay_use(ExecReplay *replay, const Instr *instr, TensorId tensor, Form form,
                      GError **error);

/* Shards [n_ranks] that belong to no instance. replay_shapes copies shards without their data;
 * replay_allocate gives the group's local ranks memory; replay_drop frees shards with their
 * data. */
ExecShard *replay_shapes(const ExecReplay *replay, const ExecShard *shard);
bool replay_allocate(ExecReplay *replay, uint32_t group, ExecShard *shard,
                     GError **error);
void replay_drop(ExecReplay *replay, ExecShard *shard);

/* Whether the rank is in the group. */
bool replay_in_group(const ExecReplay *replay, uint32_t group, uint32_t rank);

/* --- instructions, on the local ranks --- */

/* Runs the exchange once in every set of members of a group. */
bool replay_exchange_in(const ExecReplay *replay, uint32_t group, ExecMembers members,
                        ExecExchange exchange, GError **error);
/* Whether each of the n ranks has the same part in both: a, b [n]. */
bool replay_same_cut(const ExecShard *a, const ExecShard *b, uint32_t n);

bool replay_compute(ExecReplay *replay, const Instr *instr, GError **error);
bool replay_collective(ExecReplay *replay, const Instr *instr, GError **error);
bool replay_transfer(ExecReplay *replay, const Instr *instr, GError **error);

#endif
