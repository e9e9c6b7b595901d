/* What planners may be told: `--set key=value` and the `set:` of an experiment file. */
#ifndef KILTER_EXPERIMENTS_PLANNERS_PLANNER_OPTIONS_H
#define KILTER_EXPERIMENTS_PLANNERS_PLANNER_OPTIONS_H

#include "data/data.h"
#include "sim/sim.h"

/* Of planning; all of them are part of every configuration.
 *    type    member            key            default     help */
#define PLANNER_OPTION_TABLE(X)                                                            \
    X(CHOICE, ratios, "ratios", "own",                                                     \
      "own|even|proportional|best: the planner's, by number of GPUs, by speed, or what "   \
      "is best for its program (hap, hidup: together with it)")                            \
    X(CHOICE, collectives, "collectives", "both",                                          \
      "both|padded|grouped: how uneven shards are gathered and reduce-scattered")          \
    X(CHOICE, search, "search", "own",                                                     \
      "own|exact|reference|best|mcts: of hap exact, its own, or reference, HAP's (Fig. 10), " \
      "without memory and baselines; of tag best, its own, mcts, TAG's, or exact")         \
    X(BYTES, bucket_bytes, "bucket", "0",                                                  \
      "up to which size gradients are all-reduced together; 0: one by one")                \
    X(COUNT(0, 100000000), beam, "beam", "500", "of hap's search; 0: none, it is exact")   \
    X(COUNT(0, 1000), max_rounds, "max_rounds", "8",                                       \
      "of search and ratios in turn (hap, hidup)")                                         \
    X(NUMBER(0, 1), certify, "certify", "0",                                               \
      "gap to a lower bound that is good enough; 0: take the bound that is had at once")   \
    X(NUMBER(0, 1000000), budget_s, "budget_s", "0",                                       \
      "seconds for search and certificate together; 0: as many as it takes")

/* Of some planners; part of a configuration where they are not at their defaults. */
#define SPECIAL_OPTION_TABLE(X)                                                            \
    X(CHOICE, duplex, "duplex", "own",                                                     \
      "own|off|on: whether two microbatches take turns; own: in hidup's plans only")       \
    X(CHOICE, backward, "backward", "overlapped",                                          \
      "overlapped|serial: how the backward runs, to hidup's search; serial: its artifact's") \
    X(NUMBER(0, 1), noise, "noise", "0",                                                   \
      "part by which hidup's estimates are off, at random by the seed")                    \
    X(NUMBER(-1, 100), communication, "communication", "0",                                \
      "part by which hidup believes communication longer; -1: free")                       \
    X(COUNT(0, 1000000000), effort, "effort", "600000",                                    \
      "partial programs that a round of hap's search for less memory makes, where the "    \
      "fastest program does not fit: under a second; more with a budget; 0: any")     \
    X(COUNT(1, 1000000), boxes, "boxes", "400",                                            \
      "of ratios that a certificate looks at, at most (certify)")                          \
    X(PARSED(read_pins), pins, "pin", "",                                                  \
      "of hap: the form of a tensor, as TENSOR=FORM; adds up; pins=FILE: of its lines")    \
    X(PARSED(segments_parse), segments, "segments", "none",                                \
      "of hap: none, layers, ops, metis:K or FILE: ops that may have their own ratios")

/* Of the planners of pipelines (amp, amp-sa, megatron, amp-random); likewise. */
#define AMP_OPTION_TABLE(X)                                                                \
    X(COUNT(0, 1000000), tmp, "tmp", "0", "AMP's name of tp")                              \
    X(COUNT(0, 1000000), most_tmp, "most_tmp", "0", "the most that tmp may be; 0: any")    \
    X(COUNT(0, 1000000), mbs, "mbs", "0", "AMP's name of micro_batch; 0: any number")      \
    X(COUNT(0, 1000000), chunks, "chunks", "2", "stages of each device when interleaved")  \
    X(CHOICE, cost, "cost", "detailed",                                                    \
      "detailed|faithful: how AMP's cost model is read")                                   \
    X(CHOICE, balance, "balance", "layers",                                                \
      "layers|parameters: what megatron cuts evenly")                                      \
    X(DATA, profile, "profile", "",                                                        \
      "file of measured layer times; without: FLOPs over rates")                           \
    X(COUNT(0, 1000000), trials, "trials", "5",                                            \
      "candidates of least predicted time that are simulated")                             \
    X(COUNT(0, 1000000), rank, "rank", "0",                                                \
      "the n-th candidate by predicted time, or at random; 0: by trials")

typedef struct {
    AMP_OPTION_TABLE(OPTION_MEMBER)
} AmpPlanOptions;

/* Of the planners of op groups (tag and what it is compared with); likewise. */
#define TAG_PLAN_OPTION_TABLE(X)                                                           \
    X(COUNT(1, 1000), groups, "groups", "60", "op groups, at most")                        \
    X(CHOICE, grouping, "grouping", "own",                                                 \
      "own|metis|layers: op groups by time and bytes between them, TAG's own, or of whole "  \
      "layers; own: metis with search=mcts")                                               \
    X(COUNT(1, 100000000), evaluations, "evaluations", "8000",                             \
      "strategies to try at most; of search=mcts iterations")                              \
    X(COUNT(0, 1000000), branches, "branches", "200",                                      \
      "of strategies that the bound is improved by; 0: none")                              \
    X(CHOICE, objective, "objective", "both",                                              \
      "both|stage|flow: whose time is searched for; both: half of the evaluations each")   \
    X(CHOICE, sets, "sets", "kinds",                                                       \
      "kinds|machines: what subsets are made of: the machines of a kind together, or each") \
    X(CHOICE, leave, "leave", "on",                                                        \
      "on|off: whether finished vertices leave the tree of search=mcts; off: TAG's artifact's") \
    X(CHOICE, priors, "priors", "uniform",                                                 \
      "uniform|gnn: of search=mcts; gnn: of the network in data/tag/network.txt")

typedef struct {
    TAG_PLAN_OPTION_TABLE(OPTION_MEMBER)
} TagPlanOptions;

enum { TAG_GROUPS_OWN, TAG_GROUPS_METIS, TAG_GROUPS_LAYERS };
enum { TAG_OBJECTIVE_BOTH, TAG_OBJECTIVE_STAGE, TAG_OBJECTIVE_FLOW };
enum { TAG_SETS_KINDS, TAG_SETS_MACHINES };
enum { TAG_LEAVE_ON, TAG_LEAVE_OFF };
enum { TAG_PRIORS_UNIFORM, TAG_PRIORS_GNN };

enum { AMP_COST_DETAILED, AMP_COST_FAITHFUL };
enum { AMP_BALANCE_LAYERS, AMP_BALANCE_PARAMETERS };

enum { RATIOS_OWN, RATIOS_EVEN, RATIOS_PROPORTIONAL, RATIOS_BEST };
enum { EXCHANGES_BOTH, EXCHANGES_PADDED, EXCHANGES_GROUPED }; /* HAP Sec. 2.5.1 */
enum { SEARCH_OWN, SEARCH_EXACT, SEARCH_REFERENCE, SEARCH_BEST, SEARCH_MCTS };
enum { DUPLEX_OWN, DUPLEX_OFF, DUPLEX_ON }; /* HiDup Sec. 3 */
enum { BACKWARD_OVERLAPPED, BACKWARD_SERIAL }; /* overlapped: HiDup Eq. 5 */

typedef struct {
    PLANNER_OPTION_TABLE(OPTION_MEMBER)
    SPECIAL_OPTION_TABLE(OPTION_MEMBER) /* pins: as synth_pins_text() makes them; NULL: none */
    uint64_t seed;
    Strategy strategy; /* what is asked for of it; the planners fill in the rest */
    AmpPlanOptions amp;
    TagPlanOptions tag;
    SimOptions sim; /* of the simulation of the plan; plans do not depend on it */
} PlannerOptions;

void planner_options_init(PlannerOptions *options);
/* One `key=value`; KILTER_ERROR_INPUT names the key and what was expected. */
bool planner_options_set(PlannerOptions *options, const char *key, const char *value,
                         GError **error);

/* The options as `key`, `value` pairs for the effective configuration; the value of a file is the
 * SHA-256 of its contents. Free with g_strfreev. KILTER_ERROR_INPUT for a file that cannot be read. */
char **planner_options_list(const PlannerOptions *options, GError **error);

/* Whether an option of the planners of pipelines, or of op groups, is not at its default. */
bool planner_options_of_op_groups(const PlannerOptions *options);
/* Whether an option of the planners of pipelines is not at its default, or one of AMP's search. */
bool planner_options_of_pipelines(const PlannerOptions *options);
bool planner_options_of_amp(const PlannerOptions *options);

/* The first key of the strategy that is not at its default and not among `known`, which ends with
 * NULL; NULL if there is none. */
const char *planner_options_strategy_beside(const PlannerOptions *options,
                                            const char *const *known);

/* What every planner's program can be given: keys of the strategy, ends with NULL. */
extern const char *const planner_techniques[];

/* Whether an option of the simulation is not at its default, so that the plan's own report is not
 * the answer. */
bool planner_options_of_simulation(const PlannerOptions *options);

/* What can be set and what it means, without the options of the simulation. Caller frees. */
char *planner_options_help(void);

#endif
