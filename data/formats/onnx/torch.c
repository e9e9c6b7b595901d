/* From the JSON of a program of torch.export (torch/_export/serde/schema.py, versions 5 to 8) to
 * that of an ONNX model, by the rows of data/aten.yaml. */
#include "data/formats/onnx/torch.h"

#include <string.h>

#include "data/base/error.h"
#include "data/base/json.h"
#include "data/base/path.h"
#include "data/base/text.h"
#include "data/base/yaml_json.h"
#include "data/base/zip.h"
#include "data/formats/onnx/onnx.h"

enum { DEEPEST = 16 };

/* A graph, or one inside it, which becomes a function. Arguments as they are here: numbers, texts,
 * {"value": name, "from": the name in the graph} for what a node makes, and lists of these. */
typedef struct {
    const json_t *graph;
    const json_t *rows;   /* op -> rows of data/aten.yaml */
    const json_t *weight; /* the name of an input -> the one in the state dict */
    json_t *functions;    /* name -> function */
    json_t *nodes;
    uint32_t depth;
} Exported;

bool torch_is(const char *path)
{
    return g_str_has_suffix(path, ".pt2");
}

static bool is_graph(const char *name)
{
    return g_str_has_suffix(name, "serialized_exported_program.json") ||
           (g_str_has_suffix(name, ".json") &&
            (g_str_has_prefix(name, "models/") || strstr(name, "/models/")));
}

char *torch_text(const char *path, gsize most, gsize *length, GError **error)
{
    return zip_member(path, is_graph, most, length, error);
}

/* --- arguments --- */

static int dtype_of(json_int_t torch)
{
    static const uint8_t number[] = {
        [1] = ONNX_UINT8, [2] = ONNX_INT8,    [3] = ONNX_INT16,  [4] = ONNX_INT32,
        [5] = ONNX_INT64, [6] = ONNX_HALF,    [7] = ONNX_FLOAT,  [8] = ONNX_DOUBLE,
        [12] = ONNX_BOOL, [13] = ONNX_BFLOAT, [28] = ONNX_UINT16};
    return torch > 0 && torch < (json_int_t)G_N_ELEMENTS(number) ? number[torch] : 0;
}

static json_t *torch_value_of(const Exported *x, const char *name)
{
    const char *own = json_string_value(json_object_get(x->weight, name));
    return json_pack("{s:s, s:s}", "value", own ? own : name, "from", name);
}

/* A member of a union, {"as_KIND": content}, or what is in it. A new reference; null for None. */
static json_t *argument(const Exported *x, const json_t *arg, uint32_t depth)
{
    const char *name = json_string_value(json_object_get(arg, "name"));
    json_t *value = json_object_get(arg, "as_name");
    if (json_is_string(value))
        name = json_string_value(value);
    if (depth == 0 || json_object_get(arg, "graph") || json_object_get(arg, "as_none"))
        return json_null();
    if (name)
        return torch_value_of(x, name);
    if (json_is_array(arg)) {
        return json_list(elements_each (item, arg), argument(x, item, depth - 1));
    }
    members_each (kind, inner, arg)
        if (strcmp(kind, "as_scalar_type") == 0)
            return json_integer(dtype_of(json_integer_value(inner)));
        else if (strcmp(kind, "as_float") == 0 && !json_is_number(inner))
            return json_real(g_strcmp0(json_string_value(inner), "Infinity") ? -1e300
                                                                             : 1e300);
        else if (!json_is_null(inner))
            return argument(x, inner, depth - 1);
    return json_is_boolean(arg)  ? json_integer(json_is_true(arg))
           : json_is_object(arg) ? json_null()
                                 : json_incref((json_t *)arg);
}

/* Adds a node, and takes the three over. */
static void emit(const Exported *x, const char *op, json_t *in, json_t *out, json_t *attr)
{
    const char *name = json_string_value(json_array_get(out, 0));
    json_array_append_new(x->nodes, json_pack("{s:s, s:s, s:o, s:o, s:o}", "op", op,
                                              "name", name ? name : "", "in", in, "out",
                                              out, "attr", attr ? attr : json_object()));
}

/* Makes a node of one output with a name of its own, which is returned. */
static json_t *emit_own(const Exported *x, const char *op, json_t *in, json_t *attr)
{
    json_t *name = json_sprintf("#%zu", json_array_size(x->nodes)),
           *out = json_pack("[O]", name);
    emit(x, op, in, out, attr);
    return name;
}

/* The name of the value that an argument is: numbers become constants, lists with values in them
 * are put together. */
static json_t *operand(const Exported *x, json_t *argument)
{
    static const char *const key[] = {"value_float", "value_int", "value_floats",
                                      "value_ints"};
    bool numbers = true, whole = json_is_integer(argument);
    json_t *parts;
    if (json_is_object(argument))
        return json_incref(json_object_get(argument, "value"));
    elements_at (item, i, argument) {
        numbers = numbers && json_is_number(item);
        whole = (whole || i == 0) && json_is_integer(item);
    }
    if (json_is_number(argument) || (json_is_array(argument) && numbers))
        return emit_own(
            x, "Constant", json_array(),
            json_pack("{s:O}", key[2 * json_is_array(argument) + whole], argument));
    if (!json_is_array(argument))
        return json_string("");
    parts = json_array();
    elements_each (item, argument) {
        json_t *in = json_pack("[o]", operand(x, item));
        json_array_append_new(
            parts, emit_own(x, "Unsqueeze", in, json_pack("{s:[i]}", "axes", 0)));
    }
    return emit_own(x, "Concat", parts, json_pack("{s:i}", "axis", 0));
}

/* --- nodes --- */

/* The name in data/aten.yaml: "add.Tensor" of "torch.ops.aten.add.Tensor", and of "add_.Tensor",
 * which is done in place. Caller frees. */
static char *torch_op_of(const char *target)
{
    static const char OPS[] = "torch.ops.";
    target += g_str_has_prefix(target, OPS) ? strlen(OPS) : 0;
    g_auto(GStrv) part = g_strsplit(target, ".", 3);
    const size_t n = part[0] && part[1] ? strlen(part[1]) : 0;
    if (n == 0)
        return g_strdup(target);
    if (n > 1 && part[1][n - 1] == '_' && part[1][n - 2] != '_')
        part[1][n - 1] = '\0';
    return part[2] && strcmp(part[2], "default") != 0
               ? g_strjoin(".", part[1], part[2], NULL)
               : g_strdup(part[1]);
}

/* For a Transpose: the dims in order, but for two that change places. */
static json_t *swapped(const Exported *x, const json_t *given)
{
    const json_t *self = json_object_get(json_object_get(given, "self"), "from"),
                 *meta = json_object_get(json_object_get(x->graph, "tensor_values"),
                                         self ? json_string_value(self) : "");
    const json_int_t rank = (json_int_t)json_array_size(json_object_get(meta, "sizes"));
    json_int_t swap[2] = {0, 1};
    json_t *list = json_array();
    for (uint32_t i = 0; i < 2; i++) {
        const json_t *dim = json_object_get(given, i ? "dim1" : "dim0");
        swap[i] = dim ? json_integer_value(dim) : swap[i];
        swap[i] += swap[i] < 0 ? rank : 0;
    }
    for (json_int_t d = 0; d < rank; d++)
        json_array_append_new(list, json_integer(d == swap[0]   ? swap[1]
                                                 : d == swap[1] ? swap[0]
                                                                : d));
    return list;
}

/* An attribute as a row says it: {ref: an argument, otherwise: what stands for it}, a list with
 * such in it, or a value. A new reference; NULL: nothing. */
static json_t *filled(json_t *said, const json_t *given)
{
    const char *ref = json_string_value(json_object_get(said, "ref"));
    json_t *own = ref ? json_object_get(given, ref) : said, *list;
    if (ref && !own)
        return filled(json_object_get(said, "otherwise"), given);
    if (ref || !json_is_array(said))
        return json_incref(own);
    list = json_array();
    elements_each (item, said) {
        json_auto_t *part = filled(item, given);
        if (json_is_array(part))
            json_array_extend(list, part);
        else
            json_array_append(list, part);
    }
    return list;
}

/* The name of an argument in an entry of a row's `in`, where '?' follows it if it may be left out
 * and '*' if it is a list of operands. Caller frees. */
static char *parameter(const json_t *entry)
{
    const char *text = json_string_value(entry);
    return text ? g_strndup(text, strcspn(text, "?*")) : NULL;
}

static const json_t *fitting(const json_t *rows, const json_t *given)
{
    elements_each (row, rows) {
        bool fits = true;
        elements_each (entry, json_object_get(row, "in")) {
            g_autofree char *name = parameter(entry);
            fits = fits && (!name || strchr(json_string_value(entry), '?') ||
                            json_object_get(given, name));
        }
        members_each (key, entry, json_object_get(row, "if"))
            fits = fits && json_equal(json_object_get(given, key), entry);
        if (fits)
            return row;
    }
    return NULL;
}

static json_t *operands(const Exported *x, const json_t *row, const json_t *given)
{
    json_t *in = json_array();
    elements_each (entry, json_object_get(row, "in")) {
        g_autofree char *name = parameter(entry);
        json_t *value = name ? json_object_get(given, name) : entry;
        if (name && strchr(json_string_value(entry), '*'))
            elements_each (item, value)
                json_array_append_new(in, operand(x, item));
        else
            json_array_append_new(in, operand(x, value));
    }
    return in;
}

/* A node, or a call of the function whose nodes the row has. */
static void torch_add_row(const Exported *x, const json_t *row, const json_t *given,
                          json_t *out)
{
    const char *as = json_string_value(json_object_get(row, "as"));
    json_t *attr = json_object();
    members_each (key, said, json_object_get(row, "attr")) {
        json_t *value = filled(said, given);
        if (value)
            json_object_set_new(attr, key, value);
    }
    if (!as && !json_object_get(x->functions,
                                as = json_string_value(json_object_get(row, "op"))))
        json_object_set(x->functions, as, (json_t *)row);
    emit(x, as, operands(x, row, given), out, attr);
}

/* By the row that takes the arguments; one with `each` is done for each output, of which `index` is
 * the number. Without a row the node stays what it is. */
static void add_op(const Exported *x, const char *target, json_t *given, json_t *out)
{
    g_autofree char *op = torch_op_of(target);
    json_object_set_new(given, "swapped", swapped(x, given));
    json_object_set_new(given, "index", json_integer(0));
    const json_t *row = fitting(json_object_get(x->rows, op), given);
    json_t *in = json_array();
    if (row && json_object_get(row, "each"))
        for (size_t i = 0; i < json_array_size(out); i++) {
            json_object_set_new(given, "index", json_integer((json_int_t)i));
            torch_add_row(x, row, given, json_pack("[O]", json_array_get(out, i)));
        }
    else if (row)
        torch_add_row(x, row, given, json_incref(out));
    members_each (key, value, given)
        if (!row && json_is_object(value))
            json_array_append_new(in, operand(x, value));
    if (!row)
        emit(x, target, json_incref(in), json_incref(out), NULL);
    json_decref(in);
}

/* Appends the names of the values of an argument, which may be a list. */
static void add_names(const Exported *x, const json_t *arg, json_t *names)
{
    json_t *value = argument(x, arg, DEEPEST);
    if (json_is_object(value))
        json_array_append(names, json_object_get(value, "value"));
    elements_each (item, value)
        json_array_append(names, json_object_get(item, "value"));
    json_decref(value);
}

static void add_nodes(const Exported *x);

/* A graph that a node calls with the values behind it, under no_grad or autocast, as a function. */
static void add_inner(const Exported *x, const json_t *inner, json_t *in, json_t *out)
{
    const json_t *graph = json_object_get(inner, "graph");
    const Exported own = {graph, x->rows, NULL, x->functions, json_array(), x->depth + 1};
    g_autofree char *name = g_strdup_printf("graph#%zu", json_object_size(x->functions));
    json_t *inside = json_array(), *outside = json_array();
    json_object_set_new(x->functions, name,
                        json_pack("{s:s, s:o, s:o, s:o}", "op", name, "in", inside, "out",
                                  outside, "nodes", own.nodes));
    elements_each (end, json_object_get(graph, "inputs"))
        add_names(&own, end, inside);
    elements_each (end, json_object_get(graph, "outputs"))
        add_names(&own, end, outside);
    add_nodes(&own);
    emit(x, name, json_incref(in), json_incref(out), NULL);
}

static void torch_add_node(const Exported *x, const json_t *node)
{
    const char *target = json_string_value(json_object_get(node, "target"));
    json_t *given = json_object(), *out = json_array(), *behind = json_array();
    const json_t *inner = NULL;
    elements_each (entry, json_object_get(node, "inputs")) {
        const char *name = json_string_value(json_object_get(entry, "name"));
        const json_t *arg = json_object_get(entry, "arg"),
                     *graph = json_object_get(arg, "as_graph");
        json_auto_t *value = argument(x, arg, DEEPEST);
        if (name && !json_is_null(value))
            json_object_set(given, name, value);
        if (inner && !graph)
            add_names(x, arg, behind);
        inner = graph ? graph : inner;
    }
    elements_each (entry, json_object_get(node, "outputs"))
        add_names(x, entry, out);
    if (inner && x->depth < DEEPEST)
        add_inner(x, inner, behind, out);
    else if (target && json_array_size(out) > 0)
        add_op(x, target, given, out);
    json_decref(given);
    json_decref(out);
    json_decref(behind);
}

static void add_nodes(const Exported *x)
{
    elements_each (node, json_object_get(x->graph, "nodes"))
        torch_add_node(x, node);
}

/* --- the whole --- */

/* Type and sizes of a tensor that the graph gets; open sizes are texts. */
static json_t *end_json(const json_t *graph, const char *from, const char *name)
{
    const json_t *meta = json_object_get(json_object_get(graph, "tensor_values"), from);
    json_t *shape = json_array();
    elements_each (size, json_object_get(meta, "sizes")) {
        json_t *is = json_object_get(size, "as_int"),
               *open = json_object_get(json_object_get(size, "as_expr"), "expr_str");
        json_array_append_new(shape, is     ? json_incref(is)
                                     : open ? json_incref(open)
                                            : json_string("?"));
    }
    return json_pack("{s:s, s:i, s:o}", "name", name, "dtype",
                     dtype_of(json_integer_value(json_object_get(meta, "dtype"))),
                     "shape", shape);
}

/* Inputs and weights; *weight gets the names of these. */
static void add_inputs(const json_t *graph, const json_t *specs, json_t *model,
                       json_t *weight)
{
    static const char *const key[] = {"parameter_name", "buffer_name",
                                      "tensor_constant_name"};
    elements_each (spec, specs)
        members_each (kind, content, spec) {
            const json_t *arg = json_object_get(content, "arg"),
                         *tensor = json_object_get(arg, "as_tensor");
            const char *from = json_string_value(
                           json_object_get(tensor ? tensor : arg, "name")),
                       *name = NULL;
            for (uint32_t k = 0; !name && k < G_N_ELEMENTS(key); k++)
                name = json_string_value(json_object_get(content, key[k]));
            if (!from)
                continue;
            if (name)
                json_object_set_new(weight, from, json_string(name));
            json_array_append_new(
                json_object_get(model, name ? "initializers" : "inputs"),
                end_json(graph, from, name ? name : from));
        }
}

static void add_outputs(const Exported *x, const json_t *specs, json_t *model)
{
    json_t *names = json_array();
    elements_each (spec, specs)
        add_names(x, json_object_get(json_object_get(spec, "user_output"), "arg"), names);
    elements_each (name, names)
        json_array_append_new(json_object_get(model, "outputs"),
                              json_pack("{s:O}", "name", name));
    json_decref(names);
}

/* op -> rows of data/aten.yaml. NULL with KILTER_ERROR_INPUT. */
static json_t *rows_read(GError **error)
{
    enum { MOST_BYTES = 1 << 20 };
    g_autofree char *path = path_bundled("aten.yaml", error);
    gsize length;
    g_autofree char *text = path ? file_read(path, MOST_BYTES, &length, error) : NULL;
    json_t *list = text ? yaml_to_json(path, text, length, error) : NULL;
    json_t *rows = list ? json_object() : NULL;
    elements_each (row, json_object_get(list, "rows"))
        elements_each (name, json_object_get(row, "ops")) {
            const char *op = json_string_value(name);
            if (!json_object_get(rows, op))
                json_object_set_new(rows, op, json_array());
            json_array_append(json_object_get(rows, op), row);
        }
    if (rows)
        json_object_set(rows, "functions", json_object_get(list, "functions"));
    json_decref(list);
    return rows;
}

json_t *torch_model(const char *path, const json_t *root, GError **error)
{
    const json_t *module = json_object_get(root, "graph_module"),
                 *graph = json_object_get(module, "graph"),
                 *signature = json_object_get(module, "signature");
    const size_t n = json_array_size(json_object_get(graph, "nodes"));
    json_t *rows = rows_read(error), *weight = json_object(), *model;
    if (rows && (n == 0 || n > ONNX_MOST_NODES)) {
        g_clear_pointer(&rows, json_decref);
        refuse(error, "%s: expected graph_module.graph of 1 to %d nodes", path,
               ONNX_MOST_NODES);
    }
    model = rows ? json_pack("{s:{s:s, s:i}, s:i, s:[], s:[], s:[], s:[], s:[]}",
                             "format", "name", "kilter-onnx", "version", 1, "opset", 18,
                             "nodes", "initializers", "inputs", "outputs", "functions")
                 : NULL;
    if (model) {
        const Exported x = {
            graph, rows, weight, json_object(), json_object_get(model, "nodes"), 0};
        add_inputs(graph, json_object_get(signature, "input_specs"), model, weight);
        add_nodes(&x);
        add_outputs(&x, json_object_get(signature, "output_specs"), model);
        json_t *functions = json_object_get(model, "functions");
        json_array_extend(functions, json_object_get(rows, "functions"));
        members_each (name, function, x.functions)
            json_array_append(functions, function);
        json_decref(x.functions);
    }
    json_decref(weight);
    json_decref(rows);
    return model;
}
