/* Programs and their checker: right programs pass, and wrong ones do not. */
#include "data/data.h"
#include "tests/support/random_graph.h"
#include "tests/support/random_program.h"
#include "tests/test.h"

/* x -> linear -> relu -> linear -> log-softmax -> loss, trained by SGD. */
static Graph *mlp(void)
{
    Graph *graph = graph_new("mlp");
    TensorId x = graph_input(graph, "x", DTYPE_F32, 2, (uint32_t[]){8, 1});
    TensorId labels = graph_input(graph, "labels", DTYPE_I64, 1, (uint32_t[]){8});
    TensorId w1 = graph_parameter(graph, "w1", 2, (uint32_t[]){12, 1});
    TensorId w2 = graph_parameter(graph, "w2", 2, (uint32_t[]){10, 12});
    TensorId y =
        graph_op(graph, OP_LINEAR, "fc1", (OpAttr){0}, 2, (TensorId[]){x, w1}, NULL);
    y = graph_op(graph, OP_RELU, "relu", (OpAttr){0}, 1, &y, NULL);
    y = graph_op(graph, OP_LINEAR, "fc2", (OpAttr){0}, 2, (TensorId[]){y, w2}, NULL);
    y = graph_op(graph, OP_LOG_SOFTMAX, "log_p", (OpAttr){0}, 1, &y, NULL);
    y = graph_op(graph, OP_NLL_SUM, "loss", (OpAttr){0}, 2, (TensorId[]){y, labels},
                 NULL);
    graph_differentiate(graph, y, OPTIMIZER_SGD);
    graph_seal(graph);
    return graph;
}

/* --- programs as text: "load TENSOR FORM", "run OP FORM...", "COLLECTIVE TENSOR FROM TO" --- */

#define DATA_PARALLEL                              \
    "load x gather(0)\n"                           \
    "load labels gather(0)\n"                      \
    "load w1 identity\n"                           \
    "load w2 identity\n"                           \
    "load loss.grad identity\n"                    \
    "run fc1 gather(0) identity gather(0)\n"       \
    "run relu gather(0) gather(0)\n"               \
    "run fc2 gather(0) identity gather(0)\n"       \
    "run log_p gather(0) gather(0)\n"              \
    "run loss gather(0) gather(0) reduce\n"        \
    "run loss.dx identity gather(0) gather(0)\n"   \
    "run log_p.dx gather(0) gather(0) gather(0)\n" \
    "run fc2.dx gather(0) identity gather(0)\n"    \
    "run fc2.dw gather(0) gather(0) reduce\n"      \
    "run relu.dx gather(0) gather(0) gather(0)\n"  \
    "run fc1.dw gather(0) gather(0) reduce\n"      \
    "all_reduce w2.grad reduce identity\n"         \
    "all_reduce w1.grad reduce identity\n"         \
    "run w2.update identity identity identity\n"   \
    "run w1.update identity identity identity\n"

/* Megatron's MLP: the first weight by columns, the second by rows. */
#define TENSOR_PARALLEL                             \
    "load x identity\n"                             \
    "load labels identity\n"                        \
    "load w1 gather(0)\n"                           \
    "load w2 gather(1)\n"                           \
    "load loss.grad identity\n"                     \
    "run fc1 identity gather(0) gather(1)\n"        \
    "run relu gather(1) gather(1)\n"                \
    "run fc2 gather(1) gather(1) reduce\n"          \
    "all_reduce fc2 reduce identity\n"              \
    "run log_p identity identity\n"                 \
    "run loss identity identity identity\n"         \
    "run loss.dx identity identity identity\n"      \
    "run log_p.dx identity identity identity\n"     \
    "run fc2.dx identity gather(1) gather(1)\n"     \
    "run fc2.dw identity gather(1) gather(1)\n"     \
    "run relu.dx gather(1) gather(1) gather(1)\n"   \
    "run fc1.dw gather(1) identity gather(0)\n"     \
    "run w2.update gather(1) gather(1) gather(1)\n" \
    "run w1.update gather(0) gather(0) gather(0)\n"

/* ZeRO: parameters rest in shards, are gathered, and their gradients reduce-scattered. */
#define SHARDED_PARAMETERS                              \
    "load x gather(0)\n"                                \
    "load labels gather(0)\n"                           \
    "load w1 gather(0)\n"                               \
    "load w2 gather(1)\n"                               \
    "load loss.grad identity\n"                         \
    "grouped_all_gather w1 gather(0) identity\n"        \
    "all_gather w2 gather(1) identity\n"                \
    "run fc1 gather(0) identity gather(0)\n"            \
    "run relu gather(0) gather(0)\n"                    \
    "run fc2 gather(0) identity gather(0)\n"            \
    "run log_p gather(0) gather(0)\n"                   \
    "run loss gather(0) gather(0) reduce\n"             \
    "run loss.dx identity gather(0) gather(0)\n"        \
    "run log_p.dx gather(0) gather(0) gather(0)\n"      \
    "run fc2.dx gather(0) identity gather(0)\n"         \
    "run fc2.dw gather(0) gather(0) reduce\n"           \
    "run relu.dx gather(0) gather(0) gather(0)\n"       \
    "run fc1.dw gather(0) gather(0) reduce\n"           \
    "grouped_reduce_scatter w1.grad reduce gather(0)\n" \
    "reduce_scatter w2.grad reduce gather(0)\n"         \
    "all_to_all w2.grad gather(0) gather(1)\n"          \
    "run w2.update gather(1) gather(1) gather(1)\n"     \
    "run w1.update gather(0) gather(0) gather(0)\n"

static Form form_of(const char *text)
{
    Form form = FORM_MAX;
    if (!form_parse(text, &form))
        fail_msg("'%s' is no form", text);
    return form;
}

static OpId op_of(const Graph *graph, const char *name)
{
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        if (strcmp(graph_get_op(graph, id)->name, name) == 0)
            return id;
    fail_msg("no op '%s'", name);
    return GRAPH_NONE;
}

static void add_line(Program *program, const Graph *graph, char **word)
{
    uint32_t n = g_strv_length(word);
    if (strcmp(word[0], "run") == 0) {
        Form form[OP_MAX_OPERANDS];
        for (uint32_t i = 2; i < n; i++)
            form[i - 2] = form_of(word[i]);
        program_compute(program, op_of(graph, word[1]), form, n - 2);
        return;
    }
    TensorId tensor = graph_find(graph, word[1]);
    assert_int_not_equal(tensor, GRAPH_NONE);
    if (strcmp(word[0], "load") == 0)
        program_load(program, tensor, form_of(word[2]));
    else
        program_collective(program, collective_from_name(word[0]), tensor,
                           form_of(word[2]), form_of(word[3]));
}

static Program *parse(const Graph *graph, const char *text)
{
    Program *program = program_new();
    g_auto(GStrv) line = g_strsplit(text, "\n", -1);
    for (uint32_t i = 0; line[i]; i++) {
        g_auto(GStrv) word = g_strsplit(line[i], " ", -1);
        if (word[0])
            add_line(program, graph, word);
    }
    return program;
}

static const char *const PROGRAMS[] = {DATA_PARALLEL, TENSOR_PARALLEL,
                                       SHARDED_PARAMETERS};

/* --- right programs --- */

static void test_known_strategies_pass(void **state)
{
    (void)state;
    g_autoptr(Graph) graph = mlp();
    for (uint32_t i = 0; i < G_N_ELEMENTS(PROGRAMS); i++) {
        g_autoptr(Program) program = parse(graph, PROGRAMS[i]);
        GError *error = NULL;
        bool ok = program_check(program, graph, &error);
        assert_no_error(error);
        assert_true(ok);
    }
}

/* --- microbatches and replicas --- */

/* The program without instruction `skip`. */
static Program *without(const Program *program, uint32_t skip)
{
    Program *copy = program_copy(program);
    copy->n--;
    memmove(&copy->instr[skip], &copy->instr[skip + 1],
            (copy->n - skip) * sizeof *copy->instr);
    return copy;
}

/* The program of one replica on `n_replicas` of two devices each, the batch cut in microbatches;
 * sums are all-reduced right before the first update; each is read by one update. */
static Program *cut_batch(const Program *program, const Graph *graph, uint32_t n_replicas,
                          uint32_t n_microbatches)
{
    g_autoptr(BatchForms) batch = batch_forms_new(graph, NULL);
    assert_non_null(batch);
    Program *cut = program_new();
    cut->n_microbatches = n_microbatches;
    g_autofree uint32_t *device = g_new(uint32_t, 2 * n_replicas);
    for (uint32_t j = 0; j < 2 * n_replicas; j++)
        device[j] = 2 * n_replicas - 1 - j;
    program_add_group(cut, n_replicas, 2, device);
    for (uint32_t i = 0; i < program->n; i++) {
        Instr instr = program->instr[i];
        const bool computes = instr.kind == INSTR_COMPUTE;
        const bool parts = computes ? batch->loop[instr.op] >= 0
                                    : instr.kind != INSTR_LOAD &&
                                          form_is_gather(batch->form[instr.tensor]);
        const Op *op = computes ? graph_get_op(graph, instr.op) : NULL;
        if (computes && op->pass == PASS_UPDATE && n_replicas > 1)
            program_append(cut, (Instr){.kind = INSTR_COLLECTIVE,
                                        .microbatch = PROGRAM_WHOLE,
                                        .stream = 1,
                                        .across = true,
                                        .collective = COLLECTIVE_ALL_REDUCE,
                                        .tensor = op->in[1],
                                        .from = instr.form[1],
                                        .to = instr.form[1]});
        for (uint32_t m = 0; m < (parts ? n_microbatches : 1); m++) {
            instr.microbatch = parts ? (uint16_t)m : PROGRAM_WHOLE;
            program_append(cut, instr);
        }
    }
    return cut;
}

static void test_cut_batches_pass_and_their_deletions_do_not(void **state)
{
    (void)state;
    g_autoptr(Graph) graph = mlp();
    for (uint32_t i = 0; i < G_N_ELEMENTS(PROGRAMS); i++)
        for (uint32_t n_replicas = 1; n_replicas <= 3; n_replicas += 2)
            for (uint32_t n_microbatches = 1; n_microbatches <= 4; n_microbatches *= 2) {
                g_autoptr(Program) program = parse(graph, PROGRAMS[i]);
                g_autoptr(Program) cut =
                    cut_batch(program, graph, n_replicas, n_microbatches);
                GError *error = NULL;
                bool ok = program_check(cut, graph, &error);
                assert_no_error(error);
                assert_true(ok);
                for (uint32_t skip = 0; skip < cut->n; skip++) {
                    g_autoptr(Program) less = without(cut, skip);
                    if (program_check(less, graph, NULL))
                        fail_msg("program %u, %u replicas, %u microbatches: passes "
                                 "without instruction %u",
                                 i, n_replicas, n_microbatches, skip);
                }
            }
}

static void assert_cut_fails(Program *cut, const Graph *graph, const char *message)
{
    g_autoptr(GError) error = NULL;
    assert_false(program_check(cut, graph, &error));
    assert_error(error, KILTER_ERROR_FAILED, message);
}

static void test_wrong_cuts(void **state)
{
    (void)state;
    g_autoptr(Graph) graph = mlp();
    g_autoptr(Program) program = parse(graph, DATA_PARALLEL);
    g_autoptr(Program) cut = cut_batch(program, graph, 2, 2);
    assert_true(program_check(cut, graph, NULL));
    cut->n_microbatches = 3;
    assert_cut_fails(cut, graph, "8 pieces of the batch cannot be cut in 3 equal");
    cut->n_microbatches = 1;
    assert_cut_fails(cut, graph, "the program has 1 microbatch, got microbatch 1");
    cut->n_microbatches = 4;
    assert_cut_fails(cut, graph, "was not made before");
    cut->n_microbatches = 2;
    cut->group[0].device[0] = cut->group[0].device[1];
    assert_cut_fails(cut, graph, "group 0 has device 2 twice");
    cut->group[0].device[0] = 3;
    for (uint32_t i = 0; i < cut->n; i++) {
        const Instr kept = cut->instr[i];
        const bool parts = kept.microbatch != PROGRAM_WHOLE;
        cut->instr[i].microbatch = parts ? PROGRAM_WHOLE : 0;
        assert_cut_fails(cut, graph,
                         parts ? "expected a microbatch from 0 to 1"
                               : "expected the whole batch, got microbatch 0");
        cut->instr[i] = kept;
        if (!kept.across)
            continue;
        cut->instr[i].from = FORM_REDUCE;
        assert_cut_fails(cut, graph, "expected an all_reduce that keeps the form");
        cut->instr[i] = kept;
    }
}

/* An op may be recomputed, but must not add to a sum again. */
static void test_recomputation(void **state)
{
    (void)state;
    g_autoptr(Graph) graph = mlp();
    g_autoptr(Program) program = parse(graph, DATA_PARALLEL);
    g_autoptr(Program) cut = cut_batch(program, graph, 1, 2);
    for (uint32_t i = 0; i < cut->n; i++) {
        if (cut->instr[i].kind != INSTR_COMPUTE)
            continue;
        const OpId op = cut->instr[i].op;
        const bool sums = cut->instr[i].microbatch != PROGRAM_WHOLE &&
                          (op == op_of(graph, "loss") ||
                           g_str_has_suffix(graph_get_op(graph, op)->name, ".dw"));
        g_autoptr(Program) again = program_copy(cut);
        const Instr last = again->instr[again->n - 1];
        again->instr[again->n - 1] = again->instr[i];
        program_append(again, last);
        g_autoptr(GError) error = NULL;
        const bool passes = program_check(again, graph, &error);
        assert_int_equal(passes, !sums);
        if (sums)
            assert_error(error, KILTER_ERROR_FAILED, "has this microbatch already");
    }
}

static void test_random_programs_pass(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(11);
    for (int round = 0; round < 60; round++) {
        g_autoptr(Graph) graph = random_graph(rand, 3);
        g_autoptr(Program) program = random_program(rand, graph);
        GError *error = NULL;
        program_check(program, graph, &error);
        assert_no_error(error);
    }
}

static void test_text(void **state)
{
    (void)state;
    g_autoptr(Graph) graph = mlp();
    static const struct {
        const char *line, *text;
    } row[] = {
        {"load w1 gather(0)", "w1|gather(0) <- load"},
        {"run fc1 gather(0) identity gather(0)",
         "fc1|gather(0) <- linear(x|gather(0), w1|identity)"},
        {"all_reduce w1.grad reduce identity",
         "w1.grad|identity <- all_reduce(w1.grad|reduce)"},
        {"slice x identity gather(0)", "x|gather(0) <- slice(x|identity)"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(row); i++) {
        g_autoptr(Program) program = parse(graph, row[i].line);
        g_autofree char *text = instr_text(&program->instr[0], graph);
        assert_string_equal(text, row[i].text);
    }
}

/* --- wrong programs --- */

static void test_every_deletion_is_found(void **state)
{
    (void)state;
    g_autoptr(Graph) graph = mlp();
    for (uint32_t i = 0; i < G_N_ELEMENTS(PROGRAMS); i++) {
        g_autoptr(Program) program = parse(graph, PROGRAMS[i]);
        for (uint32_t skip = 0; skip < program->n; skip++) {
            g_autoptr(Program) cut = without(program, skip);
            g_autoptr(GError) error = NULL;
            if (program_check(cut, graph, &error))
                fail_msg("program %u passes without instruction %u", i, skip);
            assert_int_equal(error->code, KILTER_ERROR_FAILED);
        }
    }
}

/* Whether some instruction or the end of the program needs what instruction `i`, a load or a
 * collective, makes. */
static bool is_needed(const Program *program, const Graph *graph, uint32_t i)
{
    TensorId tensor = program->instr[i].tensor;
    Form form = program->instr[i].to;
    for (uint32_t k = i + 1; k < program->n; k++) {
        const Instr *instr = &program->instr[k];
        if (instr->kind == INSTR_COLLECTIVE && instr->tensor == tensor &&
            instr->from == form)
            return true;
        const Op *op = graph_get_op(graph, instr->op);
        for (uint32_t f = 0; instr->kind == INSTR_COMPUTE && f < op->n_in; f++)
            if (op->in[f] == tensor && instr->form[f] == form)
                return true;
    }
    for (uint32_t k = 0; k < program->n; k++)
        if (program->instr[k].kind == INSTR_LOAD && program->instr[k].to == form &&
            graph_updated(graph, program->instr[k].tensor) == tensor)
            return true;
    return false;
}

/* A random program makes no instance twice by conversions, so exactly the unneeded ones may go. */
static void test_deletions_of_random_programs(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(12);
    uint32_t redundant = 0;
    for (int round = 0; round < 12; round++) {
        g_autoptr(Graph) graph = random_graph(rand, 2);
        g_autoptr(Program) program = random_program(rand, graph);
        for (uint32_t i = 0; i < program->n; i++) {
            g_autoptr(Program) cut = without(program, i);
            bool passes = program_check(cut, graph, NULL);
            bool needed =
                program->instr[i].kind == INSTR_COMPUTE || is_needed(program, graph, i);
            redundant += !needed;
            if (passes == needed) {
                g_autofree char *text = instr_text(&program->instr[i], graph);
                fail_msg("round %d: %s without instruction %u: %s", round,
                         needed ? "needed, but passes" : "not needed, but fails", i,
                         text);
            }
        }
    }
    assert_true(redundant > 0);
}

/* Every other form of every operand of every computation: wrong unless the op table has that rule,
 * and then some operand was not made in that form. */
static void test_every_wrong_form_is_found(void **state)
{
    (void)state;
    g_autoptr(Graph) graph = mlp();
    for (uint32_t i = 0; i < G_N_ELEMENTS(PROGRAMS); i++) {
        g_autoptr(Program) program = parse(graph, PROGRAMS[i]);
        for (uint32_t k = 0; k < program->n; k++) {
            Instr *instr = &program->instr[k];
            if (instr->kind != INSTR_COMPUTE)
                continue;
            const Op *op = graph_get_op(graph, instr->op);
            for (uint32_t f = 0; f < op->n_in + op->n_out; f++) {
                Form right = instr->form[f];
                for (Form form = 0; form <= FORM_MAX; form++) {
                    instr->form[f] = form;
                    if (form != right && program_check(program, graph, NULL))
                        fail_msg("program %u passes with form %u of operand %u of "
                                 "instruction %u",
                                 i, form, f, k);
                }
                instr->form[f] = right;
            }
        }
    }
}

/* Checks `base` with `line` replaced by `instead`. */
static void check_edit(const Graph *graph, const char *base, const char *line,
                       const char *instead, const char *message)
{
    const char *at = strstr(base, line);
    assert_non_null(at);
    g_autofree char *head = g_strndup(base, (gsize)(at - base));
    g_autofree char *text = g_strconcat(head, instead, at + strlen(line), NULL);
    g_autoptr(Program) program = parse(graph, text);
    g_autoptr(GError) error = NULL;
    assert_false(program_check(program, graph, &error));
    assert_error(error, KILTER_ERROR_FAILED, message);
}

static void test_messages(void **state)
{
    (void)state;
    g_autoptr(Graph) graph = mlp();
    static const struct {
        const char *base, *line, *instead, *message;
    } row[] = {
        {DATA_PARALLEL, "load x gather(0)\n", "",
         "instruction 4 (fc1|gather(0) <- linear(x|gather(0), w1|identity)): x|gather(0) "
         "was not made before"},
        {DATA_PARALLEL, "load x gather(0)\n", "load x gather(1)\n",
         "instruction 0 (x|gather(1) <- load): dim 1 of x cannot be sharded"},
        {DATA_PARALLEL, "load x gather(0)\n", "load x gather(2)\n",
         "x has 2 dims, none is dim 2"},
        {DATA_PARALLEL, "load x gather(0)\n", "load x reduce\n",
         "nothing lies at rest as partial sums"},
        {DATA_PARALLEL, "load x gather(0)\n", "load fc1 gather(0)\n",
         "only inputs, parameters and optimizer states are loaded"},
        {DATA_PARALLEL, "load x gather(0)\n", "load x gather(0)\nload x identity\n",
         "x is loaded twice"},
        {DATA_PARALLEL, "run w1.update identity identity identity\n", "",
         "the program is not complete: op w1.update never runs"},
        {DATA_PARALLEL, "run fc2.dw gather(0) gather(0) reduce\n",
         "run fc2.dw gather(0) gather(0) identity\n", "not a rule of fc2.dw"},
        {DATA_PARALLEL, "all_reduce w1.grad reduce identity\n",
         "all_gather w1.grad reduce identity\n", "no such conversion"},
        {DATA_PARALLEL, "all_reduce w1.grad reduce identity\n",
         "all_gather w1.grad gather(0) identity\n",
         "w1.grad|gather(0) was not made before"},
        {DATA_PARALLEL, "all_reduce w1.grad reduce identity\n",
         "reduce_scatter w1.grad reduce gather(1)\n", "dim 1 of w1.grad cannot be"},
        {SHARDED_PARAMETERS, "all_to_all w2.grad gather(0) gather(1)\n",
         "all_to_all w2.grad gather(0) gather(0)\n", "no such conversion"},
        /* All rules are right, but the next value has another form than the parameter. */
        {DATA_PARALLEL, "load w1 identity\n",
         "load w1 gather(0)\nall_gather w1 gather(0) identity\n",
         "the program is not complete: expected w1.next|gather(0), the form in which w1 "
         "rests"},
        {TENSOR_PARALLEL, "run w1.update gather(0) gather(0) gather(0)\n",
         "all_gather w1 gather(0) identity\nall_gather w1.grad gather(0) identity\n"
         "run w1.update identity identity identity\n",
         "expected w1.next|gather(0)"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(row); i++)
        check_edit(graph, row[i].base, row[i].line, row[i].instead, row[i].message);
}

static void check_broken(const Graph *graph, Instr instr, const char *message)
{
    g_autoptr(Program) program = parse(graph, DATA_PARALLEL);
    program->instr[program->n - 1] = instr;
    g_autoptr(GError) error = NULL;
    assert_false(program_check(program, graph, &error));
    assert_error(error, KILTER_ERROR_FAILED, message);
}

/* Instructions that no text names. */
static void test_broken_instructions(void **state)
{
    (void)state;
    g_autoptr(Graph) graph = mlp();
    g_autoptr(Program) program = parse(graph, DATA_PARALLEL);
    const Instr last = program->instr[program->n - 1];
    Instr instr = last;
    instr.group = 1;
    check_broken(graph, instr, "the program has 1 group, got group 1");
    instr = last;
    instr.microbatch = 2;
    check_broken(graph, instr, "the program has 1 microbatch, got microbatch 2");
    instr = last;
    instr.stream = 2;
    check_broken(graph, instr, "expected stream 0 or 1, got 2");
    instr = last;
    instr.op = graph_n_ops(graph);
    check_broken(graph, instr, "the graph has 13 ops");
    instr = (Instr){.kind = INSTR_LOAD, .tensor = GRAPH_NONE};
    check_broken(graph, instr, "the graph has");
    instr = (Instr){.kind = INSTR_TRANSFER, .tensor = 0};
    check_broken(graph, instr, "a program of one group has no transfers");
    instr = (Instr){.kind = INSTR_COLLECTIVE, .collective = COLLECTIVES, .tensor = 0};
    check_broken(graph, instr, "no such conversion");
    instr = (Instr){.kind = INSTR_COLLECTIVE, .tensor = 0, .from = FORM_MAX};
    check_broken(graph, instr, "unknown form 7");
    instr = (Instr){.kind = (InstrKind)99};
    check_broken(graph, instr, "unknown kind of instruction");
}

static void test_an_empty_program_is_not_complete(void **state)
{
    (void)state;
    g_autoptr(Graph) graph = mlp();
    g_autoptr(Program) program = program_new();
    g_autoptr(GError) error = NULL;
    assert_false(program_check(program, graph, &error));
    assert_error(error, KILTER_ERROR_FAILED, "op fc1 never runs");
}

/* Plan files name ops, so names must be unique. */
static void test_op_names_are_unique(void **state)
{
    (void)state;
    static const char *const spec[] = {"vgg19:width=2,fc=4", "vit:hidden=4,heads=2,ffn=4",
                                       "bert-base:hidden=4,heads=2,ffn=4,vocab=8",
                                       "bert-moe:hidden=4,heads=2,ffn=4,vocab=8"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(spec); i++) {
        GError *error = NULL;
        g_autoptr(Graph) graph = model_build(spec[i], 2, NULL, &error);
        assert_no_error(error);
        g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);
        for (OpId id = 0; id < graph_n_ops(graph); id++)
            if (!g_hash_table_add(names, (char *)graph_get_op(graph, id)->name))
                fail_msg("%s: two ops %s", spec[i], graph_get_op(graph, id)->name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_strategies_pass),
        cmocka_unit_test(test_random_programs_pass),
        cmocka_unit_test(test_cut_batches_pass_and_their_deletions_do_not),
        cmocka_unit_test(test_wrong_cuts),
        cmocka_unit_test(test_recomputation),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_every_deletion_is_found),
        cmocka_unit_test(test_deletions_of_random_programs),
        cmocka_unit_test(test_every_wrong_form_is_found),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_broken_instructions),
        cmocka_unit_test(test_an_empty_program_is_not_complete),
        cmocka_unit_test(test_op_names_are_unique),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
