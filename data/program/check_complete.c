/* The end of a checked program: every op ran, the loss exists, and updated values lie where the old
 * values lay. */
#include "data/program/check.h"

#include "data/base/assert.h"
#include "data/base/error.h"

static bool check_ran(const Check *check)
{
    const uint32_t n = check->program->n_microbatches;
    for (OpId id = 0; id < graph_n_ops(check->graph); id++) {
        const bool cut = check->batch && check->batch->loop[id] >= 0;
        for (uint32_t m = 0; m < (cut ? n : 1); m++) {
            if (check->ran[(size_t)id * n + m])
                continue;
            g_autofree char *part =
                n > 1 && cut ? g_strdup_printf(" on microbatch %u", m) : g_strdup("");
            return kilter_fail(check->error, KILTER_ERROR_FAILED,
                               "the program is not complete: op %s never runs%s",
                               graph_get_op(check->graph, id)->name, part);
        }
    }
    return true;
}

static bool check_loss(const Check *check)
{
    const TensorId loss = graph_loss(check->graph);
    for (uint32_t g = 0; loss != GRAPH_NONE && g < check->n_groups; g++) {
        for (uint32_t over = FORM_IDENTITY; over <= FORM_REDUCE; over++) {
            const uint32_t where = instances_place(check->instances, g, 0, loss,
                                                   form_over(0, (Form)over, 0));
            if (where != GRAPH_NONE &&
                check->held[where] & (1u << FORM_IDENTITY | 1u << FORM_REDUCE))
                return true;
        }
    }
    return loss == GRAPH_NONE ||
           kilter_fail(check->error, KILTER_ERROR_FAILED,
                       "the program is not complete: expected "
                       "%s|identity or %s|reduce",
                       tensor_name(check, loss), tensor_name(check, loss));
}

/* Checks that every parameter and state that a group has loaded is updated in the form in which it
 * lies. */
static bool check_updated(const Check *check, uint32_t group, TensorId old)
{
    KILTER_ASSERT(group < check->n_groups && old < graph_n_tensors(check->graph));
    const size_t at = (size_t)group * graph_n_tensors(check->graph) + old;
    const TensorId next = graph_updated(check->graph, old);
    if (next == GRAPH_NONE || (check->n_groups > 1 && !check->loaded[at]))
        return true;
    const uint32_t where =
        instances_place(check->instances, group, 0, next, check->rest[at]);
    const uint32_t bit = 1u << form_inside(check->rest[at]);
    if (where != GRAPH_NONE && (check->held[where] & ~check->partial[where] & bit))
        return true;
    char text[FORM_TEXT];
    return kilter_fail(check->error, KILTER_ERROR_FAILED,
                       "the program is not complete: expected %s|%s, the form in which "
                       "%s rests",
                       tensor_name(check, next), form_text(check->rest[at], text),
                       tensor_name(check, old));
}

bool check_complete(const Check *check)
{
    if (!check_ran(check) || !check_loss(check))
        return false;
    for (uint32_t g = 0; g < check->n_groups; g++)
        for (TensorId t = 0; t < graph_n_tensors(check->graph); t++)
            if (!check_updated(check, g, t))
                return false;
    return true;
}
