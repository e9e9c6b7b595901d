/* Reading ONNX files as JSON without their weights. */
#include "data/base/json.h"
#include "data/formats/onnx/onnx.h"

#include "data/base/error.h"
#include "data/formats/onnx/torch.h"

#include <math.h>
#include <string.h>

#define FORMAT "kilter-onnx"

bool onnx_is(const char *path)
{
    return g_str_has_suffix(path, ".onnx") || torch_is(path);
}

#ifdef KILTER_PROTOBUF_C
#include "data/formats/onnx/onnx.pb-c.h"

/* --- as JSON --- */

static uint64_t onnx_elements_of(const OnnxFile__Tensor *tensor)
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

/* A number of 16 bits: IEEE 754's half, or the upper half of a float. */
static double small_float(uint16_t bits, bool brain)
{
    const uint32_t mantissa = bits & (brain ? 0x7f : 0x3ff);
    const int width = brain ? 7 : 10, bias = brain ? 127 : 15,
              exponent = bits >> width & (brain ? 0xff : 0x1f);
    const double size = exponent == (brain ? 0xff : 0x1f) ? (mantissa ? NAN : INFINITY)
                        : exponent == 0 ? ldexp((double)mantissa, 1 - bias - width)
                                        : ldexp((double)(mantissa | 1U << width),
                                                exponent - bias - width);
    return bits & 0x8000 ? -size : size;
}

/* Types of elements: bytes in raw_data, and a signed or unsigned integer or a float. */
typedef enum { ELEMENT_NONE, ELEMENT_SIGNED, ELEMENT_UNSIGNED, ELEMENT_REAL } ElementKind;
static const struct {
    uint8_t bytes;
    ElementKind kind;
} ELEMENT[] = {
    [ONNX_FLOAT] = {4, ELEMENT_REAL},      [ONNX_UINT8] = {1, ELEMENT_UNSIGNED},
    [ONNX_INT8] = {1, ELEMENT_SIGNED},     [ONNX_UINT16] = {2, ELEMENT_UNSIGNED},
    [ONNX_INT16] = {2, ELEMENT_SIGNED},    [ONNX_INT32] = {4, ELEMENT_SIGNED},
    [ONNX_INT64] = {8, ELEMENT_SIGNED},    [ONNX_BOOL] = {1, ELEMENT_UNSIGNED},
    [ONNX_HALF] = {2, ELEMENT_REAL},       [ONNX_DOUBLE] = {8, ELEMENT_REAL},
    [ONNX_UINT32] = {4, ELEMENT_UNSIGNED}, [ONNX_UINT64] = {8, ELEMENT_UNSIGNED},
    [ONNX_BFLOAT] = {2, ELEMENT_REAL},
};

/* Bytes of an element as raw_data has it; 0: of a type that is not read. */
static uint32_t raw_bytes(int32_t dtype)
{
    return dtype > 0 && (size_t)dtype < G_N_ELEMENTS(ELEMENT) ? ELEMENT[dtype].bytes : 0;
}

/* Element i of the raw bytes, of which there are enough, the lowest byte first. */
static double raw_element(const OnnxFile__Tensor *tensor, uint64_t i)
{
    const uint32_t size = raw_bytes(tensor->data_type), unused = 64 - 8 * size;
    const ElementKind kind = ELEMENT[tensor->data_type].kind;
    uint64_t bits = 0;
    for (uint32_t k = 0; k < size; k++)
        bits |= (uint64_t)tensor->raw_data.data[size * i + k] << 8 * k;
    if (kind == ELEMENT_UNSIGNED)
        return (double)bits;
    if (kind == ELEMENT_SIGNED)
        return (double)((int64_t)(bits << unused) >> unused);
    if (size == 2)
        return small_float((uint16_t)bits, tensor->data_type == ONNX_BFLOAT);
    const uint32_t half = (uint32_t)bits;
    float single;
    double number;
    memcpy(&single, &half, sizeof single);
    memcpy(&number, &bits, sizeof number);
    return size == 4 ? (double)single : number;
}

/* An element of int32_data, which holds the bits of small floats. */
static double packed_element(const OnnxFile__Tensor *tensor, uint64_t i)
{
    const int32_t value = tensor->int32_data[i];
    return tensor->data_type == ONNX_HALF || tensor->data_type == ONNX_BFLOAT
               ? small_float((uint16_t)value, tensor->data_type == ONNX_BFLOAT)
               : value;
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
                          : tensor->n_int32_data == n ? packed_element(tensor, i)
                          : tensor->n_int64_data == n ? (double)tensor->int64_data[i]
                                                      : tensor->double_data[i]);
    return g_steal_pointer(&list);
}

static json_t *onnx_tensor_json(const OnnxFile__Tensor *tensor)
{
    json_t *shape = json_array(), *json = NULL;
    const uint64_t n = onnx_elements_of(tensor);
    g_autofree double *list = n == UINT64_MAX ? NULL : elements(tensor, n);
    for (size_t d = 0; d < tensor->n_dims; d++)
        json_array_append_new(shape, json_integer(tensor->dims[d]));
    json = json_pack("{s:s, s:i, s:o}", "name", tensor->name, "dtype", tensor->data_type,
                     "shape", shape);
    if (json && tensor->data_location == 1)
        json_object_set_new(json, "external", json_true());
    if (json && list && tensor->n_dims >= 2 &&
        onnx_is_triangular(list, n, (uint64_t)tensor->dims[tensor->n_dims - 2],
                           (uint64_t)tensor->dims[tensor->n_dims - 1]))
        json_object_set_new(json, "triangular", json_true());
    if (!json || !list || n > ONNX_MOST_VALUES)
        return json;
    json_t *values = json_array();
    for (uint64_t i = 0; i < n; i++)
        json_array_append_new(
            values, onnx_dtype_is_float((uint32_t)tensor->data_type)
                        ? json_real(list[i])
                        : json_integer((json_int_t)CLAMP(list[i], -0x1p62, 0x1p62)));
    json_object_set_new(json, "values", values);
    return json;
}

/* A name that is no UTF-8 makes json_string fail, and with it all that holds it: *good is false
 * then, and null takes its place. */
static json_t *onnx_checked(json_t *json, bool *good)
{
    *good = *good && json;
    return json ? json : json_null();
}

static json_t *onnx_value_json(const OnnxFile__ValueInfo *value)
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

/* NULL: of a type that no op that is read has, a subgraph for one. In a function it may be an
 * attribute of the call. */
static json_t *attribute_json(const OnnxFile__Attribute *attribute)
{
    enum { FLOAT = 1, INT, STRING, TENSOR, FLOATS = 6, INTS };
    if (*attribute->ref_attr_name)
        return json_pack("{s:s}", "ref", attribute->ref_attr_name);
    switch (attribute->type) {
    case FLOAT:
        return json_real(finite_number((double)attribute->f));
    case INT:
        return json_integer(attribute->i);
    case STRING:
        return json_stringn((const char *)attribute->s.data, attribute->s.len);
    case TENSOR:
        return attribute->t ? onnx_tensor_json(attribute->t) : NULL;
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

static json_t *names_json(size_t n, char **name, bool *good)
{
    return json_list(for (size_t i = 0; i < n; i++),
                     onnx_checked(json_string(name[i]), good));
}

static json_t *attributes_json(size_t n, OnnxFile__Attribute *const *attribute)
{
    json_t *attr = json_object();
    for (size_t i = 0; i < n; i++)
        json_object_set_new(attr, attribute[i]->name, attribute_json(attribute[i]));
    return attr;
}

static void set_domain(json_t *json, const char *domain, const char *overload)
{
    if (*domain && strcmp(domain, "ai.onnx") != 0)
        json_object_set_new(json, "domain", json_string(domain));
    if (*overload)
        json_object_set_new(json, "overload", json_string(overload));
}

static json_t *onnx_node_json(const OnnxFile__Node *node, bool *good)
{
    json_t *json = onnx_checked(
        json_pack("{s:s, s:s, s:o, s:o}", "op", node->op_type, "name", node->name, "in",
                  names_json(node->n_input, node->input, good), "out",
                  names_json(node->n_output, node->output, good)),
        good);
    set_domain(json, node->domain, node->overload);
    if (node->n_attribute > 0)
        json_object_set_new(json, "attr",
                            attributes_json(node->n_attribute, node->attribute));
    return json;
}

static json_t *onnx_nodes_json(size_t n, OnnxFile__Node *const *node, bool *good)
{
    return json_list(for (size_t i = 0; i < n; i++), onnx_node_json(node[i], good));
}

static json_t *function_json(const OnnxFile__Function *function, bool *good)
{
    json_t *json = onnx_checked(
        json_pack("{s:s, s:o, s:o, s:o, s:o}", "op", function->name, "in",
                  names_json(function->n_input, function->input, good), "out",
                  names_json(function->n_output, function->output, good), "attr",
                  attributes_json(function->n_attribute_proto, function->attribute_proto),
                  "nodes", onnx_nodes_json(function->n_node, function->node, good)),
        good);
    set_domain(json, function->domain, function->overload);
    return json;
}

/* Shapes that the file states in full, by the value's name. */
static json_t *stated_shapes(const OnnxFile__Graph *graph)
{
    json_t *shapes = json_object();
    for (size_t i = 0; i < graph->n_value_info; i++) {
        json_t *value = onnx_value_json(graph->value_info[i]);
        json_t *shape = json_object_get(value, "shape");
        bool full = json_is_array(shape);
        elements_each (dim, shape)
            full = full && json_integer_value(dim) > 0;
        if (full)
            json_object_set(shapes, graph->value_info[i]->name, shape);
        json_decref(value);
    }
    return shapes;
}

static json_t *graph_lists(const OnnxFile__Graph *graph, bool *good)
{
    json_t *nodes = onnx_nodes_json(graph->n_node, graph->node, good),
           *initializers = json_array(), *inputs = json_array(), *outputs = json_array();
    for (size_t i = 0; i < graph->n_initializer; i++)
        json_array_append_new(
            initializers, onnx_checked(onnx_tensor_json(graph->initializer[i]), good));
    for (size_t i = 0; i < graph->n_input; i++)
        json_array_append_new(inputs,
                              onnx_checked(onnx_value_json(graph->input[i]), good));
    for (size_t i = 0; i < graph->n_output; i++)
        json_array_append_new(outputs,
                              onnx_checked(onnx_value_json(graph->output[i]), good));
    return json_pack("{s:o, s:o, s:o, s:o}", "nodes", nodes, "initializers", initializers,
                     "inputs", inputs, "outputs", outputs);
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
        graph->n_initializer > ONNX_MOST_NODES)
        return refused(error, "%s: expected an ONNX model with a graph of 1 to %d nodes",
                       file, ONNX_MOST_NODES);
    bool good = true;
    json_t *json = graph_lists(graph, &good), *functions = json_array();
    for (size_t i = 0; i < model->n_functions; i++)
        json_array_append_new(functions, function_json(model->functions[i], &good));
    if (json_array_size(functions) > 0)
        json_object_set(json, "functions", functions);
    json_decref(functions);
    if (graph->n_value_info > 0)
        json_object_set_new(json, "shapes", stated_shapes(graph));
    if (!good) {
        json_decref(json);
        return refused(error, "%s: a name is no UTF-8", file);
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
    if (!file)
        return refused(error, "%s", failure->message);
    g_autoptr(GByteArray) kept =
        onnx_strip(g_mapped_file_get_contents(file), g_mapped_file_get_length(file));
    OnnxFile__Model *model =
        kept ? onnx_file__model__unpack(NULL, kept->len, kept->data) : NULL;
    if (!model)
        return refused(error, "%s: expected an ONNX model", path);
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
