/* The state of a replay: which instances it holds, and what runs the kinds of instructions. Private
 * to exec. */
#ifndef KILTER_EXEC_REPLAY_STATE_H
#define KILTER_EXEC_REPLAY_STATE_H

#include "exec/replay.h"

struct ExecReplay {
    ExecBackend *backend;
    const Plan *plan;
    const Graph *graph;
    ExecCuts *cuts;
    ExecShard **held; /* [instance]: [n_ranks], NULL until made */
    bool *partial;    /* [instance]: over the replicas */
    uint32_t *added;  /* [instance]: microbatches that have added to it */
    bool *moved;      /* [instance]: what it held has gone to another one */
    Form *rest;       /* [group * n_tensors + tensor] */
    double *seconds;  /* [program->n] */
    double slow;
    uint64_t bytes;
    uint32_t at; /* instruction that is being run */
};

/* KILTER_ERROR_FAILED, naming the instruction that is being run. */
bool replay_fail(const ExecReplay *replay, GError **error, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/* --- instances --- */

/* Number of an instance, or GRAPH_NONE. */
uint32_t replay_instance(const ExecReplay *replay, uint32_t group, uint32_t microbatch,
                         TensorId tensor, Form form);
/* The instance, with memory; NULL and an error where that lacks. */
ExecShard *replay_make(ExecReplay *replay, uint32_t group, uint32_t microbatch,
                       TensorId tensor, Form form, GError **error);
/* The instance of the instruction's group and microbatch, which must have been made. */
ExecShard *replay_use(ExecReplay *replay, const Instr *instr, TensorId tensor, Form form,
                      GError **error);

/* Shards [n_ranks] apart from instances: copies of others without their data; memory for the
 * group's local ranks; freed with their data. */
ExecShard *replay_shapes(const ExecReplay *replay, const ExecShard *shard);
bool replay_allocate(ExecReplay *replay, uint32_t group, ExecShard *shard,
                     GError **error);
void replay_drop(ExecReplay *replay, ExecShard *shard);

/* Whether the rank is in the group. */
bool replay_in_group(const ExecReplay *replay, uint32_t group, uint32_t rank);

/* --- instructions, on the local ranks --- */

/* The exchange in every set of members of a group. */
bool replay_exchange_in(const ExecReplay *replay, uint32_t group, ExecMembers members,
                        ExecExchange exchange, GError **error);
/* Whether all ranks have the same part of both. */
bool replay_same_cut(const ExecShard *a, const ExecShard *b, uint32_t n);

bool replay_compute(ExecReplay *replay, const Instr *instr, GError **error);
bool replay_collective(ExecReplay *replay, const Instr *instr, GError **error);
bool replay_transfer(ExecReplay *replay, const Instr *instr, GError **error);

#endif
