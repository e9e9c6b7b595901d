/* Timing for benchmarks: a piece of work is repeated for about BENCH_S seconds, at least three
 * times, and one line gives the median, the spread and the number of runs. */
#ifndef KILTER_TESTS_BENCH_BENCH_H
#define KILTER_TESTS_BENCH_BENCH_H

#include <glib.h>
#include <stdint.h>
#include <stdio.h>

#define BENCH_S 0.3
enum { BENCH_MIN_RUNS = 3, BENCH_MAX_RUNS = 1000 };

typedef void (*BenchWork)(void *data);

static inline gint bench_order(gconstpointer a, gconstpointer b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline void bench_print_header(const char *what)
{
    printf("%-36s %10s %10s %10s %6s\n", what, "median ms", "min", "max", "runs");
}

/* Returns the median in seconds. */
static inline double bench_run(const char *name, BenchWork work, void *data)
{
    g_autoptr(GArray) seconds = g_array_new(FALSE, FALSE, sizeof(double));
    gint64 first = g_get_monotonic_time();
    do {
        gint64 start = g_get_monotonic_time();
        work(data);
        double taken = (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
        g_array_append_val(seconds, taken);
    } while (seconds->len < BENCH_MAX_RUNS &&
             (seconds->len < BENCH_MIN_RUNS ||
              (double)(g_get_monotonic_time() - first) / G_USEC_PER_SEC < BENCH_S));
    g_array_sort(seconds, bench_order);
    const double *s = (const double *)(void *)seconds->data;
    printf("%-36s %10.3f %10.3f %10.3f %6u\n", name, 1e3 * s[seconds->len / 2],
           1e3 * s[0], 1e3 * s[seconds->len - 1], seconds->len);
    return s[seconds->len / 2];
}

#endif
