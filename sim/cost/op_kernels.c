/* Ops as kernels. */
#include "sim/cost/op_kernels.h"

#include <math.h>
#include <string.h>

#include "data/graph/documents.h"
#include "sim/cost/kernel_law.h"

typedef struct {
    const Graph *graph;
    const Op *op;
    OpId id;
    OpSpace space;
    const double *part;
    const Stack *stack;
    KernelFormat format;
    double bytes; /* of an element of what it computes with */
    OpKernel *kernel;
    uint32_t n;
} Listing;

static OpKernel *add_kernel(Listing *l, KernelKind kind, KernelClass class)
{
    g_assert(l->n < OP_KERNELS_MAX);
    OpKernel *one = &l->kernel[l->n++];
    *one = (OpKernel){.kernel = {.kind = kind, .format = l->format},
                      .times = 1,
                      .launches = 1,
                      .class = class};
    return one;
}

static void set_product(OpKernel *one, double batch, double m, double n, double k,
                        KernelLayout layout)
{
    one->kernel.product.batch = batch;
    one->kernel.product.m = m;
    one->kernel.product.n = n;
    one->kernel.product.k = k;
    one->kernel.product.layout = layout;
}

static double loop_extent(const Listing *l, uint32_t loop)
{
    return l->space.loop[loop].extent * l->part[loop];
}

/* The product of the extents of all loops with that letter; 1 if there is none. */
static double letter_extent(const Listing *l, char letter)
{
    double extent = 1;
    for (uint32_t i = 0; i < l->space.n_loops; i++)
        if (l->space.loop[i].letter == letter)
            extent *= loop_extent(l, i);
    return extent;
}

static TensorId operand_of(const Listing *l, uint32_t i)
{
    return i < l->op->n_in ? l->op->in[i] : l->op->out[i - l->op->n_in];
}

/* The part of an operand that the device has. */
static double operand_part(const Listing *l, uint32_t i)
{
    double part = 1;
    const Tensor *tensor = graph_tensor(l->graph, operand_of(l, i));
    for (uint32_t d = 0; d < tensor->rank; d++)
        if (l->space.dim_loop[i][d] >= 0)
            part *= l->part[l->space.dim_loop[i][d]];
    return part;
}

static double operand_elements(const Listing *l, uint32_t i)
{
    return (double)tensor_elements(graph_tensor(l->graph, operand_of(l, i))) *
           operand_part(l, i);
}

/* Bytes that the device moves of an operand; of one that is looked up, what its indices name. */
static double operand_bytes(const Listing *l, uint32_t i)
{
    const uint32_t looked_up = op_kind_looked_up(l->op->kind);
    return (double)graph_op_bytes(l->graph, l->id, i) *
           (i == looked_up ? operand_part(l, op_kind_index(l->op->kind))
                           : operand_part(l, i));
}

/* --- passes over memory --- */

/* One that reads and writes so many bytes, elements of `size` bytes. */
static void add_pass(Listing *l, KernelClass class, double read, double written,
                     double size)
{
    if (read + written <= 0)
        return;
    const double elements = fmax(read, written) / size;
    OpKernel *one = add_kernel(l, KERNEL_ELEMENTWISE, class);
    one->kernel.elementwise.elements = elements;
    one->kernel.elementwise.read = read / elements;
    one->kernel.elementwise.written = written / elements;
}

static void add_operands(Listing *l, KernelClass class, double factor)
{
    double read = 0, written = 0, widest = 1;
    for (uint32_t i = 0; i < l->op->n_in + l->op->n_out; i++) {
        const double bytes = factor * operand_bytes(l, i);
        *(i < l->op->n_in ? &read : &written) += bytes;
        widest =
            fmax(widest, dtype_bytes(graph_tensor(l->graph, operand_of(l, i))->dtype));
    }
    TensorId of;
    const uint32_t kept = graph_op_kept_bytes(l->graph, l->id, &of);
    if (kept > 0)
        written += factor * kept * operand_elements(l, l->op->n_in);
    add_pass(l, class, read, written, widest);
}

/* --- products --- */

enum { IN_FIRST = 1, IN_SECOND = 2, IN_OUTPUT = 4 };

/* Which of the product's operands have the loop; added operands, such as a bias, do not count. */
static uint32_t operands_with(const Listing *l, uint32_t loop)
{
    uint32_t set = 0;
    const uint32_t operand[] = {0, 1, l->op->n_in};
    for (uint32_t i = 0; i < G_N_ELEMENTS(operand); i++)
        if (space_driven_dim(&l->space, operand[i], loop) >= 0)
            set |= 1u << i;
    return set;
}

/* Whether an op that is linear in both operands sums over loops that both have, for rows or columns
 * of its output. Others, such as the gradient of a choice's weight, pass over their operands. */
static bool is_product(const Listing *l)
{
    bool product = strcmp(op_kind_linear(l->op->kind), "0|1") == 0, sums = false,
         divides = false;
    for (uint32_t i = 0; product && i < l->space.n_loops; i++) {
        const uint32_t set = operands_with(l, i);
        sums |= set == (IN_FIRST | IN_SECOND);
        divides |= set == (IN_FIRST | IN_OUTPUT) || set == (IN_SECOND | IN_OUTPUT);
        product = set == 0 || (set & (set - 1)) != 0;
    }
    return product && sums && divides;
}

static bool is_narrow(const Listing *l)
{
    return l->format == KERNEL_FP8 || l->format == KERNEL_NVFP4;
}

/* Frozen weights in four bits, or in eight with scales, are turned into 16 before each product. */
static void add_unpacking(Listing *l)
{
    for (uint32_t i = 0; i < l->op->n_in; i++) {
        const Tensor *weights = graph_tensor(l->graph, l->op->in[i]);
        if (!weights->frozen ||
            (weights->dtype != DTYPE_NF4 && weights->dtype != DTYPE_Q8))
            continue;
        OpKernel *one = add_kernel(l, KERNEL_ELEMENTWISE, KERNEL_CLASS_MEMORY);
        one->kernel.elementwise.elements = operand_elements(l, i);
        one->kernel.elementwise.read = dtype_bytes(weights->dtype);
        one->kernel.elementwise.written = l->bytes;
        one->kernel.elementwise.scalar = true;
    }
}

static void list_product(Listing *l)
{
    add_unpacking(l);
    double batch = 1, m = 1, n = 1, k = 1;
    for (uint32_t i = 0; i < l->space.n_loops; i++)
        switch (operands_with(l, i)) {
        case IN_FIRST | IN_SECOND | IN_OUTPUT:
            batch *= loop_extent(l, i);
            break;
        case IN_FIRST | IN_OUTPUT:
            m *= loop_extent(l, i);
            break;
        case IN_SECOND | IN_OUTPUT:
            n *= loop_extent(l, i);
            break;
        default:
            k *= loop_extent(l, i);
        }
    const bool grouped = op_kind_is_of_experts(l->op->kind);
    const KernelLayout layout = l->op->pass == PASS_FORWARD                ? KERNEL_TN
                                : op_kind_is_weights_gradient(l->op->kind) ? KERNEL_NT
                                                                           : KERNEL_NN;
    /* Turned into 8 or 4 bits: the moving operand, row by row and column by column, once in the
     * forward and once, its gradient, in the backward. */
    if (is_narrow(l) && layout != KERNEL_NT && l->stack->convert > 0) {
        add_pass(l, KERNEL_CLASS_MEMORY, 2 * batch * m * k, 2 * batch * m * k, 2);
        l->kernel[l->n - 1].times = l->stack->convert;
    }
    OpKernel *one = add_kernel(l,
                               grouped     ? KERNEL_GROUPED
                               : batch > 1 ? KERNEL_BATCHED
                                           : KERNEL_PRODUCT,
                               grouped ? KERNEL_CLASS_EXPERTS : KERNEL_CLASS_PRODUCTS);
    const Tensor *out = graph_tensor(l->graph, l->op->out[0]);
    set_product(one, batch, m, n, k, layout);
    one->kernel.product.out_bytes = dtype_bytes(out->dtype);
    one->kernel.product.library = KERNEL_EXPERTS_TRAINING;
    one->kernel.product.accumulates = layout == KERNEL_NT && l->stack->adds > 0;
    if (is_narrow(l) && layout == KERNEL_NT)
        one->times = l->stack->narrow_dw;
    if (grouped) /* a launch for each expert; in 8 bits two more, of its scales and conversions */
        one->launches = batch * (is_narrow(l) ? 3 : 1);
    if (layout == KERNEL_NT && l->stack->accumulates > 0) {
        const double bytes = operand_bytes(l, l->op->n_in) * l->stack->accumulates;
        add_pass(l, KERNEL_CLASS_MEMORY, bytes * 2 / 3, bytes / 3,
                 dtype_bytes(out->dtype));
    }
}

/* --- attention --- */

static void add_batched(Listing *l, double batch, double m, double n, double k)
{
    OpKernel *one = add_kernel(l, KERNEL_BATCHED, KERNEL_CLASS_ATTENTION);
    set_product(one, batch, m, n, k, KERNEL_NN);
}

static void add_rows(Listing *l, KernelKind kind, KernelClass class, double rows,
                     double width, bool backward)
{
    OpKernel *one = add_kernel(l, kind, class);
    one->kernel.backward = backward;
    one->kernel.rows.rows = rows;
    one->kernel.rows.width = width;
    one->kernel.rows.element_bytes = l->bytes;
}

/* Passes over scores beside softmax: scale and mask, dropout with a mask of bytes. Heads not by
 * fours (Megatron-LM: is_kernel_available) go to float32 and back, 12 bytes and 4 in softmax. */
static void add_scores(Listing *l, double heads, double scores)
{
    const bool odd = l->bytes == 2 && fmod(heads, 1) == 0 && fmod(heads, 4) != 0;
    const double wide = l->bytes > 2 || odd ? 4 * l->stack->wide_scores : 0,
                 cast = odd && wide > 0 ? 16 : 0,
                 half = scores * fmax(l->stack->scores * l->bytes, wide + cast) / 2;
    if (half > 0)
        add_pass(l, KERNEL_CLASS_ATTENTION, half, half, l->bytes);
    if (l->op->attr.rate > 0)
        add_pass(l, KERNEL_CLASS_ATTENTION, scores * l->bytes, scores * (l->bytes + 1),
                 l->bytes);
}

static void list_materialized(Listing *l, bool backward)
{
    const double q = letter_extent(l, 'Q'), k = letter_extent(l, 'K');
    const bool grouped =
        l->op->kind == OP_GROUPED_ATTENTION || l->op->kind == OP_GROUPED_ATTENTION_DX;
    const double d = letter_extent(l, 'D'), v = grouped ? letter_extent(l, 'V') : d;
    const double batch =
        letter_extent(l, 'b') * letter_extent(l, 'h') * letter_extent(l, 'g');
    const double heads = batch * q * (2 * d + 2 * v);
    if (backward) {
        add_batched(l, batch, k, v, q);
        add_batched(l, batch, q, k, v);
        add_batched(l, batch, q, d, k);
        add_batched(l, batch, k, d, q);
    } else {
        add_batched(l, batch, q, k, d);
        add_batched(l, batch, q, v, k);
    }
    add_rows(l, KERNEL_SOFTMAX, KERNEL_CLASS_ATTENTION, batch * q, k, backward);
    add_scores(l, batch, batch * q * k);
    if (l->stack->heads > 0)
        add_pass(l, KERNEL_CLASS_ATTENTION, heads * l->bytes * l->stack->heads / 2,
                 heads * l->bytes * l->stack->heads / 2, l->bytes);
}

/* Where devices divide the queries of a causal mask, each has as many pairs as its part says
 * (Liu et al. 2023 and what balances it): a part of the samples. Documents are samples of equal
 * length with as many pairs; unless each is cut, all wait for the part with the most. */
static void list_fused(Listing *l, bool backward)
{
    OpKernel *one = add_kernel(l, KERNEL_ATTENTION, KERNEL_CLASS_ATTENTION);
    double divided = 1, queries = 1;
    for (uint32_t i = 0; i < l->space.n_loops; i++)
        if (l->space.loop[i].letter == LOOP_QUERY) {
            divided = l->part[i];
            queries = l->space.loop[i].extent;
        }
    const OpAttr *attr = &l->op->attr;
    if (attr->documents && divided < 1 && l->stack->cut_documents <= 0)
        divided *= documents_fullest(attr->documents, (uint64_t)queries, attr->span,
                                     (uint32_t)lround(1 / divided));
    if (attr->documents) {
        const double seq = queries;
        queries = 2 * documents_pairs(attr->documents, (uint64_t)seq, 0) / seq - 1;
        divided *= seq / queries;
    }
    const double kv = letter_extent(l, 'h');
    one->kernel.backward = backward;
    one->kernel.attention.batch = letter_extent(l, 'b') * divided;
    one->kernel.attention.queries = queries;
    one->kernel.attention.keys = attr->documents ? queries : letter_extent(l, 'K');
    one->kernel.attention.heads = kv * letter_extent(l, 'g');
    one->kernel.attention.kv_heads = kv;
    one->kernel.attention.head_qk = letter_extent(l, 'D');
    one->kernel.attention.head_v = letter_extent(l, 'V');
    one->kernel.attention.window = attr->span;
    one->kernel.attention.causal = attr->causal;
    one->kernel.attention.library =
        l->stack->flash < 3 ? KERNEL_ATTENTION_FA2 : KERNEL_ATTENTION_AUTO;
    one->times = l->stack->attention;
}

/* --- recurrences --- */

/* A recurrence runs by chunks of so many tokens: what they see of each other as products, and what
 * the chunks before left as states of D x V in float32, which are written, handed on and read (Dao
 * and Gu 2024, Sec. 6; Yang et al. 2024, Sec. 3, for `delta`, which also inverts and applies a
 * matrix of each chunk). Backward each product has two, and the states are made again. */
static void list_recurrence(Listing *l, bool delta, bool backward)
{
    static const double CHUNK = 128, FLOAT = 4;
    add_operands(l, KERNEL_CLASS_ATTENTION, 1);
    const double c = fmin(CHUNK, letter_extent(l, 'S')), v = letter_extent(l, 'V'),
                 d = letter_extent(l, 'E') / 2,
                 keys = letter_extent(l, 'b') * letter_extent(l, 'S') / c *
                        letter_extent(l, 'h'),
                 heads = keys * letter_extent(l, 'g'), state = heads * d * v * FLOAT;
    const uint32_t first = l->n;
    add_batched(l, keys, c, c, d);
    add_batched(l, heads, c, v, c);
    add_batched(l, heads, c, v, d);
    if (delta) {
        add_batched(l, heads, c, c, d);
        add_batched(l, heads, c, d + v, c);
    }
    for (uint32_t i = first; i < l->n; i++)
        l->kernel[i].times = backward ? 2 : 1;
    add_batched(l, heads, d, v, c);
    l->kernel[l->n - 1].times = backward ? 3 : 1;
    add_pass(l, KERNEL_CLASS_ATTENTION, 2 * state, 2 * state, FLOAT);
    l->kernel[l->n - 1].times = backward ? 2 : 1;
}

/* --- convolutions --- */

static void list_convolution(Listing *l, KernelPass pass)
{
    OpKernel *one = add_kernel(l, KERNEL_CONVOLUTION, KERNEL_CLASS_PRODUCTS);
    one->kernel.convolution.batch = letter_extent(l, 'n');
    one->kernel.convolution.groups = letter_extent(l, 'g');
    one->kernel.convolution.in = letter_extent(l, 'c') * one->kernel.convolution.groups;
    one->kernel.convolution.out = letter_extent(l, 'o') * one->kernel.convolution.groups;
    one->kernel.convolution.height = letter_extent(l, 'P');
    one->kernel.convolution.width = letter_extent(l, 'Q');
    one->kernel.convolution.rows = letter_extent(l, 'R');
    one->kernel.convolution.columns = letter_extent(l, 'S');
    one->kernel.convolution.stride = MAX(l->op->attr.stride, 1);
    one->kernel.convolution.pass = pass;
}

/* --- norms --- */

/* The two gradients are one kernel or two; that of the input moves 16 of their 24 bytes per
 * element (float32). */
static void list_norm(Listing *l, double times)
{
    const Tensor *x = graph_tensor(l->graph, l->op->in[0]);
    const double width =
        (double)x->dim[x->rank - 1] * (l->space.dim_loop[0][x->rank - 1] >= 0
                                           ? l->part[l->space.dim_loop[0][x->rank - 1]]
                                           : 1);
    add_rows(l, KERNEL_NORM, KERNEL_CLASS_MEMORY, operand_elements(l, 0) / width, width,
             l->op->pass == PASS_BACKWARD);
    l->kernel[l->n - 1].times = times;
    l->kernel[l->n - 1].kernel.rows.squares = l->op->kind != OP_LAYER_NORM;
}

/* Accesses to an operand by an op that a framework runs as several kernels, beside those of one. */
static void add_accesses(Listing *l, uint32_t operand, double accesses)
{
    const double bytes = operand_bytes(l, operand) * accesses / 2;
    add_pass(l, KERNEL_CLASS_MEMORY, bytes, bytes, l->bytes);
}

static void list_kernels(Listing *l)
{
    static const double OF_INPUT = 16.0 / 24, OF_WEIGHTS = 8.0 / 24;
    const OpKind kind = l->op->kind;
    const bool backward = l->op->pass == PASS_BACKWARD;
    switch (kind) {
    case OP_ATTENTION:
    case OP_GROUPED_ATTENTION:
    case OP_ATTENTION_DX:
    case OP_GROUPED_ATTENTION_DX:
        list_materialized(l, backward);
        return;
    case OP_FUSED_ATTENTION:
    case OP_FUSED_ATTENTION_DX:
        list_fused(l, backward);
        return;
    case OP_SCAN:
    case OP_SCAN_DX:
    case OP_LINEAR_ATTENTION:
    case OP_LINEAR_ATTENTION_DX:
    case OP_WKV:
    case OP_WKV_DX:
        list_recurrence(l, false, backward);
        return;
    case OP_DELTA_SCAN:
    case OP_DELTA_SCAN_DX:
    case OP_DELTA_WKV:
    case OP_DELTA_WKV_DX:
        list_recurrence(l, true, backward);
        return;
    case OP_CONV2D:
    case OP_GROUP_CONV2D:
    case OP_CONV2D_DX:
    case OP_GROUP_CONV2D_DX:
    case OP_CONV2D_DW:
    case OP_GROUP_CONV2D_DW:
        list_convolution(l, !backward                           ? KERNEL_FORWARD
                            : op_kind_is_weights_gradient(kind) ? KERNEL_WEIGHT_GRADIENT
                                                                : KERNEL_INPUT_GRADIENT);
        return;
    case OP_LAYER_NORM:
    case OP_RMS_NORM:
    case OP_KEY_NORM:
    case OP_LAYER_NORM_DX:
    case OP_RMS_NORM_DX:
    case OP_KEY_NORM_DX:
        list_norm(l, backward ? OF_INPUT : 1);
        if (kind != OP_LAYER_NORM && kind != OP_LAYER_NORM_DX)
            add_accesses(l, 0, backward ? l->stack->rms_norm_dx : l->stack->rms_norm);
        return;
    case OP_LAYER_NORM_DW:
    case OP_RMS_NORM_DW:
    case OP_KEY_NORM_DW:
        list_norm(l, OF_WEIGHTS);
        return;
    case OP_LOG_SOFTMAX:
    case OP_LOG_SOFTMAX_DX: {
        const double v = letter_extent(l, 'V');
        add_rows(l, KERNEL_SOFTMAX, KERNEL_CLASS_LOSS, operand_elements(l, 0) / v, v,
                 backward);
        return;
    }
    case OP_LABEL_LOGIT:
    case OP_SUM_EXP:
    case OP_LOG_SUM_EXP:
    case OP_CROSS_ENTROPY:
    case OP_CROSS_ENTROPY_DX:
    case OP_NLL_SUM:
    case OP_NLL_SUM_DX:
        add_operands(l, KERNEL_CLASS_LOSS, l->stack->loss);
        return;
    case OP_ROTARY:
    case OP_ROTARY_DX:
        add_operands(l, KERNEL_CLASS_MEMORY, l->stack->elementwise);
        add_accesses(l, 0, l->stack->rotary);
        return;
    case OP_ROUTE:
    case OP_UNROUTE:
        add_operands(l, KERNEL_CLASS_MEMORY, l->stack->elementwise);
        add_accesses(l, kind == OP_ROUTE ? l->op->n_in : 0, l->stack->dispatch);
        return;
    case OP_GELU:
    case OP_GELU_DX:
        /* its chain is as long backward, and one access more; fused, it is one kernel that the
         * bias joins */
        add_operands(l, KERNEL_CLASS_MEMORY, l->stack->gelu);
        return;
    default:
        if (is_product(l))
            list_product(l);
        else if (op_kind_updates(kind))
            add_operands(l, KERNEL_CLASS_UPDATE, l->stack->update);
        else
            add_operands(l, KERNEL_CLASS_MEMORY, l->stack->elementwise);
    }
}

uint32_t op_kernels(const Graph *graph, OpId id, const double part[OP_MAX_LOOPS],
                    const Stack *stack, OpKernel kernel[OP_KERNELS_MAX])
{
    const Numbers numbers = graph_op_numbers(graph, id);
    Listing l = {.graph = graph,
                 .op = graph_get_op(graph, id),
                 .id = id,
                 .part = part,
                 .stack = stack,
                 .format = kernel_format_of(numbers, false),
                 .kernel = kernel};
    if (op_kind_is_view(l.op->kind))
        return 0;
    l.bytes = kernel_format_bytes(l.format);
    graph_op_space(graph, id, &l.space);
    list_kernels(&l);
    return l.n;
}

double op_kernels_s(const KernelPricing *pricing, const Graph *graph, OpId id,
                    const double part[OP_MAX_LOOPS])
{
    OpKernel kernel[OP_KERNELS_MAX];
    const uint32_t n = op_kernels(graph, id, part, &pricing->stack, kernel);
    const double gap_s = pricing->device->constants.stream.gap * 1e-6;
    double seconds = 0, launches = 0;
    for (uint32_t i = 0; i < n; i++) {
        seconds += kernel[i].times * pricing->factor[kernel[i].class] *
                   (kernel_time_s(pricing->device, &kernel[i].kernel) + gap_s);
        launches += kernel[i].launches;
    }
    return fmax(seconds, launches * pricing->stack.launch_s);
}

/* Of a kernel, with the gap before it. floor_s: each part takes that, but for those of its
 * op's other kernels. */
static double kernel_least_s(const KernelDevice *device, const Kernel *kernel,
                             double floor_s)
{
    const KernelReport report = kernel_report(device, kernel);
    const double gap_s = device->constants.stream.gap * 1e-6;
    if (report.once_bytes > 0)
        return law_pass_least_s(device, report.once_bytes, floor_s);
    return gap_s + (report.least_s > 0
                        ? report.least_s
                        : fmax(report.flops / report.peak,
                               report.bytes / (report.bandwidth *
                                               device->constants.memory.cache_gain)));
}

double op_kernels_least_s(const KernelPricing *pricing, const Graph *graph, OpId id,
                          double *once_s)
{
    static const double ONE[OP_MAX_LOOPS] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    OpKernel kernel[OP_KERNELS_MAX];
    Stack stack = pricing->stack;
    if (kernel_format_bytes(kernel_format_of(graph_op_numbers(graph, id), false)) == 2)
        stack.wide_scores = 0; /* parts may have fours of heads */
    const uint32_t n = op_kernels(graph, id, ONE, &stack, kernel);
    double seconds = 0, launches = 0, at_once = 0;
    for (uint32_t i = 0; i < n; i++) {
        const double factor = kernel[i].times * pricing->factor[kernel[i].class];
        const double floor_s = n == 1 ? pricing->stack.launch_s / factor : 0;
        seconds += factor * kernel_least_s(pricing->device, &kernel[i].kernel, floor_s);
        launches += kernel[i].launches;
        at_once += kernel[i].kernel.kind == KERNEL_GROUPED ? 0 : kernel[i].launches;
    }
    *once_s = at_once * pricing->stack.launch_s;
    return fmax(seconds, launches * pricing->stack.launch_s);
}
