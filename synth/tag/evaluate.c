/* The time and memory of strategies, each evaluated once. */

#include "data/base/free.h"
#include "data/base/parallel.h"
#include "synth/tag/search.h"

typedef struct {
    SimQuickTimes times;
    double lacks; /* negative: not known yet */
} Known;

/* The tools with which one thread evaluates. */
typedef struct {
    SimQuick *quick;
    TagPlacement *placement;
    uint64_t *peak; /* [device] */
} Hand;

struct TagEvaluator {
    const TagSpace *space;
    const TagWork *work;
    TagObjective objective;
    Hand hand;         /* its quick is borrowed */
    GPtrArray *others; /* Hand, for further threads */
    GHashTable *known; /* actions as bytes -> Known */
};

static Hand hand_of(const TagSpace *space, const TagWork *work, SimQuick *quick)
{
    return (Hand){quick, synth_tag_placement_new(work->graph),
                  g_new0(uint64_t, space->view->n_devices)};
}

static FREE_DEFINE(hand_free, Hand, hand, sim_quick_free(hand->quick),
                   synth_tag_placement_free(hand->placement), g_free(hand->peak));

TagEvaluator *tag_evaluator_new(const TagSpace *space, const TagWork *work,
                                SimQuick *quick, TagObjective objective)
{
    TagEvaluator *e = g_new0(TagEvaluator, 1);
    e->space = space;
    e->work = work;
    e->objective = objective;
    e->hand = hand_of(space, work, quick);
    e->others = g_ptr_array_new_with_free_func((GDestroyNotify)hand_free);
    e->known = g_hash_table_new_full(g_bytes_hash, g_bytes_equal,
                                     (GDestroyNotify)g_bytes_unref, g_free);
    return e;
}

FREE_DEFINE(tag_evaluator_free, TagEvaluator, e,
            synth_tag_placement_free(e->hand.placement), g_free(e->hand.peak),
            g_ptr_array_unref(e->others), g_hash_table_unref(e->known));

uint32_t tag_evaluations(const TagEvaluator *e)
{
    return g_hash_table_size(e->known);
}

static Program *evaluate_program_of(const TagEvaluator *e, const Hand *hand,
                                    const uint16_t *action)
{
    synth_tag_place(e->space, e->work, action, hand->placement);
    return synth_tag_program(e->space, e->work, hand->placement, true);
}

double tag_lacking(const ClusterView *view, SimQuick *quick, const Program *program,
                   uint64_t *peak)
{
    double lacks = 0;
    sim_quick_memory(quick, program, peak);
    for (uint32_t j = 0; j < view->n_devices; j++) {
        const uint64_t has = view->device[j].memory_bytes;
        lacks += peak[j] > has ? (double)(peak[j] - has) : 0;
    }
    return lacks;
}

TagScore tag_evaluate(TagEvaluator *e, const uint16_t *action, double below_s)
{
    g_autoptr(GBytes) key = g_bytes_new(action, e->work->n_groups * sizeof *action);
    g_autoptr(Program) program = NULL;
    Known *known = g_hash_table_lookup(e->known, key);
    if (!known) {
        known = g_new(Known, 1);
        program = evaluate_program_of(e, &e->hand, action);
        *known = (Known){sim_quick_times(e->hand.quick, program), -1};
        g_hash_table_insert(e->known, g_bytes_ref(key), known);
    }
    TagScore score = {
        e->objective == TAG_BY_FLOW ? known->times.flow_s : known->times.stage_s, 0};
    if (score.time_s < below_s && known->lacks < 0) {
        if (!program)
            program = evaluate_program_of(e, &e->hand, action);
        known->lacks = tag_lacking(e->space->view, e->hand.quick, program, e->hand.peak);
    }
    score.lacks = MAX(known->lacks, 0);
    return score;
}

Program *tag_program(TagEvaluator *e, const uint16_t *action)
{
    return evaluate_program_of(e, &e->hand, action);
}

SimQuickTimes tag_times(TagEvaluator *e, const uint16_t *action)
{
    g_autoptr(Program) program = evaluate_program_of(e, &e->hand, action);
    return sim_quick_times(e->hand.quick, program);
}

/* --- several threads --- */

typedef struct {
    TagEvaluator *evaluator;
    const uint16_t **action; /* [strategy] */
    Known *found;            /* [strategy] */
    gint n_hands;            /* that threads have taken; atomic */
} Ahead;

static void *take_hand(void *context)
{
    Ahead *ahead = context;
    const gint i = g_atomic_int_add(&ahead->n_hands, 1);
    TagEvaluator *e = ahead->evaluator;
    return i == 0 ? &e->hand : e->others->pdata[i - 1];
}

static bool evaluate_one(void *context, void *own, uint32_t i, GError **error)
{
    (void)error;
    const Ahead *ahead = context;
    const TagEvaluator *e = ahead->evaluator;
    const Hand *hand = own;
    g_autoptr(Program) program = evaluate_program_of(e, hand, ahead->action[i]);
    ahead->found[i].times = sim_quick_times(hand->quick, program);
    ahead->found[i].lacks = tag_lacking(e->space->view, hand->quick, program, hand->peak);
    return true;
}

void tag_evaluate_ahead(TagEvaluator *e, const uint16_t *action, uint32_t n,
                        uint32_t threads)
{
    const uint32_t n_groups = e->work->n_groups;
    g_autoptr(GPtrArray) keys =
        g_ptr_array_new_with_free_func((GDestroyNotify)g_bytes_unref);
    g_autofree const uint16_t **open = g_new(const uint16_t *, n + 1);
    g_autofree Known *found = g_new0(Known, n + 1);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_bytes_hash, g_bytes_equal);
    for (uint32_t k = 0; k < n; k++) {
        const uint16_t *one = &action[(gsize)k * n_groups];
        GBytes *key = g_bytes_new(one, n_groups * sizeof *one);
        if (g_hash_table_contains(e->known, key) || g_hash_table_contains(seen, key)) {
            g_bytes_unref(key);
            continue;
        }
        g_hash_table_add(seen, key);
        open[keys->len] = one;
        g_ptr_array_add(keys, key);
    }
    threads = MIN(threads ? threads : g_get_num_processors(), MAX(keys->len, 1));
    while (e->others->len + 1 < threads) {
        const Hand hand = hand_of(e->space, e->work, sim_quick_another(e->hand.quick));
        g_ptr_array_add(e->others, g_memdup2(&hand, sizeof hand));
    }
    Ahead ahead = {e, open, found, 0};
    const Parallel work = {.n = keys->len,
                           .threads = threads,
                           .context = &ahead,
                           .begin = take_hand,
                           .round = evaluate_one};
    const bool done = parallel_run(&work, NULL, NULL);
    g_assert(done);
    for (uint32_t k = 0; k < keys->len; k++)
        g_hash_table_insert(e->known, g_bytes_ref(keys->pdata[k]),
                            g_memdup2(&found[k], sizeof *found));
}
