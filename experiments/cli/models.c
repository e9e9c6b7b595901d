#include <stdio.h>

#include "experiments/cli/command.h"

/* Parameters are counted at the model's defaults on this many GPUs, HAP's smallest testbed. */
enum { MODELS_GPUS = 8 };

static void print_text(const ModelInfo *info, uint32_t index, const Graph *graph)
{
    g_autofree char *keys = model_parameters_text(index);
    printf("%-12s %8.1f Mi parameters, %u ops; %s\n", info->name,
           (double)graph_parameter_count(graph) / (1 << 20), graph_n_ops(graph),
           info->source);
    printf("%-15s %s\n", "", keys);
}

bool cmd_models(int argc, char **argv, GError **error)
{
    const CommandSyntax syntax = {
        .name = "models",
        .arguments = "",
        .summary =
            "Lists the built-in models: parameters and ops of the training graph at the "
            "defaults on 8 GPUs\n(1 Mi = 2^20), and the keys that MODEL:key=value,... "
            "takes\n(global_batch and experts at 0 follow the cluster; "
            "optimizer=adam|sgd; "
            "precision=single|mixed|\nmixed-fp32-grads: mixed is two bytes for "
            "parameters, "
            "activations and gradients, float32 for optimizer\nstates and a master copy, "
            "16 bytes a parameter with Adam; 18 with float32 gradients as in "
            "Megatron-LM).",
        .example = "kilter models --json",
    };
    g_auto(CommandOptions) options = {0};
    if (!command_parse(&syntax, &argc, argv, &options, error))
        return false;
    json_t *list = json_array();
    for (uint32_t i = 0; i < model_count(); i++) {
        const ModelInfo *info = model_info(i);
        g_autoptr(Graph) graph = model_build(info->name, MODELS_GPUS, NULL, error);
        if (!graph) {
            json_decref(list);
            return false;
        }
        json_array_append_new(
            list, json_pack("{s:s, s:I, s:i, s:s}", "name", info->name, "parameters",
                            (json_int_t)graph_parameter_count(graph), "ops",
                            (int)graph_n_ops(graph), "source", info->source));
        if (!options.json && !options.quiet)
            print_text(info, i, graph);
    }
    if (options.json)
        command_print_json(list);
    else
        json_decref(list);
    return true;
}
