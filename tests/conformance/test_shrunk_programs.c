/* Why a proof on a small model holds for the plan's own sizes: what is run there are the same
 * instructions on the same tensors; the checker's verdict on a program, right or changed, is the
 * same at both sizes; and two graphs that differ in more than extents are told apart. Nearly all
 * strategies give the small model the same program, too, when they plan it anew. */
#include "data/models/model.h"
#include "exec/exec.h"
#include "exec/shrink.h"
#include "tests/support/made_plan.h"
#include "tests/support/random_strategy.h"
#include "tests/support/rounds.h"

#define CLUSTER "star:hosts=8,bandwidth=1Gb/s,latency=5us"
enum { CHANGES = 12, SAMPLES = 24 };

/* A model of random sizes, of 4 layers and 24 samples, for random_strategy(). Caller frees. */
static char *random_model(GRand *rand)
{
    static const char *const family[] = {"gpt2", "bert-base", "llama", "mixtral",
                                         "bert-moe"};
    const uint32_t of = pick(rand, G_N_ELEMENTS(family)), heads = 4 << pick(rand, 3);
    GString *spec = g_string_new(family[of]);
    g_string_append_printf(spec, ":layers=4,heads=%u,hidden=%u,ffn=%u,seq=%u,vocab=%u",
                           heads, heads * 8 * (1 + pick(rand, 8)),
                           heads * (4 + pick(rand, 100)), 16 * (1 + pick(rand, 32)),
                           heads * (8 + pick(rand, 400)));
    g_string_append_printf(spec, ",global_batch=%u", SAMPLES * (1 + pick(rand, 4)));
    if (of == 2 || of == 3)
        g_string_append_printf(spec, ",kv_heads=%u", heads / 2);
    if (of >= 3)
        g_string_append_printf(spec, ",experts=%u", 4 << pick(rand, 2));
    return g_string_free(spec, FALSE);
}

/* Whether both programs are the same instructions, by the names of what they work on. */
static bool are_same(const Plan *a, const Graph *graph, const Plan *b, const Graph *small)
{
    bool same = a->program->n == b->program->n;
    for (uint32_t i = 0; same && i < a->program->n; i++) {
        g_autofree char *x = instr_text(&a->program->instr[i], graph),
                        *y = instr_text(&b->program->instr[i], small);
        same = strcmp(x, y) == 0;
    }
    return same;
}

/* Drops, doubles or swaps instructions, or gives one another form or microbatch. */
static void change(GRand *rand, Program *program)
{
    Instr *one = &program->instr[pick(rand, program->n)],
          *other = &program->instr[pick(rand, program->n)], was = *one;
    switch (pick(rand, 5)) {
    case 0:
        memmove(one, one + 1,
                (size_t)(program->instr + program->n - one - 1) * sizeof *one);
        program->n--;
        break;
    case 1:
        *one = *other;
        break;
    case 2:
        *one = *other;
        *other = was;
        break;
    case 3:
        *(one->kind == INSTR_COMPUTE ? &one->form[pick(rand, 3)] : &one->to) =
            (Form)pick(rand, FORM_MAX);
        break;
    default:
        one->microbatch = (uint16_t)(pick(rand, 3) ? pick(rand, program->n_microbatches)
                                                   : PROGRAM_WHOLE);
    }
}

/* Counts of cases, of those planned anew at the small size and there given the same program, and of
 * changed programs that both sizes accept or refuse. */
typedef struct {
    uint32_t planned, again, same, accepted, refused;
} Tally;

/* One verdict at both sizes, and that of the proof. */
static void check_changes(GRand *rand, Plan *plan, const Graph *graph, const Graph *small,
                          Tally *tally)
{
    Program *right = plan->program;
    for (uint32_t i = 0; i < CHANGES; i++) {
        plan->program = program_copy(right);
        change(rand, plan->program);
        const bool own = program_check(plan->program, graph, NULL),
                   shrunk = program_check(plan->program, small, NULL);
        g_autoptr(Graph) unused = NULL;
        g_autoptr(Plan) proved = exec_shrink_plan(plan, graph, NULL, &unused, NULL);
        program_free(plan->program);
        plan->program = right;
        assert_int_equal(own, shrunk);
        assert_int_equal(own, proved != NULL);
        tally->accepted += own;
        tally->refused += !own;
    }
}

static void check_case(GRand *rand, Tally *tally)
{
    g_autofree char *model = random_model(rand),
                    *set = random_strategy(rand, true, strstr(model, "experts") != NULL),
                    *what = g_strdup_printf("%s with %s", model, set);
    g_autoptr(GError) error = NULL;
    g_auto(Made) own = make("manual", model, CLUSTER, set, &error);
    if (!own.plan) /* refused with a reason: test_strategies.c */
        return;
    tally->planned++;
    g_autoptr(Graph) small = NULL;
    g_autoptr(Plan) shrunk = exec_shrink_plan(own.plan, own.graph, NULL, &small, &error);
    if (!shrunk)
        fail_msg("%s: %s", what, error->message);
    assert_true(are_same(own.plan, own.graph, shrunk, small));
    g_auto(Made) again = make("manual", shrunk->model, CLUSTER, set, NULL);
    tally->again += again.plan != NULL;
    tally->same += again.plan && are_same(own.plan, own.graph, again.plan, again.graph);
    check_changes(rand, own.plan, own.graph, small, tally);
}

static void test_sizes_change_no_program(void **state)
{
    (void)state;
    const uint32_t n = test_rounds(60, 2000);
    GRand *rand = g_rand_new_with_seed(13);
    Tally tally = {0};
    for (uint32_t i = 0; i < n; i++)
        check_case(rand, &tally);
    g_rand_free(rand);
    print_message(
        "%u plans, %u planned anew at the small size, %u of them to the same program; of "
        "changed programs both sizes accept %u and refuse %u\n",
        tally.planned, tally.again, tally.same, tally.accepted, tally.refused);
    assert_true(tally.planned > n / 2 && tally.same > n / 4);
    assert_true(tally.accepted > n && tally.refused > n);
}

/* The bytes of a graph's op or tensor that its structure does not have, each changed alone. */
static void test_other_meanings_differ(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph)
        a = model_build("gpt2:layers=1", 1, NULL, &error),
        b = model_build("gpt2:layers=1,hidden=48,heads=4,seq=8", 1, NULL, &error);
    assert_no_error(error);
    assert_true(exec_same_structure(a, b, &error));
    assert_no_error(error);
    Op *op = (Op *)(uintptr_t)graph_get_op(b, 1);
    Tensor *tensor = (Tensor *)(uintptr_t)graph_tensor(b, 1);
    bool *const flag[] = {&op->attr.causal, &op->attr.alibi, &op->attr.sigmoid,
                          &op->attr.normalised, &tensor->frozen};
    uint32_t *const number[] = {&op->attr.window, &op->attr.span,    &op->attr.top_groups,
                                &op->of,          &op->layer,        &op->in[0],
                                &tensor->rank,    &tensor->producer, &tensor->of};
    for (uint32_t i = 0; i < G_N_ELEMENTS(flag); i++) {
        *flag[i] = !*flag[i];
        assert_false(exec_same_structure(a, b, NULL));
        *flag[i] = !*flag[i];
    }
    for (uint32_t i = 0; i < G_N_ELEMENTS(number); i++) {
        *number[i] += 1;
        assert_false(exec_same_structure(a, b, NULL));
        *number[i] -= 1;
    }
    tensor->role = tensor->role == ROLE_INPUT ? ROLE_PARAMETER : ROLE_INPUT;
    assert_false(exec_same_structure(a, b, &error));
    assert_error(error, KILTER_ERROR_INPUT, "tensor ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_change_no_program),
        cmocka_unit_test(test_other_meanings_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
