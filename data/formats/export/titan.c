/* Export to torchtitan: module names of each stage, and the program's schedule. */
#include <jansson.h>

#include "data/formats/export/case.h"

static const char *precision_text(const ExportCase *c)
{
    switch (precision_numbers(graph_precision(c->graph))) {
    case NUMBERS_BF16:
        return "bfloat16";
    case NUMBERS_F32:
        return "float32";
    default:
        return NULL;
    }
}

/* Modules of torchtitan's models: tok_embeddings, layers.0, ..., norm, lm_head. */
static json_t *modules_json(const ExportCase *c)
{
    const uint32_t last = graph_n_layers(c->graph) - 1;
    json_t *stages = json_array();
    for (uint32_t s = 0; s < c->layout.n_stages; s++) {
        json_t *modules = json_array();
        for (uint32_t l = c->layout.first[s]; l < c->layout.first[s + 1]; l++) {
            if (l > 0 && l < last)
                json_array_append_new(modules,
                                      json_string(graph_layer_name(c->graph, l)));
            if (l == 0)
                json_array_append_new(modules, json_string("tok_embeddings"));
        }
        if (s + 1 == c->layout.n_stages) {
            json_array_append_new(modules, json_string("norm"));
            json_array_append_new(modules, json_string("lm_head"));
        }
        json_array_append_new(stages, modules);
    }
    return stages;
}

/* One row per rank of the pipeline, with cells such as 0F3 and 0B3 in the order of the program. */
static GString *schedule_csv(const ExportCase *c)
{
    GString *out = g_string_new(NULL);
    for (uint32_t p = 0; p < c->layout.pp; p++) {
        g_autoptr(GArray) steps = export_steps(c, p);
        for (uint32_t k = 0; k < steps->len; k++) {
            const ExportStep *step = &g_array_index(steps, ExportStep, k);
            g_string_append_printf(out, "%s%u%c%u", k ? "," : "", step->stage,
                                   step->letter, step->microbatch);
        }
        g_string_append_c(out, '\n');
    }
    return out;
}

static uint32_t first_computation(const ExportCase *c)
{
    uint32_t i = 0;
    while (i + 1 < c->plan->program->n &&
           c->plan->program->instr[i].kind != INSTR_COMPUTE)
        i++;
    return i;
}

static bool add_recompute(const ExportCase *c, json_t *root, GError **error)
{
    const uint32_t last = graph_n_layers(c->graph) - 1;
    uint32_t full = 0, none = 0, second = 0;
    for (uint32_t l = 1; l < last; l++) {
        second += c->layout.recompute[l] == RECOMPUTE_ALTERNATE;
        full += c->layout.recompute[l] == RECOMPUTE_FULL;
        none += c->layout.recompute[l] == RECOMPUTE_NONE;
    }
    if (full != last - 1 && none != last - 1 && second != last - 1)
        return export_refuse(
            c, first_computation(c), error,
            "recomputation of some ops or layers; it knows none, all and "
            "alternate");
    /* The name of a policy of torchtitan's, none if null. */
    json_object_set_new(root, "activation_checkpoint",
                        full     ? json_string("FullAC")
                        : second ? json_string("SelectiveAC")
                                 : json_null());
    return true;
}

/* Adds FSDP and replicas; FSDP shards parameters, or only gradients if parameters are kept after
 * the forward. It shards them over the ranks that share a sequence as well, and experts' ranks are
 * taken from these and tensor parallelism. */
static bool add_states(const ExportCase *c, json_t *parallelism, GError **error)
{
    const StrategyLayout *l = &c->layout;
    if (l->zero == 1)
        return export_refuse(c, first_computation(c), error,
                             "zero=1; it divides gradients as well (zero=2) or nothing");
    const uint32_t ranks = l->zero >= 2 ? l->zero_ranks : 1;
    if (ranks % l->cp != 0)
        return export_refuse(c, first_computation(c), error,
                             "cp=%u with zero=0; it divides states over these ranks",
                             l->cp);
    if (l->ep > 1 && (l->tp > 1 || ranks % l->ep != 0))
        return export_refuse(c, first_computation(c), error,
                             "ep=%u; expected ranks that divide states (zero=2 or 3), "
                             "without tensor parallelism",
                             l->ep);
    json_object_set_new(parallelism, "data_parallel_shard_degree",
                        json_integer(ranks / l->cp));
    json_object_set_new(parallelism, "data_parallel_replicate_degree",
                        json_integer(l->dp / (ranks / l->cp)));
    if (l->zero >= 2)
        json_object_set_new(parallelism, "fsdp_reshard_after_forward",
                            json_string(l->zero == 2 ? "never" : "always"));
    return true;
}

static bool need_numbers(const ExportCase *c, GError **error)
{
    if (!precision_text(c))
        return export_refuse(c, first_computation(c), error, "parameters in fp16");
    if (precision_least_numbers(graph_precision(c->graph)) == NUMBERS_F8)
        return export_refuse(c, first_computation(c), error, "products in fp8");
    if (c->seq == 0)
        return export_refuse(c, first_computation(c), error,
                             "samples without tokens, in which it counts batches");
    return c->layout.cp == 1 || !c->layout.all_to_all ||
           export_refuse(c, first_computation(c), error, "cp_comm=a2a");
}

/* Adds tensor parallelism, with or without sequence parallelism in all layers. */
static bool add_tensor(const ExportCase *c, json_t *parallelism, GError **error)
{
    const bool on = c->layout.sequence[0];
    json_object_set_new(parallelism, "tensor_parallel_degree",
                        json_integer(c->layout.tp));
    for (uint32_t l = 1; c->layout.tp > 1 && l < graph_n_layers(c->graph); l++)
        if (c->layout.sequence[l] != on)
            return export_refuse(c, first_computation(c), error,
                                 "sequence parallelism in some stages only");
    if (c->layout.tp > 1)
        json_object_set_new(parallelism, "enable_sequence_parallel", json_boolean(on));
    return true;
}

static json_t *parallelism_json(const ExportCase *c)
{
    const StrategyLayout *l = &c->layout;
    json_t *json = json_pack("{s:i, s:i, s:i}", "pipeline_parallel_degree", (int)l->pp,
                             "context_parallel_degree", (int)l->cp,
                             "expert_parallel_degree", (int)l->ep);
    if (l->pp > 1) {
        g_autofree char *csv = g_strconcat(c->base, ".csv", NULL);
        /* With a file for its steps, the schedule only says where stages are: stage s on rank s %
         * pp. */
        json_object_set_new(
            json, "pipeline_parallel_schedule",
            json_string(l->n_stages > l->pp ? "Interleaved1F1B" : "1F1B"));
        json_object_set_new(json, "pipeline_parallel_schedule_csv", json_string(csv));
        json_object_set_new(json, "num_pp_microbatches", json_integer(l->n_microbatches));
        json_object_set_new(json, "module_fqns_per_model_part", modules_json(c));
    }
    return json;
}

static json_t *ranks_json(const ExportCase *c)
{
    bool in_order;
    g_autofree uint32_t *device = export_ranks(c, &in_order);
    json_t *list = json_array();
    for (uint32_t r = 0; r < c->plan->n_devices; r++) {
        const Device *d = &c->view->device[device[r]];
        json_array_append_new(
            list, json_pack("{s:i, s:s, s:i, s:s}", "rank", (int)r, "machine",
                            c->view->cluster->machine[d->machine].name, "gpu",
                            (int)export_local(c, device[r]), "type", d->type_name));
    }
    return list;
}

/* Batches in tokens; without pipelines, microbatches are steps of gradient accumulation. */
static json_t *training_json(const ExportCase *c)
{
    return json_pack("{s:I, s:I, s:i, s:s}", "num_tokens_per_microbatch_per_dp_rank",
                     (json_int_t)c->micro_batch * c->seq, "num_tokens_per_train_step",
                     (json_int_t)c->batch * c->seq, "max_context_length", (int)c->seq,
                     "mixed_precision_param", precision_text(c));
}

bool export_torchtitan(const ExportCase *c, GArray *files, GError **error)
{
    if (!export_need_even(c, true, error) || !export_need_strategy(c, error) ||
        !export_need_layers(c, error) || !need_numbers(c, error))
        return false;
    json_t *root = json_object(), *parallelism = parallelism_json(c);
    json_object_set_new(root, "parallelism", parallelism);
    json_object_set_new(root, "training", training_json(c));
    json_object_set_new(root, "ranks", ranks_json(c));
    const bool good = add_tensor(c, parallelism, error) &&
                      add_states(c, parallelism, error) && add_recompute(c, root, error);
    if (good) {
        export_add_json(files, json_incref(root));
        if (c->layout.pp > 1)
            export_add_file(files, ".csv", schedule_csv(c));
    }
    json_decref(root);
    return good;
}
