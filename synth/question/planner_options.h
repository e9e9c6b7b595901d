/* The options of planners: `--set key=value`, and `set:` in an experiment file. */
#pragma once

#include "sim/sim.h"
#include "synth/amp/options.h"
#include "synth/hap/options.h"
#include "synth/hidup/options.h"
#include "synth/joint/options.h"
#include "synth/question/given.h"
#include "synth/tag/options.h"

/* clang-format off */
#define EXCHANGES_WORDS(X) \
    X(EXCHANGES_BOTH, "both") X(EXCHANGES_PADDED, "padded") \
    X(EXCHANGES_GROUPED, "grouped")
OPTION_WORDS(EXCHANGES_WORDS) /* HAP Sec. 2.5.1 */
#define SEARCH_WORDS(X) \
    X(SEARCH_OWN, "own") X(SEARCH_EXACT, "exact") X(SEARCH_REFERENCE, "reference") \
    X(SEARCH_BEST, "best") X(SEARCH_MCTS, "mcts")
OPTION_WORDS(SEARCH_WORDS)

/* Options of planning; all of them are part of every configuration.
 *    type    member            key            default */
#define PLANNER_OPTION_TABLE(X)                                    \
    X(PARSED(given_read), ratios, "ratios", "own")                 \
    X(CHOICE(EXCHANGES_WORDS), collectives, "collectives", "both") \
    X(CHOICE(SEARCH_WORDS), search, "search", "own")               \
    X(BYTES, bucket_bytes, "bucket", "0")                          \
    X(COUNT(0, 100000000), beam, "beam", "500")                    \
    X(COUNT(0, 1000), max_rounds, "max_rounds", "8")               \
    X(NUMBER(0, 1), certify, "certify", "0")                       \
    X(NUMBER(0, 1000000), budget_s, "budget_s", "0")

/* Any, and the targets of EXPORT_TABLE. */
#define TARGET_WORDS(X)                                                                    \
    X(TARGET_ANY, "any") X(TARGET_MEGATRON, "megatron") X(TARGET_FLAGSCALE, "flagscale")   \
    X(TARGET_TORCHTITAN, "torchtitan") X(TARGET_DEEPSPEED, "deepspeed")                    \
    X(TARGET_FSDP, "fsdp") X(TARGET_DDP, "ddp") X(TARGET_PYTORCH, "pytorch")
OPTION_WORDS(TARGET_WORDS)
#define TARGET_OPTION_TABLE(X)                    \
    X(CHOICE(TARGET_WORDS), target, "for", "any")

/* Options of some planners, a table in the room of each; part of a configuration where they are not
 * at their defaults. */
#define MIX_OPTION_TABLE(X)                       \
    X(PARSED(given_read_mix), mix, "mix", "none")
#define SPECIAL_OPTION_TABLE(X) \
    TARGET_OPTION_TABLE(X)      \
    MIX_OPTION_TABLE(X)         \
    HIDUP_OPTION_TABLE(X)       \
    HAP_SEARCH_OPTION_TABLE(X)  \
    JOINT_OPTION_TABLE(X)       \
    HAP_PLAN_OPTION_TABLE(X)
/* clang-format on */

typedef struct {
    PLANNER_OPTION_TABLE(OPTION_MEMBER)
    SPECIAL_OPTION_TABLE(
        OPTION_MEMBER) /* pins: as synth_pins_text() makes them; NULL: none */
    uint64_t seed;
    Strategy strategy; /* the keys that were set; planners fill in the rest */
    AmpPlanOptions amp;
    TagPlanOptions tag;
    SimOptions sim; /* of the simulation of the plan; plans do not depend on it */
} PlannerOptions;

void planner_options_init(PlannerOptions *options);
/* The keys of all options. Free with g_strfreev. */
char **planner_options_keys(void);
/* The ratios for which the options `ratios` and `mix` ask, and whether they are fixed. */
RatiosChoice planner_ratios(const PlannerOptions *options);
bool planner_ratios_are_fixed(const PlannerOptions *options);
/* One `key=value`; KILTER_ERROR_INPUT names the key and what was expected. */
bool planner_options_set(PlannerOptions *options, const char *key, const char *value,
                         GError **error);

/* The options as `key`, `value` pairs for the configuration; the value of a file is the SHA-256 of
 * its contents. Free with g_strfreev. KILTER_ERROR_INPUT for a file that cannot be read. */
char **planner_options_list(const PlannerOptions *options, GError **error);

/* The bundled files for which options' values stand, relative to the search path; free with
 * g_strfreev. */
char **planner_options_files(const PlannerOptions *options);
/* Whether option `key`, which there must be, has its default. */
bool planner_options_is_default(const PlannerOptions *options, const char *key);

/* The path of the file for which the value of option `key` stands, and the only way by which
 * planners come to a bundled file. KILTER_ERROR_INPUT if it is not on the search path. Caller
 * frees. */
char *planner_options_path(const PlannerOptions *options, const char *key,
                           GError **error);

/* Whether an option of the planners of op groups is not at its default. */
bool planner_options_of_op_groups(const PlannerOptions *options);
/* Whether an option of planners of pipelines, or (second) of AMP's search, is not the default. */
bool planner_options_of_pipelines(const PlannerOptions *options);
bool planner_options_of_amp(const PlannerOptions *options);

/* The first key of the strategy that is not at its default and that no search for pipelines takes;
 * NULL: there is none. */
const char *planner_options_unsearched(const PlannerOptions *options);

/* Whether an option of the simulation is not at its default, so that the plan's own report is not
 * the answer. */
bool planner_options_of_simulation(const PlannerOptions *options);

/* The name of the framework that is to run the plan; NULL: any or none. */
const char *planner_options_target(const PlannerOptions *options);

/* The text of all options with their meaning, without those of the simulation. Caller frees. */
char *planner_options_help(void);
