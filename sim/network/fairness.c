/* Flows that share links: how they start and end, and queries about them. */
#include "sim/network/fairness.h"

#include "data/base/free.h"

#include <math.h>

void share_init(SimShare *share, const Topology *topology)
{
    const uint32_t n = topology->n_links;
    *share = (SimShare){.n_links = n};
    share->link = g_new0(SharedLink, n);
    share->cap = g_new0(double, n + 1);
    share->clock = g_new0(Clock, n);
    share->level_place = g_new(uint32_t, n);
    share->end_place = g_new(uint32_t, n);
    for (uint32_t i = 0; i < n; i++) {
        share->link[i].bandwidth = topology->link[i].bandwidth;
        share->link[i].inner = topology->link[i].inner;
        share->link[i].alone = share->link[i].slack_for = UINT32_MAX;
        share->end_place[i] = UINT32_MAX;
    }
    share->cap[n] = INFINITY;
    coupling_init(&share->coupling, n);
    share->seeds = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    share->flows_alone = g_array_new(FALSE, FALSE, sizeof(SimFlowId));
    share->touched = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    share->to_wait = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    share->terms = g_array_new(FALSE, FALSE, sizeof(Term));
}

void share_clear(SimShare *share)
{
    free_column(share->clock, share->n_links, tags.at);
    for (uint32_t i = 0; i < share->n_flows; i++)
        share_release(share, i);
    coupling_clear(&share->coupling, share->n_links);
    free_each(share->link, share->cap, share->clock, share->flow, share->rest,
              share->levels.at, share->ends.at, share->level_place, share->end_place,
              share->tag_place);
    unref_arrays(share->seeds, share->flows_alone, share->touched, share->to_wait,
                 share->terms);
}

static void grow(SimShare *share)
{
    const uint32_t old = share->flow_capacity, n = MAX(16, 2 * old);
    share->flow = g_renew(Sharer, share->flow, n);
    share->rest = g_renew(SharerRest, share->rest, n);
    share->tag_place = g_renew(uint32_t, share->tag_place, n);
    share->end_place = g_renew(uint32_t, share->end_place, share->n_links + n);
    for (uint32_t i = old; i < n; i++)
        share->end_place[share->n_links + i] = UINT32_MAX;
    share->flow_capacity = n;
}

SimFlowId share_new(SimShare *share, SimFlowId id, const SimFlow *flow)
{
    if (id == UINT32_MAX) {
        id = share->n_flows++;
        if (id == share->flow_capacity)
            grow(share);
    }
    SharerRest *rest = &share->rest[id];
    rest->done = (SharerDone){flow->done, flow->context, flow->argument};
    rest->bytes = flow->bytes;
    rest->payload = flow->payload;
    rest->far_place = flow->n_uses > NEAR_USES ? g_new(UsePlace, flow->n_uses) : NULL;
    share->flow[id] = (Sharer){.use = flow->use,
                               .n_uses = flow->n_uses,
                               .stretch = 1 / flow->efficiency,
                               .bottleneck = NO_LINK};
    return id;
}

void share_release(SimShare *share, SimFlowId id)
{
    g_clear_pointer(&share->rest[id].far_place, g_free);
}

/* --- coming and going --- */

static void share_seed(SimShare *share, uint32_t link)
{
    KILTER_ASSERT(link < share->n_links);
    if (share->link[link].seeded)
        return;
    share->link[link].seeded = true;
    g_array_append_val(share->seeds, link);
}

/* Takes links on which the flow is alone out of the coupling, but the tightest. */
static void find_slack(SimShare *share, SimFlowId id)
{
    const Sharer *f = &share->flow[id];
    UsePlace *place = share_places(share, id);
    double least = INFINITY;
    uint32_t tightest = f->n_uses;
    for (uint32_t k = 0; k < f->n_uses; k++) {
        SharedLink *link = &share->link[f->use[k].link];
        const double rate = link->bandwidth / share_weight(share, id, k);
        place[k] = (UsePlace){0, 0};
        if (link->n > 1 || !(rate < INFINITY))
            continue;
        place[k].pair = SLACK;
        link->slack_for = id;
        link->slack_use = k;
        if (rate < least) {
            least = rate;
            tightest = k;
        }
    }
    if (tightest < f->n_uses) {
        place[tightest].pair = 0;
        share->link[f->use[tightest].link].slack_for = UINT32_MAX;
    }
}

/* Puts a slack link into the coupling. */
static void end_slack(SimShare *share, uint32_t link)
{
    SharedLink *l = &share->link[link];
    const SimFlowId id = l->slack_for;
    const uint32_t bottleneck = share->flow[id].bottleneck;
    KILTER_ASSERT(id < share->n_flows && share->flow[id].use[l->slack_use].link == link);
    coupling_join_use(share, id, l->slack_use, bottleneck);
    l->load = bottleneck < share->n_links ? share_weight(share, id, l->slack_use) *
                                                share->link[bottleneck].assumed
                                          : 0;
    l->slack_for = UINT32_MAX;
}

/* Unbinds a flow: all of its links that can hold it back will be solved for. */
static void unbind(SimShare *share, SimFlowId id, double left)
{
    Sharer *f = &share->flow[id];
    f->tag = left;
    f->bottleneck = share->n_links;
    find_slack(share, id);
    coupling_join(share, id, share->n_links);
    const UsePlace *place = share_places(share, id);
    for (uint32_t k = 0; k < f->n_uses; k++)
        if (place[k].pair != SLACK)
            share_seed(share, f->use[k].link);
}

/* Another flow joins a link whose only flow was alone. */
static void end_alone(SimShare *share, SimFlowId id, double now_s)
{
    KILTER_ASSERT(share->flow[id].bottleneck == ALONE);
    const double left = clock_left(share, id, now_s);
    const Sharer *f = &share->flow[id];
    clock_remove(share, id);
    for (uint32_t k = 0; k < f->n_uses; k++)
        share->link[f->use[k].link].alone = UINT32_MAX;
    unbind(share, id, left);
}

static bool fairness_is_alone(const SimShare *share, const Sharer *f)
{
    return !any_of(k, f->n_uses, share->link[f->use[k].link].n > 0);
}

void share_add(SimShare *share, SimFlowId id, double now_s)
{
    KILTER_ASSERT(id < share->flow_capacity && !share->flow[id].active);
    Sharer *f = &share->flow[id];
    const bool alone = fairness_is_alone(share, f);
    for (uint32_t k = 0; k < f->n_uses; k++) {
        SharedLink *link = &share->link[f->use[k].link];
        if (link->alone != UINT32_MAX)
            end_alone(share, link->alone, now_s);
        if (link->slack_for != UINT32_MAX)
            end_slack(share, f->use[k].link);
        link->n++;
        if (alone)
            link->alone = id;
    }
    f->active = true;
    share->n_active++;
    if (alone) {
        f->bottleneck = ALONE;
        f->tag = share->rest[id].bytes;
        f->since_s = now_s;
        f->rate = 0;
        g_array_append_val(share->flows_alone, id);
    } else {
        unbind(share, id, share->rest[id].bytes);
    }
}

/* Removes the flow from the loads and the coupling; the links that it used will be solved for. */
static void decouple(SimShare *share, SimFlowId id)
{
    const Sharer *f = &share->flow[id];
    const uint32_t bottleneck = f->bottleneck;
    const double rate = bottleneck < share->n_links ? share->link[bottleneck].assumed : 0;
    if (bottleneck < share->n_links)
        share->link[bottleneck].n_bound--;
    coupling_leave(share, id);
    for (uint32_t k = 0; k < f->n_uses; k++) {
        SharedLink *link = &share->link[f->use[k].link];
        link->load = link->n > 0 ? link->load - share_weight(share, id, k) * rate : 0;
        if (link->n_bound > 0)
            share_seed(share, f->use[k].link);
    }
}

void share_remove(SimShare *share, const SimFlowId *id, uint32_t n, GArray *emptied)
{
    KILTER_ASSERT(n <= share->n_flows);
    for (uint32_t i = 0; i < n; i++) {
        Sharer *f = &share->flow[id[i]];
        for (uint32_t k = 0; k < f->n_uses; k++) {
            SharedLink *link = &share->link[f->use[k].link];
            link->alone = link->slack_for = UINT32_MAX;
            if (--link->n == 0)
                g_array_append_val(emptied, f->use[k].link);
        }
        if (f->bottleneck != ALONE)
            decouple(share, id[i]);
        f->active = false;
    }
    share->n_active -= n;
}

/* Before the bandwidth of a link changes: what was slack beside it may not be so any more. */
static void end_slack_beside(SimShare *share, uint32_t link)
{
    const Coupling *c = &share->coupling;
    if (share->link[link].slack_for != UINT32_MAX)
        end_slack(share, link);
    for (uint32_t i = 0; i < c->row[link].n; i++) {
        const uint32_t p = c->row[link].term[i].pair;
        for (uint32_t j = 0; j < c->pair[p].n; j++) {
            const SimFlowId id = c->pair[p].member[j].flow;
            const Sharer *f = &share->flow[id];
            for (uint32_t k = 0; k < f->n_uses; k++)
                if (share->link[f->use[k].link].slack_for == id)
                    end_slack(share, f->use[k].link);
        }
    }
}

void share_set_bandwidth(SimShare *share, uint32_t link, double bandwidth)
{
    KILTER_ASSERT(link < share->n_links && bandwidth >= 0);
    SharedLink *l = &share->link[link];
    end_slack_beside(share, link);
    l->bandwidth = bandwidth;
    if (l->alone != UINT32_MAX)
        g_array_append_val(share->flows_alone, l->alone);
    else if (l->n > 0)
        share_seed(share, link);
}

/* --- state --- */

double share_rate(const SimShare *share, SimFlowId flow)
{
    KILTER_ASSERT(flow < share->flow_capacity);
    const Sharer *f = &share->flow[flow];
    if (f->bottleneck < share->n_links)
        return share->clock[f->bottleneck].speed;
    return f->bottleneck == ALONE ? f->rate : 0;
}

static double moved(const SimShare *share, SimFlowId id, uint32_t use, double now_s)
{
    const SharerRest *rest = &share->rest[id];
    return fmax(0, rest->bytes - clock_left(share, id, now_s)) * rest->payload *
           share->flow[id].use[use].weight;
}

double share_link_moved(const SimShare *share, uint32_t link, double now_s)
{
    KILTER_ASSERT(link < share->n_links);
    const SharedLink *l = &share->link[link];
    double bytes = 0;
    if (l->alone != UINT32_MAX) {
        const Sharer *f = &share->flow[l->alone];
        for (uint32_t k = 0; k < f->n_uses; k++)
            if (f->use[k].link == link)
                bytes += moved(share, l->alone, k, now_s);
        return bytes;
    }
    if (l->slack_for != UINT32_MAX)
        return moved(share, l->slack_for, l->slack_use, now_s);
    const Terms *row = &share->coupling.row[link];
    for (uint32_t i = 0; i < row->n; i++) {
        const Pair *pair = &share->coupling.pair[row->term[i].pair];
        for (uint32_t j = 0; j < pair->n; j++)
            bytes += moved(share, pair->member[j].flow, pair->member[j].use, now_s);
    }
    return bytes;
}

bool share_is_fair(const SimShare *share, double tolerance)
{
    g_autofree double *load = g_new0(double, share->n_links);
    g_autofree double *fastest = g_new0(double, share->n_links);
    for (SimFlowId id = 0; id < share->n_flows; id++) {
        const Sharer *f = &share->flow[id];
        for (uint32_t k = 0; f->active && k < f->n_uses; k++) {
            const uint32_t l = f->use[k].link;
            load[l] += share_weight(share, id, k) * share_rate(share, id);
            fastest[l] = fmax(fastest[l], share_rate(share, id));
        }
    }
    for (uint32_t l = 0; l < share->n_links; l++)
        if (load[l] > share->link[l].bandwidth * (1 + tolerance))
            return false;
    for (SimFlowId id = 0; id < share->n_flows; id++) {
        const Sharer *f = &share->flow[id];
        bool bound = !f->active;
        for (uint32_t k = 0; !bound && k < f->n_uses; k++) {
            const uint32_t l = f->use[k].link;
            bound = load[l] >= share->link[l].bandwidth * (1 - tolerance) &&
                    share_rate(share, id) >= fastest[l] * (1 - tolerance);
        }
        if (!bound)
            return false;
    }
    return true;
}
