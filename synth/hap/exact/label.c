/* Labels: domination, extension, totals. */
#include "synth/hap/exact/label.h"

#include <math.h>

void label_table_empty(LabelTable *table)
{
    if (!table->labels) {
        table->labels = g_array_new(FALSE, FALSE, sizeof(Label));
        table->first = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    }
    g_array_set_size(table->labels, 0);
    g_array_set_size(table->first, 0);
    index_empty(&table->states);
}

CLEAR_DEFINE(label_table_clear, LabelTable, table,
             unref_arrays(table->labels, table->first), index_clear(&table->states),
             *table = (LabelTable){0});

/* By how much more `a` is charged for memory, where that counts. */
static inline double charged_more(const Pricer *pricer, const Label *a, const Label *b)
{
    return pricer->rationed ? a->charge_s - b->charge_s : 0;
}

/* Equation (1): an upper bound of the seconds by which an iteration with `a` can be longer than
 * with `b`, without the charge if memory is rationed. Without a final step the updates join an
 * earlier stage, so they add at most as much as with a final step. */
static double longer_by(const Pricer *pricer, const Label *a, const Label *b)
{
    return a->closed_s - b->closed_s - charged_more(pricer, a, b) +
           times_max_difference(pricer, &a->initial, &b->initial) +
           times_max_difference(pricer, &a->forward, &b->forward) +
           times_max_difference(pricer, &a->backward, &b->backward) +
           times_max_difference(pricer, &a->update, &b->update) +
           times_max_difference(pricer, &a->tail, &b->tail);
}

/* Whether `a` may take the place of `b` as far as steps, charge and the sum of a class go, which is
 * longer by no more than (1), up to rounding. Most labels are told apart by this, which reads
 * nothing but their first bytes. */
static inline bool may_replace(const Pricer *pricer, double tolerance, const Label *a,
                               const Label *b)
{
    static const double rounding = 1e-12;
    const double more = charged_more(pricer, a, b),
                 most_s = tolerance * a->closed_s + more;
    bool may =
        a->final == b->final && a->begun == b->begun && more <= tolerance * a->charge_s;
    for (uint32_t h = 0; may && h < pricer->n_classes; h++)
        may = a->sum.s[h] - b->sum.s[h] <= most_s + rounding * a->sum.s[h];
    return may;
}

/* Whether `a` dominates `b` or, within the tolerance, stands for it; in the latter case a's drift
 * absorbs b's. */
static bool stands_for(const Pricer *pricer, double tolerance, Label *a, const Label *b)
{
    KILTER_ASSERT(a->state == b->state && tolerance >= 0);
    double longer_s = longer_by(pricer, a, b);
    if (longer_s > tolerance * a->closed_s)
        return false;
    double drift_s = fmax(a->drift_s, longer_s + b->drift_s);
    double drift_charge_s =
        fmax(a->drift_charge_s, charged_more(pricer, a, b) + b->drift_charge_s);
    if (tolerance > 0 &&
        (drift_s > tolerance * a->closed_s || drift_charge_s > tolerance * a->charge_s))
        return false;
    a->drift_s = drift_s;
    a->drift_charge_s = drift_charge_s;
    return true;
}

static inline bool replaces(const Pricer *pricer, double tolerance, Label *a,
                            const Label *b)
{
    return may_replace(pricer, tolerance, a, b) && stands_for(pricer, tolerance, a, b);
}

void label_table_trim(LabelTable *table, uint32_t n)
{
    KILTER_ASSERT(n <= table->labels->len);
    GArray *kept = g_array_sized_new(FALSE, FALSE, sizeof(Label), n);
    g_array_append_vals(kept, table->labels->data, n);
    g_array_unref(table->labels);
    table->labels = kept;
}

/* The invariant: every label is in the list of its state. */
static void walk_labels(const LabelTable *table)
{
    const Label *all = (const Label *)(const void *)table->labels->data;
    uint32_t n = 0;
    for (uint32_t s = 0; s < table->first->len; s++)
        for (uint32_t i = g_array_index(table->first, uint32_t, s); i != LABEL_NONE;
             i = all[i].next, n++)
            g_assert(all[i].state == table->states.key[s]);
    g_assert(n == table->labels->len);
}

void label_table_add(LabelTable *table, const Pricer *pricer, double tolerance,
                     const Label *label)
{
    KILTER_ASSERT(table->first->len == table->states.n);
    KILTER_ASSERT(label->closed_s >= label->charge_s && isfinite(label->closed_s));
    Label *all = (Label *)(void *)table->labels->data, copy = *label;
    uint32_t state = index_add(&table->states, label->state), none = LABEL_NONE;
    if (state == table->first->len)
        g_array_append_val(table->first, none);
    uint32_t *first = &g_array_index(table->first, uint32_t, state), worse = LABEL_NONE;
    for (uint32_t i = *first; i != LABEL_NONE; i = all[i].next) {
        if (replaces(pricer, 0, &all[i], label))
            return;
        if (worse == LABEL_NONE && replaces(pricer, 0, &copy, &all[i]))
            worse = i;
    }
    if (worse != LABEL_NONE) {
        copy.next = all[worse].next;
        all[worse] = copy;
        return;
    }
    for (uint32_t i = *first; tolerance > 0 && i != LABEL_NONE; i = all[i].next)
        if (replaces(pricer, tolerance, &all[i], label))
            return;
    copy.next = *first;
    *first = table->labels->len;
    g_array_append_val(table->labels, copy);
    if (kilter_walk_due(table->labels->len))
        KILTER_WALK(walk_labels(table));
}

static Times label_sums(const Pricer *pricer, const Label *label)
{
    Times sum = label->initial;
    times_add(pricer, &sum, &label->forward);
    times_add(pricer, &sum, &label->backward);
    times_add(pricer, &sum, &label->update);
    times_add(pricer, &sum, &label->tail);
    for (uint32_t h = 0; h < pricer->n_classes; h++)
        sum.s[h] += label->closed_s;
    return sum;
}

/* A step with a priced collective closes a stage; see Cost for the parts before and after it. */
Label label_extend(const Pricer *pricer, const Label *label, const Transition *transition)
{
    KILTER_ASSERT(transition->cost.comm_s >= transition->cost.charge_s);
    const Cost *cost = &transition->cost;
    Label next = *label;
    next.transition = transition;
    next.closed_s += cost->comm_s;
    next.charge_s += cost->charge_s;
    next.final |= (cost->closes & CLOSES_FINAL) != 0;
    if (cost->closes & CLOSES_FORWARD) {
        if (!next.begun && pricer->inner)
            next.initial = next.forward;
        else
            next.closed_s += times_max(pricer, &next.forward);
        next.begun = true;
        next.forward = (Times){{0}};
    }
    times_add(pricer, &next.forward, &cost->forward);
    times_add(pricer, next.begun ? &next.initial : &next.forward, &cost->initial);
    times_add(pricer, &next.backward, &cost->late);
    if (cost->closes & CLOSES_LATE) {
        next.closed_s += times_max(pricer, &next.backward);
        next.backward = (Times){{0}};
    }
    times_add(pricer, &next.backward, &cost->early);
    if (cost->closes & CLOSES_EARLY) {
        next.closed_s += times_max(pricer, &next.backward);
        next.backward = (Times){{0}};
    }
    times_add(pricer, &next.update, &cost->update);
    times_add(pricer, &next.tail, &cost->tail);
    next.sum = label_sums(pricer, &next);
    return next;
}

double label_total(const Pricer *pricer, const Label *label)
{
    KILTER_ASSERT(label->closed_s >= 0);
    Times open = label->forward;
    times_add(pricer, &open, &label->backward);
    return label->closed_s + times_max(pricer, &label->initial) +
           times_max(pricer, &open) + times_max(pricer, &label->update) +
           times_max(pricer, &label->tail);
}
