#include "synth/exact/label.h"

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

void label_table_clear(LabelTable *table)
{
    if (table->labels) {
        g_array_free(table->labels, TRUE);
        g_array_free(table->first, TRUE);
    }
    index_clear(&table->states);
    *table = (LabelTable){0};
}

/* Equation (1). Without a final step the updates join an earlier stage, so they are worth at most what they are with. */
static bool dominates(const Pricer *pricer, const Label *a, const Label *b)
{
    return a->final == b->final && a->begun == b->begun &&
           a->closed_s + times_max_difference(pricer, &a->initial, &b->initial) +
                   times_max_difference(pricer, &a->forward, &b->forward) +
                   times_max_difference(pricer, &a->backward, &b->backward) +
                   times_max_difference(pricer, &a->update, &b->update) +
                   times_max_difference(pricer, &a->tail, &b->tail) <=
               b->closed_s;
}

void label_table_add(LabelTable *table, const Pricer *pricer, const Label *label)
{
    Label *all = (Label *)(void *)table->labels->data;
    uint32_t state = index_add(&table->states, label->state), none = LABEL_NONE;
    if (state == table->first->len)
        g_array_append_val(table->first, none);
    uint32_t *first = &g_array_index(table->first, uint32_t, state), worse = LABEL_NONE;
    for (uint32_t i = *first; i != LABEL_NONE; i = all[i].next) {
        if (dominates(pricer, &all[i], label))
            return;
        if (worse == LABEL_NONE && dominates(pricer, label, &all[i]))
            worse = i;
    }
    Label copy = *label;
    if (worse != LABEL_NONE) {
        copy.next = all[worse].next;
        all[worse] = copy;
        return;
    }
    copy.next = *first;
    *first = table->labels->len;
    g_array_append_val(table->labels, copy);
}

/* A step with a priced collective closes a stage; see Cost for what comes before and after it. */
Label label_extend(const Pricer *pricer, const Label *label, const Transition *transition)
{
    const Cost *cost = &transition->cost;
    Label next = *label;
    next.transition = transition;
    next.closed_s += cost->comm_s;
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
    return next;
}

double label_total(const Pricer *pricer, const Label *label)
{
    Times open = label->forward;
    times_add(pricer, &open, &label->backward);
    return label->closed_s + times_max(pricer, &label->initial) +
           times_max(pricer, &open) + times_max(pricer, &label->update) +
           times_max(pricer, &label->tail);
}

Times label_sums(const Pricer *pricer, const Label *label)
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
