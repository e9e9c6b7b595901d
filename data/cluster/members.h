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
    Quantity quantity; /* of the kinds with a unit */
    double low, high;
    bool needed;
    MemberBound bound;
    /* a value that is not written; NAN: all are. Infinite ones never are */
    double unsaid;
    size_t text, value; /* offsets of the char * and of the value */
} Member;

/* clang-format off */
/* The range of a number: kind, quantity, low, high. */
#define RANGE_QUANTITY(quantity, low, high) MEMBER_QUANTITY, QUANTITY_##quantity, low, high
#define RANGE_TIME                          RANGE_QUANTITY(TIME, 0, LONGEST_S)
#define RANGE_BANDWIDTH                     RANGE_QUANTITY(BANDWIDTH, SMALLEST, LARGEST)
#define RANGE_RATE                          RANGE_QUANTITY(RATE, SMALLEST, LARGEST)
#define RANGE_SIZE                          RANGE_QUANTITY(BYTES, SMALLEST, LARGEST)
#define RANGE_BYTES(low)                    MEMBER_BYTES, QUANTITY_BYTES, low, LARGEST
#define RANGE_COUNT(low, high)              MEMBER_COUNT, QUANTITY_BYTES, low, high
#define RANGE_NUMBER(low, high)             MEMBER_NUMBER, QUANTITY_BYTES, low, high
#define RANGE_FACTOR(high)                  MEMBER_FACTOR, QUANTITY_BYTES, 1, high

/* X(text's type, value's type, key, member of the value, range, needed, bound, unsaid) */
#define LINK_MEMBERS(X)                                                      \
    X(LinkText, LinkCost, latency, latency_s, TIME, true, ALONE, NAN)        \
    X(LinkText, LinkCost, bandwidth, bandwidth, BANDWIDTH, true, ALONE, NAN)

#define PORT_MEMBERS(X)                                                  \
    X(PortText, Port, bandwidth, bandwidth, BANDWIDTH, true, ALONE, NAN) \
    X(PortText, Port, gpu, gpu, BANDWIDTH, false, ALONE, 0)              \
    X(PortText, Port, nics, nics, COUNT(1, 1000), false, ALONE, 0)       \
    X(PortText, Port, base, base_s, TIME, false, ALONE, 0)               \
    X(PortText, Port, hop, hop_s, TIME, false, ALONE, 0)

#define TYPE_MEMBERS(X)                                                                           \
    X(TypeText, DeviceType, rate, rate, RATE, true, ALONE, NAN)                                   \
    X(TypeText, DeviceType, memory, memory_bytes, BYTES(SMALLEST), true, ALONE, NAN)              \
    X(TypeText, DeviceType, runtime, runtime_bytes, BYTES(0), false, NOT_ABOVE, 0)                \
    X(TypeText, DeviceType, power, power_w, QUANTITY(POWER, 0, LARGEST), false, ALONE, 0)         \
    X(TypeText, DeviceType, slowdown, slowdown, FACTOR(LARGEST_SLOWDOWN), false, ALONE, 1)        \
    X(TypeText, DeviceType, interference, interference, FACTOR(LARGEST_SLOWDOWN), false, ALONE, 1)\
    X(TypeText, DeviceType, crowding, crowding, NUMBER(0, LARGEST_SLOWDOWN), false, ALONE, 0)     \
    X(TypeText, DeviceType, launch, launch_s, TIME, false, ALONE, 0)                              \
    X(TypeText, DeviceType, handover, handover_s, TIME, false, ALONE, 0)

/* Of a data sheet's file, and of the section `chip` of a cluster's device type. */
#define CHIP_SHEET_MEMBERS(X)                                                                     \
    X(ChipText, Chip, sm, sm, COUNT(1, 10000), false, ALONE, 0)                                   \
    X(ChipText, Chip, gcn, gcn, COUNT(1, 10000), false, ALONE, 0)                                 \
    X(ChipText, Chip, processors, processors, COUNT(1, 10000), false, ALONE, 0)                   \
    X(ChipText, Chip, bandwidth, bandwidth, BANDWIDTH, false, ALONE, 0)                           \
    X(ChipText, Chip, bus, bus, COUNT(1, 1000000), false, ALONE, 0)                               \
    X(ChipText, Chip, clock, clock_hz, QUANTITY(FREQUENCY, LOWEST_HZ, HIGHEST_HZ), false, ALONE, 0)\
    X(ChipText, Chip, l2, l2_bytes, SIZE, false, ALONE, 0)                                        \
    X(ChipText, Chip, process, process_nm, NUMBER(0.1, 1000), false, ALONE, 0)                    \
    X(ChipText, Chip, memory_share, memory_share, NUMBER(0.01, 1), false, ALONE, 0)               \
    X(ChipText, Chip, sustained, sustained, RATE, false, ALONE, 0)                                \
    X(ChipText, Chip, issue, issue, NUMBER(0.01, 1), false, ALONE, 0)                             \
    X(ChipText, Chip, reach, reach, NUMBER(0.01, 1), false, ALONE, 0)

/* In the section only. */
#define CHIP_PEAK_MEMBERS(X) X(ChipText, Chip, tf32, tf32, RATE, false, ALONE, 0)

/* Of the section `kernels` of a device type: factors on the times of kernels. */
#define KERNEL_FACTOR_MEMBER(X, key) \
    X(KernelsText, KernelFactors, key, key, NUMBER(1e-12, 1e12), false, ALONE, 0)
#define KERNEL_FACTOR_MEMBERS(X)        \
    KERNEL_FACTOR_MEMBER(X, products)   \
    KERNEL_FACTOR_MEMBER(X, experts)    \
    KERNEL_FACTOR_MEMBER(X, attention)  \
    KERNEL_FACTOR_MEMBER(X, memory)     \
    KERNEL_FACTOR_MEMBER(X, loss)       \
    KERNEL_FACTOR_MEMBER(X, update)

#define OP_MEMBERS(X)                                                                        \
    X(OpCostText, OpCost, overhead, overhead_s, TIME, true, ALONE, NAN)                      \
    X(OpCostText, OpCost, rate, rate, RATE, false, ALONE, NAN)                               \
    X(OpCostText, OpCost, bandwidth, bandwidth, BANDWIDTH, false, ALONE, NAN)                \
    X(OpCostText, OpCost, smallest, smallest, QUANTITY(BYTES, 0, LARGEST), true, ALONE, NAN) \
    X(OpCostText, OpCost, largest, largest, SIZE, true, NOT_BELOW, NAN)                      \
    X(OpCostText, OpCost, launch, launch_s, TIME, false, ALONE, NAN)                         \
    X(OpCostText, OpCost, wave, wave, COUNT(0, WAVE_MAX), false, ALONE, 0)                   \
    X(OpCostText, OpCost, fill, fill, NUMBER(0, WAVE_MAX), false, ALONE, 0)

#define PIECES_MEMBERS(X)                                                                         \
    X(CollectiveText, CollectivePieces, smallest, smallest, QUANTITY(BYTES, 0, LARGEST), false, ALONE, NAN)\
    X(CollectiveText, CollectivePieces, largest, largest, SIZE, false, NOT_BELOW, NAN)

#define MACHINE_MEMBERS(X)                                                                        \
    X(GroupText, Machine, gpus, gpus, COUNT(1, GPUS_MAX), false, ALONE, NAN)                      \
    X(GroupText, Machine, stretch, stretch, FACTOR(CLUSTER_MAX_STRETCH), false, ALONE, 0)         \
    X(GroupText, Machine, sums, sums, FACTOR(LARGEST_SLOWDOWN), false, ALONE, 0)                  \
    X(GroupText, Machine, tree_sums, tree_sums, FACTOR(LARGEST_SLOWDOWN), false, ALONE, 0)        \
    X(GroupText, Machine, host_memory, host_memory_bytes, BYTES(1), false, ALONE, 0)              \
    X(GroupText, Machine, host_link, host_link, BANDWIDTH, false, ALONE, 0)                       \
    X(GroupText, Machine, host_bandwidth, host_bandwidth, BANDWIDTH, false, ALONE, 0)             \
    X(GroupText, Machine, price, price, QUANTITY(PRICE, 0, HIGHEST_PRICE), false, ALONE, 0)       \
    X(GroupText, Machine, preemptible, preemptible, QUANTITY(PRICE, 0, HIGHEST_PRICE), false, NOT_ABOVE, 0)

#define REGION_MEMBERS(X)                                                                    \
    X(RegionText, RegionLink, price, toll, QUANTITY(TOLL, 0, HIGHEST_TOLL), false, ALONE, 0)

#define CURVE_MEMBERS(X)                                                                 \
    X(CurveText, CollectiveCurve, ranks, ranks, COUNT(2, GPUS_MAX), true, ALONE, NAN)    \
    X(CurveText, CollectiveCurve, hosts, hosts, COUNT(1, GPUS_MAX), true, ALONE, NAN)    \
    X(CurveText, CollectiveCurve, step, step_s, TIME, false, ALONE, 0)                   \
    X(CurveText, CollectiveCurve, sums, sums, FACTOR(LARGEST_SLOWDOWN), false, ALONE, 0) \
    X(CurveText, CollectiveCurve, own, own, NUMBER(0, 1), false, ALONE, 0)

#define POINT_MEMBERS(X)                                                                          \
    X(CurvePointText, CurvePoint, bytes, bytes, SIZE, true, ALONE, NAN)                           \
    X(CurvePointText, CurvePoint, time, seconds, QUANTITY(TIME, SHORTEST_S, LONGEST_S), true, ALONE, NAN)

#define RULE_MEMBERS(X)                                                                           \
    X(TuningRuleText, TuningRule, most_ranks, most_ranks, COUNT(1, UINT32_MAX), false, ALONE, UINT32_MAX)\
    X(TuningRuleText, TuningRule, most_bytes, most_bytes, SIZE, false, ALONE, NAN)

#define TUNING_MEMBERS(X)                                                  \
    X(TuningText, Tuning, piece, piece_bytes, SIZE, false, ALONE, 0)       \
    X(TuningText, Tuning, least_piece, least_piece_bytes, SIZE, false, ALONE, 0)

/* clang-format on */
/* A row as the text's member, as a field of the schema, and as a Member. */
#define MEMBER_TEXT(T, V, key, ...) char *key;
#define MEMBER_FIELD(T, V, key, member, range, needed, ...)                              \
    CYAML_FIELD_STRING_PTR(#key,                                                         \
                           CYAML_FLAG_POINTER | ((needed) ? 0 : CYAML_FLAG_OPTIONAL), T, \
                           key, 1, NAME_MAX_BYTES),
#define MEMBER_ROW(T, V, key, member, range, needed, bound, unsaid) \
    {#key,                                                          \
     RANGE_##range,                                                 \
     needed,                                                        \
     MEMBER_##bound,                                                \
     unsaid,                                                        \
     offsetof(T, key),                                              \
     offsetof(V, member)},

/* A row of a number that has no text of its own. */
#define MEMBER_OF(name, V, member, range)                                     \
    {                                                                         \
        name, RANGE_##range, false, MEMBER_ALONE, NAN, 0, offsetof(V, member) \
    }

/* Texts in schemas. */
#define TEXT(key, type, member, max) \
    CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER, type, member, 1, max)
#define OPTIONAL_TEXT(key, type, member, max)                                           \
    CYAML_FIELD_STRING_PTR(key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, type, member, \
                           1, max)

/* Lists of sections, and sections, in schemas. */
#define LIST(key, type, member, T, fields, most) \
    CYAML_FIELD_SEQUENCE(key, CYAML_FLAG_POINTER, type, member, ENTRY(T, fields), 1, most)
#define OPTIONAL_LIST(key, type, member, T, fields, most)                             \
    CYAML_FIELD_SEQUENCE(key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, type, member, \
                         ENTRY(T, fields), 1, most)
#define ENTRY(T, fields) \
    (&(const cyaml_schema_value_t){CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, T, fields)})
#define OPTIONAL_SECTION(key, type, member, fields)                                      \
    CYAML_FIELD_MAPPING_PTR(key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, type, member, \
                            fields)

/* Reads the number of one row from a text. KILTER_ERROR_INPUT. */
bool member_parse(const Member *member, const char *text, void *value, GError **error);
/* The number of one row as a text that is read as the same. Caller frees. */
char *member_exact(const Member *member, const void *value);

/* Reads the numbers of all n rows, of the section `parent`; without a text a value stays as it is.
 * yaml_wrong gets each that is wrong. */
bool members_read(const Yaml *yaml, const char *parent, const Member *member, uint32_t n,
                  const void *text, void *value);
/* Whether all n numbers are what a file may say, but for those that it would leave out;
 * KILTER_ERROR_INPUT names `what` and the key. */
bool members_check(const Member *member, uint32_t n, const void *value, const char *what,
                   GError **error);
/* Sets the keys of all n rows whose values are to be said. */
void members_json(const Member *member, uint32_t n, const void *value, json_t *object);

/* The same of a table. */
#define MEMBERS_READ(yaml, parent, rows, text, value) \
    members_read(yaml, parent, rows, G_N_ELEMENTS(rows), text, value)
#define MEMBERS_CHECK(rows, value, what, error) \
    members_check(rows, G_N_ELEMENTS(rows), value, what, error)
#define MEMBERS_JSON(rows, value, object) \
    members_json(rows, G_N_ELEMENTS(rows), value, object)
