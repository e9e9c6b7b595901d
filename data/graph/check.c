/* Checks that operands meet the demands of their op. */
#include "data/graph/check.h"

#include <ctype.h>
#include <string.h>

bool op_kind_is_forward(OpKind kind)
{
    /* Kinds of the backward whose names do not tell; others are named after the kind that they
     * differentiate. */
    static const OpKind others[] = {
        OP_BIAS_GRAD,         OP_SUM_ROWS,        OP_QKV_DB,
        OP_CHANNEL_SUM,       OP_DROP_TOKEN,      OP_SUM_TOKEN,
        OP_GROUP_CHANNEL_SUM, OP_PAD_TOKEN,       OP_Q_PROJ_DB,
        OP_KV_PROJ_DB,        OP_JOIN_KEYS_DR,    OP_CONCAT_PART,
        OP_LINEAR_PAIR_DB,    OP_EXPERT_BIAS_DB,  OP_BATCH_NORM_DM,
        OP_GATE_DG,           OP_SHORT_CONV_DB,   OP_NORM_BY_DM,
        OP_JOIN_PART,         OP_SAMPLE_SCALE_DG, OP_SAMPLE_BIAS_DB};
    return all_of(i, G_N_ELEMENTS(others), kind != others[i]) && !op_kind_updates(kind) &&
           !op_kind_is_weights_gradient(kind) &&
           !g_str_has_suffix(op_kind_name(kind), "_dx");
}

/* --- the signature --- */

/* Extents of inputs and of outputs, by letter; 0: not known. */
typedef struct {
    uint32_t in[128], out[128];
    uint32_t star[TENSOR_MAX_RANK], n_star;
    bool starred;
} Extents;

/* Reads extents such as "P=7,Q=7". */
static char *read_extents(const char *text, Extents *e)
{
    g_auto(GStrv) pair = g_strsplit(text ? text : "", ",", -1);
    for (uint32_t i = 0; pair[i]; i++) {
        guint64 value = 0;
        if (!isalpha((unsigned char)pair[i][0]) || pair[i][1] != '=' ||
            !g_ascii_string_to_unsigned(pair[i] + 2, 10, 1, INT32_MAX, &value, NULL))
            return g_strdup_printf("extents: expected LETTER=SIZE, got '%s'", pair[i]);
        e->out[(int)pair[i][0]] = (uint32_t)value;
    }
    return NULL;
}

static uint32_t letters_of(const char *operand)
{
    uint32_t n = 0;
    for (; *operand; operand++)
        n += isalpha((unsigned char)*operand) != 0;
    return n;
}

static char *bind_operand(const char *operand, const Shape *shape, uint32_t position,
                          Extents *e)
{
    const uint32_t letters = letters_of(operand);
    const bool star = strchr(operand, '*') != NULL;
    if (star && !e->starred && shape->rank >= letters) {
        e->starred = true;
        e->n_star = shape->rank - letters;
        memset(e->star, 0, sizeof e->star);
    }
    const uint32_t want = letters + (star ? e->n_star : 0);
    if (shape->rank != want || (star && !e->starred))
        return g_strdup_printf("in[%u]: expected %u dims of '%s', got %u", position, want,
                               operand, shape->rank);
    uint32_t d = 0;
    for (; *operand; operand++)
        for (uint32_t i = 0; i < (*operand == '*' ? e->n_star : 1); i++) {
            uint32_t *known = *operand == '*' ? &e->star[i] : &e->in[(int)*operand];
            if (*operand != '*' && !isalpha((unsigned char)*operand))
                break; /* + or ? */
            if (shape->dim[d] == 0)
                return g_strdup_printf("in[%u]: expected elements along dim %u, got none",
                                       position, d);
            if (*known && *known != shape->dim[d])
                return g_strdup_printf("in[%u]: expected %u in dim %u, got %u", position,
                                       *known, d, shape->dim[d]);
            *known = shape->dim[d++];
        }
    return NULL;
}

static char *graph_check_outputs(const char *outputs, const Extents *e)
{
    g_auto(GStrv) operand = g_strsplit(outputs, ",", -1);
    for (uint32_t o = 0; operand[o]; o++) {
        uint32_t rank = 0;
        for (const char *c = operand[o]; *c; c++) {
            rank += *c == '*' ? e->n_star : 1;
            if (*c != '*' && !e->in[(int)*c] && !e->out[(int)*c])
                return g_strdup_printf("extents: expected %c=SIZE", *c);
        }
        if (rank > TENSOR_MAX_RANK)
            return g_strdup_printf("an output of %u dims, expected at most %d", rank,
                                   TENSOR_MAX_RANK);
    }
    return NULL;
}

/* --- relations between extents --- */

typedef struct {
    OpKind kind;
    const char *rule; /* "T=2", "E=D+V", or an inequality "D<E" */
} Tie;

static const Tie TIES[] = {
    {OP_ATTENTION, "T=3"},
    {OP_ATTENTION, "K=Q"},
    {OP_LINEAR_PAIR, "T=2"},
    {OP_SWIGLU, "T=2"},
    {OP_GEGLU, "T=2"},
    {OP_EXPERT_PAIR, "T=2"},
    {OP_MOMENTS, "T=2"},
    {OP_BATCH_NORM, "T=2"},
    {OP_GROUPED_ATTENTION, "E=D+V"},
    {OP_FUSED_ATTENTION, "E=D+V"},
    {OP_JOIN_KEYS, "E=D+R"},
    {OP_CONCAT, "C=A+B"},
    {OP_KEY_NORM, "D<E"},
    {OP_SCAN_GATES, "G=B+1"},
    {OP_JOIN, "C=A+B"},
    {OP_SPARSE_ATTENTION, "E=D+V"},
    {OP_RELATIVE_ATTENTION, "E=D+V"},
    {OP_RELATIVE_ATTENTION, "C=1"},
    {OP_SELECTIVE_SCAN, "E=D+D"},
    {OP_SELECTIVE_SCAN, "R=1"},
    {OP_WKV, "E=D+D"},
    {OP_DELTA_WKV, "E=D+D"},
    {OP_BONUS, "E=D+D"},
};

static uint32_t letter(const Extents *e, char c)
{
    return isdigit((unsigned char)c) ? (uint32_t)(c - '0')
           : e->in[(int)c]           ? e->in[(int)c]
                                     : e->out[(int)c];
}

static char *check_ties(OpKind kind, const Extents *e)
{
    for (uint32_t i = 0; i < G_N_ELEMENTS(TIES); i++) {
        const char *rule = TIES[i].rule;
        if (TIES[i].kind != kind)
            continue;
        const uint64_t left = letter(e, rule[0]);
        uint64_t right = letter(e, rule[2]);
        if (rule[3])
            right += letter(e, rule[4]);
        if (rule[1] == '=' ? left != right : left > right)
            return g_strdup_printf(
                "expected %s of the signature %s, got %" G_GUINT64_FORMAT
                " and %" G_GUINT64_FORMAT,
                rule, op_kind_signature(kind), left, right);
    }
    return NULL;
}

/* Whether every window overlaps the edge. */
static bool windows_fit(const OpAttr *attr, uint32_t padding, uint32_t edge, uint32_t out)
{
    const uint64_t last = (uint64_t)(out - 1) * attr->stride;
    return attr->window > padding && (last < padding || last - padding < edge);
}

static char *check_attr(OpKind kind, const OpAttr *a, const Extents *e)
{
    const bool conv = kind == OP_CONV2D || kind == OP_GROUP_CONV2D;
    const bool pool = kind == OP_MAX_POOL2D || (kind == OP_AVG_POOL2D && a->window);
    if ((conv || pool) && a->stride == 0)
        return g_strdup("stride: expected at least 1");
    if (pool && !(windows_fit(a, a->padding, e->in['H'], e->out['P']) &&
                  windows_fit(a, a->padding_columns, e->in['W'], e->out['Q'])))
        return g_strdup("a window lies outside the image");
    if (kind == OP_ROTARY &&
        (a->span == 0 || a->span % 2 || (uint64_t)a->first + a->span > e->in['D']))
        return g_strdup_printf("span: expected an even part of the %u elements",
                               e->in['D']);
    if (kind == OP_JOIN_KEYS && a->first > e->in['D'])
        return g_strdup_printf("first: expected at most %u", e->in['D']);
    if (kind == OP_GATE_TOPK && (a->top == 0 || a->top > e->in['E']))
        return g_strdup_printf("top: expected 1 to %u", e->in['E']);
    if (kind == OP_GATE_TOPK && a->groups &&
        (a->groups > MOST_EXPERT_GROUPS || e->in['E'] % a->groups ||
         a->top_groups > a->groups ||
         a->top > (uint64_t)a->top_groups * (e->in['E'] / a->groups)))
        return g_strdup_printf(
            "groups, top_groups: expected equal groups of %u experts, at most %d, "
            "and enough of them for %u",
            e->in['E'], MOST_EXPERT_GROUPS, a->top);
    if (kind == OP_GATE && e->in['G'] != 1 && e->in['G'] != e->in['V'])
        return g_strdup_printf("G: expected 1 or V=%u, got %u", e->in['V'], e->in['G']);
    if (kind == OP_SCAN_GATES && e->in['R'] != e->in['B'] + a->sigmoid)
        return g_strdup_printf("R: expected B=%u%s, got %u", e->in['B'],
                               a->sigmoid ? " and one more" : "", e->in['R']);
    if (kind == OP_SCAN_GATES && !a->sigmoid && e->in['B'] != 1)
        return g_strdup_printf("B: expected 1, got %u", e->in['B']);
    const uint64_t decays = (uint64_t)e->in['G'] - 1, element = e->in['E'] / 2;
    if ((kind == OP_SCAN || kind == OP_DELTA_SCAN || kind == OP_LINEAR_ATTENTION) &&
        e->in['E'] % 2)
        return g_strdup_printf("E: expected an even number, got %u", e->in['E']);
    if ((kind == OP_SCAN || kind == OP_DELTA_SCAN) && decays != 1 && decays != element)
        return g_strdup_printf("G: expected 2 or E/2+1, got %u", e->in['G']);
    if (kind == OP_PART && (uint64_t)a->first + e->out['A'] > e->in['C'])
        return g_strdup_printf("first: expected a part of the %u", e->in['C']);
    if (kind == OP_NORM_BY && a->span == 0)
        return g_strdup("span: expected the number of elements of a token");
    if ((kind == OP_GROUPED_ATTENTION || op_kind_skips_masked(kind)) && a->causal &&
        e->in['Q'] != e->in['K'])
        return g_strdup("causal: expected as many keys as queries");
    return NULL;
}

/* The number of elements of `operand`, by the extents of outputs (`output`) or of inputs. */
static double elements_of(const char *operand, const Extents *e, bool output)
{
    double n = 1;
    for (const char *c = operand; *c; c++)
        if (*c == '*')
            for (uint32_t i = 0; i < e->n_star; i++)
                n *= e->star[i];
        else
            n *= output && e->out[(int)*c] ? e->out[(int)*c] : letter(e, *c);
    return n;
}

char *op_check(OpKind kind, const OpAttr *attr, uint32_t n_in, const Shape *in,
               const char *extents)
{
    g_auto(GStrv) side = g_strsplit(op_kind_signature(kind), "->", 2);
    g_auto(GStrv) operand = g_strsplit(side[0], ",", -1);
    const uint32_t most = g_strv_length(operand);
    uint32_t least = most;
    while (least > 0 && strchr(operand[least - 1], '?'))
        least--;
    if (n_in < least || n_in > most)
        return g_strdup_printf("in: expected %u to %u inputs of '%s', got %u", least,
                               most, side[0], n_in);
    Extents e = {.n_star = 0};
    char *what = read_extents(extents, &e);
    for (uint32_t i = 0; !what && i < n_in; i++)
        what = bind_operand(operand[i], &in[i], i, &e);
    what = what ? what : graph_check_outputs(side[1], &e);
    what = what ? what : check_ties(kind, &e);
    what = what ? what : check_attr(kind, attr, &e);
    if (!what && op_kind_is_view(kind) &&
        elements_of(operand[0], &e, false) != elements_of(side[1], &e, true))
        return g_strdup("expected as many elements in the output as in the input");
    if (!what && kind == OP_APPEND_TOKEN && letter(&e, 'T') != letter(&e, 'S') + 1)
        return g_strdup("expected one token more, T=S+1");
    return what;
}

bool graph_name_is_reserved(const char *name)
{
    static const char *const suffix[] = {
        ".grad", ".next",  ".m",      ".v",   ".master", ".rows", ".columns", ".dx",
        ".dw",   ".db",    ".dm",     ".d0",  ".d1",     ".d2",   ".d3",      ".d4",
        ".dr",   ".dsink", ".update", ".row", ".column", ".dg"};
    return any_of(i, G_N_ELEMENTS(suffix), g_str_has_suffix(name, suffix[i])) ||
           strstr(name, ".grad.") || strstr(name, ".grad_sum") ||
           strstr(name, ".accumulate");
}
