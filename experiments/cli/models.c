/* kilter models. */
#include "data/base/output.h"
#include "data/formats/format.h"
#include "data/graph/facts.h"
#include "data/models/checkpoint_index.h"
#include "data/models/model.h"
#include "experiments/answers.h"
#include "experiments/cli/command.h"

/* Parameters are counted at the model's defaults on this many GPUs, HAP's smallest testbed. */
enum { MODELS_GPUS = 8 };

static json_t *graph_json(const Graph *graph, const char *canonical)
{
    const GraphFacts facts = graph_facts(graph);
    const double tokens = (double)MAX(1, facts.tokens);
    const double training = sum_over(
        double, id, graph_n_ops(graph),
        graph_get_op(graph, id)->pass != PASS_UPDATE ? graph_op_flops(graph, id) : 0);
    return json_pack("{s:s, s:s, s:I, s:I, s:i, s:i, s:f, s:f, s:I, s:s}", "name",
                     graph_name(graph), "model", canonical, "parameters",
                     (json_int_t)facts.parameters, "active_parameters",
                     (json_int_t)facts.active_parameters, "layers", (int)facts.layers,
                     "ops", (int)graph_n_ops(graph), "forward_flops_per_token",
                     facts.forward_flops / tokens, "training_flops_per_token",
                     training / tokens, "tokens", (json_int_t)facts.tokens, "tokens_are",
                     facts.tokens > graph_batch(graph) ? "tokens" : "samples");
}

/* Shows one model, built in or from a file, for one GPU unless its spec says otherwise. */
static bool show_model(const char *spec, const CommandOptions *options, GError **error)
{
    g_autofree char *canonical = NULL;
    g_autoptr(GError) failure = NULL;
    g_autofree char *text = model_file_facts(spec, &failure);
    json_t *file = text ? json_loads(text, 0, NULL) : NULL;
    const bool refused = file && !json_is_null(json_object_get(file, "refused"));
    g_autoptr(Graph) graph =
        failure || refused ? NULL : model_build(spec, 1, &canonical, &failure);
    if (failure) {
        json_decref(file);
        g_propagate_error(error, g_steal_pointer(&failure));
        return false;
    }
    json_t *json =
        graph ? graph_json(graph, canonical) : json_pack("{s:s}", "name", spec);
    const bool onnx = file != NULL;
    g_autofree char *facts = graph && !onnx ? model_architecture(spec, NULL) : NULL;
    if (facts)
        json_object_update_new(json, json_loads(facts, 0, NULL));
    if (graph && onnx) /* `ops` is already the list of the file's ops */
        json_object_set(json, "graph_ops", json_object_get(json, "ops"));
    if (onnx)
        json_object_update_new(json, file);
    g_autofree char *template =
        g_strconcat(graph ? ANSWER_MODEL : "", onnx ? ANSWER_ONNX : "", NULL);
    command_report(options, json, template, NULL);
    return true;
}

/* Shows the sizes of a checkpoint by its index. */
static bool show_index(const char *file, const CommandOptions *options, GError **error)
{
    CheckpointIndex index;
    if (!checkpoint_index_read(file, &index, error))
        return false;
    command_report(
        options,
        json_pack("{s:s, s:s, s:I, s:I, s:i, s:i, s:o, s:I, s:I}", "name", file, "of",
                  "checkpoint index", "tensors", (json_int_t)index.tensors, "total_size",
                  (json_int_t)index.bytes, "files", (int)index.files, "layers",
                  (int)index.layers, "tensors_per_layer",
                  index.layers ? json_real((double)index.in_layers / index.layers)
                               : json_null(),
                  "parameters_2_bytes", (json_int_t)(index.bytes / 2),
                  "parameters_4_bytes", (json_int_t)(index.bytes / 4)),
        ANSWER_CHECKPOINT, NULL);
    return true;
}

static bool list_built_in(json_t *list, GError **error)
{
    for (uint32_t i = 0; i < model_count(); i++) {
        const ModelInfo *info = model_info(i);
        g_autoptr(Graph) graph = model_build(info->name, MODELS_GPUS, NULL, error);
        if (!graph)
            return false;
        g_autofree char *keys = model_parameters_text(i);
        json_array_append_new(list, json_pack("{s:s, s:I, s:i, s:s, s:s}", "name",
                                              info->name, "parameters",
                                              (json_int_t)graph_parameter_count(graph),
                                              "ops", (int)graph_n_ops(graph), "source",
                                              info->source, "keys", keys));
    }
    return true;
}

/* Configurations that have a name; their keys are those of any config.json. */
static bool list_configs(json_t *list, GError **error)
{
    g_auto(GStrv) names = model_configs();
    for (char **name = names; *name; name++) {
        g_autofree char *content = NULL;
        g_autoptr(Graph) graph = model_build(*name, 1, NULL, error);
        if (!graph || !model_content(*name, &content, error))
            return false;
        json_t *config = json_loads(content, 0, NULL);
        const char *of = json_string_value(json_object_get(config, "_name_or_path"));
        json_array_append_new(
            list, json_pack("{s:s, s:I, s:i, s:o}", "name", *name, "parameters",
                            (json_int_t)graph_parameter_count(graph), "ops",
                            (int)graph_n_ops(graph), "source",
                            json_sprintf("config.json of %s", of ? of : "yours")));
        json_decref(config);
    }
    return true;
}

#define MODELS_OPTIONS(X) X(FILE, output, "output", 'o')
COMMAND_OPTIONS(Own, models_options, MODELS_OPTIONS)

COMMAND(models, Own, MODELS_OPTIONS, 0)
{
    if (own->output && argc < 2)
        return refuse(error, "--output: expected a MODEL");
    if (own->output && !(output_check(own->output, error) &&
                         output_take(own->output, model_write(argv[1], 1, error), error)))
        return false;
    if (argc > 1 && format_of_file(argv[1], FORMAT_MODEL) == FORMAT_CHECKPOINT)
        return show_index(argv[1], options, error);
    if (argc > 1)
        return show_model(argv[1], options, error);
    json_t *list = json_array();
    if (!list_built_in(list, error) || !list_configs(list, error)) {
        json_decref(list);
        return false;
    }
    command_report(options, list, ANSWER_MODELS, NULL);
    return true;
}
