/* Experiment files with random damage (fixed seed): each is read whole, or refused in one line that names the file. */
#include "data/base/error.h"
#include "experiments/sweep/experiment.h"
#include "tests/support/program.h"

enum { MUTANTS = 3000, DAMAGES = 3 };

static const char *const WHOLE[] = {
    "name: m\n"
    "description: all that a grid may have\n"
    "grid:\n"
    "  model: ['vit:batch=4,layers=1', \"vgg19:batch=4\"]\n"
    "  model.hidden: [48, 96]\n"
    "  cluster: [hap-8, 'star:hosts=2']\n"
    "  cluster.only: [none, v100]\n"
    "  cluster.scale.network: [1, 2]\n"
    "  planner: [dp-ev, 'hap:ratios=even']\n"
    "  planner.bucket: ['0', 25 MiB]\n"
    "  simulation.jitter: [0, 0.1]\n"
    "  granularity: [machine, gpu]\n"
    "  fidelity: [stage, flow]\n"
    "  seed: [0, 1]\n"
    "exclude:\n"
    "  - {model: vgg*, model.hidden: '96'}\n"
    "  - {cluster: star*, cluster.only: v?00, seed: '1'}\n"
    "set: [max_rounds=3]\n",
    "name: e\n"
    "exchange:\n"
    "  kind: [all_gather, grouped_all_gather]\n"
    "  bytes: [4 MB]\n"
    "  share: [0.25, 0.5]\n"
    "  cluster: [hap-8]\n"
    "  granularity: [gpu]\n"};

static const char *const PIECE[] = {"\n",
                                    " ",
                                    "  ",
                                    ":",
                                    ": ",
                                    "- ",
                                    "[",
                                    "]",
                                    "{",
                                    "}",
                                    ",",
                                    "*",
                                    "?",
                                    "&a ",
                                    "*a",
                                    "'",
                                    "\"",
                                    "\t",
                                    "model.",
                                    "cluster.",
                                    "planner.",
                                    "simulation.",
                                    "model.layers: [1]",
                                    "  ",
                                    "exclude",
                                    "0",
                                    "-1",
                                    "1e400",
                                    "999999999999",
                                    "\xff",
                                    "\xc3\xa9"};

/* Cuts up to 3 bytes at a random place, and puts a piece there, or bytes from elsewhere. */
static void damage(GString *text, GRand *rand)
{
    const gsize at = (gsize)g_rand_int_range(rand, 0, (gint32)text->len + 1);
    const gsize most = MIN(text->len - at, 3);
    g_string_erase(text, (gssize)at,
                   most ? g_rand_int_range(rand, 0, (gint32)most + 1) : 0);
    const gint32 how = g_rand_int_range(rand, 0, 3);
    if (how == 0) {
        g_string_insert(text, (gssize)at,
                        PIECE[g_rand_int_range(rand, 0, G_N_ELEMENTS(PIECE))]);
    } else if (how == 1 && text->len > 20) {
        const gint32 from = g_rand_int_range(rand, 0, (gint32)text->len - 20);
        g_autofree char *copy = g_strndup(text->str + from, 20);
        g_string_insert(text, (gssize)at, copy);
    }
}

/* Whether it could be read. */
static bool load(const char *path)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Experiment) experiment = experiment_load(path, NULL, &error);
    if (experiment) {
        assert_null(error);
        assert_true(experiment_count(experiment) > 0);
        return true;
    }
    assert_non_null(error);
    if (error->code != KILTER_ERROR_INPUT || strchr(error->message, '\n'))
        TEST_FAIL_AT(__FILE__, __LINE__, "status %d: %s", error->code, error->message);
    return false;
}

static void test_damaged_files(void **state)
{
    (void)state;
    g_autoptr(Sandbox) box = sandbox_new();
    g_autofree char *path = g_build_filename(box->folder, "x.yaml", NULL);
    g_autoptr(GRand) rand = g_rand_new_with_seed(19);
    uint32_t good = 0;
    for (uint32_t i = 0; i < G_N_ELEMENTS(WHOLE); i++) {
        sandbox_write(box, "x.yaml", WHOLE[i]);
        assert_true(load(path));
    }
    for (uint32_t i = 0; i < MUTANTS; i++) {
        g_autoptr(GString) text = g_string_new(WHOLE[i % 4 == 3]);
        for (uint32_t k = 0; k < 1 + i % DAMAGES; k++)
            damage(text, rand);
        FILE *file = fopen(path, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(text->str, 1, text->len, file), text->len);
        assert_int_equal(fclose(file), 0);
        good += load(path);
    }
    print_message("%u of %d can be read\n", good, MUTANTS);
    /* Neither all refused nor none: the damage is small. */
    assert_true(good > MUTANTS / 100 && good < MUTANTS / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_damaged_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
