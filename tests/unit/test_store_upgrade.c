/* Stores of earlier versions (tests/golden/store-N.sql), and what many answers have in common. */
#include "data/data.h"
#include "data/store/store.h"
#include "tests/test.h"

#include <glib/gstdio.h>
#include <sqlite3.h>

enum { VERSION_AT = 63 }; /* the last byte of user_version in the file's header */

typedef struct {
    char *dir, *file, *other;
} Place;

static int set_up(void **state)
{
    Place *place = g_new0(Place, 1);
    place->dir = g_dir_make_tmp("kilter-store-XXXXXX", NULL);
    place->file = g_build_filename(place->dir, "old.db", NULL);
    place->other = g_build_filename(place->dir, "other.db", NULL);
    *state = place;
    return place->dir ? 0 : -1;
}

static int tear_down(void **state)
{
    Place *place = *state;
    static const char *const SUFFIX[] = {"", "-wal", "-shm", "-lock"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(SUFFIX); i++) {
        g_autofree char *file = g_strconcat(place->file, SUFFIX[i], NULL);
        g_autofree char *other = g_strconcat(place->other, SUFFIX[i], NULL);
        g_remove(file);
        g_remove(other);
    }
    int failed = g_rmdir(place->dir);
    g_free(place->dir);
    g_free(place->file);
    g_free(place->other);
    g_free(place);
    return failed;
}

static void run_sql(const char *file, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

enum { OLDEST = 3, NOW = 6 }; /* schema versions */

static void make_old(const Place *place, int version)
{
    g_autofree char *sql = NULL;
    g_autofree char *file =
        g_strdup_printf(KILTER_HOME "/tests/golden/store-%d.sql", version);
    g_remove(place->file);
    assert_true(g_file_get_contents(file, &sql, NULL, NULL));
    run_sql(place->file, sql);
}

static void append_row(uint32_t n_columns, char **value, char **column, void *data)
{
    (void)column;
    for (uint32_t i = 0; i < n_columns; i++)
        g_string_append_printf(data, "%s%s", i ? "|" : "", value[i] ? value[i] : "NULL");
    g_string_append_c(data, '\n');
}

/* All that a row says, member by member, without the question's release and number of answers. */
static const char ROWS[] =
    "SELECT replace(replace(config, '\"answers\":1,', ''), ',\"version\":\"1.4.0\"', "
    "''), "
    "model, cluster, entry, axes, planner, gpus, status, "
    "message, printf('%!.17g', iteration_time_s), stages, plan, "
    "peak_memory_bytes, json_extract(detail, '$.devices'), "
    "json_extract(detail, '$.gates'), json_extract(detail, '$.parameters'), "
    "json_extract(detail, '$.placement'), (SELECT count(*) FROM "
    "json_each(detail)), command, host, started FROM result JOIN run ON "
    "run.id = result.run ORDER BY ordinal";

/* Caller frees. */
static char *rows(Store *store)
{
    g_autoptr(GString) text = g_string_new("");
    GError *error = NULL;
    store_query(store, ROWS, append_row, text, &error);
    assert_no_error(error);
    return g_strdup(text->str);
}

static int append_old(void *data, int n, char **value, char **column)
{
    append_row((uint32_t)n, value, column, data);
    return 0;
}

/* The rows of a store of the version before, by the view in its file. Caller frees. */
static char *old_rows(const Place *place)
{
    sqlite3 *db = NULL;
    GString *text = g_string_new("");
    assert_int_equal(sqlite3_open(place->file, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, ROWS, append_old, text, NULL), SQLITE_OK);
    sqlite3_close(db);
    return g_string_free(text, FALSE);
}

static uint8_t version_of(const char *file)
{
    g_autofree char *bytes = NULL;
    gsize n;
    assert_true(g_file_get_contents(file, &bytes, &n, NULL));
    assert_true(n > VERSION_AT);
    return (uint8_t)bytes[VERSION_AT];
}

static void check_reading_leaves_it(const Place *place, int version)
{
    make_old(place, version);
    g_autofree char *want = old_rows(place);
    g_autofree char *before = NULL, *after = NULL;
    gsize n, n_after;
    GError *error = NULL;
    assert_true(g_file_get_contents(place->file, &before, &n, NULL));
    {
        g_autoptr(Store) store = store_open_read(place->file, &error);
        assert_no_error(error);
        g_autofree char *got = rows(store);
        assert_string_equal(got, want);
    }
    assert_true(g_file_get_contents(place->file, &after, &n_after, NULL));
    assert_int_equal(n_after, n);
    assert_memory_equal(after, before, n);
    assert_int_equal(version_of(place->file), version);
}

static void test_reading_leaves_it(void **state)
{
    for (int version = OLDEST; version < NOW; version++)
        check_reading_leaves_it(*state, version);
}

static void check_writing_renews_it(const Place *place, int version)
{
    make_old(place, version);
    g_autofree char *want = old_rows(place);
    for (int i = 0; i < 2; i++) {
        GError *error = NULL;
        g_autoptr(Store) store = i == 0 ? store_open(place->file, &error)
                                        : store_open_read(place->file, &error);
        assert_no_error(error);
        g_autofree char *got = rows(store);
        assert_string_equal(got, want);
        g_autoptr(GString) common = g_string_new("");
        store_query(store,
                    "SELECT count(*), count(DISTINCT common), sum(instr(detail, "
                    "'placement')) FROM main.answer",
                    append_row, common, &error);
        assert_no_error(error);
        assert_string_equal(common->str, "4|1|0\n"); /* two plans have the same members */
    }
    assert_int_equal(version_of(place->file), NOW);
}

static void test_writing_renews_it(void **state)
{
    for (int version = OLDEST; version < NOW; version++)
        check_writing_renews_it(*state, version);
}

static void check_hash(uint32_t n_columns, char **value, char **column, void *data)
{
    (void)n_columns;
    (void)column;
    g_auto(StoreQuestion) question = {.subject = store_part_new(value[1]),
                                      .cluster = store_part_new(value[2]),
                                      .method = store_part_new(value[3]),
                                      .seed = g_ascii_strtoull(value[4], NULL, 10)};
    g_autofree char *want = store_question_hash(&question);
    assert_string_equal(value[0], want);
    *(uint32_t *)data += strstr(value[3], "{\"answers\":1,") == value[3];
}

/* A question is known by its hash; those of version 5 are today's, those before are not. */
static void test_questions_keep_their_hashes(void **state)
{
    const Place *place = *state;
    for (int version = OLDEST; version < NOW; version++) {
        GError *error = NULL;
        uint32_t n = 0;
        make_old(place, version);
        g_autoptr(Store) store = store_open(place->file, &error);
        assert_no_error(error);
        store_query(store,
                    "SELECT lower(hex(answer.hash)), s.text, c.text, m.text, seed FROM "
                    "main.answer JOIN part AS s ON s.id = subject JOIN part AS c ON c.id "
                    "= answer.cluster JOIN part AS m ON m.id = method",
                    check_hash, &n, &error);
        assert_no_error(error);
        assert_int_equal(n, version == 5 ? 4 : 0);
    }
}

/* Changes that reading by both ways refuses, and that leave the version before. */
static void check_what_is_wrong_is_refused(const Place *place, int version)
{
    static const char *const CHANGE[] = {
        "UPDATE answer SET iteration_time_s = 1 WHERE id = 1",
        "UPDATE asked SET model = 'x'",
        "UPDATE part SET text = '{}' WHERE id = 1",
        "DROP VIEW best",
        "CREATE TRIGGER t AFTER INSERT ON part BEGIN DELETE FROM run; END",
        "CREATE TABLE mine (x)",
        "CREATE VIEW before_run AS SELECT 1",
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(CHANGE); i++) {
        make_old(place, version);
        run_sql(place->file, CHANGE[i]);
        for (int k = 0; k < 2; k++) {
            g_autoptr(GError) error = NULL;
            g_autoptr(Store) store = k == 0 ? store_open(place->file, &error)
                                            : store_open_read(place->file, &error);
            if (store)
                fail_msg("%s", CHANGE[i]);
            assert_error(error, KILTER_ERROR_INPUT, "left untouched");
        }
        assert_int_equal(version_of(place->file), version);
        g_remove(place->file);
    }
}

static void test_what_is_wrong_is_refused(void **state)
{
    for (int version = OLDEST; version < NOW; version++)
        check_what_is_wrong_is_refused(*state, version);
}

/* The place in the file of the root page of a table. */
static gsize page_of(const char *file, const char *table)
{
    sqlite3 *db = NULL;
    sqlite3_stmt *row = NULL;
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    assert_int_equal(
        sqlite3_prepare_v2(db,
                           "SELECT (rootpage - 1) * page_size FROM sqlite_schema, "
                           "pragma_page_size WHERE name = ?1",
                           -1, &row, NULL),
        SQLITE_OK);
    sqlite3_bind_text(row, 1, table, -1, SQLITE_STATIC);
    assert_int_equal(sqlite3_step(row), SQLITE_ROW);
    const gsize at = (gsize)sqlite3_column_int64(row, 0);
    sqlite3_finalize(row);
    sqlite3_close(db);
    return at;
}

/* A page that says that it has no rows: what is there is sealed, but what is missing has no
 * seal. */
static void check_lost_rows_are_refused(const Place *place, int version)
{
    enum { CELLS_AT = 3 }; /* number of cells in a page's header, two bytes */
    static const char *const TABLE[] = {"asked", "answer", "run", "part"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(TABLE); i++) {
        g_autofree char *bytes = NULL;
        gsize n;
        make_old(place, version);
        const gsize at = page_of(place->file, TABLE[i]) + CELLS_AT;
        assert_true(g_file_get_contents(place->file, &bytes, &n, NULL) && at + 1 < n);
        assert_true(bytes[at] || bytes[at + 1]);
        bytes[at] = bytes[at + 1] = 0;
        assert_true(g_file_set_contents(place->file, bytes, (gssize)n, NULL));
        for (int k = 0; k < 2; k++) {
            g_autoptr(GError) error = NULL;
            g_autoptr(Store) store = k == 0 ? store_open(place->file, &error)
                                            : store_open_read(place->file, &error);
            assert_null(store);
            assert_error(error, KILTER_ERROR_INPUT, "left untouched");
        }
        assert_int_equal(version_of(place->file), version);
        g_remove(place->file);
    }
}

static void test_lost_rows_are_refused(void **state)
{
    for (int version = OLDEST; version < NOW; version++)
        check_lost_rows_are_refused(*state, version);
}

/* A store of version 2 has other tables: its rows are read, and written anew, with all that they
 * said. */
static void test_version_2(void **state)
{
    const Place *place = *state;
    static const char ASK[] =
        "SELECT experiment, model, cluster, entry, planner, fidelity, gpus, seed, "
        "status, "
        "message, printf('%.9g', iteration_time_s), stages, peak_memory_bytes, "
        "json_extract(plan, '$.ratios'), json_extract(detail, '$.devices[0].n'), "
        "json_extract(config, '$.method.options.beam'), host, started, ordinal FROM "
        "result JOIN run ON run.id = result.run ORDER BY experiment, ordinal";
#define ROW(experiment, batch, planner, end)                            \
    experiment "|synthetic:batch=" batch                                \
               ",layers=1,forward=0.01s,backward=0.02s,gradient=4000B|" \
               "rtx-4090-8|" planner "|" planner "|stage|8|1|" end
    static const char want[] =
        ROW("old", "1", "dp-ev",
            "ok|NULL|0.0300764357|2|20009|[[1.0]]|1|500|vm|2026-11-22T20:15:13Z|1\n")
            ROW("old", "2", "dp-ev",
                "ok|NULL|0.0300764357|2|28017|[[1.0]]|1|500|vm|2026-11-22T20:15:13Z|2\n")
                ROW("old", "2", "megatron",
                    "error|megatron is for models with "
                    "attention|0|0|0|NULL|NULL|500|vm|2026-11-22T20:15:13Z|3\n")
                    ROW("other", "1", "dp-ev",
                        "ok|NULL|0.0300764357|2|20009|[[1.0]]|1|500|vm|2026-11-22T20:15:"
                        "13Z|1\n");
    make_old(place, 2);
    for (int i = 0; i < 3; i++) { /* read, renewed, and read again */
        GError *error = NULL;
        g_autoptr(Store) store = i == 1 ? store_open(place->file, &error)
                                        : store_open_read(place->file, &error);
        assert_no_error(error);
        g_autoptr(GString) got = g_string_new("");
        store_query(store, ASK, append_row, got, &error);
        assert_no_error(error);
        assert_string_equal(got->str, want);
        assert_int_equal(version_of(place->file), i == 0 ? 2 : NOW);
    }
}

/* Other tables, and rows that are not what their hash says, are refused, and left as they are. */
static void test_wrong_version_2(void **state)
{
    const Place *place = *state;
    static const char *const CHANGE[] = {
        "UPDATE result SET config = '{}' WHERE seed = 1", "CREATE TABLE mine (x)",
        "UPDATE result SET hash = replace(hash, 'a', 'b')", "DROP INDEX result_run"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(CHANGE); i++) {
        g_autoptr(GError) error = NULL;
        make_old(place, 2);
        run_sql(place->file, CHANGE[i]);
        g_autoptr(Store) store = store_open(place->file, &error);
        if (store)
            fail_msg("%s", CHANGE[i]);
        assert_error(error, KILTER_ERROR_INPUT, "left untouched");
        assert_int_equal(version_of(place->file), 2);
        g_remove(place->file);
    }
}

/* --- what many answers have in common --- */

static void put(Store *store, uint32_t seed, const char *detail, const char *common)
{
    g_auto(StoreQuestion) question = {.subject = store_part_new("{\"s\":1}"),
                                      .cluster = store_part_new("{\"c\":1}"),
                                      .method = store_part_new("{\"m\":1}"),
                                      .seed = seed};
    g_autofree char *hash = store_question_hash(&question);
    g_autoptr(StorePart) part = common ? store_part_new(common) : NULL;
    const StoreResult result = {.asked = {.experiment = "x",
                                          .hash = hash,
                                          .model = "m",
                                          .cluster = "c",
                                          .entry = "hap",
                                          .ordinal = seed},
                                .question = question,
                                .planner = "hap",
                                .fidelity = "stage",
                                .granularity = "gpu",
                                .gpus = 1,
                                .status = "ok",
                                .detail = detail,
                                .common = part};
    GError *error = NULL;
    store_put(store, &result, &error);
    assert_no_error(error);
}

static Store *begin(const char *file)
{
    GError *error = NULL;
    Store *store = store_open(file, &error);
    assert_no_error(error);
    store_begin_run(store, "x", "", &error);
    assert_no_error(error);
    return store;
}

static void test_common_members_are_kept_once(void **state)
{
    const Place *place = *state;
    static const char want[] = "1|{\"b\":1,\"a\":1}\n2|{\"b\":1,\"a\":2}\n3|{\"b\":1}\n"
                               "4|{\"a\":4}\n5|NULL\n";
    {
        g_autoptr(Store) store = begin(place->other);
        put(store, 1, "{\"a\":1}", "{\"b\":1}");
        put(store, 2, "{\"a\":2}", "{\"b\":1}");
        put(store, 3, NULL, "{\"b\":1}");
        put(store, 4, "{\"a\":4}", NULL);
        put(store, 5, NULL, NULL);
    }
    g_autoptr(Store) store = begin(place->file);
    GError *error = NULL;
    uint32_t added;
    put(store, 6, "{\"a\":6}", "{\"z\":0}"); /* so that ids differ */
    store_merge(store, place->other, &added, &error);
    assert_no_error(error);
    g_autoptr(GString) got = g_string_new(""), parts = g_string_new("");
    store_query(store, "SELECT seed, detail FROM result WHERE seed < 6 ORDER BY seed",
                append_row, got, &error);
    assert_no_error(error);
    assert_string_equal(got->str, want);
    store_query(store, "SELECT count(*) FROM part", append_row, parts, &error);
    assert_no_error(error);
    assert_string_equal(parts->str, "5\n"); /* three of the question, two in common */
}

static void test_common_members_are_compared(void **state)
{
    const Place *place = *state;
    {
        g_autoptr(Store) store = begin(place->other);
        put(store, 1, "{\"a\":1}", "{\"b\":1}");
    }
    g_autoptr(Store) store = begin(place->file);
    g_autoptr(GError) error = NULL;
    uint32_t added;
    put(store, 1, "{\"a\":1}", "{\"b\":2}");
    assert_false(store_merge(store, place->other, &added, &error));
    assert_error(error, KILTER_ERROR_FAILED, "another answer to the same question");
}

static void test_a_part_is_of_this_version(void **state)
{
    const Place *place = *state;
    make_old(place, OLDEST);
    g_autoptr(Store) store = begin(place->other);
    g_autoptr(GError) error = NULL;
    uint32_t added;
    assert_false(store_merge(store, place->file, &added, &error));
    assert_error(error, KILTER_ERROR_INPUT, "makes it one of version 6");
    assert_int_equal(version_of(place->file), 3);
}

int main(void)
{
#define UPGRADE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        UPGRADE_TEST(test_reading_leaves_it),
        UPGRADE_TEST(test_writing_renews_it),
        UPGRADE_TEST(test_questions_keep_their_hashes),
        UPGRADE_TEST(test_lost_rows_are_refused),
        UPGRADE_TEST(test_what_is_wrong_is_refused),
        UPGRADE_TEST(test_version_2),
        UPGRADE_TEST(test_wrong_version_2),
        UPGRADE_TEST(test_common_members_are_kept_once),
        UPGRADE_TEST(test_common_members_are_compared),
        UPGRADE_TEST(test_a_part_is_of_this_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
