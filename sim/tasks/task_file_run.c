/* A task graph of a file, run: ready tasks are served first in, first out, and get their times at
 * once, so the only events are the ends of tasks. */
#include "data/base/free.h"
#include "sim/tasks/task_file_tasks.h"

/* --- ends --- */

/* The pending ends of tasks, earliest first. Equal ends come in the order in which a binary heap
 * keyed by time yields them, which decides which task is served first. TAG's simulator has no other
 * rule, so this heap moves its entries as its language's library does. An entry rises past later
 * entries only. When the first entry is taken, the hole sinks to the bottom along the earlier child
 * (the second of equal ones), and the last entry rises from there. */
typedef struct {
    uint64_t us;
    uint32_t task;
} FileEnd;

typedef struct {
    FileEnd *end;
    uint32_t n;
} FileEnds; /* `end` has room for all tasks at once */

static void file_ends_rise(FileEnds *ends, uint32_t at)
{
    const FileEnd entry = ends->end[at];
    for (uint32_t parent; at > 0 && entry.us < ends->end[parent = (at - 1) / 2].us;
         at = parent)
        ends->end[at] = ends->end[parent];
    ends->end[at] = entry;
}

static void file_ends_push(FileEnds *ends, uint64_t us, uint32_t task)
{
    ends->end[ends->n] = (FileEnd){us, task};
    file_ends_rise(ends, ends->n++);
}

/* Takes the earliest end; there must be one. */
static FileEnd file_ends_pop(FileEnds *ends)
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

/* --- tasks --- */

typedef struct {
    const SimTaskFile *tasks;
    const SimOptions *options;
    SimTaskFileReport *report;
    /* [task]: range in `next` of the tasks that wait for it */
    uint32_t *first_next, *next;
    uint32_t *waiting;                 /* [task]: number of tasks that it waits for */
    uint32_t *to_come;                 /* [instance]: parts that are not ready */
    uint64_t *device_free, *link_free; /* us */
    uint64_t queue_free;               /* end of the collective before */
    uint32_t *readers;                 /* [buffer]: readers that have not ended */
    bool *there;                       /* [buffer] */
    uint64_t *live;                    /* [device]: bytes */
    /* [instance]: the tasks of its parts that are ready, in the order of arrival */
    uint32_t *arrived;
    FileEnds ends;
    uint64_t now_us;
    uint32_t n_ended;
} Run;

static void serve_compute(Run *run, uint32_t id)
{
    const FileTask *task = &run->tasks->task[id];
    uint64_t *free_us = &run->device_free[task->device];
    *free_us = MAX(*free_us, run->now_us) + task->us;
    run->report->busy_us[task->device] += task->us;
    file_ends_push(&run->ends, *free_us, id);
}

static void serve_transfer(Run *run, uint32_t id)
{
    const FileTask *task = &run->tasks->task[id];
    uint64_t start = run->now_us;
    if (task->device != task->to && run->options->task_links == SIM_TASK_FIFO) {
        const FileList path =
            run->tasks->path[(size_t)task->device * run->tasks->n_devices + task->to];
        const uint32_t *link = file_list(run->tasks, path);
        for (uint32_t i = 0; i < path.n; i++)
            start = MAX(start, run->link_free[link[i]]);
        for (uint32_t i = 0; i < path.n; i++)
            run->link_free[link[i]] = start + task->us;
    }
    run->report->transfer_us += task->us;
    file_ends_push(&run->ends, start + task->us, id);
}

/* A part arrives; the last part starts the whole collective. */
static void serve_collective(Run *run, uint32_t id)
{
    const SimTaskFile *tasks = run->tasks;
    const FileTask *task = &tasks->task[id];
    const FileList parts = tasks->parts[task->instance];
    uint32_t *arrived = &run->arrived[parts.first - tasks->parts[0].first];
    arrived[parts.n - run->to_come[task->instance]] = id;
    if (--run->to_come[task->instance] > 0)
        return;
    uint64_t start = run->now_us;
    if (run->options->task_collectives == SIM_TASK_FIFO)
        start = MAX(start, run->queue_free);
    run->queue_free = MAX(run->queue_free, start + task->us);
    run->report->collective_us += task->us;
    for (uint32_t i = 0; i < parts.n; i++)
        file_ends_push(&run->ends, start + task->us, arrived[i]);
}

static void serve(Run *run, uint32_t id)
{
    switch (run->tasks->task[id].kind) {
    case FILE_COMPUTE:
        serve_compute(run, id);
        return;
    case FILE_TRANSFER:
        serve_transfer(run, id);
        return;
    case FILE_COLLECTIVE:
        serve_collective(run, id);
        return;
    }
}

/* --- memory --- */

static void free_inputs(Run *run, const FileTask *task)
{
    const uint32_t *in = file_list(run->tasks, task->in);
    for (uint32_t i = 0; i < task->in.n; i++) {
        const FileBuffer *buffer = &run->tasks->buffer[in[i]];
        if (--run->readers[in[i]] > 0 || !run->there[in[i]])
            continue;
        run->there[in[i]] = false;
        run->live[buffer->device] -= buffer->bytes;
    }
}

static void add_outputs(Run *run, const FileTask *task)
{
    const uint32_t *out = file_list(run->tasks, task->out);
    for (uint32_t i = 0; i < task->out.n; i++) {
        const FileBuffer *buffer = &run->tasks->buffer[out[i]];
        if (run->there[out[i]])
            continue;
        run->there[out[i]] = true;
        run->live[buffer->device] += buffer->bytes;
    }
    for (uint32_t i = 0; i < task->out.n; i++) {
        const uint32_t device = run->tasks->buffer[out[i]].device;
        uint64_t *peak = &run->report->peak_bytes[device];
        *peak = MAX(*peak, run->live[device]);
    }
}

static void on_end(Run *run, uint32_t id)
{
    const FileTask *task = &run->tasks->task[id];
    const bool free_first = run->options->task_memory == SIM_TASK_FREE_FIRST;
    run->n_ended++;
    run->report->time_us = run->now_us;
    if (free_first)
        free_inputs(run, task);
    add_outputs(run, task);
    if (!free_first)
        free_inputs(run, task);
    for (uint32_t i = run->first_next[id]; i < run->first_next[id + 1]; i++)
        if (--run->waiting[run->next[i]] == 0)
            serve(run, run->next[i]);
}

/* --- what waits for what --- */

/* Lists the readers of each task, and the parts of each instance, in order. */
static void link_tasks(Run *run)
{
    const SimTaskFile *tasks = run->tasks;
    items_at (const FileTask, task, id, tasks->task, tasks->n_tasks) {
        run->waiting[id] = task->deps.n;
        for (uint32_t d = 0; d < task->deps.n; d++)
            run->first_next[file_list(tasks, task->deps)[d] + 1]++;
    }
    for (uint32_t id = 0; id < tasks->n_tasks; id++)
        run->first_next[id + 1] += run->first_next[id];
    g_autofree uint32_t *at =
        g_memdup2(run->first_next, (tasks->n_tasks + 1) * sizeof *run->first_next);
    run->next = g_new(uint32_t, run->first_next[tasks->n_tasks] + 1);
    items_at (const FileTask, task, id, tasks->task, tasks->n_tasks) {
        for (uint32_t d = 0; d < task->deps.n; d++)
            run->next[at[file_list(tasks, task->deps)[d]]++] = id;
    }
}

static bool run_all(Run *run, GError **error)
{
    for (uint32_t id = 0; id < run->tasks->n_tasks; id++)
        if (run->tasks->task[id].deps.n == 0)
            serve(run, id);
    while (run->ends.n > 0) {
        const FileEnd end = file_ends_pop(&run->ends);
        run->now_us = end.us;
        on_end(run, end.task);
    }
    if (run->n_ended == run->tasks->n_tasks)
        return true;
    uint32_t id = 0;
    while (run->waiting[id] == 0)
        id++;
    return refuse(error, "task[%u]: it never becomes ready: tasks wait for one another",
                  id);
}

SimTaskFileReport *sim_task_file_run(const SimTaskFile *tasks, const SimOptions *options,
                                     GError **error)
{
    g_autoptr(SimTaskFileReport) report = g_new0(SimTaskFileReport, 1);
    report->n_tasks = tasks->n_tasks;
    report->n_devices = tasks->n_devices;
    report->peak_bytes = g_new0(uint64_t, tasks->n_devices + 1);
    report->busy_us = g_new0(uint64_t, tasks->n_devices + 1);
    g_autofree uint32_t *first_next = g_new0(uint32_t, tasks->n_tasks + 1);
    g_autofree uint32_t *waiting = g_new0(uint32_t, tasks->n_tasks + 1);
    g_autofree uint32_t *to_come = g_new0(uint32_t, tasks->n_instances + 1);
    g_autofree uint32_t *arrived = g_new0(uint32_t, tasks->n_tasks + 1);
    g_autofree FileEnd *end = g_new0(FileEnd, tasks->n_tasks + 1);
    g_autofree uint64_t *device_free = g_new0(uint64_t, tasks->n_devices + 1);
    g_autofree uint64_t *link_free = g_new0(uint64_t, tasks->n_links + 1);
    g_autofree uint32_t *readers = g_new0(uint32_t, tasks->n_buffers + 1);
    g_autofree bool *there = g_new0(bool, tasks->n_buffers + 1);
    g_autofree uint64_t *live = g_new0(uint64_t, tasks->n_devices + 1);
    for (uint32_t i = 0; i < tasks->n_instances; i++)
        to_come[i] = tasks->parts[i].n;
    for (uint32_t b = 0; b < tasks->n_buffers; b++)
        readers[b] = tasks->buffer[b].n_readers;
    Run run = {.tasks = tasks,
               .options = options,
               .report = report,
               .first_next = first_next,
               .waiting = waiting,
               .to_come = to_come,
               .device_free = device_free,
               .link_free = link_free,
               .readers = readers,
               .there = there,
               .live = live,
               .arrived = arrived,
               .ends = {.end = end}};
    link_tasks(&run);
    const bool good = run_all(&run, error);
    g_free(run.next);
    return good ? g_steal_pointer(&report) : NULL;
}

FREE_DEFINE(sim_task_file_report_free, SimTaskFileReport, report,
            free_each(report->peak_bytes, report->busy_us));
