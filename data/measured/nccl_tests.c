#include "data/measured/nccl_tests.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#include "data/base/error.h"

/* nccl-tests calls "size" the bytes that its bus bandwidth refers to: of the whole tensor, but of
 * an all-to-all those of one rank, and of a broadcast or a reduce those of one of the n messages of
 * a grouped collective. */
typedef struct {
    const char *program;
    Collective kind;
    bool per_rank, one_of_n;
} Test;

static const Test TESTS[] = {
    {"all_reduce", COLLECTIVE_ALL_REDUCE, false, false},
    {"all_gather", COLLECTIVE_ALL_GATHER, false, false},
    {"reduce_scatter", COLLECTIVE_REDUCE_SCATTER, false, false},
    {"alltoall", COLLECTIVE_ALL_TO_ALL, true, false},
    {"broadcast", COLLECTIVE_GROUPED_ALL_GATHER, true, true},
    {"reduce", COLLECTIVE_GROUPED_REDUCE_SCATTER, true, true},
};

enum { MOST_RANKS = 65536 };

/* The test that `text` names ("build/all_reduce_perf"), or NULL; of two names the longer one. */
static const Test *find_test(const char *text)
{
    for (uint32_t i = 0; i < G_N_ELEMENTS(TESTS); i++)
        if (strstr(text, TESTS[i].program))
            return &TESTS[i];
    return NULL;
}

static bool fail_test(const char *file, const char *name, GError **error)
{
    return kilter_fail(error, KILTER_ERROR_INPUT,
                       "%s: expected output of all_reduce, all_gather, reduce_scatter, "
                       "alltoall, broadcast or reduce_perf, got '%.60s'",
                       file, name);
}

/* Within these a row is sound whatever the number of ranks (data/measured/measurement.c). */
static bool is_row(double size, double time_us)
{
    return size >= 0 && size <= 1e13 && time_us >= 1e-6 && time_us <= 1e7;
}

/* Sizes of 0 bytes, which small sweeps have, are passed over. */
static void add(GArray *list, const Test *test, const char *device, uint32_t ranks,
                double size, double time_us)
{
    const double n = ranks;
    Measurement m = {.device = g_strdup(device),
                     .shape = g_strdup("nccl-tests"),
                     .op = OP_KINDS,
                     .collective = test->kind,
                     .ranks = ranks,
                     .repeats = 1,
                     .share = 1 / n,
                     .bytes = size * (test->per_rank ? n : 1),
                     .median_s = time_us * 1e-6 * (test->one_of_n ? n : 1)};
    m.low_s = m.high_s = m.median_s;
    g_strdelimit(m.device, ",#\r\n", ' ');
    if (!*g_strstrip(m.device)) {
        g_free(m.device);
        m.device = g_strdup("gpu");
    }
    g_array_append_val(list, m);
}

/* --- text --- */

typedef struct {
    const char *file;
    uint32_t line;
    const Test *test;
    char *device;
    uint32_t ranks;
    uint32_t time_column; /* of a row; 0: no header yet */
} Table;

bool nccl_tests_is_text(const char *text)
{
    return strstr(text, "busbw") && strstr(text, "algbw");
}

static bool fail(const Table *table, GError **error, const char *expected)
{
    return kilter_fail(error, KILTER_ERROR_INPUT, "%s:%u: expected %s", table->file,
                       table->line, expected);
}

/* Words of a line. Caller frees. */
static GPtrArray *split(char *line)
{
    GPtrArray *words = g_ptr_array_new();
    char *save = NULL;
    for (char *word = strtok_r(line, " \t\r", &save); word;
         word = strtok_r(NULL, " \t\r", &save))
        g_ptr_array_add(words, word);
    return words;
}

static void read_rank(Table *table, const char *line)
{
    const char *name = strchr(line, ']');
    if (table->ranks == 0 && name) {
        g_free(table->device);
        table->device = g_strstrip(g_strdup(name + 1));
    }
    table->ranks++;
}

static bool read_comment(Table *table, const char *line, GError **error)
{
    static const char starting[] = "Collective test starting:";
    const char *program = strstr(line, starting);
    if (program) {
        table->test = find_test(program);
        if (!table->test)
            return fail_test(table->file, program + strlen(starting), error);
    }
    if (strstr(line, "Using devices"))
        table->ranks = 0;
    if (strstr(line, " Rank ") && strstr(line, " device "))
        read_rank(table, line);
    if (strstr(line, "size") && strstr(line, "algbw")) {
        g_autofree char *copy = g_strdup(line + 1);
        g_autoptr(GPtrArray) words = split(copy);
        for (uint32_t i = words->len; i-- > 0;)
            if (strcmp(words->pdata[i], "algbw") == 0 && i > 0)
                table->time_column = i - 1;
    }
    return true;
}

static bool read_row(const Table *table, char *line, GArray *list, GError **error)
{
    g_autoptr(GPtrArray) words = split(line);
    if (words->len == 0 || !g_ascii_isdigit(*(const char *)words->pdata[0]))
        return true; /* what NCCL or mpirun say in between */
    if (table->time_column == 0 || table->ranks == 0 || table->ranks > MOST_RANKS)
        return fail(table, error, "the devices and the header of the table before");
    if (!table->test)
        return fail(table, error,
                    "'# Collective test starting: all_reduce_perf' before, or all_reduce "
                    "in the file's name");
    if (words->len <= table->time_column)
        return fail(table, error, "a row as wide as the header");
    char *end[2];
    const double size = g_ascii_strtod(words->pdata[0], &end[0]);
    const double time_us = g_ascii_strtod(words->pdata[table->time_column], &end[1]);
    if (*end[0] || *end[1] || !is_row(size, time_us))
        return fail(table, error, "a size in bytes and a time in us");
    if (size > 0)
        add(list, table->test, table->device ? table->device : "", table->ranks, size,
            time_us);
    return true;
}

bool nccl_tests_parse_text(const char *file, const char *text, GArray *list,
                           GError **error)
{
    g_autofree char *name = g_path_get_basename(file);
    Table table = {.file = file, .test = find_test(name)};
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    bool good = true;
    for (char **line = lines; good && *line; line++) {
        table.line++;
        good = **line == '#' ? read_comment(&table, *line, error)
                             : read_row(&table, *line, list, error);
    }
    g_free(table.device);
    return good;
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

/* The file lists one device a process. */
static double ranks_of(const json_t *config)
{
    return (double)json_array_size(json_object_get(config, "devices")) *
           number_at(config, "nthreads") * number_at(config, "ngpus");
}

static bool read_root(const char *file, const json_t *root, GArray *list, GError **error)
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
                           file);
    g_autofree char *name = g_path_get_basename(program);
    const Test *test = find_test(name);
    if (!test)
        return fail_test(file, name, error);
    const char *device =
        text_at(json_array_get(json_object_get(config, "devices"), 0), "device_info");
    for (size_t i = 0; i < json_array_size(results); i++) {
        const json_t *row = json_array_get(results, i);
        const json_t *times = json_object_get(row, "out_of_place");
        const double size = number_at(row, "size"), time_us = number_at(times, "time");
        if (!json_is_number(json_object_get(row, "size")) || !is_row(size, time_us))
            return kilter_fail(error, KILTER_ERROR_INPUT,
                               "%s: results[%zu]: expected size in bytes and "
                               "out_of_place.time in us",
                               file, i);
        if (size > 0)
            add(list, test, device, (uint32_t)ranks, size, time_us);
    }
    return true;
}

bool nccl_tests_parse_json(const char *file, const char *text, size_t length,
                           GArray *list, GError **error)
{
    json_error_t where;
    json_t *root = json_loadb(text, length, 0, &where);
    if (!root)
        return kilter_fail(error, KILTER_ERROR_INPUT, "%s:%d: not JSON: %s", file,
                           where.line, where.text);
    const bool good = read_root(file, root, list, error);
    json_decref(root);
    return good;
}
