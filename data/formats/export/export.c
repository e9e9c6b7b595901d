/* The table of exporters. */
#include "data/formats/export/case.h"

#include <string.h>

#include "data/base/names.h"

static const ExportTarget target_row[] = {
#define X(name, description) {#name, description},
    EXPORT_TABLE(X)
#undef X
};
static Exporter *const exporter[] = {
#define X(name, description) export_##name,
    EXPORT_TABLE(X)
#undef X
};

uint32_t export_target_count(void)
{
    return G_N_ELEMENTS(target_row);
}

const ExportTarget *export_target(uint32_t index)
{
    g_assert(index < G_N_ELEMENTS(target_row));
    return &target_row[index];
}

static void export_file_clear(ExportFile *file)
{
    g_free(file->text);
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
    GArray *files = g_array_new(FALSE, FALSE, sizeof(ExportFile));
    g_array_set_clear_func(files, (GDestroyNotify)export_file_clear);
    if (export_case_init(&c, error) &&
        (!c.has_strategy || export_need_target(&c, error)) &&
        exporter[i](&c, files, error))
        return files;
    g_array_unref(files);
    return NULL;
}

const char *export_reason(const GError *refusal)
{
    const char *last = g_strrstr(refusal->message, ": ");
    return last ? last + strlen(": ") : refusal->message;
}

bool export_check(const char *target, const StrategyLayout *layout, const Graph *graph,
                  const ClusterView *view, GError **error)
{
    ExportCase c = {.graph = graph, .view = view, .target = target, .layout = *layout};
    export_case_of(&c);
    return export_need_target(&c, error);
}
