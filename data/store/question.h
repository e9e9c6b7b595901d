/* Questions of the result store (data/store/store.h): everything on which an answer depends. */
#pragma once

#include <stdint.h>

#include "data/base/free.h"

/* A text with its SHA-256, shared by many questions; reference-counted, for any thread. */
typedef struct StorePart StorePart;
StorePart *store_part_new(const char *json); /* JSON with sorted keys */
const char *store_part_text(const StorePart *part);
StorePart *store_part_ref(StorePart *part);
AUTOPTR(store_part_unref, StorePart)

/* Everything on which an answer depends; its maker drops its references with
 * store_question_clear. */
typedef struct {
    StorePart *subject; /* the model that is trained, or the message that is sent */
    StorePart *cluster; /* the cluster */
    StorePart *method;  /* planner, fidelity, options, the answers' number */
    uint64_t seed;      /* up to 2^63 - 1 */
} StoreQuestion;

AUTOCLEAR(store_question_clear, StoreQuestion)

/* The question's identity: the SHA-256 (hex) of {"cluster":C,"method":M,"seed":N,"subject":S},
 * where C, M and S are the parts' hashes. The caller frees it. */
char *store_question_hash(const StoreQuestion *question);

/* A question as an experiment asks it. Strings are borrowed. */
typedef struct {
    const char *experiment;              /* name in the experiment file */
    const char *hash;                    /* hash of the question */
    const char *model, *cluster, *entry; /* as in the file; entry: the planner's */
    const char *axes; /* further axes of its grid: a JSON object of texts, or NULL */
    uint32_t ordinal; /* position in its grid */
} StoreAsked;
