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

/* kernel_NAME, which makes a step from the parameter p, and kernel_NAME_master: the same from a
 * master copy, the last of inputs (after n) and outputs. */
#define UPDATE(name, n, step)                           \
    void kernel_##name(const KernelCall *call)          \
    {                                                   \
        const double *p = call->in[0].data;             \
        step;                                           \
    }                                                   \
    void kernel_##name##_master(const KernelCall *call) \
    {                                                   \
        const double *p = call->in[n].data;             \
        step;                                           \
        copy_next(call, (n)-1);                         \
    }

/* The same with a step for each element i, of which g is the gradient. */
#define UPDATE_EACH(name, n, step)                                     \
    static void step_##name(const KernelCall *call, const double *p)   \
    {                                                                  \
        const ExecTensor *const in = call->in, *const out = call->out; \
        const uint64_t n_elements = exec_tensor_elements(&in[0]);      \
        for (uint64_t i = 0; i < n_elements; i++) {                    \
            const double g = in[1].data[i];                            \
            step;                                                      \
        }                                                              \
    }                                                                  \
    UPDATE(name, n, step_##name(call, p))

/* Computes the next value of p, the parameter or its master copy, which decays by `decay`. */
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
UPDATE(adam, 4, adam(call, p, 0))

/* Adam with decoupled weight decay (Loshchilov and Hutter 2019, Algorithm 2). */
UPDATE(adamw, 4, adam(call, p, ADAMW_DECAY))

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

/* The matrices of a tensor, of its last two dims. */
typedef struct {
    uint64_t rows, columns, size, matrices;
} Matrices;

static Matrices matrices_of(const ExecTensor *x)
{
    g_assert(x->rank >= 2);
    const uint64_t rows = x->dim[x->rank - 2], columns = x->dim[x->rank - 1],
                   n = rows * columns;
    return (Matrices){rows, columns, n, n ? exec_tensor_elements(x) / n : 0};
}

static void adafactor(const KernelCall *call, const double *p)
{
    const ExecTensor *in = call->in;
    const Matrices n = matrices_of(&in[0]);
    for (uint64_t m = 0; m < n.matrices; m++) {
        const double *g = in[1].data + m * n.size;
        double *r1 = call->out[1].data + m * n.rows,
               *c1 = call->out[2].data + m * n.columns;
        const double mean = next_factors(g, n.rows, n.columns, in[2].data + m * n.rows,
                                         in[3].data + m * n.columns, r1, c1);
        step_factored(p + m * n.size, g, n.rows, n.columns, mean, r1, c1,
                      call->out[0].data + m * n.size);
    }
}

/* Adafactor without momentum, with a given rate. In: parameter, gradient, the means of squared
 * gradients by row and by column of each matrix. Out: the next parameter and means. */
UPDATE(adafactor, 4, adafactor(call, p))

/* A vector has its whole second moment, and its steps are not clipped. */
UPDATE_EACH(adafactor_vector, 3,
            const double v = ADAFACTOR_BETA * in[2].data[i] +
                             (1 - ADAFACTOR_BETA) * (g * g + ADAFACTOR_EPSILON);
            out[0].data[i] = p[i] - LEARNING_RATE * g / sqrt(v); out[1].data[i] = v)

/* In: parameter, gradient. Out: the next parameter. */
UPDATE_EACH(sgd, 2, out->data[i] = p[i] - LEARNING_RATE * g)

/* In: parameter, gradient, momentum. Out: the next parameter and momentum. */
UPDATE_EACH(lion, 3, const double m = in[2].data[i];
            const double step = LION_BETA1 * m + (1 - LION_BETA1) * g;
            out[0].data[i] = p[i] - LEARNING_RATE * ((step > 0) - (step < 0));
            out[1].data[i] = LION_BETA2 * m + (1 - LION_BETA2) * g)

/* --- muon --- */

/* A matrix in memory [rows, columns], or its transpose. */
typedef struct {
    const double *data;
    uint64_t rows, columns, by_row, by_column;
} Matrix;

static double matrix_at(const Matrix *m, uint64_t i, uint64_t j)
{
    return m->data[i * m->by_row + j * m->by_column];
}

/* out = a x y + b z; z NULL: without it. out: [x.rows, y.columns]. */
static void multiply_add(double a, const Matrix *x, const Matrix *y, double b,
                         const Matrix *z, double *out)
{
    KILTER_ASSERT(x->columns == y->rows);
    for (uint64_t i = 0; i < x->rows; i++)
        for (uint64_t j = 0; j < y->columns; j++) {
            double sum = 0;
            for (uint64_t k = 0; k < x->columns; k++)
                sum += matrix_at(x, i, k) * matrix_at(y, k, j);
            out[i * y->columns + j] = a * sum + (z ? b * matrix_at(z, i, j) : 0);
        }
}

/* Moves the singular values of x [n, m], n <= m, whose sum of squares is at most 1, towards 1. */
static void orthogonalize(double *x, uint64_t n, uint64_t m)
{
    g_autofree double *a = g_new(double, n *n), *b = g_new(double, n *n),
                      *next = g_new(double, n *m);
    for (uint32_t step = 0; step < MUON_STEPS; step++) {
        const Matrix of = {x, n, m, m, 1}, turned = {x, m, n, 1, m};
        const Matrix square = {a, n, n, n, 1}, factor = {b, n, n, n, 1};
        multiply_add(1, &of, &turned, 0, NULL, a);
        multiply_add(MUON_C, &square, &square, MUON_B, &square, b);
        multiply_add(1, &factor, &of, MUON_A, &of, next);
        memcpy(x, next, n * m * sizeof *x);
    }
}

/* One matrix [rows, columns]. */
static void muon_step(const double *p, const double *g, const double *m, uint64_t rows,
                      uint64_t columns, double *p1, double *m1)
{
    const uint64_t n = MIN(rows, columns), wide = MAX(rows, columns);
    const bool tall = rows > columns;
    g_autofree double *x = g_new(double, rows *columns);
    double squares = 0;
    for (uint64_t i = 0; i < rows * columns; i++) {
        m1[i] = MUON_MOMENTUM * m[i] + (1 - MUON_MOMENTUM) * g[i];
        const double look = MUON_MOMENTUM * m1[i] + (1 - MUON_MOMENTUM) * g[i];
        x[tall ? i % columns * rows + i / columns : i] = look;
        squares += look * look;
    }
    for (uint64_t i = 0; i < rows * columns; i++)
        x[i] /= sqrt(squares) + MUON_EPSILON;
    orthogonalize(x, n, wide);
    const double rate = LEARNING_RATE * sqrt(fmax(1, (double)rows / (double)columns));
    for (uint64_t i = 0; i < rows * columns; i++)
        p1[i] = p[i] - rate * x[tall ? i % columns * rows + i / columns : i];
}

static void muon(const KernelCall *call, const double *p)
{
    const ExecTensor *in = call->in, *out = call->out;
    const Matrices n = matrices_of(&in[0]);
    for (uint64_t at = 0; at < n.matrices * n.size; at += n.size)
        muon_step(p + at, in[1].data + at, in[2].data + at, n.rows, n.columns,
                  out[0].data + at, out[1].data + at);
}

/* Muon (Jordan et al. 2024). In: parameter, gradient, momentum. Out: parameter and momentum. */
UPDATE(muon, 3, muon(call, p))
