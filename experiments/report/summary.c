/* The beginning of a page of papers: how many claims hold, and which are not covered. */
#include "experiments/report/summary.h"

#include <string.h>

#include "data/base/csv.h"
#include "data/base/path.h"
#include "experiments/report/page.h"

ClaimsCount report_count(const ReportParts *report, const char *paper)
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
    page_number(page, count.by_ratio, "%.0f");
    page_number(page, count.calibrated, "%.0f");
    page_row_end(page);
}

void report_add_summary(const ReportParts *report)
{
    static const char *const COLUMNS[] = {
        "paper", "#claims", "#hold", "#hold by ratio", "#hold with the column calibrated",
        NULL};
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
        add_count(report->page, id, report_title(last), report_count(report, last));
    }
    add_count(report->page, NULL, "all", report_count(report, NULL));
    page_table_end(report->page);
}

/* --- what is said about a paper as a whole --- */

/* A table of a paper, from the rows of a CSV file that are about it. */
typedef struct {
    const char *file, *caption;
    const char *key[4 + 1];  /* the file's columns, the first of which is the paper */
    const char *head[3 + 1]; /* the table's */
} Remarks;

static const Remarks REMARKS[] = {
    {"data/paper/contradictions.csv",
     "Where the paper contradicts itself",
     {"paper", "place", "what", "shown", NULL},
     {"place", "what it says", "where it shows here", NULL}},
    {"data/paper/uncovered.csv",
     "What is not covered",
     {"paper", "place", "what", "why", NULL},
     {"place", "what it shows", "why it is not here", NULL}},
};

typedef struct {
    const Remarks *remarks;
    GString *page;
    const char *paper;
    uint32_t n;
} RemarkList;

static bool add_remark(const Csv *csv, void *data, GError **error)
{
    RemarkList *list = data;
    (void)error;
    if (strcmp(csv_text(csv, list->remarks->key[0]), list->paper) != 0)
        return true;
    if (list->n++ == 0)
        page_table(list->page, list->remarks->caption, list->remarks->head);
    page_row(list->page);
    for (uint32_t i = 1; list->remarks->key[i]; i++)
        page_cell(list->page, csv_text(csv, list->remarks->key[i]));
    page_row_end(list->page);
    return true;
}

static bool add_remarks(const ReportParts *report, const Remarks *remarks,
                        const char *paper, GError **error)
{
    static const char *const others[] = {NULL};
    g_autofree char *path = path_find(remarks->file);
    if (!path)
        return true;
    RemarkList list = {remarks, report->page, paper, 0};
    g_autoptr(Csv) csv = csv_read(path, error);
    if (!csv || !csv_expect(csv, remarks->key, others, error) ||
        !csv_each(csv, add_remark, &list, error))
        return false;
    if (list.n > 0)
        page_table_end(report->page);
    return true;
}

bool report_add_remarks(const ReportParts *report, const char *paper, GError **error)
{
    for (uint32_t i = 0; i < G_N_ELEMENTS(REMARKS); i++)
        if (!add_remarks(report, &REMARKS[i], paper, error))
            return false;
    return true;
}
