/* Days of training on the page of a plan. */
#include <string.h>

#include "experiments/report/drawing.h"
#include "experiments/report/page.h"

static const struct {
    const char *key, *name;
} PART[] = {
    {"work", "work that was kept"},
    {"slow", "slowed by stragglers and missing machines"},
    {"lost", "work thrown away by failures"},
    {"save", "saving checkpoints"},
    {"restart", "restarts"},
    {"wait", "waiting for machines"},
};

static double number_at(const json_t *object, const char *key)
{
    g_assert(json_is_number(json_object_get(object, key)));
    return json_number_value(json_object_get(object, key));
}

void drawing_add_days(GString *page, const json_t *campaign, const char *svg)
{
    static const char *const COLUMNS[] = {"part", "#% of the time", "#hours", NULL};
    const json_t *parts = json_object_get(campaign, "parts");
    const double hours = 24 * number_at(campaign, "days");
    page_heading(page, "h2", "days", "Days of training");
    page_add(
        page, "p",
        "%.4g days, %d runs: goodput %.2f %% (5 to 95 %% of the runs: %.2f to %.2f), "
        "%.1f failures, %.0f checkpoints.",
        number_at(campaign, "days"), (int)number_at(campaign, "runs"),
        100 * number_at(campaign, "goodput"), 100 * number_at(campaign, "goodput_5"),
        100 * number_at(campaign, "goodput_95"), number_at(campaign, "failures"),
        number_at(campaign, "checkpoints"));
    page_table(page, "Where the time goes, on average", COLUMNS);
    for (uint32_t i = 0; i < G_N_ELEMENTS(PART); i++) {
        const double part = number_at(parts, PART[i].key);
        page_row(page);
        page_cell(page, PART[i].name);
        page_number(page, 100 * part, "%.3f");
        page_number(page, hours * part, "%.3g");
        page_row_end(page);
    }
    page_table_end(page);
    page_picture(page, svg, strlen(svg),
                 "Goodput, and where the rest of the time goes, by the interval between "
                 "checkpoints");
}
