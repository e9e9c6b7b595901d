/* Reading reports of Nsight Systems. */
#include "data/formats/measured/nsys.h"

#include <sqlite3.h>
#include <string.h>

#include "data/base/assert.h"
#include "data/base/error.h"
#include "data/base/free.h"
#include "data/base/units.h"
#include "data/formats/measured/profile.h"

enum { MAX_EVENTS = 5000000, MAX_OPEN = 4096 };

/* --- ranges --- */

/* An NVTX range that is open. */
typedef struct {
    int64_t end;
    char *text;
    double seconds; /* of the kernels launched in it, beside those of ranges inside */
    char *kernel;   /* the name of the longest of them */
    double longest_s;
} Range;

typedef struct {
    const char *file;
    sqlite3 *db;
    Profile *profile;
    GArray *open; /* Range, the innermost last; of one thread */
    int64_t thread;
    uint64_t events, kernels, nccl_kernels, products, unsized;
    uint32_t ranks; /* GPUs that run kernels of NCCL */
    GArray *launch; /* double: seconds of each launch */
} Report;

static CLEAR_DEFINE(clear_range, Range, range, free_each(range->text, range->kernel));

/* "sizes = [[2, 3], [], [3, 5]]"; false if there are none. */
static bool read_sizes(const char *text, ProfileOperands *sizes)
{
    static const char KEY[] = "sizes = [";
    const char *at = strstr(text, KEY);
    *sizes = (ProfileOperands){.n = 0};
    if (!at)
        return false;
    uint32_t depth = 1;
    for (at += sizeof KEY - 1; *at && depth > 0;) {
        if (*at == '[' && ++depth == 2 && sizes->n < PROFILE_OPERANDS)
            sizes->n++;
        if (*at == ']')
            depth--;
        if (!g_ascii_isdigit(*at)) {
            at++;
            continue;
        }
        char *end;
        const double value = (double)g_ascii_strtoull(at, &end, 10);
        at = end;
        if (depth != 2 || sizes->n == 0)
            continue;
        uint32_t *n = &sizes->n_dims[sizes->n - 1];
        if (*n < PROFILE_MAX_DIMS)
            sizes->dim[sizes->n - 1][*n] = value < 1e9 ? value : 0;
        ++*n;
    }
    return depth == 0;
}

/* The number format in a kernel's name, NULL if it names none. */
static const char *format_of(const char *kernel)
{
    static const char *const FORMAT[][2] = {
        {"bf16", "bf16"}, {"fp16", "f16"},  {"f16", "f16"},    {"half", "f16"},
        {"h884", "f16"},  {"h1688", "f16"}, {"h16816", "f16"}, {"hgemm", "f16"},
        {"e4m3", "e4m3"}, {"e5m2", "e5m2"}, {"f64", "f64"},    {"dgemm", "f64"},
        {"f32", "f32"},   {"float", "f32"}, {"sgemm", "f32"},  {"s1688", "f32"}};
    for (size_t i = 0; i < G_N_ELEMENTS(FORMAT); i++)
        if (strstr(kernel, FORMAT[i][0]))
            return FORMAT[i][1];
    return NULL;
}

static bool begins(const Range *range, const char *name)
{
    return g_str_has_prefix(range->text, name);
}

/* aten::mm [m, k] [k, n], or aten::addmm, whose first operand is the bias. */
static void add_product(Report *report, const Range *range, const ProfileOperands *sizes)
{
    const uint32_t first = begins(range, "aten::addmm,");
    const char *format = format_of(range->kernel);
    if (sizes->n < first + 2 || sizes->n_dims[first] != 2 ||
        sizes->n_dims[first + 1] != 2)
        return;
    ProfileBin *bin = profile_product(report->profile, sizes->dim[first],
                                      sizes->dim[first + 1], format ? format : "f32");
    report->products++;
    if (bin)
        profile_add(bin, range->seconds);
}

/* An op on each element of its first operand. */
static void add_elementwise(Report *report, const Range *range,
                            const ProfileOperands *sizes)
{
    const char *format = format_of(range->kernel);
    ProfileBin *bin =
        profile_elementwise(report->profile, range->text, sizes, format ? format : "f32");
    if (bin)
        profile_add(bin, range->seconds);
}

/* One process may run the kernels of several GPUs, which end together: the longest counts. */
static void add_collective(Report *report, const Range *range,
                           const ProfileOperands *sizes)
{
    const char *format = format_of(range->kernel);
    double numbers = sizes->n > 0 && sizes->n_dims[0] <= PROFILE_MAX_DIMS ? 1 : 0;
    for (uint32_t d = 0; numbers > 0 && d < sizes->n_dims[0]; d++)
        numbers *= sizes->dim[0][d];
    ProfileBin *bin =
        format ? profile_collective(report->profile, range->text, numbers,
                                    numbers * report->ranks, report->ranks, format)
               : NULL;
    if (bin)
        profile_add(bin, range->longest_s);
    else
        report->unsized++;
}

static void close_last(Report *report)
{
    const Range *range = &g_array_index(report->open, Range, report->open->len - 1);
    ProfileOperands sizes;
    if (range->seconds > 0 && read_sizes(range->text, &sizes)) {
        if (begins(range, "aten::mm,") || begins(range, "aten::addmm,"))
            add_product(report, range, &sizes);
        else if (begins(range, "nccl:"))
            add_collective(report, range, &sizes);
        else
            add_elementwise(report, range, &sizes);
    }
    g_array_set_size(report->open, report->open->len - 1);
}

/* Closes the ranges that have ended at that time, or all of another thread. */
static void close_until(Report *report, int64_t thread, int64_t time)
{
    while (report->open->len > 0 &&
           (thread != report->thread ||
            g_array_index(report->open, Range, report->open->len - 1).end < time))
        close_last(report);
    report->thread = thread;
}

/* --- events --- */

static bool is_nccl(const char *kernel)
{
    return strstr(kernel, "nccl") != NULL;
}

/* Adds a kernel to the innermost range with sizes. */
static void add_kernel(Report *report, const char *name, int64_t start, double seconds)
{
    report->kernels++;
    report->nccl_kernels += is_nccl(name);
    for (uint32_t i = report->open->len; i-- > 0;) {
        Range *range = &g_array_index(report->open, Range, i);
        if (range->end < start || !strstr(range->text, "sizes = ["))
            continue;
        range->seconds += seconds;
        if (seconds > range->longest_s) {
            range->longest_s = seconds;
            put_block(range->kernel, g_strdup(name));
        }
        return;
    }
    report->unsized += is_nccl(name);
}

/* Rows: kind (0 a range, 1 a kernel), thread, start, end, text, seconds of the kernel, seconds of
 * the launch. */
static void add_event(Report *report, sqlite3_stmt *row)
{
    const bool launched = sqlite3_column_type(row, 1) != SQLITE_NULL;
    const int64_t thread = sqlite3_column_int64(row, 1),
                  start = sqlite3_column_int64(row, 2);
    const char *text = (const char *)sqlite3_column_text(row, 4);
    if (launched)
        close_until(report, thread, start);
    if (sqlite3_column_int(row, 0) == 1) {
        const double seconds = sqlite3_column_double(row, 5),
                     launch_s = sqlite3_column_double(row, 6);
        add_kernel(report, text ? text : "", start, seconds > 0 ? seconds : 0);
        if (launched && launch_s > 0)
            g_array_append_val(report->launch, launch_s);
    } else if (text && report->open->len < MAX_OPEN) {
        const Range range = {.end = sqlite3_column_int64(row, 3), .text = g_strdup(text)};
        g_array_append_val(report->open, range);
    }
}

/* --- tables --- */

static bool failed(const Report *report, GError **error)
{
    return refuse(error, "%s: %s", report->file, sqlite3_errmsg(report->db));
}

/* The number that the query gives for one text; 0 if it fails. */
static int64_t ask(const Report *report, const char *query, const char *text)
{
    sqlite3_stmt *row = NULL;
    int64_t number = 0;
    if (sqlite3_prepare_v2(report->db, query, -1, &row, NULL) == SQLITE_OK) {
        if (text)
            sqlite3_bind_text(row, 1, text, -1, SQLITE_STATIC);
        number = sqlite3_step(row) == SQLITE_ROW ? sqlite3_column_int64(row, 0) : 0;
    }
    sqlite3_finalize(row);
    return number;
}

/* Tables are made only for what was seen. Views are not taken: their queries are the file's. */
static bool has_table(const Report *report, const char *name)
{
    return ask(report,
               "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?1",
               name) > 0;
}

/* Whether a table has a column: versions of nsys differ in them. */
static bool has_column(const Report *report, const char *table, const char *column)
{
    g_autofree char *query = g_strdup_printf(
        "SELECT count(*) FROM pragma_table_info('%s') WHERE name = ?1", table);
    return ask(report, query, column) > 0;
}

/* The upper bits of globalTid and globalPid are the process. */
#define PROCESS(id) "(" id " / 16777216)"
#define KERNEL_NAME "(SELECT value FROM StringIds WHERE id = k.shortName)"

/* All events, thread by thread in the order of time, outer ranges before inner ones. */
static char *events_query(const Report *report)
{
    const bool ranges = has_table(report, "NVTX_EVENTS"),
               calls = has_table(report, "CUPTI_ACTIVITY_KIND_RUNTIME");
    GString *text = g_string_new(NULL);
    if (ranges)
        g_string_append_printf(
            text,
            "SELECT 0 AS kind, globalTid AS thread, start AS begun, end AS ended, %s AS "
            "name, 0 AS seconds, 0 AS launch FROM NVTX_EVENTS WHERE eventType IN (59, "
            "60) "
            "AND end IS NOT NULL UNION ALL ",
            !has_column(report, "NVTX_EVENTS", "textId") ? "text"
            : has_column(report, "NVTX_EVENTS", "text")
                ? "coalesce(text, (SELECT value FROM StringIds WHERE id = textId))"
                : "(SELECT value FROM StringIds WHERE id = textId)");
    g_string_append(text, "SELECT 1 AS kind, ");
    g_string_append(text, calls
                              ? "r.thread AS thread, r.begun AS begun, r.ended AS ended, "
                              : "NULL AS thread, k.start AS begun, k.end AS ended, ");
    g_string_append(text, KERNEL_NAME " AS name, (k.end - k.start) * 1e-9 AS seconds, ");
    g_string_append(text, calls ? "(r.ended - r.begun) * 1e-9" : "0");
    g_string_append(text, " AS launch FROM CUPTI_ACTIVITY_KIND_KERNEL AS k ");
    if (calls)
        g_string_append_printf(
            text,
            "LEFT JOIN (SELECT correlationId AS id, " PROCESS(
                "globalTid") " AS process, "
                             "min(globalTid) AS thread, min(start) AS begun, min(end) AS "
                             "ended "
                             "FROM CUPTI_ACTIVITY_KIND_RUNTIME GROUP BY 1, 2) AS r "
                             "ON r.id = k.correlationId%s ",
            has_column(report, "CUPTI_ACTIVITY_KIND_KERNEL", "globalPid")
                ? " AND r.process = " PROCESS("k.globalPid")
                : "");
    g_string_append(text, "ORDER BY thread, begun, kind, ended DESC");
    return g_string_free(text, FALSE);
}

static bool nsys_read_events(Report *report, GError **error)
{
    g_autofree char *query = events_query(report);
    sqlite3_stmt *row = NULL;
    int status = sqlite3_prepare_v2(report->db, query, -1, &row, NULL);
    while (status == SQLITE_OK || status == SQLITE_ROW) {
        status = sqlite3_step(row);
        if (status == SQLITE_ROW && ++report->events <= MAX_EVENTS)
            add_event(report, row);
        if (report->events > MAX_EVENTS)
            break;
    }
    const bool good = report->events > MAX_EVENTS
                          ? refuse(error, "%s: expected at most %d kernels and ranges",
                                   report->file, MAX_EVENTS)
                          : status == SQLITE_DONE || failed(report, error);
    sqlite3_finalize(row);
    while (report->open->len > 0)
        close_last(report);
    return good;
}

/* --- the report --- */

/* The name of the first GPU. Caller frees. */
static char *device_name(const Report *report)
{
    sqlite3_stmt *row = NULL;
    char *name = NULL;
    if (has_table(report, "TARGET_INFO_GPU") &&
        sqlite3_prepare_v2(report->db, "SELECT name FROM TARGET_INFO_GPU LIMIT 1", -1,
                           &row, NULL) == SQLITE_OK &&
        sqlite3_step(row) == SQLITE_ROW && sqlite3_column_text(row, 0))
        name = g_utf8_make_valid((const char *)sqlite3_column_text(row, 0), -1);
    sqlite3_finalize(row);
    if (name)
        g_strdelimit(name, ",#\"\r\n", ' ');
    return name && *name ? name : (g_free(name), g_strdup("gpu"));
}

static double median(GArray *list)
{
    g_array_sort(list,
                 number_compare); /* qsort takes no NULL, which an empty array may be */
    return list->len > 0 ? g_array_index(list, double, list->len / 2) : 0;
}

static const char *reason_of(const Report *report)
{
    return report->kernels == 0 ? "the report has no GPU kernels"
           : report->products == 0
               ? "no shapes of matrix products: record under "
                 "torch.autograd.profiler.emit_nvtx(record_shapes=True)"
           : report->unsized > 0
               ? "collectives without a size, number format or second GPU"
               : NULL;
}

static void add_table(Report *report, GArray *list, GArray *tables)
{
    g_autofree char *device = device_name(report);
    MeasuredTable table = {.file = g_strdup(report->file),
                           .ranks = MAX(report->ranks, 1),
                           .passed = (uint32_t)MIN(report->unsized, UINT32_MAX),
                           .reason = g_strdup(reason_of(report)),
                           .first = list->len};
    table.test =
        g_strdup_printf("nsys: %" G_GUINT64_FORMAT " kernels, launches of %.3g us",
                        report->kernels, 1e6 * median(report->launch));
    profile_rows(report->profile, device, list, &table.smallest, &table.largest);
    table.rows = list->len - table.first;
    table.device = g_steal_pointer(&device);
    KILTER_ASSERT(table.rows == 0 || table.smallest <= table.largest);
    g_array_append_val(tables, table);
}

static bool read_report(Report *report, GError **error)
{
    if (!has_table(report, "CUPTI_ACTIVITY_KIND_KERNEL") ||
        !has_table(report, "StringIds"))
        return refuse(error,
                      "%s: expected a report of Nsight Systems with kernels (tables "
                      "CUPTI_ACTIVITY_KIND_KERNEL and StringIds)",
                      report->file);
    report->ranks = (uint32_t)ask(
        report,
        "SELECT count(DISTINCT k.deviceId) FROM CUPTI_ACTIVITY_KIND_KERNEL AS k "
        "WHERE " KERNEL_NAME " LIKE '%nccl%'",
        NULL);
    return nsys_read_events(report, error);
}

bool nsys_read(const char *file, GArray *list, GArray *tables, GError **error)
{
    Report report = {.file = file,
                     .profile = profile_new(),
                     .open = array_owning(Range, clear_range),
                     .launch = g_array_new(FALSE, FALSE, sizeof(double))};
    const bool opened =
        sqlite3_open_v2(file, &report.db, SQLITE_OPEN_READONLY, NULL) == SQLITE_OK;
    sqlite3_db_config(report.db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(report.db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    const bool good = opened ? read_report(&report, error) : failed(&report, error);
    if (good)
        add_table(&report, list, tables);
    sqlite3_close(report.db);
    unref_arrays(report.open, report.launch);
    profile_free(report.profile);
    return good;
}
