/* The network of synth/tag/net.h: forward, loss and its gradient. */
#include "synth/tag/net.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "data/base/free.h"
#include "synth/tag/tape.h"

enum { WIDTH = 32, LAYERS = 2, KINDS = 5 };

/* The weights of a layer: W, W', p, q, r for each kind of edges, then the biases of groups and of
 * sets. */
enum {
    EDGE_MOST = MAX(NET_PLACED, NET_LINK),
    KIND_SIZE = WIDTH * WIDTH + EDGE_MOST * WIDTH + 2 * WIDTH + EDGE_MOST,
    LAYER_SIZE = KINDS * KIND_SIZE + 2 * WIDTH,
    DECODER_SIZE = 2 * WIDTH * WIDTH + NET_ACTION * WIDTH + WIDTH + WIDTH + NET_ACTION,
    ALL = (NET_GROUP + NET_SET) * WIDTH + LAYERS * LAYER_SIZE + DECODER_SIZE
};

struct TagNet {
    double weight[ALL];
};

uint32_t tag_net_size(void)
{
    return ALL;
}

double *tag_net_weights(TagNet *net)
{
    return net->weight;
}

TagNet *tag_net_new(uint64_t seed)
{
    TagNet *net = g_new0(TagNet, 1);
    g_autoptr(GRand) rand = g_rand_new_with_seed((guint32)seed);
    const double most = sqrt(3.0 / WIDTH); /* for a variance of 1 / WIDTH */
    for (uint32_t i = 0; i < ALL; i++)
        net->weight[i] = g_rand_double_range(rand, -most, most);
    return net;
}

void tag_net_free(TagNet *net)
{
    g_free(net);
}

FREE_DEFINE(net_view_free, NetView, v,
            free_each(v->group, v->set, v->action, v->member, v->from, v->to, v->flow,
                      v->of_group, v->of_set, v->placed, v->link_from, v->link_to,
                      v->link));

FREE_DEFINE(net_lesson_free, NetLesson, lesson, net_view_free(lesson->view),
            g_free(lesson->target));

/* --- forward --- */

/* Where the next weights begin. */
typedef struct {
    Tape *tape;
    const double *weight;
    double *gradient; /* or NULL */
    uint32_t at;
} Walk;

static TapeValue weights(Walk *p, uint32_t rows, uint32_t columns)
{
    const uint32_t at = p->at;
    p->at += rows * columns;
    g_assert(p->at <= ALL);
    return tape_weights(p->tape, rows, columns, &p->weight[at],
                        p->gradient ? &p->gradient[at] : NULL);
}

typedef struct {
    TapeValue source, target; /* h of the nodes where edges begin and end */
    uint32_t n_target, n_edges, columns;
    const uint32_t *from, *to;
    const double *feature; /* [n_edges * columns] */
} Edges;

static TapeValue attend(Walk *p, const Edges *e)
{
    Tape *t = p->tape;
    const uint32_t begin = p->at;
    const TapeValue feature = tape_input(t, e->n_edges, e->columns, e->feature);
    const TapeValue sent = tape_product(t, e->source, weights(p, WIDTH, WIDTH));
    const TapeValue value =
        tape_sum(t, tape_rows(t, sent, e->n_edges, e->from),
                 tape_product(t, feature, weights(p, e->columns, WIDTH)));
    const TapeValue at_target = tape_product(t, e->target, weights(p, WIDTH, 1));
    const TapeValue at_source = tape_product(t, sent, weights(p, WIDTH, 1));
    const TapeValue of_edge = tape_product(t, feature, weights(p, e->columns, 1));
    const TapeValue ends = tape_sum(t, tape_rows(t, at_target, e->n_edges, e->to),
                                    tape_rows(t, at_source, e->n_edges, e->from));
    p->at = begin + KIND_SIZE;
    return tape_attend(t, tape_leaky(t, tape_sum(t, ends, of_edge)), value, e->n_target,
                       e->to);
}

typedef struct {
    TapeValue group, set;
} Nodes;

static Nodes run_layer(Walk *p, const NetView *v, Nodes h)
{
    Tape *t = p->tape;
    const uint32_t n = v->n_groups * v->n_sets;
    const Edges edges[KINDS] = {
        {h.group, h.group, v->n_groups, v->n_flows, 1, v->from, v->to, v->flow},
        {h.group, h.group, v->n_groups, v->n_flows, 1, v->to, v->from, v->flow},
        {h.set, h.group, v->n_groups, n, NET_PLACED, v->of_set, v->of_group, v->placed},
        {h.group, h.set, v->n_sets, n, NET_PLACED, v->of_group, v->of_set, v->placed},
        {h.set, h.set, v->n_sets, v->n_sets * v->n_sets, NET_LINK, v->link_from,
         v->link_to, v->link}};
    TapeValue out[KINDS];
    for (uint32_t k = 0; k < KINDS; k++)
        out[k] = attend(p, &edges[k]);
    const TapeValue group = tape_sum(t, tape_sum(t, out[0], out[1]), out[2]);
    const TapeValue set = tape_sum(t, out[3], out[4]);
    const TapeValue group_bias = weights(p, 1, WIDTH), set_bias = weights(p, 1, WIDTH);
    return (Nodes){tape_sum(t, h.group, tape_tanh(t, tape_sum(t, group, group_bias))),
                   tape_sum(t, h.set, tape_tanh(t, tape_sum(t, set, set_bias)))};
}

/* Computes the scores, [n_actions]. */
static TapeValue net_run(Walk *p, const NetView *v)
{
    Tape *t = p->tape;
    Nodes h;
    h.group =
        tape_tanh(t, tape_product(t, tape_input(t, v->n_groups, NET_GROUP, v->group),
                                  weights(p, NET_GROUP, WIDTH)));
    h.set = tape_tanh(t, tape_product(t, tape_input(t, v->n_sets, NET_SET, v->set),
                                      weights(p, NET_SET, WIDTH)));
    for (uint32_t l = 0; l < LAYERS; l++)
        h = run_layer(p, v, h);
    const TapeValue member = tape_input(t, v->n_actions, v->n_sets, v->member);
    const TapeValue action = tape_input(t, v->n_actions, NET_ACTION, v->action);
    const TapeValue sets =
        tape_product(t, tape_product(t, member, h.set), weights(p, WIDTH, WIDTH));
    const TapeValue next =
        tape_product(t, tape_rows(t, h.group, 1, &v->next), weights(p, WIDTH, WIDTH));
    const TapeValue told = tape_product(t, action, weights(p, NET_ACTION, WIDTH));
    const TapeValue bias = weights(p, 1, WIDTH);
    const TapeValue hidden =
        tape_tanh(t, tape_sum(t, tape_sum(t, tape_sum(t, sets, told), next), bias));
    const TapeValue score = tape_product(t, hidden, weights(p, WIDTH, 1));
    const TapeValue out =
        tape_sum(t, score, tape_product(t, action, weights(p, NET_ACTION, 1)));
    g_assert(p->at == ALL);
    return out;
}

static void softmax(const double *score, uint32_t n, double *out)
{
    KILTER_ASSERT(n > 0);
    double most = -INFINITY, sum = 0;
    for (uint32_t i = 0; i < n; i++)
        most = fmax(most, score[i]);
    for (uint32_t i = 0; i < n; i++)
        sum += out[i] = exp(score[i] - most);
    for (uint32_t i = 0; i < n; i++)
        out[i] /= sum;
}

void tag_net_priors(const TagNet *net, const NetView *view, double *prior)
{
    g_autoptr(Tape) tape = tape_new();
    Walk pass = {tape, net->weight, NULL, 0};
    softmax(tape_value(tape, net_run(&pass, view)), view->n_actions, prior);
}

double tag_net_learn(const TagNet *net, const NetView *view, const double *target,
                     double *gradient)
{
    g_autoptr(Tape) tape = tape_new();
    g_autofree double *prior = g_new(double, view->n_actions);
    Walk pass = {tape, net->weight, gradient, 0};
    const TapeValue score = net_run(&pass, view);
    double loss = 0;
    softmax(tape_value(tape, score), view->n_actions, prior);
    for (uint32_t a = 0; a < view->n_actions; a++) {
        loss -= target[a] > 0 ? target[a] * log(fmax(prior[a], DBL_MIN)) : 0;
        prior[a] -= target[a];
    }
    tape_back(tape, score, prior);
    return loss;
}

/* --- files --- */

char *tag_net_text(const TagNet *net, const char *comment)
{
    GString *text = g_string_new(comment);
    for (uint32_t i = 0; i < ALL; i++) {
        char number[G_ASCII_DTOSTR_BUF_SIZE];
        g_string_append(text,
                        g_ascii_formatd(number, sizeof number, "%.6g", net->weight[i]));
        g_string_append_c(text, i % 8 == 7 || i + 1 == ALL ? '\n' : ' ');
    }
    return g_string_free(text, FALSE);
}

TagNet *tag_net_read(const char *file, GError **error)
{
    g_autofree char *text = NULL;
    g_autoptr(TagNet) net = g_new0(TagNet, 1);
    uint32_t n = 0, line = 0;
    if (!g_file_get_contents(file, &text, NULL, error)) {
        g_prefix_error(error, "cannot read the network: ");
        return NULL;
    }
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **l = lines; *l; l++) {
        line++;
        for (char *at = *l; *at && **l != '#';) {
            char *end = NULL;
            const double value = g_ascii_strtod(at, &end);
            if (end == at || !isfinite(value) || n == ALL) {
                refuse(error, "%s:%u: expected %u numbers, got '%.20s'", file, line,
                       (uint32_t)ALL, at);
                return NULL;
            }
            net->weight[n++] = value;
            at = end + strspn(end, " ");
        }
    }
    if (n != ALL) {
        refuse(error, "%s: expected %u numbers, got %u", file, (uint32_t)ALL, n);
        return NULL;
    }
    return g_steal_pointer(&net);
}
