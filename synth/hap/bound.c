/* Bounds of boxes of ratios, and the quick bound: that of the box of all ratios. */
#include "synth/hap/bound.h"

#include <math.h>

#include "synth/hap/make.h"
#include "synth/hap/ration.h"

double *certifier_spread(const Certifier *c, const double *kind)
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

/* Raises the bound of a box. how: what SynthBox has beside ratios, the time to beat and the
 * deadline. */
static bool bound_box(const Certifier *c, CertifierBox *box, SynthBox how, GError **error)
{
    g_autofree double *lo = certifier_spread(c, box->lo),
                      *hi = certifier_spread(c, box->hi);
    how.lo = lo;
    how.hi = hi;
    how.largest = box->largest_lo;
    how.upper_s = c->upper_s;
    how.deadline_us = bound_deadline(c);
    g_auto(SynthBound) bound = {0};
    if (!synth_bound(c->answer->space, c->view, &how, &bound, error))
        return false;
    box->bound_s = fmax(box->bound_s, bound.bound_s);
    return true;
}

bool certifier_bound(const Certifier *c, CertifierBox *box, GError **error)
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

Certifier *certifier_new(const Question *question, Answer *answer)
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

void certifier_free(Certifier *c)
{
    g_array_free(c->boxes, TRUE);
    g_free(c->memory_s);
    device_kinds_clear(&c->kinds);
    g_free(c);
}

bool certifier_find_multipliers(Certifier *c, GError **error)
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

CertifierBox certifier_all(const Certifier *c)
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

void certifier_set_bound(Certifier *c, double bound_s)
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
    Certifier *c = certifier_new(question, answer);
    answer->plan->certificate = CERTIFICATE_NONE; /* no certificate was requested */
    if (!c)
        return true;
    double bound_s;
    const bool done = bound_at_once(c, &bound_s, error);
    if (done)
        certifier_set_bound(c, bound_s);
    certifier_free(c);
    return done;
}
