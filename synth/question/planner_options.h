/* The options of planners: `--set key=value`, and `set:` in an experiment file. */
#ifndef KILTER_SYNTH_QUESTION_PLANNER_OPTIONS_H
#define KILTER_SYNTH_QUESTION_PLANNER_OPTIONS_H

#include "data/data.h"
#include "sim/sim.h"

/* Options of planning; all of them are part of every configuration.
 *    type    member            key            default     help */
#define PLANNER_OPTION_TABLE(X)                                                            \
    X(CHOICE, ratios, "ratios", "own",                                                    \
      "own|even|proportional|best: the planner's own, equal per GPU, by speed, or the "   \
      "best ones for its program (hap, hidup: found together with it)")                   \
    X(CHOICE, collectives, "collectives", "both",                                         \
      "both|padded|grouped: which collectives gather and reduce-scatter uneven shards")   \
    X(CHOICE, search, "search", "own",                                                    \
      "own|exact|reference|best|mcts: hap: exact, its own, or reference, the search "     \
      "of HAP's Fig. 10, without memory and baselines; tag: best, its own, mcts, "        \
      "TAG's, or exact")                                                                  \
    X(BYTES, bucket_bytes, "bucket", "0",                                                 \
      "gradients up to this size together share an all-reduce, or a reduce-scatter; 0: "  \
      "one by one")                                                                       \
    X(COUNT(0, 100000000), beam, "beam", "500",                                           \
      "width of hap's search; 0: no beam, the search is exact")                           \
    X(COUNT(0, 1000), max_rounds, "max_rounds", "8",                                      \
      "most rounds of search and ratios in turn (hap, hidup)")                            \
    X(NUMBER(0, 1), certify, "certify", "0",                                              \
      "prove more until the gap to a lower bound is at most this; 0: only the quick "     \
      "bound")                                                                            \
    X(NUMBER(0, 1000000), budget_s, "budget_s", "0",                                      \
      "seconds for search and certificate together; 0: no limit")

/* Options of some planners; part of a configuration where they are not at their defaults. */
#define SPECIAL_OPTION_TABLE(X)                                                            \
    X(CHOICE, duplex, "duplex", "own",                                                    \
      "own|off|on: whether two microbatches take turns; own: only in hidup's plans")      \
    X(CHOICE, backward, "backward", "overlapped",                                         \
      "overlapped|serial: how the backward pass runs in hidup's search; serial: as in "   \
      "its artifact")                                                                     \
    X(NUMBER(0, 1), noise, "noise", "0",                                                  \
      "relative error of hidup's estimates, drawn from the seed")                         \
    X(NUMBER(-1, 100), communication, "communication", "0",                               \
      "part by which hidup takes communication to be longer; -1: free")                   \
    X(COUNT(0, 1000000000), effort, "effort", "600000",                                   \
      "partial programs per round of hap's search for less memory, where the fastest "    \
      "program does not fit (600000: under a second; a budget adds more); 0: no limit")   \
    X(COUNT(1, 100000000), labels, "labels", "800",                                        \
      "hap: partial programs per op that its search for less memory keeps (certify: at "   \
      "least 3000)")                                                                       \
    X(COUNT(1, 100000), programs, "programs", "12",                                        \
      "hap: fastest programs of its search for less memory that are rounded and "          \
      "evaluated")                                                                         \
    X(COUNT(0, 1000000), moves, "moves", "200",                                           \
      "hap: most moves of units between devices that improve rounded shards; 0: none")    \
    X(COUNT(1, 1000000), pipelines, "pipelines", "40",                                    \
      "joint: pipelines of each number of microbatches that are walked step by step")     \
    X(COUNT(1, 1000000), boxes, "boxes", "400",                                           \
      "most boxes of ratios that a certificate looks at (certify); with a budget, 25 "    \
      "times as many")                                                                    \
    X(PARSED(read_pins), pins, "pin", "",                                                 \
      "hap: the form of a tensor, as TENSOR=FORM; may be repeated; pins=FILE reads "      \
      "lines of these")                                                                   \
    X(PARSED(segments_parse), segments, "segments", "none",                               \
      "hap: ops with ratios of their own: none, layers, ops, metis:K, OP=NUMBER;... "     \
      "or FILE")

/* Options of the planners of pipelines (amp, amp-sa, megatron, amp-random); likewise. */
#define AMP_OPTION_TABLE(X)                                                                \
    X(COUNT(0, 1000000), tmp, "tmp", "0", "AMP's name for tp")                            \
    X(COUNT(0, 1000000), most_tmp, "most_tmp", "0", "largest tmp; 0: any")                \
    X(COUNT(0, 1000000), mbs, "mbs", "0", "AMP's name for micro_batch; 0: any number")    \
    X(COUNT(0, 1000000), chunks, "chunks", "2", "stages per device when interleaved")     \
    X(CHOICE, cost, "cost", "detailed",                                                    \
      "detailed|faithful: which reading of AMP's cost model")                              \
    X(CHOICE, balance, "balance", "layers",                                               \
      "layers|parameters: what megatron divides evenly")                                  \
    X(CHOICE, placement, "placement", "random",                                           \
      "random|ordered: how amp-random places its ranks; ordered: as amp does")            \
    X(DATA, profile, "profile", "",                                                       \
      "file of measured layer times; default: FLOPs over rates")                          \
    X(COUNT(1, 1000000), steps, "steps", "20", "amp-sa: steps at each temperature")        \
    X(COUNT(0, 1000000), trials, "trials", "5",                                           \
      "number of candidates, by predicted time, that are simulated")                      \
    X(COUNT(0, 1000000), rank, "rank", "0",                                               \
      "take the n-th candidate by predicted time, or the n-th random one; 0: choose "     \
      "by trials")

typedef struct {
    AMP_OPTION_TABLE(OPTION_MEMBER)
} AmpPlanOptions;

/* Options of the planners of op groups (tag and its baselines); likewise. */
#define TAG_PLAN_OPTION_TABLE(X)                                                           \
    X(COUNT(1, 1000), groups, "groups", "60", "most op groups")                           \
    X(CHOICE, grouping, "grouping", "own",                                                 \
      "own|metis|layers: op groups by METIS, as TAG makes them, or whole layers; own: "    \
      "layers, but metis with search=mcts")                                                \
    X(COUNT(1, 100000000), evaluations, "evaluations", "8000",                            \
      "most strategies to try; with search=mcts most iterations")                         \
    X(NUMBER(0, 1000), heat, "heat", "0.01",                                               \
      "flexflow: a strategy slower by this part of data parallelism's time is taken "      \
      "with probability 1/e; 0: only faster ones")                                         \
    X(COUNT(0, 1000000), branches, "branches", "200",                                     \
      "most branches that the bound visits to improve itself; 0: none")                   \
    X(CHOICE, objective, "objective", "both",                                             \
      "both|stage|flow: the fidelity whose time is minimized; both: half of the "         \
      "evaluations each")                                                                 \
    X(CHOICE, links, "links", "shared",                                                    \
      "shared|own: whether plans are judged by flow on links that messages share, or "     \
      "as in the search, each message on links of its own (network=crossbar)")             \
    X(CHOICE, sets, "sets", "kinds",                                                      \
      "kinds|machines: subsets are made of all machines of a kind together, or of "       \
      "single machines")                                                                  \
    X(CHOICE, leave, "leave", "on",                                                       \
      "on|off: whether finished vertices leave the tree of search=mcts; off: as in "      \
      "TAG's artifact")                                                                   \
    X(COUNT(1, 256), leaves, "leaves", "1",                                                \
      "number of leaves that search=mcts chooses before it evaluates them, on all "        \
      "cores; 1: as in the paper")                                                         \
    X(FILES("|tag/network.txt|tag/ahead.txt"), priors, "priors", "uniform",               \
      "uniform|gnn|ahead: priors of search=mcts; gnn: from the network in "                \
      "data/tag/network.txt, which learnt as TAG's does; ahead: in data/tag/ahead.txt, "   \
      "which learnt from strategies one step ahead")

typedef struct {
    TAG_PLAN_OPTION_TABLE(OPTION_MEMBER)
} TagPlanOptions;

enum { TAG_GROUPS_OWN, TAG_GROUPS_METIS, TAG_GROUPS_LAYERS };
enum { TAG_OBJECTIVE_BOTH, TAG_OBJECTIVE_STAGE, TAG_OBJECTIVE_FLOW };
enum { TAG_LINKS_SHARED, TAG_LINKS_OWN };
enum { TAG_SETS_KINDS, TAG_SETS_MACHINES };
enum { TAG_LEAVE_ON, TAG_LEAVE_OFF };
enum { TAG_PRIORS_UNIFORM, TAG_PRIORS_GNN, TAG_PRIORS_AHEAD };

enum { AMP_COST_DETAILED, AMP_COST_FAITHFUL };
enum { AMP_BALANCE_LAYERS, AMP_BALANCE_PARAMETERS };
enum { AMP_PLACEMENT_RANDOM, AMP_PLACEMENT_ORDERED };

enum { RATIOS_OWN, RATIOS_EVEN, RATIOS_PROPORTIONAL, RATIOS_BEST };
enum { EXCHANGES_BOTH, EXCHANGES_PADDED, EXCHANGES_GROUPED }; /* HAP Sec. 2.5.1 */
enum { SEARCH_OWN, SEARCH_EXACT, SEARCH_REFERENCE, SEARCH_BEST, SEARCH_MCTS };
enum { DUPLEX_OWN, DUPLEX_OFF, DUPLEX_ON }; /* HiDup Sec. 3 */
enum { BACKWARD_OVERLAPPED, BACKWARD_SERIAL }; /* overlapped: HiDup Eq. 5 */

typedef struct {
    PLANNER_OPTION_TABLE(OPTION_MEMBER)
    SPECIAL_OPTION_TABLE(OPTION_MEMBER) /* pins: as synth_pins_text() makes them; NULL: none */
    uint64_t seed;
    Strategy strategy; /* the keys that were set; planners fill in the rest */
    AmpPlanOptions amp;
    TagPlanOptions tag;
    SimOptions sim; /* of the simulation of the plan; plans do not depend on it */
} PlannerOptions;

void planner_options_init(PlannerOptions *options);
/* One `key=value`; KILTER_ERROR_INPUT names the key and what was expected. */
bool planner_options_set(PlannerOptions *options, const char *key, const char *value,
                         GError **error);

/* The options as `key`, `value` pairs for the configuration; the value of a file is the SHA-256 of
 * its contents. Free with g_strfreev. KILTER_ERROR_INPUT for a file that cannot be read. */
char **planner_options_list(const PlannerOptions *options, GError **error);

/* The bundled files for which options' values stand, relative to the search path; free with g_strfreev. */
char **planner_options_files(const PlannerOptions *options);
/* The path of the file for which the value of option `key` stands, and the only way by which planners come to a bundled
 * file. KILTER_ERROR_INPUT if it is not on the search path. Caller frees. */
char *planner_options_path(const PlannerOptions *options, const char *key, GError **error);

/* Whether an option of the planners of op groups is not at its default. */
bool planner_options_of_op_groups(const PlannerOptions *options);
/* Whether an option of the planners of pipelines, or (second) of AMP's search, is not at its
 * default. */
bool planner_options_of_pipelines(const PlannerOptions *options);
bool planner_options_of_amp(const PlannerOptions *options);

/* The first key of the strategy that is not at its default and not among `known`, which ends with
 * NULL; NULL if there is none. */
const char *planner_options_strategy_beside(const PlannerOptions *options,
                                            const char *const *known);

/* The keys of the strategy that apply to every planner's program; ends with NULL. */
extern const char *const planner_techniques[];

/* Whether an option of the simulation is not at its default, so that the plan's own report is not
 * the answer. */
bool planner_options_of_simulation(const PlannerOptions *options);

/* The text of all options with their meaning, without those of the simulation. Caller frees. */
char *planner_options_help(void);

#endif
