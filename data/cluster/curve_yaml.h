/* The section `curves` of a cluster's file. Private to data. */
#pragma once

#include "data/cluster/members.h"

typedef struct {
    POINT_MEMBERS(MEMBER_TEXT)
} CurvePointText;

typedef struct {
    char *collective, *device, *source;
    CURVE_MEMBERS(MEMBER_TEXT)
    CurvePointText *point;
    uint32_t point_count;
} CurveText;

extern const cyaml_schema_value_t CURVE_SCHEMA; /* schema of a CurveText */

/* Reads all curves of the section `key`. KILTER_ERROR_INPUT; what was read is to be cleared. */
bool curves_read(const Yaml *yaml, const char *key, uint32_t n, const CurveText *text,
                 CollectiveCurves *curves);
/* Whether all numbers are such as a file may say. KILTER_ERROR_INPUT names `what`. */
bool curve_check(const CollectiveCurve *curve, const char *what, GError **error);
json_t *curves_json(const CollectiveCurves *curves);
