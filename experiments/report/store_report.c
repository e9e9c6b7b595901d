/* The contents of a store as a page: papers' claims and figures, and sweeps. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/base/json.h"
#include "data/base/version.h"
#include "data/store/store.h"
#include "experiments/figures/figure.h"
#include "experiments/report/drawn.h"
#include "experiments/report/page.h"
#include "experiments/report/parts.h"
#include "experiments/report/report.h"
#include "experiments/report/summary.h"
#include "experiments/report/sweep_facts.h"

/* --- tables --- */

/* The paper's number or ours; yes or no, where the claim says so. */
static void add_value(GString *page, const Claim *claim, double value, const char *class)
{
    if (claims_is_yes(claim) && !isnan(value)) {
        g_autofree char *text = claims_value_text(claim, value);
        page_mark(page, class, text);
    } else {
        g_autofree char *format = claims_format(claim);
        page_number_marked(page, value, format, class);
    }
}

/* A claim's number in a column of the experiment, coloured by whether the claim holds with it. */
static void add_column(GString *page, const Claim *claim, const ClaimColumn *column)
{
    if (column && !isnan(column->ours))
        add_value(page, claim, column->ours, column->holds ? "n holds" : "n fails");
    else
        page_mark(page, "n", "");
}

static void add_claims(const ReportParts *report, const char *paper)
{
    static const char *const COLUMNS[] = {
        "figure",        "claim",       "#paper",      "#\u00b1", "#as published",
        "verdict",       "cause",       "#calibrated", "#best",   "place",
        "other columns", "our results", NULL};
    GString *page = report->page;
    page_table(page, NULL, COLUMNS);
    for (guint i = 0; i < report->part->len; i++) {
        const ReportPart *part = report->part->pdata[i];
        for (uint32_t k = 0;
             strcmp(part->paper, paper) == 0 && part->claims && k < part->claims->n;
             k++) {
            const Claim *claim = &part->claims->claim[k];
            page_row(page);
            page_link(page, part->name, part->name);
            g_autofree char *text = report_claim_text(claim);
            page_cell(page, text);
            add_value(page, claim, claim->value, "n");
            if (claims_is_yes(claim))
                page_mark(page, "n", "");
            else
                add_value(page, claim, claim->allowed, "n");
            add_value(page, claim, claim->ours, "n");
            page_mark(page, claim->holds ? "holds" : "fails", claims_verdict(claim));
            page_cell(page, claim->reason);
            for (const char *const *name = report_columns; *name; name++)
                add_column(page, claim, claims_column(part->claims, claim, *name));
            page_cell(page, claim->where);
            g_autofree char *columns =
                claims_columns_text(part->claims, claim, report_columns);
            page_cell(page, columns);
            page_cell(page, claim->note);
            page_row_end(page);
        }
    }
    page_table_end(page);
}

static void add_cells(GString *page, uint32_t n_columns, char **value, char **column)
{
    for (uint32_t i = 0; i < n_columns; i++) {
        char *end = NULL;
        const double number = value[i] ? g_ascii_strtod(value[i], &end) : 0;
        if (strcmp(column[i], "run") == 0) {
            g_autofree char *id = g_strdup_printf("run-%s", value[i]);
            page_link(page, id, value[i]);
        } else if (strcmp(column[i], "identity") != 0 && value[i] && end > value[i] &&
                   *end == 0)
            page_number(page, number, "%.6g");
        else
            page_cell(page, value[i]);
    }
    page_row_end(page);
}

typedef struct {
    GString *page;
    const char *experiment; /* NULL: nothing links to the rows */
} RowList;

static void add_result(uint32_t n_columns, char **value, char **column, void *to)
{
    const RowList *list = to;
    g_autofree char *id =
        list->experiment ? report_row_id(list->experiment, value[0]) : NULL;
    if (id)
        page_row_of(list->page, id);
    else
        page_row(list->page);
    add_cells(list->page, n_columns, value, column);
}

/* The rows of an experiment, each with its question's identity and the run that answered it. */
static bool add_rows(const ReportParts *report, const ReportPart *part, GError **error)
{
    static const char *const COLUMNS[] = {
        "#row",     "model",       "cluster",  "planner", "axes",
        "fidelity", "granularity", "#GPUs",    "status",  "#iteration s",
        "#bound s", "#peak GiB",   "identity", "run",     NULL};
    g_autofree char *name = report_quoted(part->name);
    g_autofree char *sql = g_strdup_printf(
        "SELECT ordinal, model, cluster, entry || "
        "coalesce((SELECT ' (' || group_concat(key || '=' || value, ' ') || ')' "
        "FROM json_each(detail, '$.strategy')), ''), axes, fidelity, granularity, gpus, "
        "status || coalesce(': ' || message, ''), iteration_time_s, lower_bound_s, "
        "peak_memory_bytes / 1073741824.0, substr(hash, 1, 16) AS identity, run FROM "
        "result "
        "WHERE experiment = '%s' ORDER BY ordinal",
        name);
    g_string_append(report->page, "<details>\n");
    page_add(report->page, "summary", "Rows of %s", part->name);
    page_table(report->page, NULL, COLUMNS);
    RowList list = {report->page, part->experiment ? part->name : NULL};
    const bool good = store_query(report->store, sql, add_result, &list, error);
    page_table_end(report->page);
    g_string_append(report->page, "</details>\n");
    return good;
}

static void add_run_row(uint32_t n_columns, char **value, char **column, void *to)
{
    GString *page = to;
    g_autofree char *id = g_strdup_printf("run-%s", value[0]);
    (void)column;
    page_row_of(page, id);
    page_mark(page, "n", value[0]);
    for (uint32_t i = 1; i < n_columns; i++)
        page_cell(page, value[i]);
    page_row_end(page);
}

static bool add_runs(const ReportParts *report, GError **error)
{
    static const char *const COLUMNS[] = {"#run", "command", "version", "commit",
                                          "host", "started", NULL};
    page_heading(report->page, "h2", "runs", "Runs");
    page_add(
        report->page, "p",
        "Who answered: the command, the version and the commit that it was built "
        "from. A row's identity begins the SHA-256 of all that its answer depends on: "
        "kilter show IDENTITY --db %s prints its configuration, kilter rerun IDENTITY "
        "--db %s runs it again and says whether the answer is the same.",
        report->file, report->file);
    page_table(report->page, NULL, COLUMNS);
    const bool good = store_query(
        report->store,
        "SELECT id, command, version, revision, host, started FROM run ORDER BY id",
        add_run_row, report->page, error);
    page_table_end(report->page);
    return good;
}

/* --- figures --- */

static bool add_figure(const ReportParts *report, const ReportPart *part, GError **error)
{
    g_autofree char *scratch = g_dir_make_tmp("kilter-XXXXXX", error);
    if (!scratch)
        return false;
    g_autofree char *svg = g_strdup_printf("%s/%s.svg", scratch, part->name);
    g_autofree char *png = g_strdup_printf("%s/%s.png", scratch, part->name);
    g_autofree char *text = NULL;
    gsize length;
    const bool good =
        figure_draw(part->name, report->store, part->claims, scratch, error) &&
        g_file_get_contents(svg, &text, &length, error);
    if (good) {
        g_autofree char *drawn =
            page_svg(text, report->page->len > 0 && !strstr(report->page->str, "<defs>"));
        g_string_append_printf(report->page, "<figure class=\"drawn\">%s</figure>\n",
                               drawn);
    }
    remove(svg);
    remove(png);
    remove(scratch);
    return good;
}

static bool add_experiment(const ReportParts *report, const ReportPart *part,
                           GError **error)
{
    page_heading(report->page, "h3", part->name, part->name);
    if (!experiment_select(part->experiment, report->store, error))
        return false;
    g_autofree char *held = claims_count_text(&part->count);
    page_add(report->page, "p", "%s. %s. To judge them again: kilter reproduce %s",
             experiment_description(part->experiment), held, part->name);
    for (uint32_t i = 0; i < experiment_n_columns(part->experiment); i++)
        page_add(report->page, "p", "Column %s: %s.",
                 experiment_column(part->experiment, i),
                 experiment_column_about(part->experiment, i));
    return add_figure(report, part, error) && report_add_drawn(report, part, error) &&
           add_rows(report, part, error);
}

/* --- sweeps --- */

static void add_run_json(uint32_t n_columns, char **value, char **column, void *list)
{
    json_t *run = json_object();
    for (uint32_t i = 0; i < n_columns; i++)
        if (value[i] && *value[i])
            json_object_set_new(run, column[i], json_text(value[i]));
    json_array_append_new(list, run);
}

/* The page of a store without papers' experiments. `running`: how far a sweep is; NULL: it is over. */
static char *report_sweeps(ReportParts *report, const char *running, GError **error)
{
    const ReportPart *first = report->part->pdata[0];
    g_autofree char *several =
        g_strdup_printf("%u sweeps of %s", report->part->len, report->file);
    g_autofree char *one =
        g_strdup_printf("Sweep %s: which is the fastest?", first->name);
    const char *heading = report->part->len > 1 ? several : one;
    json_t *sweeps = json_array(), *runs = json_array();
    json_t *facts =
        json_pack("{s:o, s:o, s:o, s:o, s:s, s:b}", "sweeps", sweeps, "runs", runs,
                  "file", json_text(report->file), "heading", json_text(heading),
                  "version", KILTER_VERSION, "several", report->part->len > 1);
    bool good =
        store_query(report->store,
                    "SELECT id, command, version, revision, started FROM run ORDER BY id",
                    add_run_json, runs, error);
    if (running)
        json_object_set_new(facts, "running", json_text(running));
    for (guint i = 0; good && i < report->part->len; i++) {
        const ReportPart *part = report->part->pdata[i];
        json_t *sweep = sweep_facts(report->store, part->name, error);
        good = sweep != NULL;
        if (good)
            json_array_append_new(sweeps, sweep);
    }
    char *page = good ? page_of("sweep.html", heading, facts, error) : NULL;
    json_decref(facts);
    return page;
}

/* --- pages --- */

static void add_head(const ReportParts *report)
{
    GString *page = report->page;
    g_autofree char *held = claims_count_text(&report->count);
    if (report->count.n > 0) {
        page_add(page, "p",
                 "%s here. A claim holds if ours has the sign of the paper's effect and "
                 "is no farther from the paper's number than its tolerance and half "
                 "of the effect; by ratio, if it is within the tolerance alone, which is "
                 "mostly 10 %% of a ratio. Each of the others has its cause beside it.",
                 held);
        report_add_summary(report);
    }
    page_add(page, "p", "Made by kilter " KILTER_VERSION " of %s.", report->file);
    g_string_append(page, "<nav aria-label=\"Contents\">\n<ul>\n");
    for (guint i = 0; i < report->part->len; i++) {
        const ReportPart *part = report->part->pdata[i];
        g_string_append(page, "<li>");
        page_anchor(page, part->name, part->name);
        g_string_append(page, "</li>\n");
    }
    g_string_append(page, "<li><a href=\"#runs\">runs</a></li>\n</ul>\n</nav>\n");
}

static bool add_part(ReportParts *report, guint index, GError **error)
{
    const ReportPart *part = report->part->pdata[index];
    const ReportPart *before = index ? report->part->pdata[index - 1] : NULL;
    if (!before || strcmp(before->paper, part->paper) != 0) {
        const ClaimsCount count = report_count(report, part->paper);
        g_autofree char *id = g_strdup_printf("paper-%s", part->paper);
        page_heading(report->page, "h2", id, report_title(part->paper));
        if (count.n > 0) {
            g_autofree char *held = claims_count_text(&count);
            page_add(report->page, "p", "%s.", held);
            add_claims(report, part->paper);
            if (!report_add_remarks(report, part->paper, error))
                return false;
        }
    }
    return !part->experiment || add_experiment(report, part, error);
}

char *report_store(const char *file, const char *const *names, const char *running,
                   GError **error)
{
    g_auto(ReportParts) report = {0};
    if (!report_parts_open(&report, file, names, error))
        return NULL;
    bool papers = false;
    for (guint i = 0; i < report.part->len; i++)
        papers |= ((ReportPart *)report.part->pdata[i])->experiment != NULL;
    if (!papers)
        return report_sweeps(&report, running, error);
    report.page = page_new(report.count.n ? "Kilter: claims of papers, and our results"
                                          : "Kilter: results",
                           error);
    if (!report.page)
        return NULL;
    add_head(&report);
    for (guint i = 0; i < report.part->len; i++)
        if (!add_part(&report, i, error))
            return NULL;
    return add_runs(&report, error) ? page_end(g_steal_pointer(&report.page)) : NULL;
}
