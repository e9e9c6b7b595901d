/* The claims alone, as tables of Markdown. */
#include <math.h>
#include <string.h>

#include "experiments/report/parts.h"
#include "experiments/report/report.h"

/* A cell of Markdown: no bars and no line ends. */
static void add_plain(GString *text, const char *words)
{
    g_string_append(text, " ");
    for (; *words; words++)
        if (*words == '|')
            g_string_append(text, "\\|");
        else
            g_string_append_c(text, *words == '\n' ? ' ' : *words);
    g_string_append(text, " |");
}

static void add_column(GString *text, const Claim *claim, const ClaimColumn *column)
{
    g_autofree char *ours = column && !isnan(column->ours)
                                ? claims_value_text(claim, column->ours)
                                : g_strdup("");
    g_autofree char *both =
        g_strconcat(ours, *ours && column->holds ? " (holds)" : "", NULL);
    add_plain(text, both);
}

char *report_store_markdown(const char *file, const char *const *names, GError **error)
{
    g_auto(ReportParts) report = {0};
    if (!report_parts_open(&report, file, names, error))
        return NULL;
    GString *text = g_string_new(NULL);
    g_autofree char *held = claims_count_text(&report.count);
    g_string_append_printf(text, "%s.\n", held);
    values_at (const ReportPart *, part, i, report.part->pdata, report.part->len) {
        const ReportPart *before = i ? report.part->pdata[i - 1] : NULL;
        if (part->claims && (!before || strcmp(before->paper, part->paper) != 0))
            g_string_append_printf(
                text,
                "\n## %s\n\n| figure | claim | paper | as published | verdict "
                "| calibrated | best | place | other columns | cause |\n"
                "|---|---|---|---|---|---|---|---|---|---|\n",
                report_title(part->paper));
        for (uint32_t k = 0; part->claims && k < part->claims->n; k++) {
            const Claim *claim = &part->claims->claim[k];
            g_autofree char *words = claims_words(claim);
            g_autofree char *value = claims_value_text(claim, claim->value);
            g_autofree char *tolerance = claims_value_text(claim, claim->allowed);
            g_autofree char *paper =
                claims_is_yes(claim) ? g_strdup(value)
                                     : g_strdup_printf("%s \u00b1 %s", value, tolerance);
            g_autofree char *ours = claims_value_text(claim, claim->ours);
            g_string_append(text, "|");
            add_plain(text, part->name);
            add_plain(text, words);
            add_plain(text, paper);
            add_plain(text, ours);
            add_plain(text, claims_verdict(claim));
            for (const char *const *name = report_columns; *name; name++)
                add_column(text, claim, claims_column(part->claims, claim, *name));
            add_plain(text, claim->where);
            g_autofree char *columns =
                claims_columns_text(part->claims, claim, report_columns);
            add_plain(text, columns);
            add_plain(text, claim->reason);
            g_string_append(text, "\n");
        }
    }
    return g_string_free(text, FALSE);
}
