/* HAP's searches: the best program for given ratios, exactly (synth_search) or as published
 * (synth_reference), and a bound on all programs at all ratios of a box (synth_bound). */
#pragma once

#include "synth/spmd/spmd.h"

/* The programs of a graph that keep pins (NULL: none), and everything that searches over them
 * find independently of ratios, cluster and multipliers: make it once for all searches of a
 * plan. Graph and pins stay the caller's. It is cheap until the first search, and serves one
 * search at a time. */
typedef struct SynthSpace SynthSpace;
SynthSpace *synth_space_new(const Graph *graph, const SynthPins *pins);
/* The same for synth_search at ratios [segment * n_devices + device]: op `id` has those of
 * segment[id] < n_segments, an array that stays the caller's. A tensor is cut anew only by a
 * conversion, so no op of the space reads or adds to a shard as another segment made it. Nothing is
 * proved of these programs, options->shares is not taken, and there may be none: then no program is
 * returned. */
SynthSpace *synth_space_of_segments(const Graph *graph, const SynthPins *pins,
                                    const uint16_t *segment, uint32_t n_segments);
/* Whether a search was refused since the graph has more states than can be tried. */
bool synth_space_is_large(const SynthSpace *space);
AUTOPTR(synth_space_free, SynthSpace)

typedef struct {
    uint32_t beam; /* labels kept per cut; 0: all of them (exact) */
    uint64_t bucket_bytes;
    uint64_t effort; /* about how many labels may be made, as in SynthBox; 0: no limit */
    /* [SYNTH_POINTS * n_devices], or NULL: seconds charged for every byte that a GPU of the device
     * keeps at that point. Raise it until the program fits. With a charge the program need not be
     * the fastest. */
    const double *memory_s;
    /* when to stop with the best so far, by g_get_monotonic_time(); 0: never */
    gint64 deadline_us;
    /* NULL, or the shares to price with: the search then finds the best program after rounding.
     * Equal devices count with the largest of their shares; nothing is `optimal`. */
    const SynthShares *shares;
    /* slower programs are not wanted, so there may be no result; 0: no limit. With shares, no
     * program as slow as this one is wanted either. */
    double upper_s;
} SynthOptions;

/* The best program for ratios [n_devices] (one segment).
 *
 * The space: every assignment, priced in the order above. Conversions are single collectives, or
 * two in one step where that is cheaper (a shard padded with zeros and all-reduced). In the forward
 * a reader of a tensor starts from one form: the form in which the tensor was made, or a form that
 * a priced collective before an earlier reader made. So a tensor with two readers may be used in
 * two forms, each conversion paid once; if a third reader wants a form that existed two steps
 * earlier, the conversion is priced anew. An op's backward starts from the forms in its own forward
 * step, for its outputs from the form in which they were made, and for their gradients from the
 * form in which these are accumulated. Parameters have one consumer; updates run where the
 * parameter rests, or sharded on a replica. (Gradients of parameters before the conversions of dy
 * are left out: in 1,173 random graphs none paid.)
 *
 * The emitted program starts a conversion from any available form, so it can be cheaper than
 * priced: where an op's saved output is pinned to be made in one form and read in another, or where
 * a tensor has more than two readers; without pins this happened in none of 675 random graphs.
 * Brute force over this space (tests/property/test_exact.c) found nothing faster; `optimal` is set
 * when nothing in the space is faster.
 *
 * With pins the space is the programs that keep them; KILTER_ERROR_INPUT names pins that no rule of
 * an op allows, KILTER_ERROR_FAILED says that no program keeps all of them.
 *
 * The method: a forward op is decided together with its backward ops. A prefix is a state, the
 * forms of the live tensors and of their gradients, and a label, the closed cost and the open
 * stages (synth/hap/exact/label.h); labels of a state are compared exactly. The relaxation that
 * counts a single device class gives every state an exact cost-to-go (synth/hap/exact/states.h),
 * which together with the best known program leaves few labels. */
bool synth_search(SynthSpace *space, const ClusterView *view, const double *ratio,
                  const SynthOptions *options, SynthResult *result, GError **error);

/* HAP's own search, Fig. 10, as published: the yardstick, and an oracle on small graphs.
 *
 * A* over explicit forward triples, each charged with its adjoint backward: a tensor in form
 * Identity has its gradient in Reduce and vice versa, Gather(d) is its own adjoint, a collective is
 * undone on the gradient in the cheapest way, and a parameter that is loaded whole pays an
 * all-reduce of its gradient. The goal is loss | Reduce. ecost is the least computation left.
 * Programs are compared by one number, the time to the last synchronization point, which can prune
 * the best program. The paper's three optimizations (Sec. 4.5) are in: loads are fused into their
 * consumers; a tensor is communicated at most once, inputs and parameters never; redundant
 * properties are dropped. Conversions are those of Fig. 9, padded or grouped (Sec. 2.5.1), not the
 * free local ones. As in the published artifact each op is computed once; programs that were
 * expanded prune like programs that still wait. A conversion is charged with its adjoint even if
 * none of its readers adds to the gradient.
 *
 * time_s is the emitted program's time. `states` counts the sets of computed ops that were met,
 * `labels` the programs kept. KILTER_ERROR_FAILED if a parameter has several consumers or no
 * program reaches the goal. */
bool synth_reference(const Graph *graph, const ClusterView *view, const double *ratio,
                     SynthResult *result, GError **error);

/* A box of ratios, [n_devices] each, and the options of its bound. */
typedef struct {
    const double *lo, *hi;
    double largest; /* some ratio is at least this; 0: nothing is known */
    double upper_s; /* time of a known plan */
    /* as in SynthOptions: any multipliers >= 0 of the memory constraint (Lagrange). The bound then
     * holds for programs that fit */
    const double *memory_s;
    /* with multipliers: bound the programs that keep the constraint on bytes weighted by the
     * multipliers. This bound is better, by the gap that multipliers leave, but takes longer and
     * needs a tolerance */
    bool rationed;
    /* if rationed: labels kept per cut; with more, the earlier proof has to suffice */
    uint32_t labels;
    uint32_t n_programs; /* if rationed: how many programs to return */
    /* about how many labels may be made before fewer are kept at the remaining cuts, so that large
     * models take no longer than others; 0: no limit */
    uint64_t effort;
    /* programs that differ by less than about this part of their time or memory count as one, with
     * the better of each; 0: all are distinct */
    double tolerance;
    gint64 deadline_us; /* as in SynthOptions */
} SynthBox;

typedef struct {
    double bound_s;
    /* with multipliers: bytes of the program that attains the bound, or nearly */
    SynthBytes bytes[SYNTH_POINTS];
    /* Programs that keep the weighted constraint, fastest first, each with less memory than the one
     * before */
    GPtrArray *programs;
} SynthBound;

AUTOCLEAR(synth_bound_clear, SynthBound)

/* A lower bound on the time of every program of the space at all ratios with lo[j] <= ratio[j] <=
 * hi[j] that sum to 1 (one segment, no buckets); upper_s if it is at least that. The bound becomes
 * exact as the box shrinks, up to the gap that the multipliers leave. */
bool synth_bound(SynthSpace *space, const ClusterView *view, const SynthBox *box,
                 SynthBound *bound, GError **error);
