/* Options of the event-driven fidelities: part of sim's public interface, included by sim/sim.h. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "data/cluster/runtime.h"
#include "data/cluster/tuning.h"
#include "data/strategy/strategy.h"

/* clang-format off */
#define SIM_OVERLAP_WORDS(X) \
    X(SIM_OVERLAP_OFF, "off") X(SIM_OVERLAP_ON, "on") \
    X(SIM_OVERLAP_FORWARD, "forward")
OPTION_WORDS(SIM_OVERLAP_WORDS)
#define SIM_ORDER_WORDS(X) X(SIM_ORDER_PROGRAM, "program") X(SIM_ORDER_READY, "ready")
OPTION_WORDS(SIM_ORDER_WORDS)
#define SIM_TRANSFERS_WORDS(X) \
    X(SIM_TRANSFERS_QUEUED, "queued") X(SIM_TRANSFERS_FREE, "free")
OPTION_WORDS(SIM_TRANSFERS_WORDS)
#define SIM_NETWORK_WORDS(X) X(SIM_CROSSBAR, "crossbar") X(SIM_TOPOLOGY, "topology")
OPTION_WORDS(SIM_NETWORK_WORDS)
#define SIM_HOST_WORDS(X) X(SIM_HOST_AHEAD, "ahead") X(SIM_HOST_WAITS, "waits")
OPTION_WORDS(SIM_HOST_WORDS)
#define SIM_COSTS_WORDS(X) X(SIM_COSTS_SHARES, "shares") X(SIM_COSTS_KERNELS, "kernels")
OPTION_WORDS(SIM_COSTS_WORDS)
#define SIM_DISPATCHER_WORDS(X)                                                     \
    X(SIM_DISPATCHER_RUNTIME, "runtime") X(SIM_DISPATCHER_COPIES, "alltoall")       \
    X(SIM_DISPATCHER_ONCE, "once") X(SIM_DISPATCHER_OVERLAPPED, "overlapped")       \
    X(SIM_DISPATCHER_BESIDE, "alltoall-overlapped")
OPTION_WORDS(SIM_DISPATCHER_WORDS)
#define SIM_DISTRIBUTION_WORDS(X) \
    X(SIM_NORMAL, "normal") X(SIM_LOGNORMAL, "lognormal") X(SIM_GAMMA, "gamma")
OPTION_WORDS(SIM_DISTRIBUTION_WORDS)
#define SIM_TASK_QUEUE_WORDS(X) X(SIM_TASK_FIFO, "fifo") X(SIM_TASK_FREE, "free")
OPTION_WORDS(SIM_TASK_QUEUE_WORDS)
#define SIM_TASK_MEMORY_WORDS(X) \
    X(SIM_TASK_FREE_FIRST, "free-first") X(SIM_TASK_MAKE_FIRST, "make-first")
OPTION_WORDS(SIM_TASK_MEMORY_WORDS)

/*    type    member              key             default */
#define SIM_OPTION_TABLE(X)                                                       \
    X(CHOICE(SIM_OVERLAP_WORDS), overlap, "overlap", "on")                        \
    X(CHOICE(SIM_ORDER_WORDS), order, "order", "program")                         \
    X(CHOICE(SIM_TRANSFERS_WORDS), transfers, "transfers", "queued")              \
    X(COUNT(1, 8), streams, "streams", "1")                                       \
    X(COUNT(0, 65535), prefetch, "prefetch", "1")                                 \
    X(BYTES, first_bucket, "first_bucket", "1MiB")                                \
    X(CHOICE(SIM_NETWORK_WORDS), network, "network", "topology")                  \
    X(PARSED(read_algorithms), algorithm, "algorithm", "")                        \
    X(CHOICE(SIM_HOST_WORDS), host, "host", "ahead")                              \
    X(BUNDLED(RUNTIME_FILE, read_runtime), runtime, "runtime", "")                \
    X(CHOICE(SIM_COSTS_WORDS), costs, "costs", "kernels")                         \
    X(CHOICE(SIM_DISPATCHER_WORDS), dispatcher, "dispatcher", "runtime")          \
    X(DATA(layer_profile_option), layer_times, "layer_times", "")                 \
    X(NUMBER(0, 10), jitter, "jitter", "0")                                       \
    X(CHOICE(SIM_DISTRIBUTION_WORDS), distribution, "distribution", "lognormal")  \
    X(TEXT, straggler, "straggler", "")                                           \
    X(TEXT, slow_link, "slow_link", "")                                           \
    X(TEXT, fail, "fail", "")                                                     \
    X(TIME, restart, "restart", "0s")                                             \
    X(CHOICE(SIM_TASK_QUEUE_WORDS), task_links, "task_links", "fifo")             \
    X(CHOICE(SIM_TASK_QUEUE_WORDS), task_collectives, "task_collectives", "fifo") \
    X(CHOICE(SIM_TASK_MEMORY_WORDS), task_memory, "task_memory", "free-first")
/* clang-format on */

typedef struct {
    SIM_OPTION_TABLE(OPTION_MEMBER)
    uint64_t seed;
    bool time_only; /* the report leaves memory out: it is 0 and fits */
    /* so does that of a plan that takes at least this long; 0: of none */
    double enough_s;
    /* stage: time and memory of a program of which the plan has the part; NULL: it has all */
    const struct ProgramBlocks *blocks;
    bool separate; /* devices that do the same are simulated one by one */
} SimOptions;

extern const OptionTable sim_option_table;

void sim_options_init(SimOptions *options); /* the defaults, seed 1 */

/* Sets the option with a key of the table; KILTER_ERROR_INPUT says what was expected. */
bool sim_options_set(SimOptions *options, const char *key, const char *value,
                     GError **error);

/* Whether options that only some models or devices give an effect have one: dispatcher, where ops
 * are priced by kernels and tokens go to experts. KILTER_ERROR_INPUT says what was expected. */
bool sim_options_check(const SimOptions *options, const Graph *graph,
                       const ClusterView *view, GError **error);

/* The view with ops priced as the options say: by shares, or by the stack of the runtime (NULL: the
 * view's). NULL: it is so already. It borrows the cluster. */
ClusterView *sim_options_view(const SimOptions *options, const Runtime *runtime,
                              const ClusterView *view);

/* Reads text such as "all_to_all:pairwise+all_reduce:ring" into algorithm[traffic]; kinds that are
 * not named get ALGORITHM_AUTO. KILTER_ERROR_INPUT names an unknown kind or algorithm. */
bool sim_algorithms_parse(const char *text, Algorithm algorithm[TRAFFICS],
                          GError **error);
