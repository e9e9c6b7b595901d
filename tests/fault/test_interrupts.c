/* A command that is interrupted (SIGINT) says so in one line, and leaves no part of a file. */
#include <signal.h>

#include "tests/support/program.h"

#define LARGE "gpt2:layers=96,batch=64 hap-16"

/* Commands that take far longer than the wait before the signal, and the file that they would
 * have written. */
static const char *const LINES[][2] = {
    {"plan " LARGE " --planner hap -o out.json", "out.json"},
    {"plan " LARGE " --planner auto -o out.json", "out.json"},
    {"plan inception-v3 tag-testbed --planner tag --set evaluations=1000000 -o out.json",
     "out.json"},
    {"simulate " LARGE " --planner hap --trace out.json", "out.json"},
    {"advise " LARGE " --all", "out.json"},
    {"verify " LARGE " --planner hap", "out.json"},
    {"fit trials.csv --cluster dgx-a100 --suggest 5 -o out.json", "out.json"},
    {"plan " LARGE " --planner auto -o out.json --json", "out.json"},
};

static const char TEXT[] = "kilter: interrupted\n";
static const char JSON[] = "{\"format\":{\"name\":\"kilter plan\",\"version\":1},"
                           "\"error\":{\"status\":130,\"message\":\"interrupted\"}}\n";

/* Trials whose fit takes long. */
static void write_trials(const Sandbox *box)
{
    enum { TRIALS = 48 };
    g_autoptr(GString) text = g_string_new("model,machines,tp,pp,micro_batch,seconds\n");
    for (int i = 0; i < TRIALS; i++)
        g_string_append_printf(text,
                               "\"gpt2:layers=%d,hidden=1024,heads=16,seq=1024,"
                               "global_batch=32,precision=mixed\",1,%d,1,%d,%g\n",
                               4 + i, 1 << i % 3, 1 + i % 2, 0.03 * (4 + i));
    sandbox_write(box, "trials.csv", text->str);
}

/* Waits until the process has a handler for the signal, so that it is in main(). */
static void wait_for_handler(GSubprocess *process)
{
    enum { TRIES = 1000, TRY_US = 10000 };
    const char *id = g_subprocess_get_identifier(process);
    g_autofree char *path = g_strdup_printf("/proc/%s/status", id ? id : "0");
    for (int i = 0; id && i < TRIES; i++, g_usleep(TRY_US)) {
        g_autofree char *text = NULL;
        const char *caught = NULL;
        if (g_file_get_contents(path, &text, NULL, NULL))
            caught = strstr(text, "SigCgt:");
        if (!caught || g_ascii_strtoull(caught + strlen("SigCgt:\t"), NULL, 16) &
                           (guint64)1 << (SIGINT - 1))
            return;
    }
}

static void test_one_line(void **state)
{
    (void)state;
    const gulong wait_us = 300 * 1000;
    uint32_t interrupted = 0;
    for (uint32_t i = 0; i < G_N_ELEMENTS(LINES); i++) {
        g_autoptr(Sandbox) box = sandbox_new();
        const char *want = strstr(LINES[i][0], "--json") ? JSON : TEXT;
        write_trials(box);
        g_autofree char *written = g_build_filename(box->folder, LINES[i][1], NULL);
        GSubprocess *process = program_start(box, LINES[i][0], NULL);
        wait_for_handler(process);
        g_usleep(wait_us);
        g_subprocess_send_signal(process, SIGINT);
        g_auto(Ran) ran = program_finish(process);
        if (ran.status >= 0) /* it was done, or refused, before the signal came */
            continue;
        interrupted++;
        /* A warning that it takes long may come first. */
        const char *note = strstr(ran.err, "or more"),
                   *end = note ? strchr(note, '\n') : NULL;
        if (strcmp(end ? end + 1 : ran.err, want) != 0 || *ran.out)
            TEST_FAIL_AT(__FILE__, __LINE__, "kilter %s: stderr '%s', stdout '%s'",
                         LINES[i][0], ran.err, ran.out);
        assert_false(g_file_test(written, G_FILE_TEST_EXISTS));
    }
    print_message("%u commands interrupted\n", interrupted);
    assert_true(interrupted >= 3);
}

/* After a signal, a command that sweeps finishes the configurations in flight, then says in one
 * line how far it came; the same command goes on from there. All figures of HAP take many times
 * the wait before the signal. */
static void test_reproduce(void **state)
{
    (void)state;
    static const char *const LINE[] = {"reproduce hap --db r.db",
                                       "reproduce hap --db r.db --json"};
    uint32_t stopped = 0;
    for (uint32_t i = 0; i < G_N_ELEMENTS(LINE); i++) {
        g_autoptr(Sandbox) box = sandbox_new();
        GSubprocess *process = program_start(box, LINE[i], NULL);
        wait_for_handler(process);
        g_usleep(500 * 1000);
        g_subprocess_send_signal(process, SIGINT);
        g_auto(Ran) ran = program_finish(process);
        if (ran.status == 0)
            continue;
        stopped++;
        if (!g_str_has_prefix(ran.err, i == 1 ? "{\"format\":" : "kilter: ") ||
            strchr(ran.err, '\n')[1] || *ran.out)
            TEST_FAIL_AT(__FILE__, __LINE__, "kilter %s: stderr '%s', stdout '%s'",
                         LINE[i], ran.err, ran.out);
        assert_non_null(strstr(ran.err, ran.status == 1 ? "resumes" : "interrupted"));
    }
    print_message("%u stopped\n", stopped);
    assert_true(stopped > 0);
}

/* A part's number is a note: an object of its own under --json. */
static void test_notes(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "x.yaml",
                  "name: x\ngrid:\n  model: ['synthetic:layers=1']\n  cluster: [hap-8]\n"
                  "  planner: [dp-ev]\n");
    g_auto(Ran) ran = program_run_in(box, "sweep x.yaml --db x.db --plan-shards 1 --json",
                                     "JOB_COMPLETION_INDEX=0");
    assert_int_equal(ran.status, 0);
    assert_string_equal(ran.err, "{\"format\":{\"name\":\"kilter sweep\",\"version\":1},"
                                 "\"note\":\"shard 0 of 1, by JOB_COMPLETION_INDEX\"}\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_line),
        cmocka_unit_test(test_reproduce),
        cmocka_unit_test(test_notes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
