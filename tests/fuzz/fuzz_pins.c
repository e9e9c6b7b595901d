/* Fuzz target: a file of pins is refused with one line, or its text without comments says the same pins. */
#include <string.h>

#include "synth/synth.h"
#include "tests/fuzz/fuzz.h"

static Graph *small_model(void)
{
    return model_build("vit:layers=2,hidden=8,heads=2,ffn=8,image=4,batch=4", 1, NULL,
                       NULL);
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
    return true;
}
