/* Known strategies, to compare with (HAP, EuroSys'24, Sec. 7.1; HiDup, SoCC'22, Sec. 6.1): one
 * program each, with shares that are even, by speed or by HAP's linear program (Eq. 2); and
 * strategies by hand (Megatron-LM, SC'21; ZeRO, SC'20). Nothing is searched (private to
 * synth). */
#pragma once

#include "synth/answer/answer.h"

/* Variants of planners. FastMoE's experts are GShard's: their capacity is the model's, although
 * FastMoE has no limit. */
enum {
    BASELINES_REPLICAS,
    BASELINES_DEEPSPEED,
    BASELINES_GSHARD,
    BASELINES_TENSOR_PARALLEL,
    BASELINES_DDP, /* replicas that fuse gradients up to a size, unless the options name one */
    BASELINES_HOROVOD, /* the same */
};
bool baselines_make(const Question *question, Answer *answer, GError **error);
bool baselines_make_manual(const Question *question, Answer *answer, GError **error);
