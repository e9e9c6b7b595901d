/* The common parts of the drawings of a plan. */
#include "experiments/report/drawing.h"

#include "experiments/report/page.h"

char *drawing_label(const Drawing *drawing, uint32_t device)
{
    const SimTimeline *timeline = drawing->timeline;
    uint32_t alike = 0;
    for (uint32_t j = 0; j < timeline->n_devices; j++)
        alike += timeline->lane[j] == timeline->lane[device];
    const Device *d = &drawing->evaluation->view->device[device];
    return alike > 1
               ? g_strdup_printf("%s, %u alike (%s)", d->name, alike - 1, d->type_name)
               : g_strdup_printf("%s (%s)", d->name, d->type_name);
}

void drawing_text(GString *page, double x, double y, const char *text)
{
    g_string_append_printf(page,
                           "<text x=\"%.1f\" y=\"%.1f\" font-size=\"11\" "
                           "font-family=\"sans-serif\">",
                           x, y);
    page_text(page, text);
    g_string_append(page, "</text>\n");
}

void drawing_legend(GString *page, const char *color, const char *name, bool last)
{
    g_string_append_printf(
        page, "<span style=\"color:%s\" aria-hidden=\"true\">&#9632;</span> %s%s", color,
        name, last ? ". " : ", ");
}
