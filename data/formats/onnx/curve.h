/* Values as functions of others (private to data). */
#pragma once

#include "data/formats/onnx/onnx.h"

/* Numbers that functions are tried on; those from the first positive one on are positive. */
enum { ONNX_POINTS = 8, ONNX_FIRST_POSITIVE = 4, ONNX_SCALE_POINT = 7 };
extern const double ONNX_POINT[ONNX_POINTS];

/* A value as a function of each element of another one: of itself where nothing else is known. */
typedef struct {
    uint32_t root;
    double y[ONNX_POINTS]; /* NAN: not known */
    uint32_t nodes;
} OnnxCurve;

/* One for each value. Caller frees. */
OnnxCurve *onnx_curves(const OnnxModel *model);

/* The function that a curve is, times *scale. */
OnnxFunction onnx_function_of(const OnnxCurve *curve, double *scale);
