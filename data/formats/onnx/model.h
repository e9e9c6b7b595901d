/* Specs of ONNX files (private to data). */
#pragma once

#include "data/formats/onnx/onnx.h"
#include "data/models/models.h"

/* The graph of a file. */
bool onnx_graph(const ModelOfFile *of, GError **error);

/* model_file_facts as JSON. A new reference. */
json_t *onnx_file_facts(const char *spec, const char *file, const json_t *root,
                        const char *list, GError **error);
