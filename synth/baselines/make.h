/* Known strategies, to compare with (HAP, EuroSys'24, Sec. 7.1; HiDup, SoCC'22, Sec. 6.1): one
 * program each, with shares that are even, by speed or by HAP's linear program (Eq. 2); and
 * strategies by hand (Megatron-LM, SC'21; ZeRO, SC'20). Nothing is searched (private to
 * synth). */
#pragma once

#include "synth/answer/answer.h"

bool baselines_make_dp_even(const Question *question, Answer *answer, GError **error);
bool baselines_make_dp_proportional(const Question *question, Answer *answer,
                                    GError **error);
bool baselines_make_deepspeed(const Question *question, Answer *answer, GError **error);
bool baselines_make_gshard(const Question *question, Answer *answer, GError **error);
bool baselines_make_tensor_parallel(const Question *question, Answer *answer,
                                    GError **error);
bool baselines_make_fastmoe(const Question *question, Answer *answer, GError **error);
bool baselines_make_ddp(const Question *question, Answer *answer, GError **error);
bool baselines_make_horovod(const Question *question, Answer *answer, GError **error);
bool baselines_make_manual(const Question *question, Answer *answer, GError **error);
