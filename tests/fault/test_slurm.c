/* A sweep as a job array of a real Slurm: munged, slurmctld and slurmd of the test's own on the
 * loopback device, one task killed and requeued, the parts merged by the script's last job. */
#include <unistd.h>

#include "tests/support/stored.h"

static const char GRID[] =
    "name: array\n"
    "grid:\n"
    "  model: ['vit:layers=1,hidden=64,heads=4,ffn=128', 'vgg19:width=8,fc=64',\n"
    "          'bert-base:layers=1,hidden=4096,heads=32,ffn=65536,vocab=131072']\n"
    "  cluster: [hap-8, hap-16]\n"
    "  planner: [dp-ev, dp-cp]\n"
    "  seed: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n";

static const char CONFIGURATION[] =
    "ClusterName=one\nSlurmUser=root\nSlurmdUser=root\nAuthType=auth/munge\n"
    "CredType=cred/munge\nCommunicationParameters=NoCtldInAddrAny,NoInAddrAny\n"
    "ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\n"
    "SwitchType=switch/none\nSchedulerType=sched/builtin\n"
    "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n"
    "JobAcctGatherType=jobacct_gather/none\nJobCompType=jobcomp/none\n"
    "AccountingStorageType=accounting_storage/none\nReturnToService=2\n"
    "MpiDefault=none\nKillWait=2\nMinJobAge=600\n"
    "PartitionName=debug Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n";

/* Starts the daemons, runs job.sh, kills task 1 and requeues it, waits until the queue is empty.
 * Each daemon ends with the shell, however that ends. */
static const char SCRIPT[] =
    "set -u\n"
    "d=$PWD; host=$(hostname -s)\n"
    "daemons=\n"
    "finish() { [ -z \"$daemons\" ] || kill $daemons; wait; }\n"
    "trap finish EXIT; trap 'exit 9' INT TERM HUP\n"
    "start() { log=$1; shift; setpriv --pdeathsig KILL \"$@\" > $log 2>&1 & "
    "daemons=\"$! $daemons\"; }\n"
    "chmod 755 . && mkdir -p munge state spool && chmod 755 munge\n"
    "head -c 128 /dev/urandom > munge.key && chmod 400 munge.key\n"
    "start munge.out munged --foreground --key-file=$d/munge.key "
    "--socket=$d/munge/socket --pid-file=$d/munge/pid --log-file=$d/munge/log "
    "--seed-file=$d/munge/seed\n"
    "port=$((20000 + $$ % 10000 * 2))\n"
    "cat >> slurm.conf <<END\n"
    "SlurmctldHost=$host(127.0.0.1)\n"
    "AuthInfo=socket=$d/munge/socket,cred_expire=5\n"
    "SlurmctldPort=$port\nSlurmdPort=$((port + 1))\n"
    "StateSaveLocation=$d/state\nSlurmdSpoolDir=$d/spool\n"
    "SlurmctldPidFile=$d/ctld.pid\nSlurmdPidFile=$d/slurmd.pid\n"
    "NodeName=$host NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN\n"
    "END\n"
    "plugin=autodetect; [ -d /sys/fs/cgroup/freezer ] && plugin=cgroup/v1\n"
    "printf 'CgroupPlugin=%s\\nCgroupAutomount=no\\n' $plugin > cgroup.conf\n"
    "export SLURM_CONF=$d/slurm.conf\n"
    "i=0; while [ ! -S munge/socket ] && [ $i -lt 100 ]; do sleep .1; i=$((i + 1)); "
    "done\n"
    "start ctld.out slurmctld -D -f $d/slurm.conf\n"
    "start slurmd.out slurmd -D -f $d/slurm.conf -N $host\n"
    "i=0; until sinfo -h -o %T 2> /dev/null | grep -q idle; do\n"
    "  sleep .3; i=$((i + 1)); [ $i -lt 200 ] || exit 77\n"
    "done\n"
    "sh job.sh || exit 3\n"
    "job=$(squeue -h -n kilter-array -o %F | head -n 1)\n"
    "lock=array.parts/part-1.db-lock\n"
    "i=0; until [ -s $lock ]; do sleep .05; i=$((i + 1)); [ $i -lt 1200 ] || exit 4; "
    "done\n"
    "sleep .3; kill -9 $(sed -n '2s/^[^ ]* \\([0-9]*\\) .*/\\1/p' $lock)\n"
    "echo killed\n"
    "i=0; until scontrol requeue ${job}_1 2> requeue.err; do\n"
    "  sleep .2; i=$((i + 1)); [ $i -lt 50 ] || exit 5\n"
    "done\n"
    "i=0; while squeue -h | grep -q .; do\n"
    "  sleep .5; i=$((i + 1)); [ $i -lt 1000 ] || exit 6\n"
    "done\n"
    "scontrol show job ${job}_1 | grep -o 'Restarts=[0-9]*'\n";

static bool has_slurm(void)
{
    static const char *const NEEDED[] = {"munged",   "slurmctld", "slurmd", "sbatch",
                                         "scontrol", "squeue",    "setpriv"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(NEEDED); i++) {
        g_autofree char *found = g_find_program_in_path(NEEDED[i]);
        if (!found)
            return false;
    }
    return geteuid() == 0;
}

static void test_array(void **state)
{
    (void)state;
    char *path = g_strconcat(g_getenv("PATH"), ":/usr/sbin:/sbin", NULL);
    g_setenv("PATH", path, TRUE);
    g_free(path);
    if (!has_slurm()) {
        print_message(
            "no Slurm here (slurm-wlm, munge, as root): the array is not run\n");
        skip();
    }
    g_autoptr(Sandbox) box = sandbox_new();
    sandbox_write(box, "array.yaml", GRID);
    sandbox_write(box, "slurm.conf", CONFIGURATION);
    sandbox_write(box, "slurm.sh", SCRIPT);
    program_runs(box, "sweep array.yaml --db one.db -j 1 -q");
    g_auto(Ran) job = program_run_good(
        box, "sweep array.yaml --emit slurm --plan-shards 4 -j 1 --db all.db");
    sandbox_write(box, "job.sh", job.out);
    g_autoptr(GSubprocessLauncher) launcher = g_subprocess_launcher_new(
        G_SUBPROCESS_FLAGS_STDOUT_PIPE | G_SUBPROCESS_FLAGS_STDERR_MERGE);
    g_subprocess_launcher_set_cwd(launcher, box->folder);
    GSubprocess *process =
        g_subprocess_launcher_spawn(launcher, NULL, "sh", "slurm.sh", NULL);
    assert_non_null(process);
    g_auto(Ran) ran = program_finish(process);
    if (ran.status == 77) {
        print_message("Slurm does not start here: the array is not run\n");
        skip();
    }
    if (ran.status != 0)
        TEST_FAIL_AT(__FILE__, __LINE__, "slurm.sh: exit %d, %s", ran.status, ran.out);
    assert_non_null(strstr(ran.out, "killed\n"));
    assert_non_null(strstr(ran.out, "Restarts=1"));
    g_autofree char *merged = sandbox_read(box, "array.parts/merge.log");
    assert_non_null(strstr(merged, "120 results added from 4 stores"));
    assert_non_null(strstr(merged, "0 missing"));
    assert_same_rows(box, "all.db", "one.db");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_array)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
