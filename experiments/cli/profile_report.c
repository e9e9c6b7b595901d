/* The report of kilter profile. */
#include "experiments/cli/profile_report.h"

#include "data/measured/measurement.h"

GArray *profile_kernel_rates(const GArray *measurements)
{
    KernelRate of[OP_KINDS] = {0};
    for (uint32_t i = 0; i < measurements->len; i++) {
        const Measurement *m = &g_array_index(measurements, Measurement, i);
        if (m->op == OP_KINDS ||
            m->share <= 0) /* no rate: collectives, ranks without work */
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

/* clang-format off */
const char PROFILE_REPORT_TEXT[] =
    "{output}: {ops} shapes of ops, {collectives} of collectives on {ranks} ranks\n"
    "  limits of a rank: {limits.flops_per_s:rate} in a product of matrices of {limits.extent}, "
    "{limits.bytes_per_s:bandwidth} in a sum of {limits.elements} numbers (caches have more)\n"
    "  op, at its best          shapes          FLOP/s  limit       bytes/s  limit\n"
    "[*kernels:  {kind:-24} {shapes:6}  {flops_per_s:14rate} {of_limit:6.0%}  "
    "{bytes_per_s:12bandwidth} {of_bandwidth:6.0%}\n]";
/* clang-format on */

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
    return json_pack("{s:{s:f, s:f, s:i, s:i}, s:o}", "limits", "flops_per_s",
                     limits->rate, "bytes_per_s", limits->bandwidth, "extent",
                     (int)limits->extent, "elements", (int)limits->elements, "kernels",
                     kernels);
}
