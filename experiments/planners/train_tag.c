/* Trains TAG's network and measures whether it pays (TPDS 2023, Sec. 4.2.5, 5.5, 5.7). This is a
 * separate program, run by ./run train-tag:
 *
 *     train_tag OUTPUT CURVES COMMIT
 *
 * Lessons are the visits of tree searches with uniform priors on random topologies (random:seed=,
 * from FIRST_SEED on), for all six models; the network learns them (synth/tag/net.h) with and
 * without runtime feedback, whose losses by epoch are the curves of Fig. 7. Then, on 100 unseen
 * topologies, the program counts the iterations until the tree search beats data parallelism, with
 * uniform priors and with the network's, and the strategies that the search `best` tries, which uses
 * neither. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "balance/balance.h"
#include "experiments/planners/ratios.h"
#include "experiments/planners/tag_case.h"
#include "synth/synth.h"

enum {
    SEED = 1,
    FIRST_SEED =
        1001, /* first seed of the topologies to learn on; test topologies begin at 1 */
    TOPOLOGIES = 10,
    ITERATIONS = 300, /* iterations of a search for lessons */
    VISITS = 24,      /* least visits of a vertex that becomes a lesson */
    HELD_OUT = 5,     /* every n-th topology is held out, for the loss */
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
    g_autofree double *ratio = ratios_even(c->view);
    if (!tag_case_open(tag, graph, c->view, ratio, error))
        return false;
    tag_mean_times(graph, tag->space, tag->quick, tag->time_s);
    const uint32_t groups =
        balance_groups_metis(graph, tag->time_s, GROUPS, IMBALANCE, tag->group, error);
    tag->work = (TagWork){.graph = graph,
                          .batch = tag->batch,
                          .n_groups = groups,
                          .group = tag->group,
                          .time_s = tag->time_s};
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

/* The numbers of an epoch: the curves of TAG's Fig. 7. */
typedef struct {
    const Lessons *lessons;
    const char *name;
    uint32_t seat;
    GString *rows;
} Curve;

static void note_epoch(void *context, const TagNet *net, uint32_t epoch, double loss)
{
    const Curve *curve = context;
    const GPtrArray *held = curve->lessons->held;
    const double of_held =
        tag_net_mean_loss(net, (NetLesson *const *)held->pdata, held->len);
    g_string_append_printf(
        curve->rows, "%s(%u, '%s, learnt', %u, %.6f), (%u, '%s, held out', %u, %.6f)",
        curve->rows->len > 0 ? ",\n           " : "", curve->seat, curve->name, epoch,
        loss, curve->seat + 1, curve->name, epoch, of_held);
    if (epoch % 4 == 0)
        printf("%s: epoch %u: %.4f learnt, %.4f held out\n", curve->name, epoch, loss,
               of_held);
    fflush(stdout);
}

static TagNet *learn(const Lessons *lessons, Curve curve)
{
    TagNet *net = tag_net_new(SEED);
    const NetTraining training = {.epochs = EPOCHS,
                                  .batch = BATCH,
                                  .rate = RATE,
                                  .seed = SEED,
                                  .after = note_epoch,
                                  .context = &curve};
    tag_net_train(net, (NetLesson *const *)lessons->learnt->pdata, lessons->learnt->len,
                  &training);
    return net;
}

static void forget_feedback(GPtrArray *lessons)
{
    for (uint32_t i = 0; i < lessons->len; i++)
        net_view_forget_feedback(((NetLesson *)lessons->pdata[i])->view);
}

/* Learns with the feedback of the lessons, and, for Fig. 7, without it; returns the former. */
static TagNet *learn_both(Lessons *lessons, GString *rows)
{
    TagNet *net = learn(lessons, (Curve){lessons, "with feedback", 0, rows});
    forget_feedback(lessons->learnt);
    forget_feedback(lessons->held);
    g_autoptr(TagNet) plain =
        learn(lessons, (Curve){lessons, "without feedback", 2, rows});
    return net;
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

/* Where the files say that they are from. */
static char *origin_of(const Lessons *lessons, const char *mark, const char *commit)
{
    return g_strdup_printf(
        "%s Made by ./run train-tag at commit %s: seed %d; %u lessons and %u held out, "
        "vertices of tree searches of %d iterations, six\n"
        "%s models, random:seed=%d and on; %d epochs. TAG's network has %u numbers "
        "(synth/tag/net.h).\n",
        mark, commit, SEED, lessons->learnt->len, lessons->held->len, ITERATIONS, mark,
        FIRST_SEED, EPOCHS, tag_net_size());
}

static bool write_files(const char *output, const char *curves, const char *commit,
                        const Lessons *lessons, const TagNet *net, const GString *rows,
                        GError **error)
{
    g_autofree char *origin = origin_of(lessons, "#", commit);
    g_autofree char *text = tag_net_text(net, origin);
    g_autofree char *said = origin_of(lessons, "--", commit);
    g_autofree char *query = g_strdup_printf(
        "%s-- The mean cross entropy of lessons by epoch, with and without what running "
        "the strategies says (Fig. 7).\n"
        "learning (seat, name, epoch, loss) AS (\n    VALUES %s)\n",
        said, rows->str);
    return g_file_set_contents(output, text, -1, error) &&
           g_file_set_contents(curves, query, -1, error);
}

static bool train(const char *output, const char *curves, const char *commit,
                  GError **error)
{
    Graph *graph[MODELS] = {0};
    Lessons lessons = {g_ptr_array_new_with_free_func(net_lesson_free),
                       g_ptr_array_new_with_free_func(net_lesson_free)};
    g_autoptr(TagNet) read = NULL;
    g_autoptr(GTimer) timer = g_timer_new();
    bool good = true;
    for (uint32_t m = 0; good && m < MODELS; m++)
        good = (graph[m] = model_build(MODEL[m], 1, NULL, error)) != NULL;
    if (good && (good = find_lessons(graph, &lessons, error))) {
        printf("%u lessons to learn, %u held out, after %.0f s\n", lessons.learnt->len,
               lessons.held->len, g_timer_elapsed(timer, NULL));
        g_autoptr(GString) rows = g_string_new(NULL);
        g_autoptr(TagNet) net = learn_both(&lessons, rows);
        printf("trained after %.0f s\n", g_timer_elapsed(timer, NULL));
        good = write_files(output, curves, commit, &lessons, net, rows, error) &&
               (read = tag_net_read(output, error)) && test(graph, read, error);
        printf("done after %.0f s\n", g_timer_elapsed(timer, NULL));
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
    if (argc != 4) {
        fprintf(stderr, "usage: train_tag OUTPUT CURVES COMMIT\n");
        return 2;
    }
    if (!train(argv[1], argv[2], argv[3], &error)) {
        fprintf(stderr, "train_tag: %s\n", error->message);
        return error->code;
    }
    return 0;
}
