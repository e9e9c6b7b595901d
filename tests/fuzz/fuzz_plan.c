/* Fuzz target: any bytes as a plan file are either refused with a message or a plan that holds what
 * plans promise, and that is written and read back as itself.
 *
 *     CC=clang cmake -B build-fuzz -DKILTER_SANITIZE=ON -DCMAKE_C_FLAGS=-fsanitize=fuzzer-no-link
 *     cmake --build build-fuzz --target fuzz_plan
 *     mkdir corpus && build-fuzz/kilter plan vit:layers=1 hap-8 -o corpus/vit.json
 *     build-fuzz/tests/fuzz_plan -max_len=100000 corpus
 *
 * The same function runs over mutated plans in tests/fault/test_plan_mutations.c. */
#include "data/data.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Unlike assert, stays in release builds; the fuzzer reports the abort. */
static void check(bool holds, const char *what)
{
    if (!holds)
        g_error("broken: %s", what);
}

static Plan *read_bytes(const void *data, size_t size, Graph **graph, GError **error)
{
    int memory = memfd_create("plan", MFD_CLOEXEC);
    check(memory >= 0 && write(memory, data, size) == (ssize_t)size, "a file in memory");
    g_autofree char *file = g_strdup_printf("/proc/self/fd/%d", memory);
    Plan *plan = plan_read(file, graph, error);
    close(memory);
    return plan;
}

static void check_cut(const Plan *plan)
{
    for (uint32_t k = 0; k < plan->n_segments; k++) {
        double sum = 0;
        for (uint32_t j = 0; j < plan->n_devices; j++)
            sum += plan->ratio[k * plan->n_devices + j];
        check(fabs(sum - 1) <= 1e-9, "ratios sum to 1");
    }
    for (uint32_t i = 0; i < plan->n_ops; i++)
        check(plan->segment[i] < plan->n_segments, "ops are of a segment");
    for (uint32_t i = 0; i < plan->n_splits; i++) {
        const Split *split = &plan->split[i];
        uint64_t sum = 0;
        for (uint32_t j = 0; j < plan->n_devices; j++)
            sum += split->count[j];
        check(sum == split->units, "counts sum to units");
        check(plan_find_split(plan, split) == split, "splits are found");
    }
}

static void check_plan(const Plan *plan, const Graph *graph)
{
    check_cut(plan);
    check(plan->n_ops == graph_n_ops(graph), "a segment an op");
    check(program_check(plan->program, graph, NULL), "the program passes its check");
    g_autofree char *text = plan_write(plan, graph);
    g_autoptr(Graph) graph_again = NULL;
    g_autoptr(Plan) again = read_bytes(text, strlen(text), &graph_again, NULL);
    check(again, "what is written is read");
    g_autofree char *text_again = plan_write(again, graph_again);
    check(strcmp(text, text_again) == 0, "what is read is written alike");
}

/* Models with numbers of more than three digits are left out: huge ones are slow, not wrong. */
static bool is_cheap(const uint8_t *data, size_t size)
{
    static const char key[] = "\"model\": ";
    const uint8_t *at = memmem(data, size, key, strlen(key));
    size_t digits = 0;
    for (; at && at < data + size && *at != '\n' && digits <= 3; at++)
        digits = g_ascii_isdigit(*at) ? digits + 1 : 0;
    return digits <= 3;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!is_cheap(data, size))
        return 0;
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph = NULL;
    g_autoptr(Plan) plan = read_bytes(data, size, &graph, &error);
    check(!plan == !!error && !plan == !graph, "either a plan and its graph or an error");
    if (plan) {
        check_plan(plan, graph);
        return 0;
    }
    check(error->domain == KILTER_ERROR && error->code == KILTER_ERROR_INPUT,
          "an input error");
    check(strstr(error->message, "/proc/self/fd/"), "message names the file");
    check(!strpbrk(error->message, "\r\n"), "message is one line");
    check(g_utf8_validate(error->message, -1, NULL), "message is UTF-8");
    return 0;
}
