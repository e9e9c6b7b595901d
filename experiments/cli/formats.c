/* kilter formats. */
#include "data/base/json.h"
#include "data/formats/format.h"
#include "experiments/answers.h"
#include "experiments/cli/command.h"

static json_t *formats_row_json(FileFormat format)
{
    static const struct {
        FormatNoun noun;
        const char *name;
    } NOUN[] = {{FORMAT_MEASURED, "measurements"},
                {FORMAT_MACHINE, "machines"},
                {FORMAT_EXECUTION, "work"},
                {FORMAT_MODEL, "models"},
                {FORMAT_PLANNED, "plans"}};
    const FormatRow *row = format_row(format);
    const char *noun = NULL;
    for (guint i = 0; i < G_N_ELEMENTS(NOUN); i++)
        noun = row->noun == NOUN[i].noun ? NOUN[i].name : noun;
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:b}", "name", row->name, "holds",
                     noun, "description", row->what, "read_by", row->reads, "written_by",
                     row->writes, "library", row->library, "missing", (int)!row->built);
}

COMMAND_PLAIN(formats)
{
    json_t *list = json_array();
    for (FileFormat f = 0; argc == 1 && f < FORMATS; f++)
        json_array_append_new(list, formats_row_json(f));
    for (int i = 1; i < argc; i++) {
        const FileFormat format = format_of_file(argv[i], FORMAT_ANY);
        if (format == FORMATS) {
            json_decref(list);
            return g_file_test(argv[i], G_FILE_TEST_IS_REGULAR)
                       ? refuse(
                             error,
                             "%s: expected a file of a format that kilter formats lists",
                             argv[i])
                       : refuse(error, "%s: expected a file that can be read", argv[i]);
        }
        json_t *row = formats_row_json(format);
        json_object_set_new(row, "file", json_text(argv[i]));
        json_array_append_new(list, row);
    }
    command_report(options, list, ANSWER_FORMATS, NULL);
    return true;
}
