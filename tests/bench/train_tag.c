/* Trains TAG's network and measures whether it pays (TPDS 2023, Sec. 4.2.5, 5.5, 5.7, 5.8). This is
 * a separate program, run by ./run train-tag:
 *
 *     train_tag FOLDER CURVES COMMIT [weights | LAYERS HEADS WIDTH]
 *
 * There are two teachers, on random topologies (random:seed=, from FIRST_SEED on) and all six
 * models:
 *
 *     visits    as published: the visits of tree searches with uniform priors (FOLDER/network.txt)
 *     ahead     the speed of the strategies one step ahead, tests/support/tag_ahead.c (FOLDER/ahead.txt)
 *
 * From visits the network learns (synth/tag/net.h) with and without runtime feedback, whose losses
 * by epoch are the curves of Fig. 7. Then, on 100 unseen topologies, the program counts the
 * iterations until the tree search beats data parallelism, with uniform priors, with those of both
 * networks and of one that never saw the model, and the strategies that the search `best` tries,
 * which uses neither. `weights`: nothing is counted. Networks of another shape than the
 * bundled ones are for --set priors=FILE. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "balance/balance.h"
#include "data/base/free.h"
#include "data/base/parallel.h"
#include "data/models/model.h"
#include "synth/answer/ratios.h"
#include "synth/tag/case.h"
#include "tests/support/tag_learning.h"

enum {
    SEED = 1,
    FIRST_SEED =
        1001, /* first seed of the topologies to learn on; test topologies begin at 1 */
    TOPOLOGIES = 10,
    ITERATIONS = 300, /* iterations of a search for lessons */
    VISITS = 24,      /* least visits of a vertex that becomes a lesson */
    HELD_OUT = 5,     /* every n-th topology is held out, for the loss */
    EPOCHS = 24,
    AHEAD_TOPOLOGIES = 20,
    AHEAD_TRIES = 400, /* strategies that are looked at on a topology */
    AHEAD_EPOCHS = 8,
    BATCH = 8,
    TESTS = 100,
    MOST = 800, /* iterations of a test */
    GROUPS = 60
};
static NetShape trained; /* the networks' */
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

OWN_CLEAR_DEFINE(case_clear, Case, c, tag_case_clear(&c->tag), cluster_view_free(c->view),
                 cluster_free(c->cluster));

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

static TagResult train_run(const Case *c, TagMethod method, uint32_t evaluations,
                           const TagNet *net, GPtrArray *lessons)
{
    /* Searches that do not teach are counted only until data parallelism is beaten. */
    const TagSearch search = {.method = method,
                              .objective = TAG_BY_FLOW,
                              .evaluations = evaluations,
                              .leave = true,
                              .net = net,
                              .lessons = lessons,
                              .own = tag_search_ahead,
                              .lesson_visits = VISITS,
                              .until_beaten = lessons == NULL,
                              .seed = SEED};
    TagResult result = {0};
    synth_tag_search(c->tag.space, &c->tag.work, c->tag.quick, &search, NULL, 0, &result);
    return result;
}

/* --- learning --- */

typedef struct {
    GPtrArray *learnt, *held; /* NetLesson, not owned */
} Lessons;

/* Lessons of all models on several topologies, looked for on both cores. */
typedef struct {
    Graph *const *graph;
    TagMethod teacher;
    uint32_t topologies;
    GPtrArray **found; /* [model * topologies + topology] */
} Lectures;

static bool hold_lecture(void *context, uint32_t i, GError **error)
{
    const Lectures *l = context;
    const bool ahead = l->teacher == TAG_OWN;
    g_auto(Case) c = {0};
    if (!case_open(&c, l->graph[i / l->topologies], FIRST_SEED + i, error))
        return false;
    if (c.tag.space->n_actions < 2)
        return true;
    g_auto(TagResult) result =
        train_run(&c, l->teacher, ahead ? AHEAD_TRIES : ITERATIONS, NULL, l->found[i]);
    return true;
}

/* `without`: a model that is left out, MODELS for none. Lessons are shared, not copied. */
static void gather(const Lectures *l, uint32_t without, Lessons *lessons)
{
    for (uint32_t i = 0; i < MODELS * l->topologies; i++)
        for (uint32_t k = 0; i / l->topologies != without && k < l->found[i]->len; k++)
            g_ptr_array_add(i % l->topologies % HELD_OUT == HELD_OUT - 1
                                ? lessons->held
                                : lessons->learnt,
                            l->found[i]->pdata[k]);
}

static Lessons lessons_new(void)
{
    return (Lessons){g_ptr_array_new(), g_ptr_array_new()};
}

OWN_CLEAR_DEFINE(lessons_clear, Lessons, lessons, g_ptr_array_free(lessons->learnt, TRUE),
                 g_ptr_array_free(lessons->held, TRUE));

static bool lectures_hold(Lectures *l, GError **error)
{
    const uint32_t n = MODELS * l->topologies;
    l->found = g_new(GPtrArray *, n);
    for (uint32_t i = 0; i < n; i++)
        l->found[i] = g_ptr_array_new_with_free_func((GDestroyNotify)net_lesson_free);
    return parallel_each(n, 0, hold_lecture, l, error);
}

OWN_CLEAR_DEFINE(lectures_clear, Lectures, l,
                 release_items(l->found, l->found ? MODELS * l->topologies : 0,
                               g_ptr_array_unref),
                 g_free(l->found));

/* The numbers of an epoch: the curves of TAG's Fig. 7, or nothing but the losses. */
typedef struct {
    const Lessons *lessons;
    const char *name;
    uint32_t seat;
    GString *rows; /* NULL: not drawn */
} Curve;

static void note_epoch(void *context, const TagNet *net, uint32_t epoch, double loss)
{
    const Curve *curve = context;
    const GPtrArray *held = curve->lessons->held;
    if (!curve->rows && epoch % 4 > 0)
        return;
    const double of_held =
        tag_net_mean_loss(net, (NetLesson *const *)held->pdata, held->len);
    if (curve->rows)
        g_string_append_printf(
            curve->rows, "%s(%u, '%s, learnt', %u, %.6f), (%u, '%s, held out', %u, %.6f)",
            curve->rows->len > 0 ? ",\n           " : "", curve->seat, curve->name, epoch,
            loss, curve->seat + 1, curve->name, epoch, of_held);
    if (epoch % 4 == 0)
        printf("%s: epoch %u: %.4f learnt, %.4f held out\n", curve->name, epoch, loss,
               of_held);
    fflush(stdout);
}

static TagNet *learn(const Lessons *lessons, uint32_t epochs, Curve curve)
{
    TagNet *net = tag_net_new(trained, SEED);
    curve.lessons = lessons;
    const NetTraining training = {.epochs = epochs,
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

/* Learns with the feedback of the lessons, and, for Fig. 7, without it, which the lessons lose;
 * returns the former. */
static TagNet *learn_both(Lessons *lessons, GString *rows)
{
    TagNet *net =
        learn(lessons, EPOCHS, (Curve){.name = "with feedback", .seat = 0, .rows = rows});
    forget_feedback(lessons->learnt);
    forget_feedback(lessons->held);
    tag_net_free(learn(lessons, EPOCHS,
                       (Curve){.name = "without feedback", .seat = 2, .rows = rows}));
    return net;
}

/* --- does it pay? --- */

enum { UNIFORM, VISITED, AHEAD, UNSEEN, BEST, WAYS };
static const char *const WAY[] = {"uniform", "visits", "ahead", "unseen", "best, none"};

/* The networks that are compared. */
typedef struct {
    Graph *const *graph;
    TagNet *visited, *ahead, *unseen[TESTED];
    double took[TESTS]
               [WAYS]; /* iterations, MOST where never; 0: there is nothing to choose */
    bool never[TESTS][WAYS];
} Test;

typedef struct {
    uint32_t n;
    uint32_t never[WAYS];
    double sum[WAYS];       /* of iterations */
    double log_ratio[WAYS]; /* of uniform priors' over the way's */
} Tally;

static bool test_one(void *context, uint32_t k, GError **error)
{
    Test *test = context;
    const uint32_t model = k % TESTED;
    const TagNet *const net[WAYS] = {
        [VISITED] = test->visited, [AHEAD] = test->ahead, [UNSEEN] = test->unseen[model]};
    g_auto(Case) c = {0};
    if (!case_open(&c, test->graph[model], k + 1, error))
        return false;
    for (uint32_t way = 0; c.tag.space->n_actions > 1 && way < WAYS; way++) {
        g_auto(TagResult) result =
            train_run(&c, way == BEST ? TAG_BEST : TAG_MCTS, MOST, net[way], NULL);
        test->never[k][way] = result.to_beat_dp == 0;
        test->took[k][way] = result.to_beat_dp ? result.to_beat_dp : MOST;
    }
    return true;
}

static void tally_add(Tally *tally, const double *took, const bool *never)
{
    tally->n++;
    for (uint32_t way = 0; way < WAYS; way++) {
        tally->never[way] += never[way];
        tally->sum[way] += took[way];
        tally->log_ratio[way] += log(took[UNIFORM] / took[way]);
    }
}

static void print_tally(const char *name, const Tally *t)
{
    const uint32_t n = MAX(t->n, 1);
    printf("%-22.22s %3u", name, t->n);
    for (uint32_t way = 0; way < WAYS; way++)
        printf("  %6.1f (%2u) %5.2f", t->sum[way] / n, t->never[way],
               exp(t->log_ratio[way] / n));
    printf("\n");
}

/* Topologies 1 to TESTS, the models in turn. */
static bool test_all(Test *test, GError **error)
{
    Tally tally[TESTED] = {0}, all = {0};
    if (!parallel_each(TESTS, 0, test_one, test, error))
        return false;
    printf("iterations to beat DP (never within %u), times fewer than uniform\n%26s",
           MOST, "n");
    for (uint32_t way = 0; way < WAYS; way++)
        printf("  %17s", WAY[way]);
    printf("\n");
    for (uint32_t k = 0; k < TESTS; k++)
        if (test->took[k][UNIFORM] > 0) {
            tally_add(&tally[k % TESTED], test->took[k], test->never[k]);
            tally_add(&all, test->took[k], test->never[k]);
        }
    for (uint32_t m = 0; m < TESTED; m++)
        print_tally(MODEL[m], &tally[m]);
    print_tally("all", &all);
    return true;
}

/* Where a file says that it is from. */
static char *origin_of(const Lessons *lessons, TagMethod teacher, const char *mark,
                       const char *commit)
{
    const bool ahead = teacher == TAG_OWN;
    g_autoptr(TagNet) net = tag_net_empty(trained);
    return g_strdup_printf(
        "%s Made by ./run train-tag at commit %s: seed %d; %u lessons and %u held out, "
        "%s, six\n"
        "%s models, random:seed=%d and on; %d epochs. TAG's network has %u numbers "
        "(synth/tag/net.h).\n",
        mark, commit, SEED, lessons->learnt->len, lessons->held->len,
        ahead ? "strategies one step ahead" : "vertices of tree searches", mark,
        FIRST_SEED, ahead ? AHEAD_EPOCHS : EPOCHS, net->n);
}

/* Writes the weights, and gives them back as they are read. */
static TagNet *keep_network(const char *folder, TagMethod teacher, const char *commit,
                            const Lessons *lessons, const TagNet *net, GError **error)
{
    g_autofree char *origin = origin_of(lessons, teacher, "#", commit);
    g_autofree char *text = tag_net_text(net, origin);
    g_autofree char *file =
        g_build_filename(folder, teacher == TAG_OWN ? "ahead.txt" : "network.txt", NULL);
    return g_file_set_contents(file, text, -1, error) ? tag_net_read(file, error) : NULL;
}

static bool write_curves(const char *file, const char *commit, const Lessons *lessons,
                         const GString *rows, GError **error)
{
    g_autofree char *origin = origin_of(lessons, TAG_MCTS, "--", commit);
    g_autofree char *query = g_strdup_printf(
        "%s-- The mean cross entropy of lessons by epoch, with and without what running "
        "the strategies says (Fig. 7).\n"
        "learning (seat, name, epoch, loss) AS (\n    VALUES %s)\n",
        origin, rows->str);
    return g_file_set_contents(file, query, -1, error);
}

/* Teaches by visits: TAG's own network, and the curves. */
static bool learn_from_visits(Test *test, const char *folder, const char *curves,
                              const char *commit, GError **error)
{
    g_auto(Lectures)
        lectures = {.graph = test->graph, .teacher = TAG_MCTS, .topologies = TOPOLOGIES};
    g_auto(Lessons) lessons = lessons_new();
    g_autoptr(GString) rows = g_string_new(NULL);
    if (!lectures_hold(&lectures, error))
        return false;
    gather(&lectures, MODELS, &lessons);
    g_autoptr(TagNet) net = learn_both(&lessons, rows);
    test->visited = keep_network(folder, TAG_MCTS, commit, &lessons, net, error);
    return test->visited && write_curves(curves, commit, &lessons, rows, error);
}

/* Teaches by looking ahead, on all models and, if asked to, without each that is tested. */
static bool learn_ahead(Test *test, const char *folder, const char *commit,
                        bool leave_out, GError **error)
{
    g_auto(Lectures) lectures = {
        .graph = test->graph, .teacher = TAG_OWN, .topologies = AHEAD_TOPOLOGIES};
    g_auto(Lessons) lessons = lessons_new();
    if (!lectures_hold(&lectures, error))
        return false;
    gather(&lectures, MODELS, &lessons);
    g_autoptr(TagNet) net = learn(&lessons, AHEAD_EPOCHS, (Curve){.name = "ahead"});
    for (uint32_t without = 0; leave_out && without < TESTED; without++) {
        g_auto(Lessons) others = lessons_new();
        gather(&lectures, without, &others);
        test->unseen[without] =
            learn(&others, AHEAD_EPOCHS, (Curve){.name = MODEL[without]});
    }
    test->ahead = keep_network(folder, TAG_OWN, commit, &lessons, net, error);
    return test->ahead != NULL;
}

static void say_time(const char *what, GTimer *timer)
{
    printf("%s after %.0f s\n", what, g_timer_elapsed(timer, NULL));
    fflush(stdout);
}

static bool train(const char *folder, const char *curves, const char *commit, bool count,
                  GError **error)
{
    Graph *graph[MODELS] = {0};
    g_autofree Test *test = g_new0(Test, 1);
    g_autoptr(GTimer) timer = g_timer_new();
    bool good = true;
    test->graph = graph;
    for (uint32_t m = 0; good && m < MODELS; m++)
        good = (graph[m] = model_build(MODEL[m], 1, NULL, error)) != NULL;
    if (good && (good = learn_from_visits(test, folder, curves, commit, error))) {
        say_time("learnt from visits", timer);
        good = learn_ahead(test, folder, commit, count, error);
        say_time("learnt ahead", timer);
        good = good && (!count || test_all(test, error));
        say_time("done", timer);
    }
    tag_net_free(test->visited);
    tag_net_free(test->ahead);
    release_items(test->unseen, TESTED, tag_net_free);
    release_items(graph, MODELS, graph_free);
    return good;
}

int main(int argc, char **argv)
{
    g_autoptr(GError) error = NULL;
    const bool weights = argc == 5 && strcmp(argv[4], "weights") == 0;
    trained = NET_SHAPE;
    if (argc == 7)
        trained = (NetShape){(uint32_t)g_ascii_strtoull(argv[4], NULL, 10),
                             (uint32_t)g_ascii_strtoull(argv[5], NULL, 10),
                             (uint32_t)g_ascii_strtoull(argv[6], NULL, 10)};
    if ((argc != 4 && argc != 7 && !weights) ||
        trained.layers * trained.heads * trained.width == 0) {
        fprintf(stderr, "usage: train_tag FOLDER CURVES COMMIT [weights | LAYERS HEADS "
                        "WIDTH]\n");
        return 2;
    }
    if (!train(argv[1], argv[2], argv[3], !weights, &error)) {
        fprintf(stderr, "train_tag: %s\n", error->message);
        return error->code;
    }
    return 0;
}
