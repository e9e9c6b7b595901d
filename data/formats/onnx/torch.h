/* Programs of torch.export as the JSON of an ONNX model (private to data). */
#pragma once

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

/* By its name. */
bool torch_is(const char *path);

/* The graph's JSON in an archive of PyTorch 2.5 to 2.9; weights are never read. NULL with
 * KILTER_ERROR_INPUT. Caller frees. */
char *torch_text(const char *path, gsize most, gsize *length, GError **error);

/* The JSON that onnx_load gives, of that one: weights by their names in the state dict, and each
 * node by its row of data/aten.yaml; one without a row keeps its name, and is refused where it is
 * needed. NULL with KILTER_ERROR_INPUT. A new reference. */
json_t *torch_model(const char *path, const json_t *root, GError **error);
