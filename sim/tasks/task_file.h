/* Task graphs from files: computations, transfers and collectives with given times, as other
 * simulators keep them, and what an iteration of one takes. Part of sim's public interface, included
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
 *                          ["R", device, instance, group, bytes, deps, in, out]      a part of a collective
 *
 * deps are the tasks, by index, that must have ended; in and out are buffers. Other keys are passed over.
 *
 * The rules are those of TAG's simulator (TPDS 2023, Sec. 4.3.2, and its artifact). A task is ready
 * when its deps have ended. What becomes ready is served first in, first out, and gets its times at
 * once; of tasks that end at the same time the one is first that a heap of times gives first
 * (sim/tasks/task_file_ends.h):
 *
 *     C   starts when its device is free, which then is at its end
 *     T   takes floor(bytes / least bandwidth on its path) + overhead, nothing inside of a device;
 *         starts when all links of the path are free, which then are at its end
 *     R   when its last part is ready, an instance starts when the collective before it, of whichever
 *         group, has ended; it takes max(floor(a0 s + b0), floor(a1 s + b1)), s = bytes in whole KiB
 *
 * When a task ends, first its `in` buffers are freed that no other task is still to read, then its
 * `out` buffers are added that are not there. Each rule but that of C is an option. */
#ifndef KILTER_SIM_TASKS_TASK_FILE_H
#define KILTER_SIM_TASKS_TASK_FILE_H

#include "sim/options.h"

typedef struct SimTaskFile SimTaskFile;

/* Whether the file is JSON with a member "task": a task graph, or something that was meant to be
 * one. False too for what cannot be read. */
bool sim_task_file_is(const char *file);

/* KILTER_ERROR_INPUT names the file, the key and what was expected. */
SimTaskFile *sim_task_file_read(const char *file, GError **error);
void sim_task_file_free(SimTaskFile *tasks);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimTaskFile, sim_task_file_free)

typedef struct {
    uint32_t n_tasks, n_devices;
    uint64_t time_us;                    /* when the last task ends */
    uint64_t *peak_bytes;                /* [device] */
    uint64_t *busy_us;                   /* [device]: it computes */
    uint64_t collective_us, transfer_us; /* sums over instances, and over transfers */
} SimTaskFileReport;

/* Runs the tasks by the options `task_links`, `task_collectives` and `task_memory`. KILTER_ERROR_INPUT
 * names a task that waits for itself. */
SimTaskFileReport *sim_task_file_run(const SimTaskFile *tasks, const SimOptions *options,
                                     GError **error);
void sim_task_file_report_free(SimTaskFileReport *report);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(SimTaskFileReport, sim_task_file_report_free)

#endif
