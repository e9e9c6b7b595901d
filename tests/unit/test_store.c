/* The result store. Numbers in test names are the invariants of data/store/store.h. */
#include "data/base/version.h"
#include "data/data.h"
#include "data/store/store.h"
#include "tests/test.h"

#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- a folder of its own for every test --- */

typedef struct {
    char *dir, *file;
} Place;

static int set_up(void **state)
{
    Place *place = g_new0(Place, 1);
    place->dir = g_dir_make_tmp("kilter-store-XXXXXX", NULL);
    place->file = g_build_filename(place->dir, "results.db", NULL);
    *state = place;
    return place->dir ? 0 : -1;
}

/* Names in the folder, sorted, joined by spaces. Caller frees. */
static char *list(const Place *place)
{
    g_autoptr(GDir) dir = g_dir_open(place->dir, 0, NULL);
    GList *names = NULL;
    for (const char *name; (name = g_dir_read_name(dir));)
        names = g_list_insert_sorted(names, g_strdup(name), (GCompareFunc)g_strcmp0);
    g_autoptr(GString) text = g_string_new("");
    for (GList *l = names; l; l = l->next)
        g_string_append_printf(text, "%s%s", text->len ? " " : "", (char *)l->data);
    g_list_free_full(names, g_free);
    return g_strdup(text->str);
}

static int tear_down(void **state)
{
    Place *place = *state;
    g_autofree char *names = list(place);
    g_auto(GStrv) name = g_strsplit(names, " ", -1);
    g_chmod(place->dir, 0700);
    for (uint32_t i = 0; name[i]; i++) {
        g_autofree char *path = g_build_filename(place->dir, name[i], NULL);
        g_remove(path);
    }
    int failed = g_rmdir(place->dir);
    g_free(place->dir);
    g_free(place->file);
    g_free(place);
    return failed;
}

/* --- results number 0, 1, ...: every column follows from the number --- */

typedef struct {
    StoreResult result;
    char *hash, *model, *plan;
} Row;

static void row_clear(Row *row)
{
    store_question_clear(&row->result.question);
    g_free(row->hash);
    g_free(row->model);
    g_free(row->plan);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Row, row_clear)

static Row row_of(uint32_t number)
{
    g_autofree char *subject = g_strdup_printf("{\"number\": %u}", number);
    Row row = {.model = g_strdup_printf("model-%u", number),
               .plan = g_strdup_printf("{\"ratios\": [[0.25, 0.75], [%u, 0]]}", number)};
    row.result = (StoreResult){.question = {.subject = store_part_new(subject),
                                            .cluster = store_part_new("{\"c\": 1}"),
                                            .method = store_part_new("{\"m\": 1}"),
                                            .seed = 7 * (uint64_t)number},
                               .planner = "hap",
                               .fidelity = "stage",
                               .granularity = "machine",
                               .gpus = number + 1,
                               .status = "ok",
                               .iteration_time_s = number + 0.5,
                               .fractional_time_s = number + 0.25,
                               .lower_bound_s = 0.125,
                               .gap = 3,
                               .optimal = number % 2,
                               .stages = number + 2,
                               .plan = row.plan,
                               .peak_memory_bytes = UINT64_C(1) << 40,
                               .communication_s = 0.5,
                               .computation_s = number,
                               .search_time_s = 0.01,
                               .balance_time_s = 0.02};
    row.hash = store_question_hash(&row.result.question);
    row.result.asked = (StoreAsked){.experiment = "test",
                                    .hash = row.hash,
                                    .model = row.model,
                                    .cluster = "hap-8",
                                    .entry = "hap:ratios=own",
                                    .ordinal = number};
    return row;
}

/* Whether the store has the row, as the experiment asks it. */
static bool find(Store *store, const Row *row, const char *experiment)
{
    StoreAsked asked = row->result.asked;
    GError *error = NULL;
    bool has = false;
    asked.experiment = experiment;
    store_find(store, &asked, 1, &has, &error);
    assert_no_error(error);
    return has;
}

static void put(Store *store, uint32_t number)
{
    g_auto(Row) row = row_of(number);
    GError *error = NULL;
    store_put(store, &row.result, &error);
    assert_no_error(error);
}

static Store *open_store(const char *file)
{
    GError *error = NULL;
    Store *store = store_open(file, &error);
    assert_no_error(error);
    store_begin_run(store, "kilter sweep test.yaml", "abc", &error);
    assert_no_error(error);
    return store;
}

static Store *open_read(const char *file)
{
    GError *error = NULL;
    Store *store = store_open_read(file, &error);
    assert_no_error(error);
    return store;
}

static void append_row(uint32_t n_columns, char **value, char **column, void *data)
{
    (void)column;
    for (uint32_t i = 0; i < n_columns; i++)
        g_string_append_printf(data, "%s%s", i ? "|" : "", value[i] ? value[i] : "NULL");
    g_string_append_c(data, '\n');
}

/* Rows as text, one per line, columns separated by |. Caller frees. */
static char *query(Store *store, const char *sql)
{
    g_autoptr(GString) text = g_string_new("");
    GError *error = NULL;
    store_query(store, sql, append_row, text, &error);
    assert_no_error(error);
    return g_strdup(text->str);
}

static void assert_query(Store *store, const char *sql, const char *want)
{
    g_autofree char *got = query(store, sql);
    assert_string_equal(got, want);
}

/* Rows number 0 to n-1 exist, each once and complete, each with its run, and no run is without
 * results. */
static void assert_whole(const char *file, uint32_t n)
{
    g_autoptr(Store) store = open_read(file);
    g_autoptr(GString) want = g_string_new("");
    for (uint32_t i = 0; i < n; i++)
        g_string_append_printf(want,
                               "{\"number\": %u}|model-%u|%u|%u|%.1f|%.2f|[[0.25,0.75],"
                               "[%u,0]]|%.1f\n",
                               i, i, i + 1, 7 * i, i + 0.5, i + 0.25, i, (double)i);
    assert_query(
        store,
        "SELECT subject, model, gpus, seed, iteration_time_s, fractional_time_s, "
        "ratios, computation_s FROM result ORDER BY gpus",
        want->str);
    assert_query(store,
                 "SELECT count(*) FROM result LEFT JOIN run ON run.id = result.run "
                 "WHERE run.id IS NULL",
                 "0\n");
    assert_query(store,
                 "SELECT count(*) FROM run WHERE id NOT IN (SELECT run FROM answer)",
                 "0\n");
}

/* --- writing and reading --- */

static void test_a_result_comes_back(void **state)
{
    const Place *place = *state;
    g_autoptr(Store) store = open_store(place->file);
    put(store, 3);
    assert_query(
        store,
        "SELECT experiment, subject, options, model, cluster, entry, planner, "
        "fidelity, granularity, gpus, seed, status, message, iteration_time_s, "
        "fractional_time_s, lower_bound_s, gap, optimal, stages, ratios, "
        "peak_memory_bytes, communication_s, computation_s, search_time_s, "
        "balance_time_s, detail, ordinal FROM result",
        "test|{\"number\": 3}|NULL|model-3|hap-8|hap:ratios=own|hap|stage|machine|"
        "4|21|ok|NULL|3.5|3.25|0.125|3.0|1|5|[[0.25,0.75],[3,0]]|1099511627776|"
        "0.5|3.0|0.01|0.02|NULL|3\n");
    assert_query(store, "SELECT config FROM result",
                 "{\"cluster\":{\"c\": 1},\"method\":{\"m\": 1},\"seed\":21,"
                 "\"subject\":{\"number\": 3}}\n");
    g_autofree char *lead = query(
        store, "SELECT command, version, revision, host FROM result JOIN run ON run.id = "
               "run");
    g_autofree char *want = g_strdup_printf(
        "kilter sweep test.yaml|" KILTER_VERSION "|abc|%s\n", g_get_host_name());
    assert_string_equal(lead, want);
}

static void test_what_is_not_finite_is_null(void **state)
{
    const Place *place = *state;
    g_autoptr(Store) store = open_store(place->file);
    g_auto(Row) row = row_of(0);
    row.result.status = "oom";
    row.result.message = "device 0 lacks 5 bytes";
    row.result.iteration_time_s = NAN;
    row.result.gap = INFINITY;
    GError *error = NULL;
    store_put(store, &row.result, &error);
    assert_no_error(error);
    assert_query(store, "SELECT status, message, iteration_time_s, gap FROM result",
                 "oom|device 0 lacks 5 bytes|NULL|NULL\n");
}

static void test_1_a_configuration_is_held_once(void **state)
{
    const Place *place = *state;
    g_autoptr(Store) store = open_store(place->file);
    put(store, 0);
    g_auto(Row) again = row_of(0);
    again.result.iteration_time_s = 99;
    GError *error = NULL;
    assert_true(store_put(store, &again.result, &error));
    assert_query(store, "SELECT iteration_time_s FROM result", "0.5\n");

    assert_true(find(store, &again, "test"));
    g_auto(Row) other = row_of(1);
    assert_false(find(store, &other, "test"));
}

/* A configuration of two experiments in one store is evaluated once, and belongs to both. */
static void test_1_another_experiments_result_is_taken_over(void **state)
{
    const Place *place = *state;
    g_autoptr(Store) store = open_store(place->file);
    put(store, 0);
    g_auto(Row) row = row_of(0);
    g_autoptr(Store) reader = open_read(place->file);
    assert_true(find(reader, &row, "other"));
    assert_query(store, "SELECT count(*) FROM result",
                 "1\n"); /* who reads asks nothing */
    for (int i = 0; i < 2; i++)
        assert_true(find(store, &row, "other"));
    assert_query(store,
                 "SELECT count(*), count(DISTINCT experiment), count(DISTINCT run),"
                 " count(DISTINCT config), min(iteration_time_s), max(iteration_time_s)"
                 " FROM result",
                 "2|2|1|1|0.5|0.5\n");
    assert_query(store, "SELECT count(*) FROM answer", "1\n");
}

/* The configurations that an experiment asks for now, under its names and in its order, whatever
 * else the store has. */
static void test_1_an_experiment_sees_what_it_asks(void **state)
{
    const Place *place = *state;
    {
        g_autoptr(Store) store = open_store(place->file);
        for (uint32_t i = 0; i < 6; i++)
            put(store, i);
    }
    g_autoptr(Store) store = open_read(place->file);
    g_auto(Row) first = row_of(4), second = row_of(1), absent = row_of(9);
    StoreAsked asked[] = {first.result.asked, absent.result.asked, second.result.asked};
    GError *error = NULL;
    for (uint32_t i = 0; i < G_N_ELEMENTS(asked); i++) {
        asked[i].experiment = "mine";
        asked[i].model = "m";
        asked[i].ordinal = i;
    }
    for (int again = 0; again < 2; again++) {
        assert_true(store_select(store, asked, G_N_ELEMENTS(asked), &error));
        assert_query(store,
                     "SELECT experiment, model, ordinal, iteration_time_s FROM result",
                     "mine|m|0|4.5\nmine|m|2|1.5\n");
        assert_query(store, "SELECT best_time_s FROM best", "1.5\n");
    }
}

/* --- axes as columns --- */

static void put_with_axes(Store *store, uint32_t number, const char *axes)
{
    g_auto(Row) row = row_of(number);
    GError *error = NULL;
    row.result.asked.axes = axes;
    store_put(store, &row.result, &error);
    assert_no_error(error);
}

static const char BY_AXES[] =
    "SELECT ordinal, \"model.image\", \"planner.bucket\", iteration_time_s FROM "
    "configuration ORDER BY ordinal";

static void test_axes_are_columns(void **state)
{
    const Place *place = *state;
    {
        g_autoptr(Store) store = open_store(place->file);
        put(store, 0);
        assert_query(store, "SELECT ordinal, model, iteration_time_s FROM configuration",
                     "0|model-0|0.5\n");
        put_with_axes(store, 1, "{\"model.image\": \"32\"}");
        put_with_axes(store, 2,
                      "{\"model.image\": \"64\", \"planner.bucket\": \"25 MiB\"}");
        put_with_axes(store, 3, "{\"planner.bucket\": \"0\"}");
    }
    g_autofree char *other = g_strconcat(place->file, "-other", NULL);
    GError *error = NULL;
    uint32_t added = 0;
    g_autoptr(Store) store = open_read(place->file);
    const char *const want =
        "0|NULL|NULL|0.5\n1|32|NULL|1.5\n2|64|25 MiB|2.5\n3|NULL|0|3.5\n";
    assert_query(store, BY_AXES, want);
    /* Merging brings the axes along. */
    g_autoptr(Store) merged = open_store(other);
    assert_true(store_merge(merged, place->file, &added, &error));
    assert_query(merged, BY_AXES, want);
    g_remove(other);
}

static void test_1_the_hash_is_the_configurations(void **state)
{
    const Place *place = *state;
    g_autoptr(Store) store = open_store(place->file);
    g_auto(Row) row = row_of(0), other = row_of(1);
    row.result.asked.hash = other.hash;
    g_autoptr(GError) error = NULL;
    assert_false(store_put(store, &row.result, &error));
    assert_error(error, KILTER_ERROR_FAILED, "the SHA-256 of the question");
}

/* A result that the schema refuses leaves nothing behind, not even its run; neither does an
 * existing one. */
static void test_2_all_of_a_result_or_nothing(void **state)
{
    const Place *place = *state;
    g_autoptr(Store) store = open_store(place->file);
    static const char *const wrong[] = {"fine", NULL};
    for (uint32_t i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_auto(Row) row = row_of(0);
        row.result.status = wrong[i];
        g_autoptr(GError) error = NULL;
        assert_false(store_put(store, &row.result, &error));
        assert_error(error, KILTER_ERROR_FAILED, "cannot write a result");
    }
    g_auto(Row) seed = row_of(0);
    seed.result.question.seed = UINT64_MAX;
    g_autoptr(GError) error = NULL;
    assert_false(store_put(store, &seed.result, &error));
    assert_error(error, KILTER_ERROR_INPUT, "seed: expected at most 9223372036854775807");
    assert_query(store, "SELECT (SELECT count(*) FROM run), count(*) FROM result",
                 "0|0\n");

    put(store, 0);
    put(store, 1);
    assert_true(store_begin_run(store, "again", "", NULL));
    put(store, 1);
    assert_query(store, "SELECT command, count(*) FROM run",
                 "kilter sweep test.yaml|1\n");
    put(store, 2);
    assert_query(store, "SELECT command, subject FROM result JOIN run ON run.id = run",
                 "kilter sweep test.yaml|{\"number\": 0}\n"
                 "kilter sweep test.yaml|{\"number\": 1}\n"
                 "again|{\"number\": 2}\n");
}

static void test_2_no_result_without_a_run(void **state)
{
    const Place *place = *state;
    g_autoptr(Store) store = store_open(place->file, NULL);
    g_auto(Row) row = row_of(0);
    g_autoptr(GError) error = NULL;
    assert_false(store_put(store, &row.result, &error));
    assert_error(error, KILTER_ERROR_FAILED, "a result without a run");
}

static void test_queries_only_read(void **state)
{
    const Place *place = *state;
    g_autoptr(Store) store = open_store(place->file);
    put(store, 0);
    static const struct {
        const char *sql, *message;
    } row[] = {{"SELECT speed FROM result", "no such column: speed"},
               {"SELEKT 1", "syntax error"},
               {"DELETE FROM answer", "readonly"},
               {"SELECT 1; BEGIN; DROP TABLE asked", "readonly"}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autoptr(GError) error = NULL;
        assert_false(store_query(store, row[i].sql, NULL, NULL, &error));
        assert_error(error, KILTER_ERROR_INPUT, row[i].message);
    }
    put(store, 1); /* the store still writes */
    assert_query(store, "SELECT count(*) FROM result", "2\n");
}

static void test_4_nothing_but_the_file_and_journals(void **state)
{
    const Place *place = *state;
    {
        g_autoptr(Store) store = open_store(place->file);
        put(store, 0);
        g_autofree char *names = list(place);
        assert_string_equal(names,
                            "results.db results.db-lock results.db-shm results.db-wal");
    }
    g_autofree char *names = list(place);
    assert_string_equal(names, "results.db");
}

/* --- reading only --- */

static void test_reading_beside_a_writer(void **state)
{
    const Place *place = *state;
    g_autoptr(Store) writer = open_store(place->file);
    put(writer, 0);
    g_autoptr(Store) reader = open_read(place->file);
    assert_query(reader, "SELECT count(*) FROM result", "1\n");
    put(writer, 1);
    assert_query(reader, "SELECT count(*) FROM result", "2\n");
    g_autoptr(GError) error = NULL;
    assert_false(store_begin_run(reader, "x", "", &error));
    assert_error(error, KILTER_ERROR_FAILED, "opened for reading only");
}

/* Reading leaves nothing beside the store, also beside one that is refused; while another
 * process has it open, that one's files stay. */
static void test_reading_leaves_nothing(void **state)
{
    const Place *place = *state;
    for (uint32_t open = 0; open < 2; open++) {
        g_autoptr(Store) store = open_store(place->file);
        put(store, open);
        if (!open)
            store_close(g_steal_pointer(&store));
        g_autofree char *before = list(place);
        store_close(open_read(place->file));
        g_autofree char *after = list(place);
        assert_string_equal(after, before);
        assert_string_equal(
            before, open ? "results.db results.db-lock results.db-shm results.db-wal"
                         : "results.db");
    }
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(place->file, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "UPDATE answer SET seal = x'00'", NULL, NULL, NULL),
                     SQLITE_OK);
    sqlite3_close(db);
    assert_null(store_open_read(place->file, NULL));
    g_autofree char *names = list(place);
    assert_string_equal(names, "results.db");
}

enum { OUT_OF_REACH = 77 };

/* In a child that is not root: 0 if the store can be read where nothing can be written;
 * OUT_OF_REACH where others than root can't get at the folder at all, as in a root file system that
 * is closed to them. */
static int read_where_nothing_can_be_written(const Place *place)
{
    if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
        return 2;
    if (g_access(place->dir, X_OK) != 0)
        return OUT_OF_REACH;
    if (g_access(place->dir, W_OK) == 0)
        return 3;
    g_autoptr(Store) store = store_open_read(place->file, NULL);
    g_autoptr(GString) text = g_string_new("");
    return store &&
                   store_query(store, "SELECT count(*) FROM result", append_row, text,
                               NULL) &&
                   strcmp(text->str, "2\n") == 0
               ? 0
               : 1;
}

static void test_reading_from_a_folder_of_others(void **state)
{
    const Place *place = *state;
    {
        g_autoptr(Store) store = open_store(place->file);
        put(store, 0);
        put(store, 1);
    }
    g_chmod(place->file, 0444);
    g_chmod(place->dir, 0555);
    pid_t child = fork();
    if (child == 0)
        _exit(read_where_nothing_can_be_written(place));
    int status;
    waitpid(child, &status, 0);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == OUT_OF_REACH) {
        print_message("skipped: only root reaches %s\n", place->dir);
        skip();
    }
    assert_int_equal(WEXITSTATUS(status), 0);
    g_autofree char *names = list(place);
    assert_string_equal(names, "results.db");
}

/* --- files that are refused --- */

static void write_file(const Place *place, const char *bytes, gsize n)
{
    assert_true(g_file_set_contents(place->file, bytes, (gssize)n, NULL));
}

static void run_sql(const char *file, const char *sql)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

/* Both ways of opening fail with this error, and the file is unchanged byte for byte. */
static void assert_file_refused(const Place *place, const char *message)
{
    g_autofree char *before = NULL;
    gsize n_before, n_after;
    assert_true(g_file_get_contents(place->file, &before, &n_before, NULL));
    Store *(*const open[])(const char *, GError **) = {store_open, store_open_read};
    for (uint32_t i = 0; i < G_N_ELEMENTS(open); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(Store) store = open[i](place->file, &error);
        assert_null(store);
        assert_error(error, KILTER_ERROR_INPUT, message);
        assert_error(error, KILTER_ERROR_INPUT, "results.db: ");
        assert_null(strchr(error->message, '\n'));
        g_autofree char *after = NULL;
        assert_true(g_file_get_contents(place->file, &after, &n_after, NULL));
        assert_int_equal(n_after, n_before);
        assert_memory_equal(after, before, n_before);
    }
}

/* Asserts that the file is refused, and that opening it made no other file. */
static void assert_refused(const Place *place, const char *message)
{
    g_autofree char *names = list(place);
    assert_file_refused(place, message);
    g_autofree char *names_after = list(place);
    assert_string_equal(names_after, names);
}

static void test_3_foreign_files(void **state)
{
    const Place *place = *state;
    static const struct {
        const char *bytes, *message;
    } row[] = {{"a", "not a Kilter store; left untouched"},
               {"model,time\nvgg19,0.5\n", "not a Kilter store"},
               {"SQLite format 3", "a truncated database"},
               {"SQLite for", "a truncated database"}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(row); i++) {
        write_file(place, row[i].bytes, strlen(row[i].bytes));
        assert_refused(place, row[i].message);
    }
    g_autofree char *long_text = g_strnfill(5000, 'x');
    write_file(place, long_text, 5000);
    assert_refused(place, "not a Kilter store");
}

static void test_3_foreign_databases(void **state)
{
    const Place *place = *state;
    run_sql(place->file, "CREATE TABLE result (hash TEXT); PRAGMA user_version = 2");
    assert_refused(place, "not a Kilter store");
    run_sql(place->file, "PRAGMA journal_mode = WAL; PRAGMA application_id = 7");
    assert_refused(place, "not a Kilter store");
}

static void test_3_other_versions(void **state)
{
    const Place *place = *state;
    store_close(open_store(place->file));
    static const struct {
        const char *sql, *message;
    } row[] = {
        {"PRAGMA user_version = 1",
         "schema version 1, expected version 6; left untouched"},
        {"PRAGMA user_version = 0", "schema version 0, expected version 6"},
        {"PRAGMA user_version = -1", "schema version -1, expected version 6"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(row); i++) {
        run_sql(place->file, row[i].sql);
        assert_refused(place, row[i].message);
    }
}

/* A store of several pages, as bytes. */
static char *stored(const Place *place, gsize *n)
{
    char *bytes = NULL;
    {
        g_autoptr(Store) store = open_store(place->file);
        for (uint32_t i = 0; i < 40; i++)
            put(store, i);
    }
    assert_true(g_file_get_contents(place->file, &bytes, n, NULL));
    return bytes;
}

static void test_3_truncated_stores(void **state)
{
    const Place *place = *state;
    gsize n;
    g_autofree char *bytes = stored(place, &n);
    assert_true(n > 5 * 4096);
    g_autoptr(GRand) rand = g_rand_new_with_seed(21);
    for (int round = 0; round < 40; round++) {
        gsize cut = round < 5 ? (gsize)(round + 1) * 4096
                              : (gsize)g_rand_int_range(rand, 1, (gint32)n);
        write_file(place, bytes, cut);
        assert_refused(place, cut < 16    ? "left untouched"
                              : cut < 100 ? "a truncated database"
                                          : "a truncated store of");
    }
}

/* Tables, views and triggers that a store does not have. */
static void test_3_strangers_in_the_schema(void **state)
{
    const Place *place = *state;
    static const char *const SQL[] = {
        "CREATE TRIGGER t AFTER INSERT ON answer BEGIN DELETE FROM asked; END",
        "CREATE VIEW v AS SELECT 1", "CREATE TABLE t (x)", "DROP VIEW best",
        "DROP VIEW result; CREATE VIEW result AS SELECT 1 AS hash"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(SQL); i++) {
        g_remove(place->file);
        {
            g_autoptr(Store) store = open_store(place->file);
            put(store, 0);
        }
        run_sql(place->file, SQL[i]);
        assert_file_refused(place, "not a store's tables, views and triggers");
    }
}

/* Comments and line breaks in the declarations are no part of them; what stands in quotes is. */
static void test_3_declarations_without_comments(void **state)
{
    const Place *place = *state;
    static const struct {
        const char *change;
        bool sound;
    } cases[] = {
        {"replace(sql, 'CREATE', 'CREATE -- the fastest; it''s \"one\"' || char(10))",
         true},
        {"replace(sql, '-- the', '-- whatever')", true},
        {"replace(sql, char(10), char(10) || char(10) || ' ')", true},
        {"sql || ' -- the end'", true},
        {"replace(sql, '''ok''', '''o--k''')", false},
        {"replace(sql, '''ok''', '''ok  ''')", false},
        {"replace(sql, 'min(', '/*' || char(10) || '*/ min(')", false},
        {"replace(sql, 'min(', 'max(')", false}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_remove(place->file);
        {
            g_autoptr(Store) store = open_store(place->file);
            put(store, 0);
        }
        g_autofree char *line =
            g_strdup_printf("PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = "
                            "%s WHERE name = 'best'",
                            cases[i].change);
        run_sql(place->file, line);
        if (!cases[i].sound) {
            assert_file_refused(place, "not a store's tables, views and triggers");
            continue;
        }
        g_autoptr(Store) store = open_read(place->file);
        assert_query(store, "SELECT count(*) FROM best", "1\n");
    }
}

/* A store of an earlier version gets the missing view with the next write; another view of that
 * name makes the store foreign. */
static void test_axes_of_other_stores(void **state)
{
    const Place *place = *state;
    {
        g_autoptr(Store) store = open_store(place->file);
        put_with_axes(store, 1, "{\"model.image\": \"32\"}");
    }
    run_sql(place->file, "DROP VIEW configuration");
    {
        g_autoptr(Store) store = open_read(place->file);
        assert_query(store, "SELECT count(*) FROM result", "1\n");
    }
    {
        g_autoptr(Store) store = open_store(place->file);
        assert_query(store, "SELECT \"model.image\" FROM configuration", "32\n");
    }
    static const char *const STRANGE[] = {
        "DROP VIEW configuration; CREATE VIEW configuration AS SELECT 1",
        "DROP VIEW configuration; CREATE TABLE configuration (x)"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(STRANGE); i++) {
        run_sql(place->file, STRANGE[i]);
        assert_file_refused(place, "not a store's tables, views and triggers");
    }
}

/* A changed value does not match its row's seal. */
static void test_3_changed_rows(void **state)
{
    const Place *place = *state;
    static const char *const SQL[] = {"UPDATE answer SET iteration_time_s = 9",
                                      "UPDATE answer SET planner = 'hop'",
                                      "UPDATE answer SET message = ''",
                                      "UPDATE asked SET ordinal = 1",
                                      "UPDATE run SET host = 'x'",
                                      "UPDATE part SET text = '{}' WHERE id = 1",
                                      "DELETE FROM part"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(SQL); i++) {
        g_remove(place->file);
        {
            g_autoptr(Store) store = open_store(place->file);
            put(store, 0);
        }
        run_sql(place->file, SQL[i]);
        assert_file_refused(place, "a damaged store");
    }
}

static const char ALL[] =
    "SELECT result.*, run.* FROM result JOIN run ON run.id = result.run ORDER BY ordinal";

/* Damage that the size does not show: 200 flips of 1 to 64 bytes. The store is refused and left
 * unchanged, or holds everything that was written. */
static void test_3_damaged_stores(void **state)
{
    const Place *place = *state;
    gsize n, n_after;
    g_autofree char *bytes = stored(place, &n), *want = NULL;
    {
        g_autoptr(Store) store = open_read(place->file);
        want = query(store, ALL);
    }
    g_autoptr(GRand) rand = g_rand_new_with_seed(22);
    uint32_t refused = 0;
    for (int round = 0; round < 200; round++) {
        g_autofree char *damaged = g_memdup2(bytes, n);
        const gsize length = (gsize)g_rand_int_range(rand, 1, 65);
        gsize at = (gsize)g_rand_int_range(rand, 0, (gint32)(n - length));
        for (gsize i = 0; i < length; i++)
            damaged[at + i] = (char)g_rand_int(rand);
        write_file(place, damaged, n);
        g_autoptr(GError) error = NULL;
        g_autoptr(Store) store = store_open_read(place->file, &error);
        g_autofree char *after = NULL, *got = store ? query(store, ALL) : NULL;
        if (store) {
            assert_string_equal(got, want);
            continue;
        }
        refused++;
        assert_error(error, KILTER_ERROR_INPUT, "");
        assert_true(g_file_get_contents(place->file, &after, &n_after, NULL));
        assert_int_equal(n_after, n);
        assert_memory_equal(after, damaged, n);
    }
    print_message("%u of 200 refused, the others whole\n", refused);
    assert_true(refused > 50);
}

/* A store that disappears while it is written is a failure, not an unnoticed success. */
static void test_2_a_removed_store(void **state)
{
    const Place *place = *state;
    g_autoptr(Store) store = open_store(place->file);
    put(store, 0);
    g_remove(place->file);
    g_auto(Row) row = row_of(1);
    g_autoptr(GError) error = NULL;
    assert_false(store_put(store, &row.result, &error));
    assert_error(error, KILTER_ERROR_FAILED, "removed or replaced");
}

static void test_3_what_cannot_be_opened(void **state)
{
    const Place *place = *state;
    g_autofree char *nowhere = g_build_filename(place->dir, "absent", "x.db", NULL);
    const struct {
        const char *file;
        bool write;
        const char *message;
    } row[] = {{place->file, false, "cannot open the store: No such file"},
               {nowhere, true, "cannot open the store"},
               {place->dir, true, "not a regular file"},
               {place->dir, false, "not a regular file"},
               {"", true, "cannot open the store"},
               {"/dev/null", true, "not a regular file"}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(Store) store = row[i].write ? store_open(row[i].file, &error)
                                              : store_open_read(row[i].file, &error);
        assert_null(store);
        assert_error(error, KILTER_ERROR_INPUT, row[i].message);
    }
    g_autofree char *names = list(place);
    assert_string_equal(names, "");

    write_file(place, "",
               0); /* a kill may leave a new store that can be written but not read */
    assert_null(store_open_read(place->file, NULL));
    store_close(open_store(place->file));
    assert_whole(place->file, 0);
}

/* --- several writers, and kills --- */

enum { SHARED = 60 };

/* Opens the store and puts all of the results, from `first` on, round the clock. */
static void put_all(const char *file, uint32_t first)
{
    g_autoptr(Store) store = open_store(file);
    for (uint32_t i = 0; i < SHARED; i++)
        put(store, (first + i) % SHARED);
}

static gpointer put_in_thread(gpointer file)
{
    put_all(file, SHARED / 2);
    return NULL;
}

static void test_two_threads(void **state)
{
    const Place *place = *state;
    for (int round = 0; round < 5; round++) {
        g_remove(place->file);
        GThread *thread = g_thread_new("writer", put_in_thread, place->file);
        put_all(place->file, 0);
        g_thread_join(thread);
        assert_whole(place->file, SHARED);
    }
}

static void test_four_processes(void **state)
{
    const Place *place = *state;
    pid_t child[4];
    for (uint32_t i = 0; i < G_N_ELEMENTS(child); i++)
        if ((child[i] = fork()) == 0) {
            put_all(place->file, i * SHARED / 4);
            _exit(0);
        }
    for (uint32_t i = 0; i < G_N_ELEMENTS(child); i++) {
        int status;
        waitpid(child[i], &status, 0);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    assert_whole(place->file, SHARED);
}

/* Writes the missing ones of `n` results, as a resumed sweep does, until it is done or killed. */
static void resume(const char *file, uint32_t n)
{
    g_autoptr(Store) store = open_store(file);
    for (uint32_t i = 0; i < n; i++) {
        g_auto(Row) row = row_of(i);
        bool has = false;
        if (!store_find(store, &row.result.asked, 1, &has, NULL))
            _exit(1);
        if (!has && !store_put(store, &row.result, NULL))
            _exit(1);
    }
}

static uint32_t count_rows(const char *file)
{
    g_autoptr(Store) store = open_read(file);
    g_autofree char *count = query(store, "SELECT count(*) FROM result");
    return (uint32_t)g_ascii_strtoull(count, NULL, 10);
}

/* Kills at random moments, from before the file exists on; after each, all rows are complete and in
 * order. */
static void test_2_kills(void **state)
{
    const Place *place = *state;
    enum { ROWS = 1500, ROUNDS = 25, MOST_ROUNDS = 4 * ROUNDS };
    g_autoptr(GRand) rand = g_rand_new_with_seed(23);
    uint32_t rows = 0, mid_way = 0;
    gint32 most_us = 8000;
    /* A slow machine gets more rounds and more time in each of them. */
    for (int round = 0; round < (mid_way > 0 ? ROUNDS : MOST_ROUNDS); round++) {
        pid_t child = fork();
        if (child == 0) {
            resume(place->file, ROWS);
            _exit(0);
        }
        if (round % ROUNDS == ROUNDS / 2)
            most_us *= 8;
        g_usleep((gulong)g_rand_int_range(rand, 0, most_us));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        if (!g_file_test(place->file, G_FILE_TEST_EXISTS))
            continue;
        g_autoptr(GError) error = NULL;
        g_autoptr(Store) store = store_open(place->file, &error); /* recovers */
        assert_no_error(error);
        assert_non_null(store);
        uint32_t now = count_rows(place->file);
        assert_true(now >= rows);
        mid_way += now > 0 && now < ROWS;
        rows = now;
        assert_whole(place->file, rows);
    }
    print_message("killed %u times mid-way, %u rows by then\n", mid_way, rows);
    assert_true(mid_way > 0);
    resume(place->file, ROWS);
    assert_whole(place->file, ROWS);
}

/* Without its lock no store is written. */
static void test_no_lock(void **state)
{
    const Place *place = *state;
    g_autofree char *lock = g_strconcat(place->file, "-lock", NULL);
    assert_int_equal(g_mkdir(lock, 0700), 0);
    g_autoptr(GError) error = NULL;
    g_autoptr(Store) store = store_open(place->file, &error);
    assert_null(store);
    assert_non_null(strstr(error->message, "results.db-lock: cannot write the lock"));
    g_rmdir(lock);
}

/* A link that has taken the place of the lock meanwhile is left untouched. */
static void test_another_lock(void **state)
{
    const Place *place = *state;
    g_autofree char *lock = g_strconcat(place->file, "-lock", NULL);
    g_autoptr(GError) error = NULL;
    Store *store = store_open(place->file, &error);
    assert_no_error(error);
    assert_true(store_begin_run(store, "test", "", &error));
    assert_true(g_file_test(lock, G_FILE_TEST_IS_REGULAR));
    assert_int_equal(g_unlink(lock), 0);
    assert_int_equal(symlink("elsewhere", lock), 0);
    store_close(store);
    assert_true(g_file_test(lock, G_FILE_TEST_IS_SYMLINK));
    assert_int_equal(g_unlink(lock), 0);
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(test_a_result_comes_back),
        STORE_TEST(test_what_is_not_finite_is_null),
        STORE_TEST(test_1_a_configuration_is_held_once),
        STORE_TEST(test_1_another_experiments_result_is_taken_over),
        STORE_TEST(test_1_an_experiment_sees_what_it_asks),
        STORE_TEST(test_axes_are_columns),
        STORE_TEST(test_axes_of_other_stores),
        STORE_TEST(test_1_the_hash_is_the_configurations),
        STORE_TEST(test_2_all_of_a_result_or_nothing),
        STORE_TEST(test_2_no_result_without_a_run),
        STORE_TEST(test_queries_only_read),
        STORE_TEST(test_4_nothing_but_the_file_and_journals),
        STORE_TEST(test_reading_beside_a_writer),
        STORE_TEST(test_reading_leaves_nothing),
        STORE_TEST(test_reading_from_a_folder_of_others),
        STORE_TEST(test_3_foreign_files),
        STORE_TEST(test_3_foreign_databases),
        STORE_TEST(test_3_other_versions),
        STORE_TEST(test_3_truncated_stores),
        STORE_TEST(test_3_strangers_in_the_schema),
        STORE_TEST(test_3_declarations_without_comments),
        STORE_TEST(test_3_changed_rows),
        STORE_TEST(test_3_damaged_stores),
        STORE_TEST(test_2_a_removed_store),
        STORE_TEST(test_3_what_cannot_be_opened),
        STORE_TEST(test_no_lock),
        STORE_TEST(test_another_lock),
        STORE_TEST(test_two_threads),
        STORE_TEST(test_four_processes),
        STORE_TEST(test_2_kills),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
