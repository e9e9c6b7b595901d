/* Comparing a replay's tensors with the reference's. */
#include "exec/verify.h"

#include "data/base/free.h"
#include "data/models/model.h"
#include "data/program/period.h"
#include "exec/replay_state.h"
#include "exec/shrink.h"

#include <math.h>

/* Errors of tensors whose largest element is below this share of their role's largest are relative
 * to that share. */
#define SMALL_SHARE 1e-3
enum { LEAST_MEAN = 16 };

typedef struct {
    ExecBackend *backend;
    const Plan *plan;
    const Graph *graph;
    ExecReplay *replay;
    const bool *is_result;   /* [tensor]: it is compared */
    ExecTensor *want;        /* [tensor], values of the single-device run */
    double magnitude[ROLES]; /* largest element of all tensors of a role */
    double tolerance;
    ExecVerdict *verdict;
} Verify;

static double scale_of(const Verify *v, TensorId id)
{
    return MAX(exec_magnitude(&v->want[id]),
               SMALL_SHARE * v->magnitude[graph_tensor(v->graph, id)->role]);
}

/* The shards to compare: the instance's own, or, for partial sums, their totals, which the caller
 * drops. NULL on failure. */
static ExecShard *sum_shards(const Verify *v, uint32_t group, Form form, bool partial,
                             const ExecShard *from, GError **failure)
{
    ExecShard *sum = replay_shapes(v->replay, from);
    const ExecMembers members = (form_inside(form) == FORM_REDUCE ? EXEC_INSIDE : 0) |
                                (form_shards(form) == FORM_REDUCE ? EXEC_SHARDS : 0) |
                                (partial ? EXEC_ACROSS : 0);
    if (replay_allocate(v->replay, group, sum, failure) &&
        exec_replay_exchange(v->replay, group, members, COLLECTIVE_ALL_REDUCE, from, sum,
                             failure))
        return sum;
    replay_drop(v->replay, sum);
    return NULL;
}

/* As exec_difference, but the root of the mean square: rounded to two bytes, a few numbers near a
 * kink (of ReLU, or of pooling) fall on its other side, and their gradients differ wholly. Small
 * tensors count as such of LEAST_MEAN elements, since one kink may be all of their error: within
 * EXEC_FP16_TOLERANCE one element may err by a fifth. */
static double mean_difference(const double *got, const double *want, uint64_t n,
                              double scale)
{
    KILTER_ASSERT(got && want);
    double sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += (got[i] - want[i]) * (got[i] - want[i]);
    const double error =
        n > 0 && sum > 0 ? sqrt(sum / (double)MAX(n, LEAST_MEAN)) / scale : 0;
    return isnan(sum) ? INFINITY : error;
}

/* The relative error of a local rank's part. */
static double part_error(const Verify *v, TensorId id, uint32_t local,
                         const ExecShard *shard)
{
    KILTER_ASSERT(local < v->backend->n_local);
    const uint64_t n = exec_shard_elements(shard);
    g_autofree double *host = g_new(double, n + 1);
    v->backend->ops->read(v->backend, local, shard, host);
    const bool scaled = graph_tensor(v->graph, id)->role == ROLE_GRADIENT;
    for (uint64_t i = 0; scaled && i < n; i++)
        host[i] /= exec_loss_scale(v->backend);
    const ExecTensor *whole = &v->want[id];
    ExecTensor want = exec_shard_of(whole, shard);
    const double error = v->backend->half == EXEC_PLAIN
                             ? exec_difference(host, want.data, n, scale_of(v, id))
                             : mean_difference(host, want.data, n, scale_of(v, id));
    if (want.data != whole->data)
        exec_tensor_clear(&want);
    return error;
}

/* Largest error of an instance over all ranks of all processes, and the first rank that has it. */
static bool instance_error(const Verify *v, uint32_t group, uint32_t microbatch,
                           TensorId id, Form form, double *error, uint32_t *rank,
                           GError **failure)
{
    const uint32_t n_ranks = v->backend->n_ranks;
    const ExecShard *shard = exec_replay_shards(v->replay, group, microbatch, id, form);
    const bool partial = exec_replay_is_partial(v->replay, group, id, form);
    ExecShard *sum = NULL;
    *rank = 0;
    *error = 0;
    if (!shard) /* its contents have gone to another instance */
        return true;
    if (form_inside(form) == FORM_REDUCE || form_shards(form) == FORM_REDUCE || partial)
        if (!(sum = sum_shards(v, group, form, partial, shard, failure)))
            return false;
    g_autofree double *each = g_new0(double, n_ranks);
    for (uint32_t local = 0; local < v->backend->n_local; local++) {
        const uint32_t r = v->backend->first + local;
        if (shard[r].data)
            each[r] = part_error(v, id, local, sum ? &sum[r] : &shard[r]);
    }
    if (sum)
        replay_drop(v->replay, sum);
    exec_backend_maximum(v->backend, each, n_ranks);
    for (uint32_t r = 0; r < n_ranks; r++)
        if (each[r] > *error) {
            *error = each[r];
            *rank = r;
        }
    return true;
}

static char *instance_name(const Verify *v, TensorId id, Form form)
{
    char text[FORM_TEXT];
    return g_strdup_printf("%s|%s", graph_tensor(v->graph, id)->name,
                           form_text(form, text));
}

/* Compares one result in one form. */
static bool compare(const Verify *v, uint32_t group, uint32_t microbatch, TensorId id,
                    Form form, GError **failure)
{
    ExecVerdict *verdict = v->verdict;
    double error;
    uint32_t rank;
    if (!instance_error(v, group, microbatch, id, form, &error, &rank, failure))
        return false;
    if (!verdict->where || error > verdict->error) {
        verdict->error = error;
        verdict->rank = rank;
        put_block(verdict->where, instance_name(v, id, form));
    }
    return true;
}

/* Compares a result in every form in which the ranks hold it. */
static bool compare_all_forms(const Verify *v, TensorId id, GError **failure)
{
    const PlanLayout *layout = &exec_replay_cuts(v->replay)->layout;
    /* microbatches with an instance of their own */
    const uint32_t parts =
        instances_has_parts(layout->instances, id) ? v->plan->program->n_microbatches : 1;
    uint32_t forms = 0;
    for (uint32_t g = 0; g < layout->n_groups; g++)
        for (uint32_t m = 0; m < parts; m++)
            for (uint32_t form = 0; form < FORM_OUTERS * 8; form++) {
                if (form_inside((Form)form) >= FORM_MAX ||
                    !exec_replay_shards(v->replay, g, m, id, (Form)form))
                    continue;
                forms++;
                if (!compare(v, g, m, id, (Form)form, failure))
                    return false;
            }
    if (forms == 0)
        return kilter_fail(failure, KILTER_ERROR_FAILED, "the program never makes %s",
                           graph_tensor(v->graph, id)->name);
    v->verdict->n_tensors++;
    v->verdict->n_zero += exec_magnitude(&v->want[id]) == 0;
    return true;
}

/* Compares an updated value, which lies where the old value lay. */
static bool compare_updated(const Verify *v, TensorId old, TensorId next,
                            GError **failure)
{
    for (uint32_t g = 0; g < exec_replay_cuts(v->replay)->layout.n_groups; g++) {
        const Form rest = exec_replay_rest(v->replay, g, old);
        if (rest == FORM_MAX || exec_replay_shards(v->replay, g, 0, next, rest))
            continue;
        g_autofree char *name = instance_name(v, next, rest);
        return kilter_fail(failure, KILTER_ERROR_FAILED,
                           "the program never makes %s, the form in which %s rests", name,
                           graph_tensor(v->graph, old)->name);
    }
    return compare_all_forms(v, next, failure);
}

static bool compare_results(const Verify *v, GError **failure)
{
    return !any_in(tensors_each (tensor, t, v->graph),
                   v->is_result[t] && !(tensor->role == ROLE_UPDATED
                                            ? compare_updated(v, tensor->of, t, failure)
                                            : compare_all_forms(v, t, failure)));
}

/* Finds the first instruction whose result is wrong. */
static bool find_first_wrong(const Verify *v, GError **failure)
{
    items_each (const Instr, instr, v->plan->program->instr, v->plan->program->n) {
        const bool computes = instr->kind == INSTR_COMPUTE;
        const Op *op = computes ? graph_get_op(v->graph, instr->op) : NULL;
        for (uint32_t o = 0; o < (computes ? op->n_out : 1); o++) {
            const TensorId id = computes ? op->out[o] : instr->tensor;
            const Form form = computes ? instr->form[op->n_in + o] : instr->to;
            double error;
            uint32_t rank;
            const uint32_t group =
                instr->kind == INSTR_TRANSFER ? instr->to_group : instr->group;
            const uint32_t part = instr->kind == INSTR_LOAD ? 0 : instr->microbatch;
            if (!instance_error(v, group, part, id, form, &error, &rank, failure))
                return false;
            if (error <= v->tolerance)
                continue;
            v->verdict->wrong_tensor = g_strdup(graph_tensor(v->graph, id)->name);
            v->verdict->wrong_instr = instr_text(instr, v->graph);
            return true;
        }
    }
    return true;
}

/* How unevenly the experts of an op that routes tokens [b, S, e] to slots are chosen. */
static void count_routed(const Verify *v, const Op *op)
{
    const Tensor *weight = graph_tensor(v->graph, op->in[0]);
    const double *chosen = v->want[op->in[0]].data;
    const uint32_t tokens = weight->dim[1], experts = weight->dim[2],
                   slots = graph_tensor(v->graph, op->out[0])->dim[2];
    ExecVerdict *verdict = v->verdict;
    verdict->slots = verdict->slots ? MIN(verdict->slots, slots) : slots;
    for (uint32_t i = 0; i < weight->dim[0] * experts; i++) {
        const size_t first = (size_t)(i / experts) * tokens * experts + i % experts;
        const uint32_t n =
            sum_over(uint32_t, t, tokens, chosen[first + (size_t)t * experts] != 0);
        verdict->fewest = MIN(verdict->fewest, n);
        verdict->fullest = MAX(verdict->fullest, n);
        verdict->dropped += n > slots ? n - slots : 0;
    }
}

static void measure_role(Verify *v, TensorId t)
{
    double *largest = &v->magnitude[graph_tensor(v->graph, t)->role];
    *largest = fmax(*largest, exec_magnitude(&v->want[t]));
}

/* [tensor]: whether it is compared. The caller frees them. */
static bool *find_results(const Graph *graph)
{
    bool *is = g_new0(bool, graph_n_tensors(graph));
    tensors_each (tensor, t, graph) {
        const TensorId gradient = graph_gradient(graph, t);
        is[t] |= tensor->role == ROLE_UPDATED || tensor->role == ROLE_LOSS;
        if (tensor->role == ROLE_PARAMETER && gradient != GRAPH_NONE)
            is[gradient] = true;
    }
    return is;
}

/* Runs the model op by op; lean: frees values after the op that reads them last. */
static void run_reference(Verify *v, bool lean)
{
    const Graph *graph = v->graph;
    g_autofree OpId *last = g_new(OpId, graph_n_tensors(graph));
    for (TensorId t = 0; t < graph_n_tensors(graph); t++) {
        last[t] = graph_tensor(graph, t)->producer;
        if (last[t] == GRAPH_NONE)
            measure_role(v, t);
    }
    ops_each (op, id, graph)
        for (uint32_t i = 0; i < op->n_in; i++)
            last[op->in[i]] = id;
    ops_each (op, id, graph) {
        exec_run_one(graph, id, v->want);
        if (op->kind == OP_ROUTE)
            count_routed(v, op);
        for (uint32_t o = 0; o < op->n_out; o++)
            measure_role(v, op->out[o]);
        for (uint32_t i = 0; lean && i < op->n_in + op->n_out; i++) {
            const TensorId t = i < op->n_in ? op->in[i] : op->out[i - op->n_in];
            if (last[t] == id && !v->is_result[t] && v->want[t].data)
                exec_tensor_clear(&v->want[t]);
        }
    }
}

/* Runs plan and model. lean: only the values of results stay; else the first wrong one of all is
 * found. */
static bool verify_run(ExecBackend *backend, const Plan *plan, const Graph *graph,
                       uint64_t seed, double tolerance, bool lean, ExecVerdict *verdict,
                       GError **error)
{
    g_autofree bool *is_result = find_results(graph);
    exec_verdict_clear(verdict);
    *verdict = (ExecVerdict){.fewest = UINT32_MAX};
    g_autoptr(ExecReplay) replay = exec_replay_new(backend, plan, graph, error);
    if (replay && lean)
        exec_replay_lean(replay, is_result);
    if (!replay || !exec_replay_load(replay, seed, error) ||
        !exec_replay_run(replay, error))
        return false;
    Verify v = {.backend = backend,
                .plan = plan,
                .graph = graph,
                .replay = replay,
                .is_result = is_result,
                .want = exec_values_new(graph, seed),
                .tolerance = tolerance,
                .verdict = verdict};
    run_reference(&v, lean);
    bool good = compare_results(&v, error);
    verdict->right = good && verdict->error <= tolerance;
    if (good && !verdict->right && !lean)
        good = find_first_wrong(&v, error);
    exec_values_free(graph, v.want);
    return good;
}

bool exec_verify(ExecBackend *backend, const Plan *plan, const Graph *graph,
                 uint64_t seed, double tolerance, ExecVerdict *verdict, GError **error)
{
    g_auto(ExecVerdict) whole = {0};
    g_assert(tolerance > 0);
    *verdict = (ExecVerdict){0};
    if (!verify_run(backend, plan, graph, seed, tolerance, true, verdict, error))
        return false;
    if (verdict->right)
        return true;
    /* an error that does not come again has no first wrong tensor, but was one */
    if (!verify_run(backend, plan, graph, seed, tolerance, false, &whole, error))
        return false;
    verdict->wrong_tensor = g_steal_pointer(&whole.wrong_tensor);
    verdict->wrong_instr = g_steal_pointer(&whole.wrong_instr);
    return true;
}

double exec_tolerance(const ExecBackend *backend)
{
    return backend->half == EXEC_FP16                ? EXEC_FP16_TOLERANCE
           : backend->half == EXEC_BF16              ? EXEC_BF16_TOLERANCE
           : backend->element_bytes == sizeof(float) ? EXEC_SINGLE_TOLERANCE
                                                     : EXEC_DEEP_TOLERANCE;
}

CLEAR_DEFINE(exec_verdict_clear, ExecVerdict, verdict, let_go(verdict->where, g_free),
             let_go(verdict->wrong_tensor, g_free), let_go(verdict->wrong_instr, g_free));

/* The number of replicas that have whole samples of a microbatch and hand them on to shards. */
static uint32_t whole_samples(const Plan *plan, const Graph *graph)
{
    const Program *program = plan->program;
    g_autoptr(BatchForms) batch = NULL;
    batch_forms_of_program(program, graph, &batch, NULL);
    uint32_t most = 1;
    for (uint32_t i = 0; batch && i < program->n; i++) {
        const Instr *instr = &program->instr[i];
        if (instr_regroups(program, instr) && form_is_gather(batch->form[instr->tensor]))
            most = MAX(most, program->group[instr->group].n_replicas);
    }
    return most;
}

/* The program, or, where its middle is repeated, with as many repetitions as a later one waits for,
 * and one more, as an iteration on fewer microbatches. Caller frees. */
static Program *few_microbatches(const Program *program)
{
    ProgramPeriod period;
    if (!program_find_period(program, &period) || period.depth + 1 >= period.repeats)
        return program_copy(program);
    Program *few = program_repeat(program, &period, period.depth + 1);
    few->left_out = 0;
    return few;
}

/* The small model for so many devices, 0: as small as can be; NULL if it is not small. */
static Graph *small_model(const Plan *plan, const Graph *graph, const Program *few,
                          uint32_t n_devices, GRand *random, char **canonical,
                          GError **error)
{
    g_autofree char *spec = model_shrink(plan->model, n_devices,
                                         few->n_microbatches * whole_samples(plan, graph),
                                         exec_even(&plan->strategy), random);
    let_go(*canonical, g_free);
    g_autoptr(Graph) built =
        model_build_from(spec, plan->content, plan->n_devices, canonical, error);
    const double most = n_devices ? EXEC_SECONDS : EXEC_MINUTE;
    return built && exec_is_small(built, most, error) ? g_steal_pointer(&built) : NULL;
}

Plan *exec_shrink_plan(const Plan *plan, const Graph *graph, GRand *random, Graph **small,
                       GError **error)
{
    g_autoptr(Program) few = few_microbatches(plan->program);
    g_autofree char *canonical = NULL;
    g_autoptr(Graph) built =
        small_model(plan, graph, few, plan->n_devices, random, &canonical, NULL);
    if (!built)
        built = small_model(plan, graph, few, 0, random, &canonical, error);
    if (!built || !exec_same_structure(graph, built, error) ||
        !program_check(plan->program, graph, error) || !program_check(few, built, error))
        return NULL;
    Plan *copy = plan_new();
    copy->model = g_steal_pointer(&canonical);
    copy->content = g_strdup(plan->content);
    copy->cluster = g_strdup(plan->cluster);
    copy->granularity = plan->granularity;
    copy->planner = g_strdup(plan->planner);
    copy->seed = plan->seed;
    copy->version = g_strdup(plan->version);
    copy->program = g_steal_pointer(&few);
    copy->strategy = (Strategy){.tp = plan->strategy.tp,
                                .cp = plan->strategy.cp,
                                .ep = plan->strategy.ep,
                                .etp = plan->strategy.etp};
    copy->n_devices = plan->n_devices;
    copy->memory_bytes = g_new0(uint64_t, plan->n_devices);
    copy->n_segments = plan->n_segments;
    copy->ratio =
        g_memdup2(plan->ratio, plan->n_segments * plan->n_devices * sizeof *plan->ratio);
    copy->n_ops = plan->n_ops;
    copy->segment = g_memdup2(plan->segment, plan->n_ops * sizeof *plan->segment);
    *small = g_steal_pointer(&built);
    return copy;
}
