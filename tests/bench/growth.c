/* How the time and the memory of planning and simulating grow with ranks, layers and microbatches:
 * a strategy by hand on H100 in a three-level fat tree, by the whole commands. Prints seconds of
 * processor time and the most memory of each, and the exponents of the least squares line through
 * their logarithms.
 *
 *     bench_growth [FILE.csv]        also writes the table, which plots/growth.gp draws
 *
 * Exits with 1 if an exponent is larger than 1.1. */
#include <glib/gstdio.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <glib.h>

#define MOST_EXPONENT 1.1

typedef struct {
    double seconds, bytes;
} Use;

/* Runs a command line of the program in a folder; `line` without quotes. */
static Use run(const char *folder, const char *line)
{
    g_autofree char *whole = g_strdup_printf("%s %s -q", g_getenv("KILTER_BIN"), line);
    g_auto(GStrv) argv = g_strsplit(whole, " ", -1);
    struct rusage usage;
    int status = 0;
    fflush(NULL); /* the child has copies of what is not written yet */
    const pid_t child = fork();
    if (child == 0) {
        if (chdir(folder) == 0 && freopen("/dev/null", "w", stdout))
            execv(argv[0], argv);
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &usage) != child || status != 0)
        g_error("failed: %s", whole);
    return (Use){(double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                     1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec),
                 1024.0 * (double)usage.ru_maxrss};
}

/* The exponent of y in x, of `n` points. */
static double exponent(const double *x, const double *y, uint32_t n)
{
    double sx = 0, sy = 0, sxx = 0, sxy = 0;
    for (uint32_t i = 0; i < n; i++) {
        sx += log(x[i]);
        sy += log(y[i]);
        sxx += log(x[i]) * log(x[i]);
        sxy += log(x[i]) * log(y[i]);
    }
    return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

typedef struct {
    const char *name;
    uint32_t from, n;                        /* n values, each twice the one before */
    uint32_t replicas, layers, microbatches; /* 0: the one that grows */
} Series;

/* Plans and simulates on replicas of 16 stages of 8 GPUs. */
static void measure(const char *folder, const Series *s, uint32_t value, Use *use)
{
    const uint32_t dp = s->replicas ? s->replicas : value / 128,
                   layers = s->layers ? s->layers : value,
                   microbatches = s->microbatches ? s->microbatches : value;
    g_autofree char *file = g_build_filename(folder, "fat-tree.yaml", NULL);
    g_autofree char *cluster = g_strdup_printf(
        "machines: [{device: h100-sxm, gpus: 8, count: %u, inner: nvlink4, nic: ib-ndr, "
        "nics: 8}]\n"
        "topology:\n  builder: tree:leaf=32,spines=16,pod=16,oversubscription=2,"
        "bandwidth=400Gb/s,latency=5us\n  source: made up\n",
        16 * dp);
    g_autofree char *plan = g_strdup_printf(
        "plan "
        "llama:layers=%u,hidden=4096,heads=32,kv_heads=8,ffn=14336,vocab=32000,seq=4096,"
        "global_batch=%u,precision=bf16 fat-tree.yaml --planner manual --set pp=16 --set "
        "tp=8 "
        "--set dp=%u --set micro_batch=1 --set recompute=full -o plan.json",
        layers, dp * microbatches, dp);
    if (!g_file_set_contents(file, cluster, -1, NULL))
        g_error("%s cannot be written", file);
    use[0] = run(folder, plan);
    use[1] = run(folder, "simulate plan.json -f flow");
}

/* Returns whether no exponent is too large. */
static gboolean grow(const char *folder, const Series *s, FILE *csv)
{
    enum { COMMANDS = 2, MOST = 16 };
    static const char *const name[COMMANDS] = {"plan", "simulate"};
    double x[MOST], seconds[COMMANDS][MOST], bytes[COMMANDS][MOST];
    gboolean good = TRUE;
    g_assert(s->n <= MOST);
    for (uint32_t i = 0; i < s->n; i++) {
        Use use[COMMANDS];
        x[i] = (double)s->from * (1u << i);
        measure(folder, s, s->from << i, use);
        for (uint32_t c = 0; c < COMMANDS; c++) {
            seconds[c][i] = use[c].seconds;
            bytes[c][i] = use[c].bytes;
            if (csv)
                fprintf(csv, "%s,%s,%.0f,%.3f,%.0f\n", s->name, name[c], x[i],
                        use[c].seconds, use[c].bytes);
        }
        printf("%-14s %7.0f   plan %6.2f s %5.0f MB   simulate %6.2f s %5.0f MB\n",
               s->name, x[i], use[0].seconds, use[0].bytes / 1e6, use[1].seconds,
               use[1].bytes / 1e6);
    }
    for (uint32_t c = 0; c < COMMANDS; c++) {
        const double time = exponent(x, seconds[c], s->n),
                     memory = exponent(x, bytes[c], s->n);
        printf("%-14s %s: exponents %.2f in time, %.2f in memory\n", s->name, name[c],
               time, memory);
        good &= time <= MOST_EXPONENT && memory <= MOST_EXPONENT;
    }
    return good;
}

int main(int argc, char **argv)
{
    static const Series SERIES[] = {{"ranks", 1024, 7, 0, 32, 16},
                                    {"layers", 16, 5, 8, 0, 16},
                                    {"microbatches", 16, 5, 8, 32, 0}};
    g_autofree char *folder = g_dir_make_tmp("kilter-growth-XXXXXX", NULL);
    FILE *csv = argc > 1 ? fopen(argv[1], "we") : NULL;
    gboolean good = TRUE;
    if (!folder || !g_getenv("KILTER_BIN") || (argc > 1 && !csv))
        g_error("expected KILTER_BIN, and a file that can be written");
    if (csv)
        fprintf(csv, "series,command,value,seconds,bytes\n");
    for (uint32_t i = 0; i < G_N_ELEMENTS(SERIES); i++)
        good &= grow(folder, &SERIES[i], csv);
    if (csv)
        fclose(csv);
    for (uint32_t i = 0; i < 2; i++) {
        static const char *const file[] = {"fat-tree.yaml", "plan.json"};
        g_autofree char *path = g_build_filename(folder, file[i], NULL);
        g_remove(path);
    }
    g_rmdir(folder);
    return good ? 0 : 1;
}
