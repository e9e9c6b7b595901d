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
    SimPath *now, *once; /* [task]: to its latest end; to that of its own block */
    SimPath *place_at;   /* [microbatch * n_places + place] */
    SimPath *clock;      /* [lane], then of launches */
    SimPath *sent;       /* [group * teams + team]: to the end of the last transfer */
    SimPath latest;
    SimTally *tally;
} Blocks;

OWN_CLEAR_DEFINE(blocks_clear, Blocks, b, let_go(b->wait, g_array_unref),
                 free_each(b->of, b->first, b->place, b->first_wait, b->now),
                 free_each(b->once, b->place_at, b->clock, b->sent));

static const Instr *blocks_instr(const Blocks *b, uint32_t task)
{
    return &b->blocks->part->instr[b->tasks->task[task].instr];
}

static bool blocks_is_whole(const Blocks *b, uint32_t task)
{
    return blocks_instr(b, task)->microbatch == PROGRAM_WHOLE;
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

/* Gives the transfers for which others of their microbatch wait a place: the same to all of a
 * tensor between two groups. False: one microbatch has two of them, or something else is waited
 * for. */
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

static const SimPath *blocks_waited(const Blocks *b, const ProgramBlock *block,
                                    const Wait *wait)
{
    return wait->kind == WAITS_WITHIN ? &b->now[b->first[block->of] + wait->of]
           : wait->kind == WAITS_ONCE
               ? &b->once[wait->of]
               : &b->place_at[(size_t)block->microbatch * b->n_places + wait->of];
}

/* Waits for a path that ends later, of equal ones for the first. */
static void blocks_wait_for(SimPath *path, const SimPath *other)
{
    if (other->end_s > path->end_s)
        *path = *other;
}

static void blocks_run_task(Blocks *b, const ProgramBlock *block, uint32_t i)
{
    const SimTask *task = &b->tasks->task[i];
    const SimTeams *teams = b->tasks->teams;
    const bool sends = task->kind == TASK_TRANSFER;
    uint32_t n;
    const uint32_t *lane = sim_task_lanes(b->tasks, task, &n);
    SimPath path = {0}, *clock = b->clock + (task->kind == TASK_LAUNCH) * teams->n_lanes,
            *sent = sends ? &b->sent[task->stage * teams->n_teams + task->team] : NULL;
    for (uint32_t k = 0; !sends && k < n; k++)
        blocks_wait_for(&path, &clock[lane[k]]);
    for (uint32_t w = b->first_wait[i]; w < b->first_wait[i + 1]; w++)
        blocks_wait_for(&path, blocks_waited(b, block, &g_array_index(b->wait, Wait, w)));
    if (sends)
        blocks_wait_for(&path, sent);
    const SimSpan span = {.stage = task->stage,
                          .lane = sim_task_communicates(task) ? SIM_TEAM : task->lane,
                          .launch = task->kind == TASK_LAUNCH,
                          .start_s = path.end_s,
                          .end_s = path.end_s + task->duration_s};
    path.end_s = span.end_s;
    sim_path_add(&path, &span);
    blocks_wait_for(&b->latest, &path);
    if (b->tally)
        sim_tally_add(b->tally, &span, sends, lane, n);
    for (uint32_t k = 0; !sends && k < n; k++)
        clock[lane[k]] = path;
    if (sends)
        *sent = path;
    b->now[i] = path;
    if (block->is_it)
        b->once[i] = path;
    if (b->place[i] != SIM_NO_TASK)
        b->place_at[(size_t)block->microbatch * b->n_places + b->place[i]] = path;
}

/* Whether blocks that stand for others do what these do. */
static bool blocks_tell(Blocks *b)
{
    bool tell = blocks_find_tasks(b) && blocks_find_waits(b);
    for (uint32_t k = 0; tell && k < b->blocks->n_of; k++)
        tell = blocks_are_mates(b, k, b->blocks->mate[k]);
    return tell;
}

bool sim_blocks_run(const SimCase *sim, const SimTasks *tasks, SimReport *report)
{
    const ProgramBlocks *blocks = sim->options->blocks;
    const SimTeams *teams = tasks->teams;
    const double enough_s = sim->options->enough_s;
    const bool brief =
        enough_s > 0 && !blocks->part->successive && sim->plan->strategy.sync_every < 2;
    g_autoptr(SimTally) tally = sim_tally_new(teams->n_lanes, report->n_stages);
    g_auto(Blocks) b = {.tasks = tasks, .blocks = blocks};
    report->iteration_time_s = NAN;
    report->timeline = sim_tasks_timeline(tasks, blocks->part->n); /* its lanes */
    if (!blocks_tell(&b))
        return true;
    b.now = g_new0(SimPath, tasks->n_tasks + 1);
    b.once = g_new0(SimPath, tasks->n_tasks + 1);
    b.place_at = g_new0(SimPath, (size_t)blocks->n_microbatches * b.n_places + 1);
    /* devices' times are tallied only where the plan is faster */
    for (uint32_t pass = !brief; pass < 2; pass++) {
        b.tally = pass > 0 ? tally : NULL;
        b.latest = (SimPath){0};
        put_block(b.clock, g_new0(SimPath, 2 * teams->n_lanes));
        put_block(b.sent, g_new0(SimPath, (size_t)teams->n_groups * teams->n_teams + 1));
        items_each (const ProgramBlock, block, blocks->block, blocks->n)
            for (uint32_t i = b.first[block->of]; i < b.first[block->of + 1]; i++)
                blocks_run_task(&b, block, i);
        report->iteration_time_s = b.latest.end_s;
        if (pass == 0 && b.latest.end_s >= enough_s)
            return true;
    }
    sim_report_times(report, tally, &b.latest, teams->lane, blocks->part->successive);
    return true;
}
