/* A cluster file as texts, before its numbers are checked (data/cluster/read.c). Private to
 * data. */
#pragma once

#include <cyaml/cyaml.h>

#include "data/cluster/chip_yaml.h"
#include "data/cluster/curve_yaml.h"
#include "data/cluster/fitted_yaml.h"
#include "data/cluster/op_cost_yaml.h"
#include "data/cluster/tuning_yaml.h"

/* A link as latency and bandwidth, or as the name of a link of data/links.yaml and their number; a
 * plain text is the name. */
typedef struct {
    char *link, *count;
    LINK_MEMBERS(MEMBER_TEXT)
} LinkText;

/* Most bytes of a cluster's name: the text of a network's builder may be that long. */
enum { CLUSTER_NAME_MAX = 4000 };

typedef struct {
    PORT_MEMBERS(MEMBER_TEXT)
} PortText;

typedef struct {
    char *of[NUMBERS];
} RatesText;

typedef struct {
    char *name, *half_rate, *source;
    TYPE_MEMBERS(MEMBER_TEXT)
    RatesText *rates, *peaks;
    ChipText *chip;
    KernelsText *kernels;
    OpCostText *op;
    uint32_t op_count;
} TypeText;

typedef struct {
    char *up_to;
    LinkText line;
} PieceText;

typedef struct {
    LinkText line;
    PieceText *piece;
    uint32_t piece_count;
    PIECES_MEMBERS(MEMBER_TEXT)
} CollectiveText;

typedef struct {
    char *type, *device, *gpus;
} PartText;

typedef struct {
    PartText *part; /* `devices`: unlike GPUs */
    uint32_t part_count;
    char *name, *count, *type, *device, *nic, *nics, *peers, *domain, *region, *source;
    MACHINE_MEMBERS(MEMBER_TEXT)
    LinkText *inner, *peer, *across;
    PortText *port;
} GroupText;

typedef struct {
    CollectiveText *kind[COLLECTIVES_PRICED]; /* all of them, or none */
    LinkText *send;
    char *source;
} CollectivesText;

typedef struct {
    char *from, *to;
    LinkText line;
} CableText;

typedef struct {
    char *from, *to, *source;
    LinkText line;
    REGION_MEMBERS(MEMBER_TEXT)
} RegionText;

typedef struct {
    char *builder, *source;
    char **node;
    uint32_t node_count;
    CableText *cable;
    uint32_t cable_count;
} TopologyText;

typedef struct {
    char *name, *description;
    TypeText *type;
    uint32_t type_count;
    GroupText *group;
    uint32_t group_count;
    CollectivesText *collectives;
    CurveText *curve;
    uint32_t curve_count;
    RegionText *region;
    uint32_t region_count;
    TopologyText *topology;
    TuningText *tuning;
    FittedText *fit;
} ClusterText;

extern const cyaml_schema_value_t CLUSTER_SCHEMA; /* schema of a pointer to ClusterText */

/* The numbers of a link, a device type, what of a collective was measured, and a machine. */
enum {
    LINK_NUMBERS = 2,
    TYPE_NUMBERS = 9,
    PIECES_NUMBERS = 2,
    MACHINE_NUMBERS = 9,
    PORT_NUMBERS = 5,
    REGION_NUMBERS = 1
};
extern const Member LINK_MEMBER[LINK_NUMBERS], TYPE_MEMBER[TYPE_NUMBERS],
    PIECES_MEMBER[PIECES_NUMBERS], MACHINE_MEMBER[MACHINE_NUMBERS],
    REGION_MEMBER[REGION_NUMBERS], PORT_MEMBER[PORT_NUMBERS];
