/* kilter memory. */
#include "data/base/json.h"
#include "data/base/names.h"
#include "data/base/output.h"
#include "data/base/units.h"
#include "data/formats/measured/memory_snapshot.h"
#include "data/models/model.h"
#include "experiments/answers.h"
#include "experiments/answers/evaluation_report.h"
#include "experiments/answers/plan_words.h"
#include "experiments/cli/command.h"
#include "experiments/cli/limits.h"

#include <string.h>
#include <time.h>

/* --- the most that fits --- */

/* Numbers beyond are no sizes of models. */
static const uint64_t MOST = UINT64_C(1) << 40;
enum { SEQ_STEP = 128 };

typedef struct {
    const CommandPlanning *how;
    char **argv;
    const char *key;
    char *model; /* with every parameter */
    const CommandOptions *options;
    bool said;                        /* that it takes long */
    uint64_t step, gpus, micro_batch; /* as asked for; 0: not micro_batch */
    /* the largest value that fits with its plan, and the least known that does not */
    uint64_t fits, misfit;
    uint64_t missing_bytes, peak_bytes; /* the peak of the plan that fits */
    Evaluation *best;
} Most;

/* --- values in a model's text --- */

/* The value of a parameter in "name:key=value,..."; NULL: it has none. Caller frees. */
static char *most_parameter_of(const char *model, const char *key)
{
    g_autoptr(Spec) spec = spec_read_pairs(model_spec_list(model));
    const uint32_t i = TEXT_PLACE(spec->key, spec->n, key);
    return i < spec->n ? g_strdup(spec->value[i]) : NULL;
}

/* The model with another value of a parameter that it has. Caller frees. */
static char *most_model_with(const char *model, const char *key, uint64_t value)
{
    const char *list = model_spec_list(model);
    g_autoptr(GString) text = g_string_new_len(model, list - model);
    g_autoptr(Spec) spec = spec_read_pairs(list);
    g_autofree char *number = g_strdup_printf("%" G_GUINT64_FORMAT, value);
    for (uint32_t i = 0; i < spec->n; i++)
        g_string_append_printf(text, "%s%s=%s", i > 0 ? "," : "", spec->key[i],
                               strcmp(spec->key[i], key) == 0 ? number : spec->value[i]);
    return g_string_free(g_steal_pointer(&text), FALSE);
}

/* The model whose batch is `value` microbatches' worth for each that it had. */
static char *most_model_of_micro_batch(const Most *m, uint64_t value)
{
    char *model = g_strdup(m->model);
    static const char *const batch[] = {"batch", "global_batch"};
    for (uint32_t i = 0; i < G_N_ELEMENTS(batch); i++) {
        g_autofree char *had = most_parameter_of(m->model, batch[i]), *old = model;
        const uint64_t samples = had ? g_ascii_strtoull(had, NULL, 10) : 0;
        model = samples > 0
                    ? most_model_with(model, batch[i], samples * value / m->micro_batch)
                    : g_strdup(model);
    }
    return model;
}

/* The model at a value of the key; `batch` is of each GPU, also where the whole batch was given. */
static char *most_model_at(const Most *m, uint64_t value)
{
    if (m->micro_batch > 0)
        return most_model_of_micro_batch(m, value);
    char *model = most_model_with(m->model, m->key, value);
    if (strcmp(m->key, "batch") == 0) {
        g_autofree char *one = model;
        model = most_model_with(one, "global_batch", value * m->gpus);
    }
    return model;
}

/* --- one plan --- */

/* Keeps the first `gpus` GPUs. */
static bool most_keep_gpus(Cluster *cluster, uint64_t gpus, GError **error)
{
    const uint32_t n = cluster_gpus(cluster);
    g_autofree bool *keep = g_new0(bool, n);
    for (uint32_t i = 0; i < n; i++)
        keep[i] = i < gpus;
    return gpus >= n || cluster_keep_gpus(cluster, keep, error);
}

/* gpus 0: all. Says once that a search takes long, when its first plans did. */
static bool most_evaluate_at(Most *m, const char *model, uint64_t gpus,
                             const PlannerOptions *options, Evaluation *evaluation,
                             GError **error)
{
    static const double LONG_S = 5;
    g_auto(CommandSetting) setting = {0};
    if (!m->said && (double)clock() / CLOCKS_PER_SEC > LONG_S) {
        limits_note("--most %s: each plan is made anew, which may take minutes", m->key);
        m->said = true;
    }
    if (!command_setting(m->how, m->argv[2], &setting, error) ||
        (gpus > 0 && !most_keep_gpus(setting.cluster, gpus, error)))
        return false;
    const ConfigurationAsk ask = {.model = model,
                                  .cluster_name = m->argv[2],
                                  .cluster = setting.cluster,
                                  .granularity = setting.granularity,
                                  .planner = setting.planner,
                                  .options = options};
    g_autoptr(Configuration) configuration = configuration_new(&ask, error);
    if (!configuration || !configuration_evaluate(configuration, evaluation, error))
        return false;
    evaluation->cluster = g_steal_pointer(&setting.cluster);
    return true;
}

/* Whether the plan at that value fits; the largest that does is kept. A value for which nothing
 * fits fails no more. Says once that a search takes long, when its first plans did. */
static bool most_try_value(Most *m, uint64_t value, bool *fits, GError **error)
{
    g_auto(Evaluation) evaluation = {0};
    g_autoptr(GError) wrong = NULL;
    PlannerOptions options = m->options->planner;
    if (m->micro_batch > 0)
        options.strategy.micro_batch = (uint32_t)value;
    g_autofree char *model = most_model_at(m, value);
    const bool done = most_evaluate_at(m, model, 0, &options, &evaluation, &wrong);
    if (!done && wrong->code != KILTER_ERROR_INFEASIBLE) {
        g_propagate_prefixed_error(error, g_steal_pointer(&wrong),
                                   "--most %s: with %" G_GUINT64_FORMAT ": ", m->key,
                                   value);
        return false;
    }
    *fits = done && evaluation.report->feasible;
    if (*fits) {
        m->fits = value;
        m->peak_bytes = evaluation.report->memory_bytes[evaluation.report->worst_device];
        evaluation_clear(m->best);
        *m->best = evaluation;
        evaluation = (Evaluation){0};
    } else {
        m->misfit = value;
        m->missing_bytes = done ? evaluation.report->missing_bytes : 0;
    }
    return true;
}

/* --- searches --- */

static bool most_find_largest(Most *m, GError **error)
{
    enum { NO_MORE = 8 };             /* larger ones that take no more memory */
    static const double GROWS = 1.01; /* inputs of further microbatches are small */
    bool fits = true;
    uint32_t same = 0;
    for (uint64_t at = m->step; fits && same < NO_MORE && at <= MOST; at = 2 * m->fits) {
        const uint64_t peak = m->peak_bytes;
        if (!most_try_value(m, at, &fits, error))
            return false;
        same = fits && (double)m->peak_bytes <= GROWS * (double)peak ? same + 1 : 0;
    }
    g_autofree char *lacks = units_format((double)m->missing_bytes, QUANTITY_BYTES);
    if (m->fits == 0)
        return kilter_fail(error, KILTER_ERROR_INFEASIBLE,
                           "--most %s: not even %" G_GUINT64_FORMAT " fits%s%s", m->key,
                           m->misfit, m->missing_bytes > 0 ? "; it lacks " : "",
                           m->missing_bytes > 0 ? lacks : "");
    if (m->misfit == 0)
        return refuse(error,
                      "--most %s: expected a number that takes memory: %" G_GUINT64_FORMAT
                      " takes no more than half of it, maybe in more microbatches (see "
                      "--most micro_batch)",
                      m->key, m->fits);
    while (m->misfit - m->fits > m->step)
        if (!most_try_value(m, m->fits + (m->misfit - m->fits) / m->step / 2 * m->step,
                            &fits, error))
            return false;
    return true;
}

/* Each number of the first machine's GPUs, then whole machines; sizes for which the strategy is
 * impossible are passed over. */
static bool most_find_fewest(Most *m, GError **error)
{
    g_auto(CommandSetting) setting = {0};
    g_autoptr(GError) last = NULL;
    if (!command_setting(m->how, m->argv[2], &setting, error))
        return false;
    const Cluster *cluster = setting.cluster;
    const uint32_t first = cluster->machine[0].gpus, n = cluster_gpus(cluster);
    uint32_t gpus = 1, machine = 0;
    while (gpus <= n) {
        g_auto(Evaluation) evaluation = {0};
        g_clear_error(&last);
        if (most_evaluate_at(m, m->argv[1], gpus, &m->options->planner, &evaluation,
                             &last)) {
            if (evaluation.report->feasible) {
                m->fits = gpus;
                *m->best = evaluation;
                evaluation = (Evaluation){0};
                return true;
            }
            m->misfit = gpus;
            m->missing_bytes = evaluation.report->missing_bytes;
        } else if (last->code == KILTER_ERROR_INFEASIBLE) {
            m->misfit = gpus;
            m->missing_bytes = 0;
        }
        gpus = gpus < first ? gpus + 1
               : machine + 1 < cluster->n_machines
                   ? gpus + cluster->machine[++machine].gpus
                   : n + 1;
    }
    if (m->misfit == 0)
        return g_propagate_error(error, g_steal_pointer(&last)), false;
    return kilter_fail(error, KILTER_ERROR_INFEASIBLE,
                       "--most gpus: not even all %u GPUs are enough", n);
}

/* Takes the meaning of the key for the model, which needs not fit as given. */
static bool most_prepare(Most *m, GError **error)
{
    const Strategy *strategy = &m->options->planner.strategy;
    g_auto(CommandSetting) setting = {0};
    g_autofree char *content = NULL;
    if (!command_setting(m->how, m->argv[2], &setting, error))
        return false;
    m->gpus = cluster_gpus(setting.cluster);
    m->model = model_resolve(m->argv[1], (uint32_t)m->gpus, &content, error);
    if (!m->model)
        return false;
    m->step = strcmp(m->key, "seq") == 0 ? SEQ_STEP : 1;
    if (strcmp(m->key, "micro_batch") == 0) {
        m->micro_batch = MAX(strategy->micro_batch, 1);
        return true;
    }
    if (strcmp(m->key, "batch") == 0)
        m->step = MAX(strategy->micro_batch, 1);
    if (strcmp(m->key, "global_batch") == 0)
        m->step = m->gpus * MAX(strategy->micro_batch, 1);
    g_autofree char *value = most_parameter_of(m->model, m->key);
    return (value && g_ascii_string_to_unsigned(value, 10, 0, MOST, NULL, NULL)) ||
           refuse(error,
                  "--most %s: expected gpus, micro_batch, or a number of %s, such as "
                  "batch or seq",
                  m->key, m->model);
}

/* Finds the largest `key` with which MODEL fits CLUSTER by the same planner, by doubling and
 * halving: a parameter of the model that is a count (batch, global_batch, layers, ...), seq in
 * steps of 128, or micro_batch, with which the batch grows so that the number of microbatches
 * stays. "gpus": the fewest GPUs, from one of the first machine up to all machines. *evaluation: of
 * that plan; *found: {"key", "value", "beyond", "missing_bytes"}: the next value that was tried and
 * does not fit (null: none). KILTER_ERROR_INPUT names the key; KILTER_ERROR_INFEASIBLE if no value
 * fits. */
static bool memory_most(const CommandPlanning *how, char **argv, const char *key,
                        const CommandOptions *options, Evaluation *evaluation,
                        json_t **found, GError **error)
{
    Most m = {
        .how = how, .argv = argv, .key = key, .options = options, .best = evaluation};
    const bool fewest = strcmp(key, "gpus") == 0;
    const bool done = fewest ? most_find_fewest(&m, error)
                             : most_prepare(&m, error) && most_find_largest(&m, error);
    g_free(m.model);
    if (!done)
        return false;
    *found =
        json_pack("{s:s, s:I, s:o, s:I}", "key", key, "value", (json_int_t)m.fits,
                  "beyond", m.misfit ? json_integer((json_int_t)m.misfit) : json_null(),
                  "missing_bytes", (json_int_t)m.missing_bytes);
    return true;
}

#define MEMORY_OPTIONS(X)            \
    X(TEXT, most, "most", 0)         \
    X(TEXT, effort, "effort", 0)     \
    X(TEXT, fidelity, "fidelity", 0) \
    X(FILE, snapshot, "snapshot", 0) \
    X(FILE, measured, "measured", 0) \
    X(PLANNING, how)                 \
    X(CHANGES, how)                  \
    X(PINS, options)
COMMAND_OPTIONS(MemoryOwn, memory_own, MEMORY_OPTIONS)

/* Writes the blocks of the rank of each row of `peaks`. */
static bool memory_write_snapshot(const Evaluation *evaluation, const json_t *peaks,
                                  const char *file, GError **error)
{
    g_autoptr(GArray) block = g_array_new(false, false, sizeof(SnapshotBlock));
    elements_each (peak, peaks)
        if (!sim_memory_blocks(
                evaluation->plan, evaluation->graph, evaluation->view,
                evaluation->report->runtime,
                (uint32_t)json_integer_value(json_object_get(peak, "rank")), block,
                error))
            return false;
    json_auto_t *snapshot = snapshot_write(block, evaluation->view->n_devices);
    gsize length = 0;
    g_autofree char *text = g_str_has_suffix(file, ".pickle")
                                ? snapshot_pickle(snapshot, &length)
                                : json_dumps(snapshot, JSON_COMPACT);
    return output_write(file, text, length ? (gssize)length : -1, error);
}

/* The fullest device of a snapshot beside what the allocator gives out on the fullest rank; NULL
 * with an error. */
static json_t *memory_measured_json(const Evaluation *evaluation, const char *file,
                                    GError **error)
{
    g_autoptr(GArray) peaks = snapshot_read(file, error);
    g_autoptr(GArray) rows =
        peaks ? sim_memory_table(evaluation->plan, evaluation->graph, evaluation->view,
                                 evaluation->report->runtime, false,
                                 evaluation->report->memory_bytes, error)
              : NULL;
    if (!rows)
        return NULL;
    const SnapshotPeak *most = &g_array_index(peaks, SnapshotPeak, 0);
    for (guint d = 1; d < peaks->len; d++)
        if (g_array_index(peaks, SnapshotPeak, d).allocated_bytes > most->allocated_bytes)
            most = &g_array_index(peaks, SnapshotPeak, d);
    const uint64_t predicted =
        most_in(uint64_t, array_each (const SimMemoryRow, row, rows), 0,
                row->total_bytes - row->bytes[MEMORY_RUNTIME]);
    return json_pack(
        "{s:i, s:i, s:I, s:I, s:I, s:o}", "device", (int)most->device, "event",
        (int)most->event, "allocated", (json_int_t)most->allocated_bytes, "reserved",
        (json_int_t)most->reserved_bytes, "predicted", (json_int_t)predicted, "error",
        most->allocated_bytes > 0
            ? json_number((double)predicted / (double)most->allocated_bytes - 1)
            : json_null());
}

COMMAND(memory, MemoryOwn, MEMORY_OPTIONS, 0)
{
    g_auto(Evaluation) evaluation = {0};
    json_t *most = NULL;
    if (own->most && argc == 2)
        return refuse(error, "--most is for MODEL CLUSTER; %s is a plan already",
                      argv[1]);
    if (own->most && own->fidelity)
        return refuse(error,
                      "--most goes by the planner's own fidelity, without --fidelity");
    if (!command_ask(&own->how, argc, own->effort, false, options, error) ||
        !(own->most ? memory_most(&own->how, argv, own->most, options, &evaluation, &most,
                                  error)
                    : command_evaluate(&own->how, argc, argv, own->fidelity, options,
                                       &evaluation, error)))
        return false;
    json_t *answer = evaluation_json(&evaluation, options->verbose);
    json_t *peaks = plan_words_peaks_json(&evaluation),
           *measured = own->measured
                           ? memory_measured_json(&evaluation, own->measured, error)
                           : NULL;
    json_object_update_new(
        answer, json_pack("{s:o*, s:o, s:o*, s:o*}", "most", most, "peaks", peaks, "host",
                          plan_words_host_json(&evaluation), "measured", measured));
    if ((own->measured && !measured) ||
        (own->snapshot &&
         !memory_write_snapshot(&evaluation, peaks, own->snapshot, error)))
        return json_decref(answer), false;
    if (command_is_silent(options))
        json_decref(answer);
    else
        command_report(options, answer, ANSWER_MEMORY, NULL);
    /* The table is printed whether the plan fits or not; the exit status says whether it does. */
    return evaluation_check_fits(&evaluation, error);
}
