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

#define KIND(id, key)                                                      \
    CYAML_FIELD_MAPPING_PTR(key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, \
                            CollectivesText, kind[COLLECTIVE_##id], COLLECTIVE)

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
static const cyaml_schema_value_t PIECE_ENTRY = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, PieceText, PIECE)};

static const cyaml_schema_field_t COLLECTIVE[] = {
    TEXT("latency", CollectiveText, line.latency, NAME_MAX_BYTES),
    TEXT("bandwidth", CollectiveText, line.bandwidth, NAME_MAX_BYTES),
    CYAML_FIELD_SEQUENCE("pieces", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                         CollectiveText, piece, &PIECE_ENTRY, 1, PIECES_MAX),
    PIECES_MEMBERS(MEMBER_FIELD) CYAML_FIELD_END,
};

#define NUMBERS_ENTRY(id, name) \
    OPTIONAL_TEXT(name, RatesText, of[NUMBERS_##id], NAME_MAX_BYTES),
static const cyaml_schema_field_t RATES[] = {
    NUMBERS_TABLE(NUMBERS_ENTRY) CYAML_FIELD_END,
};

static const cyaml_schema_field_t KERNELS[] = {
    KERNEL_FACTOR_MEMBERS(MEMBER_FIELD) CYAML_FIELD_END};
static const cyaml_schema_field_t CHIP[] = {
    CHIP_SHEET_MEMBERS(MEMBER_FIELD) CHIP_PEAK_MEMBERS(MEMBER_FIELD) CYAML_FIELD_END};

static const cyaml_schema_field_t TYPE[] = {
    TEXT("name", TypeText, name, NAME_MAX_BYTES),
    TYPE_MEMBERS(MEMBER_FIELD)
        OPTIONAL_TEXT("half_rate", TypeText, half_rate, NAME_MAX_BYTES),
    CYAML_FIELD_MAPPING_PTR("rates", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, TypeText,
                            rates, RATES),
    CYAML_FIELD_MAPPING_PTR("peaks", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, TypeText,
                            peaks, RATES),
    CYAML_FIELD_MAPPING_PTR("chip", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, TypeText,
                            chip, CHIP),
    CYAML_FIELD_MAPPING_PTR("kernels", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, TypeText,
                            kernels, KERNELS),
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
static const cyaml_schema_value_t PART_ENTRY = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, PartText, PART)};

static const cyaml_schema_field_t PORT[] = {PORT_MEMBERS(MEMBER_FIELD) CYAML_FIELD_END};

/* One link of a kind: without a count. */
static const cyaml_schema_field_t ONE_LINK[] = {
    OPTIONAL_TEXT("link", LinkText, link, NAME_MAX_BYTES),
    OPTIONAL_TEXT("latency", LinkText, latency, NAME_MAX_BYTES),
    OPTIONAL_TEXT("bandwidth", LinkText, bandwidth, NAME_MAX_BYTES),
    CYAML_FIELD_END,
};

#define LINK_OF(key, schema)                                                           \
    CYAML_FIELD_MAPPING_PTR(#key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, GroupText, \
                            key, schema)

static const cyaml_schema_field_t GROUP[] = {
    OPTIONAL_TEXT("name", GroupText, name, NAME_MAX_BYTES),
    OPTIONAL_TEXT("count", GroupText, count, NAME_MAX_BYTES),
    OPTIONAL_TEXT("type", GroupText, type, NAME_MAX_BYTES),
    OPTIONAL_TEXT("device", GroupText, device, NAME_MAX_BYTES),
    CYAML_FIELD_SEQUENCE("devices", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, GroupText,
                         part, &PART_ENTRY, 1, PARTS_MAX),
    MACHINE_MEMBERS(MEMBER_FIELD) LINK_OF(inner, LINK),
    LINK_OF(peer, ONE_LINK),
    LINK_OF(across, ONE_LINK),
    CYAML_FIELD_MAPPING_PTR("port", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, GroupText,
                            port, PORT),
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
    CYAML_FIELD_MAPPING_PTR("send", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                            CollectivesText, send, LINK),
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
static const cyaml_schema_value_t REGION_ENTRY = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, RegionText, REGION)};

static const cyaml_schema_value_t NODE_ENTRY = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, NAME_MAX_BYTES)};
static const cyaml_schema_value_t CABLE_ENTRY = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, CableText, CABLE)};

static const cyaml_schema_field_t TOPOLOGY[] = {
    OPTIONAL_TEXT("builder", TopologyText, builder, TEXT_MAX_BYTES),
    CYAML_FIELD_SEQUENCE("nodes", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, TopologyText,
                         node, &NODE_ENTRY, 1, GPUS_MAX),
    CYAML_FIELD_SEQUENCE("links", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, TopologyText,
                         cable, &CABLE_ENTRY, 1, CABLES_MAX),
    OPTIONAL_TEXT("source", TopologyText, source, TEXT_MAX_BYTES),
    CYAML_FIELD_END,
};

static const cyaml_schema_value_t TYPE_ENTRY = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, TypeText, TYPE)};
static const cyaml_schema_value_t GROUP_ENTRY = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, GroupText, GROUP)};

static const cyaml_schema_field_t CLUSTER[] = {
    OPTIONAL_TEXT("name", ClusterText, name, CLUSTER_NAME_MAX),
    OPTIONAL_TEXT("description", ClusterText, description, TEXT_MAX_BYTES),
    CYAML_FIELD_SEQUENCE("device_types", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                         ClusterText, type, &TYPE_ENTRY, 1, TYPES_MAX),
    CYAML_FIELD_SEQUENCE("machines", CYAML_FLAG_POINTER, ClusterText, group, &GROUP_ENTRY,
                         1, GROUPS_MAX),
    CYAML_FIELD_MAPPING_PTR("collectives", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                            ClusterText, collectives, KINDS),
    CYAML_FIELD_SEQUENCE("curves", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, ClusterText,
                         curve, &CURVE_SCHEMA, 1, CURVES_MAX),
    CYAML_FIELD_SEQUENCE("regions", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, ClusterText,
                         region, &REGION_ENTRY, 1, REGIONS_MAX),
    CYAML_FIELD_MAPPING_PTR("topology", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                            ClusterText, topology, TOPOLOGY),
    CYAML_FIELD_MAPPING_PTR("tuning", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                            ClusterText, tuning, TUNING_SCHEMA),
    CYAML_FIELD_MAPPING_PTR("fit", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, ClusterText,
                            fit, FITTED_SCHEMA),
    CYAML_FIELD_END,
};

const cyaml_schema_value_t CLUSTER_SCHEMA = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, ClusterText, CLUSTER)};
