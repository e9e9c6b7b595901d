/* The blocks of a program. */
#include "data/program/blocks.h"

#include "data/base/free.h"
#include "data/program/period.h"

/* A block of the program. */
typedef struct {
    const Instr *instr;
    uint32_t first, n;
    uint32_t again; /* so many before it do the same for its microbatch */
    uint32_t kind;  /* blocks of a kind are alike */
    uint32_t rank;  /* so many of its kind are before it */
    uint32_t of;    /* its place in the part, or NOT_THERE */
} Cut;

enum { FRONT = 3, BACK = 2, NOT_THERE = UINT32_MAX };

typedef struct {
    const Program *program;
    GArray *cut;              /* Cut */
    uint32_t *number, *chief; /* [kind]: cuts; the one that stands for others */
    GHashTable *seen;         /* kind << 16 | microbatch */
    uint32_t n_kinds;
    /* the cuts that what is left out repeats; how often, how much later, and in how many steps */
    uint32_t from, end, times, later, n;
    uint32_t *rank; /* [microbatch]: its number in the part, or NOT_THERE */
    uint32_t n_ranks;
} Cutting;

OWN_CLEAR_DEFINE(cutting_clear, Cutting, c, let_go(c->cut, g_array_unref),
                 let_go(c->seen, g_hash_table_destroy),
                 free_each(c->number, c->chief, c->rank));

static Cut *cut_at(const Cutting *c, uint32_t i)
{
    return &g_array_index(c->cut, Cut, i);
}

static bool cut_is_whole(const Cut *cut)
{
    return cut->instr->microbatch == PROGRAM_WHOLE;
}

static guint cut_hash(const void *key)
{
    const Cut *cut = key;
    const Instr *x = cut->instr, *y = x + cut->n - 1;
    return ((cut->n * 31 + x->group) * 31 + x->op + x->tensor) * 31 + y->op + y->tensor +
           cut->again;
}

static gboolean cut_equal(const void *a, const void *b)
{
    const Cut *x = a, *y = b;
    uint32_t i = 0;
    while (x->n == y->n && x->again == y->again && i < x->n &&
           instr_alike(&x->instr[i], &y->instr[i]))
        i++;
    return i == x->n;
}

/* Cuts the program, at two further places, too. */
static void cutting_find_cuts(Cutting *c, const uint32_t place[2])
{
    const Program *program = c->program;
    c->cut = g_array_new(FALSE, FALSE, sizeof(Cut));
    for (uint32_t i = 0; i < program->n;) {
        Cut cut = {.instr = &program->instr[i], .first = i, .of = NOT_THERE};
        uint32_t end = i + 1;
        while (end < program->n && program->instr[end].group == cut.instr->group &&
               program->instr[end].microbatch == cut.instr->microbatch &&
               end != place[0] && end != place[1])
            end++;
        cut.n = end - i;
        c->from = i == place[0] ? c->cut->len : c->from;
        c->end = i == place[1] ? c->cut->len : c->end;
        g_array_append_val(c->cut, cut);
        i = end;
    }
}

/* Finds what the microbatches that are left out repeat; false: it is not known. */
static bool cutting_cut(Cutting *c)
{
    ProgramPeriod p;
    uint32_t place[2] = {0};
    if (c->program->left_out > 0) {
        if (!program_find_period(c->program, &p))
            return false;
        place[1] = p.first + p.repeats * p.n;
        place[0] = place[1] - p.n;
        c->times = c->program->left_out / p.microbatches;
        c->later = p.microbatches;
        c->n = p.n;
    }
    cutting_find_cuts(c, place);
    for (uint32_t i = c->from; i < c->end; i++)
        if (cut_is_whole(cut_at(c, i)))
            return false;
    return true;
}

/* The cut of the same kind that was found first. Where a layer is computed again its cuts are of
 * another kind than before, since what they make is used by others. */
static const Cut *cutting_find_kind(Cutting *c, GHashTable *kinds, Cut *cut)
{
    const Cut *known;
    uint64_t key;
    do {
        known = g_hash_table_lookup(kinds, cut);
        key = (uint64_t)(known ? known->kind : c->n_kinds) << 16 | cut->instr->microbatch;
    } while (!g_hash_table_add(c->seen, GSIZE_TO_POINTER(key)) && ++cut->again);
    if (!known)
        g_hash_table_add(kinds, cut);
    return known;
}

static void cutting_find_kinds(Cutting *c)
{
    g_autoptr(GHashTable) kinds = g_hash_table_new(cut_hash, cut_equal);
    c->seen = g_hash_table_new(NULL, NULL);
    c->number = g_new0(uint32_t, c->cut->len + 1);
    c->chief = g_new0(uint32_t, c->cut->len + 1);
    array_at (Cut, cut, i, c->cut) {
        const Cut *known = cut_is_whole(cut) ? NULL : cutting_find_kind(c, kinds, cut);
        cut->kind = known ? known->kind : c->n_kinds++;
        cut->rank = c->number[cut->kind]++;
        if (cut->rank < FRONT)
            c->chief[cut->kind] = i;
    }
}

/* Chooses the microbatches of the part. */
static void cutting_choose(Cutting *c)
{
    const uint32_t n = c->program->n_microbatches;
    c->rank = g_new(uint32_t, n);
    for (uint32_t m = 0; m < n; m++)
        c->rank[m] = NOT_THERE;
    array_each (const Cut, cut, c->cut)
        if (!cut_is_whole(cut) &&
            (cut->rank < FRONT || cut->rank + BACK >= c->number[cut->kind]))
            c->rank[cut->instr->microbatch] = 0;
    for (uint32_t m = 0; m < n; m++)
        if (c->rank[m] == 0)
            c->rank[m] = c->n_ranks++;
}

static void blocks_make_part(ProgramBlocks *blocks, Cutting *c)
{
    Program *part = blocks->part = program_copy_groups(c->program);
    blocks->first = g_new(uint32_t, c->cut->len + 1);
    part->n_microbatches = c->n_ranks;
    part->left_out = program_parts(c->program) - c->n_ranks;
    array_each (Cut, cut, c->cut) {
        const uint32_t m = cut->instr->microbatch;
        if (!cut_is_whole(cut) && c->rank[m] == NOT_THERE)
            continue;
        cut->of = blocks->n_of;
        blocks->first[blocks->n_of++] = part->n;
        for (uint32_t i = 0; i < cut->n; i++) {
            Instr instr = cut->instr[i];
            instr.microbatch = cut_is_whole(cut) ? PROGRAM_WHOLE : (uint16_t)c->rank[m];
            program_append(part, instr);
        }
    }
    blocks->first[blocks->n_of] = part->n;
    blocks->mate = g_new(uint32_t, blocks->n_of + 1);
    array_at (const Cut, cut, i, c->cut)
        if (cut->of != NOT_THERE)
            blocks->mate[cut->of] = cut->of;
    array_each (const Cut, cut, c->cut)
        if (cut->rank + 2 == FRONT && c->number[cut->kind] >= FRONT)
            blocks->mate[cut_at(c, c->chief[cut->kind])->of] = cut->of;
}

/* Adds the cuts of a range, so many times later; again: other ones do the same. */
static void blocks_add(ProgramBlocks *blocks, const Cutting *c, uint32_t from,
                       uint32_t end, uint32_t times, bool again)
{
    for (uint32_t i = from; i < end; i++) {
        const Cut *cut = cut_at(c, i);
        const bool is_it = !again && cut->of != NOT_THERE;
        blocks->block[blocks->n++] = (ProgramBlock){
            .of = is_it ? cut->of : cut_at(c, c->chief[cut->kind])->of,
            .is_it = is_it,
            .microbatch = cut_is_whole(cut) ? PROGRAM_WHOLE
                                            : cut->instr->microbatch + times * c->later,
            .first = cut->first + times * c->n};
    }
}

ProgramBlocks *program_blocks(const Program *program, const Graph *graph)
{
    g_auto(Cutting) c = {.program = program};
    if (program->n_microbatches < 2 || program->n_groups == 0 || !cutting_cut(&c))
        return NULL;
    cutting_find_kinds(&c);
    cutting_choose(&c);
    if (c.n_ranks < 2 || 2 * c.n_ranks > program_parts(program))
        return NULL;
    g_autoptr(ProgramBlocks) blocks = g_new0(ProgramBlocks, 1);
    blocks->n_microbatches = program_parts(program);
    blocks_make_part(blocks, &c);
    if (!program_check(blocks->part, graph, NULL))
        return NULL;
    blocks->block =
        g_new(ProgramBlock, c.cut->len + (size_t)c.times * (c.end - c.from) + 1);
    blocks_add(blocks, &c, 0, c.end, 0, false);
    for (uint32_t r = 1; r <= c.times; r++)
        blocks_add(blocks, &c, c.from, c.end, r, true);
    blocks_add(blocks, &c, c.end, c.cut->len, c.times, false);
    return g_steal_pointer(&blocks);
}

uint32_t program_blocks_place(const ProgramBlocks *blocks, uint32_t i)
{
    const ProgramBlock *block = &blocks->block[blocks->n - 1];
    while (block->first > i)
        block--;
    return blocks->first[block->of] + i - block->first;
}

uint32_t *program_left(const Program *program, const ProgramBlocks *blocks, uint32_t at)
{
    uint32_t *left = g_new0(uint32_t, program->n + 1);
    const ProgramBlock *block = blocks ? &blocks->block[blocks->n - 1] : NULL;
    for (uint32_t i = at + 1; !block && i < program->n; i++)
        left[i] = 1;
    for (uint32_t skip = 0; block && skip == 0; block--) {
        skip = at < block->first ? 0 : at + 1 - block->first;
        for (uint32_t i = blocks->first[block->of] + skip;
             i < blocks->first[block->of + 1]; i++)
            left[i]++;
    }
    return left;
}

FREE_DEFINE(program_blocks_free, ProgramBlocks, blocks, program_free(blocks->part),
            free_each(blocks->first, blocks->mate, blocks->block));
