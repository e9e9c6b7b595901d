/* A command that is interrupted (SIGINT) says so in one line, and leaves no part of a file. */
#include <signal.h>

#include "tests/support/program.h"

#define LARGE "gpt2:layers=96,batch=64 hap-16"

/* Commands that take far longer than the wait before the signal, and the file that they would have written. */
static const char *const LINES[][2] = {
    {"plan " LARGE " --planner hap -o out.json", "out.json"},
    {"plan " LARGE " --planner auto -o out.json", "out.json"},
    {"plan inception-v3 tag-testbed --planner tag --set evaluations=1000000 -o out.json",
     "out.json"},
    {"simulate " LARGE " --planner hap --trace out.json", "out.json"},
    {"advise " LARGE " --all", "out.json"},
    {"verify " LARGE " --planner hap", "out.json"},
};

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
        g_autofree char *written = g_build_filename(box->folder, LINES[i][1], NULL);
        GSubprocess *process = program_start(box, LINES[i][0], NULL);
        wait_for_handler(process);
        g_usleep(wait_us);
        g_subprocess_send_signal(process, SIGINT);
        g_auto(Ran) ran = program_finish(process);
        if (ran.status >= 0) /* it was done, or refused, before the signal came */
            continue;
        interrupted++;
        if (strcmp(ran.err, "kilter: interrupted\n") != 0 || *ran.out)
            TEST_FAIL_AT(__FILE__, __LINE__, "kilter %s: stderr '%s', stdout '%s'",
                         LINES[i][0], ran.err, ran.out);
        assert_false(g_file_test(written, G_FILE_TEST_EXISTS));
    }
    print_message("%u commands interrupted\n", interrupted);
    assert_true(interrupted >= 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_one_line)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
