/* kilter table. */
#include <stdio.h>

#include "data/base/output.h"
#include "data/store/store.h"
#include "experiments/cli/command.h"
#include "experiments/cli/limits.h"
#include "experiments/cli/screen.h"
#include "experiments/sweep/experiment.h"
#include "experiments/sweep/frame.h"

/* clang-format off */
#define TABLE_OPTIONS(X)                 \
    X(TEXT, rows, "rows", 0)             \
    X(TEXT, columns, "columns", 0)       \
    X(TEXT, value, "value", 0)           \
    X(TEXT, reduce, "reduce", 0)         \
    X(FLAG, all, "all", 0)               \
    X(TEXT, experiment, "experiment", 0) \
    X(FLAG, markdown, "md", 0)           \
    X(FLAG, csv, "csv", 0)               \
    X(FLAG, csv_safe, "csv-safe", 0)     \
    X(FLAG, tex, "tex", 0)               \
    X(FILE, output, "output", 'o')
/* clang-format on */
COMMAND_OPTIONS(Own, table_options, TABLE_OPTIONS)

static json_t *table_rows_json(const Frame *frame)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < frame->row->len; i++) {
        json_t *row = json_object();
        for (uint32_t k = 0; k < frame->column->len; k++) {
            const char *text = frame_at(frame, i, k);
            json_object_set_new(row, frame->column->pdata[k],
                                text ? json_string(text) : json_null());
        }
        json_array_append_new(list, row);
    }
    return list;
}

/* Writes the table to the file, or to the terminal. */
static bool table_give(const Frame *frame, const Own *own, const CommandOptions *options,
                       GError **error)
{
    const FrameFormat format = own->csv_safe   ? FRAME_CSV_SAFE
                               : own->csv      ? FRAME_CSV
                               : own->markdown ? FRAME_MARKDOWN
                               : own->tex      ? FRAME_TEX
                                               : FRAME_TEXT;
    g_autofree char *text = frame_write(frame, format);
    if (own->output && !output_write(own->output, text, -1, error))
        return false;
    if (options->json)
        command_print_json(own->output
                               ? json_pack("{s:s, s:i}", "output", own->output, "n_rows",
                                           (int)frame->row->len)
                               : json_pack("{s:o}", "rows", table_rows_json(frame)));
    else if (!own->output && !options->quiet)
        screen_put(text, stdout);
    return true;
}

static bool read_reduce(const char *word, PivotReduce *reduce, GError **error)
{
    static const char *const WORDS[] = {[PIVOT_MIN] = "min",
                                        [PIVOT_MAX] = "max",
                                        [PIVOT_MEAN] = "mean",
                                        [PIVOT_COUNT] = "count",
                                        [PIVOT_COUNT + 1] = NULL};
    uint32_t index = *reduce;
    if (word && !names_find("--reduce", word, WORDS, &index, error))
        return false;
    *reduce = (PivotReduce)index;
    return true;
}

/* Reads the results of an experiment: of its name all that the database has, of its file only those
 * that the file asks for now. Says so where results with the same words are mixed. */
static Frame *read_results(const char *database, const char *experiment,
                           const CommandOptions *options, GError **error)
{
    g_autoptr(Store) store = store_open_read(database, error);
    if (!store)
        return NULL;
    const bool by_file = experiment && g_str_has_suffix(experiment, ".yaml");
    const ExperimentChange change = command_experiment_change(options, NULL);
    g_autoptr(Experiment) asks =
        by_file ? experiment_load(experiment, &change, error) : NULL;
    if (by_file && (!asks || !experiment_select(asks, store, error)))
        return NULL;
    Frame *frame = frame_read(store, by_file ? NULL : experiment, error);
    if (!frame && by_file)
        kilter_prefix(error, "%s as it is now: ", experiment);
    const uint32_t repeated = frame ? frame_n_repeated(frame) : 0;
    if (repeated > 0 && !options->quiet)
        limits_note("%u of %u results have the words of another one; a file or an option "
                    "has changed since. --experiment FILE.yaml shows those that the file "
                    "asks for now",
                    repeated, frame->row->len);
    return frame;
}

COMMAND(table, Own, TABLE_OPTIONS, 0)
{
    PivotSpec spec = {own->rows ? own->rows : "model,cluster",
                      own->columns ? own->columns : "planner",
                      own->value ? own->value : "iteration_time_s", PIVOT_MIN};
    spec.reduce = frame_best(spec.value);
    if (own->all && (own->rows || own->columns || own->value || own->reduce))
        return refuse(error, "--all: expected no --rows, --columns, --value and "
                             "--reduce, as all columns are shown");
    if (!read_reduce(own->reduce, &spec.reduce, error))
        return false;
    g_autoptr(Frame) frame = read_results(argv[1], own->experiment, options, error);
    if (own->all)
        return frame && table_give(frame, own, options, error);
    g_autoptr(Frame) pivot = frame ? frame_pivot(frame, &spec, error) : NULL;
    return pivot && table_give(pivot, own, options, error);
}
