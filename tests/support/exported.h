/* Exports of made plans: their files, and their refusals. */
#ifndef KILTER_TESTS_SUPPORT_EXPORTED_H
#define KILTER_TESTS_SUPPORT_EXPORTED_H

#include "data/formats/export/export.h"
#include "tests/support/made_plan.h"

#define GPT(layers, more) \
    "gpt2:layers=" layers ",hidden=8,heads=4,ffn=16,seq=8,vocab=16,dropout=0," more

static inline GArray *export(const Made *made, const char *target)
{
    g_autoptr(GError) error = NULL;
    GArray *files =
        plan_export(made->plan, made->graph, made->view, target, "plan", &error);
    assert_no_error(error);
    return files;
}

static inline const char *file_text(const GArray *files, uint32_t i)
{
    assert_true(i < files->len);
    return g_array_index(files, ExportFile, i).text;
}

static inline void refuses(const Made *made, const char *target, const char *expected)
{
    g_autoptr(GError) error = NULL;
    assert_null(plan_export(made->plan, made->graph, made->view, target, "p", &error));
    assert_error(error, KILTER_ERROR_INPUT, expected);
}

#endif
