/* The symbols that the cuda backend's module exports; see exec/cuda_module.c. */
#pragma once

#include "exec/backend.h"

uint32_t kilter_cuda_gpus(void);
ExecBackend *kilter_cuda_new(const ExecCudaWorld *world, size_t element_bytes,
                             GError **error);
