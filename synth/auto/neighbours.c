/* Neighbours of a strategy (synth/auto/neighbours.h). */
#include "synth/auto/neighbours.h"

#include <string.h>

/* Degrees are multiplied by two to the given power. */
typedef struct {
    int8_t pp, dp, tp, cp, ep, micro_batch, virtual_stages, a2a;
    const char *key, *value; /* a technique; NULL: as they are */
    bool experts, scores;    /* only of use with experts, with scores of attention */
    /* for strategies whose schedule goes there and back, in the place of the others: few */
    bool back;
} Move;

static const Move MOVE[] = {
    {0},                   /* the strategy itself */
    {.virtual_stages = 1}, /* shorter waits */
    {.dp = 1, .tp = -1, .key = "recompute", .value = "selective", .scores = true},
    {.pp = 1, .dp = -1, .virtual_stages = -1},
    {.dp = -1, .cp = 1},
    {.tp = -1, .cp = 1},
    {.tp = -1, .cp = 1, .micro_batch = -1}, /* less of the logits on a device */
    {.dp = -1, .cp = 1, .key = "recompute", .value = "none"},
    {.tp = -1, .cp = 1, .key = "recompute", .value = "none"},
    {.dp = 1, .cp = -1},
    {.tp = 1, .cp = -1},
    {.key = "cp_comm", .value = "p2p"},
    {.key = "cp_comm", .value = "a2a+p2p", .a2a = 1}, /* smaller rings between machines */
    {.ep = 1, .experts = true},
    {.ep = 2, .experts = true},
    {.ep = 3, .experts = true},
    {.ep = -1, .experts = true},
    {.dp = 1, .tp = -1, .ep = 1, .experts = true},
    {.pp = -1, .dp = 1, .ep = 1, .experts = true},
    {.dp = 1, .tp = -1},
    {.dp = -1, .tp = 1},
    {.pp = -1, .dp = 1},
    {.pp = 1, .dp = -1},
    {.micro_batch = 1},
    {.micro_batch = -1},
    {.key = "recompute", .value = "none"},
    {.key = "recompute", .value = "selective"},
    {.key = "recompute", .value = "full"},
    {.key = "sequence_parallel", .value = "on"},
    {.key = "sequence_parallel", .value = "off"},
    {.key = "zero", .value = "1"},
    {.key = "pieces", .value = "2"}, /* if asked for by pieces=0 */
    {.micro_batch = 1, .key = "pieces", .value = "2"},
    {.micro_batch = 1, .key = "pieces", .value = "4"},
    {.key = "schedule", .value = "zb-v"},
    {.pp = 1, .dp = -1, .key = "schedule", .value = "zb-v"},
    {.pp = 1, .tp = -1, .back = true},
};

/* Multiplies a degree, which stays at least 1 and whole, and below the table's limit. */
static bool neighbour_shift(uint32_t *degree, int8_t by)
{
    const uint32_t old = MAX(*degree, 1);
    *degree = by < 0 ? old >> -by : old << by;
    return *degree > 0 && *degree <= UINT16_MAX && (by >= 0 || *degree << -by == old);
}

/* Whether a key may change: it does not, or the options leave it open. */
static bool neighbour_may(const PlannerOptions *asked, const char *key, bool changes)
{
    return !changes || planner_options_is_default(asked, key);
}

static bool neighbour_is_open(const Move *m, const PlannerOptions *asked,
                              TechniqueNeeds has)
{
    return (has.attention || m->cp == 0) && (has.experts || !m->experts) &&
           (has.scores || !m->scores) && neighbour_may(asked, "pp", m->pp) &&
           neighbour_may(asked, "dp", m->dp) && neighbour_may(asked, "tp", m->tp) &&
           neighbour_may(asked, "cp", m->cp) && neighbour_may(asked, "ep", m->ep) &&
           neighbour_may(asked, "micro_batch", m->micro_batch) &&
           neighbour_may(asked, "microbatches", m->micro_batch) &&
           neighbour_may(asked, "virtual_stages",
                         m->virtual_stages || g_strcmp0(m->key, "schedule") == 0) &&
           (!m->key ||
            (strcmp(m->key, "pieces") == 0 ? asked->strategy.pieces == 0
                                           : neighbour_may(asked, m->key, true)));
}

/* Makes the neighbour; false: there is none. Stages of another number are cut evenly and have the
 * devices in their order. */
static bool neighbour_make(const Move *m, const Strategy *at, Strategy *next)
{
    const Option *option = m->key ? options_find(&strategy_table, m->key) : NULL;
    *next = *at;
    /* twice the samples of a microbatch are half as many microbatches */
    const bool counts = at->micro_batch == 0;
    if (!neighbour_shift(&next->pp, m->pp) || !neighbour_shift(&next->dp, m->dp) ||
        !neighbour_shift(&next->tp, m->tp) || !neighbour_shift(&next->cp, m->cp) ||
        !neighbour_shift(&next->ep, m->ep) ||
        !(counts ? neighbour_shift(&next->microbatches, (int8_t)-m->micro_batch)
                 : neighbour_shift(&next->micro_batch, m->micro_batch)) ||
        (m->virtual_stages &&
         (at->virtual_stages < 2 ||
          !neighbour_shift(&next->virtual_stages, m->virtual_stages))))
        return false;
    if (option && !option_set(option, next, m->value, NULL))
        return false;
    next->pieces = MAX(next->pieces, 1);
    const bool turns = next->schedule != at->schedule;
    if (turns) /* there and back */
        next->virtual_stages = 0;
    if (m->pp || m->virtual_stages || turns)
        next->cuts = next->layers = next->ranks = NULL;
    if (m->a2a &&
        (at->cp_comm < CP_COMM_P2P || !neighbour_shift(&next->a2a_ranks, m->a2a)))
        return false;
    if (next->tp == 1)
        next->sequence_parallel = NULL;
    if (next->cp == 1)
        next->cp_comm = next->a2a_ranks = 0; /* allgather */
    if (next->dp * next->cp == 1 && !(next->offload && next->zero > 1))
        next->zero = 0;
    return next->ep <= next->dp * next->cp * next->tp;
}

bool neighbour_next(const Strategy *at, const PlannerOptions *asked, TechniqueNeeds has,
                    uint32_t *row, Strategy *next)
{
    while (*row < G_N_ELEMENTS(MOVE)) {
        const Move *m = &MOVE[(*row)++];
        if (m->back == schedule_row((Schedule)at->schedule)->v &&
            neighbour_is_open(m, asked, has) && neighbour_make(m, at, next))
            return true;
    }
    return false;
}

const char *neighbour_words(const Strategy *strategy)
{
    g_autoptr(GString) words = g_string_new("");
    items_each (const Option, option, strategy_table.row, strategy_table.n) {
        if (option_is_default(option, strategy))
            continue;
        g_autofree char *value = option_get(option, strategy);
        g_auto(GStrv) list = g_strsplit(value, "; ", -1);
        g_autofree char *lists = g_strjoinv(";", list);
        g_strdelimit(lists, " ", ',');
        g_string_append_printf(words, "%s%s=%s", words->len ? " " : "", option->key,
                               lists);
    }
    return g_intern_string(words->str);
}
