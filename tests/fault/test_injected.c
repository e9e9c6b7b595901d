/* The n-th write, read or allocation fails (tests/support/failing.c), for n = 1, 2, 3, ...: a
 * command gives the right answer or one line and its status, leaves no half of a file, and a
 * store stays whole. */
#include "data/data.h"
#include "data/store/store.h"
#include "tests/support/program.h"

/* The number of a command's calls that are tried, spread over all; the long run
 * (tests/CMakeLists.txt) tries more. */
enum { DEFAULT_TRIES = 2 };
#ifndef TRIES
#define TRIES DEFAULT_TRIES
#endif

#define SMALL "vit:layers=1,hidden=64,heads=4,ffn=128"

static const char EXPERIMENT[] =
    "name: s\ngrid:\n  model: ['" SMALL "']\n"
    "  cluster: [hap-8, hap-16]\n  planner: [dp-ev, dp-cp]\n  seed: [1, 2]\n";

/* Runs with that fault; *calls gets the number of such calls. */
static Ran run_failing(const Sandbox *box, const char *line, const char *fault,
                       long *calls)
{
    g_autofree char *preload =
        g_strconcat("LD_PRELOAD=", g_getenv("KILTER_FAILING"), NULL);
    g_autofree char *count = g_build_filename(box->folder, "..", "kilter-count", NULL);
    g_autofree char *mine = g_strdup_printf("%s-%d", count, (int)getpid()), *text = NULL;
    g_setenv("KILTER_FAIL", fault, TRUE);
    g_setenv("KILTER_FAIL_COUNT", mine, TRUE);
    Ran ran = program_run_in(box, line, preload);
    g_unsetenv("KILTER_FAIL");
    g_unsetenv("KILTER_FAIL_COUNT");
    if (calls)
        *calls =
            g_file_get_contents(mine, &text, NULL, NULL) ? strtol(text, NULL, 10) : 0;
    g_remove(mine);
    return ran;
}

/* GLib makes its locks when they are first taken, and ends the program in its own words if there is
 * no memory for one, maybe after a note of the command. */
static bool is_lock_without_memory(const Ran *ran)
{
    return (ran->status == -1 || strstr(ran->err, "kilter: out of memory: ")) &&
           strstr(ran->err, "GLib (gthread-posix.c): ") &&
           strstr(ran->err, "during 'malloc'");
}

/* GLib ended the program at once for lack of memory: nothing could be closed or removed. */
static bool ended_at_once(const Ran *ran)
{
    return strstr(ran->err, "out of memory: failed to allocate") ||
           is_lock_without_memory(ran);
}

/* The answer is the one without a fault, or a refusal in one line. */
static void check_run(const Ran *ran, const char *line, const char *fault, bool harmless)
{
    const bool good = ran->status == 0;
    const char *end = strchr(ran->err, '\n');
    const bool refused = ran->status >= 1 && ran->status <= 3 && end && !end[1] &&
                         g_str_has_prefix(ran->err, "kilter: ");
    if (!good && (harmless || (!refused && !is_lock_without_memory(ran))))
        TEST_FAIL_AT(__FILE__, __LINE__, "kilter %s with %s: exit %d, '%s'", line, fault,
                     ran->status, ran->err);
}

/* Checks the answer and the files that the command left behind; the first call is without a
 * fault. */
typedef void (*After)(const Sandbox *box, const Ran *ran);

static void inject(const char *line, const char *kind, const char *how, bool harmless,
                   void (*before)(const Sandbox *box), After after)
{
    long calls = 0;
    g_autofree char *none = g_strdup_printf("%s:0:%s", kind, how);
    {
        g_autoptr(Sandbox) box = sandbox_new();
        before(box);
        g_auto(Ran) ran = run_failing(box, line, none, &calls);
        assert_int_equal(ran.status, 0);
        assert_true(calls > 0);
        after(box, &ran);
    }
    const long step = MAX(1, calls / TRIES);
    for (long n = 1; n <= calls; n += step) {
        g_autoptr(Sandbox) box = sandbox_new();
        g_autofree char *fault = g_strdup_printf("%s:%ld:%s", kind, n, how);
        before(box);
        g_auto(Ran) ran = run_failing(box, line, fault, NULL);
        check_run(&ran, line, fault, harmless);
        after(box, &ran);
    }
}

/* --- a plan --- */

static void nothing(const Sandbox *box)
{
    (void)box;
}

/* The file is complete, or absent. */
static void plan_is_whole(const Sandbox *box, const Ran *ran)
{
    g_autofree char *file = g_build_filename(box->folder, "p.json", NULL);
    g_autoptr(GDir) folder = g_dir_open(box->folder, 0, NULL);
    const char *name;
    if (ran->status == 0 || g_file_test(file, G_FILE_TEST_EXISTS))
        program_runs(box, "simulate p.json");
    while ((name = g_dir_read_name(folder)))
        assert_string_equal(name, "p.json");
}

static void test_plan(void **state)
{
    static const char LINE[] = "plan " SMALL " hap-8 -p dp-ev -o p.json";
    (void)state;
    inject(LINE, "write", "full", false, nothing, plan_is_whole);
    inject(LINE, "write", "part", true, nothing, plan_is_whole);
    inject(LINE, "write", "signal", true, nothing, plan_is_whole);
    inject(LINE, "read", "signal", true, nothing, plan_is_whole);
    inject(LINE, "read", "part", true, nothing, plan_is_whole);
    inject(LINE, "memory", "full", false, nothing, plan_is_whole);
}

/* --- a store --- */

static void write_experiment(const Sandbox *box)
{
    sandbox_write(box, "s.yaml", EXPERIMENT);
}

/* Asserts that a new store was not left empty. Only where GLib had no memory, and ended the
 * program at once, may it be. */
static void check_not_empty(const Sandbox *box, const char *name, const Ran *ran)
{
    g_autofree char *file = g_build_filename(box->folder, name, NULL), *bytes = NULL;
    gsize length = 0;
    if (g_file_get_contents(file, &bytes, &length, NULL) && length == 0 &&
        !ended_at_once(ran))
        TEST_FAIL_AT(__FILE__, __LINE__, "%s is empty after '%s'", name, ran->err);
}

/* The sweep then runs to its end. */
static void store_is_whole(const Sandbox *box, const Ran *ran)
{
    check_not_empty(box, "r.db", ran);
    program_runs(box, "sweep s.yaml --db r.db");
    g_auto(Ran) table = program_run_good(
        box,
        "table r.db --rows cluster --columns planner --value iteration_time_s --csv");
    assert_non_null(strstr(table.out, "hap-16"));
}

static void test_sweep(void **state)
{
    static const char LINE[] = "sweep s.yaml --db r.db -j 1";
    (void)state;
    inject(LINE, "write", "full", false, write_experiment, store_is_whole);
    inject(LINE, "write", "part", true, write_experiment, store_is_whole);
    inject(LINE, "read", "signal", true, write_experiment, store_is_whole);
    inject(LINE, "memory", "full", false, write_experiment, store_is_whole);
}

/* --- merged stores, and a page of them --- */

/* Two parts of the sweep, made once. */
static const char *const PARTS[] = {"part-0.db", "part-1.db"};
static char *part_bytes[G_N_ELEMENTS(PARTS)];
static gsize part_length[G_N_ELEMENTS(PARTS)];

static void make_parts(void)
{
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "s.yaml", EXPERIMENT);
    for (uint32_t i = 0; i < G_N_ELEMENTS(PARTS); i++) {
        g_autofree char *line =
            g_strdup_printf("sweep s.yaml --shard %u/2 --db %s", i, PARTS[i]);
        g_autofree char *file = g_build_filename(box->folder, PARTS[i], NULL);
        program_runs(box, line);
        assert_true(g_file_get_contents(file, &part_bytes[i], &part_length[i], NULL));
    }
}

static void write_parts(const Sandbox *box)
{
    if (!part_bytes[0])
        make_parts();
    for (uint32_t i = 0; i < G_N_ELEMENTS(PARTS); i++) {
        g_autofree char *file = g_build_filename(box->folder, PARTS[i], NULL);
        assert_true(
            g_file_set_contents(file, part_bytes[i], (gssize)part_length[i], NULL));
    }
}

/* The parts are as they were, the whole is no empty file, and the same command then adds what is
 * missing. */
static void parts_are_whole(const Sandbox *box, const Ran *ran)
{
    gsize length = 0;
    check_not_empty(box, "whole.db", ran);
    for (uint32_t i = 0; i < G_N_ELEMENTS(PARTS); i++) {
        g_autofree char *file = g_build_filename(box->folder, PARTS[i], NULL),
                        *part = NULL;
        assert_true(g_file_get_contents(file, &part, &length, NULL));
        assert_int_equal(length, part_length[i]);
        assert_memory_equal(part, part_bytes[i], length);
    }
    program_runs(box, "merge whole.db part-0.db part-1.db");
    g_auto(Ran) again =
        program_run_good(box, "merge whole.db part-0.db part-1.db --json");
    assert_non_null(strstr(again.out, "\"added\": 0"));
    g_auto(Ran) table = program_run_good(
        box,
        "table whole.db --rows cluster --columns planner --value iteration_time_s --csv");
    assert_non_null(strstr(table.out, "hap-8"));
    assert_non_null(strstr(table.out, "hap-16"));
}

static void test_merge(void **state)
{
    static const char LINE[] = "merge whole.db part-0.db part-1.db";
    (void)state;
    inject(LINE, "write", "full", false, write_parts, parts_are_whole);
    inject(LINE, "write", "part", true, write_parts, parts_are_whole);
    inject(LINE, "read", "signal", true, write_parts, parts_are_whole);
    inject(LINE, "memory", "full", false, write_parts, parts_are_whole);
}

/* The page is complete, or absent. */
static void page_is_whole(const Sandbox *box, const Ran *ran)
{
    g_autofree char *file = g_build_filename(box->folder, "page.html", NULL),
                    *text = NULL;
    const bool is = g_file_get_contents(file, &text, NULL, NULL);
    assert_true(is || ran->status != 0);
    if (is)
        assert_non_null(strstr(text, "</html>"));
}

static void test_report(void **state)
{
    static const char LINE[] = "report part-0.db -o page.html";
    (void)state;
    inject(LINE, "write", "full", false, write_parts, page_is_whole);
    inject(LINE, "write", "part", true, write_parts, page_is_whole);
    inject(LINE, "read", "signal", true, write_parts, page_is_whole);
    inject(LINE, "memory", "full", false, write_parts, page_is_whole);
}

/* --- commands whose answers and files are the same bytes whenever they succeed --- */

/* Made once. */
static char *plan_text, *store_bytes;
static gsize store_length;

static void make_inputs(const Sandbox *box)
{
    g_autofree char *file = g_build_filename(box->folder, "r.db", NULL);
    program_runs(box, "plan " SMALL " hap-8 -p dp-ev -o p.json");
    plan_text = sandbox_read(box, "p.json");
    program_runs(box, "sweep s.yaml --db r.db");
    assert_true(g_file_get_contents(file, &store_bytes, &store_length, NULL));
}

static void write_inputs(const Sandbox *box)
{
    write_experiment(box);
    sandbox_write(
        box, "rows.csv",
        "device,kind,shape,ranks,share,flops,bytes,repeats,median_s,low_s,high_s\n"
        "v100,linear,4x8;8x8,2,0.75,1e6,4096,10,1e-3,9e-4,1.1e-3\n"
        "v100,all_reduce,,4,0.25,0,1024,1,1e-5,1e-5,1e-5\n");
    sandbox_write(
        box, "log.txt",
        "# Collective test starting: all_reduce_perf\n# nThread 1 nGpus 2\n# Rank  0 "
        "device  0 [0x07] NVIDIA H100\n"
        "# Rank  1 device  1 [0x0a] NVIDIA H100\n"
        "#       size         count      type   redop    root     time   algbw   busbw\n"
        "        1024           256     float    none      -1    20.00    0.05    "
        "0.05\n");
    sandbox_write(
        box, "trials.csv",
        "model,machines,tp,pp,micro_batch,seconds\n"
        "\"gpt2:layers=2,hidden=64,heads=4,ffn=64,seq=16,vocab=64,global_batch=64\",2,"
        "1,1,4,1.84\n");
    if (!plan_text)
        make_inputs(box);
    g_autofree char *file = g_build_filename(box->folder, "r.db", NULL);
    sandbox_write(box, "p.json", plan_text);
    assert_true(g_file_set_contents(file, store_bytes, (gssize)store_length, NULL));
}

/* The answer without a fault, and the bytes of all files by name. */
static char *right_answer;
static GHashTable *right_files;

static void forget_right(void)
{
    g_clear_pointer(&right_answer, g_free);
    g_clear_pointer(&right_files, g_hash_table_unref);
}

/* All files of the folder. */
static GHashTable *files_of(const Sandbox *box)
{
    g_autoptr(GDir) folder = g_dir_open(box->folder, 0, NULL);
    GHashTable *files = g_hash_table_new_full(g_str_hash, g_str_equal, g_free,
                                              (GDestroyNotify)g_bytes_unref);
    const char *name;
    while ((name = g_dir_read_name(folder))) {
        g_autofree char *file = g_build_filename(box->folder, name, NULL);
        char *bytes = NULL;
        gsize length;
        assert_true(g_file_get_contents(file, &bytes, &length, NULL));
        g_hash_table_insert(files, g_strdup(name), g_bytes_new_take(bytes, length));
    }
    return files;
}

/* A store that was being read keeps files beside it, which whoever reads it next takes away. */
static void read_again(const Sandbox *box)
{
    static const char *const SIDE[] = {"r.db-shm", "r.db-wal"};
    program_runs(box, "table r.db --rows cluster --columns planner --value "
                      "iteration_time_s --csv");
    for (uint32_t i = 0; i < G_N_ELEMENTS(SIDE); i++) {
        g_autofree char *file = g_build_filename(box->folder, SIDE[i], NULL);
        assert_false(g_file_test(file, G_FILE_TEST_EXISTS));
    }
}

/* Success gives the right answer and all files; each file that is there is whole, and there are
 * no others. */
static void all_is_right(const Sandbox *box, const Ran *ran)
{
    if (ended_at_once(ran))
        read_again(box);
    g_autoptr(GHashTable) files = files_of(box);
    GHashTableIter each;
    gpointer name, bytes;
    if (!right_files) {
        right_answer = g_strdup(ran->out);
        right_files = g_hash_table_ref(files);
    }
    g_hash_table_iter_init(&each, files);
    while (g_hash_table_iter_next(&each, &name, &bytes)) {
        const GBytes *right = g_hash_table_lookup(right_files, name);
        if (!right || !g_bytes_equal(bytes, right))
            TEST_FAIL_AT(__FILE__, __LINE__, "%s is there, but not whole (exit %d, '%s')",
                         (const char *)name, ran->status, ran->err);
    }
    if (ran->status != 0)
        return;
    assert_int_equal(g_hash_table_size(files), g_hash_table_size(right_files));
    assert_string_equal(ran->out, right_answer);
}

/* Standard output is written by the C library, whose calls are not counted. */
enum { READS = 1, WRITES = 2, SLOW = 4 };
static const struct {
    const char *line;
    uint32_t does;
} COMMAND[] = {
    {"advise " SMALL " hap-8 --only v100", READS},
    {"sensitivity " SMALL " hap-8 -p dp-ev", READS},
    {"days 5 p.json --mtbf 500h --runs 2 -j 1", READS},
    {"simulate p.json -f flow -t t.json --chakra rank --goal g.goal", READS | WRITES},
    {"export p.json --to ddp -o x.py", READS | WRITES},
    {"table r.db --all --csv -o results.csv", READS | WRITES},
    {"league s.yaml --db r.db", READS},
    {"compare p.json p.json", READS},
    {"report p.json -o page.html", READS | WRITES},
    {"import log.txt -o m.csv", READS | WRITES},
    {"calibrate rows.csv --base hap-8 -o c.yaml", READS | WRITES},
    {"collective all_reduce tree:hosts=8,leaf=4 --bytes 1MB", 0},
    {"fit trials.csv --cluster star:hosts=2,bandwidth=100Gb/s -o f.yaml -j 1",
     READS | WRITES | SLOW},
};

static void test_other_commands(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < G_N_ELEMENTS(COMMAND); i++) {
        const char *line = COMMAND[i].line;
        const uint32_t does = COMMAND[i].does;
        if (does & SLOW && TRIES == DEFAULT_TRIES)
            continue;
        if (does & WRITES) {
            inject(line, "write", "full", false, write_inputs, all_is_right);
            inject(line, "write", "part", true, write_inputs, all_is_right);
        }
        if (does & READS) {
            inject(line, "read", "signal", true, write_inputs, all_is_right);
            inject(line, "read", "part", true, write_inputs, all_is_right);
        }
        inject(line, "memory", "full", false, write_inputs, all_is_right);
        forget_right();
    }
    g_clear_pointer(&plan_text, g_free);
    g_clear_pointer(&store_bytes, g_free);
}

static int free_parts(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < G_N_ELEMENTS(PARTS); i++)
        g_clear_pointer(&part_bytes[i], g_free);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan),           cmocka_unit_test(test_sweep),
        cmocka_unit_test(test_merge),          cmocka_unit_test(test_report),
        cmocka_unit_test(test_other_commands),
    };
    return cmocka_run_group_tests(tests, NULL, free_parts);
}
