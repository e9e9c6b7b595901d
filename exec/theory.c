/* Checking the rules of a model on random uneven shards. */
#include "exec/theory.h"

#include <stdlib.h>

#include "data/base/order.h"

enum { MAX_DEVICES = 4 };

/* Units [from[j], from[j + 1]) of the sharded loop go to device j. */
typedef struct {
    uint32_t n_devices;
    uint32_t from[MAX_DEVICES + 1];
} Cut;

static uint32_t between(GRand *random, uint32_t low, uint32_t high)
{
    KILTER_ASSERT(low <= high);
    return (uint32_t)g_rand_int_range(random, (gint32)low, (gint32)high + 1);
}

static ORDER_VALUES(compare_cuts, uint32_t);

/* Random cuts, so uneven and often empty shards; in one of four cases one device gets
 * everything. */
static Cut random_cut(uint32_t units, GRand *random)
{
    g_assert(units > 0);
    Cut cut = {.n_devices = between(random, 2, MAX_DEVICES)};
    const bool all_to_one = between(random, 0, 3) == 0;
    for (uint32_t j = 1; j < cut.n_devices; j++)
        cut.from[j] = all_to_one ? 0 : between(random, 0, units);
    qsort(cut.from + 1, cut.n_devices - 1, sizeof cut.from[0], compare_cuts);
    cut.from[cut.n_devices] = units;
    return cut;
}

/* The shard of `whole` that device j holds in `form`. `sum` accumulates the parts of a Reduce. */
static ExecTensor shard(const ExecTensor *whole, Form form, const Rule *rule,
                        const Cut *cut, uint32_t j, ExecTensor *sum, GRand *random)
{
    if (form_is_gather(form)) {
        const uint32_t piece = whole->dim[form_dim(form)] / rule->units;
        return exec_tensor_slice(whole, form_dim(form), cut->from[j] * piece,
                                 cut->from[j + 1] * piece);
    }
    ExecTensor copy = exec_tensor_new(whole->rank, whole->dim);
    for (uint64_t i = 0; i < exec_tensor_elements(whole); i++) {
        if (form == FORM_IDENTITY) {
            copy.data[i] = whole->data[i];
            continue;
        }
        const bool last = j + 1 == cut->n_devices;
        copy.data[i] =
            last ? whole->data[i] - sum->data[i] : g_rand_double_range(random, -1, 1);
        sum->data[i] += copy.data[i];
    }
    return copy;
}

/* The output of device j, still to be computed. */
static ExecTensor output(const ExecTensor *whole, Form form, const Rule *rule,
                         const Cut *cut, uint32_t j)
{
    if (!form_is_gather(form))
        return exec_tensor_new(whole->rank, whole->dim);
    const uint32_t piece = whole->dim[form_dim(form)] / rule->units;
    return exec_tensor_slice(whole, form_dim(form), cut->from[j] * piece,
                             cut->from[j + 1] * piece);
}

static double error_of(const ExecTensor *got, const ExecTensor *want)
{
    return exec_difference(got->data, want->data, exec_tensor_elements(want),
                           MAX(1, exec_magnitude(want)));
}

/* The largest difference between `whole` and what the devices' outputs in `form` make up. */
static double outputs_error(const ExecTensor *whole, Form form, const Rule *rule,
                            const Cut *cut, const ExecTensor *part)
{
    if (form == FORM_REDUCE) {
        ExecTensor sum = exec_tensor_new(whole->rank, whole->dim);
        for (uint32_t j = 0; j < cut->n_devices; j++)
            for (uint64_t i = 0; i < exec_tensor_elements(whole); i++)
                sum.data[i] += part[j].data[i];
        const double error = error_of(&sum, whole);
        exec_tensor_clear(&sum);
        return error;
    }
    double error = 0;
    for (uint32_t j = 0; j < cut->n_devices; j++) {
        ExecTensor want = shard(whole, form, rule, cut, j, NULL, NULL);
        error = MAX(error, error_of(&part[j], &want));
        exec_tensor_clear(&want);
    }
    return error;
}

double exec_rule_error(const Graph *graph, OpId id, const ExecTensor *value,
                       const Rule *rule, GRand *random)
{
    const Op *op = graph_get_op(graph, id);
    const Cut cut = random_cut(MAX(rule->units, 1), random);
    ExecTensor in[MAX_DEVICES][OP_MAX_IN], out[OP_MAX_OUT][MAX_DEVICES];
    for (uint32_t i = 0; i < op->n_in; i++) {
        const ExecTensor *whole = &value[op->in[i]];
        ExecTensor sum = exec_tensor_new(whole->rank, whole->dim);
        for (uint32_t j = 0; j < cut.n_devices; j++)
            in[j][i] = shard(whole, rule->form[i], rule, &cut, j, &sum, random);
        exec_tensor_clear(&sum);
    }
    for (uint32_t j = 0; j < cut.n_devices; j++) {
        ExecTensor made[OP_MAX_OUT];
        for (uint32_t o = 0; o < op->n_out; o++)
            made[o] = out[o][j] =
                output(&value[op->out[o]], rule->form[op->n_in + o], rule, &cut, j);
        exec_run_op(graph, id, in[j], made);
    }
    double error = 0;
    for (uint32_t o = 0; o < op->n_out; o++)
        error = MAX(error, outputs_error(&value[op->out[o]], rule->form[op->n_in + o],
                                         rule, &cut, out[o]));
    for (uint32_t j = 0; j < cut.n_devices; j++) {
        for (uint32_t i = 0; i < op->n_in; i++)
            exec_tensor_clear(&in[j][i]);
        for (uint32_t o = 0; o < op->n_out; o++)
            exec_tensor_clear(&out[o][j]);
    }
    return error;
}

/* "head: linear(gather(0), identity) -> gather(0)" */
static char *rule_text(const Op *op, const Rule *rule)
{
    g_autoptr(GString) text = g_string_new(op->name);
    g_string_append_printf(text, ": %s(", op_kind_name(op->kind));
    char buffer[FORM_TEXT];
    for (uint32_t i = 0; i < op->n_in + op->n_out; i++)
        g_string_append_printf(text, "%s%s",
                               i == op->n_in ? ") -> "
                               : i           ? ", "
                                             : "",
                               form_text(rule->form[i], buffer));
    return g_string_free(g_steal_pointer(&text), FALSE);
}

void exec_theory_check(const Graph *graph, uint64_t seed, double tolerance,
                       ExecTheory *theory)
{
    g_assert(tolerance > 0);
    g_autoptr(GRand) random = g_rand_new_with_seed((guint32)seed);
    ExecTensor *value = exec_values_new(graph, seed);
    exec_run_graph(graph, value);
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        Rule rule[OP_MAX_RULES];
        const uint32_t n = op_rules(graph, id, rule);
        theory->ops++;
        theory->rules += n;
        for (uint32_t r = 0; r < n; r++) {
            const double error = exec_rule_error(graph, id, value, &rule[r], random);
            theory->error = MAX(theory->error, error);
            if (!(error <= tolerance) && !theory->wrong)
                theory->wrong = rule_text(graph_get_op(graph, id), &rule[r]);
        }
    }
    exec_values_free(graph, value);
}
