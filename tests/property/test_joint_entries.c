/* The numbers of the joint search's entries by their definitions: the bytes of a stage's layers, the
 * seconds of its slowest replica where GPUs share no layers, its all-reduces and updates, and the
 * part of a microbatch on one machine. */
#include <math.h>

#include "data/data.h"
#include "synth/amp/layers.h"
#include "synth/joint/menu.h"
#include "tests/test.h"

typedef struct {
    JointMenu *menu;
    const JointProblem *p;
    const JointGroup *group;
    const JointEntry *e;
    uint32_t *kind; /* [replica] */
} Case;

static const JointKind *kind_at(const JointMenu *menu, uint32_t k)
{
    return &g_array_index(menu->kind, JointKind, k);
}

/* Replicas are handed out kind by kind. */
static uint32_t *kinds_of(const Case *c)
{
    uint32_t *kind = g_new(uint32_t, c->e->dp), n = 0;
    for (uint32_t k = 0; k < c->menu->kind->len; k++)
        for (uint32_t i = 0; i < c->group->use[k] * kind_at(c->menu, k)->unit / c->e->tp;
             i++)
            kind[n++] = k;
    assert_int_equal(n, c->e->dp);
    return kind;
}

/* --- bytes --- */

static const double *bytes_at(const Case *c, const double *row)
{
    return row + (size_t)amp_degree(c->menu->model, c->e->tp) * c->p->n_layers;
}

/* A stage has what its layers hold, divided optimizer states to whole bytes, and per microbatch what
 * they keep of the most samples; while a layer runs again, also the rest of it and its input. */
static void check_bytes(const Case *c)
{
    const AmpModel *model = c->menu->model;
    const JointEntry *e = c->e;
    const double *less =
        e->recompute ? bytes_at(c, amp_again(model, e->recompute)->less) : NULL;
    double samples = 0, work = 0, held = 0, kept = 0, late = 0, capacity = INFINITY;
    for (uint32_t r = 0; r < e->dp; r++) {
        samples = fmax(samples, e->samples[r]);
        capacity = fmin(capacity,
                        (double)c->menu->view->device[kind_at(c->menu, c->kind[r])->first]
                            .memory_bytes);
    }
    for (uint32_t l = 0; l < c->p->n_layers; l++) {
        const double states = bytes_at(c, model->states)[l],
                     all = samples * bytes_at(c, model->activation)[l],
                     saves = less ? samples * less[l] : 0,
                     input = l > 0 ? samples * model->steps->sent[l - 1] : 0;
        held += bytes_at(c, model->held)[l];
        if (c->menu->hosts)
            held -= states;
        else if (e->divides)
            held += ceil(states / e->dp) - states;
        kept += all - saves;
        late += samples * bytes_at(c, model->late)[l];
        if (saves > 0)
            work = fmax(work, fmin(all, saves + input));
        assert_close(e->held[l + 1], held, 1e-12);
        assert_close(e->kept[l + 1] + 1, kept + 1, 1e-12);
        assert_close(e->late[l + 1] + 1, late + 1, 1e-12);
    }
    assert_close(e->work + 1, work + 1, 1e-12);
    assert_close(e->capacity, c->p->headroom * capacity, 1e-12);
}

/* Neighbouring replicas of a kind fill machine after machine. */
static void check_share(const Case *c)
{
    double all = 0, most = 0;
    for (uint32_t r = 0; r < c->e->dp;) {
        const uint32_t k = c->kind[r],
                       room = MAX(kind_at(c->menu, k)->gpus / c->e->tp, 1);
        double here = 0;
        for (uint32_t i = 0; i < room && r < c->e->dp && c->kind[r] == k; i++)
            here += c->e->samples[r++];
        most = fmax(most, here);
        all += here;
    }
    assert_true(all == c->p->samples);
    assert_close(c->e->share, most / all, 1e-12);
}

/* --- seconds, where each replica is one GPU --- */

typedef enum { ALL, WAITING, AGAIN } Part;

/* Seconds of a part of a layer's pass on a replica; launches take longer than what is short. */
static double pass_s(const Case *c, uint32_t r, AmpPass pass, uint32_t l, Part part)
{
    const AmpModel *model = c->menu->model;
    const AmpSteps *steps = model->steps;
    const AmpAgain *again = c->e->recompute ? amp_again(model, c->e->recompute) : NULL;
    const uint32_t type = c->menu->cluster->type[kind_at(c->menu, c->kind[r])->first];
    const uint32_t *first = &steps->first[pass * c->p->n_layers + l];
    double all_s = 0, part_s = 0, launch_s = 0;
    for (uint32_t i = first[0]; i < first[1]; i++) {
        const AmpStep *step = &g_array_index(steps->step, AmpStep, i);
        launch_s += steps->launch_s[type * steps->step->len + i];
        if (step->is_message)
            continue;
        const double s = amp_step_s(model, 0, c->e->samples[r], type, i);
        all_s += s;
        if (part == ALL ||
            (part == WAITING ? step->waits : again && again->when[i] != AMP_NEVER))
            part_s += s;
    }
    return launch_s > all_s && all_s > 0 ? part_s * launch_s / all_s : part_s;
}

/* The replica that takes longest for all layers, forward and back. */
static uint32_t slowest_of(const Case *c)
{
    double most_s = -1;
    uint32_t slowest = 0;
    for (uint32_t r = 0; r < c->e->dp; r++) {
        double sum_s = 0;
        for (uint32_t i = 0; i < 2 * c->p->n_layers; i++)
            sum_s += pass_s(c, r, i % 2 ? AMP_BACKWARD : AMP_FORWARD, i / 2, ALL);
        if (sum_s > most_s * (1 + 1e-12)) {
            most_s = sum_s;
            slowest = r;
        }
    }
    return slowest;
}

static void check_seconds(const Case *c)
{
    const JointEntry *e = c->e;
    const uint32_t r = slowest_of(c);
    double forward_s = 0, backward_s = 0, weights_s = 0;
    for (uint32_t l = 0; l < c->p->n_layers; l++) {
        const double f = pass_s(c, r, AMP_FORWARD, l, ALL);
        forward_s += f;
        backward_s +=
            pass_s(c, r, AMP_BACKWARD, l, ALL) +
            (e->recompute == RECOMPUTE_FULL ? f : pass_s(c, r, AMP_FORWARD, l, AGAIN));
        weights_s += pass_s(c, r, AMP_BACKWARD, l, WAITING);
        assert_close(e->forward_s[l + 1], forward_s, 1e-9);
        assert_close(e->backward_s[l + 1], backward_s, 1e-9);
        assert_close(e->weights_s[l + 1], weights_s, 1e-9);
    }
}

/* Seconds of a layer's updates, of all states: on the slowest replica, or on hosts, to which each GPU
 * has its link and a part of the memory's bandwidth. Gradients go there and are read, states are
 * read and written, parameters come back. */
static double update_s(const Case *c, uint32_t slowest, uint32_t l)
{
    const Cluster *cluster = c->menu->view->cluster;
    double link = INFINITY, memory = INFINITY;
    if (!c->menu->hosts)
        return pass_s(c, slowest, AMP_UPDATE, l, ALL);
    for (uint32_t r = 0; r < c->e->dp; r++) {
        const Device *device =
            &c->menu->view->device[kind_at(c->menu, c->kind[r])->first];
        const Machine *machine = &cluster->machine[device->machine];
        memory = fmin(memory, machine->host_bandwidth / machine->gpus);
        link = fmin(link, fmin(machine->host_link, memory));
    }
    const double states = c->menu->model->states[l],
                 gradient = c->menu->model->gradient[l],
                 weights = c->menu->model->held[l] - states - gradient;
    return (weights + gradient) / link + (gradient + 2 * states) / memory;
}

/* A ring passes each gradient twice but for a replica's own part; between machines those of a bucket
 * pay a latency together. Divided states have two messages per gradient, and a part of the update. */
static void check_sync(const Case *c)
{
    const AmpSteps *steps = c->menu->model->steps;
    const double dp = c->e->dp;
    const uint32_t r = slowest_of(c), n = c->p->n_layers;
    g_autofree double *layer_s = g_new0(double, n);
    double start_s = 0, sum_s = 0;
    array_each (const AmpGradient, g, steps->gradient) {
        const AmpGradientKind *kind =
            &g_array_index(steps->gradient_kind, AmpGradientKind, g->kind);
        const double bytes = kind->whole + kind->cut;
        if (dp == 1)
            break;
        const LinkCost line = synth_joint_line(c->menu, c->group, c->e->dp, 1, bytes);
        layer_s[g_array_index(steps->step, AmpStep, g->step).layer] +=
            2 * (dp - 1) / dp * bytes / line.bandwidth +
            line.latency_s * (c->e->divides ? 2
                              : c->group->n_machines == 1
                                  ? 0
                                  : fmin(1, bytes / RUNTIME_BUCKET));
        start_s = fmax(start_s, line.latency_s);
    }
    assert_true(c->e->start_s == (c->e->divides ? 0 : start_s));
    for (uint32_t l = 0; l < n; l++) {
        sum_s += layer_s[l] + update_s(c, r, l) / (c->e->divides ? dp : 1);
        assert_close(c->e->sync_s[l + 1], sum_s, 1e-9);
    }
}

/* --- cases --- */

static uint32_t check_problem(JointMenu *menu, uint32_t n_microbatches)
{
    g_autoptr(JointProblem) p = synth_joint_problem(menu, n_microbatches, 0.9, true);
    uint32_t n = 0;
    assert_non_null(p);
    for (uint32_t g = 0; g < p->n_groups; g++)
        for (uint32_t i = 0; i < p->group[g].n_entries; i++) {
            Case c = {menu, p, &p->group[g], &p->group[g].entry[i], NULL};
            if (c.e->inside || c.e->promised)
                continue;
            g_autofree uint32_t *kind = c.kind = kinds_of(&c);
            check_bytes(&c);
            check_share(&c);
            n++;
            if (c.e->tp > 1)
                continue;
            check_seconds(&c);
            check_sync(&c);
        }
    return n;
}

static void test_entries(void **state)
{
    (void)state;
    static const struct {
        const char *model, *cluster;
    } CASE[] = {
        {"gpt2:layers=3,hidden=64,heads=4,ffn=128,seq=512,vocab=64,global_batch=48",
         "2x4xv100-16g@eth-25+4xt4"},
        {"llama:layers=3,hidden=256,heads=4,kv_heads=2,ffn=512,seq=256,vocab=512,"
         "global_batch=24,precision=bf16",
         "1x2xh100-sxm@ib-ndr+2x2xa100-80g@ib-hdr+3x1xv100-16g@eth-25"},
        {"gpt2:layers=2,hidden=1024,heads=16,ffn=4096,seq=64,vocab=128,global_batch=16",
         "amp-het-cluster"},
        {"vgg19:width=16,fc=64,global_batch=32", "2x2xv100-16g@eth-25+2xt4"},
        {"transgan:layers=3,upsample=4,global_batch=16", "2x2xv100-16g@eth-25+2xt4"},
        {"gpt2:layers=3,hidden=64,heads=4,ffn=128,seq=512,vocab=64,global_batch=48",
         "2x4xv100-16g@eth-25,host_memory=99GB,host_link=12GB/s,host_bandwidth=30GB/s+"
         "4xt4,host_memory=99GB,host_link=9GB/s,host_bandwidth=80GB/s"},
    };
    uint32_t n = 0;
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(Cluster) cluster = cluster_load(CASE[i].cluster, &error);
        assert_no_error(error);
        g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
        g_autoptr(Graph) graph =
            model_build(CASE[i].model, cluster_gpus(cluster), NULL, &error);
        assert_no_error(error);
        g_autoptr(JointMenu) menu = synth_joint_menu_new(graph, view, false, &error);
        assert_no_error(error);
        menu->hosts = cluster->machine[0].host_link > 0;
        for (uint32_t m = 1; m <= 4; m *= 2)
            n += check_problem(menu, m);
    }
    print_message("%u entries\n", n);
    assert_true(n > 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_entries)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
