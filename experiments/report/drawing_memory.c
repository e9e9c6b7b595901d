/* Memory by category over time. */
#include <math.h>
#include <string.h>

#include "data/base/units.h"
#include "experiments/report/drawing.h"
#include "experiments/report/page.h"

enum { HEIGHT = 150, FOOT = 4, HEAD = 8 };

/* Of the steps in so many pixels the one with the most bytes is drawn; edges that differ by less
 * are level. */
static const double PIXELS = 0.7, LEVEL = 0.05;

static const char *const COLOR[MEMORY_CATEGORIES] = {
    [MEMORY_WEIGHTS] = "#4878a8",   [MEMORY_GRADIENTS] = "#2f9e77",
    [MEMORY_OPTIMIZER] = "#8c6bb1", [MEMORY_ACTIVATIONS] = "#e08214",
    [MEMORY_BUFFERS] = "#c7a76c",   [MEMORY_RUNTIME] = "#8a8a8a",
};

/* The edges of the areas from one step to the next one: y[c] below category c, y[c + 1] above
 * it. */
typedef struct {
    double x, y[MEMORY_CATEGORIES + 1];
} Edge;

static const GArray *steps_of(const Drawing *drawing, uint32_t device)
{
    return drawing->timeline->memory[drawing->timeline->lane[device]];
}

/* The upper edge of the picture: the capacity, or less where that would show only a flat line. */
static double most_bytes(const Drawing *drawing, uint32_t device)
{
    const double capacity =
        (double)drawing->evaluation->view->device[device].memory_bytes;
    const GArray *steps = steps_of(drawing, device);
    double most = 1;
    for (uint32_t i = 0; i < steps->len; i++)
        most = fmax(most, g_array_index(steps, SimMemoryStep, i).bytes);
    return most > capacity / 3 ? fmax(most, capacity) : most;
}

static Edge edge_at(const Drawing *drawing, const SimMemoryStep *step, double most)
{
    const double scale = (HEIGHT - FOOT - HEAD) / most;
    Edge edge = {.x = DRAWING_LABEL +
                      (DRAWING_WIDTH - DRAWING_LABEL) * step->time_s / drawing->end_s};
    double bytes = 0;
    edge.y[0] = HEIGHT - FOOT;
    for (uint32_t c = 0; c < MEMORY_CATEGORIES; c++) {
        bytes += step->category[c];
        edge.y[c + 1] = HEIGHT - FOOT - scale * bytes;
    }
    return edge;
}

static GArray *edges_of(const Drawing *drawing, uint32_t device, double most)
{
    const GArray *steps = steps_of(drawing, device);
    GArray *edges = g_array_new(FALSE, FALSE, sizeof(Edge));
    double place = -1;
    for (uint32_t i = 0; i < steps->len; i++) {
        const Edge edge = edge_at(drawing, &g_array_index(steps, SimMemoryStep, i), most);
        Edge *last = edges->len ? &g_array_index(edges, Edge, edges->len - 1) : NULL;
        const bool is_last = i + 1 == steps->len;
        if (!last || is_last || floor(edge.x / PIXELS) > place)
            g_array_append_val(edges, edge);
        else if (edge.y[MEMORY_CATEGORIES] < last->y[MEMORY_CATEGORIES])
            memcpy(last->y, edge.y, sizeof edge.y);
        place = floor(edge.x / PIXELS);
    }
    return edges;
}

/* The area of one category: its upper edge to the right, its lower edge back. */
static void draw_area(GString *page, const GArray *edges, uint32_t category,
                      double most_of_it)
{
    g_autofree char *bytes = units_format(most_of_it, QUANTITY_BYTES);
    const Edge *edge = &g_array_index(edges, Edge, 0);
    const uint32_t above = category + 1, n = edges->len;
    g_string_append_printf(page, "<path fill=\"%s\" d=\"M%.1f %.1f", COLOR[category],
                           edge->x, edge->y[above]);
    for (uint32_t i = 1; i < n; i++)
        if (fabs(edge[i].y[above] - edge[i - 1].y[above]) >= LEVEL)
            g_string_append_printf(page, "H%.1fV%.1f", edge[i].x, edge[i].y[above]);
    g_string_append_printf(page, "H%dV%.1f", DRAWING_WIDTH, edge[n - 1].y[category]);
    for (uint32_t i = n - 1; i > 0; i--)
        if (fabs(edge[i].y[category] - edge[i - 1].y[category]) >= LEVEL)
            g_string_append_printf(page, "H%.1fV%.1f", edge[i].x,
                                   edge[i - 1].y[category]);
    g_string_append_printf(page, "H%.1fZ\"><title>%s: at most %s</title></path>\n",
                           edge->x, memory_category(category), bytes);
}

static void draw_areas(const Drawing *drawing, uint32_t device, double most)
{
    const GArray *steps = steps_of(drawing, device);
    g_autoptr(GArray) edges = edges_of(drawing, device, most);
    for (uint32_t c = 0; c < MEMORY_CATEGORIES && edges->len > 0; c++) {
        double most_of_it = 0;
        for (uint32_t i = 0; i < steps->len; i++)
            most_of_it =
                fmax(most_of_it, g_array_index(steps, SimMemoryStep, i).category[c]);
        if (most_of_it > 0)
            draw_area(drawing->page, edges, c, most_of_it);
    }
}

/* The areas of one device, its capacity dashed. */
static void draw_memory(const Drawing *drawing, uint32_t device)
{
    GString *page = drawing->page;
    const double most = most_bytes(drawing, device);
    const double capacity =
        (double)drawing->evaluation->view->device[device].memory_bytes;
    g_autofree char *label = drawing_label(drawing, device);
    g_autofree char *limit = units_format(capacity, QUANTITY_BYTES);
    g_autofree char *peak = units_format(
        (double)drawing->evaluation->report->memory_bytes[device], QUANTITY_BYTES);
    page_add(page, "h3", "%s: peak %s of %s", label, peak, limit);
    g_string_append_printf(page,
                           "<div class=\"timeline\">\n<svg viewBox=\"0 0 %d %d\" "
                           "role=\"img\" aria-label=\"Memory by category over time\">\n",
                           DRAWING_WIDTH, HEIGHT);
    draw_areas(drawing, device, most);
    const double y = HEIGHT - FOOT - (HEIGHT - FOOT - HEAD) * MIN(capacity / most, 1);
    if (capacity <= most)
        g_string_append_printf(page,
                               "<path stroke=\"#b42318\" stroke-dasharray=\"5 4\" "
                               "d=\"M%d %.1fH%d\"/>\n",
                               DRAWING_LABEL, y, DRAWING_WIDTH);
    g_autofree char *upper = units_format(most, QUANTITY_BYTES);
    drawing_text(page, 2, y + 4, capacity <= most ? "capacity" : upper);
    g_string_append(page, "</svg>\n</div>\n");
}

/* [device]: whether it is the fullest of its type. Caller frees. */
static bool *fullest(const Evaluation *evaluation)
{
    const uint32_t n = evaluation->view->n_devices;
    const uint64_t *bytes = evaluation->report->memory_bytes;
    bool *is = g_new0(bool, n);
    g_autoptr(GHashTable) known = g_hash_table_new(g_str_hash, g_str_equal);
    for (uint32_t j = 0; j < n; j++) {
        const char *type = evaluation->view->device[j].type_name;
        const uint32_t other = GPOINTER_TO_UINT(g_hash_table_lookup(known, type));
        if (other && bytes[j] <= bytes[other - 1])
            continue;
        if (other)
            is[other - 1] = false;
        is[j] = true;
        g_hash_table_insert(known, (void *)type, GUINT_TO_POINTER(j + 1));
    }
    return is;
}

void drawing_add_memory(const Drawing *drawing)
{
    if (!drawing->timeline->memory)
        return;
    g_autofree bool *drawn = fullest(drawing->evaluation);
    page_heading(drawing->page, "h2", "memory", "Memory over time");
    g_string_append(drawing->page, "<p>");
    for (uint32_t c = 0; c < MEMORY_CATEGORIES; c++)
        drawing_legend(drawing->page, COLOR[c], memory_category(c),
                       c + 1 == MEMORY_CATEGORIES);
    page_text(drawing->page, "A GPU of the fullest device of each type.");
    g_string_append(drawing->page, "</p>\n");
    for (uint32_t j = 0; j < drawing->evaluation->view->n_devices; j++)
        if (drawn[j])
            draw_memory(drawing, j);
}
