/* Fits constants of the laws of kernels to rows of kernels: least squares of logarithms under
 * priors, large errors counted by their size and not its square (Huber), by Levenberg and
 * Marquardt's steps. */
#ifndef KILTER_TESTS_SUPPORT_KERNEL_REFIT_H
#define KILTER_TESTS_SUPPORT_KERNEL_REFIT_H

#include <gsl/gsl_linalg.h>

#include "tests/support/kernel_rows.h"

/* A constant that is fitted; its logarithm is expected within `sd` of that of
 * `start`, where its fit starts. */
typedef struct {
    const char *law, *name;
    size_t at; /* in KernelConstants */
    double start, sd;
} KernelFree;
#define KERNEL_FREE(law, name, start, sd)                           \
    {                                                               \
#law, #name, offsetof(KernelConstants, law.name), start, sd \
    }

typedef struct {
    KernelRows *rows;
    GArray *type;        /* DeviceType of rows->device */
    const char *without; /* a device that is left out; NULL: none */
    uint32_t each;       /* every so many rows */
    double
        prior; /* of the rows, the part that a constant one `sd` from its start outweighs */
} KernelRefit;

static inline KernelRefit kernel_refit_of(KernelRows *rows, uint32_t each)
{
    KernelRefit refit = {rows, g_array_new(FALSE, TRUE, sizeof(DeviceType)), NULL, each,
                         0.02};
    for (guint d = 0; d < rows->name->len; d++) {
        const DeviceType type = kernel_type_of(rows->name->pdata[d]);
        g_array_append_val(refit.type, type);
    }
    return refit;
}

static inline void kernel_refit_clear(KernelRefit *refit)
{
    for (guint d = 0; d < refit->type->len; d++) {
        g_free(g_array_index(refit->type, DeviceType, d).name);
        g_free(g_array_index(refit->type, DeviceType, d).source);
    }
    g_array_unref(refit->type);
}

static inline double *kernel_refit_at(KernelConstants *constants, const KernelFree *one)
{
    return (double *)(void *)((char *)constants + one->at);
}

/* All devices of the rows take these constants. */
static inline void kernel_refit_take(const KernelRefit *refit,
                                     const KernelConstants *constants)
{
    for (guint d = 0; d < refit->type->len; d++) {
        kernel_device_free(refit->rows->device->pdata[d]);
        refit->rows->device->pdata[d] =
            kernel_device_with(&g_array_index(refit->type, DeviceType, d), constants);
    }
}

/* Appends the logarithms of predicted over measured to `error`, which is emptied first. */
static inline void kernel_refit_errors(const KernelRefit *refit, GArray *error)
{
    g_array_set_size(error, 0);
    for (guint i = 0; i < refit->rows->row->len; i += refit->each) {
        const KernelRow *row = &g_array_index(refit->rows->row, KernelRow, i);
        if (refit->without && strcmp(row->device, refit->without) == 0)
            continue;
        const double l = log(
            kernel_rows_predict_s(refit->rows->device->pdata[row->index], row) / row->s);
        g_array_append_val(error, l);
    }
}

/* The loss: Huber's loss of the errors, in units of WIDE, and of the constants' distance
 * from the start. */
static const double KERNEL_REFIT_WIDE = 0.1;
static inline double kernel_refit_loss(const GArray *error, const double *shift,
                                       const KernelFree *fitted, uint32_t n, double prior)
{
    double loss = 0;
    for (guint i = 0; i < error->len; i++) {
        const double x = fabs(g_array_index(error, double, i)) / KERNEL_REFIT_WIDE;
        loss += x < 1 ? x * x : 2 * x - 1;
    }
    for (uint32_t c = 0; c < n; c++)
        loss += shift[c] * shift[c] / (fitted[c].sd * fitted[c].sd) * prior * error->len;
    return loss;
}

static inline void kernel_refit_set(const KernelRefit *refit, const KernelConstants *from,
                                    const double *shift, const KernelFree *fitted,
                                    uint32_t n, KernelConstants *constants)
{
    *constants = *from;
    for (uint32_t c = 0; c < n; c++)
        *kernel_refit_at(constants, &fitted[c]) *= exp(shift[c]);
    kernel_refit_take(refit, constants);
}

/* Fits the constants from their starts, the others as in *constants; the devices then have them. */
static inline void kernel_refit(const KernelRefit *refit, const KernelFree *fitted,
                                uint32_t n, KernelConstants *constants)
{
    enum { STEPS = 12 };
    static const double STEP = 0.02;
    for (uint32_t c = 0; c < n; c++)
        *kernel_refit_at(constants, &fitted[c]) = fitted[c].start;
    const KernelConstants from = *constants;
    g_autofree double *shift = g_new0(double, n), *trial = g_new0(double, n);
    g_autoptr(GArray) error = g_array_new(FALSE, FALSE, sizeof(double)),
                      moved = g_array_new(FALSE, FALSE, sizeof(double));
    double damping = 0.01;
    kernel_refit_set(refit, &from, shift, fitted, n, constants);
    kernel_refit_errors(refit, error);
    for (uint32_t step = 0; step < STEPS && damping < 1e4; step++) {
        const double loss = kernel_refit_loss(error, shift, fitted, n, refit->prior);
        g_autofree double *slope = g_new0(double, (gsize)n * error->len);
        for (uint32_t c = 0; c < n; c++) {
            memcpy(trial, shift, n * sizeof(double));
            trial[c] += STEP;
            kernel_refit_set(refit, &from, trial, fitted, n, constants);
            kernel_refit_errors(refit, moved);
            for (guint i = 0; i < error->len; i++)
                slope[(gsize)c * error->len + i] =
                    (g_array_index(moved, double, i) - g_array_index(error, double, i)) /
                    STEP;
        }
        gsl_matrix *normal = gsl_matrix_calloc(n, n);
        gsl_vector *right = gsl_vector_calloc(n), *by = gsl_vector_calloc(n);
        for (uint32_t a = 0; a < n; a++) {
            const double prior =
                refit->prior * error->len / (fitted[a].sd * fitted[a].sd);
            double sum = -prior * shift[a];
            for (uint32_t b = 0; b < n; b++) {
                double product = a == b ? prior : 0;
                for (guint i = 0; i < error->len; i++) {
                    const double e = fabs(g_array_index(error, double, i)),
                                 w = 1 / (KERNEL_REFIT_WIDE * fmax(e, KERNEL_REFIT_WIDE));
                    product += w * slope[(gsize)a * error->len + i] *
                               slope[(gsize)b * error->len + i];
                    if (b == 0)
                        sum -= w * slope[(gsize)a * error->len + i] *
                               g_array_index(error, double, i);
                }
                gsl_matrix_set(normal, a, b, product * (a == b ? 1 + damping : 1));
            }
            gsl_vector_set(right, a, sum);
        }
        gsl_linalg_cholesky_decomp1(normal);
        gsl_linalg_cholesky_solve(normal, right, by);
        for (uint32_t c = 0; c < n; c++)
            trial[c] = shift[c] + CLAMP(gsl_vector_get(by, c), -0.5, 0.5);
        gsl_matrix_free(normal);
        gsl_vector_free(right);
        gsl_vector_free(by);
        kernel_refit_set(refit, &from, trial, fitted, n, constants);
        kernel_refit_errors(refit, moved);
        const double next = kernel_refit_loss(moved, trial, fitted, n, refit->prior);
        const bool better = next < loss;
        damping *= better ? 0.3 : 10;
        if (better) {
            memcpy(shift, trial, n * sizeof(double));
            GArray *kept = g_steal_pointer(&error);
            error = moved;
            moved = kept;
            if (next > loss * (1 - 1e-4))
                break;
        }
    }
    kernel_refit_set(refit, &from, shift, fitted, n, constants);
}

#endif
