/* Profiles from the tables of data sets (data/models/profile.h). */
#include "data/base/free.h"
#include "data/models/profile.h"

#include "data/base/csv.h"
#include "data/base/error.h"

#include <string.h>

#define OPS_SUFFIX   "-ops.csv"
#define EDGES_SUFFIX "-edges.csv"
#define TIME_SUFFIX  "_ms"

enum { MOST_ROWS = 1 << 16, MOST_TYPES = 64 };
static const double MOST_MS = 1e9, MOST_BYTES = 0x1p53, MS = 1e-3;

typedef struct {
    char *id, *name, *colour;
    bool forward;
    double memory, bytes; /* bytes: of what others read; -1: nobody */
    double time_s[MOST_TYPES];
    GPtrArray *from; /* Row: forward ops that it reads */
    int state;       /* of the visit: 0 not yet, 1 begun, 2 done */
    uint32_t line;
} Row;

typedef struct {
    Row *from, *to;
} Edge;

typedef struct {
    GPtrArray *rows;    /* Row */
    GArray *edges;      /* Edge: those from or to an op of the backward */
    GHashTable *by_id;  /* borrowed */
    GPtrArray *type;    /* names of device types, borrowed from `columns` */
    GPtrArray *columns; /* their columns' names */
} Table;

static FREE_DEFINE(row_free, Row, row, free_each(row->id, row->name, row->colour),
                   g_ptr_array_unref(row->from));

bool profile_is_table(const char *path)
{
    return g_str_has_suffix(path, OPS_SUFFIX);
}

static bool take_op(const Csv *csv, void *data, GError **error)
{
    Table *table = data;
    const char *pass = csv_text(csv, "pass"), *id = csv_text(csv, "id");
    if (table->rows->len == MOST_ROWS)
        return csv_fail(csv, NULL, error, "expected at most %d ops", MOST_ROWS);
    if (!*id || g_hash_table_contains(table->by_id, id))
        return csv_fail(csv, "id", error, "expected one of its own");
    if (strcmp(pass, "forward") != 0 && strcmp(pass, "backward") != 0)
        return csv_fail(csv, "pass", error, "expected forward or backward, got '%s'",
                        pass);
    Row *row = g_new0(Row, 1);
    *row = (Row){.id = g_strdup(id),
                 .name = g_strdup(csv_text(csv, "name")),
                 .colour = g_strdup(csv_text(csv, "colour")),
                 .forward = *pass == 'f',
                 .bytes = -1,
                 .from = g_ptr_array_new(),
                 .line = csv->line};
    g_ptr_array_add(table->rows, row);
    g_hash_table_insert(table->by_id, row->id, row);
    if (!csv_number(csv, "memory_bytes", 0, MOST_BYTES, &row->memory, error))
        return false;
    for (guint t = 0; t < table->columns->len; t++) {
        if (!csv_number(csv, table->columns->pdata[t], 0, MOST_MS, &row->time_s[t],
                        error))
            return false;
        row->time_s[t] *= MS;
    }
    return true;
}

static bool take_edge(const Csv *csv, void *data, GError **error)
{
    const Table *table = data;
    Row *from = g_hash_table_lookup(table->by_id, csv_text(csv, "from")),
        *to = g_hash_table_lookup(table->by_id, csv_text(csv, "to"));
    double bytes;
    if (!from || !to)
        return csv_fail(csv, from ? "to" : "from", error, "expected the id of an op");
    if (!csv_number(csv, "bytes", -1, MOST_BYTES, &bytes, error))
        return false;
    if (!from->forward || !to->forward) {
        const Edge edge = {from, to};
        g_array_append_val(table->edges, edge);
        return true;
    }
    from->bytes = MAX(from->bytes, bytes);
    if (!g_ptr_array_find(to->from, from, NULL))
        g_ptr_array_add(to->from, from);
    return true;
}

static bool profile_csv_read_ops(const char *path, Table *table, GError **error)
{
    static const char *const required[] = {"id", "pass", "memory_bytes", "colour", NULL};
    g_autoptr(Csv) csv = csv_read(path, error);
    if (!csv || !csv_expect(csv, required, NULL, error))
        return false;
    for (uint32_t c = 0; c < csv->n_columns; c++)
        if (g_str_has_suffix(csv->column[c], TIME_SUFFIX)) {
            g_ptr_array_add(table->columns, g_strdup(csv->column[c]));
            g_ptr_array_add(
                table->type,
                g_strndup(csv->column[c], strlen(csv->column[c]) - strlen(TIME_SUFFIX)));
        }
    if (table->type->len == 0 || table->type->len > MOST_TYPES)
        return refuse(error,
                      "%s: expected 1 to %d columns TYPE" TIME_SUFFIX
                      ", times by device type",
                      path, MOST_TYPES);
    return csv_each(csv, take_op, table, error);
}

static bool read_edges(const char *ops, Table *table, GError **error)
{
    static const char *const required[] = {"from", "to", "bytes", NULL};
    g_autofree char *stem = g_strndup(ops, strlen(ops) - strlen(OPS_SUFFIX));
    g_autofree char *path = g_strconcat(stem, EDGES_SUFFIX, NULL);
    g_autoptr(Csv) csv = csv_read(path, error);
    return csv && csv_expect(csv, required, NULL, error) &&
           csv_each(csv, take_edge, table, error);
}

/* --- as a profile --- */

/* Seconds of the ops of a colour in the other direction, for each of its `n` forward ops. */
static json_t *times_json(const Table *table, const double *time_s, double n)
{
    json_t *times = json_object();
    for (guint t = 0; t < table->type->len; t++)
        json_object_set_new(times, table->type->pdata[t], json_real(time_s[t] / n));
    return times;
}

typedef struct Colour {
    double backward_s[MOST_TYPES];
    uint32_t n_forward;
    const Row *backward;       /* one of them, or NULL */
    struct Colour *with;       /* the colour that it goes with, or NULL */
    GPtrArray *read, *readers; /* Row: next to its ops, where one is of the backward */
} Colour;

static FREE_DEFINE(colour_free, Colour, colour, g_ptr_array_unref(colour->read),
                   g_ptr_array_unref(colour->readers));

static char *name_of(const Row *row)
{
    return g_strdup_printf("%s.%s", *row->name ? row->name : "op", row->id);
}

/* An op that reads nothing and takes no time is a variable: its memory is what it makes. */
static bool is_variable(const Table *table, const Row *row)
{
    bool works = row->from->len > 0;
    for (guint t = 0; t < table->type->len; t++)
        works |= row->time_s[t] > 0;
    return !works;
}

static json_t *op_json(const Table *table, const Row *row, const Colour *colour)
{
    const double bytes = MAX(row->bytes, 0), own = is_variable(table, row)
                                                       ? row->memory
                                                       : MAX(row->memory - bytes, 0);
    g_autofree char *name = name_of(row);
    json_t *op =
        json_pack("{s:s, s:f, s:f, s:o, s:o}", "op", name, "bytes", bytes,
                  "parameter_bytes", own, "forward_s", times_json(table, row->time_s, 1),
                  "backward_s", times_json(table, colour->backward_s, colour->n_forward));
    json_t *in = json_array();
    for (guint i = 0; i < row->from->len; i++) {
        g_autofree char *from = name_of(row->from->pdata[i]);
        json_array_append_new(in, json_string(from));
    }
    if (json_array_size(in) > 0)
        json_object_set(op, "in", in);
    json_decref(in);
    return op;
}

static GHashTable *colours_of(const Table *table)
{
    GHashTable *colours =
        g_hash_table_new_full(g_str_hash, g_str_equal, NULL, (GDestroyNotify)colour_free);
    pointers_each (Row, row, table->rows) {
        Colour *colour = g_hash_table_lookup(colours, row->colour);
        if (!colour) {
            colour = g_new0(Colour, 1);
            colour->read = g_ptr_array_new();
            colour->readers = g_ptr_array_new();
            g_hash_table_insert(colours, row->colour, colour);
        }
        colour->n_forward += row->forward;
        for (guint t = 0; !row->forward && t < table->type->len; t++)
            colour->backward_s[t] += row->time_s[t];
        colour->backward = row->forward ? colour->backward : row;
    }
    return colours;
}

/* Lets colours without a forward op go with `from`, if they lie next to it. */
static void join_near(const Table *table, const GPtrArray *near, Colour *from,
                      GHashTable *colours, GQueue *joined)
{
    for (guint i = 0; i < near->len; i++) {
        Colour *lone = g_hash_table_lookup(colours, ((Row *)near->pdata[i])->colour);
        if (lone->n_forward > 0 || lone->with)
            continue;
        for (guint t = 0; t < table->type->len; t++)
            from->backward_s[t] += lone->backward_s[t];
        lone->with = from;
        g_queue_push_tail(joined, lone);
    }
}

/* Colours without a forward op (a loss, where its forward is told as part of the backward) go with
 * the colour of what their ops read, and the others with that of what reads theirs. */
static void join_colours(const Table *table, GHashTable *colours)
{
    array_each (const Edge, edge, table->edges) {
        Colour *from = g_hash_table_lookup(colours, edge->from->colour),
               *to = g_hash_table_lookup(colours, edge->to->colour);
        g_ptr_array_add(from->readers, edge->to);
        g_ptr_array_add(to->read, edge->from);
    }
    for (uint32_t round = 0; round < 2; round++) {
        g_autoptr(GQueue) queue = g_queue_new();
        for (guint i = 0; i < table->rows->len; i++)
            g_queue_push_tail(
                queue,
                g_hash_table_lookup(colours, ((Row *)table->rows->pdata[i])->colour));
        while (!g_queue_is_empty(queue)) {
            const Colour *colour = g_queue_pop_head(queue);
            Colour *with = colour->with ? colour->with : (Colour *)colour;
            if (with->n_forward == 0)
                continue;
            join_near(table, colour->readers, with, colours, queue);
            if (round > 0)
                join_near(table, colour->read, with, colours, queue);
        }
    }
}

/* Appends the op and what it reads, whose ops come before, by a stack, as chains may be long. */
static bool append_op(const Table *table, GHashTable *colours, Row *first, json_t *ops,
                      const char *path, GError **error)
{
    g_autoptr(GPtrArray) stack = g_ptr_array_new();
    g_ptr_array_add(stack, first);
    while (stack->len > 0) {
        Row *row = stack->pdata[stack->len - 1];
        if (row->state == 0) {
            row->state = 1;
            for (guint i = row->from->len; i-- > 0;) {
                Row *from = row->from->pdata[i];
                if (from->state == 1)
                    return refuse(error, "%s:%u: op '%s' follows from itself", path,
                                  row->line, row->id);
                if (from->state == 0)
                    g_ptr_array_add(stack, from);
            }
            continue;
        }
        g_ptr_array_set_size(stack, (gint)stack->len - 1);
        if (row->state == 1)
            json_array_append_new(
                ops, op_json(table, row, g_hash_table_lookup(colours, row->colour)));
        row->state = 2;
    }
    return true;
}

static json_t *to_profile(const Table *table, const char *path, GError **error)
{
    g_autoptr(GHashTable) colours = colours_of(table);
    join_colours(table, colours);
    table_each (key, value, colours) {
        const Colour *colour = value;
        if (colour->n_forward > 0 || colour->with)
            continue;
        return refused(
            error,
            "%s:%u: colour: expected a forward op of the same colour '%s', or beside it",
            path, colour->backward->line, colour->backward->colour);
    }
    g_autofree char *base = g_path_get_basename(path);
    base[strlen(base) - strlen(OPS_SUFFIX)] = 0;
    json_t *ops = json_array();
    json_t *root = json_pack("{s:{s:s, s:i}, s:s, s:o}", "format", "name",
                             "kilter-profile", "version", 1, "name", base, "ops", ops);
    pointers_each (Row, row, table->rows) {
        if (row->forward && !append_op(table, colours, row, ops, path, error)) {
            json_decref(root);
            return NULL;
        }
    }
    return root;
}

json_t *profile_from_table(const char *path, GError **error)
{
    g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func((GDestroyNotify)row_free);
    g_autoptr(GPtrArray) columns = g_ptr_array_new_with_free_func(g_free),
                         type = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GHashTable) by_id = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(GArray) edges = g_array_new(FALSE, FALSE, sizeof(Edge));
    Table table = {rows, edges, by_id, type, columns};
    return profile_csv_read_ops(path, &table, error) && read_edges(path, &table, error)
               ? to_profile(&table, path, error)
               : NULL;
}
