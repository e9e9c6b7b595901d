/* Places of a grid: whether the file excludes one, and the values of its named axes. */
#include "data/base/json.h"
#include "experiments/sweep/grid.h"

#include <jansson.h>

static const Variant *variant_at(const Grid *grid, const GridPlace *place, GridAxis axis)
{
    GArray *const list[] = {grid->model, grid->cluster, grid->planner};
    return &g_array_index(list[axis], Variant, place->at[axis]);
}

/* The value of a named axis; one of the three variants has it. */
static const char *value_at(const Grid *grid, const GridPlace *place, uint32_t axis)
{
    for (GridAxis plain = GRID_MODEL; plain <= GRID_PLANNER; plain++) {
        const uint32_t index = variant_at(grid, place, plain)->value[axis];
        if (index != GRID_NONE)
            return experiment_file_list(grid->file, axis)->value[index];
    }
    g_assert_not_reached();
}

static bool matches(const char *pattern, const char *text)
{
    return g_pattern_match_simple(pattern, text);
}

/* Whether the place's value of a plain axis matches: as the file has it, or with the values of its
 * named axes. */
static bool matches_plain(const Grid *grid, const GridPlace *place, uint32_t axis,
                          const char *pattern)
{
    const uint32_t at = place->at[axis];
    g_autofree char *seed = NULL;
    switch ((GridAxis)axis) {
    case GRID_MODEL:
    case GRID_CLUSTER:
    case GRID_PLANNER: {
        const Variant *variant = variant_at(grid, place, (GridAxis)axis);
        return matches(pattern, variant->text) || matches(pattern, variant->role) ||
               matches(pattern,
                       experiment_file_list(grid->file, axis)->value[variant->entry]);
    }
    case GRID_GRANULARITY:
        return matches(pattern, granularity_name(grid->granularity[at]));
    case GRID_FIDELITY:
        return matches(pattern, grid->fidelity[at]);
    case GRID_SEED:
        seed = g_strdup_printf("%" G_GUINT64_FORMAT, grid->seed[at]);
        return matches(pattern, seed);
    case GRID_PLAIN:
        break;
    }
    g_assert_not_reached();
}

static bool excluded_by(const Grid *grid, const GridPlace *place, const Exclusion *e)
{
    bool all = true, any = false;
    for (uint32_t axis = 0; all && axis < grid->file->n_axes; axis++) {
        const char *pattern = e->pattern[axis];
        if (!pattern)
            continue;
        any = true;
        all = axis < GRID_PLAIN ? matches_plain(grid, place, axis, pattern)
                                : matches(pattern, value_at(grid, place, axis));
    }
    return all && any;
}

bool grid_excludes(const Grid *grid, const GridPlace *place)
{
    const ExperimentText *text = grid->file->text;
    return any_of(i, text->n_exclude, excluded_by(grid, place, &text->exclude[i]));
}

char *grid_axes(const Grid *grid, const GridPlace *place)
{
    if (grid->file->n_axes == GRID_PLAIN)
        return NULL;
    json_t *axes = json_object();
    for (uint32_t axis = GRID_PLAIN; axis < grid->file->n_axes; axis++)
        json_object_set_new(axes, grid->file->key[axis],
                            json_string(value_at(grid, place, axis)));
    return json_canonical(axes);
}
