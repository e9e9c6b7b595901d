/* Reading and writing the section on a cluster's fit. */
#include "data/cluster/fitted_yaml.h"

#include <math.h>
#include <string.h>

#include "data/base/units.h"

enum { ERRORS_MAX = 100000, RANGE_MAX = 1000000000 };
/* No prediction is off by more than a factor exp() of this. */
static const double WORST = 100;

static const cyaml_schema_field_t RANGE[] = {
    TEXT("least", FittedRangeText, least, NAME_MAX_BYTES),
    TEXT("most", FittedRangeText, most, NAME_MAX_BYTES),
    CYAML_FIELD_END,
};
static const cyaml_schema_value_t ERROR_ENTRY = {
    CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 1, 4 * NAME_MAX_BYTES)};

const cyaml_schema_field_t FITTED_SCHEMA[] = {
    TEXT("fidelity", FittedText, fidelity, NAME_MAX_BYTES),
    TEXT("planner", FittedText, planner, NAME_MAX_BYTES),
    OPTIONAL_TEXT("software", FittedText, software, 4 * NAME_MAX_BYTES),
#define X(id, key, text) \
    CYAML_FIELD_MAPPING(key, CYAML_FLAG_DEFAULT, FittedText, range[FITTED_##id], RANGE),
    FITTED_RANGE_TABLE(X)
#undef X
        CYAML_FIELD_SEQUENCE("errors", CYAML_FLAG_POINTER, FittedText, error,
                             &ERROR_ENTRY, 1, ERRORS_MAX),
    CYAML_FIELD_END,
};

static void read_range(const Yaml *yaml, const char *parent, FittedRange range,
                       const FittedText *text, Fitted *fitted)
{
    const char *key = yaml_at(yaml, "%s.%s", parent, fitted_range_key(range));
    yaml_uint(yaml, yaml_at(yaml, "%s.least", key), text->range[range].least, 0,
              RANGE_MAX, &fitted->least[range]);
    yaml_uint(yaml, yaml_at(yaml, "%s.most", key), text->range[range].most, 0, RANGE_MAX,
              &fitted->most[range]);
}

static bool read_error(const Yaml *yaml, const char *parent, uint32_t i, const char *text,
                       FittedError *out)
{
    const char *space = strrchr(text, ' ');
    if (!space || space == text || !number_is(space + 1, &out->error) ||
        !(fabs(out->error) <= WORST))
        return yaml_wrong(
            yaml, yaml_at(yaml, "%s.errors[%u]", parent, i),
            "expected device types and log(measured / predicted), as 't4 0.03', "
            "got '%s'",
            text);
    out->types = g_strndup(text, (gsize)(space - text));
    return true;
}

Fitted *fitted_read(const Yaml *yaml, const char *key, const FittedText *text)
{
    Fitted *fitted = g_new0(Fitted, 1);
    fitted->fidelity = g_strdup(text->fidelity);
    fitted->planner = g_strdup(text->planner);
    fitted->software = g_strdup(text->software);
    for (FittedRange r = 0; r < FITTED_RANGES; r++)
        read_range(yaml, key, r, text, fitted);
    fitted->error = g_new0(FittedError, text->error_count + 1);
    for (; fitted->n_errors < text->error_count; fitted->n_errors++)
        read_error(yaml, key, fitted->n_errors, text->error[fitted->n_errors],
                   &fitted->error[fitted->n_errors]);
    return fitted;
}

json_t *fitted_json(const Fitted *fitted)
{
    json_t *object = json_pack("{s:s, s:s, s:s*}", "fidelity", fitted->fidelity,
                               "planner", fitted->planner, "software", fitted->software),
           *errors = json_array();
    for (FittedRange r = 0; r < FITTED_RANGES; r++)
        json_object_set_new(object, fitted_range_key(r),
                            json_pack("{s:i, s:i}", "least", (int)fitted->least[r],
                                      "most", (int)fitted->most[r]));
    for (uint32_t i = 0; i < fitted->n_errors; i++) {
        g_autofree char *number = number_exact(fitted->error[i].error),
                        *text = g_strdup_printf("%s %s", fitted->error[i].types, number);
        json_array_append_new(errors, json_string(text));
    }
    json_object_set_new(object, "errors", errors);
    return object;
}
