/* Timing a plan's program over repeats. */
#include "exec/measure.h"

#include "data/base/free.h"
#include "data/base/units.h"

#include <stdlib.h>
#include <string.h>

ExecSpread exec_spread_of(double *value, uint32_t n)
{
    g_assert(n > 0);
    qsort(value, n, sizeof *value, number_compare);
    return (ExecSpread){.median_s =
                            n % 2 ? value[n / 2] : (value[n / 2 - 1] + value[n / 2]) / 2,
                        .low_s = value[n / 4],
                        .high_s = value[n - 1 - n / 4]};
}

/* One row per repeat. */
typedef struct {
    uint32_t n_instr, repeats, n_stages;
    double *iteration; /* [repeat] */
    double *seconds;   /* [repeat * n_instr + instruction] */
    uint32_t *stage;   /* [instruction] */
    uint32_t *first;   /* [stage] */
    const Program *program;
} Samples;

static bool is_priced(const Instr *instr)
{
    return instr->kind == INSTR_COLLECTIVE &&
           instr->collective < (Collective)COLLECTIVES_PRICED;
}

static Samples measure_samples_new(const Program *program, uint32_t repeats)
{
    g_assert(repeats > 0);
    Samples s = {.n_instr = program->n, .repeats = repeats, .program = program};
    s.iteration = g_new0(double, repeats);
    s.seconds = g_new0(double, (size_t)repeats * program->n + 1);
    s.stage = g_new0(uint32_t, program->n + 1);
    s.first = g_new0(uint32_t, program->n + 1);
    bool computed = false, any = false;
    items_at (const Instr, instr, i, program->instr, program->n) {
        if (instr->kind == INSTR_LOAD)
            continue;
        const bool priced = is_priced(instr);
        if (!any || (priced && computed))
            s.first[s.n_stages++] = i;
        any = true;
        computed = instr->kind == INSTR_COMPUTE || (computed && !priced);
        s.stage[i] = s.n_stages - 1;
    }
    return s;
}

static CLEAR_DEFINE(samples_clear, Samples, s,
                    free_each(s->iteration, s->seconds, s->stage, s->first));

/* Times one run from a common start: the seconds of the slowest rank. */
static bool time_run(ExecBackend *backend, ExecReplay *replay,
                     bool (*run)(ExecReplay *, GError **), double *spent_s,
                     GError **error)
{
    double start = 0;
    exec_backend_maximum(backend, &start, 1);
    start = exec_backend_seconds(backend);
    if (!run(replay, error))
        return false;
    *spent_s = exec_backend_seconds(backend) - start;
    exec_backend_maximum(backend, spent_s, 1);
    return true;
}

/* Times one iteration and its instructions. A computation takes the time of the slowest rank, a
 * collective the time of the rank that waits least (the largest of the negative times). A backend
 * that computes asynchronously runs once freely, for the iteration, and once more for the
 * instructions. */
static bool sample_run(Samples *s, uint32_t repeat, ExecBackend *backend,
                       ExecReplay *replay, GError **error)
{
    g_assert(repeat < s->repeats);
    double *spent_s = &s->iteration[repeat], unused;
    const bool again = backend->ops->synchronise != NULL;
    if ((again && !time_run(backend, replay, exec_replay_run, spent_s, error)) ||
        !time_run(backend, replay, exec_replay_run_timed, again ? &unused : spent_s,
                  error))
        return false;
    double *row = s->seconds + (size_t)repeat * s->n_instr;
    memcpy(row, exec_replay_seconds(replay), s->n_instr * sizeof *row);
    for (uint32_t i = 0; i < s->n_instr; i++)
        row[i] *= is_priced(&s->program->instr[i]) ? -1 : 1;
    exec_backend_maximum(backend, row, s->n_instr);
    for (uint32_t i = 0; i < s->n_instr; i++)
        row[i] *= is_priced(&s->program->instr[i]) ? -1 : 1;
    return true;
}

/* Which instructions count for a sum. */
typedef struct {
    uint32_t stage;          /* UINT32_MAX: any */
    int priced;              /* 1, 0; -1: either */
    int op_kind, collective; /* -1: any */
} Filter;

static bool measure_counts(const Samples *s, const Graph *graph, uint32_t i,
                           const Filter *filter)
{
    const Instr *instr = &s->program->instr[i];
    if (instr->kind == INSTR_LOAD)
        return false;
    if (filter->op_kind >= 0)
        return instr->kind == INSTR_COMPUTE &&
               (int)graph_get_op(graph, instr->op)->kind == filter->op_kind;
    if (filter->collective >= 0)
        return instr->kind == INSTR_COLLECTIVE &&
               (int)instr->collective == filter->collective;
    return s->stage[i] == filter->stage && is_priced(instr) == (filter->priced == 1);
}

/* The spread over repeats of the time summed over the instructions that pass the filter; *n gets
 * their number. */
static ExecSpread sum_of(const Samples *s, const Graph *graph, Filter filter, uint32_t *n)
{
    g_assert(graph_n_ops(graph) > 0);
    g_autofree double *sum = g_new0(double, s->repeats);
    *n = 0;
    for (uint32_t i = 0; i < s->n_instr; i++) {
        if (!measure_counts(s, graph, i, &filter))
            continue;
        ++*n;
        for (uint32_t r = 0; r < s->repeats; r++)
            sum[r] += s->seconds[(size_t)r * s->n_instr + i];
    }
    return exec_spread_of(sum, s->repeats);
}

static void summarise(const Samples *s, const Graph *graph, ExecMeasurement *m)
{
    uint32_t n;
    m->repeats = s->repeats;
    m->n_stages = s->n_stages;
    m->iteration = exec_spread_of(s->iteration, s->repeats);
    m->stage = g_new0(ExecStage, s->n_stages + 1);
    for (uint32_t k = 0; k < s->n_stages; k++) {
        Filter filter = {.stage = k, .priced = 1, .op_kind = -1, .collective = -1};
        m->stage[k].first = s->first[k];
        m->stage[k].comm = sum_of(s, graph, filter, &n);
        filter.priced = 0;
        m->stage[k].comp = sum_of(s, graph, filter, &n);
    }
    for (int kind = 0; kind < OP_KINDS; kind++)
        m->op[kind].median_s =
            sum_of(s, graph, (Filter){.op_kind = kind, .collective = -1}, &m->op[kind].n)
                .median_s;
    for (int kind = 0; kind < COLLECTIVES; kind++)
        m->collective[kind].median_s =
            sum_of(s, graph, (Filter){.op_kind = -1, .collective = kind},
                   &m->collective[kind].n)
                .median_s;
}

bool exec_measure(ExecBackend *backend, ExecReplay *replay, const Plan *plan,
                  const Graph *graph, ExecRuns runs, ExecMeasurement *measurement,
                  GError **error)
{
    g_assert(runs.repeats > 0);
    *measurement = (ExecMeasurement){0};
    for (uint32_t i = 0; i < runs.warm_up; i++)
        if (!exec_replay_run(replay, error))
            return false;
    exec_backend_memory(backend); /* its peak begins here */
    Samples samples = measure_samples_new(plan->program, runs.repeats);
    bool good = true;
    for (uint32_t r = 0; good && r < runs.repeats; r++)
        good = sample_run(&samples, r, backend, replay, error);
    if (good) {
        summarise(&samples, graph, measurement);
        const ExecMemory memory = exec_backend_memory(backend);
        double bytes[] = {(double)exec_replay_peak(replay)->total,
                          (double)memory.peak_bytes, (double)memory.device_bytes};
        exec_backend_maximum(backend, bytes, G_N_ELEMENTS(bytes));
        measurement->bytes = (uint64_t)bytes[0];
        measurement->memory = (ExecMemory){(uint64_t)bytes[1], (uint64_t)bytes[2]};
    }
    samples_clear(&samples);
    return good;
}

CLEAR_DEFINE(exec_measurement_clear, ExecMeasurement, measurement,
             let_go(measurement->stage, g_free));
