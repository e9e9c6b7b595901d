/* The effect of software on the times of ops beside what their kernels are: which passes over
 * memory it fuses, and how long its host takes. A runtime's file (data/cluster/runtime.h) may give
 * each row; without a runtime the stack is one that fuses, as Megatron-LM, TorchInductor and
 * Transformer Engine do. */
#pragma once

/* X(key, default, low, high): an access is reading or writing a tensor once.
 *   elementwise   of the bytes that elementwise ops would move if each were a kernel, the part that is moved
 *   gelu          kernels of a GELU; each reads and writes a tensor
 *   attention     factor on the time of fused attention: 1 for what data/kernels.yaml was fitted to, FlashAttention 2 and 3
 *   flash         generation of FlashAttention on sm 90: 2, or 3, which is as fast as cuDNN's
 *   scores        further accesses to attention's scores, where they are not fused: scale, mask
 *   wide_scores   the least of these in more than 16 bits, or of heads not by fours, which fused kernels may not take
 *   heads         accesses to queries, keys, values and output for copies by head, where attention is not fused
 *   rms_norm      accesses to an RMS norm's input beside those of one kernel
 *   rms_norm_dx   the same backward
 *   rotary        accesses to what a rotary embedding turns, and as many backward, beside its two
 *   loss          accesses to the logits for one that the loss's ops have
 *   accumulates   accesses to a parameter's gradient for adding to it, outside of the product that makes it
 *   adds          1: the product that makes a weight's gradient adds to what is there
 *   convert       time of an operand's conversion to 8 bits, of a pass with two copies of it
 *   narrow_dw     factor on 8-bit products that make weights' gradients
 *   update        accesses to parameters and their states for one of an update in one kernel
 *   overlap       of a tensor-parallel exchange between products, the part that runs beside them
 *   dispatch      accesses to experts' tokens in each exchange with them, to sort, pad and convert
 *   once          part of these tokens that go to a machine once, for all their experts there
 *   beside        part of these exchanges beside another microbatch in the other direction
 *   cut_documents  1: cp's devices cut each document of a packed sequence, 0: the sequence
 *   channels      the most multiprocessors of a collective's kernel (cluster/measured_view.c) */
#define STACK_TABLE(X)          \
    X(elementwise, 0.65, 0, 10) \
    X(gelu, 1, 1, 20)           \
    X(attention, 1, 0.1, 10)    \
    X(flash, 3, 2, 3)           \
    X(scores, 0, 0, 100)        \
    X(wide_scores, 0, 0, 100)   \
    X(heads, 0, 0, 10)          \
    X(rms_norm, 0, 0, 100)      \
    X(rms_norm_dx, 0, 0, 100)   \
    X(rotary, 0, 0, 100)        \
    X(loss, 1.5, 0.1, 20)       \
    X(accumulates, 0, 0, 10)    \
    X(adds, 0, 0, 1)            \
    X(convert, 1, 0, 10)        \
    X(narrow_dw, 1, 0.1, 10)    \
    X(update, 1, 0.1, 100)      \
    X(overlap, 0, 0, 1)         \
    X(dispatch, 0, 0, 1000)     \
    X(once, 0, 0, 1)            \
    X(beside, 0, 0, 1)          \
    X(cut_documents, 0, 0, 1)   \
    X(channels, 0, 0, 64)

/* How long the host takes to launch a kernel: an op whose kernels are shorter takes as long. */
#define STACK_LAUNCH_S 5e-6

typedef struct {
    double launch_s;
#define X(key, unsaid, low, high) double key;
    STACK_TABLE(X)
#undef X
} Stack;

extern const Stack STACK_DEFAULT;
