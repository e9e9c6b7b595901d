/* Live bytes of a program, as a linear function of the shares: the rules under "Memory"
 * in sim/sim.h.
 *
 * A value is one making of an instance (tensor, form); it lives until its last use before
 * the instance is made again. Values lie in buffers; a value made in place or as a view
 * shares the buffer of another. */
#include "sim/buffers.h"
#include "sim/split.h"

#include <math.h>
#include <string.h>

#define NO_BUFFER UINT32_MAX

typedef struct {
    uint32_t birth,
        busy_until; /* instructions: first, and last use of any value in it so far */
    bool at_rest;   /* a parameter or optimizer state: alive all the time */
    bool stays;     /* alive to the end */
    bool held;      /* every GPU of a machine has all of it */
    uint32_t split; /* SPLIT_NONE: whole on every device */
    double bytes;   /* at share 1 */
} Buffer;

typedef struct {
    const Program *program;
    const Graph *graph;
    const SimLinear *linear;
    uint16_t *tensor_segment;
    uint32_t *end; /* [instr * OP_MAX_OUT + output]: last use of the value made there */
    uint32_t *buffer; /* [tensor * FORM_MAX + form]: where the instance is now */
    GArray *buffers;
    GArray *uses; /* Use; NULL: not wanted */
} Liveness;

typedef struct {
    uint32_t buffer, instr;
} Use;

/* --- which instances an instruction uses and makes --- */

typedef SimInstance Instance;

uint32_t sim_instr_uses(const Graph *graph, const Instr *instr, Instance use[OP_MAX_IN])
{
    if (instr->kind == INSTR_LOAD)
        return 0;
    if (instr->kind != INSTR_COMPUTE) {
        use[0] = (Instance){instr->tensor, instr->from};
        return 1;
    }
    const Op *op = graph_get_op(graph, instr->op);
    for (uint32_t i = 0; i < op->n_in; i++)
        use[i] = (Instance){op->in[i], instr->form[i]};
    return op->n_in;
}

uint32_t sim_instr_makes(const Graph *graph, const Instr *instr,
                         Instance make[OP_MAX_OUT])
{
    if (instr->kind != INSTR_COMPUTE) {
        make[0] = (Instance){instr->tensor, instr->to};
        return 1;
    }
    const Op *op = graph_get_op(graph, instr->op);
    for (uint32_t i = 0; i < op->n_out; i++)
        make[i] = (Instance){op->out[i], instr->form[op->n_in + i]};
    return op->n_out;
}

static size_t cell(Instance instance)
{
    return (size_t)instance.tensor * FORM_MAX + instance.form;
}

/* Last uses, walking backwards: what is used at an instruction was made before it. */
static void find_ends(Liveness *l)
{
    const Program *program = l->program;
    const size_t n_instances = (size_t)graph_n_tensors(l->graph) * FORM_MAX;
    g_autofree uint32_t *last = g_new0(uint32_t, n_instances); /* 0: none yet */

    for (uint32_t i = program->n; i-- > 0;) {
        Instance made[OP_MAX_OUT], used[OP_MAX_IN];
        const uint32_t n_made = sim_instr_makes(l->graph, &program->instr[i], made);
        const uint32_t n_used = sim_instr_uses(l->graph, &program->instr[i], used);
        for (uint32_t k = 0; k < n_made; k++) {
            l->end[i * OP_MAX_OUT + k] = MAX(last[cell(made[k])], i);
            last[cell(made[k])] = 0;
        }
        for (uint32_t k = 0; k < n_used; k++)
            last[cell(used[k])] = MAX(last[cell(used[k])], i);
    }
}

/* --- buffers --- */

static Buffer *buffer_of(const Liveness *l, Instance instance)
{
    const uint32_t id = l->buffer[cell(instance)];

    return id == NO_BUFFER ? NULL : &g_array_index(l->buffers, Buffer, id);
}

bool sim_is_held(const Graph *graph, const Tensor *tensor)
{
    switch (tensor->role) {
    case ROLE_PARAMETER:
    case ROLE_OPTIMIZER:
    case ROLE_UPDATED:
        return true;
    case ROLE_GRADIENT:
        return tensor->of != GRAPH_NONE &&
               graph_tensor(graph, tensor->of)->role == ROLE_PARAMETER;
    default:
        return false;
    }
}

static uint32_t split_of(const Liveness *l, Instance instance)
{
    return sim_split_of_form(l->linear->split, l->linear->n_splits, l->graph,
                             l->tensor_segment, instance.tensor, instance.form);
}

/* Whether a value made at instruction `i` can be written over the last one in
 * `instance`'s buffer. */
static bool free_at(const Liveness *l, Instance instance, uint32_t i)
{
    const Buffer *buffer = buffer_of(l, instance);

    return buffer &&
           (buffer->at_rest ? buffer->busy_until <= i : buffer->busy_until == i);
}

static bool is_elementwise(OpKind kind)
{
    return !strpbrk(op_kind_signature(kind),
                    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
}

static bool same_layout(const Liveness *l, Instance a, Instance b)
{
    const Tensor *x = graph_tensor(l->graph, a.tensor),
                 *y = graph_tensor(l->graph, b.tensor);

    return a.form == b.form && x->dtype == y->dtype && x->rank == y->rank &&
           memcmp(x->dim, y->dim, x->rank * sizeof x->dim[0]) == 0 &&
           split_of(l, a) == split_of(l, b) &&
           sim_is_held(l->graph, x) == sim_is_held(l->graph, y);
}

/* The buffer that a computation's output can share, or NO_BUFFER. */
static uint32_t shared_by_compute(const Liveness *l, uint32_t i, Instance made)
{
    const Instr *instr = &l->program->instr[i];
    const Op *op = graph_get_op(l->graph, instr->op);
    Instance used[OP_MAX_IN];
    const uint32_t n_used = sim_instr_uses(l->graph, instr, used);

    if (op_kind_is_view(op->kind))
        return l->buffer[cell(used[0])];
    if (!is_elementwise(op->kind) || op->n_out > 1)
        return NO_BUFFER;
    for (uint32_t k = 0; k < n_used; k++)
        if (free_at(l, used[k], i) && !buffer_of(l, used[k])->at_rest &&
            same_layout(l, used[k], made))
            return l->buffer[cell(used[k])];
    return NO_BUFFER;
}

/* The buffer that a conversion's result can share, or NO_BUFFER. */
static uint32_t shared_by_conversion(const Liveness *l, uint32_t i, const Instr *instr)
{
    const Instance from = {instr->tensor, instr->from};

    if (instr->collective == COLLECTIVE_SLICE && buffer_of(l, from)->at_rest)
        return l->buffer[cell(from)];
    if ((instr->collective == COLLECTIVE_ALL_REDUCE ||
         instr->collective == COLLECTIVE_KEEP) &&
        free_at(l, from, i) && !buffer_of(l, from)->at_rest)
        return l->buffer[cell(from)];
    return NO_BUFFER;
}

static uint32_t find_shared(const Liveness *l, uint32_t i, Instance made)
{
    const Instr *instr = &l->program->instr[i];
    const Tensor *tensor = graph_tensor(l->graph, made.tensor);

    if (tensor->role == ROLE_UPDATED) {
        const Instance old = {tensor->of, made.form};
        if (free_at(l, old, i))
            return l->buffer[cell(old)];
    }
    if (instr->kind == INSTR_COMPUTE)
        return shared_by_compute(l, i, made);
    return instr->kind == INSTR_COLLECTIVE ? shared_by_conversion(l, i, instr)
                                           : NO_BUFFER;
}

/* Puts the value made at instruction `i` as output `k` in a buffer. */
static void place(Liveness *l, uint32_t i, uint32_t k, Instance made)
{
    const Tensor *tensor = graph_tensor(l->graph, made.tensor);
    const uint32_t shared = find_shared(l, i, made);
    uint32_t end = l->end[i * OP_MAX_OUT + k];
    bool stays = false;

    if (tensor->role == ROLE_UPDATED) {
        const Buffer *old = buffer_of(l, (Instance){tensor->of, made.form});
        if (old && old->at_rest && old->split == split_of(l, made))
            stays = true; /* the next iteration starts from it */
        if (stays)
            end = l->program->n - 1;
    }
    if (shared != NO_BUFFER) {
        Buffer *buffer = &g_array_index(l->buffers, Buffer, shared);
        buffer->busy_until = MAX(buffer->busy_until, end);
        buffer->stays = buffer->stays || stays;
        l->buffer[cell(made)] = shared;
        return;
    }
    const Buffer buffer = {
        .birth = i,
        .busy_until = end,
        .at_rest = l->program->instr[i].kind == INSTR_LOAD &&
                   (tensor->role == ROLE_PARAMETER || tensor->role == ROLE_OPTIMIZER),
        .held = sim_is_held(l->graph, tensor),
        .split = split_of(l, made),
        .bytes = (double)tensor_bytes(tensor),
    };
    g_array_append_val(l->buffers, buffer);
    l->buffer[cell(made)] = l->buffers->len - 1;
}

static void add_uses(Liveness *l, uint32_t i, uint32_t n, const Instance *instance)
{
    for (uint32_t k = 0; l->uses && k < n; k++) {
        const Use use = {l->buffer[cell(instance[k])], i};
        g_array_append_val(l->uses, use);
    }
}

static void place_all(Liveness *l)
{
    const size_t n_instances = (size_t)graph_n_tensors(l->graph) * FORM_MAX;

    for (size_t i = 0; i < n_instances; i++)
        l->buffer[i] = NO_BUFFER;
    for (uint32_t i = 0; i < l->program->n; i++) {
        Instance made[OP_MAX_OUT], used[OP_MAX_IN];
        const uint32_t n_made = sim_instr_makes(l->graph, &l->program->instr[i], made);
        const uint32_t n_used = sim_instr_uses(l->graph, &l->program->instr[i], used);
        add_uses(l, i, n_used, used);
        for (uint32_t k = 0; k < n_made; k++)
            place(l, i, k, made[k]);
        add_uses(l, i, n_made, made);
    }
}

/* --- points --- */

/* A point is a row of 2 (1 + n_splits) numbers: held, held_sharded[], divided,
 * divided_sharded[]. Bytes are integers, so that sums and differences of them are exact.
 */
static double *live_bytes(const Liveness *l)
{
    const uint32_t half = 1 + l->linear->n_splits, width = 2 * half, n = l->program->n;
    double *row = g_new0(double, (size_t)(n + 1) * width);

    for (uint32_t b = 0; b < l->buffers->len; b++) {
        const Buffer *buffer = &g_array_index(l->buffers, Buffer, b);
        const uint32_t column = (buffer->held ? 0 : half) +
                                (buffer->split == SPLIT_NONE ? 0 : 1 + buffer->split);
        const uint32_t first = buffer->at_rest ? 0 : buffer->birth;
        const uint32_t last = buffer->at_rest ? n - 1 : buffer->busy_until;
        row[(size_t)first * width + column] += buffer->bytes;
        row[(size_t)(last + 1) * width + column] -= buffer->bytes;
    }
    for (size_t i = width; i < (size_t)n * width; i++)
        row[i] += row[i - width];
    return row;
}

/* Whether a >= b in every column. */
static bool covers(const double *a, const double *b, uint32_t width)
{
    for (uint32_t i = 0; i < width; i++)
        if (a[i] < b[i])
            return false;
    return true;
}

/* Indices of the rows that no other row covers; of equal rows the first. Caller frees. */
static uint32_t *pareto(const double *row, uint32_t n, uint32_t width, uint32_t *n_kept)
{
    uint32_t *kept = g_new(uint32_t, n);
    uint32_t count = 0;

    for (uint32_t i = 0; i < n; i++) {
        const double *candidate = &row[(size_t)i * width];
        bool covered = false;
        for (uint32_t k = 0; k < count && !covered; k++)
            covered = covers(&row[(size_t)kept[k] * width], candidate, width);
        if (covered)
            continue;
        uint32_t rest = 0;
        for (uint32_t k = 0; k < count; k++)
            if (!covers(candidate, &row[(size_t)kept[k] * width], width))
                kept[rest++] = kept[k];
        kept[rest] = i;
        count = rest + 1;
    }
    *n_kept = count;
    return kept;
}

static SimMemory *collect_points(const Liveness *l)
{
    const uint32_t n_splits = l->linear->n_splits, half = 1 + n_splits;
    g_autofree double *row = live_bytes(l);
    SimMemory *memory = g_new0(SimMemory, 1);

    memory->instr = pareto(row, l->program->n, 2 * half, &memory->n_points);
    memory->n_splits = n_splits;
    memory->held = g_new(double, memory->n_points);
    memory->divided = g_new(double, memory->n_points);
    memory->held_sharded = g_new(double, (size_t)memory->n_points *n_splits);
    memory->divided_sharded = g_new(double, (size_t)memory->n_points *n_splits);
    for (uint32_t p = 0; p < memory->n_points; p++) {
        const double *point = &row[(size_t)memory->instr[p] * 2 * half];
        memory->held[p] = point[0];
        memory->divided[p] = point[half];
        for (uint32_t k = 0; k < n_splits; k++) {
            memory->held_sharded[p * n_splits + k] = point[1 + k];
            memory->divided_sharded[p * n_splits + k] = point[half + 1 + k];
        }
    }
    return memory;
}

/* Buffers of all values, and their uses if `uses` is not NULL. Caller frees. */
static GArray *find_buffers(Liveness *l, const uint16_t *segment, GArray *uses)
{
    const size_t n_instances = (size_t)graph_n_tensors(l->graph) * FORM_MAX;

    l->tensor_segment = sim_split_tensor_segments(l->graph, segment);
    l->end = g_new0(uint32_t, (size_t)l->program->n * OP_MAX_OUT);
    l->buffer = g_new(uint32_t, n_instances);
    l->buffers = g_array_new(false, false, sizeof(Buffer));
    l->uses = uses;
    find_ends(l);
    place_all(l);
    g_free(l->tensor_segment);
    g_free(l->end);
    g_free(l->buffer);
    return l->buffers;
}

SimMemory *sim_memory(const Program *program, const Graph *graph, const SimLinear *linear,
                      const uint16_t *segment)
{
    Liveness l = {.program = program, .graph = graph, .linear = linear};
    g_autoptr(GArray) buffers = find_buffers(&l, segment, NULL);

    (void)buffers;
    return collect_points(&l);
}

void sim_memory_free(SimMemory *memory)
{
    if (!memory)
        return;
    g_free(memory->instr);
    g_free(memory->held);
    g_free(memory->divided);
    g_free(memory->held_sharded);
    g_free(memory->divided_sharded);
    g_free(memory);
}

double sim_memory_peak(const SimMemory *memory, const ClusterView *view,
                       const double *share, uint32_t device, uint32_t *point)
{
    double peak = -1;
    uint32_t where = 0;

    for (uint32_t p = 0; p < memory->n_points; p++) {
        double held = memory->held[p], divided = memory->divided[p];
        for (uint32_t k = 0; k < memory->n_splits; k++) {
            const double part = share[k * view->n_devices + device];
            held += memory->held_sharded[p * memory->n_splits + k] * part;
            divided += memory->divided_sharded[p * memory->n_splits + k] * part;
        }
        const double bytes = held + divided / view->device[device].gpus;
        if (bytes > peak) {
            peak = bytes;
            where = p;
        }
    }
    if (point)
        *point = where;
    return fmax(peak, 0);
}

/* --- for timelines --- */

static int compare_uses(const void *a, const void *b)
{
    const Use *x = a, *y = b;

    if (x->buffer != y->buffer)
        return x->buffer < y->buffer ? -1 : 1;
    return (x->instr > y->instr) - (x->instr < y->instr);
}

SimBuffers *sim_buffers(const Program *program, const Graph *graph,
                        const SimLinear *linear, const uint16_t *segment)
{
    Liveness l = {.program = program, .graph = graph, .linear = linear};
    g_autoptr(GArray) uses = g_array_new(false, false, sizeof(Use));
    g_autoptr(GArray) found = find_buffers(&l, segment, uses);
    SimBuffers *buffers = g_new0(SimBuffers, 1);

    g_array_sort(uses, compare_uses);
    buffers->n = found->len;
    buffers->buffer = g_new0(SimBuffer, found->len);
    buffers->use = g_new(uint32_t, uses->len);
    for (uint32_t b = 0; b < found->len; b++) {
        const Buffer *from = &g_array_index(found, Buffer, b);
        buffers->buffer[b] = (SimBuffer){.birth = from->birth,
                                         .at_rest = from->at_rest,
                                         .stays = from->stays,
                                         .held = from->held,
                                         .split = from->split,
                                         .bytes = from->bytes};
    }
    for (uint32_t u = 0; u < uses->len; u++) {
        const Use *use = &g_array_index(uses, Use, u);
        SimBuffer *buffer = &buffers->buffer[use->buffer];
        if (buffer->n++ == 0)
            buffer->first = u;
        buffers->use[u] = use->instr;
    }
    return buffers;
}

void sim_buffers_free(SimBuffers *buffers)
{
    if (!buffers)
        return;
    g_free(buffers->buffer);
    g_free(buffers->use);
    g_free(buffers);
}
