/* Answers to some hundred small questions of all planners, as tests/golden/answers.txt has them:
 * times, work of searches, peaks of memory, a digest of the plan and of its exports, or the refusal.
 *
 *     PLANNER | MODEL | CLUSTER | KEY=VALUE ... => ANSWER
 *
 * A change that is meant to change no answer changes none here; one that is records them anew
 * (KILTER_RECORD=1 ctest -R golden_answers), and its commit says why. A new question is a line without an
 * answer. */
#include <glib/gstdio.h>
#include <jansson.h>

#include "data/data.h"
#include "sim/sim.h"
#include "tests/support/made_plan.h"

#define FILE_NAME KILTER_HOME "/tests/golden/answers.txt"

/* The plan but for how long it took to find, and what wrote it. */
static void add_plan(GChecksum *sum, const Made *made)
{
    static const char *const OPEN[] = {"search_time_s", "balance_time_s",
                                       "certificate_time_s", "version"};
    g_autofree char *text = plan_write(made->plan, made->graph);
    json_t *json = json_loads(text, 0, NULL);
    for (guint i = 0; i < G_N_ELEMENTS(OPEN); i++)
        json_object_del(json, OPEN[i]);
    char *rest = json_dumps(json, JSON_SORT_KEYS | JSON_COMPACT);
    g_checksum_update(sum, (const guchar *)rest, -1);
    free(rest);
    json_decref(json);
}

static void add_exports(GChecksum *sum, const Made *made)
{
    for (uint32_t i = 0; i < export_target_count(); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(GArray) files = plan_export(made->plan, made->graph, made->view,
                                              export_target(i)->name, "p", &error);
        for (guint f = 0; files && f < files->len; f++)
            g_checksum_update(
                sum, (const guchar *)g_array_index(files, ExportFile, f).text, -1);
        if (error)
            g_checksum_update(sum, (const guchar *)error->message, -1);
    }
}

static void add_number(GChecksum *sum, double number)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_ascii_formatd(text, sizeof text, "%.9g ", number);
    g_checksum_update(sum, (const guchar *)text, -1);
}

static void add_report(GString *answer, const Made *made, const char *fidelity,
                       const PlannerOptions *options, GChecksum *all)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(SimReport) report = sim_evaluate_with(made->plan, made->graph, made->view,
                                                    fidelity, &options->sim, &error);
    uint64_t sum = 0;
    for (uint32_t d = 0; report && d < report->n_devices; d++)
        sum += report->memory_bytes[d];
    for (uint32_t d = 0; report && d < report->n_devices; d++)
        add_number(all, (double)report->memory_bytes[d]);
    if (report) {
        add_number(all, report->comm_s);
        add_number(all, report->comp_s);
    }
    if (report)
        g_string_append_printf(answer, "%s %.9g s, %" G_GUINT64_FORMAT " B, ", fidelity,
                               report->iteration_time_s, sum);
    else
        g_string_append_printf(answer, "%s: %s, ", fidelity, error->message);
}

static char *answer_of(char **part)
{
    g_autoptr(GError) error = NULL;
    PlannerOptions options;
    g_auto(Made) made = make(part[0], part[1], part[2], part[3], &error);
    if (!made.plan)
        return g_strdup_printf("refused: %s", error->message);
    assert_true(set_options(&options, part[3], NULL));
    GString *answer = g_string_new("");
    g_autoptr(GChecksum) plan = g_checksum_new(G_CHECKSUM_SHA256),
                         exports = g_checksum_new(G_CHECKSUM_SHA256),
                         reports = g_checksum_new(G_CHECKSUM_SHA256);
    add_plan(plan, &made);
    add_exports(exports, &made);
    add_report(answer, &made, plan_fidelity(made.plan), &options, reports);
    add_report(answer, &made, "flow", &options, reports);
    g_string_append_printf(answer,
                           "%u labels, %u tries, plan %.8s, exports %.8s, reports %.8s",
                           (guint)made.plan->search_labels, (guint)made.plan->tries,
                           g_checksum_get_string(plan), g_checksum_get_string(exports),
                           g_checksum_get_string(reports));
    return g_string_free(answer, FALSE);
}

static void test_answers(void **state)
{
    (void)state;
    const bool record = g_getenv("KILTER_RECORD");
    uint32_t wrong = 0;
    g_autofree char *text = NULL;
    g_autoptr(GString) now = g_string_new("");
    assert_true(g_file_get_contents(FILE_NAME, &text, NULL, NULL));
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; **line; line++) { /* the last one is empty */
        g_auto(GStrv) sides = g_strsplit(*line, " => ", 2);
        g_auto(GStrv) part = g_strsplit(sides[0], " | ", 4);
        assert_int_equal(g_strv_length(part), 4);
        g_autofree char *answer = answer_of(part);
        g_string_append_printf(now, "%s => %s\n", sides[0], answer);
        if (record || g_strcmp0(sides[1], answer) == 0)
            continue;
        print_error("%s\n    was %s\n    is  %s\n", sides[0], sides[1], answer);
        wrong++;
    }
    if (record)
        assert_true(g_file_set_contents(FILE_NAME, now->str, -1, NULL));
    assert_int_equal(wrong, 0);
}

int main(void)
{
    g_unsetenv("KILTER_PATH");
    assert_int_equal(g_chdir(KILTER_HOME), 0);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_answers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
