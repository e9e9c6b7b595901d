/* Fuzz target: a strategy's file is refused with a message, or read, and then written so that it is
 * read as the same; laying it out over a small model never crashes, and a failure has a reason. */
#include <string.h>

#include "data/data.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/strategy_text.h"

static void check_layout(const Strategy *strategy)
{
    enum { DEVICES = 8 };
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph =
        model_build("gpt2:layers=4,hidden=4,heads=2,ffn=4,seq=2,vocab=4,global_batch=8",
                    1, NULL, NULL);
    g_auto(StrategyPipelines) all = {0};
    const bool good = strategy_lay_out_pipelines(strategy, graph, DEVICES, &all, &error);
    uint32_t times[DEVICES] = {0};
    fuzz_check(good == !error, "either a layout or an error");
    if (!good) {
        fuzz_check_refused(error, NULL);
        return;
    }
    for (uint32_t k = 0; k < all.n; k++) {
        const StrategyLayout *layout = &all.pipeline[k];
        for (uint32_t g = 0, next = 0; g < layout->pp; g++)
            for (uint32_t i = 0; i < layout_devices(layout, g); i++) {
                fuzz_check(layout->device[next] < DEVICES, "a device of the cluster");
                times[layout->device[next++]]++;
            }
        for (uint32_t s = 0; s < layout->n_stages; s++)
            fuzz_check(layout->first[s] < layout->first[s + 1], "layers in each stage");
    }
    /* dualpipe: two pipelines on the same devices */
    const bool both = strategy->schedule == SCHEDULE_DUALPIPE && all.n == 2;
    for (uint32_t d = 0; d < DEVICES; d++)
        fuzz_check(times[d] == (both ? 2 : 1), "each device once");
}

bool fuzz_read(const void *data, size_t size)
{
    Strategy strategy, again;
    g_autoptr(GError) error = NULL;
    strategy_init(&strategy);
    strategy_init(&again);
    const bool good =
        strategy_parse("any.yaml", (const char *)data, size, &strategy, &error);
    fuzz_check(good == !error, "either a strategy or an error");
    if (!good) {
        fuzz_check_refused(error, "any.yaml");
        fuzz_check(strategy_is_default(&strategy),
                   "nothing is taken of a file that is refused");
        return false;
    }
    g_autofree char *text = strategy_write(&strategy);
    fuzz_check(strategy_parse("again.yaml", text, strlen(text), &again, NULL),
               "reads again");
    fuzz_check(memcmp(&strategy, &again, sizeof again) == 0, "reads as it was written");
    check_layout(&strategy);
    return true;
}
