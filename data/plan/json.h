/* The format of plan files, shared by writer and reader (private to data).
 * data/schemas/plan-file.json lists the members: the question, costs and provenance (infinities are
 * null; integers above 2^63 - 1 are strings), and what was decided:
 *
 *     {
 *       ...
 *       "ratios": [[0.25, 0.75]],                         one row per segment, one number per
 *                                                         device
 *       "segments": [["conv1", 0], ["fc1", 1]],           ops from that op on have that segment
 *       "splits": [{"segment": 0, "units": 64, "count": [16, 48]}],
 *       "program": [
 *         ["load", "x", "gather(0)"],
 *         ["compute", "fc1", ["gather(0)", "identity"], ["gather(0)"]],
 *         ["all_reduce", "fc1.weight.grad", "reduce", "identity"]
 *       ]
 *     }
 *
 * A long program says once what its microbatches, layers and stages repeat:
 *
 *         ["repeat", 96, 48, {"layer": 1, "microbatch": 2, "group": 1}]
 *
 * stands for 96 instructions, each of which repeats the one 48 before it, itself repeated if 48 <
 * 96. "layer" is added to the first number in the name of the op or tensor, "microbatch" and
 * "group" (to "to_group" too) to theirs; what is left out is 0, and "whole" stays.
 *
 * Instructions that are not on their kind's stream, or not of group 0 and microbatch 0, end in an
 * object that says so: {"group": 1, "microbatch": 2, "stream": 0}; the microbatch PROGRAM_WHOLE is
 * "whole", "across": true stands for a collective over the replicas, "server" for the replica that
 * sums for the others, "to_group" with a transfer, "moves": true for an instruction that moves a
 * partial sum. A program that is not SPMD is preceded by
 *
 *       "microbatches": 4,                                1 if left out
 *       "groups": [[[0, 1], [2, 3]], [[4], [5]]],         [group][replica][device],
 *                                                         or {"shards": 2, "replicas": [...]}
 *
 * and then splits may say "group": 1, and "batch", "shards", "replicas" or "nested": true
 * (data/plan/plan.h). Last comes the seal, {"shards": ..., "plan": ...}: digests by which the
 * reader detects edits. After an edit it drops proofs, and refuses splits that differ from the
 * rounded ratios by more than a unit; without splits it rounds the ratios. */
#pragma once

#include <jansson.h>

#include "data/plan/plan.h"

#define PLAN_FORMAT "plan"
/* Version 1 has no repetitions. */
#define PLAN_VERSION_WRITTEN_OUT 1
#define PLAN_VERSION             2
#define PLAN_WHOLE               "whole" /* PROGRAM_WHOLE */
#define PLAN_SEAL                "seal"

/* The name of each kind of instruction; "": those of collectives. */
enum { PLAN_INSTRS = INSTR_TRANSFER + 1 };
extern const char *const PLAN_INSTR[PLAN_INSTRS];

/* The key that gives a split's kind; NULL for positions. */
extern const char *const PLAN_SPLIT_KEY[SPLIT_KINDS];

/* A member of the file: one row gives its name and how it is written and read. */
typedef enum {
    MEMBER_TEXT,
    MEMBER_OBJECT, /* kept as text */
    MEMBER_SECONDS,
    MEMBER_SECONDS_OR_NEVER, /* null means infinity */
    MEMBER_BOOL,
    MEMBER_COUNT,
    MEMBER_INTEGER,
    MEMBER_PART, /* read once its context is known (data/plan/read.c) */
} PlanMemberKind;

typedef struct {
    const char *key;
    PlanMemberKind kind;
    size_t offset; /* in Plan: char *, double, bool, uint32_t or uint64_t by the kind */
    bool may_lack; /* left out if it is NULL or 0 */
    /* writes a part; NULL: left out */
    json_t *(*json)(const Plan *plan, const Graph *graph);
} PlanMember;

/* The i-th member in the file's order; NULL after the last. */
const PlanMember *plan_member(uint32_t i);

/* The default stream of an instruction of that kind. */
uint8_t plan_json_stream(InstrKind kind, Collective collective);

/* Whether the digests of the members that determine the shards, and of all, still match. */
void plan_json_seals(const json_t *root, bool *shards, bool *all);
