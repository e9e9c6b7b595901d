/* Times of a prefix of the chain: the time that a choice adds to closed and open stages, and which
 * prefixes are nowhere slower. */
#include "synth/hidup/prefix.h"

#include <math.h>

static double largest(const DuplexProblem *p, const Times *a)
{
    double max = a->s[0];
    for (uint32_t h = 1; h < p->n_classes; h++)
        max = fmax(max, a->s[h]);
    return max;
}

static double largest_difference(const DuplexProblem *p, const Times *a, const Times *b)
{
    double max = a->s[0] - b->s[0];
    for (uint32_t h = 1; h < p->n_classes; h++)
        max = fmax(max, a->s[h] - b->s[h]);
    return max;
}

static void add(const DuplexProblem *p, Times *sum, const Times *a)
{
    for (uint32_t h = 0; h < p->n_classes; h++)
        sum->s[h] += a->s[h];
}

static void open_forward(const DuplexProblem *p, DuplexLabel *label, const double c[2])
{
    KILTER_ASSERT(c[0] >= 0 && c[1] >= 0);
    const double before = largest(p, &label->forward);
    label->closed_s += fmax(before, label->c2) + fmax(before, c[0]);
    label->c2 = c[1];
    label->forward = (Times){{0}};
}

static void close_back(const DuplexProblem *p, DuplexLabel *label)
{
    KILTER_ASSERT(label->d[0] >= 0 && label->d[1] >= 0);
    const double back = largest(p, &label->back);
    if (p->cost == DUPLEX_OVERLAPPED)
        label->closed_s +=
            fmax(back, label->d[0]) + fmax(label->back_before, label->d[1]);
    else
        label->closed_s += 2 * back + label->d[0] + label->d[1];
    label->back_before = back;
    label->back = (Times){{0}};
    label->d[0] = label->d[1] = 0;
}

void duplex_count_excess(const DuplexProblem *p, double longest_s, DuplexLabel *label)
{
    KILTER_ASSERT(longest_s >= 0);
    const double excess = largest(p, &label->forward) - longest_s;
    if (excess <= 0)
        return;
    for (uint32_t h = 0; h < p->n_classes; h++)
        label->forward.s[h] -= excess;
    label->closed_s += 2 * excess;
}

void duplex_append(const DuplexProblem *p, DuplexLabel *label, const DuplexChoice *choice,
                   const DuplexConversion *step)
{
    const double c[2] = {step->forward_s + choice->gather_s[0],
                         step->forward_s + choice->gather_s[1]};
    const double sync_s = choice->sync_s[0] + choice->sync_s[1];
    if (c[0] > 0 || c[1] > 0)
        open_forward(p, label, c);
    if (step->back_s > 0 || (sync_s > 0 && !choice->joins))
        close_back(p, label);
    for (uint32_t m = 0; m < 2; m++)
        label->d[m] += step->back_s + choice->sync_s[m];
    add(p, &label->forward, &choice->forward);
    add(p, &label->back, &choice->back);
    add(p, &label->update, &choice->update);
    label->choice = choice;
}

double duplex_total(const DuplexProblem *p, const DuplexLabel *label)
{
    const double updates = largest(p, &label->update);
    if (p->cost == DUPLEX_SERIAL_BACK) {
        DuplexLabel last = *label;
        const double forward = largest(p, &label->forward);
        close_back(p, &last);
        return last.closed_s + fmax(forward, label->c2) + forward + updates;
    }
    Times both = label->forward;
    add(p, &both, &label->back);
    const double turn = largest(p, &both);
    return label->closed_s + fmax(turn, label->c2) + fmax(turn, label->d[0]) +
           fmax(label->back_before, label->d[1]) + updates;
}

bool duplex_dominates(const DuplexProblem *p, double same_s, const DuplexLabel *a,
                      const DuplexLabel *b)
{
    KILTER_ASSERT(same_s >= 0);
    const double forward = largest_difference(p, &a->forward, &b->forward);
    double slower = a->closed_s - b->closed_s + fmax(forward, a->c2 - b->c2) +
                    fmax(forward, 0) + largest_difference(p, &a->update, &b->update);
    const double back = largest_difference(p, &a->back, &b->back);
    if (p->cost == DUPLEX_OVERLAPPED)
        slower += fmax(back, a->d[0] - b->d[0]) + fmax(back, 0) +
                  fmax(a->back_before - b->back_before, a->d[1] - b->d[1]);
    else
        slower += 2 * back + a->d[0] - b->d[0] + a->d[1] - b->d[1];
    return slower <= same_s;
}
