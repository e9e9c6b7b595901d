/* The pending ends of tasks, earliest first. Private to sim/tasks/task_file_run.c.
 *
 * Equal ends come in the order in which a binary heap keyed by time yields them, which decides
 * which task is served first. TAG's simulator has no other rule, so this heap moves its entries as
 * its language's library does. An entry rises past later entries only. When the first entry is
 * taken, the hole sinks to the bottom along the earlier child (the second of equal ones), and the
 * last entry rises from there. */
#pragma once

#include <stdint.h>

typedef struct {
    uint64_t us;
    uint32_t task;
} FileEnd;

typedef struct {
    FileEnd *end;
    uint32_t n;
} FileEnds; /* `end` has room for all tasks at once */

static inline void file_ends_rise(FileEnds *ends, uint32_t at)
{
    const FileEnd entry = ends->end[at];
    for (uint32_t parent; at > 0 && entry.us < ends->end[parent = (at - 1) / 2].us;
         at = parent)
        ends->end[at] = ends->end[parent];
    ends->end[at] = entry;
}

static inline void file_ends_push(FileEnds *ends, uint64_t us, uint32_t task)
{
    ends->end[ends->n] = (FileEnd){us, task};
    file_ends_rise(ends, ends->n++);
}

/* Takes the earliest end; there must be one. */
static inline FileEnd file_ends_pop(FileEnds *ends)
{
    const FileEnd first = ends->end[0], last = ends->end[--ends->n];
    uint32_t at = 0;
    for (uint32_t child; (child = 2 * at + 1) < ends->n; at = child) {
        if (child + 1 < ends->n && ends->end[child].us >= ends->end[child + 1].us)
            child++;
        ends->end[at] = ends->end[child];
    }
    if (ends->n > 0) {
        ends->end[at] = last;
        file_ends_rise(ends, at);
    }
    return first;
}
