/* Ops that work element by element (private to data). */
#ifndef KILTER_DATA_FORMATS_ONNX_ELEMENTS_H
#define KILTER_DATA_FORMATS_ONNX_ELEMENTS_H

#include "data/formats/onnx/onnx.h"

/* 1 or 2: a node makes a number of each element of one input, or of two; 0: it does not, or makes
 * truth values. */
uint32_t onnx_arithmetic(const OnnxNode *node);

/* The formula of an op in the table, for elements a and b; `whole`: the result is an integer. NAN:
 * not known. */
typedef double (*OnnxElement)(const OnnxNode *node, bool whole, double a, double b);
OnnxElement onnx_element_of(const OnnxNode *node);

#endif
