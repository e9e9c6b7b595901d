/* The table of exporters. */
#include "data/formats/export/case.h"

#include <string.h>

#include "data/base/free.h"
#include "data/base/names.h"

#define EXPORT_ROW(name, description) {#name, description},
static const ExportTarget target_row[] = {EXPORT_TABLE(EXPORT_ROW)};
#define EXPORT_FUNCTION(name, description) export_##name,
static Exporter *const exporter[] = {EXPORT_TABLE(EXPORT_FUNCTION)};

uint32_t export_target_count(void)
{
    return G_N_ELEMENTS(target_row);
}

const ExportTarget *export_target(uint32_t index)
{
    g_assert(index < G_N_ELEMENTS(target_row));
    return &target_row[index];
}

static CLEAR_DEFINE(export_file_clear, ExportFile, file, g_free(file->text));

/* The files for one target, by its row; the case is of the plan. */
static GArray *export_to(ExportCase *c, uint32_t row, GError **error)
{
    GArray *files = array_owning(ExportFile, export_file_clear);
    c->target = target_row[row].name;
    if ((!c->has_strategy || export_need_target(c, error)) &&
        exporter[row](c, files, error))
        return files;
    g_array_unref(files);
    return NULL;
}

GArray *plan_export(const Plan *plan, const Graph *graph, const ClusterView *view,
                    const char *target, const char *base, GError **error)
{
    g_autofree const char **known = NAMES_OF(target_row, name);
    uint32_t i;
    if (!names_find("target", target, known, &i, error))
        return NULL;
    g_auto(ExportCase)
        c = {.plan = plan, .graph = graph, .view = view, .target = target, .base = base};
    return export_case_init(&c, error) ? export_to(&c, i, error) : NULL;
}

char *plan_exports(const Plan *plan, const Graph *graph, const ClusterView *view)
{
    g_autoptr(GString) names = g_string_new("");
    g_auto(ExportCase) c = {.plan = plan, .graph = graph, .view = view, .base = "plan"};
    const bool known = export_case_init(&c, NULL);
    for (uint32_t i = 0; known && i < G_N_ELEMENTS(target_row); i++) {
        g_autoptr(GArray) files =
            strcmp(target_row[i].name, "json") != 0 ? export_to(&c, i, NULL) : NULL;
        if (files)
            g_string_append_printf(names, "%s%s", names->len ? " " : "",
                                   target_row[i].name);
    }
    return g_string_free(g_steal_pointer(&names), FALSE);
}

char *export_reason(const GError *refusal)
{
    const char *colon = strstr(refusal->message, ": "),
               *start = colon ? colon + strlen(": ") : refusal->message;
    g_auto(GStrv) part = g_strsplit(start, " (from instruction ", 2);
    return g_strdup(part[0]);
}

bool export_check(const char *target, const StrategyLayout *layout, const Graph *graph,
                  const ClusterView *view, GError **error)
{
    ExportCase c = {.graph = graph, .view = view, .target = target, .layout = *layout};
    export_case_of(&c);
    return export_need_target(&c, error);
}
