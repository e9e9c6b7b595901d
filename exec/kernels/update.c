/* Updates of parameters. */
#include <math.h>
#include <string.h>

#include "exec/kernels/kernels.h"

/* Exec's numbers have one precision: the next master copy and the next parameter are equal. */
static void copy_next(const KernelCall *call, uint32_t to)
{
    KILTER_ASSERT(to < call->op->n_out);
    memcpy(call->out[to].data, call->out[0].data,
           exec_tensor_elements(&call->out[0]) * sizeof(double));
}

/* Computes the next value of p, the parameter or its master copy, which decays by the factor
 * `decay`. */
static void adam(const KernelCall *call, const double *p, double decay)
{
    g_assert(call->op->n_in >= 4);
    const double *g = call->in[1].data;
    const double *m = call->in[2].data, *v = call->in[3].data;
    const double unbias1 = 1 / (1 - pow(ADAM_BETA1, ADAM_STEP));
    const double unbias2 = 1 / (1 - pow(ADAM_BETA2, ADAM_STEP));
    const uint64_t n = exec_tensor_elements(&call->in[0]);
    for (uint64_t i = 0; i < n; i++) {
        const double m1 = ADAM_BETA1 * m[i] + (1 - ADAM_BETA1) * g[i];
        const double v1 = ADAM_BETA2 * v[i] + (1 - ADAM_BETA2) * g[i] * g[i];
        call->out[0].data[i] =
            p[i] - LEARNING_RATE * (m1 * unbias1 / (sqrt(v1 * unbias2) + ADAM_EPSILON) +
                                    decay * p[i]);
        call->out[1].data[i] = m1;
        call->out[2].data[i] = v1;
    }
}

/* Adam (Kingma and Ba 2015, Algorithm 1), without weight decay. In: parameter,
 * gradient, first and second moment. Out: the next parameter and moments. */
void kernel_adam(const KernelCall *call)
{
    adam(call, call->in[0].data, 0);
}

/* The same with a master copy as the last input and output. */
void kernel_adam_master(const KernelCall *call)
{
    adam(call, call->in[4].data, 0);
    copy_next(call, 3);
}

/* Adam with decoupled weight decay (Loshchilov and Hutter 2019, Algorithm 2); as adam and
 * adam_master. */
void kernel_adamw(const KernelCall *call)
{
    adam(call, call->in[0].data, ADAMW_DECAY);
}

void kernel_adamw_master(const KernelCall *call)
{
    adam(call, call->in[4].data, ADAMW_DECAY);
    copy_next(call, 3);
}

static void sgd(const KernelCall *call, const double *p)
{
    const double *g = call->in[1].data;
    const uint64_t n = exec_tensor_elements(&call->in[0]);
    for (uint64_t i = 0; i < n; i++)
        call->out[0].data[i] = p[i] - LEARNING_RATE * g[i];
}

/* In: parameter, gradient. Out: the next parameter. */
void kernel_sgd(const KernelCall *call)
{
    sgd(call, call->in[0].data);
}

/* The same with a master copy as the last input and output. */
void kernel_sgd_master(const KernelCall *call)
{
    sgd(call, call->in[2].data);
    copy_next(call, 1);
}
