/* Kernels of the reference backend: one an op kind, in float64, on whole tensors or on
 * shards.
 *
 * A kernel reads the shapes and offsets of its operands and never the devices or the
 * rule: what it computes on shards is the op restricted to those index ranges. Outputs
 * are zero on entry. Operands are row-major in the order of the kind's signature
 * (data/graph/op.h). */
#ifndef KILTER_EXEC_KERNELS_KERNELS_H
#define KILTER_EXEC_KERNELS_KERNELS_H

#include "exec/tensor.h"

/* One call: `in` has op->n_in operands, `out` op->n_out. */
typedef struct {
    const Graph *graph;
    OpId id;
    const Op *op;
    const ExecTensor *in;
    ExecTensor *out;
} KernelCall;

typedef void (*Kernel)(const KernelCall *call);

/* The kernel of a kind; NULL if it has none. */
Kernel kernel_of(OpKind kind);

/* Added to the variance in layer norm (torch.nn.LayerNorm's default). */
#define LAYER_NORM_EPSILON 1e-5

/* Added to the mean square in RMS norm (the families' configurations have 1e-5 or 1e-6). */
#define RMS_NORM_EPSILON 1e-6

/* Hyperparameters of the updates: the defaults of Adam (Kingma and Ba 2015, Algorithm
 * 1), at its first step; SGD uses the same rate. */
#define LEARNING_RATE 1e-3
#define ADAM_BETA1    0.9
#define ADAM_BETA2    0.999
#define ADAM_EPSILON  1e-8
#define ADAM_STEP     1

/* kernels_contract.c: sums of products over the op's loops, all from its signature. */
void kernel_contract(const KernelCall *call);

/* kernels_pointwise.c */
void kernel_gelu(const KernelCall *call);
void kernel_gelu_dx(const KernelCall *call);
void kernel_relu(const KernelCall *call);
void kernel_relu_dx(const KernelCall *call);
void kernel_dropout(const KernelCall *call);
void kernel_add(const KernelCall *call);
void kernel_copy(const KernelCall *call);

/* kernels_token.c: the class token, row 0 of a sequence. */
void kernel_append_token(const KernelCall *call);
void kernel_drop_token(const KernelCall *call);
void kernel_sum_token(const KernelCall *call);
void kernel_take_token(const KernelCall *call);
void kernel_pad_token(const KernelCall *call);

/* kernels_norm.c */
void kernel_layer_norm(const KernelCall *call);
void kernel_layer_norm_dx(const KernelCall *call);
void kernel_layer_norm_dw(const KernelCall *call);
void kernel_log_softmax(const KernelCall *call);
void kernel_log_softmax_dx(const KernelCall *call);

/* kernels_vocabulary.c: ops that look up an integer in a dimension that may be a
 * shard. */
void kernel_embedding(const KernelCall *call);
void kernel_embedding_dw(const KernelCall *call);
void kernel_nll_sum(const KernelCall *call);
void kernel_nll_sum_dx(const KernelCall *call);
void kernel_label_logit(const KernelCall *call);
void kernel_sum_exp(const KernelCall *call);
void kernel_log_sum_exp(const KernelCall *call);
void kernel_cross_entropy(const KernelCall *call);
void kernel_cross_entropy_dx(const KernelCall *call);

/* kernels_attention.c */
void kernel_attention(const KernelCall *call);
void kernel_attention_dx(const KernelCall *call);

/* kernels_gate.c */
void kernel_gate_top1(const KernelCall *call);
void kernel_gate_top1_dx(const KernelCall *call);
void kernel_gate_top2(const KernelCall *call);
void kernel_gate_top2_dx(const KernelCall *call);

/* kernels_spatial.c */
void kernel_conv2d(const KernelCall *call);
void kernel_conv2d_dx(const KernelCall *call);
void kernel_conv2d_dw(const KernelCall *call);
void kernel_max_pool2d(const KernelCall *call);
void kernel_max_pool2d_dx(const KernelCall *call);
void kernel_avg_pool2d(const KernelCall *call);
void kernel_avg_pool2d_dx(const KernelCall *call);

/* rms_norm.c */
void kernel_rms_norm(const KernelCall *call);
void kernel_rms_norm_dx(const KernelCall *call);
void kernel_rms_norm_dw(const KernelCall *call);
void kernel_key_norm_dw(const KernelCall *call);

/* gated.c */
void kernel_silu(const KernelCall *call);
void kernel_silu_dx(const KernelCall *call);
void kernel_swiglu(const KernelCall *call);
void kernel_swiglu_dx(const KernelCall *call);
void kernel_geglu(const KernelCall *call);
void kernel_geglu_dx(const KernelCall *call);
void kernel_rotary(const KernelCall *call);
void kernel_rotary_dx(const KernelCall *call);
void kernel_join_keys(const KernelCall *call);
void kernel_join_keys_dx(const KernelCall *call);
void kernel_join_keys_dr(const KernelCall *call);

/* grouped_attention.c */
void kernel_grouped_attention(const KernelCall *call);
void kernel_grouped_attention_dx(const KernelCall *call);
void kernel_fused_attention(const KernelCall *call);
void kernel_fused_attention_dx(const KernelCall *call);
void kernel_attention_sink_dw(const KernelCall *call);

/* route.c */
void kernel_gate_topk(const KernelCall *call);
void kernel_gate_topk_dx(const KernelCall *call);
void kernel_route(const KernelCall *call);
void kernel_route_dx(const KernelCall *call);
void kernel_unroute(const KernelCall *call);
void kernel_unroute_dx(const KernelCall *call);
void kernel_unroute_dw(const KernelCall *call);
void kernel_expert_bias(const KernelCall *call);

/* kernels_update.c */
void kernel_adam(const KernelCall *call);
void kernel_adam_master(const KernelCall *call);
void kernel_sgd(const KernelCall *call);
void kernel_sgd_master(const KernelCall *call);

#endif
