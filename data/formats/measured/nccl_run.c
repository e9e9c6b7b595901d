/* Runs of nccl-tests: their tables and rows. */
#include "data/formats/measured/nccl_run.h"

#include <math.h>
#include <string.h>

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

const NcclTest *nccl_test_find(const char *text)
{
    const NcclTest *found = NULL;
    for (uint32_t i = 0; i < G_N_ELEMENTS(TESTS); i++)
        if (strstr(text, TESTS[i].program) &&
            (!found || strlen(TESTS[i].program) > strlen(found->program)))
            found = &TESTS[i];
    return found;
}

char *nccl_perf_name(const char *line)
{
    const char *end = strstr(line, "_perf");
    const char *start = end;
    while (start && start > line && (g_ascii_isalnum(start[-1]) || start[-1] == '_'))
        start--;
    return end && start < end ? g_strndup(start, (gsize)(end - start)) : NULL;
}

bool nccl_is_row(double size, double time_us)
{
    return size >= 0 && size <= 1e13 && time_us >= 1e-6 && time_us <= 1e11;
}

void nccl_run_close(NcclRun *run)
{
    run->open = false;
}

void nccl_run_clear(NcclRun *run)
{
    g_free(run->name);
    g_free(run->device);
}

static char *device_name(const NcclRun *run)
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

/* The table of a run. Runs of a single size each, as scripts with loops write them, share one
 * table. */
static MeasuredTable *table_of(NcclRun *run)
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

void nccl_run_pass_over(NcclRun *run, const char *reason)
{
    MeasuredTable *table = table_of(run);
    table->passed++;
    if (!table->reason)
        table->reason = g_strdup(reason);
}

void nccl_run_add(NcclRun *run, double size, double time_us, double wrong)
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
