/* The report of kilter profile. */
#include "experiments/cli/profile_report.h"

#include <stdio.h>

GArray *profile_kernel_rates(const GArray *measurements)
{
    KernelRate of[OP_KINDS] = {0};
    for (uint32_t i = 0; i < measurements->len; i++) {
        const Measurement *m = &g_array_index(measurements, Measurement, i);
        if (m->op == OP_KINDS || m->share <= 0) /* no work, but whole operands */
            continue;
        KernelRate *rate = &of[m->op];
        rate->shapes++;
        rate->rate = MAX(rate->rate, m->flops / m->median_s);
        rate->bandwidth = MAX(rate->bandwidth, m->bytes / m->median_s);
    }
    GArray *rates = g_array_new(FALSE, FALSE, sizeof(KernelRate));
    for (uint32_t kind = 0; kind < OP_KINDS; kind++) {
        of[kind].kind = (OpKind)kind;
        if (of[kind].shapes > 0)
            g_array_append_val(rates, of[kind]);
    }
    return rates;
}

void profile_print_rates(const GArray *rates, const ExecLimits *limits)
{
    g_autofree char *rate = units_format(limits->rate, QUANTITY_RATE);
    g_autofree char *bandwidth = units_format(limits->bandwidth, QUANTITY_BANDWIDTH);
    printf("  limits of a rank: %s in a product of matrices of %u, %s in a sum of %u "
           "numbers (caches have more)\n",
           rate, limits->extent, bandwidth, limits->elements);
    printf("  %-24s %6s  %14s %6s  %12s %6s\n", "op, at its best", "shapes", "FLOP/s",
           "limit", "bytes/s", "limit");
    for (uint32_t i = 0; i < rates->len; i++) {
        const KernelRate *r = &g_array_index(rates, KernelRate, i);
        g_autofree char *flops = units_format(r->rate, QUANTITY_RATE);
        g_autofree char *bytes = units_format(r->bandwidth, QUANTITY_BANDWIDTH);
        printf("  %-24s %6u  %14s %4.0f %%  %12s %4.0f %%\n", op_kind_name(r->kind),
               r->shapes, flops, 100 * r->rate / limits->rate, bytes,
               100 * r->bandwidth / limits->bandwidth);
    }
}

json_t *profile_rates_json(const GArray *rates, const ExecLimits *limits)
{
    json_t *kernels = json_array();
    for (uint32_t i = 0; i < rates->len; i++) {
        const KernelRate *r = &g_array_index(rates, KernelRate, i);
        json_array_append_new(
            kernels,
            json_pack("{s:s, s:i, s:f, s:f, s:f, s:f}", "kind", op_kind_name(r->kind),
                      "shapes", (int)r->shapes, "flops_per_s", r->rate, "of_limit",
                      r->rate / limits->rate, "bytes_per_s", r->bandwidth, "of_bandwidth",
                      r->bandwidth / limits->bandwidth));
    }
    return json_pack("{s:{s:f, s:f}, s:o}", "limits", "flops_per_s", limits->rate,
                     "bytes_per_s", limits->bandwidth, "kernels", kernels);
}
