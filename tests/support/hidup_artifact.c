/* Reads and prices the graphs and strategies of HiDup's published searcher. */
#include "tests/support/hidup_artifact.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum { SOURCE_NODE, SOURCE_DATA, SOURCE_PARAMETER } Source;

struct Artifact {
    ArtifactProfile profile;
    DuplexProblem problem;
    uint32_t n_tensors;
    double *bytes;    /* [tensor] */
    Source *source;   /* [tensor] */
    uint32_t *number; /* [tensor]: of the chain's tensors */
    GArray *work;     /* double: the work of each node of the file */
};

ArtifactProfile artifact_nvlink(double rate)
{
    return (ArtifactProfile){.all_gather = 7586351942,
                             .reduce_scatter = 7900003407,
                             .all_reduce = 4681009156,
                             .all_to_all = 21875592969,
                             .latency_s = 1e-4,
                             .rate = rate,
                             .n_devices = 4};
}

static Form read_form(const char *text)
{
    if (g_str_has_prefix(text, "gather_"))
        return form_gather((uint32_t)atoi(text + strlen("gather_")));
    return strcmp(text, "reduce") == 0 ? FORM_REDUCE : FORM_IDENTITY;
}

/* --- prices --- */

/* Seconds of a conversion and of its adjoint. */
static DuplexConversion convert(const ArtifactProfile *p, double bytes, Form from,
                                Form to)
{
    const double gather = p->latency_s + bytes / p->all_gather,
                 scatter = p->latency_s + bytes / p->reduce_scatter,
                 reduce = p->latency_s + bytes / p->all_reduce,
                 exchange = p->latency_s + bytes / p->all_to_all;
    const bool cut = form_is_gather(from), cuts = form_is_gather(to);
    if (cut && cuts)
        return (DuplexConversion){true, true, exchange, exchange};
    if (cut && to == FORM_IDENTITY)
        return (DuplexConversion){true, true, gather, scatter};
    if (from == FORM_REDUCE && cuts)
        return (DuplexConversion){true, true, scatter, gather};
    if (from == FORM_REDUCE && to == FORM_IDENTITY)
        return (DuplexConversion){true, true, reduce, reduce};
    return (DuplexConversion){.can = from == FORM_IDENTITY && cuts};
}

/* The seconds to synchronize a replicated parameter's gradient. */
static double sync_s(const ArtifactProfile *p, double bytes)
{
    return convert(p, bytes, FORM_REDUCE, FORM_IDENTITY).forward_s;
}

static double forward_s(const Artifact *a, double work, bool divided)
{
    return work / a->profile.rate / (divided ? a->profile.n_devices : 1);
}

/* --- the graph --- */

typedef struct {
    /* a node's line: index name kind work n_in in... n_out out... n_signatures */
    char **word;
    uint32_t n_in, n_out, n_signatures;
    uint32_t in[16], out[16];
} Line;

static bool read_line(char **word, Line *line)
{
    uint32_t n = g_strv_length(word), at = 4;
    *line = (Line){.word = word};
    if (n < 7)
        return false;
    line->n_in = (uint32_t)atoi(word[at++]);
    for (uint32_t i = 0; i < line->n_in && i < 16 && at < n; i++)
        line->in[i] = (uint32_t)atoi(word[at++]);
    line->n_out = at < n ? (uint32_t)atoi(word[at++]) : 0;
    for (uint32_t i = 0; i < line->n_out && i < 16 && at < n; i++)
        line->out[i] = (uint32_t)atoi(word[at++]);
    line->n_signatures = at < n ? (uint32_t)atoi(word[at]) : 0;
    return at + 1 == n && line->n_in <= 16 && line->n_out <= DUPLEX_MAX_OUT;
}

/* The choices of a signature: each parameter that is read whole may be replicated or cut. */
static void add_choices(const Artifact *a, DuplexNode *node, const Line *line,
                        char **form)
{
    DuplexChoice choice = {0};
    double whole[16];
    uint32_t n_whole = 0, k = 0;
    bool divided = false;
    for (uint32_t i = 0; i < line->n_in; i++) {
        const Form read = read_form(form[i]);
        divided |= form_is_gather(read);
        if (a->source[line->in[i]] == SOURCE_NODE)
            choice.in[k++] = read;
        else if (a->source[line->in[i]] == SOURCE_PARAMETER && read == FORM_IDENTITY)
            whole[n_whole++] = a->bytes[line->in[i]];
    }
    for (uint32_t o = 0; o < line->n_out; o++)
        choice.out[o] = read_form(form[line->n_in + o]);
    choice.forward.s[0] = forward_s(a, atof(line->word[3]), divided);
    choice.back.s[0] = 2 * choice.forward.s[0];
    for (uint32_t cut = 0; cut < 1u << n_whole; cut++) {
        DuplexChoice one = choice;
        for (uint32_t w = 0; w < n_whole; w++)
            for (uint32_t m = 0; m < 2; m++) {
                const DuplexConversion gather =
                    convert(&a->profile, whole[w], form_gather(0), FORM_IDENTITY);
                one.gather_s[m] += cut >> w & 1u ? gather.forward_s : 0;
                one.sync_s[m] +=
                    cut >> w & 1u ? gather.back_s : sync_s(&a->profile, whole[w]);
            }
        duplex_add_choice(node, 1, &one);
    }
}

static bool add_node(Artifact *a, const Line *line, char **rows)
{
    DuplexProblem *p = &a->problem;
    DuplexNode *node = &p->node[p->n_nodes++];
    node->choices = g_array_new(FALSE, FALSE, sizeof(DuplexChoice));
    for (uint32_t i = 0; i < line->n_in; i++)
        if (a->source[line->in[i]] == SOURCE_NODE) {
            if (node->n_in == DUPLEX_MAX_IN)
                return false;
            node->in[node->n_in++] = a->number[line->in[i]];
        }
    for (uint32_t o = 0; o < line->n_out; o++) {
        a->number[line->out[o]] = p->n_tensors;
        node->out[node->n_out++] = p->n_tensors++;
    }
    for (uint32_t s = 0; s < line->n_signatures; s++) {
        g_auto(GStrv) form = g_strsplit(g_strstrip(rows[s]), " ", -1);
        if (g_strv_length(form) != line->n_in + line->n_out)
            return false;
        add_choices(a, node, line, form);
    }
    return true;
}

static void add_conversions(Artifact *a)
{
    DuplexProblem *p = &a->problem;
    p->conversion = g_new0(DuplexConversions *, p->n_tensors);
    for (uint32_t t = 0; t < a->n_tensors; t++) {
        if (a->source[t] != SOURCE_NODE || a->number[t] == UINT32_MAX)
            continue;
        DuplexConversion(*conversion)[FORM_MAX] =
            g_malloc0_n(FORM_MAX, sizeof *conversion);
        for (Form from = 0; from < FORM_MAX; from++)
            for (Form to = 0; to < FORM_MAX; to++)
                if (from != to)
                    conversion[from][to] = convert(&a->profile, a->bytes[t], from, to);
        p->conversion[a->number[t]] = (DuplexConversions *)(void *)conversion;
    }
}

static bool read_nodes(Artifact *a, char **row, uint32_t n)
{
    a->problem.node = g_new0(DuplexNode, n);
    for (uint32_t i = 0; i < n; i++) {
        g_auto(GStrv) word = *row ? g_strsplit(*row, " ", -1) : NULL;
        Line line;
        if (!word || !read_line(word, &line))
            return false;
        const bool data = strcmp(word[2], "placeholder") == 0;
        for (uint32_t o = 0; o < line.n_out; o++)
            a->source[line.out[o]] = data                               ? SOURCE_DATA
                                     : strcmp(word[2], "get_attr") == 0 ? SOURCE_PARAMETER
                                                                        : SOURCE_NODE;
        const double work = atof(word[3]);
        g_array_append_val(a->work, work);
        row++;
        if (g_str_has_prefix(word[2], "call_") && !add_node(a, &line, row))
            return false;
        row += line.n_signatures;
    }
    return true;
}

Artifact *artifact_read(const char *file, const ArtifactProfile *profile)
{
    g_autofree char *text = NULL;
    if (!g_file_get_contents(file, &text, NULL, NULL))
        return NULL;
    g_auto(GStrv) row = g_strsplit(text, "\n", -1);
    g_auto(GStrv) size = g_strsplit(row[0], " ", -1);
    g_autoptr(Artifact) a = g_new0(Artifact, 1);
    a->profile = *profile;
    a->problem = (DuplexProblem){.n_classes = 1, .goal = FORM_REDUCE};
    a->n_tensors = (uint32_t)atoi(size[0]);
    a->work = g_array_new(FALSE, FALSE, sizeof(double));
    a->bytes = g_new0(double, a->n_tensors);
    a->source = g_new0(Source, a->n_tensors);
    a->number = g_new(uint32_t, a->n_tensors);
    memset(a->number, 0xff, a->n_tensors * sizeof *a->number);
    if (g_strv_length(size) < a->n_tensors + 1 || !row[1])
        return NULL;
    for (uint32_t t = 0; t < a->n_tensors; t++)
        a->bytes[t] = atof(size[t + 1]);
    if (!read_nodes(a, row + 2, (uint32_t)atoi(row[1])))
        return NULL;
    add_conversions(a);
    return g_steal_pointer(&a);
}

void artifact_free(Artifact *a)
{
    if (!a)
        return;
    for (uint32_t i = 0; i < a->problem.n_nodes; i++)
        g_array_unref(a->problem.node[i].choices);
    for (uint32_t t = 0; a->problem.conversion && t < a->problem.n_tensors; t++)
        g_free((void *)a->problem.conversion[t]);
    g_free(a->problem.conversion);
    g_free(a->problem.node);
    g_array_unref(a->work);
    g_free(a->bytes);
    g_free(a->source);
    g_free(a->number);
    g_free(a);
}

const DuplexProblem *artifact_problem(const Artifact *a)
{
    return &a->problem;
}

void artifact_set_cost(Artifact *a, DuplexCost cost)
{
    a->problem.cost = cost;
}

/* --- strategies --- */

/* "Gather(1)", "Replicate", ... to "gather_1", "replicate". */
static char *lower_form(const char *text)
{
    g_autofree char *lower = g_ascii_strdown(text, -1);
    g_auto(GStrv) part = g_strsplit_set(lower, "()", -1);
    return part[1] ? g_strdup_printf("%s_%s", part[0], part[1]) : g_strdup(lower);
}

typedef struct {
    double forward_comm_s, back_comm_s, forward_s;
} Stage;

static Stage *open_stage(GArray *stages)
{
    g_array_set_size(stages, stages->len + 1);
    return &g_array_index(stages, Stage, stages->len - 1);
}

static ArtifactCost cost_of(const Artifact *a, const GArray *stages)
{
    double s = 0, before_s = 0;
    for (uint32_t i = 0; i < stages->len; i++) {
        const Stage *at = &g_array_index(stages, Stage, i);
        const double c = at->forward_s, f = at->forward_comm_s, b = at->back_comm_s;
        s += fmax(before_s, f) + fmax(c, f);
        s += a->problem.cost == DUPLEX_SERIAL_BACK
                 ? 2 * before_s + b + 2 * c + b
                 : fmax(2 * before_s, b) + fmax(2 * c, b);
        before_s = c;
    }
    return (ArtifactCost){s + before_s, 2 * before_s};
}

static void add_communication(const Artifact *a, Stage *stage, char **word)
{
    const uint32_t tensor = (uint32_t)atoi(word[1]);
    g_autofree char *from = lower_form(word[6]), *to = lower_form(word[8]);
    DuplexConversion one = {0};
    if (strcmp(from, "replicate") == 0)
        one.back_s = sync_s(&a->profile, a->bytes[tensor]);
    else if (a->source[tensor] != SOURCE_DATA)
        one = convert(&a->profile, a->bytes[tensor], read_form(from), read_form(to));
    stage->forward_comm_s += one.forward_s;
    stage->back_comm_s += one.back_s;
}

static void add_computation(const Artifact *a, Stage *stage, char *row)
{
    const uint32_t node = (uint32_t)atoi(row + strlen("Node "));
    const bool divided = strstr(row, "Gather(") != NULL;
    stage->forward_s += forward_s(a, g_array_index(a->work, double, node), divided);
}

bool artifact_strategy(const Artifact *a, const char *file, ArtifactCost *cost)
{
    g_autofree char *text = NULL;
    if (!g_file_get_contents(file, &text, NULL, NULL))
        return false;
    g_auto(GStrv) row = g_strsplit(text, "\n", -1);
    g_autoptr(GArray) stages = g_array_new(FALSE, TRUE, sizeof(Stage));
    Stage *stage = NULL;
    for (uint32_t i = 0; row[i]; i++) {
        if (g_str_has_prefix(row[i], "===")) {
            stage = open_stage(stages);
            continue;
        }
        if (!stage)
            return false;
        g_auto(GStrv) word = g_strsplit(row[i], " ", -1);
        if (g_str_has_prefix(row[i], "Tensor ") && g_strv_length(word) == 9)
            add_communication(a, stage, word);
        else if (g_str_has_prefix(row[i], "Node "))
            add_computation(a, stage, row[i]);
    }
    *cost = cost_of(a, stages);
    return true;
}
