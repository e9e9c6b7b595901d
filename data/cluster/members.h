/* Members of a cluster's file that hold one number each. A row of a table says the key, where its
 * text and its value are, what the number may be, and what it means that the key is missing; the
 * schema, the reader and the writer all go by the rows. A further member is a further row. Private
 * to data. */
#pragma once

#include <cyaml/cyaml.h>
#include <jansson.h>
#include <math.h>

#include "data/base/yaml.h"
#include "data/cluster/cluster.h"

enum { NAME_MAX_BYTES = 100 };
enum { GPUS_MAX = 1 << 17 }; /* in the cluster */
enum { WAVE_MAX = 1000000000 };

/* No hardware is outside of these; inside them sums and quotients of costs stay finite. */
static const double SMALLEST = 1, LARGEST = 1e18, SHORTEST_S = 1e-12, LONGEST_S = 1000;
/* No measured interference is anywhere near; no machine costs as much an hour. */
static const double LARGEST_SLOWDOWN = 100, HIGHEST_PRICE = 1e6, HIGHEST_TOLL = 1e-6;
static const double LOWEST_HZ = 1e6, HIGHEST_HZ = 1e11;

typedef enum {
    MEMBER_QUANTITY, /* a double, with a unit */
    MEMBER_BYTES,    /* a uint64_t, with a unit */
    MEMBER_COUNT,    /* a uint32_t */
    MEMBER_FACTOR,   /* a double from 1 on */
    MEMBER_NUMBER    /* a double without a unit */
} MemberKind;

/* How far the value of the row before bounds a value. */
typedef enum { MEMBER_ALONE, MEMBER_NOT_BELOW, MEMBER_NOT_ABOVE } MemberBound;

typedef struct {
    const char *key;
    MemberKind kind;
    bool needed;
    MemberBound bound;
    Quantity quantity; /* of the kinds with a unit */
    double low, high;
    double unsaid;      /* a value that is not written; NAN: all are. Infinite ones never are */
    size_t text, value; /* offsets of the char * and of the value */
} Member;

/* X(text's type, value's type, key, member of the value, kind, needed, bound, quantity, low, high,
 * unsaid) */
#define LINK_MEMBERS(X)                                                                       \
    X(LinkText, LinkCost, latency, latency_s, QUANTITY, true, ALONE, TIME, 0, LONGEST_S, NAN) \
    X(LinkText, LinkCost, bandwidth, bandwidth, QUANTITY, true, ALONE, BANDWIDTH, SMALLEST,   \
      LARGEST, NAN)

#define PORT_MEMBERS(X)                                                                       \
    X(PortText, Port, bandwidth, bandwidth, QUANTITY, true, ALONE, BANDWIDTH, SMALLEST,       \
      LARGEST, NAN)                                                                           \
    X(PortText, Port, gpu, gpu, QUANTITY, false, ALONE, BANDWIDTH, SMALLEST, LARGEST, 0)      \
    X(PortText, Port, nics, nics, COUNT, false, ALONE, BYTES, 1, 1000, 0)                     \
    X(PortText, Port, base, base_s, QUANTITY, false, ALONE, TIME, 0, LONGEST_S, 0)            \
    X(PortText, Port, hop, hop_s, QUANTITY, false, ALONE, TIME, 0, LONGEST_S, 0)

#define TYPE_MEMBERS(X)                                                                      \
    X(TypeText, DeviceType, rate, rate, QUANTITY, true, ALONE, RATE, SMALLEST, LARGEST, NAN) \
    X(TypeText, DeviceType, memory, memory_bytes, BYTES, true, ALONE, BYTES, SMALLEST,       \
      LARGEST, NAN)                                                                          \
    X(TypeText, DeviceType, runtime, runtime_bytes, BYTES, false, NOT_ABOVE, BYTES, 0,       \
      LARGEST, 0)                                                                            \
    X(TypeText, DeviceType, power, power_w, QUANTITY, false, ALONE, POWER, 0, LARGEST, 0)    \
    X(TypeText, DeviceType, slowdown, slowdown, FACTOR, false, ALONE, BYTES, 1,              \
      LARGEST_SLOWDOWN, 1)                                                                   \
    X(TypeText, DeviceType, interference, interference, FACTOR, false, ALONE, BYTES, 1,      \
      LARGEST_SLOWDOWN, 1)                                                                   \
    X(TypeText, DeviceType, crowding, crowding, NUMBER, false, ALONE, BYTES, 0,              \
      LARGEST_SLOWDOWN, 0)                                                                   \
    X(TypeText, DeviceType, launch, launch_s, QUANTITY, false, ALONE, TIME, 0, LONGEST_S, 0) \
    X(TypeText, DeviceType, handover, handover_s, QUANTITY, false, ALONE, TIME, 0,           \
      LONGEST_S, 0)

/* Of a data sheet's file, and of the section `chip` of a cluster's device type. */
#define CHIP_SHEET_MEMBERS(X)                                                                \
    X(ChipText, Chip, sm, sm, COUNT, false, ALONE, BYTES, 1, 10000, 0)                       \
    X(ChipText, Chip, gcn, gcn, COUNT, false, ALONE, BYTES, 1, 10000, 0)                     \
    X(ChipText, Chip, processors, processors, COUNT, false, ALONE, BYTES, 1, 10000, 0)       \
    X(ChipText, Chip, bandwidth, bandwidth, QUANTITY, false, ALONE, BANDWIDTH, SMALLEST,     \
      LARGEST, 0)                                                                            \
    X(ChipText, Chip, bus, bus, COUNT, false, ALONE, BYTES, 1, 1000000, 0)                   \
    X(ChipText, Chip, clock, clock_hz, QUANTITY, false, ALONE, FREQUENCY, LOWEST_HZ,         \
      HIGHEST_HZ, 0)                                                                         \
    X(ChipText, Chip, l2, l2_bytes, QUANTITY, false, ALONE, BYTES, SMALLEST, LARGEST, 0)     \
    X(ChipText, Chip, process, process_nm, NUMBER, false, ALONE, BYTES, 0.1, 1000, 0)        \
    X(ChipText, Chip, memory_share, memory_share, NUMBER, false, ALONE, BYTES, 0.01, 1, 0)   \
    X(ChipText, Chip, sustained, sustained, QUANTITY, false, ALONE, RATE, SMALLEST, LARGEST, \
      0)                                                                                     \
    X(ChipText, Chip, issue, issue, NUMBER, false, ALONE, BYTES, 0.01, 1, 0)                 \
    X(ChipText, Chip, reach, reach, NUMBER, false, ALONE, BYTES, 0.01, 1, 0)

/* In the section only. */
#define CHIP_PEAK_MEMBERS(X)                                                          \
    X(ChipText, Chip, tf32, tf32, QUANTITY, false, ALONE, RATE, SMALLEST, LARGEST, 0) \
    X(ChipText, Chip, fp4, fp4, QUANTITY, false, ALONE, RATE, SMALLEST, LARGEST, 0)

/* Of the section `kernels` of a device type: factors on the times of kernels. */
#define KERNEL_FACTOR_MEMBER(X, key)                                                           \
    X(KernelsText, KernelFactors, key, key, NUMBER, false, ALONE, BYTES, 1e-12, 1e12, \
      0)
#define KERNEL_FACTOR_MEMBERS(X)        \
    KERNEL_FACTOR_MEMBER(X, products)   \
    KERNEL_FACTOR_MEMBER(X, experts)    \
    KERNEL_FACTOR_MEMBER(X, attention)  \
    KERNEL_FACTOR_MEMBER(X, memory)     \
    KERNEL_FACTOR_MEMBER(X, loss)       \
    KERNEL_FACTOR_MEMBER(X, update)

#define OP_MEMBERS(X)                                                                         \
    X(OpCostText, OpCost, overhead, overhead_s, QUANTITY, true, ALONE, TIME, 0, LONGEST_S,    \
      NAN)                                                                                    \
    X(OpCostText, OpCost, rate, rate, QUANTITY, false, ALONE, RATE, SMALLEST, LARGEST, NAN)   \
    X(OpCostText, OpCost, bandwidth, bandwidth, QUANTITY, false, ALONE, BANDWIDTH, SMALLEST,  \
      LARGEST, NAN)                                                                           \
    X(OpCostText, OpCost, smallest, smallest, QUANTITY, true, ALONE, BYTES, 0, LARGEST, NAN)  \
    X(OpCostText, OpCost, largest, largest, QUANTITY, true, NOT_BELOW, BYTES, SMALLEST,       \
      LARGEST, NAN)                                                                           \
    X(OpCostText, OpCost, launch, launch_s, QUANTITY, false, ALONE, TIME, 0, LONGEST_S, NAN)  \
    X(OpCostText, OpCost, wave, wave, COUNT, false, ALONE, BYTES, 0, WAVE_MAX, 0)             \
    X(OpCostText, OpCost, fill, fill, NUMBER, false, ALONE, BYTES, 0, WAVE_MAX, 0)

#define PIECES_MEMBERS(X)                                                                    \
    X(CollectiveText, CollectivePieces, smallest, smallest, QUANTITY, false, ALONE, BYTES, 0, \
      LARGEST, NAN)                                                                          \
    X(CollectiveText, CollectivePieces, largest, largest, QUANTITY, false, NOT_BELOW, BYTES, \
      SMALLEST, LARGEST, NAN)

#define MACHINE_MEMBERS(X)                                                                  \
    X(GroupText, Machine, gpus, gpus, COUNT, false, ALONE, BYTES, 1, GPUS_MAX, NAN)         \
    X(GroupText, Machine, stretch, stretch, FACTOR, false, ALONE, BYTES, 1,                 \
      CLUSTER_MAX_STRETCH, 0)                                                               \
    X(GroupText, Machine, sums, sums, FACTOR, false, ALONE, BYTES, 1, LARGEST_SLOWDOWN, 0)  \
    X(GroupText, Machine, tree_sums, tree_sums, FACTOR, false, ALONE, BYTES, 1,             \
      LARGEST_SLOWDOWN, 0)                                                                  \
    X(GroupText, Machine, host_memory, host_memory_bytes, BYTES, false, ALONE, BYTES, 1, LARGEST, 0) \
    X(GroupText, Machine, host_link, host_link, QUANTITY, false, ALONE, BANDWIDTH, SMALLEST,         \
      LARGEST, 0)                                                                                    \
    X(GroupText, Machine, host_bandwidth, host_bandwidth, QUANTITY, false, ALONE, BANDWIDTH,         \
      SMALLEST, LARGEST, 0)                                                                          \
    X(GroupText, Machine, price, price, QUANTITY, false, ALONE, PRICE, 0, HIGHEST_PRICE, 0) \
    X(GroupText, Machine, preemptible, preemptible, QUANTITY, false, NOT_ABOVE, PRICE, 0,   \
      HIGHEST_PRICE, 0)

#define REGION_MEMBERS(X) \
    X(RegionText, RegionLink, price, toll, QUANTITY, false, ALONE, TOLL, 0, HIGHEST_TOLL, 0)

#define CURVE_MEMBERS(X)                                                                      \
    X(CurveText, CollectiveCurve, ranks, ranks, COUNT, true, ALONE, BYTES, 2, GPUS_MAX, NAN)  \
    X(CurveText, CollectiveCurve, hosts, hosts, COUNT, true, ALONE, BYTES, 1, GPUS_MAX, NAN)  \
    X(CurveText, CollectiveCurve, step, step_s, QUANTITY, false, ALONE, TIME, 0, LONGEST_S, 0) \
    X(CurveText, CollectiveCurve, sums, sums, FACTOR, false, ALONE, BYTES, 1,                 \
      LARGEST_SLOWDOWN, 0)                                                                    \
    X(CurveText, CollectiveCurve, own, own, NUMBER, false, ALONE, BYTES, 0, 1, 0)

#define POINT_MEMBERS(X)                                                                     \
    X(CurvePointText, CurvePoint, bytes, bytes, QUANTITY, true, ALONE, BYTES, SMALLEST,      \
      LARGEST, NAN)                                                                          \
    X(CurvePointText, CurvePoint, time, seconds, QUANTITY, true, ALONE, TIME, SHORTEST_S,    \
      LONGEST_S, NAN)

#define RULE_MEMBERS(X)                                                                       \
    X(TuningRuleText, TuningRule, most_ranks, most_ranks, COUNT, false, ALONE, BYTES, 1,      \
      UINT32_MAX, UINT32_MAX)                                                                 \
    X(TuningRuleText, TuningRule, most_bytes, most_bytes, QUANTITY, false, ALONE, BYTES,      \
      SMALLEST, LARGEST, NAN)

/* A row as the text's member, as a field of the schema, and as a Member. */
#define MEMBER_TEXT(T, V, key, member, kind, needed, bound, quantity, low, high, unsaid) \
    char *key;
#define MEMBER_FIELD(T, V, key, member, kind, needed, bound, quantity, low, high, unsaid) \
    CYAML_FIELD_STRING_PTR(#key, CYAML_FLAG_POINTER | ((needed) ? 0 : CYAML_FLAG_OPTIONAL), \
                           T, key, 1, NAME_MAX_BYTES),
#define MEMBER_ROW(T, V, key, member, kind, needed, bound, quantity, low, high, unsaid)   \
    {#key,      MEMBER_##kind,         needed, MEMBER_##bound, QUANTITY_##quantity,       \
     low,       high,                  unsaid, offsetof(T, key), offsetof(V, member)},

/* Texts in schemas. */
#define TEXT(key, type, member, max) \
    CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER, type, member, 1, max)
#define OPTIONAL_TEXT(key, type, member, max)                                           \
    CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, type, member, \
                           1, max)

/* "parent.name"; the name alone at the top, where the parent is "". Caller frees. */
static inline char *yaml_key(const char *parent, const char *name)
{
    return *parent ? g_strconcat(parent, ".", name, NULL) : g_strdup(name);
}

/* Reads the number of one row, of the section `parent`; where there is no text the value stays as
 * it is. */
bool member_read(const Yaml *yaml, const char *parent, const Member *member,
                 const void *text, void *value, GError **error);
/* The same of all n rows up to the first that is wrong. KILTER_ERROR_INPUT. */
bool members_read(const Yaml *yaml, const char *parent, const Member *member, uint32_t n,
                  const void *text, void *value, GError **error);
/* Whether all n numbers are what a file may say, but for those that it would leave out;
 * KILTER_ERROR_INPUT names `what` and the key. */
bool members_check(const Member *member, uint32_t n, const void *value, const char *what,
                   GError **error);
/* Sets the keys of all n rows whose values are to be said. */
void members_json(const Member *member, uint32_t n, const void *value, json_t *object);
