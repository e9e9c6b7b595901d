/* The schemas of files that people write, for editors: data/schemas/NAME-file.json has exactly the
 * keys of the reader's own table, each with a description, and every bundled file matches.
 * With KILTER_RECORD=1 the keys are written anew; descriptions stay. */
#include <cyaml/cyaml.h>
#include <jansson.h>
#include <string.h>

#include "data/base/yaml_json.h"
#include "data/cluster/cluster.h"
#include "data/cluster/runtime.h"
#include "data/cluster/sheet.h"
#include "data/models/architecture.h"
#include "data/strategy/strategy.h"
#include "experiments/sweep/experiment_file.h"
#include "tests/support/schema.h"
#include "tests/test.h"

/* --- the tables of the readers --- */

/* The schemas by which libcyaml has read. */
static const cyaml_schema_value_t *table_read[16];
static uint32_t n_read;

cyaml_err_t __real_cyaml_load_data(const uint8_t *input, size_t length,
                                   const cyaml_config_t *config,
                                   const cyaml_schema_value_t *schema,
                                   cyaml_data_t **data, unsigned *count);
cyaml_err_t __wrap_cyaml_load_data(const uint8_t *input, size_t length,
                                   const cyaml_config_t *config,
                                   const cyaml_schema_value_t *schema,
                                   cyaml_data_t **data, unsigned *count);
cyaml_err_t __wrap_cyaml_load_data(const uint8_t *input, size_t length,
                                   const cyaml_config_t *config,
                                   const cyaml_schema_value_t *schema,
                                   cyaml_data_t **data, unsigned *count)
{
    if (n_read < G_N_ELEMENTS(table_read) &&
        (!n_read || table_read[n_read - 1] != schema))
        table_read[n_read++] = schema;
    return __real_cyaml_load_data(input, length, config, schema, data, count);
}

static json_t *scalar(void)
{
    return json_pack("[s, s, s]", "string", "number", "boolean");
}

/* Copies what a table does not know from the schema in the file. */
static void keep(json_t *schema, const json_t *old)
{
    static const char *const KEPT[] = {"description", "enum", "patternProperties"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(KEPT); i++) {
        json_t *value = json_object_get(old, KEPT[i]);
        if (value)
            json_object_set(schema, KEPT[i], value);
    }
    if (json_object_get(old, "enum"))
        json_object_del(schema, "type");
}

static json_t *written(const cyaml_schema_value_t *table, const json_t *old);

static json_t *written_mapping(const cyaml_schema_field_t *field, const json_t *old)
{
    json_t *properties = json_object(), *required = json_array();
    for (; field->key; field++) {
        const json_t *before =
            json_object_get(json_object_get(old, "properties"), field->key);
        json_object_set_new(properties, field->key, written(&field->value, before));
        if (!(field->value.flags & CYAML_FLAG_OPTIONAL))
            json_array_append_new(required, json_string(field->key));
    }
    json_t *schema = json_pack("{s:s, s:o, s:b}", "type", "object", "properties",
                               properties, "additionalProperties", 0);
    if (json_array_size(required))
        json_object_set(schema, "required", required);
    json_decref(required);
    return schema;
}

/* The schema that says what the table says, with what is kept of the one in the file. */
static json_t *written(const cyaml_schema_value_t *table, const json_t *old)
{
    json_t *schema;
    if (table->type == CYAML_MAPPING) {
        /* data/base/yaml.c: a mapping that begins with `link` has a short form. */
        const bool is_short = table->mapping.fields[0].key &&
                              strcmp(table->mapping.fields[0].key, "link") == 0;
        const json_t *of =
            is_short ? json_array_get(json_object_get(old, "anyOf"), 1) : old;
        schema = written_mapping(table->mapping.fields, of);
        if (is_short) {
            keep(schema, of);
            schema = json_pack("{s:[{s:s}, o]}", "anyOf", "type", "string", schema);
        }
    } else if (table->type == CYAML_SEQUENCE) {
        schema = json_pack("{s:s, s:o}", "type", "array", "items",
                           written(table->sequence.entry, json_object_get(old, "items")));
    } else {
        schema = json_pack("{s:o}", "type", scalar());
    }
    keep(schema, old);
    return schema;
}

/* --- the files of schemas --- */

static char *path_of(const char *name)
{
    return g_strdup_printf(KILTER_HOME "/data/schemas/%s.json", name);
}

static void expect_described(const char *name, const json_t *schema)
{
    const char *key;
    json_t *member;
    json_object_foreach (json_object_get(schema, "properties"), key, member) {
        if (!json_object_get(member, "description"))
            TEST_FAIL_AT(__FILE__, __LINE__, "%s.json: %s has no description", name, key);
        expect_described(name, member);
        expect_described(name, json_object_get(member, "items"));
        expect_described(name, json_array_get(json_object_get(member, "anyOf"), 1));
    }
}

/* Takes a schema: the file has just this, or is written. */
static void expect_file(const char *name, json_t *schema, const json_t *old)
{
    g_autofree char *path = path_of(name);
    json_object_set_new(schema, "$schema",
                        json_string("https://json-schema.org/draft/2020-12/schema"));
    json_object_set(schema, "title", json_object_get(old, "title"));
    keep(schema, old);
    if (g_getenv("KILTER_RECORD"))
        assert_int_equal(json_dump_file(schema, path, JSON_INDENT(1) | JSON_SORT_KEYS),
                         0);
    else if (!json_equal(schema, old))
        TEST_FAIL_AT(
            __FILE__, __LINE__,
            "%s.json does not have the keys of the reader: KILTER_RECORD=1 writes them",
            name);
    if (!g_getenv("KILTER_RECORD"))
        expect_described(name, schema);
    json_decref(schema);
}

static json_t *old_schema(const char *name)
{
    g_autofree char *path = path_of(name);
    json_t *old = json_load_file(path, 0, NULL);
    return old ? old : json_object();
}

static bool has_key(const cyaml_schema_value_t *table, const char *key)
{
    const cyaml_schema_field_t *field = table->mapping.fields;
    while (field->key && strcmp(field->key, key) != 0)
        field++;
    return field->key;
}

/* The table that has been read with this key at its top. */
static void expect_table(const char *name, const char *key)
{
    json_t *old = old_schema(name);
    uint32_t i = 0;
    while (i < n_read && !has_key(table_read[i], key))
        i++;
    assert_true(i < n_read);
    expect_file(name, written(table_read[i], old), old);
    json_decref(old);
}

static void test_tables(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load("hap-8", &error);
    assert_no_error(error);
    g_autoptr(Sheets) sheets = sheets_load(&error);
    assert_no_error(error);
    g_autoptr(Runtime) runtime = runtime_load("megatron", &error);
    assert_no_error(error);
    g_autoptr(ExperimentFile) file =
        experiment_file_read(KILTER_HOME "/experiments/hap-fig13.yaml", NULL, &error);
    assert_no_error(error);
    expect_table("cluster-file", "machines");
    expect_table("device-file", "peak");
    expect_table("links-file", "fastest_port");
    expect_table("runtime-file", "context");
    expect_table("experiment-file", "grid");
}

/* A value of a strategy is a scalar, a list, or a list of lists. */
static void test_strategy(void **state)
{
    (void)state;
    json_t *old = old_schema("strategy-file"), *properties = json_object();
    for (uint32_t i = 0; i < strategy_table.n; i++) {
        const Option *option = &strategy_table.row[i];
        json_t *types = scalar();
        g_autofree char *help = option_help(option);
        json_array_append_new(types, json_string("array"));
        json_object_set_new(properties, option->key,
                            json_pack("{s:o, s:s}", "type", types, "description", help));
    }
    expect_file("strategy-file",
                json_pack("{s:s, s:o, s:b}", "type", "object", "properties", properties,
                          "additionalProperties", 0),
                old);
    json_decref(old);
}

/* A row of a family, and a model's file, give facts by expressions. */
static void test_facts(void **state)
{
    (void)state;
    static const char *const KEY[] = {"like", "refuse", "encoder",
#define X(kind, name, ...) #name,
                                      MODEL_FACTS(X) LAYER_FACTS(X)
#undef X
    };
    json_t *old = old_schema("families-file"), *properties = json_object();
    const json_t *before = json_object_get(
        json_object_get(json_object_get(old, "$defs"), "row"), "properties");
    for (uint32_t i = 0; i < G_N_ELEMENTS(KEY); i++) {
        json_t *key =
            strcmp(KEY[i], "refuse") == 0
                ? json_pack("{s:s, s:{s:s}}", "type", "array", "items", "type", "string")
                : json_pack("{s:o}", "type", scalar());
        keep(key, json_object_get(before, KEY[i]));
        json_object_set_new(properties, KEY[i], key);
    }
    json_t *row = json_pack("{s:s, s:o, s:b}", "type", "object", "properties", properties,
                            "additionalProperties", 0);
    expect_file("families-file",
                json_pack("{s:s, s:{s:{s:s, s:{s:s}, s:s}}, s:{s:s}, s:{s:o}}", "type",
                          "object", "properties", "ignored", "type", "array", "items",
                          "type", "string", "description",
                          "keys of config.json that no fact needs",
                          "additionalProperties", "$ref", "families-file.json#/$defs/row",
                          "$defs", "row", row),
                old);
    json_decref(old);
}

/* --- files --- */

/* The value of a file, as an editor sees it. */
static json_t *file_value(const char *path)
{
    g_autofree char *text = NULL;
    gsize length;
    g_autoptr(GError) error = NULL;
    assert_true(g_file_get_contents(path, &text, &length, NULL));
    json_t *value = yaml_to_json(path, text, length, &error);
    assert_no_error(error);
    return value;
}

static void expect_match(Schemas *schemas, const char *schema, const char *path)
{
    json_t *value = file_value(path);
    g_autofree char *wrong = schemas_check(schemas, schema, value);
    if (wrong)
        TEST_FAIL_AT(__FILE__, __LINE__, "%s: %s", path, wrong);
    json_decref(value);
}

/* Every bundled file matches the schema of its folder. */
static void test_files(void **state)
{
    (void)state;
    static const struct {
        const char *folder, *schema;
    } ROW[] = {{"data/clusters", "cluster-file"},
               {"data/devices", "device-file"},
               {"data/runtimes", "runtime-file"},
               {"experiments", "experiment-file"},
               {"tests/fuzz/seeds/strategy", "strategy-file"}};
    g_autoptr(Schemas) schemas = schemas_new(KILTER_HOME "/data/schemas");
    for (uint32_t i = 0; i < G_N_ELEMENTS(ROW); i++) {
        g_autofree char *folder = g_build_filename(KILTER_HOME, ROW[i].folder, NULL);
        g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
        uint32_t n = 0;
        for (const char *name; (name = g_dir_read_name(dir));) {
            g_autofree char *path = g_build_filename(folder, name, NULL);
            if (!g_str_has_suffix(name, ".yaml"))
                continue;
            expect_match(schemas, ROW[i].schema, path);
            n++;
        }
        assert_true(n > 0);
    }
    expect_match(schemas, "families-file", KILTER_HOME "/data/families.yaml");
    expect_match(schemas, "links-file", KILTER_HOME "/data/links.yaml");
}

/* A misspelt key is found, as an editor would. */
static void test_wrong(void **state)
{
    (void)state;
    g_autoptr(Schemas) schemas = schemas_new(KILTER_HOME "/data/schemas");
    json_t *model = json_pack("{s:s, s:i, s:s}", "like", "llama", "layers", 8, "ffn",
                              "if $layer < 2 then 1024 else 512");
    g_autofree char *none = schemas_check(schemas, "model-file", model);
    assert_null(none);
    json_object_set_new(model, "layer", json_integer(8));
    g_autofree char *layer = schemas_check(schemas, "model-file", model);
    assert_non_null(strstr(layer, "'layer' is not"));
    json_decref(model);
    json_t *value = json_pack("{s:[{s:s, s:i, s:s}]}", "machines", "device", "h100",
                              "gpus", 8, "nicc", "ib-ndr");
    g_autofree char *wrong = schemas_check(schemas, "cluster-file", value);
    assert_non_null(wrong);
    assert_non_null(strstr(wrong, "nicc"));
    json_decref(value);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables), cmocka_unit_test(test_strategy),
        cmocka_unit_test(test_facts), cmocka_unit_test(test_files),
        cmocka_unit_test(test_wrong)};
    return cmocka_run_group_tests_name("yaml_schemas", tests, NULL, NULL);
}
