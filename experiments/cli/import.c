/* kilter import: what others measured, as measurements. */
#include <stdio.h>

#include "experiments/cli/command.h"
#include "experiments/cli/measured_report.h"

static bool write_rows(const char *file, const GArray *list, const char *names,
                       GError **error)
{
    g_autofree char *comment =
        g_strdup_printf("kilter " KILTER_VERSION " import of %.1000s", names);
    g_strdelimit(comment, "\r\n", ' ');
    g_autofree char *text = measurements_write(list, comment);
    return output_write(file, text, -1, error);
}

static bool run(int argc, char **argv, const char *output, const CommandOptions *options,
                GError **error)
{
    g_autoptr(GArray) list = measurements_new();
    g_autoptr(GArray) tables = measured_tables_new();
    g_autofree char *names = g_strjoinv(", ", argv + 1);
    if (!measured_read_all(argc, argv, list, tables, error) ||
        (output && !write_rows(output, list, names, error)))
        return false;
    if (options->json)
        command_print_json(json_pack("{s:o, s:i, s:s*}", "files",
                                     measured_report_json(tables, NULL), "measurements",
                                     (int)list->len, "output", output));
    else if (!options->quiet)
        measured_report_print(tables, NULL);
    return true;
}

bool cmd_import(int argc, char **argv, GError **error)
{
    g_autofree char *output = NULL;
    const GOptionEntry entries[] = {
        {"output", 'o', 0, G_OPTION_ARG_FILENAME, &output,
         "Write the measurements (CSV), as kilter calibrate reads them", "FILE"},
        G_OPTION_ENTRY_NULL};
    const CommandSyntax syntax = {
        .name = "import",
        .arguments = "FILE...",
        .min_arguments = 1,
        .max_arguments = 1000,
        .summary = "Reads what others measured, says what it holds and what of it is of "
                   "use, and "
                   "writes it as\nmeasurements: text or JSON output of nccl-tests.",
        .example = "kilter import all_reduce.log sendrecv.log -o measured.csv",
        .entries = entries,
    };
    g_auto(CommandOptions) options = {0};
    if (!command_parse(&syntax, &argc, argv, &options, error))
        return false;
    return (!output || output_check(output, error)) &&
           run(argc, argv, output, &options, error);
}
