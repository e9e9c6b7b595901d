/* Values of parameters after several iterations: on one device, and in a replay that trains. */
#ifndef KILTER_TESTS_TRAINED_H
#define KILTER_TESTS_TRAINED_H

#include "exec/exec.h"

#include "tests/test.h"

/* The graph's values after n iterations on one device, from the given numbers. */
static inline ExecTensor *trained_values(const Graph *graph, uint32_t n, uint64_t seed)
{
    ExecTensor *value = exec_values_new(graph, seed);
    for (uint32_t k = 0; k < n; k++) {
        ExecTensor *fresh = g_new0(ExecTensor, graph_n_tensors(graph));
        for (TensorId t = 0; k > 0 && t < graph_n_tensors(graph); t++) {
            if (graph_tensor(graph, t)->producer != GRAPH_NONE)
                continue;
            const TensorId next = graph_updated(graph, t);
            const ExecTensor *last = &value[next == GRAPH_NONE ? t : next];
            fresh[t] = *last;
            fresh[t].data =
                g_memdup2(last->data, (exec_tensor_elements(last) + 1) * sizeof(double));
        }
        if (k > 0) {
            exec_values_free(graph, value);
            value = fresh;
        } else {
            g_free(fresh);
        }
        exec_run_graph(graph, value);
    }
    return value;
}

/* The relative error of a rank's part of a value. */
static inline double trained_part_error(ExecBackend *backend, uint32_t rank,
                                        const ExecShard *shard, const ExecTensor *whole)
{
    ExecShard all = {.rank = whole->rank, .data = whole->data}, part = *shard;
    memcpy(all.dim, whole->dim, sizeof all.dim);
    const uint64_t elements = exec_shard_elements(&part);
    g_autofree double *want = g_new0(double, elements + 1),
                      *got = g_new0(double, elements + 1);
    part.data = want;
    exec_overlap_copy(&all, &part, sizeof(double));
    backend->ops->read(backend, rank - backend->first, shard, got);
    return exec_difference(got, want, elements, MAX(1e-3, exec_magnitude(whole)));
}

/* The largest relative error of the values that the next iteration starts from; *n gets their
 * number. */
static inline double trained_error(ExecBackend *backend, const ExecReplay *replay,
                                   const Graph *graph, const ExecTensor *want,
                                   uint32_t *n)
{
    double most = 0;
    *n = 0;
    for (TensorId t = 0; t < graph_n_tensors(graph); t++)
        for (uint32_t g = 0; graph_updated(graph, t) != GRAPH_NONE &&
                             g < exec_replay_cuts(replay)->layout.n_groups;
             g++) {
            const Form rest = exec_replay_rest(replay, g, t);
            const ExecShard *shard =
                rest == FORM_MAX ? NULL : exec_replay_shards(replay, g, 0, t, rest);
            for (uint32_t r = 0; shard && r < backend->n_ranks; r++) {
                if (!shard[r].data)
                    continue;
                const double error = trained_part_error(backend, r, &shard[r],
                                                        &want[graph_updated(graph, t)]);
                most = MAX(most, error);
                ++*n;
            }
        }
    return most;
}

/* A replay of the plan that has trained for n iterations from the given numbers. NULL on
 * failure. */
static inline ExecReplay *trained_replay(ExecBackend *backend, const Plan *plan,
                                         const Graph *graph, uint32_t n, uint64_t seed,
                                         GError **error)
{
    g_autoptr(ExecReplay) replay = exec_replay_new(backend, plan, graph, error);
    if (!replay)
        return NULL;
    exec_replay_train(replay);
    if (!exec_replay_load(replay, seed, error))
        return NULL;
    for (uint32_t k = 0; k < n; k++)
        if (!exec_replay_run(replay, error))
            return NULL;
    return g_steal_pointer(&replay);
}

#endif
