/* The property of tests/fuzz/fuzz_plan.c on random plans with random damage (fixed seeds): it
 * aborts where it is broken. Damage is by lines and by tokens, since most damaged bytes are just no
 * JSON. */
#include "data/data.h"
#include "tests/support/random_plan.h"
#include "tests/support/random_program.h"
#include "tests/test.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PLANS = 6, MUTANTS = 200, DAMAGES = 3 };

/* Instead of a number, or inside a string. */
static const char *const PIECE[] = {"0",       "1",       "2",     "-1",
                                    "0.5",     "1e-300",  "1e400", "4294967296",
                                    "65536",   "null",    "true",  "\"\"",
                                    "[]",      "{}",      "[[1]]", "18446744073709551615",
                                    "\\u0041", "\\u0000", "\xff",  "\xc3\xa9"};

static uint32_t below(GRand *rand, uint32_t n)
{
    return (uint32_t)g_rand_int_range(rand, 0, (gint32)n);
}

static char *random_plan_text(GRand *rand)
{
    g_autofree char *canonical = NULL;
    g_autoptr(Graph) graph = model_build(
        "vit:layers=1,hidden=4,heads=2,ffn=4,image=4,batch=4", 1, &canonical, NULL);
    g_autoptr(Cluster) cluster = random_cluster(rand, 3);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_MACHINE);
    g_autoptr(Plan) plan = random_plan(rand, graph, view, random_program(rand, graph));
    plan->model = g_steal_pointer(&canonical);
    plan->cluster = g_strdup("hap-8");
    plan->planner = g_strdup("hap");
    plan->version = g_strdup("0");
    plan->iteration_time_s = 2;
    plan->lower_bound_s = 1;
    plan->memory_bytes = g_new0(uint64_t, plan->n_devices);
    return plan_write(plan, graph);
}

/* Drops, doubles or swaps lines. */
static void damage_lines(GString *text, GRand *rand)
{
    g_auto(GStrv) line = g_strsplit(text->str, "\n", -1);
    uint32_t n = g_strv_length(line), a = below(rand, n), b = below(rand, n),
             how = below(rand, 3);
    g_string_truncate(text, 0);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t from = how == 2 && i == a ? b : how == 2 && i == b ? a : i;
        for (uint32_t times = i == a && how < 2 ? 2 * how : 1; times > 0; times--)
            g_string_append_printf(text, "%s\n", line[from]);
    }
}

/* A token is a string or a number. Returns its length, *at its place; 0 if there is none. */
static gsize random_token(const GString *text, GRand *rand, gsize *at)
{
    static const char outside[] = "[]{}:, \n";
    if (text->len == 0)
        return 0;
    *at = below(rand, (uint32_t)text->len);
    while (*at > 0 && !strchr(outside, text->str[*at - 1]))
        --*at;
    return strcspn(text->str + *at, outside);
}

/* Replaces a token by another of the file or by a piece. */
static void damage_token(GString *text, GRand *rand)
{
    gsize at = 0, from = 0, n = random_token(text, rand, &at);
    gsize n_from = random_token(text, rand, &from);
    g_autofree char *by = below(rand, 2)
                              ? g_strndup(text->str + from, n_from)
                              : g_strdup(PIECE[below(rand, G_N_ELEMENTS(PIECE))]);
    g_string_erase(text, (gssize)at, (gssize)n);
    g_string_insert(text, (gssize)at, by);
}

static void damage_byte(GString *text, GRand *rand)
{
    if (text->len > 0)
        text->str[below(rand, (uint32_t)text->len)] = (char)(1 + below(rand, 255));
}

static void test_mutated_plans(void **state)
{
    (void)state;
    void (*const damage[])(GString *, GRand *) = {damage_lines, damage_token,
                                                  damage_token, damage_byte};
    g_autoptr(GRand) rand = g_rand_new_with_seed(41);
    for (uint32_t i = 0; i < PLANS; i++) {
        g_autofree char *text = random_plan_text(rand);
        for (uint32_t m = 0; m < MUTANTS; m++) {
            g_autoptr(GString) mutant = g_string_new(text);
            for (uint32_t d = 1 + below(rand, DAMAGES); d > 0; d--)
                damage[below(rand, G_N_ELEMENTS(damage))](mutant, rand);
            LLVMFuzzerTestOneInput((const uint8_t *)mutant->str, mutant->len);
        }
    }
}

/* Undamaged, they pass as plans. */
static void test_plans(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(42);
    for (uint32_t i = 0; i < PLANS; i++) {
        g_autofree char *text = random_plan_text(rand);
        LLVMFuzzerTestOneInput((const uint8_t *)text, strlen(text));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans),
        cmocka_unit_test(test_mutated_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
