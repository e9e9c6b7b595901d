/* The symbols that the cuda backend's module exports; see exec/cuda_module.c. */
#ifndef KILTER_EXEC_CUDA_MODULE_H
#define KILTER_EXEC_CUDA_MODULE_H

#include "exec/backend.h"

uint32_t kilter_cuda_gpus(void);
ExecBackend *kilter_cuda_new(const ExecCudaWorld *world, size_t element_bytes,
                             GError **error);

#endif
