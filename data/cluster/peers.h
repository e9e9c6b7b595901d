/* Direct links between the GPUs of a machine without a switch, and the rings that a collective
 * finds on them.
 *
 * The text "0-1 0-3x2" means one link between GPUs 0 and 1, and two between 0 and 3. A ring visits
 * every rank once and uses one direction of one link at each step, so that two ranks have as many
 * rings as links, and more ranks have two rings, one each way, for each of the cycles that share no
 * link. NCCL and RCCL move a collective over all rings at once: bandwidth grows with their number,
 * which changes from one number of ranks to the next by what links the ranks have among them. */
#pragma once

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

enum { PEERS_MAX_GPUS = 32, PEERS_MAX_LINKS = 64 };

typedef struct {
    uint32_t n; /* GPUs */
    uint8_t link[PEERS_MAX_GPUS]
                [PEERS_MAX_GPUS]; /* number of links between two; symmetric */
} Peers;

/* KILTER_ERROR_INPUT says what was expected of the text. */
bool peers_parse(const char *text, uint32_t gpus, Peers *peers, GError **error);
/* The text, from which peers_parse makes equal peers. The caller frees it. */
char *peers_text(const Peers *peers);

/* The number of rings among GPUs 0 to n - 1. Where links alone make no cycle, a step of a ring may
 * pass through another one of these GPUs; 0: even then there is none. The search is bounded: in
 * large machines there may be more rings than it finds. */
uint32_t peers_rings(const Peers *peers, uint32_t n);
/* The same among the GPUs whose bits are set, of which there are at least two. */
uint32_t peers_rings_among(const Peers *peers, uint32_t set);

/* Remembers how many rings sets of GPUs have, which searches for plans ask again and again; threads
 * may share it. */
typedef struct PeersMemo PeersMemo;
PeersMemo *peers_memo_new(void);
void peers_memo_free(PeersMemo *memo); /* NULL: nothing */
/* peers_rings_among() of the links that the text names. `memo` may be NULL. False if the text is
 * none of `gpus` GPUs. */
bool peers_memo_rings(PeersMemo *memo, const char *text, uint32_t gpus, uint32_t set,
                      uint32_t *rings);
