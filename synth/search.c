/* The exact search: over the state graph, the labels that nothing dominates, pruned by the exact cost-to-go of the
 * relaxation and by the best program known. A narrow beam finds that program first. */
#include "synth/label.h"
#include "synth/states.h"

#include <math.h>

typedef struct {
    Pricer pricer;
    States *states;
    LabelTable *table; /* [cut] */
    double upper_s;    /* time of a known program */
    double
        relaxed_s; /* nothing is faster: the relaxation's bound, or less at the deadline */
    bool complete; /* no label was lost to a beam */
    uint64_t labels, expansions;
} Search;

/* Rounding differences must not prune the optimum itself. */
static const double slack = 1 + 1e-12;

/* --- walking labels --- */

static int compare_doubles(gconstpointer a, gconstpointer b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double bound_of(const Search *s, uint32_t cut, const Label *label)
{
    return label_bound(&s->pricer, label,
                       &g_array_index(s->states->cut[cut].rest, double,
                                      label->state * s->pricer.n_classes));
}

/* Keeps the labels with the smallest bounds. */
static void cut_to_beam(Search *s, uint32_t cut, uint32_t beam)
{
    GArray *labels = s->table[cut].labels;
    if (!beam || labels->len <= beam)
        return;
    s->complete = false;
    g_autofree double *bound = g_new(double, labels->len),
                      *sorted = g_new(double, labels->len);
    for (uint32_t i = 0; i < labels->len; i++)
        sorted[i] = bound[i] = bound_of(s, cut, &g_array_index(labels, Label, i));
    qsort(sorted, labels->len, sizeof *sorted, compare_doubles);
    uint32_t n = 0;
    for (uint32_t i = 0; i < labels->len && n < beam; i++)
        if (bound[i] <= sorted[beam - 1])
            g_array_index(labels, Label, n++) = g_array_index(labels, Label, i);
    g_array_set_size(labels, n);
    for (uint32_t i = 0; i < s->states->cut[cut].states->len; i++)
        s->table[cut].first[i] = LABEL_NONE; /* for the walk by state */
    for (uint32_t i = 0; i < n; i++) {
        Label *label = &g_array_index(labels, Label, i);
        label->next = s->table[cut].first[label->state];
        s->table[cut].first[label->state] = i;
    }
}

static void extend_labels(Search *s, OpId id, uint32_t beam)
{
    const Cut *cut = &s->states->cut[id];
    LabelTable *from = &s->table[id], *to = &s->table[id + 1];
    label_table_clear(to);
    label_table_init(to, s->states->cut[id + 1].states->len);
    for (uint32_t e = 0; e < cut->edges->len; e++) {
        const Edge *edge = &g_array_index(cut->edges, Edge, e);
        for (uint32_t i = from->first[edge->from]; i != LABEL_NONE;) {
            const Label *label = &g_array_index(from->labels, Label, i);
            Label next = label_extend(&s->pricer, label, edge->transition);
            next.state = edge->to;
            next.parent = i;
            s->expansions++;
            if (bound_of(s, id + 1, &next) <= s->upper_s * slack)
                label_table_add(to, &s->pricer, &next);
            i = label->next;
        }
    }
    cut_to_beam(s, id + 1, beam);
    s->labels += to->labels->len;
}

/* Nothing is left of a walk that the deadline stops. */
static void walk_labels(Search *s, uint32_t beam)
{
    s->complete = true;
    label_table_clear(&s->table[0]);
    label_table_init(&s->table[0], 1);
    label_table_add(&s->table[0], &s->pricer, &(Label){.parent = LABEL_NONE});
    for (OpId id = 0; id < s->states->n_ops && !states_late(s->states); id++)
        extend_labels(s, id, beam);
    if (s->states->late)
        s->complete = false;
}

/* --- programs --- */

/* The program of a label at the last cut. */
static Program *program_of(Search *s, uint32_t index, GError **error)
{
    States *states = s->states;
    Assignment assignment;
    assignment_init(&assignment, s->pricer.graph);
    for (OpId id = states->n_ops; id-- > 0;) {
        const Label *label = &g_array_index(s->table[id + 1].labels, Label, index);
        const Label *parent = &g_array_index(s->table[id].labels, Label, label->parent);
        Held in[TRANSITION_IN];
        states_inputs(states, id,
                      g_array_index(states->cut[id].states, uint64_t, parent->state), in);
        transition_apply(&s->pricer, states->view[id], in, label->transition,
                         &assignment);
        index = label->parent;
    }
    Program *program = synth_emit(&s->pricer, &assignment, error);
    assignment_clear(&assignment);
    return program;
}

/* Takes the best label's program if it beats the known one. With a charge for memory totals hold it, and the label with the
 * least total is taken. */
static bool take_best(Search *s, const double *ratio, const SynthOptions *options,
                      SynthResult *result, GError **error)
{
    const GArray *last = s->table[s->states->n_ops].labels;
    for (uint32_t i = 0; !s->states->late && i < last->len; i++) {
        const Label *label = &g_array_index(last, Label, i);
        double total = label_total(&s->pricer, label);
        if (total >= s->upper_s && (label->final || options->memory_s > 0))
            continue;
        g_autoptr(Program) program = program_of(s, i, error);
        if (!program)
            return false;
        double time_s = synth_time(&s->pricer, program, ratio, options->bucket_bytes);
        if (options->memory_s == 0 && time_s >= s->upper_s)
            continue;
        program_free(result->program);
        result->program = g_steal_pointer(&program);
        result->time_s = time_s;
        s->upper_s = options->memory_s > 0 ? total : time_s;
    }
    return true;
}

/* The best baseline: a program to start from, and a bound that prunes. */
static void warm_start(Search *s, const double *ratio, SynthResult *result)
{
    for (Baseline baseline = BASELINE_DATA_PARALLEL; baseline <= BASELINE_ZERO_EXPERT;
         baseline++) {
        SynthResult known;
        if (!synth_baseline(s->pricer.graph, s->pricer.view, ratio, baseline, &known,
                            NULL))
            continue;
        if (known.time_s < s->upper_s &&
            synth_pins_hold(s->pricer.pins, s->pricer.graph, known.program)) {
            s->upper_s = result->time_s = known.time_s;
            program_free(result->program);
            result->program = g_steal_pointer(&known.program);
        }
        synth_result_clear(&known);
    }
}

enum { FIRST_BEAM = 32 };

/* The relaxation's bound: the least cost from the start for any one class. */
static double relaxed_bound(const Search *s)
{
    double bound = 0;
    for (uint32_t h = 0; h < s->pricer.n_classes; h++)
        bound = fmax(bound, g_array_index(s->states->cut[0].rest, double, h));
    return fmin(bound, s->upper_s);
}

/* What the ops cost at least, each for itself. */
static double floor_bound(const Search *s)
{
    double bound = 0;
    for (uint32_t h = 0; h < s->pricer.n_classes; h++)
        bound = fmax(bound, s->states->cut[0].floor[h]);
    return bound;
}

/* Widens the bound until some relaxed path reaches the end: cheaper than starting from a loose one. */
static double relax_gradually(Search *s)
{
    static const double factor = 1.4;
    const Cut *last = &s->states->cut[s->states->n_ops];
    double bound = floor_bound(s);
    s->relaxed_s = fmin(bound, s->upper_s);
    do {
        bound = fmin(bound * factor, s->upper_s * slack);
        states_relax(s->states, bound);
    } while (last->states->len == 0 && bound < s->upper_s && isfinite(bound) &&
             !s->states->late);
    return bound;
}

/* A beam of labels first, which brings the upper bound down; then what that bound leaves of the states. */
static double relax(Search *s)
{
    double bound = relax_gradually(s);
    if (!s->states->late)
        s->relaxed_s = relaxed_bound(s);
    walk_labels(s, FIRST_BEAM);
    return bound;
}

/* Drops the states that the upper bound leaves out now; `bound` is what they were found with. */
static void narrow(Search *s, double bound)
{
    if (s->upper_s * slack <= bound)
        states_prune(s->states, s->upper_s * slack);
    else
        states_relax(s->states, s->upper_s * slack);
}

static bool search(Search *s, const double *ratio, const SynthOptions *options,
                   SynthResult *result, GError **error)
{
    s->upper_s = INFINITY;
    if (options->memory_s == 0)
        warm_start(s, ratio, result);
    s->states = states_new(&s->pricer, error);
    if (!s->states)
        return false;
    s->states->deadline_us = options->deadline_us;
    s->table = g_new0(LabelTable, s->states->n_ops + 1);
    double bound = relax(s);
    if (!take_best(s, ratio, options, result, error))
        return false;
    if (!s->states->late)
        narrow(s, bound);
    walk_labels(s, options->beam);
    return take_best(s, ratio, options, result, error);
}

static void search_clear(Search *s)
{
    for (uint32_t cut = 0; s->table && cut <= s->states->n_ops; cut++)
        label_table_clear(&s->table[cut]);
    g_free(s->table);
    states_free(s->states);
    pricer_clear(&s->pricer);
}

bool synth_search(const Graph *graph, const ClusterView *view, const double *ratio,
                  const SynthOptions *options, SynthResult *result, GError **error)
{
    *result = (SynthResult){0};
    gint64 start = g_get_monotonic_time();
    Search s = {0};
    pricer_init(&s.pricer, graph, view, ratio, options->memory_s);
    s.pricer.pins = options->pins;
    bool done = search(&s, ratio, options, result, error);
    result->late = s.states && s.states->late;
    if (done && !result->program && !result->late)
        done = kilter_fail(error, KILTER_ERROR_FAILED, "model '%s': no program %s",
                           graph_name(graph), options->pins ? "keeps all pins" : "found");
    if (s.states)
        result->states = s.states->n_states;
    result->labels = s.labels;
    result->expansions = s.expansions;
    result->optimal = done && s.complete && s.pricer.exact &&
                      options->bucket_bytes == 0 && options->memory_s == 0;
    if (done && options->bucket_bytes == 0 && options->memory_s == 0)
        result->bound_s = result->optimal ? result->time_s : s.relaxed_s;
    search_clear(&s);
    result->search_s = (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    return done;
}

/* Least time of a label at the end; the updates count only where they are sure to be a stage of their own. */
static double least_total(const Search *s)
{
    const GArray *last = s->table[s->states->n_ops].labels;
    double least = s->upper_s;
    for (uint32_t i = 0; i < last->len; i++) {
        const Label *label = &g_array_index(last, Label, i);
        double total = label_total(&s->pricer, label);
        if (!label->final)
            total -= times_max(&s->pricer, &label->update);
        least = fmin(least, total);
    }
    return least;
}

bool synth_bound(const Graph *graph, const ClusterView *view, const SynthBox *box,
                 double *bound_s, GError **error)
{
    enum { MAX_LABELS = 500 }; /* at a cut; with more, the relaxation has to do */
    Search s = {.upper_s = box->upper_s};
    pricer_init_box(&s.pricer, graph, view, box->lo, box->hi);
    s.pricer.pins = box->pins;
    s.states = states_new(&s.pricer, error);
    bool done = s.states != NULL;
    if (done) {
        s.states->deadline_us = box->deadline_us;
        s.table = g_new0(LabelTable, s.states->n_ops + 1);
        double bound = relax(&s);
        if (!s.states->late) {
            s.upper_s = least_total(&s);
            narrow(&s, bound);
            walk_labels(&s, MAX_LABELS);
        }
        *bound_s = s.complete ? least_total(&s) : s.relaxed_s;
    }
    search_clear(&s);
    return done;
}
