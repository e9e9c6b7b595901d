/* HAP (EuroSys'24), Sec. 3-5: programs (Eq. 1, by search: search.h) and ratios (Eq. 2, by linear
 * program: balance/) in turn, over all programs of one group of devices; with bounds on that space
 * (private to synth). */
#pragma once

#include "synth/answer/answer.h"

bool hap_make(const Question *question, Answer *answer, GError **error);

/* For plans with hap's own ratios and search: alternates from `start` or, if `programs` (Program)
 * is not NULL, tries these with their best ratios, and takes the resulting plan if it is better.
 * Does nothing to other plans. */
bool hap_improve(const Question *question, Answer *answer, const double *start,
                 const GPtrArray *programs, GError **error);

/* Sets the plan's lower_bound_s, a bound on every program that keeps the pins with any ratios that
 * fit the memory. Boxes of ratios are refined until the plan's gap is at most the option `certify`;
 * the plan's certificate says that it is, or why not. */
bool hap_certify(const Question *question, Answer *answer, GError **error);

/* The bound from one box of all ratios, cheap enough for every plan. The plan is unchanged where
 * nothing can be proved. */
bool hap_bound(const Question *question, Answer *answer, GError **error);

/* Sets answer->misfit if it can be proved that no program and ratios fit. Tries once. */
bool hap_disprove(const Question *question, Answer *answer, GError **error);
