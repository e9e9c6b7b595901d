/* The fastest plan of all planners on any choice of the machines (portfolio.h); its bound is over
 * every plan on any of them, by computation alone (private to synth). */
#pragma once

#include "synth/answer/answer.h"

bool auto_make(const Question *question, Answer *answer, GError **error);
