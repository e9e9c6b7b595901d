/* GOAL: the text format that LogGOPSim and ATLAHS run. Labels are the nodes' indices from 1, times
 * whole nanoseconds. */
#include "data/base/each.h"
#include "data/formats/trace/trace.h"

#include <inttypes.h>
#include <math.h>

#include "data/base/assert.h"
#include "data/base/error.h"

/* Adds the line of a node; false if it is a collective. Everything runs on one cpu of the rank, as
 * dependencies between cpus lose their time. */
static bool goal_add_node(GString *text, const TraceNode *node, uint32_t label)
{
    KILTER_ASSERT(label > 0);
    switch (node->kind) {
    case TRACE_SEND:
        g_string_append_printf(text, "l%u: send %" PRIu64 "b to %u tag %u\n", label,
                               node->bytes, node->to, node->tag);
        return true;
    case TRACE_RECEIVE:
        g_string_append_printf(text, "l%u: recv %" PRIu64 "b from %u tag %u\n", label,
                               node->bytes, node->from, node->tag);
        return true;
    case TRACE_COLLECTIVE:
        return false;
    default:
        g_string_append_printf(text, "l%u: calc %.0f\n", label,
                               round(1e9 * node->duration_s));
        return true;
    }
}

char *goal_write(const GPtrArray *traces, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_string_append_printf(text, "num_ranks %u\n", traces->len);
    values_at (const Trace *, trace, r, traces->pdata, traces->len) {
        g_string_append_printf(text, "\nrank %u {\n", r);
        for (uint32_t i = 0; i < trace->node->len; i++) {
            const TraceNode *node = trace_node(trace, i);
            if (!goal_add_node(text, node, i + 1))
                return refused(error,
                               "rank %u: %s is a collective, which GOAL does not have", r,
                               node->name);
            for (uint32_t d = 0; d < node->n_deps; d++)
                g_string_append_printf(text, "l%u requires l%u\n", i + 1,
                                       trace_deps(trace, node)[d] + 1);
        }
        g_string_append(text, "}\n");
    }
    return g_string_free(g_steal_pointer(&text), false);
}
