/* Building a graph of opaque ops from a profile (data/models/profile.h). */
#include "data/models/profile.h"

#include "data/base/error.h"
#include "data/base/json.h"
#include "data/graph/check.h"
#include "data/graph/file_times.h"

#include <math.h>
#include <string.h>

enum { MOST_OPS = 1 << 15, MOST_INPUTS = 1024, LONGEST_NAME = 200 };

typedef struct {
    JsonPlace at; /* the op that is read */
    Graph *graph;
    double width;    /* bytes of a number */
    double measured; /* samples that bytes and single times are of */
    uint32_t batch, small;
    GPtrArray *layers; /* of names that have begun; the last one goes on */
    GArray *made;      /* OpId of ops[i] */
    GHashTable *joins; /* ids of ops that only join; a set */
    GHashTable *read;  /* ids of tensors that some op reads; a set */
    TensorId loss;
} Profile;

/* Numbers of one sample, or, with samples 1, of all of them; 0 only where it is not there. */
static bool read_numbers(const Profile *p, const json_t *object, const char *key,
                         double samples, uint32_t *numbers)
{
    const json_t *value = json_object_get(object, key);
    const double bytes = json_number_value(value);
    *numbers = 0;
    if (!value)
        return true;
    const double n = ceil(bytes / p->width / samples);
    if (!json_is_number(value) || !number_in(bytes, 0, 0x1p53) || n > INT32_MAX)
        return json_fail(&p->at, key, "expected bytes, at most 2^31 numbers of a sample");
    *numbers = (uint32_t)fmax(1, n);
    if (p->small > 0) /* other sizes for neighbours */
        *numbers = MIN(*numbers, p->small + (uint32_t)(p->at.index % 3));
    return true;
}

/* --- ops --- */

/* Whether an op of that name can make two outputs. */
static bool is_free(const Profile *p, const char *name)
{
    g_autofree char *further = g_strdup_printf("%s.1", name);
    return (graph_find(p->graph, name) == GRAPH_NONE &&
            graph_find(p->graph, further) == GRAPH_NONE) ||
           json_fail(&p->at, "op", "there is a '%s' already", name);
}

/* The op of that name, which makes what several others did. */
static TensorId profile_join(Profile *p, OpKind kind, const char *name, uint32_t n,
                             const TensorId *in, uint32_t numbers)
{
    g_autofree char *extents = g_strdup_printf("O=%u,S=1", numbers);
    const TensorId out = graph_op(p->graph, kind, name, (OpAttr){0}, n, in, extents);
    g_hash_table_add(p->joins, GUINT_TO_POINTER(graph_tensor(p->graph, out)->producer));
    return out;
}

/* Leaves at most `most` inputs; `sum`: with as many numbers as they had together. */
static bool join_inputs(Profile *p, OpKind kind, const char *name, bool sum,
                        uint32_t most, GArray *in)
{
    for (uint32_t i = 0; in->len > most; i++) {
        const uint32_t n = MIN(in->len - most + 1, OP_MAX_IN);
        const TensorId *last = (TensorId *)in->data + in->len - n;
        const uint64_t numbers =
            sum_over(uint64_t, k, n, graph_tensor(p->graph, last[k])->dim[1]);
        if (numbers > INT32_MAX)
            return json_fail(&p->at, "in",
                             "more than 2^31 numbers of a sample come together");
        g_autofree char *joined = g_strdup_printf("%s.join%u", name, i);
        if (!is_free(p, joined))
            return false;
        const TensorId out =
            profile_join(p, kind, joined, n, last, sum ? (uint32_t)numbers : 1);
        g_array_set_size(in, in->len - n);
        g_array_append_val(in, out);
    }
    return true;
}

static bool read_inputs(Profile *p, GArray *in)
{
    const json_t *names = json_object_get(p->at.item, "in");
    const size_t n = json_array_size(names);
    if (!names) {
        const TensorId input = graph_find(p->graph, "input");
        g_array_append_val(in, input);
        return true;
    }
    if (!json_is_array(names) || n == 0 || n > MOST_INPUTS)
        return json_fail(&p->at, "in", "expected an array of 1 to %d names", MOST_INPUTS);
    for (size_t i = 0; i < n; i++) {
        const char *name = json_string_value(json_array_get(names, i));
        const TensorId id = name ? graph_find(p->graph, name) : GRAPH_NONE;
        g_autofree char *key = g_strdup_printf("in[%zu]", i);
        if (id == GRAPH_NONE || graph_tensor(p->graph, id)->rank != 2)
            return json_fail(&p->at, key, "expected the input or an op before, got '%s'",
                             name ? name : "no name");
        g_hash_table_add(p->read, GUINT_TO_POINTER(id));
        g_array_append_val(in, id);
    }
    return true;
}

static bool profile_check_name(const Profile *p, const char *key, const char *name)
{
    if (!name || !*name || strlen(name) > LONGEST_NAME)
        return json_fail(&p->at, key, "expected a name of 1 to %d bytes", LONGEST_NAME);
    if (!g_utf8_validate(name, -1, NULL) || strpbrk(name, "\n\r"))
        return json_fail(&p->at, key, "expected a name on one line");
    return true;
}

static bool begin_layer(Profile *p, const char *op)
{
    const json_t *value = json_object_get(p->at.item, "layer");
    const char *layer = value ? json_string_value(value) : op;
    if (value && !profile_check_name(p, "layer", layer))
        return false;
    const char *last = p->layers->len ? p->layers->pdata[p->layers->len - 1] : NULL;
    if (last && strcmp(last, layer) == 0)
        return true;
    graph_layer(p->graph, layer);
    g_ptr_array_add(p->layers, (gpointer)layer);
    return true;
}

static bool check_op_name(const Profile *p, const char *name)
{
    if (!profile_check_name(p, "op", name))
        return false;
    if (graph_name_is_reserved(name))
        return json_fail(&p->at, "op",
                         "'%s' is what a gradient or an update is named like", name);
    return is_free(p, name);
}

typedef struct {
    const char *name;
    uint32_t numbers, kept, weights;
    bool splittable;
} Node;

static bool read_node(const Profile *p, Node *node)
{
    static const char *const known[] = {
        "op",         "in",        "layer",      "bytes", "kept_bytes", "parameter_bytes",
        "splittable", "forward_s", "backward_s", NULL};
    const json_t *splittable = json_object_get(p->at.item, "splittable");
    node->name = json_string_value(json_object_get(p->at.item, "op"));
    if (!json_is_object(p->at.item) || !json_known(&p->at, p->at.item, known) ||
        !check_op_name(p, node->name))
        return json_is_object(p->at.item) ? false
                                          : json_fail(&p->at, "op", "expected an object");
    if (splittable && !json_is_boolean(splittable))
        return json_fail(&p->at, "splittable", "expected true or false");
    node->splittable = !splittable || json_is_true(splittable);
    if (!read_numbers(p, p->at.item, "bytes", p->measured, &node->numbers) ||
        !read_numbers(p, p->at.item, "kept_bytes", p->measured, &node->kept) ||
        !read_numbers(p, p->at.item, "parameter_bytes", 1, &node->weights))
        return false;
    if (node->numbers == 0)
        return json_fail(&p->at, "bytes", "expected what the op makes");
    if (json_number_value(json_object_get(p->at.item, "parameter_bytes")) == 0)
        node->weights = 0;
    node->kept = json_object_get(p->at.item, "kept_bytes") ? node->kept : node->numbers;
    return true;
}

static bool build_op(Profile *p)
{
    Node node;
    g_autoptr(GArray) in = g_array_new(FALSE, FALSE, sizeof(TensorId));
    if (!read_node(p, &node) || !begin_layer(p, node.name) || !read_inputs(p, in))
        return false;
    const OpKind joins = node.splittable ? OP_OPAQUE : OP_OPAQUE_WHOLE;
    const uint32_t most = node.weights ? OP_MAX_IN - 1 : OP_MAX_IN;
    if (!join_inputs(p, joins, node.name, true, most, in))
        return false;
    OpKind kind = joins;
    if (node.weights) {
        g_autofree char *name = g_strdup_printf("%s.weights", node.name);
        if (graph_find(p->graph, name) != GRAPH_NONE)
            return json_fail(&p->at, "op", "there is a '%s' already", name);
        const TensorId weights = graph_parameter(p->graph, name, 1, &node.weights);
        g_array_prepend_val(in, weights);
        kind = node.splittable ? OP_OPAQUE_WEIGHTS : OP_OPAQUE_WHOLE_WEIGHTS;
    }
    g_autofree char *extents = g_strdup_printf("O=%u,S=%u", node.numbers, node.kept);
    const TensorId out = graph_op(p->graph, kind, node.name, (OpAttr){0}, in->len,
                                  (TensorId *)in->data, extents);
    g_array_append_val(p->made, graph_tensor(p->graph, out)->producer);
    return true;
}

/* All that nothing reads goes into the loss. */
static bool build_loss(Profile *p)
{
    g_autoptr(GArray) in = g_array_new(FALSE, FALSE, sizeof(TensorId));
    for (guint i = 0; i < p->made->len; i++) {
        const TensorId out =
            graph_get_op(p->graph, g_array_index(p->made, OpId, i))->out[0];
        if (!g_hash_table_contains(p->read, GUINT_TO_POINTER(out)))
            g_array_append_val(in, out);
    }
    p->at.item = NULL;
    graph_layer(p->graph, "loss");
    if (graph_find(p->graph, "loss") != GRAPH_NONE)
        return json_fail(&p->at, "ops", "'loss' is the name of what comes last");
    if (!join_inputs(p, OP_OPAQUE, "loss", false, 1, in))
        return false;
    p->loss = graph_op(p->graph, OP_OPAQUE_LOSS, "loss", (OpAttr){0}, 1,
                       (TensorId *)in->data, NULL);
    return true;
}

/* --- times --- */

/* Ops that only join take none on any type that the op before or behind was measured on: on all
 * that some op was. */
static void set_no_times(const Profile *p, GHashTable *types)
{
    const TimePoint none = {1, 0};
    ops_each (op, id, p->graph) {
        if (!op_kind_is_opaque(op->kind) ||
            !g_hash_table_contains(p->joins, GUINT_TO_POINTER(op->of)))
            continue;
        table_each (type, value, types)
            graph_set_times(p->graph, id, type, 1, &none);
    }
}

static bool set_op_times(const Profile *p, const char *key, OpId id, double part)
{
    const json_t *value = json_object_get(p->at.item, key);
    g_autofree char *wrong = value ? op_times_read(p->graph, id, value, p->measured, part)
                                   : g_strdup("expected seconds by device type");
    return !wrong || json_fail(&p->at, key, "%s", wrong);
}

static bool set_times(Profile *p, const json_t *ops)
{
    const uint32_t n_ops = graph_n_ops(p->graph);
    g_autofree uint32_t *n_backward = g_new0(uint32_t, n_ops);
    g_autofree size_t *node = g_new0(size_t, n_ops);
    g_autoptr(GHashTable) types = g_hash_table_new(g_str_hash, g_str_equal);
    for (OpId id = 0; id < n_ops; id++) {
        const Op *op = graph_get_op(p->graph, id);
        n_backward[op->of] += op->pass == PASS_BACKWARD && op_kind_is_opaque(op->kind);
    }
    for (guint i = 0; i < p->made->len; i++)
        node[g_array_index(p->made, OpId, i)] = i + 1;
    for (OpId id = 0; id < n_ops; id++) {
        const Op *op = graph_get_op(p->graph, id);
        if (!op_kind_is_opaque(op->kind) || node[op->of] == 0)
            continue;
        p->at.index = node[op->of] - 1;
        p->at.item = json_array_get(ops, p->at.index);
        const bool forward = op->pass == PASS_FORWARD;
        if (!set_op_times(p, forward ? "forward_s" : "backward_s", id,
                          forward ? 1 : 1.0 / n_backward[op->of]))
            return false;
        const OpTimes *times = graph_op_times(p->graph, id);
        for (uint32_t t = 0; t < times->n; t++)
            g_hash_table_add(types, (gpointer)times->curve[t].type);
    }
    set_no_times(p, types);
    return true;
}

/* --- the whole --- */

static bool check_sizes(Profile *p)
{
    bool parameters = false;
    p->at.item = NULL;
    tensors_each (tensor, t, p->graph) {
        if (tensor_size(tensor) > 0x1p53)
            return json_fail(&p->at, "ops", "'%s' would have more than 2^53 numbers",
                             tensor->name);
        parameters |= tensor->role == ROLE_PARAMETER;
    }
    return parameters ||
           json_fail(&p->at, "ops", "expected some op with parameter_bytes to train");
}

static bool build_nodes(Profile *p, const json_t *root)
{
    static const char *const known[] = {"format",    "name",        "source", "batch",
                                        "precision", "input_bytes", "ops",    NULL};
    const json_t *ops = json_object_get(root, "ops");
    const size_t n = json_array_size(ops);
    uint32_t numbers;
    if (!json_known(&p->at, root, known) ||
        !read_numbers(p, root, "input_bytes", p->measured, &numbers))
        return false;
    if (!json_is_array(ops) || n == 0 || n > MOST_OPS)
        return json_fail(&p->at, "ops", "expected an array of 1 to %d ops", MOST_OPS);
    graph_input(p->graph, "input", precision_compute(graph_precision(p->graph)), 2,
                (uint32_t[]){p->batch, MAX(1, numbers)});
    for (p->at.index = 0; p->at.index < n; p->at.index++) {
        p->at.item = json_array_get(ops, p->at.index);
        if (!build_op(p))
            return false;
    }
    return build_loss(p) && check_sizes(p);
}

static Graph *profile_build_graph(const char *file, const json_t *root,
                                  const ModelParams *params, GError **error)
{
    const char *name = json_string_value(json_object_get(root, "name"));
    const double batch = json_number_value(json_object_get(root, "batch"));
    g_autoptr(Graph) graph = graph_new(name ? name : "profile");
    model_prepare(graph, params);
    g_autoptr(GPtrArray) layers = g_ptr_array_new();
    g_autoptr(GArray) made = g_array_new(FALSE, FALSE, sizeof(OpId));
    g_autoptr(GHashTable) joins = g_hash_table_new(NULL, NULL),
                          reads = g_hash_table_new(NULL, NULL);
    Profile p = {.at = {.file = file, .list = "ops", .error = error},
                 .graph = graph,
                 .width = (uint32_t)dtype_bytes(precision_compute(params->precision)),
                 .measured = batch > 0 ? batch : model_param(params, "batch"),
                 .batch = model_size(params, "global_batch"),
                 .small = model_size(params, "small"),
                 .layers = layers,
                 .made = made,
                 .joins = joins,
                 .read = reads};
    if (!build_nodes(&p, root))
        return NULL;
    graph_differentiate(graph, p.loss, params->optimizer);
    if (!set_times(&p, json_object_get(root, "ops")))
        return NULL;
    graph_seal(graph);
    return g_steal_pointer(&graph);
}

static bool read_params(const ModelOfFile *of, ModelParams *params, GError **error)
{
    const JsonPlace at = {.file = of->file, .error = error};
    const json_t *batch = json_object_get(of->root, "batch"),
                 *precision = json_object_get(of->root, "precision"),
                 *format = json_object_get(of->root, "format");
    const char *name = json_string_value(precision);
    const Precision measured = name        ? precision_from_name(name)
                               : precision ? PRECISIONS
                                           : PRECISION_SINGLE;
    *params = model_params_new(&MODEL_OF_PROFILE);
    if (json_integer_value(json_object_get(format, "version")) != 1)
        return json_fail(&at, "format", "expected version 1");
    if (batch && (!json_is_integer(batch) || json_integer_value(batch) < 1 ||
                  json_integer_value(batch) > 1000000))
        return json_fail(&at, "batch", "expected an integer from 1 to 1000000");
    if (measured >= PRECISIONS)
        return json_fail(&at, "precision", "expected " PRECISION_NAMES);
    params->precision = measured;
    model_params_find(params, "batch")->value = (double)json_integer_value(batch);
    if (!model_params_parse(of->spec, of->list, params, error))
        return false;
    if (params->precision != measured)
        return refuse(error, "model '%s': precision: its times were measured in %s",
                      of->spec, precision_name(measured));
    if (model_param(params, "batch") == 0)
        return json_fail(&at, "batch",
                         "expected the samples that were measured, here or as "
                         "batch=... of the model");
    return model_params_follow(of->spec, params, 0, MAX(of->gpus, 1), error);
}

bool profile_model(const ModelOfFile *of, GError **error)
{
    ModelParams params;
    if (!read_params(of, &params, error))
        return false;
    if (of->graph) {
        g_autoptr(Graph) graph = profile_build_graph(of->file, of->root, &params, error);
        if (!graph || !model_sizes_fit(of->spec, graph, NULL, error))
            return false;
        *of->graph = g_steal_pointer(&graph);
    }
    if (of->canonical && of->gpus > 0)
        *of->canonical = model_params_spec(of->file, &params);
    return true;
}
