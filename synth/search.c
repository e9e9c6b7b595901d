/* The search: a walk over the forward ops, each decided together with its backward ops; at every cut the labels that
 * nothing dominates. Exact over the space of assignments unless a beam is set (synth/synth.h). */
#include "synth/label.h"

#include <math.h>
#include <string.h>

enum { MAX_LIVE = 10, HELD_BITS = 6 }; /* 60 bits of state */

/* Ops that look alike share transitions, by input state. */
typedef struct {
    GHashTable *by_input; /* packed inputs + 1 -> GArray of Transition */
} OpClass;

static void op_class_free(gpointer data)
{
    OpClass *class = data;
    g_hash_table_destroy(class->by_input);
    g_free(class);
}

typedef struct {
    Pricer pricer;
    const Graph *graph;
    uint32_t n_ops; /* forward ops, the loss's producer being the last */
    OpView **view;
    OpClass **class_of;
    GHashTable *classes;
    Times *rest;                /* [op]: least work of ops from here on */
    TensorId (*live)[MAX_LIVE]; /* [cut]: tensors alive before op `cut` */
    uint32_t *n_live;
    LabelTable **table; /* [cut] */
    double upper_s;     /* time of a known program */
    uint32_t beam;
    bool complete; /* no label was lost to the beam */
    uint64_t expansions;
} Search;

/* --- preparation --- */

static void describe_op(GString *key, const Graph *graph, const OpReads *reads)
{
    const Op *op = graph_get_op(graph, reads->op);
    g_string_append_printf(key, "%u:", op->kind);
    for (uint32_t operand = 0; operand < op->n_in + op->n_out; operand++) {
        const Tensor *t = graph_tensor(
            graph, operand < op->n_in ? op->in[operand] : op->out[operand - op->n_in]);
        g_string_append_printf(key, "%u,%u,",
                               operand < op->n_in ? reads->slot[operand] : 0, t->role);
        for (uint32_t d = 0; d < t->rank; d++)
            g_string_append_printf(key, "%u/%u ", t->dim[d], t->units[d]);
    }
}

/* Everything that the op's transitions depend on, as text. */
static char *describe_view(const Graph *graph, const OpView *view)
{
    g_autoptr(GString) key = g_string_new("");
    describe_op(key, graph, &view->forward);
    for (uint32_t k = 0; k < view->n_backward; k++)
        describe_op(key, graph, &view->backward[k]);
    for (uint32_t i = 0; i < view->n_in; i++)
        g_string_append_printf(key, "|%d %d %d", view->contribution[i] != GRAPH_NONE,
                               view->accumulation[i] != GRAPH_NONE, view->alias[i]);
    const Op *op = graph_get_op(graph, view->op);
    for (uint32_t o = 0; o < op->n_out; o++)
        g_string_append_printf(key, ">%d",
                               graph_gradient(graph, op->out[o]) != GRAPH_NONE);
    return g_steal_pointer(&key->str);
}

static bool prepare_views(Search *s, GError **error)
{
    for (OpId id = 0; id < s->n_ops; id++) {
        s->view[id] = op_view_new(&s->pricer, id, error);
        if (!s->view[id])
            return false;
        char *key = describe_view(s->graph, s->view[id]);
        s->class_of[id] = g_hash_table_lookup(s->classes, key);
        if (!s->class_of[id]) {
            s->class_of[id] = g_new0(OpClass, 1);
            s->class_of[id]->by_input =
                g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)g_array_unref);
            g_hash_table_insert(s->classes, key, s->class_of[id]);
        } else {
            g_free(key);
        }
    }
    return true;
}

/* Least seconds of an op on each class over its rules. */
static void add_least(const Pricer *pricer, const OpReads *reads, Times *sum)
{
    for (uint32_t h = 0; h < pricer->n_classes; h++) {
        double least = INFINITY;
        for (uint32_t r = 0; r < reads->n_rules; r++)
            least = fmin(least, reads->rule[r].work.s[h]);
        sum->s[h] += least;
    }
}

static void prepare_rest(Search *s)
{
    for (OpId id = s->n_ops; id-- > 0;) {
        s->rest[id] = s->rest[id + 1];
        add_least(&s->pricer, &s->view[id]->forward, &s->rest[id]);
        for (uint32_t k = 0; k < s->view[id]->n_backward; k++)
            add_least(&s->pricer, &s->view[id]->backward[k], &s->rest[id]);
    }
}

/* Tensors alive at each cut: made by an earlier forward op and read by this or a later one. */
static bool prepare_live(Search *s, GError **error)
{
    g_autofree OpId *last = g_new0(OpId, graph_n_tensors(s->graph));
    for (OpId id = 0; id < s->n_ops; id++)
        for (uint32_t i = 0; i < graph_get_op(s->graph, id)->n_in; i++)
            last[graph_get_op(s->graph, id)->in[i]] = id;
    for (OpId id = 0; id < s->n_ops; id++) {
        uint32_t n = 0;
        TensorId candidate[MAX_LIVE + OP_MAX_OUT];
        for (uint32_t i = 0; i < s->n_live[id]; i++)
            candidate[n++] = s->live[id][i];
        for (uint32_t o = 0; o < graph_get_op(s->graph, id)->n_out; o++)
            candidate[n++] = graph_get_op(s->graph, id)->out[o];
        for (uint32_t i = 0; i < n; i++) {
            if (last[candidate[i]] <= id)
                continue;
            if (s->n_live[id + 1] == MAX_LIVE)
                return kilter_fail(error, KILTER_ERROR_FAILED,
                                   "more than %d tensors are alive at op '%s'", MAX_LIVE,
                                   graph_get_op(s->graph, id)->name);
            s->live[id + 1][s->n_live[id + 1]++] = candidate[i];
        }
    }
    return true;
}

/* --- states --- */

static Held held_at(uint64_t state, uint32_t position)
{
    uint64_t bits = state >> (HELD_BITS * position);
    return (Held){.form = bits & 7, .gradient = bits >> 3 & 7};
}

static uint64_t pack(Held held, uint32_t position)
{
    return (uint64_t)(held.form | held.gradient << 3) << (HELD_BITS * position);
}

/* Position of a tensor among those alive at a cut, or -1. */
static int position_of(const Search *s, uint32_t cut, TensorId tensor)
{
    for (uint32_t i = 0; i < s->n_live[cut]; i++)
        if (s->live[cut][i] == tensor)
            return (int)i;
    return -1;
}

static void inputs_of(const Search *s, OpId id, uint64_t state, Held in[TRANSITION_IN])
{
    memset(in, 0, TRANSITION_IN * sizeof *in);
    for (uint32_t i = 0; i < s->view[id]->n_in; i++)
        in[i] = held_at(state, (uint32_t)position_of(s, id, s->view[id]->tensor[i]));
}

/* Where each tensor that is alive after an op comes from. */
typedef struct {
    enum { FROM_STATE, FROM_INPUT, FROM_OUTPUT } source;
    uint32_t index;
    uint32_t before; /* FROM_STATE, FROM_INPUT: position before */
} Origin;

static void origins(const Search *s, OpId id, Origin origin[MAX_LIVE])
{
    const Op *op = graph_get_op(s->graph, id);
    for (uint32_t p = 0; p < s->n_live[id + 1]; p++) {
        TensorId tensor = s->live[id + 1][p];
        int before = position_of(s, id, tensor);
        origin[p] = (Origin){.source = FROM_STATE, .before = (uint32_t)before};
        for (uint32_t i = 0; i < s->view[id]->n_in; i++)
            if (s->view[id]->tensor[i] == tensor)
                origin[p] = (Origin){
                    .source = FROM_INPUT, .index = i, .before = (uint32_t)before};
        for (uint32_t o = 0; o < op->n_out; o++)
            if (op->out[o] == tensor)
                origin[p] = (Origin){.source = FROM_OUTPUT, .index = o};
    }
}

static uint64_t next_state(uint32_t n, const Origin *origin, uint64_t state,
                           const Transition *t)
{
    uint64_t next = 0;
    for (uint32_t p = 0; p < n; p++) {
        Held held = origin[p].source == FROM_OUTPUT ? t->out[origin[p].index]
                                                    : held_at(state, origin[p].before);
        if (origin[p].source == FROM_INPUT)
            held.form = t->in_after[origin[p].index];
        next |= pack(held, p);
    }
    return next;
}

/* --- the walk --- */

static const GArray *transitions_from(Search *s, OpId id, uint64_t state)
{
    Held in[TRANSITION_IN];
    inputs_of(s, id, state, in);
    gpointer key = GUINT_TO_POINTER(1 + (pack(in[0], 0) | pack(in[1], 1)));
    GArray *found = g_hash_table_lookup(s->class_of[id]->by_input, key);
    if (!found) {
        found = transitions(&s->pricer, s->view[id], in);
        g_hash_table_insert(s->class_of[id]->by_input, key, found);
    }
    return found;
}

static int compare_doubles(gconstpointer a, gconstpointer b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Keeps the labels with the smallest bounds. */
static void cut_to_beam(Search *s, uint32_t cut)
{
    GArray *labels = s->table[cut]->labels;
    if (!s->beam || labels->len <= s->beam)
        return;
    s->complete = false;
    g_autofree double *bound = g_new(double, labels->len),
                      *sorted = g_new(double, labels->len);
    for (uint32_t i = 0; i < labels->len; i++)
        sorted[i] = bound[i] =
            label_bound(&s->pricer, &g_array_index(labels, Label, i), &s->rest[cut]);
    qsort(sorted, labels->len, sizeof *sorted, compare_doubles);
    uint32_t n = 0;
    for (uint32_t i = 0; i < labels->len && n < s->beam; i++)
        if (bound[i] <= sorted[s->beam - 1])
            g_array_index(labels, Label, n++) = g_array_index(labels, Label, i);
    g_array_set_size(labels, n);
}

static void expand_op(Search *s, OpId id)
{
    Origin origin[MAX_LIVE];
    origins(s, id, origin);
    LabelTable *from = s->table[id], *to = s->table[id + 1] = label_table_new();
    for (uint32_t i = 0; i < from->labels->len; i++) {
        const Label *label = &g_array_index(from->labels, Label, i);
        const GArray *all = transitions_from(s, id, label->state);
        for (uint32_t k = 0; k < all->len; k++) {
            const Transition *t = &g_array_index(all, Transition, k);
            Label next = label_extend(&s->pricer, label, t);
            s->expansions++;
            if (label_bound(&s->pricer, &next, &s->rest[id + 1]) > s->upper_s)
                continue;
            next.parent = i;
            next.state = next_state(s->n_live[id + 1], origin, label->state, t);
            label_table_add(to, &s->pricer, &next);
        }
    }
    cut_to_beam(s, id + 1);
}

/* Follows the parents back from the best label. */
static Program *best_program(Search *s, GError **error)
{
    uint32_t best = LABEL_NONE;
    const GArray *last = s->table[s->n_ops]->labels;
    for (uint32_t i = 0; i < last->len; i++)
        if (best == LABEL_NONE ||
            label_total(&s->pricer, &g_array_index(last, Label, i)) <
                label_total(&s->pricer, &g_array_index(last, Label, best)))
            best = i;
    if (best == LABEL_NONE) {
        kilter_fail(error, KILTER_ERROR_FAILED, "model '%s': no program found",
                    graph_name(s->graph));
        return NULL;
    }
    Assignment assignment;
    assignment_init(&assignment, s->graph);
    /* Gradient forms are written by producers, read by consumers: both come from the states. */
    for (OpId id = s->n_ops; id-- > 0;) {
        const Label *label = &g_array_index(s->table[id + 1]->labels, Label, best);
        const Label *parent = &g_array_index(s->table[id]->labels, Label, label->parent);
        Held in[TRANSITION_IN];
        inputs_of(s, id, parent->state, in);
        transition_apply(&s->pricer, s->view[id], in, label->transition, &assignment);
        best = label->parent;
    }
    Program *program = synth_emit(&s->pricer, &assignment, error);
    assignment_clear(&assignment);
    return program;
}

static void search_init(Search *s, const Graph *graph, const ClusterView *view,
                        const double *ratio, const SynthOptions *options)
{
    *s = (Search){
        .graph = graph, .beam = options->beam, .complete = true, .upper_s = INFINITY};
    pricer_init(&s->pricer, graph, view, ratio);
    s->n_ops = graph_tensor(graph, graph_loss(graph))->producer + 1;
    s->view = g_new0(OpView *, s->n_ops);
    s->class_of = g_new0(OpClass *, s->n_ops);
    s->classes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, op_class_free);
    s->rest = g_new0(Times, s->n_ops + 1);
    s->live = g_malloc0_n(s->n_ops + 1, sizeof *s->live);
    s->n_live = g_new0(uint32_t, s->n_ops + 1);
    s->table = g_new0(LabelTable *, s->n_ops + 1);
}

static void search_clear(Search *s)
{
    for (OpId id = 0; id < s->n_ops; id++)
        op_view_free(s->view[id]);
    for (uint32_t cut = 0; cut <= s->n_ops; cut++)
        if (s->table[cut])
            label_table_free(s->table[cut]);
    g_hash_table_destroy(s->classes);
    g_free(s->view);
    g_free(s->class_of);
    g_free(s->rest);
    g_free(s->live);
    g_free(s->n_live);
    g_free(s->table);
}

/* The best baseline: a program to start from, and a bound that prunes. */
static void warm_start(Search *s, const ClusterView *view, const double *ratio,
                       SynthResult *result)
{
    for (Baseline baseline = BASELINE_DATA_PARALLEL; baseline <= BASELINE_ZERO_EXPERT;
         baseline++) {
        SynthResult known;
        if (!synth_baseline(s->graph, view, ratio, baseline, &known, NULL))
            continue;
        if (known.time_s < s->upper_s) {
            s->upper_s = known.time_s;
            result->time_s = known.time_s;
            program_free(result->program);
            result->program = g_steal_pointer(&known.program);
        }
        synth_result_clear(&known);
    }
}

static bool walk(Search *s, GError **error)
{
    if (!prepare_views(s, error) || !prepare_live(s, error))
        return false;
    prepare_rest(s);
    s->table[0] = label_table_new();
    label_table_add(s->table[0], &s->pricer, &(Label){.parent = LABEL_NONE});
    for (OpId id = 0; id < s->n_ops; id++)
        expand_op(s, id);
    return true;
}

bool synth_search(const Graph *graph, const ClusterView *view, const double *ratio,
                  const SynthOptions *options, SynthResult *result, GError **error)
{
    *result = (SynthResult){0};
    gint64 start = g_get_monotonic_time();
    Search s;
    search_init(&s, graph, view, ratio, options);
    warm_start(&s, view, ratio, result);
    bool walked = walk(&s, error);
    for (uint32_t cut = 0; walked && cut <= s.n_ops; cut++) {
        result->labels += s.table[cut]->labels->len;
        result->states += g_hash_table_size(s.table[cut]->states);
    }
    result->expansions = s.expansions;
    if (walked && s.table[s.n_ops]->labels->len > 0) {
        g_autoptr(Program) program = best_program(&s, error);
        walked = program != NULL;
        double time_s = program
                            ? synth_time(&s.pricer, program, ratio, options->bucket_bytes)
                            : INFINITY;
        if (program && (!result->program || time_s < result->time_s)) {
            program_free(result->program);
            result->program = g_steal_pointer(&program);
            result->time_s = time_s;
        }
    }
    search_clear(&s);
    result->search_s = (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    if (walked && !result->program)
        return kilter_fail(error, KILTER_ERROR_FAILED, "model '%s': no program found",
                           graph_name(graph));
    return walked;
}
