/* The section `fit` of a cluster's file. Private to data. */
#pragma once

#include <jansson.h>

#include "data/cluster/fitted.h"
#include "data/cluster/op_cost_yaml.h"

typedef struct {
    char *least, *most;
} FittedRangeText;

typedef struct {
    char *fidelity, *planner, *software;
    FittedRangeText range[FITTED_RANGES];
    char **error; /* "a100-80g+t4 0.031" */
    uint32_t error_count;
} FittedText;

extern const cyaml_schema_field_t FITTED_SCHEMA[]; /* of a FittedText */

/* KILTER_ERROR_INPUT. */
Fitted *fitted_read(const Yaml *yaml, const char *key, const FittedText *text);
json_t *fitted_json(const Fitted *fitted);
