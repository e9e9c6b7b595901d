/* Steps by layer, and which layers have equal steps. */
#include <string.h>

#include "data/base/order.h"
#include "synth/amp/steps.h"

/* --- where the steps of layers and gradients of steps begin --- */

static void index_steps(AmpSteps *steps, uint32_t n_layers)
{
    put_block(steps->first, g_new0(uint32_t, (size_t)AMP_PASSES * n_layers + 1));
    array_each (const AmpStep, step, steps->step)
        steps->first[step->pass * n_layers + step->layer + 1]++;
    for (uint32_t i = 0; i < AMP_PASSES * n_layers; i++)
        steps->first[i + 1] += steps->first[i];
}

static ORDER_DEFINE(by_step, AmpGradient, ASCENDING(step));

/* Sorts the gradients by step, once steps have their final numbers. */
static void sort_gradients(AmpSteps *steps)
{
    const uint32_t n = steps->step->len;
    g_array_sort(steps->gradient, by_step);
    put_block(steps->first_gradient, g_new0(uint32_t, n + 1));
    for (uint32_t i = 0; i < steps->gradient->len; i++)
        steps->first_gradient[g_array_index(steps->gradient, AmpGradient, i).step + 1]++;
    for (uint32_t i = 0; i < n; i++)
        steps->first_gradient[i + 1] += steps->first_gradient[i];
}

/* --- layers that are alike --- */

static bool same_times(const AmpModel *model, const AmpSteps *steps, uint32_t a,
                       uint32_t b)
{
    const uint32_t n = steps->step->len;
    const size_t rows = (size_t)model->n_types * model->n_degrees * model->n_sizes;
    for (size_t r = 0; r < rows; r++)
        if (steps->time_s[r * n + a] != steps->time_s[r * n + b])
            return false;
    return all_of(t, model->n_types,
                  steps->launch_s[(size_t)t * n + a] ==
                      steps->launch_s[(size_t)t * n + b]);
}

static bool same_gradients(const AmpSteps *steps, uint32_t a, uint32_t b)
{
    const uint32_t *first = steps->first_gradient;
    if (first[a + 1] - first[a] != first[b + 1] - first[b])
        return false;
    return all_of(k, first[a + 1] - first[a],
                  g_array_index(steps->gradient, AmpGradient, first[a] + k).kind ==
                      g_array_index(steps->gradient, AmpGradient, first[b] + k).kind);
}

/* Whether the steps of two layers in a pass, first[p] and first[q] on, are equal. */
static bool same_layers(const AmpModel *model, const AmpSteps *steps, uint32_t p,
                        uint32_t q)
{
    const uint32_t a = steps->first[p], b = steps->first[q];
    const uint32_t n = steps->first[p + 1] - a;
    bool same = n == steps->first[q + 1] - b;
    for (uint32_t i = 0; same && i < n; i++) {
        const AmpStep *x = &g_array_index(steps->step, AmpStep, a + i),
                      *y = &g_array_index(steps->step, AmpStep, b + i);
        const bool x_inside = x->after >= a && x->after < a + n,
                   y_inside = y->after >= b && y->after < b + n;
        same = x->is_message == y->is_message && x->waits == y->waits &&
               x->message == y->message &&
               (x->after == AMP_NO_STEP) == (y->after == AMP_NO_STEP) &&
               x_inside == y_inside && (!x_inside || x->after - a == y->after - b) &&
               same_times(model, steps, a + i, b + i) &&
               same_gradients(steps, a + i, b + i);
    }
    return same;
}

static void find_alike(const AmpModel *model, AmpSteps *steps)
{
    const uint32_t n_layers = model->n_layers;
    put_block(steps->like, g_new(uint32_t, AMP_PASSES * n_layers));
    for (uint32_t q = 0; q < AMP_PASSES * n_layers; q++) {
        uint32_t p = q - q % n_layers;
        while (p < q && (steps->like[p] != p || !same_layers(model, steps, p, q)))
            p++;
        steps->like[q] = p;
    }
}

void amp_steps_index(const AmpModel *model, AmpSteps *steps)
{
    index_steps(steps, model->n_layers);
    sort_gradients(steps);
    find_alike(model, steps);
}

/* --- times of layers --- */

/* Seconds of the ops of a layer in a pass, on a device that does nothing else: of their computation
 * or, if longer, of their launches. */
static double steps_pass_s(const AmpSteps *steps, const double *time_s,
                           const double *launch_s, uint32_t at)
{
    double computed = 0, launched = 0;
    for (uint32_t i = steps->first[at]; i < steps->first[at + 1]; i++)
        if (!g_array_index(steps->step, AmpStep, i).is_message) {
            computed += time_s[i];
            launched += launch_s[i];
        }
    return MAX(computed, launched);
}

void amp_steps_sum(const AmpSteps *steps, AmpModel *model)
{
    const uint32_t n = steps->step->len, n_layers = model->n_layers;
    const size_t rows = (size_t)model->n_types * model->n_degrees * model->n_sizes;
    for (size_t r = 0; r < rows; r++) {
        const size_t type = r / (model->n_degrees * model->n_sizes);
        for (uint32_t l = 0; l < n_layers; l++)
            for (AmpPass pass = AMP_FORWARD; pass < AMP_UPDATE; pass++)
                model->time_s[r * n_layers + l] +=
                    steps_pass_s(steps, steps->time_s + r * n, steps->launch_s + type * n,
                                 pass * n_layers + l);
    }
}

/* --- measured times --- */

/* Forward and backward become one step each; updates stay. */
void amp_steps_measured(const AmpModel *model, AmpSteps *steps)
{
    static const double FORWARD_PART = 1.0 / 3;
    const uint32_t n_layers = model->n_layers, old_n = steps->step->len;
    const uint32_t updates = steps->first[AMP_UPDATE * n_layers];
    const uint32_t kept = old_n - updates, n = 2 * n_layers + kept;
    const size_t rows = (size_t)model->n_types * model->n_degrees * model->n_sizes;
    double *time_s = g_new(double, rows *n),
           *launch_s = g_new0(double, (size_t)model->n_types *n);
    GArray *all = g_array_new(FALSE, FALSE, sizeof(AmpStep));
    for (uint32_t i = 0; i < 2 * n_layers; i++) {
        const AmpStep step = {.pass = i < n_layers ? AMP_FORWARD : AMP_BACKWARD,
                              .layer = i % n_layers,
                              .after = AMP_NO_STEP,
                              .op = GRAPH_NONE};
        g_array_append_val(all, step);
    }
    for (uint32_t i = updates; i < old_n; i++) {
        AmpStep step = g_array_index(steps->step, AmpStep, i);
        step.after = AMP_NO_STEP;
        g_array_append_val(all, step);
    }
    array_each (AmpGradient, gradient, steps->gradient) {
        const AmpStep *by = &g_array_index(steps->step, AmpStep, gradient->step);
        gradient->step = by->pass == AMP_UPDATE ? gradient->step - updates + 2 * n_layers
                                                : n_layers + by->layer;
    }
    for (size_t r = 0; r < rows; r++) {
        for (uint32_t l = 0; l < n_layers; l++) {
            const double whole_s = model->time_s[r * n_layers + l];
            time_s[r * n + l] = FORWARD_PART * whole_s;
            time_s[r * n + n_layers + l] = (1 - FORWARD_PART) * whole_s;
        }
        memcpy(time_s + r * n + 2 * n_layers, steps->time_s + r * old_n + updates,
               kept * sizeof *time_s);
    }
    g_array_unref(steps->step);
    g_free(steps->time_s);
    g_free(steps->launch_s);
    steps->step = all;
    steps->time_s = time_s;
    steps->launch_s = launch_s;
    amp_steps_index(model, steps);
}
