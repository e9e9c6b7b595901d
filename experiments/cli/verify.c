/* kilter verify: numeric proofs of a plan and of the theory. */
#include <string.h>

#include "data/base/version.h"
#include "data/models/model.h"
#include "experiments/answers.h"
#include "experiments/cli/exec_plan.h"

/* The theory needs no cluster, since sizes are the same on every cluster here: it takes a model for
 * this many GPUs, shrunk for this many devices. */
enum { THEORY_GPUS = 8, THEORY_DEVICES = 4, THEORY_TIMES = 40 };

/* clang-format off */
#define VERIFY_OPTIONS(X)                             \
    X(FLAG, theory, "theory", 0)                      \
    X(COUNT, shapes, "shapes", 0, G_MININT, G_MAXINT) \
    X(TEXT, backend, "backend", 'b')                  \
    X(FLAG, virtual_ranks, "virtual-ranks", 0)        \
    X(FLAG, half, "half", 0)                          \
    X(PLAN_SOURCE, source)                            \
    X(VALUE, tolerance, double) /* of the backend */  \
    X(VALUE, microbatches, uint32_t) /* that run */   \
    X(VALUE, numbers, const char *)
/* clang-format on */
COMMAND_OPTIONS(Own, verify_options, VERIFY_OPTIONS)

/* The first model has the standard small sizes, further ones random sizes. */
static GRand *shape_random(uint64_t seed, int shape)
{
    return shape == 0 ? NULL : g_rand_new_with_seed((guint32)seed + (guint32)shape);
}

/* Says first that a model which cannot be shrunk, or has many ops, takes long; `times`: how often
 * each op is run. */
static void verify_say_size(const Graph *graph, double times, uint32_t devices)
{
    /* plain C; of an op on a device */
    const double flops_per_s = 5e8, each_bytes = 450, each_s = 3e-6;
    const double each = (double)graph_n_ops(graph) * devices;
    const double flops =
        sum_over(double, id, graph_n_ops(graph), times *graph_op_flops(graph, id));
    g_autofree char *what = g_strdup_printf("running the %u ops of %s in float64",
                                            graph_n_ops(graph), graph_name(graph));
    planner_say(what, flops / flops_per_s + each_s * each, each_bytes * each);
}

/* --- the theory --- */

static json_t *theory_json(const char *model, const ExecTheory *theory, int shapes,
                           uint64_t seed)
{
    return json_pack("{s:s, s:i, s:i, s:i, s:f, s:f, s:b, s:s?, s:I, s:s}", "model",
                     model, "shapes", shapes, "ops", (int)theory->ops, "rules",
                     (int)theory->rules, "error", MIN(theory->error, G_MAXDOUBLE),
                     "tolerance", EXEC_TOLERANCE, "right", theory->wrong == NULL,
                     "wrong_rule", theory->wrong, "seed", (json_int_t)seed, "version",
                     KILTER_VERSION);
}

static bool verify_theory(const char *model, const Own *own,
                          const CommandOptions *options, GError **error)
{
    g_autofree char *canonical = NULL;
    g_autoptr(Graph) graph = model_build(model, THEORY_GPUS, &canonical, error);
    if (!graph)
        return false;
    const int shapes = own->shapes >= 0 ? own->shapes : 3;
    const uint64_t seed = options->planner.seed;
    ExecTheory theory = {0};
    bool good = true;
    for (int i = 0; good && i < shapes; i++) {
        GRand *random = shape_random(seed, i);
        g_autofree char *spec = model_shrink(canonical, THEORY_DEVICES, 1, 0, random);
        g_autoptr(Graph) small = model_build(spec, THEORY_GPUS, NULL, error);
        g_clear_pointer(&random, g_rand_free);
        good = small && exec_is_small(small, EXEC_SECONDS, error) &&
               exec_same_structure(graph, small, error);
        if (good && i == 0)
            verify_say_size(small, THEORY_TIMES * shapes, 1);
        if (good)
            exec_theory_check(small, seed + (uint64_t)i, EXEC_TOLERANCE, &theory);
    }
    g_autofree char *wrong = theory.wrong;
    if (!good)
        return false;
    command_report(options, theory_json(canonical, &theory, shapes, seed),
                   ANSWER_VERIFY_THEORY, NULL);
    return !wrong || kilter_fail(error, KILTER_ERROR_FAILED, "wrong rule: %s", wrong);
}

/* --- a plan --- */

static json_t *verdict_json(const Own *own, const char *small, int shapes,
                            const ExecVerdict *verdict, uint64_t seed)
{
    const Plan *plan = own->source.plan;
    return json_pack(
        "{s:s, s:s, s:i, s:i, s:i, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:i, s:f, s:f, "
        "s:s?, s:i, s:b, s:s?, s:s?, s:i, s:i, s:i, s:i, s:I, s:s, s:i, s:i}",
        "model", plan->model, "shrunk_model", small, "shapes", shapes, "instructions",
        (int)plan->program->n, "ops", (int)graph_n_ops(own->source.graph), "cluster",
        plan->cluster, "planner", plan->planner, "granularity",
        granularity_name(plan->granularity), "backend",
        own->virtual_ranks ? "cuda, virtual ranks" : own->backend, "dtype", own->numbers,
        "devices", (int)plan->n_devices, "tensors", (int)verdict->n_tensors,
        "zero_tensors", (int)verdict->n_zero, "error", MIN(verdict->error, G_MAXDOUBLE),
        "tolerance", own->tolerance, "where", verdict->where, "rank", (int)verdict->rank,
        "right", verdict->right, "wrong_tensor", verdict->wrong_tensor,
        "wrong_instruction", verdict->wrong_instr, "expert_tokens_fewest",
        verdict->slots ? (int)verdict->fewest : 0, "expert_tokens_most",
        (int)verdict->fullest, "expert_slots", (int)verdict->slots, "expert_dropped",
        (int)verdict->dropped, "seed", (json_int_t)seed, "version", KILTER_VERSION,
        "microbatches", (int)plan->program->n_microbatches, "microbatches_left_out",
        (int)(plan->program->n_microbatches - own->microbatches));
}

/* The backend, which computes in float64, or, if asked to, keeps tensors in half precision in two
 * bytes. */
static ExecBackend *verify_backend_new(const Own *own, uint32_t n_ranks,
                                       const Graph *graph, GError **error)
{
    ExecNumbers half = EXEC_PLAIN;
    if (own->half && !exec_plan_half(graph, true, &half, error))
        return NULL;
    const ExecCudaWorld world = {.ranks = own->virtual_ranks ? EXEC_CUDA_VIRTUAL
                                                             : EXEC_CUDA_GPUS,
                                 .n_ranks = n_ranks,
                                 .n_processes = 1,
                                 .half = half,
                                 .loss_scale = exec_half_loss_scale(graph, half)};
    return strcmp(own->backend, "cuda") == 0
               ? exec_cuda_new(&world, own->half ? sizeof(float) : sizeof(double), error)
               : exec_reference_new(n_ranks);
}

/* Replaces *worst, and the spec of its model, by the verdict on another small model if that is
 * worse. */
static bool verify_shape(Own *own, int shape, uint64_t seed, char **spec,
                         ExecVerdict *worst, GError **error)
{
    GRand *random = shape_random(seed, shape);
    g_autoptr(Graph) small = NULL;
    g_autoptr(Plan) plan =
        exec_shrink_plan(own->source.plan, own->source.graph, random, &small, error);
    g_clear_pointer(&random, g_rand_free);
    if (!plan)
        return false;
    own->microbatches = plan->program->n_microbatches;
    if (shape == 0)
        verify_say_size(small, 2 * MAX(own->shapes, 1), /* on one device and on all */
                        plan->n_devices);
    g_autoptr(ExecBackend) backend =
        verify_backend_new(own, plan->n_devices, small, error);
    g_auto(ExecVerdict) verdict = {0};
    if (!backend || !exec_verify(backend, plan, small, seed, exec_tolerance(backend),
                                 &verdict, error))
        return false;
    own->tolerance = exec_tolerance(backend);
    own->numbers = backend->half != EXEC_PLAIN ? exec_half_name(backend->half)
                   : own->half                 ? "float32"
                                               : "float64";
    if (*spec && verdict.error <= worst->error)
        return true;
    exec_verdict_clear(worst);
    *worst = verdict;
    verdict = (ExecVerdict){0};
    put_block(*spec, g_strdup(plan->model));
    return true;
}

static bool verify_plan(Own *own, int argc, char **argv, const CommandOptions *options,
                        GError **error)
{
    if (!exec_plan_obtain(&own->source, argc, argv, options, error))
        return false;
    g_autofree char *spec = NULL;
    g_auto(ExecVerdict) verdict = {0};
    const int shapes = own->shapes >= 0 ? own->shapes : 1;
    for (int i = 0; i < shapes; i++)
        if (!verify_shape(own, i, options->planner.seed, &spec, &verdict, error))
            return false;
    command_report(options,
                   verdict_json(own, spec, shapes, &verdict, options->planner.seed),
                   ANSWER_VERIFY, NULL);
    return verdict.right ||
           kilter_fail(
               error, KILTER_ERROR_FAILED,
               "the plan is wrong: relative error %.2g; the first wrong tensor is "
               "%s, made by %s",
               verdict.error, verdict.wrong_tensor, verdict.wrong_instr);
}

COMMAND(verify, Own, VERIFY_OPTIONS, .shapes = G_MININT)
{
    if (own->shapes != G_MININT &&
        !command_check_range("--shapes", own->shapes, 1, 1000, error))
        return false;
    own->backend = own->backend ? own->backend : g_strdup("reference");
    if (strcmp(own->backend, "reference") != 0 && strcmp(own->backend, "cuda") != 0)
        return refuse(error, "--backend: expected reference or cuda, got '%s'",
                      own->backend);
    if (own->virtual_ranks && strcmp(own->backend, "cuda") != 0)
        return refuse(error, "--virtual-ranks: only --backend cuda has them");
    if (own->half && strcmp(own->backend, "cuda") != 0)
        return refuse(error, "--half: only --backend cuda stores numbers of two bytes");
    if (own->theory && argc != 2)
        return refuse(error, "--theory: expected MODEL alone; see kilter verify --help");
    return own->theory || (argc == 2 && model_is_one(argv[1]))
               ? verify_theory(argv[1], own, options, error)
               : verify_plan(own, argc, argv, options, error);
}
