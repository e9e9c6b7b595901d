/* Names of frameworks for what Kilter has words for (private to data/formats), by which exporters
 * write and importers read: data/launches.csv. A row has a framework, a name, a word, and what is
 * said:
 *
 *     (empty)       the name has the word's value: --seq-length 4096
 *     on            the name is a switch, which says that the word is "on": --sequence-parallel
 *     all_gather=allgather   with the value all_gather it says that the word is "allgather"
 *     fp8=*         written once, whatever the value
 *     *zero3*=3     with any value of this form: a file's name says its stage
 *
 * A name "$ swift sft" is a command, whose first two words say what its driver does unasked.
 *
 * docs/launches.md lists the versions whose sources the names were read in. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* Words: whole numbers of degrees, batches and layers, from WORLD to LAYERS; stages, techniques,
 * formats; then facts of the model. Their texts are Kilter's own where a strategy has the key. */
/* clang-format off */
#define LAUNCH_WORDS(X)                                                                     \
    X(NODES) X(PER_NODE) X(WORLD) X(PP) X(TP) X(CP) X(EP) X(ETP) X(REPLICATE) X(SHARD)      \
    X(MICRO_BATCH) X(LOCAL_BATCH) X(GLOBAL_BATCH) X(MICROBATCHES) X(TOKENS_MICRO)           \
    X(TOKENS_STEP) X(SEQ) X(VIRTUAL) X(PER_VIRTUAL) X(FIRST_LAYERS) X(LAST_LAYERS)          \
    X(ZERO) X(RECOMPUTE_LAYERS) X(LAYERS) X(CP_COMM) X(CP_SIZES) X(LAYOUT) X(SPLIT)         \
    X(MODULES) X(COUNT_FIRST) X(COUNT_LAST) X(RESHARD) X(OFFLOAD) X(SCHEDULE)               \
    X(STEPS_FILE) X(SEQUENCE) X(INSTANCES) X(ZERO_RANKS) X(RECOMPUTE) X(AGAIN) X(METHOD)    \
    X(NUMBERS) X(FP8) X(GRADIENTS) X(OPTIMIZER) X(LOSS_FUSION) X(LOSS_IMPL) X(HIDDEN)       \
    X(FFN) X(HEADS) X(GROUPED) X(KV_HEADS) X(HEAD_SIZE) X(POSITIONS) X(VOCAB)               \
    X(VOCAB_MULTIPLE) X(NORM) X(NORM_EPSILON) X(POSITION) X(ROPE_BASE) X(ROPE_SCALING)      \
    X(ROPE_FACTOR) X(ACTIVATION) X(UNTIED) X(NO_BIAS) X(QKV_BIAS) X(QK_NORM) X(DROPOUT)     \
    X(ATTENTION_DROPOUT) X(EXPERTS) X(TOP) X(EXPERT_FFN) X(SHARED_FFN) X(DISPATCHER)        \
    X(CAPACITY) X(PADDED) X(SCORE) X(EXPERT_GROUPS) X(TOP_GROUPS) X(SHARED_GATE)            \
    X(EXPERT_LAYERS) X(LATENT) X(Q_RANK) X(KV_RANK) X(OWN_KEY) X(SHARED_KEY)                \
    X(VALUE_SIZE) X(ROTARY_PART) X(BACKEND) X(ONCE) X(BESIDE) X(OTHER_FILE) X(TRAINER)     \
    X(ADAPTER) X(ADAPTER_RANK) X(TARGET) X(WEIGHTS) X(PARAMETERS) X(FRAMEWORK)            \
    X(USUAL_RECOMPUTE) X(USUAL_SEQ)
/* clang-format on */

#define LAUNCH_ID(id) WORD_##id,
typedef enum {
    LAUNCH_WORDS(LAUNCH_ID) WORDS,
    WORD_NOTHING = WORDS /* known, and without effect on plan and costs */
} LaunchWord;

/* The largest number of a word. */
#define LAUNCH_MOST (1u << 30)

/* In an exported recipe, before the schedule whose steps are in a file beside it. */
#define LAUNCH_STEPS "# Steps: "
/* The name of the file of batches beside accelerate's configuration goes on so. */
#define LAUNCH_ARGUMENTS ".arguments.json"

/* The rows; free with g_array_unref. Flags of Megatron-LM are without "--", and FlagScale and
 * Bridge have them with '_'; other frameworks have paths: "zero_optimization.stage". */
GArray *launch_names_read(GError **error);

/* Sets words of value [WORDS] from a framework's name and its value (NULL: a switch), by all rows
 * for both; false if there are none, or the word is a number and the value is not. */
bool launch_take(const GArray *names, const char *framework, const char *name,
                 const char *text, char **value);

/* Calls `write` for each name of a framework that says one of the words, in the order of the rows;
 * text NULL: a switch. */
void launch_write(const GArray *names, const char *framework, char *const *value,
                  void (*write)(void *data, const char *name, const char *text),
                  void *data);

/* A word's number: 0 if it is not said. */
uint32_t launch_number(char *const *value, LaunchWord word);
