/* Fuzz target: bytes as an execution trace (Chakra) are refused with one line, or nodes that wait
 * for nodes of the trace, which are written and read again, as is a copy that is made node by
 * node. */
#include <string.h>

#include "data/data.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/memory_file.h"

/* The trace in a file of these bytes. */
static Trace *trace_of(const void *bytes, gsize length, GError **error)
{
    int memory;
    g_autofree char *file = memory_file_open(bytes, length, &memory);
    Trace *trace = trace_read(file, error);
    close(memory);
    return trace;
}

static void check_again(const Trace *trace)
{
    gsize length;
    g_autoptr(GBytes) bytes = trace_write(trace, NULL);
    fuzz_check(bytes, "it can be written");
    const void *text = g_bytes_get_data(bytes, &length);
    g_autoptr(Trace) again = trace_of(text, length, NULL);
    fuzz_check(again && again->node->len == trace->node->len, "and read again");
}

/* Nodes of a trace that is made here wait for earlier ones only. */
static Trace *copy_of(const Trace *trace)
{
    Trace *copy = trace_new();
    for (guint i = 0; i < trace->node->len; i++) {
        const TraceNode *node = trace_node(trace, i);
        fuzz_check(trace_add(copy, node) == i, "nodes are counted");
        for (uint32_t d = 0; d < node->n_deps; d++)
            if (trace_deps(trace, node)[d] < i)
                trace_wait(copy, trace_deps(trace, node)[d]);
    }
    return copy;
}

static void check_copy(const Trace *trace)
{
    gsize length;
    g_autoptr(Trace) copy = copy_of(trace);
    g_autoptr(GBytes) bytes = trace_write(copy, NULL);
    const void *text = g_bytes_get_data(bytes, &length);
    g_autoptr(Trace) again = trace_of(text, length, NULL);
    fuzz_check(again && again->node->len == trace->node->len, "a copy can be read");
    for (guint i = 0; i < trace->node->len; i++) {
        const TraceNode *node = trace_node(copy, i), *other = trace_node(again, i);
        fuzz_check(node->kind == other->kind && *trace_kind_name(node->kind), "a kind");
        fuzz_check(strcmp(node->name, trace_node(trace, i)->name) == 0 &&
                       strcmp(node->name, other->name) == 0,
                   "names stay");
        fuzz_check(node->n_deps == other->n_deps, "dependencies stay");
        fuzz_check(node->collective == TRACE_COMM_NONE ||
                       *trace_collective_name(node->collective),
                   "a collective");
    }
}

bool fuzz_read(const void *data, size_t size)
{
    int memory;
    g_autoptr(GError) error = NULL;
    g_autofree char *file = fuzz_file_open(data, size, &memory);
    const bool is = trace_is(file);
    g_autoptr(Trace) trace = trace_read(file, &error);
    fuzz_file_close(memory);
    fuzz_check(!trace == !!error, "either a trace or an error");
    fuzz_check(is || !trace, "what is read is recognized");
    if (!trace) {
        fuzz_check_refused(error, file);
        return false;
    }
    for (guint i = 0; i < trace->node->len; i++) {
        const TraceNode *node = trace_node(trace, i);
        fuzz_check(node->name && node->group, "texts");
        fuzz_note("%s %s %d %u", node->name, node->group, node->kind, node->n_deps);
        fuzz_check(node->first_dep + node->n_deps <= trace->dep->len, "dependencies");
        for (uint32_t d = 0; d < node->n_deps; d++)
            fuzz_check(trace_deps(trace, node)[d] < trace->node->len, "on nodes");
    }
    check_again(trace);
    check_copy(trace);
    return true;
}
