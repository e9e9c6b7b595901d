/* What the writer and the reader of plan files agree on (private to data).
 *
 *     {
 *       "kilter": {"format": "plan", "version": 1},
 *       "model": "vit:layers=8,...", "cluster": "hap-32", "granularity": "machine", "planner": "hap",
 *       "cluster_content": {...},                         the cluster's file, as it was then
 *       "made_by": "amp",                                 where the planner chose among others' plans
 *       ... costs, provenance; infinities are null; integers above 2^63 - 1 are strings ...
 *       "strategy": {"pp": 2, "schedule": "1f1b"},        if it has one: what is not at its default
 *       "ratios": [[0.25, 0.75]],                         a row per segment, a number per device
 *       "segments": [["conv1", 0], ["fc1", 1]],           from that op on, ops are of that segment
 *       "splits": [{"segment": 0, "units": 64, "count": [16, 48]}],
 *       "program": [
 *         ["load", "x", "gather(0)"],
 *         ["compute", "fc1", ["gather(0)", "identity"], ["gather(0)"]],
 *         ["all_reduce", "fc1.weight.grad", "reduce", "identity"]
 *       ]
 *     }
 *
 * Instructions that are not on their kind's stream, or not of group 0 and microbatch 0, end in an
 * object that says so: {"group": 1, "microbatch": 2, "stream": 0}; the microbatch PROGRAM_WHOLE is
 * "whole", "across": true stands for a collective over the replicas, "server" for the replica that
 * sums for the others, "to_group" with a transfer, "moves": true for what takes a sum so far. A program that is not SPMD has before it
 *
 *       "microbatches": 4,                                1 if left out
 *       "groups": [[[0, 1], [2, 3]], [[4], [5]]],         of each group the devices of each replica,
 *                                                         or {"shards": 2, "replicas": [...]}
 *
 * and then splits may say "group": 1, and "batch", "shards", "replicas" or "nested": true (data/plan/plan.h). Last comes the seal,
 * {"shards": ..., "plan": ...}: digests by which the reader sees that the file was edited. Then it
 * drops what was proved, and refuses splits that the ratios do not round to within a unit; without
 * splits it rounds the ratios. */
#ifndef KILTER_DATA_PLAN_JSON_H
#define KILTER_DATA_PLAN_JSON_H

#include <jansson.h>

#include "data/plan/plan.h"

#define PLAN_FORMAT  "plan"
#define PLAN_VERSION 1
#define PLAN_WHOLE   "whole" /* PROGRAM_WHOLE */
#define PLAN_SEAL    "seal"

/* The key that says of a split what it cuts for; NULL: the positions. */
extern const char *const PLAN_SPLIT_KEY[SPLIT_KINDS];

/* A member of the file: one row says how it is called, written and read. */
typedef enum {
    MEMBER_TEXT,
    MEMBER_OBJECT, /* kept as its text */
    MEMBER_SECONDS,
    MEMBER_SECONDS_OR_NEVER, /* null: infinity */
    MEMBER_BOOL,
    MEMBER_COUNT,
    MEMBER_INTEGER,
    MEMBER_PART, /* read once what it speaks of is known (data/plan/read.c) */
} PlanMemberKind;

typedef struct {
    const char *key;
    PlanMemberKind kind;
    size_t offset; /* in Plan: char *, double, bool, uint32_t or uint64_t by the kind */
    bool may_lack; /* left out where it is NULL or 0 */
    json_t *(*json)(const Plan *plan, const Graph *graph); /* of a part; NULL: left out */
} PlanMember;

/* In the file's order; NULL after the last. */
const PlanMember *plan_member(uint32_t i);

/* The stream on which an instruction of that kind runs unless it says otherwise. */
uint8_t plan_json_stream(InstrKind kind, Collective collective);

/* Seals a plan's object: digests of what says who has which shards, and of everything. */
void plan_json_seal(json_t *root);
/* Whether either is still what it was when it was sealed. */
void plan_json_seals(const json_t *root, bool *shards, bool *all);

/* How many counts a split has. */
uint32_t plan_split_devices(const Plan *plan, const Split *split);

#endif
