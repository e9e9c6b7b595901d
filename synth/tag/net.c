/* The network of synth/tag/net.h. */
#include "synth/tag/net.h"

#include <math.h>
#include <string.h>

#include "data/base/free.h"
#include "synth/tag/options.h"
#include "synth/tag/tape.h"

enum { NET_KINDS = 5, NET_EDGE_MOST = MAX(NET_PLACED, NET_LINK) };
enum { MOST_LAYERS = 16, MOST_HEADS = 16, MOST_WIDTH = 256 }; /* TAG has 4, 4, 256 */

FREE_DEFINE(tag_net_free, TagNet, net, g_free(net->weight));

static uint32_t kind_size(uint32_t width)
{
    return width * width + NET_EDGE_MOST * width + 2 * width + NET_EDGE_MOST;
}

TagNet *tag_net_empty(NetShape shape)
{
    TagNet *net = g_new0(TagNet, 1);
    const uint32_t w = shape.width,
                   head = NET_KINDS * kind_size(w) + (shape.heads > 1 ? w * w : 0),
                   decoder = 2 * w * w + NET_ACTION * w + 2 * w + NET_ACTION;
    net->shape = shape;
    net->n =
        (NET_GROUP + NET_SET) * w + shape.layers * (shape.heads * head + 2 * w) + decoder;
    net->weight = g_new0(double, net->n);
    return net;
}

FREE_DEFINE(net_view_free, NetView, v,
            free_each(v->group, v->set, v->action, v->member, v->from, v->to, v->flow,
                      v->of_group, v->of_set, v->placed, v->link_from, v->link_to,
                      v->link));

/* --- forward --- */

/* Where the next weights begin. */
typedef struct {
    Tape *tape;
    const TagNet *net;
    uint32_t at, width;
} Walk;

static TapeValue weights(Walk *p, uint32_t rows, uint32_t columns)
{
    const uint32_t at = p->at;
    p->at += rows * columns;
    g_assert(p->at <= p->net->n);
    return tape_input(p->tape, rows, columns, &p->net->weight[at]);
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
    const uint32_t begin = p->at, w = p->width;
    const TapeValue feature = tape_input(t, e->n_edges, e->columns, e->feature);
    const TapeValue sent = tape_product(t, e->source, weights(p, w, w));
    const TapeValue value = tape_sum(t, tape_rows(t, sent, e->n_edges, e->from),
                                     tape_product(t, feature, weights(p, e->columns, w)));
    const TapeValue at_target = tape_product(t, e->target, weights(p, w, 1));
    const TapeValue at_source = tape_product(t, sent, weights(p, w, 1));
    const TapeValue of_edge = tape_product(t, feature, weights(p, e->columns, 1));
    const TapeValue ends = tape_sum(t, tape_rows(t, at_target, e->n_edges, e->to),
                                    tape_rows(t, at_source, e->n_edges, e->from));
    p->at = begin + kind_size(w);
    return tape_attend(t, tape_leaky(t, tape_sum(t, ends, of_edge)), value, e->n_target,
                       e->to);
}

typedef struct {
    TapeValue group, set;
} Nodes;

static Nodes run_layer(Walk *p, const NetView *v, Nodes h)
{
    Tape *t = p->tape;
    const uint32_t n = v->n_groups * v->n_sets, w = p->width;
    const Edges edges[NET_KINDS] = {
        {h.group, h.group, v->n_groups, v->n_flows, 1, v->from, v->to, v->flow},
        {h.group, h.group, v->n_groups, v->n_flows, 1, v->to, v->from, v->flow},
        {h.set, h.group, v->n_groups, n, NET_PLACED, v->of_set, v->of_group, v->placed},
        {h.group, h.set, v->n_sets, n, NET_PLACED, v->of_group, v->of_set, v->placed},
        {h.set, h.set, v->n_sets, v->n_sets * v->n_sets, NET_LINK, v->link_from,
         v->link_to, v->link}};
    Nodes sum = {0};
    for (uint32_t head = 0; head < p->net->shape.heads; head++) {
        TapeValue out[NET_KINDS];
        for (uint32_t k = 0; k < NET_KINDS; k++)
            out[k] = attend(p, &edges[k]);
        Nodes one = {tape_sum(t, tape_sum(t, out[0], out[1]), out[2]),
                     tape_sum(t, out[3], out[4])};
        if (p->net->shape.heads > 1) {
            const TapeValue o = weights(p, w, w);
            one = (Nodes){tape_product(t, one.group, o), tape_product(t, one.set, o)};
        }
        sum = head == 0 ? one
                        : (Nodes){tape_sum(t, sum.group, one.group),
                                  tape_sum(t, sum.set, one.set)};
    }
    const TapeValue group_bias = weights(p, 1, w), set_bias = weights(p, 1, w);
    return (Nodes){tape_sum(t, h.group, tape_tanh(t, tape_sum(t, sum.group, group_bias))),
                   tape_sum(t, h.set, tape_tanh(t, tape_sum(t, sum.set, set_bias)))};
}

TapeValue tag_net_scores(const TagNet *net, const NetView *v, Tape *t)
{
    const uint32_t w = net->shape.width;
    Walk walk = {t, net, 0, w}, *p = &walk;
    Nodes h;
    h.group =
        tape_tanh(t, tape_product(t, tape_input(t, v->n_groups, NET_GROUP, v->group),
                                  weights(p, NET_GROUP, w)));
    h.set = tape_tanh(t, tape_product(t, tape_input(t, v->n_sets, NET_SET, v->set),
                                      weights(p, NET_SET, w)));
    for (uint32_t l = 0; l < net->shape.layers; l++)
        h = run_layer(p, v, h);
    const TapeValue member = tape_input(t, v->n_actions, v->n_sets, v->member);
    const TapeValue action = tape_input(t, v->n_actions, NET_ACTION, v->action);
    const TapeValue sets =
        tape_product(t, tape_product(t, member, h.set), weights(p, w, w));
    const TapeValue next =
        tape_product(t, tape_rows(t, h.group, 1, &v->next), weights(p, w, w));
    const TapeValue told = tape_product(t, action, weights(p, NET_ACTION, w));
    const TapeValue bias = weights(p, 1, w);
    const TapeValue hidden =
        tape_tanh(t, tape_sum(t, tape_sum(t, tape_sum(t, sets, told), next), bias));
    const TapeValue score = tape_product(t, hidden, weights(p, w, 1));
    const TapeValue out =
        tape_sum(t, score, tape_product(t, action, weights(p, NET_ACTION, 1)));
    g_assert(p->at == net->n);
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

/* Reads "shape LAYERS HEADS WIDTH"; false: the line says another thing. */
static bool net_read_shape(const char *line, NetShape *shape)
{
    uint32_t *const to[] = {&shape->layers, &shape->heads, &shape->width};
    g_auto(GStrv) word = g_strsplit(line, " ", -1);
    if (g_strv_length(word) != 1 + G_N_ELEMENTS(to) || strcmp(word[0], "shape") != 0)
        return false;
    for (uint32_t i = 0; i < G_N_ELEMENTS(to); i++) {
        guint64 n;
        if (!g_ascii_string_to_unsigned(word[1 + i], 10, 0, UINT32_MAX, &n, NULL))
            return false;
        *to[i] = (uint32_t)n;
    }
    return true;
}

TagNet *tag_net_read(const char *file, GError **error)
{
    g_autofree char *text = NULL;
    NetShape shape = NET_SHAPE;
    uint32_t n = 0, line = 0;
    if (!g_file_get_contents(file, &text, NULL, error)) {
        g_prefix_error(error, "cannot read the network: ");
        return NULL;
    }
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    while (lines[line] && *lines[line] == '#')
        line++;
    if (lines[line] && net_read_shape(lines[line], &shape))
        line++;
    if (shape.layers - 1 >= MOST_LAYERS || shape.heads - 1 >= MOST_HEADS ||
        shape.width - 1 >= MOST_WIDTH)
        return refused(error,
                       "%s:%u: expected from 1 to %d layers, %d heads and width %d", file,
                       line, MOST_LAYERS, MOST_HEADS, MOST_WIDTH);
    g_autoptr(TagNet) net = tag_net_empty(shape);
    for (; lines[line]; line++) {
        for (char *at = lines[line]; *at && *lines[line] != '#';) {
            char *end = NULL;
            const double value = g_ascii_strtod(at, &end);
            if (end == at || !isfinite(value) || n == net->n)
                return refused(error, "%s:%u: expected %u numbers, got '%.20s'", file,
                               line + 1, net->n, at);
            net->weight[n++] = value;
            at = end + strspn(end, " ");
        }
    }
    if (n != net->n)
        return refused(error, "%s: expected %u numbers, got %u", file, net->n, n);
    return g_steal_pointer(&net);
}

bool tag_net_option(const char *file, const char **kept, GError **error)
{
    g_autoptr(TagNet) net = tag_net_read(file, error);
    *kept = g_intern_string(file);
    return net != NULL;
}
