/* Reading the output of nccl-tests. */
#include "data/measured/nccl_tests.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "data/base/error.h"

/* nccl-tests calls "size" the bytes that its bus bandwidth refers to: the whole tensor's, but one
 * rank's for all-to-all and sendrecv, and those of one of the n messages of a grouped collective
 * for broadcast and reduce. */
typedef enum { USE_COLLECTIVE, USE_SEND, USE_NOTHING } Use;
typedef struct {
    const char *program;
    Use use;
    Collective kind;
    bool per_rank, one_of_n;
} Test;

static const Test TESTS[] = {
    {"all_reduce", USE_COLLECTIVE, COLLECTIVE_ALL_REDUCE, false, false},
    {"all_gather", USE_COLLECTIVE, COLLECTIVE_ALL_GATHER, false, false},
    {"reduce_scatter", USE_COLLECTIVE, COLLECTIVE_REDUCE_SCATTER, false, false},
    {"alltoall", USE_COLLECTIVE, COLLECTIVE_ALL_TO_ALL, true, false},
    {"all_to_all", USE_COLLECTIVE, COLLECTIVE_ALL_TO_ALL, true, false},
    {"broadcast", USE_COLLECTIVE, COLLECTIVE_GROUPED_ALL_GATHER, true, true},
    {"reduce", USE_COLLECTIVE, COLLECTIVE_GROUPED_REDUCE_SCATTER, true, true},
    {"sendrecv", USE_SEND, COLLECTIVES, false, false},
    {"gather", USE_NOTHING, COLLECTIVES, false, false},
    {"scatter", USE_NOTHING, COLLECTIVES, false, false},
    {"hypercube", USE_NOTHING, COLLECTIVES, false, false},
};

enum { MOST_RANKS = 65536 };

/* The test that `text` names ("build/all_reduce_perf"), or NULL; the longest of several names. */
static const Test *find_test(const char *text)
{
    const Test *found = NULL;
    for (uint32_t i = 0; i < G_N_ELEMENTS(TESTS); i++)
        if (strstr(text, TESTS[i].program) &&
            (!found || strlen(TESTS[i].program) > strlen(found->program)))
            found = &TESTS[i];
    return found;
}

/* Any name of the form NAME_perf in a line; NULL: none. The caller frees it. */
static char *perf_name(const char *line)
{
    const char *end = strstr(line, "_perf");
    const char *start = end;
    while (start && start > line && (g_ascii_isalnum(start[-1]) || start[-1] == '_'))
        start--;
    return end && start < end ? g_strndup(start, (gsize)(end - start)) : NULL;
}

/* Whether size and time are within the bounds of a sound row, whatever the number of ranks
 * (data/measured/measurement.c). */
static bool is_row(double size, double time_us)
{
    return size >= 0 && size <= 1e13 && time_us >= 1e-6 && time_us <= 1e11;
}

/* --- tables --- */

/* A run of a test among ranks, to which rows are added. */
typedef struct {
    const char *file;
    GArray *list, *tables;
    const Test *test;
    char *name; /* name of the test, known or not; NULL: not given */
    char *device;
    uint32_t ranks, hosts;
    bool open; /* the last of `tables` belongs to this test */
} Run;

static void run_close(Run *run)
{
    run->open = false;
}

static void run_clear(Run *run)
{
    g_free(run->name);
    g_free(run->device);
}

static char *device_name(const Run *run)
{
    char *device = g_strdup(run->device ? run->device : "");
    g_strdelimit(device, ",#\r\n", ' ');
    if (*g_strstrip(device))
        return device;
    g_free(device);
    return g_strdup("gpu");
}

static bool continues(const MeasuredTable *table, const Run *run, const char *test,
                      const char *device)
{
    return strcmp(table->file, run->file) == 0 && strcmp(table->test, test) == 0 &&
           strcmp(table->device, device) == 0 && table->ranks == run->ranks &&
           table->hosts == run->hosts && table->first + table->rows == run->list->len;
}

/* The table of a run. Runs of a single size each, as scripts with loops write them, share one
 * table. */
static MeasuredTable *table_of(Run *run)
{
    g_autofree char *device = device_name(run);
    g_autofree char *test = run->test   ? g_strconcat(run->test->program, "_perf", NULL)
                            : run->name ? g_strconcat(run->name, "_perf", NULL)
                                        : g_strdup("unnamed");
    MeasuredTable *last = run->tables->len ? &g_array_index(run->tables, MeasuredTable,
                                                            run->tables->len - 1)
                                           : NULL;
    if (last && (run->open || continues(last, run, test, device)))
        return last;
    MeasuredTable table = {.file = g_strdup(run->file),
                           .device = g_steal_pointer(&device),
                           .test = g_steal_pointer(&test),
                           .ranks = run->ranks,
                           .hosts = run->hosts,
                           .smallest = INFINITY,
                           .first = run->list->len};
    g_array_append_val(run->tables, table);
    run->open = true;
    return &g_array_index(run->tables, MeasuredTable, run->tables->len - 1);
}

static void pass_over(Run *run, const char *reason)
{
    MeasuredTable *table = table_of(run);
    table->passed++;
    if (!table->reason)
        table->reason = g_strdup(reason);
}

/* Adds a row; sizes of 0 bytes, which small sweeps contain, are ignored. */
static void add(Run *run, double size, double time_us, double wrong)
{
    const double n = run->ranks;
    const Test *test = run->test;
    if (size == 0)
        return;
    if (!test)
        return pass_over(run, run->name ? "not a test that is known"
                                        : "expected '# Collective test starting: "
                                          "NAME_perf' before the rows, or a "
                                          "test's name in that of the file");
    if (run->ranks == 0 || run->ranks > MOST_RANKS)
        return pass_over(run, "no list of the ranks before it");
    if (test->use == USE_NOTHING)
        return pass_over(run, "no cost follows from it");
    if (wrong > 0)
        return pass_over(run, "its results were wrong");
    MeasuredTable *table = table_of(run);
    Measurement m = {.device = g_strdup(table->device),
                     .shape = g_strdup("nccl-tests"),
                     .op = OP_KINDS,
                     .collective = test->kind,
                     .send = test->use == USE_SEND,
                     .ranks = run->ranks,
                     .hosts = run->hosts,
                     .repeats = 1,
                     .share = 1 / n,
                     .bytes = size * (test->per_rank ? n : 1),
                     .median_s = time_us * 1e-6 * (test->one_of_n ? n : 1)};
    m.low_s = m.high_s = m.median_s;
    g_array_append_val(run->list, m);
    table->rows++;
    table->smallest = fmin(table->smallest, size);
    table->largest = fmax(table->largest, size);
}

/* --- text --- */

typedef struct {
    Run run;
    const Test *file_test;
    GHashTable *host;     /* names of the ranks' hosts */
    uint32_t time_column; /* column of the time; 0: no header yet */
    uint32_t rows;        /* lines that look like rows */
} Reader;

bool nccl_tests_is_text(const char *text)
{
    return strstr(text, "busbw") && strstr(text, "algbw");
}

/* The words of a line. The caller frees the array. */
static GPtrArray *split(char *line)
{
    GPtrArray *words = g_ptr_array_new();
    char *save = NULL;
    for (char *word = strtok_r(line, " \t\r", &save); word;
         word = strtok_r(NULL, " \t\r", &save))
        g_ptr_array_add(words, word);
    return words;
}

/* "#  Rank  0 Group  0 Pid 26141 on cnode3-002 device  0 [0000:9d:00] NVIDIA H100" */
static void read_rank(Reader *reader, const char *line)
{
    Run *run = &reader->run;
    const char *name = strchr(line, ']'), *on = strstr(line, " on ");
    if (run->ranks == 0 && name) {
        g_free(run->device);
        run->device = g_strstrip(g_strdup(name + 1));
    }
    if (on && run->ranks < MOST_RANKS) {
        on += strspn(on + 3, " \t") + 3;
        g_hash_table_add(reader->host, g_strndup(on, strcspn(on, " \t\r")));
    }
    run->ranks++;
    run->hosts = g_hash_table_size(reader->host);
    run_close(run);
}

static void begin_ranks(Reader *reader)
{
    reader->run.ranks = reader->run.hosts = 0;
    g_hash_table_remove_all(reader->host);
    run_close(&reader->run);
}

/* The time is the column before the first bandwidth: there are several layouts. */
static void read_header(Reader *reader, const char *line)
{
    g_autofree char *copy = g_strdup(line + strspn(line, "# \t"));
    g_autoptr(GPtrArray) words = split(copy);
    for (uint32_t i = words->len; i-- > 0;)
        if (strcmp(words->pdata[i], "algbw") == 0 && i > 0)
            reader->time_column = i - 1;
}

/* Reads a line that is not a row: NAME_perf names the test of the tables that follow. */
static void read_other(Reader *reader, const char *line)
{
    Run *run = &reader->run;
    g_autofree char *name = perf_name(line);
    const bool ends = strstr(line, "test concluded:") != NULL;
    if (name || ends) {
        run_close(run);
        g_free(run->name);
        run->name = ends ? NULL : g_steal_pointer(&name);
        run->test = run->name ? find_test(run->name) : reader->file_test;
    }
    if (strstr(line, "Using devices"))
        begin_ranks(reader);
    if (strstr(line, "Rank ") && strstr(line, " device "))
        read_rank(reader, line);
    if (strstr(line, "size") && strstr(line, "algbw"))
        read_header(reader, line);
}

/* Whether word `i` is a number; *value gets it. */
static bool number_of(const GPtrArray *words, uint32_t i, double *value)
{
    char *end;
    if (i >= words->len)
        return false;
    *value = g_ascii_strtod(words->pdata[i], &end);
    return end != words->pdata[i] && *end == '\0';
}

/* Whether a line has a size, a count and a type; messages of NCCL or mpirun in between look
 * different. */
static bool looks_like_row(const GPtrArray *words)
{
    double size, count;
    return words->len > 2 && g_ascii_isdigit(*(const char *)words->pdata[0]) &&
           number_of(words, 0, &size) && number_of(words, 1, &count) &&
           g_ascii_isalpha(*(const char *)words->pdata[2]);
}

static void read_row(Reader *reader, const GPtrArray *words)
{
    double size = 0, time_us = 0, wrong = 0;
    reader->rows++;
    number_of(words, 0, &size);
    if (reader->time_column == 0)
        pass_over(&reader->run, "no header of the columns before it");
    else if (!number_of(words, reader->time_column, &time_us) || !is_row(size, time_us))
        pass_over(&reader->run, "cut off, or without a time");
    else {
        const bool counted = number_of(words, reader->time_column + 3, &wrong);
        add(&reader->run, size, time_us, counted ? wrong : 0);
    }
}

/* The line without the "[1,0]<stdout>:" of mpirun --tag-output. */
static char *untagged(char *line)
{
    static const char MARK[] = "<stdout>:";
    char *mark = *line == '[' ? strstr(line, MARK) : NULL;
    return mark && mark - line < 24 ? mark + strlen(MARK) : line;
}

static void read_line(Reader *reader, char *line)
{
    line = untagged(line);
    if (line[strspn(line, " \t")] == '#')
        return read_other(reader, line);
    g_autofree char *copy = g_strdup(line);
    g_autoptr(GPtrArray) words = split(copy);
    if (looks_like_row(words))
        read_row(reader, words);
    else
        read_other(reader, line);
}

bool nccl_tests_parse_text(const char *file, const char *text, GArray *list,
                           GArray *tables, GError **error)
{
    g_autofree char *name = g_path_get_basename(file);
    g_autoptr(GHashTable) host =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    Reader reader = {.run = {.file = file, .list = list, .tables = tables},
                     .host = host,
                     .file_test = find_test(name)};
    reader.run.test = reader.file_test;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++)
        read_line(&reader, *line);
    run_clear(&reader.run);
    return reader.rows > 0 ||
           kilter_fail(error, KILTER_ERROR_INPUT,
                       "%s: expected rows of nccl-tests: size, count, type, ..., time",
                       file);
}

/* --- JSON --- */

static double number_at(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static const char *text_at(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

/* The number of ranks; the file lists one device per process. */
static double ranks_of(const json_t *config)
{
    return (double)json_array_size(json_object_get(config, "devices")) *
           number_at(config, "nthreads") * number_at(config, "ngpus");
}

/* The number of machines, if each process names its own; 0: not known. */
static uint32_t hosts_of(const json_t *config)
{
    const json_t *devices = json_object_get(config, "devices");
    g_autoptr(GHashTable) host = g_hash_table_new(g_str_hash, g_str_equal);
    for (size_t i = 0; i < json_array_size(devices); i++) {
        const json_t *device = json_array_get(devices, i);
        const char *name = text_at(device, "hostname");
        name = *name ? name : text_at(device, "host");
        if (!*name)
            return 0;
        g_hash_table_add(host, (char *)name);
    }
    return g_hash_table_size(host);
}

/* The wall time, or the CPU time with -C. */
static double time_of(const json_t *times)
{
    const json_t *wall = json_object_get(times, "time");
    return json_number_value(wall ? wall : json_object_get(times, "cpu_time"));
}

static bool read_results(Run *run, const json_t *results, GError **error)
{
    for (size_t i = 0; i < json_array_size(results); i++) {
        const json_t *row = json_array_get(results, i);
        const json_t *times = json_object_get(row, "out_of_place");
        const double size = number_at(row, "size"), time_us = time_of(times);
        if (json_is_number(json_object_get(row, "size")) && json_is_null(times)) {
            pass_over(run, "no time out of place");
            continue;
        }
        if (!json_is_number(json_object_get(row, "size")) || !is_row(size, time_us))
            return kilter_fail(error, KILTER_ERROR_INPUT,
                               "%s: results[%zu]: expected size in bytes and "
                               "out_of_place.time in us",
                               run->file, i);
        add(run, size, time_us, number_at(times, "nwrong"));
    }
    return true;
}

static bool read_root(Run *run, const json_t *root, GError **error)
{
    const json_t *config = json_object_get(root, "config");
    const json_t *results = json_object_get(root, "results");
    const char *program =
        json_string_value(json_array_get(json_object_get(root, "args"), 0));
    const double ranks = ranks_of(config);
    if (!program || !json_is_array(results) || !(ranks >= 1 && ranks <= MOST_RANKS) ||
        ranks != floor(ranks))
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "%s: expected the JSON of nccl-tests: args, config with "
                           "devices, nthreads and ngpus, results",
                           run->file);
    g_autofree char *base = g_path_get_basename(program);
    run->name = perf_name(base);
    run->test = find_test(base);
    if (!run->test)
        return kilter_fail(
            error, KILTER_ERROR_INPUT,
            "%s: expected output of all_reduce_perf, all_gather_perf or another "
            "program of nccl-tests, got '%.60s'",
            run->file, base);
    run->ranks = (uint32_t)ranks;
    run->hosts = hosts_of(config);
    run->device = g_strdup(
        text_at(json_array_get(json_object_get(config, "devices"), 0), "device_info"));
    return read_results(run, results, error);
}

bool nccl_tests_parse_json(const char *file, const char *text, size_t length,
                           GArray *list, GArray *tables, GError **error)
{
    json_error_t where;
    json_t *root = json_loadb(text, length, 0, &where);
    if (!root)
        return kilter_fail(error, KILTER_ERROR_INPUT, "%s:%d: not JSON: %s", file,
                           where.line, where.text);
    Run run = {.file = file, .list = list, .tables = tables};
    const bool good = read_root(&run, root, error);
    run_clear(&run);
    json_decref(root);
    return good;
}
