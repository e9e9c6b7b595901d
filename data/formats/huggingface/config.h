/* config.json of Hugging Face, and models in YAML, by the rows of data/families.yaml (private to
 * data).
 *
 * A configuration is one flat object, whose `model_type` names the family; a multimodal one has the
 * text's model in an object of its own. A model in YAML (docs/models.md) is an object that has
 * `like`, the family whose facts it takes over, with facts and keys of its own. */
#pragma once

#include "data/models/architecture.h"

struct json_t;

/* The model of a file's object, as one of the family `like` if that is not empty.
 * KILTER_ERROR_INPUT names the file and the key. The caller clears and frees it. */
Architecture *config_read(const char *path, struct json_t *root, const char *like,
                          GError **error);

/* {"facts": {...}, "unread": "a, b" or null, "kv_bytes_per_token": N, "checkpoint_parameters": N or
 * null}: a model by its file and by the index of a checkpoint beside it. */
struct json_t *config_facts(const Architecture *architecture, const char *path);

/* The rank of the adapters of low rank that a file of PEFT, or the one in a folder, says, and the
 * words of `target` (TrainedParts). Rates of learning and scales have no effect here. Whether a
 * value of train= may be such a file. KILTER_ERROR_INPUT names the file and the key. Caller
 * frees. */
bool peft_read(const char *path, uint32_t *rank, char **target, GError **error);
/* The same words for modules by their names, "q_proj, v_proj", or "all-linear"; NULL with
 * KILTER_ERROR_INPUT for another name. Caller frees. */
char *peft_target(const char *modules, GError **error);
bool peft_is(const char *path);

/* Where a Hugging Face id, "hf:OWNER/NAME", lies in the local cache of the hub; it may not be
 * there. Caller frees. */
char *hub_path(const char *id);
bool hub_is_id(const char *path);
/* Whether the path is one of the cache; then *id is "OWNER/NAME". Caller frees. */
bool hub_id_of(const char *path, char **id);
