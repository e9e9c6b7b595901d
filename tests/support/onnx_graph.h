/* Graphs of ONNX files that tests write. */
#ifndef KILTER_TESTS_SUPPORT_ONNX_GRAPH_H
#define KILTER_TESTS_SUPPORT_ONNX_GRAPH_H

#include <glib/gstdio.h>
#include <unistd.h>

#include "data/data.h"
#include "tests/support/onnx_bytes.h"
#include "tests/test.h"

/* The graph of a file of these bytes, which are freed. */
static inline Graph *graph_of(GByteArray *bytes, GError **error)
{
    g_autofree char *path =
        g_strdup_printf("%s/kilter-onnx-graph-%d.onnx", g_get_tmp_dir(), (int)getpid());
    g_file_set_contents(path, (const char *)bytes->data, (gssize)bytes->len, NULL);
    g_byte_array_unref(bytes);
    Graph *graph = model_build(path, 2, NULL, error);
    g_unlink(path);
    return graph;
}

static inline Graph *good(GByteArray *bytes)
{
    GError *error = NULL;
    Graph *graph = graph_of(bytes, &error);
    assert_no_error(error);
    return graph;
}

static inline const Op *find_op(const Graph *graph, OpKind kind, uint32_t *n)
{
    const Op *found = NULL;
    *n = 0;
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        const Op *op = graph_get_op(graph, id);
        if (op->kind != kind || op->pass != PASS_FORWARD)
            continue;
        found = found ? found : op;
        ++*n;
    }
    return found;
}

static inline void check_ops(const Graph *graph, OpKind kind, uint32_t want)
{
    uint32_t n;
    find_op(graph, kind, &n);
    if (n != want)
        fail_msg("%u ops %s, expected %u", n, op_kind_name(kind), want);
}

/* A list of one number, whatever its size. */
static inline void onnx_long(GByteArray *graph, const char *name, gint64 number)
{
    GByteArray *tensor = g_byte_array_new();
    onnx_put_number(tensor, 1, 1);
    onnx_put_number(tensor, 2, 7);
    onnx_put_text(tensor, 8, name);
    onnx_put_bytes(tensor, 9, &number, sizeof number);
    onnx_put(graph, 5, tensor);
}

#endif
