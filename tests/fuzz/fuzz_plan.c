/* Fuzz target: any bytes as a plan file are either refused with a message or a plan that keeps the
 * promises of plans and equals itself after writing and reading. */
#include "data/data.h"

#include "tests/fuzz/fuzz.h"
#include <math.h>
#include <string.h>

static Plan *read_bytes(const void *data, size_t size, Graph **graph, GError **error)
{
    int memory;
    g_autofree char *file = fuzz_file_open(data, size, &memory);
    Plan *plan = plan_read(file, graph, error);
    fuzz_file_close(memory);
    return plan;
}

/* By SPLIT_POSITIONS every replica has all units, by SPLIT_BATCH all together have them. */
static void check_counts(const Plan *plan, const Split *split)
{
    const DeviceGroup whole = {.n_replicas = 1, .n_devices = plan->n_devices};
    const DeviceGroup *group =
        plan->program->n_groups ? &plan->program->group[split->group] : &whole;
    uint64_t sum = 0;
    if (split->kind != SPLIT_POSITIONS && split->kind != SPLIT_BATCH)
        return;
    for (uint32_t j = 0; j < group->n_replicas * group->n_devices; j++)
        sum += split->count[j];
    const uint64_t times = split->kind == SPLIT_BATCH ? 1 : group->n_replicas;
    fuzz_check(sum == times * split->units, "counts sum to units");
}

static void check_cut(const Plan *plan)
{
    for (uint32_t k = 0; k < plan->n_segments; k++) {
        double sum = 0;
        for (uint32_t j = 0; j < plan->n_devices; j++)
            sum += plan->ratio[k * plan->n_devices + j];
        fuzz_check(fabs(sum - 1) <= 1e-9, "ratios sum to 1");
    }
    for (uint32_t i = 0; i < plan->n_ops; i++)
        fuzz_check(plan->segment[i] < plan->n_segments, "ops are of a segment");
    for (uint32_t i = 0; i < plan->n_splits; i++) {
        check_counts(plan, &plan->split[i]);
        fuzz_check(plan_find_split(plan, &plan->split[i]) == &plan->split[i],
                   "splits are found");
    }
}

static void check_plan(const Plan *plan, const Graph *graph)
{
    check_cut(plan);
    fuzz_check(plan->n_ops == graph_n_ops(graph), "one segment per op");
    fuzz_check(program_check(plan->program, graph, NULL), "the program passes its check");
    g_autofree char *text = plan_write(plan, graph);
    g_autoptr(Graph) graph_again = NULL;
    g_autoptr(Plan) again = read_bytes(text, strlen(text), &graph_again, NULL);
    fuzz_check(again, "what is written is read");
    g_autofree char *text_again = plan_write(again, graph_again);
    fuzz_check(strcmp(text, text_again) == 0, "what is read is written alike");
}

/* Models with numbers of more than three digits are left out: huge models are slow, not wrong. */
static bool is_cheap(const uint8_t *data, size_t size)
{
    static const char key[] = "\"model\": ";
    const uint8_t *at = memmem(data, size, key, strlen(key));
    size_t digits = 0;
    for (; at && at < data + size && *at != '\n' && digits <= 3; at++)
        digits = g_ascii_isdigit(*at) ? digits + 1 : 0;
    return digits <= 3;
}

bool fuzz_read(const void *data, size_t size)
{
    if (!is_cheap(data, size))
        return false;
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph = NULL;
    g_autoptr(Plan) plan = read_bytes(data, size, &graph, &error);
    fuzz_check(!plan == !!error && !plan == !graph,
               "either a plan and its graph or an error");
    if (plan)
        check_plan(plan, graph);
    else
        fuzz_check_refused(error, "/proc/self/fd/");
    return plan != NULL;
}
