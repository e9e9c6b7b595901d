/* Random task graphs in TAG's published format, run once more by its rules, event by event and
 * without a heap: equal times and peaks. Cases that depend on how ties are broken are left out. */
#include <glib/gstdio.h>
#include <unistd.h>

#include "sim/sim.h"
#include "sim/tasks/task_file.h"
#include "tests/test.h"

enum { MOST_TASKS = 60, LINKS = 3, DEVICES = 4, MOST_DEPS = 3 };

typedef struct {
    char kind; /* C, T, or R: the first of the two parts of a collective; P: the other */
    uint32_t device, to;
    uint64_t amount; /* us or bytes */
    uint32_t n_deps, dep[MOST_DEPS];
    uint64_t
        buffer; /* bytes of what it makes, on the device where it ends; a P makes nothing */
    uint32_t waiting;
    uint64_t end;
    bool started, ended;
} Drawn;

typedef struct {
    Drawn task[MOST_TASKS];
    uint32_t n;
    uint64_t speed[LINKS], overhead, line[4]; /* us; line: half us per KiB, us, twice */
} Drawing;

static uint32_t below(GRand *rand, uint32_t n)
{
    return (uint32_t)g_rand_int_range(rand, 0, (gint32)n);
}

/* From one device to another over one or two links. */
static uint32_t path_of(uint32_t from, uint32_t to, uint32_t *link)
{
    link[0] = (from + to) % LINKS;
    link[1] = (from * to + 1) % LINKS;
    return link[0] == link[1] ? 1 : 2;
}

static void draw_task(Drawing *d, char kind, GRand *rand)
{
    Drawn *t = &d->task[d->n];
    *t = (Drawn){.kind = kind, .device = below(rand, DEVICES)};
    t->to =
        kind == 'T' ? (t->device + 1 + below(rand, DEVICES - 1)) % DEVICES : t->device;
    t->amount = kind == 'C' ? 1 + below(rand, 1000000) : 1 + below(rand, 1000000000);
    t->buffer = kind == 'P' ? 0 : 1 + below(rand, 1000000);
    for (uint32_t k = below(rand, MOST_DEPS + 1); k > 0 && d->n > 0; k--) {
        const uint32_t on = below(rand, d->n);
        /* nothing waits for a P, and a P not for its R */
        bool known = d->task[on].kind == 'P' || (kind == 'P' && on + 1 == d->n);
        for (uint32_t i = 0; i < t->n_deps; i++)
            known |= t->dep[i] == on;
        if (!known)
            t->dep[t->n_deps++] = on;
    }
    t->waiting = t->n_deps;
    d->n++;
}

static void draw_graph(Drawing *d, GRand *rand)
{
    *d = (Drawing){.overhead = below(rand, 50)};
    for (uint32_t l = 0; l < LINKS; l++)
        d->speed[l] = 500 + below(rand, 20000);
    for (uint32_t k = 0; k < 4; k++)
        d->line[k] = below(rand, k % 2 ? 1000 : 4);
    while (d->n + 2 <= MOST_TASKS) {
        const uint32_t kind = below(rand, 5);
        draw_task(d, kind < 2 ? 'C' : kind < 4 ? 'T' : 'R', rand);
        if (kind < 4)
            continue;
        draw_task(d, 'P', rand);
        d->task[d->n - 1].amount = d->task[d->n - 2].amount;
        d->task[d->n - 1].device = (d->task[d->n - 2].device + 1) % DEVICES;
    }
}

static void append_list(GString *text, const uint32_t *item, uint32_t n)
{
    g_string_append(text, ", [");
    for (uint32_t i = 0; i < n; i++)
        g_string_append_printf(text, "%s%u", i ? ", " : "", item[i]);
    g_string_append_c(text, ']');
}

/* Each task reads the buffers of the tasks that it waits for, and makes one with its own number. */
static char *graph_text(const Drawing *d)
{
    GString *text = g_string_new(NULL);
    g_string_append_printf(text, "{\"n_devices\": %d, \"transfer_overhead_us\": %u, ",
                           DEVICES, (unsigned)d->overhead);
    g_string_append_printf(text, "\"link_bytes_per_us\": [%u, %u, %u], \"path\": [",
                           (unsigned)d->speed[0], (unsigned)d->speed[1],
                           (unsigned)d->speed[2]);
    for (uint32_t p = 0; p < DEVICES * DEVICES; p++) {
        uint32_t link[2];
        const uint32_t n = path_of(p / DEVICES, p % DEVICES, link);
        g_string_append(text, p ? ", [" : "[");
        if (p / DEVICES != p % DEVICES)
            g_string_append_printf(text, n == 2 ? "%u, %u" : "%u", link[0], link[1]);
        g_string_append_c(text, ']');
    }
    g_string_append(text, "], \"group\": [");
    for (uint32_t j = 0; j < DEVICES; j++)
        g_string_append_printf(
            text,
            "%s{\"devices\": [%u, %u], \"line_us_per_KiB_us\": [%g, %u, "
            "%g, %u]}",
            j ? ", " : "", j, (j + 1) % DEVICES, 0.5 * (double)d->line[0],
            (unsigned)d->line[1], 0.5 * (double)d->line[2], (unsigned)d->line[3]);
    g_string_append(text, "], \"buffer\": [");
    for (uint32_t i = 0; i < d->n; i++)
        g_string_append_printf(text, "%s[%u, %u]", i ? ", " : "",
                               (unsigned)d->task[i].buffer, d->task[i].to);
    g_string_append(text, "], \"task\": [");
    for (uint32_t i = 0; i < d->n; i++) {
        const Drawn *t = &d->task[i];
        const bool part = t->kind == 'P';
        g_string_append(text, i ? ",\n" : "\n");
        if (t->kind == 'C')
            g_string_append_printf(text, "[\"C\", %u, %u", t->device,
                                   (unsigned)t->amount);
        else if (t->kind == 'T')
            g_string_append_printf(text, "[\"T\", %u, %u, %u", t->device, t->to,
                                   (unsigned)t->amount);
        else
            g_string_append_printf(text, "[\"R\", %u, %u, %u, %u", t->device, i - part,
                                   d->task[i - part].device, (unsigned)t->amount);
        append_list(text, t->dep, t->n_deps);
        append_list(text, t->dep, part ? 0 : t->n_deps);
        append_list(text, &i, !part);
        g_string_append_c(text, ']');
    }
    g_string_append(text, "]}");
    return g_string_free(text, FALSE);
}

typedef struct {
    uint64_t device[DEVICES], link[LINKS], queue, live[DEVICES], peak[DEVICES];
} Played;

static void start_task(Drawing *d, Played *p, uint32_t i, uint64_t now)
{
    Drawn *t = &d->task[i];
    uint64_t start = now;
    t->started = true;
    if (t->kind == 'C') {
        t->end = p->device[t->device] = MAX(now, p->device[t->device]) + t->amount;
    } else if (t->kind == 'T') {
        uint32_t link[2];
        const uint32_t n = path_of(t->device, t->to, link);
        const uint64_t speed =
            n == 2 ? MIN(d->speed[link[0]], d->speed[link[1]]) : d->speed[link[0]];
        for (uint32_t l = 0; l < n; l++)
            start = MAX(start, p->link[link[l]]);
        t->end = start + t->amount / speed + d->overhead;
        for (uint32_t l = 0; l < n; l++)
            p->link[link[l]] = t->end;
    } else {
        Drawn *other = t->kind == 'R' ? t + 1 : t - 1;
        const uint64_t kib = t->amount / 1024;
        if (!other->started)
            return;
        t->end = other->end = p->queue =
            MAX(now, p->queue) +
            MAX(d->line[0] * kib / 2 + d->line[1], d->line[2] * kib / 2 + d->line[3]);
    }
}

/* When the collective of a part is to end is known once both parts have started. */
static bool is_pending(const Drawn *t)
{
    const bool whole =
        t->kind == 'C' || t->kind == 'T' || (t->kind == 'R' ? t + 1 : t - 1)->started;
    return t->started && !t->ended && whole;
}

static void end_task(Drawing *d, Played *p, uint32_t i)
{
    Drawn *t = &d->task[i];
    t->ended = true;
    for (uint32_t k = 0; k < t->n_deps && t->kind != 'P'; k++) {
        bool last = true;
        for (uint32_t r = 0; r < d->n; r++)
            for (uint32_t q = 0; q < d->task[r].n_deps; q++)
                last &= d->task[r].ended || d->task[r].kind == 'P' ||
                        d->task[r].dep[q] != t->dep[k];
        if (last)
            p->live[d->task[t->dep[k]].to] -= d->task[t->dep[k]].buffer;
    }
    p->live[t->to] += t->buffer;
    p->peak[t->to] = MAX(p->peak[t->to], p->live[t->to]);
    for (uint32_t r = 0; r < d->n; r++)
        for (uint32_t q = 0; q < d->task[r].n_deps; q++)
            if (d->task[r].dep[q] == i && --d->task[r].waiting == 0)
                start_task(d, p, r, t->end);
}

/* Returns the time, or 0 if what happens depends on which of two ends at one time comes first. */
static uint64_t play(Drawing *d, Played *p)
{
    uint64_t now = 0;
    *p = (Played){0};
    for (uint32_t i = 0; i < d->n; i++)
        if (d->task[i].waiting == 0)
            start_task(d, p, i, 0);
    for (;;) {
        uint32_t next = UINT32_MAX;
        for (uint32_t i = 0; i < d->n; i++)
            if (is_pending(&d->task[i]) &&
                (next == UINT32_MAX || d->task[i].end < d->task[next].end))
                next = i;
        if (next == UINT32_MAX)
            return now;
        now = d->task[next].end;
        for (uint32_t i = 0; i < d->n; i++)
            if (i != next && d->task[i].kind != 'P' && d->task[next].kind != 'P' &&
                is_pending(&d->task[i]) && d->task[i].end == now)
                return 0;
        end_task(d, p, next);
    }
}

static SimTaskFileReport *run_text(const char *text, GError **error)
{
    g_autofree char *file = NULL;
    SimOptions options;
    sim_options_init(&options);
    const int handle = g_file_open_tmp("kilter-tasks-XXXXXX.json", &file, NULL);
    assert_true(handle >= 0);
    close(handle);
    assert_true(g_file_set_contents(file, text, -1, NULL));
    g_autoptr(SimTaskFile) tasks = sim_task_file_read(file, error);
    g_unlink(file);
    return tasks ? sim_task_file_run(tasks, &options, error) : NULL;
}

static void test_random_graphs(void **state)
{
    (void)state;
    g_autoptr(GRand) rand = g_rand_new_with_seed(26);
    uint32_t compared = 0;
    for (uint32_t k = 0; k < 300; k++) {
        Drawing drawing;
        Played played;
        draw_graph(&drawing, rand);
        g_autofree char *text = graph_text(&drawing);
        g_autoptr(GError) error = NULL;
        g_autoptr(SimTaskFileReport) report = run_text(text, &error);
        assert_no_error(error);
        const uint64_t time_us = play(&drawing, &played);
        if (time_us == 0)
            continue;
        compared++;
        assert_int_equal(report->time_us, time_us);
        for (uint32_t j = 0; j < DEVICES; j++)
            assert_int_equal(report->peak_bytes[j], played.peak[j]);
    }
    assert_true(compared > 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_graphs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
