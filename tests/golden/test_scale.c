/* Strategies on clusters as large as those used for training: at most 2 s of one core and 1 GB; and
 * a search with all techniques on 48 GPUs of two kinds, for long programs: 15 s and 500 MB. */
#include <sys/resource.h>

#include "tests/support/program.h"

static const char *const CASE[][4] = {
    {"DeepSeek-R1.json:global_batch=1024,seq=4096,precision=bf16", "256",
     "tp: 16\npp: 8\ndp: 16\nzero: 1\nrecompute: full\n",
     "8 pipeline stages, 16 replicas"},
    /* DeepSeek-V3's own degrees, and what its report says is computed again */
    {"DeepSeek-R1.json:global_batch=1024,seq=4096,precision=bf16", "128",
     "tp: 2\npp: 16\nep: 64\netp: 1\nzero: 1\nrecompute: layernorm+mla_up_proj\n",
     "16 pipeline stages, 32 replicas, 2-way"},
    {"Meta-Llama-3.1-405B.json:global_batch=512,seq=8192,precision=bf16", "128",
     "tp: 8\npp: 16\ndp: 8\nrecompute: full\n", "16 pipeline stages, 8 replicas"},
};
#define MOST_S     2.0
#define MOST_BYTES 1e9

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + 1e-6 * (double)time.tv_usec;
}

/* The processor time of all children so far; bytes: the most memory of one of them. */
static double children(double *bytes)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_CHILDREN, &usage), 0);
    *bytes = 1024.0 * (double)usage.ru_maxrss;
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/* Runs the command, which says so, in at most so many seconds and bytes. */
static void run(const Sandbox *box, const char *line, const char *says, double most_s,
                double most_bytes)
{
    double bytes;
    const double before = children(&bytes);
    g_auto(Ran) ran = program_run_good(box, line);
    const double took = children(&bytes) - before;
    print_message("%s: %.2f s, %.0f MB\n", line, took, bytes / 1e6);
    assert_non_null(strstr(ran.out, says));
    assert_at_most(took, most_s);
    assert_at_most(bytes, most_bytes);
}

static void plan(const char *const *given)
{
    const char *models = test_shared("samples/hf_config");
    if (!models)
        skip();
    g_autofree char *folder = g_canonicalize_filename(models, NULL);
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *cluster =
        g_strdup_printf("machines: [{device: h100-sxm, gpus: 8, count: %s, inner: "
                        "nvlink4, nic: ib-ndr, nics: 8}]\n",
                        given[1]);
    g_autofree char *strategy =
        g_strconcat(given[2], "micro_batch: 1\nsequence_parallel: on\n", NULL);
    sandbox_write(box, "h100.yaml", cluster);
    sandbox_write(box, "run.yaml", strategy);
    g_autofree char *line = g_strdup_printf(
        "plan %s/%s h100.yaml --planner manual --strategy run.yaml", folder, given[0]);
    run(box, line, given[3], MOST_S, MOST_BYTES);
}

static void test_deepseek_on_2048(void **state)
{
    (void)state;
    plan(CASE[0]);
}

static void test_deepseek_with_folded_experts(void **state)
{
    (void)state;
    plan(CASE[1]);
}

static void test_llama_on_1024(void **state)
{
    (void)state;
    plan(CASE[2]);
}

static void test_search_on_48_mixed(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    run(box, "plan llama-3.1-70b:seq=8192,global_batch=512 4x8xh100-sxm@8xib-ndr+2x8xh20",
        "iteration", 15, 500e6); /* 8 to 10 s where nothing else runs */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_search_on_48_mixed), /* first: the most memory so far counts */
        cmocka_unit_test(test_deepseek_on_2048),
        cmocka_unit_test(test_deepseek_with_folded_experts),
        cmocka_unit_test(test_llama_on_1024),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
