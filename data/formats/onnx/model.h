/* Specs of ONNX files (private to data). */
#pragma once

#include "data/formats/onnx/onnx.h"
#include "data/models/models.h"

/* model_build of what a file says. */
Graph *onnx_graph(const char *spec, const char *file, const json_t *root,
                  const char *list, uint32_t gpus, char **canonical, GError **error);

/* model_file_facts as JSON. A new reference. */
json_t *onnx_file_facts(const char *spec, const char *file, const json_t *root,
                        const char *list, GError **error);
