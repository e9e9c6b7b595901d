/* The network of synth/tag/net.h. */
#include "synth/tag/net.h"

#include <math.h>
#include <string.h>

#include "data/base/free.h"
#include "synth/tag/options.h"
#include "synth/tag/tape.h"

void tag_net_free(TagNet *net)
{
    g_free(net);
}

FREE_DEFINE(net_view_free, NetView, v,
            free_each(v->group, v->set, v->action, v->member, v->from, v->to, v->flow,
                      v->of_group, v->of_set, v->placed, v->link_from, v->link_to,
                      v->link));

/* --- forward --- */

/* Where the next weights begin. */
typedef struct {
    Tape *tape;
    const double *weight;
    uint32_t at;
} Walk;

static TapeValue weights(Walk *p, uint32_t rows, uint32_t columns)
{
    const uint32_t at = p->at;
    p->at += rows * columns;
    g_assert(p->at <= NET_SIZE);
    return tape_input(p->tape, rows, columns, &p->weight[at]);
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
    const TapeValue sent = tape_product(t, e->source, weights(p, NET_WIDTH, NET_WIDTH));
    const TapeValue value =
        tape_sum(t, tape_rows(t, sent, e->n_edges, e->from),
                 tape_product(t, feature, weights(p, e->columns, NET_WIDTH)));
    const TapeValue at_target = tape_product(t, e->target, weights(p, NET_WIDTH, 1));
    const TapeValue at_source = tape_product(t, sent, weights(p, NET_WIDTH, 1));
    const TapeValue of_edge = tape_product(t, feature, weights(p, e->columns, 1));
    const TapeValue ends = tape_sum(t, tape_rows(t, at_target, e->n_edges, e->to),
                                    tape_rows(t, at_source, e->n_edges, e->from));
    p->at = begin + NET_KIND_SIZE;
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
    const Edges edges[NET_KINDS] = {
        {h.group, h.group, v->n_groups, v->n_flows, 1, v->from, v->to, v->flow},
        {h.group, h.group, v->n_groups, v->n_flows, 1, v->to, v->from, v->flow},
        {h.set, h.group, v->n_groups, n, NET_PLACED, v->of_set, v->of_group, v->placed},
        {h.group, h.set, v->n_sets, n, NET_PLACED, v->of_group, v->of_set, v->placed},
        {h.set, h.set, v->n_sets, v->n_sets * v->n_sets, NET_LINK, v->link_from,
         v->link_to, v->link}};
    TapeValue out[NET_KINDS];
    for (uint32_t k = 0; k < NET_KINDS; k++)
        out[k] = attend(p, &edges[k]);
    const TapeValue group = tape_sum(t, tape_sum(t, out[0], out[1]), out[2]);
    const TapeValue set = tape_sum(t, out[3], out[4]);
    const TapeValue group_bias = weights(p, 1, NET_WIDTH),
                    set_bias = weights(p, 1, NET_WIDTH);
    return (Nodes){tape_sum(t, h.group, tape_tanh(t, tape_sum(t, group, group_bias))),
                   tape_sum(t, h.set, tape_tanh(t, tape_sum(t, set, set_bias)))};
}

TapeValue tag_net_scores(const TagNet *net, const NetView *v, Tape *t)
{
    Walk walk = {t, net->weight, 0}, *p = &walk;
    Nodes h;
    h.group =
        tape_tanh(t, tape_product(t, tape_input(t, v->n_groups, NET_GROUP, v->group),
                                  weights(p, NET_GROUP, NET_WIDTH)));
    h.set = tape_tanh(t, tape_product(t, tape_input(t, v->n_sets, NET_SET, v->set),
                                      weights(p, NET_SET, NET_WIDTH)));
    for (uint32_t l = 0; l < NET_LAYERS; l++)
        h = run_layer(p, v, h);
    const TapeValue member = tape_input(t, v->n_actions, v->n_sets, v->member);
    const TapeValue action = tape_input(t, v->n_actions, NET_ACTION, v->action);
    const TapeValue sets =
        tape_product(t, tape_product(t, member, h.set), weights(p, NET_WIDTH, NET_WIDTH));
    const TapeValue next = tape_product(t, tape_rows(t, h.group, 1, &v->next),
                                        weights(p, NET_WIDTH, NET_WIDTH));
    const TapeValue told = tape_product(t, action, weights(p, NET_ACTION, NET_WIDTH));
    const TapeValue bias = weights(p, 1, NET_WIDTH);
    const TapeValue hidden =
        tape_tanh(t, tape_sum(t, tape_sum(t, tape_sum(t, sets, told), next), bias));
    const TapeValue score = tape_product(t, hidden, weights(p, NET_WIDTH, 1));
    const TapeValue out =
        tape_sum(t, score, tape_product(t, action, weights(p, NET_ACTION, 1)));
    g_assert(p->at == NET_SIZE);
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
    const TapeValue scores = tag_net_scores(net, view, tape);
    softmax(tape_entry(tape, scores)->value, view->n_actions, prior);
}

/* --- files --- */

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
            if (end == at || !isfinite(value) || n == NET_SIZE)
                return refused(error, "%s:%u: expected %u numbers, got '%.20s'", file,
                               line, (uint32_t)NET_SIZE, at);
            net->weight[n++] = value;
            at = end + strspn(end, " ");
        }
    }
    if (n != NET_SIZE)
        return refused(error, "%s: expected %u numbers, got %u", file, (uint32_t)NET_SIZE,
                       n);
    return g_steal_pointer(&net);
}

bool tag_net_option(const char *file, const char **kept, GError **error)
{
    g_autoptr(TagNet) net = tag_net_read(file, error);
    *kept = g_intern_string(file);
    return net != NULL;
}
