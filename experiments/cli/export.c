/* kilter export. */
#include <stdio.h>

#include "data/base/output.h"
#include "data/formats/export/export.h"
#include "experiments/cli/command.h"

/* clang-format off */
#define EXPORT_OPTIONS(X)                \
    X(TEXT, target, "to", 0) \
    X(FILE, output, "output", 'o')
/* clang-format on */
COMMAND_OPTIONS(Own, export_options, EXPORT_OPTIONS)

/* Writes FILE and the files beside it; without -o the first one to stdout. */
static bool write_files(const GArray *files, const Own *own, GError **error)
{
    if (!own->output) {
        fputs(g_array_index(files, ExportFile, 0).text, stdout);
        return true;
    }
    array_each (const ExportFile, file, files) {
        g_autofree char *name = g_strconcat(own->output, file->suffix, NULL);
        if (!output_check(name, error) || !output_write(name, file->text, -1, error))
            return false;
    }
    return true;
}

static json_t *export_files_json(const GArray *files, const Own *own)
{
    json_t *list = json_array();
    array_each (const ExportFile, file, files) {
        g_autofree char *name =
            g_strconcat(own->output ? own->output : "", file->suffix, NULL);
        json_array_append_new(list,
                              json_pack("{s:s, s:s}", "name", name, "text", file->text));
    }
    return json_pack("{s:s, s:o}", "target", own->target, "files", list);
}

/* Nothing is simulated. */
static bool export_plan(const char *file, const Own *own, const CommandOptions *options,
                        GError **error)
{
    Graph *graph = NULL;
    g_autoptr(Cluster) cluster = NULL;
    g_auto(Evaluation) of = {0};
    Plan *plan = evaluation_read(file, &graph, &cluster, error);
    g_autofree char *base =
        own->output ? g_path_get_basename(own->output) : g_strdup("schedule");
    if (!plan || !evaluation_open(plan, graph, cluster, &of, error) ||
        !plan_check_groups(plan, error) || !program_check(plan->program, graph, error))
        return false;
    g_autoptr(GArray) files = plan_export(plan, graph, of.view, own->target, base, error);
    if (!files || ((own->output || !options->json) && !write_files(files, own, error)))
        return false;
    if (options->json)
        command_print_json(export_files_json(files, own));
    return true;
}

static char *export_targets(void)
{
    GString *text = g_string_new(NULL);
    for (uint32_t i = 0; i < export_target_count(); i++)
        g_string_append_printf(text, "%s  %-11s %s", i > 0 ? "\n" : "",
                               export_target(i)->name, export_target(i)->description);
    return g_string_free(text, FALSE);
}

COMMAND_BELOW(export, Own, EXPORT_OPTIONS, export_targets())
{
    if (!own->target)
        return refuse(error, "expected --to TARGET; see kilter export --help");
    return export_plan(argv[1], own, options, error);
}
