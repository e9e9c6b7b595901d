/* Sizes of an ONNX model's inputs, which of them are weights, and then the shapes of all values. */
#include "data/formats/onnx/onnx.h"

#include <string.h>

#include "data/formats/onnx/ops.h"

/* Marks the inputs that are read where weights are, perhaps transposed: the export left their
 * numbers out and feeds them. `of`: the input that each value is,
 * ONNX_NONE: none. */
static void mark_fed_weights(const OnnxModel *model, uint32_t *of, bool *weight)
{
    static const struct {
        const char *op;
        uint32_t from, to;
        bool matrix; /* of two dims only */
    } slot[] = {{"Conv", 1, 2, false},
                {"Gemm", 1, 2, false},
                {"MatMul", 1, 1, true},
                {"BatchNormalization", 1, 4, false},
                {"LayerNormalization", 1, 2, false},
                {"RMSNormalization", 1, 1, false},
                {"Gather", 0, 0, true}};
    for (uint32_t n = 0; n < model->node->len; n++) {
        const OnnxNode *node = onnx_node(model, n);
        const uint32_t made = onnx_out(model, node, 0);
        for (uint32_t i = 0; i < MIN(node->n_in, 5); i++) {
            const uint32_t in = onnx_in(model, node, i);
            if (of[in] == ONNX_NONE)
                continue;
            for (uint32_t k = 0; k < G_N_ELEMENTS(slot); k++)
                if (onnx_op_is(node, slot[k].op) && i >= slot[k].from &&
                    i <= slot[k].to &&
                    (!slot[k].matrix || onnx_value(model, of[in])->rank == 2))
                    weight[of[in]] = true;
            if (made != ONNX_NONE &&
                (onnx_op_is(node, "Transpose") || onnx_op_is(node, "Identity") ||
                 onnx_op_is(node, "Cast")))
                of[made] = of[in];
        }
    }
}

static bool is_open(const OnnxValue *value)
{
    bool open = !value->known || value->rank == 0;
    for (uint32_t d = 0; d < value->rank; d++)
        open |= value->dim[d] == 0;
    return open;
}

/* Whether an input has another number of rows than the first one has samples. One of as many dims
 * and of numbers like those of the first is data of another length. */
static bool lacks_samples(const OnnxModel *model, const OnnxValue *value)
{
    g_assert(model->input->len > 0);
    const OnnxValue *first = onnx_value(model, g_array_index(model->input, uint32_t, 0));
    const bool alike = first->rank == value->rank && onnx_dtype_is_float(first->dtype);
    return first->known && first->rank > 0 && first->dim[0] != value->dim[0] && !alike;
}

/* Inputs that are weights become constants: those that are read as such, and others that have a
 * module's name or no samples. */
static void find_weights(OnnxModel *model)
{
    g_autoptr(GArray) fed = g_array_new(false, false, sizeof(uint32_t));
    g_autofree uint32_t *of = g_new0(uint32_t, model->value->len);
    g_autofree bool *weight = g_new0(bool, model->value->len);
    for (uint32_t i = 0; i < model->input->len; i++) {
        const uint32_t index = g_array_index(model->input, uint32_t, i);
        const OnnxValue *value = onnx_value(model, index);
        if (!onnx_dtype_is_float(value->dtype) || is_open(value))
            continue;
        of[index] = index;
        weight[index] =
            i > 0 &&
            ((strchr(value->name, '.') && !g_str_has_prefix(value->name, "input.")) ||
             lacks_samples(model, value));
    }
    mark_fed_weights(model, of, weight);
    for (uint32_t i = 0; i < model->input->len; i++) {
        const uint32_t index = g_array_index(model->input, uint32_t, i);
        if (!weight[index]) {
            g_array_append_val(fed, index);
            continue;
        }
        onnx_value(model, index)->constant = true;
        onnx_value(model, index)->origin = index;
    }
    g_array_set_size(model->input, 0);
    g_array_append_vals(model->input, fed->data, fed->len);
}

/* Sizes that the file leaves open. */
static void close_inputs(OnnxModel *model, uint64_t seq)
{
    enum { OPEN_BATCH = 2, EDGE = 224, COLORS = 3, IMAGE_RANK = 4 };
    model->batch = OPEN_BATCH;
    model->seq_fixed = true;
    for (uint32_t i = 0; i < model->input->len && !model->batch_fixed; i++) {
        const OnnxValue *value =
            onnx_value(model, g_array_index(model->input, uint32_t, i));
        if (!value->known || value->rank == 0)
            continue;
        model->batch_fixed = value->dim[0] > 0;
        model->batch = model->batch_fixed ? value->dim[0] : OPEN_BATCH;
        break;
    }
    for (uint32_t i = 0; i < model->input->len; i++) {
        OnnxValue *value = onnx_value(model, g_array_index(model->input, uint32_t, i));
        for (uint32_t d = 0; d < value->rank; d++) {
            if (value->dim[d] > 0)
                continue;
            const bool image = value->rank == IMAGE_RANK;
            value->dim[d] = d == 0 ? model->batch : !image ? seq : d == 1 ? COLORS : EDGE;
            model->seq_fixed &= d == 0 || image;
        }
        value->known = value->known && onnx_set_shape(value, value->rank, value->dim);
    }
}

/* Sets the shape of a node's outputs, of whose inputs all that can be known is, and their elements
 * where the inputs are constants. A node whose inputs do not fit leaves the shape that the file
 * states, or none. */
static void infer_node(OnnxModel *model, const OnnxNode *node)
{
    if (onnx_out(model, node, 0) == ONNX_NONE)
        return;
    const OnnxOp *op = onnx_op_of(node);
    onnx_infer_shape(model, node, op ? op->shape : NULL);
    onnx_fold(model, node, op ? op->fold : NULL);
}

void onnx_infer(OnnxModel *model, uint64_t seq)
{
    find_weights(model);
    close_inputs(model, seq);
    for (uint32_t n = 0; n < model->node->len; n++)
        infer_node(model, onnx_node(model, n));
}
