/* Execution traces in memory. */
#include "data/formats/trace/trace.h"
#include "data/base/free.h"
#include "data/base/names.h"

const char *trace_kind_name(TraceKind kind)
{
    static const char *const NAME[] = {[TRACE_NOTHING] = "nothing",
#define X(id, name) [TRACE_##id] = name,
                                       TRACE_KIND_TABLE(X)
#undef X
    };
    g_assert(kind < TRACE_KINDS);
    return NAME[kind];
}

#define TRACE_COLLECTIVE_NAME(id) [TRACE_COMM_##id] = #id,
NAMES_LIST(trace_collective_name, TraceCollective, TRACE_COMM_TYPES,
           TRACE_COLLECTIVE_TABLE(TRACE_COLLECTIVE_NAME))

Trace *trace_new(void)
{
    Trace *trace = g_new0(Trace, 1);
    trace->version = g_strdup("");
    trace->node = g_array_new(false, true, sizeof(TraceNode));
    trace->dep = g_array_new(false, false, sizeof(uint32_t));
    trace->text = g_string_chunk_new(1024);
    return trace;
}

FREE_DEFINE(trace_free, Trace, trace, g_free(trace->version),
            unref_arrays(trace->node, trace->dep), g_string_chunk_free(trace->text));

uint32_t trace_add(Trace *trace, const TraceNode *node)
{
    TraceNode own = *node;
    g_assert(node->kind > TRACE_NOTHING && node->kind < TRACE_KINDS);
    g_assert(node->duration_s >= 0);
    own.id = trace->node->len + 1; /* an id of 0 would not be written */
    own.name = g_string_chunk_insert_const(trace->text, node->name ? node->name : "");
    own.group = g_string_chunk_insert_const(trace->text, node->group ? node->group : "");
    own.first_dep = trace->dep->len;
    own.n_deps = 0;
    g_array_append_val(trace->node, own);
    return trace->node->len - 1;
}

void trace_wait(Trace *trace, uint32_t other)
{
    g_assert(trace->node->len > 0 && other < trace->node->len - 1);
    TraceNode *node = &g_array_index(trace->node, TraceNode, trace->node->len - 1);
    const uint32_t *dep = trace_deps(trace, node);
    for (uint32_t i = 0; i < node->n_deps; i++)
        if (dep[i] == other)
            return;
    g_array_append_val(trace->dep, other);
    node->n_deps++;
    trace->n_dependencies++;
}
