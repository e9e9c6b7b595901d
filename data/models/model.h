/* Models: builders with parameters. A spec is `name` or `name:key=value,...`, e.g.
 * "vit:layers=24,batch=64", or the same with a file in place of a name: config.json of Hugging
 * Face, its name ("llama-3.1-70b") if it lies in a folder configs of the search path, a folder
 * that has one, hf:OWNER/NAME in the local cache of the hub, a model in YAML
 * (data/families.yaml), a graph (data/graph/file.h), or ONNX (data/formats/onnx/onnx.h).
 *
 * `batch` is per GPU; the global batch is batch x gpus (weak scaling, as in the papers) unless
 * `global_batch` is given; `experts` is 2 x gpus unless given. `precision`: see Precision. */
#pragma once

#include "data/graph/graph.h"

typedef struct {
    const char *name;
    const char *source;
} ModelInfo;

uint32_t model_count(void);
const ModelInfo *model_info(uint32_t index);

/* The names of configurations in these folders, sorted. Free with g_strfreev. */
char **model_configs(void);

/* A model's parameters and their defaults, "batch=64 global_batch=0 layers=8 ...". The caller frees
 * the text. */
char *model_parameters_text(uint32_t index);
/* Whether some model has a parameter of that name. */
bool model_has_key(const char *key);

/* Whether a spec names a model, built in or in a file, and not, say, a plan. */
bool model_is_one(const char *spec);

/* The parameters "key=value,..." of a spec, in it, or "". They begin behind the first colon that a
 * key and '=' follow, since paths and values (train=lora:8) may have colons. */
const char *model_spec_list(const char *spec);

/* Builds, differentiates and seals the model for a cluster of `gpus` devices. *canonical (if not
 * NULL) gets the spec with every parameter resolved, which rebuilds the same graph on any cluster.
 * KILTER_ERROR_INPUT on an unknown model or key or a value that does not fit (heads not dividing
 * hidden, ...). */
Graph *model_build(const char *spec, uint32_t gpus, char **canonical, GError **error);

/* The same for a spec of a file whose content is given as JSON: a plan carries it, so that it can
 * be read without the file. */
Graph *model_build_from(const char *spec, const char *content, uint32_t gpus,
                        char **canonical, GError **error);

/* A canonical spec without the model's defaults, which has the same graph. Caller frees. */
char *model_brief(const char *canonical);

/* Whether a spec can be read: its name or file, its keys, and each value by itself. */
bool model_check(const char *spec, GError **error);
/* The canonical spec without building the model: everything about a spec is checked except the
 * sizes of its tensors. *content as in model_content. NULL on failure; the caller frees both. */
char *model_resolve(const char *spec, uint32_t gpus, char **content, GError **error);

/* *content gets the content of a spec's file in canonical form, NULL for built-in models. The
 * caller frees it. */
bool model_content(const char *spec, char **content, GError **error);

/* The spec of `canonical` (a model with every parameter) with small sizes of the same structure
 * (layers, ops, names): large enough, where that is affordable, that uneven ratios over `n_devices`
 * cut them unevenly; n_devices 0: as small as can be. `random`, if not NULL, varies the sizes.
 * Sizes that are already small stay. The batch stays a multiple of `n_microbatches`. even: of how
 * many heads of keys, and experts, there are so many, or all where these are fewer; 0: a few.
 * Caller frees. */
char *model_shrink(const char *canonical, uint32_t n_devices, uint32_t n_microbatches,
                   uint32_t even, GRand *random);

/* The facts of an ONNX file, and how its nodes are taken, as the text of a JSON object: nodes, ops
 * (by type), opset, ir_version, inputs, outputs, float_parameters, external_tensors, value_infos;
 * `fused` (chains that become one op, by kind), `approximated` and `unmapped` (op type -> nodes),
 * `refused` (why no graph can be built; null). NULL without an error: the spec names no ONNX file.
 * Caller frees. */
char *model_file_facts(const char *spec, GError **error);

/* A description of a model in a file by its family's facts: the text of a JSON object with `facts`
 * (data/families.yaml), `unread` (keys of the file that no fact was read from; null),
 * `kv_bytes_per_token`, `checkpoint_parameters` (by the index of a checkpoint beside the file;
 * null). NULL for other models, and with an error. Caller frees. */
char *model_architecture(const char *spec, GError **error);

/* The graph of a spec as the text of a graph file (data/graph/file.h). The caller frees it. */
char *model_write(const char *spec, uint32_t gpus, GError **error);
