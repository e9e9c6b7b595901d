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

/* --- adafactor --- */

/* Moves the means of squared gradients of a matrix [rows, columns] towards those of g. Returns the
 * mean of the new means of rows. */
static double next_factors(const double *g, uint64_t rows, uint64_t columns,
                           const double *r, const double *c, double *r1, double *c1)
{
    const double keep = ADAFACTOR_BETA, add = 1 - ADAFACTOR_BETA;
    double sum = 0;
    for (uint64_t j = 0; j < columns; j++)
        c1[j] = keep * c[j];
    for (uint64_t i = 0; i < rows; i++) {
        r1[i] = keep * r[i];
        for (uint64_t j = 0; j < columns; j++) {
            const double square =
                g[i * columns + j] * g[i * columns + j] + ADAFACTOR_EPSILON;
            r1[i] += add * square / (double)columns;
            c1[j] += add * square / (double)rows;
        }
        sum += r1[i];
    }
    return sum / (double)rows;
}

/* One matrix: p1 = p - rate * U / max(1, RMS(U) / d), U = g / sqrt(R C / mean(R)). */
static void step_factored(const double *p, const double *g, uint64_t rows,
                          uint64_t columns, double mean, const double *r1,
                          const double *c1, double *p1)
{
    const uint64_t n = rows * columns;
    double sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += g[i] * g[i] * mean / (r1[i / columns] * c1[i % columns]);
    const double clip = fmax(1, sqrt(sum / (double)n) / ADAFACTOR_CLIPPING);
    for (uint64_t i = 0; i < n; i++)
        p1[i] = p[i] - LEARNING_RATE * g[i] /
                           (sqrt(r1[i / columns] * c1[i % columns] / mean) * clip);
}

static void adafactor(const KernelCall *call, const double *p)
{
    const ExecTensor *in = call->in;
    g_assert(in[0].rank >= 2);
    const uint64_t rows = in[0].dim[in[0].rank - 2], columns = in[0].dim[in[0].rank - 1],
                   n = rows * columns,
                   matrices = n ? exec_tensor_elements(&in[0]) / n : 0;
    for (uint64_t m = 0; m < matrices; m++) {
        const double *g = in[1].data + m * n;
        double *r1 = call->out[1].data + m * rows, *c1 = call->out[2].data + m * columns;
        const double mean = next_factors(g, rows, columns, in[2].data + m * rows,
                                         in[3].data + m * columns, r1, c1);
        step_factored(p + m * n, g, rows, columns, mean, r1, c1,
                      call->out[0].data + m * n);
    }
}

/* Adafactor without momentum, with a given rate. In: parameter, gradient, the means of squared
 * gradients by row and by column of each matrix. Out: the next parameter and means. */
void kernel_adafactor(const KernelCall *call)
{
    adafactor(call, call->in[0].data);
}

/* The same with a master copy as the last input and output. */
void kernel_adafactor_master(const KernelCall *call)
{
    adafactor(call, call->in[4].data);
    copy_next(call, 3);
}

/* A vector has its whole second moment, and its steps are not clipped. */
static void adafactor_vector(const KernelCall *call, const double *p)
{
    const double *g = call->in[1].data, *v = call->in[2].data;
    const uint64_t n = exec_tensor_elements(&call->in[0]);
    for (uint64_t i = 0; i < n; i++) {
        const double v1 = ADAFACTOR_BETA * v[i] +
                          (1 - ADAFACTOR_BETA) * (g[i] * g[i] + ADAFACTOR_EPSILON);
        call->out[0].data[i] = p[i] - LEARNING_RATE * g[i] / sqrt(v1);
        call->out[1].data[i] = v1;
    }
}

void kernel_adafactor_vector(const KernelCall *call)
{
    adafactor_vector(call, call->in[0].data);
}

void kernel_adafactor_vector_master(const KernelCall *call)
{
    adafactor_vector(call, call->in[3].data);
    copy_next(call, 2);
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
