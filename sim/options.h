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
    X(SIM_DISPATCHER_ONCE, "once") X(SIM_DISPATCHER_OVERLAPPED, "overlapped")
OPTION_WORDS(SIM_DISPATCHER_WORDS)
#define SIM_DISTRIBUTION_WORDS(X) \
    X(SIM_NORMAL, "normal") X(SIM_LOGNORMAL, "lognormal") X(SIM_GAMMA, "gamma")
OPTION_WORDS(SIM_DISTRIBUTION_WORDS)
#define SIM_TASK_QUEUE_WORDS(X) X(SIM_TASK_FIFO, "fifo") X(SIM_TASK_FREE, "free")
OPTION_WORDS(SIM_TASK_QUEUE_WORDS)
#define SIM_TASK_MEMORY_WORDS(X) \
    X(SIM_TASK_FREE_FIRST, "free-first") X(SIM_TASK_MAKE_FIRST, "make-first")
OPTION_WORDS(SIM_TASK_MEMORY_WORDS)

/*    type    member              key             default       help */
#define SIM_OPTION_TABLE(X)                                                             \
    X(CHOICE(SIM_OVERLAP_WORDS), overlap, "overlap", "on",                             \
      "whether communication overlaps computation; forward: until the backward "       \
      "begins (with order=program)")                                                   \
    X(CHOICE(SIM_ORDER_WORDS), order, "order", "program",                              \
      "the op that a device runs next: the program's, or the first one that is "       \
      "ready, as in TensorFlow")                                                       \
    X(CHOICE(SIM_TRANSFERS_WORDS), transfers, "transfers", "queued",                   \
      "whether transfers between two groups of a pipeline go one after the other")     \
    X(COUNT(1, 8), streams, "streams", "1",                                           \
      "communication streams per device; gradients have all but the first to "        \
      "themselves")                                                                   \
    X(COUNT(0, 65535), prefetch, "prefetch", "1",                                       \
      "further layers whose parameters are gathered before they are needed")          \
    X(BYTES, first_bucket, "first_bucket", "1MiB",                                    \
      "limit of the first gradient bucket; the planner's option bucket limits the "   \
      "others")                                                                       \
    X(CHOICE(SIM_NETWORK_WORDS), network, "network", "topology",                       \
      "collectives take the time of the cost model, or share links")                   \
    X(PARSED(read_algorithms), algorithm, "algorithm", "",                            \
      "algorithms of collectives, as KIND:NAME+...; the cluster's tuning table "      \
      "has the others")                                                               \
    X(CHOICE(SIM_HOST_WORDS), host, "host", "ahead",                                   \
      "whether a host launches ops while a message to it is on its way")               \
    X(BUNDLED(RUNTIME_FILE, read_runtime), runtime, "runtime", "",                    \
      "memory that a framework holds beside the plan: the name of a file in "         \
      "data/runtimes; default: the plan's, by its kind for GPUs of data sheets")                  \
    X(CHOICE(SIM_COSTS_WORDS), costs, "costs", "kernels",                              \
      "what ops take on devices of data sheets: FLOPs over a constant share of the "   \
      "peak (data/sustained.yaml), or the times of their kernels")                     \
    X(CHOICE(SIM_DISPATCHER_WORDS), dispatcher, "dispatcher", "runtime",               \
      "with costs=kernels, how tokens reach experts: as the runtime's file says; a "   \
      "copy to each expert; to each machine once; or so beside a microbatch in the "   \
      "other direction (DualPipe)")                                                    \
    X(DATA, layer_times, "layer_times", "",                                           \
      "file of measured layer times in place of FLOPs over rates (stage and flow)")   \
    X(NUMBER(0, 10), jitter, "jitter", "0",                                           \
      "standard deviation of an op's time, relative to the time")                     \
    X(CHOICE(SIM_DISTRIBUTION_WORDS), distribution, "distribution", "lognormal",       \
      "distribution of the jitter, with mean 1")                                       \
    X(TEXT, straggler, "straggler", "",                                               \
      "devices that compute slower, as DEVICE*FACTOR+...; the device `any` is "       \
      "drawn at random")                                                              \
    X(TEXT, slow_link, "slow_link", "",                                               \
      "links that are slower from a time on, as FROM>TO*FACTOR@TIME+...")             \
    X(TEXT, fail, "fail", "",                                                         \
      "devices and links that fail at a time, as NAME@TIME+...")                      \
    X(TIME, restart, "restart", "0s",                                                 \
      "time to replace what failed and start the iteration again; 0s: the "           \
      "iteration fails")                                                              \
    X(CHOICE(SIM_TASK_QUEUE_WORDS), task_links, "task_links", "fifo",                  \
      "in task-graph files, whether transfers wait for their links")                   \
    X(CHOICE(SIM_TASK_QUEUE_WORDS), task_collectives, "task_collectives", "fifo",      \
      "in task-graph files, whether collectives wait for one another in one queue")    \
    X(CHOICE(SIM_TASK_MEMORY_WORDS), task_memory, "task_memory", "free-first",         \
      "in task-graph files, what a task does first with buffers at its end")
/* clang-format on */

typedef struct {
    SIM_OPTION_TABLE(OPTION_MEMBER)
    uint64_t seed;
    bool time_only; /* the report leaves memory out: it is 0 and fits */
    /* so does that of a plan that takes at least this long; 0: of none */
    double enough_s;
    uint32_t further; /* stage: time alone with so many more repetitions of the middle */
    bool separate;    /* devices that do the same are simulated one by one */
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
