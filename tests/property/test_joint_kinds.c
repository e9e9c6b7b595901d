/* The joint search's kinds of machines, their units, the groups made of them and the lines between
 * their replicas, each written out again by its definition, on random clusters: few and many
 * machines, of unlike GPUs, ports and regions. */
#include <math.h>
#include <string.h>

#include "data/data.h"
#include "synth/joint/menu.h"
#include "tests/test.h"

enum { MOST_STATES = 64000, COARSE_STATES = 8000, MOST_UNIONS = 64 };

static uint32_t draw(GRand *rand, uint32_t low, uint32_t high)
{
    return (uint32_t)g_rand_int_range(rand, (gint32)low, (gint32)high + 1);
}

static const char *one_of(GRand *rand, const char *const *of, uint32_t n)
{
    return of[draw(rand, 0, n - 1)];
}

/* Entries of machines, some of which are alike though they stand apart. */
static Cluster *random_machines(GRand *rand)
{
    static const char *const DEVICE[] = {"h100", "a100-80g", "v100-32g", "t4"},
                             *const NIC[] = {"eth-25", "eth-100", "ib-hdr"},
                             *const INNER[] = {"pcie4", "pcie3"},
                             *const REGION[] = {"a", "b", "c"};
    const bool regions = draw(rand, 0, 2) == 0, many = draw(rand, 0, 3) == 0;
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) text = g_string_new("machines:\n");
    const uint32_t n = draw(rand, 1, many ? 12 : 5);
    for (uint32_t i = 0; i < n; i++) {
        const char *device = one_of(rand, DEVICE, G_N_ELEMENTS(DEVICE));
        g_string_append_printf(text, "  - {count: %u, inner: %s, nic: %s, nics: %u%s%s, ",
                               draw(rand, 1, many ? 40 : 4), one_of(rand, INNER, 2),
                               one_of(rand, NIC, G_N_ELEMENTS(NIC)), draw(rand, 1, 2),
                               regions ? ", region: " : "",
                               regions ? one_of(rand, REGION, i == 0 ? 1 : 3) : "");
        if (draw(rand, 0, 4) == 0)
            g_string_append_printf(text,
                                   "devices: [{device: %s, gpus: %u}, {device: %s, "
                                   "gpus: %u}]}\n",
                                   device, draw(rand, 1, 3),
                                   strcmp(device, "t4") == 0 ? "h100" : "t4",
                                   draw(rand, 1, 3));
        else
            g_string_append_printf(text, "device: %s, gpus: %u}\n", device,
                                   (uint32_t[]){1, 2, 4, 6, 8}[draw(rand, 0, 4)]);
    }
    if (regions)
        g_string_append(text,
                        "regions:\n"
                        "  - {from: a, to: b, latency: 5 ms, bandwidth: 40 Gb/s}\n"
                        "  - {from: b, to: c, latency: 20 ms, bandwidth: 1 Gb/s}\n"
                        "  - {from: a, to: c, latency: 9 ms, bandwidth: 10 Gb/s}\n");
    Cluster *cluster = cluster_parse("random", text->str, text->len, &error);
    assert_no_error(error);
    return cluster;
}

static const JointKind *kind_at(const JointMenu *menu, uint32_t k)
{
    return &g_array_index(menu->kind, JointKind, k);
}

/* --- kinds --- */

/* The devices of a machine from d on that are equal: the last one, and one behind it. */
static uint32_t run_end(const ClusterView *view, uint32_t d)
{
    uint32_t end = d + 1;
    while (end < view->n_devices &&
           view->device[end].machine == view->device[d].machine &&
           device_compare(&view->device[end], &view->device[d]) == 0)
        end++;
    return end;
}

/* The numbers that machines of one kind have in common, as text. */
static char *likeness(const ClusterView *view, uint32_t d)
{
    const Device *device = &view->device[d];
    const Machine *machine = &view->cluster->machine[device->machine];
    return g_strdup_printf("%s x%u, %.17g/%.17g inside, port %.17g/%.17g, at %u",
                           device->type_name, run_end(view, d) - d,
                           device->inner.bandwidth, device->inner.latency_s,
                           machine->port.bandwidth, machine->port.gpu,
                           view->n_sites > 1 ? view->site[device->machine] : 0);
}

/* Each run of equal devices is in one kind, that of all that are like it. Returns the number. */
static uint32_t check_kinds(const JointMenu *menu)
{
    const ClusterView *view = menu->view;
    g_autofree uint32_t *of = g_new(uint32_t, view->n_devices);
    memset(of, 0xff, view->n_devices * sizeof *of);
    uint32_t runs = 0, in_kinds = 0;
    for (uint32_t k = 0; k < menu->kind->len; k++) {
        const JointKind *kind = kind_at(menu, k);
        in_kinds += kind->n_machines;
        assert_true(kind->n_machines > 0);
        for (uint32_t i = 0; i < kind->n_machines; i++) {
            const uint32_t d = g_array_index(menu->place, uint32_t, kind->machine[i]);
            assert_true(of[d] == UINT32_MAX);
            assert_int_equal(run_end(view, d) - d, kind->gpus);
            if (i == 0)
                assert_int_equal(kind->first, d);
            of[d] = k;
        }
    }
    for (uint32_t d = 0; d < view->n_devices; d = run_end(view, d), runs++) {
        g_autofree char *own = likeness(view, d);
        assert_true(of[d] < menu->kind->len);
        for (uint32_t k = 0; k < menu->kind->len; k++) {
            g_autofree char *other = likeness(view, kind_at(menu, k)->first);
            assert_int_equal(strcmp(own, other) == 0, of[d] == k);
        }
    }
    assert_int_equal(in_kinds, runs);
    return runs;
}

/* --- units --- */

/* States of the search if kind k has unit[k] GPUs in a unit. */
static double states(const JointMenu *menu, const uint32_t *unit, bool in_order)
{
    double product = 1, sum = 0;
    for (uint32_t k = 0; k < menu->kind->len; k++) {
        const uint32_t n =
            kind_at(menu, k)->n_machines * kind_at(menu, k)->gpus / unit[k];
        product *= n + 1.0;
        sum += n + 1.0;
    }
    return (in_order ? sum : product) * (menu->model->n_layers + 1);
}

/* The unit before, of which this one is the next: a GPU, what halving leaves, twice, ... */
static uint32_t unit_before(const JointKind *kind)
{
    uint32_t odd = kind->gpus;
    while (odd % 2 == 0)
        odd /= 2;
    return kind->unit > odd ? kind->unit / 2 : 1;
}

/* Units are as small as the number of states lets them be, the kinds with most units coarsened
 * first. Returns how many kinds have coarser ones. */
static uint32_t check_units(const JointMenu *menu, bool coarse)
{
    const uint32_t n = menu->kind->len;
    const double most = coarse ? COARSE_STATES : MOST_STATES;
    g_autofree uint32_t *unit = g_new(uint32_t, n);
    uint32_t largest = 0, coarser = 0;
    for (uint32_t k = 0; k < n; k++)
        unit[k] = kind_at(menu, k)->gpus;
    assert_int_equal(menu->in_order, n > 1 && states(menu, unit, false) > MOST_STATES);
    for (uint32_t k = 0; k < n; k++) {
        const JointKind *kind = kind_at(menu, k);
        unit[k] = kind->unit;
        assert_int_equal(kind->n_units, kind->n_machines * kind->gpus / kind->unit);
        largest = MAX(largest, kind->n_units);
        assert_true(kind->n_units > 0);
    }
    assert_true(states(menu, unit, menu->in_order) <= most || largest <= 1);
    bool needed = false, any = false;
    for (uint32_t k = 0; k < n; k++) {
        const JointKind *kind = kind_at(menu, k);
        if (kind->unit == (menu->in_order ? kind->gpus : 1))
            continue;
        coarser++;
        any = true;
        unit[k] = unit_before(kind);
        assert_true(kind->unit % unit[k] == 0);
        assert_true(kind->n_machines * kind->gpus / unit[k] >= largest);
        needed |= states(menu, unit, menu->in_order) > most;
        unit[k] = kind->unit;
    }
    assert_true(needed == any);
    return coarser;
}

/* --- groups --- */

/* Whether a piece or a number of whole machines is a size of groups: a machine halved, or a GPU; up
 * to eight machines, then powers of two and 1.5 times those, or all. */
static bool is_size(const JointKind *kind, uint32_t gpus)
{
    if (gpus == kind->n_units * kind->unit && gpus % kind->gpus == 0)
        return true;
    for (uint32_t piece = kind->gpus; gpus < kind->gpus; piece /= 2) {
        if (piece == gpus || gpus == 1)
            return true;
        if (piece % 2 == 1)
            return false;
    }
    if (gpus % kind->gpus != 0)
        return false;
    for (uint32_t power = 1; power <= gpus; power *= 2)
        if (gpus / kind->gpus == power || 2 * gpus / kind->gpus == 3 * power)
            return true;
    return gpus / kind->gpus <= 8;
}

static uint32_t whole_machines(const JointKind *kind)
{
    const uint32_t step = MAX(kind->gpus / kind->unit, 1); /* units */
    return kind->n_units / step;
}

/* How many groups of several kinds there are. */
static uint32_t count_unions(const JointMenu *menu)
{
    double all = 1, few = 1, singles = 1, ones = 1;
    for (uint32_t k = 0; k < menu->kind->len; k++) {
        all *= whole_machines(kind_at(menu, k)) + 1;
        singles += whole_machines(kind_at(menu, k));
        few *= 2;
        ones++;
    }
    return all <= MOST_UNIONS   ? (uint32_t)(all - singles)
           : few <= MOST_UNIONS ? (uint32_t)(few - ones)
                                : 0;
}

static void check_group(const JointMenu *menu, const JointGroup *group)
{
    uint32_t devices = 0, machines = 0, bits = 0, pieces = 0;
    for (uint32_t k = 0; k < menu->kind->len; k++) {
        const JointKind *kind = kind_at(menu, k);
        const uint32_t gpus = group->use[k] * kind->unit;
        assert_true(group->use[k] <= kind->n_units);
        devices += gpus;
        machines += (uint32_t)ceil((double)gpus / kind->gpus);
        bits |= gpus > 0 && k < 32 ? 1u << k : 0;
        if (gpus == 0 || gpus >= kind->gpus)
            continue;
        pieces++;
        assert_int_equal(group->piece, k + 1);
        assert_int_equal(group->room, kind->gpus / kind->unit);
        assert_true(
            group->inner.bandwidth == menu->view->device[kind->first].inner.bandwidth &&
            group->inner.latency_s == menu->view->device[kind->first].inner.latency_s);
    }
    assert_int_equal(group->n_devices, devices);
    assert_int_equal(group->n_machines, MIN(machines, menu->view->cluster->n_machines));
    assert_int_equal(group->kinds, bits);
    assert_true(pieces == (group->piece > 0));
    g_auto(JointDevices) own = synth_joint_devices(menu, group);
    uint32_t sum = 0;
    for (uint32_t i = 0; i < own.n; i++)
        sum += own.gpus[i];
    assert_int_equal(own.n, machines);
    assert_int_equal(sum, devices);
}

/* --- lines --- */

/* The slowest of the lines that replicas of this group's kinds have. */
static LinkCost line_of(const JointMenu *menu, const JointGroup *group, uint32_t dp,
                        uint32_t tp, double bytes)
{
    const ClusterView *view = menu->view;
    const bool apart = group->n_machines > 1;
    const JointKind *first = NULL;
    LinkCost line = {0, INFINITY};
    for (uint32_t k = 0; k < menu->kind->len && !(first && !view->cluster->wired); k++) {
        if (group->use[k] == 0)
            continue;
        const Device *device = &view->device[kind_at(menu, k)->first];
        const LinkCost own = cluster_view_set_line(
            view, device, (CurvePlace){device->type_name, dp, MIN(dp, group->n_machines)},
            apart ? tp : 1, COLLECTIVE_ALL_REDUCE, bytes);
        double narrow = own.bandwidth;
        if (apart && view->cable)
            narrow = MIN(narrow, view->cable[device->machine] / tp);
        if (own.latency_s > line.latency_s)
            line.latency_s = own.latency_s;
        if (first && view->n_sites > 1) {
            const uint32_t a = view->site[view->device[first->first].machine],
                           b = view->site[device->machine];
            const LinkCost between = view->between[a * view->n_sites + b];
            line.latency_s += a == b ? 0 : 2 * between.latency_s;
            narrow = a == b ? narrow : MIN(narrow, between.bandwidth / tp);
        }
        line.bandwidth = MIN(line.bandwidth, narrow);
        first = first ? first : kind_at(menu, k);
    }
    return line;
}

static void check_lines(GRand *rand, const JointMenu *menu, const JointGroup *group)
{
    if (group->n_devices < 2)
        return;
    const uint32_t dp = draw(rand, 2, group->n_devices),
                   tp = MAX(1, draw(rand, 1, group->n_devices / dp));
    const double bytes = exp(g_rand_double_range(rand, log(1e3), log(1e9)));
    const LinkCost want = line_of(menu, group, dp, tp, bytes),
                   got = synth_joint_line(menu, group, dp, tp, bytes);
    assert_close(got.latency_s, want.latency_s, 1e-12 * want.latency_s);
    assert_close(got.bandwidth, want.bandwidth, 1e-12 * want.bandwidth);
}

static void test_by_definition(void **state)
{
    (void)state;
    enum { ROUNDS = 60, MOST_CHECKED = 100 };
    g_autoptr(GError) error = NULL;
    g_autoptr(GRand) rand = g_rand_new_with_seed(63);
    g_autoptr(Graph) graph = model_build(
        "gpt2:layers=2,hidden=64,heads=4,ffn=128,seq=16,vocab=64,global_batch=64", 1,
        NULL, &error);
    assert_no_error(error);
    uint32_t in_order = 0, coarser = 0, sited = 0, runs = 0, kinds = 0, unions = 0;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        g_autoptr(Cluster) cluster = random_machines(rand);
        g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
        const bool coarse = g_rand_boolean(rand);
        g_autoptr(JointMenu) menu = synth_joint_menu_new(graph, view, coarse, &error);
        assert_no_error(error);
        runs += check_kinds(menu);
        kinds += menu->kind->len;
        coarser += check_units(menu, coarse);
        in_order += menu->in_order;
        sited += view->n_sites > 1;
        g_autoptr(GArray) groups = g_array_new(FALSE, FALSE, sizeof(JointGroup));
        joint_add_groups(menu, groups);
        uint32_t several = 0, single = 0, sizes = 0;
        for (uint32_t g = 0; g < groups->len; g++) {
            JointGroup *group = &g_array_index(groups, JointGroup, g);
            check_group(menu, group);
            if (g < MOST_CHECKED)
                check_lines(rand, menu, group);
            const bool is_single = (group->kinds & (group->kinds - 1)) == 0;
            single += is_single;
            several += !is_single;
            g_free(group->use);
        }
        for (uint32_t k = 0; k < menu->kind->len; k++)
            for (uint32_t u = 1; u <= kind_at(menu, k)->n_units; u++)
                sizes += is_size(kind_at(menu, k), u * kind_at(menu, k)->unit);
        assert_int_equal(single, sizes);
        assert_int_equal(several, count_unions(menu));
        unions += several;
    }
    print_message(
        "%u machines of %u kinds, %u with coarser units; %u clusters with "
        "regions, %u too large for all combinations; %u groups of several kinds\n",
        runs, kinds, coarser, sited, in_order, unions);
    assert_true(in_order > 3 && coarser > 20 && sited > 5 && unions > 100);
}

/* --- entries --- */

/* A group of one kind has an entry for each degree that divides its machines, and each way to need
 * less memory, where memory is short; returns how many. */
static uint32_t check_entries(const JointMenu *menu, const JointProblem *p,
                              const JointGroup *group)
{
    enum { MOST = 64 };
    const JointKind *kind = kind_at(menu, 0);
    const uint32_t batch = menu->model->global_batch / p->n_microbatches;
    const uint32_t n = group->n_devices;
    uint32_t at = 0;
    for (uint32_t d = 0; d < menu->model->n_degrees; d++) {
        const uint32_t tp = menu->model->degree[d];
        if (MIN(n, kind->gpus) % tp != 0 || n / tp > batch || at + 2 * JOINT_MODES > MOST)
            continue;
        for (uint32_t mode = 0; mode < JOINT_MODES; mode++)
            for (uint32_t divides = 0; divides < (n > tp ? 2 : 1); divides++) {
                if (!joint_may_recompute(menu, mode, true))
                    continue;
                assert_true(at < group->n_entries);
                const JointEntry *e = &group->entry[at++];
                uint32_t all = 0;
                for (uint32_t r = 0; r < e->dp; r++)
                    all += e->samples[r];
                assert_true(e->tp == tp && e->dp == n / tp && all == batch &&
                            e->recompute == menu->mode[mode] && e->divides == divides);
            }
    }
    assert_int_equal(group->n_entries, at);
    return at;
}

static void test_entries(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load("256xv100-32g", &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    g_autoptr(Graph) graph = model_build(
        "gpt2:layers=1,hidden=256,heads=256,ffn=256,seq=512,vocab=256,global_batch=256",
        1, NULL, &error);
    assert_no_error(error);
    g_autoptr(JointMenu) menu = synth_joint_menu_new(graph, view, false, &error);
    assert_no_error(error);
    g_autoptr(JointProblem) p = synth_joint_problem(menu, 1, 1e-6, true);
    assert_non_null(p);
    uint32_t most = 0;
    for (uint32_t g = 0; g < p->n_groups; g++)
        most = MAX(most, check_entries(menu, p, &p->group[g]));
    print_message("%u groups of up to %u entries\n", p->n_groups, most);
    assert_true(most > 48);
}

/* --- stages that are all alike --- */

/* The group of a problem with so many units of each kind; NULL: it has none. */
static const JointGroup *group_like(const JointProblem *p, const JointGroup *like)
{
    for (uint32_t g = 0; g < p->n_groups; g++)
        if (memcmp(p->group[g].use, like->use, p->n_kinds * sizeof *like->use) == 0)
            return &p->group[g];
    return NULL;
}

static bool is_kept(const JointKeep *keep, const JointEntry *e)
{
    return e->dp == keep->dp && e->tp == keep->tp && e->divides == keep->divides &&
           e->recompute == keep->recompute;
}

/* The entry with the same parts of the batch and the same bytes, or NULL. */
static const JointEntry *entry_like(const JointGroup *group, const JointEntry *like,
                                    uint32_t n_layers)
{
    for (uint32_t i = 0; group && i < group->n_entries; i++) {
        const JointEntry *e = &group->entry[i];
        if (is_kept(&(JointKeep){.dp = like->dp,
                                 .tp = like->tp,
                                 .divides = like->divides,
                                 .recompute = like->recompute},
                    e) &&
            memcmp(e->samples, like->samples, e->dp * sizeof *e->samples) == 0 &&
            e->held[n_layers] == like->held[n_layers] &&
            e->kept[n_layers] == like->kept[n_layers])
            return e;
    }
    return NULL;
}

/* A problem of stages that are all alike has the groups of their size, and of those the entries of
 * their degrees that a problem of any stages has; returns how many. */
static uint32_t check_keep(JointMenu *menu, const JointProblem *any,
                           const JointKeep *keep)
{
    const uint32_t batch = menu->model->global_batch / any->n_microbatches;
    uint32_t n = 0;
    menu->keep = keep;
    JointProblem *p =
        synth_joint_problem(menu, any->n_microbatches, any->headroom, any->recompute);
    menu->keep = NULL;
    for (uint32_t g = 0; g < any->n_groups; g++) {
        const JointGroup *group = &any->group[g], *own = p ? group_like(p, group) : NULL;
        if (p && (own != NULL) != (group->n_devices == keep->dp * keep->tp))
            TEST_FAIL_AT(__FILE__, __LINE__, "dp %u, tp %u: a group of %u devices",
                         keep->dp, keep->tp, group->n_devices);
        for (uint32_t i = 0; own && i < own->n_entries; i++)
            assert_true(is_kept(keep, &own->entry[i]));
        for (uint32_t i = 0; i < group->n_entries; i++) {
            const JointEntry *e = &group->entry[i];
            if (!is_kept(keep, e) || (keep->even && batch % keep->dp != 0))
                continue;
            const JointEntry *same = entry_like(own, e, any->n_layers);
            bool even = true;
            for (uint32_t r = 0; r < e->dp; r++)
                even &= e->samples[r] == e->samples[0];
            assert_true(same || (keep->even && !even));
            n += same != NULL;
        }
    }
    synth_joint_problem_free(p);
    return n;
}

static void test_keeps(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Cluster) cluster = cluster_load("2x4xv100-16g@eth-25+4xt4", &error);
    assert_no_error(error);
    g_autoptr(ClusterView) view = cluster_view(cluster, GRANULARITY_GPU);
    g_autoptr(Graph) graph =
        model_build("gpt2:layers=2,hidden=64,heads=4,ffn=128,seq=512,"
                    "vocab=64,global_batch=48",
                    1, NULL, &error);
    assert_no_error(error);
    g_autoptr(JointMenu) menu = synth_joint_menu_new(graph, view, false, &error);
    assert_no_error(error);
    g_autoptr(JointProblem) any = synth_joint_problem(menu, 2, 1e-6, true);
    uint32_t n[2] = {0};
    for (uint32_t i = 0; i < 4 * 4 * JOINT_MODES; i++) {
        const JointKeep keep = {.dp = 1 + i % 4,
                                .tp = 1 << i / 4 % 3,
                                .divides = i / 16 % 2 && i % 4 > 0,
                                .even = i % 3 == 0,
                                .recompute = menu->mode[i / 16 % JOINT_MODES]};
        n[keep.dp > 1 && keep.tp > 1] += check_keep(menu, any, &keep);
    }
    print_message("%u entries of one degree, %u of two\n", n[0], n[1]);
    assert_true(n[0] > 20 && n[1] > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_by_definition),
                                       cmocka_unit_test(test_entries),
                                       cmocka_unit_test(test_keeps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
