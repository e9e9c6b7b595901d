/* docs/techniques.md says which planner takes which technique: every technique that it says is
 * taken is planned and proved, every other one is refused; and the table has all planners. */
#include "synth/planners/planner.h"
#include "tests/support/program.h"
#include "tests/test.h"

#define MODEL                                                             \
    "llama:layers=2,hidden=64,heads=4,kv_heads=2,ffn=96,seq=16,vocab=64," \
    "global_batch=16"

/* In the order of the table's columns. */
static const char *const TECHNIQUE[] = {"--set microbatches=2", "--set recompute=full",
                                        "--set zero=3", "--set sequence_parallel=on",
                                        "--set cp=2"};

static void check_cell(const char *planner, const char *technique, const char *says)
{
    g_autoptr(Sandbox) box = sandbox_new();
    /* sequence parallelism is within tensor parallelism, which manual does not choose by itself */
    const bool needs_tp =
        strcmp(planner, "manual") == 0 && strstr(technique, "sequence_parallel");
    g_autofree char *line = g_strdup_printf(
        "plan " MODEL " hap-8 --granularity gpu --planner %s %s%s -o p.json", planner,
        technique, needs_tp ? " --set tp=2" : "");
    g_auto(Ran) ran = program_run(box, line);
    const bool taken = strcmp(says, "yes") == 0;
    if (ran.status != (taken ? 0 : 2))
        fail_msg("%s %s: docs/techniques.md says %s, the status is %d: %s", planner,
                 technique, says, ran.status, ran.err);
    if (!taken)
        return;
    program_runs(box, "verify p.json");
}

static void test_the_table_is_true(void **state)
{
    (void)state;
    g_autofree char *path = g_build_filename(KILTER_HOME, "docs", "techniques.md", NULL);
    g_autofree char *text = NULL;
    assert_true(g_file_get_contents(path, &text, NULL, NULL));
    const char *table = strstr(text, "## Which planner takes which technique");
    assert_non_null(table);
    for (uint32_t i = 0; i < planner_count(); i++) {
        g_autofree char *begin = g_strdup_printf("\n| `%s` |", planner_at(i)->name);
        const char *row = strstr(table, begin);
        if (!row)
            fail_msg("docs/techniques.md has no row of %s", planner_at(i)->name);
        g_autofree char *cells =
            g_strndup(row + strlen(begin), strcspn(row + 1, "\n") + 1 - strlen(begin));
        g_auto(GStrv) cell = g_strsplit(cells, "|", -1);
        for (uint32_t t = 0; t < G_N_ELEMENTS(TECHNIQUE); t++)
            check_cell(planner_at(i)->name, TECHNIQUE[t], g_strstrip(cell[t]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_table_is_true),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
