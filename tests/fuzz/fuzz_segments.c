/* Fuzz target: a text of segments is refused with one line, or gives every op of a model one. */
#include <string.h>

#include "data/data.h"
#include "synth/question/segments.h"
#include "tests/fuzz/fuzz.h"

bool fuzz_read(const void *data, size_t size)
{
    static Graph *graph = NULL; /* made once, since a fuzzer calls this a million times */
    const char *segments = NULL;
    int memory;
    g_autoptr(GError) error = NULL;
    g_autofree char *file = fuzz_file_open(data, size, &memory);
    if (!graph)
        graph = model_build("vit:layers=2,hidden=8,heads=2,ffn=8,image=4,batch=4", 1,
                            NULL, NULL);
    const bool good = segments_parse(file, &segments, &error);
    fuzz_file_close(memory);
    fuzz_check(good == !error, "either segments or an error");
    if (!good) {
        fuzz_check_refused(error, NULL);
        return false;
    }
    const char *again = NULL;
    if (segments && strchr(segments, '='))
        fuzz_check(segments_parse(segments, &again, NULL) && again == segments,
                   "entries are read as they were");
    g_autofree uint16_t *segment = g_new0(uint16_t, graph_n_ops(graph));
    const bool made = segments_make(segments, graph, segment, &error);
    fuzz_check(made == !error, "either segments of the model or an error");
    if (!made)
        fuzz_check_refused(error, NULL);
    for (OpId i = 0; made && i < graph_n_ops(graph); i++)
        fuzz_note("%u", segment[i]);
    return made;
}
