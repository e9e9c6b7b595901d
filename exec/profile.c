/* Timing ops and collectives one by one, for calibration. */
#include "exec/profile.h"

#include <math.h>
#include <string.h>

#include "data/base/free.h"
#include "data/measured/measurement.h"
#include "exec/measure.h"

/* --- what several ranks measured --- */

/* Times of rows on the local ranks: value [(row * n_ranks + rank) * repeats + repeat]. */
typedef struct {
    uint32_t rows, n_ranks, repeats;
    double *value;
} Samples;

static Samples samples_new(uint32_t rows, uint32_t n_ranks, uint32_t repeats)
{
    g_assert(rows > 0 && n_ranks > 0 && repeats > 0);
    return (Samples){rows, n_ranks, repeats,
                     g_new0(double, (size_t)rows *n_ranks *repeats + 1)};
}

static double *samples_at(Samples *s, uint32_t row, uint32_t rank)
{
    KILTER_ASSERT(row < s->rows && rank < s->n_ranks);
    return s->value + ((size_t)row * s->n_ranks + rank) * s->repeats;
}

/* Gives every process the times that all ranks measured. */
static void samples_share(Samples *s, ExecBackend *backend)
{
    exec_backend_maximum(backend, s->value, s->rows * s->n_ranks * s->repeats);
}

static void add_row(GArray *list, Measurement m, double *sample, uint32_t repeats)
{
    g_assert(repeats > 0);
    const ExecSpread spread = exec_spread_of(sample, repeats);
    m.repeats = repeats;
    m.median_s = spread.median_s;
    m.low_s = spread.low_s;
    m.high_s = spread.high_s;
    if (m.median_s > 0) { /* else it was too short for the clock */
        g_array_append_val(list, m);
    } else {
        free_each(m.device, m.shape);
    }
}

static void add_dims(GString *text, const ExecShard *shard)
{
    if (text->len)
        g_string_append_c(text, ';');
    for (uint32_t d = 0; d < shard->rank; d++)
        g_string_append_printf(text, "%s%u", d ? "x" : "", shard->dim[d]);
    if (shard->rank == 0)
        g_string_append_c(text, '1');
}

/* --- ops --- */

/* The rules of an op that differ in the work they do, by number: replicated, and one per sharded
 * loop. */
static Rule rule_of(const Graph *graph, OpId id, uint32_t variant)
{
    Rule all[OP_MAX_RULES], kept[OP_MAX_RULES];
    const uint32_t n_all = op_rules(graph, id, all);
    uint32_t n = 0;
    for (uint32_t r = 0; r < n_all; r++)
        if (r == 0 || all[r].loop >= 0)
            kept[n++] = all[r];
    return kept[(id + variant) % n];
}

/* A plan that loads every operand in the form in which its op takes it, and computes each op by
 * itself. */
static Plan *make_plan(const Graph *graph, uint32_t n_ranks, const double *ratio,
                       uint32_t variant, Rule *rule)
{
    Plan *plan = plan_new();
    g_autofree bool *loaded = g_new0(bool, (size_t)graph_n_tensors(graph) * FORM_MAX);
    g_autoptr(Program) compute = program_new();
    plan->program = program_new();
    plan->n_devices = n_ranks;
    plan->n_segments = 1;
    plan->ratio = g_memdup2(ratio, n_ranks * sizeof *ratio);
    plan->n_ops = graph_n_ops(graph);
    plan->segment = g_new0(uint16_t, plan->n_ops);
    for (OpId id = 0; id < plan->n_ops; id++) {
        const Op *op = graph_get_op(graph, id);
        rule[id] = rule_of(graph, id, variant);
        for (uint32_t i = 0; i < op->n_in; i++) {
            bool *known = &loaded[(size_t)op->in[i] * FORM_MAX + rule[id].form[i]];
            if (!*known)
                program_load(plan->program, op->in[i], rule[id].form[i]);
            *known = true;
        }
        program_compute(compute, id, rule[id].form, op->n_in + op->n_out);
    }
    items_each (const Instr, instr, compute->instr, compute->n)
        program_compute(plan->program, instr->op, instr->form,
                        graph_get_op(graph, instr->op)->n_in +
                            graph_get_op(graph, instr->op)->n_out);
    return plan;
}

/* Describes rank r's part of an op: its share of the sharded loop, its FLOPs, its bytes. */
static Measurement describe_op(const ExecProfile *profile, const ExecReplay *replay,
                               const Graph *graph, OpId id, const Rule *rule,
                               uint32_t n_ranks, uint32_t r)
{
    const Op *op = graph_get_op(graph, id);
    g_autoptr(GString) shape = g_string_new(NULL);
    Measurement m = {.op = op->kind, .collective = COLLECTIVES, .ranks = n_ranks};
    double part[OP_MAX_OPERANDS];
    m.share = 1.0 / n_ranks;
    for (uint32_t i = 0; i < op->n_in + op->n_out; i++) {
        const TensorId tensor = i < op->n_in ? op->in[i] : op->out[i - op->n_in];
        const Tensor *t = graph_tensor(graph, tensor);
        const ExecShard *shard = exec_replay_shards(replay, 0, 0, tensor, rule->form[i]);
        part[i] = (double)exec_shard_elements(&shard[r]) / (double)tensor_elements(t);
        if (form_is_gather(rule->form[i]))
            m.share = part[i];
        add_dims(shape, &shard[r]);
    }
    for (uint32_t i = 0; i < op->n_in + op->n_out; i++)
        m.bytes +=
            part[op_cut_with(op, rule->form, i)] * (double)graph_op_bytes(graph, id, i);
    m.flops = rule->flops_replicated + rule->flops_sharded * m.share;
    m.device = g_strdup(profile->device);
    m.shape = g_strdup(shape->str);
    return m;
}

/* Runs the plan and keeps the time of each op on each rank. */
static bool sample_ops(ExecBackend *backend, const ExecProfile *profile, const Plan *plan,
                       ExecReplay *replay, Samples *samples, GError **error)
{
    for (uint32_t run = 0; run < profile->warm_up + profile->repeats; run++) {
        double start = 0;
        exec_backend_maximum(backend, &start, 1); /* a common start */
        if (!exec_replay_run_timed(replay, error))
            return false;
        const double *seconds = exec_replay_seconds(replay);
        for (uint32_t i = 0; run >= profile->warm_up && i < plan->program->n; i++) {
            const Instr *instr = &plan->program->instr[i];
            if (instr->kind == INSTR_COMPUTE)
                samples_at(samples, instr->op, backend->first)[run - profile->warm_up] =
                    seconds[i];
        }
    }
    return true;
}

bool exec_profile_ops(ExecBackend *backend, const ExecProfile *profile,
                      const Graph *graph, const double *ratio, uint32_t variant,
                      GArray *list, GError **error)
{
    const uint32_t n_ops = graph_n_ops(graph), n_ranks = backend->n_ranks;
    g_assert(backend->n_local == 1);
    g_autofree Rule *rule = g_new0(Rule, n_ops);
    g_autoptr(Plan) plan = make_plan(graph, n_ranks, ratio, variant, rule);
    g_autoptr(ExecReplay) replay = exec_replay_new(backend, plan, graph, error);
    if (!replay || !exec_replay_load(replay, profile->seed, error))
        return false;
    Samples samples = samples_new(n_ops, n_ranks, profile->repeats);
    const bool good = sample_ops(backend, profile, plan, replay, &samples, error);
    if (good) {
        samples_share(&samples, backend);
        for (OpId id = 0; id < n_ops; id++)
            for (uint32_t r = 0; r < n_ranks; r++)
                add_row(list,
                        describe_op(profile, replay, graph, id, &rule[id], n_ranks, r),
                        samples_at(&samples, id, r), profile->repeats);
    }
    g_free(samples.value);
    return good;
}

/* --- collectives --- */

/* One collective on one tensor. */
typedef struct {
    Collective kind;
    double share, bytes;
    ExecShard *from, *to; /* [n_ranks] */
} Case;

/* Shards of a tensor that is cut along `dim`, or whole (-1). */
static ExecShard *cut(ExecBackend *backend, const uint32_t dim[2], int along,
                      const double *ratio)
{
    const uint32_t n = backend->n_ranks;
    ExecShard *shard = g_new0(ExecShard, n);
    g_autofree uint32_t *count = g_new0(uint32_t, n);
    uint32_t begin = 0;
    if (along >= 0)
        split_round(ratio, n, dim[along], count);
    for (uint32_t r = 0; r < n; r++) {
        shard[r].rank = 2;
        memcpy(shard[r].dim, dim, 2 * sizeof *dim);
        if (along < 0)
            continue;
        shard[r].dim[along] = count[r];
        shard[r].offset[along] = begin;
        begin += count[r];
    }
    ExecShard *mine = &shard[backend->first];
    mine->data = backend->ops->allocate(backend, 0, exec_shard_elements(mine));
    return shard;
}

static CLEAR_DEFINE(case_clear, Case, c, free_each(c->from, c->to));

static void release_cases(ExecBackend *backend, GArray *cases)
{
    array_each (const Case, c, cases) {
        backend->ops->release(backend, 0, c->from[backend->first].data);
        backend->ops->release(backend, 0, c->to[backend->first].data);
    }
    g_array_unref(cases);
}

/* The forms before and after a collective, each as the dim that is cut, or -1 for the whole
 * tensor. */
static void forms_of(Collective kind, int along, int *from, int *to)
{
    g_assert((int)kind < COLLECTIVES_PRICED);
    const bool scatters =
        kind == COLLECTIVE_REDUCE_SCATTER || kind == COLLECTIVE_GROUPED_REDUCE_SCATTER;
    const bool moves = kind == COLLECTIVE_ALL_TO_ALL;
    *from = kind == COLLECTIVE_ALL_REDUCE || scatters ? -1 : along;
    *to = scatters ? along : moves ? 1 - along : -1;
}

/* Makes a case for every kind and share; an all-reduce cuts nothing, so it has one. False if memory
 * runs out. */
static bool make_cases(ExecBackend *backend, double bytes, const double *share,
                       uint32_t n_shares, GArray *cases)
{
    const uint32_t n = backend->n_ranks;
    enum { COLUMNS_LEAST = 32, WIDE = 1024 };
    const double elements = bytes / sizeof(float);
    const uint32_t columns = elements > (double)WIDE * WIDE ? WIDE : COLUMNS_LEAST;
    const uint32_t dim[2] = {(uint32_t)MAX(elements / columns, n), columns};
    g_autofree double *ratio = g_new(double, n);
    bool good = true;
    for (uint32_t s = 0; s < n_shares; s++) {
        for (uint32_t r = 0; r < n; r++)
            ratio[r] = n == 1 ? 1 : r == 0 ? share[s] : (1 - share[s]) / (n - 1);
        for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++) {
            /* The cases alternate between the two dims. */
            const int along = (int)(s + (uint32_t)ilogb(bytes)) % 2;
            int from, to;
            if (kind == COLLECTIVE_ALL_REDUCE && s > 0)
                continue;
            forms_of((Collective)kind, along, &from, &to);
            Case c = {(Collective)kind, MAX(share[s], ratio[n - 1]),
                      (double)dim[0] * dim[1] * sizeof(float),
                      cut(backend, dim, from, ratio), cut(backend, dim, to, ratio)};
            good = good && c.from[backend->first].data && c.to[backend->first].data;
            g_array_append_val(cases, c);
        }
    }
    return good;
}

static bool sample_cases(ExecBackend *backend, const ExecProfile *profile,
                         const GArray *cases, Samples *samples, GError **error)
{
    for (uint32_t run = 0; run < profile->warm_up + profile->repeats; run++)
        array_at (const Case, c, i, cases) {
            const ExecExchange exchange = {.kind = c->kind, .from = c->from, .to = c->to};
            double start = 0;
            exec_backend_maximum(backend, &start, 1); /* a common start */
            start = exec_backend_seconds(backend);
            if (!backend->ops->exchange(backend, &exchange, error))
                return false;
            exec_backend_synchronise(backend);
            if (run >= profile->warm_up)
                samples_at(samples, i, backend->first)[run - profile->warm_up] =
                    exec_backend_seconds(backend) - start;
        }
    return true;
}

/* Appends one row per case, with the times of the slowest rank in each repeat. */
static void add_cases(const ExecProfile *profile, uint32_t n_ranks, const GArray *cases,
                      Samples *samples, GArray *list)
{
    array_at (const Case, c, i, cases) {
        g_autoptr(GString) shape = g_string_new(NULL);
        double *slowest = samples_at(samples, i, 0);
        for (uint32_t r = 1; r < n_ranks; r++)
            for (uint32_t k = 0; k < samples->repeats; k++)
                slowest[k] = MAX(slowest[k], samples_at(samples, i, r)[k]);
        add_dims(shape, &c->from[0]);
        add_dims(shape, &c->to[0]);
        const Measurement m = {.op = OP_KINDS,
                               .collective = c->kind,
                               .ranks = n_ranks,
                               .share = c->share,
                               .bytes = c->bytes,
                               .device = g_strdup(profile->device),
                               .shape = g_strdup(shape->str)};
        add_row(list, m, slowest, samples->repeats);
    }
}

bool exec_profile_collectives(ExecBackend *backend, const ExecProfile *profile,
                              double bytes, const double *share, uint32_t n_shares,
                              GArray *list, GError **error)
{
    GArray *cases = array_owning(Case, case_clear);
    bool good = make_cases(backend, bytes, share, n_shares, cases) ||
                kilter_fail(error, KILTER_ERROR_FAILED,
                            "no memory for collectives of %.0f bytes", bytes);
    if (good) {
        Samples samples = samples_new(cases->len, backend->n_ranks, profile->repeats);
        good = sample_cases(backend, profile, cases, &samples, error);
        if (good) {
            samples_share(&samples, backend);
            add_cases(profile, backend->n_ranks, cases, &samples, list);
        }
        g_free(samples.value);
    }
    release_cases(backend, cases);
    return good;
}

/* --- joining --- */

static char *key_of(const Measurement *m)
{
    return g_strdup_printf("%s,%s,%s,%u,%.3f", m->device, measurement_kind(m), m->shape,
                           m->ranks, m->share);
}

/* Joins the rows in `same` into the first of them. */
static void join_rows(GArray *list, const GArray *same)
{
    Measurement *first = &g_array_index(list, Measurement, g_array_index(same, guint, 0));
    g_autofree double *median = g_new(double, same->len);
    for (guint i = 0; i < same->len; i++) {
        const Measurement *m =
            &g_array_index(list, Measurement, g_array_index(same, guint, i));
        median[i] = m->median_s;
        first->low_s = MIN(first->low_s, m->low_s);
        first->high_s = MAX(first->high_s, m->high_s);
        first->repeats += i > 0 ? m->repeats : 0;
    }
    first->median_s = exec_spread_of(median, same->len).median_s;
}

void exec_profile_join(GArray *list)
{
    g_autoptr(GHashTable) seen = text_table((GDestroyNotify)g_array_unref);
    g_autoptr(GPtrArray) groups = g_ptr_array_new();
    g_autoptr(GArray) gone = g_array_new(FALSE, FALSE, sizeof(guint));
    for (guint i = 0; i < list->len; i++) {
        char *key = key_of(&g_array_index(list, Measurement, i));
        GArray *same = g_hash_table_lookup(seen, key);
        if (same) {
            g_free(key);
            g_array_append_val(gone, i);
        } else {
            same = g_array_new(FALSE, FALSE, sizeof(guint));
            g_hash_table_insert(seen, key, same);
            g_ptr_array_add(groups, same);
        }
        g_array_append_val(same, i);
    }
    for (guint g = 0; g < groups->len; g++)
        join_rows(list, groups->pdata[g]);
    for (guint i = gone->len; i-- > 0;)
        g_array_remove_index(list, g_array_index(gone, guint, i));
}
