/* Task graphs from files: computations, transfers and collectives with given times, as other
 * simulators store them, and the time of their iteration. Part of sim's public interface, included
 * by sim/sim.h.
 *
 * A file is one JSON object, in whole microseconds and bytes:
 *
 *     n_devices            devices 0 to n_devices - 1
 *     link_bytes_per_us    bandwidth of each link
 *     path                 links from device i to device j, at i * n_devices + j
 *     transfer_overhead_us of every transfer between two devices
 *     group                groups of collectives: {"devices": [...], "line_us_per_KiB_us": [a0, b0, a1, b1]}
 *     buffer               [bytes, device]
 *     task                 ["C", device, us, deps, in, out]                          computation
 *                          ["T", from, to, bytes, deps, in, out]                     transfer
 *                          ["R", device, instance, group, bytes, deps, in, out]  part of a collective
 *
 * deps are the tasks, by index, that must have ended; in and out are buffers. Other keys are passed
 * over.
 *
 * The rules are those of TAG's simulator (TPDS 2023, Sec. 4.3.2, and its artifact). A task is ready
 * when its deps have ended. Ready tasks are served first in, first out, and get their times at
 * once. Tasks that end at the same time come in the order in which a heap of times yields them
 * (sim/tasks/task_file_run.c):
 *
 *     C   starts when its device is free, and occupies it until its end
 *     T   takes floor(bytes / least bandwidth on its path) + overhead, nothing inside of a device;
 *         starts when all links of the path are free, and occupies them until its end
 *     R   an instance starts when its last part is ready and the collective before it, of any
 *         group, has ended; it takes max(floor(a0 s + b0), floor(a1 s + b1)), s = bytes in whole KiB
 *
 * When a task ends, its `in` buffers that no other task still has to read are freed first, and then
 * its `out` buffers that do not exist yet are added. All rules except C's are options. */
#pragma once

#include "sim/options.h"

typedef struct SimTaskFile SimTaskFile;

/* KILTER_ERROR_INPUT names the file, the key and what was expected. */
SimTaskFile *sim_task_file_read(const char *file, GError **error);
AUTOPTR(sim_task_file_free, SimTaskFile)

typedef struct {
    uint32_t n_tasks, n_devices;
    uint64_t time_us;                    /* when the last task ends */
    uint64_t *peak_bytes;                /* [device] */
    uint64_t *busy_us;                   /* [device]: time in which it computes */
    uint64_t collective_us, transfer_us; /* sums over instances, and over transfers */
} SimTaskFileReport;

/* Runs the tasks by the options `task_links`, `task_collectives` and `task_memory`.
 * KILTER_ERROR_INPUT names a task that waits, through others, for itself. */
SimTaskFileReport *sim_task_file_run(const SimTaskFile *tasks, const SimOptions *options,
                                     GError **error);
AUTOPTR(sim_task_file_report_free, SimTaskFileReport)
