/* What a page of papers says before the details: how many claims hold, and what is not covered. */
#include "experiments/report/summary.h"

#include <string.h>

#include "experiments/report/page.h"

static ClaimsCount count_of(const ReportParts *report, const char *paper)
{
    ClaimsCount count = {0};
    for (guint i = 0; i < report->part->len; i++) {
        const ReportPart *part = report->part->pdata[i];
        if (part->claims && (!paper || strcmp(part->paper, paper) == 0))
            claims_count(part->claims, &count);
    }
    return count;
}

static void add_count(GString *page, const char *id, const char *title, ClaimsCount count)
{
    page_row(page);
    if (id)
        page_link(page, id, title);
    else
        page_cell(page, title);
    page_number(page, count.n, "%.0f");
    page_number(page, count.held, "%.0f");
    page_number(page, count.calibrated, "%.0f");
    page_row_end(page);
}

void report_add_summary(const ReportParts *report)
{
    static const char *const COLUMNS[] = {"paper", "#claims", "#hold",
                                          "#hold with the column calibrated", NULL};
    const char *last = NULL;
    page_table(report->page,
               "Claims by paper. Nothing is fitted to a paper but in the column "
               "calibrated, whose numbers were fitted to the paper itself.",
               COLUMNS);
    for (guint i = 0; i < report->part->len; i++) {
        const ReportPart *part = report->part->pdata[i];
        if (!part->claims || (last && strcmp(last, part->paper) == 0))
            continue;
        last = part->paper;
        g_autofree char *id = g_strdup_printf("paper-%s", last);
        add_count(report->page, id, report_title(last), count_of(report, last));
    }
    add_count(report->page, NULL, "all", count_of(report, NULL));
    page_table_end(report->page);
}

/* --- what is not covered --- */

typedef struct {
    GString *page;
    const char *paper;
    uint32_t n;
} Uncovered;

static bool add_uncovered(const Csv *csv, void *data, GError **error)
{
    static const char *const COLUMNS[] = {"place", "what it shows", "why it is not here",
                                          NULL};
    Uncovered *list = data;
    (void)error;
    if (strcmp(csv_text(csv, "paper"), list->paper) != 0)
        return true;
    if (list->n++ == 0)
        page_table(list->page, "What is not covered", COLUMNS);
    page_row(list->page);
    page_cell(list->page, csv_text(csv, "place"));
    page_cell(list->page, csv_text(csv, "what"));
    page_cell(list->page, csv_text(csv, "why"));
    page_row_end(list->page);
    return true;
}

bool report_add_uncovered(const ReportParts *report, const char *paper, GError **error)
{
    static const char *const KEYS[] = {"paper", "place", "what", "why", NULL};
    static const char *const others[] = {NULL};
    g_autofree char *path = path_find("data/paper/uncovered.csv");
    if (!path)
        return true;
    Uncovered list = {report->page, paper, 0};
    g_autoptr(Csv) csv = csv_read(path, error);
    if (!csv || !csv_expect(csv, KEYS, others, error) ||
        !csv_each(csv, add_uncovered, &list, error))
        return false;
    if (list.n > 0)
        page_table_end(report->page);
    return true;
}
