/* Placements by simulated annealing (AMP Sec. 4.2): a state is a choice of degrees and microbatch
 * size and the order in which devices are handed out; a step swaps two devices or takes another
 * choice; the energy is the cost with the layers assigned exactly. */
#include <float.h>
#include <gsl/gsl_rng.h>
#include <gsl/gsl_siman.h>
#include <math.h>
#include <string.h>

#include "synth/amp/search.h"

/* Steps per temperature where the options say none, and the temperatures: they fall from a part of
 * the first energy, which takes all but the worst steps, to one that takes none, each time by a
 * factor. */
enum { STEPS = 20 };
static const double FIRST_PART = 0.1, COOLING = 1.05, LAST_PART = 1e-4;

/* The part of the steps that take another choice instead of swapping devices. */
static const double CHOICE_STEPS = 0.2;

typedef struct {
    const AmpSearch *search;
    AmpCandidate *best; /* [choice]: its total_s is infinite until a strategy fits */
} Annealing;

typedef struct {
    Annealing *annealing;
    uint32_t choice;
    uint32_t *order; /* [device] */
} State;

/* GSL calls the same functions for every state. The energy of a state that does not fit is above
 * all others, but finite: GSL takes differences, and the difference of two such states has to be 0
 * so that the walk goes on among them. */
static double energy(void *data)
{
    g_assert(data);
    static const double no_fit_s = DBL_MAX;
    const State *state = data;
    const AmpSearch *search = state->annealing->search;
    const AmpDegrees *c = &g_array_index(search->choices, AmpDegrees, state->choice);
    AmpStrategy strategy = amp_strategy_of(search, c);
    AmpCost cost;
    amp_place_stages(&strategy, state->order);
    AmpCandidate *best = &state->annealing->best[state->choice];
    const bool fits = amp_assign_layers(search, &strategy, &cost);
    if (fits && cost.total_s < best->cost.total_s) {
        amp_strategy_clear(&best->strategy);
        *best = (AmpCandidate){.strategy = strategy, .cost = cost};
    } else
        amp_strategy_clear(&strategy);
    return fits ? cost.total_s : no_fit_s;
}

static void step(const gsl_rng *rng, void *data, double size)
{
    (void)size;
    State *state = data;
    const AmpSearch *search = state->annealing->search;
    const uint32_t n = search->cluster->n_devices;
    if (gsl_rng_uniform(rng) < CHOICE_STEPS) {
        state->choice = (uint32_t)gsl_rng_uniform_int(rng, search->choices->len);
        return;
    }
    const uint32_t a = (uint32_t)gsl_rng_uniform_int(rng, n),
                   b = (uint32_t)gsl_rng_uniform_int(rng, n);
    const uint32_t device = state->order[a];
    state->order[a] = state->order[b];
    state->order[b] = device;
}

static void copy_state(void *from, void *to)
{
    const State *source = from;
    State *target = to;
    target->choice = source->choice;
    memcpy(target->order, source->order,
           source->annealing->search->cluster->n_devices * sizeof *source->order);
}

static void *duplicate_state(void *from)
{
    const State *source = from;
    State *copy = g_new(State, 1);
    *copy = *source;
    copy->order = g_memdup2(source->order, source->annealing->search->cluster->n_devices *
                                               sizeof *source->order);
    return copy;
}

static void free_state(void *data)
{
    State *state = data;
    g_free(state->order);
    g_free(state);
}

/* Needed by GSL's interface, called only when positions are printed. */
static double distance(void *a, void *b)
{
    const State *x = a, *y = b;
    double different = x->choice != y->choice;
    for (uint32_t d = 0; d < x->annealing->search->cluster->n_devices; d++)
        different += x->order[d] != y->order[d];
    return different;
}

/* Steps per temperature. */
static int steps_of(const AmpSearch *search, uint32_t n_choices)
{
    const uint32_t steps = search->options->steps > 0 ? search->options->steps : STEPS;
    g_assert(search->choices->len > 0 && search->choices->len <= n_choices);
    return (int)(((uint64_t)steps * search->choices->len + n_choices - 1) / n_choices);
}

void amp_anneal(const AmpSearch *search, uint32_t n_choices, GArray *candidates)
{
    const uint32_t n = search->cluster->n_devices;
    Annealing annealing = {search, g_new0(AmpCandidate, search->choices->len)};
    for (guint i = 0; i < search->choices->len; i++)
        annealing.best[i].cost.total_s = INFINITY;
    g_autofree uint32_t *order = g_new(uint32_t, n);
    for (uint32_t d = 0; d < n; d++)
        order[d] = d;
    State state = {&annealing, 0, order};
    double first = INFINITY;
    for (uint32_t i = 0; i < search->choices->len; i++) {
        State start = {&annealing, i, order};
        if (energy(&start) < first) {
            first = energy(&start);
            state.choice = i;
        }
    }
    gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_rng_set(rng, (unsigned long)search->options->seed);
    const gsl_siman_params_t params = {.n_tries = 1,
                                       .iters_fixed_T = steps_of(search, n_choices),
                                       .step_size = 1,
                                       .k = 1,
                                       .t_initial = FIRST_PART * first,
                                       .mu_t = COOLING,
                                       .t_min = LAST_PART * first};
    gsl_siman_solve(rng, &state, energy, step, distance, NULL, copy_state,
                    duplicate_state, free_state, 0, params);
    gsl_rng_free(rng);
    for (guint i = 0; i < search->choices->len; i++)
        if (isfinite(annealing.best[i].cost.total_s))
            g_array_append_val(candidates, annealing.best[i]);
    g_free(annealing.best);
}
