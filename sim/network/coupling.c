/* The coupling of links: which flows of a link are bound to which bottleneck, kept as rows by link,
 * columns by bottleneck, and a hash of the pairs. */

#include "data/base/free.h"
#include "sim/network/fairness.h"

enum {
    FIRST_SLOTS = 256,
    SHORT_ROW = 12,   /* terms that are sooner read than hashed */
    SUM_AGAIN = 4096, /* departures from a pair after which its weight is summed anew */
};

void coupling_init(Coupling *coupling, uint32_t n_links)
{
    *coupling = (Coupling){.n_slots = FIRST_SLOTS};
    coupling->free_pairs = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    coupling->row = g_new0(Terms, n_links + 1);
    coupling->column = g_new0(Terms, n_links + 1);
    coupling->slot = g_new0(PairSlot, coupling->n_slots);
}

void coupling_clear(Coupling *coupling, uint32_t n_links)
{
    for (uint32_t i = 0; i <= n_links; i++) {
        free_each(coupling->row[i].term, coupling->column[i].term);
    }
    free_column(coupling->pair, coupling->n_pairs, member);
    free_each(coupling->row, coupling->column, coupling->pair, coupling->slot);
    g_array_unref(coupling->free_pairs);
}

/* --- the hash --- */

/* All bits of both numbers change the low ones: links of a tree differ by powers of two. */
static uint32_t home(const Coupling *c, uint32_t link, uint32_t bottleneck)
{
    uint64_t key = ((uint64_t)link << 32 | bottleneck) * 0x9e3779b97f4a7c15;
    key = (key ^ key >> 32) * 0xbf58476d1ce4e5b9;
    return (uint32_t)(key >> 32) & (c->n_slots - 1);
}

/* The slot of the pair, or the empty one where it belongs. */
static uint32_t find_slot(const Coupling *c, uint32_t link, uint32_t bottleneck)
{
    for (uint32_t s = home(c, link, bottleneck);; s = (s + 1) & (c->n_slots - 1)) {
        const PairSlot *slot = &c->slot[s];
        if (!slot->pair || (slot->link == link && slot->bottleneck == bottleneck))
            return s;
    }
}

static void grow_slots(Coupling *c)
{
    g_autofree PairSlot *old = c->slot;
    const uint32_t n = c->n_slots;
    c->n_slots *= 2;
    c->slot = g_new0(PairSlot, c->n_slots);
    for (uint32_t s = 0; s < n; s++)
        if (old[s].pair)
            c->slot[find_slot(c, old[s].link, old[s].bottleneck)] = old[s];
}

/* Empties a slot; pairs behind it that it displaced from their home slots move up. */
static void clear_slot(Coupling *c, uint32_t hole)
{
    const uint32_t mask = c->n_slots - 1;
    for (uint32_t s = (hole + 1) & mask; c->slot[s].pair; s = (s + 1) & mask) {
        const uint32_t from = home(c, c->slot[s].link, c->slot[s].bottleneck);
        if (((s - from) & mask) >= ((s - hole) & mask)) {
            c->slot[hole] = c->slot[s];
            hole = s;
        }
    }
    c->slot[hole].pair = 0;
    c->n_used--;
}

/* --- rows and columns --- */

static uint32_t terms_add(Terms *terms, uint32_t other, uint32_t pair)
{
    if (terms->n == terms->capacity) {
        terms->capacity = MAX(4, 2 * terms->capacity);
        terms->term = g_renew(Term, terms->term, terms->capacity);
    }
    terms->term[terms->n] = (Term){0, other, pair};
    return terms->n++;
}

static uint32_t add_pair(Coupling *c, uint32_t link, uint32_t bottleneck)
{
    uint32_t id = c->n_pairs;
    if (c->free_pairs->len > 0) {
        id = g_array_index(c->free_pairs, uint32_t, c->free_pairs->len - 1);
        g_array_set_size(c->free_pairs, c->free_pairs->len - 1);
    } else {
        if (c->n_pairs == c->capacity) {
            c->capacity = MAX(64, 2 * c->capacity);
            c->pair = g_renew(Pair, c->pair, c->capacity);
        }
        c->pair[c->n_pairs++] = (Pair){.member = NULL};
    }
    Pair *pair = &c->pair[id];
    pair->link = link;
    pair->bottleneck = bottleneck;
    pair->n = pair->n_left = 0;
    pair->in_row = terms_add(&c->row[link], bottleneck, id);
    pair->in_column = terms_add(&c->column[bottleneck], link, id);
    return id;
}

static void hash_pair(Coupling *c, uint32_t id)
{
    if (2 * (c->n_used + 1) > c->n_slots)
        grow_slots(c);
    const Pair *pair = &c->pair[id];
    c->slot[find_slot(c, pair->link, pair->bottleneck)] =
        (PairSlot){pair->link, pair->bottleneck, id + 1};
    c->n_used++;
}

/* The pair, or NO_LINK. The pairs of a short row are found by reading it, those of one that was
 * longer than that since it was empty are in the hash. */
static uint32_t known_pair(const Coupling *c, uint32_t link, uint32_t bottleneck)
{
    const Terms *row = &c->row[link];
    if (row->hashed)
        return c->slot[find_slot(c, link, bottleneck)].pair - 1;
    for (uint32_t i = 0; i < row->n; i++)
        if (row->term[i].other == bottleneck)
            return row->term[i].pair;
    return NO_LINK;
}

static uint32_t find_pair(Coupling *c, uint32_t link, uint32_t bottleneck)
{
    uint32_t id = known_pair(c, link, bottleneck);
    if (id != NO_LINK)
        return id;
    id = add_pair(c, link, bottleneck);
    Terms *row = &c->row[link];
    if (row->hashed) {
        hash_pair(c, id);
    } else if (row->n > SHORT_ROW) {
        row->hashed = true;
        for (uint32_t i = 0; i < row->n; i++)
            hash_pair(c, row->term[i].pair);
    }
    return id;
}

static void remove_pair(Coupling *c, uint32_t id)
{
    Pair *pair = &c->pair[id];
    Terms *row = &c->row[pair->link], *column = &c->column[pair->bottleneck];
    row->term[pair->in_row] = row->term[--row->n];
    c->pair[row->term[pair->in_row].pair].in_row = pair->in_row;
    column->term[pair->in_column] = column->term[--column->n];
    c->pair[column->term[pair->in_column].pair].in_column = pair->in_column;
    if (row->hashed)
        clear_slot(c, find_slot(c, pair->link, pair->bottleneck));
    row->hashed &= row->n > 0;
    g_array_append_val(c->free_pairs, id);
}

static void set_weight(Coupling *c, const Pair *pair, double weight)
{
    c->row[pair->link].term[pair->in_row].weight = weight;
    c->column[pair->bottleneck].term[pair->in_column].weight = weight;
}

/* --- flows --- */

void coupling_join_use(SimShare *share, SimFlowId id, uint32_t use, uint32_t bottleneck)
{
    Coupling *c = &share->coupling;
    const uint32_t p = find_pair(c, share->flow[id].use[use].link, bottleneck);
    Pair *pair = &c->pair[p];
    if (pair->n == pair->capacity) {
        pair->capacity = MAX(4, 2 * pair->capacity);
        pair->member = g_renew(Member, pair->member, pair->capacity);
    }
    share_places(share, id)[use] = (UsePlace){p, pair->n};
    pair->member[pair->n++] = (Member){id, use};
    set_weight(c, pair,
               c->row[pair->link].term[pair->in_row].weight +
                   share_weight(share, id, use));
}

void coupling_join(SimShare *share, SimFlowId id, uint32_t bottleneck)
{
    const UsePlace *place = share_places(share, id);
    for (uint32_t k = 0; k < share->flow[id].n_uses; k++)
        if (place[k].pair != SLACK)
            coupling_join_use(share, id, k, bottleneck);
}

static double sum_weights(const SimShare *share, const Pair *pair)
{
    return sum_over(double, i, pair->n,
                    share_weight(share, pair->member[i].flow, pair->member[i].use));
}

void coupling_leave(SimShare *share, SimFlowId id)
{
    Coupling *c = &share->coupling;
    const Sharer *f = &share->flow[id];
    const UsePlace *place = share_places(share, id);
    /* The pairs made last go first: they are at the end of the column. */
    for (uint32_t k = f->n_uses; k-- > 0;) {
        if (place[k].pair == SLACK)
            continue;
        Pair *pair = &c->pair[place[k].pair];
        g_assert(pair->link == f->use[k].link && pair->n > place[k].at);
        if (--pair->n == 0) {
            remove_pair(c, place[k].pair);
            continue;
        }
        const Member last = pair->member[pair->n];
        KILTER_ASSERT(pair->member[place[k].at].flow == id);
        pair->member[place[k].at] = last;
        share_places(share, last.flow)[last.use].at = place[k].at;
        if (pair->n == 1 || ++pair->n_left == SUM_AGAIN) {
            /* subtractions have lost precision */
            set_weight(c, pair, sum_weights(share, pair));
            pair->n_left = 0;
        } else {
            set_weight(c, pair,
                       c->row[pair->link].term[pair->in_row].weight -
                           share_weight(share, id, k));
        }
    }
}
