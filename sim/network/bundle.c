/* Bundles: messages that behave alike, run as one flow.
 *
 * Messages that start together have the same rates for as long as nothing else shares their links
 * if they fall in classes that cannot be told apart: messages of a class have the same bytes and
 * latency and cross links of the same classes, links of a class have the same bandwidth and carry
 * equally many messages of each class (an equitable partition; max-min fair rates are then equal
 * within a class). Colour refinement finds the coarsest such partition: the colour of a message is
 * a hash of its own colour and those of its links, the colour of a link a hash of its own colour
 * and those of its messages; sums make the order of neighbours irrelevant. A false match takes two
 * equal hashes of 64 bits.
 *
 * The even all-to-all among n hosts of a tree is 2 classes instead of n (n - 1) flows. */
#include <stdlib.h>
#include <string.h>

#include "data/base/order.h"
#include "sim/event/random.h"
#include "sim/network/lower/lower.h"

enum {
    FEW_MESSAGES = 16,   /* with fewer messages bundles are not worth their time */
    MEMBERS_A_CLASS = 4, /* messages per class, at least, on average */
};

typedef struct {
    SimLowered *lowered;
    const LoweredMessage *message;
    const SimUse *use;
    uint32_t n, n_links;
    uint64_t *message_colour, *link_colour, *link_sum, *sorted;
} Colours;

static ORDER_VALUES(by_value, uint64_t);

static uint32_t count_link_colours(const Colours *c)
{
    uint32_t n = 0;
    memcpy(c->sorted, c->link_colour, c->n_links * sizeof *c->sorted);
    qsort(c->sorted, c->n_links, sizeof *c->sorted, by_value);
    for (uint32_t i = 0; i < c->n_links; i++)
        n += i == 0 || c->sorted[i] != c->sorted[i - 1];
    return n;
}

static void colour_messages(const Colours *c)
{
    items_at (const LoweredMessage, m, i, c->message, c->n) {
        uint64_t sum = sim_random_next(sim_random_bits(m->bytes)) +
                       3 * sim_random_next(sim_random_bits(m->latency_s));
        for (uint32_t k = 0; k < m->n_uses; k++)
            sum += c->link_colour[c->use[m->first_use + k].link];
        c->message_colour[i] = sim_random_next(sum);
    }
}

static void colour_links(const Colours *c)
{
    memset(c->link_sum, 0, c->n_links * sizeof *c->link_sum);
    items_at (const LoweredMessage, m, i, c->message, c->n) {
        for (uint32_t k = 0; k < m->n_uses; k++)
            c->link_sum[c->use[m->first_use + k].link] += c->message_colour[i];
    }
    for (uint32_t l = 0; l < c->n_links; l++)
        c->link_colour[l] = sim_random_next(c->link_colour[l] + c->link_sum[l]);
}

/* The class of each message (the caller frees them), or NULL if there are too many classes. */
static uint32_t *find_classes(const Colours *c, uint32_t *n_classes)
{
    g_autofree uint32_t *class = g_new(uint32_t, c->n);
    g_autoptr(GHashTable) found = g_hash_table_new(g_int64_hash, g_int64_equal);
    *n_classes = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        if (i > 0 && c->message_colour[i] == c->message_colour[i - 1]) {
            class[i] = class[i - 1];
            continue;
        }
        gpointer colour = &c->message_colour[i];
        const guint known = GPOINTER_TO_UINT(g_hash_table_lookup(found, colour));
        class[i] = known ? known - 1 : (*n_classes)++;
        if (*n_classes > c->n / MEMBERS_A_CLASS)
            return NULL;
        if (!known)
            g_hash_table_insert(found, colour, GUINT_TO_POINTER(class[i] + 1));
    }
    return g_steal_pointer(&class);
}

/* Adds the link uses of one flow for all members of a class; `weight` is 0 everywhere before and
 * after. */
static void add_uses(const Colours *c, LoweredBundle *bundle, double *weight,
                     GArray *touched)
{
    SimLowered *lowered = c->lowered;
    for (uint32_t i = 0; i < bundle->n; i++) {
        const LoweredMessage *m = &c->message[lowered->member[bundle->first + i]];
        for (uint32_t k = 0; k < m->n_uses; k++) {
            const SimUse *use = &c->use[m->first_use + k];
            if (weight[use->link] == 0)
                g_array_append_val(touched, use->link);
            weight[use->link] += use->weight;
        }
    }
    bundle->first_use = lowered->bundle_use->len;
    bundle->n_uses = touched->len;
    for (uint32_t i = 0; i < touched->len; i++) {
        const uint32_t link = g_array_index(touched, uint32_t, i);
        const SimUse use = {link, weight[link]};
        g_array_append_val(lowered->bundle_use, use);
        weight[link] = 0;
    }
    g_array_set_size(touched, 0);
}

static void make_bundles(const Colours *c, const uint32_t *class, uint32_t n_classes)
{
    SimLowered *lowered = c->lowered;
    g_autofree double *weight = g_new0(double, c->n_links);
    g_autoptr(GArray) touched = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g_autofree uint32_t *next = g_new0(uint32_t, n_classes + 1);
    lowered->n_bundles = n_classes;
    lowered->bundle = g_new0(LoweredBundle, n_classes);
    lowered->member = g_new(uint32_t, c->n);
    for (uint32_t i = 0; i < c->n; i++)
        lowered->bundle[class[i]].n++;
    for (uint32_t b = 0; b < n_classes; b++) {
        lowered->bundle[b].first = next[b];
        next[b + 1] = next[b] + lowered->bundle[b].n;
    }
    for (uint32_t i = 0; i < c->n; i++)
        lowered->member[next[class[i]]++] = i;
    items_each (LoweredBundle, bundle, lowered->bundle, n_classes) {
        bundle->bytes = c->message[lowered->member[bundle->first]].bytes;
        bundle->latency_s = c->message[lowered->member[bundle->first]].latency_s;
        add_uses(c, bundle, weight, touched);
    }
}

void lower_bundles(SimLowered *lowered, const Topology *topology)
{
    const uint32_t n = lowered->message->len, n_links = topology->n_links;
    if (n < FEW_MESSAGES)
        return;
    g_autofree uint64_t *message_colour = g_new(uint64_t, n);
    g_autofree uint64_t *link_colour = g_new(uint64_t, n_links);
    g_autofree uint64_t *link_sum = g_new(uint64_t, n_links);
    g_autofree uint64_t *sorted = g_new(uint64_t, n_links);
    const Colours c = {lowered,
                       (const LoweredMessage *)(const void *)lowered->message->data,
                       (const SimUse *)(const void *)lowered->uses->use->data,
                       n,
                       n_links,
                       message_colour,
                       link_colour,
                       link_sum,
                       sorted};
    uint32_t n_colours = 0, n_classes;
    for (uint32_t l = 0; l < n_links; l++)
        link_colour[l] = sim_random_next(sim_random_bits(topology->link[l].bandwidth) +
                                         topology->link[l].inner);
    for (uint32_t before = 0; n_colours == 0 || n_colours != before;) {
        before = n_colours;
        colour_messages(&c);
        colour_links(&c);
        n_colours = count_link_colours(&c);
    }
    g_autofree uint32_t *class = find_classes(&c, &n_classes);
    if (class)
        make_bundles(&c, class, n_classes);
}
