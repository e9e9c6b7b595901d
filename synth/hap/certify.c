/* A lower bound on the joint optimum of program and ratios: min over Q and B of t(Q, B), over pairs
 * that fit the memory.
 *
 * Branch and bound on boxes of ratios. Equal devices have equal ratios (for a fixed program t is
 * convex in B and symmetric in them, so averaging never hurts): a box has one interval per kind of
 * device. synth_bound() bounds every program at every ratio in a box; the smallest bound over boxes
 * that cover everything is the certificate. The box with the smallest bound is halved until the gap
 * to the plan is small enough: by its largest ratio, since collectives that pad their parts take as
 * long as the largest one, and a limit on it leaves work to the slower devices; or along the kind
 * whose shares leave most seconds open, where that gained more.
 *
 * Memory is a constraint with Lagrangian multipliers, one per kind of device and point. For any
 * multipliers >= 0
 *
 *     min t over plans that fit  >=  min over Q, B of  t + sum_j lambda_j (bytes_j - memory_j)
 *
 * The box of all ratios has the best multipliers that are equal for all devices, and its parts
 * inherit them. The gap that multipliers leave is closed by the aggregate constraint
 * (SynthBox.tolerance).
 *
 * Boxes also show where better plans are: programs that attain the bound of a box are tried; or,
 * where memory does not matter, hap sometimes starts from the middle of the box with the smallest
 * bound. */
#include "data/base/free.h"
#include "synth/answer/answer.h"
#include "synth/hap/make.h"
#include "synth/hap/ration.h"

#include <math.h>
#include <string.h>

/* --- bounds --- */

enum { CERTIFIER_MAX_KINDS = 256 };

static const double ROUNDING = 1e-9; /* of bounds and ratios */

/* An interval of ratios for each kind of device, and one of their largest: collectives take as long
 * as the largest ratio, and a limit on it says how much work the slower devices must take. */
typedef struct {
    double lo[CERTIFIER_MAX_KINDS], hi[CERTIFIER_MAX_KINDS];
    double largest_lo, largest_hi;
    /* halvings of the largest ratio's interval since one raised the bound */
    uint32_t idle;
    double bound_s;
    SynthBytes bytes[SYNTH_POINTS]; /* of a program in the box, where memory is limited */
} CertifierBox;

/* Ways to halve a box. */
typedef enum { HALVE_LARGEST, HALVE_KIND, HALVINGS } CertifierHalving;

typedef struct {
    const Question *question;
    Answer *answer;
    const ClusterView *view;
    Plan *plan;     /* the answer's */
    double upper_s; /* the least time before rounding of all plans seen */
    /* the part of the plan's time that is in proportion to the largest ratio */
    double largest_part;
    /* multipliers of memory (SynthOptions.memory_s); NULL: memory does not matter */
    double *memory_s;
    double gain
        [HALVINGS]; /* what each way has raised bounds by, relatively; INFINITY: not tried */
    bool open_at_point; /* memory leaves the gap open at the plan's own ratios */
    DeviceKinds kinds;
    GArray *boxes; /* CertifierBox; together they cover all ratios */
} Certifier;

/* Spreads one value per kind to all devices. Caller frees. */
static double *certifier_spread(const Certifier *c, const double *kind)
{
    double *device = g_new(double, c->view->n_devices);
    for (uint32_t j = 0; j < c->view->n_devices; j++)
        device[j] = fmax(0, kind[c->kinds.of[j]]);
    return device;
}

/* A search that spends its budget leaves none for the bound, which takes a small part of its time:
 * that may take a second, or a tenth of the budget, more. */
static gint64 bound_deadline(const Certifier *c)
{
    if (c->answer->deadline_us == 0)
        return 0;
    const double more_s = fmax(1, c->question->options->budget_s / 10);
    return MAX(c->answer->deadline_us,
               g_get_monotonic_time() + (gint64)(more_s * G_USEC_PER_SEC));
}

/* Raises the bound of a box. how: what SynthBox has beside ratios. */
static bool raise_bound(const Certifier *c, CertifierBox *box, SynthBox how,
                        SynthBound *bound, GError **error)
{
    g_autofree double *lo = certifier_spread(c, box->lo),
                      *hi = certifier_spread(c, box->hi);
    how.lo = lo;
    how.hi = hi;
    how.largest = box->largest_lo;
    if (!synth_bound(c->answer->space, c->view, &how, bound, error))
        return false;
    box->bound_s = fmax(box->bound_s, bound->bound_s);
    return true;
}

/* The same; how: without the time to beat and the deadline, too. */
static bool bound_box(const Certifier *c, CertifierBox *box, SynthBox how, GError **error)
{
    g_auto(SynthBound) bound = {0};
    how.upper_s = c->upper_s;
    how.deadline_us = bound_deadline(c);
    return raise_bound(c, box, how, &bound, error);
}

/* Raises a box's bound to the bound without regard to memory. */
static bool certifier_bound(const Certifier *c, CertifierBox *box, GError **error)
{
    return bound_box(c, box, (SynthBox){0}, error);
}

/* The same with memory charged for, which is cheaper than limiting it. */
static bool bound_charged(const Certifier *c, CertifierBox *box, GError **error)
{
    static const double tolerance = 5e-3; /* finer ones take long and gain little */
    const SynthBox charged = {.memory_s = c->memory_s,
                              .tolerance = tolerance,
                              .effort = c->question->options->effort};
    return bound_box(c, box, charged, error);
}

/* The part of the plan's time before rounding that is in proportion to the largest ratio: padded
 * collectives. 1 if it is not known. */
static double largest_part(const Plan *plan, const Question *question)
{
    if (!program_is_spmd(plan->program))
        return 1;
    const ClusterView *view = question->view;
    g_autoptr(SimLinear) linear =
        sim_linear(plan->program, question->graph, view, plan->segment, 0);
    g_autofree double *share = sim_shares(linear, view, plan->ratio);
    double largest = 0, seconds = 0;
    for (uint32_t j = 0; j < view->n_devices; j++)
        largest = fmax(largest, plan->ratio[j]);
    for (uint32_t t = 0; t < linear->n_terms; t++)
        seconds += linear->term[t].seconds * largest;
    return seconds / sim_linear_time(linear, view, share, NULL, NULL);
}

/* NULL where nothing can be proved; the reason is in plan->certificate. */
static Certifier *certifier_new(const Question *question, Answer *answer)
{
    Plan *plan = answer->plan;
    g_autofree Certifier *c = g_new0(Certifier, 1);
    c->question = question;
    c->answer = answer;
    c->view = question->view;
    c->plan = plan;
    c->upper_s = plan->fractional_time_s;
    if (answer->seen_s > 0)
        c->upper_s = fmin(c->upper_s, answer->seen_s);
    const bool kinds = device_kinds(c->view, CERTIFIER_MAX_KINDS, &c->kinds);
    if (plan->bucket_bytes > 0 || !kinds) {
        plan->certificate = kinds ? CERTIFICATE_BUCKETS : CERTIFICATE_KINDS;
        device_kinds_clear(&c->kinds);
        return NULL;
    }
    c->gain[HALVE_LARGEST] = c->gain[HALVE_KIND] = INFINITY;
    c->largest_part = largest_part(plan, question);
    c->boxes = g_array_new(FALSE, FALSE, sizeof(CertifierBox));
    return g_steal_pointer(&c);
}

OWN_FREE_DEFINE(certifier_free, Certifier, c, g_array_unref(c->boxes),
                g_free(c->memory_s), device_kinds_clear(&c->kinds));

/* Sets multipliers at the plan's ratios, if memory matters there. */
static bool certifier_find_multipliers(Certifier *c, GError **error)
{
    uint32_t n = SYNTH_POINTS * c->view->n_devices;
    g_autofree double *memory_s = g_new(double, n);
    SynthBox here = {.lo = c->plan->ratio,
                     .hi = c->plan->ratio,
                     .upper_s = c->upper_s,
                     .deadline_us = c->answer->deadline_us};
    double sum = 0;
    if (!ration_multipliers(c->answer->space, c->view, &here, memory_s, error))
        return false;
    for (uint32_t i = 0; i < n; i++)
        sum += memory_s[i];
    if (sum > 0)
        c->memory_s = g_steal_pointer(&memory_s);
    return true;
}

/* The box of all ratios. */
static CertifierBox certifier_all(const Certifier *c)
{
    CertifierBox all = {.largest_lo = 1.0 / c->view->n_devices};
    for (uint32_t k = 0; k < c->kinds.n; k++) {
        all.hi[k] = 1.0 / c->kinds.count[k];
        all.largest_hi = fmax(all.largest_hi, all.hi[k]);
    }
    return all;
}

/* The space of plans that the bound is over, in words. Caller frees. */
static char *bound_over(const Question *question, bool fits)
{
    static const char *const exchange[] = {
        [EXCHANGES_BOTH] = "",
        [EXCHANGES_PADDED] = ", by padded collectives",
        [EXCHANGES_GROUPED] = ", by grouped collectives",
    };
    const uint32_t n = question->cluster->n_devices;
    g_autofree char *all = g_strdup_printf("all %u devices", n);
    return g_strdup_printf(
        "programs of one microbatch on %s%s%s%s%s%s", n > 1 ? all : "the only device",
        question->pins ? " that keep the pins" : "", fits ? ", within the memory" : "",
        question->options->strategy.recompute ? ", with any layers recomputed" : "",
        exchange[question->options->collectives],
        n > 1 ? ", at any ratios, before rounding; fewer devices or a pipeline may be "
                "faster"
              : "");
}

/* Sets the plan's bound and the words for its space of plans. */
static void certifier_set_bound(Certifier *c, double bound_s)
{
    Plan *plan = c->plan;
    plan->lower_bound_s = bound_s;
    g_free(plan->bound_over);
    plan->bound_over =
        plan->lower_bound_s > 0 ? bound_over(c->question, c->memory_s != NULL) : NULL;
}

/* Where memory decided the plan: bounds the box of all ratios with the charge with which the plan
 * was found, or with the best one at its ratios. */
static bool charge(Certifier *c, CertifierBox *all, GError **error)
{
    const double *found = c->answer->memory_s;
    if (found)
        c->memory_s = g_memdup2(found, SYNTH_POINTS * c->view->n_devices * sizeof *found);
    return (found || certifier_find_multipliers(c, error)) &&
           (!c->memory_s || bound_charged(c, all, error));
}

/* The bound of all ratios. A bound that ignores memory is never above the fastest program's time,
 * whether that fits or not, so it is not computed where the bound with a charge for memory is above
 * that time. */
static bool bound_at_once(Certifier *c, double *bound_s, GError **error)
{
    const Question *question = c->question;
    const double misfit_s = c->answer->misfit_s;
    const bool charged =
        misfit_s > 0 && c->plan->feasible && !question->options->strategy.recompute;
    const SynthBox how = {.effort = question->options->effort};
    CertifierBox all = certifier_all(c);
    if ((charged && !charge(c, &all, error)) ||
        ((!charged || all.bound_s < misfit_s) && !bound_box(c, &all, how, error)))
        return false;
    *bound_s = all.bound_s;
    return true;
}

bool hap_bound(const Question *question, Answer *answer, GError **error)
{
    g_autoptr(Certifier) c = certifier_new(question, answer);
    answer->plan->certificate = CERTIFICATE_NONE; /* no certificate was requested */
    double bound_s;
    if (!c)
        return true;
    if (!bound_at_once(c, &bound_s, error))
        return false;
    certifier_set_bound(c, bound_s);
    return true;
}

/* Cuts off what cannot sum to 1; false if nothing is left. */
static bool tighten(const Certifier *c, CertifierBox *box)
{
    static const double rounding = 1e-12;
    double lo = 0, hi = 0, largest = 0;
    for (uint32_t k = 0; k < c->kinds.n; k++) {
        box->hi[k] = fmin(box->hi[k], box->largest_hi);
        box->largest_lo = fmax(box->largest_lo, box->lo[k]);
        largest = fmax(largest, box->hi[k]);
        if (box->lo[k] > box->hi[k] * (1 + rounding))
            return false;
        box->lo[k] = fmin(box->lo[k], box->hi[k]);
        lo += c->kinds.count[k] * box->lo[k];
        hi += c->kinds.count[k] * box->hi[k];
    }
    if (lo > 1 + rounding || hi < 1 - rounding ||
        largest < box->largest_lo * (1 - rounding))
        return false;
    values_at (double, n, k, c->kinds.count, c->kinds.n) {
        double low = box->lo[k], high = box->hi[k];
        const double least = fmax(low, (1 - (hi - n * high)) / n),
                     most = fmin(high, (1 - (lo - n * low)) / n);
        box->lo[k] = fmin(least, most); /* rounding may turn a narrow box round */
        box->hi[k] = fmax(least, most);
    }
    return true;
}

/* The bound to reach: within the gap of the rounded plan or, where rounding costs more than three
 * quarters of the gap, of the plan before rounding. */
static double wanted(const Certifier *c)
{
    double gap = c->question->options->certify;
    double rounded_s = c->plan->iteration_time_s / (1 + gap) * (1 + ROUNDING);
    return rounded_s <= c->upper_s / (1 + gap / 4)
               ? rounded_s
               : c->upper_s / (1 + gap) * (1 + ROUNDING);
}

static bool is_closed(const Certifier *c, double bound_s)
{
    return bound_s >= wanted(c) * (1 - ROUNDING);
}

static double middle_of(const CertifierBox *box, uint32_t k)
{
    return (fmax(0, box->lo[k]) + box->hi[k]) / 2;
}

/* Takes a plan from these programs or, if there are none, from the middle of a box, if it is
 * better. */
static bool certify_improve(Certifier *c, const CertifierBox *box,
                            const GPtrArray *programs, GError **error)
{
    double middle[CERTIFIER_MAX_KINDS], sum = 0;
    for (uint32_t k = 0; k < c->kinds.n; k++) {
        middle[k] = middle_of(box, k);
        sum += c->kinds.count[k] * middle[k];
    }
    for (uint32_t k = 0; k < c->kinds.n; k++)
        middle[k] /= sum;
    g_autofree double *ratio = certifier_spread(c, middle);
    if (!hap_improve(c->question, c->answer, ratio, programs, error))
        return false;
    c->upper_s = fmin(c->upper_s, c->plan->fractional_time_s);
    if (c->answer->seen_s > 0)
        c->upper_s = fmin(c->upper_s, c->answer->seen_s);
    return true;
}

/* The kind whose devices lack the most memory for the known program in the middle of the box. */
static uint32_t fullest_kind(const Certifier *c, const CertifierBox *box)
{
    double most[CERTIFIER_MAX_KINDS];
    uint32_t fullest = 0;
    for (uint32_t k = 0; k < c->kinds.n; k++)
        most[k] = -INFINITY;
    for (uint32_t i = 0; i < SYNTH_POINTS * c->view->n_devices; i++) {
        uint32_t j = i % c->view->n_devices, k = c->kinds.of[j];
        const SynthBytes *b = &box->bytes[i / c->view->n_devices];
        const Device *device = &c->view->device[j];
        double share = middle_of(box, k);
        most[k] =
            fmax(most[k], b->held + b->held_sharded * share +
                              (b->divided + b->divided_sharded * share) / device->gpus -
                              (double)device->memory_bytes);
    }
    for (uint32_t k = 1; k < c->kinds.n; k++)
        fullest = most[k] > most[fullest] ? k : fullest;
    return fullest;
}

/* The multipliers of a box; where one kind exceeds its part everywhere in the box, that kind gets
 * the multipliers of all devices together. Caller frees. */
static double *charge_box(const Certifier *c, const CertifierBox *box)
{
    uint32_t n = c->view->n_devices, kind = fullest_kind(c, box);
    if (box->lo[kind] * n < 1 - ROUNDING)
        return g_memdup2(c->memory_s, SYNTH_POINTS * n * sizeof *c->memory_s);
    double *memory_s = g_new0(double, SYNTH_POINTS *n);
    for (uint32_t i = 0; i < SYNTH_POINTS * n; i++)
        if (c->kinds.of[i % n] == kind)
            memory_s[i] = c->memory_s[i] * n / c->kinds.count[kind];
    return memory_s;
}

/* Whether no kind's shares differ by more than a part of an even share. */
static bool is_narrow(const Certifier *c, const CertifierBox *box, double part)
{
    return !any_of(k, c->kinds.n, (box->hi[k] - box->lo[k]) * c->view->n_devices > part);
}

/* Raises the bound of a box by limiting memory, and looks for better plans there. */
static bool ration(Certifier *c, CertifierBox *box, bool look, GError **error)
{
    static const double narrow = 0.06; /* a smaller box has hardly a better bound */
    /* In a narrow box the gap is due to the limit on labels, not to ratios, so it gets more
     * labels. Few programs differ in a box. */
    enum { PROGRAMS = 4, LABELS = 1500, MANY = 8000 };
    if (is_closed(c, box->bound_s) || answer_is_late(c->answer))
        return true;
    g_autofree double *charge = charge_box(c, box);
    const SynthBox how = {.upper_s = wanted(c),
                          .memory_s = charge,
                          .rationed = true,
                          .labels = is_narrow(c, box, narrow) ? MANY : LABELS,
                          .tolerance = c->question->options->certify,
                          .n_programs = look ? PROGRAMS : 0,
                          .deadline_us = c->answer->deadline_us};
    g_auto(SynthBound) bound = {0};
    if (!raise_bound(c, box, how, &bound, error))
        return false;
    memcpy(box->bytes, bound.bytes, sizeof box->bytes);
    return !look || certify_improve(c, box, bound.programs, error);
}

/* Bounds a box and keeps it, unless it is empty. */
static bool add_box(Certifier *c, CertifierBox box, bool look, GError **error)
{
    if (!tighten(c, &box))
        return true;
    if (c->memory_s ? !ration(c, &box, look, error) : !certifier_bound(c, &box, error))
        return false;
    g_array_append_val(c->boxes, box);
    return true;
}

static uint32_t least_box(const Certifier *c)
{
    uint32_t least = 0;
    for (uint32_t i = 1; i < c->boxes->len; i++)
        if (g_array_index(c->boxes, CertifierBox, i).bound_s <
            g_array_index(c->boxes, CertifierBox, least).bound_s)
            least = i;
    return least;
}

/* The kind whose ratios leave most seconds open. Devices of rate 0 have the ratio 0. */
static uint32_t widest_kind(const Certifier *c, const CertifierBox *box)
{
    uint32_t widest = 0;
    double width = -1;
    for (uint32_t k = 0; k < c->kinds.n; k++) {
        const double rate = c->view->device[c->kinds.first[k]].rate,
                     open = (box->hi[k] - box->lo[k]) / rate;
        if (rate > 0 && open > width) {
            width = open;
            widest = k;
        }
    }
    return widest;
}

/* Whether to halve the interval of the largest ratio: while it leaves more of the bound open than
 * the gap allows, by the plan's collectives or those of another program, and halving it has not
 * been in vain. Once it is narrow, only if that has gained more than halving the ratios of a
 * kind. */
static bool is_by_largest(const Certifier *c, const CertifierBox *box)
{
    enum { IN_VAIN = 3 };
    static const double open = 0.3, /* part of the gap; the rest is for computation */
        another = 0.1,              /* part of the time in which another program's run */
        alike = 0.9;
    const double narrowness = box->largest_lo / box->largest_hi,
                 part = fmax(c->largest_part, another) * (1 - narrowness);
    return box->idle < IN_VAIN && part > open * c->question->options->certify &&
           (narrowness < alike || c->gain[HALVE_LARGEST] >= c->gain[HALVE_KIND]);
}

/* Adds both halves of a box; either may be empty. The gain of a way to halve is the mean of its
 * latest gains: the geometric mean over both halves of what the bound rose by. */
static bool add_halves(Certifier *c, CertifierBox half[2], CertifierHalving way,
                       bool look, GError **error)
{
    static const double visible = 1e-6, weight = 0.3;
    const double before_s = half[0].bound_s;
    double product = 1;
    for (uint32_t i = 0; i < 2; i++) {
        const uint32_t n = c->boxes->len;
        if (!add_box(c, half[i], look, error))
            return false;
        double gain = c->question->options->certify; /* of an empty half */
        if (c->boxes->len > n) {
            CertifierBox *box = &g_array_index(c->boxes, CertifierBox, n);
            gain = box->bound_s / before_s - 1;
            box->idle = gain > visible ? 0 : box->idle + (way == HALVE_LARGEST);
        }
        product *= fmax(gain, visible);
    }
    c->gain[way] = isfinite(c->gain[way])
                       ? (1 - weight) * c->gain[way] + weight * sqrt(product)
                       : sqrt(product);
    return true;
}

static bool certify_split(Certifier *c, uint32_t index, bool look, GError **error)
{
    CertifierBox box = g_array_index(c->boxes, CertifierBox, index);
    g_array_remove_index_fast(c->boxes, index);
    if (is_by_largest(c, &box)) {
        CertifierBox half[2] = {box, box};
        half[0].largest_hi = half[1].largest_lo = sqrt(box.largest_lo * box.largest_hi);
        return add_halves(c, half, HALVE_LARGEST, look, error);
    }
    const uint32_t widest = widest_kind(c, &box);
    CertifierBox half[2] = {box, box};
    half[0].hi[widest] = half[1].lo[widest] = (box.lo[widest] + box.hi[widest]) / 2;
    return add_halves(c, half, HALVE_KIND, look, error);
}

/* Where a budget limits the time, the number of boxes only limits the memory. */
static uint32_t most_boxes(const PlannerOptions *options)
{
    enum { MORE = 25, MOST = 1000000 };
    return options->budget_s > 0 ? MIN(options->boxes, MOST / MORE) * MORE
                                 : options->boxes;
}

/* Bounds the plan's own ratios, and looks for better plans there. Where that bound is clearly too
 * low, it is multipliers of memory that leave the gap open, not ratios. */
static bool bound_point(Certifier *c, GError **error)
{
    static const double clearly = 0.25; /* of the gap */
    const double factor = 1 + clearly * c->question->options->certify;
    CertifierBox point = {0};
    for (uint32_t k = 0; k < c->kinds.n; k++) {
        point.lo[k] = point.hi[k] = c->plan->ratio[c->kinds.first[k]];
        point.largest_lo = fmax(point.largest_lo, point.lo[k]);
    }
    point.largest_hi = point.largest_lo;
    if (!ration(c, &point, true, error))
        return false;
    c->open_at_point =
        !answer_is_late(c->answer) && !is_closed(c, point.bound_s * factor);
    return true;
}

/* Halves boxes until the gap is small enough, or says why it is not. */
static bool close_gap(Certifier *c, GError **error)
{
    static const double point = 0.01; /* the rest of the gap does not come from ratios */
    for (uint32_t n = 1;; n += 2) {
        uint32_t least = least_box(c);
        const CertifierBox *box = &g_array_index(c->boxes, CertifierBox, least);
        double bound_s = box->bound_s;
        c->plan->certificate =
            is_closed(c, bound_s) ? CERTIFICATE_REACHED
            : answer_is_late(c->answer)
                ? c->open_at_point ? CERTIFICATE_MEMORY : CERTIFICATE_BUDGET
            : c->question->options->segments || c->plan->n_segments > 1
                ? CERTIFICATE_SEGMENTS
            : c->memory_s && is_narrow(c, box, point)  ? CERTIFICATE_MEMORY
            : n + 2 > most_boxes(c->question->options) ? CERTIFICATE_BOXES
                                                       : CERTIFICATE_NONE;
        if (c->plan->certificate != CERTIFICATE_NONE)
            return true;
        bool look =
            (n & (n + 1)) == 0; /* more and more rarely: after 1, 3, 7, 15, ... boxes */
        if ((look && !c->memory_s &&
             !certify_improve(c, &g_array_index(c->boxes, CertifierBox, least), NULL,
                              error)) ||
            !certify_split(c, least, look, error))
            return false;
    }
}

/* Begins with the box of all ratios. */
static bool add_all(Certifier *c, GError **error)
{
    CertifierBox all = certifier_all(c);
    if (!certifier_bound(c, &all, error))
        return false;
    if (!is_closed(c, all.bound_s) &&
        (!certifier_find_multipliers(c, error) ||
         (c->memory_s && (!ration(c, &all, false, error) || !bound_point(c, error)))))
        return false;
    g_array_append_val(c->boxes, all);
    return true;
}

/* Finds the least time that the search can reach, for planners that make only one plan, so that
 * their distance from the best is known. */
static bool see_best(const Question *question, Answer *answer, GError **error)
{
    if (planner_can(question->planner, PLANNER_SEARCHES))
        return true;
    PlannerOptions options = *question->options;
    options.ratios = g_intern_static_string("own");
    options.mix = NULL;
    options.search = SEARCH_EXACT;
    Question other = *question;
    other.options = &options;
    g_autoptr(Plan) plan = plan_new();
    return answer_make(answer, &other, plan, hap_make, error);
}

/* Why a plan is not within the gap although the bound was reached. */
static Certificate why_slower(const Plan *plan, const Question *question)
{
    return planner_can(question->planner, PLANNER_SEARCHES) ||
                   plan->fractional_time_s <=
                       plan->lower_bound_s * (1 + question->options->certify)
               ? CERTIFICATE_ROUNDING
               : CERTIFICATE_PLANNER;
}

bool hap_certify(const Question *question, Answer *answer, GError **error)
{
    Plan *plan = answer->plan;
    if (!see_best(question, answer, error))
        return false;
    g_autoptr(Certifier) c = certifier_new(question, answer);
    if (!c)
        return true;
    if (!add_all(c, error) || !close_gap(c, error))
        return false;
    certifier_set_bound(c, g_array_index(c->boxes, CertifierBox, least_box(c)).bound_s);
    if (plan->certificate == CERTIFICATE_REACHED &&
        plan->iteration_time_s > plan->lower_bound_s * (1 + question->options->certify))
        plan->certificate = why_slower(plan, question);
    return true;
}
