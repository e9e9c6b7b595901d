/* The program's answers with --json. */
#ifndef KILTER_TESTS_SUPPORT_PROGRAM_JSON_H
#define KILTER_TESTS_SUPPORT_PROGRAM_JSON_H

#include <jansson.h>

#include "tests/support/program.h"

static inline json_t *json_of(const char *text)
{
    json_error_t wrong;
    json_t *value = json_loads(text, 0, &wrong);
    if (!value)
        TEST_FAIL_AT(__FILE__, __LINE__, "line %d: %s in '%s'", wrong.line, wrong.text,
                     text);
    return value;
}

/* The answer of a command that must succeed. */
static inline json_t *program_json(const Sandbox *sandbox, const char *line)
{
    g_auto(Ran) ran = program_run_good(sandbox, line);
    return json_of(ran.out);
}

static inline double number(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_number(value))
        TEST_FAIL_AT(__FILE__, __LINE__, "no number '%s'", key);
    return json_number_value(value);
}

#endif
