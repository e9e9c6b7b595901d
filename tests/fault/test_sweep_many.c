/* 20,000 tiny configurations: how soon the first row is there, rows by CPU second, bytes of a row,
 * and resuming. Times are CPU seconds of the process, so that other work on the machine does not
 * matter. */
#include <sys/resource.h>
#include <unistd.h>

#include "tests/support/stored.h"

enum { BATCHES = 2000, CLUSTERS = 2, PLANNERS = 5, ALL = BATCHES * CLUSTERS * PLANNERS };

static void write_experiment(const Sandbox *box)
{
    g_autoptr(GString) text = g_string_new(
        "name: many\ngrid:\n  model: ['synthetic:layers=1,gradient=4000B']\n"
        "  cluster: [hap-8, hap-16]\n  planner: [dp-ev, dp-cp, ddp, horovod, dp-nccl]\n"
        "  model.batch: [1");
    for (int i = 2; i <= BATCHES; i++)
        g_string_append_printf(text, ", %d", i);
    g_string_append(text, "]\n");
    sandbox_write(box, "many.yaml", text->str);
}

/* CPU seconds of a process that runs, all its threads. */
static double cpu_s(GSubprocess *process)
{
    enum { USER = 11 }; /* fields after the name, proc(5) */
    g_autofree char *path =
        g_strdup_printf("/proc/%s/stat", g_subprocess_get_identifier(process));
    g_autofree char *text = NULL;
    assert_true(g_file_get_contents(path, &text, NULL, NULL));
    g_auto(GStrv) field = g_strsplit(strrchr(text, ')') + 2, " ", USER + 3);
    return (double)(g_ascii_strtoull(field[USER], NULL, 10) +
                    g_ascii_strtoull(field[USER + 1], NULL, 10)) /
           (double)sysconf(_SC_CLK_TCK);
}

static double children_s(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_CHILDREN, &usage), 0);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

/* Whether the store has a row; false while there is none, or no store. */
static bool has_row(const char *path)
{
    sqlite3 *db = NULL;
    GString *text = g_string_new(NULL);
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK)
        sqlite3_exec(db, "SELECT count(*) > 0 FROM answer", stored_add_row, text, NULL);
    sqlite3_close(db);
    const bool has = strcmp(text->str, "1|\n") == 0;
    g_string_free(text, TRUE);
    return has;
}

static void test_many(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *path = g_build_filename(box->folder, "many.db", NULL);
    write_experiment(box);
    GSubprocess *process =
        program_start(box, "sweep many.yaml --db many.db -q -j 2", NULL);
    while (!has_row(path))
        g_usleep(1000);
    const double first_s = cpu_s(process);
    g_auto(Ran) ran = program_finish(process);
    const double all_s = children_s();
    assert_int_equal(ran.status, 0);
    g_auto(Ran) again = program_run_good(box, "sweep many.yaml --db many.db --json -j 2");
    const double resume_s = children_s() - all_s;
    assert_non_null(strstr(again.out, "\"present\": 20000,"));
    g_autofree char *bytes = stored_ask(
        box, "many.db", "SELECT sum(pgsize) / (SELECT count(*) FROM answer) FROM dbstat");
    print_message("first row %.2f s, %.0f rows/s, %s bytes, resume %.2f s\n", first_s,
                  ALL / all_s, g_strdelimit(bytes, "|\n", ' '), resume_s);
    assert_true(g_ascii_strtoll(bytes, NULL, 10) <=
                950); /* with the model's arguments and the memory left */
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
    assert_true(first_s <= 1);
    assert_true(ALL / all_s >= 3000);
    assert_true(resume_s <= 1);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
