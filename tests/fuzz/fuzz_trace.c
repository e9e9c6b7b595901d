/* Fuzz target: bytes as an execution trace (Chakra) are refused with one line, or nodes that wait for nodes of the trace, which
 * are written and read again. */
#include "data/data.h"
#include "tests/fuzz/fuzz.h"

static void check_again(const Trace *trace)
{
    gsize length;
    g_autoptr(GBytes) bytes = trace_write(trace, NULL);
    fuzz_check(bytes, "it can be written");
    const void *text = g_bytes_get_data(bytes, &length);
    g_autoptr(Trace) again = trace_parse("again.et", text, length, NULL);
    fuzz_check(again && again->node->len == trace->node->len, "and read again");
}

bool fuzz_read(const void *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Trace) trace = trace_parse("any.et", data, size, &error);
    fuzz_check(!trace == !!error, "either a trace or an error");
    if (!trace) {
        fuzz_check_refused(error, "any.et");
        return false;
    }
    for (guint i = 0; i < trace->node->len; i++) {
        const TraceNode *node = trace_node(trace, i);
        fuzz_check(node->name && node->group, "texts");
        fuzz_check(node->first_dep + node->n_deps <= trace->dep->len, "dependencies");
        for (uint32_t d = 0; d < node->n_deps; d++)
            fuzz_check(trace_deps(trace, node)[d] < trace->node->len, "on nodes");
    }
    check_again(trace);
    return true;
}
