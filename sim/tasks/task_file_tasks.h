/* The contents of a task graph's file. Private to sim/tasks/task_file*.c. */
#pragma once

#include "sim/tasks/task_file.h"

typedef enum { FILE_COMPUTE, FILE_TRANSFER, FILE_COLLECTIVE } FileTaskKind;

/* A range of SimTaskFile.number. */
typedef struct {
    uint32_t first, n;
} FileList;

typedef struct {
    FileTaskKind kind;
    uint32_t device;   /* for a TRANSFER its source */
    uint32_t to;       /* TRANSFER */
    uint32_t instance; /* COLLECTIVE */
    uint64_t us;       /* duration; for a part of a collective that of the instance */
    FileList deps, in, out;
} FileTask;

typedef struct {
    uint64_t bytes;
    uint32_t device;
    uint32_t n_readers; /* tasks */
} FileBuffer;

struct SimTaskFile {
    uint32_t n_devices, n_links, n_buffers, n_tasks, n_instances;
    FileList *path; /* [from * n_devices + to]: links */
    FileBuffer *buffer;
    FileTask *task;
    FileList *parts; /* [instance]: tasks */
    GArray *number;  /* uint32_t */
};

static inline const uint32_t *file_list(const SimTaskFile *tasks, FileList list)
{
    return &((const uint32_t *)(const void *)tasks->number->data)[list.first];
}
