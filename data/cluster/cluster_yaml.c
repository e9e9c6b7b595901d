/* The schema of a cluster's file, and the rows of its numbers. */
#include "data/cluster/cluster_yaml.h"

enum {
    TEXT_MAX_BYTES = 4000,
    TYPES_MAX = 1000,
    GROUPS_MAX = 10000,
    CABLES_MAX = 100000,
    PIECES_MAX = 100,
    CURVES_MAX = 1000,
    PARTS_MAX = 1024,
    REGIONS_MAX = 1000,
};

const Member LINK_MEMBER[LINK_NUMBERS] = {LINK_MEMBERS(MEMBER_ROW)},
             TYPE_MEMBER[TYPE_NUMBERS] = {TYPE_MEMBERS(MEMBER_ROW)},
             CHIP_MEMBER[CHIP_NUMBERS] = {CHIP_SHEET_MEMBERS(MEMBER_ROW)
                                              CHIP_PEAK_MEMBERS(MEMBER_ROW)},
             KERNEL_FACTOR[KERNEL_CLASSES] = {KERNEL_FACTOR_MEMBERS(MEMBER_ROW)},
             PIECES_MEMBER[PIECES_NUMBERS] = {PIECES_MEMBERS(MEMBER_ROW)},
             MACHINE_MEMBER[MACHINE_NUMBERS] = {MACHINE_MEMBERS(MEMBER_ROW)},
             PORT_MEMBER[PORT_NUMBERS] = {PORT_MEMBERS(MEMBER_ROW)},
             REGION_MEMBER[REGION_NUMBERS] = {REGION_MEMBERS(MEMBER_ROW)};

#define KIND(id, key) \
    OPTIONAL_SECTION(key, CollectivesText, kind[COLLECTIVE_##id], COLLECTIVE)

static const cyaml_schema_field_t LINK[] = {
    OPTIONAL_TEXT("link", LinkText, link, NAME_MAX_BYTES),
    OPTIONAL_TEXT("count", LinkText, count, NAME_MAX_BYTES),
    OPTIONAL_TEXT("latency", LinkText, latency, NAME_MAX_BYTES),
    OPTIONAL_TEXT("bandwidth", LinkText, bandwidth, NAME_MAX_BYTES),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t PIECE[] = {
    TEXT("up_to", PieceText, up_to, NAME_MAX_BYTES),
    TEXT("latency", PieceText, line.latency, NAME_MAX_BYTES),
    TEXT("bandwidth", PieceText, line.bandwidth, NAME_MAX_BYTES),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t COLLECTIVE[] = {
    TEXT("latency", CollectiveText, line.latency, NAME_MAX_BYTES),
    TEXT("bandwidth", CollectiveText, line.bandwidth, NAME_MAX_BYTES),
    OPTIONAL_LIST("pieces", CollectiveText, piece, PieceText, PIECE, PIECES_MAX),
    PIECES_MEMBERS(MEMBER_FIELD) CYAML_FIELD_END,
};

#define NUMBERS_ENTRY(id, name) \
    OPTIONAL_TEXT(name, RatesText, of[NUMBERS_##id], NAME_MAX_BYTES),
static const cyaml_schema_field_t RATES[] = {
    NUMBERS_TABLE(NUMBERS_ENTRY) CYAML_FIELD_END,
};

static const cyaml_schema_field_t KERNELS[] = {KERNEL_FACTOR_MEMBERS(MEMBER_FIELD)
                                                   CYAML_FIELD_END};
static const cyaml_schema_field_t CHIP[] = {
    CHIP_SHEET_MEMBERS(MEMBER_FIELD) CHIP_PEAK_MEMBERS(MEMBER_FIELD)
        OPTIONAL_TEXT("fp4", ChipText, fp4, NAME_MAX_BYTES),
    CYAML_FIELD_END};

static const cyaml_schema_field_t TYPE[] = {
    TEXT("name", TypeText, name, NAME_MAX_BYTES),
    TYPE_MEMBERS(MEMBER_FIELD)
        OPTIONAL_TEXT("half_rate", TypeText, half_rate, NAME_MAX_BYTES),
    OPTIONAL_SECTION("rates", TypeText, rates, RATES),
    OPTIONAL_SECTION("peaks", TypeText, peaks, RATES),
    OPTIONAL_SECTION("chip", TypeText, chip, CHIP),
    OPTIONAL_SECTION("kernels", TypeText, kernels, KERNELS),
    CYAML_FIELD_SEQUENCE("ops", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, TypeText, op,
                         &OP_COST_SCHEMA, 1, OP_KINDS),
    OPTIONAL_TEXT("source", TypeText, source, TEXT_MAX_BYTES),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t PART[] = {
    OPTIONAL_TEXT("type", PartText, type, NAME_MAX_BYTES),
    OPTIONAL_TEXT("device", PartText, device, NAME_MAX_BYTES),
    TEXT("gpus", PartText, gpus, NAME_MAX_BYTES),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t PORT[] = {PORT_MEMBERS(MEMBER_FIELD) CYAML_FIELD_END};

/* One link of a kind: without a count. */
static const cyaml_schema_field_t ONE_LINK[] = {
    OPTIONAL_TEXT("link", LinkText, link, NAME_MAX_BYTES),
    OPTIONAL_TEXT("latency", LinkText, latency, NAME_MAX_BYTES),
    OPTIONAL_TEXT("bandwidth", LinkText, bandwidth, NAME_MAX_BYTES),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t GROUP[] = {
    OPTIONAL_TEXT("name", GroupText, name, NAME_MAX_BYTES),
    OPTIONAL_TEXT("count", GroupText, count, NAME_MAX_BYTES),
    OPTIONAL_TEXT("type", GroupText, type, NAME_MAX_BYTES),
    OPTIONAL_TEXT("device", GroupText, device, NAME_MAX_BYTES),
    OPTIONAL_LIST("devices", GroupText, part, PartText, PART, PARTS_MAX),
    MACHINE_MEMBERS(MEMBER_FIELD) OPTIONAL_SECTION("inner", GroupText, inner, LINK),
    OPTIONAL_SECTION("peer", GroupText, peer, ONE_LINK),
    OPTIONAL_SECTION("across", GroupText, across, ONE_LINK),
    OPTIONAL_SECTION("port", GroupText, port, PORT),
    OPTIONAL_TEXT("nic", GroupText, nic, NAME_MAX_BYTES),
    OPTIONAL_TEXT("nics", GroupText, nics, NAME_MAX_BYTES),
    OPTIONAL_TEXT("peers", GroupText, peers, TEXT_MAX_BYTES),
    OPTIONAL_TEXT("domain", GroupText, domain, NAME_MAX_BYTES),
    OPTIONAL_TEXT("region", GroupText, region, NAME_MAX_BYTES),
    OPTIONAL_TEXT("source", GroupText, source, TEXT_MAX_BYTES),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t KINDS[] = {
    KIND(ALL_REDUCE, "all_reduce"),
    KIND(ALL_GATHER, "all_gather"),
    KIND(GROUPED_ALL_GATHER, "grouped_all_gather"),
    KIND(REDUCE_SCATTER, "reduce_scatter"),
    KIND(GROUPED_REDUCE_SCATTER, "grouped_reduce_scatter"),
    KIND(ALL_TO_ALL, "all_to_all"),
    OPTIONAL_SECTION("send", CollectivesText, send, LINK),
    OPTIONAL_TEXT("source", CollectivesText, source, TEXT_MAX_BYTES),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t CABLE[] = {
    TEXT("from", CableText, from, NAME_MAX_BYTES),
    TEXT("to", CableText, to, NAME_MAX_BYTES),
    TEXT("latency", CableText, line.latency, NAME_MAX_BYTES),
    TEXT("bandwidth", CableText, line.bandwidth, NAME_MAX_BYTES),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t REGION[] = {
    TEXT("from", RegionText, from, NAME_MAX_BYTES),
    TEXT("to", RegionText, to, NAME_MAX_BYTES),
    TEXT("latency", RegionText, line.latency, NAME_MAX_BYTES),
    TEXT("bandwidth", RegionText, line.bandwidth, NAME_MAX_BYTES),
    REGION_MEMBERS(MEMBER_FIELD)
        OPTIONAL_TEXT("source", RegionText, source, TEXT_MAX_BYTES),
    CYAML_FIELD_END,
};

static const cyaml_schema_value_t NODE_ENTRY = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, NAME_MAX_BYTES)};

static const cyaml_schema_field_t TOPOLOGY[] = {
    OPTIONAL_TEXT("builder", TopologyText, builder, TEXT_MAX_BYTES),
    CYAML_FIELD_SEQUENCE("nodes", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, TopologyText,
                         node, &NODE_ENTRY, 1, GPUS_MAX),
    OPTIONAL_LIST("links", TopologyText, cable, CableText, CABLE, CABLES_MAX),
    OPTIONAL_TEXT("source", TopologyText, source, TEXT_MAX_BYTES),
    CYAML_FIELD_END,
};

static const cyaml_schema_field_t CLUSTER[] = {
    OPTIONAL_TEXT("name", ClusterText, name, CLUSTER_NAME_MAX),
    OPTIONAL_TEXT("description", ClusterText, description, TEXT_MAX_BYTES),
    OPTIONAL_LIST("device_types", ClusterText, type, TypeText, TYPE, TYPES_MAX),
    LIST("machines", ClusterText, group, GroupText, GROUP, GROUPS_MAX),
    OPTIONAL_SECTION("collectives", ClusterText, collectives, KINDS),
    CYAML_FIELD_SEQUENCE("curves", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, ClusterText,
                         curve, &CURVE_SCHEMA, 1, CURVES_MAX),
    OPTIONAL_LIST("regions", ClusterText, region, RegionText, REGION, REGIONS_MAX),
    OPTIONAL_SECTION("topology", ClusterText, topology, TOPOLOGY),
    OPTIONAL_SECTION("tuning", ClusterText, tuning, TUNING_SCHEMA),
    OPTIONAL_SECTION("fit", ClusterText, fit, FITTED_SCHEMA),
    CYAML_FIELD_END,
};

const cyaml_schema_value_t CLUSTER_SCHEMA = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, ClusterText, CLUSTER)};
