/* Options of the event-driven fidelities: part of sim's public interface, included by sim/sim.h. */
#ifndef KILTER_SIM_OPTIONS_H
#define KILTER_SIM_OPTIONS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "data/data.h"

/*    type    member              key             default       help */
#define SIM_OPTION_TABLE(X)                                                             \
    X(CHOICE, overlap, "overlap", "on",                                                 \
      "off|on|forward: whether communication overlaps computation; forward: until "   \
      "the backward begins (with order=program)")                                     \
    X(CHOICE, order, "order", "program",                                              \
      "program|ready: the op that a device runs next: the program's, or the first "   \
      "one that is ready, as in TensorFlow")                                          \
    X(CHOICE, transfers, "transfers", "queued",                                       \
      "queued|free: whether transfers between two groups of a pipeline go one after " \
      "the other")                                                                    \
    X(COUNT(1, 8), streams, "streams", "1",                                           \
      "communication streams per device; gradients have all but the first to "        \
      "themselves")                                                                   \
    X(COUNT(0, 65535), prefetch, "prefetch", "1",                                       \
      "further layers whose parameters are gathered before they are needed")          \
    X(BYTES, first_bucket, "first_bucket", "1MiB",                                    \
      "limit of the first gradient bucket; the planner's option bucket limits the "   \
      "others")                                                                       \
    X(CHOICE, network, "network", "topology",                                         \
      "crossbar|topology: collectives take the time of the cost model, or share "     \
      "links")                                                                        \
    X(PARSED(read_algorithms), algorithm, "algorithm", "",                            \
      "algorithms of collectives, as KIND:NAME+...; the cluster's tuning table "      \
      "has the others")                                                               \
    X(CHOICE, host, "host", "ahead",                                                  \
      "ahead|waits: whether a host launches ops while a message to it is on its "     \
      "way")                                                                          \
    X(BUNDLED(RUNTIME_FILE, read_runtime), runtime, "runtime", "",                    \
      "memory that a framework holds beside the plan: the name of a file in "         \
      "data/runtimes; default: the plan's, by its kind for GPUs of data sheets")                  \
    X(CHOICE, costs, "costs", "shares",                                                \
      "shares|kernels: what ops take on devices of data sheets: FLOPs over a constant " \
      "share of the peak (data/sustained.yaml), or the times of their kernels")         \
    X(DATA, layer_times, "layer_times", "",                                           \
      "file of measured layer times in place of FLOPs over rates (stage and flow)")   \
    X(NUMBER(0, 10), jitter, "jitter", "0",                                           \
      "standard deviation of an op's time, relative to the time")                     \
    X(CHOICE, distribution, "distribution", "lognormal",                              \
      "normal|lognormal|gamma: distribution of the jitter, with mean 1")              \
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
    X(CHOICE, task_links, "task_links", "fifo",                                       \
      "fifo|free: in task-graph files, whether transfers wait for their links")       \
    X(CHOICE, task_collectives, "task_collectives", "fifo",                           \
      "fifo|free: in task-graph files, whether collectives wait for one another "     \
      "in one queue")                                                                 \
    X(CHOICE, task_memory, "task_memory", "free-first",                               \
      "free-first|make-first: in task-graph files, what a task does first with "      \
      "buffers at its end")

typedef struct {
    SIM_OPTION_TABLE(OPTION_MEMBER)
    uint64_t seed;
    bool time_only; /* the report leaves memory out: it is 0 and fits */
    bool separate;  /* devices that do the same are simulated one by one */
} SimOptions;

enum { SIM_OVERLAP_OFF, SIM_OVERLAP_ON, SIM_OVERLAP_FORWARD };
enum { SIM_ORDER_PROGRAM, SIM_ORDER_READY };
enum { SIM_TRANSFERS_QUEUED, SIM_TRANSFERS_FREE };
enum { SIM_CROSSBAR, SIM_TOPOLOGY };
enum { SIM_HOST_AHEAD, SIM_HOST_WAITS };
enum { SIM_COSTS_SHARES, SIM_COSTS_KERNELS };
enum { SIM_TASK_FIFO, SIM_TASK_FREE };
enum { SIM_TASK_FREE_FIRST, SIM_TASK_MAKE_FIRST };
enum { SIM_NORMAL, SIM_LOGNORMAL, SIM_GAMMA };

extern const OptionTable sim_option_table;

void sim_options_init(SimOptions *options); /* the defaults, seed 1 */

/* Sets the option with a key of the table; KILTER_ERROR_INPUT says what was expected. */
bool sim_options_set(SimOptions *options, const char *key, const char *value,
                     GError **error);

/* The view with ops priced as the options say: by shares, or by the stack of the runtime (NULL: the
 * view's). NULL: it is so already. It borrows the cluster. */
ClusterView *sim_options_view(const SimOptions *options, const Runtime *runtime,
                              const ClusterView *view);

/* Reads text such as "all_to_all:pairwise+all_reduce:ring" into algorithm[traffic]; kinds that are
 * not named get ALGORITHM_AUTO. KILTER_ERROR_INPUT names an unknown kind or algorithm. */
bool sim_algorithms_parse(const char *text, Algorithm algorithm[TRAFFICS],
                          GError **error);

#endif
