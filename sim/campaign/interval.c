/* The interval between checkpoints that loses least: in closed form, or by simulation. */
#include <math.h>

#include "data/base/assert.h"
#include "data/base/parallel.h"
#include "sim/campaign/run.h"

enum {
    MOST_RUNS = 256,
    FEWEST_RUNS = 16,
    COARSE = 17, /* intervals of the first pass, each sqrt(2) times the one before */
    FINE = 9,    /* of later passes, to the middle times and divided by sqrt(2) */
    PASSES = 8,
};

static const double MOST_EVENTS = 1e6; /* of all runs */
static const double COARSE_STEP = 0.5 * G_LN2, FINE_STEP = 0.125 * G_LN2;
static const double NORMAL_97_5 = 1.959963984540054;

/* --- in closed form --- */

static double slope(double interval_s, double mtbf_s, double save_s)
{
    return exp((interval_s + save_s) / mtbf_s) * (1 - interval_s / mtbf_s) - 1;
}

double sim_campaign_best_interval_s(double mtbf_s, double save_s)
{
    enum { HALVINGS = 200 };
    if (!isfinite(mtbf_s))
        return INFINITY;
    if (save_s <= 0)
        return 0;
    double low = 0, high = mtbf_s; /* the slope falls from above 0 to -1 */
    for (uint32_t i = 0; i < HALVINGS; i++) {
        const double middle = (low + high) / 2;
        *(slope(middle, mtbf_s, save_s) > 0 ? &low : &high) = middle;
    }
    return low;
}

/* --- by simulation --- */

/* Runs with the same draws at several intervals. */
typedef struct {
    const SimCampaign *of;
    double interval_s[COARSE];
    uint32_t n, n_runs;
    double *goodput; /* [run][interval] */
} Trial;

static bool try_run(void *context, uint32_t i, GError **error)
{
    (void)error;
    const Trial *trial = context;
    g_autoptr(GArray) events = sim_campaign_draw(trial->of, i, SIM_CAMPAIGN_AGAIN);
    for (uint32_t k = 0; k < trial->n; k++) {
        const double interval_s = fmax(trial->interval_s[k], trial->of->write_s);
        trial->goodput[i * trial->n + k] =
            sim_campaign_run(trial->of, interval_s, events).work_s / trial->of->days_s;
    }
    return true;
}

/* Goodput at n intervals about exp(middle), whose logarithms differ by `step`. */
static bool try_about(Trial *trial, double middle, uint32_t n, double step,
                      GError **error)
{
    g_assert(n <= COARSE && n % 2 == 1);
    trial->n = n;
    for (uint32_t k = 0; k < n; k++)
        trial->interval_s[k] = exp(middle + step * ((double)k - n / 2));
    return parallel_each(trial->n_runs, trial->of->threads, try_run, trial, error);
}

/* The means over all runs. */
static void find_means(const Trial *trial, double *mean)
{
    for (uint32_t k = 0; k < trial->n; k++) {
        mean[k] = 0;
        for (uint32_t i = 0; i < trial->n_runs; i++)
            mean[k] += trial->goodput[i * trial->n + k] / trial->n_runs;
    }
}

/* The parabola of least squares through FINE points, in steps from their middle. */
typedef struct {
    double slope, curve; /* of x and x^2 */
} Parabola;

static Parabola fit(const double *y)
{
    Parabola p = {0, 0};
    double squares = 0, fourths = 0, mean;
    const double middle = FINE / 2;
    for (uint32_t k = 0; k < FINE; k++) {
        squares += (k - middle) * (k - middle);
        fourths += pow(k - middle, 4);
    }
    mean = squares / FINE;
    for (uint32_t k = 0; k < FINE; k++) {
        p.slope += (k - middle) * y[k] / squares;
        p.curve +=
            ((k - middle) * (k - middle) - mean) * y[k] / (fourths - FINE * mean * mean);
    }
    return p;
}

/* The deviation of the parabola's top over all runs (delta method), in steps. */
static double deviation(const Trial *trial, Parabola all, double top)
{
    double squares = 0;
    for (uint32_t i = 0; i < trial->n_runs; i++) {
        const Parabola own = fit(&trial->goodput[i * trial->n]);
        const double by = (own.slope + 2 * top * own.curve) / (2 * all.curve);
        squares += by * by;
    }
    return sqrt(squares / (trial->n_runs - 1.0) / trial->n_runs);
}

/* Moves the middle to the top of a parabola until the top is there. */
static bool climb(Trial *trial, double middle, SimCampaignReport *report, GError **error)
{
    for (uint32_t pass = 0; pass < PASSES; pass++) {
        double mean[COARSE];
        if (!try_about(trial, middle, FINE, FINE_STEP, error))
            return false;
        find_means(trial, mean);
        const Parabola all = fit(mean);
        if (!(all.curve < 0))
            return true; /* nothing fails in these runs */
        const double top = CLAMP(-all.slope / (2 * all.curve), -FINE / 2, FINE / 2);
        middle += top * FINE_STEP;
        if (fabs(top) > 0.5)
            continue;
        const double half = NORMAL_97_5 * deviation(trial, all, top) * FINE_STEP;
        report->interval_s = exp(middle);
        report->interval_low_s = exp(middle - half);
        report->interval_high_s = exp(middle + half);
        return true;
    }
    report->interval_s = exp(middle);
    return true;
}

/* From the interval that loses least where failures are exponential. */
static bool search(const SimCampaign *of, double events, SimCampaignReport *report,
                   GError **error)
{
    Trial trial = {
        .of = of,
        .n_runs = (uint32_t)CLAMP(MOST_EVENTS / fmax(events, 1), FEWEST_RUNS, MOST_RUNS)};
    g_autofree double *goodput = trial.goodput =
        g_new(double, (size_t)trial.n_runs *COARSE);
    double mean[COARSE];
    uint32_t best = 0;
    if (!try_about(&trial, log(report->interval_s), COARSE, COARSE_STEP, error))
        return false;
    find_means(&trial, mean);
    for (uint32_t k = 1; k < COARSE; k++)
        best = mean[k] > mean[best] ? k : best;
    KILTER_ASSERT(goodput && trial.interval_s[best] > 0);
    return climb(&trial, log(trial.interval_s[best]), report, error);
}

bool sim_campaign_choose(const SimCampaign *of, SimCampaignReport *report, GError **error)
{
    report->interval_s = sim_campaign_best_interval_s(report->system_mtbf_s, of->save_s);
    const bool exact = !of->failure_s && of->shape == 1 && of->write_s == 0;
    if (exact || !(report->interval_s > 0) || !isfinite(report->interval_s) ||
        (of->failure_s && !sim_campaign_can_draw_again(of)))
        return true;
    const double events =
        of->failure_s ? of->days_s * of->n_failures / of->failure_s[of->n_failures - 1]
                      : of->days_s / report->system_mtbf_s;
    return FEWEST_RUNS * events > MOST_EVENTS || /* nobody trains like this */
           search(of, events, report, error);
}
