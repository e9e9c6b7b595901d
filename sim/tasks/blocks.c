/* The time of a long pipeline by the tasks of a part of its microbatches (data/program/blocks.h): a
 * block of the program has the tasks of the block of the part that does the same.
 *
 * A task waits for the clocks of its lanes, so what ran there before it needs no edge. Of the other
 * edges those within a block and those between blocks of one microbatch are the same for all
 * microbatches, and so are those from what runs once. Others, and blocks whose mates do not do the
 * same, leave the time to the whole program. */
#include <math.h>

#include "data/base/free.h"
#include "data/program/blocks.h"
#include "sim/tasks/task.h"

/* A task waits for a task of its block, counted from the block's first one; for what was made at a
 * place of its microbatch; or for the task of a block that runs once. */
typedef enum { WAITS_WITHIN, WAITS_PLACE, WAITS_ONCE } WaitKind;
typedef struct {
    WaitKind kind;
    uint32_t of;
} Wait;

typedef struct {
    const SimTasks *tasks;
    const ProgramBlocks *blocks;
    uint32_t *of;         /* [task]: its block */
    uint32_t *first;      /* [block]: its first task; [n_of]: their number */
    uint32_t *place;      /* [task]: of its microbatch, or SIM_NO_TASK */
    uint32_t *first_wait; /* [task], then their number */
    GArray *wait;         /* Wait */
    uint32_t n_places;
    double *now_s, *once_s; /* [task]: its latest end; that of its own block */
    double *place_s;        /* [microbatch * n_places + place] */
    double *clock_s;        /* [lane], then of launches */
    double *sent_s;         /* [group * teams + team]: the end of the last transfer */
    double latest_s;
} Blocks;

OWN_CLEAR_DEFINE(blocks_clear, Blocks, b, let_go(b->wait, g_array_unref),
                 free_each(b->of, b->first, b->place, b->first_wait, b->now_s),
                 free_each(b->once_s, b->place_s, b->clock_s, b->sent_s));

static const Instr *blocks_instr(const Blocks *b, uint32_t task)
{
    return &b->blocks->part->instr[b->tasks->task[task].instr];
}

static bool blocks_is_whole(const Blocks *b, uint32_t task)
{
    return b->blocks->part->instr[b->blocks->first[b->of[task]]].microbatch ==
           PROGRAM_WHOLE;
}

/* Finds the tasks of the blocks; false: they are not in the order of their blocks. */
static bool blocks_find_tasks(Blocks *b)
{
    const SimTasks *tasks = b->tasks;
    b->of = g_new(uint32_t, tasks->n_tasks + 1);
    b->first = g_new(uint32_t, b->blocks->n_of + 1);
    uint32_t at = 0, i = 0;
    for (; at < b->blocks->n_of; at++) {
        b->first[at] = i;
        for (; i < tasks->n_tasks && tasks->task[i].instr >= b->blocks->first[at] &&
               tasks->task[i].instr < b->blocks->first[at + 1];
             i++)
            b->of[i] = at;
    }
    b->first[at] = i;
    return i == tasks->n_tasks;
}

/* Whether the task is ended by the clocks of the other one, which comes later. */
static bool blocks_clocks_say(const Blocks *b, uint32_t task, uint32_t later)
{
    const SimTask *x = &b->tasks->task[task], *y = &b->tasks->task[later];
    const bool clocks = x->kind == TASK_COMPUTE || x->kind == TASK_COLLECTIVE,
               waits = y->kind == TASK_COMPUTE || y->kind == TASK_COLLECTIVE;
    uint32_t n, m;
    const uint32_t *lane = sim_task_lanes(b->tasks, x, &n),
                   *other = sim_task_lanes(b->tasks, y, &m);
    if (x->kind == TASK_TRANSFER && y->kind == TASK_TRANSFER)
        return x->stage == y->stage && x->team == y->team; /* one after the other */
    for (uint32_t i = 0; clocks && waits && i < n; i++)
        for (uint32_t k = 0; k < m; k++)
            if (lane[i] == other[k])
                return true;
    return false;
}

/* Gives the transfers for which others of their microbatch wait a place: the same to all of a tensor
 * between two groups. False: one microbatch has two of them, or something else is waited for. */
static bool blocks_find_places(Blocks *b, const bool *waited)
{
    const uint32_t n_tasks = b->tasks->n_tasks, n_teams = b->tasks->teams->n_teams;
    g_autoptr(GHashTable) places = g_hash_table_new(NULL, NULL),
                          used = g_hash_table_new(NULL, NULL);
    bool good = true;
    b->place = g_new(uint32_t, n_tasks + 1);
    for (uint32_t i = 0; i < n_tasks; i++) {
        const Instr *instr = blocks_instr(b, i);
        const SimTask *task = &b->tasks->task[i];
        b->place[i] = SIM_NO_TASK;
        if (!waited[i])
            continue;
        void *key = GSIZE_TO_POINTER(((uint64_t)instr->tensor << 32) +
                                     instr->group * (uint64_t)n_teams + task->team + 1);
        void *place = g_hash_table_lookup(places, key);
        if (!place)
            g_hash_table_insert(places, key, place = GUINT_TO_POINTER(++b->n_places));
        b->place[i] = GPOINTER_TO_UINT(place) - 1;
        good = good && task->kind == TASK_TRANSFER &&
               g_hash_table_add(used, GSIZE_TO_POINTER((uint64_t)b->place[i] << 32 |
                                                       (instr->microbatch + 1)));
    }
    return good;
}

/* How a task waits for another one. */
static bool blocks_wait(const Blocks *b, uint32_t dep, uint32_t task, Wait *wait)
{
    const bool once = blocks_is_whole(b, dep) || blocks_is_whole(b, task);
    if (b->of[dep] == b->of[task])
        *wait = (Wait){WAITS_WITHIN, dep - b->first[b->of[task]]};
    else
        *wait = (Wait){once ? WAITS_ONCE : WAITS_PLACE, once ? dep : b->place[dep]};
    return once || b->of[dep] == b->of[task] ||
           blocks_instr(b, dep)->microbatch == blocks_instr(b, task)->microbatch;
}

/* Finds what the tasks wait for beside clocks; false: it is another microbatch's. */
static bool blocks_find_waits(Blocks *b)
{
    const SimTasks *tasks = b->tasks;
    g_autofree bool *waited = g_new0(bool, tasks->n_tasks + 1);
    for (uint32_t i = 0; i < tasks->n_tasks; i++) {
        const uint32_t *dep = &tasks->dep[tasks->task[i].first_dep];
        for (uint32_t k = 0; k < tasks->task[i].n_deps; k++)
            waited[dep[k]] |= b->of[dep[k]] != b->of[i] && !blocks_is_whole(b, dep[k]) &&
                              !blocks_is_whole(b, i) && !blocks_clocks_say(b, dep[k], i);
    }
    bool good = blocks_find_places(b, waited);
    b->wait = g_array_new(FALSE, FALSE, sizeof(Wait));
    b->first_wait = g_new(uint32_t, tasks->n_tasks + 1);
    for (uint32_t i = 0; good && i < tasks->n_tasks; i++) {
        const uint32_t *dep = &tasks->dep[tasks->task[i].first_dep];
        b->first_wait[i] = b->wait->len;
        for (uint32_t k = 0; good && k < tasks->task[i].n_deps; k++) {
            Wait wait;
            if (blocks_clocks_say(b, dep[k], i))
                continue;
            good = blocks_wait(b, dep[k], i, &wait);
            g_array_append_val(b->wait, wait);
        }
    }
    b->first_wait[tasks->n_tasks] = b->wait->len;
    return good;
}

/* Whether two blocks do the same. */
static bool blocks_are_mates(const Blocks *b, uint32_t block, uint32_t other)
{
    const uint32_t n = b->first[block + 1] - b->first[block];
    bool same = b->first[other + 1] - b->first[other] == n;
    for (uint32_t k = 0; same && k < n; k++) {
        const uint32_t i = b->first[block] + k, j = b->first[other] + k;
        const SimTask *x = &b->tasks->task[i], *y = &b->tasks->task[j];
        const uint32_t n_waits = b->first_wait[i + 1] - b->first_wait[i];
        same = x->kind == y->kind && x->lane == y->lane && x->team == y->team &&
               x->duration_s == y->duration_s &&
               b->first_wait[j + 1] - b->first_wait[j] == n_waits;
        for (uint32_t w = 0; same && w < n_waits; w++) {
            const Wait *v = &g_array_index(b->wait, Wait, b->first_wait[i] + w),
                       *u = &g_array_index(b->wait, Wait, b->first_wait[j] + w);
            same = v->kind == u->kind && v->of == u->of;
        }
    }
    return same;
}

static double blocks_wait_s(const Blocks *b, const ProgramBlock *block, const Wait *wait)
{
    return wait->kind == WAITS_WITHIN ? b->now_s[b->first[block->of] + wait->of]
           : wait->kind == WAITS_ONCE
               ? b->once_s[wait->of]
               : b->place_s[(size_t)block->microbatch * b->n_places + wait->of];
}

static void blocks_run_task(Blocks *b, const ProgramBlock *block, uint32_t i)
{
    const SimTask *task = &b->tasks->task[i];
    const SimTeams *teams = b->tasks->teams;
    const bool sends = task->kind == TASK_TRANSFER;
    uint32_t n;
    const uint32_t *lane = sim_task_lanes(b->tasks, task, &n);
    double *clock_s = b->clock_s + (task->kind == TASK_LAUNCH) * teams->n_lanes,
           *sent_s = sends ? &b->sent_s[task->stage * teams->n_teams + task->team] : NULL,
           s = sends ? *sent_s : 0;
    for (uint32_t k = 0; !sends && k < n; k++)
        s = MAX(s, clock_s[lane[k]]);
    for (uint32_t w = b->first_wait[i]; w < b->first_wait[i + 1]; w++)
        s = MAX(s, blocks_wait_s(b, block, &g_array_index(b->wait, Wait, w)));
    b->now_s[i] = s += task->duration_s;
    b->latest_s = MAX(b->latest_s, s);
    for (uint32_t k = 0; !sends && k < n; k++)
        clock_s[lane[k]] = s;
    if (sends)
        *sent_s = s;
    if (block->is_it)
        b->once_s[i] = s;
    if (b->place[i] != SIM_NO_TASK)
        b->place_s[(size_t)block->microbatch * b->n_places + b->place[i]] = s;
}

double sim_blocks_s(const SimTasks *tasks, const ProgramBlocks *blocks)
{
    g_auto(Blocks) b = {.tasks = tasks, .blocks = blocks};
    if (!blocks_find_tasks(&b) || !blocks_find_waits(&b))
        return NAN;
    for (uint32_t k = 0; k < blocks->n_of; k++)
        if (!blocks_are_mates(&b, k, blocks->mate[k]))
            return NAN;
    const SimTeams *teams = tasks->teams;
    b.now_s = g_new0(double, tasks->n_tasks + 1);
    b.once_s = g_new0(double, tasks->n_tasks + 1);
    b.place_s = g_new0(double, (size_t)blocks->n_microbatches *b.n_places + 1);
    b.clock_s = g_new0(double, 2 * teams->n_lanes);
    b.sent_s = g_new0(double, (size_t)teams->n_groups * teams->n_teams + 1);
    items_each (const ProgramBlock, block, blocks->block, blocks->n)
        for (uint32_t i = b.first[block->of]; i < b.first[block->of + 1]; i++)
            blocks_run_task(&b, block, i);
    return b.latest_s;
}
