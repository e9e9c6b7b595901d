/* Options of the event-driven fidelities, all in one table: part of sim's public
 * interface, included by sim/sim.h. */
#ifndef KILTER_SIM_OPTIONS_H
#define KILTER_SIM_OPTIONS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "data/data.h"

/*    type    member              key             default       help */
#define SIM_OPTION_TABLE(X)                                                             \
    X(CHOICE, overlap, "overlap", "on",                                                 \
      "off|on: whether communication overlaps computation")                             \
    X(COUNT, streams, "streams", "1",                                                   \
      "communication streams a device; gradients have all but the first to themselves") \
    X(BYTES, first_bucket, "first_bucket", "1MiB",                                      \
      "limit of the first gradient bucket; the others' is the planner's option bucket") \
    X(CHOICE, network, "network", "topology",                                           \
      "crossbar|topology: collectives take the cost model's time, or share links")      \
    X(ALGORITHMS, algorithm, "algorithm", "",                                           \
      "of collectives, as KIND:NAME+..., before the cluster's tuning table")            \
    X(CHOICE, host, "host", "ahead",                                                    \
      "ahead|waits: whether a host launches on while what it receives is on its way")   \
    X(NUMBER, jitter, "jitter", "0",                                                    \
      "standard deviation of an op's time, relative to it")                             \
    X(CHOICE, distribution, "distribution", "lognormal",                                \
      "normal|lognormal|gamma: of the jitter, with mean 1")                             \
    X(TEXT, straggler, "straggler", "",                                                 \
      "devices that compute slower, as DEVICE*FACTOR+...; the device any is drawn")     \
    X(TEXT, slow_link, "slow_link", "",                                                 \
      "links that are slower from some time on, as FROM>TO*FACTOR@TIME+...")            \
    X(TEXT, fail, "fail", "", "devices and links that fail, as NAME@TIME+...")          \
    X(TIME, restart, "restart", "0s",                                                   \
      "time to replace what failed and start the iteration again; 0s: it fails")

/* Members by type: CHOICE the position in the help's list, TEXT interned, ALGORITHMS too:
 * a text that sim_algorithms_parse takes. */
#define SIM_OPTION_TYPE_CHOICE     uint32_t
#define SIM_OPTION_TYPE_COUNT      uint32_t
#define SIM_OPTION_TYPE_BYTES      uint64_t
#define SIM_OPTION_TYPE_NUMBER     double
#define SIM_OPTION_TYPE_TIME       double
#define SIM_OPTION_TYPE_TEXT       const char *
#define SIM_OPTION_TYPE_ALGORITHMS const char *

typedef struct {
#define X(type, member, key, value, help) SIM_OPTION_TYPE_##type member;
    SIM_OPTION_TABLE(X)
#undef X
    uint64_t seed;
    bool time_only; /* the report leaves memory out: it is 0 and fits */
} SimOptions;

enum { SIM_CROSSBAR, SIM_TOPOLOGY };
enum { SIM_HOST_AHEAD, SIM_HOST_WAITS };
enum { SIM_NORMAL, SIM_LOGNORMAL, SIM_GAMMA };

typedef struct {
    const char *key, *value, *help; /* value: the default */
} SimOptionInfo;

uint32_t sim_option_count(void);
const SimOptionInfo *sim_option_info(uint32_t index);

void sim_options_init(SimOptions *options); /* the defaults, seed 1 */

/* Whether there is an option of that name. */
bool sim_options_has(const char *key);
/* KILTER_ERROR_INPUT says what was expected. */
bool sim_options_set(SimOptions *options, const char *key, const char *value,
                     GError **error);
/* The value as text, which sim_options_set takes. Caller frees. */
char *sim_options_get(const SimOptions *options, const char *key);

/* "all_to_all:pairwise+all_reduce:ring": algorithm[traffic] of those that are named,
 * ALGORITHM_AUTO of the others. KILTER_ERROR_INPUT. */
bool sim_algorithms_parse(const char *text, Algorithm algorithm[TRAFFICS],
                          GError **error);

#endif
