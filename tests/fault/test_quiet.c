/* A command with -q, or --json, does the same work: the same exit status, and the same files. */
#include "tests/support/program.h"

#define SMALL "vit:layers=1,hidden=64,heads=4,ffn=128"
#define DAYS  "simulate " SMALL " hap-8 -p dp-ev --days 3 "
#define PLAN  "plan " SMALL " hap-8 -p dp-ev "

/* Each with one wrong value, or with a file that it writes. */
static const char *const LINES[] = {
    DAYS "--mtbf garbage",
    DAYS "--weibull 0",
    DAYS "--failures /nonexistent",
    DAYS "--checkpoint soon",
    DAYS "--save soon",
    DAYS "--write soon",
    DAYS "--restart soon",
    DAYS "--repair soon",
    DAYS "--spares many",
    DAYS "--stragglers 1h",
    DAYS "--parts leaf",
    DAYS "--replan 100000",
    DAYS "--runs -1",
    DAYS "--plot pictures",
    "days 3 " SMALL " hap-8 -p dp-ev --mtbf garbage",
    "simulate " SMALL " hap-8 -p dp-ev --samples -1",
    "simulate " SMALL " hap-8 -p dp-ev -f flow --trace t.json --dot g.dot",
    "simulate " SMALL " hap-8 -p dp-ev --chakra run",
    PLAN "-o p.json",
    PLAN "--pin nothing=identity",
    PLAN "--set bucket=garbage",
    PLAN "--explain --only none",
    "compare " SMALL " hap-8",
    "sensitivity " SMALL " hap-8 -p garbage",
    "memory " SMALL " hap-8 -p dp-ev --scale network=0",
    "collective all_reduce star:hosts=2 --bytes garbage",
    "collective all_reduce star:hosts=2 --bytes 1MB --shares 1,x",
    "verify " SMALL " hap-8 -p dp-ev --shapes 0",
    "advise " SMALL " hap-a100-4 --price a100=x",
    "models " SMALL " -o graph.json",
    "theory " SMALL " --gpus 0",
    "export p.json --to garbage",
    "table none.db",
    "report none.json -o r.html",
    "sweep none.yaml",
    "figure none",
};

static void test_same_work(void **state)
{
    (void)state;
    static const char *const MODE[] = {"", " -q", " --json"};
    for (guint i = 0; i < G_N_ELEMENTS(LINES); i++) {
        int status = 0;
        g_autofree char *files = NULL;
        for (guint m = 0; m < G_N_ELEMENTS(MODE); m++) {
            g_autoptr(Sandbox) box = sandbox_new();
            g_autofree char *line = g_strconcat(LINES[i], MODE[m], NULL);
            g_auto(Ran) ran = program_run(box, line);
            char *digest = sandbox_digest(box);
            /* A plan's file has the time that its search took. */
            const bool timed = strstr(line, "-o p.json") != NULL;
            if (m > 0 && (ran.status != status || (!timed && strcmp(digest, files) != 0)))
                TEST_FAIL_AT(__FILE__, __LINE__,
                             "kilter %s: exit %d, expected %d and the same files", line,
                             ran.status, status);
            status = ran.status;
            g_free(files);
            files = digest;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_work)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
