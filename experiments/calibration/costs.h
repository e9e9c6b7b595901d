/* Costs of devices and links: the unknowns that are fitted to measured iterations.
 *
 * An op takes its launch time on the host and, on the device, overhead + FLOPs / rate + bytes /
 * bandwidth; a transfer of a pipeline takes the hosts of its sender and of its receiver a hand-over
 * besides the launch. Attention and the loss, where they are not fused, have bandwidths of their
 * own, since they go through scores and logits several times. A message takes latency + bytes /
 * bandwidth, with costs of their own inside a machine and between machines. Each cost belongs to a
 * device type or to a network and is stored as the logarithm of a factor on its starting value.
 *
 * Starting values. A rate starts at 0.8 of the data sheet's peak. Memory bandwidth starts at 0.4 of
 * the sheet's, since biases, masks and conversions are kernels of their own that read operands
 * again, and at 0.1 where attention or the loss is not fused. Links start at the numbers of the
 * cluster's file, a launch on the host at 100 us, a hand-over at 500 us and an op's overhead on the
 * device at 15 us. These are guesses about software, the same for every data set; the width of each
 * says how far it may be off. Latencies are wide, since ranks also wait there for one another.
 *
 * Further mechanisms are absent unless trials ask for them (trial_fit.h). Where they are absent,
 * ops take the common bandwidth, and nothing is slowed. docs/calibration.md has a table of their
 * starts and widths, and of where these are from. */
#pragma once

#include "data/cluster/sheet.h"

/* id, name, unit, width, whether it is absent at first: the cost is expected within a factor
 * exp(width) of its starting value. Hardware is near its data sheet; the costs of software are far
 * less certain. */
#define COST_TABLE(X)                                                        \
    X(LAUNCH, "launch of an op", "s", 1.0, false)                            \
    X(HANDOVER, "hand-over in a pipeline", "s", 1.5, false)                  \
    X(OVERHEAD, "overhead of an op", "s", 1.0, false)                        \
    X(RATE_F32, "computation in fp32", "FLOP/s", 0.3, false)                 \
    X(RATE_HALF, "computation in fp16 and bf16", "FLOP/s", 0.3, false)       \
    X(RATE_F8, "computation in fp8 and fp4", "FLOP/s", 0.3, false)           \
    X(BANDWIDTH, "memory", "B/s", 0.7, false)                                \
    X(ATTENTION, "memory, for attention", "B/s", 0.7, false)                 \
    X(LOSS, "memory, for the loss", "B/s", 0.7, false)                       \
    X(INNER_LATENCY, "latency inside machines", "s", 1.5, false)             \
    X(INNER_BANDWIDTH, "links inside machines", "B/s", 0.3, false)           \
    X(OUTER_LATENCY, "latency between machines", "s", 1.5, false)            \
    X(OUTER_BANDWIDTH, "links between machines", "B/s", 0.3, false)          \
    X(PRODUCTS, "memory, for matrix products", "B/s", 0.7, true)             \
    X(FILL, "filling a tile of a product", "terms", 1.0, true)               \
    X(UPDATE, "memory, for the optimizer's step", "B/s", 0.7, true)          \
    X(CROWDING, "launch for each further GPU of a host", "", 1.0, true)      \
    X(SLOWDOWN, "computation beside communication, more", "", 1.0, true)     \
    X(INTERFERENCE, "communication beside computation, more", "", 1.0, true) \
    X(ROUTING, "tokens of the fullest expert, more", "", 1.0, true)

#define COST_ID(id, name, unit, width, absent) COST_##id,
typedef enum { COST_TABLE(COST_ID) COSTS } Cost;

typedef struct {
    const char *name, *unit;
    double width;
    bool absent; /* until trials ask for it */
} CostInfo;

const CostInfo *cost_info(Cost cost);
/* Whether the cost belongs to a network rather than to a device type. */
bool cost_is_of_network(Cost cost);

/* The costs that a device type's ops start from if the cluster's file gives none. */
typedef struct {
    double bandwidth, attention, loss; /* of memory, bytes/s */
    double overhead_s, launch_s, handover_s;
    uint32_t processors; /* tiles of an output that are computed at a time; 0: no waves */
    /* of costs that are absent at first: logarithms of factors on their starts */
    double shift[COSTS];
} TypeStart;

/* Starting values from the data sheet with the type's name or, failing that, from the sheet with
 * the nearest sustained rate, scaled by the ratio of the rates. Sets the type's rates, too, where a
 * sheet has peaks. */
TypeStart type_start(const Sheets *sheets, DeviceType *type);

/* Sets all costs of `to`, a copy of `from`, to those of `from` times exp(log[type * COSTS + cost]);
 * costs of the network are those of type 0. start: [n_types]. A logarithm of -INFINITY: the cost is
 * absent. log NULL: every cost keeps its starting value, or stays absent. */
void costs_apply(const Cluster *from, const TypeStart *start, const double *log,
                 Cluster *to);

/* Multiplies the starting values of all types and links of a cluster by exp(shift[cost]). start:
 * [n_types]. */
void costs_shift(const double *shift, Cluster *cluster, TypeStart *start);

/* The cost's value, for reports. */
double cost_value(const Cluster *from, const TypeStart *start, uint32_t type, Cost cost,
                  double log);
