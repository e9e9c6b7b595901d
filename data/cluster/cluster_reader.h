/* What the parts of the reader of cluster files share (private to data): data/cluster/read.c, read_types.c and
 * read_machines.c in the same folder. */
#ifndef KILTER_DATA_CLUSTER_CLUSTER_READER_H
#define KILTER_DATA_CLUSTER_CLUSTER_READER_H

#include "data/cluster/cluster.h"
#include "data/cluster/cluster_yaml.h"
#include "data/cluster/derive.h"
#include "data/cluster/sheet.h"

typedef struct {
    const Yaml *yaml;
    const ClusterText *text;
    Cluster *cluster;
    GString *failures; /* all that is wrong, "; " in between */
    Sheets *sheets;    /* NULL until a file names a device or a link */
    GArray *port;      /* Port of each machine; bandwidth 0 where no NIC is named */
} ClusterReader;

/* Takes what was wrong, if something was; returns `good`. */
bool reader_note(ClusterReader *reader, bool good, GError **failure);

/* Numbers, both of which are needed. KILTER_ERROR_INPUT. */
bool reader_link(const ClusterReader *reader, const char *key, const LinkText *text,
                 LinkCost *link, GError **error);
/* The numbers of a section; everything that is wrong is noted. */
bool reader_members(ClusterReader *reader, const char *key, const Member *member,
                    uint32_t n, const void *text, void *value);

/* Index of the type of that name among the first `n`; n if there is none. */
uint32_t reader_find_type(const Cluster *cluster, uint32_t n, const char *name);

/* Reads the listed types of devices; everything that is wrong is noted. */
bool reader_types(ClusterReader *reader);
/* Reads the machines, with the types of devices that they name and the file does not list; what is wrong is
 * noted. */
bool reader_machines(ClusterReader *reader);

#endif
