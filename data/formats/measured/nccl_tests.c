/* Reading the output of nccl-tests. */
#include "data/formats/measured/nccl_tests.h"

#include <glib.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "data/base/error.h"
#include "data/base/free.h"
#include "data/base/json.h"
#include "data/base/text.h"
#include "data/base/units.h"
#include "data/measured/measurement.h"

/* --- runs --- */

/* nccl-tests calls "size" the bytes that its bus bandwidth refers to: the whole tensor's, but one
 * rank's for all-to-all and sendrecv, and those of one of the n messages of a grouped collective
 * for broadcast and reduce. */
typedef enum { USE_COLLECTIVE, USE_SEND, USE_NOTHING } Use;
typedef struct {
    const char *program;
    Use use;
    Collective kind;
    bool per_rank, one_of_n;
} NcclTest;

enum { MOST_RANKS = 65536 };

/* A run of a test among ranks, to which rows are added. */
typedef struct {
    const char *file;
    GArray *list, *tables;
    const NcclTest *test;
    char *name; /* name of the test, known or not; NULL: not given */
    char *device;
    uint32_t ranks, hosts;
    bool open; /* the last of `tables` belongs to this test */
} NcclRun;

static const NcclTest TESTS[] = {
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

/* The test that `text` names ("build/all_reduce_perf"), or NULL; the longest of several names. */
static const NcclTest *nccl_test_find(const char *text)
{
    const NcclTest *found = NULL;
    for (uint32_t i = 0; i < G_N_ELEMENTS(TESTS); i++)
        if (strstr(text, TESTS[i].program) &&
            (!found || strlen(TESTS[i].program) > strlen(found->program)))
            found = &TESTS[i];
    return found;
}

/* Any name of the form NAME_perf in a line; NULL: none. The caller frees it. */
static char *nccl_perf_name(const char *line)
{
    const char *end = strstr(line, "_perf");
    const char *start = end;
    while (start && start > line && (g_ascii_isalnum(start[-1]) || start[-1] == '_'))
        start--;
    return end && start < end ? g_strndup(start, (gsize)(end - start)) : NULL;
}

/* Whether size and time are within the bounds of a sound row, whatever the number of ranks
 * (data/measured/measurement.c). */
static bool nccl_is_row(double size, double time_us)
{
    return size >= 0 && size <= 1e13 && time_us >= 1e-6 && time_us <= 1e11;
}

/* The next row begins another table. */
static void nccl_run_close(NcclRun *run)
{
    run->open = false;
}

static CLEAR_DEFINE(nccl_run_clear, NcclRun, run, free_each(run->name, run->device));

static char *nccl_device_name(const NcclRun *run)
{
    char *device = g_strdup(run->device ? run->device : "");
    g_strdelimit(device, ",#\r\n", ' ');
    if (*g_strstrip(device))
        return device;
    g_free(device);
    return g_strdup("gpu");
}

static bool continues(const MeasuredTable *table, const NcclRun *run, const char *test,
                      const char *device)
{
    return strcmp(table->file, run->file) == 0 && strcmp(table->test, test) == 0 &&
           strcmp(table->device, device) == 0 && table->ranks == run->ranks &&
           table->hosts == run->hosts && table->first + table->rows == run->list->len;
}

/* The table of a run; runs of a single size each, as scripts with loops write them, share one. */
static MeasuredTable *table_of(NcclRun *run)
{
    g_autofree char *device = nccl_device_name(run);
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

/* Counts a row that is not used. */
static void nccl_run_pass_over(NcclRun *run, const char *reason)
{
    MeasuredTable *table = table_of(run);
    table->passed++;
    if (!table->reason)
        table->reason = g_strdup(reason);
}

/* Adds a row; sizes of 0 bytes, which small sweeps contain, are ignored. */
static void nccl_run_add(NcclRun *run, double size, double time_us, double wrong)
{
    const double n = run->ranks;
    const NcclTest *test = run->test;
    const double least_us = 1e-6; /* data/measured/measurement.c: SHORTEST_S */
    if (size == 0)
        return;
    if (size < 1 || time_us < least_us)
        return nccl_run_pass_over(run, "less than a byte, or than a picosecond");
    if (!test)
        return nccl_run_pass_over(run, run->name
                                           ? "not a test that is known"
                                           : "expected '# Collective test starting: "
                                             "NAME_perf' before the rows, or a "
                                             "test's name in that of the file");
    if (run->ranks == 0 || run->ranks > MOST_RANKS)
        return nccl_run_pass_over(run, "no list of the ranks before it");
    if (run->ranks == 1)
        return nccl_run_pass_over(run, "a world of one rank, which sends nothing");
    if (test->use == USE_NOTHING)
        return nccl_run_pass_over(run, "no cost follows from it");
    if (wrong > 0)
        return nccl_run_pass_over(run, "its results were wrong");
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

/* --- lines --- */

/* A row of a table. */
typedef struct {
    double size, time_us, wrong;
    double algbw, busbw; /* 0: not given */
    double root;         /* -1: none, or not given */
    bool reduces;        /* it names an operation */
} NcclRow;

/* --- tables without a name --- */

static bool near(double ratio, double expected, double tolerance)
{
    return fabs(ratio - expected) <= tolerance;
}

/* The program of nccl-tests that printed the rows, NULL if that is not sure: the ratio of bus
 * bandwidth to bandwidth, the operation and the root tell. All-gather and all-to-all print the
 * same. */
static const char *nccl_guess(const NcclRow *row, uint32_t n, uint32_t ranks)
{
    const NcclRow *fastest = NULL;
    for (uint32_t i = 0; i < n; i++)
        if (row[i].algbw > 0 && row[i].busbw > 0 &&
            (!fastest || row[i].algbw > fastest->algbw))
            fastest = &row[i];
    if (!fastest || ranks < 2)
        return NULL;
    /* Bandwidths have two decimals; the ratios of tests differ by 1 / ranks. */
    const double rounding = 0.01, tolerance = fmin(0.02, 0.25 / ranks);
    const double ratio = fastest->busbw / fastest->algbw, part = (ranks - 1.0) / ranks;
    if (rounding / fastest->algbw > tolerance)
        return NULL;
    const bool rooted = fastest->root >= 0, reduces = fastest->reduces;
    if (reduces && !rooted && near(ratio, 2 * part, tolerance))
        return "all_reduce";
    if (reduces && !rooted && near(ratio, part, tolerance))
        return "reduce_scatter";
    if (rooted && near(ratio, 1, tolerance))
        return reduces ? "reduce" : "broadcast";
    return NULL;
}

/* --- text --- */

typedef struct {
    NcclRun run;
    const NcclTest *file_test;
    GHashTable *host;               /* names of the ranks' hosts */
    GHashTable *rank;               /* numbers of the ranks -> how many lines have them */
    uint32_t last_rank, last_group; /* the largest numbers */
    bool headed;                    /* a header of columns came, and no row yet */
    uint32_t time_column;           /* column of the time; 0: no header yet */
    uint32_t root_column;           /* 0: none */
    bool relative; /* the column after the bandwidths is the largest relative error, not a
                             number of wrong results: before version 2.13 */
    uint32_t told; /* ranks of one process, "nThread 1 nGpus 8"; 0: not told */
    uint32_t rows; /* lines that look like rows */
    GArray *unnamed; /* NcclRow of the table whose test no line has named */
    GRegex *prefixes;
} Reader;

/* The words that launchers put before a line, in its first 64 bytes: "[1,0]<stdout>:" of mpirun, the time of
 * containers' logs "2024-05-01T10:20:30.5Z ", "0:" of srun, "name | " of compose. */
static const char PREFIXES[] =
    "\\A(?s:\\[.{0,62}?<stdout>:|[0-9]{4}-[0-9]{2}-[0-9]{2}T[^ ]{0,52} |[0-9]+:|"
    ".{0,63}? \\| )+";

/* Sums of half-precision numbers are not off by more, whatever their order. */
static const double LARGE_ERROR = 0.01;

/* The words of a line. The caller frees the array. */
static GPtrArray *nccl_split(char *line)
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
    NcclRun *run = &reader->run;
    const char *name = strchr(line, ']'), *on = strstr(line, " on ");
    g_autofree char *device = g_strstrip(g_strdup(name ? name + 1 : ""));
    if (name && (run->ranks == 0 || !run->device ||
                 !strstr(run->device, device))) { /* unlike: "T4 + V100" */
        char *both = run->ranks && run->device
                         ? g_strconcat(run->device, " + ", device, NULL)
                         : g_steal_pointer(&device);
        put_block(run->device, both);
    }
    if (on && run->ranks < MOST_RANKS) {
        const char *group = strstr(line, "Group ");
        const guint64 number = g_ascii_strtoull(strstr(line, "Rank ") + 5, NULL, 10);
        const uint32_t rank = (uint32_t)MIN(number, MOST_RANKS);
        gpointer key = GUINT_TO_POINTER(rank);
        const guint before = GPOINTER_TO_UINT(g_hash_table_lookup(reader->rank, key));
        on += strspn(on + 3, " \t") + 3;
        g_hash_table_add(reader->host, g_strndup(on, strcspn(on, " \t\r")));
        g_hash_table_insert(reader->rank, key, GUINT_TO_POINTER(before + 1));
        reader->last_rank = MAX(reader->last_rank, rank);
        if (group)
            reader->last_group =
                MAX(reader->last_group,
                    (uint32_t)MIN(g_ascii_strtoull(group + 6, NULL, 10), MOST_RANKS));
    }
    run->ranks++;
    run->hosts = g_hash_table_size(reader->host);
    nccl_run_close(run);
}

/* Why the ranks are not those of one test, 0 to n - 1 once each; NULL: they are. Caller frees. */
static char *wrong_ranks(const Reader *reader)
{
    const uint32_t n = reader->run.ranks;
    if (g_hash_table_size(reader->rank) == 0)
        return NULL;
    for (uint32_t r = 0; r <= reader->last_rank; r++) {
        const guint lines =
            GPOINTER_TO_UINT(g_hash_table_lookup(reader->rank, GUINT_TO_POINTER(r)));
        if (lines > 1)
            return g_strdup_printf(
                "rank %u occurs %u times: %s", r, lines,
                n == lines
                    ? "every process was a world of one rank, as without MPI (make "
                      "MPI=1)"
                    : "several worlds, or outputs of several runs");
        if (lines == 0)
            return g_strdup_printf("no line of rank %u, and %u of others", r, n);
    }
    return reader->last_group > 0 ? g_strdup_printf("%u groups at once share the links",
                                                    reader->last_group + 1)
                                  : NULL;
}

/* Counts a test of which there is a header of columns and no row. */
static void end_header(Reader *reader)
{
    if (reader->headed)
        nccl_run_pass_over(&reader->run, "stopped after its header");
    reader->headed = false;
}

/* Adds the rows of a table whose test no line has named. */
static void end_table(Reader *reader)
{
    NcclRun *run = &reader->run;
    const NcclRow *row = (const NcclRow *)(const void *)reader->unnamed->data;
    const char *test = nccl_guess(row, reader->unnamed->len, run->ranks);
    run->test = test ? nccl_test_find(test) : run->test;
    for (uint32_t i = 0; i < reader->unnamed->len; i++)
        nccl_run_add(run, row[i].size, row[i].time_us, row[i].wrong);
    if (reader->unnamed->len > 0)
        run->test = reader->file_test;
    g_array_set_size(reader->unnamed, 0);
}

static void begin_ranks(Reader *reader)
{
    end_header(reader);
    end_table(reader);
    reader->run.ranks = reader->run.hosts = 0;
    reader->last_rank = reader->last_group = 0;
    g_hash_table_remove_all(reader->host);
    g_hash_table_remove_all(reader->rank);
    nccl_run_close(&reader->run);
}

/* The time is the column before the first bandwidth: there are several layouts. */
static void nccl_read_header(Reader *reader, const char *line)
{
    g_autofree char *copy = g_strdup(line + strspn(line, "# \t"));
    g_autoptr(GPtrArray) words = nccl_split(copy);
    reader->root_column = 0;
    reader->relative = false;
    reader->headed = true;
    for (uint32_t i = words->len; i-- > 0;)
        if (strcmp(words->pdata[i], "algbw") == 0 && i > 0)
            reader->time_column = i - 1;
        else if (strcmp(words->pdata[i], "root") == 0)
            reader->root_column = i;
        else if (strcmp(words->pdata[i], "error") == 0)
            reader->relative = true;
}

/* Reads a line that is not a row: NAME_perf names the test of the tables that follow. */
static void read_other(Reader *reader, const char *line)
{
    NcclRun *run = &reader->run;
    g_autofree char *name = nccl_perf_name(line);
    const bool ends = strstr(line, "test concluded:") != NULL;
    if (name || ends) {
        end_header(reader);
        end_table(reader);
        nccl_run_close(run);
        put_block(run->name, ends ? NULL : g_steal_pointer(&name));
        run->test = run->name ? nccl_test_find(run->name) : reader->file_test;
    }
    const char *threads = strstr(line, "nThread "), *gpus = strstr(line, " nGpus ");
    if (threads && gpus) {
        const guint64 told = g_ascii_strtoull(threads + 8, NULL, 10) *
                             g_ascii_strtoull(gpus + 7, NULL, 10);
        begin_ranks(reader);
        reader->told = told <= MOST_RANKS ? (uint32_t)told : 0;
    }
    if (strstr(line, "Using devices"))
        begin_ranks(reader);
    if (strstr(line, "Rank ") && strstr(line, " device "))
        read_rank(reader, line);
    if (strstr(line, "size") && strstr(line, "algbw"))
        nccl_read_header(reader, line);
}

/* Whether word `i` is a number; *value gets it. */
static bool nccl_number_of(const GPtrArray *words, uint32_t i, double *value)
{
    return i < words->len && number_is(words->pdata[i], value);
}

/* Whether a line has a size, a count and a type; messages of NCCL or mpirun in between look
 * different. */
static bool looks_like_row(const GPtrArray *words)
{
    double size, count;
    return words->len > 2 && g_ascii_isdigit(*(const char *)words->pdata[0]) &&
           nccl_number_of(words, 0, &size) && nccl_number_of(words, 1, &count) &&
           g_ascii_isalpha(*(const char *)words->pdata[2]);
}

/* Why a row's bus bandwidth is not that of the test among the listed ranks, as where each process
 * was a world of its own; NULL: it is, or cannot be told. */
static const char *wrong_ratio(const Reader *reader, const GPtrArray *words)
{
    const double rounding = 0.01, tolerance = 0.01; /* two decimals */
    const NcclTest *test = reader->run.test;
    const double n = reader->run.ranks;
    double algbw, busbw;
    if (!test || test->use != USE_COLLECTIVE || n < 2 ||
        !nccl_number_of(words, reader->time_column + 1, &algbw) ||
        !nccl_number_of(words, reader->time_column + 2, &busbw) || algbw < 1)
        return NULL;
    const double part = test->one_of_n ? 1 : (n - 1) / n,
                 ratio = test->kind == COLLECTIVE_ALL_REDUCE ? 2 * part : part;
    if (fabs(busbw - ratio * algbw) <= 2 * rounding + tolerance * busbw)
        return NULL;
    return busbw == 0
               ? "no bus bandwidth: a world of one rank"
               : "a bus bandwidth of another test, or of other ranks than are listed";
}

static void nccl_read_row(Reader *reader, const GPtrArray *words)
{
    NcclRun *run = &reader->run;
    NcclRow row = {.root = -1,
                   .reduces = words->len > 3 && strcmp(words->pdata[3], "none") != 0};
    const uint32_t time = reader->time_column;
    reader->rows++;
    reader->headed = false;
    nccl_number_of(words, 0, &row.size);
    if (time == 0)
        return nccl_run_pass_over(run, "no header of the columns before it");
    if (!nccl_number_of(words, time, &row.time_us) || !nccl_is_row(row.size, row.time_us))
        return nccl_run_pass_over(run, "cut off, or without a time");
    if (!nccl_number_of(words, time + 3, &row.wrong) ||
        (reader->relative && row.wrong < LARGE_ERROR))
        row.wrong = 0;
    if (run->ranks == 0 && reader->told > 1) { /* no list of the ranks: one process */
        run->ranks = reader->told;
        run->hosts = 1;
    }
    g_autofree char *wrong = wrong_ranks(reader);
    if (wrong)
        return nccl_run_pass_over(run, wrong);
    const char *ratio = wrong_ratio(reader, words);
    if (ratio) { /* and the rows before it, which are too slow to tell */
        MeasuredTable *table = table_of(run);
        g_array_set_size(run->list, table->first);
        table->passed += table->rows;
        table->rows = 0;
        return nccl_run_pass_over(run, ratio);
    }
    if (run->test || run->name)
        return nccl_run_add(run, row.size, row.time_us, row.wrong);
    if (!nccl_number_of(words, time + 1, &row.algbw) ||
        !nccl_number_of(words, time + 2, &row.busbw))
        row.algbw = row.busbw = 0;
    if (reader->root_column > 0 && !nccl_number_of(words, reader->root_column, &row.root))
        row.root = -1;
    g_array_append_val(reader->unnamed, row);
}

/* Whether a word names a type of nccl-tests or rccl-tests. */
static bool is_type(const char *word)
{
    static const char *const BEGIN[] = {"int",  "uint", "half", "float", "double",
                                        "char", "bf",   "f8",   "fp8"};
    return any_of(i, G_N_ELEMENTS(BEGIN), g_str_has_prefix(word, BEGIN[i]));
}

/* Drops what programs that run others write before a row: names of hosts, times, levels, in any
 * order. Behind it are a size, a count and a known type, and the columns of the header. */
static void drop_prefix(const Reader *reader, GPtrArray *words)
{
    enum { MOST_WORDS = 8 };
    for (uint32_t i = 1; i <= MOST_WORDS && i + reader->time_column + 2 < words->len;
         i++) {
        const char *size = words->pdata[i], *count = words->pdata[i + 1];
        if (size[strspn(size, "0123456789")] || count[strspn(count, "0123456789")] ||
            !is_type(words->pdata[i + 2]))
            continue;
        g_ptr_array_remove_range(words, 0, i);
        return;
    }
}

static void nccl_read_line(Reader *reader, char *line)
{
    enum { PREFIX_BYTES = 120 };
    g_autoptr(GMatchInfo) match = NULL;
    int prefixes = 0;
    text_uncolour(line);
    if (g_regex_match(reader->prefixes, line, 0, &match))
        g_match_info_fetch_pos(match, 0, NULL, &prefixes);
    line += prefixes;
    const char *mark = strchr(line, '#');
    if (mark && mark - line < PREFIX_BYTES)
        return read_other(reader, mark);
    g_autofree char *copy = g_strdup(line);
    g_autoptr(GPtrArray) words = nccl_split(copy);
    if (!looks_like_row(words) && reader->time_column > 0)
        drop_prefix(reader, words);
    if (looks_like_row(words))
        nccl_read_row(reader, words);
    else
        read_other(reader, line);
}

bool nccl_tests_parse_text(const char *file, const char *text, GArray *list,
                           GArray *tables, GError **error)
{
    g_autofree char *name = g_path_get_basename(file);
    g_autoptr(GHashTable) host = text_table(NULL);
    g_autoptr(GHashTable) rank = g_hash_table_new(g_direct_hash, g_direct_equal);
    g_autoptr(GArray) unnamed = g_array_new(FALSE, FALSE, sizeof(NcclRow));
    g_autoptr(GRegex) prefixes =
        g_regex_new(PREFIXES, G_REGEX_RAW | G_REGEX_OPTIMIZE, 0, NULL);
    Reader reader = {.run = {.file = file, .list = list, .tables = tables},
                     .host = host,
                     .rank = rank,
                     .unnamed = unnamed,
                     .prefixes = prefixes,
                     .file_test = nccl_test_find(name)};
    reader.run.test = reader.file_test;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line; line++)
        nccl_read_line(&reader, *line);
    end_header(&reader);
    end_table(&reader);
    nccl_run_clear(&reader.run);
    return reader.rows > 0 || tables->len > 0 ||
           refuse(error, "%s: expected rows of nccl-tests: size, count, type, ..., time",
                  file);
}

/* --- JSON --- */

static double number_at(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* The number of machines, if each process names its own; 0: not known. */
static uint32_t hosts_of(const json_t *config)
{
    const json_t *devices = json_object_get(config, "devices");
    g_autoptr(GHashTable) host = g_hash_table_new(g_str_hash, g_str_equal);
    elements_each (device, devices) {
        const char *name = json_word(device, "hostname");
        name = *name ? name : json_word(device, "host");
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

static bool read_results(NcclRun *run, const json_t *results, GError **error)
{
    elements_at (row, i, results) {
        const json_t *times = json_object_get(row, "out_of_place");
        const double size = number_at(row, "size"), time_us = time_of(times);
        if (json_is_number(json_object_get(row, "size")) && json_is_null(times)) {
            nccl_run_pass_over(run, "no time out of place");
            continue;
        }
        if (!json_is_number(json_object_get(row, "size")) || !nccl_is_row(size, time_us))
            return refuse(
                error,
                "%s: results[%zu]: expected size in bytes and out_of_place.time in us",
                run->file, i);
        nccl_run_add(run, size, time_us, number_at(times, "nwrong"));
    }
    return true;
}

static bool read_root(NcclRun *run, const json_t *root, GError **error)
{
    const json_t *config = json_object_get(root, "config");
    const json_t *results = json_object_get(root, "results");
    const char *program =
        json_string_value(json_array_get(json_object_get(root, "args"), 0));
    const double ranks = (double)json_array_size(json_object_get(config, "devices")) *
                         number_at(config, "nthreads") * number_at(config, "ngpus");
    if (!program || !json_is_array(results) || !(ranks >= 1 && ranks <= MOST_RANKS) ||
        ranks != floor(ranks))
        return refuse(error,
                      "%s: expected the JSON of nccl-tests: args, config with devices, "
                      "nthreads and ngpus, results",
                      run->file);
    g_autofree char *base = g_path_get_basename(program);
    run->name = nccl_perf_name(base);
    run->test = nccl_test_find(base);
    if (!run->test)
        return refuse(error,
                      "%s: expected output of all_reduce_perf, all_gather_perf or "
                      "another program of nccl-tests, got '%.60s'",
                      run->file, base);
    run->ranks = (uint32_t)ranks;
    run->hosts = hosts_of(config);
    run->device = g_strdup(
        json_word(json_array_get(json_object_get(config, "devices"), 0), "device_info"));
    return read_results(run, results, error);
}

bool nccl_tests_parse_json(const char *file, const char *text, size_t length,
                           GArray *list, GArray *tables, GError **error)
{
    json_error_t where;
    json_t *root = json_loadb(text, length, 0, &where);
    if (!root)
        return refuse(error, "%s:%d: not JSON: %s", file, where.line, where.text);
    NcclRun run = {.file = file, .list = list, .tables = tables};
    const bool good = read_root(&run, root, error);
    nccl_run_clear(&run);
    json_decref(root);
    return good;
}
