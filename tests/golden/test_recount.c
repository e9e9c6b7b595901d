/* The counts of claims that hold, counted again without the program's own judge: the paper's side
 * from data/paper, ours from the queries of plots/ or the recorded lines, and the rule in SQL. */
#include <sqlite3.h>

#include "data/data.h"
#include "data/store/store.h"
#include "experiments/figures/query.h"
#include "experiments/sweep/experiment.h"
#include "tests/support/program_json.h"

/* The rule: on the paper's side of `none`, and as near as the tolerance and half of the effect. */
static const char COUNT[] =
    "SELECT count(*),"
    " sum(abs(ours - value) <= tolerance + 1e-9 AND fitted = ''"
    "     AND (none = '' OR abs(ours - value) <= abs(value - none) / 2 + 1e-9"
    "                       AND (ours - none) * (value - none) > 0)),"
    " sum(abs(ours - value) <= tolerance + 1e-9 AND fitted = '')"
    " FROM paper LEFT JOIN ours USING (figure, claim) WHERE figure LIKE ?1";

static void execute(sqlite3 *db, const char *sql)
{
    char *message = NULL;
    if (sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK)
        TEST_FAIL_AT(__FILE__, __LINE__, "%s: %s", sql, message);
}

/* The cells of a line of CSV; NULL after the last. */
static char **cells(const char *line)
{
    GStrvBuilder *list = g_strv_builder_new();
    g_autoptr(GString) cell = g_string_new("");
    bool quoted = false;
    for (const char *at = line;; at++) {
        if (*at == '"' && quoted && at[1] == '"')
            g_string_append_c(cell, *at++);
        else if (*at == '"')
            quoted = !quoted;
        else if ((*at == ',' && !quoted) || *at == '\0') {
            g_strv_builder_add(list, cell->str);
            g_string_truncate(cell, 0);
        } else
            g_string_append_c(cell, *at);
        if (*at == '\0')
            break;
    }
    char **all = g_strv_builder_end(list);
    g_strv_builder_unref(list);
    return all;
}

static void insert(sqlite3 *db, const char *sql, const char *const *value)
{
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    for (int i = 0; value[i]; i++)
        sqlite3_bind_text(statement, i + 1, value[i], -1, SQLITE_TRANSIENT);
    assert_int_equal(sqlite3_step(statement), SQLITE_DONE);
    sqlite3_finalize(statement);
}

/* A database in memory with the papers' side. */
static sqlite3 *published(void)
{
    static const char *const PAPER[] = {"amp", "hap", "hidup", "tag"};
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    execute(
        db,
        "CREATE TABLE paper (figure, claim, value REAL, tolerance REAL, none, fitted);"
        "CREATE TABLE ours (figure, claim, ours REAL)");
    for (uint32_t p = 0; p < G_N_ELEMENTS(PAPER); p++) {
        g_autofree char *file =
            g_strdup_printf("%s/data/paper/%s.csv", KILTER_HOME, PAPER[p]);
        g_autofree char *text = NULL;
        assert_true(g_file_get_contents(file, &text, NULL, NULL));
        g_auto(GStrv) line = g_strsplit(text, "\n", -1);
        assert_string_equal(line[0],
                            "figure,claim,text,value,tolerance,none,fitted,where");
        for (uint32_t i = 1; line[i] && *line[i]; i++) {
            g_auto(GStrv) cell = cells(line[i]);
            assert_int_equal(g_strv_length(cell), 8);
            insert(db, "INSERT INTO paper VALUES (?, ?, ?, ?, ?, ?)",
                   (const char *const[]){cell[0], cell[1], cell[3], cell[4], cell[5],
                                         cell[6], NULL});
        }
    }
    return db;
}

typedef struct {
    int n, held, by_ratio;
} Counts;

static Counts recount(sqlite3 *db, const char *figures)
{
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_prepare_v2(db, COUNT, -1, &statement, NULL), SQLITE_OK);
    sqlite3_bind_text(statement, 1, figures, -1, SQLITE_TRANSIENT);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    const Counts counts = {sqlite3_column_int(statement, 0),
                           sqlite3_column_int(statement, 1),
                           sqlite3_column_int(statement, 2)};
    sqlite3_finalize(statement);
    return counts;
}

typedef struct {
    sqlite3 *db;
    const char *figure;
} Ours;

static void add_ours(uint32_t n_columns, char **value, char **column, void *data)
{
    const Ours *ours = data;
    (void)column;
    assert_int_equal(n_columns, 4);
    if (value[0] && value[1])
        insert(ours->db, "INSERT INTO ours VALUES (?, ?, ?)",
               (const char *const[]){ours->figure, value[0], value[1], NULL});
}

/* Our side from the store. */
static void add_figure(sqlite3 *db, Store *store, const char *figure)
{
    GError *error = NULL;
    g_autoptr(Experiment) experiment = experiment_load(figure, NULL, &error);
    assert_no_error(error);
    assert_true(experiment_select(experiment, store, &error));
    g_autofree char *sql = figure_query(figure, "-claims.sql", &error);
    assert_no_error(error);
    assert_true(store_query(store, sql, add_ours, &(Ours){db, figure}, &error));
}

static void assert_says(const char *text, Counts counts)
{
    g_autofree char *line = g_strdup_printf("%d of %d claims hold (%d by ratio)",
                                            counts.held, counts.n, counts.by_ratio);
    if (!strstr(text, line))
        TEST_FAIL_AT(__FILE__, __LINE__, "no line '%s' in: %.2000s", line, text);
}

/* Terminal, JSON, page and Markdown say what the store gives. */
static void test_store(void **state)
{
    (void)state;
    static const char *const FIGURE[] = {"amp-tab5", "hap-fig4", "hap-tab1",
                                         "hidup-fig14b"};
    g_autoptr(Sandbox) box = sandbox_new();
    sqlite3 *db = published();
    Counts all = {0};
    for (uint32_t i = 0; i < G_N_ELEMENTS(FIGURE); i++) {
        GError *error = NULL;
        g_autofree char *line = g_strdup_printf("reproduce %s --db r.db -o .", FIGURE[i]);
        g_auto(Ran) ran = program_run_good(box, line);
        g_autofree char *database = g_build_filename(box->folder, "r.db", NULL);
        g_autoptr(Store) store = store_open_read(database, &error);
        assert_no_error(error);
        add_figure(db, store, FIGURE[i]);
        const Counts counts = recount(db, FIGURE[i]);
        all = (Counts){all.n + counts.n, all.held + counts.held,
                       all.by_ratio + counts.by_ratio};
        assert_says(ran.out, counts);
        g_autofree char *same = g_strconcat(line, " --json", NULL);
        json_t *json = program_json(box, same);
        const json_t *figure = json_array_get(json_object_get(json, "reproduced"), 0);
        assert_int_equal(json_integer_value(json_object_get(figure, "held")),
                         counts.held);
        assert_int_equal(json_integer_value(json_object_get(figure, "held_by_ratio")),
                         counts.by_ratio);
        json_decref(json);
    }
    /* The counts must be able to differ. */
    assert_true(0 < all.held && all.held < all.by_ratio && all.by_ratio < all.n);
    program_runs(box, "report r.db -o r.html");
    program_runs(box, "report r.db --markdown -o r.md");
    g_autofree char *page = sandbox_read(box, "r.html"), *md = sandbox_read(box, "r.md");
    assert_says(page, all);
    assert_says(md, all);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* Our side of a paper from the recorded lines: NAME,claim,"CLAIM","paper=... ours=X VERDICT". */
static void add_recorded(sqlite3 *db, const char *paper, const char *column)
{
    g_autofree char *file = g_strdup_printf("%s/tests/golden/%s.csv", KILTER_HOME, paper);
    g_autofree char *text = NULL;
    assert_true(g_file_get_contents(file, &text, NULL, NULL));
    g_auto(GStrv) line = g_strsplit(text, "\n", -1);
    for (uint32_t i = 0; line[i]; i++) {
        g_auto(GStrv) cell = cells(line[i]);
        if (g_strv_length(cell) != 4 || strcmp(cell[1], "claim") != 0)
            continue;
        char *at = strchr(cell[0], '@');
        if (g_strcmp0(at ? at + 1 : NULL, column) != 0)
            continue;
        if (at)
            *at = '\0';
        const char *ours = strstr(cell[3], " ours=");
        assert_non_null(ours);
        g_autofree char *number = g_strndup(ours + 6, strcspn(ours + 6, " "));
        insert(db, "INSERT OR REPLACE INTO ours VALUES (?, ?, ?)",
               (const char *const[]){cell[0], cell[2], number, NULL});
    }
}

/* The table of docs/reproduce.md says what the recorded lines give. */
static void test_table(void **state)
{
    (void)state;
    static const struct {
        const char *paper, *title, *figures;
    } ROW[] = {{"amp", "AMP (NeurIPS'22)", "amp-%"},
               {"hap", "HAP (EuroSys'24)", "hap-%"},
               {"hidup", "HiDup (SoCC'22)", "hidup-%"},
               {"tag", "TAG (TPDS'23)", "tag-%"},
               {NULL, "all", "%"}};
    sqlite3 *db = published();
    execute(db, "CREATE UNIQUE INDEX place ON ours (figure, claim)");
    for (uint32_t i = 0; ROW[i].paper; i++)
        add_recorded(db, ROW[i].paper, NULL);
    Counts plain[G_N_ELEMENTS(ROW)];
    for (uint32_t i = 0; i < G_N_ELEMENTS(ROW); i++)
        plain[i] = recount(db, ROW[i].figures);
    for (uint32_t i = 0; ROW[i].paper; i++)
        add_recorded(db, ROW[i].paper, "calibrated");
    execute(db, "UPDATE paper SET fitted = ''"); /* calibrated, fitted ones count */
    g_autofree char *text = NULL;
    assert_true(g_file_get_contents(KILTER_HOME "/docs/reproduce.md", &text, NULL, NULL));
    for (uint32_t i = 0; i < G_N_ELEMENTS(ROW); i++) {
        g_autofree char *line = g_strdup_printf(
            "| %s | %d | %d | %d | %d |", ROW[i].title, plain[i].n, plain[i].held,
            plain[i].by_ratio, recount(db, ROW[i].figures).held);
        if (!strstr(text, line))
            TEST_FAIL_AT(__FILE__, __LINE__, "docs/reproduce.md lacks the line %s", line);
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static bool is_recorded(const char *recorded, const char *figure, const char *column,
                        const char *claim)
{
    g_autofree char *line =
        g_strdup_printf("\n%s@%s,claim,\"%s\",", figure, column, claim);
    return strstr(recorded, line) != NULL;
}

/* Some column of the experiment tests the claim, and has a value of it. */
static bool is_tested(const char *recorded, const char *figure, const char *claim)
{
    GError *error = NULL;
    g_autoptr(Experiment) experiment = experiment_load(figure, NULL, &error);
    assert_no_error(error);
    for (uint32_t i = 0; i < experiment_n_columns(experiment); i++) {
        uint32_t n;
        char *const *tests = experiment_column_tests(experiment, i, &n);
        for (uint32_t k = 0; k < n; k++)
            if (strcmp(tests[k], claim) == 0 &&
                is_recorded(recorded, figure, experiment_column(experiment, i), claim))
                return true;
    }
    return false;
}

/* Each claim that does not hold has a column that tests its cause. */
static void test_causes(void **state)
{
    (void)state;
    uint32_t failed = 0, lacking = 0;
    static const char *const PAPER[] = {"amp", "hap", "hidup", "tag"};
    for (uint32_t p = 0; p < G_N_ELEMENTS(PAPER); p++) {
        g_autofree char *file =
            g_strdup_printf("%s/tests/golden/%s.csv", KILTER_HOME, PAPER[p]);
        g_autofree char *text = NULL;
        assert_true(g_file_get_contents(file, &text, NULL, NULL));
        g_auto(GStrv) line = g_strsplit(text, "\n", -1);
        for (uint32_t i = 0; line[i]; i++) {
            g_auto(GStrv) cell = cells(line[i]);
            if (g_strv_length(cell) != 4 || strcmp(cell[1], "claim") != 0 ||
                strchr(cell[0], '@') || g_str_has_suffix(cell[3], " holds") ||
                g_str_has_suffix(cell[3], " fitted"))
                continue;
            failed++;
            if (is_tested(text, cell[0], cell[2]))
                continue;
            lacking++;
            print_message("no column tests the cause of %s %s\n", cell[0], cell[2]);
        }
    }
    print_message("%u claims do not hold\n", failed);
    assert_true(failed > 50);
    assert_int_equal(lacking, 0);
}

/* Each paper's numbers are a claim, or a line that says why not. */
static void test_every_claim_is_recorded(void **state)
{
    (void)state;
    sqlite3 *db = published();
    static const char *const PAPER[] = {"amp", "hap", "hidup", "tag"};
    execute(db, "CREATE UNIQUE INDEX place ON ours (figure, claim)");
    for (uint32_t p = 0; p < G_N_ELEMENTS(PAPER); p++)
        add_recorded(db, PAPER[p], NULL);
    sqlite3_stmt *statement = NULL;
    assert_int_equal(
        sqlite3_prepare_v2(db,
                           "SELECT figure || ' ' || claim FROM paper LEFT JOIN ours "
                           "USING (figure, claim) WHERE ours IS NULL",
                           -1, &statement, NULL),
        SQLITE_OK);
    if (sqlite3_step(statement) == SQLITE_ROW)
        TEST_FAIL_AT(__FILE__, __LINE__, "tests/golden lacks %s",
                     sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* --- every number that a paper prints --- */

/* Numbers of the text, each as printed, without commas. */
static void know_numbers(GHashTable *known, const char *text)
{
    static const char NUMBER[] =
        "(?<![\\w.\\-\u00a7])\\d[\\d,]*+(?:\\.\\d+)?+(?=x?(?!\\w))";
    g_autoptr(GRegex) number = g_regex_new(NUMBER, 0, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    assert_non_null(number);
    for (g_regex_match(number, text, 0, &match); g_match_info_matches(match);
         g_match_info_next(match, NULL)) {
        g_autofree char *digits = g_match_info_fetch(match, 0);
        g_auto(GStrv) part = g_strsplit(digits, ",", -1);
        g_autofree char *plain = g_strjoinv("", part);
        g_hash_table_add(known, g_strdup_printf("%.9g", g_ascii_strtod(plain, NULL)));
    }
}

/* Rows of a file of data/paper, of which `key` is the first cell or any (NULL). */
static GPtrArray *rows_of(const char *name, const char *key)
{
    g_autofree char *file = g_strdup_printf("%s/data/paper/%s.csv", KILTER_HOME, name);
    g_autofree char *text = NULL;
    assert_true(g_file_get_contents(file, &text, NULL, NULL));
    g_auto(GStrv) line = g_strsplit(text, "\n", -1);
    GPtrArray *rows = g_ptr_array_new_with_free_func((GDestroyNotify)g_strfreev);
    for (uint32_t i = 1; line[i] && *line[i]; i++) {
        char **row = cells(line[i]);
        if (!key || strcmp(row[0], key) == 0)
            g_ptr_array_add(rows, row);
        else
            g_strfreev(row);
    }
    return rows;
}

static void know_rows(GHashTable *known, const GPtrArray *rows)
{
    for (guint i = 0; i < rows->len; i++) {
        g_autofree char *text = g_strjoinv(" ", rows->pdata[i]);
        know_numbers(known, text);
    }
}

/* Where a list of numbers.csv goes: a claim, or a reason that is there. */
static void check_goes(const char *paper, char **row)
{
    static const char *const REASON[] = {"inputs", "uncovered", NULL};
    g_autoptr(GPtrArray) claims = rows_of(paper, NULL);
    bool there = g_strv_contains(REASON, row[3]);
    for (guint i = 0; i < claims->len; i++) {
        char **claim = claims->pdata[i];
        g_autofree char *id = g_strdup_printf("%s/%s", claim[0], claim[1]);
        there |= strcmp(id, row[3]) == 0;
    }
    if (!there)
        TEST_FAIL_AT(__FILE__, __LINE__, "numbers.csv: no claim %s", row[3]);
}

typedef struct {
    const char *paper, *from, *to; /* a part of the text with results */
} Part;

/* The part without what is no result: citations, numbers of figures and sections, headings. */
static char *results_of(const Part *part)
{
    static const char OTHER[] = "\\[[\\d, "
                                "]+\\]|(?i:fig(?:ure)?s?|tables?|sec(?:tion)?|\u00a7|"
                                "\\\\S\\$?|eq(?:uation)?s?|algorithm)"
                                "\\.?\\s*\\$?\\s*\\d[\\d.]*|(?m:^#* *\\d+(?:\\.\\d+)* "
                                "+(?=[A-Z]))|\\(\\d\\.\\d\\)";
    g_autofree char *relative = g_strdup_printf("papers/%s.txt", part->paper);
    const char *path = test_shared(relative);
    g_autofree char *text = NULL;
    if (!path)
        return NULL;
    assert_true(g_file_get_contents(path, &text, NULL, NULL));
    char *from = strstr(text, part->from), *to = from ? strstr(from + 1, part->to) : NULL;
    assert_non_null(to);
    *to = '\0';
    g_autoptr(GRegex) other = g_regex_new(OTHER, 0, 0, NULL);
    assert_non_null(other);
    return g_regex_replace_literal(other, from, -1, 0, " ", 0, NULL);
}

/* Each number in the abstract, the evaluation and the conclusion of a paper is in a claim, in a
 * line that says why there is none, or in a list of numbers.csv that says which claim judges it. */
static void test_printed_numbers(void **state)
{
    (void)state;
    static const Part PART[] = {{"hap", "## Abstract", "CCS Concepts"},
                                {"hap", "## 7 Evaluation", "## 8 Related"},
                                {"hap", "## 9 Conclusion", "## Acknow"},
                                {"hidup", "ABSTRACT", "CCS CONCEPTS"},
                                {"hidup", "6 EVALUATION", "7 RELATED"},
                                {"hidup", "9 CONCLUSION", "ACKNOW"},
                                {"amp", "## Abstract", "# 1 Intro"},
                                {"amp", "# 4 Experiments", "## Acknow"},
                                {"tag", "Abstract", "1 INTRO"},
                                {"tag", "5.2 Experimental", "REFERENCES"}};
    uint32_t printed = 0, lacking = 0;
    for (uint32_t p = 0; p < G_N_ELEMENTS(PART); p++) {
        const char *paper = PART[p].paper;
        g_autoptr(GHashTable) known =
            g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        g_autoptr(GPtrArray) claims = rows_of(paper, NULL),
                             lists = rows_of("numbers", paper),
                             uncovered = rows_of("uncovered", paper),
                             contradictions = rows_of("contradictions", paper);
        for (guint i = 0; i < lists->len; i++)
            check_goes(paper, lists->pdata[i]);
        for (guint i = 0; i < claims->len; i++) { /* text, value, where */
            char **row = claims->pdata[i];
            g_autofree char *said = g_strjoin(" ", row[2], row[3], row[7], NULL);
            know_numbers(known, said);
        }
        know_rows(known, lists);
        know_rows(known, uncovered);
        know_rows(known, contradictions);
        g_autofree char *text = results_of(&PART[p]);
        if (!text)
            return;
        g_autoptr(GHashTable) there =
            g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        know_numbers(there, text);
        GHashTableIter iter;
        gpointer number;
        g_hash_table_iter_init(&iter, there);
        while (g_hash_table_iter_next(&iter, &number, NULL)) {
            printed++;
            if (g_hash_table_contains(known, number))
                continue;
            lacking++;
            print_message("%s, from '%s': %s is nowhere\n", paper, PART[p].from,
                          (const char *)number);
        }
    }
    print_message("%u different numbers in the papers' results\n", printed);
    assert_int_equal(lacking, 0);
    assert_true(printed > 160);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_store),
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_every_claim_is_recorded),
        cmocka_unit_test(test_causes),
        cmocka_unit_test(test_printed_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
