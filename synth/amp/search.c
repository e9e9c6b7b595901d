/* The search over degrees, microbatch sizes, placements and cuts, and the baselines beside it. */
#include "synth/amp/search.h"

#include <gsl/gsl_randist.h>
#include <gsl/gsl_rng.h>
#include <math.h>
#include <string.h>

#include "data/base/free.h"
#include "data/base/order.h"

static AmpCost cost_of(const AmpSearch *search, const AmpStrategy *strategy)
{
    g_autoptr(AmpRows) rows = amp_rows_new(
        search->model, search->cluster, search->options, search->layers, strategy, true);
    return rows ? amp_rows_cost(rows, strategy->first) : (AmpCost){.total_s = INFINITY};
}

/* --- choices --- */

static bool is_wanted(uint32_t fixed, uint32_t value)
{
    return fixed == 0 || fixed == value;
}

static void add_sizes(const AmpSearch *search, AmpDegrees choice)
{
    const uint32_t batch = search->model->global_batch / MAX(choice.dp, 1);
    for (choice.mbs = 1; choice.mbs <= batch; choice.mbs++)
        if (is_wanted(search->options->mbs, choice.mbs) &&
            synth_amp_check(search->model, search->cluster, search->options, &choice,
                            NULL))
            g_array_append_val(search->choices, choice);
}

static void amp_add_choices(const AmpSearch *search)
{
    const AmpOptions *o = search->options;
    const uint32_t n = search->cluster->n_devices;
    for (uint32_t pp = 1; pp <= MIN(n, search->model->n_layers); pp++) {
        if (n % pp != 0 || !is_wanted(o->pp, pp))
            continue;
        for (uint32_t dp = 1; dp <= n / pp; dp++) {
            const uint32_t tmp = n / pp / dp;
            if (n / pp % dp == 0 && is_wanted(o->dp, dp) && is_wanted(o->tmp, tmp) &&
                (o->most_tmp == 0 || tmp <= o->most_tmp))
                add_sizes(search, (AmpDegrees){pp, dp, tmp, 0});
        }
    }
}

/* Explains why the options leave no choice: the values that they fix are wrong whatever the open
 * ones are. */
static bool explain_none(const AmpSearch *search, GError **error)
{
    const AmpOptions *o = search->options;
    const uint32_t n = search->cluster->n_devices;
    const uint32_t known = MAX(o->pp, 1) * MAX(o->dp, 1) * MAX(o->tmp, 1);
    const uint32_t rest = n % known == 0 ? n / known : 1;
    const AmpDegrees degrees = {.pp = o->pp   ? o->pp
                                      : o->dp ? rest
                                              : 1,
                                .dp = o->dp ? o->dp : rest,
                                .tmp = o->tmp           ? o->tmp
                                       : o->dp && o->pp ? rest
                                                        : 1,
                                .mbs = MAX(o->mbs, 1)};
    if (!synth_amp_check(search->model, search->cluster, o, &degrees, error))
        return false;
    if (o->most_tmp && o->tmp > o->most_tmp)
        return refuse(error, "tmp=%u: expected at most %u", o->tmp, o->most_tmp);
    return refuse(error, "expected degrees pp, dp, tmp with a product of %u", n);
}

/* --- methods --- */

static void amp_take(GArray *candidates, AmpStrategy *strategy, AmpCost cost)
{
    AmpCandidate candidate = {.strategy = *strategy, .cost = cost};
    g_array_append_val(candidates, candidate);
}

/* Whether devices in equal places were tried; else these have been now. */
static bool is_tried(const AmpSearch *search, const AmpStrategy *s, GPtrArray *tried)
{
    const uint32_t n = search->cluster->n_devices;
    pointers_each (const uint32_t, other, tried)
        if (amp_is_same(search->cluster, n, s->device, other))
            return true;
    g_ptr_array_add(tried, g_memdup2(s->device, n * sizeof *s->device));
    return false;
}

/* Adds the choice with the best of the placements that are tried. */
static void add_best(const AmpSearch *search, const AmpDegrees *c,
                     uint32_t *const order[2], GArray *candidates)
{
    g_assert(c->pp * c->dp * c->tmp == search->cluster->n_devices);
    static void (*const place[])(AmpStrategy *, const uint32_t *) = {amp_place_stages,
                                                                     amp_place_replicas};
    const uint32_t placements = search->options->faithful ? 1 : 4;
    g_autoptr(GPtrArray) tried = g_ptr_array_new_with_free_func(g_free);
    AmpStrategy best = {0};
    AmpCost best_cost = {.total_s = INFINITY};
    for (uint32_t i = 0; i < placements; i++) {
        AmpStrategy strategy = amp_strategy_of(search, c);
        AmpCost cost;
        place[i % 2](&strategy, order[i / 2]);
        if (!is_tried(search, &strategy, tried) &&
            amp_assign_layers(search, &strategy, &cost) &&
            cost.total_s < best_cost.total_s) {
            amp_strategy_clear(&best);
            best = strategy;
            best_cost = cost;
        } else
            amp_strategy_clear(&strategy);
    }
    if (best.first)
        amp_take(candidates, &best, best_cost);
}

static void amp_search_all(const AmpSearch *search, GArray *candidates)
{
    uint32_t *order[2] = {amp_machine_order(search->cluster, false),
                          amp_machine_order(search->cluster, true)};
    for (guint i = 0; i < search->choices->len; i++)
        add_best(search, &g_array_index(search->choices, AmpDegrees, i), order,
                 candidates);
    g_free(order[0]);
    g_free(order[1]);
}

/* Cuts into equal numbers of layers, or so that the largest number of parameters of a stage is
 * minimal. */
static void cut_evenly(const AmpModel *model, bool by_parameters, AmpStrategy *strategy)
{
    g_assert(strategy->pp <= model->n_layers);
    const uint32_t n = model->n_layers, k = strategy->pp * strategy->chunks;
    for (uint32_t stage = 0; stage <= k; stage++)
        strategy->first[stage] = (uint32_t)((uint64_t)stage * n / k);
    if (!by_parameters)
        return;
    g_autofree double *time = g_new(double, (size_t)k *n),
                      *none = g_new0(double, (size_t)k *n);
    for (uint32_t i = 0; i < k * n; i++)
        time[i] = model->parameters[i % n];
    const AmpAssignment problem = {
        .n_layers = n, .n_stages = k, .repeats = 1, .time = time, .transfer = none};
    double cost;
    synth_amp_assign(&problem, strategy->first, &cost);
}

/* For each microbatch size, the degrees with the least tmp x pp that fit. */
static void search_megatron(const AmpSearch *search, bool by_parameters,
                            GArray *candidates)
{
    const uint32_t limit = amp_smallest_machine(search->cluster);
    g_autofree uint32_t *order = amp_machine_order(search->cluster, false);
    g_autofree uint32_t *least = g_new(uint32_t, search->model->global_batch + 1);
    GArray *fitting = g_array_new(FALSE, FALSE, sizeof(AmpCandidate));
    memset(least, 0xff, (search->model->global_batch + 1) * sizeof *least);
    array_each (const AmpDegrees, c, search->choices) {
        if (c->tmp > limit || c->tmp * c->pp > least[c->mbs])
            continue;
        AmpStrategy strategy = amp_strategy_of(search, c);
        amp_place_stages(&strategy, order);
        cut_evenly(search->model, by_parameters, &strategy);
        const AmpCost cost = cost_of(search, &strategy);
        if (cost.fits) {
            least[c->mbs] = c->tmp * c->pp;
            amp_take(fitting, &strategy, cost);
        } else
            amp_strategy_clear(&strategy);
    }
    array_each (AmpCandidate, candidate, fitting) {
        AmpStrategy *s = &candidate->strategy;
        if (s->tmp * s->pp == least[s->mbs])
            g_array_append_val(candidates, *candidate);
        else
            amp_strategy_clear(s);
    }
    g_array_unref(fitting);
}

/* Distinct random cuts between layers; all sets of cuts are equally likely. */
static void cut_at_random(gsl_rng *rng, uint32_t n_layers, AmpStrategy *strategy)
{
    g_autofree uint32_t *cut = g_new(uint32_t, n_layers);
    for (uint32_t l = 1; l < n_layers; l++)
        cut[l - 1] = l;
    const uint32_t k = strategy->pp * strategy->chunks;
    if (k > 1)
        gsl_ran_choose(rng, strategy->first + 1, k - 1, cut, n_layers - 1, sizeof *cut);
    strategy->first[k] = n_layers;
}

static AmpStrategy draw_anywhere(gsl_rng *rng, const AmpSearch *search, uint32_t *order)
{
    AmpStrategy strategy = amp_strategy_of(
        search, &g_array_index(search->choices, AmpDegrees,
                               gsl_rng_uniform_int(rng, search->choices->len)));
    gsl_ran_shuffle(rng, order, search->cluster->n_devices, sizeof *order);
    amp_place_stages(&strategy, order);
    cut_at_random(rng, search->model->n_layers, &strategy);
    return strategy;
}

static void search_random(const AmpSearch *search, GArray *candidates)
{
    enum { TRIES = 1000 }; /* draws that do not fit, before none is taken to fit */
    gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_rng_set(rng, (unsigned long)search->options->seed);
    g_autofree uint32_t *order = amp_machine_order(search->cluster, false);
    const uint32_t draws = MAX(search->options->draws, 1);
    for (uint32_t i = 0; i < TRIES * draws && candidates->len < draws; i++) {
        AmpStrategy strategy;
        if (search->options->domino) {
            if (!amp_draw_domino(rng, search, NULL, &strategy))
                continue;
            cut_evenly(search->model, false, &strategy);
        } else
            strategy = draw_anywhere(rng, search, order);
        const AmpCost cost = cost_of(search, &strategy);
        if (cost.fits)
            amp_take(candidates, &strategy, cost);
        else
            amp_strategy_clear(&strategy);
    }
    gsl_rng_free(rng);
}

/* --- all of it --- */

/* Takes choices out that a bound excludes; Megatron's heuristics compare choices, and keep all
 * while one is left. */
static void leave_out_lost(const AmpSearch *search, AmpMethod method)
{
    const AmpOptions *o = search->options;
    const bool known = !o->faithful && !search->model->measured && o->upper_s > 0;
    if (!known || method == AMP_RANDOM)
        return;
    g_autoptr(GArray) left = g_array_new(FALSE, FALSE, sizeof(AmpDegrees));
    array_each (const AmpDegrees, c, search->choices)
        if (!amp_is_lost(search, c, o->upper_s))
            g_array_append_val(left, *c);
    const bool compares =
        method == AMP_MEGATRON_LAYERS || method == AMP_MEGATRON_PARAMETERS;
    if (left->len > 0 && compares)
        return;
    g_array_set_size(search->choices, 0);
    g_array_append_vals(search->choices, left->data, left->len);
}

static CLEAR_DEFINE(clear_candidate, AmpCandidate, candidate,
                    amp_strategy_clear(&candidate->strategy));

static ORDER_DEFINE(by_cost, AmpCandidate, ASCENDING(cost.total_s),
                    ASCENDING(strategy.pp), ASCENDING(strategy.tmp),
                    ASCENDING(strategy.mbs));

GArray *synth_amp_search(const AmpModel *model, const AmpCluster *cluster,
                         const AmpOptions *options, AmpMethod method, uint32_t *n_most,
                         GError **error)
{
    g_autoptr(GArray) choices = g_array_new(FALSE, FALSE, sizeof(AmpDegrees)),
                      candidates = g_array_new(FALSE, FALSE, sizeof(AmpCandidate));
    g_autoptr(AmpLayers) layers =
        options->faithful ? NULL : amp_layers_new(model, cluster);
    const AmpSearch search = {model, cluster, options, layers, choices};
    g_array_set_clear_func(candidates, (GDestroyNotify)clear_candidate);
    amp_add_choices(&search);
    const uint32_t n_choices = choices->len;
    const uint32_t tried =
        method == AMP_ANNEAL && options->steps > 0 ? options->steps : n_choices;
    if (n_most)
        *n_most = method == AMP_RANDOM ? MAX(options->draws, 1) : tried;
    if (choices->len == 0) {
        explain_none(&search, error);
        return NULL;
    }
    leave_out_lost(&search, method);
    if (choices->len == 0) {
        if (options->beaten)
            *options->beaten = true;
        kilter_fail(error, KILTER_ERROR_INFEASIBLE,
                    "no strategy is faster than %g s, which a known plan takes",
                    options->upper_s);
        return NULL;
    }
    switch (method) {
    case AMP_SEARCH:
        amp_search_all(&search, candidates);
        break;
    case AMP_ANNEAL:
        amp_anneal(&search, tried, candidates);
        break;
    case AMP_MEGATRON_LAYERS:
    case AMP_MEGATRON_PARAMETERS:
        search_megatron(&search, method == AMP_MEGATRON_PARAMETERS, candidates);
        break;
    case AMP_RANDOM:
        search_random(&search, candidates);
        break;
    }
    if (candidates->len == 0) {
        kilter_fail(error, KILTER_ERROR_INFEASIBLE,
                    "none of %u choices of degrees and micro-batch size fits the memory",
                    n_choices);
        return NULL;
    }
    for (guint i = 0; i < candidates->len && !options->faithful && !model->measured;
         i++) {
        AmpCandidate *candidate = &g_array_index(candidates, AmpCandidate, i);
        candidate->least_s = amp_least_s(&search, &candidate->strategy);
    }
    if (method != AMP_RANDOM)
        g_array_sort(candidates, by_cost);
    return g_steal_pointer(&candidates);
}
