/* The table of the simulation's options. */
#include "sim/options.h"

#include <string.h>

#include "data/formats/measured/layer_profile.h"

bool sim_algorithms_parse(const char *text, Algorithm algorithm[TRAFFICS], GError **error)
{
    g_assert(text);
    g_auto(GStrv) pairs = g_strsplit(text, "+", -1);
    for (uint32_t i = 0; i < TRAFFICS; i++)
        algorithm[i] = ALGORITHM_AUTO;
    for (char **pair = pairs; *pair; pair++) {
        char *colon = strchr(*pair, ':');
        Traffic traffic;
        Algorithm named;
        if (!colon)
            return refuse(error, "expected KIND:NAME, got '%.60s'", *pair);
        *colon = '\0';
        if (!traffic_find(*pair, &traffic, error) ||
            !algorithm_find(colon + 1, &named, error) ||
            !algorithm_check(named, traffic, error))
            return false;
        algorithm[traffic] = named;
    }
    return true;
}

/* Checks the text and keeps it for sim_algorithms_parse. */
static bool read_algorithms(const char *text, const char **kept, GError **error)
{
    if (!sim_algorithms_parse(text, (Algorithm[TRAFFICS]){0}, error))
        return false;
    *kept = g_intern_string(text);
    return true;
}

/* Checks the name. */
static bool read_runtime(const char *text, const char **kept, GError **error)
{
    g_autoptr(Runtime) runtime = *text ? runtime_load(text, error) : NULL;
    *kept = g_intern_string(text);
    return !*text || runtime;
}

#define SIM_OPTION_ENTRY(...) OPTION_ROW(SimOptions, __VA_ARGS__)
static const Option row[] = {SIM_OPTION_TABLE(SIM_OPTION_ENTRY)};

const OptionTable sim_option_table = {row, G_N_ELEMENTS(row)};

void sim_options_init(SimOptions *options)
{
    *options = (SimOptions){.seed = 1};
    options_init(&sim_option_table, options);
}

bool sim_options_set(SimOptions *options, const char *key, const char *value,
                     GError **error)
{
    const Option *option = options_find(&sim_option_table, key);
    g_assert(option);
    return option_set(option, options, value, error);
}

/* Dispatchers by their rows of data/cluster/stack.h. Exchanges beside computation take 20 of 132
 * multiprocessors from it (DeepSeek-AI 2024, Sec. 3.2.1): so much of them is not hidden. */
static const struct {
    double once, beside;
} DISPATCHER[] = {[SIM_DISPATCHER_COPIES] = {0, 0},
                  [SIM_DISPATCHER_ONCE] = {1, 0},
                  [SIM_DISPATCHER_OVERLAPPED] = {1, 1 - 20.0 / 132},
                  [SIM_DISPATCHER_BESIDE] = {0, 1 - 20.0 / 132}};

static bool has_slots(const Graph *graph)
{
    return any_of(id, graph_n_ops(graph),
                  graph_get_op(graph, id)->kind == OP_ROUTE ||
                      graph_get_op(graph, id)->kind == OP_MOE_DISPATCH);
}

bool sim_options_check(const SimOptions *options, const Graph *graph,
                       const ClusterView *view, GError **error)
{
    if (options->dispatcher == SIM_DISPATCHER_RUNTIME)
        return true;
    if (options->costs != SIM_COSTS_KERNELS || !cluster_view_has_kernels(view))
        return refuse(error, "dispatcher has no effect here: expected costs=kernels and "
                             "GPUs of data sheets, as without them exchanges are copies");
    return has_slots(graph) || refuse(error, "dispatcher has no effect here: expected a "
                                             "model with experts");
}

ClusterView *sim_options_view(const SimOptions *options, const Runtime *runtime,
                              const ClusterView *view)
{
    if (options->costs != SIM_COSTS_KERNELS || !cluster_view_has_kernels(view))
        return NULL;
    ClusterView *priced =
        cluster_view_priced(view, true, runtime ? &runtime->stack : NULL);
    for (uint32_t f = 0;
         options->dispatcher != SIM_DISPATCHER_RUNTIME && f < priced->n_fitted; f++) {
        priced->pricing[f].stack.once = DISPATCHER[options->dispatcher].once;
        priced->pricing[f].stack.beside = DISPATCHER[options->dispatcher].beside;
    }
    return priced;
}
