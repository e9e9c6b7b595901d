/* The properties of tests/fuzz/fuzz_measurement.c and fuzz_csv.c (one executable each) on files
 * with random damage (fixed seeds): they abort where they are broken. */
#include "tests/support/damage.h"
#include "tests/test.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MUTANTS = 6000, DAMAGES = 4 };

static const char *const WHOLE[] = {
    "pp: 2\ndp: 2\ntp: 2\nschedule: 1f1b\nmicro_batch: 1\nlayers: [2, 2]\n"
    "ranks: [[0, 1, 2, 3], [4, 5, 6, 7]]\nshares: [1, 3]\nrecompute: full@1-3 "
    "selective@4\n"
    "sequence_parallel: [on, off]\n",
    "schedule: interleaved\nvirtual_stages: 2\npp: 2\nmicrobatches: 4\nzero: 1\n"
    "zero_ranks: 2\ncuts: 1 2 3\nrecompute: full\n",
    "# a\ndevice,kind,shape,ranks,share,flops,bytes,repeats,median_s,low_s,high_s\n"
    "cpu,linear,4x8;8x8,2,0.75,1e6,4096,10,1e-3,9e-4,1.1e-3\n"
    "cpu,all_reduce,,4,0.25,0,1024,1,1e-5,1e-5,1e-5\n"
    "\"a, \"\"b\"\"\",all_reduce,\" \",4,0.25,0,1024,1,1e-5,1e-5,1e-5\n",
    "# Collective test starting: all_gather_perf\n# Using devices\n"
    "#  Rank  0 Group  0 Pid 1 on host device  0 [0000:04:00] H100\n"
    "#  Rank  1 Group  0 Pid 1 on host device  1 [0000:05:00] H100\n"
    "#  size  count  type  redop  root  time  algbw  busbw  #wrong  time  algbw\n"
    "   1024    256 float    sum    -1 20.00   0.05   0.05       0 20.00   0.05\n"
    "   2048    512 float    sum    -1 21.00   0.05   0.05       0 20.00   0.05\n",
    "{\"args\": [\"all_reduce_perf\"], \"config\": {\"nthreads\": 1, \"ngpus\": 2, "
    "\"devices\": [{\"device_info\": \"H100\"}]}, \"results\": [{\"size\": 4096, "
    "\"out_of_place\": {\"time\": 12.5}}]}",
};

static const char *const PIECE[] = {",",
                                    "\n",
                                    "-",
                                    "1e400",
                                    "nan",
                                    "0",
                                    "inf",
                                    "#",
                                    "{",
                                    "}",
                                    "[",
                                    "\"",
                                    "\"\"",
                                    "\r",
                                    " ",
                                    "\\u0",
                                    ":",
                                    "all_gather",
                                    "alltoall_perf",
                                    "time",
                                    "\t",
                                    "99999999999999999999",
                                    "algbw",
                                    "busbw",
                                    " Rank ",
                                    " device ",
                                    "]",
                                    "median_s"};

static void test_mutants(void **state)
{
    (void)state;
    GRand *rand = g_rand_new_with_seed(11);
    for (uint32_t i = 0; i < MUTANTS; i++) {
        g_autoptr(GString) text = g_string_new(WHOLE[i % G_N_ELEMENTS(WHOLE)]);
        for (gint32 d = g_rand_int_range(rand, 0, DAMAGES + 1); d > 0; d--)
            damage_text(text, rand, PIECE, G_N_ELEMENTS(PIECE));
        LLVMFuzzerTestOneInput((const uint8_t *)text->str, text->len);
    }
    g_rand_free(rand);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mutants)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
