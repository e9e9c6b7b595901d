/* The geometry of a plan's page, from the numbers of kilter report -o FILE.json: rows, blocks, areas
 * and axes lie where the simulated times and bytes of the same plan say. */
#include <math.h>

#include "tests/support/program_json.h"

enum { BINS = 400, WIDTH = 1000, LOW = 44, HIGH = 16 };

static const char *word(const json_t *json, const char *key)
{
    return json_string_value(json_object_get(json, key));
}

static json_t *list(const json_t *json, const char *key)
{
    json_t *of = json_object_get(json, key);
    assert_true(json_is_array(of));
    return of;
}

static const json_t *named(const json_t *of, const char *key, const char *name)
{
    const json_t *item;
    size_t i;
    json_array_foreach (of, i, item)
        if (strcmp(word(item, key), name) == 0)
            return item;
    TEST_FAIL_AT(__FILE__, __LINE__, "nothing is named %s", name);
    return NULL;
}

/* --- paths --- */

/* The number behind a letter. */
static double take(const char **at, char letter)
{
    char *end;
    assert_int_equal(**at, letter);
    const double value = g_ascii_strtod(*at + 1, &end);
    assert_true(end > *at + 1);
    *at = end;
    return value;
}

/* Fills the steps [BINS] of one side, up to where the path turns; returns its last y. */
static double fill_side(const char **at, double *y, double now, bool back)
{
    double x = back ? WIDTH : 0, to;
    const double end = WIDTH - x;
    do {
        to = take(at, 'H');
        assert_true(back ? to < x : to > x);
        const double first = fmin(x, to) * BINS / WIDTH,
                     last = fmax(x, to) * BINS / WIDTH;
        assert_true(fabs(first - round(first)) < 0.1 && fabs(last - round(last)) < 0.1);
        for (double b = round(first); b < round(last); b++)
            y[(uint32_t)b] = now;
        x = to;
        if (x != end)
            now = take(at, 'V');
    } while (x != end);
    return now;
}

/* An area: its upper line from left to right, then its lower line back. */
static void read_area(const char *path, double *top, double *bottom)
{
    const char *at = path;
    assert_true(g_str_has_prefix(path, "M0 "));
    fill_side(&at, top, take(&at, 'M') + take(&at, ' '), false);
    fill_side(&at, bottom, take(&at, 'V'), true);
    assert_string_equal(at, "Z");
}

/* --- axes --- */

/* Round numbers in equal steps of 1, 2 or 5 from 0 on; the last one of times is the end itself. */
static void check_ticks(const json_t *ticks, double end, double unit, bool is_time)
{
    const size_t n = json_array_size(ticks) - is_time;
    double step = 0;
    assert_true(n >= 1 && n <= 8);
    for (size_t i = 0; i < n; i++) {
        const json_t *tick = json_array_get(ticks, i);
        const double value = g_ascii_strtod(word(tick, "label"), NULL);
        step = i == 1 ? value : step;
        assert_close(value, (double)i * step, 1e-9);
        assert_close(number(tick, "at"), 100 * value * unit / end, 1e-9);
        assert_true(number(tick, "at") <= 100 * (1 + 1e-9));
    }
    if (n > 1) {
        const double digit = step / pow(10, floor(log10(step) + 1e-9));
        assert_true(fabs(digit - 1) < 1e-9 || fabs(digit - 2) < 1e-9 ||
                    fabs(digit - 5) < 1e-9);
        /* the next one has no place */
        assert_true((double)n * step * unit > end * (is_time ? 0.82 : 1) * (1 - 1e-9));
    }
    if (is_time)
        assert_true(number(json_array_get(ticks, n), "at") == 100);
}

static void check_times(const json_t *figure)
{
    const double end_s = number(figure, "until_s");
    check_ticks(list(figure, "ticks"), end_s,
                end_s >= 1      ? 1
                : end_s >= 1e-3 ? 1e-3
                                : 1e-6,
                true);
}

/* --- rows --- */

/* Blocks follow one another inside the picture; together they are as wide as the row computes, or
 * wider where short breaks are not drawn. */
static void check_blocks(const json_t *row, double until_s, double whole_s)
{
    const json_t *block;
    size_t i;
    double end = 0, sum = 0;
    json_array_foreach (list(row, "blocks"), i, block) {
        const double x = number(block, "x"), w = number(block, "w");
        const json_t *microbatch = json_object_get(block, "microbatch");
        assert_true(x >= end - 0.3 && w >= 0.3 && x < WIDTH && x + w <= WIDTH + 0.3);
        assert_string_equal(word(block, "device"), word(row, "device"));
        if (microbatch && w > 0.31) {
            assert_close(number(block, "middle"), (x + w / 2) / 10, 1e-9);
            assert_int_equal(json_is_true(json_object_get(block, "paler")),
                             json_integer_value(microbatch) % 2);
            assert_int_equal(json_object_get(block, "number") != NULL, w > 22);
        }
        if (json_object_get(block, "number"))
            assert_int_equal(atoi(word(block, "number")),
                             (int)json_integer_value(microbatch));
        end = x + w;
        sum += w;
    }
    if (until_s == whole_s)
        assert_at_most(number(row, "busy_s") * WIDTH / until_s, sum * (1 + 1e-9));
}

/* The lane's area is the part of the time in which the device communicates. */
static void check_communication(const json_t *row, const json_t *device, double until_s)
{
    double top[BINS], bottom[BINS], part = 0;
    read_area(word(row, "communication"), top, bottom);
    for (uint32_t b = 0; b < BINS; b++) {
        assert_true(bottom[b] == LOW && top[b] <= LOW && top[b] >= LOW - HIGH);
        part += (LOW - top[b]) / HIGH / BINS;
    }
    const double want = (number(device, "exposed_communication_s") +
                         number(device, "hidden_communication_s")) /
                        until_s;
    if (fabs(part - want) > 4e-3)
        TEST_FAIL_AT(__FILE__, __LINE__, "%s communicates %g of the time, drawn %g",
                     word(row, "device"), want, part);
}

/* Each row is of a device that computes longest of those of its stage and type that are alike; all
 * devices are in one row, and one of the slowest stands out. */
static void check_rows(const json_t *facts)
{
    const json_t *timeline = json_object_get(facts, "timeline"), *row, *device,
                 *begin = json_object_get(facts, "beginning");
    const double whole_s = number(facts, "drawn_s"),
                 until_s = number(timeline, "until_s");
    double gpus = 0, busiest_s = 0, slow_s = 0;
    uint32_t n_slow = 0;
    size_t i;
    int stage = 0;
    assert_close(until_s, whole_s, 1e-12);
    json_array_foreach (list(facts, "devices"), i, device)
        busiest_s = fmax(busiest_s, number(device, "computation_s"));
    json_array_foreach (list(timeline, "rows"), i, row) {
        device = named(list(facts, "devices"), "name", word(row, "device"));
        assert_close(number(row, "busy_s"), number(device, "computation_s"), 1e-9);
        assert_close(number(row, "busy"), number(row, "busy_s") / whole_s, 1e-9);
        assert_string_equal(word(row, "type"), word(device, "type"));
        check_blocks(row, until_s, whole_s);
        check_communication(row, device, until_s);
        gpus += number(row, "gpus");
        if (word(row, "stage")) {
            assert_true(atoi(word(row, "stage")) >= stage);
            stage = atoi(word(row, "stage"));
        }
        if (json_is_true(json_object_get(row, "slow"))) {
            slow_s = number(row, "busy_s");
            n_slow++;
        }
    }
    assert_true(gpus == number(facts, "gpus") || number(timeline, "left_out") > 0);
    assert_true(n_slow == 1 || json_array_size(list(timeline, "rows")) == 1);
    assert_true(n_slow == 0 || fabs(slow_s / busiest_s - 1) < 1e-9);
    check_times(timeline);
    if (!json_is_object(begin))
        return;
    assert_true(number(begin, "until_s") < until_s);
    check_times(begin);
    json_array_foreach (list(begin, "rows"), i, row)
        check_blocks(row, number(begin, "until_s"), whole_s);
}

/* --- memory --- */

/* Areas lie on one another without a gap; each is as high as its bytes at their most, and all of
 * them together reach the device's peak and no more. */
static void check_memory(const json_t *panel, const json_t *device, bool stage)
{
    const double capacity = number(panel, "capacity"), total = number(panel, "total"),
                 most = 1.125 * fmax(capacity, total);
    double under[BINS], top[BINS], bottom[BINS], height = 0, at = 0;
    const json_t *area, *peak = json_object_get(panel, "peak");
    size_t i;
    /* of what the page draws; the table is by the order of the program, which `stage` keeps */
    assert_close(total, number(device, "memory_bytes"), stage ? 1e-12 : 0.1);
    assert_close(capacity, number(device, "capacity_bytes"), 1e-12);
    for (uint32_t b = 0; b < BINS; b++)
        under[b] = 100;
    json_array_foreach (list(panel, "areas"), i, area) {
        double thickest = 0;
        read_area(word(area, "path"), top, bottom);
        for (uint32_t b = 0; b < BINS; b++) {
            assert_true(fabs(bottom[b] - under[b]) < 0.26 && top[b] <= bottom[b] + 0.26);
            thickest = fmax(thickest, bottom[b] - top[b]);
            under[b] = top[b];
        }
        assert_true(number(area, "most") > 0);
        assert_true(fabs(thickest - 100 * number(area, "most") / most) < 0.3);
    }
    for (uint32_t b = 0; b < BINS; b++) {
        at = 100 - under[b] > height + 0.2 ? b : at;
        height = fmax(height, 100 - under[b]);
    }
    assert_true(fabs(height - 100 * number(device, "memory_bytes") / most) < 0.3);
    assert_close(number(panel, "limit"), 100 * capacity / most, 1e-12);
    assert_close(number(panel, "limit") + number(panel, "limit_y"), 100, 1e-12);
    const uint32_t drawn =
        (uint32_t)round(CLAMP(number(peak, "left"), 1, 70) * BINS / 100);
    if (drawn < 0.7 * BINS && drawn > 0.01 * BINS)
        assert_true(100 - under[drawn] > height - 0.3);
    assert_at_most(number(peak, "bottom"), height + 1.3);
    assert_at_most(number(peak, "bottom"), number(panel, "limit") - 9 + 1e-9);
    check_ticks(list(panel, "ys"), most, 1 << 30, false);
}

/* --- what limits --- */

/* The longest first, each as wide as its part of the first; what limits adds up to the time. */
static void check_limits(const json_t *facts, const char *key)
{
    enum { MOST = 7 };
    const json_t *limits = list(facts, key), *limit;
    const double first_s = number(json_array_get(limits, 0), "time_s"),
                 whole_s = number(facts, "drawn_s");
    double before_s = first_s, sum_s = 0;
    size_t i;
    json_array_foreach (limits, i, limit) {
        const double s = number(limit, "time_s");
        assert_true(s > 0 && s <= before_s);
        assert_at_most(number(limit, "communication_s"), s * (1 + 1e-9));
        assert_close(number(limit, "width"), 100 * s / first_s, 1e-9);
        assert_close(number(limit, "share"), s / whole_s, 1e-9);
        before_s = s;
        sum_s += s;
    }
    assert_at_most(sum_s, whole_s * (1 + 1e-9));
    if (json_array_size(limits) < MOST)
        assert_close(sum_s, whole_s, 1e-9);
}

/* Every microbatch goes once to the next stage and comes back; links are used in order. */
static void check_ways(const json_t *facts, uint32_t microbatches)
{
    const json_t *item;
    double before_s = INFINITY;
    size_t i;
    json_array_foreach (list(facts, "hops"), i, item) {
        assert_true(fabs(number(item, "from") - number(item, "to")) == 1);
        assert_true(fmod(number(item, "n"), microbatches) == 0);
        assert_close(number(item, "mean_s") * number(item, "n"), number(item, "sum_s"),
                     1e-9);
    }
    json_array_foreach (list(facts, "links"), i, item) {
        assert_true(number(item, "busy") <= before_s * (1 + 1e-9) &&
                    number(item, "busy") > 0);
        assert_at_most(number(item, "used"), number(item, "busy") * (1 + 1e-9));
        assert_close(number(item, "used"),
                     number(item, "bytes") / number(item, "bytes_per_s") /
                         number(facts, "drawn_s"),
                     1e-6);
        before_s = number(item, "busy");
    }
}

static void check_page(const Sandbox *box, const char *fidelity, uint32_t microbatches)
{
    g_autofree char *line =
        g_strdup_printf("report p.json -f %s -o facts.json", fidelity);
    program_runs(box, line);
    g_autofree char *text = sandbox_read(box, "facts.json");
    json_t *facts = json_of(text), *panel;
    size_t i;
    check_rows(facts);
    double before = INFINITY;
    json_array_foreach (list(facts, "memory_series"), i, panel) {
        const double part = number(panel, "total") / number(panel, "capacity");
        assert_true(part <= before); /* the fullest first */
        before = part;
        check_memory(panel, named(list(facts, "devices"), "name", word(panel, "device")),
                     strcmp(fidelity, "stage") == 0);
    }
    check_limits(facts, "limits");
    check_limits(facts, "limits_by_layer");
    check_ways(facts, microbatches);
    /* no more than a page has room for, and all of fewer */
    static const struct {
        const char *key;
        size_t most;
    } ROOM[] = {{"limits", 7}, {"limits_by_layer", 7}, {"hops", 12}, {"links", 12}};
    for (uint32_t k = 0; k < G_N_ELEMENTS(ROOM); k++)
        assert_true(json_array_size(list(facts, ROOM[k].key)) <= ROOM[k].most);
    const size_t panels = json_array_size(list(facts, "memory_series"));
    assert_true(panels <= 4 && panels >= MIN(json_array_size(list(facts, "memory")), 4));
    assert_true(json_array_size(list(json_object_get(facts, "timeline"), "rows")) <= 16);
    json_decref(facts);
}

static void test_pages(void **state)
{
    (void)state;
    static const struct {
        const char *plan;
        uint32_t microbatches;
    } cases[] = {
        {"gpt2:layers=8,hidden=1024,heads=16,ffn=4096,seq=1024,vocab=50000,global_batch="
         "64 "
         "hap-8 --planner manual --set pp=2 --set microbatches=8",
         8},
        {"gpt2:layers=9,hidden=512,heads=8,ffn=2048,seq=512,vocab=5000,global_batch=64 "
         "amp-het-cluster --planner manual --set pp=4 --set microbatches=16 --set "
         "schedule=gpipe",
         16},
        {"vgg19:width=32 hap-8 --planner hap", 1},
        {"gpt2:layers=6,hidden=64,heads=4,ffn=256,seq=32,vocab=64,global_batch=64 "
         "amp-het-cluster --planner manual --set pp=8 --set microbatches=8",
         8},
        {"llama:layers=4,hidden=1024,heads=8,kv_heads=8,ffn=2048,seq=1024,vocab=8192,"
         "global_batch=32 2x4xa100-80g@eth-25 --planner manual --set pp=2 --set tp=2 "
         "--set "
         "microbatches=4 --set zero=1 --set recompute=full",
         4},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Sandbox) box = sandbox_new();
        g_autofree char *line = g_strdup_printf("plan %s -q -o p.json", cases[i].plan);
        program_runs(box, line);
        check_page(box, "stage", cases[i].microbatches);
        if (i % 2 == 0)
            check_page(box, "flow", cases[i].microbatches);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pages)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
