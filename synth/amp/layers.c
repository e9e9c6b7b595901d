/* Delays over layers, as products of max-plus matrices. */
#include "synth/amp/layers.h"

#include <math.h>

#include "data/base/free.h"

struct AmpLayers {
    const AmpModel *model;
    const AmpCluster *cluster;
    GHashTable *known; /* GBytes -> AmpDelay [pass * n_layers + layer] */
    double *end_s;     /* scratch [step] */
};

AmpLayers *amp_layers_new(const AmpModel *model, const AmpCluster *cluster)
{
    AmpLayers *layers = g_new(AmpLayers, 1);
    layers->model = model;
    layers->cluster = cluster;
    layers->known = g_hash_table_new_full(g_bytes_hash, g_bytes_equal,
                                          (GDestroyNotify)g_bytes_unref, g_free);
    layers->end_s = g_new(double, model->steps->step->len);
    return layers;
}

FREE_DEFINE(amp_layers_free, AmpLayers, layers, g_hash_table_unref(layers->known),
            g_free(layers->end_s));

/* --- delays --- */

AmpClocks amp_clocks_pass(const AmpClocks *clocks, const AmpDelay *delay)
{
    KILTER_ASSERT(!isnan(clocks->s[CLOCK_HOST]));
    AmpClocks after;
    for (uint32_t k = 0; k < CLOCKS; k++)
        after.s[k] = clocks->s[0] + delay->s[0][k];
    for (uint32_t i = 1; i < CLOCKS; i++)
        for (uint32_t k = 0; k < CLOCKS; k++) {
            const double at = clocks->s[i] + delay->s[i][k];
            after.s[k] = MAX(after.s[k], at);
        }
    return after;
}

AmpDelay amp_delay_none(void)
{
    AmpDelay none;
    for (uint32_t i = 0; i < CLOCKS; i++)
        for (uint32_t k = 0; k < CLOCKS; k++)
            none.s[i][k] = i == k ? 0 : -INFINITY;
    return none;
}

AmpDelay amp_delay_join(const AmpDelay *first, const AmpDelay *then)
{
    AmpDelay both;
    for (uint32_t i = 0; i < CLOCKS; i++) {
        AmpClocks at;
        for (uint32_t k = 0; k < CLOCKS; k++)
            at.s[k] = first->s[i][k];
        at = amp_clocks_pass(&at, then);
        for (uint32_t k = 0; k < CLOCKS; k++)
            both.s[i][k] = at.s[k];
    }
    return both;
}

double amp_delay_pace(const AmpDelay *delay)
{
    double pace_s = 0;
    for (uint32_t i = 0; i < CLOCKS; i++)
        pace_s = MAX(pace_s, delay->s[i][i]);
    return pace_s;
}

/* --- passes over one layer --- */

/* The devices of a replica of a stage, as far as times depend on them. */
typedef struct {
    uint32_t degree, mbs;
    uint32_t n_types, *type;  /* distinct types */
    double *price_s;          /* [message kind] */
    const double *gradient_s; /* [kind]; NULL: gradients are not all-reduced */
    double launch_s;          /* launch time of an all-reduce */
    const AmpAgain *again;    /* only these steps run; NULL: all do */
    AmpWhen when;             /* and of them these */
} Where;

double amp_step_s(const AmpModel *model, uint32_t degree, uint32_t mbs, uint32_t type,
                  uint32_t step)
{
    const uint32_t n = model->steps->step->len;
    const double samples = mbs;
    const double *row = model->steps->time_s +
                        ((size_t)type * model->n_degrees + degree) * model->n_sizes * n +
                        step;
    uint32_t above = 0;
    while (above < model->n_sizes && model->size[above] < samples)
        above++;
    if (above < model->n_sizes && model->size[above] == samples)
        return row[(size_t)above * n];
    if (above == 0 || model->n_sizes == 1)
        return row[0] * samples / model->size[0];
    above = MIN(above, model->n_sizes - 1);
    const double x0 = model->size[above - 1], x1 = model->size[above];
    const double y0 = row[(size_t)(above - 1) * n], y1 = row[(size_t)above * n];
    return y0 + (y1 - y0) * (samples - x0) / (x1 - x0);
}

static double slowest_s(const AmpModel *model, const Where *w, uint32_t i, bool launch)
{
    double slowest = 0;
    for (uint32_t t = 0; t < w->n_types; t++)
        slowest = MAX(
            slowest,
            launch
                ? model->steps->launch_s[(size_t)w->type[t] * model->steps->step->len + i]
                : amp_step_s(model, w->degree, w->mbs, w->type[t], i));
    return slowest;
}

/* When the step that a step waits for has ended; a step of another layer has ended by the clocks at
 * the beginning. */
static double amp_ready_s(const AmpLayers *layers, const AmpStep *step, uint32_t first,
                          uint32_t end, const AmpClocks *begin)
{
    if (step->after == AMP_NO_STEP)
        return -INFINITY;
    if (step->after < first || step->after >= end)
        return begin->s[step->is_message ? CLOCK_DEVICE : CLOCK_SHARED];
    return layers->end_s[step->after];
}

/* Runs a task of a stream that the host launches. */
static double run_task(AmpClocks *now, double *stream, double ready, double launch,
                       double seconds)
{
    KILTER_ASSERT(seconds >= 0 && launch >= 0);
    now->s[CLOCK_HOST] += launch;
    const double launched = launch > 0 ? now->s[CLOCK_HOST] : -INFINITY;
    *stream = MAX(MAX(*stream, ready), launched) + seconds;
    return *stream;
}

static void reduce_gradients(const AmpLayers *layers, const Where *w, uint32_t i,
                             AmpClocks *now)
{
    const uint32_t *first = &layers->model->steps->first_gradient[i];
    for (uint32_t k = first[0]; w->gradient_s && k < first[1]; k++)
        run_task(
            now, &now->s[CLOCK_STREAM], layers->end_s[i], w->launch_s,
            w->gradient_s[g_array_index(layers->model->steps->gradient, AmpGradient, k)
                              .kind]);
}

/* Runs the steps of a layer. A device that shares its layers with no other sends no messages. */
static AmpClocks amp_run_layer(AmpLayers *layers, const Where *w, uint32_t first,
                               uint32_t end, AmpClocks begin)
{
    const AmpModel *model = layers->model;
    const bool alone = model->degree[w->degree] == 1;
    AmpClocks now = begin;
    for (uint32_t i = first; i < end; i++) {
        const AmpStep *step = &g_array_index(model->steps->step, AmpStep, i);
        const double ready = amp_ready_s(layers, step, first, end, &begin);
        if (w->again && w->again->when[i] != w->when) {
            layers->end_s[i] = -INFINITY;
            continue;
        }
        if (!step->is_message)
            layers->end_s[i] =
                run_task(&now, &now.s[CLOCK_DEVICE], ready, slowest_s(model, w, i, true),
                         slowest_s(model, w, i, false));
        else if (alone)
            layers->end_s[i] = ready;
        else
            layers->end_s[i] = now.s[CLOCK_SHARED] =
                run_task(&now, &now.s[CLOCK_STREAM], ready, slowest_s(model, w, i, true),
                         w->price_s[step->message]);
        reduce_gradients(layers, w, i, &now);
    }
    return now;
}

static AmpDelay layer_delay(AmpLayers *layers, const Where *w, uint32_t first,
                            uint32_t end)
{
    AmpDelay delay;
    for (uint32_t i = 0; i < CLOCKS; i++) {
        AmpClocks begin;
        for (uint32_t k = 0; k < CLOCKS; k++)
            begin.s[k] = -INFINITY;
        begin.s[i] = 0;
        const AmpClocks after = amp_run_layer(layers, w, first, end, begin);
        for (uint32_t k = 0; k < CLOCKS; k++)
            delay.s[i][k] = after.s[k];
    }
    return delay;
}

static void find_delays(AmpLayers *layers, const Where *w, uint32_t n, AmpDelay *delay)
{
    const uint32_t *first = layers->model->steps->first,
                   *like = w->again ? w->again->like : layers->model->steps->like;
    for (uint32_t i = 0; i < n; i++)
        delay[i] =
            like[i] < i ? delay[like[i]] : layer_delay(layers, w, first[i], first[i + 1]);
}

/* --- where --- */

static void find_types(const AmpLayers *layers, const AmpWhere *at, Where *w)
{
    for (uint32_t d = 0; d < at->n; d++) {
        const uint32_t type = layers->cluster->type[at->device[d]];
        uint32_t t = 0;
        while (t < w->n_types && w->type[t] != type)
            t++;
        w->type[t] = type;
        w->n_types = MAX(w->n_types, t + 1);
        w->launch_s = MAX(w->launch_s, layers->model->steps->collective_launch_s[type]);
    }
}

static void find_prices(const AmpLayers *layers, const AmpWhere *at, Where *w)
{
    const GArray *message = layers->model->steps->message;
    for (uint32_t i = 0; at->n > 1 && i < message->len; i++) {
        const AmpMessage *m = &g_array_index(message, AmpMessage, i);
        w->price_s[i] = sim_alone_collective_s(layers->cluster->alone, m->collective,
                                               m->bytes + at->mbs * m->sample_bytes,
                                               at->n, at->n_groups, at->device);
    }
}

/* All that the delays depend on. */
static GBytes *key_of(const AmpModel *model, const Where *w)
{
    const uint32_t n_gradients = w->gradient_s ? model->steps->gradient_kind->len : 0;
    const struct {
        const void *data;
        size_t size;
    } part[] = {
        {w->gradient_s, n_gradients * sizeof *w->gradient_s},
        {&w->degree, sizeof w->degree},
        {&w->mbs, sizeof w->mbs},
        {w->type, model->n_types * sizeof *w->type},
        {&w->n_types, sizeof w->n_types},
        {w->price_s, model->steps->message->len * sizeof *w->price_s},
        {&w->again, sizeof w->again},
    };
    GByteArray *text = g_byte_array_new();
    for (uint32_t i = 0; i < G_N_ELEMENTS(part); i++)
        g_byte_array_append(text, part[i].data, (guint)part[i].size);
    return g_byte_array_free_to_bytes(text);
}

const AmpDelay *amp_layers_delays(AmpLayers *layers, const AmpWhere *at,
                                  const AmpAgain *again)
{
    g_assert(at->n > 0 && at->n_groups > 0);
    const AmpModel *model = layers->model;
    g_autofree uint32_t *type = g_new0(uint32_t, model->n_types);
    g_autofree double *price_s = g_new0(double, MAX(model->steps->message->len, 1));
    Where w = {at->degree, at->mbs,  0, type, price_s, again ? NULL : at->gradient_s, 0,
               again,      AMP_EARLY};
    find_types(layers, at, &w);
    find_prices(layers, at, &w);
    GBytes *key = key_of(model, &w);
    AmpDelay *delay = g_hash_table_lookup(layers->known, key);
    if (!delay) {
        const uint32_t n = model->n_layers;
        delay = g_new(AmpDelay, AMP_PASSES * n);
        find_delays(layers, &w, again ? n : AMP_PASSES * n, delay);
        w.when = AMP_LATE;
        if (again)
            find_delays(layers, &w, n, delay + n);
        g_hash_table_insert(layers->known, key, delay);
    } else {
        g_bytes_unref(key);
    }
    return delay;
}
