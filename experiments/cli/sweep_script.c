/* Scripts for schedulers and GNU parallel: every part is a process with a database of its own. */
#include "experiments/cli/sweep_script.h"

#include <string.h>

#include "data/base/error.h"
#include "data/base/names.h"

enum { AT_ONCE = 32 }; /* parts that are evaluated at once */

/* The program that writes the script, so that the script finds it. Caller frees. */
static char *program(void)
{
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    return g_shell_quote(self ? self : "kilter");
}

/* Adds the lines that both scripts begin with. */
static void sweep_script_add_head(GString *text, const SweepScript *s, const char *how)
{
    g_autofree char *kilter = program();
    g_autofree char *parts = g_strconcat(s->name, ".parts", NULL);
    g_autofree char *folder = g_path_get_dirname(s->database);
    g_autofree char *quoted = g_shell_quote(s->database);
    g_autofree char *quoted_folder = g_shell_quote(folder);
    g_string_append_printf(text,
                           "# The sweep %s in %u parts by %s.\n"
                           "set -eu\n"
                           "kilter=%s\nparts=%s\nresults=%s\nfolder=%s\n",
                           s->name, s->shards, how, kilter, parts, quoted, quoted_folder);
}

/* Adds the lines that merge the existing parts and report missing ones. */
static void add_tail(GString *text, const SweepScript *s, const char *indent)
{
    g_string_append_printf(text,
                           "%s\"$kilter\" merge \"$results\" \"$parts\"/part-*.db\n"
                           "%sexec \"$kilter\" sweep %s --db \"$results\" --status "
                           "--plan-shards %u\n",
                           indent, indent, s->experiment, s->shards);
}

/* A scheduler with job arrays. One file has three uses: as a job it is the array or, later, the job that
 * merges; for `sh` it submits both. */
typedef struct {
    const char *name;
    const char *directive; /* "#SBATCH " */
    const char *job, *array,
        *fixed; /* directives: name and parts, and lines without a value */
    const char *processors, *memory, *time, *queue; /* directives with a value */
    const char *index;          /* the variable with the number of the part */
    const char *enter;          /* shell: goes to the folder of the submission */
    const char *submit, *merge; /* shell: prints the array's id; the job after it */
} Scheduler;

static const Scheduler SLURM = {
    .name = "Slurm",
    .directive = "#SBATCH ",
    .job = "--job-name=kilter-%s",
    .array = "--array=%s",
    .fixed = "#SBATCH --requeue\n#SBATCH --open-mode=append\n",
    .processors = "--cpus-per-task=%s",
    .memory = "--mem=%s",
    .time = "--time=%s",
    .queue = "--partition=%s",
    .index = "SLURM_ARRAY_TASK_ID",
    .enter = "",
    .submit = "sbatch --parsable --output=\"$parts/%a.log\" \"$0\"",
    .merge = "sbatch --dependency=afterany:\"${job%%;*}\" "
             "--output=\"$parts/merge.log\" \"$parts/merge.sh\"",
};
static const Scheduler PBS = {
    .name = "PBS",
    .directive = "#PBS ",
    .job = "-N kilter-%s",
    .array = "-J %s",
    .fixed = "#PBS -r y\n#PBS -j oe\n#PBS -V\n",
    .processors = "-l ncpus=%s",
    .memory = "-l mem=%s",
    .time = "-l walltime=%s",
    .queue = "-q %s",
    .index = "PBS_ARRAY_INDEX",
    .enter = "cd \"$PBS_O_WORKDIR\" && ",
    .submit = "qsub -o \"$parts/\" \"$0\"",
    .merge = "qsub -W depend=afterany:\"$job\" -j oe -o \"$parts/merge.log\" "
             "\"$parts/merge.sh\"",
};

/* Adds a directive with a value; without one nothing. */
static void add_directive(GString *text, const Scheduler *scheduler, const char *form,
                          const char *value)
{
    g_auto(GStrv) part = g_strsplit(form, "%s", 2);
    if (value)
        g_string_append_printf(text, "%s%s%s%s\n", scheduler->directive, part[0], value,
                               part[1]);
}

/* A part whose process is killed is evaluated again, three times in all. */
static void add_array(GString *text, const SweepScript *s, const Scheduler *scheduler)
{
    enum { BAD_INPUT = 2 };
    g_autofree char *range =
        g_strdup_printf("0-%u%%%u", s->shards - 1, MIN((uint32_t)AT_ONCE, s->shards));
    g_string_append(text, "#!/bin/sh\n");
    add_directive(text, scheduler, scheduler->job, s->name);
    add_directive(text, scheduler, scheduler->array, range);
    g_string_append(text, scheduler->fixed);
    add_directive(text, scheduler, scheduler->processors, s->processors);
    add_directive(text, scheduler, scheduler->memory, s->memory);
    add_directive(text, scheduler, scheduler->time, s->time);
    add_directive(text, scheduler, scheduler->queue, s->queue);
    g_autofree char *how =
        g_strconcat(scheduler->name,
                    ": run it by sh, in a folder that all nodes see; run it again to "
                    "evaluate what is missing",
                    NULL);
    sweep_script_add_head(text, s, how);
    g_string_append_printf(
        text,
        "if [ -n \"${%s:-}\" ]; then\n"
        "    %smkdir -p \"$parts\"\n"
        "    part=$%s\n"
        "    for try in 1 2 3; do\n"
        "        status=0\n"
        "        \"$kilter\" sweep %s %s--shard \"$part/%u\" \\\n"
        "            --db \"$parts/part-$part.db\" || status=$?\n"
        "        [ $status -ne 0 ] && [ $status -ne %d ] || exit $status\n"
        "    done\n"
        "    exit $status\n"
        "fi\n"
        "if [ -n \"${KILTER_MERGE:-}\" ]; then\n"
        "    mkdir -p \"$folder\"\n",
        scheduler->index, scheduler->enter, scheduler->index, s->experiment, s->threads,
        s->shards, BAD_INPUT);
    add_tail(text, s, "    ");
    g_string_append_printf(text,
                           "fi\n"
                           "mkdir -p \"$parts\"\n"
                           "job=$(%s)\n"
                           "cat > \"$parts/merge.sh\" <<END\n"
                           "#!/bin/sh\n"
                           "cd '$PWD'\n"
                           "KILTER_MERGE=1 exec sh '$0'\n"
                           "END\n"
                           "%s\n",
                           scheduler->submit, scheduler->merge);
}

static void add_slurm(GString *text, const SweepScript *s)
{
    add_array(text, s, &SLURM);
}

static void add_pbs(GString *text, const SweepScript *s)
{
    add_array(text, s, &PBS);
}

/* An indexed job, whose pods are tried again. */
static void add_k8s(GString *text, const SweepScript *s)
{
    enum { TRIES = 3 };
    g_autoptr(GString) name = g_string_new(NULL);
    for (const char *c = s->name; *c; c++) /* a label of DNS */
        g_string_append_c(name, g_ascii_isalnum(*c) ? g_ascii_tolower(*c) : '-');
    g_string_append_printf(
        text,
        "# The sweep %s in %u parts by Kubernetes: kubectl apply -f this file. The image "
        "has kilter on "
        "its path; the\n"
        "# claim `kilter` is a volume that all pods write, with the experiment's files. "
        "Afterwards, on this volume:\n"
        "#   kilter merge results.db %s.parts/part-*.db\n"
        "#   kilter sweep --status results.db %s\n"
        "apiVersion: batch/v1\n"
        "kind: Job\n"
        "metadata:\n"
        "  name: kilter-%s\n"
        "spec:\n"
        "  completionMode: Indexed\n"
        "  completions: %u\n"
        "  parallelism: %u\n"
        "  backoffLimit: %u\n",
        s->name, s->shards, s->name, s->experiment, name->str, s->shards,
        MIN((uint32_t)AT_ONCE, s->shards), TRIES * s->shards);
    if (s->time)
        g_string_append_printf(text, "  activeDeadlineSeconds: %s\n", s->time);
    g_string_append(text, "  template:\n    spec:\n      restartPolicy: OnFailure\n");
    if (s->queue)
        g_string_append_printf(text, "      nodeSelector: {pool: \"%s\"}\n", s->queue);
    g_string_append_printf(
        text,
        "      containers:\n"
        "        - name: kilter\n"
        "          image: kilter\n"
        "          workingDir: /work\n"
        "          command: [sh, -c]\n"
        "          args:\n"
        "            - >-\n"
        "              mkdir -p %s.parts && exec kilter sweep %s %s--plan-shards %u\n"
        "              --db %s.parts/part-$JOB_COMPLETION_INDEX.db\n",
        s->name, s->experiment, s->threads, s->shards, s->name);
    if (s->processors || s->memory)
        g_string_append_printf(
            text, "          resources:\n            requests: {%s%s%s%s%s}\n",
            s->processors ? "cpu: " : "", s->processors ? s->processors : "",
            s->processors && s->memory ? ", " : "", s->memory ? "memory: " : "",
            s->memory ? s->memory : "");
    g_string_append(text, "          volumeMounts: [{name: work, mountPath: /work}]\n"
                          "      volumes:\n"
                          "        - name: work\n"
                          "          persistentVolumeClaim: {claimName: kilter}\n");
}

static void add_parallel(GString *text, const SweepScript *s)
{
    g_string_append(text, "#!/bin/sh\n");
    sweep_script_add_head(text, s,
                          "GNU parallel; run it again to evaluate missing parts");
    g_string_append_printf(
        text,
        "mkdir -p \"$parts\" \"$folder\"\n"
        "seq 0 %u | parallel -q --joblog \"$parts/joblog\" --resume-failed --retries 3 "
        "\\\n"
        "    \"$kilter\" sweep %s %s--shard {}/%u --db \"$parts/part-{}.db\" -q || "
        "true\n",
        s->shards - 1, s->experiment, *s->threads ? s->threads : "-j 1 ", s->shards);
    add_tail(text, s, "");
}

char *sweep_script(const char *kind, const SweepScript *script, GError **error)
{
    static const struct {
        const char *name;
        void (*add)(GString *text, const SweepScript *script);
    } KIND[] = {{"slurm", add_slurm},
                {"pbs", add_pbs},
                {"k8s", add_k8s},
                {"parallel", add_parallel}};
    g_autofree const char **known = NAMES_OF(KIND, name);
    const char *const asked[] = {script->processors, script->memory, script->time,
                                 script->queue};
    uint32_t index;
    if (!names_find("script", kind, known, &index, error))
        return NULL;
    for (uint32_t i = 0; i < G_N_ELEMENTS(asked); i++)
        if (asked[i] &&
            (!*asked[i] || strpbrk(asked[i], " \t\r\n\"'\\#{}$`;&|<>()*?~"))) {
            kilter_fail(error, KILTER_ERROR_INPUT,
                        "--cpus-per-task, --mem, --time, --partition: expected a word of "
                        "the scheduler, got '%s'",
                        asked[i]);
            return NULL;
        }
    GString *text = g_string_new(NULL);
    KIND[index].add(text, script);
    return g_string_free(text, FALSE);
}
