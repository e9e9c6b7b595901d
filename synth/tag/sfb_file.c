/* Reading instances of sufficient factor broadcasting. */
#include "synth/tag/sfb_file.h"

#include <jansson.h>
#include <math.h>

#include "data/base/free.h"
#include "data/base/json.h"
#include "data/base/units.h"

/* Smaller times, amounts and bandwidths that are not 0 have no finite quotients. */
static const double LEAST = 1e-9, MOST_US = 1e12, MOST_BYTES = 1e15;
enum { MOST_DEVICES = 1 << 20, MOST_OPS = 1 << 24 };

typedef struct {
    const char *file;
    size_t number; /* of the case, from 0 */
    json_t *root;
    SfbCase *sfb;
    GError **error;
} Reader;

static bool expected(const Reader *r, const char *key, const char *what,
                     const json_t *value)
{
    g_autofree char *shown = json_shown(value);
    return refuse(r->error, "%s: case [%zu]: %s: expected %s, got %s", r->file, r->number,
                  key, what, shown);
}

static bool in_range(const json_t *value, double most, double *number)
{
    *number = json_number_value(value);
    return json_is_number(value) && (*number == 0 || number_in(*number, LEAST, most));
}

static bool is_op(const Reader *r, const json_t *value, uint32_t *op)
{
    const json_int_t number = json_integer_value(value);
    *op = (uint32_t)number;
    return json_is_integer(value) && number >= 0 && number < r->sfb->n_ops;
}

static json_t *array(const Reader *r, const char *key)
{
    json_t *value = json_object_get(r->root, key);
    if (json_is_array(value) && json_array_size(value) <= MOST_OPS)
        return value;
    expected(r, key, "an array", value);
    return NULL;
}

static bool read_scalars(const Reader *r)
{
    const json_t *n = json_object_get(r->root, "D"),
                 *tau = json_object_get(r->root, "tau_bytes_per_us"),
                 *number = json_object_get(r->root, "case");
    const json_int_t devices = json_integer_value(n);
    if (!json_is_integer(n) || devices < 1 || devices > MOST_DEVICES)
        return expected(r, "D", "a number of devices from 1 to 1048576", n);
    if (!in_range(tau, MOST_BYTES, &r->sfb->tau) || r->sfb->tau == 0)
        return expected(r, "tau_bytes_per_us", "at least 1e-9 bytes/us", tau);
    r->sfb->n_devices = (uint32_t)devices;
    r->sfb->number =
        json_is_integer(number) ? json_integer_value(number) : (int64_t)r->number;
    return true;
}

static bool read_ops(const Reader *r)
{
    SfbCase *sfb = r->sfb;
    const json_t *op = array(r, "op"), *time = op ? array(r, "T_us") : NULL;
    if (!time)
        return false;
    sfb->n_ops = (uint32_t)json_array_size(op);
    if (json_array_size(time) != sfb->n_ops)
        return expected(r, "T_us", "as many times as there are ops", time);
    sfb->op = g_new0(char *, sfb->n_ops + 1);
    sfb->compute_us = g_new0(double, sfb->n_ops + 1);
    sfb->gradient = g_new0(double, sfb->n_ops + 1);
    sfb->never = g_new0(bool, sfb->n_ops + 1);
    for (uint32_t i = 0; i < sfb->n_ops; i++) {
        const json_t *us = json_array_get(time, i);
        sfb->op[i] = g_strdup(json_string_value(json_array_get(op, i)));
        if (!sfb->op[i])
            return expected(r, "op", "names", json_array_get(op, i));
        if (!in_range(us, MOST_US, &sfb->compute_us[i]))
            return expected(r, "T_us", "microseconds", us);
    }
    return true;
}

static bool read_edges(const Reader *r)
{
    SfbCase *sfb = r->sfb;
    const json_t *edges = array(r, "edge");
    if (!edges)
        return false;
    sfb->n_edges = (uint32_t)json_array_size(edges);
    sfb->edge = g_new0(SfbRead, sfb->n_edges + 1);
    sfb->edge_bytes = g_new0(double, sfb->n_edges + 1);
    for (uint32_t i = 0; i < sfb->n_edges; i++) {
        const json_t *edge = json_array_get(edges, i);
        if (json_array_size(edge) != 3 ||
            !is_op(r, json_array_get(edge, 0), &sfb->edge[i].tensor) ||
            !is_op(r, json_array_get(edge, 1), &sfb->edge[i].op) ||
            !in_range(json_array_get(edge, 2), MOST_BYTES, &sfb->edge_bytes[i]))
            return expected(r, "edge", "[producer, reader, bytes]", edge);
    }
    return true;
}

static bool read_gradients(const Reader *r)
{
    const json_t *gradients = array(r, "gradient"),
                 *never = json_object_get(r->root, "never_duplicated");
    uint32_t op;
    double bytes;
    if (!gradients)
        return false;
    elements_each (gradient, gradients) {
        if (json_array_size(gradient) != 2 ||
            !is_op(r, json_array_get(gradient, 0), &op) ||
            !in_range(json_array_get(gradient, 1), MOST_BYTES, &bytes))
            return expected(r, "gradient", "[op, bytes]", gradient);
        r->sfb->gradient[op] += bytes;
    }
    if (never && !json_is_array(never))
        return expected(r, "never_duplicated", "an array of ops", never);
    for (size_t i = 0; i < json_array_size(never); i++) {
        if (!is_op(r, json_array_get(never, i), &op))
            return expected(r, "never_duplicated", "ops", json_array_get(never, i));
        r->sfb->never[op] = true;
    }
    return true;
}

static FREE_DEFINE(case_free, SfbCase, sfb, g_strfreev(sfb->op),
                   free_each(sfb->compute_us, sfb->gradient, sfb->never, sfb->edge,
                             sfb->edge_bytes));

static bool read_cases(const char *file, json_t *root, GPtrArray *cases, GError **error)
{
    const size_t n = json_is_array(root) ? json_array_size(root) : 1;
    for (size_t i = 0; i < n; i++) {
        Reader r = {.file = file,
                    .number = i,
                    .root = json_is_array(root) ? json_array_get(root, i) : root,
                    .sfb = g_new0(SfbCase, 1),
                    .error = error};
        g_ptr_array_add(cases, r.sfb);
        if (!read_scalars(&r) || !read_ops(&r) || !read_edges(&r) || !read_gradients(&r))
            return false;
    }
    return true;
}

GPtrArray *sfb_file_read(const char *file, GError **error)
{
    json_t *root = json_read_file(file, "list of cases", error);
    if (!root)
        return NULL;
    g_autoptr(GPtrArray) cases =
        g_ptr_array_new_with_free_func((GDestroyNotify)case_free);
    const bool good = read_cases(file, root, cases, error);
    json_decref(root);
    return good ? g_steal_pointer(&cases) : NULL;
}

double sfb_case_solve(const SfbCase *sfb, SfbPrices prices, bool *duplicated)
{
    const double n = sfb->n_devices;
    g_autofree double *compute = g_new(double, sfb->n_ops + 1);
    g_autofree double *saved = g_new(double, sfb->n_ops + 1);
    g_autofree double *broadcast = g_new(double, sfb->n_edges + 1);
    g_autofree uint32_t *producer = g_new(uint32_t, sfb->n_edges + 1);
    g_autofree SfbRead *read = g_new(SfbRead, sfb->n_edges + 1);
    for (uint32_t i = 0; i < sfb->n_ops; i++) {
        compute[i] = sfb->never[i] ? INFINITY : (n - 1) * sfb->compute_us[i];
        saved[i] = 2 * (n - 1) / n * sfb->gradient[i] / sfb->tau;
    }
    for (uint32_t e = 0; e < sfb->n_edges; e++) {
        /* Each reader pays for the transfer, so every edge is a tensor. */
        producer[e] = sfb->edge[e].tensor;
        read[e] = (SfbRead){sfb->edge[e].op, e};
        broadcast[e] = (prices == SFB_PAPER ? n * (n - 1) : (n - 1) / n) *
                       sfb->edge_bytes[e] / sfb->tau;
    }
    const SfbProblem problem = {.n_ops = sfb->n_ops,
                                .n_tensors = sfb->n_edges,
                                .n_reads = sfb->n_edges,
                                .compute = compute,
                                .saved = saved,
                                .producer = producer,
                                .broadcast = broadcast,
                                .read = read,
                                .each_reader = true};
    return synth_sfb(&problem, duplicated);
}
