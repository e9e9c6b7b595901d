#include "synth/label.h"

#include <math.h>

LabelTable *label_table_new(void)
{
    LabelTable *table = g_new(LabelTable, 1);
    table->labels = g_array_new(FALSE, FALSE, sizeof(Label));
    table->states = g_hash_table_new(NULL, NULL);
    return table;
}

void label_table_free(LabelTable *table)
{
    g_array_free(table->labels, TRUE);
    g_hash_table_destroy(table->states);
    g_free(table);
}

/* Equation (1). */
static bool dominates(const Pricer *pricer, const Label *a, const Label *b)
{
    return a->closed_s + times_max_difference(pricer, &a->forward, &b->forward) +
               times_max_difference(pricer, &a->backward, &b->backward) +
               times_max_difference(pricer, &a->update, &b->update) <=
           b->closed_s;
}

void label_table_add(LabelTable *table, const Pricer *pricer, const Label *label)
{
    gpointer key = (gpointer)(gsize)label->state;
    uint32_t first = GPOINTER_TO_UINT(g_hash_table_lookup(table->states, key)) - 1;
    uint32_t worse = LABEL_NONE;
    for (uint32_t i = first; i != LABEL_NONE;
         i = g_array_index(table->labels, Label, i).next) {
        const Label *other = &g_array_index(table->labels, Label, i);
        if (dominates(pricer, other, label))
            return;
        if (worse == LABEL_NONE && dominates(pricer, label, other))
            worse = i;
    }
    Label copy = *label;
    if (worse != LABEL_NONE) {
        copy.next = g_array_index(table->labels, Label, worse).next;
        g_array_index(table->labels, Label, worse) = copy;
        return;
    }
    copy.next = first;
    g_array_append_val(table->labels, copy);
    g_hash_table_insert(table->states, key, GUINT_TO_POINTER(table->labels->len));
}

/* A step that holds a priced collective closes the open stage before it. `open` is extended at its end. */
static void append_step(const Pricer *pricer, double *closed_s, Times *open,
                        const Step *step)
{
    if (step->closes) {
        *closed_s += step->comm_s + times_max(pricer, open);
        *open = step->inner;
    } else {
        times_add(pricer, open, &step->inner);
    }
}

/* The same at the front: the step opens the stage that `open` has become, and what comes before it starts anew. */
static void prepend_step(const Pricer *pricer, double *closed_s, Times *open,
                         const Step *step)
{
    times_add(pricer, open, &step->inner);
    if (step->closes) {
        *closed_s += step->comm_s + times_max(pricer, open);
        *open = (Times){{0}};
    }
}

Label label_extend(const Pricer *pricer, const Label *label, const Transition *t)
{
    Label next = *label;
    append_step(pricer, &next.closed_s, &next.forward, &t->forward);
    times_add(pricer, &next.forward, &t->forward_work);
    times_add(pricer, &next.backward, &t->accumulation);
    prepend_step(pricer, &next.closed_s, &next.backward, &t->after);
    times_add(pricer, &next.backward, &t->backward_work);
    prepend_step(pricer, &next.closed_s, &next.backward, &t->before);
    next.closed_s += t->final_s;
    times_add(pricer, &next.update, &t->final_work);
    next.transition = t;
    return next;
}

double label_total(const Pricer *pricer, const Label *label)
{
    Times open = label->forward;
    times_add(pricer, &open, &label->backward);
    return label->closed_s + times_max(pricer, &open) + times_max(pricer, &label->update);
}

double label_bound(const Pricer *pricer, const Label *label, const Times *rest)
{
    double bound = 0;
    for (uint32_t h = 0; h < pricer->n_classes; h++)
        bound = fmax(bound, label->forward.s[h] + label->backward.s[h] +
                                label->update.s[h] + rest->s[h]);
    return label->closed_s + bound;
}
