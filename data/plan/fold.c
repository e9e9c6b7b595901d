/* Finds repetition in a program, as LZ77 does in text: microbatches run the same instructions, and
 * so do layers and stages. */
#include "data/plan/fold.h"

#include "data/base/free.h"

#include <stdlib.h>
#include <string.h>

enum {
    LEAST = 4,        /* instructions worth a repetition */
    TRIED = 12,       /* earlier places that are compared, of each kind */
    DIGITS = 9,       /* of a number in a name */
    HEADS = 1u << 16, /* places of a table of hashes */
};

const char *plan_name_number(const char *name, uint32_t *number, const char **rest)
{
    const char *at = name + strcspn(name, "0123456789");
    const size_t n = strspn(at, "0123456789");
    if (n == 0 || n > DIGITS || (*at == '0' && n > 1))
        return NULL;
    *number = (uint32_t)strtoul(at, NULL, 10);
    *rest = at + n;
    return at;
}

/* A name as the hash of its text without the number, and the number; -1: none. */
typedef struct {
    uint32_t stem;
    int32_t number;
} FoldName;

/* The places that begin with instructions of the same hashes, from the last one on. */
typedef struct {
    uint32_t *hash;   /* [instruction] */
    uint32_t *last;   /* [HEADS]: 1 + the last place with this hash */
    uint32_t *before; /* [instruction]: 1 + the place before */
} FoldChain;

typedef struct {
    const Program *program;
    const Graph *graph;
    FoldName *op, *tensor;
    /* by what all repetitions share; and by that with the whole name */
    FoldChain alike, same;
} Fold;

static FoldName fold_name(GHashTable *stems, const char *name)
{
    uint32_t number;
    const char *rest, *at = plan_name_number(name, &number, &rest);
    FoldName result = {.number = at ? (int32_t)number : -1};
    char *stem =
        at ? g_strdup_printf("%.*s#%s", (int)(at - name), name, rest) : g_strdup(name);
    gpointer known = g_hash_table_lookup(stems, stem);
    if (!known) {
        known = GUINT_TO_POINTER(g_hash_table_size(stems) + 1);
        g_hash_table_insert(stems, stem, known);
    } else
        g_free(stem);
    result.stem = GPOINTER_TO_UINT(known);
    return result;
}

static FoldName fold_named(const Fold *f, const Instr *instr)
{
    return instr->kind == INSTR_COMPUTE ? f->op[instr->op] : f->tensor[instr->tensor];
}

static uint32_t fold_mix(uint32_t hash, uint32_t value)
{
    return (hash ^ value) * 0x9e3779b1u ^ hash >> 15; /* Knuth's multiplicative hash */
}

static void fold_hash(Fold *f, uint32_t i)
{
    const Instr *instr = &f->program->instr[i];
    const FoldName name = fold_named(f, instr);
    uint32_t hash = fold_mix(instr->kind, name.stem);
    hash = fold_mix(hash, instr->microbatch == PROGRAM_WHOLE);
    f->alike.hash[i] = fold_mix(hash, (uint32_t)(instr->from << 8 | instr->to));
    f->same.hash[i] = fold_mix(f->alike.hash[i], (uint32_t)name.number);
}

/* All that repetitions of an instruction share besides its name and place. */
static bool fold_alike(const Fold *f, const Instr *a, const Instr *b)
{
    if (a->kind != b->kind || a->stream != b->stream || a->across != b->across ||
        a->moves != b->moves || a->server != b->server || a->from != b->from ||
        a->to != b->to ||
        (a->kind == INSTR_COLLECTIVE && a->collective != b->collective) ||
        (a->kind == INSTR_TRANSFER && a->to_group - a->group != b->to_group - b->group))
        return false;
    if (a->kind != INSTR_COMPUTE)
        return true;
    const Op *op = graph_get_op(f->graph, a->op), *other = graph_get_op(f->graph, b->op);
    return op->n_in == other->n_in && op->n_out == other->n_out &&
           memcmp(a->form, b->form, (op->n_in + op->n_out) * sizeof *a->form) == 0;
}

typedef struct {
    PlanShift by;
    bool layer, microbatch; /* whether these are known yet */
} FoldShift;

/* Whether instruction `to` repeats instruction `from` with this shift, of which unknown parts
 * become known. */
static bool fold_repeats(const Fold *f, uint32_t from, uint32_t to, FoldShift *shift)
{
    const Instr *a = &f->program->instr[from], *b = &f->program->instr[to];
    const FoldName x = fold_named(f, a), y = fold_named(f, b);
    if (x.stem != y.stem || b->group - a->group != shift->by.group ||
        (a->microbatch == PROGRAM_WHOLE) != (b->microbatch == PROGRAM_WHOLE) ||
        !fold_alike(f, a, b))
        return false;
    if (x.number >= 0) {
        if (shift->layer && y.number - x.number != shift->by.layer)
            return false;
        shift->layer = true;
        shift->by.layer = y.number - x.number;
    }
    if (a->microbatch != PROGRAM_WHOLE) {
        if (shift->microbatch && b->microbatch - a->microbatch != shift->by.microbatch)
            return false;
        shift->microbatch = true;
        shift->by.microbatch = b->microbatch - a->microbatch;
    }
    return true;
}

/* A hash of two instructions from i on. */
static uint32_t fold_place(const Fold *f, const FoldChain *chain, uint32_t i)
{
    const uint32_t next = MIN(i + 1, f->program->n - 1);
    return fold_mix(chain->hash[i], chain->hash[next]) >> 16;
}

/* Tries the places of one chain, and keeps the longest repetition. */
static void fold_try(const Fold *f, uint32_t i, const FoldChain *chain, PlanPiece *best)
{
    const Program *program = f->program;
    uint32_t place = chain->last[fold_place(f, chain, i)];
    for (uint32_t t = 0; place && t < TRIED; t++, place = chain->before[place - 1]) {
        const uint32_t from = place - 1;
        if (i + best->n >= program->n)
            return;
        if (f->alike.hash[from + best->n] != f->alike.hash[i + best->n])
            continue;
        FoldShift shift = {.by.group =
                               program->instr[i].group - program->instr[from].group};
        uint32_t n = 0;
        while (i + n < program->n && fold_repeats(f, from + n, i + n, &shift))
            n++;
        if (n > best->n)
            *best = (PlanPiece){n, i - from, shift.by};
    }
}

static void fold_enter(const Fold *f, FoldChain *chain, uint32_t i)
{
    uint32_t *last = &chain->last[fold_place(f, chain, i)];
    chain->before[i] = *last;
    *last = i + 1;
}

static FoldChain fold_chain_new(uint32_t n)
{
    return (FoldChain){g_new(uint32_t, n), g_new0(uint32_t, HEADS), g_new(uint32_t, n)};
}

static CLEAR_DEFINE(fold_chain_clear, FoldChain, chain,
                    free_each(chain->hash, chain->last, chain->before));

static void fold_open(Fold *f)
{
    const uint32_t n = f->program->n;
    g_autoptr(GHashTable) stems = text_table(NULL);
    f->op = g_new(FoldName, graph_n_ops(f->graph));
    f->tensor = g_new(FoldName, graph_n_tensors(f->graph));
    for (OpId id = 0; id < graph_n_ops(f->graph); id++)
        f->op[id] = fold_name(stems, graph_get_op(f->graph, id)->name);
    for (TensorId id = 0; id < graph_n_tensors(f->graph); id++)
        f->tensor[id] = fold_name(stems, graph_tensor(f->graph, id)->name);
    f->alike = fold_chain_new(n);
    f->same = fold_chain_new(n);
    for (uint32_t i = 0; i < n; i++)
        fold_hash(f, i);
}

static CLEAR_DEFINE(fold_close, Fold, f, free_each(f->op, f->tensor),
                    fold_chain_clear(&f->alike), fold_chain_clear(&f->same));

GArray *plan_fold(const Program *program, const Graph *graph)
{
    GArray *pieces = g_array_new(FALSE, FALSE, sizeof(PlanPiece));
    PlanPiece plain = {0};
    if (program->n <= PLAN_WRITTEN_OUT) {
        plain.n = program->n;
        g_array_append_val(pieces, plain);
        return pieces;
    }
    Fold f = {.program = program, .graph = graph};
    fold_open(&f);
    for (uint32_t i = 0; i < program->n;) {
        PlanPiece best = {0};
        fold_try(&f, i, &f.same, &best);
        fold_try(&f, i, &f.alike, &best);
        if (best.n < LEAST)
            best = (PlanPiece){.n = 1};
        for (uint32_t k = 0; k < best.n; k++) {
            fold_enter(&f, &f.alike, i + k);
            fold_enter(&f, &f.same, i + k);
        }
        i += best.n;
        plain.n += best.back ? 0 : 1;
        if ((best.back || i == program->n) && plain.n) {
            g_array_append_val(pieces, plain);
            plain.n = 0;
        }
        if (best.back)
            g_array_append_val(pieces, best);
    }
    fold_close(&f);
    return pieces;
}
