/* The reader of task graphs. Nothing in the file is trusted, and no list is longer than the file
 * justifies. */
#include "data/base/free.h"
#include "data/base/json.h"
#include "data/base/units.h"
#include "sim/tasks/task_file_tasks.h"

#include <jansson.h>
#include <math.h>

enum { MOST_DEVICES = 1024, KIB = 1024, LINE = 4 };

/* All times of a graph must add up to less than this, so that sums are exact doubles as well. */
static const uint64_t MOST_US = UINT64_C(1) << 52;
static const uint64_t MOST_BYTES = UINT64_C(1) << 40;

typedef struct {
    const char *file, *key;
    size_t at; /* index of an item of the key's value, or WHOLE */
    json_t *root;
    SimTaskFile *tasks;
    double *bandwidth; /* [link] */
    double (*line)[LINE];
    size_t n_groups;
    uint64_t overhead_us, sum_us;
    GHashTable *instance; /* (group, instance) -> number + 1 */
    GArray *instance_bytes;
    GError **error;
} Reader;

#define WHOLE SIZE_MAX

static bool expected(const Reader *r, const char *what, const json_t *value)
{
    g_autofree char *item =
        r->at == WHOLE ? g_strdup("") : g_strdup_printf("[%zu]", r->at);
    g_autofree char *shown = json_shown(value);
    return refuse(r->error, "%s: %s%s: expected %s, got %s", r->file, r->key, item, what,
                  shown);
}

static bool whole(const Reader *r, const json_t *value, uint64_t most, const char *what,
                  uint64_t *number)
{
    if (json_is_integer(value) && json_integer_value(value) >= 0 &&
        (uint64_t)json_integer_value(value) <= most) {
        *number = (uint64_t)json_integer_value(value);
        return true;
    }
    g_autofree char *range =
        g_strdup_printf("%s from 0 to %" G_GUINT64_FORMAT, what, most);
    return expected(r, range, value);
}

/* Reads a number below n: the index of an existing item. */
static bool id(const Reader *r, const json_t *value, size_t n, const char *what,
               uint32_t *number)
{
    uint64_t read = 0;
    g_autofree char *range = g_strdup_printf("%s below %zu", what, n);
    if (!json_is_integer(value) || json_integer_value(value) < 0 ||
        (read = (uint64_t)json_integer_value(value)) >= n)
        return expected(r, range, value);
    *number = (uint32_t)read;
    return true;
}

static bool list(const Reader *r, const json_t *value, size_t n, const char *what,
                 FileList *read)
{
    if (!json_is_array(value)) {
        g_autofree char *text = g_strdup_printf("an array of %ss", what);
        return expected(r, text, value);
    }
    *read =
        (FileList){.first = r->tasks->number->len, .n = (uint32_t)json_array_size(value)};
    for (size_t i = 0; i < json_array_size(value); i++) {
        uint32_t number;
        if (!id(r, json_array_get(value, i), n, what, &number))
            return false;
        g_array_append_val(r->tasks->number, number);
    }
    return true;
}

static bool array(Reader *r, const char *key, const json_t **value)
{
    r->key = key;
    r->at = WHOLE;
    *value = json_object_get(r->root, key);
    return (json_is_array(*value) && json_array_size(*value) < UINT32_MAX / 2) ||
           expected(r, "an array", *value);
}

static bool read_devices(Reader *r)
{
    uint64_t n = 0;
    r->key = "n_devices";
    r->at = WHOLE;
    if (!whole(r, json_object_get(r->root, r->key), MOST_DEVICES, "devices", &n))
        return false;
    r->tasks->n_devices = (uint32_t)n;
    r->key = "transfer_overhead_us";
    return whole(r, json_object_get(r->root, r->key), MOST_US, "microseconds",
                 &r->overhead_us);
}

static bool read_links(Reader *r)
{
    const json_t *value;
    if (!array(r, "link_bytes_per_us", &value))
        return false;
    r->tasks->n_links = (uint32_t)json_array_size(value);
    r->bandwidth = g_new0(double, r->tasks->n_links + 1);
    for (r->at = 0; r->at < r->tasks->n_links; r->at++) {
        const json_t *number = json_array_get(value, r->at);
        r->bandwidth[r->at] = json_number_value(number);
        if (!number_in(r->bandwidth[r->at], NUMBER_LEAST, 1 / NUMBER_LEAST))
            return expected(r, "more than 0 bytes/us", number);
    }
    return true;
}

static bool read_paths(Reader *r)
{
    const json_t *value;
    const size_t n = (size_t)r->tasks->n_devices * r->tasks->n_devices;
    if (!array(r, "path", &value))
        return false;
    if (json_array_size(value) != n) {
        g_autofree char *what = g_strdup_printf("%zu paths, one for each two devices", n);
        json_auto_t *got = json_integer((json_int_t)json_array_size(value));
        expected(r, what, got);
        return false;
    }
    r->tasks->path = g_new0(FileList, n + 1);
    for (r->at = 0; r->at < n; r->at++)
        if (!list(r, json_array_get(value, r->at), r->tasks->n_links, "link",
                  &r->tasks->path[r->at]))
            return false;
    return true;
}

static bool read_groups(Reader *r)
{
    const json_t *value;
    if (!array(r, "group", &value))
        return false;
    r->n_groups = json_array_size(value);
    r->line = g_malloc0_n(r->n_groups + 1, sizeof *r->line);
    for (r->at = 0; r->at < r->n_groups; r->at++) {
        const json_t *group = json_array_get(value, r->at);
        const json_t *line = json_object_get(group, "line_us_per_KiB_us");
        FileList devices;
        if (!list(r, json_object_get(group, "devices"), r->tasks->n_devices, "device",
                  &devices))
            return false;
        if (json_array_size(line) != LINE)
            return expected(r, "line_us_per_KiB_us with 4 numbers", group);
        for (size_t i = 0; i < LINE; i++) {
            const json_t *number = json_array_get(line, i);
            if (!json_is_number(number))
                return expected(r, "line_us_per_KiB_us with 4 numbers", group);
            r->line[r->at][i] = json_number_value(number);
        }
    }
    return true;
}

static bool read_buffers(Reader *r)
{
    const json_t *value;
    if (!array(r, "buffer", &value))
        return false;
    r->tasks->n_buffers = (uint32_t)json_array_size(value);
    r->tasks->buffer = g_new0(FileBuffer, r->tasks->n_buffers + 1);
    for (r->at = 0; r->at < r->tasks->n_buffers; r->at++) {
        const json_t *pair = json_array_get(value, r->at);
        FileBuffer *buffer = &r->tasks->buffer[r->at];
        if (json_array_size(pair) != 2)
            return expected(r, "[bytes, device]", pair);
        if (!whole(r, json_array_get(pair, 0), MOST_BYTES, "bytes", &buffer->bytes) ||
            !id(r, json_array_get(pair, 1), r->tasks->n_devices, "device",
                &buffer->device))
            return false;
    }
    return true;
}

/* --- tasks --- */

/* Adds a task's time to the sum of all times; fails if the sum gets too large. */
static bool takes(Reader *r, double us, FileTask *task, const json_t *row)
{
    if (!(us <= (double)(MOST_US - r->sum_us)))
        return expected(r, "times that add up to less than 2^52 us", row);
    task->us = us > 0 ? (uint64_t)us : 0;
    r->sum_us += task->us;
    return true;
}

static bool read_compute(Reader *r, const json_t *row, FileTask *task)
{
    uint64_t us = 0;
    return id(r, json_array_get(row, 1), r->tasks->n_devices, "device", &task->device) &&
           whole(r, json_array_get(row, 2), MOST_US, "microseconds", &us) &&
           takes(r, (double)us, task, row);
}

static bool read_transfer(Reader *r, const json_t *row, FileTask *task)
{
    uint64_t bytes = 0;
    if (!id(r, json_array_get(row, 1), r->tasks->n_devices, "device", &task->device) ||
        !id(r, json_array_get(row, 2), r->tasks->n_devices, "device", &task->to) ||
        !whole(r, json_array_get(row, 3), MOST_BYTES, "bytes", &bytes))
        return false;
    if (task->device == task->to)
        return true;
    const FileList path =
        r->tasks->path[(size_t)task->device * r->tasks->n_devices + task->to];
    double least = INFINITY;
    for (uint32_t i = 0; i < path.n; i++)
        least = MIN(least, r->bandwidth[file_list(r->tasks, path)[i]]);
    if (path.n == 0)
        return expected(r, "a transfer between devices that a path connects", row);
    return takes(r, floor((double)bytes / least) + (double)r->overhead_us, task, row);
}

/* Reads a part of a collective. The parts of one instance share a number and a duration. */
static bool read_collective(Reader *r, const json_t *row, FileTask *task)
{
    uint64_t instance = 0, bytes = 0;
    uint32_t group = 0;
    if (!id(r, json_array_get(row, 1), r->tasks->n_devices, "device", &task->device) ||
        !whole(r, json_array_get(row, 2), UINT32_MAX, "an instance", &instance) ||
        !id(r, json_array_get(row, 3), r->n_groups, "group", &group) ||
        !whole(r, json_array_get(row, 4), MOST_BYTES, "bytes", &bytes))
        return false;
    g_autofree uint64_t *key = g_new(uint64_t, 1);
    *key = instance | (uint64_t)group << 32;
    uint32_t number = GPOINTER_TO_UINT(g_hash_table_lookup(r->instance, key));
    if (number == 0) {
        number = r->instance_bytes->len + 1;
        g_hash_table_insert(r->instance, g_steal_pointer(&key), GUINT_TO_POINTER(number));
        g_array_append_val(r->instance_bytes, bytes);
    } else if (g_array_index(r->instance_bytes, uint64_t, number - 1) != bytes) {
        return expected(r, "as many bytes as the instance's other parts have", row);
    }
    task->instance = number - 1;
    const double *a = r->line[group], kib = (double)(bytes / KIB);
    return takes(r, fmax(floor(a[0] * kib + a[1]), floor(a[2] * kib + a[3])), task, row);
}

static bool read_task(Reader *r, const json_t *row, FileTask *task)
{
    static const struct {
        const char *name, *what;
        size_t n;
        bool (*read)(Reader *r, const json_t *row, FileTask *task);
    } kinds[] = {
        [FILE_COMPUTE] = {"C", "[\"C\", device, us, deps, in, out]", 6, read_compute},
        [FILE_TRANSFER] = {"T", "[\"T\", from, to, bytes, deps, in, out]", 7,
                           read_transfer},
        [FILE_COLLECTIVE] = {"R",
                             "[\"R\", device, instance, group, bytes, deps, in, out]", 8,
                             read_collective},
    };
    const char *name = json_string_value(json_array_get(row, 0));
    for (uint32_t k = 0; k < G_N_ELEMENTS(kinds); k++) {
        if (g_strcmp0(name, kinds[k].name) != 0)
            continue;
        const size_t n = kinds[k].n;
        task->kind = (FileTaskKind)k;
        if (json_array_size(row) != n)
            return expected(r, kinds[k].what, row);
        return kinds[k].read(r, row, task) &&
               list(r, json_array_get(row, n - 3), r->tasks->n_tasks, "task",
                    &task->deps) &&
               list(r, json_array_get(row, n - 2), r->tasks->n_buffers, "buffer",
                    &task->in) &&
               list(r, json_array_get(row, n - 1), r->tasks->n_buffers, "buffer",
                    &task->out);
    }
    return expected(r, "a row that begins with \"C\", \"T\" or \"R\"", row);
}

static void list_parts(const Reader *r)
{
    SimTaskFile *tasks = r->tasks;
    tasks->n_instances = r->instance_bytes->len;
    tasks->parts = g_new0(FileList, tasks->n_instances + 1);
    for (uint32_t i = 0; i < tasks->n_tasks; i++)
        if (tasks->task[i].kind == FILE_COLLECTIVE)
            tasks->parts[tasks->task[i].instance].n++;
    uint32_t first = tasks->number->len;
    for (uint32_t i = 0; i < tasks->n_instances; i++) {
        tasks->parts[i].first = first;
        first += tasks->parts[i].n;
        tasks->parts[i].n = 0;
    }
    g_array_set_size(tasks->number, first);
    for (uint32_t i = 0; i < tasks->n_tasks; i++) {
        if (tasks->task[i].kind != FILE_COLLECTIVE)
            continue;
        FileList *parts = &tasks->parts[tasks->task[i].instance];
        g_array_index(tasks->number, uint32_t, parts->first + parts->n++) = i;
    }
}

static bool read_tasks(Reader *r)
{
    const json_t *value;
    SimTaskFile *tasks = r->tasks;
    if (!array(r, "task", &value))
        return false;
    tasks->n_tasks = (uint32_t)json_array_size(value);
    tasks->task = g_new0(FileTask, tasks->n_tasks);
    for (r->at = 0; r->at < tasks->n_tasks; r->at++)
        if (!read_task(r, json_array_get(value, r->at), &tasks->task[r->at]))
            return false;
    list_parts(r);
    for (uint32_t i = 0; i < tasks->n_tasks; i++) {
        const FileList in = tasks->task[i].in;
        for (uint32_t b = 0; b < in.n; b++)
            tasks->buffer[file_list(tasks, in)[b]].n_readers++;
    }
    return true;
}

SimTaskFile *sim_task_file_read(const char *file, GError **error)
{
    json_t *root = json_read_file(file, "task graph", error);
    if (!root)
        return NULL;
    g_autoptr(SimTaskFile) tasks = g_new0(SimTaskFile, 1);
    tasks->number = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g_autoptr(GHashTable) instance =
        g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    g_autoptr(GArray) bytes = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    Reader r = {.file = file,
                .root = root,
                .tasks = tasks,
                .instance = instance,
                .instance_bytes = bytes,
                .error = error};
    const bool good = read_devices(&r) && read_links(&r) && read_paths(&r) &&
                      read_groups(&r) && read_buffers(&r) && read_tasks(&r);
    free_each(r.bandwidth, r.line);
    json_decref(root);
    return good ? g_steal_pointer(&tasks) : NULL;
}

FREE_DEFINE(sim_task_file_free, SimTaskFile, tasks,
            free_each(tasks->path, tasks->buffer, tasks->task, tasks->parts),
            g_array_unref(tasks->number));
