/* The op table: each op kind described once, by its iteration space.
 *
 * A row of OP_TABLE gives a signature in the manner of einsum, `inputs->outputs`, one letter per
 * tensor dimension:
 *
 *     a lower-case letter   a loop that can be sharded over devices
 *     an upper-case letter  a whole dimension: it has an extent but is never sharded
 *     *                     any number of further loops, one per dimension (batch, sequence, ...);
 *                           its rank is what the first operand with a * has left over
 *     + before an operand   an added operand (a bias): it takes partial sums whenever the output does
 *     ? after a +operand    the operand may be left out
 *
 * A loop that is missing from an output is summed over: sharding it leaves that output as partial
 * sums. The sharding rules (op_rules, data/graph/rule.h), the shapes and, with the flops column,
 * the work follow from the signature.
 *
 * The `linear` column lists groups of inputs (positions, groups separated by |) in which the op is
 * jointly linear: all inputs of one group may be partial sums, all others replicated, and the
 * outputs are partial sums. "-" means none.
 *
 * The `flops` column is a sum of terms `coefficient letters`: true floating-point operations of the
 * whole op (a multiply-add counts 2), coefficient times the product of the letters' extents, *
 * being all of its loops. Sharding a loop divides exactly the terms that name it. In a kind with an
 * optional operand the last term counts that operand's additions, and is dropped if the operand is
 * left out.
 *
 * Cross entropy of logits x [*,v] that are sharded over the vocabulary, after Megatron-LM (Shoeybi
 * et al. 2019, Sec. 3): the devices add up two numbers per token and do not gather its logits.
 *
 *     t = x[label]                 label_logit     0 where another shard has the label
 *     s = sum_v exp(x[v] - t)      sum_exp
 *     z = t + log s                log_sum_exp
 *     loss = sum (z - x[label])    cross_entropy   each shard adds its own labels
 *
 * The label's logit, which all shards know after it is added up, takes the place of the largest
 * logit: s is at least 1, and overflows only where the loss of a token exceeds 88 (float32; 709 in
 * float64), far above the logarithm of any vocabulary. label_logit is linear in x, but its rule for
 * partial sums would pad logits to whole rows, which is never useful. The first three have no
 * gradients of their own: the gradient of the loss with respect to x, exp(x - z) - [v = label], is
 * cross_entropy_dx.
 *
 * The `kernel` column names the kind's kernels: kernel_NAME in exec/kernels, cuda_NAME in
 * exec/cuda. Sums of products are `contract`, which works from the signature.
 *
 * To add an op: add its row here, its gradient in data/graph/autodiff.c, and its kernels, if it is
 * no sum of products, in a file of exec/kernels and one of exec/cuda; the conformance test then
 * runs every rule that follows from the row. */
#pragma once

#include "data/base/assert.h"

#include <stdbool.h>
#include <stdint.h>

/*    id                    kernel                name               signature                              linear  flops
 * Attention: Q and K are query and key positions, T the three of q, k, v, h heads, D head size; its
 * second output are the softmax probabilities (before dropout, which the FLOPs leave out), saved
 * for the backward. Reshape: a sample becomes several, or several one. MoE (GShard): b groups
 * (sequences), s tokens, e experts, c capacity slots, d model width. Updates: parameter, gradient,
 * optimizer states; *_MASTER: the last state is the float32 copy that is updated, and the parameter
 * is that one, rounded; adafactor keeps the means of squared gradients by row and by column of each
 * matrix of the last two dims, which it has to see whole (Shazeer and Stern 2018); muon makes the
 * singular values of each such matrix nearly equal, by five steps of Newton and Schulz on the
 * smaller of its two squares (Jordan et al. 2024; tall: on that of its columns). Pooling and
 * convolution: H, W in; P, Q out; R, S the kernel.
 *
 * Attention of several queries to one key (GQA, Ainslie et al. 2023): h heads of keys and values, g
 * queries to each, D elements of a key, V of a value; keys and values lie in one vector of E = D +
 * V. `fused` keeps one number per query, the logarithm of its sum of exponentials, and computes the
 * probabilities anew in the backward (Dao et al. 2022); hg are sinks, logits without a value.
 * key_norm and rotary change the first or some of the elements and pass on the others; join_keys
 * puts R elements that all heads share between the keys' and the values' (MLA, DeepSeek-AI 2024).
 * Pairs: T = 2, the gate and what it multiplies. Batch norm: the moments (sums of x and of its
 * squares, T = 2) are those of the whole batch, also where devices have parts of it: what
 * frameworks call synchronised. Groups of channels: g of c in and o out each. concat puts channels
 * A before B. smooth_nll_sum: the part `scale` of a label's weight lies on all labels evenly
 * (Szegedy et al. 2016). `tied` is a parameter as what several ops read, so that it has one
 * consumer itself. Routing without a mask: a weight for each token and expert, 0 for those not
 * chosen; expert e gives out its C slots to the tokens that chose it, in their order, and those
 * beyond get none. route_weigh multiplies a slot by its token's weight, and unroute sums up a
 * token's slots. gate: y = x f(g), f the sigmoid or (without `sigmoid`) x sigmoid(x), with one g
 * for each element or one for all V. short_conv: channel * of a token from those of the last R
 * tokens. scan keeps a matrix S of D x V for each head and sums up keys and values, which share one
 * vector E = 2D with the queries: S = a S + b k v^T, y = S^T q (Mamba-2: Dao and Gu 2024, with a of
 * each head; lightning attention with fixed a); delta_scan first takes away what S has for k, S =
 * (I - b k k^T) a S + b k v^T, with q and k of length 1 (Yang et al. 2024; Kimi Linear 2025, with a
 * of each element of k). FLOPs are those of the recurrence. The gates are G = B + 1 numbers of a
 * head: B logarithms of a, -exp(A) softplus(x + bias), and b, the sigmoid of one more number or
 * (Mamba-2) the same softplus. group_norm is an RMS norm of each group * by weights of its own;
 * squares and norm_by are one of all heads, each of whose devices has a part of the squares
 * (`span`: their number). join puts A elements before B. top_keys: the T keys with the largest sum
 * over H of w relu(q k), -1 where a causal query has fewer; sparse_attention sees only these
 * (DeepSeek-AI 2025). selective_scan has a decay for each channel g and element of k, a =
 * exp(-exp(A) c), and the factor c = softplus(step) (Mamba: Gu and Dao 2023, Alg. 2); wkv reads a
 * state before its token's part, which bonus adds, y = (q . u k) v, and a = exp(-exp(w)) (RWKV-6:
 * Peng et al. 2024, Eq. 19); delta_wkv takes away what the state has for a further key, S = (a - n
 * f(c) n^T) S + k v^T, |n| = 1, log a = -exp(-1/2) f(w), f the sigmoid (RWKV-7: Peng et al. 2025,
 * Eq. 16). token_shift: the difference between the last token and this one. relative_attention adds
 * to scores what queries have for the R distances' keys, and keys for their queries (DeBERTa: He et
 * al. 2021, Eq. 4); C = 1. A scale, bias of each channel, or of each sample's channel (adaLN:
 * Peebles and Xie 2023). The gradient of a choice is 0, and is made as such; its FLOPs are those of
 * the loss of its own that trains an indexer instead (a divergence over the chosen keys). Opaque
 * ops: nobody wrote down what they compute, only how long they take (graph_set_times). Each reads
 * A, C, ... numbers of a sample, and P weights that all samples share, makes O numbers of it and
 * keeps S for its backward; the kernels stand in for them (exec/kernels/opaque.c). Whole ones are
 * not split among devices. */
/* clang-format off */
#define OP_TABLE(X)                                                                                                                                        \
    X(LINEAR,               contract,             "linear",          "*k,nk,+n?->*n",                       "0|1",  "2*nk + 1*n")                          \
    X(LINEAR_DX,            contract,             "linear_dx",       "*n,nk->*k",                           "0|1",  "2*nk")                                \
    X(LINEAR_DW,            contract,             "linear_dw",       "*n,*k->nk",                           "0|1",  "2*nk")                                \
    X(BIAS_GRAD,            contract,             "bias_grad",       "*n->n",                               "0",    "1*n")                                 \
    X(EMBEDDING,            embedding,            "embedding",       "*,vh->*h",                            "1",    "0")                                   \
    X(EMBEDDING_DW,         embedding_dw,         "embedding_dw",    "*h,*->vh",                            "0",    "1*h")                                 \
    X(LAYER_NORM,           layer_norm,           "layer_norm",      "*H,H,H->*H",                          "-",    "8*H")                                 \
    X(LAYER_NORM_DX,        layer_norm_dx,        "layer_norm_dx",   "*H,*H,H->*H",                         "0",    "15*H")                                \
    X(LAYER_NORM_DW,        layer_norm_dw,        "layer_norm_dw",   "*h,*W->h,h",                          "0",    "6*h")                                 \
    X(GELU,                 gelu,                 "gelu",            "*->*",                                "-",    "8*")                                  \
    X(GELU_DX,              gelu_dx,              "gelu_dx",         "*,*->*",                              "0",    "12*")                                 \
    X(RELU,                 relu,                 "relu",            "*->*",                                "-",    "1*")                                  \
    X(RELU_DX,              relu_dx,              "relu_dx",         "*,*->*",                              "0",    "1*")                                  \
    X(DROPOUT,              dropout,              "dropout",         "*->*",                                "0",    "2*")                                  \
    X(ADD,                  add,                  "add",             "*,*->*",                              "01",   "1*")                                  \
    X(ADD_ROWS,             add,                  "add_rows",        "b*,*->b*",                            "01",   "1b*")                                 \
    X(SUM_ROWS,             contract,             "sum_rows",        "b*->*",                               "0",    "1b*")                                 \
    X(SPLIT,                copy,                 "split",           "*n->*nD",                             "0",    "0")                                   \
    X(MERGE,                copy,                 "merge",           "*nD->*n",                             "0",    "0")                                   \
    X(TRANSPOSE,            contract,             "transpose",       "*ab->*ba",                            "0",    "0")                                   \
    X(RESHAPE,              copy,                 "reshape",         "bSH->bTD",                            "0",    "0")                                   \
    X(QKV,                  contract,             "qkv",             "bsk,ThDk,+ThD?->bsThD",               "0|1",  "2bsThDk + 1bsThD")                    \
    X(QKV_DX,               contract,             "qkv_dx",          "bsThD,ThDk->bsk",                     "0|1",  "2bsThDk")                             \
    X(QKV_DW,               contract,             "qkv_dw",          "bsThD,bsk->ThDk",                     "0|1",  "2bsThDk")                             \
    X(QKV_DB,               contract,             "qkv_db",          "bsThD->ThD",                          "0",    "1bsThD")                              \
    X(ATTENTION,            attention,            "attention",       "bQThD->bQhD,bhQK",                    "-",    "4bhQKD + 5bhQK")                      \
    X(ATTENTION_DX,         attention_dx,         "attention_dx",    "bQhD,bQThD,bhQK->bQThD",              "0",    "8bhQKD + 5bhQK")                      \
    X(OUT_PROJ,             contract,             "out_proj",        "bshD,nhD,+n?->bsn",                   "0|1",  "2bshDn + 1bsn")                       \
    X(OUT_PROJ_DX,          contract,             "out_proj_dx",     "bsn,nhD->bshD",                       "0|1",  "2bshDn")                              \
    X(OUT_PROJ_DW,          contract,             "out_proj_dw",     "bsn,bshD->nhD",                       "0|1",  "2bshDn")                              \
    X(CONV2D,               conv2d,               "conv2d",          "ncHW,ocRS,+o?->noPQ",                 "0|1",  "2ncoRSPQ + 1noPQ")                    \
    X(CONV2D_DX,            conv2d_dx,            "conv2d_dx",       "noPQ,ocRS->ncHW",                     "0|1",  "2ncoRSPQ")                            \
    X(CONV2D_DW,            conv2d_dw,            "conv2d_dw",       "noPQ,ncHW->ocRS",                     "0|1",  "2ncoRSPQ")                            \
    X(CHANNEL_SUM,          contract,             "channel_sum",     "noPQ->o",                             "0",    "1noPQ")                               \
    X(MAX_POOL2D,           max_pool2d,           "max_pool2d",      "ncHW->ncPQ",                          "-",    "1ncHW")                               \
    X(MAX_POOL2D_DX,        max_pool2d_dx,        "max_pool2d_dx",   "ncPQ,ncHW->ncHW",                     "0",    "1ncHW")                               \
    X(AVG_POOL2D,           avg_pool2d,           "avg_pool2d",      "ncHW->ncPQ",                          "0",    "1ncHW")                               \
    X(AVG_POOL2D_DX,        avg_pool2d_dx,        "avg_pool2d_dx",   "ncPQ->ncHW",                          "0",    "1ncHW")                               \
    X(APPEND_TOKEN,         append_token,         "append_token",    "bSh,h->bTh",                          "01",   "0")                                   \
    X(DROP_TOKEN,           drop_token,           "drop_token",      "bTh->bSh",                            "0",    "0")                                   \
    X(SUM_TOKEN,            sum_token,            "sum_token",       "bTh->h",                              "0",    "1bh")                                 \
    X(TAKE_TOKEN,           take_token,           "take_token",      "bTh->bh",                             "0",    "0")                                   \
    X(PAD_TOKEN,            pad_token,            "pad_token",       "bh->bTh",                             "0",    "0")                                   \
    X(GATE_TOP1,            gate_top1,            "gate_top1",       "bSE->bSEC,bSEC",                      "-",    "7bSE")                                \
    X(GATE_TOP1_DX,         gate_top1_dx,         "gate_top1_dx",    "bSEC,bSE->bSE",                       "0",    "8bSE")                                \
    X(GATE_TOP2,            gate_top2,            "gate_top2",       "bSE->bSEC,bSEC",                      "-",    "8bSE")                                \
    X(GATE_TOP2_DX,         gate_top2_dx,         "gate_top2_dx",    "bSEC,bSE->bSE",                       "0",    "12bSE")                               \
    X(MOE_DISPATCH,         contract,             "moe_dispatch",    "bsec,bsd->becd",                      "0|1",  "2bsecd")                              \
    X(MOE_COMBINE,          contract,             "moe_combine",     "becd,bsec->bsd",                      "0|1",  "2bsecd")                              \
    X(MOE_COMBINE_DW,       contract,             "moe_combine_dw",  "bsd,becd->bsec",                      "0|1",  "2bsecd")                              \
    X(EXPERT,               contract,             "expert",          "beck,ekn->becn",                      "0|1",  "2beckn")                              \
    X(EXPERT_DX,            contract,             "expert_dx",       "becn,ekn->beck",                      "0|1",  "2beckn")                              \
    X(EXPERT_DW,            contract,             "expert_dw",       "becn,beck->ekn",                      "0|1",  "2beckn")                              \
    X(TIED,                 copy,                 "tied",            "*->*",                                "0",    "0")                                    \
    X(TIED_DX,              copy,                 "tied_dx",         "*->*",                                "0",    "0")                                    \
    X(RMS_NORM,             rms_norm,             "rms_norm",        "*H,H->*H",                            "-",    "4*H")                                 \
    X(RMS_NORM_DX,          rms_norm_dx,          "rms_norm_dx",     "*H,*H,H->*H",                         "0",    "8*H")                                 \
    X(RMS_NORM_DW,          rms_norm_dw,          "rms_norm_dw",     "*h,*W->h",                            "0",    "5*h")                                 \
    X(KEY_NORM,             rms_norm,             "key_norm",        "*E,D->*E",                            "-",    "4*D")                                 \
    X(KEY_NORM_DX,          rms_norm_dx,          "key_norm_dx",     "*E,*E,D->*E",                         "0",    "8*D")                                 \
    X(KEY_NORM_DW,          key_norm_dw,          "key_norm_dw",     "*E,*E->D",                            "0",    "5*D")                                 \
    X(SILU,                 silu,                 "silu",            "*->*",                                "-",    "5*")                                  \
    X(SILU_DX,              silu_dx,              "silu_dx",         "*,*->*",                              "0",    "8*")                                  \
    X(LINEAR_PAIR,          contract,             "linear_pair",     "*k,Tnk,+Tn?->*Tn",                    "0|1",  "2*Tnk + 1*Tn")                        \
    X(LINEAR_PAIR_DX,       contract,             "linear_pair_dx",  "*Tn,Tnk->*k",                         "0|1",  "2*Tnk")                               \
    X(LINEAR_PAIR_DW,       contract,             "linear_pair_dw",  "*Tn,*k->Tnk",                         "0|1",  "2*Tnk")                               \
    X(LINEAR_PAIR_DB,       contract,             "linear_pair_db",  "*Tn->Tn",                             "0",    "1*Tn")                                \
    X(SWIGLU,               swiglu,               "swiglu",          "*Tn->*n",                             "-",    "6*n")                                 \
    X(SWIGLU_DX,            swiglu_dx,            "swiglu_dx",       "*n,*Tn->*Tn",                         "0",    "12*n")                                \
    X(GEGLU,                geglu,                "geglu",           "*Tn->*n",                             "-",    "9*n")                                 \
    X(GEGLU_DX,             geglu_dx,             "geglu_dx",        "*n,*Tn->*Tn",                         "0",    "16*n")                                \
    X(ROTARY,               rotary,               "rotary",          "bs*D->bs*D",                          "0",    "3bs*D")                               \
    X(ROTARY_DX,            rotary_dx,            "rotary_dx",       "bs*D->bs*D",                          "0",    "3bs*D")                               \
    X(Q_PROJ,               contract,             "q_proj",          "bsk,hgDk,+hgD?->bshgD",               "0|1",  "2bshgDk + 1bshgD")                    \
    X(Q_PROJ_DX,            contract,             "q_proj_dx",       "bshgD,hgDk->bsk",                     "0|1",  "2bshgDk")                             \
    X(Q_PROJ_DW,            contract,             "q_proj_dw",       "bshgD,bsk->hgDk",                     "0|1",  "2bshgDk")                             \
    X(Q_PROJ_DB,            contract,             "q_proj_db",       "bshgD->hgD",                          "0",    "1bshgD")                              \
    X(KV_PROJ,              contract,             "kv_proj",         "bsk,hEk,+hE?->bshE",                  "0|1",  "2bshEk + 1bshE")                      \
    X(KV_PROJ_DX,           contract,             "kv_proj_dx",      "bshE,hEk->bsk",                       "0|1",  "2bshEk")                              \
    X(KV_PROJ_DW,           contract,             "kv_proj_dw",      "bshE,bsk->hEk",                       "0|1",  "2bshEk")                              \
    X(KV_PROJ_DB,           contract,             "kv_proj_db",      "bshE->hE",                            "0",    "1bshE")                               \
    X(JOIN_KEYS,            join_keys,            "join_keys",       "bshD,bsR->bshE",                      "01",   "0")                                   \
    X(JOIN_KEYS_DX,         join_keys_dx,         "join_keys_dx",    "bshE->bshD",                          "0",    "0")                                   \
    X(JOIN_KEYS_DR,         join_keys_dr,         "join_keys_dr",    "bshE->bsR",                           "0",    "1bshR")                               \
    X(GROUPED_ATTENTION,    grouped_attention,    "grouped_attention", "bQhgD,bKhE->bQhgV,bhgQK",          "-",    "2bhgQKD + 2bhgQKV + 5bhgQK")           \
    X(GROUPED_ATTENTION_DX, grouped_attention_dx, "grouped_attention_dx", "bQhgV,bQhgD,bKhE,bhgQK->bQhgD,bKhE", "0", "4bhgQKD + 4bhgQKV + 5bhgQK")         \
    X(FUSED_ATTENTION,      fused_attention,      "fused_attention", "bQhgD,bKhE,+hg?->bQhgV,bhgQ",         "-",    "2bhgQKD + 2bhgQKV + 5bhgQK + 1bhgQ")  \
    X(FUSED_ATTENTION_DX,   fused_attention_dx,   "fused_attention_dx", "bQhgV,bQhgD,bKhE,bhgQ->bQhgD,bKhE", "0", "6bhgQKD + 4bhgQKV + 8bhgQK")            \
    X(ATTENTION_SINK_DW,    attention_sink_dw,    "attention_sink_dw", "bQhgV,bQhgV,hg,bhgQ->hg",          "0|1",  "2bhgQV + 4bhgQ")                       \
    X(GROUPED_OUT,          contract,             "grouped_out",     "bshgD,nhgD,+n?->bsn",                 "0|1",  "2bshgDn + 1bsn")                      \
    X(GROUPED_OUT_DX,       contract,             "grouped_out_dx",  "bsn,nhgD->bshgD",                     "0|1",  "2bshgDn")                             \
    X(GROUPED_OUT_DW,       contract,             "grouped_out_dw",  "bsn,bshgD->nhgD",                     "0|1",  "2bshgDn")                             \
    X(GATE_TOPK,            gate_topk,            "gate_topk",       "*E->*E",                              "-",    "8*E")                                 \
    X(GATE_TOPK_DX,         gate_topk_dx,         "gate_topk_dx",    "*E,*E->*E",                           "0",    "10*E")                                \
    X(ROUTE,                route,                "route",           "bSe,bSd->beCd",                       "1",    "0")                                   \
    X(UNROUTE,                unroute,              "unroute",         "beCd,bSe->bSd",                       "0",    "1beCd")                             \
    X(ROUTE_WEIGH,            route_weigh,          "route_weigh",     "beCd,bSe->beCd",                      "0",    "1beCd")                             \
    X(ROUTE_WEIGH_DW,         route_weigh_dw,       "route_weigh_dw",  "beCd,beCd,bSe->bSe",                  "0|1",  "2beCd")                             \
    X(EXPERT_PAIR,          contract,             "expert_pair",     "beck,eTkn->becTn",                    "0|1",  "2beckTn")                             \
    X(EXPERT_PAIR_DX,       contract,             "expert_pair_dx",  "becTn,eTkn->beck",                    "0|1",  "2beckTn")                             \
    X(EXPERT_PAIR_DW,       contract,             "expert_pair_dw",  "becTn,beck->eTkn",                    "0|1",  "2beckTn")                             \
    X(EXPERT_BIAS,          expert_bias,          "expert_bias",     "bec*,e*->bec*",                       "01",   "1bec*")                               \
    X(EXPERT_BIAS_DB,       contract,             "expert_bias_db",  "bec*->e*",                            "0",    "1bec*")                               \
    X(MOMENTS,              moments,              "moments",         "noPQ->To",                            "-",    "3noPQ")                                \
    X(MOMENTS_DX,           moments_dx,           "moments_dx",      "To,noPQ->noPQ",                       "0",    "3noPQ")                                \
    X(BATCH_NORM,           batch_norm,           "batch_norm",      "noPQ,To,o,o->noPQ",                   "-",    "4noPQ")                                \
    X(BATCH_NORM_DX,        batch_norm_dx,        "batch_norm_dx",   "noPQ,To,o->noPQ",                     "0",    "2noPQ")                                \
    X(BATCH_NORM_DM,        batch_norm_dm,        "batch_norm_dm",   "noPQ,noPQ,To,o->To",                  "0",    "4noPQ")                                \
    X(BATCH_NORM_DW,        batch_norm_dw,        "batch_norm_dw",   "noPQ,noPQ,To->o,o",                   "0",    "5noPQ")                                \
    X(CONCAT,               concat,               "concat",          "nA*,nB*->nC*",                        "01",   "0")                                    \
    X(CONCAT_PART,          concat_part,          "concat_part",     "nC*->nA*",                            "0",    "0")                                    \
    X(SPLIT_CHANNELS,       copy,                 "split_channels",  "nc*->ncD*",                           "0",    "0")                                    \
    X(MERGE_CHANNELS,       copy,                 "merge_channels",  "ncD*->nc*",                           "0",    "0")                                    \
    X(GROUP_CONV2D,         conv2d,               "group_conv2d",    "ngcHW,gocRS,+go?->ngoPQ",             "0|1",  "2ngcoRSPQ + 1ngoPQ")                   \
    X(GROUP_CONV2D_DX,      conv2d_dx,            "group_conv2d_dx", "ngoPQ,gocRS->ngcHW",                  "0|1",  "2ngcoRSPQ")                            \
    X(GROUP_CONV2D_DW,      conv2d_dw,            "group_conv2d_dw", "ngoPQ,ngcHW->gocRS",                  "0|1",  "2ngcoRSPQ")                            \
    X(GROUP_CHANNEL_SUM,    contract,             "group_channel_sum", "ngoPQ->go",                          "0",    "1ngoPQ")                             \
    X(SIGMOID_LOSS,         sigmoid_loss,         "sigmoid_loss",    "*,*->",                               "-",    "6*")                                   \
    X(SIGMOID_LOSS_DX,      sigmoid_loss_dx,      "sigmoid_loss_dx", ",*,*->*",                             "0",    "6*")                                   \
    X(SMOOTH_NLL_SUM,       smooth_nll_sum,       "smooth_nll_sum",  "*v,*->",                              "0",    "2*v")                                  \
    X(SMOOTH_NLL_SUM_DX,    smooth_nll_sum_dx,    "smooth_nll_sum_dx", ",*->*v",                              "0",    "1*v")                                \
    X(RELU2,                relu2,                "relu2",           "*->*",                                "-",    "2*")                                  \
    X(RELU2_DX,             relu2_dx,             "relu2_dx",        "*,*->*",                              "0",    "3*")                                  \
    X(MULTIPLY,             multiply,             "multiply",        "*,*->*",                              "0|1",  "1*")                                  \
    X(GATE,                 gate,                 "gate",            "*V,*G->*V",                           "0",    "5*G + 1*V")                           \
    X(GATE_DG,              gate_dg,              "gate_dg",         "*V,*V,*G->*G",                        "0|1",  "2*V + 8*G")                           \
    X(HEAD_SCALE,           contract,             "head_scale",      "bshgD,hg->bshgD",                     "0|1",  "1bshgD")                              \
    X(HEAD_SCALE_DW,        contract,             "head_scale_dw",   "bshgD,bshgD->hg",                     "0|1",  "2bshgD")                              \
    X(SHORT_CONV,           short_conv,           "short_conv",      "bS*,*R,+*?->bS*",                     "0|1",  "2bS*R + 1bS*")                        \
    X(SHORT_CONV_DX,        short_conv_dx,        "short_conv_dx",   "bS*,*R->bS*",                         "0|1",  "2bS*R")                               \
    X(SHORT_CONV_DW,        short_conv_dw,        "short_conv_dw",   "bS*,bS*->*R",                         "0|1",  "2bS*R")                               \
    X(SHORT_CONV_DB,        contract,             "short_conv_db",   "bs*->*",                              "0",    "1bs*")                                \
    X(SCAN_GATES,           scan_gates,           "scan_gates",      "bshgR,hg,hgB->bshgG",                 "-",    "10bshgR")                             \
    X(SCAN_GATES_DX,        scan_gates_dx,        "scan_gates_dx",   "bshgG,bshgR,hg,hgB->bshgR",           "0",    "12bshgR")                             \
    X(SCAN_GATES_DW,        scan_gates_dw,        "scan_gates_dw",   "bshgG,bshgR,hg,hgB->hg,hgB",          "0",    "16bshgB")                             \
    X(SCAN,                 scan,                 "scan",            "bShE,bShgV,bShgG->bShgV",             "1",    "2.5bShgEV")                           \
    X(SCAN_DX,              scan_dx,              "scan_dx",         "bShgV,bShE,bShgV,bShgG->bShE,bShgV,bShgG", "0", "7bShgEV")                          \
    X(DELTA_SCAN,           scan,                 "delta_scan",      "bShE,bShgV,bShgG->bShgV",             "1",    "3.5bShgEV")                           \
    X(DELTA_SCAN_DX,        scan_dx,              "delta_scan_dx",   "bShgV,bShE,bShgV,bShgG->bShE,bShgV,bShgG", "0", "10bShgEV")                         \
    X(LINEAR_ATTENTION,     scan,                 "linear_attention", "bShE,bShgV->bShgV",                  "1",    "2.5bShgEV")                           \
    X(LINEAR_ATTENTION_DX,  scan_dx,              "linear_attention_dx", "bShgV,bShE,bShgV->bShE,bShgV",    "0",    "6bShgEV")                             \
    X(GROUP_NORM,           group_norm,           "group_norm",      "bs*H,*H->bs*H",                       "-",    "4bs*H")                               \
    X(GROUP_NORM_DX,        group_norm_dx,        "group_norm_dx",   "bs*H,bs*H,*H->bs*H",                  "0",    "8bs*H")                               \
    X(GROUP_NORM_DW,        group_norm_dw,        "group_norm_dw",   "bs*H,bs*H->*H",                       "0",    "5bs*H")                               \
    X(SQUARES,              squares,              "squares",         "bs*->bs",                             "-",    "2bs*")                                \
    X(SQUARES_DX,           squares_dx,           "squares_dx",      "bs,bs*->bs*",                         "0|1",  "2bs*")                                \
    X(NORM_BY,              norm_by,              "norm_by",         "bs*,bs,*->bs*",                       "0|2",  "3bs*")                                \
    X(NORM_BY_DM,           norm_by_dm,           "norm_by_dm",      "bs*,bs*,bs,*->bs",                    "0|1|3", "4bs*")                               \
    X(NORM_BY_DW,           norm_by_dw,           "norm_by_dw",      "bs*,bs*,bs->*",                       "0|1",  "4bs*")                                \
    X(JOIN,                 join,                 "join",            "*A,*B->*C",                           "01",   "0")                                   \
    X(JOIN_PART,            join_part,            "join_part",       "*C->*A",                              "0",    "0")                                   \
    X(TOP_KEYS,             top_keys,             "top_keys",        "bQHD,bKD,bQH->bQT",                   "-",    "2bQHKD + 3bQHK")                      \
    X(SPARSE_ATTENTION,     sparse_attention,     "sparse_attention", "bQhgD,bKhE,bQT->bQhgV,bhgQ",         "-",    "2bhgQTD + 2bhgQTV + 5bhgQT")          \
    X(SPARSE_ATTENTION_DX,  sparse_attention_dx,  "sparse_attention_dx", "bQhgV,bQhgD,bKhE,bQT,bhgQ->bQhgD,bKhE,bQT", "0", "6bhgQTD + 4bhgQTV + 8bhgQT") \
    X(TOP_KEYS_DX,          top_keys_dx,          "top_keys_dx",     "bQT,bQHD,bKD,bQH->bQHD,bKD,bQH",      "0",    "4bQHTD")                              \
    X(SELECTIVE_SCAN,         scan,                 "selective_scan",  "bShE,bShgV,bShgR,hgD->bShgV",          "1",     "2.5bShgEV + 2bShgD + 5bShgR")     \
    X(SELECTIVE_SCAN_DX,      scan_dx,              "selective_scan_dx", "bShgV,bShE,bShgV,bShgR,hgD->bShE,bShgV,bShgR,hgD", "0",     "7bShgEV + 4bShgD + 8bShgR")\
    X(WKV,                    scan,                 "wkv",             "bShE,bShgV,bShgD->bShgV",              "1",     "2.5bShgEV + 2bShgD")              \
    X(WKV_DX,                 scan_dx,              "wkv_dx",          "bShgV,bShE,bShgV,bShgD->bShE,bShgV,bShgD", "0",     "7bShgEV + 4bShgD")            \
    X(DELTA_WKV,              scan,                 "delta_wkv",       "bShE,bShgV,bShgD,bShE->bShgV",         "1",     "4.5bShgEV + 2bShgD")              \
    X(DELTA_WKV_DX,           scan_dx,              "delta_wkv_dx",    "bShgV,bShE,bShgV,bShgD,bShE->bShE,bShgV,bShgD,bShE", "0",     "13bShgEV + 4bShgD") \
    X(BONUS,                  bonus,                "bonus",           "bshE,bshgV,hD->bshgV",                 "1",     "1.5bshE + 1bshgV")                \
    X(BONUS_DX,               bonus_dx,             "bonus_dx",        "bshgV,bshE,bshgV,hD->bshE,bshgV,hD",   "0",     "5bshE + 3bshgV")                  \
    X(TOKEN_SHIFT,            token_shift,          "token_shift",     "bS*->bS*",                             "0",     "1bS*")                            \
    X(TOKEN_SHIFT_DX,         token_shift_dx,       "token_shift_dx",  "bS*->bS*",                             "0",     "1bS*")                            \
    X(CHANNEL_SCALE,          contract,             "channel_scale",   "bs*,*->bs*",                           "0|1",   "1bs*")                            \
    X(CHANNEL_SCALE_DW,       contract,             "channel_scale_dw", "bs*,bs*->*",                           "0|1",   "2bs*")                           \
    X(CHANNEL_BIAS,           add,                  "channel_bias",    "bs*,*->bs*",                           "01",    "1bs*")                            \
    X(TANH,                   tanh,                 "tanh",            "*->*",                                 "-",     "5*")                              \
    X(TANH_DX,                tanh_dx,              "tanh_dx",         "*,*->*",                               "0",     "3*")                              \
    X(SCALE,                  scale,                "scale",           "*->*",                                 "0",     "1*")                              \
    X(SAMPLE_SCALE,           contract,             "sample_scale",    "bs*,b*->bs*",                          "0|1",   "1bs*")                            \
    X(SAMPLE_SCALE_DG,        contract,             "sample_scale_dg", "bs*,bs*->b*",                          "0|1",   "2bs*")                            \
    X(SAMPLE_BIAS,            sample_bias,          "sample_bias",     "bs*,b*->bs*",                          "01",    "1bs*")                            \
    X(SAMPLE_BIAS_DB,         contract,             "sample_bias_db",  "bs*->b*",                              "0",     "1bs*")                            \
    X(PLAIN_NORM,             layer_norm,           "plain_norm",      "*H->*H",                               "-",     "6*H")                             \
    X(PLAIN_NORM_DX,          layer_norm_dx,        "plain_norm_dx",   "*H,*H->*H",                            "0",     "13*H")                            \
    X(PART,                   concat_part,          "part",            "nC*->nA*",                             "0",     "0")                               \
    X(PART_DX,                part_dx,              "part_dx",         "nA*->nC*",                             "0",     "0")                               \
    X(RELATIVE_ATTENTION,     relative_attention,   "relative_attention", "bQhgD,bKhE,CRhD,CRhgD->bQhgV",         "-",     "2bhgQKD + 2bhgQRD + 2bhgKRD + 2bhgQKV + 8bhgQK")\
    X(RELATIVE_ATTENTION_DX,  relative_attention_dx, "relative_attention_dx", "bQhgV,bQhgD,bKhE,CRhD,CRhgD->bQhgD,bKhE,CRhD,CRhgD", "0",     "6bhgQKD + 6bhgQRD + 6bhgKRD + 4bhgQKV + 13bhgQK")\
    X(SQUARE_LOSS,            square_loss,          "square_loss",     "*,*->",                                "-",     "3*")                              \
    X(SQUARE_LOSS_DX,         square_loss_dx,       "square_loss_dx",  ",*,*->*",                              "0",     "3*")                              \
    X(LOG_SOFTMAX,          log_softmax,          "log_softmax",     "*V->*V",                              "-",    "5*V")                                 \
    X(LOG_SOFTMAX_DX,       log_softmax_dx,       "log_softmax_dx",  "*V,*V->*V",                           "0",    "5*V")                                 \
    X(NLL_SUM,              nll_sum,              "nll_sum",         "*v,*->",                              "0",    "1*")                                  \
    X(NLL_SUM_DX,           nll_sum_dx,           "nll_sum_dx",      ",*->*v",                              "0",    "1*")                                  \
    X(LABEL_LOGIT,          label_logit,          "label_logit",     "*v,*->*",                             "-",    "0")                                   \
    X(SUM_EXP,              sum_exp,              "sum_exp",         "*v,*->*",                             "-",    "3*v")                                 \
    X(LOG_SUM_EXP,          log_sum_exp,          "log_sum_exp",     "*,*->*",                              "-",    "2*")                                  \
    X(CROSS_ENTROPY,        cross_entropy,        "cross_entropy",   "*v,*,*->",                            "-",    "2*")                                  \
    X(CROSS_ENTROPY_DX,     cross_entropy_dx,     "cross_entropy_dx", ",*v,*,*->*v",                        "0",    "3*v")                                 \
    X(OPAQUE,               opaque,               "opaque",          "bA,+bC?,+bD?,+bE?,+bF?->bO,bS",       "-",    "0")                                    \
    X(OPAQUE_DX,            opaque_dx,            "opaque_dx",       "bO,bS->bA",                           "0",    "0")                                    \
    X(OPAQUE_WEIGHTS,       opaque_weights,       "opaque_weights",  "P,bA,+bC?,+bD?,+bE?->bO,bS",          "-",    "0")                                    \
    X(OPAQUE_DW,            opaque_dw,            "opaque_dw",       "bO,bS->P",                            "0",    "0")                                    \
    X(OPAQUE_WHOLE,         opaque,               "opaque_whole",    "BA,+BC?,+BD?,+BE?,+BF?->BO,BS",       "-",    "0")                                    \
    X(OPAQUE_WHOLE_DX,      opaque_dx,            "opaque_whole_dx", "BO,BS->BA",                           "0",    "0")                                    \
    X(OPAQUE_WHOLE_WEIGHTS, opaque_weights,       "opaque_whole_weights", "P,BA,+BC?,+BD?,+BE?->BO,BS",     "-",    "0")                                    \
    X(OPAQUE_WHOLE_DW,      opaque_dw,            "opaque_whole_dw", "BO,BS->P",                            "0",    "0")                                    \
    X(OPAQUE_LOSS,          opaque_loss,          "opaque_loss",     "bA->",                                "-",    "0")                                    \
    X(OPAQUE_LOSS_DX,       opaque_loss_dx,       "opaque_loss_dx",  ",bA->bA",                             "0",    "0")                                    \
    X(ADAM,                 adam,                 "adam",            "*,*,*,*->*,*,*",                      "-",    "12*")                                 \
    X(ADAM_MASTER,          adam_master,          "adam_master",     "*,*,*,*,*->*,*,*,*",                  "-",    "12*")                                 \
    X(ADAMW,                adamw,                "adamw",           "*,*,*,*->*,*,*",                      "-",    "14*")                                 \
    X(ADAMW_MASTER,         adamw_master,         "adamw_master",    "*,*,*,*,*->*,*,*,*",                  "-",    "14*")                                 \
    X(ADAFACTOR,            adafactor,            "adafactor",       "*RC,*RC,*R,*C->*RC,*R,*C",            "-",    "12*RC")                               \
    X(ADAFACTOR_MASTER,     adafactor_master,     "adafactor_master", "*RC,*RC,*R,*C,*RC->*RC,*R,*C,*RC",    "-",    "12*RC")                               \
    X(ADAFACTOR_VECTOR,     adafactor_vector,     "adafactor_vector", "*,*,*->*,*",                          "-",    "8*")                                  \
    X(ADAFACTOR_VECTOR_MASTER, adafactor_vector_master, "adafactor_vector_master", "*,*,*,*->*,*,*",         "-",    "8*")                                  \
    X(SGD,                  sgd,                  "sgd",             "*,*->*",                              "-",    "2*")                                  \
    X(SGD_MASTER,           sgd_master,           "sgd_master",      "*,*,*->*,*",                          "-",    "2*")                                  \
    X(LION,                 lion,                 "lion",            "*,*,*->*,*",                          "-",    "9*")                                  \
    X(LION_MASTER,          lion_master,          "lion_master",     "*,*,*,*->*,*,*",                      "-",    "9*")                                  \
    X(MUON,                 muon,                 "muon",            "*RC,*RC,*RC->*RC,*RC",                "-",    "20*RRC + 10*RRR + 25*RC")             \
    X(MUON_MASTER,          muon_master,          "muon_master",     "*RC,*RC,*RC,*RC->*RC,*RC,*RC",        "-",    "20*RRC + 10*RRR + 25*RC")             \
    X(MUON_TALL,            muon,                 "muon_tall",       "*RC,*RC,*RC->*RC,*RC",                "-",    "20*RCC + 10*CCC + 25*RC")             \
    X(MUON_TALL_MASTER,     muon_master,          "muon_tall_master", "*RC,*RC,*RC,*RC->*RC,*RC,*RC",       "-",    "20*RCC + 10*CCC + 25*RC")
/* clang-format on */

#define OP_ID(id, kernel, name, signature, linear, flops) OP_##id,
typedef enum { OP_TABLE(OP_ID) OP_KINDS } OpKind;

enum { OP_MAX_IN = 5, OP_MAX_OUT = 4, OP_MAX_OPERANDS = OP_MAX_IN + OP_MAX_OUT };

enum { MOST_EXPERT_GROUPS = 64 };

/* Constants of one op; each kind uses its own, and the others are 0. */
typedef struct {
    /* convolutions and pooling: the step of windows, and the rows and columns of padding before the
     * image. The padding behind it follows from the outputs, so the two may differ */
    uint32_t stride, padding, padding_columns;
    /* pooling: window edge; 0: average pooling cuts the image in even parts */
    uint32_t window;
    /* dropout, attention: stream of the mask, a function of it and the global index */
    uint32_t seed;
    /* dropout: probability of zero; attention: the same, of its probabilities */
    double rate;
    bool causal; /* attention: a query sees no later key */
    /* attention: a causal query sees the last `span` keys, its own included (0: all); rotary: see
     * `first` */
    uint32_t span;
    /* fused attention: a causal query sees only keys of its document (data/graph/documents.h);
     * interned; NULL: there is one */
    const char *documents;
    /* attention: scores fall by the distance, at a slope by head (Press et al. 2022) */
    bool alibi;
    /* rotary: elements [first, first + span) turn; join_keys: shared elements begin at `first` */
    uint32_t first;
    uint32_t top; /* gate_topk: experts of a token */
    /* gate_topk: of so many equal groups of experts a token goes to those of `top_groups` with the
     * largest sums of their two best scores; 0: to any */
    uint32_t groups, top_groups;
    /* gate_topk: scores are sigmoids of the logits, not their softmax; gate, scan_gates: above */
    bool sigmoid;
    bool normalised; /* gate_topk: a token's weights sum to 1 */
    /* route: an expert has room for all its tokens, and slots for the mean */
    bool dropless;
    double scale; /* gate_topk: factor on the weights */
} OpAttr;

const char *op_kind_name(OpKind kind);
const char *op_kind_signature(OpKind kind);

const char *op_kind_linear(OpKind kind);
const char *op_kind_flops(OpKind kind);

/* Whether the kind moves no data: its output is its input's memory under another shape. */
bool op_kind_is_view(OpKind kind);

/* Whether every element of the output depends only on the inputs' elements at the same place. */
bool op_kind_is_elementwise(OpKind kind);

/* Whether it makes the gradient of the weights of a product or convolution. */
bool op_kind_is_weights_gradient(OpKind kind);

/* Whether the kind computes on tokens that were sent to experts. */
bool op_kind_is_of_experts(OpKind kind);

/* Whether the kind updates parameters that are also kept in full precision, its last input. */
bool op_kind_has_master(OpKind kind);

/* Whether it is an optimizer's step. */
bool op_kind_updates(OpKind kind);

/* Whether its output is the differentiated scalar. */
bool op_kind_is_loss(OpKind kind);

/* Whether nobody wrote down what it computes; the loss of such ops is not one of them. */
bool op_kind_is_opaque(OpKind kind);

/* Whether it is attention's forward, of any kind. */
bool op_kind_is_attention(OpKind kind);

/* Whether its queries (loop Q) may be divided among devices that have all keys: over shards only
 * (data/graph/ rule.h), which is context parallelism. */
bool op_kind_divides_queries(OpKind kind);

/* Whether it computes only the scores that a query may see. */
bool op_kind_skips_masked(OpKind kind);

/* The number of experts that a token goes to, if the op decides it; 0 for all other kinds. */
uint32_t op_experts_of_token(OpKind kind, const OpAttr *attr);

/* The input with indices into loop v, the vocabulary; OP_MAX_IN if there is none. */
uint32_t op_kind_index(OpKind kind);

/* The operand of which only the entries named by the indices are read; OP_MAX_OPERANDS if there is
 * none. */
uint32_t op_kind_looked_up(OpKind kind);

/* The kind of that name, or OP_KINDS. */
OpKind op_kind_from_name(const char *name);
