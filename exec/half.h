/* Numbers of two bytes: fp16 (IEEE 754 binary16) and bf16 (the upper half of a float32). */
#pragma once

#include <stdint.h>

#include "exec/backend.h"

/* The number that the bits stand for, and the bits of the nearest number, of two equally near ones
 * the even one; beyond the largest finite number infinity. `numbers`: EXEC_FP16 or EXEC_BF16. */
float exec_half_value(uint16_t bits, ExecNumbers numbers);
uint16_t exec_half_bits(float value, ExecNumbers numbers);

/* "fp16" or "bf16". */
const char *exec_half_name(ExecNumbers numbers);

/* The scale of the loss for a graph's training in these numbers (ExecBackend.loss_scale): for fp16
 * the power of two next below 1024 / the terms that the loss sums, so that gradients stay within
 * its range; 1 for the others. */
double exec_half_loss_scale(const Graph *graph, ExecNumbers numbers);
