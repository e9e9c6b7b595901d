/* Steps of the schedules whose stages go to the last group and back (private to synth). */
#ifndef KILTER_SYNTH_PIPELINE_SCHEDULE_V_H
#define KILTER_SYNTH_PIPELINE_SCHEDULE_V_H

#include "synth/pipeline/pipeline.h"

/* The steps of `group`, in order; dualpipev needs 2 n_groups microbatches. Free with
 * g_array_unref. */
GArray *schedule_v_steps(SynthSchedule schedule, uint32_t n_groups,
                         uint32_t n_microbatches, uint32_t group);

#endif
