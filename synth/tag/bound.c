/* The bound over strategies: the rows' weights, and branching (synth/tag/search.h). */
#include <math.h>
#include <string.h>

#include "data/base/free.h"
#include "synth/tag/rows.h"

enum {
    ROUNDS = 240,       /* rounds at first */
    BRANCH_ROUNDS = 40, /* rounds per branch */
    ROUNDS_A_PATH = 20
};

/* A factor that keeps rounding from lifting the bound above a time. */
static const double SAFE = 1 - 1e-9;

/* --- weights --- */

/* Multiplicative weights: rows with more work weigh more. The best weights are kept. */
/* Improves the weights for the strategies with these actions; the tree keeps their costs. Returns
 * the bound. */
static double tag_weights_find(TagBound *b, const uint16_t *action, uint32_t rounds)
{
    g_autofree double *row = g_new0(double, b->n_rows);
    g_autofree double *best = g_new0(double, b->n_rows);
    g_autofree uint16_t *before = g_new(uint16_t, b->tree->n + 1);
    const uint32_t late =
        rounds < ROUNDS ? ROUNDS_A_PATH : 1; /* the weights are good already */
    double bound = -1;
    memset(b->switched, 0, b->tree->n * sizeof *b->switched);
    for (uint32_t round = 0; round < rounds; round++) {
        double most = 0, total = 0;
        tag_rows_weigh(b);
        const double sum = tag_tree_least(b->tree, action, b->now);
        if (sum > bound) {
            bound = sum;
            memcpy(best, b->weight, b->n_rows * sizeof *best);
        }
        tag_rows_of(b, b->now, row);
        for (uint32_t i = 0; i < b->tree->n; i++)
            b->switched[i] += round > 0 && b->now[i] != before[i];
        memcpy(before, b->now, b->tree->n * sizeof *before);
        if (!action)
            g_array_append_vals(b->seen, b->now, b->tree->n);
        for (uint32_t r = 0; r < b->n_rows; r++)
            most = fmax(most, row[r]);
        for (uint32_t r = 0; r < b->n_rows; r++) {
            if (most > 0)
                b->weight[r] *= exp(row[r] / most / sqrt(late + round));
            total += b->weight[r];
        }
        for (uint32_t r = 0; r < b->n_rows; r++)
            b->weight[r] /= total;
        if (round % ROUNDS_A_PATH == ROUNDS_A_PATH - 1 && b->n_paths < MOST_PATHS)
            tag_rows_add_path(b, b->now);
    }
    memcpy(b->weight, best, b->n_rows * sizeof *best);
    tag_rows_weigh(b);
    return bound;
}

TagBound *tag_bound_new(const TagSpace *space, const TagWork *work, SimQuick *quick,
                        TagObjective objective, SimQuickSums sums)
{
    sim_quick_price_sums(quick, sums);
    TagBound *b = tag_rows_new(space, work, quick, objective,
                               objective == TAG_BY_STAGE && sums == SIM_SUMS_EACH);
    sim_quick_price_sums(quick, SIM_SUMS_EACH);
    tag_rows_serial(b);
    tag_weights_find(b, NULL, ROUNDS);
    return b;
}

uint32_t tag_bound_seen(const TagBound *b, const uint16_t **strategy)
{
    *strategy = (const uint16_t *)b->seen->data;
    return b->work->n_groups ? b->seen->len / b->work->n_groups : 0;
}

double tag_bound(TagBound *b, const uint16_t *action)
{
    if (!tag_room_fits(b->room, action, b->tree->n))
        return INFINITY;
    const double path = tag_rows_longest(b, action);
    const double least = tag_tree_least(b->tree, action, NULL);
    return SAFE * fmax(fmax(least, tag_rows_decided(b, action)), path);
}

/* --- branching --- */

typedef struct {
    double bound;
    uint16_t *action; /* [op group] */
    double *weight;   /* [row] */
    uint16_t split;   /* the group to branch on */
    bool improved;    /* it has weights of its own */
} Branch;

static Branch branch_of(const TagBound *b, const uint16_t *action, double bound)
{
    return (Branch){.bound = bound,
                    .action = g_memdup2(action, b->tree->n * sizeof *action),
                    .weight = g_memdup2(b->weight, b->n_rows * sizeof *b->weight)};
}

static CLEAR_DEFINE(branch_clear, Branch, branch,
                    free_each(branch->action, branch->weight));

/* The group to branch on: the group whose action changed most under the weights, weighted by its
 * cost. */
static uint16_t choose_split(const TagBound *b, const uint16_t *action)
{
    uint32_t best = 0;
    double most = -1;
    for (uint32_t i = 0; i < b->tree->n; i++) {
        const double spent =
            sum_over(double, s, b->space->n_actions,
                     b->tree->alone[(size_t)i * b->space->n_actions + s]);
        if (action[i] != TAG_UNDECIDED || (1 + b->switched[i]) * spent <= most)
            continue;
        most = (1 + b->switched[i]) * spent;
        best = i;
    }
    return (uint16_t)best;
}

/* Finds weights of its own for the branch, and the group to branch on. False if all groups are
 * decided. */
static bool tag_improve(TagBound *b, Branch *branch)
{
    memcpy(b->weight, branch->weight, b->n_rows * sizeof *b->weight);
    const double bound = tag_weights_find(b, branch->action, BRANCH_ROUNDS);
    branch->bound = fmax(branch->bound, bound);
    branch->bound = fmax(branch->bound, tag_rows_longest(b, branch->action));
    memcpy(branch->weight, b->weight, b->n_rows * sizeof *b->weight);
    branch->split = choose_split(b, branch->action);
    branch->improved = true;
    return branch->action[branch->split] == TAG_UNDECIDED;
}

/* Adds a branch for each action of the group, bounded by the parent's weights; hopeless branches
 * are left out. */
static void split(TagBound *b, const Branch *branch, double best_s, GArray *open)
{
    memcpy(b->weight, branch->weight, b->n_rows * sizeof *b->weight);
    tag_rows_weigh(b);
    for (uint32_t s = 0; s < b->space->n_actions; s++) {
        branch->action[branch->split] = (uint16_t)s;
        if (!tag_room_fits(b->room, branch->action, b->tree->n))
            continue;
        const double bound =
            fmax(branch->bound, tag_tree_least(b->tree, branch->action, NULL));
        if (SAFE * bound >= best_s)
            continue;
        const Branch child = branch_of(b, branch->action, bound);
        g_array_append_val(open, child);
    }
}

static uint32_t least_open(const GArray *open)
{
    uint32_t least = 0;
    for (uint32_t k = 1; k < open->len; k++)
        if (g_array_index(open, Branch, k).bound <
            g_array_index(open, Branch, least).bound)
            least = k;
    return least;
}

double tag_bound_branch(TagBound *b, double best_s, uint32_t branches)
{
    g_autoptr(GArray) open = g_array_new(FALSE, FALSE, sizeof(Branch));
    g_autofree uint16_t *action = g_new(uint16_t, b->tree->n + 1);
    g_array_set_clear_func(open, (GDestroyNotify)branch_clear);
    memset(action, 0xff, b->tree->n * sizeof *action);
    const Branch root = branch_of(b, action, tag_bound(b, action));
    double bound = root.bound;
    g_array_append_val(open, root);
    for (uint32_t k = 0; k < branches && open->len > 0; k++) {
        const uint32_t at = least_open(open);
        Branch *first = &g_array_index(open, Branch, at);
        bound = fmax(bound, SAFE * first->bound);
        if (bound >= best_s)
            return best_s;
        if (!first->improved) {
            if (!tag_improve(b, first))
                return bound;
            continue;
        }
        Branch taken = *first;
        g_array_index(open, Branch, at) = g_array_index(open, Branch, open->len - 1);
        g_array_set_clear_func(open, NULL);
        g_array_set_size(open, open->len - 1);
        g_array_set_clear_func(open, (GDestroyNotify)branch_clear);
        split(b, &taken, best_s, open);
        branch_clear(&taken);
    }
    return open->len == 0
               ? best_s
               : fmin(best_s,
                      fmax(bound,
                           SAFE * g_array_index(open, Branch, least_open(open)).bound));
}
