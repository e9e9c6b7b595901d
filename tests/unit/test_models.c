/* The bundled models: HAP's Table 1, and what their specs accept. */
#include "tests/test.h"

#include <jansson.h>

#include "data/data.h"
#include "data/formats/huggingface/config.h"
#include "data/models/model_file.h"

static double mebi(const char *spec, uint32_t gpus)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph = model_build(spec, gpus, NULL, &error);
    assert_no_error(error);
    return (double)graph_parameter_count(graph) / (1 << 20);
}

/* Units of 2^20 parameters, rounded down as the table has them. */
static void test_table_1(void **state)
{
    (void)state;
    assert_int_equal((int)mebi("vgg19", 8), 133);
    assert_int_equal((int)mebi("vit", 8), 54);
    assert_int_equal((int)mebi("bert-base", 8), 102);
    double at_8 = mebi("bert-moe", 8), at_64 = mebi("bert-moe", 64);
    double slope = (at_64 - at_8) / 56;
    assert_int_equal((int)slope, 36);
    assert_int_equal((int)(at_8 - 8 * slope), 84);
}

/* torchvision's counts, the papers', and those of TAG's graphs (its Table 3 has them in MiB). */
static void test_known_counts(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        uint64_t parameters;
    } known[] = {
        {"vgg19:image=224,classes=1000", 143667240},
        {"resnet50", 25557032},
        {"resnet101", 44549160},
        {"inceptionv3", 23834568},
        {"vit-l", 304326632},
        {"llama", 8030261248},
        {"mixtral", 46702792704},
        {"tag-resnet101", 44529064},
        {"tag-inceptionv3", 23817352},
        {"tag-transformer", 106925871},
        {"tag-bert-small", 25737218 + 305220 * 1024},
        {"tag-bert-large", 606580738 + 305220 * 2048},
        {"tag-resnet101:own_moments=1", 44529064},
        {"resnet50:own_moments=1", 25557032},
        {"tag-bert-small:host_words=1", 25737218},
        {"tag-bert-large:host_words=1", 606580738},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(known); i++) {
        g_autoptr(GError) error = NULL;
        g_autoptr(Graph) graph = model_build(known[i].spec, 1, NULL, &error);
        assert_no_error(error);
        if (graph_parameter_count(graph) != known[i].parameters)
            fail_msg("%s: %" G_GUINT64_FORMAT, known[i].spec,
                     graph_parameter_count(graph));
    }
}

/* Without sums over the batch the graph is cut into replicas that wait for nothing but
 * gradients. */
static void test_own_moments(void **state)
{
    (void)state;
    static const char *const model[] = {"tag-resnet101:edge=32", "resnet50:edge=32",
                                        "resnet101:edge=32", "inceptionv3:edge=75"};
    for (uint32_t i = 0; i < 2 * G_N_ELEMENTS(model); i++) {
        const int own = i % 2;
        g_autoptr(GError) error = NULL;
        g_autofree char *spec =
            g_strdup_printf("%s,width=2,classes=4,own_moments=%d", model[i / 2], own);
        g_autoptr(Graph) graph = model_build(spec, 1, NULL, &error);
        assert_no_error(error);
        g_autoptr(BatchForms) batch = batch_forms_new(graph, &error);
        assert_no_error(error);
        assert_int_equal(batch->reads_sum == GRAPH_NONE, own);
    }
}

/* HiDup's Table 1 has millions: 89 + 19 n and 38 + 38 n for n GPUs; and its graph of BERT-SGMoE on
 * 4 has 164,474,368. */
static void test_hidup_table_1(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double base, slope;
    } row[] = {{"bert-sgmoe", 89, 19},
               {"bert-switch", 89, 19},
               {"vit-sgmoe", 38, 38},
               {"vit-switch", 38, 38}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(row); i++) {
        const double at_8 = mebi(row[i].name, 8) * (1 << 20) / 1e6,
                     at_64 = mebi(row[i].name, 64) * (1 << 20) / 1e6;
        const double slope = (at_64 - at_8) / 56;
        assert_true(round(slope) == row[i].slope);
        assert_true(round(at_8 - 8 * slope) == row[i].base);
    }
    assert_true(mebi("bert-sgmoe", 4) * (1 << 20) == 164474368);
}

/* A transformer layer: 4 (h^2 + h) attention, 2 h f + h + f feed-forward, 4 h norms. */
static void test_layers(void **state)
{
    (void)state;
    double one = mebi("vit:layers=1", 1), two = mebi("vit:layers=2", 1);
    assert_close(two - one, 7087872.0 / (1 << 20), 1e-12);
}

static uint64_t parameters(const char *spec)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph = model_build(spec, 16, NULL, &error);
    assert_no_error(error);
    return graph_parameter_count(graph);
}

/* AMP's models. The matrices of a layer of width h are 12 h^2, with biases and norms 13 h more.
 * GPT-2: two matrices of 52256 x 1024, 1024 positions, a last norm. */
static void test_amp_models(void **state)
{
    (void)state;
    const uint64_t wide = 12 * 1024 * 1024 + 13 * 1024, narrow = 12 * 16 * 16 + 13 * 16;
    assert_int_equal(parameters("gpt2"),
                     24 * wide + 2 * 52256 * 1024 + 1024 * 1024 + 2 * 1024);
    assert_int_equal(parameters("gpt2:layers=25") - parameters("gpt2"), wide);
    assert_int_equal(parameters("transgan:layers=13") - parameters("transgan"),
                     wide + narrow);
    /* The first matrix makes 81 tokens of 1024 of the noise; positions; three colours. */
    assert_int_equal(parameters("transgan"), 12 * (wide + narrow) + 513 * 81 * 1024 +
                                                 81 * 1024 + 256 * 16 + 3 * 17);
}

/* An image of 288 x 288 in windows of 256 tokens; AMP's batches for 16 GPUs. */
static void test_transgan_windows(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph = model_build("transgan", 16, NULL, &error);
    assert_no_error(error);
    const Tensor *x = graph_tensor(graph, graph_find(graph, "narrow.0.attention.qkv"));
    assert_int_equal(x->dim[0], 64 * 288 * 288 / 256);
    assert_int_equal(x->dim[1], 256);
    assert_int_equal(x->units[0], 64); /* a sample's windows stay together */
}

/* Heads that are not sharded, nor are dimensions tied to them; those of wide layers are
 * unchanged. */
static void test_whole_heads(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph =
        model_build("transgan:layers=1,whole_heads=1", 4, NULL, &error);
    assert_no_error(error);
    const Tensor *qkv = graph_tensor(graph, graph_find(graph, "narrow.0.attention.qkv")),
                 *out = graph_tensor(graph,
                                     graph_find(graph, "narrow.0.attention.out.weight")),
                 *wide = graph_tensor(graph, graph_find(graph, "wide.0.attention.qkv"));
    assert_int_equal(qkv->units[3], 1);
    assert_int_equal(qkv->units[0], 16); /* samples */
    assert_int_equal(out->units[1], 1);
    assert_int_equal(wide->units[3], 4);
}

/* DeepSpeed's routing: a GPU's 4 sequences of 8 tokens share 1.25 x 32 / 2 slots of each of 2
 * experts, so that the tokens of one expert have the same size, and the search for slots is 4 times
 * that. */
static void test_routing_groups(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    static const char SPEC[] =
        "bert-switch:layers=2,hidden=4,heads=2,ffn=6,vocab=5,seq=8,"
        "experts=2,global_batch=8,moe_group=";
    for (uint32_t size = 1; size <= 4; size *= 4) {
        g_autofree char *spec = g_strdup_printf("%s%u", SPEC, size);
        g_autoptr(Graph) graph = model_build(spec, 2, NULL, &error);
        assert_no_error(error);
        const Tensor *slots =
            graph_tensor(graph, graph_find(graph, "layers.1.moe.dispatch"));
        assert_int_equal(slots->dim[0], 8 / size);
        assert_int_equal(slots->dim[2], 5 * size);
        assert_int_equal(slots->units[0], 8 / size);
        assert_int_equal(graph_tensor(graph, graph_find(graph, "layers.1.norm2"))->dim[0],
                         8);
    }
    g_autofree char *odd = g_strdup_printf("%s3", SPEC);
    assert_null(model_build(odd, 2, NULL, &error));
    assert_non_null(strstr(error->message, "moe_group must divide the batch"));
}

static void test_weak_scaling(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autofree char *canonical = NULL;
    g_autoptr(Graph) graph = model_build("bert-moe:layers=2", 4, &canonical, &error);
    assert_no_error(error);
    const Tensor *ids = graph_tensor(graph, graph_find(graph, "ids"));
    assert_int_equal(ids->dim[0], 32 * 4);
    const Tensor *experts =
        graph_tensor(graph, graph_find(graph, "layers.1.moe.up.weight"));
    assert_int_equal(experts->dim[0], 2 * 4);
    /* The canonical spec is the same graph on any cluster. */
    g_autoptr(Graph) again = model_build(canonical, 64, NULL, &error);
    assert_no_error(error);
    assert_int_equal(graph_n_ops(again), graph_n_ops(graph));
    assert_true(graph_parameter_count(again) == graph_parameter_count(graph));
}

/* Heads tie the dimensions that they are part of; all others are cut by single elements. */
static void test_units(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph = model_build("vgg19", 1, NULL, &error);
    assert_no_error(error);
    const Tensor *flat = graph_tensor(graph, graph_find(graph, "flatten"));
    assert_int_equal(flat->dim[1], 512 * 7 * 7);
    assert_int_equal(flat->units[1], 512); /* a channel's 49 pixels stay together */
    const Tensor *x = graph_tensor(graph, graph_find(graph, "x"));
    assert_int_equal(x->units[0], 64);
    assert_int_equal(x->units[2],
                     1); /* no op cuts an image's rows before the convolution */
    const Tensor *fc = graph_tensor(graph, graph_find(graph, "classifier.1.weight"));
    assert_int_equal(fc->units[0], 4096);
}

/* Bytes of a parameter, its gradient and its optimizer states, by parameter. */
static double bytes_per_parameter(const char *spec)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph = model_build(spec, 1, NULL, &error);
    assert_no_error(error);
    double bytes = 0;
    for (TensorId t = 0; t < graph_n_tensors(graph); t++) {
        const Tensor *tensor = graph_tensor(graph, t);
        if (tensor->role == ROLE_PARAMETER)
            bytes += (double)tensor_bytes(tensor) +
                     (double)tensor_bytes(graph_tensor(graph, graph_gradient(graph, t)));
        else if (tensor->role == ROLE_OPTIMIZER)
            bytes += (double)tensor_bytes(tensor);
    }
    return bytes / (double)graph_parameter_count(graph);
}

/* 16 of Adam in mixed precision (Rajbhandari et al. 2020, Sec. 3.1), 18 with float32 gradients. */
static void test_bytes_per_parameter(void **state)
{
    (void)state;
    assert_true(bytes_per_parameter("gpt2:layers=1") == 4 + 4 + 4 + 4);
    assert_true(bytes_per_parameter("gpt2:layers=1,optimizer=sgd") == 4 + 4);
    assert_true(bytes_per_parameter("gpt2:layers=1,precision=mixed") ==
                2 + 2 + 4 + 4 + 4);
    assert_true(bytes_per_parameter("gpt2:layers=1,precision=mixed-fp32-grads") ==
                2 + 4 + 4 + 4 + 4);
    assert_true(bytes_per_parameter("vgg19:precision=mixed,optimizer=sgd") == 2 + 2 + 4);
    assert_true(bytes_per_parameter("bert-moe:layers=2,precision=mixed") == 16);
}

/* Recipes beside those of 2018, and single formats in place of a recipe's. */
static void test_states(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        double bytes;
    } CASE[] = {
        {"precision=bf16-fp32-grads", 2 + 4 + 4 + 8},
        {"precision=bf16-pure,optimizer=sgd", 2 + 2},
        {"precision=bf16-pure", 2 + 2 + 4},
        {"precision=bf16-pure,optimizer=adam8bit", 2 + 2 + 2 * (1 + 4 / 256.)},
        {"precision=bf16-moments", 2 + 4 + 4 + 4},
        {"precision=bf16,gradients=fp32,moments=bf16/fp32", 2 + 4 + 4 + 2 + 4},
        {"precision=bf16,master=none,moments=bf16", 2 + 2 + 4},
        {"optimizer=lion,precision=mixed", 2 + 2 + 4 + 4},
        {"optimizer=muon,precision=mixed", 2 + 2 + 4 + 4},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        g_autofree char *spec = g_strdup_printf("gpt2:layers=1,%s", CASE[i].spec);
        const bool muon = strstr(spec, "muon") != NULL;
        const double bytes = bytes_per_parameter(spec);
        /* AdamW updates what is no product's weights, with one moment more */
        assert_true(muon ? bytes > CASE[i].bytes && bytes < CASE[i].bytes + 4
                         : fabs(bytes - CASE[i].bytes) < 1e-4);
    }
}

static void count_trained(const char *spec, uint64_t *trained, uint64_t *frozen)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *canonical = NULL;
    g_autoptr(Graph) graph = model_build(spec, 1, &canonical, &error);
    assert_no_error(error);
    g_autoptr(Graph) again = model_build(canonical, 1, NULL, &error);
    assert_no_error(error);
    assert_int_equal(graph_n_ops(again), graph_n_ops(graph));
    *trained = *frozen = 0;
    for (TensorId t = 0; t < graph_n_tensors(graph); t++) {
        const Tensor *tensor = graph_tensor(graph, t);
        if (tensor->role != ROLE_PARAMETER)
            continue;
        *(tensor->frozen ? frozen : trained) += tensor_elements(tensor);
        assert_int_equal(tensor->frozen, graph_gradient(graph, t) == GRAPH_NONE);
        assert_int_equal(tensor->frozen, graph_updated(graph, t) == GRAPH_NONE);
    }
}

/* Adapters: r (in + out) parameters beside each product; layers: theirs alone. Backward goes no
 * further than it has to. */
static void test_training(void **state)
{
    (void)state;
#define LLAMA \
    "llama:layers=2,hidden=64,heads=4,kv_heads=2,ffn=96,seq=8,vocab=100,precision=bf16,"
    uint64_t all, none, trained, frozen;
    count_trained(LLAMA "train=all", &all, &none);
    assert_int_equal(none, 0);
    count_trained(LLAMA "train=lora:8", &trained, &frozen);
    assert_int_equal(frozen, all);
    /* queries, keys and values together, and the output */
    assert_int_equal(trained, 2 * 8 * ((64 + 64) + (64 + 2 * 32) + (64 + 64)));
    count_trained(LLAMA "train=lora:8,target=mlp", &trained, &frozen);
    assert_int_equal(trained, 2 * 8 * ((64 + 2 * 96) + (96 + 64)));
    count_trained(LLAMA "train=lora:8,target=attention.q.+attention.values", &trained,
                  &frozen);
    assert_int_equal(trained, 2 * 8 * ((64 + 64) + (64 + 32)));
    count_trained(LLAMA "train=layers:2", &trained, &frozen);
    assert_int_equal(trained + frozen, all);
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) last = model_build(LLAMA "train=layers:2", 1, NULL, &error);
    assert_no_error(error);
    for (OpId id = 0; id < graph_n_ops(last); id++)
        assert_true(graph_get_op(last, id)->pass == PASS_FORWARD ||
                    graph_get_op(last, id)->layer >= 2);
    g_autoptr(Graph) four =
        model_build(LLAMA "train=lora:8,weights=nf4", 1, NULL, &error);
    assert_no_error(error);
    const TensorId frozen_weights = graph_find(four, "layers.0.attention.q.weight"),
                   adapter = graph_find(four, "layers.0.attention.q.lora_a.weight");
    assert_int_equal(graph_tensor(four, frozen_weights)->dtype, DTYPE_NF4);
    assert_int_equal(graph_tensor(four, adapter)->dtype, DTYPE_F16);
}

static DType dtype_of(const Graph *graph, const char *tensor)
{
    const TensorId id = graph_find(graph, tensor);
    assert_int_not_equal(id, GRAPH_NONE);
    return graph_tensor(graph, id)->dtype;
}

/* Half precision, except for tensors of the loss and for indices. */
static void test_mixed_precision(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    g_autofree char *canonical = NULL;
    g_autoptr(Graph) graph =
        model_build("gpt2:layers=1,precision=mixed-fp32-grads", 1, &canonical, &error);
    assert_no_error(error);
    assert_true(g_str_has_suffix(canonical, ",precision=mixed-fp32-grads"));
    assert_int_equal(dtype_of(graph, "ids"), DTYPE_I64);
    assert_int_equal(dtype_of(graph, "layers.0.ffn.gelu"), DTYPE_F16);
    assert_int_equal(dtype_of(graph, "layers.0.ffn.gelu.grad"), DTYPE_F16);
    assert_int_equal(dtype_of(graph, "layers.0.ffn.up.weight"), DTYPE_F16);
    assert_int_equal(dtype_of(graph, "layers.0.ffn.up.weight.next"), DTYPE_F16);
    assert_int_equal(dtype_of(graph, "layers.0.ffn.up.weight.grad"), DTYPE_F32);
    assert_int_equal(dtype_of(graph, "layers.0.ffn.up.weight.master.next"), DTYPE_F32);
    assert_int_equal(dtype_of(graph, "decoder"), DTYPE_F16);
    assert_int_equal(dtype_of(graph, "decoder.grad"), DTYPE_F16);
    assert_int_equal(dtype_of(graph, "label_logit"), DTYPE_F32);
    assert_int_equal(dtype_of(graph, "sum_exp"), DTYPE_F32);
    assert_int_equal(dtype_of(graph, "log_sum_exp"), DTYPE_F32);
    assert_int_equal(dtype_of(graph, "loss"), DTYPE_F32);
    g_autoptr(Graph) vit = model_build("vit:layers=1,precision=mixed", 1, NULL, &error);
    assert_no_error(error);
    assert_int_equal(dtype_of(vit, "log_softmax"), DTYPE_F32);
    assert_int_equal(dtype_of(vit, "log_softmax.grad"), DTYPE_F32);
}

static void expect_refused(const char *spec, const char *message)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph = model_build(spec, 8, NULL, &error);
    assert_null(graph);
    assert_error(error, KILTER_ERROR_INPUT, message);
}

static void test_refusals(void **state)
{
    (void)state;
    expect_refused("resnet", "unknown model 'resnet'; ");
    expect_refused("vit:depth=3", "unknown parameter 'depth'");
    expect_refused("vit:layers", "expected key=value");
    expect_refused("vit:layers=0", "expected an integer from 1");
    expect_refused("vit:layers=1.5", "expected an integer");
    expect_refused("vit:layers=", "expected an integer");
    expect_refused("vit:dropout=1", "expected a number from 0");
    expect_refused("vit:heads=7", "heads must divide hidden");
    expect_refused("vit:patch=5", "patch must divide image");
    expect_refused("transgan:heads=3", "heads must divide channels");
    expect_refused("vgg19:image=30", "multiple of 32");
    expect_refused("vit:optimizer=tiger",
                   "expected adam, adamw, adam8bit, sgd, adafactor, lion or muon");
    expect_refused(
        "vit:precision=fp4",
        "model 'vit:precision=fp4': precision: expected single, mixed, "
        "mixed-fp32-grads, bf16, fp8, bf16-fp32-grads, fp8-fp32-grads, bf16-pure, "
        "bf16-moments, bf16-fsdp, mxfp8 or nvfp4, got 'fp4'");
    expect_refused("vit:weights=nf4", "weights=nf4: expected train=lora:RANK");
    expect_refused("vit:moments=nf4", "moments: expected fp32");
    expect_refused("vit:weights=none", "expected a master copy");
    expect_refused("vit:train=lora:0",
                   "train: expected all, lora:RANK, layers:FIRST-LAST or");
    expect_refused("vit:train=layers:3-2",
                   "train: expected all, lora:RANK, layers:FIRST-LAST or");
    expect_refused("vit:target=mlp", "target: expected train=lora:RANK");
    expect_refused("llama:layers=1,train=lora:4,target=attention.q.+zz",
                   "'zz' is not part of");
    expect_refused("vit:train=lora:4,target=zz", "a target that is part of the name");
    expect_refused("vit:train=layers:90-91",
                   "expected layers of the model with parameters");
    expect_refused("synthetic:gradient=6B", "multiple of 4 B");
}

/* FLOPs of the ops of experts, and of all others but those that bring tokens there and back. */
static double expert_flops(const char *spec, double *others)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph = model_build(spec, 4, NULL, &error);
    assert_no_error(error);
    double experts = 0;
    *others = 0;
    for (OpId id = 0; id < graph_n_ops(graph); id++) {
        const char *kind = op_kind_name(graph_get_op(graph, id)->kind);
        if (strstr(kind, "route") == NULL)
            *(g_str_has_prefix(kind, "expert") ? &experts : others) +=
                graph_op_flops(graph, id);
    }
    return experts;
}

/* Where routing is uneven all wait for the expert with the most tokens: with capacity_factor the
 * fullest expert's tokens over the mean, the experts' ops take so many times as long, and no other
 * matrix product does. */
static void test_uneven_routing(void **state)
{
    (void)state;
    static const char SPEC[] =
        "mixtral:layers=2,hidden=64,heads=4,kv_heads=2,ffn=128,seq=64,"
        "vocab=256,experts=4,capacity_factor=";
    const double load[] = {1.25, 1.5, 2};
    g_autofree char *even = g_strconcat(SPEC, "1", NULL);
    double others, own;
    const double experts = expert_flops(even, &others);
    assert_true(experts > 0 && others > 0);
    for (uint32_t i = 0; i < G_N_ELEMENTS(load); i++) {
        g_autofree char *spec = g_strdup_printf("%s%g", SPEC, load[i]);
        assert_close(expert_flops(spec, &own), load[i] * experts, 1e-12);
        assert_at_most(own / others - 1, 0.05); /* activations within experts */
    }
}

/* The widest tensors of experts, what their second products make, are kept for no gradient unless
 * a bias is added to them; neither is what the weights multiply. */
static void test_kept_of_experts(void **state)
{
    (void)state;
    static const char *const NAME[] = {"layers.0.moe.down", "layers.0.moe.active"};
    g_autoptr(GError) error = NULL;
    g_autoptr(Graph) graph = model_build(
        "mixtral:layers=1,hidden=64,heads=4,kv_heads=2,ffn=128,seq=64,vocab=256", 4, NULL,
        &error);
    assert_no_error(error);
    for (uint32_t i = 0; i < G_N_ELEMENTS(NAME); i++) {
        const TensorId made = graph_find(graph, NAME[i]);
        assert_true(made != GRAPH_NONE);
        for (OpId id = 0; id < graph_n_ops(graph); id++) {
            const Op *op = graph_get_op(graph, id);
            for (uint32_t k = 0; k < op->n_in; k++)
                assert_true(op->pass == PASS_FORWARD || op->in[k] != made);
        }
    }
}

/* The batch of a shrunk model is 1 + 2 per device, at most 11, rounded up to whole microbatches,
 * and never more than it was. */
static void test_shrunk_batch(void **state)
{
    (void)state;
    static const struct {
        const char *model;
        uint32_t devices, microbatches;
        const char *batch;
    } CASES[] = {{"vit:global_batch=512", 4, 1, "global_batch=9,"},
                 {"vit:global_batch=512", 4, 4, "global_batch=12,"},
                 {"vit:global_batch=512", 8, 5, "global_batch=15,"},
                 {"vit:global_batch=8", 4, 4, "global_batch=8,"}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *canonical = NULL;
        g_autoptr(Graph) graph = model_build(CASES[i].model, 4, &canonical, &error);
        assert_no_error(error);
        assert_non_null(graph);
        g_autofree char *small =
            model_shrink(canonical, CASES[i].devices, CASES[i].microbatches, 0, NULL);
        g_autofree char *ended = g_strconcat(small, ",", NULL);
        if (!strstr(ended, CASES[i].batch))
            fail_msg("%s: expected %s", small, CASES[i].batch);
    }
}

/* Where the parameters of a spec begin; paths and values may have colons. */
static void test_spec_list(void **state)
{
    (void)state;
    static const char *const CASES[][2] = {
        {"vit", ""},
        {"vit:layers=2,hidden=64", "layers=2,hidden=64"},
        {"llama:train=lora:8,batch=2", "train=lora:8,batch=2"},
        {"/a:b/c=d.json:batch=4,train=lora:8", "batch=4,train=lora:8"},
        {"/a:b/c.json", ""},
        {"hf:meta-llama/Llama-3.1-8B:seq=8", "seq=8"},
        {"profile:x.json:=2", "=2"},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASES); i++)
        assert_string_equal(model_spec_list(CASES[i][0]), CASES[i][1]);
    g_autoptr(GError) error = NULL;
    g_autofree char *canonical = NULL;
    g_autoptr(Graph) graph = model_build("llama:train=lora:8", 4, &canonical, &error);
    assert_no_error(error);
    assert_non_null(graph);
    g_autofree char *small = model_shrink(canonical, 2, 1, 0, NULL);
    assert_non_null(strstr(canonical, "hidden=4096"));
    assert_null(strstr(small, "hidden=4096"));
    assert_non_null(strstr(small, "train=lora:8"));
}

/* Only defaults are left out, so that the rest means the same on as many GPUs. */
static void test_brief(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *brief;
    } CASE[] = {
        {"vgg19:batch=64,dropout=0", "vgg19:global_batch=512,dropout=0,precision=single"},
        {"bert-moe", "bert-moe:global_batch=256,experts=16,precision=single"},
        {"llama-3.1-8b:seq=128,global_batch=8,optimizer=sgd,train=lora:8",
         "llama-3.1-8b:global_batch=8,seq=128,optimizer=sgd,precision=bf16,train=lora:"
         "8"}};
    for (uint32_t i = 0; i < G_N_ELEMENTS(CASE); i++) {
        g_autofree char *content = NULL, *same = NULL;
        g_autofree char *whole = model_resolve(CASE[i].spec, 8, &content, NULL);
        g_autofree char *brief = model_brief(whole);
        g_autofree char *again = model_resolve(brief, 8, &same, NULL);
        assert_string_equal(brief, CASE[i].brief);
        assert_string_equal(again, whole);
    }
}

/* Configurations that are called by a name have as many parameters as their model cards say, to the
 * last one (some cards round, and count poolers or experts' biases or not), and a plan has the name
 * in place of a path. */
static void test_configs(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t parameters;
    } PUBLISHED[] = {
        {"baichuan2-13b", 13896668160},
        {"bert-base-uncased", 108891648},
        {"bert-large", 334092288},
        {"bloom-176b", 176247271424},
        {"bloom-3b", 3002557440},
        {"bloom-560m", 559214592},
        {"bloom-7b1", 7069016064},
        {"chatglm3-6b", 6243584000},
        {"codellama-13b", 13016028160},
        {"codellama-34b", 33743970304},
        {"codellama-70b", 68976910336},
        {"codellama-7b", 6738546688},
        {"codestral-22b", 22247282688},
        {"command-a", 111057580032},
        {"command-r", 34980831232},
        {"command-r-plus", 103810674688},
        {"dbrx-132b", 131596523520},
        {"deepseek-coder-33b", 33342991360},
        {"deepseek-coder-6.7b", 6740512768},
        {"deepseek-llm-7b", 6910365696},
        {"deepseek-r1", 671026419200},
        {"deepseek-r1-distill-llama-70b", 70553706496},
        {"deepseek-r1-distill-llama-8b", 8030261248},
        {"deepseek-r1-distill-qwen-1.5b", 1777088000},
        {"deepseek-r1-distill-qwen-14b", 14770033664},
        {"deepseek-r1-distill-qwen-32b", 32763876352},
        {"deepseek-r1-distill-qwen-7b", 7615616512},
        {"deepseek-v2", 235741434880},
        {"deepseek-v2-lite", 15706484224},
        {"deepseek-v3", 671026419200},
        {"deepseek-v3.1", 671026419200},
        {"deepseek-v3.2", 671877944064},
        {"ernie-4.5-21b-a3b", 21825437888},
        {"ernie-4.5-300b-a47b", 299484163264},
        {"exaone-4.0-32b", 32003216384},
        {"falcon-180b", 178557088768},
        {"falcon-40b", 41303293952},
        {"falcon-7b", 6921720704},
        {"gemma-2-27b", 27227128320},
        {"gemma-2-2b", 2614341888},
        {"gemma-2-9b", 9241705984},
        {"gemma-2b", 2506172416},
        {"gemma-3-12b", 11766034176},
        {"gemma-3-1b", 999885952},
        {"gemma-3-27b", 27009346304},
        {"gemma-3-4b", 3880263168},
        {"gemma-7b", 8537680896},
        {"glm-4-9b", 9400279040},
        {"glm-4.5", 352797829024},
        {"glm-4.5-air", 106852251264},
        {"glm-4.6", 352797829024},
        {"gpt-j-6b", 6050882784},
        {"gpt-neox-20b", 20554567680},
        {"gpt-oss-120b", 116829156672},
        {"gpt-oss-20b", 20914757184},
        {"gpt2-large", 774030080},
        {"gpt2-medium", 354823168},
        {"gpt2-small", 124439808},
        {"gpt2-xl", 1557611200},
        {"gpt3-175b", 174604259328},
        {"internlm2-20b", 19861149696},
        {"internlm2-7b", 7737708544},
        {"jamba-v0.1", 51570323328},
        {"kimi-k2", 1026408232448},
        {"llama-13b", 13015864320},
        {"llama-2-13b", 13015864320},
        {"llama-2-70b", 68976648192},
        {"llama-2-7b", 6738415616},
        {"llama-3-70b", 70553706496},
        {"llama-3-8b", 8030261248},
        {"llama-3.1-405b", 405853388800},
        {"llama-3.1-70b", 70553706496},
        {"llama-3.1-8b", 8030261248},
        {"llama-3.1-nemotron-70b", 70553706496},
        {"llama-3.2-1b", 1235814400},
        {"llama-3.2-3b", 3212749824},
        {"llama-3.3-70b", 70553706496},
        {"llama-30b", 32528943616},
        {"llama-4-maverick", 400711848960},
        {"llama-4-scout", 107769861120},
        {"llama-65b", 65285660672},
        {"llama-7b", 6738415616},
        {"mamba-2.8b", 2768345600},
        {"mamba2-2.7b", 2702599680},
        {"minimax-m2", 228689764864},
        {"mistral-7b", 7248023552},
        {"mistral-7b-v0.1", 7241732096},
        {"mistral-large-123b", 122610069504},
        {"mistral-nemo-12b", 12247782400},
        {"mistral-small-24b", 23572403200},
        {"mixtral-8x22b", 140630071296},
        {"mixtral-8x7b", 46702792704},
        {"nemotron-h-56b", 56324350464},
        {"olmo-2-13b", 13716198400},
        {"olmo-2-32b", 32234279936},
        {"olmo-2-7b", 7298617344},
        {"olmoe-1b-7b", 6919161856},
        {"opt-1.3b", 1315758080},
        {"opt-125m", 125239296},
        {"opt-13b", 12853473280},
        {"opt-2.7b", 2651596800},
        {"opt-30b", 29974540288},
        {"opt-6.7b", 6658473984},
        {"opt-66b", 65719701504},
        {"phi-2", 2779683840},
        {"phi-3-medium", 13960238080},
        {"phi-3-mini", 3821079552},
        {"phi-3.5-mini", 3821079552},
        {"phi-3.5-moe", 41873153344},
        {"phi-4", 14659507200},
        {"phi-4-mini", 3836021760},
        {"pythia-1.4b", 1414647808},
        {"pythia-12b", 11846072320},
        {"pythia-6.9b", 6857302016},
        {"qwen1.5-moe-a2.7b", 14315784192},
        {"qwen2-0.5b", 494032768},
        {"qwen2-1.5b", 1543714304},
        {"qwen2-72b", 72706203648},
        {"qwen2-7b", 7615616512},
        {"qwen2.5-0.5b", 494032768},
        {"qwen2.5-1.5b", 1543714304},
        {"qwen2.5-14b", 14770033664},
        {"qwen2.5-32b", 32763876352},
        {"qwen2.5-3b", 3085938688},
        {"qwen2.5-72b", 72706203648},
        {"qwen2.5-7b", 7615616512},
        {"qwen3-0.6b", 596049920},
        {"qwen3-1.7b", 1720574976},
        {"qwen3-14b", 14768307200},
        {"qwen3-235b-a22b", 235093634560},
        {"qwen3-30b-a3b", 30532122624},
        {"qwen3-32b", 32762123264},
        {"qwen3-4b", 4022468096},
        {"qwen3-8b", 8190735360},
        {"qwen3-coder-480b-a35b", 480154875392},
        {"qwen3-next-80b-a3b", 79674391296},
        {"qwq-32b", 32763876352},
        {"roberta-large", 354310144},
        {"seed-oss-36b", 36151104512},
        {"smollm3-3b", 3075098624},
        {"starcoder2-15b", 15957889024},
        {"starcoder2-3b", 3030371328},
        {"starcoder2-7b", 7173923840},
        {"t5-11b", 11307313152},
        {"t5-3b", 2851596288},
        {"t5-large", 737667072},
        {"tinyllama-1.1b", 1100048384},
        {"vit-base-patch16-224", 86567656},
        {"vit-large-patch16-224", 304326632},
        {"yi-1.5-34b", 34388917248},
        {"yi-34b", 34388917248},
        {"yi-6b", 6061035520},
        {"yi-9b", 8829407232},
    };
    g_auto(GStrv) names = model_configs();
    assert_int_equal(g_strv_length(names), G_N_ELEMENTS(PUBLISHED));
    for (uint32_t i = 0; i < G_N_ELEMENTS(PUBLISHED); i++) {
        g_autoptr(GError) error = NULL;
        g_autofree char *canonical = NULL, *content = NULL;
        g_autofree char *upper = g_ascii_strup(PUBLISHED[i].name, -1);
        const bool images = g_str_has_prefix(PUBLISHED[i].name, "vit-");
        g_autofree char *spec = g_strconcat(
            upper, images ? ":global_batch=8" : ":seq=64,global_batch=8", NULL);
        g_autofree char *begins = g_strconcat(PUBLISHED[i].name, ":batch=1,", NULL);
        assert_string_equal(names[i], PUBLISHED[i].name);
        g_autoptr(Graph) graph = model_build(spec, 1, &canonical, &error);
        assert_no_error(error);
        assert_int_equal(graph_parameter_count(graph), PUBLISHED[i].parameters);
        assert_string_equal(graph_name(graph), PUBLISHED[i].name);
        assert_true(g_str_has_prefix(canonical, begins));
        g_autofree char *again = model_resolve(canonical, 4, &content, &error);
        assert_no_error(error);
        assert_string_equal(again, canonical);
        assert_non_null(strstr(content, "_name_or_path"));
    }
    g_auto(GStrv) plain = g_new0(char *, g_strv_length(names) + 1);
    for (uint32_t i = 0; names[i]; i++) {
        plain[i] = model_name_plain(names[i]);
        for (uint32_t k = 0; k < i; k++)
            assert_string_not_equal(plain[k], plain[i]);
    }
    GError *error = NULL;
    assert_null(model_build("llama-3.1-9b", 1, NULL, &error));
    assert_non_null(strstr(error->message, "did you mean 'llama-3.1-8b'"));
    g_clear_error(&error);
    assert_null(model_build("acme/llama-3.1-9b", 1, NULL, &error));
    assert_non_null(strstr(error->message, "; hf:acme/llama-3.1-9b is its config.json"));
    g_error_free(error);
}

/* The ids of hubs and other spellings name the configuration; the model keeps its own name. */
static void test_spellings(void **state)
{
    (void)state;
    static const char *const ROW[][2] = {
        {"meta-llama/Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b"},
        {"Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b"},
        {"mistralai/Mixtral-8x7B-v0.1", "mixtral-8x7b"},
        {"google/gemma-2-9b-it", "gemma-2-9b"},
        {"llama3-8b", "llama-3-8b"},
        {"qwen3_30b_a3b", "qwen3-30b-a3b"},
        {"mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b"},
        {"microsoft/Phi-3-mini-4k-instruct", "phi-3-mini"},
        {"mistralai/Mistral-7B-v0.1", "mistral-7b-v0.1"}, /* another vocabulary */
        {"Qwen/Qwen3-30B-A3B-Instruct-2507", "qwen3-30b-a3b"},
        {"Qwen/Qwen2.5-Coder-32B-Instruct", "qwen2.5-32b"},
        {"deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", "deepseek-r1-distill-qwen-32b"},
        {"facebook/opt-13b", "opt-13b"},
        {"mine/opt-13b", NULL},
        {"./facebook/opt-13b", NULL},
        {"facebook/opt-1.3b", "opt-1.3b"},
        {"vit-base", NULL},
        {"instruct", NULL},
        {"meta-llama/", NULL}};
    for (size_t i = 0; i < G_N_ELEMENTS(ROW); i++) {
        g_autofree char *content = NULL;
        g_autofree char *found = model_resolve(ROW[i][0], 1, &content, NULL);
        g_autofree char *begins = g_strconcat(ROW[i][1] ? ROW[i][1] : "", ":", NULL);
        assert_true(!found == !ROW[i][1]);
        assert_true(!found || g_str_has_prefix(found, begins));
    }
}

/* Attention is fused where today's frameworks fuse it: not where positions bias the scores. */
static void test_fused_families(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        bool fused;
    } ROW[] = {{"gpt2-xl", true},
               {"bert-large", true},
               {"llama-3.1-8b", true},
               {"t5-large", false},
               {"gpt2-xl:attention=materialized", false}};
    for (size_t i = 0; i < G_N_ELEMENTS(ROW); i++) {
        g_autoptr(Graph) graph = model_build(ROW[i].name, 1, NULL, NULL);
        bool fused = false;
        ops_each (op, id, graph)
            fused |= op->kind == OP_FUSED_ATTENTION;
        assert_true(fused == ROW[i].fused);
    }
}

/* The sizes of a small model differ where they can, so that mixed-up dims do not fit. Here
 * of a diffusion transformer's condition, whose table of labels has a row for no label. */
static void test_small_conditions(void **state)
{
    (void)state;
    g_autoptr(GError) error = NULL;
    json_auto_t *config = json_pack(
        "{s:s, s:i, s:i, s:i, s:i, s:i, s:i}", "_class_name", "DiTTransformer2DModel",
        "attention_head_dim", 8, "num_attention_heads", 4, "num_layers", 2, "in_channels",
        4, "sample_size", 8, "num_embeds_ada_norm", 1000);
    Architecture *a = config_read("dit", config, "", &error);
    assert_no_error(error);
    assert_int_equal(a->labels, 1001);
    architecture_shrink(a, 1, 8);
    assert_int_equal(a->labels, 4);
    assert_true(a->labels != a->moments && a->labels != a->patch_numbers &&
                a->labels != a->hidden);
    architecture_clear(a);
    g_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_spec_list),
        cmocka_unit_test(test_fused_families),
        cmocka_unit_test(test_configs),
        cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_brief),
        cmocka_unit_test(test_table_1),
        cmocka_unit_test(test_known_counts),
        cmocka_unit_test(test_own_moments),
        cmocka_unit_test(test_hidup_table_1),
        cmocka_unit_test(test_layers),
        cmocka_unit_test(test_routing_groups),
        cmocka_unit_test(test_uneven_routing),
        cmocka_unit_test(test_kept_of_experts),
        cmocka_unit_test(test_weak_scaling),
        cmocka_unit_test(test_amp_models),
        cmocka_unit_test(test_transgan_windows),
        cmocka_unit_test(test_whole_heads),
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_bytes_per_parameter),
        cmocka_unit_test(test_mixed_precision),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_training),
        cmocka_unit_test(test_shrunk_batch),
        cmocka_unit_test(test_small_conditions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
