/* Simulated annealing (AMP Sec. 4.2; its artifact, sa.py at 72eeea45): a state is a choice of
 * degrees and microbatch size with a placement as a domino tiling; a step takes another degree of
 * tensor parallelism or of replicas, a placement and a microbatch size; the energy is the cost with
 * the layers assigned exactly. No state is tried twice. */
#include <gsl/gsl_rng.h>
#include <math.h>

#include "synth/amp/search.h"

/* Draws for each state: most that are known, that cover no grid or that do not fit come soon. */
enum { DRAWS = 100 };

/* The first temperature is this part of the first energy, which takes all but the worst steps; it
 * falls to 0 in equal steps. */
static const double FIRST_PART = 0.1;

/* Whether the strategy was not tried yet; it is, from now on. */
static bool is_new(GHashTable *tried, const AmpStrategy *s)
{
    const uint32_t n = s->pp * s->dp * s->tmp;
    GByteArray *key = g_byte_array_new();
    g_byte_array_append(key, (const uint8_t *)s->device, n * sizeof *s->device);
    const uint32_t degrees[] = {s->pp, s->dp, s->mbs};
    g_byte_array_append(key, (const uint8_t *)degrees, sizeof degrees);
    return g_hash_table_add(tried, g_byte_array_free_to_bytes(key));
}

void amp_anneal(const AmpSearch *search, uint32_t n, GArray *candidates)
{
    g_assert(search->choices->len > 0);
    g_autoptr(GHashTable) tried = g_hash_table_new_full(
        g_bytes_hash, g_bytes_equal, (GDestroyNotify)g_bytes_unref, NULL);
    gsl_rng *rng = gsl_rng_alloc(gsl_rng_mt19937);
    gsl_rng_set(rng, (unsigned long)search->options->seed);
    AmpDegrees now = {0};
    double now_s = INFINITY, first_s = 0;
    for (uint64_t draws = 0; draws < (uint64_t)DRAWS * n && candidates->len < n;
         draws++) {
        AmpCandidate next = {0};
        AmpStrategy *s = &next.strategy;
        if (!amp_draw_domino(rng, search, isfinite(now_s) ? &now : NULL, s))
            continue;
        if (!is_new(tried, s) || !amp_assign_layers(search, s, &next.cost)) {
            amp_strategy_clear(s);
            continue;
        }
        if (!isfinite(now_s))
            first_s = next.cost.total_s;
        const double heat = FIRST_PART * first_s * (1 - (double)candidates->len / n);
        g_array_append_val(candidates, next);
        if (gsl_rng_uniform(rng) < exp((now_s - next.cost.total_s) / heat)) {
            now = (AmpDegrees){s->pp, s->dp, s->tmp, s->mbs};
            now_s = next.cost.total_s;
        }
    }
    gsl_rng_free(rng);
}
