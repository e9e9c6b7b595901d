/* Nodes of a Slurm cluster, as `scontrol show node` (with or without -o) or a table of sinfo lists
 * them, or of Kubernetes, as kubectl does: names, and GPUs by their type where there is one. Links
 * are in neither, and come from data sheets. */
#pragma once

#include "data/formats/machines/machine_file.h"

/* GPUs of one type of a node. */
typedef struct {
    char *type; /* "" if the list of resources has none */
    uint32_t gpus;
} SlurmGpus;

typedef struct {
    char *name, *features; /* features: comma-separated, may be "" */
    GArray *gpus;          /* SlurmGpus, in their order; never empty */
    bool down;             /* down, drained or failed */
} SlurmNode;

typedef struct {
    char *file;
    GPtrArray *node;    /* SlurmNode, each name once */
    uint32_t n_without; /* nodes without GPUs, which are left out */
    uint32_t n_down;
} SlurmFile;

enum { SLURM_MOST_NODES = 10000, SLURM_FILE_BYTES = 64 << 20 };

/* KILTER_ERROR_INPUT names file and line, or the node, and what was expected. */
SlurmFile *slurm_parse(const char *file, const char *text, GError **error);
AUTOPTR(slurm_free, SlurmFile)

uint32_t slurm_gpus(const SlurmFile *slurm);
/* The data sheet of some GPUs of a node: by their type, else by the node's features; NULL: none. */
const DeviceSheet *slurm_sheet(const SlurmNode *node, const SlurmGpus *gpus,
                               const Sheets *sheets);

/* The cluster of all nodes with GPUs; several need import->nic. KILTER_ERROR_INPUT where a type of
 * GPUs or the network is not known. */
Cluster *slurm_cluster(const SlurmFile *slurm, const Sheets *sheets,
                       const MachineImport *import, GError **error);
