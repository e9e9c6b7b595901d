/* The network learns lessons: gradients of the tape, and Adam on batches, whose gradients are
 * summed in one order, so that any number of threads ends at the same bits. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "data/base/free.h"
#include "data/base/parallel.h"
#include "synth/tag/tape.h"
#include "tests/support/tag_learning.h"

TagNet *tag_net_new(NetShape shape, uint64_t seed)
{
    TagNet *net = tag_net_empty(shape);
    g_autoptr(GRand) rand = g_rand_new_with_seed((guint32)seed);
    const double most = sqrt(3.0 / shape.width); /* for a variance of 1 / width */
    for (uint32_t i = 0; i < net->n; i++)
        net->weight[i] = g_rand_double_range(rand, -most, most);
    return net;
}

char *tag_net_text(const TagNet *net, const char *comment)
{
    GString *text = g_string_new(comment);
    if (memcmp(&net->shape, &NET_SHAPE, sizeof NET_SHAPE) != 0)
        g_string_append_printf(text, "shape %u %u %u\n", net->shape.layers,
                               net->shape.heads, net->shape.width);
    for (uint32_t i = 0; i < net->n; i++) {
        char number[G_ASCII_DTOSTR_BUF_SIZE];
        g_string_append(text,
                        g_ascii_formatd(number, sizeof number, "%.6g", net->weight[i]));
        g_string_append_c(text, i % 8 == 7 || i + 1 == net->n ? '\n' : ' ');
    }
    return g_string_free(text, FALSE);
}

void net_view_forget_feedback(NetView *v)
{
    for (uint32_t i = 0; i < v->n_groups; i++)
        v->group[i * NET_GROUP + NET_GROUP_MAKESPAN] =
            v->group[i * NET_GROUP + NET_GROUP_WAIT] = 0;
    for (uint32_t s = 0; s < v->n_sets; s++)
        v->set[s * NET_SET + NET_SET_BUSY] = v->set[s * NET_SET + NET_SET_MEMORY] = 0;
    for (uint32_t e = 0; e < v->n_sets * v->n_sets; e++)
        v->link[e * NET_LINK + NET_LINK_BUSY] = 0;
}

FREE_DEFINE(net_lesson_free, NetLesson, lesson, net_view_free(lesson->view),
            g_free(lesson->target));

/* --- backward --- */

/* Gradients of a tape's values [value], NULL where none is asked for; those of weights are the
 * network's. */
typedef struct {
    const Tape *tape;
    double **of;
} Back;

static void product_back(const Back *back, const TapeEntry *out, const double *d)
{
    const TapeEntry *a = tape_entry(back->tape, out->a),
                    *b = tape_entry(back->tape, out->b);
    double *da = back->of[out->a], *db = back->of[out->b];
    for (uint32_t i = 0; i < out->rows; i++)
        for (uint32_t k = 0; k < a->columns; k++)
            for (uint32_t j = 0; j < out->columns; j++) {
                if (da)
                    da[i * a->columns + k] +=
                        d[i * out->columns + j] * b->value[k * out->columns + j];
                if (db)
                    db[k * out->columns + j] +=
                        d[i * out->columns + j] * a->value[i * a->columns + k];
            }
}

static void sum_back(const Back *back, const TapeEntry *out, const double *d)
{
    double *da = back->of[out->a], *db = back->of[out->b];
    const bool one = tape_entry(back->tape, out->b)->rows == 1;
    for (uint32_t i = 0; i < out->rows * out->columns; i++) {
        if (da)
            da[i] += d[i];
        if (db)
            db[one ? i % out->columns : i] += d[i];
    }
}

static void map_back(const Back *back, const TapeEntry *out, const double *d)
{
    double *da = back->of[out->a];
    for (uint32_t i = 0; da && i < out->rows * out->columns; i++) {
        const double y = out->value[i];
        const double slope = out->kind == TAPE_TANH ? 1 - y * y : y < 0 ? TAPE_SLOPE : 1;
        da[i] += slope * d[i];
    }
}

static void rows_back(const Back *back, const TapeEntry *out, const double *d)
{
    double *da = back->of[out->a];
    for (uint32_t i = 0; da && i < out->rows; i++)
        for (uint32_t j = 0; j < out->columns; j++)
            da[out->index[i] * out->columns + j] += d[i * out->columns + j];
}

static void attend_back(const Back *back, const TapeEntry *out, const double *gradient)
{
    const TapeEntry *value = tape_entry(back->tape, out->b);
    double *ds = back->of[out->a], *dv = back->of[out->b];
    const uint32_t n = value->rows, columns = out->columns;
    g_autofree double *gain = g_new0(double, n + 1);
    g_autofree double *mean = g_new0(double, out->rows + 1);
    for (uint32_t e = 0; e < n; e++) {
        const double *d = &gradient[out->index[e] * columns];
        for (uint32_t j = 0; j < columns; j++) {
            gain[e] += d[j] * value->value[e * columns + j];
            if (dv)
                dv[e * columns + j] += out->part[e] * d[j];
        }
        mean[out->index[e]] += out->part[e] * gain[e];
    }
    for (uint32_t e = 0; ds && e < n; e++)
        ds[e] += out->part[e] * (gain[e] - mean[out->index[e]]);
}

/* Adds the gradients of the network's weights, given that of the last value [rows * columns]. */
static void tape_back(const Tape *tape, TapeValue last, const double *last_gradient,
                      const TagNet *net, double *gradient)
{
    static void (*const step[])(const Back *, const TapeEntry *, const double *) = {
        [TAPE_PRODUCT] = product_back, [TAPE_SUM] = sum_back,
        [TAPE_TANH] = map_back,        [TAPE_LEAKY] = map_back,
        [TAPE_ROWS] = rows_back,       [TAPE_ATTEND] = attend_back};
    g_autofree double **of = g_new0(double *, last + 1);
    const Back back = {tape, of};
    for (TapeValue k = 0; k <= last; k++) {
        const TapeEntry *entry = tape_entry(tape, k);
        const uint32_t n = entry->rows * entry->columns;
        const bool weights =
            entry->value >= net->weight && entry->value < net->weight + net->n;
        if (entry->kind != TAPE_GIVEN)
            of[k] = k == last ? g_memdup2(last_gradient, n * sizeof *last_gradient)
                              : g_new0(double, n + 1);
        else if (weights)
            of[k] = gradient + (entry->value - net->weight);
    }
    for (TapeValue k = last + 1; k-- > 0;) {
        const TapeEntry *entry = tape_entry(tape, k);
        if (entry->kind == TAPE_GIVEN)
            continue;
        step[entry->kind](&back, entry, of[k]);
        g_free(of[k]);
    }
}

double tag_net_learn(const TagNet *net, const NetView *view, const double *target,
                     double *gradient)
{
    g_autoptr(Tape) tape = tape_new();
    g_autofree double *prior = g_new(double, view->n_actions);
    double loss = 0;
    tag_net_priors(net, view, prior);
    for (uint32_t a = 0; a < view->n_actions; a++) {
        loss -= target[a] > 0 ? target[a] * log(fmax(prior[a], DBL_MIN)) : 0;
        prior[a] -= target[a];
    }
    tape_back(tape, tag_net_scores(net, view, tape), prior, net, gradient);
    return loss;
}

/* --- one batch --- */

typedef struct {
    const TagNet *net;
    NetLesson *const *lesson; /* [lesson of the batch] */
    double **gradient, *loss; /* [lesson of the batch] */
} Batch;

static bool learn_one(void *context, uint32_t i, GError **error)
{
    (void)error;
    const Batch *b = context;
    memset(b->gradient[i], 0, b->net->n * sizeof(double));
    b->loss[i] =
        tag_net_learn(b->net, b->lesson[i]->view, b->lesson[i]->target, b->gradient[i]);
    return true;
}

/* Adam's moments (Kingma and Ba, ICLR'15), [weight] each. */
typedef struct {
    double *mean, *square;
    uint32_t step;
} Adam;

static void take_step(TagNet *net, Adam *adam, double **gradient, uint32_t n, double rate)
{
    static const double BETA1 = 0.9, BETA2 = 0.999, LEAST = 1e-8;
    adam->step++;
    const double r =
        rate * sqrt(1 - pow(BETA2, adam->step)) / (1 - pow(BETA1, adam->step));
    for (uint32_t w = 0; w < net->n; w++) {
        double g = 0;
        for (uint32_t i = 0; i < n; i++)
            g += gradient[i][w] / n;
        adam->mean[w] = BETA1 * adam->mean[w] + (1 - BETA1) * g;
        adam->square[w] = BETA2 * adam->square[w] + (1 - BETA2) * g * g;
        net->weight[w] -= r * adam->mean[w] / (sqrt(adam->square[w]) + LEAST);
    }
}

/* --- all of them --- */

static void shuffle(NetLesson **order, uint32_t n, GRand *rand)
{
    for (uint32_t i = n; i > 1; i--) {
        const uint32_t other = (uint32_t)g_rand_int_range(rand, 0, (gint32)i);
        NetLesson *last = order[i - 1];
        order[i - 1] = order[other];
        order[other] = last;
    }
}

void tag_net_train(TagNet *net, NetLesson *const *lesson, uint32_t n,
                   const NetTraining *training)
{
    const uint32_t size = net->n, most = MAX(training->batch, 1);
    g_autofree double *mean = g_new0(double, size), *square = g_new0(double, size);
    g_autofree double *gradient = g_new(double, (gsize)most *size);
    g_autofree double **of = g_new(double *, most);
    g_autofree double *loss = g_new0(double, most);
    g_autofree NetLesson **order = g_memdup2(lesson, n * sizeof *order);
    g_autoptr(GRand) rand = g_rand_new_with_seed((guint32)training->seed);
    Adam adam = {mean, square, 0};
    for (uint32_t i = 0; i < most; i++)
        of[i] = &gradient[(gsize)i * size];
    for (uint32_t epoch = 1; epoch <= training->epochs; epoch++) {
        double sum = 0;
        shuffle(order, n, rand);
        for (uint32_t first = 0; first < n; first += most) {
            const uint32_t now = MIN(most, n - first);
            Batch batch = {net, &order[first], of, loss};
            const bool done =
                parallel_each(now, training->threads, learn_one, &batch, NULL);
            g_assert(done);
            for (uint32_t i = 0; i < now; i++)
                sum += loss[i];
            take_step(net, &adam, of, now, training->rate);
        }
        if (training->after)
            training->after(training->context, net, epoch, sum / MAX(n, 1));
    }
}

double tag_net_mean_loss(const TagNet *net, NetLesson *const *lesson, uint32_t n)
{
    g_autofree double *gradient = g_new0(double, net->n);
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += tag_net_learn(net, lesson[i]->view, lesson[i]->target, gradient);
    return sum / MAX(n, 1);
}
