/* The network learns lessons: Adam on batches, whose gradients are summed in one order, so that any
 * number of threads ends at the same bits. */
#include <math.h>
#include <string.h>

#include "data/base/parallel.h"
#include "tests/support/tag_learning.h"

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
    memset(b->gradient[i], 0, tag_net_size() * sizeof(double));
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
    for (uint32_t w = 0; w < tag_net_size(); w++) {
        double g = 0;
        for (uint32_t i = 0; i < n; i++)
            g += gradient[i][w] / n;
        adam->mean[w] = BETA1 * adam->mean[w] + (1 - BETA1) * g;
        adam->square[w] = BETA2 * adam->square[w] + (1 - BETA2) * g * g;
        tag_net_weights(net)[w] -= r * adam->mean[w] / (sqrt(adam->square[w]) + LEAST);
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
    const uint32_t size = tag_net_size(), most = MAX(training->batch, 1);
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
    g_autofree double *gradient = g_new0(double, tag_net_size());
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += tag_net_learn(net, lesson[i]->view, lesson[i]->target, gradient);
    return sum / MAX(n, 1);
}
