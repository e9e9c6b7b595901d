/* Specs of ONNX files, and what is said of a file. */
#include "data/formats/onnx/model.h"

#include "data/base/error.h"

#include <string.h>

/* Sets *params from a spec's list, and from them the shapes of the model; the batch and the length
 * of sequences are those of the file where it says them. */
static bool onnx_resolve(const char *spec, OnnxModel *model, const char *list,
                         uint32_t gpus, ModelParams *params, GError **error)
{
    *params = model_params_new(&MODEL_OF_ONNX);
    if (!model_params_parse(spec, list, params, error))
        return false;
    ModelParam *batch = model_params_find(params, "batch"),
               *seq = model_params_find(params, "seq");
    onnx_infer(model, seq->value > 0 ? (uint64_t)seq->value : ONNX_DEFAULT_SEQ);
    if (seq->value > 0 && model->seq_fixed)
        return refuse(error, "model '%s': seq: the file leaves no length open", spec);
    if (seq->value == 0 && !model->seq_fixed)
        seq->value = ONNX_DEFAULT_SEQ;
    if (batch->value == 0)
        batch->value = model->batch_fixed ? (double)model->batch : 1;
    return model_params_follow(spec, params, 0, gpus, error);
}

static OnnxSizes sizes_of(const ModelParams *params)
{
    return (OnnxSizes){.batch = model_size(params, "global_batch"),
                       .fused = params->attention == ATTENTION_FUSED};
}

/* The error of a file that leaves lengths open says how long they were taken to be. */
static void say_length(const OnnxModel *model, const ModelParams *params, GError **error)
{
    if (!*error || model->seq_fixed)
        return;
    g_autofree char *message = g_strdup_printf(
        "%s (the file leaves the length of sequences open; here seq=%.0f)",
        (*error)->message, model_params_find((ModelParams *)params, "seq")->value);
    put_block((*error)->message, g_steal_pointer(&message));
}

/* Why a file's model cannot be built; NULL if it can. Caller frees. */
static char *try_out(const char *spec, OnnxModel *model, const char *list,
                     OnnxTaken *taken)
{
    ModelParams params;
    TensorId loss;
    g_autoptr(GError) refused = NULL;
    g_autoptr(Graph) graph = graph_new("trial");
    if (onnx_resolve(spec, model, list, 1, &params, &refused)) {
        const OnnxSizes sizes = sizes_of(&params);
        model_prepare(graph, &params);
        onnx_build(graph, model, &sizes, &loss, taken, &refused);
        say_length(model, &params, &refused);
    }
    return refused ? g_strdup(refused->message) : NULL;
}

json_t *onnx_file_facts(const char *spec, const char *file, const json_t *root,
                        const char *list, GError **error)
{
    OnnxTaken taken = {0};
    g_autoptr(OnnxModel) model = onnx_read(file, root, error);
    if (!model)
        return NULL;
    g_autofree char *refused = try_out(spec, model, list, &taken);
    json_t *facts = onnx_facts(model);
    json_object_update_new(
        facts,
        json_pack("{s:{s:i, s:i, s:i}, s:O?, s:O?, s:s?}", "fused", "layer_norm",
                  (int)taken.layer_norms, "activation", (int)taken.activations,
                  "attention", (int)taken.attentions, "approximated", taken.approximated,
                  "unmapped", taken.unmapped, "refused", refused));
    onnx_taken_clear(&taken);
    return facts;
}

bool onnx_graph(const ModelOfFile *of, GError **error)
{
    ModelParams params;
    TensorId loss;
    g_autofree char *name = g_path_get_basename(of->file);
    if (onnx_is(name))
        *strrchr(name, '.') = '\0';
    g_autoptr(Graph) graph = graph_new(*name ? name : "onnx");
    g_autoptr(OnnxModel) model = onnx_read(of->file, of->root, error);
    if (!model ||
        !onnx_resolve(of->spec, model, of->list, MAX(of->gpus, 1), &params, error))
        return false;
    const OnnxSizes sizes = sizes_of(&params);
    model_prepare(graph, &params);
    GError *refused = NULL;
    if (!onnx_build(graph, model, &sizes, &loss, NULL, &refused)) {
        say_length(model, &params, &refused);
        g_propagate_error(error, refused);
        return false;
    }
    if (!model_sizes_fit(of->spec, graph, params.documents, error))
        return false;
    graph_differentiate(graph, loss, params.optimizer);
    graph_seal(graph);
    if (of->canonical)
        *of->canonical = model_params_spec(of->file, &params);
    if (of->graph)
        *of->graph = g_steal_pointer(&graph);
    return true;
}
