#include "experiments/scorecard/scorecard.h"

#include <gsl/gsl_blas.h>
#include <gsl/gsl_multifit_nlinear.h>
#include <math.h>
#include <string.h>

#include "experiments/planners/complete.h"
#include "experiments/planners/ratios.h"
#include "experiments/scorecard/trial_plan.h"
#include "synth/synth.h"

const char *score_parameter_text(ScoreParameter parameter)
{
    static const char *const text[] = {
#define X(id, name, unit) name,
        SCORE_PARAMETERS(X)
#undef X
    };
    return text[parameter];
}

const char *score_parameter_unit(ScoreParameter parameter)
{
    static const char *const text[] = {
#define X(id, name, unit) unit,
        SCORE_PARAMETERS(X)
#undef X
    };
    return text[parameter];
}

void score_clear(Score *score)
{
    g_clear_pointer(&score->predicted_s, g_free);
    g_clear_pointer(&score->detail, g_free);
}

const char *score_fidelity(const Trial *trial)
{
    return *trial->planner ? "flow" : "stage";
}

/* --- a trial as a plan --- */

typedef struct {
    const Trial *trial;
    Graph *graph;
    Plan *plan;
    SimOptions options;
} Prepared;

static void prepared_clear(Prepared *prepared)
{
    plan_free(prepared->plan);
    graph_free(prepared->graph);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Prepared, prepared_clear)

/* Elements of an output that a processor makes at a time. */
enum { TILE = 128 * 128 };

static OpCost op_cost(const Trial *trial, const double *parameter, OpKind kind)
{
    OpCost cost = {.rate = parameter[SCORE_RATE],
                   .bandwidth = parameter[SCORE_BANDWIDTH],
                   .overhead_s = trial->overhead_s,
                   .launch_s = parameter[SCORE_LAUNCH],
                   .wave = trial->processors * TILE,
                   .largest = INFINITY};
    if (kind == OP_ATTENTION || kind == OP_ATTENTION_DX)
        cost.bandwidth = parameter[SCORE_ATTENTION];
    if (op_kind_is_view(kind)) {
        cost.bandwidth = INFINITY;
        cost.overhead_s = 0;
    }
    return cost;
}

static DeviceType device_type(const Trial *trial, const double *parameter)
{
    DeviceType type = {.name = g_strdup(trial->device),
                       .rate = parameter[SCORE_RATE],
                       .memory_bytes = (uint64_t)trial->memory_bytes,
                       .source = g_strdup("fitted"),
                       .slowdown = fmax(trial->slowdown, 1), /* NAN: none */
                       .launch_s = parameter[SCORE_LAUNCH],
                       .op = g_new(OpCost, OP_KINDS)};
    for (uint32_t k = 0; k < OP_KINDS; k++)
        type.op[k] = op_cost(trial, parameter, (OpKind)k);
    return type;
}

static Cluster *cluster_of(const Trial *trial, const double *parameter)
{
    Cluster *cluster = g_new0(Cluster, 1);
    const LinkCost inner = {parameter[SCORE_INNER_LATENCY],
                            parameter[SCORE_INNER_BANDWIDTH]},
                   outer = {parameter[SCORE_OUTER_LATENCY],
                            parameter[SCORE_OUTER_BANDWIDTH]};
    cluster->name = g_strdup("scorecard");
    cluster->n_types = 1;
    cluster->type = g_new(DeviceType, 1);
    cluster->type[0] = device_type(trial, parameter);
    cluster->n_machines = trial->machines;
    cluster->machine = g_new0(Machine, trial->machines);
    for (uint32_t i = 0; i < trial->machines; i++)
        cluster->machine[i] = (Machine){.name = g_strdup_printf("machine-%u", i),
                                        .gpus = trial->gpus,
                                        .inner = inner};
    for (uint32_t kind = 0; kind < COLLECTIVES_PRICED; kind++)
        cluster->collective[kind] = trial->machines > 1 ? outer : inner;
    return cluster;
}

/* First layers of the stages: those given, or equally many of the layers between the first and the
 * last one. Caller frees. */
static uint32_t *stage_cuts(const Trial *trial, const Graph *graph, GError **error)
{
    const uint32_t n_stages = trial->pp * trial->chunks, n_layers = graph_n_layers(graph);
    g_auto(GStrv) given = g_strsplit(trial->cuts, " ", -1);
    g_autofree uint32_t *first = g_new0(uint32_t, n_stages + 1);
    first[n_stages] = n_layers;
    for (uint32_t s = 1; s < n_stages; s++)
        first[s] = *trial->cuts && s <= g_strv_length(given)
                       ? (uint32_t)g_ascii_strtoull(given[s - 1], NULL, 10)
                       : 1 + s * (n_layers - 2) / n_stages;
    for (uint32_t s = 0; s < n_stages; s++)
        if (first[s] >= first[s + 1]) {
            kilter_fail(error, KILTER_ERROR_INPUT,
                        "%s: stage %u has no layer (cuts '%s', %u layers)", trial->model,
                        s, trial->cuts, n_layers);
            return NULL;
        }
    return g_steal_pointer(&first);
}

/* Ranks in Megatron's order: tensor parallelism innermost, then replicas, then stages. */
static Program *program_of(const Trial *trial, const Graph *graph,
                           const ClusterView *view, GError **error)
{
    g_autofree uint32_t *first = stage_cuts(trial, graph, error);
    g_autofree uint32_t *device = g_new(uint32_t, view->n_devices);
    for (uint32_t j = 0; j < view->n_devices; j++)
        device[j] = j;
    const AmpStrategy strategy = {.pp = trial->pp,
                                  .dp = trial->dp,
                                  .tmp = trial->tmp,
                                  .mbs = trial->mbs,
                                  .chunks = trial->chunks,
                                  .first = first,
                                  .device = device};
    const AmpOptions options = {.schedule = trial->chunks > 1 ? SCHEDULE_INTERLEAVED
                                                              : SCHEDULE_1F1B,
                                .chunks = trial->chunks,
                                .recompute = trial->recompute};
    if (first && trial->pp * trial->dp * trial->tmp != view->n_devices) {
        kilter_fail(error, KILTER_ERROR_INPUT, "%s: %u x %u x %u ranks on %u GPUs",
                    trial->model, trial->pp, trial->dp, trial->tmp, view->n_devices);
        return NULL;
    }
    return first ? synth_amp_program(graph, view, &options, &strategy, error) : NULL;
}

static bool prepare(const Trial *trial, const double *parameter, Prepared *prepared,
                    GError **error)
{
    *prepared = (Prepared){.trial = trial};
    sim_options_init(&prepared->options);
    prepared->options.host = SIM_HOST_WAITS;
    g_autoptr(Cluster) cluster = cluster_of(trial, parameter);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    if (*trial->planner) {
        prepared->plan =
            trial_plan(trial, view, &prepared->graph, &prepared->options, error);
        return prepared->plan != NULL;
    }
    prepared->graph = model_build(trial->model, view->n_devices, NULL, error);
    Program *program =
        prepared->graph ? program_of(trial, prepared->graph, view, error) : NULL;
    if (!program)
        return false;
    g_autofree double *even = ratios_even(view);
    prepared->plan = plan_new();
    plan_set(prepared->plan, prepared->graph, view, program, even);
    return true;
}

static ScoreDetail detail_of(const SimReport *report)
{
    ScoreDetail detail = {0};
    for (uint32_t j = 0; j < report->n_devices; j++) {
        detail.peak_bytes = fmax(detail.peak_bytes, (double)report->memory_bytes[j]);
        detail.comm_s +=
            (report->comm_busy_s[j] + report->hidden_s[j]) / report->n_devices;
        detail.hidden_s += report->hidden_s[j] / report->n_devices;
    }
    return detail;
}

/* detail: NULL if it is not asked for. */
static bool predict(const Prepared *prepared, const double *parameter, double *time_s,
                    ScoreDetail *detail, GError **error)
{
    SimOptions options = prepared->options;
    options.time_only = !detail;
    g_autoptr(Cluster) cluster = cluster_of(prepared->trial, parameter);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    g_autoptr(SimReport) report =
        sim_evaluate_with(prepared->plan, prepared->graph, view,
                          score_fidelity(prepared->trial), &options, error);
    if (!report)
        return false;
    *time_s = report->iteration_time_s;
    if (detail)
        *detail = detail_of(report);
    return true;
}

/* --- work shared by threads --- */

typedef struct {
    const TrialSet *set;
    const uint32_t *index; /* trials to do, */
    uint32_t n;
    Prepared *prepared; /* [n]: as they are, or NULL: made and freed one by one */
    const double *parameter;
    double *time_s;      /* [n] */
    ScoreDetail *detail; /* [n], or NULL */
    gint next;
    GMutex lock;
    GError *error; /* the first */
} Work;

static bool work_one(Work *work, uint32_t i, GError **error)
{
    if (work->prepared)
        return predict(&work->prepared[i], work->parameter, &work->time_s[i],
                       work->detail ? &work->detail[i] : NULL, error);
    g_auto(Prepared) prepared = {0};
    return prepare(&g_array_index(work->set->trial, Trial, work->index[i]),
                   work->parameter, &prepared, error) &&
           predict(&prepared, work->parameter, &work->time_s[i], &work->detail[i], error);
}

static gpointer work_thread(gpointer data)
{
    Work *work = data;
    uint32_t i;
    while ((i = (uint32_t)g_atomic_int_add(&work->next, 1)) < work->n) {
        g_autoptr(GError) trouble = NULL;
        const bool good = work_one(work, i, &trouble);
        g_mutex_lock(&work->lock);
        if (!good && !work->error)
            work->error = g_steal_pointer(&trouble);
        if (!good)
            g_atomic_int_set(&work->next, (gint)work->n);
        g_mutex_unlock(&work->lock);
    }
    return NULL;
}

static bool work_run(Work *work, uint32_t threads, GError **error)
{
    const uint32_t n = MIN(threads ? threads : g_get_num_processors(), MAX(work->n, 1));
    g_autofree GThread **thread = g_new(GThread *, n);
    g_mutex_init(&work->lock);
    work->next = 0;
    for (uint32_t i = 0; i < n; i++)
        thread[i] = g_thread_new("score", work_thread, work);
    for (uint32_t i = 0; i < n; i++)
        g_thread_join(thread[i]);
    g_mutex_clear(&work->lock);
    if (!work->error)
        return true;
    g_propagate_error(error, g_steal_pointer(&work->error));
    return false;
}

/* --- the fit --- */

/* Beyond this a residual counts less: Huber's bound, in log(predicted / measured). */
#define HUBER_BOUND 0.1
/* What is expected of effective numbers: within about a factor of 2 of where the fit starts. A
 * trial is expected to be met within 10 %. So few trials leave a parameter where it is. */
#define PRIOR_WIDTH    0.7
#define EXPECTED_ERROR 0.1

typedef struct {
    Work work;
    uint32_t threads;
    const double *measured_s;         /* [work.n] */
    double *weight;                   /* [work.n] */
    double start[SCORE_N_PARAMETERS]; /* logarithms */
    GError *error;
} Fit;

/* x: logarithms of the parameters. */
static int residuals(const gsl_vector *x, void *data, gsl_vector *f)
{
    Fit *fit = data;
    double parameter[SCORE_N_PARAMETERS];
    for (uint32_t p = 0; p < SCORE_N_PARAMETERS; p++)
        parameter[p] = exp(gsl_vector_get(x, p));
    fit->work.parameter = parameter;
    const bool good = !fit->error && work_run(&fit->work, fit->threads, &fit->error);
    fit->work.parameter = NULL;
    if (!good)
        return GSL_EFAILED;
    for (uint32_t i = 0; i < fit->work.n; i++)
        gsl_vector_set(
            f, i, sqrt(fit->weight[i]) * log(fit->work.time_s[i] / fit->measured_s[i]));
    for (uint32_t p = 0; p < SCORE_N_PARAMETERS; p++)
        gsl_vector_set(f, fit->work.n + p,
                       EXPECTED_ERROR / PRIOR_WIDTH *
                           (gsl_vector_get(x, p) - fit->start[p]));
    return GSL_SUCCESS;
}

/* Down-weights what the last solution is far from. */
static void reweigh(Fit *fit)
{
    for (uint32_t i = 0; i < fit->work.n; i++) {
        const double off = fabs(log(fit->work.time_s[i] / fit->measured_s[i]));
        fit->weight[i] = off > HUBER_BOUND ? HUBER_BOUND / off : 1;
    }
}

/* Where a fit begins: the launch is that many times what is expected. Hidden launches have no
 * slope, so that one begins high. */
static const double LAUNCH_STARTS[] = {1, 3};

/* Minimizes from fit->start with another launch; `parameter` gets the minimum, fit->work.time_s its
 * times. */
static bool solve(Fit *fit, double launch, double *parameter, GError **error)
{
    enum { ROUNDS = 2, STEPS = 8 };
    gsl_multifit_nlinear_parameters how = gsl_multifit_nlinear_default_parameters();
    /* Simulated times are exact, but a max over paths: differences of a percent say more than tiny
     * ones. */
    how.h_df = 1e-3;
    gsl_multifit_nlinear_workspace *solver =
        gsl_multifit_nlinear_alloc(gsl_multifit_nlinear_trust, &how,
                                   fit->work.n + SCORE_N_PARAMETERS, SCORE_N_PARAMETERS);
    gsl_multifit_nlinear_fdf problem = {.f = residuals,
                                        .n = fit->work.n + SCORE_N_PARAMETERS,
                                        .p = SCORE_N_PARAMETERS,
                                        .params = fit};
    gsl_vector *x = gsl_vector_alloc(SCORE_N_PARAMETERS);
    for (uint32_t p = 0; p < SCORE_N_PARAMETERS; p++)
        gsl_vector_set(x, p, fit->start[p] + (p == SCORE_LAUNCH ? log(launch) : 0));
    for (uint32_t i = 0; i < fit->work.n; i++)
        fit->weight[i] = 1;
    for (uint32_t round = 0; round < ROUNDS && !fit->error; round++) {
        int info;
        gsl_multifit_nlinear_init(x, &problem, solver);
        gsl_multifit_nlinear_driver(STEPS, 1e-3, 1e-3, 1e-4, NULL, NULL, &info, solver);
        gsl_vector_memcpy(x, gsl_multifit_nlinear_position(solver));
        residuals(x, fit, gsl_multifit_nlinear_residual(solver));
        reweigh(fit);
    }
    for (uint32_t p = 0; p < SCORE_N_PARAMETERS; p++)
        parameter[p] = exp(gsl_vector_get(x, p));
    gsl_vector_free(x);
    gsl_multifit_nlinear_free(solver);
    if (fit->error)
        g_propagate_error(error, g_steal_pointer(&fit->error));
    return !fit->error;
}

/* The best of all starts, by what it leaves of the calibration trials. */
static bool solve_best(Fit *fit, Score *score, GError **error)
{
    double parameter[SCORE_N_PARAMETERS];
    for (uint32_t p = 0; p < SCORE_N_PARAMETERS; p++)
        fit->start[p] = log(score->parameter[p]);
    for (uint32_t s = 0; s < G_N_ELEMENTS(LAUNCH_STARTS); s++) {
        if (!solve(fit, LAUNCH_STARTS[s], parameter, error))
            return false;
        const Agreement agreement =
            statistics_agreement(fit->work.time_s, fit->measured_s, fit->work.n);
        if (s > 0 && agreement.mape >= score->calibration.mape)
            continue;
        score->calibration = agreement;
        memcpy(score->parameter, parameter, sizeof parameter);
    }
    return true;
}

/* Trials of a split that were measured, at most `most` of them, evenly chosen. */
static GArray *choose(const TrialSet *set, bool calibration, bool measured, uint32_t most)
{
    g_autoptr(GArray) all = g_array_new(false, false, sizeof(uint32_t));
    for (uint32_t i = 0; i < set->trial->len; i++) {
        const Trial *trial = &g_array_index(set->trial, Trial, i);
        if (trial->calibration == calibration &&
            (!measured || isfinite(trial->measured_s)))
            g_array_append_val(all, i);
    }
    if (most == 0 || all->len <= most)
        return g_steal_pointer(&all);
    GArray *some = g_array_new(false, false, sizeof(uint32_t));
    for (uint32_t i = 0; i < most; i++)
        g_array_append_val(some,
                           g_array_index(all, uint32_t, (guint64)i * all->len / most));
    return some;
}

static double *measured_times(const TrialSet *set, const GArray *index)
{
    double *time = g_new(double, index->len);
    for (uint32_t i = 0; i < index->len; i++)
        time[i] = g_array_index(set->trial, Trial, g_array_index(index, uint32_t, i))
                      .measured_s;
    return time;
}

static bool calibrate_trials(const TrialSet *set, const ScoreOptions *options,
                             Score *score, GError **error)
{
    g_autoptr(GArray) index = choose(set, true, true, options->max_fitted);
    if (index->len == 0)
        return true;
    const uint32_t n = index->len;
    g_autofree double *measured = measured_times(set, index);
    g_autofree Prepared *prepared = g_new0(Prepared, n);
    Fit fit = {.threads = options->threads, .measured_s = measured};
    fit.work = (Work){.set = set, .n = n, .prepared = prepared};
    fit.work.time_s = g_new0(double, n);
    fit.weight = g_new(double, n);
    bool good = true;
    for (uint32_t i = 0; good && i < n; i++)
        good =
            prepare(&g_array_index(set->trial, Trial, g_array_index(index, uint32_t, i)),
                    score->parameter, &prepared[i], error);
    g_autofree ScoreDetail *detail = g_new0(ScoreDetail, n);
    good = good && solve_best(&fit, score, error);
    fit.work.parameter = score->parameter;
    fit.work.detail = detail;
    good = good && work_run(&fit.work, options->threads, error);
    score->n_fitted = n;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t t = g_array_index(index, uint32_t, i);
        score->predicted_s[t] = fit.work.time_s[i];
        score->detail[t] = detail[i];
        prepared_clear(&prepared[i]);
    }
    g_free(fit.work.time_s);
    g_free(fit.weight);
    return good;
}

/* --- the test --- */

/* Mean regret over the contests of measured test trials. */
static double mean_regret(const TrialSet *set, const GArray *index, const double *time_s)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    double sum = 0;
    uint32_t contests = 0;
    for (uint32_t i = 0; i < index->len; i++) {
        const char *contest =
            g_array_index(set->trial, Trial, g_array_index(index, uint32_t, i)).contest;
        if (!g_hash_table_add(seen, (gpointer)contest))
            continue;
        g_autoptr(GArray) predicted = g_array_new(false, false, sizeof(double)),
                          measured = g_array_new(false, false, sizeof(double));
        for (uint32_t k = i; k < index->len; k++) {
            const Trial *trial =
                &g_array_index(set->trial, Trial, g_array_index(index, uint32_t, k));
            if (strcmp(trial->contest, contest) != 0 || !isfinite(trial->measured_s))
                continue;
            g_array_append_val(predicted, time_s[k]);
            g_array_append_val(measured, trial->measured_s);
        }
        if (measured->len < 2)
            continue;
        sum += statistics_regret((double *)predicted->data, (double *)measured->data,
                                 measured->len);
        contests++;
    }
    return contests ? sum / contests : NAN;
}

/* Agreement of the peaks that were measured. */
static Agreement judge_memory(const TrialSet *set, const GArray *index,
                              const ScoreDetail *detail)
{
    g_autoptr(GArray) predicted = g_array_new(false, false, sizeof(double)),
                      measured = g_array_new(false, false, sizeof(double));
    for (uint32_t i = 0; i < index->len; i++) {
        const Trial *trial =
            &g_array_index(set->trial, Trial, g_array_index(index, uint32_t, i));
        if (!isfinite(trial->measured_bytes))
            continue;
        g_array_append_val(predicted, detail[i].peak_bytes);
        g_array_append_val(measured, trial->measured_bytes);
    }
    return statistics_agreement((double *)predicted->data, (double *)measured->data,
                                measured->len);
}

static void judge(const TrialSet *set, const GArray *index, const Work *work,
                  Score *score)
{
    g_autoptr(GArray) predicted = g_array_new(false, false, sizeof(double)),
                      measured = g_array_new(false, false, sizeof(double));
    for (uint32_t i = 0; i < index->len; i++) {
        const uint32_t t = g_array_index(index, uint32_t, i);
        const Trial *trial = &g_array_index(set->trial, Trial, t);
        score->predicted_s[t] = work->time_s[i];
        score->n_memory++;
        score->detail[t] = work->detail[i];
        score->n_memory_right +=
            (work->detail[i].peak_bytes <= trial->memory_bytes) != trial->failed;
        if (!isfinite(trial->measured_s))
            continue;
        g_array_append_val(predicted, work->time_s[i]);
        g_array_append_val(measured, trial->measured_s);
    }
    score->test = statistics_agreement((double *)predicted->data,
                                       (double *)measured->data, measured->len);
    score->regret = mean_regret(set, index, work->time_s);
    score->memory = judge_memory(set, index, work->detail);
}

/* Predicts the trials of `index` with the score's parameters and judges them. */
static bool predict_trials(const TrialSet *set, const GArray *index,
                           const ScoreOptions *options, Score *score, GError **error)
{
    g_autofree double *time_s = g_new0(double, index->len + 1);
    g_autofree ScoreDetail *detail = g_new0(ScoreDetail, index->len + 1);
    Work work = {.set = set,
                 .index = (const uint32_t *)(void *)index->data,
                 .n = index->len,
                 .parameter = score->parameter,
                 .time_s = time_s,
                 .detail = detail};
    if (!work_run(&work, options->threads, error))
        return false;
    judge(set, index, &work, score);
    return true;
}

static bool is_fitted(const TrialSet *set)
{
    for (uint32_t i = 0; i < set->trial->len; i++)
        if (g_array_index(set->trial, Trial, i).calibration)
            return true;
    return false;
}

/* Effective rates are some way below the data sheet's. Attention that is not fused writes and reads
 * its scores, masked scores, probabilities and dropped probabilities: about four times what an op
 * does with its operands. A set that is not fitted has measured both. */
static void score_start(const TrialSet *set, Score *score)
{
    const bool fitted = is_fitted(set);
    const double start[SCORE_N_PARAMETERS] = {
        [SCORE_LAUNCH] = set->launch_s,
        [SCORE_RATE] = fitted ? set->rate / 2 : set->rate,
        [SCORE_BANDWIDTH] = set->bandwidth,
        [SCORE_ATTENTION] = fitted ? set->bandwidth / 4 : set->attention,
        [SCORE_INNER_LATENCY] = set->latency_s,
        [SCORE_INNER_BANDWIDTH] = set->inner,
        [SCORE_OUTER_LATENCY] = set->latency_s,
        [SCORE_OUTER_BANDWIDTH] = set->outer};
    *score = (Score){.predicted_s = g_new(double, set->trial->len + 1),
                     .detail = g_new0(ScoreDetail, set->trial->len + 1)};
    for (uint32_t i = 0; i < set->trial->len; i++)
        score->predicted_s[i] = NAN;
    memcpy(score->parameter, start, sizeof start);
}

bool score_evaluate(const TrialSet *set, const ScoreOptions *options, Score *score,
                    GError **error)
{
    g_autoptr(GArray) all = g_array_new(false, false, sizeof(uint32_t));
    for (uint32_t i = 0; i < set->trial->len; i++)
        g_array_append_val(all, i);
    score_start(set, score);
    return predict_trials(set, all, options, score, error);
}

bool score_trials(const TrialSet *set, const ScoreOptions *options, Score *score,
                  GError **error)
{
    g_autoptr(GArray) test = choose(set, false, false, 0);
    score_start(set, score);
    return calibrate_trials(set, options, score, error) &&
           predict_trials(set, test, options, score, error);
}
