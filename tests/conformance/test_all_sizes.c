/* Rules for all sizes. A rule says which part of each operand a device has;
 * that an op on such parts gives the parts of its outputs is shown here without
 * extents:
 *
 *  - Sums of products (kernels `contract` and `add`): the output is a sum of
 * terms, each a product of operands, summed over the loops that the output
 * lacks. A loop cut into any parts divides such a sum by distributivity, and
 * partial sums of one factor add up. `holds` decides by that alone whether
 * operands in given forms give the output in its form. It has to say yes of
 * every rule. Of all choices of forms that fit together, wrong ones among them,
 * it has to say what running the op says. The kernels compute these sums
 * exactly, on whole numbers.
 *
 *  - All ops are run: every rule, with each loop of 1 to 9 units, cut at
 * random. The kernels' sources have no number above LANES = 4 with which an
 * extent could be compared, so all their branches on extents are met. */
#include "data/data.h"
#include "data/graph/check.h"
#include "tests/conformance/sample.h"

enum { LONGEST = 9, TRIES = 8 };

#define KERNEL_NAME(id, kernel, name, signature, linear, flops) #kernel,
static const char *const KERNEL[] = {OP_TABLE(KERNEL_NAME)};

static bool is_sum_of_products(OpKind kind)
{
    return strcmp(KERNEL[kind], "contract") == 0 || strcmp(KERNEL[kind], "add") == 0;
}

/* --- the proof --- */

/* The operands that a term multiplies, as bits. */
typedef struct {
    uint32_t n, factors[OP_MAX_IN];
} Terms;

static Terms terms_of(OpKind kind, uint32_t n_in, const OpSpace *space)
{
    const bool adds = strcmp(KERNEL[kind], "add") == 0;
    Terms terms = {.n = !adds};
    for (uint32_t i = 0; i < n_in; i++)
        if (adds || space->added >> i & 1u)
            terms.factors[terms.n++] = 1u << i;
        else
            terms.factors[0] |= 1u << i;
    return terms;
}

static bool has_loop(const OpSpace *space, uint32_t operand, int loop)
{
    for (uint32_t d = 0; loop >= 0 && d < TENSOR_MAX_RANK; d++)
        if (space->dim_loop[operand][d] == loop)
            return true;
    return false;
}

/* Whether operands in these forms, loop `cut` (-1: none) being cut in all that
 * have it, give the output (operand n_in) in its form. No extent and no number
 * of devices is looked at. */
static bool holds(const Terms *terms, uint32_t n_in, const OpSpace *space, int cut,
                  const Form *form)
{
    for (uint32_t t = 0; t < terms->n; t++) {
        uint32_t partial = 0; /* factors that are partial sums */
        bool divided = false; /* each device has a part of the term's loop */
        for (uint32_t i = 0; i < n_in; i++) {
            const bool factor = terms->factors[t] >> i & 1u;
            partial += factor && form[i] == FORM_REDUCE;
            divided |= factor && has_loop(space, i, cut);
        }
        if (form[n_in] == FORM_REDUCE
                ? partial + divided != 1
                : partial > 0 || (divided && form[n_in] == FORM_IDENTITY))
            return false;
    }
    return true;
}

/* Whether running the op says so, too. */
static bool runs(const Graph *graph, OpId id, const ExecTensor *value, const Rule *rule,
                 GRand *random)
{
    for (uint32_t i = 0; i < TRIES; i++)
        if (!(exec_rule_error(graph, id, value, rule, random) <= EXEC_TOLERANCE))
            return false;
    return true;
}

typedef struct {
    uint32_t kinds, rules, right, wrong;
} Counts;

/* All choices of forms in which operands that have the loop `cut` have parts of
 * it, and the others are whole or partial sums. */
static void check_choices(const Graph *graph, OpId id, const ExecTensor *value, int cut,
                          GRand *random, Counts *counts)
{
    const Op *op = graph_get_op(graph, id);
    OpSpace space;
    graph_op_space(graph, id, &space);
    const Terms terms = terms_of(op->kind, op->n_in, &space);
    for (uint32_t bits = 0; bits < 1u << (op->n_in + 1); bits++) {
        Rule rule = {.loop = (int8_t)cut, .units = cut >= 0 ? space.loop[cut].extent : 0};
        bool new = true; /* a bit of a cut operand says nothing */
        for (uint32_t i = 0; i <= op->n_in; i++) {
            const bool reduce = bits >> i & 1u;
            rule.form[i] = reduce ? FORM_REDUCE : FORM_IDENTITY;
            for (uint32_t d = 0; d < TENSOR_MAX_RANK; d++)
                if (cut >= 0 && space.dim_loop[i][d] == cut) {
                    rule.form[i] = form_gather(d);
                    new = new && !reduce;
                }
        }
        if (!new)
            continue;
        const bool right = holds(&terms, op->n_in, &space, cut, rule.form);
        *(right ? &counts->right : &counts->wrong) += 1;
        if (right != runs(graph, id, value, &rule, random))
            fail_msg("%s, loop %c, choice %u: %s", op_kind_name(op->kind),
                     cut >= 0 ? space.loop[cut].letter : '-', bits,
                     right ? "proved, but wrong" : "right, but not proved");
    }
}

static void check_rules(const Graph *graph, OpId id, Counts *counts)
{
    const Op *op = graph_get_op(graph, id);
    Rule rule[OP_MAX_RULES];
    OpSpace space;
    graph_op_space(graph, id, &space);
    const Terms terms = terms_of(op->kind, op->n_in, &space);
    const uint32_t n = op_rules(graph, id, rule);
    for (uint32_t r = 0; r < n; r++) {
        counts->rules++;
        for (uint32_t i = 0; i <= op->n_in; i++) /* parts of the loop wherever it is */
            assert_int_equal(form_is_gather(rule[r].form[i]),
                             has_loop(&space, i, rule[r].loop));
        if (!holds(&terms, op->n_in, &space, rule[r].loop, rule[r].form))
            fail_msg("%s: rule %u is not proved", op_kind_name(op->kind), r);
    }
}

static void test_sums_of_products(void **state)
{
    (void)state;
    enum { SHAPES = 4 };
    Counts counts = {0};
    for (OpKind kind = 0; kind < OP_KINDS; kind++)
        for (uint32_t seed = 0; is_sum_of_products(kind) && seed < SHAPES; seed++) {
            GRand *random = g_rand_new_with_seed(seed);
            g_autoptr(Graph) graph = graph_new("one op");
            const OpId id = sample_op(graph, kind, 2, false, random);
            graph_seal(graph);
            ExecTensor *value = exec_values_new(graph, g_rand_int(random));
            exec_run_graph(graph, value);
            OpSpace space;
            graph_op_space(graph, id, &space);
            assert_int_equal(graph_get_op(graph, id)->n_out, 1);
            counts.kinds += seed == 0;
            check_rules(graph, id, &counts);
            for (int cut = -1; cut < (int)space.n_loops; cut++)
                check_choices(graph, id, value, cut, random, &counts);
            exec_values_free(graph, value);
            g_rand_free(random);
        }
    print_message("%u of %u kinds are sums of products; %u rules proved, of %u other "
                  "choices of forms %u right and %u wrong\n",
                  counts.kinds, OP_KINDS, counts.rules, counts.right + counts.wrong,
                  counts.right, counts.wrong);
    assert_true(counts.kinds > 50 && counts.right > counts.rules && counts.wrong > 1000);
}

/* --- kernels compute what the signature says --- */

/* The letters of an operand, with 1 and 2 for the loops of a star. */
static char *letters_of(const char *operand, uint32_t n_star)
{
    GString *letters = g_string_new(NULL);
    for (; *operand; operand++)
        if (*operand == '*')
            g_string_append_len(letters, "12", n_star);
        else if (isalpha(*operand))
            g_string_append_c(letters, *operand);
    return g_string_free(letters, FALSE);
}

static double *element(const ExecTensor *tensor, const char *letters,
                       const uint32_t at[128])
{
    uint64_t place = 0;
    for (uint32_t d = 0; d < tensor->rank; d++)
        place = place * tensor->dim[d] + at[(int)letters[d]];
    return &tensor->data[place];
}

/* Adds to `out` the product of the factors at every place of their loops and
 * its own. */
static void add_products(const char *loops, const uint32_t extent[128], uint32_t at[128],
                         uint32_t n, const ExecTensor *const *factor,
                         char *const *letters, ExecTensor *out, const char *out_letters)
{
    if (*loops) {
        for (uint32_t i = 0; i < extent[(int)*loops]; i++) {
            at[(int)*loops] = i;
            add_products(loops + 1, extent, at, n, factor, letters, out, out_letters);
        }
        return;
    }
    double product = 1;
    for (uint32_t f = 0; f < n; f++)
        product *= *element(factor[f], letters[f], at);
    *element(out, out_letters, at) += product;
}

/* The output by the signature's letters alone. */
static ExecTensor defined(const Graph *graph, OpId id, const ExecTensor *in)
{
    const Op *op = graph_get_op(graph, id);
    const Tensor *tensor = graph_tensor(graph, op->out[0]);
    ExecTensor out = exec_tensor_new(tensor->rank, tensor->dim);
    g_auto(GStrv) side = g_strsplit(op_kind_signature(op->kind), "->", 2);
    g_auto(GStrv) operand = g_strsplit(side[0], ",", -1);
    uint32_t n_star = 0;
    for (uint32_t i = 0; i < op->n_in; i++) {
        g_autofree char *plain = letters_of(operand[i], 0);
        if (strchr(operand[i], '*'))
            n_star = in[i].rank - (uint32_t)strlen(plain);
    }
    g_autofree char *of_out = letters_of(side[1], n_star);
    const bool adds = strcmp(KERNEL[op->kind], "add") == 0;
    for (uint32_t first = 0; first < op->n_in; first++) {
        const bool alone = adds || operand[first][0] == '+';
        const ExecTensor *factor[OP_MAX_IN];
        g_autoptr(GPtrArray) letters = g_ptr_array_new_with_free_func(g_free);
        g_autoptr(GString) loops = g_string_new(of_out);
        uint32_t extent[128] = {0}, at[128] = {0}, n = 0;
        for (uint32_t d = 0; d < out.rank; d++)
            extent[(int)of_out[d]] = out.dim[d];
        for (uint32_t i = first; i < (alone ? first + 1 : op->n_in); i++) {
            if (!alone && operand[i][0] == '+')
                continue;
            char *own = letters_of(operand[i], n_star);
            g_ptr_array_add(letters, own);
            factor[n++] = &in[i];
            for (uint32_t d = 0; d < in[i].rank; d++) {
                if (!strchr(loops->str, own[d]))
                    g_string_append_c(loops, own[d]);
                extent[(int)own[d]] = in[i].dim[d];
            }
        }
        if (alone || first == 0)
            add_products(loops->str, extent, at, n, factor, (char **)letters->pdata, &out,
                         of_out);
    }
    return out;
}

/* Every loop, cut or not, is longer than what a kernel does at once; sums of
 * products of small whole numbers are exact. */
static void test_kernels_by_definition(void **state)
{
    (void)state;
    enum { MOST = 1000 };
    GRand *random = g_rand_new_with_seed(1);
    for (OpKind kind = 0; kind < OP_KINDS; kind++)
        for (const char *c = op_kind_signature(kind); is_sum_of_products(kind) && *c;
             c++) {
            if (*c != '*' && !isalpha(*c))
                continue;
            const uint32_t n = sample_between(random, 1, LONGEST);
            g_autoptr(Graph) graph = graph_new("one op");
            const OpId id = sample_shaped_op(
                graph, kind, sample_shape_with(kind, *c, n, random), false, random);
            graph_seal(graph);
            const Op *op = graph_get_op(graph, id);
            ExecTensor in[OP_MAX_IN];
            for (uint32_t i = 0; i < op->n_in; i++) {
                const Tensor *tensor = graph_tensor(graph, op->in[i]);
                in[i] = exec_tensor_new(tensor->rank, tensor->dim);
                for (uint64_t e = 0; e < exec_tensor_elements(&in[i]); e++)
                    in[i].data[e] = g_rand_int_range(random, -MOST, MOST + 1);
            }
            ExecTensor want = defined(graph, id, in),
                       got = exec_tensor_new(want.rank, want.dim);
            exec_run_op(graph, id, in, &got);
            if (memcmp(got.data, want.data,
                       exec_tensor_elements(&want) * sizeof *want.data) != 0)
                fail_msg("%s with %c=%u is not its signature", op_kind_name(kind), *c, n);
            exec_tensor_clear(&want);
            exec_tensor_clear(&got);
            for (uint32_t i = 0; i < op->n_in; i++)
                exec_tensor_clear(&in[i]);
        }
    g_rand_free(random);
}

/* --- the other ops --- */

/* Units [from, to) of a rule's loop. */
typedef struct {
    const Graph *graph;
    const ExecTensor *value;
    const Rule *rule;
    OpId id;
    uint32_t from, to;
} Part;

static ExecTensor part_of(const ExecTensor *whole, Form form, const Part *part)
{
    if (form_is_gather(form)) {
        const uint32_t piece = whole->dim[form_dim(form)] / part->rule->units;
        return exec_tensor_slice(whole, form_dim(form), part->from * piece,
                                 part->to * piece);
    }
    ExecTensor copy = exec_tensor_new(whole->rank, whole->dim);
    memcpy(copy.data, whole->data, exec_tensor_elements(whole) * sizeof *copy.data);
    return copy;
}

/* The op on one part. Who has the first unit has what is added to a sum; others
 * have zeros. */
static void run_part(const Part *part, bool first, ExecTensor out[OP_MAX_OUT])
{
    const Op *op = graph_get_op(part->graph, part->id);
    ExecTensor in[OP_MAX_IN];
    for (uint32_t i = 0; i < op->n_in; i++) {
        in[i] = part_of(&part->value[op->in[i]], part->rule->form[i], part);
        if (part->rule->form[i] == FORM_REDUCE && !first)
            memset(in[i].data, 0, exec_tensor_elements(&in[i]) * sizeof *in[i].data);
    }
    for (uint32_t o = 0; o < op->n_out; o++)
        out[o] = part_of(&part->value[op->out[o]], part->rule->form[op->n_in + o], part);
    exec_run_op(part->graph, part->id, in, out);
    for (uint32_t i = 0; i < op->n_in; i++)
        exec_tensor_clear(&in[i]);
}

/* Unit `from` of `whole` by `single`, bit for bit; or adds it to the sum, which
 * is `whole` at the end. */
static bool takes(const ExecTensor *whole, Form form, const Part *single, uint32_t first,
                  const ExecTensor *out, ExecTensor *sum)
{
    if (!form_is_gather(form)) {
        for (uint64_t e = 0; e < exec_tensor_elements(out); e++)
            sum->data[e] += out->data[e];
        return true;
    }
    const uint32_t piece = out->dim[form_dim(form)], at = (single->from - first) * piece;
    ExecTensor same = exec_tensor_slice(whole, form_dim(form), at, at + piece);
    const bool equal =
        memcmp(same.data, out->data, exec_tensor_elements(out) * sizeof *out->data) == 0;
    exec_tensor_clear(&same);
    return equal;
}

/* Whether the op on this part is a list of what it makes of each unit alone, or
 * where an output lacks the loop, their sum. Lists of lists and sums of sums
 * are what rules put together, so that this implies that a rule holds for each
 * division. */
static bool is_list(const Part *part)
{
    const Op *op = graph_get_op(part->graph, part->id);
    const Form *form = part->rule->form + op->n_in;
    ExecTensor whole[OP_MAX_OUT], sum[OP_MAX_OUT];
    bool good = true;
    run_part(part, true, whole);
    for (uint32_t o = 0; o < op->n_out; o++)
        sum[o] = exec_tensor_new(whole[o].rank, whole[o].dim);
    for (Part single = *part; single.from < part->to; single.from++) {
        ExecTensor out[OP_MAX_OUT];
        single.to = single.from + 1;
        run_part(&single, single.from == part->from, out);
        for (uint32_t o = 0; o < op->n_out; o++) {
            good &= takes(&whole[o], form[o], &single, part->from, &out[o], &sum[o]);
            exec_tensor_clear(&out[o]);
        }
    }
    for (uint32_t o = 0; o < op->n_out; o++) {
        const uint64_t n = exec_tensor_elements(&whole[o]);
        good &= form_is_gather(form[o]) ||
                exec_difference(sum[o].data, whole[o].data, n,
                                MAX(1, exec_magnitude(&whole[o]))) <= EXEC_TOLERANCE;
        exec_tensor_clear(&whole[o]);
        exec_tensor_clear(&sum[o]);
    }
    return good;
}

/* The rule holds for random parts; the whole and one of its parts are lists. */
static bool is_right(const Graph *graph, OpId id, const ExecTensor *value,
                     const Rule *rule, GRand *random)
{
    const uint32_t from = rule->loop < 0 ? 0 : sample_between(random, 0, rule->units - 1);
    const Part whole = {graph, value, rule, id, 0, rule->units},
               part = {
                   graph, value,
                   rule,  id,
                   from,  sample_between(random, from + 1, MAX(rule->units, from + 1))};
    return exec_rule_error(graph, id, value, rule, random) <= EXEC_TOLERANCE &&
           (rule->loop < 0 || (is_list(&whole) && is_list(&part)));
}

static uint32_t check_longer(OpKind kind, char letter, uint32_t n, GRand *random)
{
    g_autoptr(Graph) graph = graph_new("one op");
    const OpId id = sample_shaped_op(
        graph, kind, sample_shape_with(kind, letter, n, random), false, random);
    graph_seal(graph);
    ExecTensor *value = exec_values_new(graph, g_rand_int(random));
    exec_run_graph(graph, value);
    Rule rule[OP_MAX_RULES + 1];
    const uint32_t rules = op_shard_rules(graph, id, rule);
    uint32_t lists = 0;
    for (uint32_t r = 0; r < rules; lists += rule[r++].loop >= 0)
        if (!is_right(graph, id, value, &rule[r], random))
            fail_msg("%s with %c=%u: rule %u (loop %d, %u units) does not hold",
                     op_kind_name(kind), letter, n, r, rule[r].loop, rule[r].units);
    exec_values_free(graph, value);
    return lists;
}

static void test_every_extent(void **state)
{
    (void)state;
    uint32_t kinds = 0, lists = 0;
    GRand *random = g_rand_new_with_seed(2);
    for (OpKind kind = 0; kind < OP_KINDS; kind++) {
        const uint32_t before = lists;
        for (const char *c = op_kind_signature(kind); *c; c++)
            for (uint32_t n = 1; (*c == '*' || islower(*c)) && n <= LONGEST; n++)
                lists += check_longer(kind, *c, n, random);
        kinds += lists > before;
    }
    g_rand_free(random);
    print_message("%u of %u kinds make lists or sums of units, seen %u times\n", kinds,
                  OP_KINDS, lists);
}

/* --- sizes that do not fit --- */

/* "n=3,D=2": the extents of an op's outputs. Caller frees. */
static char *extents_of(const Graph *graph, const Op *op, char letter, uint32_t more)
{
    g_auto(GStrv) side = g_strsplit(op_kind_signature(op->kind), "->", 2);
    g_auto(GStrv) operand = g_strsplit(side[1], ",", -1);
    GString *text = g_string_new("");
    for (uint32_t o = 0; o < op->n_out; o++) {
        const Tensor *tensor = graph_tensor(graph, op->out[o]);
        if (!operand[o])
            break; /* a number */
        g_autofree char *plain = letters_of(operand[o], 0);
        const uint32_t n_star = tensor->rank - (uint32_t)strlen(plain);
        uint32_t d = 0;
        for (const char *c = operand[o]; *c; c++)
            if (*c == '*')
                d += n_star;
            else if (isalpha(*c))
                g_string_append_printf(text, "%s%c=%u", text->len ? "," : "", *c,
                                       tensor->dim[d++] + (*c == letter ? more : 0));
    }
    return g_string_free(text, FALSE);
}

static bool is_accepted(const Op *op, const Shape *in, const char *extents)
{
    g_autofree char *what = op_check(op->kind, &op->attr, op->n_in, in, extents);
    return what == NULL;
}

/* An input's extent that another one has, too, cannot change alone. */
static uint32_t check_inputs(const Graph *graph, OpId id, Shape *in, const char *extents)
{
    const Op *op = graph_get_op(graph, id);
    OpSpace space;
    uint32_t refused = 0;
    graph_op_space(graph, id, &space);
    for (uint32_t i = 0; i < op->n_in; i++)
        for (uint32_t d = 0; d < in[i].rank; d++) {
            bool shared = false;
            for (uint32_t k = 0; k < op->n_in; k++)
                shared |= k != i && has_loop(&space, k, space.dim_loop[i][d]);
            if (!shared)
                continue;
            in[i].dim[d]++;
            if (is_accepted(op, in, extents))
                fail_msg("%s: input %u may have another dim %u than others",
                         op_kind_name(op->kind), i, d);
            in[i].dim[d]--;
            refused++;
        }
    return refused;
}

/* An op that only arranges elements anew makes as many as it reads. */
static uint32_t check_copies(const Graph *graph, OpId id, const Shape *in)
{
    const Op *op = graph_get_op(graph, id);
    const char *side = strstr(op_kind_signature(op->kind), "->");
    uint32_t refused = 0;
    for (const char *c = side; *c && strcmp(KERNEL[op->kind], "copy") == 0; c++) {
        if (!isalpha(*c))
            continue;
        g_autofree char *extents = extents_of(graph, op, *c, 1);
        if (is_accepted(op, in, extents))
            fail_msg("%s may have %s", op_kind_name(op->kind), extents);
        refused++;
    }
    return refused;
}

static void test_sizes_that_do_not_fit(void **state)
{
    (void)state;
    uint32_t accepted = 0, inputs = 0, copies = 0;
    for (OpKind kind = 0; kind < OP_KINDS; kind++)
        for (uint32_t seed = 0; seed < 4; seed++) {
            g_autoptr(GRand) random = g_rand_new_with_seed(seed);
            g_autoptr(Graph) graph = graph_new("one op");
            const OpId id = sample_op(graph, kind, 1, false, random);
            graph_seal(graph);
            const Op *op = graph_get_op(graph, id);
            Shape in[OP_MAX_IN];
            for (uint32_t i = 0; i < op->n_in; i++) {
                const Tensor *tensor = graph_tensor(graph, op->in[i]);
                in[i].rank = tensor->rank;
                memcpy(in[i].dim, tensor->dim, sizeof in[i].dim);
            }
            g_autofree char *extents = extents_of(graph, op, 0, 0);
            accepted += is_accepted(op, in, extents);
            inputs += check_inputs(graph, id, in, extents);
            copies += check_copies(graph, id, in);
        }
    print_message(
        "%u of %u ops accepted; of changed ones refused: %u inputs, %u copies\n",
        accepted, OP_KINDS * 4, inputs, copies);
    assert_true(accepted > OP_KINDS * 3 && inputs > 1000 && copies > 20);
}

/* Sizes of arrays and ranks; the list is of what stands in the sources. */
static void test_no_large_numbers_in_kernels(void **state)
{
    (void)state;
    static const char *const KNOWN[] = {"rank == 5", "MUON_STEPS    5", "+ 6 * n->keys",
                                        "5 * keys + values"};
    g_autoptr(GRegex) comment =
        g_regex_new("/\\*.*?\\*/|\"[^\"\\n]*\"|//[^\\n]*", G_REGEX_DOTALL, 0, NULL);
    g_autoptr(GRegex) number =
        g_regex_new("(?<!e-)(?<![\\w.])(?:[5-9]|\\d{2,})[uUlL]*(?![\\w.])", 0, 0, NULL);
    g_autofree char *folder = g_build_filename(KILTER_HOME, "exec/kernels", NULL);
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    uint32_t files = 0;
    for (const char *name; (name = g_dir_read_name(dir)); files++) {
        g_autofree char *file = g_build_filename(folder, name, NULL), *text = NULL;
        if (strcmp(name, "mask.h") == 0) /* a hash */
            continue;
        assert_true(g_file_get_contents(file, &text, NULL, NULL));
        g_autofree char *code =
            g_regex_replace_literal(comment, text, -1, 0, "", 0, NULL);
        for (guint i = 0; i < G_N_ELEMENTS(KNOWN); i++) {
            g_auto(GStrv) part = g_strsplit(code, KNOWN[i], -1);
            g_free(code);
            code = g_strjoinv("", part);
        }
        g_autoptr(GMatchInfo) match = NULL;
        if (g_regex_match(number, code, 0, &match)) {
            g_autofree char *found = g_match_info_fetch(match, 0);
            fail_msg("%s: %s: longer loops than %d may take other ways", name, found,
                     LONGEST);
        }
    }
    assert_true(files > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_of_products),
        cmocka_unit_test(test_kernels_by_definition),
        cmocka_unit_test(test_every_extent),
        cmocka_unit_test(test_sizes_that_do_not_fit),
        cmocka_unit_test(test_no_large_numbers_in_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
