/* The exact search: labels that nothing dominates walk over the state graph, and a label is dropped
 * once the relaxation says that all of its completions take longer than a limit. The limit starts
 * just above the relaxation's bound and is widened until it contains a program: then no dropped
 * label leads to a faster one. */
#include "synth/hap/exact/search.h"

#include "data/base/free.h"
#include "data/base/units.h"

#include <math.h>

/* --- the state graphs of a space, made when a search first asks for them --- */

SynthSpace *synth_space_new(const Graph *graph, const SynthPins *pins)
{
    SynthSpace *space = g_new(SynthSpace, 1);
    *space = (SynthSpace){.graph = graph, .pins = pins};
    return space;
}

SynthSpace *synth_space_of_segments(const Graph *graph, const SynthPins *pins,
                                    const uint16_t *segment, uint32_t n_segments)
{
    g_assert(segment && n_segments > 0);
    SynthSpace *space = synth_space_new(graph, pins);
    space->segment = segment;
    space->n_segments = n_segments;
    return space;
}

FREE_DEFINE(synth_space_free, SynthSpace, space,
            release_items(space->states, G_N_ELEMENTS(space->states), states_free));

/* The states for a pricer of the space's graph and pins, at its prices. Fails as states_new
 * does. */
static States *space_states(SynthSpace *space, const Pricer *pricer, GError **error)
{
    g_assert(pricer->graph == space->graph && pricer->pins == space->pins);
    g_autoptr(GError) wrong = NULL;
    States **states = &space->states[pricer->charges];
    if (*states)
        states_price(*states, pricer);
    else
        *states = states_new(pricer, &wrong);
    space->large |= wrong && wrong->code == KILTER_ERROR_FAILED && !space->pins;
    if (wrong)
        g_propagate_error(error, g_steal_pointer(&wrong));
    return *states;
}

bool synth_space_is_large(const SynthSpace *space)
{
    return space->large;
}

/* --- the search --- */

static double exact_bound_of(const Search *s, uint32_t cut, const Label *label)
{
    KILTER_ASSERT(label->state < s->states->cut[cut].n_states);
    return most_over(double, h, s->pricer.n_classes, 0,
                     label->sum.s[h] + states_rest(s->states, cut, label->state, h));
}

/* The bound of a label and of the labels that it stands for. */
static double least_bound_of(const Search *s, uint32_t cut, const Label *label)
{
    return exact_bound_of(s, cut, label) - label->drift_s - label->drift_charge_s;
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
        sorted[i] = bound[i] = least_bound_of(s, cut, &g_array_index(labels, Label, i));
    qsort(sorted, labels->len, sizeof *sorted, number_compare);
    uint32_t n = 0;
    for (uint32_t i = 0; i < labels->len && n < beam; i++)
        if (bound[i] <= sorted[beam - 1])
            g_array_index(labels, Label, n++) = g_array_index(labels, Label, i);
    s->lost_s = fmin(s->lost_s, sorted[beam - 1]);
    label_table_trim(&s->table[cut], n);
}

/* The beam for `cut`: the remaining effort is spread evenly over the remaining cuts, at the same
 * number of extensions per label as so far. */
static uint32_t affordable(const Search *s, uint32_t cut, uint32_t beam, uint64_t begun,
                           uint64_t extended)
{
    enum { FEWEST = 4 }; /* one would be a greedy choice */
    const uint32_t left = s->states->n_ops - cut;
    if (!s->effort || left == 0 || extended == 0)
        return beam;
    const uint64_t made = s->expansions - begun;
    const double each = (double)made / (double)extended;
    const double rest =
        s->effort > s->expansions ? (double)(s->effort - s->expansions) : 0;
    const double most = fmax(FEWEST, rest / left / fmax(1, each));
    return !beam || most < beam ? (uint32_t)fmin(most, UINT32_MAX) : beam;
}

/* In debug builds: the relaxation's cost to the end is consistent along a transition, hence, being
 * 0 at the end, admissible. */
static void check_consistent(const Search *s, OpId id, const Label *label, uint32_t to,
                             const Transition *t)
{
#ifndef NDEBUG
    static const double rounding = 1e-9;
    for (uint32_t h = 0; h < s->pricer.n_classes; h++)
        g_assert(states_rest(s->states, id, label->state, h) <=
                 (t->relaxed.s[h] + states_rest(s->states, id + 1, to, h)) *
                     (1 + rounding));
#else
    (void)s, (void)id, (void)label, (void)to, (void)t;
#endif
}

/* Extends a label along an arc; `room` is the slack to the limit that the arc leaves, by class. */
static void extend_along(Search *s, OpId id, uint32_t index, uint32_t in, uint32_t arc,
                         uint32_t to, const Times *room)
{
    const Label *label = &g_array_index(s->table[id].labels, Label, index);
    const GArray *along = choices_along(s->states->cut[id].move->choices, in, arc, room);
    array_each (const Transition, t, along) {
        Label next = label_extend(&s->pricer, label, t);
        next.state = to;
        next.parent = index;
        check_consistent(s, id, label, to, t);
        s->expansions++;
        if (least_bound_of(s, id + 1, &next) <= s->limit_s * (1 + SEARCH_ROUNDING))
            label_table_add(&s->table[id + 1], &s->pricer, s->tolerance, &next);
    }
}

static void extend_label(Search *s, OpId id, uint32_t index)
{
    const Label *label = &g_array_index(s->table[id].labels, Label, index);
    const Move *move = s->states->cut[id].move;
    const Choices *choices = move->choices;
    uint32_t in = label->state / move->n_others, other = label->state % move->n_others;
    const Times sum = label->sum;
    for (uint32_t e = choices->first_arc[in]; e < choices->first_arc[in + 1]; e++) {
        const double *least = choices_arc_least(choices, e);
        uint32_t to = move->after[choices_arc_to(choices, e)] + move->other_after[other];
        Times room = {{0}};
        bool can = true;
        for (uint32_t h = 0; h < s->pricer.n_classes && can; h++) {
            room.s[h] = s->limit_s * (1 + SEARCH_ROUNDING) + label->drift_s +
                        label->drift_charge_s - sum.s[h] - least[h] -
                        states_rest(s->states, id + 1, to, h);
            can = room.s[h] >= 0;
        }
        if (can)
            extend_along(s, id, index, in, e, to, &room);
    }
}

void search_walk(Search *s, uint32_t beam)
{
    g_assert(s->limit_s >= 0);
    s->complete = true;
    s->lost_s = INFINITY;
    label_table_empty(&s->table[0]);
    label_table_add(&s->table[0], &s->pricer, 0, &(Label){.parent = LABEL_NONE});
    const uint64_t begun = s->expansions;
    uint64_t extended = 0;
    for (OpId id = 0; id < s->states->n_ops && !states_late(s->states) &&
                      (s->lost_s > s->proved_s || !s->bound_only);
         id++) {
        label_table_empty(&s->table[id + 1]);
        for (uint32_t i = 0; i < s->table[id].labels->len; i++)
            extend_label(s, id, i);
        extended += s->table[id].labels->len;
        cut_to_beam(s, id + 1, affordable(s, id + 1, beam, begun, extended));
        s->labels += s->table[id + 1].labels->len;
    }
    if (s->states->late)
        s->complete = false;
    /* a lost label may be as fast as the proof */
    if (s->lost_s <= s->proved_s && s->bound_only)
        label_table_empty(&s->table[s->states->n_ops]);
}

double search_relaxed_bound(const Search *s)
{
    return most_over(double, h, s->pricer.n_classes, 0, states_rest(s->states, 0, 0, h));
}

/* The least time of a label at the end; updates without a final step of their own join an earlier
 * stage and may be free. */
static double least_total(const Search *s, const Label *label)
{
    double total = label_total(&s->pricer, label);
    return label->final ? total : total - times_max(&s->pricer, &label->update);
}

double search_best(const Search *s, bool least, bool rationed)
{
    const GArray *last = s->table[s->states->n_ops].labels;
    double best = INFINITY;
    for (uint32_t i = 0; last && !s->states->late && i < last->len; i++) {
        const Label *label = &g_array_index(last, Label, i);
        const double total = least ? least_total(s, label) - label->drift_s
                                   : label_total(&s->pricer, label);
        if (!rationed)
            best = fmin(best, total);
        else if (label->charge_s - (least ? label->drift_charge_s : 0) <=
                 s->free_s * (1 + SEARCH_ROUNDING))
            best = fmin(best, total - label->charge_s);
    }
    return best;
}

void search_walk_widening(Search *s, uint32_t beam)
{
    g_assert(s->upper_s > 0 && s->tolerance >= 0);
    /* In most cases the bound is attained, and wider limits would only admit programs that are as
     * good or slightly worse. */
    static const double first = 1e-9, second = 1e-5, factor = 5;
    double width = first;
    if (s->states->late)
        return;
    s->proved_s = fmin(search_relaxed_bound(s), s->upper_s);
    if (!isfinite(s->proved_s))
        return;
    bool done;
    do {
        s->limit_s = fmin(search_relaxed_bound(s) * (1 + width), s->upper_s);
        width = width == first ? second : factor * width;
        search_walk(s, beam);
        double best = search_best(s, false, false), least = search_best(s, true, false);
        s->upper_s = fmin(s->upper_s, best);
        if (!s->states->late)
            s->proved_s = fmax(s->proved_s, fmin(fmin(s->limit_s, s->lost_s), least));
        done = s->limit_s >= s->upper_s || s->states->late ||
               (s->tolerance > 0 && s->complete && least <= s->limit_s) ||
               (s->effort && s->expansions >= s->effort);
    } while (!done);
}

Program *search_program(Search *s, uint32_t index, GError **error)
{
    g_assert(s->table[s->states->n_ops].labels &&
             index < s->table[s->states->n_ops].labels->len);
    States *states = s->states;
    g_auto(Assignment) assignment = {0};
    assignment_init(&assignment, s->pricer.graph);
    for (OpId id = states->n_ops; id-- > 0;) {
        const Label *label = &g_array_index(s->table[id + 1].labels, Label, index);
        const Label *parent = &g_array_index(s->table[id].labels, Label, label->parent);
        const Move *move = states->cut[id].move;
        transition_apply(move->choices, id, parent->state / move->n_others,
                         label->transition, &assignment);
        index = label->parent;
    }
    return synth_emit(&s->pricer, &assignment, error);
}

/* Takes the fastest program among those of the label with the least total and of labels that may
 * turn out to be faster. */
static bool take_best(Search *s, const double *ratio, const SynthOptions *options,
                      SynthResult *result, GError **error)
{
    const GArray *last = s->table[s->states->n_ops].labels;
    double best = search_best(s, false, false);
    bool charged = options->memory_s || options->shares, taken = false;
    for (uint32_t i = 0; !s->states->late && i < last->len; i++) {
        const Label *label = &g_array_index(last, Label, i);
        bool first = !taken && label_total(&s->pricer, label) == best;
        taken |= first;
        if (!first && (charged || label->final || least_total(s, label) >= best))
            continue;
        g_autoptr(Program) program = search_program(s, i, error);
        if (!program)
            return false;
        double time_s = synth_time(&s->pricer, program, ratio, options->bucket_bytes);
        if (result->program && !charged && time_s >= result->time_s)
            continue;
        program_free(result->program);
        result->program = g_steal_pointer(&program);
        result->time_s = time_s;
    }
    return true;
}

/* Takes the best baseline, in case the search was cut short without a program. */
static void take_baseline(Search *s, const double *ratio, SynthResult *result)
{
    for (Baseline baseline = 0; baseline < BASELINES; baseline++) {
        SynthResult known;
        if (!synth_baseline(s->pricer.graph, s->pricer.view, ratio, baseline, &known,
                            NULL))
            continue;
        if (synth_pins_hold(s->pricer.pins, s->pricer.graph, known.program) &&
            (!result->program || known.time_s < result->time_s)) {
            result->time_s = known.time_s;
            program_free(result->program);
            result->program = g_steal_pointer(&known.program);
        }
        synth_result_clear(&known);
    }
}

bool search_start(Search *s, SynthSpace *space, gint64 deadline_us, GError **error)
{
    s->states = space_states(space, &s->pricer, error);
    if (!s->states)
        return false;
    s->states->deadline_us = deadline_us;
    s->table = g_new0(LabelTable, s->states->n_ops + 1);
    const bool relaxed = states_relax(s->states, error);
    space->large |= !relaxed && !space->pins;
    return relaxed;
}

/* A walk up to the known time, where the effort did not suffice for an exact one and nothing is
 * to be proved. Calibrated costs leave thousands of transitions to an arc, each a little better
 * at something: those that differ by less than `ops` ops' mean part of the time count as one. */
static void walk_coarsely(Search *s)
{
    enum { MORE = 100 }; /* times the effort of the exact walk */
    static const double coarse = 0.02, ops = 2;
    s->tolerance = coarse;
    s->pricer.tolerance_s = ops * s->upper_s / s->states->n_ops;
    s->limit_s = s->upper_s;
    s->effort = s->expansions + MORE * s->effort;
    search_walk(s, 0);
}

static bool exact_search(Search *s, SynthSpace *space, const double *ratio,
                         const SynthOptions *options, SynthResult *result, GError **error)
{
    s->upper_s = options->upper_s > 0 ? options->upper_s : INFINITY;
    s->effort = options->effort;
    if (!search_start(s, space, options->deadline_us, error))
        return false;
    search_walk_widening(s, options->beam);
    double best_s = INFINITY;
    if (!s->complete && options->shares && s->effort > 0 && !states_late(s->states)) {
        best_s = search_best(s, false, false);
        if (isfinite(best_s) && !take_best(s, ratio, options, result, error))
            return false;
        walk_coarsely(s);
    }
    if (search_best(s, false, false) < best_s &&
        !take_best(s, ratio, options, result, error))
        return false;
    if (!s->complete && !options->memory_s && !options->shares && !space->segment)
        take_baseline(s, ratio, result);
    return true;
}

CLEAR_DEFINE(search_clear, Search, s,
             clear_items(s->table, s->table ? s->states->n_ops + 1 : 0,
                         label_table_clear),
             g_free(s->table), pricer_clear(&s->pricer));

static void price(Pricer *pricer, const SynthSpace *space, const ClusterView *view,
                  const double *ratio, const SynthOptions *options)
{
    pricer_init(pricer, space->graph, view, ratio, options->memory_s);
    if (options->shares)
        pricer_round(pricer, options->shares);
    if (space->n_segments > 0)
        pricer_set_segments(pricer, space->segment, space->n_segments, ratio);
    pricer->pins = space->pins;
}

/* Whether the relaxation for the slowest class by itself already proves that no program is faster
 * than the known one. At rounded shares it often does: rounding makes one class slower than the
 * others. It takes a fraction of the time of the relaxation for all classes. */
static bool prove_by_slowest(SynthSpace *space, const ClusterView *view,
                             const double *ratio, const SynthOptions *options,
                             bool *proved, GError **error)
{
    static const double visible =
        1e-9; /* a program that is faster by less is no better */
    g_auto(Search) s = {0};
    price(&s.pricer, space, view, ratio, options);
    const bool one = pricer_keep_slowest(&s.pricer);
    const bool done = !one || search_start(&s, space, options->deadline_us, error);
    *proved = one && done && !s.states->late &&
              search_relaxed_bound(&s) >= options->upper_s * (1 - visible);
    return done;
}

bool synth_search(SynthSpace *space, const ClusterView *view, const double *ratio,
                  const SynthOptions *options, SynthResult *result, GError **error)
{
    *result = (SynthResult){0};
    gint64 start = g_get_monotonic_time();
    bool proved = false;
    if (options->shares && options->upper_s > 0 &&
        !prove_by_slowest(space, view, ratio, options, &proved, error))
        return false;
    if (proved) {
        result->search_s = (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
        return true;
    }
    g_auto(Search) s = {0};
    price(&s.pricer, space, view, ratio, options);
    bool done = exact_search(&s, space, ratio, options, result, error);
    result->late = s.states && s.states->late;
    if (done && !result->program && !result->late && options->upper_s == 0 &&
        !space->segment)
        done = kilter_fail(error, KILTER_ERROR_FAILED, "model '%s': no program %s",
                           graph_name(space->graph),
                           space->pins ? "keeps all pins" : "found");
    if (s.states)
        result->states = s.states->n_states;
    result->labels = s.labels;
    result->expansions = s.expansions;
    const bool whole =
        done && options->bucket_bytes == 0 && !options->memory_s && !space->segment;
    result->optimal = whole && s.complete && s.pricer.exact;
    if (whole)
        result->bound_s = result->optimal ? result->time_s : s.proved_s;
    result->search_s = (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    return done;
}
