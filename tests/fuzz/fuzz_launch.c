/* Fuzz target: a launch of a framework is refused with a message, or read; its strategy for a
 * small model is one that can be laid out, or refused with a reason, and its keys are those of a
 * model. */
#include <string.h>

#include "data/data.h"
#include "tests/fuzz/fuzz.h"

static const char MODEL[] =
    "gpt2:layers=4,hidden=4,heads=2,ffn=4,seq=2,vocab=4,global_batch=8";

bool fuzz_read(const void *data, size_t size)
{
    enum { DEVICES = 8 };
    g_autoptr(GError) error = NULL, refusal = NULL;
    g_autoptr(Launch) launch = launch_parse("any.sh", data, size, &error);
    fuzz_check(!launch == !!error, "either a launch or an error");
    if (!launch) {
        fuzz_check_refused(error, "any.sh");
        return false;
    }
    g_autofree char *keys = launch_model_keys(launch, DEVICES);
    fuzz_check(!strchr(keys, '\n'), "keys in one line");
    fuzz_note("%s", keys);
    g_autoptr(Graph) graph = model_build(MODEL, 1, NULL, NULL);
    Strategy strategy;
    if (!launch_strategy(launch, graph, DEVICES, &strategy, &refusal)) {
        fuzz_check_refused(refusal, NULL);
        return true;
    }
    g_auto(StrategyLayout) layout = {0};
    fuzz_check(strategy_lay_out(&strategy, graph, DEVICES, &layout, NULL),
               "a strategy that can be laid out");
    return true;
}
