#include "sim/network/fairness.h"

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
    share->found_link = g_new(uint32_t, topology->n_links);
}

void share_clear(SimShare *share)
{
    for (uint32_t i = 0; i < share->n_links; i++)
        g_free(share->link[i].entry);
    for (uint32_t i = 0; i < share->n_flows; i++)
        share_release(share, i);
    g_free(share->link);
    g_free(share->flow);
    g_free(share->rest);
    g_free(share->level);
    g_free(share->end);
    g_array_unref(share->dirty);
    g_array_unref(share->relieved);
    g_free(share->found_link);
    g_free(share->found_flow);
}

/* --- flows on links --- */

SimFlowId share_new(SimShare *share, SimFlowId id, const SimFlow *flow, const SimUse *own)
{
    if (id == UINT32_MAX) {
        id = share->n_flows++;
        if (id == share->flow_capacity) {
            share->flow_capacity = MAX(16, 2 * share->flow_capacity);
            share->flow = g_renew(Sharer, share->flow, share->flow_capacity);
            share->rest = g_renew(SharerRest, share->rest, share->flow_capacity);
            share->found_flow =
                g_renew(SimFlowId, share->found_flow, share->flow_capacity);
        }
    }
    SharerRest *rest = &share->rest[id];
    rest->done = (SharerDone){flow->done, flow->context, flow->argument};
    rest->bytes = flow->bytes;
    rest->payload = flow->payload;
    rest->own_use = own ? g_memdup2(own, flow->n_uses * sizeof *own) : NULL;
    rest->at = flow->n_uses > NEAR_USES ? g_new(uint32_t, flow->n_uses) : NULL;
    share->flow[id] = (Sharer){.use = own ? rest->own_use : flow->use,
                               .n_uses = flow->n_uses,
                               .stretch = 1 / flow->efficiency,
                               .bottleneck = NONE};
    return id;
}

void share_release(SimShare *share, SimFlowId id)
{
    g_clear_pointer(&share->rest[id].at, g_free);
    g_clear_pointer(&share->rest[id].own_use, g_free);
}

static void mark_dirty(SimShare *share, uint32_t link)
{
    if (share->link[link].dirty)
        return;
    share->link[link].dirty = true;
    g_array_append_val(share->dirty, link);
}

static uint32_t *places(const SimShare *share, SimFlowId id)
{
    SharerRest *rest = &share->rest[id];
    return rest->at ? rest->at : rest->near_at;
}

static void end_push(SimShare *share, SimFlowId id, double key);

void share_add(SimShare *share, SimFlowId id, double now_s)
{
    Sharer *f = &share->flow[id];
    const SimUse *use = share->flow[id].use;
    uint32_t *at = places(share, id);

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
    f->remaining = share->rest[id].bytes;
    f->since_s = now_s;
    f->active = true;
    share->n_active++;
    end_push(share, id, INFINITY);
}

/* Takes the flow off its links but those that have no flow any more. */
static void leave_links(SimShare *share, SimFlowId id, GArray *emptied)
{
    const Sharer *f = &share->flow[id];
    const uint32_t *at = places(share, id);

    for (uint32_t k = 0; k < f->n_uses; k++) {
        const uint32_t l = f->use[k].link;
        SharedLink *link = &share->link[l];
        if (link->n == 0)
            continue;
        if (link->leaving == link->n) {
            link->n = link->leaving = 0;
            g_array_append_val(emptied, l);
            continue;
        }
        link->leaving--;
        const Entry last = link->entry[--link->n];
        link->entry[at[k]] = last;
        places(share, last.flow)[last.use] = at[k];
        if (!link->relieved) {
            link->relieved = true;
            g_array_append_val(share->relieved, l);
        }
    }
}

void share_remove(SimShare *share, const SimFlowId *id, uint32_t n, GArray *emptied)
{
    for (uint32_t i = 0; i < n; i++) {
        Sharer *f = &share->flow[id[i]];
        for (uint32_t k = 0; k < f->n_uses; k++)
            share->link[f->use[k].link].leaving++;
        if (f->bottleneck != NONE)
            share->link[f->bottleneck].n_bound--;
        f->active = false;
    }
    for (uint32_t i = 0; i < n; i++)
        leave_links(share, id[i], emptied);
    share->n_active -= n;
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

static void end_remove(SimShare *share, SimFlowId id)
{
    const uint32_t place = share->flow[id].place;
    const HeapItem last = share->end[--share->n_ends];

    if (last.item == id)
        return;
    if (last.key < share->end[place].key)
        end_up(share, place, last);
    else
        end_down(share, place, last);
}

double share_take_back(SimShare *share, SimFlowId id, double now_s)
{
    const Sharer *f = &share->flow[id];

    end_remove(share, id);
    return fmax(0, f->remaining - f->rate * (now_s - f->since_s));
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
        SimFlowId *next = (SimFlowId *)(void *)due->data;
        for (SimFlowId id = 0; id < share->n_flows; id++)
            if (share->flow[id].active &&
                share->end[share->flow[id].place].key <= until_s)
                *next++ = id; /* the same ones, in order */
        uint32_t n = 0;
        for (uint32_t i = 0; i < share->n_ends; i++)
            if (!(share->end[i].key <= until_s))
                end_set(share, n++, share->end[i]);
        share->n_ends = n;
        for (uint32_t i = (n + 2) / 4; i-- > 0;)
            end_down(share, i, share->end[i]);
    } else {
        for (uint32_t i = 0; i < due->len; i++)
            end_remove(share, g_array_index(due, SimFlowId, i));
        if (due->len > 1)
            qsort(due->data, due->len, sizeof(SimFlowId), by_number);
    }
}

/* --- solving --- */

static double weight_on(const Sharer *f, const SharedLink *link, const SimUse *use)
{
    return link->inner ? use->weight : use->weight * f->stretch;
}

/* The links that changed. */
static void find_changed(SimShare *share)
{
    for (uint32_t i = 0; i < share->relieved->len; i++) {
        const uint32_t id = g_array_index(share->relieved, uint32_t, i);
        share->link[id].relieved = false;
        if (share->link[id].n_bound > 0)
            mark_dirty(share, id);
    }
    g_array_set_size(share->relieved, 0);
    share->n_found_links = 0;
    for (uint32_t i = 0; i < share->dirty->len; i++) {
        const uint32_t id = g_array_index(share->dirty, uint32_t, i);
        share->link[id].dirty = false;
        share->link[id].epoch = share->epoch;
        share->found_link[share->n_found_links++] = id;
    }
    g_array_set_size(share->dirty, 0);
}

/* A flow of the part, and its links. */
static void find_flow(SimShare *share, SimFlowId id)
{
    Sharer *f = &share->flow[id];

    f->epoch = share->epoch;
    f->fixed = false;
    share->found_flow[share->n_found_flows++] = id;
    for (uint32_t k = 0; k < f->n_uses; k++) {
        const uint32_t l = f->use[k].link;
        if (share->link[l].epoch == share->epoch)
            continue;
        share->link[l].epoch = share->epoch;
        share->found_link[share->n_found_links++] = l;
    }
}

/* The flows and links that the changed links reach. */
static void find_part(SimShare *share)
{
    share->epoch++;
    find_changed(share);
    share->n_found_flows = 0;
    for (uint32_t i = 0; i < share->n_found_links; i++) {
        SharedLink *link = &share->link[share->found_link[i]];
        link->left = link->n;
        link->room = link->bandwidth;
        link->weight = 0;
        for (uint32_t e = 0; e < link->n; e++) {
            const Sharer *f = &share->flow[link->entry[e].flow];
            link->weight += weight_on(f, link, &f->use[link->entry[e].use]);
            if (f->epoch != share->epoch)
                find_flow(share, link->entry[e].flow);
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
        const SimUse *use = f->use;
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
    for (uint32_t i = 0; i < share->n_found_links; i++) {
        const uint32_t id = share->found_link[i];
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
    const SimUse *use = share->flow[id].use;
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
    uint32_t n = make_levels(share), left = share->n_found_flows;
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
    for (uint32_t i = 0; i < share->n_found_links; i++) {
        const uint32_t link = share->found_link[i];
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
    if (share->n_found_flows == 0)
        return;
    share->n_solved++;
    if (share->n_found_flows == 1)
        fill_one(share, share->found_flow[0]);
    else
        fill(share);
    for (uint32_t i = 0; i < share->n_found_flows; i++) {
        const SimFlowId id = share->found_flow[i];
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
                weight_on(&share->flow[id], l, &share->flow[id].use[l->entry[e].use]);
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
        const SharerRest *rest = &share->rest[id];
        const double moved =
            rest->bytes - fmax(0, f->remaining - f->rate * (now_s - f->since_s));
        bytes += moved * rest->payload * f->use[l->entry[e].use].weight;
    }
    return bytes;
}
