/* The state of the reader of cluster files, shared by read.c, read_types.c and read_machines.c in
 * this folder (private to data). */
#pragma once

#include "data/cluster/cluster.h"
#include "data/cluster/cluster_yaml.h"
#include "data/cluster/sheet.h"

typedef struct {
    const Yaml *yaml;
    const ClusterText *text;
    Cluster *cluster;
    Sheets *sheets; /* NULL until a file names a device or a link */
} ClusterReader;

/* Reads the listed device types. */
bool reader_types(ClusterReader *reader);
/* Reads the machines, and adds device types that the file does not list. */
bool reader_machines(ClusterReader *reader);
