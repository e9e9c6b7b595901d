/* Reading ONNX files as JSON without their weights. */
#include "data/models/onnx.h"

#include "data/base/error.h"

#include <math.h>
#include <string.h>

#define FORMAT "kilter-onnx"

bool onnx_is(const char *path)
{
    return g_str_has_suffix(path, ".onnx");
}

bool onnx_json_is_one(const json_t *root)
{
    const char *name =
        json_string_value(json_object_get(json_object_get(root, "format"), "name"));
    return name && strcmp(name, FORMAT) == 0;
}

#ifdef KILTER_PROTOBUF_C
#include "data/models/onnx.pb-c.h"

/* --- as JSON --- */

static uint64_t elements_of(const OnnxFile__Tensor *tensor)
{
    double n = 1;
    for (size_t d = 0; d < tensor->n_dims; d++)
        n *= (double)MAX(tensor->dims[d], 0);
    return n < 0x1p53 ? (uint64_t)n : UINT64_MAX;
}

/* Numbers that JSON lacks become the next ones. */
static double finite_number(double value)
{
    return isnan(value) ? 0 : CLAMP(value, -1e300, 1e300);
}

/* Element i of the raw bytes, of which there are enough. */
static double raw_element(const OnnxFile__Tensor *tensor, uint64_t i)
{
    const uint8_t *at = tensor->raw_data.data;
    switch (tensor->data_type) {
    case ONNX_FLOAT: {
        float value;
        memcpy(&value, at + 4 * i, sizeof value);
        return (double)value;
    }
    case ONNX_DOUBLE: {
        double value;
        memcpy(&value, at + 8 * i, sizeof value);
        return value;
    }
    case ONNX_INT64: {
        int64_t value;
        memcpy(&value, at + 8 * i, sizeof value);
        return (double)value;
    }
    case 6: {
        int32_t value;
        memcpy(&value, at + 4 * i, sizeof value);
        return value;
    }
    case 3:
        return (int8_t)at[i];
    default:
        return at[i];
    }
}

/* Bytes of an element as raw_data has it; 0: of a type that is not read. */
static uint32_t raw_bytes(int32_t dtype)
{
    switch (dtype) {
    case ONNX_FLOAT:
    case 6:
        return 4;
    case ONNX_DOUBLE:
    case ONNX_INT64:
        return 8;
    case 2:
    case 3:
    case ONNX_BOOL:
        return 1;
    default:
        return 0;
    }
}

/* The tensor's elements; NULL if it does not say all of them here. Caller frees. */
static double *elements(const OnnxFile__Tensor *tensor, uint64_t n)
{
    const uint32_t size = raw_bytes(tensor->data_type);
    g_autofree double *list = NULL;
    if (tensor->data_location != 0 || size == 0 || n > ONNX_MOST_MASK)
        return NULL;
    const bool raw = n > 0 && tensor->raw_data.len == n * size;
    if (!raw && tensor->n_float_data != n && tensor->n_int32_data != n &&
        tensor->n_int64_data != n && tensor->n_double_data != n)
        return NULL;
    list = g_new(double, n + 1);
    for (uint64_t i = 0; i < n; i++)
        list[i] =
            finite_number(raw                         ? raw_element(tensor, i)
                          : tensor->n_float_data == n ? (double)tensor->float_data[i]
                          : tensor->n_int32_data == n ? tensor->int32_data[i]
                          : tensor->n_int64_data == n ? (double)tensor->int64_data[i]
                                                      : tensor->double_data[i]);
    return g_steal_pointer(&list);
}

/* Whether all of a matrix [.., Q, K] above the diagonal is one number, and below another one. */
static bool is_triangular(const OnnxFile__Tensor *tensor, const double *list, uint64_t n)
{
    if (!list || tensor->n_dims < 2)
        return false;
    const uint64_t rows = (uint64_t)tensor->dims[tensor->n_dims - 2],
                   columns = (uint64_t)tensor->dims[tensor->n_dims - 1];
    if (rows < 2 || rows != columns)
        return false;
    for (uint64_t i = 0; i < n; i++) {
        const bool later = i % columns > i / columns % rows;
        if (list[i] != list[later ? 1 : 0] || list[0] == list[1])
            return false;
    }
    return true;
}

static json_t *tensor_json(const OnnxFile__Tensor *tensor)
{
    json_t *shape = json_array(), *json = NULL;
    const uint64_t n = elements_of(tensor);
    g_autofree double *list = n == UINT64_MAX ? NULL : elements(tensor, n);
    for (size_t d = 0; d < tensor->n_dims; d++)
        json_array_append_new(shape, json_integer(tensor->dims[d]));
    json = json_pack("{s:s, s:i, s:o}", "name", tensor->name, "dtype", tensor->data_type,
                     "shape", shape);
    if (json && tensor->data_location == 1)
        json_object_set_new(json, "external", json_true());
    if (json && is_triangular(tensor, list, n))
        json_object_set_new(json, "triangular", json_true());
    if (!json || !list || n > ONNX_MOST_VALUES)
        return json;
    json_t *values = json_array();
    for (uint64_t i = 0; i < n; i++)
        json_array_append_new(values, onnx_dtype_is_float((uint32_t)tensor->data_type)
                                          ? json_real(list[i])
                                          : json_integer((json_int_t)list[i]));
    json_object_set_new(json, "values", values);
    return json;
}

/* Names that are no UTF-8 make json_string fail, and with it all that holds them. */
static bool append(json_t *array, json_t *value)
{
    return value && json_array_append_new(array, value) == 0;
}

static json_t *value_json(const OnnxFile__ValueInfo *value)
{
    const OnnxFile__TensorType *type = value->type ? value->type->tensor_type : NULL;
    json_t *json =
        json_pack("{s:s, s:i}", "name", value->name, "dtype", type ? type->elem_type : 0);
    if (!json || !type || !type->shape)
        return json;
    json_t *shape = json_array();
    for (size_t d = 0; d < type->shape->n_dim; d++) {
        const OnnxFile__Dim *dim = type->shape->dim[d];
        json_t *size = dim->value_case == ONNX_FILE__DIM__VALUE_DIM_VALUE
                           ? json_integer(dim->dim_value)
                       : dim->value_case == ONNX_FILE__DIM__VALUE_DIM_PARAM
                           ? json_string(dim->dim_param)
                           : NULL;
        json_array_append_new(shape, size ? size : json_string("?"));
    }
    json_object_set_new(json, "shape", shape);
    return json;
}

/* NULL: of a type that no op that is read has, a subgraph for one. */
static json_t *attribute_json(const OnnxFile__Attribute *attribute)
{
    enum { FLOAT = 1, INT, STRING, TENSOR, FLOATS = 6, INTS };
    switch (attribute->type) {
    case FLOAT:
        return json_real(finite_number((double)attribute->f));
    case INT:
        return json_integer(attribute->i);
    case STRING:
        return json_stringn((const char *)attribute->s.data, attribute->s.len);
    case TENSOR:
        return attribute->t ? tensor_json(attribute->t) : NULL;
    case FLOATS:
    case INTS: {
        json_t *list = json_array();
        for (size_t i = 0; i < attribute->n_floats; i++)
            json_array_append_new(list,
                                  json_real(finite_number((double)attribute->floats[i])));
        for (size_t i = 0; i < attribute->n_ints; i++)
            json_array_append_new(list, json_integer(attribute->ints[i]));
        return list;
    }
    default:
        return NULL;
    }
}

static bool names_json(json_t *node, const char *key, size_t n, char **name)
{
    json_t *list = json_array();
    bool good = true;
    for (size_t i = 0; i < n; i++)
        good = append(list, json_string(name[i])) && good;
    json_object_set_new(node, key, list);
    return good;
}

static json_t *node_json(const OnnxFile__Node *node)
{
    json_t *json = json_pack("{s:s, s:s}", "op", node->op_type, "name", node->name);
    if (!json || !names_json(json, "in", node->n_input, node->input) ||
        !names_json(json, "out", node->n_output, node->output)) {
        json_decref(json);
        return NULL;
    }
    if (*node->domain && strcmp(node->domain, "ai.onnx") != 0)
        json_object_set_new(json, "domain", json_string(node->domain));
    if (node->n_attribute == 0)
        return json;
    json_t *attr = json_object();
    for (size_t i = 0; i < node->n_attribute; i++)
        json_object_set_new(attr, node->attribute[i]->name,
                            attribute_json(node->attribute[i]));
    json_object_set_new(json, "attr", attr);
    return json;
}

static json_t *graph_lists(const OnnxFile__Graph *graph)
{
    json_t *nodes = json_array(), *initializers = json_array(), *inputs = json_array(),
           *outputs = json_array();
    bool good = true;
    for (size_t i = 0; i < graph->n_node; i++)
        good = append(nodes, node_json(graph->node[i])) && good;
    for (size_t i = 0; i < graph->n_initializer; i++)
        good = append(initializers, tensor_json(graph->initializer[i])) && good;
    for (size_t i = 0; i < graph->n_input; i++)
        good = append(inputs, value_json(graph->input[i])) && good;
    for (size_t i = 0; i < graph->n_output; i++)
        good = append(outputs, value_json(graph->output[i])) && good;
    json_t *lists = json_pack("{s:o, s:o, s:o, s:o}", "nodes", nodes, "initializers",
                              initializers, "inputs", inputs, "outputs", outputs);
    if (good)
        return lists;
    json_decref(lists);
    return NULL;
}

static json_t *model_json(const char *file, const OnnxFile__Model *model, GError **error)
{
    const OnnxFile__Graph *graph = model->graph;
    int64_t opset = 0;
    for (size_t i = 0; i < model->n_opset_import; i++)
        if (!*model->opset_import[i]->domain ||
            strcmp(model->opset_import[i]->domain, "ai.onnx") == 0)
            opset = model->opset_import[i]->version;
    if (!graph || graph->n_node == 0 || graph->n_node > ONNX_MOST_NODES ||
        graph->n_initializer > ONNX_MOST_NODES) {
        kilter_fail(error, KILTER_ERROR_INPUT,
                    "%s: expected an ONNX model with a graph of 1 to %d nodes", file,
                    ONNX_MOST_NODES);
        return NULL;
    }
    json_t *json = graph_lists(graph);
    if (!json) {
        kilter_fail(error, KILTER_ERROR_INPUT, "%s: a name is no UTF-8", file);
        return NULL;
    }
    json_object_update_new(json, json_pack("{s:{s:s, s:i}, s:I, s:I, s:I}", "format",
                                           "name", FORMAT, "version", 1, "ir_version",
                                           (json_int_t)model->ir_version, "opset",
                                           (json_int_t)opset, "value_infos",
                                           (json_int_t)graph->n_value_info));
    return json;
}

json_t *onnx_load(const char *path, GError **error)
{
    g_autoptr(GError) failure = NULL;
    g_autoptr(GMappedFile) file = g_mapped_file_new(path, false, &failure);
    if (!file) {
        kilter_fail(error, KILTER_ERROR_INPUT, "%s", failure->message);
        return NULL;
    }
    g_autoptr(GByteArray) kept =
        onnx_strip(g_mapped_file_get_contents(file), g_mapped_file_get_length(file));
    OnnxFile__Model *model =
        kept ? onnx_file__model__unpack(NULL, kept->len, kept->data) : NULL;
    if (!model) {
        kilter_fail(error, KILTER_ERROR_INPUT, "%s: expected an ONNX model", path);
        return NULL;
    }
    json_t *json = model_json(path, model, error);
    onnx_file__model__free_unpacked(model, NULL);
    return json;
}

#else /* KILTER_PROTOBUF_C */

json_t *onnx_load(const char *path, GError **error)
{
    kilter_fail(error, KILTER_ERROR_FAILED,
                "%s: this build has no protobuf-c, which ONNX files need", path);
    return NULL;
}

#endif
