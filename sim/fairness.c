#include "sim/fairness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

/* Levels within this part of one another are one. */
static const double SAME_LEVEL = 1e-11;

void share_init(SimShare *share, const Topology *topology)
{
    *share = (SimShare){.n_links = topology->n_links};
    share->link = g_new0(SharedLink, topology->n_links);
    for (uint32_t i = 0; i < topology->n_links; i++) {
        share->link[i].bandwidth = topology->link[i].bandwidth;
        share->link[i].inner = topology->link[i].inner;
    }
    share->level = g_new(HeapItem, topology->n_links);
    share->dirty = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    share->relieved = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    share->found_links = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    share->found_flows = g_array_new(FALSE, FALSE, sizeof(SimFlowId));
}

void share_clear(SimShare *share)
{
    for (uint32_t i = 0; i < share->n_links; i++)
        g_free(share->link[i].entry);
    for (uint32_t i = 0; i < share->n_flows; i++) {
        g_free(share->flow[i].at);
        g_free(share->flow[i].more_use);
    }
    g_free(share->link);
    g_free(share->flow);
    g_free(share->level);
    g_free(share->end);
    g_array_unref(share->dirty);
    g_array_unref(share->relieved);
    g_array_unref(share->found_links);
    g_array_unref(share->found_flows);
}

/* --- flows on links --- */

SimFlowId share_new(SimShare *share, SimFlowId id, const SimFlow *flow, const SimUse *own)
{
    if (id == UINT32_MAX) {
        id = share->n_flows++;
        if (id == share->flow_capacity) {
            share->flow_capacity = MAX(16, 2 * share->flow_capacity);
            share->flow = g_renew(Sharer, share->flow, share->flow_capacity);
        }
    }
    Sharer *f = &share->flow[id];
    f->flow = *flow;
    f->stretch = 1 / flow->efficiency;
    f->rate = 0;
    f->epoch = 0;
    f->active = false;
    f->bottleneck = NONE;
    f->at = NULL;
    f->more_use = NULL;
    f->use = flow->use;
    f->n_uses = flow->n_uses;
    if (flow->n_uses > OWN_USES)
        f->at = g_new(uint32_t, flow->n_uses);
    if (own) {
        if (flow->n_uses > OWN_USES)
            f->use = f->more_use = g_new(SimUse, flow->n_uses);
        memcpy(f->more_use ? f->more_use : f->own_use, own, flow->n_uses * sizeof *own);
    }
    return id;
}

void share_release(SimShare *share, SimFlowId id)
{
    g_clear_pointer(&share->flow[id].at, g_free);
    g_clear_pointer(&share->flow[id].more_use, g_free);
}

static void mark_dirty(SimShare *share, uint32_t link)
{
    if (share->link[link].dirty)
        return;
    share->link[link].dirty = true;
    g_array_append_val(share->dirty, link);
}

static uint32_t *places(Sharer *f)
{
    return f->at ? f->at : f->own_at;
}

static void end_push(SimShare *share, SimFlowId id, double key);

void share_add(SimShare *share, SimFlowId id, double now_s)
{
    Sharer *f = &share->flow[id];
    const SimUse *use = share_uses(share, id);
    uint32_t *at = places(f);

    for (uint32_t k = 0; k < f->n_uses; k++) {
        SharedLink *link = &share->link[use[k].link];
        if (link->n == link->capacity) {
            link->capacity = MAX(4, 2 * link->capacity);
            link->entry = g_renew(Entry, link->entry, link->capacity);
        }
        at[k] = link->n;
        link->entry[link->n++] = (Entry){id, k};
    }
    mark_dirty(share, use[0].link);
    f->remaining = f->flow.bytes;
    f->since_s = now_s;
    f->active = true;
    share->n_active++;
    end_push(share, id, INFINITY);
}

void share_remove(SimShare *share, SimFlowId id)
{
    Sharer *f = &share->flow[id];
    const SimUse *use = share_uses(share, id);
    const uint32_t *at = places(f);

    for (uint32_t k = 0; k < f->n_uses; k++) {
        SharedLink *link = &share->link[use[k].link];
        const Entry last = link->entry[--link->n];
        link->entry[at[k]] = last;
        places(&share->flow[last.flow])[last.use] = at[k];
        if (link->n > 0 && !link->relieved) {
            link->relieved = true;
            g_array_append_val(share->relieved, use[k].link);
        }
    }
    if (f->bottleneck != NONE)
        share->link[f->bottleneck].n_bound--;
    f->active = false;
    share->n_active--;
}

void share_set_bandwidth(SimShare *share, uint32_t link, double bandwidth)
{
    share->link[link].bandwidth = bandwidth;
    mark_dirty(share, link);
}

/* --- heap of ends: 4-ary --- */

static void end_set(SimShare *share, uint32_t place, HeapItem item)
{
    share->end[place] = item;
    share->flow[item.item].place = place;
}

static void end_up(SimShare *share, uint32_t place, HeapItem item)
{
    for (; place > 0 && item.key < share->end[(place - 1) / 4].key;
         place = (place - 1) / 4)
        end_set(share, place, share->end[(place - 1) / 4]);
    end_set(share, place, item);
}

static void end_down(SimShare *share, uint32_t place, HeapItem item)
{
    for (;;) {
        uint32_t child = 4 * place + 1, least = child;
        if (child >= share->n_ends)
            break;
        for (uint32_t k = 1; k < 4 && child + k < share->n_ends; k++)
            if (share->end[child + k].key < share->end[least].key)
                least = child + k;
        if (share->end[least].key >= item.key)
            break;
        end_set(share, place, share->end[least]);
        place = least;
    }
    end_set(share, place, item);
}

static void end_push(SimShare *share, SimFlowId id, double key)
{
    if (share->n_ends == share->end_capacity) {
        share->end_capacity = MAX(16, 2 * share->end_capacity);
        share->end = g_renew(HeapItem, share->end, share->end_capacity);
    }
    end_up(share, share->n_ends++, (HeapItem){key, id});
}

static void end_change(SimShare *share, SimFlowId id, double key)
{
    const uint32_t place = share->flow[id].place;
    const HeapItem item = {key, id};
    if (key < share->end[place].key)
        end_up(share, place, item);
    else
        end_down(share, place, item);
}

double share_next_end_s(const SimShare *share)
{
    return share->n_ends > 0 ? share->end[0].key : INFINITY;
}

static int by_number(const void *a, const void *b)
{
    const SimFlowId x = *(const SimFlowId *)a, y = *(const SimFlowId *)b;
    return (x > y) - (x < y);
}

/* Finds the due flows below `place`, whose children end no earlier. */
static void find_due(const SimShare *share, double until_s, GArray *due)
{
    g_autoptr(GArray) places_left = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    uint32_t place = 0;
    if (share->n_ends > 0)
        g_array_append_val(places_left, place);
    while (places_left->len > 0) {
        place = g_array_index(places_left, uint32_t, places_left->len - 1);
        g_array_set_size(places_left, places_left->len - 1);
        if (!(share->end[place].key <= until_s))
            continue;
        g_array_append_val(due, share->end[place].item);
        for (uint32_t child = 4 * place + 1;
             child <= 4 * place + 4 && child < share->n_ends; child++)
            g_array_append_val(places_left, child);
    }
}

void share_take_due(SimShare *share, double until_s, GArray *due)
{
    find_due(share, until_s, due);
    if (due->len > share->n_ends / 8) { /* make the heap anew from what is left */
        g_array_set_size(due, 0);
        for (SimFlowId id = 0; id < share->n_flows; id++)
            if (share->flow[id].active &&
                share->end[share->flow[id].place].key <= until_s)
                g_array_append_val(due, id);
        uint32_t n = 0;
        for (uint32_t i = 0; i < share->n_ends; i++)
            if (!(share->end[i].key <= until_s))
                end_set(share, n++, share->end[i]);
        share->n_ends = n;
        for (uint32_t i = (n + 2) / 4; i-- > 0;)
            end_down(share, i, share->end[i]);
    } else {
        for (uint32_t i = 0; i < due->len; i++) {
            const SimFlowId id = g_array_index(due, SimFlowId, i);
            const uint32_t place = share->flow[id].place;
            const HeapItem last = share->end[--share->n_ends];
            if (last.item == id)
                continue;
            if (last.key < share->end[place].key)
                end_up(share, place, last);
            else
                end_down(share, place, last);
        }
        if (due->len > 1)
            qsort(due->data, due->len, sizeof(SimFlowId), by_number);
    }
}

/* --- solving --- */

static double weight_on(const Sharer *f, const SharedLink *link, const SimUse *use)
{
    return link->inner ? use->weight : use->weight * f->stretch;
}

/* The flows and links that the dirty links reach. */
static void find_part(SimShare *share)
{
    GArray *links = share->found_links, *flows = share->found_flows;

    g_array_set_size(links, 0);
    g_array_set_size(flows, 0);
    share->epoch++;
    for (uint32_t i = 0; i < share->relieved->len; i++) {
        const uint32_t id = g_array_index(share->relieved, uint32_t, i);
        share->link[id].relieved = false;
        if (share->link[id].n_bound > 0)
            mark_dirty(share, id);
    }
    g_array_set_size(share->relieved, 0);
    for (uint32_t i = 0; i < share->dirty->len; i++) {
        const uint32_t id = g_array_index(share->dirty, uint32_t, i);
        share->link[id].dirty = false;
        share->link[id].epoch = share->epoch;
        g_array_append_val(links, id);
    }
    g_array_set_size(share->dirty, 0);
    for (uint32_t i = 0; i < links->len; i++) {
        SharedLink *link = &share->link[g_array_index(links, uint32_t, i)];
        link->left = link->n;
        link->room = link->bandwidth;
        link->weight = 0;
        for (uint32_t e = 0; e < link->n; e++) {
            const SimFlowId id = link->entry[e].flow;
            Sharer *f = &share->flow[id];
            const SimUse *use = share_uses(share, id);
            link->weight += weight_on(f, link, &use[link->entry[e].use]);
            if (f->epoch == share->epoch)
                continue;
            f->epoch = share->epoch;
            f->fixed = false;
            g_array_append_val(flows, id);
            for (uint32_t k = 0; k < f->n_uses; k++) {
                if (share->link[use[k].link].epoch == share->epoch)
                    continue;
                share->link[use[k].link].epoch = share->epoch;
                g_array_append_val(links, use[k].link);
            }
        }
    }
}

static double level_of(const SharedLink *link)
{
    return link->room > 0 ? link->room / link->weight : 0;
}

/* Room and weight without the rounding of many subtractions. */
static void refresh(const SimShare *share, SharedLink *link)
{
    link->room = link->bandwidth;
    link->weight = 0;
    for (uint32_t e = 0; e < link->n; e++) {
        const Sharer *f = &share->flow[link->entry[e].flow];
        const SimUse *use = share_uses(share, link->entry[e].flow);
        const double weight = weight_on(f, link, &use[link->entry[e].use]);
        if (f->fixed)
            link->room -= weight * f->next_rate;
        else
            link->weight += weight;
    }
}

static void level_down(HeapItem *heap, uint32_t n, uint32_t i, HeapItem item)
{
    for (uint32_t child = 2 * i + 1; child < n; child = 2 * i + 1) {
        if (child + 1 < n && heap[child + 1].key < heap[child].key)
            child++;
        if (heap[child].key >= item.key)
            break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = item;
}

static uint32_t make_levels(SimShare *share)
{
    HeapItem *heap = share->level;
    uint32_t n = 0;
    for (uint32_t i = 0; i < share->found_links->len; i++) {
        const uint32_t id = g_array_index(share->found_links, uint32_t, i);
        if (share->link[id].left > 0)
            heap[n++] = (HeapItem){level_of(&share->link[id]), id};
    }
    for (uint32_t i = n / 2; i-- > 0;)
        level_down(heap, n, i, heap[i]);
    return n;
}

static void bind(SimShare *share, Sharer *f, uint32_t link)
{
    if (f->bottleneck == link)
        return;
    if (f->bottleneck != NONE)
        share->link[f->bottleneck].n_bound--;
    f->bottleneck = link;
    share->link[link].n_bound++;
}

static void fix_flow(SimShare *share, SimFlowId id, uint32_t full, double level)
{
    Sharer *f = &share->flow[id];
    const SimUse *use = share_uses(share, id);
    bind(share, f, full);
    f->fixed = true;
    f->next_rate = level;
    for (uint32_t k = 0; k < f->n_uses; k++) {
        SharedLink *link = &share->link[use[k].link];
        const double weight = weight_on(f, link, &use[k]);
        link->left--;
        link->room -= weight * level;
        link->weight -= weight;
    }
}

static void fill(SimShare *share)
{
    HeapItem *heap = share->level;
    uint32_t n = make_levels(share), left = share->found_flows->len;
    double reached = 0; /* level of the last link that was full */

    while (left > 0) {
        const uint32_t full = heap[0].item;
        SharedLink *link = &share->link[full];
        if (link->left == 0) {
            n--;
            level_down(heap, n, 0, heap[n]);
            continue;
        }
        if (link->left < link->n)
            refresh(share, link);
        double level = level_of(link);
        if (level > heap[0].key * (1 + SAME_LEVEL) && n > 1) {
            level_down(heap, n, 0, (HeapItem){level, full});
            if (heap[0].item != full)
                continue;
        }
        if (level <= reached * (1 + SAME_LEVEL))
            level = reached;
        reached = level;
        left -= link->left;
        for (uint32_t e = 0; e < link->n; e++)
            if (!share->flow[link->entry[e].flow].fixed)
                fix_flow(share, link->entry[e].flow, full, level);
    }
}

/* The rates of a part that is one flow. */
static void fill_one(SimShare *share, SimFlowId id)
{
    double least = INFINITY;
    uint32_t full = NONE;
    for (uint32_t i = 0; i < share->found_links->len; i++) {
        const uint32_t link = g_array_index(share->found_links, uint32_t, i);
        const double level =
            share->link[link].n > 0 ? level_of(&share->link[link]) : INFINITY;
        if (level < least) {
            least = level;
            full = link;
        }
    }
    share->flow[id].next_rate = least;
    bind(share, &share->flow[id], full);
}

void share_solve(SimShare *share, double now_s)
{
    find_part(share);
    const GArray *flows = share->found_flows;
    if (flows->len == 0)
        return;
    share->n_solved++;
    if (flows->len == 1)
        fill_one(share, g_array_index(flows, SimFlowId, 0));
    else
        fill(share);
    for (uint32_t i = 0; i < flows->len; i++) {
        const SimFlowId id = g_array_index(flows, SimFlowId, i);
        Sharer *f = &share->flow[id];
        if (f->next_rate == f->rate)
            continue;
        f->remaining = fmax(0, f->remaining - f->rate * (now_s - f->since_s));
        f->since_s = now_s;
        f->rate = f->next_rate;
        end_change(share, id, f->rate > 0 ? now_s + f->remaining / f->rate : INFINITY);
    }
}

/* --- state --- */

uint32_t share_stalled(const SimShare *share)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < share->n_ends; i++)
        n += !(share->flow[share->end[i].item].rate > 0);
    return n;
}

double share_link_rate(const SimShare *share, uint32_t link)
{
    const SharedLink *l = &share->link[link];
    double rate = 0;
    for (uint32_t e = 0; e < l->n; e++) {
        const SimFlowId id = l->entry[e].flow;
        rate += share->flow[id].rate *
                weight_on(&share->flow[id], l, &share_uses(share, id)[l->entry[e].use]);
    }
    return rate;
}

double share_link_moved(const SimShare *share, uint32_t link, double now_s)
{
    const SharedLink *l = &share->link[link];
    double bytes = 0;
    for (uint32_t e = 0; e < l->n; e++) {
        const SimFlowId id = l->entry[e].flow;
        const Sharer *f = &share->flow[id];
        const double moved =
            f->flow.bytes - fmax(0, f->remaining - f->rate * (now_s - f->since_s));
        bytes += moved * f->flow.payload * share_uses(share, id)[l->entry[e].use].weight;
    }
    return bytes;
}
