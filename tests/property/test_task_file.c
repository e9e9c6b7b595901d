/* Task graphs from files: one worked out by hand under each option, graphs in TAG's published
 * format with the times and peaks of its simulator, and damaged files. */
#include <glib/gstdio.h>
#include <jansson.h>
#include <unistd.h>

#include "sim/sim.h"
#include "sim/tasks/task_file.h"
#include "tests/test.h"

enum { MUTANTS = 1500, DAMAGES = 3 };

/* Two devices on one link of 10 bytes/us each way. Device 0 makes two buffers, which go to device 1
 * one after the other; then an all-reduce of both, and another one. */
static const char HAND[] =
    "{\"n_devices\": 2, \"transfer_overhead_us\": 5, \"link_bytes_per_us\": [10],\n"
    " \"path\": [[], [0], [0], []],\n"
    " \"group\": [{\"devices\": [0, 1], \"line_us_per_KiB_us\": [0, 7.9, 10, 0]}],\n"
    " \"buffer\": [[100, 0], [200, 0], [100, 1], [200, 1], [50, 1]],\n"
    " \"task\": [[\"C\", 0, 20, [], [], [0, 1]],\n"
    "  [\"T\", 0, 1, 100, [0], [0], [2]],\n"
    "  [\"T\", 0, 1, 200, [0], [1], [3]],\n"
    "  [\"C\", 1, 10, [1, 2], [2, 3], [4]],\n"
    "  [\"R\", 0, 0, 0, 2047, [0], [], []],\n"
    "  [\"R\", 1, 0, 0, 2047, [0], [], []],\n"
    "  [\"R\", 0, 1, 0, 1023, [0], [], []],\n"
    "  [\"R\", 1, 1, 0, 1023, [0], [], []]]}";

static char *write_file(const char *text, gsize length)
{
    char *file = NULL;
    const int handle = g_file_open_tmp("kilter-tasks-XXXXXX.json", &file, NULL);
    assert_true(handle >= 0);
    close(handle);
    assert_true(g_file_set_contents(file, text, (gssize)length, NULL));
    return file;
}

static SimTaskFileReport *run_text(const char *text, gsize length, const char *option,
                                   const char *value, GError **error)
{
    g_autofree char *file = write_file(text, length);
    SimOptions options;
    sim_options_init(&options);
    if (option)
        assert_true(sim_options_set(&options, option, value, NULL));
    g_autoptr(SimTaskFile) tasks = sim_task_file_read(file, error);
    SimTaskFileReport *report = tasks ? sim_task_file_run(tasks, &options, error) : NULL;
    g_unlink(file);
    return report;
}

/* The computation ends at 20, the transfers at 35 and 60, the last task at 70; device 1 holds 300
 * bytes when both have arrived, and 50 after they are read. Collectives take max(7, 10) and max(7,
 * 0). */
static void test_hand(void **state)
{
    (void)state;
    static const struct {
        const char *option, *value;
        uint64_t time_us, peak[2];
    } cases[] = {
        {NULL, NULL, 70, {300, 300}},
        {"task_links", "free", 55, {300, 300}},
        {"task_collectives", "free", 70, {300, 300}},
        {"task_memory", "make-first", 70, {300, 350}},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(SimTaskFileReport) report =
            run_text(HAND, strlen(HAND), cases[i].option, cases[i].value, NULL);
        assert_non_null(report);
        assert_int_equal(report->time_us, cases[i].time_us);
        assert_int_equal(report->peak_bytes[0], cases[i].peak[0]);
        assert_int_equal(report->peak_bytes[1], cases[i].peak[1]);
        assert_int_equal(report->collective_us, 17);
        assert_int_equal(report->transfer_us, 15 + 25);
        assert_int_equal(report->busy_us[0], 20);
    }
}

/* Two collectives alone: one after the other, or at the same time. */
static void test_queue(void **state)
{
    (void)state;
    static const char text[] =
        "{\"n_devices\": 1, \"transfer_overhead_us\": 0, \"link_bytes_per_us\": [],"
        "\"path\": [[]], \"group\": [{\"devices\": [0], \"line_us_per_KiB_us\": [0, 5, "
        "0, "
        "5]}], \"buffer\": [], \"task\": [[\"R\", 0, 0, 0, 0, [], [], []],"
        "[\"R\", 0, 1, 0, 0, [], [], []]]}";
    g_autoptr(SimTaskFileReport) queue = run_text(text, strlen(text), NULL, NULL, NULL);
    g_autoptr(SimTaskFileReport) beside =
        run_text(text, strlen(text), "task_collectives", "free", NULL);
    assert_int_equal(queue->time_us, 10);
    assert_int_equal(beside->time_us, 5);
}

static void check_artifact(const char *file)
{
    SimOptions options;
    sim_options_init(&options);
    g_autoptr(SimTaskFile) tasks = sim_task_file_read(file, NULL);
    g_autoptr(SimTaskFileReport) report = sim_task_file_run(tasks, &options, NULL);
    json_t *root = json_load_file(file, 0, NULL);
    const json_t *expected = json_object_get(root, "expected");
    const json_t *peak = json_object_get(expected, "peak_bytes");
    assert_int_equal(report->time_us,
                     json_integer_value(json_object_get(expected, "time_us")));
    assert_int_equal(report->n_devices, json_array_size(peak));
    for (uint32_t j = 0; j < report->n_devices; j++)
        assert_int_equal(report->peak_bytes[j],
                         json_integer_value(json_array_get(peak, j)));
    json_decref(root);
}

/* Times and peaks of all graphs, including those that depend on how ties are broken. */
static void test_artifact(void **state)
{
    (void)state;
    const char *folder = test_shared("reference/tag/fifo");
    if (!folder)
        skip();
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    uint32_t n = 0;
    for (const char *name; (name = g_dir_read_name(dir)); n++) {
        g_autofree char *file = g_build_filename(folder, name, NULL);
        check_artifact(file);
    }
    assert_int_not_equal(n, 0);
}

static void test_errors(void **state)
{
    (void)state;
    static const struct {
        const char *old, *new, *message;
    } cases[] = {
        {"\"C\", 1", "\"C\", 2", "task[3]: expected device below 2, got 2"},
        {"[1, 2], [2, 3]", "[1, 8], [2, 3]", "task[3]: expected task below 8"},
        {"\"R\", 1, 0, 0, 2047", "\"R\", 1, 0, 0, 2048",
         "task[5]: expected as many bytes"},
        {"[[], [0], [0], []]", "[[], [0], [0]]", "path: expected 4 paths"},
        {"[[], [0], [0], []]", "[[], [], [0], []]", "that a path connects"},
        {"[10]", "[0]", "link_bytes_per_us[0]: expected more than 0"},
        {"\"C\", 0, 20", "\"C\", 0, 4503599627370496",
         "task[1]: expected times that add up"},
        {"\"C\", 0, 20, []", "\"C\", 0, 20, [3]", "task[0]: it never becomes ready"},
        {"\"R\", 0, 1", "\"Q\", 0, 1", "task[6]: expected a row that begins with"},
        {"{\"n_devices\"", "{\"devices\"", "n_devices: expected devices from 0 to"},
        {"]]}", "]]", "expected a task graph in JSON"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(GString) text = g_string_new(HAND);
        assert_int_not_equal(g_string_replace(text, cases[i].old, cases[i].new, 1), 0);
        g_autoptr(SimTaskFileReport) report =
            run_text(text->str, text->len, NULL, NULL, &error);
        assert_null(report);
        assert_error(error, KILTER_ERROR_INPUT, cases[i].message);
    }
}

static void damage(GString *text, GRand *rand)
{
    static const char *const piece[] = {"0",    "-1",         "3",  "1e400", "null",
                                        "[]",   "[0",         "]",  ",",     "\"C\"",
                                        "\xff", "4294967296", "{}", "1.5"};
    const gsize at = (gsize)g_rand_int_range(rand, 0, (gint32)text->len);
    const gsize most = MIN(text->len - at, 12);
    g_string_erase(text, (gssize)at, g_rand_int_range(rand, 0, (gint32)most));
    if (g_rand_boolean(rand))
        g_string_insert(text, (gssize)at,
                        piece[g_rand_int_range(rand, 0, G_N_ELEMENTS(piece))]);
}

/* A damaged file is refused with one line, or runs. */
static void test_mutants(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);
    uint32_t refused = 0;
    for (uint32_t i = 0; i < MUTANTS; i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(GString) text = g_string_new(HAND);
        for (int32_t d = g_rand_int_range(rand, 1, DAMAGES + 1); d > 0; d--)
            damage(text, rand);
        g_autoptr(SimTaskFileReport) report =
            run_text(text->str, text->len, NULL, NULL, &error);
        assert_true(!report == !!error);
        if (report)
            continue;
        refused++;
        assert_int_equal(error->code, KILTER_ERROR_INPUT);
        assert_null(strpbrk(error->message, "\r\n"));
        assert_true(g_utf8_validate(error->message, -1, NULL));
    }
    assert_true(refused > MUTANTS / 2 && refused < MUTANTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hand),     cmocka_unit_test(test_queue),
        cmocka_unit_test(test_artifact), cmocka_unit_test(test_errors),
        cmocka_unit_test(test_mutants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
