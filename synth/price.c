#include "synth/price.h"

#include <math.h>

/* Coefficients of a class: seconds per FLOP and per inner byte, replicated and sharded, and per message. */
typedef struct {
    double c[5];
} Coefficients;

static Coefficients coefficients_of(const Device *device, double share)
{
    static const SimWork unit[5] = {{.flops = 1},
                                    {.flops_sharded = 1},
                                    {.inner_bytes = 1},
                                    {.inner_bytes_sharded = 1},
                                    {.inner_messages = 1}};
    Coefficients k;
    for (uint32_t i = 0; i < 5; i++)
        k.c[i] = sim_work_s(&unit[i], device, share);
    return k;
}

static bool covers(const Coefficients *a, const Coefficients *b)
{
    for (uint32_t i = 0; i < 5; i++)
        if (a->c[i] < b->c[i])
            return false;
    return true;
}

void pricer_init(Pricer *pricer, const Graph *graph, const ClusterView *view,
                 const double *ratio)
{
    *pricer = (Pricer){.graph = graph, .view = view, .exact = true};
    Coefficients kept[PRICE_MAX_CLASSES];
    for (uint32_t j = 0; j < view->n_devices; j++) {
        pricer->max_share = fmax(pricer->max_share, ratio[j]);
        Coefficients k = coefficients_of(&view->device[j], ratio[j]);
        bool covered = false;
        for (uint32_t h = 0; h < pricer->n_classes && !covered; h++)
            covered = covers(&kept[h], &k);
        if (covered)
            continue;
        uint32_t n = 0;
        for (uint32_t h = 0; h < pricer->n_classes; h++)
            if (!covers(&k, &kept[h])) {
                kept[n] = kept[h];
                pricer->device[n] = pricer->device[h];
                pricer->share[n++] = pricer->share[h];
            }
        if (n == PRICE_MAX_CLASSES) {
            pricer->exact = false;
            n--;
        }
        kept[n] = k;
        pricer->device[n] = &view->device[j];
        pricer->share[n++] = ratio[j];
        pricer->n_classes = n;
    }
}

Times price_work(const Pricer *pricer, const SimWork *work)
{
    Times times = {{0}};
    for (uint32_t h = 0; h < pricer->n_classes; h++)
        times.s[h] = sim_work_s(work, pricer->device[h], pricer->share[h]);
    return times;
}

Times price_rule(const Pricer *pricer, OpId op, const Rule *rule)
{
    SimWork work = {0};
    sim_work_op(pricer->graph, op, rule, &work);
    return price_work(pricer, &work);
}

double times_max(const Pricer *pricer, const Times *a)
{
    double max = 0;
    for (uint32_t h = 0; h < pricer->n_classes; h++)
        max = fmax(max, a->s[h]);
    return max;
}

double times_max_difference(const Pricer *pricer, const Times *a, const Times *b)
{
    double max = -INFINITY;
    for (uint32_t h = 0; h < pricer->n_classes; h++)
        max = fmax(max, a->s[h] - b->s[h]);
    return max;
}

void times_add(const Pricer *pricer, Times *sum, const Times *a)
{
    for (uint32_t h = 0; h < pricer->n_classes; h++)
        sum->s[h] += a->s[h];
}

bool price_can_hold(const Graph *graph, TensorId tensor, Form form)
{
    const Tensor *t = graph_tensor(graph, tensor);
    if (form_is_gather(form))
        return form_dim(form) < t->rank && t->units[form_dim(form)] > 1;
    return form != FORM_REDUCE || t->dtype != DTYPE_I64;
}

FormSet price_forms(const Graph *graph, TensorId tensor)
{
    FormSet forms = 0;
    for (Form form = 0; form < FORM_MAX; form++)
        if (price_can_hold(graph, tensor, form))
            forms |= (FormSet)(1u << form);
    return forms;
}

static double step_total(const Pricer *pricer, const Step *step)
{
    return step->comm_s + times_max(pricer, &step->inner);
}

bool price_convert(const Pricer *pricer, TensorId tensor, FormSet held, Form to,
                   Collective *kind, Form *from, Step *step)
{
    double bytes = (double)tensor_bytes(graph_tensor(pricer->graph, tensor)),
           best = INFINITY;
    Step chosen = {0};
    if (!price_can_hold(pricer->graph, tensor, to))
        return false;
    for (Form source = 0; source < FORM_MAX; source++)
        for (Collective c = 0; (held >> source & 1u) && c < COLLECTIVES; c++) {
            if (!collective_converts(c, source, to))
                continue;
            Step one = {.closes = (int)c < COLLECTIVES_PRICED};
            SimWork work = {0};
            sim_work_collective(pricer->graph, c, tensor, source, to, &work);
            one.inner = price_work(pricer, &work);
            one.comm_s = sim_collective_s(pricer->view, c, bytes, pricer->max_share,
                                          pricer->max_share);
            double total = step_total(pricer, &one);
            if (total < best) {
                best = total;
                chosen = one;
                *kind = c;
                *from = source;
            }
        }
    if (best == INFINITY)
        return false;
    step->closes |= chosen.closes;
    step->comm_s += chosen.comm_s;
    times_add(pricer, &step->inner, &chosen.inner);
    return true;
}

bool price_reach(const Pricer *pricer, TensorId tensor, FormSet *held, FormSet wanted,
                 Step *step, PriceEach each, void *data)
{
    for (Form to = 0; to < FORM_MAX; to++) {
        if (!(wanted >> to & 1u) || (*held >> to & 1u))
            continue;
        Collective kind;
        Form from;
        if (!price_convert(pricer, tensor, *held, to, &kind, &from, step))
            return false;
        if (each)
            each(kind, tensor, from, to, data);
        *held |= (FormSet)(1u << to);
    }
    return true;
}
