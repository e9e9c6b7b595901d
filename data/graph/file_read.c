/* Reading a graph from its file (data/graph/file.h). */
#include "data/base/json.h"
#include "data/base/names.h"
#include "data/base/units.h"
#include "data/graph/build.h"
#include "data/graph/check.h"
#include "data/graph/documents.h"
#include "data/graph/file.h"
#include "data/graph/file_parts.h"
#include "data/graph/file_times.h"

#include <string.h>

enum { MOST_NODES = 1 << 19 };

typedef struct {
    JsonPlace at; /* the node being read */
    const json_t *root;
    Graph *graph;
} Reader;

static bool check_name(const Reader *r, const char *key, const char *name)
{
    enum { LONGEST = 200 };
    if (!name || !*name || strlen(name) > LONGEST)
        return json_fail(&r->at, key, "expected a name of 1 to %d bytes", LONGEST);
    if (graph_name_is_reserved(name))
        return json_fail(&r->at, key,
                         "'%s' is what a gradient or an update is named like", name);
    return true;
}

static bool check_new(const Reader *r, const char *key, const char *name)
{
    return graph_find(r->graph, name) == GRAPH_NONE ||
           json_fail(&r->at, key, "there is a tensor '%s' already", name);
}

static bool read_shape(const Reader *r, Shape *shape)
{
    const json_t *value = json_object_get(r->at.item, "shape");
    double elements = 1;
    shape->rank = (uint32_t)json_array_size(value);
    if (!json_is_array(value) || json_array_size(value) > TENSOR_MAX_RANK)
        return json_fail(&r->at, "shape", "expected an array of at most %d sizes",
                         TENSOR_MAX_RANK);
    for (uint32_t d = 0; d < shape->rank; d++) {
        const json_int_t dim = json_integer_value(json_array_get(value, d));
        if (dim < 1 || dim > INT32_MAX)
            return json_fail(&r->at, "shape", "expected sizes from 1 to %d", INT32_MAX);
        shape->dim[d] = (uint32_t)dim;
        elements *= (double)dim;
    }
    return elements <= 0x1p53 ||
           json_fail(&r->at, "shape", "expected at most 2^53 elements");
}

static bool read_input(const Reader *r)
{
    static const char *const known[] = {"input", "dtype", "shape", NULL};
    const char *name = json_string_value(json_object_get(r->at.item, "input")),
               *dtype = json_string_value(json_object_get(r->at.item, "dtype"));
    const DType type = dtype ? TEXT_PLACE(GRAPH_DTYPE_NAMES, DTYPES, dtype) : DTYPES;
    Shape shape;
    if (!json_known(&r->at, r->at.item, known) || !check_name(r, "input", name) ||
        !check_new(r, "input", name) || !read_shape(r, &shape))
        return false;
    if (type > DTYPE_I64)
        return json_fail(&r->at, "dtype", "expected f16, f32, f64 or i64");
    graph_input(r->graph, name, type, shape.rank, shape.dim);
    return true;
}

static bool read_parameter(const Reader *r)
{
    static const char *const known[] = {"parameter", "shape", "whole", "frozen", NULL};
    const char *name = json_string_value(json_object_get(r->at.item, "parameter"));
    const json_t *whole = json_object_get(r->at.item, "whole");
    Shape shape;
    if (!json_known(&r->at, r->at.item, known) || !check_name(r, "parameter", name) ||
        !check_new(r, "parameter", name) || !read_shape(r, &shape))
        return false;
    const TensorId id = graph_parameter(r->graph, name, shape.rank, shape.dim);
    elements_each (dim, whole) {
        if (!json_is_integer(dim) || json_integer_value(dim) < 0 ||
            json_integer_value(dim) >= shape.rank)
            return json_fail(&r->at, "whole", "expected dims of the parameter");
        graph_keep_whole(r->graph, id, (uint32_t)json_integer_value(dim));
    }
    const json_t *frozen = json_object_get(r->at.item, "frozen");
    if (frozen && !json_is_boolean(frozen))
        return json_fail(&r->at, "frozen", "expected true or false");
    if (json_is_true(frozen))
        graph_freeze(r->graph, id);
    return true;
}

static bool read_attr(const Reader *r, OpAttr *attr)
{
    for (uint32_t i = 0; i < GRAPH_ATTRS; i++) {
        const json_t *value = json_object_get(r->at.item, GRAPH_ATTR[i].key);
        void *at = (char *)attr + GRAPH_ATTR[i].at;
        if (!value)
            continue;
        const double number = json_number_value(value);
        if (GRAPH_ATTR[i].type == ATTR_FLAG) {
            if (!json_is_boolean(value))
                return json_fail(&r->at, GRAPH_ATTR[i].key, "expected true or false");
            *(bool *)at = json_is_true(value);
        } else if (GRAPH_ATTR[i].type == ATTR_SIZE) {
            if (!json_is_integer(value) || number < 0 || number > UINT32_MAX)
                return json_fail(&r->at, GRAPH_ATTR[i].key,
                                 "expected an integer from 0 to 2^32 - 1");
            *(uint32_t *)at = (uint32_t)number;
        } else if (GRAPH_ATTR[i].type == ATTR_DOCUMENTS) {
            if (!json_is_string(value) || !documents_are(json_string_value(value)))
                return json_fail(&r->at, "documents", "expected lengths as 9000+500");
            *(const char **)at = g_intern_string(json_string_value(value));
        } else {
            const double most = GRAPH_ATTR[i].at == offsetof(OpAttr, rate) ? 0.99 : 1e6;
            if (!json_is_number(value) || number < 0 || number > most)
                return json_fail(&r->at, GRAPH_ATTR[i].key,
                                 "expected a number from 0 to %g", most);
            *(double *)at = number;
        }
    }
    return true;
}

/* Checks the demands of differentiation beyond the signature. */
static bool check_input(const Reader *r, OpKind kind, uint32_t i, TensorId id)
{
    const Tensor *tensor = graph_tensor(r->graph, id);
    const bool indices = i == op_kind_index(kind);
    g_autofree char *key = g_strdup_printf("in[%u]", i);
    if (indices != (tensor->dtype == DTYPE_I64))
        return json_fail(&r->at, key, "expected %s, got '%s'",
                         indices ? "indices (i64)" : "numbers", tensor->name);
    if (tensor->producer == GRAPH_NONE)
        return true;
    const Op *maker = graph_get_op(r->graph, tensor->producer);
    const bool masks = maker->kind == OP_GATE_TOP1 || maker->kind == OP_GATE_TOP2;
    if (maker->out[0] != id && !(masks && kind == OP_MOE_DISPATCH && i == 0))
        return json_fail(&r->at, key, "'%s' is kept for the backward only", tensor->name);
    const bool part = maker->kind == OP_LABEL_LOGIT || maker->kind == OP_SUM_EXP ||
                      maker->kind == OP_LOG_SUM_EXP;
    const bool joins = kind == OP_SUM_EXP || kind == OP_LOG_SUM_EXP ||
                       (kind == OP_CROSS_ENTROPY && i == 2);
    return !part || joins ||
           json_fail(&r->at, key, "'%s' is a part of cross_entropy only", tensor->name);
}

/* cross_entropy is differentiated through the ops that it stands for. */
static bool check_cross_entropy(const Reader *r, const TensorId *in)
{
    const Tensor *z = graph_tensor(r->graph, in[2]);
    const Op *log =
        z->producer == GRAPH_NONE ? NULL : graph_get_op(r->graph, z->producer);
    const OpId sums = log && log->kind == OP_LOG_SUM_EXP
                          ? graph_tensor(r->graph, log->in[0])->producer
                          : GRAPH_NONE;
    const Op *sum = sums == GRAPH_NONE ? NULL : graph_get_op(r->graph, sums);
    const OpId shifts = log && log->kind == OP_LOG_SUM_EXP
                            ? graph_tensor(r->graph, log->in[1])->producer
                            : GRAPH_NONE;
    const Op *shift = shifts == GRAPH_NONE ? NULL : graph_get_op(r->graph, shifts);
    return (sum && shift && sum->kind == OP_SUM_EXP && shift->kind == OP_LABEL_LOGIT &&
            sum->in[0] == in[0] && sum->in[1] == log->in[1] && shift->in[0] == in[0] &&
            shift->in[1] == in[1]) ||
           json_fail(
               &r->at, "in[2]",
               "expected the log_sum_exp of the sum_exp of the same logits, shifted by "
               "their label_logit");
}

static bool graph_read_inputs(const Reader *r, OpKind kind, uint32_t *n_in, TensorId *in,
                              Shape *shape)
{
    const json_t *names = json_object_get(r->at.item, "in");
    if (!json_is_array(names) || json_array_size(names) > OP_MAX_IN)
        return json_fail(&r->at, "in", "expected an array of at most %d names",
                         OP_MAX_IN);
    *n_in = (uint32_t)json_array_size(names);
    for (uint32_t i = 0; i < *n_in; i++) {
        const char *name = json_string_value(json_array_get(names, i));
        g_autofree char *key = g_strdup_printf("in[%u]", i);
        in[i] = name ? graph_find(r->graph, name) : GRAPH_NONE;
        if (in[i] == GRAPH_NONE)
            return json_fail(&r->at, key, "expected a tensor made before, got '%s'",
                             name ? name : "no name");
        const Tensor *tensor = graph_tensor(r->graph, in[i]);
        shape[i].rank = tensor->rank;
        memcpy(shape[i].dim, tensor->dim, sizeof shape[i].dim);
        if (!check_input(r, kind, i, in[i]))
            return false;
    }
    return true;
}

/* Checks that outputs have new names and do not exceed the limits on sizes. */
static bool check_outputs(const Reader *r, const Op *op)
{
    for (uint32_t o = 0; o < op->n_out; o++) {
        const Tensor *tensor = graph_tensor(r->graph, op->out[o]);
        const double elements = tensor_size(tensor);
        if (elements > 0x1p53)
            return json_fail(&r->at, "op",
                             "'%s' would have %.3g elements, expected at most 2^53",
                             tensor->name, elements);
    }
    return true;
}

static bool names_are_free(const Reader *r, const char *name)
{
    if (!check_new(r, "op", name))
        return false;
    for (uint32_t o = 1; o < OP_MAX_OUT; o++) {
        g_autofree char *further = g_strdup_printf("%s.%u", name, o);
        if (!check_new(r, "op", further))
            return false;
    }
    return graph_find_op(r->graph, name) == GRAPH_NONE ||
           json_fail(&r->at, "op", "there is an op '%s' already", name);
}

static bool check_op_keys(const Reader *r)
{
    const char *known[4 + GRAPH_ATTRS + 1] = {"op", "kind", "in", "extents"};
    for (uint32_t i = 0; i < GRAPH_ATTRS; i++)
        known[4 + i] = GRAPH_ATTR[i].key;
    return json_known(&r->at, r->at.item, known);
}

static bool graph_read_op(const Reader *r)
{
    const char *name = json_string_value(json_object_get(r->at.item, "op")),
               *kind_name = json_string_value(json_object_get(r->at.item, "kind")),
               *extents = json_string_value(json_object_get(r->at.item, "extents"));
    const OpKind kind = kind_name ? op_kind_from_name(kind_name) : OP_KINDS;
    OpAttr attr = {0};
    uint32_t n_in = 0;
    TensorId in[OP_MAX_IN];
    Shape shape[OP_MAX_IN];
    if (!check_op_keys(r) || !check_name(r, "op", name) || !names_are_free(r, name))
        return false;
    if (kind == OP_KINDS || !op_kind_is_forward(kind))
        return json_fail(&r->at, "kind",
                         "expected a forward op of the op table, got '%s'",
                         kind_name ? kind_name : "nothing");
    if (json_object_get(r->at.item, "extents") && !extents)
        return json_fail(&r->at, "extents", "expected a string");
    if (!read_attr(r, &attr) || !graph_read_inputs(r, kind, &n_in, in, shape))
        return false;
    g_autofree char *wrong = op_check(kind, &attr, n_in, shape, extents);
    if (wrong)
        return json_fail(&r->at, "op", "%s: %s", kind_name, wrong);
    if (kind == OP_CROSS_ENTROPY && !check_cross_entropy(r, in))
        return false;
    const TensorId out = graph_op(r->graph, kind, name, attr, n_in, in, extents);
    return check_outputs(r,
                         graph_get_op(r->graph, graph_tensor(r->graph, out)->producer));
}

static bool graph_read_node(Reader *r, size_t n)
{
    const char *layer = json_string_value(json_object_get(r->at.item, "layer"));
    const bool last = r->at.index + 1 == n;
    if (layer) {
        static const char *const known[] = {"layer", NULL};
        graph_layer(r->graph, layer);
        return json_known(&r->at, r->at.item, known);
    }
    if (json_object_get(r->at.item, "input"))
        return read_input(r);
    if (json_object_get(r->at.item, "parameter"))
        return read_parameter(r);
    if (!json_object_get(r->at.item, "op"))
        return json_fail(&r->at, "op", "expected layer, input, parameter or op");
    if (!graph_read_op(r))
        return false;
    const TensorId out = graph_n_tensors(r->graph) - 1;
    const bool loss = graph_tensor(r->graph, out)->role == ROLE_LOSS;
    if (loss != last)
        return json_fail(&r->at, "kind",
                         loss ? "the loss is expected last"
                              : "expected the last op to make the loss");
    r->graph->loss = last ? out : GRAPH_NONE;
    return true;
}

static bool read_nodes(Reader *r)
{
    const json_t *nodes = json_object_get(r->root, "nodes");
    const size_t n = json_array_size(nodes);
    if (!json_is_array(nodes) || n == 0 || n > MOST_NODES)
        return json_fail(&r->at, "nodes", "expected an array of 1 to %d nodes",
                         MOST_NODES);
    for (r->at.index = 0; r->at.index < n; r->at.index++) {
        r->at.item = json_array_get(nodes, r->at.index);
        if (!json_is_object(r->at.item))
            return json_fail(&r->at, "", "expected an object");
        if (!graph_read_node(r, n))
            return false;
    }
    r->at.index--;
    if (r->graph->loss == GRAPH_NONE)
        return json_fail(&r->at, "", "expected the op that makes the loss last");
    r->at.item = NULL;
    return true;
}

/* Checks that parameters are trained or frozen, and the batch is the first dim of an input. */
static bool check_graph(const Reader *r)
{
    bool input = false, parameter = false;
    tensors_each (tensor, t, r->graph) {
        input |= tensor->role == ROLE_INPUT && tensor->rank > 0 &&
                 t != graph_gradient(r->graph, graph_loss(r->graph));
        const bool trained = tensor->role == ROLE_PARAMETER && !tensor->frozen;
        parameter |= trained;
        if (trained && graph_gradient(r->graph, t) == GRAPH_NONE)
            return json_fail(&r->at, "nodes",
                             "the loss does not depend on parameter '%s'", tensor->name);
    }
    return (input && parameter) ||
           json_fail(&r->at, "nodes", "expected an input with samples and a parameter");
}

static bool read_seconds(const Reader *r)
{
    json_t *seconds = json_object_get(r->root, "seconds");
    if (!seconds)
        return true;
    if (!json_is_object(seconds))
        return json_fail(&r->at, "seconds", "expected an object");
    graph_set_timed(r->graph);
    members_each (name, value, seconds) {
        const OpId id = graph_find_op(r->graph, name);
        if (id == GRAPH_NONE)
            return json_fail(&r->at, "seconds", "there is no op '%s'", name);
        if (!json_is_number(value) || !number_in(json_number_value(value), 0, 1e9))
            return json_fail(&r->at, "seconds", "%s: expected seconds", name);
        graph_set_seconds(r->graph, id, json_number_value(value));
    }
    return true;
}

/* Reads everything but the nodes. */
static bool read_head(const Reader *r, Optimizer *optimizer)
{
    static const char *const known[] = {"format",    "name",    "precision", "optimizer",
                                        "nodes",     "seconds", "times",     "weights",
                                        "gradients", "master",  "moments",   NULL};
    const char *name = json_string_value(json_object_get(r->root, "precision")),
               *update = json_string_value(json_object_get(r->root, "optimizer"));
    const json_t *version =
        json_object_get(json_object_get(r->root, "format"), "version");
    const Precision precision = name ? precision_from_name(name) : PRECISIONS;
    if (!json_known(&r->at, r->root, known))
        return false;
    if (json_integer_value(version) != GRAPH_VERSION)
        return json_fail(&r->at, "format", "expected version %d", GRAPH_VERSION);
    if (precision >= PRECISIONS)
        return json_fail(&r->at, "precision", "expected " PRECISION_NAMES);
    *optimizer = update ? optimizer_from_name(update) : OPTIMIZERS;
    if (*optimizer == OPTIMIZERS)
        return json_fail(&r->at, "optimizer", "expected " OPTIMIZER_NAMES);
    graph_set_precision(r->graph, precision);
    StateFormats states = precision_states(precision);
    for (uint32_t k = 0; STATE_KEYS[k]; k++) {
        const json_t *value = json_object_get(r->root, STATE_KEYS[k]);
        const char *word = json_string_value(value);
        if (value && (!word || !state_formats_set(&states, STATE_KEYS[k], word)))
            return json_fail(&r->at, STATE_KEYS[k], "expected " STATE_FORMAT_NAMES);
    }
    graph_set_states(r->graph, &states);
    return true;
}

Graph *graph_from_json(const char *file, const json_t *root, GError **error)
{
    const char *name = json_string_value(json_object_get(root, "name"));
    g_autoptr(Graph) graph = graph_new(name ? name : "graph");
    Reader r = {.at = {.file = file, .list = "nodes", .error = error},
                .root = root,
                .graph = graph};
    Optimizer optimizer = OPTIMIZER_ADAM;
    if (!name) {
        json_fail(&r.at, "name", "expected a string");
        return NULL;
    }
    if (!read_head(&r, &optimizer) || !read_nodes(&r))
        return NULL;
    graph_differentiate(graph, graph_loss(graph), optimizer);
    if (!check_graph(&r) || !read_seconds(&r))
        return NULL;
    g_autofree char *wrong = graph_times_read(graph, json_object_get(root, "times"));
    if (wrong) {
        json_fail(&r.at, "times", "%s", wrong);
        return NULL;
    }
    graph_seal(graph);
    return g_steal_pointer(&graph);
}
