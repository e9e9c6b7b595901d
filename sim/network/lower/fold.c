/* Folding: links that all flows use alike count as one.
 *
 * A link is a condition on the rates: sum of weight x rate <= bandwidth. Two links with the same
 * bandwidth and the same weights in every flow are one condition written twice, so one of them
 * stands for both; the other carries the same bytes at the same times. On a regular network with a
 * regular plan nearly all links fall together. Nothing is assumed about the plan or the network: a
 * device, a route or a fault that is unlike the others gives its links classes of their own.
 * Classes are found by a hash of 64 bits of a link's bandwidth and weights; a false match takes two
 * equal hashes. */
#include "sim/event/random.h"
#include "sim/network/lower/lower.h"

/* Adds what tells the links of rounds from others to their keys; sums make the order irrelevant. */
static void add_rounds(const LoweredUses *uses, uint64_t *n_rounds, uint64_t *key)
{
    array_each (const LoweredRound, round, uses->round) {
        ++*n_rounds;
        for (uint32_t k = 0; k < round->n_uses; k++) {
            const SimUse *use = &g_array_index(uses->use, SimUse, round->first_use + k);
            KILTER_ASSERT(use->weight > 0);
            key[use->link] += sim_random_mix(*n_rounds, sim_random_bits(use->weight));
        }
    }
}

static void keep_apart(const SimLowered *lowered, bool *apart)
{
    g_assert(lowered->message->len == 0 || lowered->uses->round->len == 0);
    array_each (const LoweredMessage, m, lowered->message) {
        for (uint32_t k = 0; k < m->n_uses; k++)
            apart[g_array_index(lowered->uses->use, SimUse, m->first_use + k).link] =
                true;
    }
}

/* Takes the links that another one stands for out of rounds. */
static void take_out(LoweredUses *uses, const uint32_t *stands)
{
    GArray *few = g_array_new(FALSE, FALSE, sizeof(SimUse));
    array_each (LoweredRound, round, uses->round) {
        const uint32_t first = round->first_use, end = first + round->n_uses;
        round->first_use = few->len;
        for (uint32_t k = first; k < end; k++) {
            const SimUse use = g_array_index(uses->use, SimUse, k);
            if (stands[use.link] == use.link)
                g_array_append_val(few, use);
        }
        round->n_uses = few->len - round->first_use;
        g_assert((round->n_uses > 0) == (end > first));
    }
    g_array_unref(uses->use);
    uses->use = few;
}

/* [link]: the first link with an equal key. */
static uint32_t *find_first(const uint64_t *key, const bool *apart, uint32_t n_links)
{
    g_autoptr(GHashTable) first = g_hash_table_new(g_int64_hash, g_int64_equal);
    uint32_t *stands = g_new(uint32_t, n_links);
    for (uint32_t l = 0; l < n_links; l++) {
        gpointer found = NULL;
        stands[l] = l;
        if (apart[l])
            continue;
        if (g_hash_table_lookup_extended(first, &key[l], NULL, &found))
            stands[l] = GPOINTER_TO_UINT(found);
        else
            g_hash_table_insert(first, (gpointer)&key[l], GUINT_TO_POINTER(l));
    }
    return stands;
}

uint32_t *sim_lowered_fold(SimLowered *const *lowered, uint32_t n,
                           const Topology *topology, const bool *apart)
{
    const uint32_t n_links = topology->n_links;
    g_autofree uint64_t *key = g_new(uint64_t, n_links);
    g_autofree bool *alone = g_memdup2(apart, n_links * sizeof *apart);
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    g_autoptr(GPtrArray) uses = g_ptr_array_new();
    uint64_t n_rounds = 0;
    for (uint32_t l = 0; l < n_links; l++)
        key[l] = sim_random_mix(sim_random_bits(topology->link[l].bandwidth),
                                topology->link[l].inner);
    for (uint32_t i = 0; i < n; i++) {
        keep_apart(lowered[i], alone);
        if (!g_hash_table_add(seen, lowered[i]->uses))
            continue;
        g_ptr_array_add(uses, lowered[i]->uses);
        add_rounds(lowered[i]->uses, &n_rounds, key);
    }
    uint32_t *stands = find_first(key, alone, n_links);
    for (uint32_t i = 0; i < uses->len; i++)
        if (((LoweredUses *)uses->pdata[i])->round->len > 0)
            take_out(uses->pdata[i], stands);
    return stands;
}
