/* Clocks of links, which tell when flows end without visiting each flow when rates change. */
#include <math.h>
#include <stdlib.h>

#include "data/base/order.h"
#include "sim/network/fairness.h"

static double reading(const Clock *clock, double now_s)
{
    return clock->reading + clock->speed * (now_s - clock->since_s);
}

static double end_of(const Clock *clock, double tag)
{
    KILTER_ASSERT(clock->speed >= 0);
    return clock->speed > 0
               ? clock->since_s + fmax(0, tag - clock->reading) / clock->speed
               : INFINITY;
}

double clock_left(const SimShare *share, SimFlowId id, double now_s)
{
    KILTER_ASSERT(id < share->n_flows);
    const Sharer *f = &share->flow[id];
    if (f->bottleneck < share->n_links)
        return fmax(0, f->tag - reading(&share->clock[f->bottleneck], now_s));
    if (f->bottleneck == ALONE)
        return fmax(0, f->tag - f->rate * (now_s - f->since_s));
    return f->tag;
}

/* --- the heap of ends --- */

static void put_end(SimShare *share, uint32_t item, double end_s)
{
    KILTER_ASSERT(item < share->n_links + share->flow_capacity && !isnan(end_s));
    const KeyedItem end = {end_s, item};
    if (share->end_place[item] != UINT32_MAX)
        keyed_heap_change(&share->ends, share->end_place, end);
    else
        keyed_heap_push(&share->ends, share->end_place, end);
}

static void take_end(SimShare *share, uint32_t item)
{
    if (share->end_place[item] == UINT32_MAX)
        return;
    keyed_heap_remove(&share->ends, share->end_place, item);
    share->end_place[item] = UINT32_MAX;
}

static void update_end(SimShare *share, uint32_t link)
{
    const Clock *clock = &share->clock[link];
    if (clock->tags.n > 0)
        put_end(share, link, end_of(clock, clock->tags.at[0].key));
    else
        take_end(share, link);
}

double share_next_end_s(const SimShare *share)
{
    return share->ends.n > 0 ? share->ends.at[0].key : INFINITY;
}

/* --- clocks --- */

void clock_add(SimShare *share, SimFlowId id, uint32_t link, double left, double now_s)
{
    KILTER_ASSERT(link < share->n_links && left >= 0);
    Clock *clock = &share->clock[link];
    if (clock->tags.n == 0)
        *clock = (Clock){.since_s = now_s, .tags = clock->tags};
    Sharer *f = &share->flow[id];
    f->bottleneck = link;
    f->tag = reading(clock, now_s) + left;
    keyed_heap_push(&clock->tags, share->tag_place, (KeyedItem){f->tag, id});
    if (clock->tags.at[0].item == id)
        update_end(share, link);
}

void clock_remove(SimShare *share, SimFlowId id)
{
    KILTER_ASSERT(id < share->flow_capacity);
    const uint32_t link = share->flow[id].bottleneck;
    if (link == ALONE) {
        take_end(share, share->n_links + id);
    } else if (link < share->n_links) {
        Clock *clock = &share->clock[link];
        const bool first = clock->tags.at[0].item == id;
        keyed_heap_remove(&clock->tags, share->tag_place, id);
        clock->n_ended++;
        if (first)
            update_end(share, link);
    }
}

/* Restarts the clock at 0 and subtracts its reading from all tags, so that they keep their
 * precision. Their order stays. */
static void clock_restart(SimShare *share, Clock *clock)
{
    for (uint32_t i = 0; i < clock->tags.n; i++) {
        clock->tags.at[i].key -= clock->reading;
        share->flow[clock->tags.at[i].item].tag = clock->tags.at[i].key;
    }
    clock->reading = 0;
    clock->n_ended = 0;
}

void clock_set_speed(SimShare *share, uint32_t link, double speed, double now_s)
{
    Clock *clock = &share->clock[link];
    if (speed != clock->speed) {
        g_assert(now_s >= clock->since_s);
        clock->reading = reading(clock, now_s);
        clock->since_s = now_s;
        clock->speed = speed;
        if (clock->n_ended > clock->tags.n)
            clock_restart(share, clock);
    }
    update_end(share, link);
}

void clock_set_alone(SimShare *share, SimFlowId id, double rate, double now_s)
{
    KILTER_ASSERT(id < share->flow_capacity && rate >= 0);
    Sharer *f = &share->flow[id];
    f->tag = clock_left(share, id, now_s);
    f->since_s = now_s;
    f->rate = rate;
    put_end(share, share->n_links + id, rate > 0 ? now_s + f->tag / rate : INFINITY);
}

/* --- ends --- */

double share_take_back(SimShare *share, SimFlowId id, double now_s)
{
    KILTER_ASSERT(id < share->flow_capacity && share->flow[id].active);
    /* A difference of clock readings may be off by a rounding. */
    const double left = fmin(clock_left(share, id, now_s), share->rest[id].bytes);
    clock_remove(share, id);
    return left;
}

static ORDER_VALUES(by_number, SimFlowId);

void share_take_due(SimShare *share, double until_s, GArray *due)
{
    while (share->ends.n > 0 && share->ends.at[0].key <= until_s) {
        const uint32_t item = share->ends.at[0].item;
        if (item >= share->n_links) {
            const SimFlowId id = item - share->n_links;
            take_end(share, item);
            g_array_append_val(due, id);
            continue;
        }
        Clock *clock = &share->clock[item];
        while (clock->tags.n > 0 && end_of(clock, clock->tags.at[0].key) <= until_s) {
            const SimFlowId id = clock->tags.at[0].item;
            keyed_heap_remove(&clock->tags, share->tag_place, id);
            clock->n_ended++;
            g_array_append_val(due, id);
        }
        update_end(share, item);
    }
    if (due->len > 1)
        qsort(due->data, due->len, sizeof(SimFlowId), by_number);
}
