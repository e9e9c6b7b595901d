/* The dynamic program over suffixes of a pipeline (synth/joint/joint.h). */
#include <math.h>
#include <string.h>

#include "data/base/free.h"
#include "data/base/order.h"
#include "synth/joint/cost.h"
#include "synth/joint/joint.h"
#include "synth/joint/menu.h"

/* --- states --- */

enum { JOINT_NO_STATE = UINT32_MAX };

typedef struct {
    uint32_t n;
    /* [state * n_groups + group]: the state with the group's units, too; JOINT_NO_STATE if it lacks
     * them */
    uint32_t *next;
    double *left;   /* [state]: value of the units that are left */
    uint32_t *used; /* [state * n_kinds + kind]: units; in an order, of the last kind */
} JointStates;

static CLEAR_DEFINE(joint_states_clear, JointStates, states, let_go(states->next, g_free),
                    let_go(states->left, g_free), let_go(states->used, g_free));

/* Fills the row of a state that has used[kind] units; step[kind]: weight of a unit in a state's
 * number. */
static void fill_row(JointStates *states, const JointProblem *p, uint32_t state,
                     const uint32_t *used, const uint32_t *step)
{
    for (uint32_t g = 0; g < p->n_groups; g++) {
        const uint32_t *use = p->group[g].use;
        uint32_t to = state;
        bool has = true;
        for (uint32_t k = 0; k < p->n_kinds; k++) {
            has &= used[k] + use[k] <= p->units[k];
            to += use[k] * step[k];
        }
        states->next[(size_t)state * p->n_groups + g] = has ? to : JOINT_NO_STATE;
    }
}

/* One state per combination of used units. value: [kind] of a unit. */
static void fill_all(JointStates *states, const JointProblem *p, const double *value)
{
    g_autofree uint32_t *step = g_new(uint32_t, p->n_kinds);
    uint32_t n = 1;
    for (uint32_t k = 0; k < p->n_kinds; k++) {
        step[k] = n;
        n *= p->units[k] + 1;
    }
    states->n = n;
    states->next = g_new(uint32_t, (size_t)n * MAX(p->n_groups, 1));
    states->left = g_new0(double, n);
    states->used = g_new(uint32_t, (size_t)n * p->n_kinds);
    for (uint32_t state = 0; state < n; state++) {
        uint32_t *used = &states->used[(size_t)state * p->n_kinds];
        for (uint32_t k = 0; k < p->n_kinds; k++) {
            used[k] = state / step[k] % (p->units[k] + 1);
            states->left[state] += value[k] * (p->units[k] - used[k]);
        }
        fill_row(states, p, state, used, step);
    }
}

/* --- one kind after the other --- */

/* The place of a kind in the order. */
static uint32_t place_of(const uint32_t *order, uint32_t kind)
{
    uint32_t place = 0;
    while (order[place] != kind)
        place++;
    return place;
}

/* The state that a group leads to from one that has `used` units of the kind at `place`; first:
 * [place] the state with no unit of its kind. */
static uint32_t solve_follow(const JointProblem *p, const JointGroup *g,
                             const uint32_t *order, const uint32_t *first, uint32_t place,
                             uint32_t used)
{
    uint32_t begin = p->n_kinds, end = 0, n = 0;
    for (uint32_t k = 0; k < p->n_kinds; k++) {
        const uint32_t at = place_of(order, k);
        if (g->use[k] == 0)
            continue;
        begin = MIN(begin, at);
        end = MAX(end, at);
        n++;
    }
    const bool adjacent = n > 0 && end - begin + 1 == n;
    if (!adjacent || begin < place ||
        (begin == place && used + g->use[order[place]] > p->units[order[place]]))
        return JOINT_NO_STATE;
    return first[end] + g->use[order[end]] + (end == place ? used : 0);
}

/* One state per kind and number of used units of it, where kinds follow one another. */
static void fill_ordered(JointStates *states, const JointProblem *p,
                         const uint32_t *order, const double *value)
{
    g_autofree uint32_t *first = g_new(uint32_t, p->n_kinds);
    double left = 0;
    states->n = 0;
    for (uint32_t at = 0; at < p->n_kinds; at++) {
        first[at] = states->n;
        states->n += p->units[order[at]] + 1;
        left += value[order[at]] * p->units[order[at]];
    }
    states->next = g_new(uint32_t, (size_t)states->n * MAX(p->n_groups, 1));
    states->left = g_new(double, states->n);
    states->used = g_new0(uint32_t, (size_t)states->n * p->n_kinds);
    values_at (const uint32_t, kind, at, order, p->n_kinds) {
        for (uint32_t used = 0; used <= p->units[kind]; used++) {
            const uint32_t state = first[at] + used;
            states->left[state] = left - value[kind] * used;
            states->used[(size_t)state * p->n_kinds + kind] = used;
            for (uint32_t g = 0; g < p->n_groups; g++)
                states->next[(size_t)state * p->n_groups + g] =
                    solve_follow(p, &p->group[g], order, first, at, used);
        }
        left -= value[kind] * p->units[kind];
    }
}

/* --- orders of kinds --- */

/* Makes the next permutation of 0 .. n - 1; false after the last one. */
static bool permute(uint32_t *place, uint32_t n)
{
    uint32_t i = n - 1, j = n - 1;
    while (i > 0 && place[i - 1] > place[i])
        i--;
    if (i == 0)
        return false;
    while (place[j] < place[i - 1])
        j--;
    const uint32_t swapped = place[i - 1];
    place[i - 1] = place[j];
    place[j] = swapped;
    for (uint32_t a = i, b = n - 1; a < b; a++, b--) {
        const uint32_t moved = place[a];
        place[a] = place[b];
        place[b] = moved;
    }
    return true;
}

/* Seconds of a unit of the kind for all layers. */
static double unit_s(const JointProblem *p, uint32_t kind)
{
    return sum_over(double, l, p->n_layers, p->least_s[kind * p->n_layers + l]);
}

uint32_t *synth_joint_orders(const JointProblem *p, uint32_t most, uint32_t *n_orders)
{
    const uint32_t n = p->n_kinds;
    g_autofree uint32_t *place = g_new(uint32_t, n), *by_speed = g_new(uint32_t, n);
    uint32_t *order = g_new(uint32_t, (size_t)most * n);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t at = k;
        for (; at > 0 && unit_s(p, by_speed[at - 1]) < unit_s(p, k); at--)
            by_speed[at] = by_speed[at - 1];
        by_speed[at] = k;
    }
    for (uint32_t k = 0; k < n; k++)
        place[k] = k;
    *n_orders = 0;
    do {
        if (place[0] > place[n - 1]) /* the reverse of one before */
            continue;
        for (uint32_t way = 0; way < 2 && *n_orders < most; way++, (*n_orders)++)
            for (uint32_t k = 0; k < n; k++)
                order[*n_orders * n + k] = by_speed[place[way ? n - 1 - k : k]];
    } while (permute(place, n) && *n_orders < most);
    return order;
}

enum { NONE = UINT32_MAX, MOST_STAGES = 200 };

/* A suffix of stages on the state's units. */
typedef struct {
    JointSuffix is;
    uint32_t next;   /* next label of the same state */
    uint32_t behind; /* label of the suffix without its first stage */
} Label;

typedef struct {
    const JointProblem *p;
    const JointOptions *o;
    JointStates states; /* combinations of used units */
    uint32_t *head;     /* [layer * n_states + state]: first label */
    GArray *label;      /* Label */
    /* [layer]: least seconds of a microbatch on all layers before */
    double *least_s;
    double *price; /* [kind]: price of a unit's second */
    double *work;  /* [layer]: cost at these prices of all layers before */
    double upper_s;
    double slack;    /* pipelines within this part of the best are wanted, too */
    bool cut;        /* a label was dropped that no other dominates */
    uint32_t *ample; /* [entry of a group]: layer up to which back its memory is ample */
} Search;

/* The least seconds of the suffix completed by the layers before. */
static double least_s(const Search *s, const Label *l, uint32_t i, uint32_t state)
{
    if (i == 0)
        return l->is.end_s;
    if (s->states.left[state] <= 0)
        return INFINITY;
    const double rest = l->is.pace_s + s->least_s[i];
    const double all = s->p->n_microbatches * s->work[i] / s->states.left[state];
    return MAX(MAX(l->is.end_s, rest), all);
}

/* --- labels of a state --- */

static const uint32_t *used_of(const Search *s, uint32_t state)
{
    return &s->states.used[(size_t)state * s->p->n_kinds];
}

static bool same_front(const Search *s, uint32_t state, const JointSuffix *a,
                       const JointSuffix *b)
{
    const JointGroup *g = &s->p->group[a->group], *h = &s->p->group[b->group];
    const JointEntry *e = &g->entry[a->entry], *f = &h->entry[b->entry];
    return s->o->way.relaxed || s->o->way.free ||
           ((!s->p->border || g->kinds == h->kinds) &&
            (g->piece == h->piece || h->piece == 0 ||
             used_of(s, state)[h->piece - 1] % h->room == 0) &&
            e->share <= f->share &&
            joint_copies(e, a->first) <= joint_copies(f, b->first));
}

static bool dominates(const Search *s, uint32_t state, const JointSuffix *a,
                      const JointSuffix *b)
{
    return a->sum_s <= b->sum_s && a->pace_s <= b->pace_s && a->end_s <= b->end_s &&
           (a->n == b->n || s->o->way.relaxed) && same_front(s, state, a, b);
}

/* Whether the beam is full of labels that end no later. */
static bool is_beyond_beam(const Search *s, uint32_t head, const Label *made)
{
    uint32_t n = 0;
    for (uint32_t at = head; at != NONE; at = g_array_index(s->label, Label, at).next)
        n += g_array_index(s->label, Label, at).is.end_s <= made->is.end_s;
    return s->o->beam > 0 && n >= s->o->beam;
}

/* With a beam, drops the label that ends last if there are too many. */
static void drop_worst(Search *s, uint32_t *head)
{
    uint32_t n = 0, *worst = head;
    for (uint32_t *at = head; *at != NONE;
         at = &g_array_index(s->label, Label, *at).next, n++)
        if (g_array_index(s->label, Label, *at).is.end_s >
            g_array_index(s->label, Label, *worst).is.end_s)
            worst = at;
    if (n <= s->o->beam)
        return;
    *worst = g_array_index(s->label, Label, *worst).next;
    s->cut = true;
}

static void solve_insert(Search *s, uint32_t layer, uint32_t state, const Label *made)
{
    uint32_t *head = &s->head[(size_t)layer * s->states.n + state];
    for (uint32_t at = *head; at != NONE;) {
        const Label *l = &g_array_index(s->label, Label, at);
        if (dominates(s, state, &l->is, &made->is))
            return;
        at = l->next;
    }
    if (is_beyond_beam(s, *head, made)) {
        s->cut = true;
        return;
    }
    for (uint32_t *at = head; *at != NONE;) {
        Label *l = &g_array_index(s->label, Label, *at);
        if (dominates(s, state, &made->is, &l->is))
            *at = l->next;
        else
            at = &l->next;
    }
    Label added = *made;
    added.next = *head;
    *head = s->label->len;
    g_array_append_val(s->label, added);
    if (s->o->beam > 0)
        drop_worst(s, &s->head[(size_t)layer * s->states.n + state]);
}

/* --- the search --- */

/* The last layer before which a stage may begin: what is left of the units has to have the time for
 * the layers in front of it. */
static uint32_t last_begin(const Search *s, uint32_t j, uint32_t to)
{
    const double most =
        s->upper_s * s->states.left[to] / s->p->n_microbatches * (1 + 1e-12);
    uint32_t low = 0, high = j;
    while (low < high) {
        const uint32_t mid = (low + high + 1) / 2;
        if (s->work[mid] < most)
            low = mid;
        else
            high = mid - 1;
    }
    return low;
}

/* Prepends the stages of an entry that end before layer j and begin at `last` or before. Returns
 * the layer up to which back the entry has ample memory. */
static uint32_t extend_by(Search *s, uint32_t from, const JointFront *made_of,
                          uint32_t last, uint32_t to)
{
    const JointWay *way = &s->o->way;
    const JointSuffix l = g_array_index(s->label, Label, from).is;
    const bool front = l.n + 1u == way->n_stages;
    const uint32_t j = made_of->last, chunks = MAX(way->chunks, 1);
    uint32_t ample = j;
    uint64_t tries = 0;
    for (uint32_t i = last + 1; i-- > 0; tries++) {
        if (!way->relaxed && !joint_front_fits(s->p, way, made_of, i))
            break; /* then more layers do not fit either */
        if (joint_front_is_ample(s->p, way, made_of, i))
            ample = i;
        if (j - i < chunks || (i == 0 && way->n_stages > 0 && !front))
            continue;
        Label made = {joint_prepend(s->p, way, &l, made_of, i), NONE, from};
        if (made.is.pace_s >= s->upper_s)
            break;
        if (least_s(s, &made, i, to) < s->upper_s)
            solve_insert(s, i, to, &made);
        if (i == 0)
            s->upper_s = fmin(s->upper_s, made.is.end_s * s->slack);
    }
    if (s->o->left)
        *s->o->left -= MIN(*s->o->left, tries + 1);
    return ample;
}

/* Whether an entry is one of the search: promises stand for all programs in bounds, and elsewhere
 * until their group is settled. */
static bool is_open(const Search *s, const JointGroup *group, const JointEntry *entry)
{
    if (s->o->way.relaxed || s->o->way.free)
        return !entry->inside && !(entry->promised && s->o->plain);
    return entry->promised ? !s->o->plain && !group->settled
                           : !entry->inside || !s->o->plain;
}

/* Prepends all stages of a group that end before layer j to a label of the state. An entry that is
 * slower in every layer than one before it is of use only where that one lacks memory. */
static void extend(Search *s, uint32_t from, uint32_t j, uint32_t state, uint32_t group)
{
    const JointGroup *g = &s->p->group[group];
    const uint32_t to = s->states.next[(size_t)state * s->p->n_groups + group];
    const JointWay *way = &s->o->way;
    const JointSuffix l = g_array_index(s->label, Label, from).is;
    const bool front = l.n + 1u == way->n_stages,
               splits = way->relaxed || schedule_splits(way->schedule);
    uint32_t *ample = s->ample;
    items_at (const JointEntry, entry, e, g->entry, g->n_entries) {
        ample[e] = j;
        if (!is_open(s, g, entry))
            continue;
        uint32_t last = front ? 0 : MIN(j - 1, last_begin(s, j, to));
        if (entry->faster < e && !splits) {
            if (ample[entry->faster] == 0)
                continue;
            last = MIN(last, ample[entry->faster] - 1);
        }
        const double m = s->p->n_microbatches * (joint_span(entry->forward_s, last, j) +
                                                 joint_span(entry->backward_s, last, j));
        if (!splits && m >= s->upper_s)
            continue;
        const JointStage stage = {.group = group, .entry = e};
        const JointFront made_of =
            joint_front(s->p, way, &l, used_of(s, state), &stage, j);
        ample[e] = extend_by(s, from, &made_of, last, to);
    }
}

/* Prepends all stages to a label of a state. */
static void extend_by_all(Search *s, uint32_t from, uint32_t j, uint32_t state)
{
    const uint32_t n = s->p->n_groups, *next = &s->states.next[(size_t)state * n];
    const uint32_t most = s->o->way.n_stages > 0 ? s->o->way.n_stages : MOST_STAGES;
    const Label *l = &g_array_index(s->label, Label, from);
    if (l->is.n >= most || least_s(s, l, j, state) >= s->upper_s)
        return;
    for (uint32_t g = 0; g < n; g++)
        if (next[g] != JOINT_NO_STATE)
            extend(s, from, j, state, g);
}

static bool is_over(const Search *s)
{
    return (s->o->most_labels > 0 && s->label->len >= s->o->most_labels) ||
           (s->o->left && *s->o->left == 0) ||
           (s->o->deadline_us > 0 && g_get_monotonic_time() >= s->o->deadline_us);
}

static void solve_run(Search *s)
{
    const JointProblem *p = s->p;
    const Label none = {{.first = (uint16_t)p->n_layers}, NONE, NONE};
    g_array_append_val(s->label, none);
    s->head[(size_t)p->n_layers * s->states.n] = 0;
    for (uint32_t j = p->n_layers; j > 0; j--)
        for (uint32_t state = 0; state < s->states.n; state++) {
            if (is_over(s)) {
                s->cut = true;
                return;
            }
            for (uint32_t at = s->head[(size_t)j * s->states.n + state]; at != NONE;
                 at = g_array_index(s->label, Label, at).next)
                extend_by_all(s, at, j, state);
        }
}

/* --- what the bounds start from --- */

static void find_least(Search *s)
{
    const JointProblem *p = s->p;
    const JointWay *way = &s->o->way;
    const bool splits = way->relaxed || schedule_splits(way->schedule);
    const double part = way->chunks > 0 ? 1.0 / way->chunks : way->relaxed ? 0 : 1;
    double all = 0;
    for (uint32_t k = 0; k < p->n_kinds; k++) {
        const double whole =
            sum_over(double, l, p->n_layers, p->least_s[k * p->n_layers + l]);
        s->price[k] = whole > 0 && isfinite(whole) ? 1 / whole : 0;
        all += s->price[k] * p->units[k];
    }
    for (uint32_t k = 0; k < p->n_kinds && all > 0; k++)
        s->price[k] /= all;
    for (uint32_t l = 0; l < p->n_layers; l++) {
        double cheapest = INFINITY, fastest = INFINITY;
        for (uint32_t k = 0; k < p->n_kinds; k++)
            cheapest = fmin(cheapest, s->price[k] * p->least_s[k * p->n_layers + l]);
        for (uint32_t g = 0; g < p->n_groups; g++)
            items_each (const JointEntry, entry, p->group[g].entry, p->group[g].n_entries)
                fastest = fmin(fastest,
                               joint_span(entry->forward_s, l, l + 1) +
                                   joint_span(entry->backward_s, l, l + 1) -
                                   (splits ? joint_span(entry->weights_s, l, l + 1) : 0));
        s->work[l + 1] = s->work[l] + (isfinite(cheapest) ? cheapest : 0);
        s->least_s[l + 1] = s->least_s[l] + (isfinite(fastest) ? part * fastest : 0);
    }
}

double synth_joint_density_s(const JointProblem *p)
{
    g_autofree double *least = g_new0(double, p->n_layers + 1),
                      *work = g_new0(double, p->n_layers + 1),
                      *price = g_new0(double, p->n_kinds);
    const JointOptions any = {.n_best = 1};
    Search s = {.p = p, .o = &any, .least_s = least, .work = work, .price = price};
    find_least(&s);
    return p->n_microbatches * work[p->n_layers];
}

/* --- what comes out --- */

CLEAR_DEFINE(synth_joint_pipeline_clear, JointPipeline, pipeline,
             let_go(pipeline->stage, g_free));

CLEAR_DEFINE(synth_joint_result_clear, JointResult, result,
             let_go(result->best, g_array_unref));

static ORDER_DEFINE(by_cost, JointPipeline, ASCENDING(cost_s), ASCENDING(n_stages));

static void collect(const Search *s, JointResult *result)
{
    for (uint32_t state = 0; state < s->states.n; state++)
        for (uint32_t at = s->head[state]; at != NONE;
             at = g_array_index(s->label, Label, at).next) {
            const Label *l = &g_array_index(s->label, Label, at);
            JointPipeline made = {l->is.n, g_new(JointStage, l->is.n), s->o->way.schedule,
                                  s->o->way.chunks, l->is.end_s};
            for (uint32_t i = 0; i < made.n_stages; i++) {
                made.stage[i] = (JointStage){l->is.first, l->is.group, l->is.entry};
                l = &g_array_index(s->label, Label, l->behind);
            }
            g_array_append_val(result->best, made);
        }
    g_array_sort(result->best, by_cost);
    if (result->best->len > s->o->n_best)
        g_array_set_size(result->best, s->o->n_best);
}

/* The invariant of the result: a pipeline costs what the formula says. */
static void walk_best(const Search *s, const JointResult *result)
{
    array_each (const JointPipeline, made, result->best) {
        const double formula = synth_joint_cost(s->p, made, s->o->way.relaxed);
        g_assert(s->o->way.free || fabs(formula - made->cost_s) <= 1e-9 * made->cost_s);
    }
}

void synth_joint_solve(const JointProblem *p, const JointOptions *options,
                       JointResult *result)
{
    /* pipelines whose order the walk may change */
    static const double SLACK = 1.1;
    g_assert(p->n_layers > 0 && p->n_layers < UINT16_MAX && options->n_best > 0);
    g_autofree double *least = g_new0(double, p->n_layers + 1),
                      *work = g_new0(double, p->n_layers + 1),
                      *price = g_new0(double, p->n_kinds);
    g_autoptr(GArray) label = g_array_new(FALSE, FALSE, sizeof(Label));
    const uint32_t most_entries =
        most_over(uint32_t, g, p->n_groups, 0, p->group[g].n_entries);
    g_autofree uint32_t *ample = g_new(uint32_t, most_entries);
    Search s = {.p = p,
                .ample = ample,
                .o = options,
                .label = label,
                .least_s = least,
                .price = price,
                .work = work,
                .upper_s = options->upper_s,
                .slack = options->n_best == 1 ? 1
                         : options->slack > 0 ? options->slack
                                              : SLACK};
    find_least(&s);
    g_assert(p->n_kinds > 0);
    if (options->order)
        fill_ordered(&s.states, p, options->order, price);
    else
        fill_all(&s.states, p, price);
    const size_t n = ((size_t)p->n_layers + 1) * s.states.n;
    g_autofree uint32_t *head = g_new(uint32_t, n);
    memset(head, 0xff, n * sizeof *head);
    s.head = head;
    solve_run(&s);
    result->best = array_owning(JointPipeline, synth_joint_pipeline_clear);
    collect(&s, result);
    KILTER_WALK(walk_best(&s, result));
    result->exact = !s.cut;
    result->labels = label->len;
    joint_states_clear(&s.states);
}

/* --- promises --- */

static bool has_promise(const JointProblem *p, const JointPipeline *pipeline)
{
    const bool any =
        any_of(i, pipeline->n_stages, joint_entry_of(p, &pipeline->stage[i])->promised);
    return any;
}

/* The groups on which a pipeline relies on a promise, each once; NULL if there are none. */
static GArray *promising_groups(const JointProblem *p, const JointResult *result)
{
    g_autoptr(GArray) groups = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g_autofree bool *seen = g_new0(bool, p->n_groups);
    array_each (const JointPipeline, made, result->best) {
        for (uint32_t k = 0; k < made->n_stages; k++) {
            const uint32_t g = made->stage[k].group;
            if (!joint_entry_of(p, &made->stage[k])->promised || seen[g])
                continue;
            g_assert(!p->group[g].settled);
            seen[g] = true;
            g_array_append_val(groups, g);
        }
    }
    return groups->len > 0 ? g_steal_pointer(&groups) : NULL;
}

GArray *synth_joint_solve_lazily(const JointProblem *p, const JointOptions *o,
                                 JointResult *result)
{
    const uint64_t labels = result->labels;
    g_assert(!o->way.relaxed);
    synth_joint_result_clear(result);
    synth_joint_solve(p, o, result);
    result->labels += labels;
    if ((o->deadline_us == 0 || g_get_monotonic_time() < o->deadline_us) &&
        !(o->left && *o->left == 0))
        return promising_groups(p, result);
    for (uint32_t i = result->best->len; i-- > 0;)
        if (has_promise(p, &g_array_index(result->best, JointPipeline, i)))
            g_array_remove_index(result->best, i);
    return NULL;
}
