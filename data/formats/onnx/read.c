/* An ONNX model from what its file says as JSON, and the facts of it. */
#include "data/formats/onnx/onnx.h"

#include "data/base/error.h"
#include "data/base/free.h"
#include "data/base/json.h"
#include "data/base/text.h"

#include <string.h>

/* --- attributes --- */

bool onnx_op_is(const OnnxNode *node, const char *op)
{
    return strcmp(node->op, op) == 0;
}

bool onnx_dtype_is_float(uint32_t dtype)
{
    return dtype == ONNX_FLOAT || dtype == ONNX_HALF || dtype == ONNX_DOUBLE ||
           dtype == ONNX_BFLOAT;
}

int64_t onnx_int(const OnnxNode *node, const char *key, int64_t otherwise)
{
    const json_t *value = json_object_get(node->attr, key);
    return json_is_integer(value) ? json_integer_value(value) : otherwise;
}

double onnx_number(const OnnxNode *node, const char *key, double otherwise)
{
    const json_t *value = json_object_get(node->attr, key);
    return json_is_number(value) ? json_number_value(value) : otherwise;
}

const char *onnx_text(const OnnxNode *node, const char *key, const char *otherwise)
{
    const char *text = json_string_value(json_object_get(node->attr, key));
    return text ? text : otherwise;
}

uint32_t onnx_ints(const OnnxNode *node, const char *key, uint32_t most, int64_t *list)
{
    const json_t *value = json_object_get(node->attr, key);
    const uint32_t n = (uint32_t)MIN(json_array_size(value), most);
    for (uint32_t i = 0; i < n; i++)
        list[i] = json_integer_value(json_array_get(value, i));
    return n;
}

/* --- values --- */

uint64_t onnx_elements(const OnnxValue *value)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < value->rank; d++)
        n *= value->dim[d];
    return n;
}

bool onnx_is_triangular(const double *list, uint64_t n, uint64_t rows, uint64_t columns)
{
    if (n < 4 || rows < 2 || rows != columns || list[0] == list[1])
        return false;
    for (uint64_t i = 0; i < n; i++)
        if (list[i] != list[i % columns > i / columns % rows ? 1 : 0])
            return false;
    return true;
}

bool onnx_scalar(const OnnxModel *model, uint32_t value, double *number)
{
    const OnnxValue *v = onnx_value(model, value);
    if (!v->constant || !v->value || !v->known || onnx_elements(v) != 1)
        return false;
    *number = v->value[0];
    return true;
}

int onnx_constant_ints(const OnnxModel *model, uint32_t value,
                       int64_t list[ONNX_MAX_RANK])
{
    const OnnxValue *v = onnx_value(model, value);
    if (!v->value || !v->known || v->rank > 1 || onnx_elements(v) > ONNX_MAX_RANK)
        return -1;
    for (uint64_t i = 0; i < onnx_elements(v); i++)
        list[i] = (int64_t)CLAMP(v->value[i], -0x1p62, 0x1p62);
    return (int)onnx_elements(v);
}

int onnx_ints_of(const OnnxModel *model, const OnnxNode *node, uint32_t i,
                 const char *key, int64_t list[ONNX_MAX_RANK])
{
    const uint32_t value = onnx_in(model, node, i);
    return value == ONNX_NONE ? (int)onnx_ints(node, key, ONNX_MAX_RANK, list)
                              : onnx_constant_ints(model, value, list);
}

/* --- reading --- */

typedef struct {
    OnnxModel *model;
    GHashTable *index; /* name -> value */
    GError **error;
} Reader;

static bool onnx_fail(const Reader *r, const char *format, ...) G_GNUC_PRINTF(2, 3);
static bool onnx_fail(const Reader *r, const char *format, ...)
{
    TEXT_OF_ARGUMENTS(reason, format);
    return refuse(r->error, "%s: %s", r->model->file, reason);
}

static uint32_t onnx_find(const Reader *r, const char *name)
{
    return GPOINTER_TO_UINT(g_hash_table_lookup(r->index, name));
}

static uint32_t onnx_add_value(const Reader *r, const char *name)
{
    const OnnxValue value = {.name = name, .producer = ONNX_NO_NODE};
    const uint32_t index = r->model->value->len;
    g_array_append_val(r->model->value, value);
    g_hash_table_insert(r->index, (char *)name, GUINT_TO_POINTER(index));
    return index;
}

/* Sizes of a shape: 0 where it is open. */
static bool onnx_read_shape(const Reader *r, const json_t *shape, OnnxValue *value)
{
    double n = 1;
    if (!json_is_array(shape))
        return true;
    if (json_array_size(shape) > ONNX_MAX_RANK)
        return onnx_fail(r, "'%s' has %zu dims, expected at most %d", value->name,
                         json_array_size(shape), ONNX_MAX_RANK);
    value->known = true;
    value->rank = (uint32_t)json_array_size(shape);
    for (uint32_t d = 0; d < value->rank; d++) {
        const json_t *size = json_array_get(shape, d);
        const json_int_t dim = json_integer_value(size);
        if (dim < 0 || dim > INT32_MAX)
            return onnx_fail(r, "'%s': expected sizes up to %d", value->name, INT32_MAX);
        value->dim[d] = (uint64_t)dim;
        n *= (double)MAX(dim, 1);
    }
    return n <= 0x1p53 ||
           onnx_fail(r, "'%s' would have %.3g elements, expected at most 2^53",
                     value->name, n);
}

/* Reads a tensor of the file: type, shape, small values. */
static bool read_tensor(const Reader *r, const json_t *tensor, uint32_t index)
{
    OnnxValue *value = onnx_value(r->model, index);
    const json_t *values = json_object_get(tensor, "values");
    value->dtype = (uint32_t)json_integer_value(json_object_get(tensor, "dtype"));
    value->constant = true;
    value->triangular = json_is_true(json_object_get(tensor, "triangular"));
    if (!onnx_read_shape(r, json_object_get(tensor, "shape"), value))
        return false;
    value->known = true; /* a shape of no dims is left out nowhere */
    if (!values)
        return true;
    if (json_array_size(values) != onnx_elements(value) ||
        json_array_size(values) > ONNX_MOST_VALUES)
        return onnx_fail(r, "'%s': %zu values do not fill its shape", value->name,
                         json_array_size(values));
    value->value = g_new(double, json_array_size(values) + 1);
    for (size_t i = 0; i < json_array_size(values); i++)
        value->value[i] = json_number_value(json_array_get(values, i));
    return true;
}

static bool read_initializers(const Reader *r)
{
    elements_at (tensor, i, json_object_get(r->model->root, "initializers")) {
        const char *name = json_word(tensor, "name");
        if (!*name || onnx_find(r, name) != ONNX_NONE)
            return onnx_fail(r, "initializer %zu: expected a name of its own", i);
        const uint32_t index = onnx_add_value(r, name);
        if (!read_tensor(r, tensor, index))
            return false;
        onnx_value(r->model, index)->origin = index;
    }
    return true;
}

static bool onnx_read_inputs(const Reader *r)
{
    elements_at (input, i, json_object_get(r->model->root, "inputs")) {
        const char *name = json_word(input, "name");
        if (!*name)
            return onnx_fail(r, "input %zu: expected a name", i);
        if (onnx_find(r, name) != ONNX_NONE)
            continue; /* its default is an initializer */
        const uint32_t index = onnx_add_value(r, name);
        OnnxValue *value = onnx_value(r->model, index);
        value->dtype = (uint32_t)json_integer_value(json_object_get(input, "dtype"));
        value->input = true;
        if (!onnx_read_shape(r, json_object_get(input, "shape"), value))
            return false;
        g_array_append_val(r->model->input, index);
    }
    return true;
}

static bool add_operands(const Reader *r, const json_t *names, uint32_t node, bool made)
{
    elements_each (entry, names) {
        const char *name = json_string_value(entry);
        uint32_t index = name ? onnx_find(r, name) : ONNX_NONE;
        if (!name)
            return onnx_fail(r, "nodes[%u]: expected names", node);
        if (*name && made) {
            if (index != ONNX_NONE)
                return onnx_fail(r, "nodes[%u]: there is a value '%s' already", node,
                                 name);
            index = onnx_add_value(r, name);
            onnx_value(r->model, index)->producer = node;
        } else if (*name && index == ONNX_NONE)
            return onnx_fail(r, "nodes[%u]: expected a value made before, got '%s'", node,
                             name);
        if (!made)
            onnx_value(r->model, index)->uses++;
        g_array_append_val(r->model->operand, index);
    }
    return true;
}

/* A Constant's number or list of numbers as a tensor; NULL: it has none. A new reference. */
static json_t *constant_tensor(const OnnxNode *node)
{
    static const struct {
        const char *key;
        int dtype;
    } attribute[] = {{"value_int", ONNX_INT64},
                     {"value_ints", ONNX_INT64},
                     {"value_float", ONNX_FLOAT},
                     {"value_floats", ONNX_FLOAT}};
    json_t *tensor = json_object_get(node->attr, "value");
    if (json_is_object(tensor))
        return json_incref(tensor);
    for (uint32_t i = 0; i < G_N_ELEMENTS(attribute); i++) {
        json_t *value = json_object_get(node->attr, attribute[i].key);
        if (json_is_array(value))
            return json_pack("{s:i, s:[I], s:O}", "dtype", attribute[i].dtype, "shape",
                             (json_int_t)json_array_size(value), "values", value);
        if (json_is_number(value))
            return json_pack("{s:i, s:[], s:[O]}", "dtype", attribute[i].dtype, "shape",
                             "values", value);
    }
    return NULL;
}

static bool read_constant(const Reader *r, const OnnxNode *node)
{
    const uint32_t made = onnx_out(r->model, node, 0);
    json_auto_t *tensor = made == ONNX_NONE ? NULL : constant_tensor(node);
    onnx_value(r->model, made)->origin = tensor ? made : ONNX_NONE;
    return !tensor || read_tensor(r, tensor, made);
}

static bool onnx_read_nodes(const Reader *r)
{
    elements_at (entry, i, r->model->nodes) {
        const json_t *in = json_object_get(entry, "in"),
                     *out = json_object_get(entry, "out");
        OnnxNode node = {
            .op = json_string_value(json_object_get(entry, "op")),
            .name = json_word(entry, "name"),
            .attr = json_object_get(entry, "attr"),
            .n_in = (uint32_t)json_array_size(in),
            .n_out = (uint32_t)json_array_size(out),
            .first = r->model->operand->len,
        };
        if (!node.op || node.n_out == 0)
            return onnx_fail(r, "nodes[%zu]: expected an op with outputs", i);
        if (!add_operands(r, in, (uint32_t)i, false) ||
            !add_operands(r, out, (uint32_t)i, true))
            return false;
        g_assert(node.first + node.n_in + node.n_out == r->model->operand->len);
        g_array_append_val(r->model->node, node);
        if (onnx_op_is(&node, "Constant") && !read_constant(r, &node))
            return false;
    }
    return true;
}

/* Shapes that the file states for values of its nodes; they count where none can be inferred. */
static bool read_stated(const Reader *r)
{
    members_each (name, shape, json_object_get(r->model->root, "shapes")) {
        const uint32_t index = onnx_find(r, name);
        OnnxValue *value = onnx_value(r->model, index);
        if (value->producer == ONNX_NO_NODE || value->known)
            continue;
        if (!onnx_read_shape(r, shape, value))
            return false;
        value->stated = value->known;
        value->known = false;
    }
    return true;
}

static bool read_outputs(const Reader *r)
{
    elements_each (output, json_object_get(r->model->root, "outputs")) {
        const char *name = json_word(output, "name");
        const uint32_t index = onnx_find(r, name);
        if (index == ONNX_NONE)
            return onnx_fail(r, "output '%s' is made by no node", name);
        onnx_value(r->model, index)->uses++;
        g_array_append_val(r->model->output, index);
    }
    return r->model->output->len > 0 || onnx_fail(r, "expected an output");
}

OnnxModel *onnx_read(const char *file, const json_t *root, GError **error)
{
    enum { BUDGET = 1 << 26 };
    g_autoptr(OnnxModel) model = g_new0(OnnxModel, 1);
    g_autoptr(GHashTable) index = g_hash_table_new(g_str_hash, g_str_equal);
    Reader r = {model, index, error};
    model->file = file;
    model->root = root;
    model->opset = (uint32_t)json_integer_value(json_object_get(root, "opset"));
    model->node = g_array_new(false, true, sizeof(OnnxNode));
    model->value = g_array_new(false, true, sizeof(OnnxValue));
    model->operand = g_array_new(false, true, sizeof(uint32_t));
    model->input = g_array_new(false, true, sizeof(uint32_t));
    model->output = g_array_new(false, true, sizeof(uint32_t));
    model->budget = BUDGET;
    model->nodes = onnx_inline(file, root, error);
    onnx_add_value(&r, ""); /* ONNX_NONE */
    if (model->nodes && read_initializers(&r) && onnx_read_inputs(&r) &&
        onnx_read_nodes(&r) && read_stated(&r) && read_outputs(&r))
        return g_steal_pointer(&model);
    return NULL;
}

void onnx_free(OnnxModel *model)
{
    for (uint32_t i = 0; i < model->value->len; i++)
        g_free(onnx_value(model, i)->value);
    json_decref(model->nodes);
    unref_arrays(model->node, model->value, model->operand, model->input, model->output);
    g_free(model);
}

/* --- facts --- */

/* "ids:2x32"; open sizes by the name that the file gives them. */
static json_t *ends_json(const OnnxModel *model, const char *key)
{
    json_t *list = json_array();
    g_autoptr(GHashTable) filled = g_hash_table_new(g_str_hash, g_str_equal);
    elements_each (entry, json_object_get(model->root, "initializers"))
        g_hash_table_add(filled,
                         (char *)json_string_value(json_object_get(entry, "name")));
    elements_each (entry, json_object_get(model->root, key)) {
        const char *name = json_string_value(json_object_get(entry, "name"));
        g_autoptr(GString) text = g_string_new(name);
        if (g_hash_table_contains(filled, name))
            continue;
        elements_at (size, d, json_object_get(entry, "shape")) {
            g_string_append(text, d ? "x" : ":");
            if (json_is_string(size))
                g_string_append(text, json_string_value(size));
            else
                g_string_append_printf(text, "%" JSON_INTEGER_FORMAT,
                                       json_integer_value(size));
        }
        json_array_append_new(list, json_string(text->str));
    }
    return list;
}

/* Elements of a tensor in the file, of whatever it holds. */
static uint64_t onnx_size_of(const json_t *tensor)
{
    uint64_t n = 1;
    elements_each (size, json_object_get(tensor, "shape"))
        n *= (uint64_t)json_integer_value(size);
    return n;
}

json_t *onnx_facts(const OnnxModel *model)
{
    uint64_t parameters = 0, external = 0;
    json_t *ops = json_object(), *nodes = json_object_get(model->root, "nodes");
    elements_each (entry, nodes) {
        const char *op = json_string_value(json_object_get(entry, "op"));
        const json_int_t before = json_integer_value(json_object_get(ops, op));
        json_object_set_new(ops, op, json_integer(before + 1));
    }
    elements_each (tensor, json_object_get(model->root, "initializers")) {
        const json_int_t dtype = json_integer_value(json_object_get(tensor, "dtype"));
        parameters += onnx_dtype_is_float((uint32_t)dtype) ? onnx_size_of(tensor) : 0;
        external += json_is_true(json_object_get(tensor, "external"));
    }
    for (uint32_t n = 0; n < model->node->len; n++) {
        const OnnxNode *node = onnx_node(model, n);
        const OnnxValue *made = onnx_value(model, onnx_out(model, node, 0));
        if (onnx_op_is(node, "ConstantOfShape") && made->known &&
            onnx_dtype_is_float(made->dtype))
            parameters += onnx_elements(made);
    }
    return json_pack("{s:I, s:o, s:O?, s:O?, s:o, s:o, s:I, s:I, s:O?}", "nodes",
                     (json_int_t)json_array_size(nodes), "ops", ops, "opset",
                     json_object_get(model->root, "opset"), "ir_version",
                     json_object_get(model->root, "ir_version"), "inputs",
                     ends_json(model, "inputs"), "outputs", ends_json(model, "outputs"),
                     "float_parameters", (json_int_t)parameters, "external_tensors",
                     (json_int_t)external, "value_infos",
                     json_object_get(model->root, "value_infos"));
}
