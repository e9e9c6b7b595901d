/* The dynamic program over suffixes of a pipeline (synth/joint/joint.h). */
#include <math.h>
#include <string.h>

#include "synth/joint/states.h"

enum { NONE = UINT32_MAX, MOST_STAGES = 200 };

/* A suffix of stages: it has the layers from the state's layer on, on the state's units. */
typedef struct {
    double sum_s, pace_s, end_s; /* S, Z, E */
    uint32_t next;               /* next label of the same state */
    uint32_t behind;             /* label of the suffix without its first stage */
    uint16_t group, entry, first;
    uint16_t n; /* stages */
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
    double slack; /* pipelines within this part of the best are wanted, too */
    bool cut;     /* a label was dropped that no other dominates */
} Search;

/* --- costs --- */

static double span(const double *sum, uint32_t i, uint32_t j)
{
    KILTER_ASSERT(i <= j && sum[i] <= sum[j]);
    return sum[j] - sum[i];
}

/* The number of microbatches in flight on a stage with n stages behind it. */
static uint32_t in_flight(const JointProblem *p, SynthSchedule schedule, uint32_t n)
{
    switch (schedule) {
    case SCHEDULE_GPIPE:
        return p->n_microbatches;
    case SCHEDULE_1F1B:
        return MIN(p->n_microbatches, n + 1);
    case SCHEDULE_INTERLEAVED:
        return MIN(p->n_microbatches, 2 * n + 1);
    }
    g_assert_not_reached();
}

static bool fits(const JointEntry *e, uint32_t i, uint32_t j, uint32_t flying)
{
    return span(e->held, i, j) + e->work + flying * span(e->kept, i, j) <= e->capacity;
}

/* Seconds to cross the border in front of layer `at`, one way; every device of a group that shares
 * layers receives all bytes. */
static double transfer_s(const JointProblem *p, const JointGroup *from,
                         const JointEntry *sender, const JointGroup *to,
                         const JointEntry *receiver, uint32_t at, bool back)
{
    const double port = p->bandwidth * MIN(from->n_machines, to->n_machines);
    const double bytes = back ? p->returned[at] * sender->tp : p->sent[at] * receiver->tp;
    return bytes > 0 ? p->latency_s + bytes / port : 0;
}

/* A stage that may be put in front of a suffix of stages, but for its first layer. */
typedef struct {
    uint32_t group, entry;
    const JointEntry *e;
    uint32_t last;          /* the layer behind it */
    uint32_t flying;        /* microbatches in flight */
    double round_trips;     /* of microbatches through all stages behind, at most */
    double there_s, back_s; /* of the border behind it */
} Front;

static Front front_of(const JointProblem *p, const Label *l, const JointStage *stage,
                      uint32_t last, uint32_t flying, bool relaxed)
{
    const JointGroup *g = &p->group[stage->group];
    Front front = {.group = stage->group,
                   .entry = stage->entry,
                   .e = &g->entry[stage->entry],
                   .last = last,
                   .flying = flying,
                   .round_trips = floor((p->n_microbatches + flying - 1.0) / flying)};
    if (l->n > 0 && !relaxed) {
        const JointGroup *h = &p->group[l->group];
        const JointEntry *e = &h->entry[l->entry];
        front.there_s = transfer_s(p, g, front.e, h, e, last, false);
        front.back_s = transfer_s(p, g, front.e, h, e, last, true);
    }
    return front;
}

/* The longest of the chains through one stage, from its first forward to its last backward. */
static double own_pace_s(const JointProblem *p, const Front *front, double behind_s,
                         double f, double b)
{
    const double m = p->n_microbatches, in = front->flying - 1.0, both = f + b;
    const double most = front->round_trips;
    double pace = MAX(m * both, behind_s + m * both - in * MIN(f, b));
    if (most >= 2) {
        pace = MAX(pace, 2 * behind_s + (m - in) * both);
        pace = MAX(pace, most * behind_s + (m - (most - 1) * in) * both);
    }
    return pace;
}

/* The suffix with one more stage in front, from layer i on. */
static Label prepend(const JointProblem *p, const Label *l, const Front *front,
                     uint32_t i, bool relaxed)
{
    KILTER_ASSERT(i < front->last && front->last <= p->n_layers);
    const JointEntry *e = front->e;
    const double f = span(e->forward_s, i, front->last),
                 b = span(e->backward_s, i, front->last);
    const double behind = l->sum_s + front->there_s + front->back_s;
    Label made = {.next = NONE,
                  .group = (uint16_t)front->group,
                  .entry = (uint16_t)front->entry,
                  .first = (uint16_t)i,
                  .n = (uint16_t)(l->n + 1)};
    made.sum_s = behind + f + b;
    const double own =
        relaxed ? p->n_microbatches * (f + b) : own_pace_s(p, front, behind, f, b);
    const double others = l->pace_s + f + b + front->there_s + front->back_s;
    made.pace_s = MAX(MAX(others, own), made.sum_s);
    const double end = l->n > 0 ? l->end_s + f + front->there_s : 0;
    const double own_end =
        made.pace_s + (relaxed ? 0 : e->start_s + span(e->sync_s, i, front->last));
    made.end_s = MAX(end, own_end);
    return made;
}

/* The least seconds of the suffix completed by the layers before. */
static double least_s(const Search *s, const Label *l, uint32_t i, uint32_t state)
{
    if (i == 0)
        return l->end_s;
    if (s->states.left[state] <= 0)
        return INFINITY;
    const double rest = l->pace_s + s->least_s[i];
    const double all = s->p->n_microbatches * s->work[i] / s->states.left[state];
    return MAX(MAX(l->end_s, rest), all);
}

/* --- labels of a state --- */

static bool same_front(const Search *s, const Label *a, const Label *b)
{
    const JointGroup *g = &s->p->group[a->group], *h = &s->p->group[b->group];
    return s->o->relaxed || (g->n_machines >= h->n_machines &&
                             g->entry[a->entry].tp <= h->entry[b->entry].tp);
}

static bool dominates(const Search *s, const Label *a, const Label *b)
{
    return a->sum_s <= b->sum_s && a->pace_s <= b->pace_s && a->end_s <= b->end_s &&
           (a->n == b->n || s->o->relaxed) && same_front(s, a, b);
}

/* Whether the beam is full of labels that end no later. */
static bool is_beyond_beam(const Search *s, uint32_t head, const Label *made)
{
    uint32_t n = 0;
    for (uint32_t at = head; at != NONE; at = g_array_index(s->label, Label, at).next)
        n += g_array_index(s->label, Label, at).end_s <= made->end_s;
    return s->o->beam > 0 && n >= s->o->beam;
}

/* With a beam, drops the label that ends last if there are too many. */
static void drop_worst(Search *s, uint32_t *head)
{
    uint32_t n = 0, *worst = head;
    for (uint32_t *at = head; *at != NONE;
         at = &g_array_index(s->label, Label, *at).next, n++)
        if (g_array_index(s->label, Label, *at).end_s >
            g_array_index(s->label, Label, *worst).end_s)
            worst = at;
    if (n <= s->o->beam)
        return;
    *worst = g_array_index(s->label, Label, *worst).next;
    s->cut = true;
}

static void insert(Search *s, uint32_t layer, uint32_t state, const Label *made)
{
    uint32_t *head = &s->head[(size_t)layer * s->states.n + state];
    for (uint32_t at = *head; at != NONE;) {
        const Label *l = &g_array_index(s->label, Label, at);
        if (dominates(s, l, made))
            return;
        at = l->next;
    }
    if (is_beyond_beam(s, *head, made)) {
        s->cut = true;
        return;
    }
    for (uint32_t *at = head; *at != NONE;) {
        Label *l = &g_array_index(s->label, Label, *at);
        if (dominates(s, made, l))
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

/* Prepends all stages of a group that end before layer j to a label; `to`: the state that this leads
 * to. */
static void extend(Search *s, uint32_t from, uint32_t j, uint32_t group, uint32_t to)
{
    const JointGroup *g = &s->p->group[group];
    const Label l = g_array_index(s->label, Label, from);
    const uint32_t flying = in_flight(s->p, s->o->schedule, l.n);
    for (uint32_t e = 0; e < g->n_entries; e++) {
        const JointStage stage = {.group = group, .entry = e};
        const Front front = front_of(s->p, &l, &stage, j, flying, s->o->relaxed);
        for (uint32_t i = j; i-- > 0;) {
            if (!s->o->relaxed && !fits(&g->entry[e], i, j, flying))
                break; /* then more layers do not fit either */
            Label made = prepend(s->p, &l, &front, i, s->o->relaxed);
            made.behind = from;
            if (made.pace_s >= s->upper_s)
                break;
            if (least_s(s, &made, i, to) < s->upper_s)
                insert(s, i, to, &made);
            if (i == 0)
                s->upper_s = fmin(s->upper_s, made.end_s * s->slack);
        }
    }
}

/* Prepends all stages to a label of a state. */
static void extend_by_all(Search *s, uint32_t from, uint32_t j, uint32_t state)
{
    const uint32_t n = s->p->n_groups, *next = &s->states.next[(size_t)state * n];
    if (g_array_index(s->label, Label, from).n >= MOST_STAGES)
        return;
    for (uint32_t g = 0; g < n; g++)
        if (next[g] != JOINT_NO_STATE)
            extend(s, from, j, g, next[g]);
}

static bool is_over(const Search *s)
{
    return (s->o->most_labels > 0 && s->label->len >= s->o->most_labels) ||
           (s->o->deadline_us > 0 && g_get_monotonic_time() >= s->o->deadline_us);
}

static void run(Search *s)
{
    const JointProblem *p = s->p;
    const Label none = {.next = NONE, .behind = NONE, .first = (uint16_t)p->n_layers};
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
    double all = 0;
    for (uint32_t k = 0; k < p->n_kinds; k++) {
        double whole = 0;
        for (uint32_t l = 0; l < p->n_layers; l++)
            whole += p->least_s[k * p->n_layers + l];
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
            for (uint32_t e = 0; e < p->group[g].n_entries; e++) {
                const JointEntry *entry = &p->group[g].entry[e];
                fastest = fmin(fastest, span(entry->forward_s, l, l + 1) +
                                            span(entry->backward_s, l, l + 1));
            }
        s->work[l + 1] = s->work[l] + (isfinite(cheapest) ? cheapest : 0);
        s->least_s[l + 1] = s->least_s[l] + (isfinite(fastest) ? fastest : 0);
    }
}

double synth_joint_density_s(const JointProblem *p)
{
    g_autofree double *least = g_new0(double, p->n_layers + 1),
                      *work = g_new0(double, p->n_layers + 1),
                      *price = g_new0(double, p->n_kinds);
    Search s = {.p = p, .least_s = least, .work = work, .price = price};
    find_least(&s);
    return p->n_microbatches * work[p->n_layers];
}

/* --- what comes out --- */

void synth_joint_pipeline_clear(JointPipeline *pipeline)
{
    g_clear_pointer(&pipeline->stage, g_free);
}

static void clear_pipeline(void *data)
{
    synth_joint_pipeline_clear(data);
}

void synth_joint_result_clear(JointResult *result)
{
    g_clear_pointer(&result->best, g_array_unref);
}

static gint by_cost(gconstpointer a, gconstpointer b)
{
    const JointPipeline *x = a, *y = b;
    if (x->cost_s != y->cost_s)
        return x->cost_s < y->cost_s ? -1 : 1;
    return (x->n_stages > y->n_stages) - (x->n_stages < y->n_stages);
}

static void collect(const Search *s, JointResult *result)
{
    for (uint32_t state = 0; state < s->states.n; state++)
        for (uint32_t at = s->head[state]; at != NONE;
             at = g_array_index(s->label, Label, at).next) {
            const Label *l = &g_array_index(s->label, Label, at);
            JointPipeline made = {l->n, g_new(JointStage, l->n), s->o->schedule,
                                  l->end_s};
            for (uint32_t i = 0; i < made.n_stages; i++) {
                made.stage[i] = (JointStage){l->first, l->group, l->entry};
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
    for (uint32_t i = 0; i < result->best->len; i++) {
        const JointPipeline *made = &g_array_index(result->best, JointPipeline, i);
        const double formula = synth_joint_cost(s->p, made, s->o->relaxed);
        g_assert(fabs(formula - made->cost_s) <= 1e-9 * made->cost_s);
    }
}

void synth_joint_solve(const JointProblem *p, const JointOptions *options,
                       JointResult *result)
{
    static const double SLACK = 1.1; /* pipelines whose order the walk may change */
    g_assert(p->n_layers > 0 && p->n_layers < UINT16_MAX && options->n_best > 0);
    g_autofree double *least = g_new0(double, p->n_layers + 1),
                      *work = g_new0(double, p->n_layers + 1),
                      *price = g_new0(double, p->n_kinds);
    g_autoptr(GArray) label = g_array_new(FALSE, FALSE, sizeof(Label));
    Search s = {.p = p,
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
    joint_states_init(&s.states, p, price);
    const size_t n = ((size_t)p->n_layers + 1) * s.states.n;
    g_autofree uint32_t *head = g_new(uint32_t, n);
    memset(head, 0xff, n * sizeof *head);
    s.head = head;
    run(&s);
    result->best = g_array_new(FALSE, FALSE, sizeof(JointPipeline));
    g_array_set_clear_func(result->best, clear_pipeline);
    collect(&s, result);
    KILTER_WALK(walk_best(&s, result));
    result->exact = !s.cut;
    result->labels = label->len;
    joint_states_clear(&s.states);
}

bool synth_joint_fits(const JointProblem *p, const JointPipeline *pipeline)
{
    uint32_t j = p->n_layers, n = 0;
    for (uint32_t i = pipeline->n_stages; i-- > 0; n++) {
        const JointStage *stage = &pipeline->stage[i];
        if (!fits(&p->group[stage->group].entry[stage->entry], stage->first, j,
                  in_flight(p, pipeline->schedule, n)))
            return false;
        j = stage->first;
    }
    return true;
}

double synth_joint_cost(const JointProblem *p, const JointPipeline *pipeline,
                        bool relaxed)
{
    Label l = {.next = NONE};
    uint32_t j = p->n_layers;
    if (!relaxed && !synth_joint_fits(p, pipeline))
        return INFINITY;
    for (uint32_t i = pipeline->n_stages; i-- > 0;) {
        const JointStage *stage = &pipeline->stage[i];
        const Front front =
            front_of(p, &l, stage, j, in_flight(p, pipeline->schedule, l.n), relaxed);
        l = prepend(p, &l, &front, stage->first, relaxed);
        j = stage->first;
    }
    return l.end_s;
}
