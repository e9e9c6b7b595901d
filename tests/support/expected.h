/* Facts about the sample files, collected by others: ../shared/samples/expected.csv. */
#ifndef KILTER_TESTS_SUPPORT_EXPECTED_H
#define KILTER_TESTS_SUPPORT_EXPECTED_H

#include "data/base/csv.h"
#include "tests/test.h"

typedef struct {
    char *fact, *value;
} Expected;

static inline void expected_free(void *expected)
{
    Expected *e = expected;
    g_free(e->fact);
    g_free(e->value);
    g_free(e);
}

typedef struct {
    const char *kind;
    GTree *files; /* path below samples/ -> GPtrArray of Expected */
} ExpectedFiles;

static inline int expected_order(const void *a, const void *b, void *data)
{
    (void)data;
    return strcmp(a, b);
}

static inline bool expected_take(const Csv *csv, void *data, GError **error)
{
    ExpectedFiles *to = data;
    (void)error;
    if (strcmp(csv_text(csv, "kind"), to->kind) != 0)
        return true;
    const char *file = csv_text(csv, "file");
    GPtrArray *facts = g_tree_lookup(to->files, file);
    if (!facts) {
        facts = g_ptr_array_new_with_free_func(expected_free);
        g_tree_insert(to->files, g_strdup(file), facts);
    }
    Expected *fact = g_new0(Expected, 1);
    fact->fact = g_strdup(csv_text(csv, "fact"));
    fact->value = g_strdup(csv_text(csv, "value"));
    g_ptr_array_add(facts, fact);
    return true;
}

static inline void expected_facts_free(void *facts)
{
    g_ptr_array_unref(facts);
}

/* The facts of all files of a kind, by file; NULL after printing that there are none. Free with
 * g_tree_unref. */
static inline GTree *expected_of(const char *kind)
{
    static const char *const COLUMNS[] = {"file", "kind", "fact", "value", NULL};
    const char *path = test_shared("samples/expected.csv");
    if (!path)
        return NULL;
    GError *error = NULL;
    ExpectedFiles to = {
        kind, g_tree_new_full(expected_order, NULL, g_free, expected_facts_free)};
    g_autoptr(Csv) csv = csv_read(path, &error);
    assert_no_error(error);
    assert_true(csv_expect(csv, COLUMNS, NULL, &error));
    assert_true(csv_each(csv, expected_take, &to, &error));
    assert_no_error(error);
    assert_true(g_tree_nnodes(to.files) > 0);
    return to.files;
}

/* The value of a fact, or NULL. */
static inline const char *expected_fact(const GPtrArray *facts, const char *name)
{
    for (guint i = 0; i < facts->len; i++) {
        const Expected *fact = facts->pdata[i];
        if (strcmp(fact->fact, name) == 0)
            return fact->value;
    }
    return NULL;
}

#endif
