/* Ratios that a user gives: the options `ratios` and `mix` (private to synth).
 *
 *     ratios=0.4,0.3,0.2,0.1    one number per device, in the order in which plans list them, or one
 *                               per machine, for its GPUs together
 *     ratios=v100=3,p100=1      NAME=NUMBER: a type of devices has the number on each of its GPUs; a
 *                               device, or a machine for its GPUs together, before its type
 *     mix=0.3                   0.7 times even and 0.3 times proportional ratios
 *
 * Numbers are parts of their sum; spaces may stand in place of commas, as they must in entries of
 * an experiment's planners. */
#pragma once

#include "data/base/options.h"
#include "sim/sim.h"

/* clang-format off */
#define RATIOS_WORDS(X) \
    X(RATIOS_OWN, "own") X(RATIOS_EVEN, "even") X(RATIOS_PROPORTIONAL, "proportional") \
    X(RATIOS_BEST, "best")
/* clang-format on */
typedef enum { RATIOS_WORDS(OPTION_ID) RATIOS_GIVEN, RATIOS_MIX } RatiosChoice;

/* The word, or RATIOS_GIVEN for numbers. */
RatiosChoice given_choice(const char *text);

/* Readers of the options (data/base/options.h). KILTER_ERROR_INPUT says what was expected. */
bool given_read(const char *text, const char **kept, GError **error);
bool given_read_mix(const char *text, const char **kept, GError **error);

/* The ratios that such a text gives the devices of the view. KILTER_ERROR_INPUT: too few or too
 * many numbers, an unknown name, a device without a number. Caller frees. */
double *given_ratios(const char *text, const ClusterView *view, GError **error);
