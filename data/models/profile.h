/* Workloads by profile: what ops take, not what they compute (private to data). One JSON object:
 *
 *     {"format": {"name": "kilter-profile", "version": 1},
 *      "name": "my-net", "source": "torch profiler, 2026-11-22", "batch": 32, "precision": "single",
 *      "input_bytes": 19267584,
 *      "ops": [
 *        {"op": "stem", "in": ["input"], "bytes": 102760448, "kept_bytes": 205520896, "parameter_bytes": 37632,
 *         "forward_s": {"V100": 0.0021, "P100": [[16, 0.0026], [32, 0.0049]]}, "backward_s": {"V100": 0.0042, ...}},
 *        {"op": "sort", "in": ["stem"], "bytes": 4096, "splittable": false, ...}]}
 *
 * Bytes are those of `batch` samples, of what the op makes (`bytes`) and what it keeps for its
 * backward (`kept_bytes`; absent: as much as it makes), but for `parameter_bytes`, which all
 * samples share; numbers are as wide as the precision has them, and each sample has at least one.
 * Ops come after those they read; without `in` they read the input. Times are by device type, of
 * samples as in data/graph/times.h; a number alone is the time of `batch` samples. Ops that are not
 * splittable always work on the whole batch. What no op reads goes into a loss that takes no time.
 *
 * An op reads at most 5 results (4 if it has parameters): of more the last ones are joined first,
 * which takes no time. Its backward is an op for each gradient that is needed, and each takes an
 * even part of backward_s; an op without parameters that none with parameters precedes has no
 * backward. Without `batch` in the file the spec has to say it. */
#pragma once

#include "data/models/models.h"

#include <jansson.h>

/* The graph of a profile. KILTER_ERROR_INPUT, "FILE: ops[3].in[0]: ...". */
bool profile_model(const ModelOfFile *of, GError **error);

/* Whether a path is of the tables that data sets come in: NAME-ops.csv, with NAME-edges.csv beside
 * it. */
bool profile_is_table(const char *path);

/* The profile that tables hold: `id, name, pass, TYPE_ms, ..., memory_bytes, colour` of ops, of
 * which one forward and one backward op of a colour are one op here, and `from, to, bytes` of edges
 * between them. memory_bytes is what the forward op makes and its parameters. NULL:
 * KILTER_ERROR_INPUT. */
json_t *profile_from_table(const char *path, GError **error);
