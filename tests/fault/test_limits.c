/* Every size that a user asks for has a bound, which the message names; input that never ends is
 * not read; and a failed write of output is a failure. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data/data.h"
#include "tests/support/costs_text.h"
#include "tests/support/program.h"
#include "tests/support/sanitized.h"

#define SMALL "vit:layers=1,hidden=64,heads=4,ffn=128"
#define PLAN  "plan " SMALL " hap-8 -p dp-ev"

static void test_sizes(void **state)
{
    (void)state;
    static const struct {
        const char *line, *says;
    } cases[] = {
        {"plan --planner hap vit:layers=1000000 hap-8", "an integer from 1 to 4096"},
        {"plan --planner hap vit:image=10000,patch=1 hap-8", "at most 2^53"},
        {"collective all_to_all star:hosts=65536 --bytes 64MB", "4.29e+09 messages"},
        {"collective all_gather star:hosts=65536 --bytes 64MB -a direct",
         "4.29e+09 messages"},
        {"collective all_reduce star:hosts=8 --bytes 1e300B", "amount of bytes"},
        {"collective all_reduce star:hosts=1000000 --bytes 1B", "from 1 to 65536"},
        {PLAN " --set bucket=1e30MiB", "amount of bytes"},
        {PLAN " --set bucket=10000TiB", "at most 2^53 bytes"},
        {PLAN " --set microbatches=1000000", "from 0 to 65534"},
        {"simulate " SMALL " hap-8 -p dp-ev -f flow --samples 2147483647", "--samples"},
        {"days 365 " SMALL " hap-8 -p dp-ev --mtbf 1ms", "at most 10000000"},
        {"verify " SMALL " hap-8 --shapes 0", "--shapes: expected 1 to 1000, got 0"},
        {"plan --planner hap vit: hap-8",
         "expected key=value after each colon and comma"},
        {"plan --planner hap vit:, hap-8",
         "expected key=value after each colon and comma"},
        {"plan " SMALL " star: -p dp-ev",
         "expected key=value after each colon and comma"},
        {"exec " SMALL " hap-8 -p dp-ev --ranks 0", "--ranks 0: the plan is for"},
        {"exec " SMALL " hap-8 -p dp-ev --ranks -1", "--ranks -1: the plan is for"},
        {"exec " SMALL " hap-8 -p dp-ev -b reference --ranks 3", "--ranks 3: the plan"},
        {"collective all_reduce hap-8 --bytes 1MB --ranks=", "expected numbers from 0"},
        {PLAN " --output=", "--output: expected a name, got ''"},
        {"days 3 " SMALL " hap-8 -p dp-ev -q --plot=", "--plot: expected a name"},
        {"reproduce hap-fig4 --db=", "--db: expected a name"},
        {"advise " SMALL " hap-8 -q --set layer_times=none.csv",
         "none.csv: no such file"},
        {PLAN " --memory-limit 1MiB", "--memory-limit: expected at least 64 MiB"},
    };
    g_autoptr(Sandbox) box = sandbox_new();
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++)
        program_refuses(box, cases[i].line, 2, cases[i].says);
}

static void test_keys_once(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    program_refuses(box, "plan --planner hap vit:layers=1,layers=2 hap-8", 2,
                    "layers: given twice");
    program_refuses(box, "collective send star:hosts=2,hosts=3 --bytes 1B", 2,
                    "hosts: given twice");
    sandbox_write(box, "x.yaml",
                  "name: x\ngrid:\n  model: [vgg19]\n  cluster: [hap-8]\n"
                  "  planner: ['dp-ev:bucket=1MiB,bucket=2MiB']\n");
    program_refuses(box, "sweep x.yaml --db r.db", 2, "bucket: given twice");
    sandbox_write(box, "both.yaml",
                  "name: x\ngrid:\n  model: [vgg19]\n  cluster: [hap-8]\n"
                  "  planner: [dp-ev]\nexchange:\n  kind: [all_gather]\n");
    program_refuses(box, "sweep both.yaml --db r.db", 2,
                    "both.yaml:6: exchange: expected no grid beside it");
    g_autofree char *store = g_build_filename(box->folder, "r.db", NULL);
    assert_false(g_file_test(store, G_FILE_TEST_EXISTS));
}

static void test_files_that_never_end(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "plan /dev/zero hap-8",
        "plan --planner hap " SMALL " /dev/zero",
        "simulate /dev/zero",
        PLAN " --pins /dev/zero",
        PLAN " --segments /dev/zero",
        "plan " SMALL " hap-8 -p manual --strategy /dev/zero",
        "calibrate /dev/zero -o c.yaml",
        "figure timeline -t /dev/zero",
    };
    g_autoptr(Sandbox) box = sandbox_new();
    for (guint i = 0; i < G_N_ELEMENTS(lines); i++)
        program_refuses(box, lines[i], 2, "regular file");
    program_refuses(box, "sweep /dev/zero --db r.db", 2, "expected a file");
}

/* Numbers so small that their quotients are none, in each kind of file and option. */
static void test_tiny_numbers(void **state)
{
    (void)state;
    static const struct {
        const char *text, *line, *says;
    } cases[] = {
        {"[{\"case\": 1, \"D\": 4, \"tau_bytes_per_us\": 4.9e-324, \"op\": [\"a\"], "
         "\"T_us\": [5],"
         " \"edge\": [], \"gradient\": []}]",
         "sfb f.json", "tau_bytes_per_us: expected at least 1e-9"},
        {"[{\"case\": 1, \"D\": 4, \"tau_bytes_per_us\": 1, \"op\": [\"a\"], \"T_us\": "
         "[1e-300],"
         " \"edge\": [], \"gradient\": []}]",
         "sfb f.json", "T_us: expected microseconds"},
        {"time_s\n1e-310\n", "days 3 " SMALL " hap-8 -p dp-ev --failures f.json",
         "time_s: expected a number"},
        {"", PLAN " --set bucket=1e-310B", "expected an amount of bytes"},
        {"", "simulate " SMALL " hap-8 -p dp-ev -f flow --set jitter=1e-310",
         "expected a number from 0 to 10, 0 or at least 1e-30 in size, got '1e-310'"},
        {"", "days 3 " SMALL " hap-8 -p dp-ev --mtbf 1e-310s", "--mtbf: expected"},
        {"", PLAN " --scale network=1e-310", "a factor from"},
    };
    g_autoptr(Sandbox) box = sandbox_new();
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        sandbox_write(box, "f.json", cases[i].text);
        program_refuses(box, cases[i].line, 2, cases[i].says);
    }
}

/* A message names what it refuses, not all of it. */
static void test_long_echoes(void **state)
{
    (void)state;
    enum { LONG = 100000, MOST = 8000 };
    g_autofree char *word = g_strnfill(LONG, 'x');
    g_autofree char *quoted =
        g_strdup_printf("%.*s='%.*s", LONG / 2, word, LONG / 2, word);
    static const char *const lines[] = {
        PLAN " --pins f",
        PLAN " --segments f",
        "models f:layers=1",
        "plan " SMALL " hap-8 -p manual --strategy f",
        "fit f --cluster hap-8 -o g",
        "sweep f --dry-run",
    };
    g_autoptr(Sandbox) box = sandbox_new();
    for (guint i = 0; i < 2 * G_N_ELEMENTS(lines); i++) {
        sandbox_write(box, "f", i % 2 ? word : quoted);
        g_auto(Ran) ran = program_run(box, lines[i / 2]);
        assert_int_equal(ran.status, 2);
        assert_in_range(strlen(ran.err), 1, MOST);
    }
}

/* The depth of a file is bounded before a parser sees it whose time grows with the square of it. */
static void test_deep(void **state)
{
    (void)state;
    enum { DEPTH = 400000 };
    g_autofree char *open = g_strnfill(DEPTH, '[');
    g_autofree char *text = g_strdup_printf("name: %s\n", open);
    static const char *const lines[] = {"sweep f.yaml --dry-run", "league f.yaml",
                                        "plan --planner hap " SMALL " f.yaml",
                                        "models f.yaml"};
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "f.yaml", text);
    for (guint i = 0; i < G_N_ELEMENTS(lines); i++)
        program_refuses(box, lines[i], 2, "nested too deeply");
}

/* A file that may not grow is a disk that is full. */
static void test_file_size_limit(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    char *argv[] = {
        (char *)"sh", (char *)"-c",
        (char
             *)"ulimit -f 1; exec \"$KILTER_BIN\" plan vgg19 hap-8 -q -p dp-ev -o p.json",
        NULL};
    g_autofree char *says = NULL, *before = sandbox_digest(box);
    int status = 0;
    assert_true(g_spawn_sync(box->folder, argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL,
                             NULL, &says, &status, NULL));
    g_autofree char *after = sandbox_digest(box);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_non_null(strstr(says, "cannot write p.json"));
    assert_string_equal(before, after);
}

/* A cluster of one large machine and a small one. */
static void write_large(const Sandbox *box, uint32_t gpus)
{
    g_autofree char *text = g_strdup_printf(
        "name: two\ndevice_types: [{name: v, rate: 1 TFLOP/s, memory: 1 GiB, source: "
        "s}]\n"
        "machines:\n"
        "  - {name: a, type: v, gpus: %u, inner: {latency: 4 us, bandwidth: 9 GB/s}, "
        "source: s}\n"
        "  - {name: b, type: v, gpus: 2, inner: {latency: 4 us, bandwidth: 9 GB/s}, "
        "source: s}\n" COSTS_TEXT,
        gpus);
    sandbox_write(box, "two.yaml", text);
}

/* Small files that ask for much: refused, or said before the work begins, also under -q. */
static void test_bombs(void **state)
{
    (void)state;
    static const char *const LARGE[] = {"plan vit:layers=2048 hap-8 -q -p hap",
                                        "plan vit:layers=2048 hap-8 -q -p hidup",
                                        "plan vit:layers=1024 hap-8 -q -p joint",
                                        "simulate vit:layers=1024 hap-8 -q -p joint"};
    g_autoptr(Sandbox) box = sandbox_new();
    write_large(box, 65535);
    sandbox_write(box, "long.yaml",
                  "name: long\ngrid:\n  model: ['vit:layers=2048']\n"
                  "  cluster: [hap-8]\n  planner: [hap]\n");
    program_refuses(box, "plan vit:layers=2 two.yaml -p amp -q", 2,
                    "amp searches up to 8192 GPUs, the cluster has 65537; use joint");
    program_refuses(box, "plan vit:layers=2 two.yaml -p amp-sa -q", 2,
                    "amp-sa searches up to 4096");
    program_refuses(box, "plan vit:layers=2 two.yaml -p tag -q", 2,
                    "tag searches up to 16384 GPUs, the cluster has 65537");
    program_refuses(box, "plan vit:layers=2 two.yaml -p m-sct -q", 2,
                    "m-sct searches up to 16384");
    /* Hap's costs of all states behind an op took 8 GiB. */
    g_auto(Ran) states = program_run_good(
        box, "plan t5-large:global_batch=64,seq=512,precision=mixed 2x1xb200@eth-100"
             "+8xa100-80g+4xv100-32g -p hap --granularity gpu -q --memory-limit 2GiB");
    for (guint i = 0; i < G_N_ELEMENTS(LARGE); i++) {
        GSubprocess *process = program_start(box, LARGE[i], NULL);
        GInputStream *stream = g_subprocess_get_stderr_pipe(process);
        char text[64] = {0};
        const gssize n = g_input_stream_read(stream, text, sizeof text - 1, NULL, NULL);
        g_subprocess_force_exit(process);
        g_object_unref(process);
        assert_true(n > 0);
        assert_non_null(strstr(text, " ops and 8 GPUs may take"));
    }
    static const struct {
        const char *command, *says;
    } OTHER[] = {
        {"theory vit:layers=1024 --json", "the theory of "},
        {"theory vit:layers=4096", "the theory of "},
        {"advise vit:layers=4096 hap-8 -q", " tries of planners on "},
        {"plan vit:layers=1024 hap-8 -q -p auto", " GiB of memory"},
        {"plan llama 512x8xh100-sxm@8xib-ndr -q", " ops and 4096 GPUs may take "},
        {"plan llama:global_batch=65534 2x8xh100-sxm@8xib-ndr -q -p manual --set pp=4 "
         "--set tp=4 --set microbatches=65534",
         "a program of about 8.7e+07 ops may take "},
        {"verify resnet101:batch=1 -q", " ops of resnet101 in float64 may take "},
        {"plan vit:layers=2 star:hosts=600 -q -p tag",
         "tag on 126 ops and 600 GPUs may take"},
        {"exec vit:layers=2048 hap-8 -q -p hap", "hap on "},
        {"sweep long.yaml -q", "hap on "},
        {"collective all_to_all tree:hosts=512 --bytes 1MB --skew 1ms -q",
         "messages of 512 ranks, each to each, may take "},
        {"sensitivity vit:layers=2048 hap-8 -q -p hap", " may take "},
        {"memory vit:layers=1 hap-8 --most layers -q -p hap", "--most layers: "}};
    for (guint i = 0; i < G_N_ELEMENTS(OTHER); i++) {
        GSubprocess *process = program_start(box, OTHER[i].command, NULL);
        char text[256] = {0};
        const gssize n = g_input_stream_read(g_subprocess_get_stderr_pipe(process), text,
                                             sizeof text - 1, NULL, NULL);
        g_subprocess_force_exit(process);
        g_object_unref(process);
        assert_true(n > 0 && strstr(text, OTHER[i].says));
    }
    /* A search of half a second is not said to be long. */
    program_refuses(box, "plan vit:layers=2,image=16 hap-8 -q --scale '*.memory=0.0014'",
                    3, "fits the memory; its weights and optimizer states take 163 MiB");
    g_auto(Ran) quick = program_run_good(box, "plan vit:layers=12 hap-8 -q");
    assert_string_equal(quick.err, "");
    g_auto(Ran) crowded = program_run_good(box, "plan gpt2:global_batch=64 hap-8 -q");
    assert_string_equal(crowded.err, "");
    write_large(box, 8191); /* joint took 8 s where it handed out samples one by one */
    g_auto(Ran) shared = program_run_good(box, "plan vit:layers=1 two.yaml -q -p joint");
    assert_string_equal(shared.err, "");
    /* Lines that are printed one by one are not kept. */
    g_auto(Ran) ran =
        program_run_in(box, "theory vit:layers=128 --memory-limit 150MiB", NULL);
    assert_int_equal(ran.status, 0);
    /* All of it at once is, and GLib has no memory for a lock, or for the words that say so. */
    for (uint32_t mib = 78; mib <= 90; mib++) {
        g_autofree char *line =
            g_strdup_printf("theory vit:layers=64 --json --memory-limit %uMiB", mib);
        g_auto(Ran) short_of = program_run_in(box, line, NULL);
        assert_int_equal(short_of.status, 1);
        assert_non_null(strstr(short_of.err, "out of memory"));
    }
}

/* A cluster of so many types of devices, a machine of each. */
static void write_types(const Sandbox *box, uint32_t n)
{
    GString *text = g_string_new("name: types\ndevice_types:\n");
    for (uint32_t i = 0; i < n; i++)
        g_string_append_printf(
            text, "  - {name: t%u, rate: %u GFLOP/s, memory: 16 GiB, source: s}\n", i,
            1000 + i);
    g_string_append(text, "machines:\n");
    for (uint32_t i = 0; i < n; i++)
        g_string_append_printf(text,
                               "  - {name: m%u, type: t%u, gpus: 1, inner: {latency: 4 "
                               "us, bandwidth: 9 GB/s}, source: s}\n",
                               i, i);
    g_string_append(text, COSTS_TEXT);
    sandbox_write(box, "types.yaml", text->str);
    g_string_free(text, TRUE);
}

/* Of many machines, joint kept a bandwidth for each two, 32 GiB, which only another cost reads. */
static void test_machines(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "many.yaml",
                  "name: many\ndevice_types: [{name: v, rate: 1 TFLOP/s, memory: 1 GiB, "
                  "source: s}]\nmachines: [{name: m, count: 65536, type: v, gpus: 1, "
                  "source: s}]\n" COSTS_TEXT);
    g_auto(Ran) ran = program_run_good(box, "plan " SMALL " many.yaml -q -p joint");
    assert_string_equal(ran.err, "");
}

/* Bounds of memory looked for the device of least weight once per device: 13 s of CPU. */
static void test_hosts(void **state)
{
    (void)state;
#ifdef TEST_SANITIZED
    skip();
#endif
    static char script[] = "ulimit -t 4; exec \"$KILTER_BIN\" plan " SMALL
                           ",global_batch=131072 star:hosts=65536 -q -p hap";
    char *argv[] = {(char *)"sh", (char *)"-c", script, NULL};
    int status = 0;
    assert_true(g_spawn_sync(NULL, argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, NULL,
                             NULL, &status, NULL));
    assert_int_equal(status, 0);
}

/* Sets of 32 types fill a word: hap aborted. With 900 joint asked for 10 GB, and ended. */
static void test_types(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    write_types(box, 900);
    static const char *const SEARCH[] = {"joint", "amp", "hap"};
    for (guint i = 0; i < G_N_ELEMENTS(SEARCH); i++) {
        g_autofree char *line =
            g_strdup_printf("plan vit:layers=1 types.yaml -q -p %s", SEARCH[i]);
        program_refuses(box, line, 2, "searches up to 64 kinds of devices");
    }
    for (uint32_t n = 31; n <= 33; n++) {
        write_types(box, n);
        g_auto(Ran) ran = program_run_good(box, "plan vit:layers=1 types.yaml -q -p hap");
        assert_string_equal(ran.err, "");
    }
}

static char *numbers_to(uint32_t n)
{
    GString *list = g_string_new("[0");
    for (uint32_t i = 1; i < n; i++)
        g_string_append_printf(list, ", %u", i);
    return g_string_free(g_string_append(list, "]\n"), FALSE);
}

/* Points of a grid borrow what they share (before, these took 300 MiB), and what a grid makes is
 * bounded by the products of its axes. */
static void test_grids(void **state)
{
    (void)state;
    static const char GRID[] =
        "name: grid\ngrid:\n  model: [vgg19]\n  cluster: [hap-8]\n  planner: "
        "[dp-ev, dp-cp, hap, joint, amp, hidup, auto, deepspeed, fastmoe, tag]\n";
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *seeds = numbers_to(25000), *scales = numbers_to(200),
                    *points = g_strconcat(GRID, "  seed: ", seeds, NULL),
                    *clusters = g_strconcat(GRID, "  cluster.scale.network: ", scales,
                                            "  cluster.scale.inner: ", scales, NULL);
    sandbox_write(box, "points.yaml", points);
    sandbox_write(box, "clusters.yaml", clusters);
    program_refuses(box, "sweep points.yaml --status --db none.db --memory-limit 200MiB",
                    2, "none.db: cannot open the store");
    program_refuses(
        box, "sweep clusters.yaml --dry-run", 2,
        "grid.cluster: expected at most 20000 with the axes that change them, got 4e+04");
}

/* The program's table of functions is read only once it runs. */
static void test_bound_at_start(void **state)
{
    (void)state;
    test_needs("readelf");
    char *argv[] = {(char *)"readelf", (char *)"-d", (char *)g_getenv("KILTER_BIN"),
                    NULL};
    g_autofree char *says = NULL;
    assert_true(g_spawn_sync(NULL, argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL, &says,
                             NULL, NULL, NULL));
    assert_non_null(strstr(says, "NOW"));
}

/* Traces of others that have text for numbers, or devices beyond any count. */
static void test_traces(void **state)
{
    (void)state;
    static const char *const events[] = {
        "{\"ph\":\"X\",\"ts\":\"a\"}",
        "{\"ph\":\"X\",\"pid\":9223372036854775807,\"tid\":1,\"ts\":0,\"dur\":1}",
        "{\"ph\":\"M\",\"pid\":-1}",
        "{\"ph\":\"X\",\"pid\":0,\"tid\":0,\"ts\":0,\"dur\":-1}",
        "{\"ph\":\"C\",\"pid\":0,\"ts\":true}",
        "7",
    };
    g_autoptr(Sandbox) box = sandbox_new();
    for (guint i = 0; i < G_N_ELEMENTS(events); i++) {
        g_autofree char *text = g_strdup_printf("{\"traceEvents\":[%s]}", events[i]);
        sandbox_write(box, "t.json", text);
        program_refuses(box, "figure timeline -t t.json", 2, "traceEvents[0]: expected");
    }
}

static void test_memory_limit(void **state)
{
    (void)state;
#ifdef TEST_SANITIZED
    skip();
#endif
    g_autoptr(Sandbox) box = sandbox_new();
    program_refuses(box,
                    "collective all_to_all star:hosts=2048 --bytes 1MB "
                    "--memory-limit 64MiB",
                    1, "out of memory: failed to allocate");
    g_auto(Ran) ran = program_run_good(box, PLAN " --memory-limit 4GiB");
    (void)ran;
}

/* Without a limit of a user's, half of the machine's memory. */
static void test_own_limit(void **state)
{
    (void)state;
#ifdef TEST_SANITIZED
    skip();
#endif
    enum { TRIES = 1000, PAUSE_US = 1000 };
    g_autoptr(Sandbox) box = sandbox_new();
    GSubprocess *process =
        program_start(box, "collective all_to_all star:hosts=1024 --bytes 1MB", NULL);
    g_autofree char *path =
        g_strdup_printf("/proc/%s/limits", g_subprocess_get_identifier(process));
    const double all = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    double bytes = 0;
    for (int i = 0; i < TRIES && bytes == 0; i++, g_usleep(PAUSE_US)) {
        g_autofree char *text = NULL;
        if (g_file_get_contents(path, &text, NULL, NULL))
            bytes = g_ascii_strtod(
                strstr(text, "Max data size") + strlen("Max data size"), NULL);
    }
    g_subprocess_force_exit(process);
    g_auto(Ran) ran = program_finish(process);
    assert_true(bytes > 0 && bytes <= all / 2);
}

/* Help texts are longer than the library's buffer. */
static void test_full_disk(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    static const char *const lines[] = {"plan --help", "", "models", "clusters --json"};
    for (guint i = 0; i < G_N_ELEMENTS(lines); i++) {
        g_autofree char *command =
            g_strdup_printf("\"$KILTER_BIN\" %s > /dev/full", lines[i]);
        char *argv[] = {(char *)"sh", (char *)"-c", command, NULL};
        g_autofree char *says = NULL;
        int status = 0;
        assert_true(g_spawn_sync(box->folder, argv, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL,
                                 NULL, &says, &status, NULL));
        assert_false(g_spawn_check_wait_status(status, NULL));
        if (!strstr(lines[i], "--json"))
            assert_string_equal(says, "kilter: cannot write to standard output\n");
        else
            assert_non_null(
                strstr(says, "\"message\":\"cannot write to standard output\""));
    }
    /* The work failed; a name that cannot be written is bad input. */
    program_refuses(box, PLAN " -o /dev/full", 1, "/dev/full: No space left on device");
    program_refuses(box, PLAN " -o none/p.json", 2, "none/p.json: no folder none");
}

/* A file that cannot be written is an error, whatever the command has said before. */
static void test_full_disk_of_files(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    static const char *const lines[] = {
        "models vit:layers=1 -o /dev/full",
        "plan vit:layers=1 hap-8 --planner dp-ev -o /dev/full",
        "simulate vit:layers=1 hap-8 -p dp-ev -f flow --trace /dev/full",
        "simulate vit:layers=1 hap-8 -p dp-ev --dot /dev/full",
    };
    for (guint i = 0; i < G_N_ELEMENTS(lines); i++)
        program_refuses(box, lines[i], 1, "cannot write /dev/full");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_keys_once),
        cmocka_unit_test(test_files_that_never_end),
        cmocka_unit_test(test_tiny_numbers),
        cmocka_unit_test(test_long_echoes),
        cmocka_unit_test(test_deep),
        cmocka_unit_test(test_bombs),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_machines),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_grids),
        cmocka_unit_test(test_bound_at_start),
        cmocka_unit_test(test_file_size_limit),
        cmocka_unit_test(test_traces),
        cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_own_limit),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_full_disk_of_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
