/* Writing graph files. */
#include "data/graph/file.h"

#include "data/base/json.h"
#include "data/graph/file_parts.h"
#include "data/graph/file_times.h"

#include <string.h>

#define DTYPE_NAME(id, name, bytes) name,
const char *const GRAPH_DTYPE_NAMES[DTYPES] = {DTYPE_TABLE(DTYPE_NAME)};

const GraphAttr GRAPH_ATTR[GRAPH_ATTRS] = {
    {"stride", offsetof(OpAttr, stride), ATTR_SIZE},
    {"padding", offsetof(OpAttr, padding), ATTR_SIZE},
    {"padding_columns", offsetof(OpAttr, padding_columns), ATTR_SIZE},
    {"window", offsetof(OpAttr, window), ATTR_SIZE},
    {"seed", offsetof(OpAttr, seed), ATTR_SIZE},
    {"rate", offsetof(OpAttr, rate), ATTR_NUMBER},
    {"causal", offsetof(OpAttr, causal), ATTR_FLAG},
    {"span", offsetof(OpAttr, span), ATTR_SIZE},
    {"documents", offsetof(OpAttr, documents), ATTR_DOCUMENTS},
    {"alibi", offsetof(OpAttr, alibi), ATTR_FLAG},
    {"first", offsetof(OpAttr, first), ATTR_SIZE},
    {"top", offsetof(OpAttr, top), ATTR_SIZE},
    {"groups", offsetof(OpAttr, groups), ATTR_SIZE},
    {"top_groups", offsetof(OpAttr, top_groups), ATTR_SIZE},
    {"sigmoid", offsetof(OpAttr, sigmoid), ATTR_FLAG},
    {"normalised", offsetof(OpAttr, normalised), ATTR_FLAG},
    {"dropless", offsetof(OpAttr, dropless), ATTR_FLAG},
    {"scale", offsetof(OpAttr, scale), ATTR_NUMBER},
};

static void write_attr(json_t *node, const OpAttr *attr)
{
    for (uint32_t i = 0; i < GRAPH_ATTRS; i++) {
        const void *at = (const char *)attr + GRAPH_ATTR[i].at;
        if (GRAPH_ATTR[i].type == ATTR_SIZE && *(const uint32_t *)at)
            json_object_set_new(node, GRAPH_ATTR[i].key,
                                json_integer(*(const uint32_t *)at));
        else if (GRAPH_ATTR[i].type == ATTR_FLAG && *(const bool *)at)
            json_object_set_new(node, GRAPH_ATTR[i].key, json_true());
        else if (GRAPH_ATTR[i].type == ATTR_NUMBER && *(const double *)at > 0)
            json_object_set_new(node, GRAPH_ATTR[i].key, json_real(*(const double *)at));
        else if (GRAPH_ATTR[i].type == ATTR_DOCUMENTS && *(const char *const *)at)
            json_object_set_new(node, GRAPH_ATTR[i].key,
                                json_string(*(const char *const *)at));
    }
}

/* --- writing --- */

static json_t *tensor_json(const Tensor *tensor)
{
    if (tensor->role == ROLE_INPUT)
        return json_pack("{s:s, s:s, s:o}", "input", tensor->name, "dtype",
                         GRAPH_DTYPE_NAMES[tensor->dtype], "shape",
                         json_integers(tensor->dim, tensor->rank));
    json_t *node = json_pack("{s:s, s:o}", "parameter", tensor->name, "shape",
                             json_integers(tensor->dim, tensor->rank));
    json_t *whole = json_array();
    for (uint32_t d = 0; d < tensor->rank; d++)
        if (tensor->whole >> d & 1u)
            json_array_append_new(whole, json_integer(d));
    if (json_array_size(whole) > 0)
        json_object_set(node, "whole", whole);
    json_decref(whole);
    if (tensor->frozen)
        json_object_set_new(node, "frozen", json_true());
    return node;
}

static json_t *graph_op_json(const Graph *graph, const Op *op)
{
    json_t *in = json_array();
    for (uint32_t i = 0; i < op->n_in; i++)
        json_array_append_new(in, json_string(graph_tensor(graph, op->in[i])->name));
    json_t *node = json_pack("{s:s, s:s, s:o}", "op", op->name, "kind",
                             op_kind_name(op->kind), "in", in);
    if (op->extents)
        json_object_set_new(node, "extents", json_string(op->extents));
    write_attr(node, &op->attr);
    return node;
}

/* Layers, inputs, parameters and ops up to the loss, in the order in which they were made. */
static json_t *nodes_json(const Graph *graph)
{
    json_t *nodes = json_array();
    uint32_t layer = 0;
    OpId id = 0;
    for (TensorId t = 0; t <= graph_loss(graph); t++) {
        const Tensor *tensor = graph_tensor(graph, t);
        if (tensor->producer == GRAPH_NONE) {
            json_array_append_new(nodes, tensor_json(tensor));
            continue;
        }
        if (tensor->producer < id)
            continue; /* not an op's first output */
        const Op *op = graph_get_op(graph, id++);
        for (; layer <= op->layer; layer++)
            json_array_append_new(
                nodes, json_pack("{s:s}", "layer", graph_layer_name(graph, layer)));
        json_array_append_new(nodes, graph_op_json(graph, op));
    }
    return nodes;
}

json_t *graph_to_json(const Graph *graph)
{
    json_t *root =
        json_pack("{s:{s:s, s:i}, s:s, s:s, s:s, s:o}", "format", "name", GRAPH_FORMAT,
                  "version", GRAPH_VERSION, "name", graph_name(graph), "precision",
                  precision_name(graph_precision(graph)), "optimizer",
                  optimizer_name(graph_optimizer(graph)), "nodes", nodes_json(graph));
    const StateFormats states = graph_states(graph),
                       usual = precision_states(graph_precision(graph));
    for (uint32_t k = 0; STATE_KEYS[k]; k++) {
        g_autofree char *value =
            state_formats_get(&states, STATE_KEYS[k], graph_precision(graph));
        g_autofree char *by =
            state_formats_get(&usual, STATE_KEYS[k], graph_precision(graph));
        if (strcmp(value, by) != 0)
            json_object_set_new(root, STATE_KEYS[k], json_string(value));
    }
    if (graph_has_times(graph))
        json_object_set_new(root, "times", graph_times_json(graph));
    if (!graph_is_timed(graph))
        return root;
    json_t *seconds = json_object();
    ops_each (op, id, graph) {
        if (op->seconds > 0)
            json_object_set_new(seconds, op->name, json_real(op->seconds));
    }
    json_object_set_new(root, "seconds", seconds);
    return root;
}
