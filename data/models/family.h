/* Keys common to several families of models (private to data). */
#ifndef KILTER_DATA_MODELS_FAMILY_H
#define KILTER_DATA_MODELS_FAMILY_H

#include "data/models/config.h"

/* A family's values for keys that its file leaves out; kv_heads 0: as many as heads; head_size 0:
 * the heads divide the width. */
typedef struct {
    uint32_t vocab, hidden, ffn, layers, heads, kv_heads, positions, head_size;
} Defaults;

/* Reads the number of elements of a head that turn. */
void family_read_rotary(Config *c, const char *keys, double otherwise, Architecture *a);
void family_read_activation(Config *c, const char *keys, const char *otherwise,
                            Architecture *a);
/* Layer `full` of each `period` layers sees all keys, the others the last `window` keys; period 0:
 * all layers have the window. layer_types overrides this if given. */
void family_set_windows(Config *c, uint32_t window, uint32_t period, uint32_t full,
                        Architecture *a);
/* Reads a llama-like family: pre-norm with RMS norms, a gated feed-forward network, rotary
 * positions. */
bool family_read_llama_like(Config *c, const Defaults *d, const char *activation,
                            bool tied, Architecture *a);
void family_set_attention_bias(Config *c, bool otherwise, Architecture *a);
/* Reads a GPT-like family: layer norms, biases everywhere, a plain feed-forward network. */
bool family_read_gpt_like(Config *c, const Defaults *d, bool tied, Architecture *a);

#endif
