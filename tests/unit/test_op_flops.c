/* FLOPs of every op kind against counts made by hand for one shape each, a multiply-add counting 2,
 * and the part that is divided by sharding one loop. */
#include "data/data.h"
#include "tests/test.h"

/* One op: shapes of its inputs ("2,3;4,3"), extents that only the outputs fix, FLOPs
 * by hand; then one loop (letter, place in the star) and the FLOPs that sharding it
 * divides. Extents are small primes where the kind allows, so that a missing factor
 * shows. */
typedef struct {
    OpKind kind;
    const char *shapes, *extents;
    double flops;
    char letter;
    uint8_t star;
    double over;
} Row;

static const Row ROWS[] = {
    /* [2,3,5] x [7,5] + [7]: 2*3*7 outputs of 5 multiply-adds and one addition */
    {OP_LINEAR, "2,3,5;7,5;7", NULL, 2 * 3 * 7 * (2 * 5 + 1), 'n', 0,
     2 * 3 * 7 * (2 * 5 + 1)},
    {OP_LINEAR, "2,3,5;7,5;7", NULL, 2 * 3 * 7 * (2 * 5 + 1), 'k', 0, 2 * 3 * 7 * 2 * 5},
    {OP_LINEAR, "2,3,5;7,5", NULL, 2 * 3 * 7 * 2 * 5, '*', 1, 2 * 3 * 7 * 2 * 5},
    {OP_LINEAR_DX, "2,3,7;7,5", NULL, 2 * 3 * 5 * 2 * 7, 'n', 0, 2 * 3 * 5 * 2 * 7},
    {OP_LINEAR_DW, "2,3,7;2,3,5", NULL, 7 * 5 * 2 * (2 * 3), '*', 0, 7 * 5 * 2 * (2 * 3)},
    {OP_BIAS_GRAD, "2,3,7", NULL, 2 * 3 * 7, '*', 1, 2 * 3 * 7},
    {OP_EMBEDDING, "2,3;11,5", NULL, 0, 'v', 0, 0},
    /* one addition per element of dy; a shard of the vocabulary still scans all of dy */
    {OP_EMBEDDING_DW, "2,3,5;2,3", "v=11", 2 * 3 * 5, 'v', 0, 0},
    {OP_EMBEDDING_DW, "2,3,5;2,3", "v=11", 2 * 3 * 5, 'h', 0, 2 * 3 * 5},
    /* mean 1; centre, square, sum 3; scale 1, gamma 1, beta 1, root and division 1 */
    {OP_LAYER_NORM, "2,3,5;5;5", NULL, 2 * 3 * 5 * 8, '*', 0, 2 * 3 * 5 * 8},
    /* moments 4; xhat 2; dy gamma 1; its sum and its product with xhat 3; the result 5 */
    {OP_LAYER_NORM_DX, "2,3,5;2,3,5;5", NULL, 2 * 3 * 5 * 15, '*', 1, 2 * 3 * 5 * 15},
    /* xhat 3; dy xhat 1; two sums 2 */
    {OP_LAYER_NORM_DW, "2,3,5;2,3,5", NULL, 2 * 3 * 5 * 6, 'h', 0, 2 * 3 * 5 * 6},
    {OP_GELU, "2,3", NULL, 2 * 3 * 8, '*', 0, 2 * 3 * 8},
    {OP_GELU_DX, "2,3;2,3", NULL, 2 * 3 * 12, '*', 1, 2 * 3 * 12},
    {OP_RELU, "2,3", NULL, 2 * 3, '*', 0, 2 * 3},
    {OP_RELU_DX, "2,3;2,3", NULL, 2 * 3, '*', 0, 2 * 3},
    {OP_DROPOUT, "2,3", NULL, 2 * 3 * 2, '*', 0, 2 * 3 * 2},
    {OP_ADD, "2,3;2,3", NULL, 2 * 3, '*', 0, 2 * 3},
    {OP_ADD_ROWS, "2,3,5;3,5", NULL, 2 * 3 * 5, 'b', 0, 2 * 3 * 5},
    {OP_SUM_ROWS, "2,3,5", NULL, 2 * 3 * 5, 'b', 0, 2 * 3 * 5},
    {OP_SPLIT, "2,15", "n=3,D=5", 0, 'n', 0, 0},
    {OP_MERGE, "2,3,5", "n=15", 0, 'n', 0, 0},
    {OP_TRANSPOSE, "2,3,5", NULL, 0, 'a', 0, 0},
    {OP_RESHAPE, "2,3,10", "b=4,T=3,D=5", 0, 'b', 0, 0},
    /* b 2, s 3, T 3, h 5, D 7, k 11 */
    {OP_QKV, "2,3,11;3,5,7,11;3,5,7", NULL, 2 * 3 * 3 * 5 * 7 * (2 * 11 + 1), 'h', 0,
     2 * 3 * 3 * 5 * 7 * (2 * 11 + 1)},
    {OP_QKV, "2,3,11;3,5,7,11", NULL, 2 * 3 * 3 * 5 * 7 * (2 * 11), 'k', 0,
     2 * 3 * 3 * 5 * 7 * (2 * 11)},
    {OP_QKV_DX, "2,3,3,5,7;3,5,7,11", NULL, 2 * 3 * 11 * 2 * (3 * 5 * 7), 'h', 0,
     2 * 3 * 11 * 2 * (3 * 5 * 7)},
    {OP_QKV_DW, "2,3,3,5,7;2,3,11", NULL, 3 * 5 * 7 * 11 * 2 * (2 * 3), 'b', 0,
     3 * 5 * 7 * 11 * 2 * (2 * 3)},
    {OP_QKV_DB, "2,3,3,5,7", NULL, 2 * 3 * 3 * 5 * 7, 's', 0, 2 * 3 * 3 * 5 * 7},
    /* b 2, 11 queries and keys, h 5, D 7: scores and weighted sum 2D each; scale 1,
     * softmax 4 */
    {OP_ATTENTION, "2,11,3,5,7", "K=11", 2 * 5 * 11 * 11 * (2 * 7 + 2 * 7 + 1 + 4), 'h',
     0, 2 * 5 * 11 * 11 * (2 * 7 + 2 * 7 + 1 + 4)},
    /* dV, dP, dQ, dK 2D each; P dP and its sum 2, dP - sum 1, times P 1, scale 1 */
    {OP_ATTENTION_DX, "2,11,5,7;2,11,3,5,7;2,5,11,11", NULL,
     2 * 5 * 11 * 11 * (4 * 2 * 7 + 5), 'b', 0, 2 * 5 * 11 * 11 * (4 * 2 * 7 + 5)},
    /* b 2, s 3, h 5, D 7, n 11 */
    {OP_OUT_PROJ, "2,3,5,7;11,5,7;11", NULL, 2 * 3 * 11 * (2 * 5 * 7 + 1), 'h', 0,
     2 * 3 * 11 * 2 * 5 * 7},
    {OP_OUT_PROJ_DX, "2,3,11;11,5,7", NULL, 2 * 3 * 5 * 7 * 2 * 11, 'n', 0,
     2 * 3 * 5 * 7 * 2 * 11},
    {OP_OUT_PROJ_DW, "2,3,11;2,3,5,7", NULL, 11 * 5 * 7 * 2 * (2 * 3), 's', 0,
     11 * 5 * 7 * 2 * (2 * 3)},
    /* n 2, c 3, o 5, image 8x9, kernel 3x2, output 6x8; padded taps count */
    {OP_CONV2D, "2,3,8,9;5,3,3,2;5", "P=6,Q=8", 2 * 5 * 6 * 8 * (2 * 3 * 3 * 2 + 1), 'o',
     0, 2 * 5 * 6 * 8 * (2 * 3 * 3 * 2 + 1)},
    {OP_CONV2D, "2,3,8,9;5,3,3,2;5", "P=6,Q=8", 2 * 5 * 6 * 8 * (2 * 3 * 3 * 2 + 1), 'c',
     0, 2 * 5 * 6 * 8 * (2 * 3 * 3 * 2)},
    {OP_CONV2D, "2,3,8,9;5,3,3,2", "P=6,Q=8", 2 * 5 * 6 * 8 * (2 * 3 * 3 * 2), 'n', 0,
     2 * 5 * 6 * 8 * (2 * 3 * 3 * 2)},
    {OP_CONV2D_DX, "2,5,6,8;5,3,3,2", "H=8,W=9", 2 * 5 * 6 * 8 * (2 * 3 * 3 * 2), 'o', 0,
     2 * 5 * 6 * 8 * (2 * 3 * 3 * 2)},
    {OP_CONV2D_DW, "2,5,6,8;2,3,8,9", "R=3,S=2", 2 * 5 * 6 * 8 * (2 * 3 * 3 * 2), 'n', 0,
     2 * 5 * 6 * 8 * (2 * 3 * 3 * 2)},
    {OP_CHANNEL_SUM, "2,5,6,8", NULL, 2 * 5 * 6 * 8, 'n', 0, 2 * 5 * 6 * 8},
    {OP_MAX_POOL2D, "2,3,8,6", "P=4,Q=3", 2 * 3 * 8 * 6, 'c', 0, 2 * 3 * 8 * 6},
    {OP_MAX_POOL2D_DX, "2,3,4,3;2,3,8,6", NULL, 2 * 3 * 8 * 6, 'n', 0, 2 * 3 * 8 * 6},
    {OP_AVG_POOL2D, "2,3,8,6", "P=4,Q=3", 2 * 3 * 8 * 6, 'c', 0, 2 * 3 * 8 * 6},
    {OP_AVG_POOL2D_DX, "2,3,4,3", "H=8,W=6", 2 * 3 * 8 * 6, 'n', 0, 2 * 3 * 8 * 6},
    {OP_APPEND_TOKEN, "2,3,5;5", "T=4", 0, 'b', 0, 0},
    {OP_DROP_TOKEN, "2,4,5", "S=3", 0, 'b', 0, 0},
    {OP_SUM_TOKEN, "2,4,5", NULL, 2 * 5, 'b', 0, 2 * 5},
    {OP_TAKE_TOKEN, "2,4,5", NULL, 0, 'h', 0, 0},
    {OP_PAD_TOKEN, "2,5", "T=4", 0, 'h', 0, 0},
    /* b 2, s 7, e 3, c 5, d 11; gate: softmax 4, one choice 1 or two 2, weights and slots
     * 2 */
    {OP_GATE_TOP1, "2,7,3", "C=5", 2 * 7 * 3 * 7, 'b', 0, 2 * 7 * 3 * 7},
    {OP_GATE_TOP1_DX, "2,7,3,5;2,7,3", NULL, 2 * 7 * 3 * 8, 'b', 0, 2 * 7 * 3 * 8},
    {OP_GATE_TOP2, "2,7,3", "C=5", 2 * 7 * 3 * 8, 'b', 0, 2 * 7 * 3 * 8},
    {OP_GATE_TOP2_DX, "2,7,3,5;2,7,3", NULL, 2 * 7 * 3 * 12, 'b', 0, 2 * 7 * 3 * 12},
    {OP_MOE_DISPATCH, "2,7,3,5;2,7,11", NULL, 2 * 3 * 5 * 11 * (2 * 7), 'e', 0,
     2 * 3 * 5 * 11 * (2 * 7)},
    {OP_MOE_COMBINE, "2,3,5,11;2,7,3,5", NULL, 2 * 7 * 11 * 2 * (3 * 5), 'c', 0,
     2 * 7 * 11 * 2 * (3 * 5)},
    {OP_MOE_COMBINE_DW, "2,7,11;2,3,5,11", NULL, 2 * 7 * 3 * 5 * (2 * 11), 'd', 0,
     2 * 7 * 3 * 5 * (2 * 11)},
    /* b 2, e 3, c 5, k 7, n 11 */
    {OP_EXPERT, "2,3,5,7;3,7,11", NULL, 2 * 3 * 5 * 11 * (2 * 7), 'e', 0,
     2 * 3 * 5 * 11 * (2 * 7)},
    {OP_EXPERT_DX, "2,3,5,11;3,7,11", NULL, 2 * 3 * 5 * 7 * (2 * 11), 'c', 0,
     2 * 3 * 5 * 7 * (2 * 11)},
    {OP_EXPERT_DW, "2,3,5,11;2,3,5,7", NULL, 3 * 7 * 11 * 2 * (2 * 5), 'b', 0,
     3 * 7 * 11 * 2 * (2 * 5)},
    /* exp 1, sum 1, largest 1, subtract 2 */
    {OP_LOG_SOFTMAX, "2,3,11", NULL, 2 * 3 * 11 * 5, '*', 0, 2 * 3 * 11 * 5},
    {OP_LOG_SOFTMAX_DX, "2,3,11;2,3,11", NULL, 2 * 3 * 11 * 5, '*', 1, 2 * 3 * 11 * 5},
    /* one addition per label, not one per class */
    {OP_NLL_SUM, "2,3,11;2,3", NULL, 2 * 3, 'v', 0, 0},
    {OP_NLL_SUM, "2,3,11;2,3", NULL, 2 * 3, '*', 0, 2 * 3},
    {OP_NLL_SUM_DX, ";2,3", "v=11", 2 * 3, '*', 0, 2 * 3},
    {OP_LABEL_LOGIT, "2,3,11;2,3", NULL, 0, 'v', 0, 0},
    /* subtract, exp, sum; logarithm, add; subtract, add; subtract, exp, multiply */
    {OP_SUM_EXP, "2,3,11;2,3", NULL, 2 * 3 * 11 * 3, 'v', 0, 2 * 3 * 11 * 3},
    {OP_LOG_SUM_EXP, "2,3;2,3", NULL, 2 * 3 * 2, '*', 1, 2 * 3 * 2},
    {OP_CROSS_ENTROPY, "2,3,11;2,3;2,3", NULL, 2 * 3 * 2, 'v', 0, 0},
    {OP_CROSS_ENTROPY_DX, ";2,3,11;2,3;2,3", NULL, 2 * 3 * 11 * 3, 'v', 0,
     2 * 3 * 11 * 3},
    /* n 2, o 3, P 5, Q 7: the sum 1, the sum of squares 2 */
    {OP_MOMENTS, "2,3,5,7", "T=2", 2 * 3 * 5 * 7 * 3, 'n', 0, 2 * 3 * 5 * 7 * 3},
    {OP_MOMENTS_DX, "2,3;2,3,5,7", NULL, 2 * 3 * 5 * 7 * 3, 'o', 0, 2 * 3 * 5 * 7 * 3},
    /* centre, by the root, gamma, beta */
    {OP_BATCH_NORM, "2,3,5,7;2,3;3;3", NULL, 2 * 3 * 5 * 7 * 4, 'n', 0,
     2 * 3 * 5 * 7 * 4},
    {OP_BATCH_NORM_DX, "2,3,5,7;2,3;3", NULL, 2 * 3 * 5 * 7 * 2, 'o', 0,
     2 * 3 * 5 * 7 * 2},
    /* dy summed 1; centre, times dy, summed 3 */
    {OP_BATCH_NORM_DM, "2,3,5,7;2,3,5,7;2,3;3", NULL, 2 * 3 * 5 * 7 * 4, 'n', 0,
     2 * 3 * 5 * 7 * 4},
    {OP_BATCH_NORM_DW, "2,3,5,7;2,3,5,7;2,3", NULL, 2 * 3 * 5 * 7 * 5, 'n', 0,
     2 * 3 * 5 * 7 * 5},
    {OP_CONCAT, "2,3,5,7;2,4,5,7", "C=7", 0, 'n', 0, 0},
    {OP_CONCAT_PART, "2,7,5,7", "A=3", 0, 'n', 0, 0},
    {OP_SPLIT_CHANNELS, "2,15,7,7", "c=3,D=5", 0, 'c', 0, 0},
    {OP_MERGE_CHANNELS, "2,3,5,7,7", "c=15", 0, 'c', 0, 0},
    /* n 2, g 3 of c 5 to o 7, a kernel of 3 x 2, outputs of 6 x 8 */
    {OP_GROUP_CONV2D, "2,3,5,8,9;3,7,5,3,2", "P=6,Q=8",
     2.0 * 2 * 3 * 5 * 7 * 3 * 2 * 6 * 8, 'g', 0, 2.0 * 2 * 3 * 5 * 7 * 3 * 2 * 6 * 8},
    {OP_GROUP_CONV2D, "2,3,5,8,9;3,7,5,3,2;3,7", "P=6,Q=8",
     2.0 * 2 * 3 * 5 * 7 * 3 * 2 * 6 * 8 + 2 * 3 * 7 * 6 * 8, 'g', 0,
     2.0 * 2 * 3 * 5 * 7 * 3 * 2 * 6 * 8 + 2 * 3 * 7 * 6 * 8},
    {OP_GROUP_CHANNEL_SUM, "2,3,7,6,8", NULL, 2 * 3 * 7 * 6 * 8, 'n', 0,
     2 * 3 * 7 * 6 * 8},
    {OP_GROUP_CONV2D_DX, "2,3,7,6,8;3,7,5,3,2", "H=8,W=9",
     2.0 * 2 * 3 * 5 * 7 * 3 * 2 * 6 * 8, 'n', 0, 2.0 * 2 * 3 * 5 * 7 * 3 * 2 * 6 * 8},
    {OP_GROUP_CONV2D_DW, "2,3,7,6,8;2,3,5,8,9", "R=3,S=2",
     2.0 * 2 * 3 * 5 * 7 * 3 * 2 * 6 * 8, 'n', 0, 2.0 * 2 * 3 * 5 * 7 * 3 * 2 * 6 * 8},
    /* the larger, exp, log1p, times t, two sums */
    {OP_SIGMOID_LOSS, "2,3;2,3", NULL, 2 * 3 * 6, '*', 0, 2 * 3 * 6},
    {OP_SIGMOID_LOSS_DX, ";2,3;2,3", NULL, 2 * 3 * 6, '*', 1, 2 * 3 * 6},
    {OP_SMOOTH_NLL_SUM, "2,3,11;2,3", NULL, 2 * 3 * 11 * 2, 'v', 0, 2 * 3 * 11 * 2},
    {OP_SMOOTH_NLL_SUM_DX, ";2,3", "v=11", 2 * 3 * 11, 'v', 0, 2 * 3 * 11},
    {OP_TIED, "2,3", NULL, 0, '*', 0, 0},
    {OP_TIED_DX, "2,3", NULL, 0, '*', 1, 0},
    /* square, sum 2; by the root and gamma 2 */
    {OP_RMS_NORM, "2,3,5;5", NULL, 2 * 3 * 5 * 4, '*', 0, 2 * 3 * 5 * 4},
    /* square, sum 2; dy gamma, its product with x and sum 3; the result 3 */
    {OP_RMS_NORM_DX, "2,3,5;2,3,5;5", NULL, 2 * 3 * 5 * 8, '*', 1, 2 * 3 * 5 * 8},
    /* square, sum 2; by the root 1; dy times that and its sum 2 */
    {OP_RMS_NORM_DW, "2,3,5;2,3,5", NULL, 2 * 3 * 5 * 5, 'h', 0, 2 * 3 * 5 * 5},
    /* the same for the first 5 of 7 elements */
    {OP_KEY_NORM, "2,3,7;5", NULL, 2 * 3 * 5 * 4, '*', 0, 2 * 3 * 5 * 4},
    {OP_KEY_NORM_DX, "2,3,7;2,3,7;5", NULL, 2 * 3 * 5 * 8, '*', 1, 2 * 3 * 5 * 8},
    {OP_KEY_NORM_DW, "2,3,7;2,3,7", "D=5", 2 * 3 * 5 * 5, '*', 0, 2 * 3 * 5 * 5},
    /* sigmoid: negate, exp, add, divide 4; times x 1 */
    {OP_SILU, "2,3", NULL, 2 * 3 * 5, '*', 0, 2 * 3 * 5},
    /* sigmoid 4; x (1 - sigmoid) + 1, times sigmoid, times dy 4 (1 shared) */
    {OP_SILU_DX, "2,3;2,3", NULL, 2 * 3 * 8, '*', 1, 2 * 3 * 8},
    {OP_LINEAR_PAIR, "2,3,5;2,7,5;2,7", NULL, 2 * 3 * 2 * 7 * (2 * 5 + 1), 'n', 0,
     2 * 3 * 2 * 7 * (2 * 5 + 1)},
    {OP_LINEAR_PAIR, "2,3,5;2,7,5", NULL, 2 * 3 * 2 * 7 * 2 * 5, 'k', 0,
     2 * 3 * 2 * 7 * 2 * 5},
    {OP_LINEAR_PAIR_DX, "2,3,2,7;2,7,5", NULL, 2 * 3 * 5 * 2 * (2 * 7), 'n', 0,
     2 * 3 * 5 * 2 * (2 * 7)},
    {OP_LINEAR_PAIR_DW, "2,3,2,7;2,3,5", NULL, 2 * 7 * 5 * 2 * (2 * 3), '*', 0,
     2 * 7 * 5 * 2 * (2 * 3)},
    {OP_LINEAR_PAIR_DB, "2,3,2,7", NULL, 2 * 3 * 2 * 7, '*', 1, 2 * 3 * 2 * 7},
    /* SiLU 5, times the other 1 */
    {OP_SWIGLU, "2,3,2,7", NULL, 2 * 3 * 7 * 6, 'n', 0, 2 * 3 * 7 * 6},
    /* SiLU and its slope 9 (sigmoid shared), times dy and the other 3 */
    {OP_SWIGLU_DX, "2,3,7;2,3,2,7", NULL, 2 * 3 * 7 * 12, 'n', 0, 2 * 3 * 7 * 12},
    {OP_GEGLU, "2,3,2,7", NULL, 2 * 3 * 7 * 9, 'n', 0, 2 * 3 * 7 * 9},
    {OP_GEGLU_DX, "2,3,7;2,3,2,7", NULL, 2 * 3 * 7 * 16, 'n', 0, 2 * 3 * 7 * 16},
    /* two products and a sum per element */
    {OP_ROTARY, "2,3,5,6", NULL, 2 * 3 * 5 * 6 * 3, 's', 0, 2 * 3 * 5 * 6 * 3},
    {OP_ROTARY_DX, "2,3,5,6", NULL, 2 * 3 * 5 * 6 * 3, '*', 0, 2 * 3 * 5 * 6 * 3},
    /* b 2, s 3, h 5, g 4, D 7, k 11 */
    {OP_Q_PROJ, "2,3,11;5,4,7,11;5,4,7", NULL, 2 * 3 * 5 * 4 * 7 * (2 * 11 + 1), 'g', 0,
     2 * 3 * 5 * 4 * 7 * (2 * 11 + 1)},
    {OP_Q_PROJ_DX, "2,3,5,4,7;5,4,7,11", NULL, 2 * 3 * 11 * 2 * (5 * 4 * 7), 'h', 0,
     2 * 3 * 11 * 2 * (5 * 4 * 7)},
    {OP_Q_PROJ_DW, "2,3,5,4,7;2,3,11", NULL, 5 * 4 * 7 * 11 * 2 * (2 * 3), 'b', 0,
     5 * 4 * 7 * 11 * 2 * (2 * 3)},
    {OP_Q_PROJ_DB, "2,3,5,4,7", NULL, 2 * 3 * 5 * 4 * 7, 's', 0, 2 * 3 * 5 * 4 * 7},
    {OP_KV_PROJ, "2,3,11;5,7,11;5,7", NULL, 2 * 3 * 5 * 7 * (2 * 11 + 1), 'h', 0,
     2 * 3 * 5 * 7 * (2 * 11 + 1)},
    {OP_KV_PROJ_DX, "2,3,5,7;5,7,11", NULL, 2 * 3 * 11 * 2 * (5 * 7), 'h', 0,
     2 * 3 * 11 * 2 * (5 * 7)},
    {OP_KV_PROJ_DW, "2,3,5,7;2,3,11", NULL, 5 * 7 * 11 * 2 * (2 * 3), 's', 0,
     5 * 7 * 11 * 2 * (2 * 3)},
    {OP_KV_PROJ_DB, "2,3,5,7", NULL, 2 * 3 * 5 * 7, 'b', 0, 2 * 3 * 5 * 7},
    {OP_JOIN_KEYS, "2,3,5,7;2,3,4", "E=11", 0, 'h', 0, 0},
    {OP_JOIN_KEYS_DX, "2,3,5,11", "D=7,R=4", 0, 'h', 0, 0},
    {OP_JOIN_KEYS_DR, "2,3,5,11", "D=7,R=4", 2 * 3 * 5 * 4, 'h', 0, 2 * 3 * 5 * 4},
    /* b 2, 11 queries of 4 each of h 5, 13 keys, D 7, V 3: scores 2D, weighted sum 2V;
     * scale 1, softmax 4 */
    {OP_GROUPED_ATTENTION, "2,11,5,4,7;2,13,5,10", "V=3,Q=11,K=13",
     2 * 5 * 4 * 11 * 13 * (2 * 7 + 2 * 3 + 5), 'g', 0,
     2 * 5 * 4 * 11 * 13 * (2 * 7 + 2 * 3 + 5)},
    /* dP and dV 2V each, dQ and dK 2D each; dS 5 */
    {OP_GROUPED_ATTENTION_DX, "2,11,5,4,3;2,11,5,4,7;2,13,5,10;2,5,4,11,13", NULL,
     2 * 5 * 4 * 11 * 13 * (4 * 7 + 4 * 3 + 5), 'h', 0,
     2 * 5 * 4 * 11 * 13 * (4 * 7 + 4 * 3 + 5)},
    {OP_FUSED_ATTENTION, "2,11,5,4,7;2,13,5,10", "V=3",
     2 * 5 * 4 * 11 * 13 * (2 * 7 + 2 * 3 + 5), 'b', 0,
     2 * 5 * 4 * 11 * 13 * (2 * 7 + 2 * 3 + 5)},
    /* one more sink per query */
    {OP_FUSED_ATTENTION, "2,11,5,4,7;2,13,5,10;5,4", "V=3",
     2 * 5 * 4 * 11 * (13 * (2 * 7 + 2 * 3 + 5) + 1), 'b', 0,
     2 * 5 * 4 * 11 * (13 * (2 * 7 + 2 * 3 + 5) + 1)},
    /* the scores again 2D, their exponentials 3 */
    {OP_FUSED_ATTENTION_DX, "2,11,5,4,3;2,11,5,4,7;2,13,5,10;2,5,4,11", NULL,
     2 * 5 * 4 * 11 * 13 * (6 * 7 + 4 * 3 + 8), 'h', 0,
     2 * 5 * 4 * 11 * 13 * (6 * 7 + 4 * 3 + 8)},
    /* dy y 2V; subtract, exp, multiply, sum */
    {OP_ATTENTION_SINK_DW, "2,11,5,4,3;2,11,5,4,3;5,4;2,5,4,11", NULL,
     2 * 5 * 4 * 11 * (2 * 3 + 4), 'b', 0, 2 * 5 * 4 * 11 * (2 * 3 + 4)},
    {OP_GROUPED_OUT, "2,3,5,4,7;11,5,4,7;11", NULL, 2 * 3 * 11 * (2 * 5 * 4 * 7 + 1), 'h',
     0, 2 * 3 * 11 * 2 * 5 * 4 * 7},
    {OP_GROUPED_OUT_DX, "2,3,11;11,5,4,7", NULL, 2 * 3 * 5 * 4 * 7 * 2 * 11, 'g', 0,
     2 * 3 * 5 * 4 * 7 * 2 * 11},
    {OP_GROUPED_OUT_DW, "2,3,11;2,3,5,4,7", NULL, 11 * 5 * 4 * 7 * 2 * (2 * 3), 'n', 0,
     11 * 5 * 4 * 7 * 2 * (2 * 3)},
    /* softmax 5; the choice 1, the sum 1, the quotient 1 */
    {OP_GATE_TOPK, "2,3,11", NULL, 2 * 3 * 11 * 8, '*', 1, 2 * 3 * 11 * 8},
    {OP_GATE_TOPK_DX, "2,3,11;2,3,11", NULL, 2 * 3 * 11 * 10, '*', 0, 2 * 3 * 11 * 10},
    /* b 2, S 3, e 5, C 4, d 7; copies cost nothing, sums one addition per slot, weights a
     * product */
    {OP_ROUTE, "2,3,5;2,3,7", "C=4", 0, 'd', 0, 0},
    {OP_UNROUTE, "2,5,4,7;2,3,5", NULL, 2 * 5 * 4 * 7, 'e', 0, 2 * 5 * 4 * 7},
    {OP_ROUTE_WEIGH, "2,5,4,7;2,3,5", NULL, 2 * 5 * 4 * 7, 'd', 0, 2 * 5 * 4 * 7},
    {OP_ROUTE_WEIGH_DW, "2,5,4,7;2,5,4,7;2,3,5", NULL, 2 * 5 * 4 * 7 * 2, 'd', 0,
     2 * 5 * 4 * 7 * 2},
    {OP_EXPERT_PAIR, "2,3,5,7;3,2,7,11", NULL, 2 * 3 * 5 * 2 * 11 * (2 * 7), 'n', 0,
     2 * 3 * 5 * 2 * 11 * (2 * 7)},
    {OP_EXPERT_PAIR_DX, "2,3,5,2,11;3,2,7,11", NULL, 2 * 3 * 5 * 7 * 2 * (2 * 11), 'e', 0,
     2 * 3 * 5 * 7 * 2 * (2 * 11)},
    {OP_EXPERT_PAIR_DW, "2,3,5,2,11;2,3,5,7", NULL, 3 * 2 * 7 * 11 * 2 * (2 * 5), 'b', 0,
     3 * 2 * 7 * 11 * 2 * (2 * 5)},
    {OP_EXPERT_BIAS, "2,3,5,2,11;3,2,11", NULL, 2 * 3 * 5 * 2 * 11, 'e', 0,
     2 * 3 * 5 * 2 * 11},
    {OP_EXPERT_BIAS_DB, "2,3,5,2,11", NULL, 2 * 3 * 5 * 2 * 11, 'b', 0,
     2 * 3 * 5 * 2 * 11},
    /* the FLOPs of opaque ops are unknown */
    {OP_OPAQUE, "2,3;2,5", "O=7,S=11", 0, 'b', 0, 0},
    {OP_OPAQUE_DX, "2,7;2,11", "A=3", 0, 'b', 0, 0},
    {OP_OPAQUE_WEIGHTS, "13;2,3;2,5", "O=7,S=11", 0, 'b', 0, 0},
    {OP_OPAQUE_DW, "2,7;2,11", "P=13", 0, 'b', 0, 0},
    {OP_OPAQUE_WHOLE, "2,3;2,5", "O=7,S=11", 0, 0, 0, 0},
    {OP_OPAQUE_WHOLE_DX, "2,7;2,11", "A=3", 0, 0, 0, 0},
    {OP_OPAQUE_WHOLE_WEIGHTS, "13;2,3;2,5", "O=7,S=11", 0, 0, 0, 0},
    {OP_OPAQUE_WHOLE_DW, "2,7;2,11", "P=13", 0, 0, 0, 0},
    {OP_OPAQUE_LOSS, "2,3", NULL, 0, 'b', 0, 0},
    {OP_OPAQUE_LOSS_DX, ";2,3", NULL, 0, 'b', 0, 0},
    /* moments 3 + 4, corrections 2, root, division, subtraction 3 */
    {OP_ADAM, "2,3;2,3;2,3;2,3", NULL, 2 * 3 * 12, '*', 0, 2 * 3 * 12},
    {OP_ADAM_MASTER, "2,3;2,3;2,3;2,3;2,3", NULL, 2 * 3 * 12, '*', 0, 2 * 3 * 12},
    {OP_ADAMW, "2,3;2,3;2,3;2,3", NULL, 2 * 3 * 14, '*', 0, 2 * 3 * 14},
    {OP_ADAMW_MASTER, "2,3;2,3;2,3;2,3;2,3", NULL, 2 * 3 * 14, '*', 0, 2 * 3 * 14},
    /* square, two sums, factors 2, root, division, clipping 2, step 3 */
    {OP_ADAFACTOR, "5,2,3;5,2,3;5,2;5,3", NULL, 5 * 2 * 3 * 12, '*', 0, 5 * 2 * 3 * 12},
    {OP_ADAFACTOR_MASTER, "5,2,3;5,2,3;5,2;5,3;5,2,3", NULL, 5 * 2 * 3 * 12, '*', 0,
     5 * 2 * 3 * 12},
    {OP_ADAFACTOR_VECTOR, "7;7;7", NULL, 7 * 8, '*', 0, 7 * 8},
    {OP_ADAFACTOR_VECTOR_MASTER, "7;7;7;7", NULL, 7 * 8, '*', 0, 7 * 8},
    {OP_SGD, "2,3;2,3", NULL, 2 * 3 * 2, '*', 1, 2 * 3 * 2},
    {OP_SGD_MASTER, "2,3;2,3;2,3", NULL, 2 * 3 * 2, '*', 1, 2 * 3 * 2},
    {OP_RELU2, "2,3", NULL, 2 * 3 * 2, '*', 0, 2 * 3 * 2},
    {OP_RELU2_DX, "2,3;2,3", NULL, 2 * 3 * 3, '*', 1, 2 * 3 * 3},
    {OP_MULTIPLY, "2,3;2,3", NULL, 2 * 3, '*', 0, 2 * 3},
    /* the sigmoid 4 and its product for each of the gates, and one product for each element */
    {OP_GATE, "2,3,7;2,3,7", NULL, 2 * 3 * 7 * 6, '*', 0, 2 * 3 * 7 * 6},
    {OP_GATE, "2,3,7;2,3,1", NULL, 2 * 3 * (7 + 5), '*', 1, 2 * 3 * (7 + 5)},
    /* dy x and their sum 2; the slope 7 and its product */
    {OP_GATE_DG, "2,3,7;2,3,7;2,3,1", NULL, 2 * 3 * (7 * 2 + 8), '*', 0,
     2 * 3 * (7 * 2 + 8)},
    /* b 2, s 3, h 5, g 7, D 11 */
    {OP_HEAD_SCALE, "2,3,5,7,11;5,7", NULL, 2 * 3 * 5 * 7 * 11, 'h', 0,
     2 * 3 * 5 * 7 * 11},
    {OP_HEAD_SCALE_DW, "2,3,5,7,11;2,3,5,7,11", NULL, 2 * 3 * 5 * 7 * 11 * 2, 'b', 0,
     2 * 3 * 5 * 7 * 11 * 2},
    /* b 2, 3 tokens, 5 channels, 7 taps */
    {OP_SHORT_CONV, "2,3,5;5,7;5", NULL, 2 * 3 * 5 * (2 * 7 + 1), '*', 0,
     2 * 3 * 5 * (2 * 7 + 1)},
    {OP_SHORT_CONV, "2,3,5;5,7", NULL, 2 * 3 * 5 * 2 * 7, 'b', 0, 2 * 3 * 5 * 2 * 7},
    {OP_SHORT_CONV_DX, "2,3,5;5,7", NULL, 2 * 3 * 5 * 2 * 7, '*', 0, 2 * 3 * 5 * 2 * 7},
    {OP_SHORT_CONV_DW, "2,3,5;2,3,5", "R=7", 2 * 3 * 5 * 2 * 7, 'b', 0,
     2 * 3 * 5 * 2 * 7},
    {OP_SHORT_CONV_DB, "2,3,5", NULL, 2 * 3 * 5, 's', 0, 2 * 3 * 5},
    /* x + bias 1, softplus 4, exp(A) and its product 2, the sigmoid 3 */
    {OP_SCAN_GATES, "2,3,5,7,1;5,7;5,7,1", "G=2", 2 * 3 * 5 * 7 * 10, 'h', 0,
     2 * 3 * 5 * 7 * 10},
    {OP_SCAN_GATES_DX, "2,3,5,7,2;2,3,5,7,1;5,7;5,7,1", NULL, 2 * 3 * 5 * 7 * 12, 'g', 0,
     2 * 3 * 5 * 7 * 12},
    {OP_SCAN_GATES_DW, "2,3,5,7,2;2,3,5,7,1;5,7;5,7,1", NULL, 2 * 3 * 5 * 7 * 16, 'b', 0,
     2 * 3 * 5 * 7 * 16},
    /* For each element of S, D 3 and V 13: a S 1, b k v^T 2, q S 2 */
    {OP_SCAN, "2,3,5,6;2,3,5,7,13;2,3,5,7,2", NULL, 2 * 3 * 5 * 7 * 3 * 13 * 5, 'h', 0,
     2 * 3 * 5 * 7 * 3 * 13 * 5},
    /* S again 3; dS += q dy 2, dq 2, dS v 2, dS k 2, da 2, a dS 1 */
    {OP_SCAN_DX, "2,3,5,7,13;2,3,5,6;2,3,5,7,13;2,3,5,7,2", NULL,
     2 * 3 * 5 * 7 * 3 * 13 * 14, 'g', 0, 2 * 3 * 5 * 7 * 3 * 13 * 14},
    /* and S k 2 */
    /* b 2, S 3, h 5, g 7, V 13, D 3: as scan; of a rate exp and a product, of a step 5 */
    {OP_SELECTIVE_SCAN, "2,3,5,6;2,3,5,7,13;2,3,5,7,1;5,7,3", NULL,
     2 * 3 * 5 * 7 * (3 * 13 * 5 + 3 * 2 + 5), 'g', 0,
     2 * 3 * 5 * 7 * (3 * 13 * 5 + 3 * 2 + 5)},
    {OP_SELECTIVE_SCAN_DX, "2,3,5,7,13;2,3,5,6;2,3,5,7,13;2,3,5,7,1;5,7,3", NULL,
     2 * 3 * 5 * 7 * (3 * 13 * 14 + 3 * 4 + 8), 'b', 0,
     2 * 3 * 5 * 7 * (3 * 13 * 14 + 3 * 4 + 8)},
    {OP_WKV, "2,3,5,6;2,3,5,7,13;2,3,5,7,3", NULL, 2 * 3 * 5 * 7 * (3 * 13 * 5 + 3 * 2),
     'h', 0, 2 * 3 * 5 * 7 * (3 * 13 * 5 + 3 * 2)},
    {OP_WKV_DX, "2,3,5,7,13;2,3,5,6;2,3,5,7,13;2,3,5,7,3", NULL,
     2 * 3 * 5 * 7 * (3 * 13 * 14 + 3 * 4), 'b', 0,
     2 * 3 * 5 * 7 * (3 * 13 * 14 + 3 * 4)},
    /* n^T S and c times it: 4 more; backwards again, dp, dn, dc, dS: 12 more */
    {OP_DELTA_WKV, "2,3,5,6;2,3,5,7,13;2,3,5,7,3;2,3,5,6", NULL,
     2 * 3 * 5 * 7 * (3 * 13 * 9 + 3 * 2), 'h', 0, 2 * 3 * 5 * 7 * (3 * 13 * 9 + 3 * 2)},
    {OP_DELTA_WKV_DX, "2,3,5,7,13;2,3,5,6;2,3,5,7,13;2,3,5,7,3;2,3,5,6", NULL,
     2 * 3 * 5 * 7 * (3 * 13 * 26 + 3 * 4), 'b', 0,
     2 * 3 * 5 * 7 * (3 * 13 * 26 + 3 * 4)},
    /* q u k and its sum 3 for each of D 3, then v 1; backwards 10 of each D, 3 of each v */
    {OP_BONUS, "2,3,5,6;2,3,5,7,13;5,3", NULL, 2 * 3 * 5 * (3 * 3 + 7 * 13), 'h', 0,
     2 * 3 * 5 * (3 * 3 + 7 * 13)},
    {OP_BONUS_DX, "2,3,5,7,13;2,3,5,6;2,3,5,7,13;5,3", NULL,
     2 * 3 * 5 * (3 * 10 + 7 * 13 * 3), 'g', 0, 2 * 3 * 5 * 7 * 13 * 3},
    {OP_TOKEN_SHIFT, "2,3,5", NULL, 2 * 3 * 5, 'b', 0, 2 * 3 * 5},
    {OP_TOKEN_SHIFT_DX, "2,3,5", NULL, 2 * 3 * 5, '*', 0, 2 * 3 * 5},
    {OP_CHANNEL_SCALE, "2,3,5;5", NULL, 2 * 3 * 5, 's', 0, 2 * 3 * 5},
    {OP_CHANNEL_SCALE_DW, "2,3,5;2,3,5", NULL, 2 * 3 * 5 * 2, 's', 0, 2 * 3 * 5 * 2},
    {OP_CHANNEL_BIAS, "2,3,5;5", NULL, 2 * 3 * 5, '*', 0, 2 * 3 * 5},
    {OP_TANH, "2,3", NULL, 2 * 3 * 5, '*', 0, 2 * 3 * 5},
    {OP_TANH_DX, "2,3;2,3", NULL, 2 * 3 * 3, '*', 0, 2 * 3 * 3},
    {OP_SCALE, "2,3", NULL, 2 * 3, '*', 0, 2 * 3},
    {OP_SAMPLE_SCALE, "2,3,5;2,5", NULL, 2 * 3 * 5, 's', 0, 2 * 3 * 5},
    {OP_SAMPLE_SCALE_DG, "2,3,5;2,3,5", NULL, 2 * 3 * 5 * 2, 'b', 0, 2 * 3 * 5 * 2},
    {OP_SAMPLE_BIAS, "2,3,5;2,5", NULL, 2 * 3 * 5, '*', 0, 2 * 3 * 5},
    {OP_SAMPLE_BIAS_DB, "2,3,5", NULL, 2 * 3 * 5, 's', 0, 2 * 3 * 5},
    /* as a layer norm without scale and bias */
    {OP_PLAIN_NORM, "2,3,5", NULL, 2 * 3 * 5 * 6, '*', 0, 2 * 3 * 5 * 6},
    {OP_PLAIN_NORM_DX, "2,3,5;2,3,5", NULL, 2 * 3 * 5 * 13, '*', 0, 2 * 3 * 5 * 13},
    {OP_PART, "2,3,5", "A=2", 0, 'n', 0, 0},
    {OP_PART_DX, "2,2,5", "C=3", 0, 'n', 0, 0},
    /* b 2, Q 11, h 5, g 1, D 3, V 2, R 4: scores 2D, distances' keys and queries 2D for each R */
    {OP_RELATIVE_ATTENTION, "2,11,5,1,3;2,11,5,5;1,4,5,3;1,4,5,1,3", "V=2",
     2 * 5 * 11 * (11 * (2 * 3 + 2 * 2 + 8) + 4 * 2 * 3 * 2), 'h', 0,
     2 * 5 * 11 * (11 * (2 * 3 + 2 * 2 + 8) + 4 * 2 * 3 * 2)},
    {OP_RELATIVE_ATTENTION_DX, "2,11,5,1,2;2,11,5,1,3;2,11,5,5;1,4,5,3;1,4,5,1,3", NULL,
     2 * 5 * 11 * (11 * (6 * 3 + 4 * 2 + 13) + 4 * 6 * 3 * 2), 'b', 0,
     2 * 5 * 11 * (11 * (6 * 3 + 4 * 2 + 13) + 4 * 6 * 3 * 2)},
    {OP_SQUARE_LOSS, "2,3;2,3", NULL, 2 * 3 * 3, '*', 0, 2 * 3 * 3},
    {OP_SQUARE_LOSS_DX, ";2,3;2,3", NULL, 2 * 3 * 3, '*', 0, 2 * 3 * 3},
    {OP_DELTA_SCAN, "2,3,5,6;2,3,5,7,13;2,3,5,7,4", NULL, 2 * 3 * 5 * 7 * 3 * 13 * 7, 'b',
     0, 2 * 3 * 5 * 7 * 3 * 13 * 7},
    /* S again 5; as before 11, k dr 2, P dr 2 */
    {OP_DELTA_SCAN_DX, "2,3,5,7,13;2,3,5,6;2,3,5,7,13;2,3,5,7,2", NULL,
     2 * 3 * 5 * 7 * 3 * 13 * 20, 'h', 0, 2 * 3 * 5 * 7 * 3 * 13 * 20},
    {OP_LINEAR_ATTENTION, "2,3,5,6;2,3,5,7,13", NULL, 2 * 3 * 5 * 7 * 3 * 13 * 5, 'h', 0,
     2 * 3 * 5 * 7 * 3 * 13 * 5},
    /* without da */
    {OP_LINEAR_ATTENTION_DX, "2,3,5,7,13;2,3,5,6;2,3,5,7,13", NULL,
     2 * 3 * 5 * 7 * 3 * 13 * 12, 'b', 0, 2 * 3 * 5 * 7 * 3 * 13 * 12},
    {OP_GROUP_NORM, "2,3,5,7;5,7", NULL, 2 * 3 * 5 * 7 * 4, '*', 0, 2 * 3 * 5 * 7 * 4},
    {OP_GROUP_NORM_DX, "2,3,5,7;2,3,5,7;5,7", NULL, 2 * 3 * 5 * 7 * 8, 's', 0,
     2 * 3 * 5 * 7 * 8},
    {OP_GROUP_NORM_DW, "2,3,5,7;2,3,5,7", NULL, 2 * 3 * 5 * 7 * 5, 'b', 0,
     2 * 3 * 5 * 7 * 5},
    {OP_SQUARES, "2,3,5,7", NULL, 2 * 3 * 5 * 7 * 2, '*', 0, 2 * 3 * 5 * 7 * 2},
    {OP_SQUARES_DX, "2,3;2,3,5", NULL, 2 * 3 * 5 * 2, 'b', 0, 2 * 3 * 5 * 2},
    {OP_NORM_BY, "2,3,5;2,3;5", NULL, 2 * 3 * 5 * 3, '*', 0, 2 * 3 * 5 * 3},
    {OP_NORM_BY_DM, "2,3,5;2,3,5;2,3;5", NULL, 2 * 3 * 5 * 4, '*', 0, 2 * 3 * 5 * 4},
    {OP_NORM_BY_DW, "2,3,5;2,3,5;2,3", NULL, 2 * 3 * 5 * 4, 's', 0, 2 * 3 * 5 * 4},
    {OP_JOIN, "2,3,5;2,3,7", "C=12", 0, '*', 0, 0},
    {OP_JOIN_PART, "2,3,12", "A=5", 0, '*', 1, 0},
    /* b 2, 11 queries, 13 keys, 5 heads of 7: their products 2D; relu, times w, sum 3 */
    {OP_TOP_KEYS, "2,11,5,7;2,13,7;2,11,5", "T=3", 2 * 11 * 13 * 5 * (2 * 7 + 3), 'b', 0,
     2 * 11 * 13 * 5 * (2 * 7 + 3)},
    /* dq and dk of the chosen keys 2D each */
    {OP_TOP_KEYS_DX, "2,11,3;2,11,5,7;2,13,7;2,11,5", NULL, 2 * 11 * 3 * 5 * 4 * 7, 'b',
     0, 2 * 11 * 3 * 5 * 4 * 7},
    /* as attention to 6 keys: D 7, V 3, h 5, g 4 */
    {OP_SPARSE_ATTENTION, "2,11,5,4,7;2,13,5,10;2,11,6", "V=3",
     2 * 11 * 5 * 4 * 6 * (2 * 7 + 2 * 3 + 5), 'h', 0,
     2 * 11 * 5 * 4 * 6 * (2 * 7 + 2 * 3 + 5)},
    {OP_SPARSE_ATTENTION_DX, "2,11,5,4,3;2,11,5,4,7;2,13,5,10;2,11,6;2,5,4,11", NULL,
     2 * 11 * 5 * 4 * 6 * (6 * 7 + 4 * 3 + 8), 'g', 0,
     2 * 11 * 5 * 4 * 6 * (6 * 7 + 4 * 3 + 8)},
    /* two means 3 + 3, sign, step 2 */
    {OP_LION, "2,3;2,3;2,3", NULL, 2 * 3 * 9, '*', 0, 2 * 3 * 9},
    {OP_LION_MASTER, "2,3;2,3;2,3;2,3", NULL, 2 * 3 * 9, '*', 0, 2 * 3 * 9},
    /* five steps of X X', its square, and a product with X: 2 (R R C + R R R + R R C) */
    {OP_MUON, "5,2,3;5,2,3;5,2,3", NULL, 5 * (20 * 12 + 10 * 8 + 25 * 6), '*', 0,
     5 * (20 * 12 + 10 * 8 + 25 * 6)},
    {OP_MUON_MASTER, "5,2,3;5,2,3;5,2,3;5,2,3", NULL, 5 * (20 * 12 + 10 * 8 + 25 * 6),
     '*', 0, 5 * (20 * 12 + 10 * 8 + 25 * 6)},
    {OP_MUON_TALL, "5,3,2;5,3,2;5,3,2", NULL, 5 * (20 * 12 + 10 * 8 + 25 * 6), '*', 0,
     5 * (20 * 12 + 10 * 8 + 25 * 6)},
    {OP_MUON_TALL_MASTER, "5,3,2;5,3,2;5,3,2;5,3,2", NULL,
     5 * (20 * 12 + 10 * 8 + 25 * 6), '*', 0, 5 * (20 * 12 + 10 * 8 + 25 * 6)},
};

/* A graph with this one op. */
static Graph *one_op(const Row *row)
{
    Graph *graph = graph_new(op_kind_name(row->kind));
    g_auto(GStrv) shape = g_strsplit(row->shapes, ";", -1);
    TensorId in[OP_MAX_IN];
    uint32_t n_in = 0;
    for (; shape[n_in]; n_in++) {
        g_auto(GStrv) text = g_strsplit(shape[n_in], ",", -1);
        g_autofree char *name = g_strdup_printf("in%u", n_in);
        uint32_t dim[TENSOR_MAX_RANK], rank = 0;
        for (; text[rank]; rank++)
            dim[rank] = (uint32_t)g_ascii_strtoull(text[rank], NULL, 10);
        in[n_in] = graph_input(graph, name, DTYPE_F32, rank, dim);
    }
    graph_op(graph, row->kind, "op", (OpAttr){.stride = 1}, n_in, in, row->extents);
    graph_seal(graph);
    return graph;
}

static void test_flops_by_hand(void **state)
{
    (void)state;
    bool seen[OP_KINDS] = {false};
    for (uint32_t r = 0; r < G_N_ELEMENTS(ROWS); r++) {
        g_autoptr(Graph) graph = one_op(&ROWS[r]);
        const double got = graph_op_flops(graph, 0);
        if (got != ROWS[r].flops)
            fail_msg("%s (%s): %g FLOPs, by hand %g", graph_name(graph), ROWS[r].shapes,
                     got, ROWS[r].flops);
        seen[ROWS[r].kind] = true;
    }
    for (OpKind kind = 0; kind < OP_KINDS; kind++)
        if (!seen[kind])
            fail_msg("%s has no count", op_kind_name(kind));
}

static void test_flops_over_a_loop(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < G_N_ELEMENTS(ROWS); r++) {
        const Row *row = &ROWS[r];
        g_autoptr(Graph) graph = one_op(row);
        OpSpace space;
        graph_op_space(graph, 0, &space);
        uint32_t l = 0;
        if (row->letter == 0)
            continue; /* of a kind that is never split */
        while (l < space.n_loops &&
               (space.loop[l].letter != row->letter || space.loop[l].star != row->star))
            l++;
        assert_true(l < space.n_loops);
        assert_true(space.loop[l].shardable);
        Rule rule[OP_MAX_RULES];
        uint32_t n = op_rules_of_one(graph, 0, rule), i = 0;
        while (i < n && rule[i].loop != (int)l)
            i++;
        assert_true(i < n);
        const double got = rule[i].flops_sharded;
        if (got != row->over)
            fail_msg("%s (%s) over %c: %g FLOPs, by hand %g", graph_name(graph),
                     row->shapes, row->letter, got, row->over);
    }
}

/* A rule's replicated and sharded FLOPs are the op's, divided by its loop. */
static void test_rules_carry_the_flops(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < G_N_ELEMENTS(ROWS); r++) {
        g_autoptr(Graph) graph = one_op(&ROWS[r]);
        Rule rule[OP_MAX_RULES];
        const uint32_t n = op_rules(graph, 0, rule);
        assert_true(n >= 1);
        for (uint32_t i = 0; i < n; i++) {
            assert_close(rule[i].flops_replicated + rule[i].flops_sharded, ROWS[r].flops,
                         0);
            assert_true(rule[i].loop >= 0 || rule[i].flops_sharded == 0);
        }
    }
}

/* FLOPs are counted by running the loops of a convolution and of attention. */
static void test_flops_by_counting(void **state)
{
    (void)state;
    double count = 0;
    for (uint32_t n = 0; n < 2; n++)
        for (uint32_t o = 0; o < 5; o++)
            for (uint32_t pq = 0; pq < 6 * 8; pq++) {
                for (uint32_t c = 0; c < 3; c++)
                    for (uint32_t tap = 0; tap < 3 * 2; tap++)
                        count += 2; /* y += x w */
                count += 1;         /* y += bias */
            }
    g_autoptr(Graph) conv = one_op(
        &(Row){.kind = OP_CONV2D, .shapes = "2,3,8,9;5,3,3,2;5", .extents = "P=6,Q=8"});
    assert_close(graph_op_flops(conv, 0), count, 0);

    count = 0;
    for (uint32_t b = 0; b < 2; b++)
        for (uint32_t h = 0; h < 5; h++)
            for (uint32_t q = 0; q < 11; q++)
                for (uint32_t k = 0; k < 11; k++) {
                    for (uint32_t d = 0; d < 7; d++)
                        count += 2 + 2; /* score += Q K; y += P V */
                    count += 1;         /* scale */
                    count += 4; /* softmax: subtract the largest, exp, sum, divide */
                }
    g_autoptr(Graph) attention =
        one_op(&(Row){.kind = OP_ATTENTION, .shapes = "2,11,3,5,7", .extents = "K=11"});
    assert_close(graph_op_flops(attention, 0), count, 0);
}

/* A causal query q sees q + 1 keys, or the last ones of a span; the fused kind computes only
 * those. */
static void test_masked_scores_cost_nothing(void **state)
{
    (void)state;
    static const struct {
        OpKind kind;
        OpAttr attr;
        double seen;
    } cases[] = {
        {OP_FUSED_ATTENTION, {.causal = true}, 1 + 2 + 3 + 4 + 5},
        {OP_FUSED_ATTENTION, {.causal = true, .span = 2}, 1 + 2 + 2 + 2 + 2},
        {OP_FUSED_ATTENTION, {.causal = true, .span = 9}, 1 + 2 + 3 + 4 + 5},
        {OP_FUSED_ATTENTION, {.causal = false}, 25},
        {OP_GROUPED_ATTENTION, {.causal = true}, 25},
    };
    for (uint32_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(Graph) graph = graph_new("attention");
        const TensorId in[] = {
            graph_input(graph, "q", DTYPE_F32, 5, (uint32_t[]){1, 5, 1, 1, 7}),
            graph_input(graph, "kv", DTYPE_F32, 4, (uint32_t[]){1, 5, 1, 10})};
        graph_op(graph, cases[i].kind, "y", cases[i].attr, 2, in, "V=3,K=5");
        assert_close(graph_op_flops(graph, 0), cases[i].seen * (2 * 7 + 2 * 3 + 5),
                     1e-12);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flops_by_hand),
        cmocka_unit_test(test_flops_over_a_loop),
        cmocka_unit_test(test_rules_carry_the_flops),
        cmocka_unit_test(test_flops_by_counting),
        cmocka_unit_test(test_masked_scores_cost_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
