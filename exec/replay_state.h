/* The state of a replay, the instances that it holds, and the functions that run each kind of
 * instruction. Private to exec. */
#pragma once

#include "exec/replay.h"

/* Memory of a buffer (data/plan/buffers.h), or of a value that lies apart from the buffer that the
 * memory model gives it. */
typedef struct {
    ExecShard *shard; /* [n_ranks] */
    uint32_t end;     /* the last instruction that uses it; REPLAY_ALWAYS: none is */
    uint32_t filled;  /* how often it has got memory */
    MemoryCategory category;
} Room;

#define REPLAY_ALWAYS UINT32_MAX

struct ExecReplay {
    ExecBackend *backend;
    const Plan *plan;
    const Graph *graph;
    ExecCuts *cuts;
    ExecShard **held; /* [instance]: [n_ranks], NULL until made */
    /* a replay that trains: Room, first those of the buffers; [instance]: its room, and how often
     * that had got memory */
    PlanBuffers *buffers;
    GArray *room;
    uint32_t *lies, *filled;
    /* [instruction], [instruction + 1]: range in `leaves` of the buffers that it uses last */
    uint32_t *first_leaving, *leaves;
    /* a lean replay: [tensor], and [instance]: the last instruction that uses it */
    const bool *keep;
    uint32_t *last;
    bool *partial;   /* [instance]: the replicas still have to be summed */
    uint32_t *added; /* [instance]: microbatches that have added to it */
    bool *moved;     /* [instance]: its contents have gone to another instance */
    bool *checked;   /* [program->n]: the operands of the instruction are cut alike */
    Form *rest;      /* [group * n_tensors + tensor] */
    double *seconds; /* [program->n] */
    double slow;
    ExecHeld *now, *peak; /* [local rank]: at present, and at most */
    uint32_t at;          /* the instruction that is running */
};

/* Sets KILTER_ERROR_FAILED, naming the instruction that is running; returns false. */
bool replay_fail(const ExecReplay *replay, GError **error, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/* --- rooms (exec/rooms.c) --- */

/* The buffers of the plan's program, which must have been checked. The caller frees them. */
PlanBuffers *replay_buffers(const ExecReplay *replay);
/* Makes the rooms of all buffers, without memory. */
void replay_rooms_new(ExecReplay *replay);
void replay_rooms_free(ExecReplay *replay);
/* Memory for the instance `cell` of the group, with the given shapes [n_ranks], that the running
 * instruction makes of the tensor, as microbatch `part` of a load. False if memory runs out. */
bool replay_rooms_take(ExecReplay *replay, size_t cell, uint32_t group, uint32_t part,
                       TensorId tensor, ExecShard *shard, GError **error);
/* The instance `target` of a transfer that joins a larger group: on the devices of the smaller
 * group it is the memory of `source`. adds: others have joined before. */
ExecShard *replay_rooms_join(ExecReplay *replay, const Instr *instr, size_t source,
                             size_t target, bool adds);
/* Whether the instance's memory still holds it. */
bool replay_rooms_hold(const ExecReplay *replay, size_t cell);
/* Frees what the running instruction used last. */
void replay_rooms_leave(ExecReplay *replay);
/* Makes the updated values those that the next iteration starts from. */
bool replay_rooms_turn(ExecReplay *replay, GError **error);

/* Memory for the group's local ranks, and its release. */
bool replay_reserve(ExecReplay *replay, uint32_t group, MemoryCategory category,
                    ExecShard *shard, GError **error);
void replay_release(ExecReplay *replay, MemoryCategory category, ExecShard *shard);

/* Number of an instance, or GRAPH_NONE; of the instance that a collective or transfer reads, and of
 * the one that it makes. */
uint32_t replay_instance(const ExecReplay *replay, uint32_t group, uint32_t microbatch,
                         TensorId tensor, Form form);
uint32_t replay_source(const ExecReplay *replay, const Instr *instr);
uint32_t replay_target(const ExecReplay *replay, const Instr *instr);
/* The instance, whose shards have their shapes, and memory if it was made before. */
ExecShard *replay_shaped(ExecReplay *replay, uint32_t group, uint32_t microbatch,
                         TensorId tensor, Form form);
/* The instance, with memory; NULL and an error if memory runs out. */
ExecShard *replay_make(ExecReplay *replay, uint32_t group, uint32_t microbatch,
                       TensorId tensor, Form form, GError **error);
/* The instance of the instruction's group and microbatch, which must have been made. */
ExecShard *replay_use(ExecReplay *replay, const Instr *instr, TensorId tensor, Form form,
                      GError **error);

/* Shards [n_ranks] that belong to no instance. replay_shapes copies shards without their data;
 * replay_allocate gives the group's local ranks temporary memory; replay_drop frees such shards
 * with their data. */
ExecShard *replay_shapes(const ExecReplay *replay, const ExecShard *shard);
bool replay_allocate(ExecReplay *replay, uint32_t group, ExecShard *shard,
                     GError **error);
void replay_drop(ExecReplay *replay, ExecShard *shard);

/* As exec_cut, for the backend's numbers. */
void replay_cut(const ExecReplay *replay, uint32_t group, uint32_t microbatch,
                TensorId tensor, Form form, uint32_t segment, ExecShard *shard);

/* Copies to the memory of local ranks that have any, or adds; what lies in the same memory stays. */
void replay_pass(const ExecReplay *replay, const ExecShard *from, const ExecShard *to,
                 bool adds);

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
