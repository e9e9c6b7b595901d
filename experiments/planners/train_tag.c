/* Trains TAG's network and asks whether it pays (TPDS 2023, Sec. 4.2.5, 5.7). A program of its own, run by ./run train-tag:
 *
 *     train_tag OUTPUT COMMIT
 *
 * Lessons are the visits of tree searches with uniform priors on random topologies (random:seed=, from FIRST_SEED on), of all six
 * models; the network learns them by Adam in batches, whose gradients are summed in one order. Then, on 100 topologies that it
 * never saw, the iterations until the tree search beats data parallelism are counted with uniform priors and with the
 * network's, and the strategies that the search `best` tries without either. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "balance/balance.h"
#include "experiments/planners/ratios.h"
#include "experiments/planners/tag_case.h"
#include "synth/synth.h"

enum {
    SEED = 1,
    FIRST_SEED = 1001, /* of topologies to learn on; those to test on begin at 1 */
    TOPOLOGIES = 10,
    ITERATIONS = 300, /* of a search that teaches, */
    VISITS = 24,      /* and the least visits of a vertex that does */
    HELD_OUT = 5,     /* each n-th topology is not learnt, to see the loss on */
    EPOCHS = 24,
    BATCH = 8,
    TESTS = 100,
    MOST = 800, /* iterations of a test */
    GROUPS = 60
};
static const double RATE = 1e-3, IMBALANCE = 2;

static const char *const MODEL[] = {
    "vgg19:image=224,global_batch=96,classes=1000",
    "tag-bert-small:global_batch=96",
    "tag-transformer:global_batch=480",
    "tag-inceptionv3:global_batch=96",
    "tag-resnet101:global_batch=96",
    "tag-bert-large:global_batch=16", /* not among the tests, as in Table 7 */
};
enum { MODELS = G_N_ELEMENTS(MODEL), TESTED = MODELS - 1 };

/* --- a model on a topology --- */

typedef struct {
    Cluster *cluster;
    ClusterView *view;
    TagCase tag;
} Case;

static void case_clear(Case *c)
{
    tag_case_clear(&c->tag);
    cluster_view_free(c->view);
    cluster_free(c->cluster);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Case, case_clear)

static bool case_open(Case *c, const Graph *graph, uint32_t seed, GError **error)
{
    g_autofree char *name = g_strdup_printf("random:seed=%u", seed);
    TagCase *tag = &c->tag;
    if (!(c->cluster = cluster_load(name, error)))
        return false;
    c->view = cluster_view(c->cluster, GRANULARITY_GPU);
    const uint32_t n = c->view->n_devices;
    g_autofree double *ratio = ratios_even(c->view);
    if (!tag_case_open(tag, graph, c->view, ratio, error))
        return false;
    for (OpId id = 0; id < graph_n_ops(graph); id++)
        for (uint32_t j = 0; j < n; j++)
            tag->time_s[id] +=
                sim_quick_place_s(tag->quick, tag->space->single[j], id, 0) / n;
    const uint32_t groups =
        balance_groups_metis(graph, tag->time_s, GROUPS, IMBALANCE, tag->group, error);
    tag->work = (TagWork){graph, tag->batch, groups, tag->group, tag->time_s};
    return groups > 0;
}

static TagResult run(const Case *c, TagMethod method, uint32_t evaluations,
                     const TagNet *net, GPtrArray *lessons)
{
    const TagSearch search = {.method = method,
                              .objective = TAG_BY_FLOW,
                              .evaluations = evaluations,
                              .leave = true,
                              .net = net,
                              .lessons = lessons,
                              .lesson_visits = VISITS,
                              .seed = SEED};
    TagResult result = {0};
    synth_tag_search(c->tag.space, &c->tag.work, c->tag.quick, &search, NULL, 0, &result);
    return result;
}

/* --- learning --- */

typedef struct {
    GPtrArray *learnt, *held; /* NetLesson */
} Lessons;

static bool find_lessons(Graph *const *graph, Lessons *lessons, GError **error)
{
    for (uint32_t m = 0; m < MODELS; m++)
        for (uint32_t k = 0; k < TOPOLOGIES; k++) {
            g_auto(Case) c = {0};
            if (!case_open(&c, graph[m], FIRST_SEED + m * TOPOLOGIES + k, error))
                return false;
            if (c.tag.space->n_actions < 2)
                continue;
            g_auto(TagResult) result =
                run(&c, TAG_MCTS, ITERATIONS, NULL,
                    k % HELD_OUT == HELD_OUT - 1 ? lessons->held : lessons->learnt);
        }
    return true;
}

static double mean_loss(const TagNet *net, const GPtrArray *lessons)
{
    g_autofree double *gradient = g_new(double, tag_net_size());
    double sum = 0;
    for (uint32_t i = 0; i < lessons->len; i++) {
        const NetLesson *lesson = lessons->pdata[i];
        sum += tag_net_learn(net, lesson->view, lesson->target, gradient);
    }
    return sum / MAX(lessons->len, 1);
}

typedef struct {
    const TagNet *net;
    const NetLesson *lesson[BATCH];
    double *gradient[BATCH], loss[BATCH];
    uint32_t first, n; /* of the batch, for one of two threads */
} Half;

static gpointer learn_half(gpointer data)
{
    Half *half = data;
    for (uint32_t i = half->first; i < half->n; i += 2) {
        memset(half->gradient[i], 0, tag_net_size() * sizeof(double));
        half->loss[i] = tag_net_learn(half->net, half->lesson[i]->view,
                                      half->lesson[i]->target, half->gradient[i]);
    }
    return NULL;
}

typedef struct {
    double *mean, *square; /* Adam's moments, [weight] */
    uint32_t step;
    double *gradient[BATCH];
} Adam;

/* One step on a batch, by two threads; the sum over the batch is in its order. */
static double learn_batch(TagNet *net, Adam *adam, NetLesson *const *lesson, uint32_t n)
{
    static const double BETA1 = 0.9, BETA2 = 0.999, LEAST = 1e-8;
    Half half[2];
    double loss = 0;
    for (uint32_t h = 0; h < 2; h++) {
        half[h] = (Half){.net = net, .first = h, .n = n};
        for (uint32_t i = 0; i < n; i++) {
            half[h].lesson[i] = lesson[i];
            half[h].gradient[i] = adam->gradient[i];
        }
    }
    GThread *thread = g_thread_new("half", learn_half, &half[1]);
    learn_half(&half[0]);
    g_thread_join(thread);
    for (uint32_t i = 0; i < n; i++)
        loss += half[i % 2].loss[i];
    adam->step++;
    const double rate =
        RATE * sqrt(1 - pow(BETA2, adam->step)) / (1 - pow(BETA1, adam->step));
    for (uint32_t w = 0; w < tag_net_size(); w++) {
        double g = 0;
        for (uint32_t i = 0; i < n; i++)
            g += adam->gradient[i][w] / n;
        adam->mean[w] = BETA1 * adam->mean[w] + (1 - BETA1) * g;
        adam->square[w] = BETA2 * adam->square[w] + (1 - BETA2) * g * g;
        tag_net_weights(net)[w] -= rate * adam->mean[w] / (sqrt(adam->square[w]) + LEAST);
    }
    return loss;
}

static void learn(TagNet *net, const Lessons *lessons)
{
    Adam adam = {.mean = g_new0(double, tag_net_size()),
                 .square = g_new0(double, tag_net_size())};
    GRand *rand = g_rand_new_with_seed(SEED);
    NetLesson **order =
        g_memdup2(lessons->learnt->pdata, lessons->learnt->len * sizeof *order);
    const uint32_t n = lessons->learnt->len;
    for (uint32_t i = 0; i < BATCH; i++)
        adam.gradient[i] = g_new0(double, tag_net_size());
    printf("loss before: %.4f learnt, %.4f held out\n", mean_loss(net, lessons->learnt),
           mean_loss(net, lessons->held));
    for (uint32_t epoch = 1; epoch <= EPOCHS; epoch++) {
        double loss = 0;
        for (uint32_t i = n; i > 1; i--) {
            const uint32_t other = (uint32_t)g_rand_int_range(rand, 0, (gint32)i);
            NetLesson *last = order[i - 1];
            order[i - 1] = order[other];
            order[other] = last;
        }
        for (uint32_t i = 0; i < n; i += BATCH)
            loss += learn_batch(net, &adam, &order[i], MIN(BATCH, n - i));
        if (epoch % 4 == 0)
            printf("epoch %u: %.4f learnt, %.4f held out\n", epoch, loss / n,
                   mean_loss(net, lessons->held));
        fflush(stdout);
    }
    for (uint32_t i = 0; i < BATCH; i++)
        g_free(adam.gradient[i]);
    g_free(adam.mean);
    g_free(adam.square);
    g_free(order);
    g_rand_free(rand);
}

/* --- does it pay? --- */

enum { UNIFORM, NETWORK, BEST, WAYS };

typedef struct {
    uint32_t n;
    uint32_t never[WAYS];   /* not within MOST */
    double sum[WAYS];       /* of iterations; MOST where never */
    double log_ratio[WAYS]; /* of uniform priors' over the way's */
} Tally;

static bool test_one(const Graph *graph, uint32_t seed, const TagNet *net, Tally *tally,
                     GError **error)
{
    g_auto(Case) c = {0};
    if (!case_open(&c, graph, seed, error))
        return false;
    if (c.tag.space->n_actions < 2)
        return true;
    double took[WAYS];
    for (uint32_t way = 0; way < WAYS; way++) {
        g_auto(TagResult) result = run(&c, way == BEST ? TAG_BEST : TAG_MCTS, MOST,
                                       way == NETWORK ? net : NULL, NULL);
        tally->never[way] += result.to_beat_dp == 0;
        took[way] = result.to_beat_dp ? result.to_beat_dp : MOST;
        tally->sum[way] += took[way];
    }
    for (uint32_t way = 0; way < WAYS; way++)
        tally->log_ratio[way] += log(took[UNIFORM] / took[way]);
    tally->n++;
    return true;
}

static void print_tally(const char *name, const Tally *t)
{
    const uint32_t n = MAX(t->n, 1);
    printf("%-28.28s %3u", name, t->n);
    for (uint32_t way = 0; way < WAYS; way++)
        printf("  %7.1f (%2u never)", t->sum[way] / n, t->never[way]);
    printf("  %6.2f  %6.2f\n", exp(t->log_ratio[NETWORK] / n),
           exp(t->log_ratio[BEST] / n));
    fflush(stdout);
}

/* Topologies 1 to TESTS, the models in turn. */
static bool test(Graph *const *graph, const TagNet *net, GError **error)
{
    Tally tally[TESTED] = {0}, all = {0};
    printf("%-28s %3s  %-17s  %-17s  %-17s  fewer by network, by best\n",
           "iterations to beat DP", "n", "uniform", "network", "best, no network");
    for (uint32_t k = 0; k < TESTS; k++)
        if (!test_one(graph[k % TESTED], k + 1, net, &tally[k % TESTED], error))
            return false;
    for (uint32_t m = 0; m < TESTED; m++) {
        print_tally(MODEL[m], &tally[m]);
        all.n += tally[m].n;
        for (uint32_t way = 0; way < WAYS; way++) {
            all.never[way] += tally[m].never[way];
            all.sum[way] += tally[m].sum[way];
            all.log_ratio[way] += tally[m].log_ratio[way];
        }
    }
    print_tally("all", &all);
    return true;
}

static bool train(const char *output, const char *commit, GError **error)
{
    Graph *graph[MODELS] = {0};
    Lessons lessons = {g_ptr_array_new_with_free_func(net_lesson_free),
                       g_ptr_array_new_with_free_func(net_lesson_free)};
    g_autoptr(TagNet) net = tag_net_new(SEED);
    bool good = true;
    for (uint32_t m = 0; good && m < MODELS; m++)
        good = (graph[m] = model_build(MODEL[m], 1, NULL, error)) != NULL;
    if (good && (good = find_lessons(graph, &lessons, error))) {
        printf("%u lessons to learn, %u held out\n", lessons.learnt->len,
               lessons.held->len);
        learn(net, &lessons);
        g_autofree char *comment = g_strdup_printf(
            "# Weights of TAG's network (synth/tag/net.h), %u numbers. Made by ./run "
            "train-tag at commit %s.\n"
            "# Seed %d; lessons: %u vertices of tree searches of %d iterations, six "
            "models, random:seed=%d and on, %d epochs.\n",
            tag_net_size(), commit, SEED, lessons.learnt->len, ITERATIONS, FIRST_SEED,
            EPOCHS);
        g_autofree char *text = tag_net_text(net, comment);
        g_autoptr(TagNet) read = NULL;
        good = g_file_set_contents(output, text, -1, error) &&
               (read = tag_net_read(output, error)) && test(graph, read, error);
    }
    for (uint32_t m = 0; m < MODELS; m++)
        graph_free(graph[m]);
    g_ptr_array_free(lessons.learnt, TRUE);
    g_ptr_array_free(lessons.held, TRUE);
    return good;
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    if (argc != 3) {
        fprintf(stderr, "usage: train_tag OUTPUT COMMIT\n");
        return 2;
    }
    if (!train(argv[1], argv[2], &error)) {
        fprintf(stderr, "train_tag: %s\n", error->message);
        return error->code;
    }
    return 0;
}
