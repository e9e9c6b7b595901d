/* Costs of devices and links that iterations are fitted with.
 *
 * An op takes its launch on the host, and on the device overhead + FLOPs / rate + bytes / bandwidth;
 * attention and the loss, where they are not fused, have bandwidths of their own, since they go
 * through scores and logits several times. A message takes latency + bytes / bandwidth inside of
 * machines, and between them. Each cost is that of a device type or of a network, and is known as the
 * logarithm of a factor on where it starts.
 *
 * Starts. Rates are 0.8 of a data sheet's peak, memory 0.4 of its bandwidth, since biases, masks and
 * conversions are kernels of their own, which go through operands again, and 0.1 where not fused;
 * links are what the cluster's file says. A launch on the host is 100 us and an op's overhead on the
 * device 15 us. These are guesses about software that hold for every data set; how far each may be
 * off is its width. */
#ifndef KILTER_EXPERIMENTS_CALIBRATION_COSTS_H
#define KILTER_EXPERIMENTS_CALIBRATION_COSTS_H

#include "data/data.h"

/* id, name, unit, within about which factor exp(width) of its start it is expected: hardware is near
 * its data sheet, what software does is anybody's guess. */
#define COST_TABLE(X)                                           \
    X(LAUNCH, "launch of an op", "s", 1.0)                      \
    X(OVERHEAD, "overhead of an op", "s", 1.0)                  \
    X(RATE_F32, "computation in fp32", "FLOP/s", 0.3)           \
    X(RATE_HALF, "computation in fp16 and bf16", "FLOP/s", 0.3) \
    X(RATE_F8, "computation in fp8", "FLOP/s", 0.3)             \
    X(BANDWIDTH, "memory", "B/s", 0.7)                          \
    X(ATTENTION, "memory, for attention", "B/s", 0.7)           \
    X(LOSS, "memory, for the loss", "B/s", 0.7)                 \
    X(INNER_LATENCY, "latency inside machines", "s", 0.3)       \
    X(INNER_BANDWIDTH, "links inside machines", "B/s", 0.3)     \
    X(OUTER_LATENCY, "latency between machines", "s", 0.3)      \
    X(OUTER_BANDWIDTH, "links between machines", "B/s", 0.3)

typedef enum {
#define X(id, name, unit, width) COST_##id,
    COST_TABLE(X)
#undef X
        COSTS
} Cost;

typedef struct {
    const char *name, *unit;
    double width;
} CostInfo;

const CostInfo *cost_info(Cost cost);
/* Whether the cost belongs to a network rather than to a device type. */
bool cost_is_of_network(Cost cost);

/* The costs that a device type's ops start from if the cluster's file gives none. */
typedef struct {
    double bandwidth, attention, loss; /* of memory, bytes/s */
    double overhead_s, launch_s;
    uint32_t processors; /* that work on tiles of an output at a time; 0: no waves */
} TypeStart;

/* Starts by the data sheet of the type's name, else by the sheet whose sustained rate is nearest,
 * scaled by their rates. Sets the type's rates, too, where a sheet has peaks. */
TypeStart type_start(const Sheets *sheets, DeviceType *type);

/* Sets all costs of `to`, a copy of `from`, to those of `from` times exp(log[type * COSTS + cost]); costs
 * of the network are those of type 0. start: [n_types]. log NULL: as they start. */
void costs_apply(const Cluster *from, const TypeStart *start, const double *log,
                 Cluster *to);

/* The cost's value, for reports. */
double cost_value(const Cluster *from, const TypeStart *start, uint32_t type, Cost cost,
                  double log);

#endif
