/* kilter profile: measures ops and collectives for kilter calibrate. */
#include <string.h>

#include "data/base/output.h"
#include "data/base/units.h"
#include "data/base/version.h"
#include "data/measured/measurement.h"
#include "data/models/model.h"
#include "experiments/answers.h"
#include "experiments/cli/command.h"
#include "experiments/cli/exec_launch.h"
#include "experiments/cli/exec_plan.h"

/* --- the report --- */

/* The best rates that an op kind reached in any shape on any rank. */
typedef struct {
    uint32_t shapes;
    double rate, bandwidth; /* FLOP/s, bytes/s of its operands */
} KernelRate;

/* {"limits": {...}, "kernels": [...]}: the rates of each kind of kernel that was measured. */
static json_t *profile_rates_json(const GArray *measurements, const ExecLimits *limits)
{
    json_t *kernels = json_array();
    KernelRate of[OP_KINDS] = {0};
    array_each (const Measurement, m, measurements) {
        if (m->op == OP_KINDS ||
            m->share <= 0) /* no rate: collectives, ranks without work */
            continue;
        KernelRate *rate = &of[m->op];
        rate->shapes++;
        rate->rate = MAX(rate->rate, m->flops / m->median_s);
        rate->bandwidth = MAX(rate->bandwidth, m->bytes / m->median_s);
    }
    items_at (const KernelRate, r, kind, of, OP_KINDS) {
        if (r->shapes > 0)
            json_array_append_new(
                kernels, json_pack("{s:s, s:i, s:f, s:f, s:f, s:f}", "kind",
                                   op_kind_name((OpKind)kind), "shapes", (int)r->shapes,
                                   "flops_per_s", r->rate, "of_limit",
                                   r->rate / limits->rate, "bytes_per_s", r->bandwidth,
                                   "of_bandwidth", r->bandwidth / limits->bandwidth));
    }
    return json_pack("{s:{s:f, s:f, s:i, s:i}, s:o}", "limits", "flops_per_s",
                     limits->rate, "bytes_per_s", limits->bandwidth, "extent",
                     (int)limits->extent, "elements", (int)limits->elements, "kernels",
                     kernels);
}

/* clang-format off */
#define PROFILE_OPTIONS(X)                 \
    X(TEXT, backend, "backend", 'b')       \
    X(COUNT, ranks, "ranks", 'n', 1, 1024) \
    X(FILE, output, "output", 'o')         \
    X(TEXT, device, "device", 0)           \
    X(TEXT, largest, "largest", 0)         \
    X(TIMING, timing)                      \
    X(VALUE, largest_bytes, double)        \
    X(VALUE, half, ExecNumbers) /* of the models' tensors in half precision */
/* clang-format on */
COMMAND_OPTIONS(Own, profile_options, PROFILE_OPTIONS)
COMMAND_RANGES(Own, profile_options, PROFILE_OPTIONS)

/* Shares of the first rank; the first entry stands for an even share. */
static const double SHARE[] = {0.5, 0.75, 0.9};

/* Smaller messages take only their latency. */
static const double SMALLEST_BYTES = 1024;

static bool profile_is_cuda(const Own *own)
{
    return strcmp(own->backend, "cuda") == 0;
}

static bool profile_check_options(Own *own, GError **error)
{
    own->backend = own->backend ? own->backend : g_strdup("cpu");
    own->device = own->device ? own->device : g_strdup(own->backend);
    static const char *const backends[] = {"cpu", "cuda", NULL};
    if (!command_check_choice("--backend", own->backend, backends, error) ||
        !profile_options_in_range(own, error))
        return false;
    if (!own->output)
        return refuse(error, "expected --output FILE for the measurements");
    if (strpbrk(own->device, ",#\r\n") || !*own->device)
        return refuse(error, "--device: expected a name without commas, got '%s'",
                      own->device);
    if (own->largest &&
        !units_parse(own->largest, QUANTITY_BYTES, &own->largest_bytes, error))
        return kilter_prefix(error, "--largest: ");
    return true;
}

/* --- on the ranks --- */

/* Measures every rule of every op of a model, for each way to share. On one rank all rules of an op
 * do the same work. */
static bool profile_model(const char *model, ExecBackend *backend,
                          const ExecProfile *profile, GArray *list, GError **error)
{
    const uint32_t n = backend->n_ranks, variants = n > 1 ? 4 : 1;
    g_autoptr(Graph) graph = model_build(model, n, NULL, error);
    g_autofree double *ratio = g_new(double, n);
    for (uint32_t s = 0; graph && s < (n > 1 ? G_N_ELEMENTS(SHARE) : 1); s++) {
        for (uint32_t r = 0; r < n; r++)
            ratio[r] = n == 1   ? 1
                       : s == 0 ? 1.0 / n
                       : r == 0 ? SHARE[s]
                                : (1 - SHARE[s]) / (n - 1);
        for (uint32_t v = 0; v < variants; v++)
            if (!exec_profile_ops(backend, profile, graph, ratio, v, list, error))
                return false;
    }
    return graph != NULL;
}

static bool profile_links(const Own *own, ExecBackend *backend,
                          const ExecProfile *profile, GArray *list, GError **error)
{
    double share[G_N_ELEMENTS(SHARE)];
    memcpy(share, SHARE, sizeof share);
    share[0] = 1.0 / backend->n_ranks;
    for (double bytes = SMALLEST_BYTES;
         backend->n_ranks > 1 && bytes <= own->largest_bytes; bytes *= 2)
        if (!exec_profile_collectives(backend, profile, bytes, share, G_N_ELEMENTS(share),
                                      list, error))
            return false;
    return true;
}

static bool profile_write_file(const Own *own, const GArray *list,
                               const ExecLimits *limits, const CommandOptions *options,
                               GError **error)
{
    g_autofree char *comment =
        g_strdup_printf("kilter " KILTER_VERSION " profile, %s backend, %d ranks on %s",
                        own->backend, own->ranks, g_get_host_name());
    if (!output_take(own->output, measurements_write(list, comment), error))
        return false;
    const uint32_t ops = sum_over(uint32_t, i, list->len,
                                  g_array_index(list, Measurement, i).op < OP_KINDS);
    json_t *root = json_pack("{s:s, s:i, s:i, s:i, s:s}", "output", own->output, "ops",
                             (int)ops, "collectives", (int)(list->len - ops), "ranks",
                             own->ranks, "version", KILTER_VERSION);
    json_object_update_new(root, profile_rates_json(list, limits));
    command_report(options, root, ANSWER_PROFILE, NULL);
    return true;
}

/* A backend that computes in float32; with cuda one GPU per process, and tensors in half precision
 * as the models say. */
static ExecBackend *profile_backend_new(const Own *own, ExecRank rank, GError **error)
{
    const ExecCudaWorld world = {.ranks = EXEC_CUDA_GPUS,
                                 .n_ranks = rank.n,
                                 .process = rank.rank,
                                 .n_processes = rank.n,
                                 .half = own->half};
    return profile_is_cuda(own) ? exec_cuda_new(&world, sizeof(float), error)
                                : exec_mpi(NULL)->backend_new(sizeof(float));
}

typedef struct {
    const Own *own;
    int n_models;
    char **model;
    const CommandOptions *options;
} Work;

static bool profile_as_rank(ExecRank rank, void *data, GError **error)
{
    const Work *work = data;
    const Own *own = work->own;
    if (rank.n != (uint32_t)own->ranks)
        return refuse(error, "--ranks %d: mpirun started %u", own->ranks, rank.n);
    g_autoptr(ExecBackend) backend = profile_backend_new(own, rank, error);
    if (!backend)
        return false;
    g_autoptr(GArray) list = measurements_new();
    const ExecProfile profile = {own->device, (uint32_t)own->timing.warm_up,
                                 (uint32_t)own->timing.repeats,
                                 work->options->planner.seed};
    ExecLimits limits;
    if (!exec_limits(backend, &profile, &limits, error))
        return false;
    for (int i = 0; i < work->n_models; i++)
        if (!profile_model(work->model[i], backend, &profile, list, error))
            return false;
    if (!profile_links(own, backend, &profile, list, error))
        return false;
    exec_profile_join(list);
    return rank.rank > 0 || profile_write_file(own, list, &limits, work->options, error);
}

/* --- starting the ranks --- */

/* Checks the models, whose tensors are all stored alike. */
static bool profile_take_precision(Own *own, int argc, char **argv, GError **error)
{
    for (int i = 1; i < argc; i++) {
        ExecNumbers half;
        g_autoptr(Graph) graph = model_build(argv[i], (uint32_t)own->ranks, NULL, error);
        if (!graph || !exec_plan_half(graph, profile_is_cuda(own), &half, error))
            return false;
        if (i > 1 && half != own->half)
            return refuse(
                error,
                "'%s': expected the precision of '%s': measure one precision at a time",
                argv[i], argv[1]);
        own->half = half;
    }
    return true;
}

static bool profile_start_ranks(const Own *own, int argc, char **argv,
                                const CommandOptions *options, GError **error)
{
    g_autoptr(GStrvBuilder) list = g_strv_builder_new();
    if (profile_is_cuda(own) && exec_cuda_gpus() < (uint32_t)own->ranks)
        return kilter_fail(error, KILTER_ERROR_FAILED,
                           "profile --backend cuda: %d ranks need as many GPUs, %u are "
                           "here",
                           own->ranks, exec_cuda_gpus());
    if (!exec_mpi(error))
        return false;
    if (!output_check(own->output, error))
        return false;
    g_strv_builder_add(list, "profile");
    for (int i = 1; i < argc; i++)
        g_strv_builder_add(list, argv[i]);
    g_autofree char *ranks = g_strdup_printf("--ranks=%d", own->ranks);
    g_autofree char *largest = g_strdup_printf("--largest=%.0f B", own->largest_bytes);
    g_strv_builder_add_many(list, "--output", own->output, "--backend", own->backend,
                            "--device", own->device, ranks, largest, NULL);
    exec_rank_options(list, options, &own->timing);
    g_auto(GStrv) arguments = g_strv_builder_end(list);
    return exec_launch((uint32_t)own->ranks, (uint32_t)own->timing.timeout_s,
                       (const char *const *)arguments, options->quiet, error);
}

bool cmd_profile(int argc, char **argv, GError **error)
{
    g_auto(Own) own = {.ranks = 2,
                       .timing = {.warm_up = 2, .repeats = 10, .timeout_s = 3600},
                       .largest_bytes = 0x1p24};
    const GOptionEntry entries[] = {PROFILE_OPTIONS(COMMAND_ENTRY) G_OPTION_ENTRY_NULL};
    g_auto(CommandOptions) options = {0};
    bool good = command_parse(NULL, entries, &argc, argv, &options, error) &&
                profile_check_options(&own, error);
    Work work = {&own, argc - 1, argv + 1, &options};
    const bool alone = good && profile_is_cuda(&own) && own.ranks == 1 &&
                       !exec_is_rank() &&
                       exec_cuda_gpus() > 0; /* one GPU needs no mpirun */
    good = good && profile_take_precision(&own, argc, argv, error);
    if (good)
        good = alone || exec_is_rank()
                   ? exec_as_rank((uint32_t)own.timing.timeout_s, alone, profile_as_rank,
                                  &work, error)
                   : profile_start_ranks(&own, argc, argv, &options, error);
    return exec_rank_ends(good);
}
