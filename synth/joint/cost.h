/* The cost of a pipeline, stage by stage from the last to the first (private to synth/joint). */
#pragma once

#include "synth/joint/joint.h"

/* A suffix of stages: the layers from `first` on. */
typedef struct {
    double sum_s, pace_s, end_s;  /* S, Z, E */
    uint16_t group, entry, first; /* of its first stage */
    uint16_t n;                   /* stages */
} JointSuffix;

/* A stage that may be put in front of a suffix of stages, but for its first layer. */
typedef struct {
    uint32_t group, entry;
    const JointEntry *e;
    uint32_t last; /* the layer behind it */
    /* microbatches in flight but the one that it works on, where memory is short and where not */
    double least_in, most_in;
    bool splits;            /* its backward is split, */
    double most_lag;        /* and its rest comes so many microbatches later, or sooner */
    double there_s, back_s; /* of the border behind it */
} JointFront;

/* used: [kind] units of the suffix; NULL: as if it were in other machines. */
JointFront joint_front(const JointProblem *problem, const JointWay *way,
                       const JointSuffix *suffix, const uint32_t *used,
                       const JointStage *stage, uint32_t last);

/* The suffix with that stage in front, from `layer` on. */
JointSuffix joint_prepend(const JointProblem *problem, const JointWay *way,
                          const JointSuffix *suffix, const JointFront *front,
                          uint32_t layer);

/* Whether the stage has the memory for what is in flight, if it begins at `layer`. */
bool joint_front_fits(const JointProblem *problem, const JointWay *way,
                      const JointFront *front, uint32_t layer);

/* Whether it also has the memory for as many microbatches ahead as the schedule can use. */
bool joint_front_is_ample(const JointProblem *problem, const JointWay *way,
                          const JointFront *front, uint32_t layer);

static inline double joint_span(const double *sum, uint32_t i, uint32_t j)
{
    KILTER_ASSERT(i <= j && sum[i] <= sum[j]);
    return sum[j] - sum[i];
}
