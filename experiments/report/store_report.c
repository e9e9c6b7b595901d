/* The contents of a store as a page: papers' claims and figures, and sweeps. */
#include <glib.h>
#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "data/base/csv.h"
#include "data/base/json.h"
#include "data/base/output.h"
#include "data/base/path.h"
#include "data/base/units.h"
#include "data/base/version.h"
#include "data/store/store.h"
#include "experiments/figures/figure.h"
#include "experiments/report/page.h"
#include "experiments/report/parts.h"
#include "experiments/report/report.h"
#include "experiments/report/sweep_facts.h"

/* --- what a figure draws --- */

/* Shorter numbers are counts and places, which rows of many kinds have. */
enum { LEAST_DIGITS = 7, MOST_LINKS = 6 };

typedef struct {
    json_t *list;
    GHashTable *rows; /* number as text -> GPtrArray of ordinals */
} Drawn;

/* The row's ordinal under each of its numbers. */
static void know_row(uint32_t n_columns, char **value, char **column, void *data)
{
    GHashTable *rows = data;
    (void)column;
    for (uint32_t i = 1; i < n_columns; i++) {
        if (!value[i] || strlen(value[i]) < LEAST_DIGITS)
            continue;
        GPtrArray *same = g_hash_table_lookup(rows, value[i]);
        if (!same) {
            same = g_ptr_array_new_with_free_func(g_free);
            g_hash_table_insert(rows, g_strdup(value[i]), same);
        }
        g_ptr_array_add(same, g_strdup(value[0]));
    }
}

/* Adds the row to the list, unless there are enough or it is there. */
static void add_link(json_t *links, const char *ordinal)
{
    bool there = json_array_size(links) >= MOST_LINKS;
    for (size_t i = 0; i < json_array_size(links); i++)
        there |= strcmp(json_string_value(json_array_get(links, i)), ordinal) == 0;
    if (!there)
        json_array_append_new(links, json_text(ordinal));
}

/* The rows that the query names, and those that have a number of the bar. */
static json_t *report_links_json(const Drawn *drawn, uint32_t n_columns, char **value,
                                 char **column)
{
    json_t *links = json_array();
    for (uint32_t i = 0; i < n_columns; i++) {
        if (!value[i])
            continue;
        if (strcmp(column[i], FIGURE_ROWS) == 0) {
            g_auto(GStrv) named = g_strsplit(value[i], " ", -1);
            for (char **ordinal = named; *ordinal; ordinal++)
                add_link(links, *ordinal);
            continue;
        }
        const GPtrArray *same = g_hash_table_lookup(drawn->rows, value[i]);
        for (guint k = 0; same && k < same->len; k++)
            add_link(links, same->pdata[k]);
    }
    return links;
}

/* Columns that say where gnuplot draws, or which rows to lead to. */
static const char *const PLACES[] = {"panel", "group",   "seat",      "slot",
                                     "slots", "measure", FIGURE_ROWS, NULL};

static void add_drawn(uint32_t n_columns, char **value, char **column, void *data)
{
    const Drawn *drawn = data;
    json_t *texts = json_array(), *numbers = json_array();
    for (uint32_t i = 0; i < n_columns; i++) {
        double number;
        if (!value[i] || g_strv_contains(PLACES, column[i]))
            continue;
        if (number_is(value[i], &number))
            json_array_append_new(numbers, json_number(number));
        else
            json_array_append_new(texts, json_text(value[i]));
    }
    json_array_append_new(drawn->list,
                          json_pack("{s:o, s:o, s:o}", "texts", texts, "numbers", numbers,
                                    "links",
                                    report_links_json(drawn, n_columns, value, column)));
}

/* Each bar or point of the picture: its texts and numbers, and the ordinals of the experiment's
 * rows that the query names (FIGURE_ROWS) or that have one of these numbers. The experiment must
 * have selected its rows. */
static bool report_add_drawn(const ReportParts *report, const ReportPart *part,
                             json_t *list, GError **error)
{
    g_autoptr(GHashTable) rows = text_table((GDestroyNotify)g_ptr_array_unref);
    g_autofree char *name = report_quoted(part->name);
    g_autofree char *sql = g_strdup_printf(
        "SELECT ordinal, iteration_time_s, communication_s, computation_s, "
        "search_time_s, peak_memory_bytes FROM result WHERE experiment = '%s'",
        name);
    g_autofree char *query = figure_query(part->name, ".sql", error);
    Drawn drawn = {list, rows};
    return query && store_query(report->store, sql, know_row, rows, error) &&
           store_query(report->store, query, add_drawn, &drawn, error);
}

/* --- remarks on papers as a whole --- */

/* A list of the answer, from the rows of a CSV file that are about the paper. */
static const struct {
    const char *list, *file,
        *key[4 + 1]; /* the file's columns, the first of which is the paper */
} REMARKS[] = {
    {"contradictions",
     "data/paper/contradictions.csv",
     {"paper", "place", "what", "shown", NULL}},
    {"uncovered", "data/paper/uncovered.csv", {"paper", "place", "what", "why", NULL}},
};

typedef struct {
    const char *const *key;
    const char *paper;
    json_t *list;
} RemarkList;

static bool add_remark(const Csv *csv, void *data, GError **error)
{
    const RemarkList *list = data;
    (void)error;
    if (strcmp(csv_text(csv, list->key[0]), list->paper) == 0)
        json_array_append_new(list->list,
                              json_pack("{s:o, s:o, s:o}", "place",
                                        json_text(csv_text(csv, list->key[1])), "what",
                                        json_text(csv_text(csv, list->key[2])), "why",
                                        json_text(csv_text(csv, list->key[3]))));
    return true;
}

/* Sets the lists `contradictions` (data/paper/contradictions.csv) and `uncovered`
 * (data/paper/uncovered.csv) of the paper, each of {place, what, why}. KILTER_ERROR_INPUT on a bad
 * file. */
static bool report_remarks(json_t *row, const char *paper, GError **error)
{
    static const char *const others[] = {NULL};
    for (uint32_t i = 0; i < G_N_ELEMENTS(REMARKS); i++) {
        g_autofree char *path = path_find(REMARKS[i].file);
        RemarkList list = {REMARKS[i].key, paper, json_array()};
        json_object_set_new(row, REMARKS[i].list, list.list);
        g_autoptr(Csv) csv = path ? csv_read(path, error) : NULL;
        if (path && (!csv || !csv_expect(csv, list.key, others, error) ||
                     !csv_each(csv, add_remark, &list, error)))
            return false;
    }
    return true;
}

/* --- rows of an experiment, folded below its figure --- */

/* Adds an object with the columns that have a value; numbers of seconds and bytes as such. */
static void report_add_row(uint32_t n_columns, char **value, char **column, void *list)
{
    json_t *row = json_object();
    for (uint32_t i = 0; i < n_columns; i++) {
        double number;
        const bool measure =
            g_str_has_suffix(column[i], "_s") || g_str_has_suffix(column[i], "_gib");
        if (value[i] && *value[i])
            json_object_set_new(row, column[i],
                                measure && number_is(value[i], &number)
                                    ? json_number(number)
                                    : json_text(value[i]));
    }
    json_array_append_new(list, row);
}

/* The rows of an experiment, each with its question's identity and the run that answered it. */
static bool add_rows(const ReportParts *report, const ReportPart *part, json_t *list,
                     GError **error)
{
    g_autofree char *name = report_quoted(part->name);
    g_autofree char *sql = g_strdup_printf(
        "SELECT ordinal, model, cluster, entry || "
        "coalesce((SELECT ' (' || group_concat(key || '=' || value, ' ') || ')' "
        "FROM json_each(detail, '$.strategy')), '') AS planner, axes, fidelity, "
        "granularity, gpus, status || coalesce(': ' || message, '') AS status, "
        "iteration_time_s, lower_bound_s, peak_memory_bytes / 1073741824.0 AS peak_gib, "
        "substr(hash, 1, 16) AS identity, run FROM result "
        "WHERE experiment = '%s' ORDER BY ordinal",
        name);
    return store_query(report->store, sql, report_add_row, list, error);
}

/* --- claims --- */

/* The bytes of a cause's first sentence, or of whole words in its first 160 letters. */
static size_t because_of(const char *reason)
{
    enum { LONGEST = 160 };
    const char *end = strstr(reason, "; ");
    size_t n = end ? (size_t)(end - reason) : strlen(reason);
    if (g_utf8_strlen(reason, (gssize)n) > LONGEST)
        for (n = (size_t)(g_utf8_offset_to_pointer(reason, LONGEST - 1) - reason);
             n > 0 && reason[n] != ' '; n--)
            ;
    return n;
}

typedef enum { VERDICT_NONE, VERDICT_BAD, VERDICT_SOME, VERDICT_GOOD } Verdict;

static void set_verdict(json_t *row, Verdict verdict)
{
    static const struct {
        const char *glyph, *class;
    } SHOWN[] = {[VERDICT_NONE] = {"\u25cb", "none"},
                 [VERDICT_BAD] = {"\u2718", "bad"},
                 [VERDICT_SOME] = {"\u25d0", "some"},
                 [VERDICT_GOOD] = {"\u2714", "good"}};
    json_object_update_new(row, json_pack("{s:s, s:s}", "glyph", SHOWN[verdict].glyph,
                                          "class", SHOWN[verdict].class));
}

static json_t *report_columns_json(const Claims *claims, const Claim *claim)
{
    json_t *list = json_array();
    items_at (const ClaimColumn, column, i, claim->column, claims->n_columns) {
        if (isnan(column->ours)) /* not asked is no verdict */
            continue;
        g_autofree char *ours = claims_value_text(claim, column->ours);
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:b}", "name", claims->column[i],
                                        "ours", ours, "holds", column->holds));
    }
    return list;
}

static json_t *claim_json(const Claims *claims, const Claim *claim)
{
    const bool known = !isnan(claim->ours);
    const double allowed = claim->allowed,
                 off =
                     known && allowed > 0 ? (claim->ours - claim->value) / allowed : NAN;
    g_autofree char *text = claims_words(claim);
    g_autofree char *value = claims_value_text(claim, claim->value);
    g_autofree char *ours = claims_value_text(claim, claim->ours);
    g_autofree char *tolerance = claims_value_text(claim, allowed);
    const size_t said = because_of(claim->reason);
    const char *rest = claim->reason + said;
    g_autofree char *because =
        g_strdup_printf("%.*s%s", (int)said, claim->reason, *rest == ' ' ? "\u2026" : "");
    json_t *row = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o}", "text", text,
                            "where", claim->where, "paper", value, "ours",
                            known ? ours : "no result", "verdict", claims_verdict(claim),
                            "because", because, "note", claim->note ? claim->note : "",
                            "columns", report_columns_json(claims, claim));
    set_verdict(row, !known                           ? VERDICT_NONE
                     : claim->holds && !claim->fitted ? VERDICT_GOOD
                     : claim->by_ratio                ? VERDICT_SOME
                                                      : VERDICT_BAD);
    if (!claims_is_yes(claim) && allowed > 0)
        json_object_set_new(row, "tolerance", json_string(tolerance));
    if (*rest)
        json_object_set_new(row, "reason", json_text(rest + strspn(rest, "; ")));
    if (isfinite(off) &&
        !claims_is_yes(claim)) /* percent of the band: 39 to 61 are allowed */
        json_object_set_new(row, "mark", json_real(50 + 11 * CLAMP(off, -4, 4)));
    return row;
}

/* Those that do not hold first, then those without a result. */
static json_t *report_claims_json(const Claims *claims)
{
    json_t *list = json_array();
    for (int turn = 0; turn < 3; turn++)
        items_each (const Claim, claim, claims->claim, claims->n) {
            const bool holds = claim->holds && !claim->fitted;
            const int place = isnan(claim->ours) ? 1 : holds ? 2 : 0;
            if (place == turn)
                json_array_append_new(list, claim_json(claims, claim));
        }
    return list;
}

/* held, failed, open, n, text: of claims, with a verdict on all of them. */
static void set_counts(json_t *row, const ClaimsCount *count)
{
    const int n = (int)count->n, held = (int)count->held, open = (int)count->open;
    g_autofree char *text = claims_count_text(count);
    json_object_update_new(row, json_pack("{s:i, s:i, s:i, s:i, s:i, s:f, s:s}", "n", n,
                                          "held", held, "open", open, "failed",
                                          n - held - open, "by_ratio",
                                          (int)count->by_ratio, "share",
                                          n > 0 ? (double)held / n : 0, "text", text));
    set_verdict(row, n == open   ? VERDICT_NONE
                     : held == n ? VERDICT_GOOD
                     : held > 0  ? VERDICT_SOME
                                 : VERDICT_BAD);
}

/* --- figures --- */

/* "Fig. 13" of "hap-fig13". Caller frees. */
static char *report_label_of(const char *name)
{
    const char *place = strchr(name, '-') ? strchr(name, '-') + 1 : name;
    const char *number = place + strcspn(place, "0123456789");
    return g_str_has_prefix(place, "fig")   ? g_strdup_printf("Fig. %s", number)
           : g_str_has_prefix(place, "tab") ? g_strdup_printf("Table %s", number)
                                            : g_strdup(place);
}

/* The picture, without the strip of claims, which the page has as text. */
static bool add_picture(const ReportParts *report, const ReportPart *part, bool first,
                        json_t *row, GError **error)
{
    g_autofree char *scratch = g_dir_make_tmp("kilter-XXXXXX", error);
    g_autofree char *file =
        scratch ? g_build_filename(scratch, "figure.svg", NULL) : NULL;
    g_autofree char *text = NULL;
    g_autofree char *svg =
        file && figure_draw(part->name, report->store, part->claims, true, file, error) &&
                g_file_get_contents(file, &text, NULL, error)
            ? page_svg(text, first, error)
            : NULL;
    if (scratch)
        output_forget(scratch);
    return svg && json_object_set_new(row, "picture", json_text(svg)) == 0;
}

static json_t *report_figure_json(ReportParts *report, const ReportPart *part, bool first,
                                  GError **error)
{
    g_autofree char *label = report_label_of(part->name);
    json_t *columns = json_array();
    json_t *row =
        json_pack("{s:s, s:s, s:s, s:o, s:o}", "name", part->name, "label", label,
                  "about", experiment_description(part->experiment), "claims",
                  report_claims_json(part->claims), "assumptions", columns);
    set_counts(row, &part->count);
    for (uint32_t i = 0; i < experiment_n_columns(part->experiment); i++)
        json_array_append_new(columns,
                              json_pack("{s:s, s:s}", "name",
                                        experiment_column(part->experiment, i), "about",
                                        experiment_column_about(part->experiment, i)));
    bool good = experiment_select(part->experiment, report->store, error) &&
                add_picture(report, part, first, row, error);
    if (good && report->part->len == 1) { /* pages of one figure have its rows */
        json_t *drawn = json_array(), *rows = json_array();
        json_object_update_new(row,
                               json_pack("{s:o, s:o}", "drawn", drawn, "rows", rows));
        good = report_add_drawn(report, part, drawn, error) &&
               add_rows(report, part, rows, error);
    }
    if (!good)
        g_clear_pointer(&row, json_decref);
    return row;
}

/* --- pages --- */

/* The paper of the part, whose first part it is. */
static json_t *paper_json(const ReportParts *report, const char *paper, GError **error)
{
    ClaimsCount count = {0};
    json_t *row = json_pack("{s:s, s:s, s:[]}", "paper", paper, "title",
                            report_title(paper), "figures");
    pointers_each (const ReportPart, part, report->part)
        if (part->claims && strcmp(part->paper, paper) == 0)
            claims_count(part->claims, &count);
    set_counts(row, &count);
    if (!report_remarks(row, paper, error))
        g_clear_pointer(&row, json_decref);
    return row;
}

static bool add_parts(ReportParts *report, json_t *papers, json_t *sweeps, GError **error)
{
    json_t *paper = NULL;
    values_at (const ReportPart *, part, i, report->part->pdata, report->part->len) {
        const ReportPart *before = i ? report->part->pdata[i - 1] : NULL;
        json_t *row = NULL;
        if (!part->experiment) {
            const bool selected = before && before->experiment;
            row = !selected || report_parts_reopen(report, error)
                      ? sweep_facts(report->store, part->name, error)
                      : NULL;
            json_array_append_new(sweeps, row);
        } else {
            if (!before || strcmp(before->paper, part->paper) != 0) {
                paper = paper_json(report, part->paper, error);
                json_array_append_new(papers, paper);
            }
            row = paper ? report_figure_json(report, part, i == 0, error) : NULL;
            json_array_append_new(json_object_get(paper, "figures"), row);
        }
        if (!row)
            return false;
    }
    return true;
}

char *report_store(const char *file, const char *const *names, const char *running,
                   GError **error)
{
    g_auto(ReportParts) report = {0};
    if (!report_parts_open(&report, file, names, error))
        return NULL;
    const ReportPart *one = report.part->len == 1 ? report.part->pdata[0] : NULL;
    const bool claims = report.count.n > 0;
    g_autofree char *heading =
        claims ? g_strdup("Do the papers\u2019 claims hold?")
        : one  ? g_strdup_printf("Sweep %s: which is the fastest?", one->name)
               : g_strdup_printf("%u sweeps of %s", report.part->len, file);
    json_t *papers = json_array(), *sweeps = json_array(), *runs = json_array();
    json_auto_t *facts =
        json_pack("{s:o, s:o, s:o, s:o, s:s, s:s, s:b}", "papers", papers, "sweeps",
                  sweeps, "runs", runs, "file", json_text(file), "heading", heading,
                  "version", KILTER_VERSION, "several", one == NULL);
    if (running)
        json_object_set_new(facts, "running", json_text(running));
    set_counts(facts, &report.count);
    char *page = NULL;
    /* only pages of one part have rows, which name their run */
    if (store_query(
            report.store,
            one ? "SELECT id, command, version, revision, started FROM run ORDER BY id"
                : "SELECT min(id) AS id, command, version, revision, min(started) AS "
                  "started FROM run GROUP BY command, version, revision ORDER BY 1",
            report_add_row, runs, error) &&
        add_parts(&report, papers, sweeps, error))
        page = page_of(json_array_size(papers) > 0 ? "papers.html" : "sweep.html",
                       heading, facts, error);
    return page;
}
