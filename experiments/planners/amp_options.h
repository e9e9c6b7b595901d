/* Options of the planners of pipelines (amp, amp-sa, megatron, amp-random), all in one table.
 * Private to experiments. */
#ifndef KILTER_EXPERIMENTS_PLANNERS_AMP_OPTIONS_H
#define KILTER_EXPERIMENTS_PLANNERS_AMP_OPTIONS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/*    type    member    key         default     help */
#define AMP_OPTION_TABLE(X)                                                   \
    X(COUNT, pp, "pp", "0", "pipeline stages; 0: any number")                 \
    X(COUNT, dp, "dp", "0", "replicas; 0: any number")                        \
    X(COUNT, tmp, "tmp", "0", "devices that share each layer; 0: any number") \
    X(COUNT, mbs, "mbs", "0", "samples of a micro-batch; 0: any number")      \
    X(CHOICE, schedule, "schedule", "1f1b",                                   \
      "gpipe|1f1b|interleaved: of the micro-batches")                         \
    X(COUNT, chunks, "chunks", "2", "stages of each device when interleaved") \
    X(CHOICE, cost, "cost", "detailed",                                       \
      "detailed|faithful: how AMP's cost model is read")                      \
    X(CHOICE, balance, "balance", "layers",                                   \
      "layers|parameters: what megatron cuts evenly")                         \
    X(TEXT, profile, "profile", "",                                           \
      "file of measured layer times; without: FLOPs over rates")              \
    X(COUNT, trials, "trials", "5",                                           \
      "candidates of least predicted time that are simulated")                \
    X(COUNT, rank, "rank", "0",                                               \
      "the n-th candidate by predicted time, or at random; 0: by trials")

#define AMP_OPTION_TYPE_CHOICE uint32_t
#define AMP_OPTION_TYPE_COUNT  uint32_t
#define AMP_OPTION_TYPE_TEXT   const char *

/* CHOICE: the position in the help's list; TEXT: interned. */
typedef struct {
#define X(type, member, key, value, help) AMP_OPTION_TYPE_##type member;
    AMP_OPTION_TABLE(X)
#undef X
} AmpPlanOptions;

enum { AMP_BALANCE_LAYERS, AMP_BALANCE_PARAMETERS };
enum { AMP_COST_DETAILED, AMP_COST_FAITHFUL };

uint32_t amp_option_count(void);
const char *amp_option_key(uint32_t index);
/* "pp=0: pipeline stages; 0: any number", with the default. Caller frees. */
char *amp_option_text(uint32_t index);

void amp_options_init(AmpPlanOptions *options);
bool amp_options_has(const char *key);
/* KILTER_ERROR_INPUT says what was expected. */
bool amp_options_set(AmpPlanOptions *options, const char *key, const char *value,
                     GError **error);
/* Appends key and value of the options that are not at their defaults. */
void amp_options_list(const AmpPlanOptions *options, GStrvBuilder *list);

#endif
