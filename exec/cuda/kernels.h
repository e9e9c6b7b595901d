/* Kernels of the CUDA backend: one an op kind, on whole tensors or on shards, of float32 or float64
 * (private to exec).
 *
 * As in exec/kernels/kernels.h a kernel reads the shapes and offsets of its operands and never the
 * devices or the rule. Outputs may hold anything on entry. Every row of the op table has one
 * (kernels.c). */
#ifndef KILTER_EXEC_CUDA_KERNELS_H
#define KILTER_EXEC_CUDA_KERNELS_H

#ifdef __cplusplus
#include <glib.h> /* before extern "C": it has templates */
extern "C" {
#endif

#include "exec/backend.h"
#include "exec/cuda/queue.h"
#include "exec/kernels/kernels.h"

typedef struct {
    CudaQueue *queue;
    const Graph *graph;
    OpId id;
    const Op *op;
    const ExecShard *in, *out;
} CudaCall;

typedef void (*CudaKernel)(const CudaCall *call);

/* The kernel of a kind; NULL if it has none. */
CudaKernel cuda_kernel_of(OpKind kind);

/* contract.cu: sums of products over the op's loops, as matrix products of cuBLAS where there are
 * two factors. */
void cuda_contract(const CudaCall *call);

/* pointwise.cu */
void cuda_gelu(const CudaCall *call);
void cuda_gelu_dx(const CudaCall *call);
void cuda_relu(const CudaCall *call);
void cuda_relu_dx(const CudaCall *call);
void cuda_dropout(const CudaCall *call);
void cuda_add(const CudaCall *call);
void cuda_copy(const CudaCall *call);
void cuda_adam(const CudaCall *call);
void cuda_adam_master(const CudaCall *call);
void cuda_sgd(const CudaCall *call);
void cuda_sgd_master(const CudaCall *call);

/* norm.cu */
void cuda_layer_norm(const CudaCall *call);
void cuda_layer_norm_dx(const CudaCall *call);
void cuda_layer_norm_dw(const CudaCall *call);
void cuda_log_softmax(const CudaCall *call);
void cuda_log_softmax_dx(const CudaCall *call);

/* lookup.cu: integers in a vocabulary that may be a shard, and the class token, row 0 of a
 * sequence. */
void cuda_embedding(const CudaCall *call);
void cuda_embedding_dw(const CudaCall *call);
void cuda_nll_sum(const CudaCall *call);
void cuda_nll_sum_dx(const CudaCall *call);
void cuda_label_logit(const CudaCall *call);
void cuda_sum_exp(const CudaCall *call);
void cuda_log_sum_exp(const CudaCall *call);
void cuda_cross_entropy(const CudaCall *call);
void cuda_cross_entropy_dx(const CudaCall *call);
void cuda_append_token(const CudaCall *call);
void cuda_drop_token(const CudaCall *call);
void cuda_sum_token(const CudaCall *call);
void cuda_take_token(const CudaCall *call);
void cuda_pad_token(const CudaCall *call);

/* attention.cu */
void cuda_attention(const CudaCall *call);
void cuda_attention_dx(const CudaCall *call);

/* gate.cu */
void cuda_gate_top1(const CudaCall *call);
void cuda_gate_top1_dx(const CudaCall *call);
void cuda_gate_top2(const CudaCall *call);
void cuda_gate_top2_dx(const CudaCall *call);

/* spatial.cu */
void cuda_conv2d(const CudaCall *call);
void cuda_conv2d_dx(const CudaCall *call);
void cuda_conv2d_dw(const CudaCall *call);
void cuda_max_pool2d(const CudaCall *call);
void cuda_max_pool2d_dx(const CudaCall *call);
void cuda_avg_pool2d(const CudaCall *call);
void cuda_avg_pool2d_dx(const CudaCall *call);

/* rms_norm.cu */
void cuda_rms_norm(const CudaCall *call);
void cuda_rms_norm_dx(const CudaCall *call);
void cuda_rms_norm_dw(const CudaCall *call);
void cuda_key_norm_dw(const CudaCall *call);

/* gated.cu */
void cuda_silu(const CudaCall *call);
void cuda_silu_dx(const CudaCall *call);
void cuda_swiglu(const CudaCall *call);
void cuda_swiglu_dx(const CudaCall *call);
void cuda_geglu(const CudaCall *call);
void cuda_geglu_dx(const CudaCall *call);
void cuda_rotary(const CudaCall *call);
void cuda_rotary_dx(const CudaCall *call);
void cuda_join_keys(const CudaCall *call);
void cuda_join_keys_dx(const CudaCall *call);
void cuda_join_keys_dr(const CudaCall *call);

/* grouped_attention.cu */
void cuda_grouped_attention(const CudaCall *call);
void cuda_grouped_attention_dx(const CudaCall *call);
void cuda_fused_attention(const CudaCall *call);
void cuda_fused_attention_dx(const CudaCall *call);
void cuda_attention_sink_dw(const CudaCall *call);

/* route.cu */
void cuda_gate_topk(const CudaCall *call);
void cuda_gate_topk_dx(const CudaCall *call);
void cuda_route(const CudaCall *call);
void cuda_route_dx(const CudaCall *call);
void cuda_unroute(const CudaCall *call);
void cuda_unroute_dx(const CudaCall *call);
void cuda_unroute_dw(const CudaCall *call);
void cuda_expert_bias(const CudaCall *call);

/* boxes.cu: what both shards cover of the whole tensor, copied or added; both lie on the queue's
 * GPU. */
void cuda_copy_overlap(CudaQueue *queue, const ExecShard *from, const ExecShard *to);
void cuda_add_overlap(CudaQueue *queue, const ExecShard *from, const ExecShard *to);

#ifdef __cplusplus
}
#endif
#endif
