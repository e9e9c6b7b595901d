/* The rows of a result store as text, for tests that compare sweeps. */
#ifndef KILTER_TESTS_SUPPORT_STORED_H
#define KILTER_TESTS_SUPPORT_STORED_H

#include <sqlite3.h>

#include "tests/support/program.h"

static inline int stored_add_row(void *data, int n, char **value, char **name)
{
    (void)name;
    GString *text = data;
    for (int i = 0; i < n; i++)
        g_string_append_printf(text, "%s|", value[i] ? value[i] : "NULL");
    g_string_append_c(text, '\n');
    return 0;
}

/* A row per line, with | after each column. Caller frees. */
static inline char *stored_ask(const Sandbox *box, const char *file, const char *sql)
{
    g_autofree char *path = g_build_filename(box->folder, file, NULL);
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), SQLITE_OK);
    sqlite3_busy_timeout(db, 60000);
    GString *text = g_string_new(NULL);
    assert_int_equal(sqlite3_exec(db, sql, stored_add_row, text, NULL), SQLITE_OK);
    sqlite3_close(db);
    return g_string_free(text, FALSE);
}

/* All that two runs must agree in: every column but the run's id and the wall-clock ones. Caller
 * frees. */
static inline char *stored_rows(const Sandbox *box, const char *file)
{
    return stored_ask(box, file,
                      "SELECT hash, experiment, config, model, cluster, planner, "
                      "fidelity, granularity, gpus, seed, status, message, "
                      "iteration_time_s, fractional_time_s, lower_bound_s, gap, "
                      "optimal, stages, ratios, peak_memory_bytes, "
                      "communication_s, computation_s, detail FROM result ORDER BY hash");
}

/* Both stores have the same results. */
static inline void assert_same_rows(const Sandbox *box, const char *file,
                                    const char *other)
{
    g_autofree char *got = stored_rows(box, file);
    g_autofree char *want = stored_rows(box, other);
    assert_string_not_equal(want, "");
    assert_string_equal(got, want);
}

#endif
