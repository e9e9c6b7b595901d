/* Failures during a sweep: one test for each row of the table in docs/sweeps.md, without kills,
 * which test_sweep_kill.c tests. */
#include <fcntl.h>
#include <glib/gstdio.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/sanitized.h"
#include "tests/support/stored.h"

static const char GRID[] =
    "name: shared\n"
    "grid:\n"
    "  model: ['vit:layers=1,hidden=64,heads=4,ffn=128', 'vgg19:width=8,fc=64']\n"
    "  cluster: [hap-8, hap-16]\n"
    "  planner: [dp-ev, dp-cp]\n"
    "  seed: [1, 2, 3, 4, 5]\n";
enum { ALL = 40 };

static long evaluated_of(const char *json)
{
    const char *at = strstr(json, "\"evaluated\": ");
    assert_non_null(at);
    return strtol(at + strlen("\"evaluated\": "), NULL, 10);
}

/* --- files that an option names --- */

/* No row says that a configuration is impossible because a file is broken. */
static void test_broken_files_of_options(void **state)
{
    (void)state;
    static const struct {
        const char *planner, *message;
    } CASE[] = {{"dp-ev:layer_times=broken.csv", "broken.csv:1: expected a column"},
                {"amp:profile=broken.csv", "broken.csv:1: expected a column"},
                {"tag:search=mcts,priors=gnn", "network.txt:1: expected"}};
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *folder = g_build_filename(box->folder, "tag", NULL);
    g_autofree char *own = g_strconcat("KILTER_PATH=", box->folder, NULL);
    assert_int_equal(g_mkdir(folder, 0700), 0);
    sandbox_write(box, "broken.csv", "x,y\n1,2\n");
    sandbox_write(box, "tag/network.txt", "x\n");
    for (guint i = 0; i < G_N_ELEMENTS(CASE); i++) {
        g_autofree char *grid = g_strdup_printf(
            "name: s\ngrid: {model: ['vgg19:width=8,fc=64'], cluster: [hap-8], planner: "
            "[dp-ev, '%s']}\n",
            CASE[i].planner);
        sandbox_write(box, "s.yaml", grid);
        program_refuses_in(box, "sweep s.yaml --db s.db", own, 2, CASE[i].message);
    }
}

/* --- a configuration that ends its process --- */

/* Memory of 80 MiB is too little for the search of the larger model, so the process ends. */
static const char POISON[] =
    "name: poison\n"
    "grid:\n"
    "  model: ['gpt2:layers=200,batch=64', 'vit:layers=1,hidden=64,heads=4,ffn=128']\n"
    "  cluster: [hap-8]\n"
    "  planner: [hap, dp-ev]\n";

static void test_a_configuration_that_ends_processes(void **state)
{
    (void)state;
#ifdef TEST_SANITIZED
    skip();
#endif
    static const char line[] = "sweep p.yaml --db p.db -j 2 -q --memory-limit 80MiB";
    static const char again[] =
        "sweep p.yaml --db p.db -j 2 -q --memory-limit 80MiB --retry";
    static const char named[] = "1 of 4 configurations ended 2 processes each: "
                                "gpt2:layers=200,batch=64 on hap-8 with hap; --retry";
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "p.yaml", POISON);
    for (int i = 0; i < 2; i++) {
        g_auto(Ran) ran = program_run(box, line);
        assert_int_equal(ran.status, 1);
        assert_non_null(strstr(ran.err, "out of memory"));
    }
    /* The configuration that was in flight beside it is not blamed: it is evaluated, like all
     * others. */
    for (int i = 0; i < 2; i++) {
        g_auto(Ran) third = program_run(box, line);
        assert_int_equal(third.status, 1);
        assert_non_null(strstr(third.err, named));
        g_autofree char *rows = stored_ask(box, "p.db", "SELECT count(*) FROM result");
        assert_string_equal(rows, "3|\n");
    }
    g_auto(Ran) status = program_run(box, "sweep --status p.db p.yaml");
    assert_int_equal(status.status, 1);
    assert_non_null(strstr(status.out, "1 missing, 1 of them failed"));
    assert_non_null(strstr(status.out, "with hap by stage: ended 2 processes"));
    g_auto(Ran) retried = program_run(box, again);
    assert_int_equal(retried.status, 1);
    assert_non_null(strstr(retried.err, "out of memory"));
}

/* --- a configuration during which its process is killed --- */

/* However often: the same command completes the sweep. A kill leaves no trace; a crash does. */
static void test_kills_blame_nothing(void **state)
{
    (void)state;
    enum { KILLS = 4, WAIT_US = 5000, PATIENCE = 2000 };
    static const char line[] = "sweep long.yaml --db l.db -j 2";
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "long.yaml",
                  "name: long\ngrid:\n  model: ['vit:layers=8,global_batch=64']\n"
                  "  cluster: [hap-16]\n  planner: [hap, auto]\n");
    for (int i = 0; i < KILLS; i++) {
        GSubprocess *process = program_start(box, line, NULL);
        for (int k = 0; k < PATIENCE; k++, g_usleep(WAIT_US)) {
            g_autoptr(GDir) dir = g_dir_open(box->folder, 0, NULL);
            const char *name;
            bool runs = false;
            while ((name = g_dir_read_name(dir)))
                runs |= strcmp(name, "l.db-wal") == 0;
            if (runs)
                break;
        }
        g_usleep(30 * WAIT_US);
        g_subprocess_force_exit(process);
        g_auto(Ran) killed = program_finish(process);
        assert_int_equal(killed.status, -1);
    }
    program_runs(box, line);
    g_autofree char *rows = stored_ask(box, "l.db", "SELECT count(*) FROM result");
    assert_string_equal(rows, "2|\n");
}

/* A signal that a fault raises blames what was worked on, twice, and no third time. */
static void test_crashes_are_blamed(void **state)
{
    (void)state;
#ifdef TEST_SANITIZED
    skip();
#endif
    enum { WAIT_US = 500 * 1000 }; /* of 2 s */
    static const char line[] = "sweep long.yaml --db l.db -j 1";
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "long.yaml",
                  "name: long\ngrid:\n  model: ['vit:layers=64,global_batch=64']\n"
                  "  cluster: [hap-16]\n  planner: [auto]\n");
    for (int i = 0; i < 2; i++) {
        GSubprocess *process = program_start(box, line, NULL);
        g_usleep(WAIT_US);
        g_subprocess_send_signal(process, SIGFPE);
        g_auto(Ran) ran = program_finish(process);
        assert_int_equal(ran.status, -1);
    }
    g_auto(Ran) third = program_run(box, line);
    assert_int_equal(third.status, 1);
    assert_non_null(strstr(third.err, "1 of 1 configurations ended 2 processes each"));
    program_runs(box, "sweep long.yaml --db l.db -j 1 --retry");
    g_autoptr(GDir) dir = g_dir_open(box->folder, 0, NULL);
    for (const char *name; (name = g_dir_read_name(dir));)
        assert_null(strstr(name, "-fault-"));
}

/* --- the same sweep, twice at a time --- */

static void test_processes_share_the_work(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "x.yaml", GRID);
    program_runs(box, "sweep x.yaml --db whole.db -j 1 -q");
    enum { PROCESSES = 3 };
    GSubprocess *process[PROCESSES];
    long evaluated = 0;
    for (int i = 0; i < PROCESSES; i++)
        process[i] = program_start(box, "sweep x.yaml --db r.db -j 2 --json", NULL);
    for (int i = 0; i < PROCESSES; i++) {
        g_auto(Ran) ran = program_finish(process[i]);
        assert_int_equal(ran.status, 0);
        evaluated += evaluated_of(ran.out);
    }
    /* each configuration once */
    assert_int_equal(evaluated, ALL);
    assert_same_rows(box, "r.db", "whole.db");
    g_autofree char *left = g_build_filename(box->folder, "r.db-lock", NULL);
    assert_false(g_file_test(left, G_FILE_TEST_EXISTS));
}

/* --- locks --- */

/* A lock with one line; `beats` is what changes while its process lives. */
static void write_lock(const Sandbox *box, const char *file, const char *host, int beats)
{
    g_autofree char *text = g_strdup_printf(
        "kilter-lock 1\n%s 12 00000000.7.a 2026-01-02T03:04:05Z %d\n", host, beats);
    g_autofree char *path = g_build_filename(box->folder, file, NULL);
    /* in place, as the writer of a lock does: no reader sees an empty file */
    const int descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    assert_true(descriptor >= 0);
    assert_int_equal(pwrite(descriptor, text, strlen(text), 0), strlen(text));
    assert_int_equal(ftruncate(descriptor, (off_t)strlen(text)), 0);
    close(descriptor);
}

static void test_another_machine_writes(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "x.yaml", GRID);
    write_lock(box, "r.db-lock", "elsewhere", 1);
    GSubprocess *process = program_start(box, "sweep x.yaml --db r.db -q", NULL);
    /* an identifier that is there says that the process runs */
    for (int i = 2; i < 1200 && g_subprocess_get_identifier(process); i++) {
        g_usleep(50000);
        write_lock(box, "r.db-lock", "elsewhere", i);
    }
    g_auto(Ran) ran = program_finish(process);
    assert_int_equal(ran.status, 1);
    assert_non_null(strstr(ran.err, "written by another machine now (process 12 of "
                                    "elsewhere, since 2026-01-02T03:04:05Z)"));
    g_autofree char *database = g_build_filename(box->folder, "r.db", NULL);
    assert_false(g_file_test(database, G_FILE_TEST_EXISTS));
}

/* A node that is lost says nothing any more: its store is taken over after a lease. */
static void test_a_lost_machine(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "x.yaml", GRID);
    write_lock(box, "r.db-lock", "elsewhere", 1);
    g_auto(Ran) ran =
        program_run_in(box, "sweep x.yaml --db r.db -q", "KILTER_LEASE_S=1");
    assert_int_equal(ran.status, 0);
    assert_non_null(strstr(ran.err, "taken over; process 12 of elsewhere"));
    g_autofree char *n = stored_ask(box, "r.db", "SELECT count(*) FROM result");
    assert_string_equal(n, "40|\n");
    /* So is a part that is merged. */
    write_lock(box, "r.db-lock", "elsewhere", 1);
    g_auto(Ran) merged = program_run_in(box, "merge all.db r.db", "KILTER_LEASE_S=1");
    assert_int_equal(merged.status, 0);
    assert_non_null(strstr(merged.out, "40 results added"));
}

/* The lock of a process of this machine that does not run any more is no obstacle, and nothing that
 * is no lock is overwritten. */
static void test_locks_of_the_dead_and_of_strangers(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "x.yaml", GRID);
    g_autofree char *boot = NULL;
    assert_true(
        g_file_get_contents("/proc/sys/kernel/random/boot_id", &boot, NULL, NULL));
    g_autofree char *text =
        g_strdup_printf("kilter-lock 1\n%s %d %.8s.1.a 2026-01-02T03:04:05Z 1\n",
                        g_get_host_name(), (int)getpid(), boot);
    sandbox_write(box, "r.db-lock", text);
    g_auto(Ran) ran = program_run_good(box, "sweep x.yaml --db r.db --json");
    assert_int_equal(evaluated_of(ran.out), ALL);
    sandbox_write(box, "s.db-lock", "my shopping list\n");
    program_refuses(box, "sweep x.yaml --db s.db", 2, "not the lock of a Kilter store");
}

/* --- disks --- */

/* Runs a line of sh in the sandbox. Caller clears. */
static Ran run_shell(const Sandbox *box, const char *line)
{
    g_autoptr(GSubprocessLauncher) launcher = g_subprocess_launcher_new(
        G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_PIPE);
    g_subprocess_launcher_set_cwd(launcher, box->folder);
    GSubprocess *process =
        g_subprocess_launcher_spawn(launcher, NULL, "sh", "-c", line, NULL);
    assert_non_null(process);
    return program_finish(process);
}

/* A file may not grow beyond some size: the sweep ends, names the file, and keeps what was
 * committed. */
static void test_a_file_that_cannot_grow(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "x.yaml", GRID);
    g_auto(Ran) ran =
        run_shell(box, "trap '' XFSZ; ulimit -f 160; exec \"$KILTER_BIN\" sweep x.yaml "
                       "--db r.db -q -j 1");
    assert_int_equal(ran.status, 1);
    assert_non_null(strstr(ran.err, "r.db"));
    assert_null(strchr(strchr(ran.err, '\n') + 1, '\n'));
    g_autofree char *n =
        stored_ask(box, "r.db", "SELECT count(*) BETWEEN 1 AND 39 FROM result");
    assert_string_equal(n, "1|\n");
    program_runs(box, "sweep x.yaml --db r.db -q");
    program_runs(box, "sweep x.yaml --db whole.db -q");
    assert_same_rows(box, "r.db", "whole.db");
}

/* A full disk and one that is only read, where this machine allows to mount such ones. */
static void test_disks(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "x.yaml", GRID);
    g_auto(Ran) can = run_shell(box, "mkdir disk && unshare -m mount -t tmpfs -o "
                                     "size=200k kilter disk");
    if (can.status != 0) {
        print_message("no mounts here\n");
        ran_clear(&can);
        g_clear_pointer(&box, sandbox_free);
        skip();
    }
    g_auto(Ran) full = run_shell(
        box, "exec unshare -m sh -c 'mount -t tmpfs -o size=200k kilter disk && "
             "\"$KILTER_BIN\" sweep x.yaml --db disk/r.db -q -j 1; echo $? > status; "
             "\"$KILTER_BIN\" table disk/r.db --all --csv > rows.csv; df disk > df.txt'");
    g_autofree char *code = sandbox_read(box, "status");
    g_autofree char *rows = sandbox_read(box, "rows.csv");
    assert_string_equal(code, "1\n");
    assert_non_null(strstr(full.err, "disk/r.db"));
    assert_non_null(strstr(rows, ",ok,"));
    g_auto(Ran) sealed = run_shell(
        box, "exec unshare -m sh -c 'mount -t tmpfs -o size=9m kilter disk && "
             "\"$KILTER_BIN\" sweep x.yaml --db disk/r.db -q --shard 0/2 && mount -o "
             "remount,ro disk && sha256sum disk/r.db > before; \"$KILTER_BIN\" sweep "
             "x.yaml --db disk/r.db -q; echo $? > status; sha256sum disk/r.db > after'");
    g_autofree char *refused = sandbox_read(box, "status");
    g_autofree char *before = sandbox_read(box, "before");
    g_autofree char *after = sandbox_read(box, "after");
    /* Not even a lock can be written: it is not left behind, empty. */
    g_auto(Ran) none = run_shell(
        box, "exec unshare -m sh -c 'mount -t tmpfs -o size=16k kilter disk && cat "
             "/dev/zero 2> no > disk/zeros; \"$KILTER_BIN\" sweep x.yaml --db disk/r.db "
             "-q; echo $? > status; ls disk > left'");
    g_autofree char *failed = sandbox_read(box, "status");
    g_autofree char *left = sandbox_read(box, "left");
    assert_string_equal(failed, "1\n");
    assert_non_null(strstr(none.err, "disk/r.db"));
    assert_string_equal(left, "zeros\n");
    assert_string_equal(refused, "1\n");
    assert_non_null(strstr(sealed.err, "disk/r.db"));
    assert_string_equal(before, after);
}

/* --- merges --- */

static void test_a_merge_that_is_killed(void **state)
{
    (void)state;
    enum { PARTS = 4, ROUNDS = 12 };
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "x.yaml", GRID);
    g_auto(GStrv) share = g_new0(char *, PARTS + 1);
    for (int i = 0; i < PARTS; i++) {
        g_autofree char *line =
            g_strdup_printf("sweep x.yaml --shard %d/%d --db %d.db -q", i, PARTS, i);
        g_autofree char *file = g_strdup_printf("%d.db", i);
        program_runs(box, line);
        share[i] = stored_ask(box, file, "SELECT hash FROM result ORDER BY hash");
    }
    g_autoptr(GRand) random = g_rand_new_with_seed(5);
    for (int round = 0; round < ROUNDS; round++) {
        g_autofree char *line =
            g_strdup_printf("merge all-%d.db 0.db 1.db 2.db 3.db", round);
        g_autofree char *file = g_strdup_printf("all-%d.db", round);
        g_autofree char *path = g_build_filename(box->folder, file, NULL);
        GSubprocess *process = program_start(box, line, NULL);
        g_usleep((gulong)g_rand_int_range(random, 0, 120000));
        g_subprocess_send_signal(process, SIGKILL);
        Ran ran = program_finish(process);
        ran_clear(&ran); /* finished or killed: both are to leave a whole store */
        struct stat there;
        if (stat(path, &there) != 0 || there.st_size == 0)
            continue;
        g_autofree char *table =
            stored_ask(box, file, "SELECT count(*) FROM sqlite_schema");
        if (strcmp(table, "0|\n") == 0)
            continue; /* killed before the store was made */
        /* parts from the first on, each whole */
        g_autofree char *got =
            stored_ask(box, file, "SELECT hash FROM result ORDER BY hash");
        size_t whole = 0;
        for (int i = 0; i < PARTS; i++) {
            g_auto(GStrv) hash = g_strsplit(share[i], "\n", -1);
            const uint32_t of = g_strv_length(hash) - 1;
            uint32_t found = 0;
            for (uint32_t k = 0; k < of; k++)
                found += strstr(got, hash[k]) != NULL;
            assert_true(found == 0 || found == of);
            whole += found;
        }
        assert_int_equal(strlen(got), whole * (64 + strlen("|\n")));
        program_runs(box, line);
    }
    program_runs(box, "merge all-0.db 0.db 1.db 2.db 3.db");
    program_runs(box, "sweep x.yaml --db one.db -j 1 -q");
    assert_same_rows(box, "all-0.db", "one.db");
}

/* --- arrays --- */

static void test_variables_of_arrays(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "x.yaml", GRID);
    for (int i = 0; i < 3; i++) {
        g_autofree char *index = g_strdup_printf("JOB_COMPLETION_INDEX=%d", i);
        g_autofree char *line =
            g_strdup_printf("sweep x.yaml --plan-shards 3 --db %d.db", i);
        g_autofree char *said =
            g_strdup_printf("shard %d of 3, by JOB_COMPLETION_INDEX", i);
        g_auto(Ran) ran = program_run_in(box, line, index);
        assert_int_equal(ran.status, 0);
        assert_non_null(strstr(ran.err, said));
    }
    g_auto(Ran) merged = program_run_good(box, "merge all.db 2.db 0.db 1.db");
    assert_non_null(strstr(merged.out, "40 results added from 3 stores"));
    program_refuses_in(box, "sweep x.yaml --db r.db", "JOB_COMPLETION_INDEX=1", 2,
                       "--plan-shards");
    program_refuses_in(box, "sweep x.yaml --db r.db --plan-shards 3",
                       "JOB_COMPLETION_INDEX=3", 2, "JOB_COMPLETION_INDEX");
}

/* --- file systems that machines share --- */

static void test_journals(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "x.yaml", GRID);
    g_auto(Ran) ran =
        program_run_in(box, "sweep x.yaml --db r.db -q", "KILTER_SHARED_FILES=1");
    assert_int_equal(ran.status, 0);
    g_autofree char *shared = stored_ask(box, "r.db", "PRAGMA journal_mode");
    assert_string_equal(shared, "delete|\n"); /* the mode of a file without a log */
    g_auto(Ran) local =
        program_run_in(box, "sweep x.yaml --db s.db -q", "KILTER_SHARED_FILES=0");
    assert_int_equal(local.status, 0);
    g_autofree char *log = stored_ask(box, "s.db", "PRAGMA journal_mode");
    assert_string_equal(log, "wal|\n");
    assert_same_rows(box, "s.db", "r.db");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_broken_files_of_options),
        cmocka_unit_test(test_a_configuration_that_ends_processes),
        cmocka_unit_test(test_processes_share_the_work),
        cmocka_unit_test(test_another_machine_writes),
        cmocka_unit_test(test_a_lost_machine),
        cmocka_unit_test(test_locks_of_the_dead_and_of_strangers),
        cmocka_unit_test(test_a_file_that_cannot_grow),
        cmocka_unit_test(test_disks),
        cmocka_unit_test(test_kills_blame_nothing),
        cmocka_unit_test(test_crashes_are_blamed),
        cmocka_unit_test(test_a_merge_that_is_killed),
        cmocka_unit_test(test_variables_of_arrays),
        cmocka_unit_test(test_journals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
