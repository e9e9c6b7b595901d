/* Scripts for Slurm and GNU parallel: every part is a process with a database of its own. */
#include "experiments/cli/sweep_script.h"

#include "data/base/names.h"

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

/* Writes one file for three uses: for `sbatch` it is the job array or, later, the job that merges;
 * for `sh` it submits both. */
static void add_slurm(GString *text, const SweepScript *s)
{
    enum { AT_ONCE = 32 };
    g_string_append_printf(text,
                           "#!/bin/sh\n"
                           "#SBATCH --job-name=kilter-%s\n"
                           "#SBATCH --array=0-%u%%%d\n"
                           "#SBATCH --requeue\n"
                           "#SBATCH --open-mode=append\n",
                           s->name, s->shards - 1, MIN(AT_ONCE, (int)s->shards));
    sweep_script_add_head(text, s, "Slurm: run it by sh, in a folder that all nodes see");
    g_string_append_printf(
        text,
        "if [ -n \"${SLURM_ARRAY_TASK_ID:-}\" ]; then\n"
        "    mkdir -p \"$parts\"\n"
        "    exec \"$kilter\" sweep %s %s--shard \"$SLURM_ARRAY_TASK_ID/%u\" \\\n"
        "        --db \"$parts/part-$SLURM_ARRAY_TASK_ID.db\"\n"
        "fi\n"
        "if [ -n \"${KILTER_MERGE:-}\" ]; then\n"
        "    mkdir -p \"$folder\"\n",
        s->experiment, s->threads, s->shards);
    add_tail(text, s, "    ");
    g_string_append(
        text, "fi\n"
              "mkdir -p \"$parts\"\n"
              "job=$(sbatch --parsable --output=\"$parts/%a.log\" \"$0\")\n"
              "cat > \"$parts/merge.sh\" <<END\n"
              "#!/bin/sh\n"
              "KILTER_MERGE=1 exec sh '$0'\n"
              "END\n"
              "sbatch --dependency=afterany:\"${job%%;*}\" --output=\"$parts/merge.log\" "
              "\"$parts/merge.sh\"\n");
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
    static const char *const KINDS[] = {"slurm", "parallel", NULL};
    uint32_t index;
    if (!names_find("script", kind, KINDS, &index, error))
        return NULL;
    GString *text = g_string_new(NULL);
    (index == 0 ? add_slurm : add_parallel)(text, script);
    return g_string_free(text, FALSE);
}
