/* HiDup (SoCC'22), Sec. 3-4: programs of two microbatches that take turns, so that one computes
 * while the other communicates, by dynamic programming over prefixes of the layers (hidup.h), with
 * equal shares or those of HAP's linear program. Without a bound of its own (private to synth). */
#pragma once

#include "synth/answer/answer.h"

bool hidup_make(const Question *question, Answer *answer, GError **error);
