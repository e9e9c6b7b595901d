/* Reading experiment files: the schema has one field for each axis that the file names. */
#include "experiments/sweep/experiment_file.h"

#include <cyaml/cyaml.h>
#include <jansson.h>
#include <string.h>

#include "data/base/each.h"
#include "data/base/error.h"
#include "data/base/free.h"
#include "data/base/json.h"
#include "data/base/names.h"
#include "data/base/yaml_json.h"

static const char *const PLAIN[GRID_PLAIN] = {"model",       "cluster",  "planner",
                                              "granularity", "fidelity", "seed"};
static const char *const OWNER[] = {"model.", "cluster.", "planner.", "simulation."};

/* --- the axes that the file names --- */

static bool is_named(const char *key)
{
    return any_of(i, G_N_ELEMENTS(OWNER),
                  g_str_has_prefix(key, OWNER[i]) && key[strlen(OWNER[i])]);
}

/* The named axes of a text, in its order; none if it is not YAML, as the reader reports later. */
static GPtrArray *named_axes(const char *path, const char *text, gsize length)
{
    GPtrArray *keys = g_ptr_array_new_with_free_func(g_free);
    json_auto_t *file = yaml_to_json(path, text, length, NULL);
    keys_each (key, json_object_get(file, "grid"))
        if (is_named(key))
            g_ptr_array_add(keys, g_strdup(key));
    return keys;
}

/* --- the schema --- */

struct ExperimentSchema {
    GPtrArray *named;
    cyaml_schema_field_t grid[GRID_AXES + 1], excluded[GRID_AXES + 1], top[8];
    cyaml_schema_value_t exclusion, file;
};

static const cyaml_schema_value_t text_entry = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, CYAML_UNLIMITED)};

#define TEXT_LIST(owner, key)                                                         \
    CYAML_FIELD_SEQUENCE_COUNT(#key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, owner, \
                               key, n_##key, &text_entry, 0, CYAML_UNLIMITED)

static const cyaml_schema_field_t exchange_fields[] = {
    TEXT_LIST(Exchanges, kind),        TEXT_LIST(Exchanges, bytes),
    TEXT_LIST(Exchanges, share),       TEXT_LIST(Exchanges, cluster),
    TEXT_LIST(Exchanges, granularity), CYAML_FIELD_END};

static const cyaml_schema_field_t column_fields[] = {
    CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER, ColumnText, name, 1,
                           CYAML_UNLIMITED),
    CYAML_FIELD_STRING_PTR("about", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, ColumnText,
                           about, 0, CYAML_UNLIMITED),
    TEXT_LIST(ColumnText, replace),
    TEXT_LIST(ColumnText, scale),
    TEXT_LIST(ColumnText, set),
    TEXT_LIST(ColumnText, tests),
    CYAML_FIELD_END};

static const cyaml_schema_value_t column_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, ColumnText, column_fields)};

/* Adds an axis to the schema: as a list of the grid, and as a pattern of an exclusion. */
static void add_axis(struct ExperimentSchema *s, uint32_t axis, const char *key)
{
    const cyaml_schema_field_t end = CYAML_FIELD_END;
    cyaml_schema_field_t list = CYAML_FIELD_SEQUENCE_COUNT(
        "", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, ExperimentText, axis[0].value,
        axis[0].n, &text_entry, 0, CYAML_UNLIMITED);
    cyaml_schema_field_t pattern =
        CYAML_FIELD_STRING_PTR("", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, Exclusion,
                               pattern[0], 0, CYAML_UNLIMITED);
    list.key = pattern.key = key;
    list.data_offset += axis * (uint32_t)sizeof(TextList);
    list.count_offset += axis * (uint32_t)sizeof(TextList);
    pattern.data_offset += axis * (uint32_t)sizeof(char *);
    s->grid[axis] = list;
    s->excluded[axis] = pattern;
    s->grid[axis + 1] = s->excluded[axis + 1] = end;
}

/* The grid's lists are members of the top structure itself. */
static void add_top(struct ExperimentSchema *s)
{
    const cyaml_schema_field_t top[] = {
        CYAML_FIELD_STRING_PTR("name", CYAML_FLAG_POINTER, ExperimentText, name, 1,
                               CYAML_UNLIMITED),
        CYAML_FIELD_STRING_PTR("description", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                               ExperimentText, description, 0, CYAML_UNLIMITED),
        {.key = "grid",
         .value = {.type = CYAML_MAPPING,
                   .flags = CYAML_FLAG_OPTIONAL,
                   .data_size = sizeof(ExperimentText),
                   .mapping.fields = s->grid}},
        CYAML_FIELD_MAPPING("exchange", CYAML_FLAG_OPTIONAL, ExperimentText, exchange,
                            exchange_fields),
        TEXT_LIST(ExperimentText, set),
        CYAML_FIELD_SEQUENCE_COUNT("exclude", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                                   ExperimentText, exclude, n_exclude, &s->exclusion, 0,
                                   CYAML_UNLIMITED),
        CYAML_FIELD_SEQUENCE_COUNT("columns", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
                                   ExperimentText, columns, n_columns, &column_entry, 0,
                                   CYAML_UNLIMITED),
        CYAML_FIELD_END};
    const cyaml_schema_value_t exclusion = {
        CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, Exclusion, NULL)};
    const cyaml_schema_value_t file = {
        CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, ExperimentText, NULL)};
    G_STATIC_ASSERT(sizeof top == sizeof s->top);
    memcpy(s->top, top, sizeof top);
    s->exclusion = exclusion;
    s->exclusion.mapping.fields = s->excluded;
    s->file = file;
    s->file.mapping.fields = s->top;
}

/* Axes that files often name, which the error of an unknown key names. */
static const char *const USUAL[] = {
    "cluster.scale.network", "cluster.only", "model.layers",
    "model.batch",           "model.seq",    "planner.ratios"};

static struct ExperimentSchema *schema_new(GPtrArray *named)
{
    struct ExperimentSchema *s = g_new0(struct ExperimentSchema, 1);
    s->named = named;
    for (uint32_t i = 0; i < GRID_PLAIN; i++)
        add_axis(s, i, PLAIN[i]);
    for (uint32_t i = 0; i < named->len; i++)
        add_axis(s, GRID_PLAIN + i, named->pdata[i]);
    for (uint32_t i = 0; i < MIN(G_N_ELEMENTS(USUAL), GRID_KEYS - named->len); i++)
        add_axis(s, GRID_PLAIN + named->len + i, USUAL[i]);
    add_top(s);
    return s;
}

/* --- columns --- */

/* Lists of the grid that a column can replace entries of. */
static const GridAxis REPLACED[] = {GRID_MODEL, GRID_CLUSTER, GRID_PLANNER,
                                    GRID_GRANULARITY, GRID_FIDELITY};

static void list_as_it_is(const TextList *list, ColumnList *plain)
{
    plain->list.value = g_new(char *, list->n + 1);
    plain->role = g_new(char *, list->n + 1);
    plain->from = g_new(uint32_t, list->n + 1);
    plain->list.n = list->n;
    for (uint32_t i = 0; i < list->n; i++) {
        plain->list.value[i] = plain->role[i] = list->value[i];
        plain->from[i] = i;
    }
}

static void drop(ColumnList *plain, uint32_t index)
{
    plain->list.n--;
    for (uint32_t i = index; i < plain->list.n; i++) {
        plain->list.value[i] = plain->list.value[i + 1];
        plain->role[i] = plain->role[i + 1];
        plain->from[i] = plain->from[i + 1];
    }
}

/* "FROM -> TO": the entries of a list that are FROM, a pattern with * and ?, are TO in this column,
 * or left out where TO is none. TO is borrowed from the file's text. */
static uint32_t replace_in(ColumnList *plain, const char *from, char *to)
{
    uint32_t n = 0;
    for (uint32_t i = plain->list.n; i-- > 0;) {
        if (!g_pattern_match_simple(from, plain->role[i]))
            continue;
        n++;
        if (strcmp(to, "none") == 0)
            drop(plain, i);
        else
            plain->list.value[i] = to;
    }
    return n;
}

static bool replace(ExperimentFile *file, uint32_t column, uint32_t index, GError **error)
{
    static const char ARROW[] = " -> ";
    char *text = file->text->columns[column].replace[index];
    char *arrow = strstr(text, ARROW);
    g_autofree char *from = g_strndup(text, arrow ? (gsize)(arrow - text) : 0);
    for (uint32_t k = 0; arrow && k < G_N_ELEMENTS(REPLACED); k++)
        if (replace_in(&file->plain[REPLACED[k]], from, arrow + strlen(ARROW)) > 0)
            return true;
    return yaml_fail(file->yaml, error,
                     yaml_at(file->yaml, "columns[%u].replace[%u]", column, index),
                     "expected ENTRY%sOTHER, the entry being one of the grid's models, "
                     "clusters, planners, granularities or fidelities, got '%s'",
                     ARROW, text);
}

/* The name becomes part of file names. */
static bool check_name(const ExperimentFile *file, const char *key, const char *name,
                       GError **error)
{
    return strspn(name, G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "._-") == strlen(name) ||
           yaml_fail(file->yaml, error, key,
                     "expected letters, digits and . _ -, got '%s'", name);
}

static bool choose_column(ExperimentFile *file, const char *name, GError **error)
{
    const ExperimentText *text = file->text;
    if (!check_name(file, "name", text->name, error))
        return false;
    for (uint32_t k = 0; k < G_N_ELEMENTS(REPLACED); k++)
        list_as_it_is(&text->axis[REPLACED[k]], &file->plain[REPLACED[k]]);
    for (uint32_t i = 0; i < text->n_columns; i++)
        if (!check_name(file, yaml_at(file->yaml, "columns[%u].name", i),
                        text->columns[i].name, error))
            return false;
    if (!name)
        return true;
    const uint32_t at = NAME_PLACE(text->columns, text->n_columns, name, name);
    if (at == text->n_columns)
        return yaml_fail(file->yaml, error, "columns", "there is no column '%s'", name);
    file->column = &text->columns[at];
    for (uint32_t i = 0; i < file->column->n_replace; i++)
        if (!replace(file, at, i, error))
            return false;
    return true;
}

/* --- the file --- */

void experiment_file_free(ExperimentFile *file)
{
    if (!file)
        return;
    if (file->yaml)
        yaml_close(file->yaml);
    for (uint32_t k = 0; k < G_N_ELEMENTS(REPLACED); k++) {
        free_each(file->plain[REPLACED[k]].list.value, file->plain[REPLACED[k]].role,
                  file->plain[REPLACED[k]].from);
    }
    g_ptr_array_unref(file->schema->named);
    free_each(file->schema, file);
}

ExperimentFile *experiment_file_read(const char *path, const char *column, GError **error)
{
    g_autofree char *content = NULL;
    gsize length = 0;
    g_file_get_contents(path, &content, &length,
                        NULL); /* the next reader reports a failure */
    if (content && g_str_has_prefix(content, "SQLite format"))
        return refused(error,
                       "%s: expected an experiment, got a database; --db=%s names it",
                       path, path);
    if (content && !yaml_is_sound(path, content, length, error))
        return NULL;
    g_autoptr(GPtrArray) named = named_axes(path, content ? content : "", length);
    if (named->len > GRID_KEYS)
        return refused(error, "%s: grid: expected at most %d axes by key, got %u", path,
                       GRID_KEYS, named->len);
    g_autoptr(ExperimentFile) file = g_new0(ExperimentFile, 1);
    file->n_axes = GRID_PLAIN + named->len;
    file->schema = schema_new(g_steal_pointer(&named));
    for (uint32_t i = 0; i < file->n_axes; i++)
        file->key[i] = file->schema->grid[i].key;
    file->yaml = yaml_read(path, &file->schema->file, error);
    if (!file->yaml)
        return NULL;
    file->text = yaml_data(file->yaml);
    for (uint32_t i = GRID_PLAIN; i < file->n_axes; i++)
        if (file->text->axis[i].n == 0) {
            yaml_fail(file->yaml, error, yaml_at(file->yaml, "grid.%s", file->key[i]),
                      "expected at least one value");
            return NULL;
        }
    return choose_column(file, column, error) ? g_steal_pointer(&file) : NULL;
}

bool experiment_file_fail(const ExperimentFile *file, const char *list, uint32_t index,
                          GError *cause, GError **error)
{
    yaml_fail(file->yaml, error, yaml_at(file->yaml, "%s[%u]", list, index), "%s",
              cause->message);
    g_error_free(cause);
    return false;
}

const char *experiment_file_key(const ExperimentFile *file, uint32_t axis,
                                const char *owner)
{
    const size_t length = strlen(owner);
    const char *key = file->key[axis];
    return strncmp(key, owner, length) == 0 && key[length] == '.' ? key + length + 1
                                                                  : NULL;
}

const TextList *experiment_file_list(const ExperimentFile *file, uint32_t axis)
{
    return axis <= GRID_FIDELITY ? &file->plain[axis].list : &file->text->axis[axis];
}
