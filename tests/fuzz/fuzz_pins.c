/* Fuzz target: a file of pins is refused with one line, or its text without comments says the same
 * pins, and a search finds a program that keeps them or names those that cannot hold. */
#include <string.h>

#include "data/data.h"
#include "synth/synth.h"
#include "tests/fuzz/fuzz.h"

static Graph *small_model(void)
{
    return model_build("vit:layers=1,hidden=8,heads=2,ffn=8,image=4,batch=4", 1, NULL,
                       NULL);
}

/* The shares are uneven, as those of unlike machines. */
static void check_search(const Graph *graph, const SynthPins *pins)
{
    static ClusterView *view = NULL;
    static const double RATIO[] = {0.75, 0.25};
    g_autoptr(GError) error = NULL;
    if (!view)
        view = cluster_view(cluster_load("star:hosts=2", NULL), GRANULARITY_MACHINE);
    fuzz_check(view->n_devices == G_N_ELEMENTS(RATIO), "a ratio of each device");
    g_autoptr(SynthSpace) space = synth_space_new(graph, pins);
    const SynthOptions options = {.beam = 2};
    SynthResult result = {0};
    const bool good = synth_search(space, view, RATIO, &options, &result, &error);
    fuzz_check(good == !error, "either a program or an error");
    if (!good) {
        fuzz_check_refused(error, NULL);
        return;
    }
    fuzz_check(program_check(result.program, graph, NULL), "the program is sound");
    fuzz_check(synth_pins_hold(pins, graph, result.program),
               "the program keeps the pins");
    synth_result_clear(&result);
}

bool fuzz_read(const void *data, size_t size)
{
    static Graph *graph = NULL; /* made once, since a fuzzer calls this a million times */
    int memory;
    g_autoptr(GError) error = NULL;
    g_autofree char *file = fuzz_file_open(data, size, &memory);
    g_autofree char *text = text_read(file, &error);
    fuzz_file_close(memory);
    if (!graph)
        graph = small_model();
    if (!text) {
        fuzz_check_refused(error, file);
        return false;
    }
    g_autofree char *bare = synth_pins_text(text, &error);
    g_autoptr(SynthPins) pins = bare ? synth_pins_new(graph, bare, &error) : NULL;
    fuzz_check(!pins == !!error, "either pins or an error");
    if (!pins) {
        fuzz_check_refused(error, NULL);
        return false;
    }
    g_autofree char *again = synth_pins_text(bare, NULL);
    fuzz_check(again && strcmp(bare, again) == 0, "what is bare stays as it is");
    fuzz_note("%s", bare);
    check_search(graph, pins);
    return true;
}
