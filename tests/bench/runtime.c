/* How much longer searches take that count what a runtime holds: processor seconds of whole
 * commands with and without it, the middle of five pairs, in turn.
 *
 *     bench_runtime
 *
 * Exits with 1 if the searches together take more than 1.2 times as long. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <glib.h>

#define MOST_RATIO 1.2

enum { PAIRS = 5 };

static const struct {
    const char *planner, *model, *cluster, *runtime;
} CASE[] = {
    {"hap", "vgg19", "dgx-a100", "pytorch"},
    {"hap", "bert-moe", "dgx-a100", "pytorch"},
    {"amp", "gpt2:global_batch=64,precision=mixed", "dgx-a100", "megatron"},
    {"joint", "gpt2:layers=12,global_batch=32,precision=mixed", "dgx-a100", "megatron"},
    {"tag", "bert-base:layers=4", "dgx-a100", "pytorch"},
    {"auto", "gpt2:layers=4,global_batch=16,precision=mixed", "dgx-a100", "pytorch"},
    {"manual", "llama:layers=16,global_batch=64,precision=bf16", "dgx-a100", "fsdp"},
};

static double seconds_of(uint32_t i, const char *runtime)
{
    g_autofree char *line = g_strdup_printf(
        "%s plan %s %s --planner %s --set runtime=%s%s -q", g_getenv("KILTER_BIN"),
        CASE[i].model, CASE[i].cluster, CASE[i].planner, runtime,
        g_str_equal(CASE[i].planner, "manual") ? " --set zero=3 --set micro_batch=1"
                                               : "");
    g_auto(GStrv) argv = g_strsplit(line, " ", -1);
    struct rusage usage;
    int status = 0;
    fflush(stdout); /* the child would print it again */
    const pid_t child = fork();
    if (child == 0) {
        if (freopen("/dev/null", "w", stdout))
            execv(argv[0], argv);
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &usage) != child || !WIFEXITED(status) ||
        WEXITSTATUS(status) > 0)
        g_error("failed: %s", line);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(void)
{
    double all_plain = 0, all_held = 0;
    printf("planner   runtime        none      with     ratio\n");
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        double plain[PAIRS], held[PAIRS];
        for (uint32_t k = 0; k < PAIRS; k++) {
            plain[k] = seconds_of(i, "none");
            held[k] = seconds_of(i, CASE[i].runtime);
        }
        qsort(plain, PAIRS, sizeof *plain, compare_doubles);
        qsort(held, PAIRS, sizeof *held, compare_doubles);
        all_plain += plain[PAIRS / 2];
        all_held += held[PAIRS / 2];
        printf("%-8s  %-8s  %7.3f s %7.3f s  %8.2f\n", CASE[i].planner, CASE[i].runtime,
               plain[PAIRS / 2], held[PAIRS / 2], held[PAIRS / 2] / plain[PAIRS / 2]);
    }
    printf("together            %7.3f s %7.3f s  %8.2f\n", all_plain, all_held,
           all_held / all_plain);
    return all_held > MOST_RATIO * all_plain;
}
