/* Steps of the schedules whose stages go to the last group and back (private to synth). */
#pragma once

#include "synth/pipeline/pipeline.h"

/* The steps of `group`, in order; dualpipev needs 2 n_groups microbatches. Free with
 * g_array_unref. */
GArray *schedule_v_steps(SynthSchedule schedule, uint32_t n_groups,
                         uint32_t n_microbatches, uint32_t group);
