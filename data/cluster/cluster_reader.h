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
    GError *failure;   /* of what is read at present, see reader_note */
    GString *failures; /* all messages about what is wrong, separated by "; " */
    Sheets *sheets;    /* NULL until a file names a device or a link */
} ClusterReader;

/* Adds reader->failure to the messages, if there is one; returns `good`. */
bool reader_note(ClusterReader *reader, bool good);

/* Reads latency and bandwidth, both of which are required. KILTER_ERROR_INPUT. */
bool reader_link(const ClusterReader *reader, const char *key, const LinkText *text,
                 LinkCost *link, GError **error);
/* Reads the numbers of a section; collects failures. */
bool reader_members(ClusterReader *reader, const char *key, const Member *member,
                    uint32_t n, const void *text, void *value);

/* Reads the listed device types; collects failures. */
bool reader_types(ClusterReader *reader);
/* Reads the machines, and adds device types that the file does not list; collects failures. */
bool reader_machines(ClusterReader *reader);
