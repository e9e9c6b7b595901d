/* Bounds over a box of ratios, and programs within rationed memory.
 *
 * With rationed memory the walk covers programs whose memory, weighted by the multipliers, does not
 * exceed the weighted capacity; the charge is then no part of the time. Multipliers by themselves
 * leave a gap (equal layers all save memory at the same multiplier, or none does). A walk that also
 * compares labels by their charge closes it: G. Y. Handler, I. Zang, "A dual algorithm for the
 * constrained shortest path problem" (1980). */
#include "data/base/free.h"
#include "data/base/order.h"
#include "synth/hap/exact/search.h"

#include <math.h>
#include <string.h>

/* Sets proved_s, at most to upper_s; as everywhere it contains the charge for all memory. Also ends
 * if a wider limit would leave too many labels. */
static void walk_rationed(Search *s, uint32_t beam)
{
    static const double first = 1e-3, factor = 2;
    if (s->states->late)
        return;
    double relaxed_s = search_relaxed_bound(s);
    s->proved_s = fmin(relaxed_s, s->upper_s);
    bool done = !isfinite(s->proved_s);
    for (double width = first; !done; width *= factor) {
        s->limit_s = fmin(relaxed_s * (1 + width), s->upper_s);
        search_walk(s, beam);
        double least_s = search_best(s, true, true) + s->free_s;
        if (!s->states->late)
            s->proved_s = fmax(s->proved_s, fmin(fmin(s->limit_s, s->lost_s), least_s));
        double found_s =
            s->bound_only ? least_s : search_best(s, false, true) + s->free_s;
        done = !s->complete || found_s <= s->limit_s || s->limit_s >= s->upper_s ||
               (s->effort && s->expansions >= s->effort);
    }
}

/* Counts the bytes of the program of a label at the last cut, as the charge at rates that select
 * one kind of bytes at a time. */
static void count_bytes(Search *s, uint32_t index, SynthBytes bytes[SYNTH_POINTS])
{
    g_assert(index != LABEL_NONE && sizeof(SynthBytes) == 4 * sizeof(double));
    enum { KINDS = 4 }; /* numbers in SynthBytes */
    for (OpId id = s->states->n_ops; id-- > 0;) {
        const Label *label = &g_array_index(s->table[id + 1].labels, Label, index);
        for (uint32_t i = 0; i < SYNTH_POINTS * KINDS; i++) {
            memset(s->pricer.charge, 0, sizeof s->pricer.charge);
            (&s->pricer.charge[i / KINDS].held)[i % KINDS] = 1;
            (&bytes[i / KINDS].held)[i % KINDS] +=
                transition_memory(s->states->cut[id].move->choices, label->transition);
        }
        index = label->parent;
    }
}

/* The label of least time at the last cut, or LABEL_NONE. */
static uint32_t least_label(const Search *s)
{
    const GArray *last = s->states ? s->table[s->states->n_ops].labels : NULL;
    uint32_t least = LABEL_NONE;
    double least_s = INFINITY;
    for (uint32_t i = 0; last && !s->states->late && i < last->len; i++) {
        double total = label_total(&s->pricer, &g_array_index(last, Label, i));
        if (total < least_s) {
            least_s = total;
            least = i;
        }
    }
    return least;
}

typedef struct {
    double time_s, charge_s;
    uint32_t index;
} Timed;

static ORDER_DEFINE(compare_times, Timed, ASCENDING(time_s));

/* Takes the programs of labels at the last cut whose charge is within the memory, in the order of
 * time, each with a lower charge than the one before. */
static bool take_programs(Search *s, uint32_t most, SynthBound *bound, GError **error)
{
    const GArray *last = s->table[s->states->n_ops].labels;
    g_autoptr(GArray) fits = g_array_new(FALSE, FALSE, sizeof(Timed));
    for (uint32_t i = 0; last && !s->states->late && i < last->len; i++) {
        const Label *label = &g_array_index(last, Label, i);
        Timed timed = {label_total(&s->pricer, label) - label->charge_s, label->charge_s,
                       i};
        if (label->charge_s <= s->free_s * (1 + SEARCH_ROUNDING))
            g_array_append_val(fits, timed);
    }
    g_array_sort(fits, compare_times);
    double charge_s = INFINITY;
    for (uint32_t i = 0; i < fits->len && bound->programs->len < most; i++) {
        const Timed *timed = &g_array_index(fits, Timed, i);
        if (timed->charge_s >= charge_s)
            continue;
        charge_s = timed->charge_s;
        Program *program = search_program(s, timed->index, error);
        if (!program)
            return false;
        g_ptr_array_add(bound->programs, program);
    }
    return true;
}

CLEAR_DEFINE(synth_bound_clear, SynthBound, bound,
             let_go(bound->programs, g_ptr_array_unref));

bool synth_bound(SynthSpace *space, const ClusterView *view, const SynthBox *box,
                 SynthBound *bound, GError **error)
{
    g_assert(!box->rationed || box->memory_s || box->n_programs == 0);
    /* labels at a cut; with more, the earlier proof has to suffice, so
     * that a bound takes no longer than a search */
    enum { MAX_LABELS = 500 };
    *bound = (SynthBound){
        .programs = g_ptr_array_new_with_free_func((GDestroyNotify)program_free)};
    double free_s = 0;
    for (uint32_t i = 0; box->memory_s && i < SYNTH_POINTS * view->n_devices; i++)
        free_s +=
            box->memory_s[i] * (double)view->device[i % view->n_devices].memory_bytes;
    g_auto(Search) s = {.upper_s = box->upper_s + free_s,
                        .free_s = free_s,
                        .tolerance = box->tolerance,
                        .effort = box->effort,
                        .bound_only = box->rationed && box->n_programs == 0};
    pricer_init_box(&s.pricer, space->graph, view, box->lo, box->hi, box->largest,
                    box->memory_s);
    s.pricer.pins = space->pins;
    s.pricer.rationed = box->memory_s && box->rationed;
    bool done = search_start(&s, space, box->deadline_us, error);
    if (done && s.pricer.rationed) {
        walk_rationed(&s, box->labels);
        done = take_programs(&s, box->n_programs, bound, error);
    } else if (done) {
        search_walk_widening(&s, MAX_LABELS);
    }
    uint32_t least = least_label(&s);
    if (done && s.pricer.charges && least != LABEL_NONE)
        count_bytes(&s, least, bound->bytes);
    bound->bound_s = s.proved_s - free_s;
    return done;
}
