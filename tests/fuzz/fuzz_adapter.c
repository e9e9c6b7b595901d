/* Fuzz target: an adapter_config.json is refused with one line that names it, or trains some of a
 * small model's parameters; where all-linear is named, not only those that are saved whole. */
#include <string.h>

#include <string.h>

#include "data/data.h"
#include "data/formats/huggingface/config.h"
#include "tests/fuzz/fuzz.h"

/* Trained parameters of a model of two layers; 0: it was refused. */
static uint64_t adapter_trained(uint32_t rank, const char *target)
{
    g_autofree char *spec =
        g_strdup_printf("gpt2:layers=2,hidden=8,heads=2,ffn=8,vocab=16,seq=4,batch=4,"
                        "train=lora:%u,target=%s",
                        rank, target);
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph = model_build(spec, 1, NULL, &error);
    fuzz_check(!graph == !!error, "either a graph or an error");
    if (!graph)
        fuzz_check_refused(error, NULL);
    uint64_t trained = 0;
    bool has_adapter = false;
    for (TensorId t = 0; graph && t < graph_n_tensors(graph); t++) {
        const Tensor *tensor = graph_tensor(graph, t);
        if (tensor->role == ROLE_PARAMETER && !tensor->frozen)
            trained += tensor_elements(tensor);
        has_adapter |= strstr(tensor->name, ".lora_") != NULL;
    }
    fuzz_check(!graph || trained > 0, "something is trained");
    fuzz_check(!graph || !g_str_has_prefix(target, "all") || has_adapter,
               "all-linear has adapters");
    return trained;
}

bool fuzz_read(const void *data, size_t size)
{
    int memory;
    uint32_t rank = 0;
    g_autofree char *file = fuzz_file_open(data, size, &memory), *target = NULL;
    g_autoptr(GError) error = NULL;
    const bool good = peft_read(file, &rank, &target, &error);
    fuzz_file_close(memory);
    fuzz_check(good == !error, "either adapters or an error");
    if (!good) {
        fuzz_check_refused(error, file);
        return false;
    }
    fuzz_check(rank >= 1 && rank <= UINT16_MAX && target && *target,
               "a rank and names of modules");
    fuzz_note("%u %s", rank, target);
    if (adapter_trained(1, target) > 0)
        fuzz_check(adapter_trained(2, target) > 0, "a wider rank is taken, too");
    return true;
}
