/* The time of a program with a longer middle than it has: repetitions behind its last one
 * (data/program/period.h) have the same tasks, so only the clocks of `stage` are moved on. */
#include <math.h>

#include "data/program/period.h"
#include "sim/tasks/task.h"

typedef struct {
    const SimTasks *tasks;
    /* the first tasks of the middle, of its last repetition, and behind it */
    uint32_t first, last, end;
    double *end_s;   /* [task]; those behind the middle stand behind what is added */
    double *clock_s; /* [lane], then of launches */
    double latest_s;
} Further;

/* The first task of an instruction, or of one behind it. */
static uint32_t further_task(const SimTasks *tasks, uint32_t instr)
{
    uint32_t i = 0;
    while (i < tasks->n_tasks && tasks->task[i].instr < instr)
        i++;
    return i;
}

/* Whether the tasks of the last repetition are those of the one before, a period of n instructions
 * later, and all tasks of later instructions come behind them. */
static bool further_is_alike(const Further *f, uint32_t n)
{
    const SimTasks *tasks = f->tasks;
    const uint32_t shift = f->end - f->last;
    bool alike = shift > 0 && f->first + shift <= f->last;
    for (uint32_t i = f->last; alike && i < f->end; i++) {
        const SimTask *x = &tasks->task[i - shift], *y = &tasks->task[i];
        const uint32_t *before = tasks->dep + x->first_dep,
                       *now = tasks->dep + y->first_dep;
        alike = y->kind == x->kind && y->lane == x->lane && y->team == x->team &&
                y->instr == x->instr + n && y->duration_s == x->duration_s &&
                y->n_deps == x->n_deps;
        for (uint32_t k = 0; alike && k < y->n_deps; k++)
            alike = now[k] == before[k] + (before[k] >= f->first ? shift : 0);
    }
    for (uint32_t i = f->end; alike && i < tasks->n_tasks; i++)
        alike = tasks->task[i].instr >= tasks->task[f->end - 1].instr;
    return alike;
}

/* Runs the tasks of a range, which stand so many further behind; so do those of the middle that
 * they wait for. */
static void further_run(Further *f, uint32_t from, uint32_t to, uint32_t shift)
{
    for (uint32_t i = from; i < to; i++) {
        const SimTask *task = &f->tasks->task[i];
        const uint32_t *dep = &f->tasks->dep[task->first_dep];
        const bool launches = task->kind == TASK_LAUNCH;
        double *clock_s = f->clock_s + launches * f->tasks->teams->n_lanes, s = 0;
        uint32_t n;
        const uint32_t *lane = sim_task_lanes(f->tasks, task, &n);
        n = task->kind == TASK_TRANSFER ? 0 : n;
        for (uint32_t k = 0; k < n; k++)
            s = MAX(s, clock_s[lane[k]]);
        for (uint32_t k = 0; k < task->n_deps; k++)
            s = MAX(s, f->end_s[dep[k] + (dep[k] >= f->first ? shift : 0)]);
        f->end_s[i + shift] = s += task->duration_s;
        f->latest_s = MAX(f->latest_s, s);
        for (uint32_t k = 0; k < n; k++)
            clock_s[lane[k]] = s;
    }
}

double sim_further_s(const SimTasks *tasks, const Program *program, uint32_t repeats)
{
    ProgramPeriod p;
    if (!program_find_period(program, &p))
        return NAN;
    const uint32_t end = p.first + p.repeats * p.n;
    Further f = {.tasks = tasks,
                 .first = further_task(tasks, p.first),
                 .last = further_task(tasks, end - p.n),
                 .end = further_task(tasks, end)};
    if (!further_is_alike(&f, p.n))
        return NAN;
    const uint32_t n = f.end - f.last;
    g_autofree double *end_s = f.end_s = g_new(double, tasks->n_tasks + repeats * n),
                      *clock_s = f.clock_s = g_new0(double, 2 * tasks->teams->n_lanes);
    further_run(&f, 0, f.end, 0);
    for (uint32_t r = 1; r <= repeats; r++)
        further_run(&f, f.last, f.end, r * n);
    further_run(&f, f.end, tasks->n_tasks, repeats * n);
    return f.latest_s;
}
