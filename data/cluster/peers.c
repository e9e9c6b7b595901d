/* Direct links between GPUs, and rings on them. */
#include "data/cluster/peers.h"

#include "data/base/assert.h"
#include "data/base/each.h"
#include "data/base/error.h"
#include "data/base/free.h"

/* Steps of one search, after which the rings found so far count. */
enum { MOST_STEPS = 20000 };

/* --- text --- */

static bool read_number(const char **text, uint32_t least, uint32_t most, uint32_t *value)
{
    char *end;
    if (!g_ascii_isdigit(**text))
        return false;
    const guint64 number = g_ascii_strtoull(*text, &end, 10);
    *text = end;
    *value = (uint32_t)MIN(number, UINT32_MAX);
    return number >= least && number <= most;
}

static bool read_link(const char *word, Peers *peers)
{
    uint32_t from, to, count = 1;
    const char *at = word;
    if (!read_number(&at, 0, peers->n - 1, &from) || *at++ != '-' ||
        !read_number(&at, 0, peers->n - 1, &to) || from == to ||
        (*at == 'x' && (at++, !read_number(&at, 1, PEERS_MAX_LINKS, &count))) || *at ||
        peers->link[from][to] > 0)
        return false;
    peers->link[from][to] = peers->link[to][from] = (uint8_t)count;
    return true;
}

bool peers_parse(const char *text, uint32_t gpus, Peers *peers, GError **error)
{
    *peers = (Peers){.n = gpus};
    if (gpus < 2 || gpus > PEERS_MAX_GPUS)
        return refuse(error, "expected a machine of 2 to %d GPUs, got %u", PEERS_MAX_GPUS,
                      gpus);
    g_auto(GStrv) words = g_strsplit_set(text, " \t\n", -1);
    for (char **word = words; *word; word++)
        if (**word && !read_link(*word, peers))
            return refuse(error,
                          "expected links such as 0-1 or 0-3x2 between GPUs 0 to %u, "
                          "each pair once, got '%.40s'",
                          gpus - 1, *word);
    return true;
}

char *peers_text(const Peers *peers)
{
    KILTER_ASSERT(peers->n <= PEERS_MAX_GPUS);
    GString *text = g_string_new(NULL);
    for (uint32_t a = 0; a < peers->n; a++)
        for (uint32_t b = a + 1; b < peers->n; b++) {
            const uint32_t count = peers->link[a][b];
            if (count > 0)
                g_string_append_printf(text, "%s%u-%u", text->len ? " " : "", a, b);
            if (count > 1)
                g_string_append_printf(text, "x%u", count);
        }
    return g_string_free(text, FALSE);
}

/* --- rings --- */

/* Rings through all of the first n GPUs that share no direction of a link, by backtracking. */
typedef struct {
    Peers left; /* [from][to]: directions of links that no ring uses yet */
    uint32_t n, steps, best, most;
    uint32_t each; /* 2: a ring and the same the other way; 1: each on its own */
    bool relays;   /* steps may pass through another GPU */
} Search;

/* The number of rings that the links left can make at most. */
static uint32_t rings_left(const Search *search)
{
    uint32_t most = UINT32_MAX;
    for (uint32_t a = 0; a < search->n; a++) {
        const uint32_t links = sum_over(uint32_t, b, search->n, search->left.link[a][b]);
        most = MIN(most, links / search->each * search->each);
    }
    return most;
}

/* Takes a link out, or puts it back with more = 1. */
static void change_link(Search *search, uint32_t from, uint32_t to, int more)
{
    search->left.link[from][to] = (uint8_t)(search->left.link[from][to] + more);
    if (search->each == 2)
        search->left.link[to][from] = search->left.link[from][to];
}

static void extend(Search *search, uint32_t found, uint32_t visited, uint32_t at,
                   uint32_t length);

static void search_rings(Search *search, uint32_t found)
{
    search->best = MAX(search->best, found);
    if (found + rings_left(search) > search->best)
        extend(search, found, 1, 0, 1);
}

/* Goes to GPU `to`, which closes the ring if all were visited. False when the search is over. */
static bool step_to(Search *search, uint32_t found, uint32_t visited, uint32_t to,
                    uint32_t length)
{
    if (search->steps == 0 || search->best == search->most)
        return false;
    search->steps--;
    if (length == search->n)
        search_rings(search, found + search->each);
    else
        extend(search, found, visited | 1U << to, to, length + 1);
    return true;
}

/* The steps from `at` over a link; pairs with many links first, which leave the most for other
 * rings. */
static bool extend_direct(Search *search, uint32_t found, uint32_t visited, uint32_t at,
                          uint32_t length)
{
    const bool closes = length == search->n;
    bool going = true;
    const uint32_t most =
        most_over(uint32_t, to, search->n, 0, search->left.link[at][to]);
    for (uint32_t links = most; going && links > 0; links--)
        for (uint32_t to = !closes; going && to < (closes ? 1 : search->n); to++) {
            if (search->left.link[at][to] != links || (!closes && visited >> to & 1))
                continue;
            change_link(search, at, to, -1);
            going = step_to(search, found, visited, to, length);
            change_link(search, at, to, 1);
        }
    return going;
}

/* A ring that has come to GPU `at` and has visited `length` of them. */
static void extend(Search *search, uint32_t found, uint32_t visited, uint32_t at,
                   uint32_t length)
{
    KILTER_ASSERT(at < search->n && length <= search->n);
    const bool closes = length == search->n;
    bool going = extend_direct(search, found, visited, at, length);
    for (uint32_t by = 0; search->relays && going && by < search->n; by++)
        for (uint32_t to = !closes; going && to < (closes ? 1 : search->n); to++) {
            if (by == to || search->left.link[at][by] == 0 ||
                search->left.link[by][to] == 0 || (!closes && visited >> to & 1))
                continue;
            change_link(search, at, by, -1);
            change_link(search, by, to, -1);
            going = step_to(search, found, visited, to, length);
            change_link(search, at, by, 1);
            change_link(search, by, to, 1);
        }
}

/* More rings than `best`, or `best`. */
static uint32_t find_rings(const Peers *peers, uint32_t n, uint32_t each, bool relays,
                           uint32_t best)
{
    Search search = {.left = *peers,
                     .n = n,
                     .steps = MOST_STEPS,
                     .best = best,
                     .each = each,
                     .relays = relays};
    search.most = rings_left(&search);
    if (search.most > best)
        search_rings(&search, 0);
    return search.best;
}

uint32_t peers_rings(const Peers *peers, uint32_t n)
{
    g_assert(n > 1 && n <= peers->n);
    if (n == 2)
        return peers->link[0][1];
    const uint32_t both = find_rings(peers, n, 2, false, 0);
    const uint32_t rings = find_rings(peers, n, 1, false, both);
    return rings > 0 ? rings : find_rings(peers, n, 1, true, 0);
}

uint32_t peers_rings_among(const Peers *peers, uint32_t set)
{
    Peers among = {0};
    uint32_t gpu[PEERS_MAX_GPUS];
    for (uint32_t a = 0; a < peers->n; a++)
        if (set >> a & 1)
            gpu[among.n++] = a;
    for (uint32_t a = 0; a < among.n; a++)
        for (uint32_t b = 0; b < among.n; b++)
            among.link[a][b] = peers->link[gpu[a]][gpu[b]];
    return peers_rings(&among, among.n);
}

/* --- memo --- */

struct PeersMemo {
    GMutex lock;
    GHashTable *rings; /* of a set and a text */
};

PeersMemo *peers_memo_new(void)
{
    PeersMemo *memo = g_new(PeersMemo, 1);
    g_mutex_init(&memo->lock);
    memo->rings = text_table(NULL);
    return memo;
}

FREE_DEFINE(peers_memo_free, PeersMemo, memo, g_hash_table_destroy(memo->rings),
            g_mutex_clear(&memo->lock));

static bool memo_find(PeersMemo *memo, const char *key, uint32_t *rings)
{
    gpointer known;
    g_mutex_lock(&memo->lock);
    const bool found = g_hash_table_lookup_extended(memo->rings, key, NULL, &known);
    g_mutex_unlock(&memo->lock);
    *rings = found ? GPOINTER_TO_UINT(known) : 0;
    return found;
}

bool peers_memo_rings(PeersMemo *memo, const char *text, uint32_t gpus, uint32_t set,
                      uint32_t *rings)
{
    Peers peers;
    g_autofree char *key = g_strdup_printf("%x %s", set, text);
    if (memo && memo_find(memo, key, rings))
        return true;
    if (!peers_parse(text, gpus, &peers, NULL))
        return false;
    *rings = peers_rings_among(&peers, set);
    if (memo) {
        g_mutex_lock(&memo->lock);
        g_hash_table_insert(memo->rings, g_steal_pointer(&key), GUINT_TO_POINTER(*rings));
        g_mutex_unlock(&memo->lock);
    }
    return true;
}
