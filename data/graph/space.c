/* Binding a signature to shapes, and FLOPs of an iteration space. */
#include "data/graph/space.h"
#include "data/base/assert.h"
#include "data/graph/documents.h"

#include <ctype.h>
#include <string.h>

typedef struct {
    char letter[2 * TENSOR_MAX_RANK]; /* one per dimension, * for the star */
    uint32_t n;
    bool added, optional;
} Operand;

typedef struct {
    uint32_t n_in, n_out;
    Operand operand[OP_MAX_OPERANDS];
} Signature;

/* Splits "*k,nk,+n?->*n" into operands. */
static void signature_parse(OpKind kind, Signature *signature)
{
    memset(signature, 0, sizeof *signature);
    const char *text = op_kind_signature(kind);
    Operand *operand = signature->operand;
    bool output = false;
    signature->n_in = 1;
    for (; *text; text++) {
        if (text[0] == '-' && text[1] == '>') {
            output = true;
            signature->n_out = 1;
            text++;
            operand++;
        } else if (*text == ',') {
            *(output ? &signature->n_out : &signature->n_in) += 1;
            operand++;
        } else if (*text == '+') {
            operand->added = true;
        } else if (*text == '?') {
            operand->optional = true;
        } else {
            operand->letter[operand->n++] = *text;
        }
    }
}

/* The loop of a letter, added to the space with `extent` if it is new. */
static uint32_t loop_of(OpSpace *space, char letter, uint32_t star, uint32_t extent)
{
    const bool divides = space->divides_queries;
    for (uint32_t l = 0; l < space->n_loops; l++)
        if (space->loop[l].letter == letter && space->loop[l].star == star)
            return l;
    g_assert(space->n_loops < OP_MAX_LOOPS);
    space->loop[space->n_loops] = (Loop){.letter = letter,
                                         .star = (uint8_t)star,
                                         .shardable = letter == '*' || islower(letter),
                                         .divided = letter == LOOP_QUERY && divides,
                                         .extent = extent,
                                         .units = 1};
    return space->n_loops++;
}

/* The value of `letter` in "P=7,Q=7", or 0. */
static uint32_t extent_of(const char *extents, char letter)
{
    for (const char *p = extents; p && *p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        if (p[0] == letter && p[1] == '=')
            return (uint32_t)strtoul(p + 2, NULL, 10);
    return 0;
}

static void bind_input(OpSpace *space, const Operand *operand, uint32_t position,
                       const Shape *shape, uint32_t star_rank)
{
    uint32_t d = 0;
    for (uint32_t i = 0; i < operand->n; i++) {
        uint32_t repeat = operand->letter[i] == '*' ? star_rank : 1;
        for (uint32_t star = 0; star < repeat; star++, d++) {
            g_assert(d < shape->rank);
            uint32_t l = loop_of(space, operand->letter[i], star, shape->dim[d]);
            g_assert(space->loop[l].extent == shape->dim[d]);
            space->dim_loop[position][d] = (int8_t)l;
        }
    }
    g_assert(d == shape->rank);
    if (operand->added)
        space->added |= (uint8_t)(1u << position);
}

static void bind_output(OpSpace *space, const Operand *operand, uint32_t position,
                        const char *extents, uint32_t star_rank, Shape *shape)
{
    shape->rank = 0;
    for (uint32_t i = 0; i < operand->n; i++) {
        uint32_t repeat = operand->letter[i] == '*' ? star_rank : 1;
        for (uint32_t star = 0; star < repeat; star++) {
            uint32_t given = extent_of(extents, operand->letter[i]);
            uint32_t l = loop_of(space, operand->letter[i], star, given);
            uint32_t extent = given ? given : space->loop[l].extent;
            g_assert(extent > 0 && shape->rank < TENSOR_MAX_RANK);
            space->dim_loop[position][shape->rank] = (int8_t)l;
            shape->dim[shape->rank++] = extent;
        }
    }
}

/* Reads groups such as "0|12": sets of input positions. */
static void bind_linear(OpKind kind, OpSpace *space)
{
    const char *text = op_kind_linear(kind);
    if (*text == '-')
        return;
    space->n_linear = 1;
    for (; *text; text++) {
        if (*text == '|')
            space->n_linear++;
        else
            space->linear[space->n_linear - 1] |= (uint8_t)(1u << (*text - '0'));
    }
}

uint32_t space_bind(OpKind kind, uint32_t n_in, const Shape *in, const char *extents,
                    OpSpace *space, Shape out[OP_MAX_OUT])
{
    Signature signature;
    signature_parse(kind, &signature);
    memset(space, 0, sizeof *space);
    memset(space->dim_loop, -1, sizeof space->dim_loop);
    space->visible = 1;
    space->divides_queries = op_kind_divides_queries(kind);
    g_assert(n_in <= signature.n_in);
    for (uint32_t i = n_in; i < signature.n_in; i++)
        g_assert(signature.operand[i].optional);
    uint32_t star_rank = 0;
    for (uint32_t i = 0; i < n_in; i++)
        if (memchr(signature.operand[i].letter, '*', signature.operand[i].n)) {
            star_rank = in[i].rank - (signature.operand[i].n - 1);
            break;
        }
    for (uint32_t i = 0; i < n_in; i++)
        bind_input(space, &signature.operand[i], i, &in[i], star_rank);
    for (uint32_t o = 0; o < signature.n_out; o++)
        bind_output(space, &signature.operand[signature.n_in + o], n_in + o, extents,
                    star_rank, &out[o]);
    bind_linear(kind, space);
    return signature.n_out;
}

double space_visible(OpKind kind, const OpAttr *attr, const OpSpace *space)
{
    KILTER_ASSERT(space->n_loops <= OP_MAX_LOOPS);
    double queries = 0, keys = 0;
    if (!op_kind_skips_masked(kind) || !attr->causal)
        return 1;
    for (uint32_t l = 0; l < space->n_loops; l++) {
        queries = space->loop[l].letter == LOOP_QUERY ? space->loop[l].extent : queries;
        keys = space->loop[l].letter == 'K' ? space->loop[l].extent : keys;
    }
    return documents_pairs(attr->documents, (uint64_t)queries, attr->span) /
           (queries * keys);
}

double space_flops(OpKind kind, const OpSpace *space, int loop)
{
    KILTER_ASSERT(loop < (int)space->n_loops);
    const bool left_out = strchr(op_kind_signature(kind), '?') && !space->added;
    double total = 0;
    for (const char *text = op_kind_flops(kind); *text;) {
        if (left_out && !strchr(text, '+'))
            break; /* the last term: the additions of the optional operand */
        char *letters;
        double term = g_ascii_strtod(text, &letters);
        bool named = loop < 0, queries = false, keys = false;
        for (text = letters; *text && *text != '+'; text++) {
            queries |= *text == 'Q';
            keys |= *text == 'K';
            for (uint32_t l = 0; l < space->n_loops; l++)
                if (space->loop[l].letter == *text) {
                    term *= space->loop[l].extent;
                    named |= (int)l == loop;
                }
        }
        if (named)
            total += queries && keys ? term * space->visible : term;
        if (*text == '+')
            text++;
    }
    return total;
}
