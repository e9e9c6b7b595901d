/* Published iterations beside a prediction. */
#include "experiments/calibration/residuals.h"

#include <math.h>
#include <string.h>

#include "data/base/csv.h"
#include "data/base/path.h"
#include "data/base/units.h"

static const char ANY[] = "any";

static const char *generation_of(const Chip *chip)
{
    static const struct {
        uint32_t from;
        const char *name;
    } GENERATION[] = {{100, "blackwell"}, {90, "hopper"}, {80, "ampere"}, {70, "volta"}};
    for (uint32_t i = 0; chip->gcn == 0 && i < G_N_ELEMENTS(GENERATION); i++)
        if (chip->sm >= GENERATION[i].from)
            return GENERATION[i].name;
    return "other";
}

/* Of what most products take in. */
static uint32_t bits_of(Precision precision)
{
    static const uint32_t BITS[NUMBERS] = {[NUMBERS_F32] = 32,
                                           [NUMBERS_F16] = 16,
                                           [NUMBERS_BF16] = 16,
                                           [NUMBERS_F8] = 8,
                                           [NUMBERS_F4] = 4};
    return BITS[precision_least_numbers(precision)];
}

ResidualKind residual_kind(const Plan *plan, const Graph *graph, const ClusterView *view,
                           bool kernels)
{
    const SimWorkload work = sim_workload(plan, graph, view);
    const DeviceType *type = &view->cluster->type[view->device[0].type];
    const Strategy *s = &plan->strategy;
    const uint32_t ep = MAX(s->ep, 1);
    ResidualKind kind = {.costs = kernels ? "kernels" : "shares",
                         .generation = generation_of(&type->chip),
                         .device = type->name,
                         .bits = bits_of(graph_precision(graph)),
                         .gpus = work.gpus,
                         .tp = MAX(s->tp, 1),
                         .pp = MAX(s->pp, 1),
                         .cp = MAX(s->cp, 1),
                         .ep = ep,
                         .flops = work.tokens > 0 ? work.model_flops / work.tokens : 0};
    const bool experts =
        any_in(ops_each (op, id, graph), op_kind_is_of_experts(op->kind));
    kind.family = experts ? "experts" : s->zero == 3 ? "sharded" : "dense";
    return kind;
}

/* --- the range --- */

enum { QUANTILES = 4 };

typedef struct {
    const ResidualKind *kind;
    uint32_t says, n;
    double at[QUANTILES]; /* 5, 25, 75 and 95 % */
    char *words;
} Range;

/* Whether the cell is `any` or the value; counts what it says. */
static bool cell_fits(const char *cell, const char *value, uint32_t *says)
{
    const bool any = strcmp(cell, ANY) == 0;
    *says += !any;
    return any || strcmp(cell, value) == 0;
}

static bool residuals_take_range(const Csv *csv, void *data, GError **error)
{
    static const char *const QUANTILE[QUANTILES] = {"q05", "q25", "q75", "q95"};
    Range *range = data;
    const char *generation = csv_text(csv, "generation"), *bits = csv_text(csv, "bits"),
               *family = csv_text(csv, "family");
    g_autofree char *own = g_strdup_printf("%u", range->kind->bits);
    uint32_t says = 1;
    double n, at[QUANTILES];
    if (!csv_number(csv, "n", 1, 1e6, &n, error))
        return false;
    for (uint32_t q = 0; q < QUANTILES; q++)
        if (!csv_number(csv, QUANTILE[q], 0.01, 100, &at[q], error))
            return false;
    if (strcmp(csv_text(csv, "costs"), range->kind->costs) != 0 ||
        !cell_fits(generation, range->kind->generation, &says) ||
        !cell_fits(bits, own, &says) || !cell_fits(family, range->kind->family, &says) ||
        says <= range->says)
        return true;
    range->says = says;
    memcpy(range->at, at, sizeof at);
    put_block(
        range->words,
        g_strdup_printf(
            "%.0f published runs%s%s%s%s%s%s", n, strcmp(generation, ANY) ? " on " : "",
            strcmp(generation, ANY) ? generation : "", strcmp(bits, ANY) ? " in " : "",
            strcmp(bits, ANY) ? bits : "", strcmp(bits, ANY) ? " bits" : "",
            strcmp(family, ANY)
                ? (strcmp(family, "experts") == 0   ? " with experts"
                   : strcmp(family, "sharded") == 0 ? " with sharded states"
                                                    : " without experts")
                : ""));
    return true;
}

/* --- the nearest run --- */

typedef struct {
    const ResidualKind *kind;
    double distance;
    char *words;
} Nearest;

/* Distances are sums of logarithms: a factor of e in size counts as much as another device of the
 * same memory and format would. */
static double ratio_distance(double a, double b)
{
    return fabs(log(fmax(a, 1) / fmax(b, 1)));
}

static bool residuals_take_run(const Csv *csv, void *data, GError **error)
{
    static const char *const COUNT[] = {"gpus", "tp", "pp", "cp", "ep", "bits"};
    /* other formats have kernels and rates of their own */
    static const double WEIGHT[] = {0.5, 0.25, 0.25, 0.25, 0.25, 2};
    static const double MOST_GPUS = 1e6, MOST_FLOPS = 1e15, MOST_S = 1e6;
    Nearest *nearest = data;
    const ResidualKind *kind = nearest->kind;
    const double own[] = {kind->gpus, kind->tp, kind->pp, kind->cp, kind->ep, kind->bits};
    double count[G_N_ELEMENTS(COUNT)], flops, published, predicted;
    double distance = 0;
    for (uint32_t i = 0; i < G_N_ELEMENTS(COUNT); i++) {
        if (!csv_number(csv, COUNT[i], 1, MOST_GPUS, &count[i], error))
            return false;
        distance += WEIGHT[i] * ratio_distance(own[i], count[i]);
    }
    if (!csv_number(csv, "flops", 1, MOST_FLOPS, &flops, error) ||
        !csv_number(csv, "published_s", 0, MOST_S, &published, error) ||
        !csv_number(csv, kind->costs, 0, MOST_S, &predicted, error))
        return false;
    distance += ratio_distance(kind->flops, flops) +
                (strcmp(csv_text(csv, "device"), kind->device) != 0) +
                (strcmp(csv_text(csv, "family"), kind->family) != 0);
    if (distance >= nearest->distance)
        return true;
    nearest->distance = distance;
    g_free(nearest->words);
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_printf(text, "%s, %.0f %s, %.0f bits", csv_text(csv, "model"), count[0],
                    csv_text(csv, "device"), count[G_N_ELEMENTS(COUNT) - 1]);
    for (uint32_t i = 1; i + 1 < G_N_ELEMENTS(COUNT); i++)
        if (count[i] > 1)
            g_string_append_printf(text, " %s%.0f", COUNT[i], count[i]);
    g_autofree char *was = units_format(published, QUANTITY_TIME),
                    *is = units_format(predicted, QUANTITY_TIME);
    g_string_append_printf(text, ": published %s, predicted %s (%s)", was, is,
                           csv_text(csv, "source"));
    nearest->words = g_string_free(g_steal_pointer(&text), FALSE);
    return true;
}

/* Reads a file of the data folder; one that is missing or damaged says nothing. */
static void residuals_read(const char *name, const char *const *columns,
                           bool (*take)(const Csv *, void *, GError **), void *data)
{
    g_autofree char *file = path_find(name);
    g_autoptr(Csv) csv = file ? csv_read(file, NULL) : NULL;
    if (csv && csv_expect(csv, columns, NULL, NULL))
        csv_each(csv, take, data, NULL);
}

void residuals_add(json_t *object, const ResidualKind *kind, double time_s)
{
    static const double FAR = 4; /* nothing is told of runs that are less alike */
    static const char *const RANGE[] = {"costs", "generation", "bits", "family", "n",
                                        "q05",   "q25",        "q75",  "q95",    NULL};
    static const char *const RUN[] = {
        "model", "device", "family",      "gpus",   "bits",    "tp",     "pp", "cp",
        "ep",    "flops",  "published_s", "shares", "kernels", "source", NULL};
    Range range = {.kind = kind};
    Nearest nearest = {.kind = kind, .distance = FAR};
    residuals_read("residuals.csv", RANGE, residuals_take_range, &range);
    if (range.says > 0)
        json_object_update_new(
            object,
            json_pack("{s:[f, f], s:[f, f], s:s}", "interval_50_s", time_s * range.at[1],
                      time_s * range.at[2], "interval_90_s", time_s * range.at[0],
                      time_s * range.at[3], "interval_of", range.words));
    if (kind->flops > 0)
        residuals_read("published.csv", RUN, residuals_take_run, &nearest);
    if (nearest.words)
        json_object_set_new(object, "nearest", json_string(nearest.words));
    g_free(range.words);
    g_free(nearest.words);
}
