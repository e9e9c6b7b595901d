/* The repeated middle of a program. */
#include "data/program/period.h"

#include <string.h>

enum { LONG = 8, MOST_SHIFT = 64 }; /* fewest repetitions; most microbatches of one */

static Instr period_shifted(Instr instr, int64_t microbatches)
{
    if (instr.microbatch != PROGRAM_WHOLE)
        instr.microbatch = (uint16_t)(instr.microbatch + microbatches);
    return instr;
}

bool instr_alike(const Instr *x, const Instr *y)
{
    return x->kind == y->kind && x->group == y->group && x->to_group == y->to_group &&
           x->stream == y->stream && x->across == y->across && x->moves == y->moves &&
           x->server == y->server && x->collective == y->collective && x->op == y->op &&
           x->tensor == y->tensor && x->from == y->from && x->to == y->to &&
           memcmp(x->form, y->form, sizeof x->form) == 0;
}

/* Whether an instruction is the same as another one, for later microbatches. */
static bool period_repeats(const Instr *later, const Instr *before, uint32_t microbatches)
{
    return later->microbatch == period_shifted(*before, microbatches).microbatch &&
           instr_alike(later, before);
}

/* Widens the repetitions to both sides as far as they go. */
static void period_widen(const Program *program, ProgramPeriod *p)
{
    const Instr *instr = program->instr;
    uint32_t begin = p->first, end = p->first;
    while (begin > 0 &&
           period_repeats(&instr[begin - 1 + p->n], &instr[begin - 1], p->microbatches))
        begin--;
    while (end + p->n < program->n &&
           period_repeats(&instr[end + p->n], &instr[end], p->microbatches))
        end++;
    p->first = begin;
    p->repeats = (end - begin) / p->n + 1;
}

/* Finds the depth; false: later instructions are for microbatches before the last repetition's, as
 * the backwards of gpipe are, so that fewer repetitions leave no program; or another pipeline has
 * microbatches, too, which takes no less time with fewer repetitions here. */
static bool period_set_depth(const Program *program, ProgramPeriod *p)
{
    uint32_t first = UINT32_MAX, last = 0;
    for (uint32_t i = p->first; i < p->first + p->n; i++) {
        first = MIN(first, program->instr[i].microbatch);
        last = MAX(last, program->instr[i].microbatch);
    }
    p->depth = (last - first) / p->microbatches + 1;
    bool good = last != PROGRAM_WHOLE && p->depth < p->repeats;
    g_autofree bool *runs = g_new0(bool, MAX(program->n_groups, 1));
    for (uint32_t i = p->first; i < p->first + p->n; i++)
        runs[program->instr[i].group] = true;
    for (uint32_t i = 0; good && i < program->n; i++)
        good = program->instr[i].microbatch == PROGRAM_WHOLE ||
               runs[program->instr[i].group];
    for (uint32_t i = p->first + p->repeats * p->n; good && i < program->n; i++)
        good = program->instr[i].microbatch >= first + (p->repeats - 1) * p->microbatches;
    return good;
}

bool program_find_period(const Program *program, ProgramPeriod *period)
{
    const Instr *instr = program->instr;
    const uint32_t middle = program->n_microbatches / 2,
                   most = MIN(program->n_microbatches / LONG, MOST_SHIFT);
    uint32_t at = 0,
             next[MOST_SHIFT + 1] = {0}; /* [microbatches]: the same for later ones */
    while (at < program->n &&
           (instr[at].kind != INSTR_COMPUTE || instr[at].microbatch != middle))
        at++;
    for (uint32_t i = program->n; i-- > at + 1;) {
        const uint32_t m = instr[i].microbatch - middle;
        if (instr[i].op == instr[at].op && m <= most &&
            period_repeats(&instr[i], &instr[at], m))
            next[m] = i;
    }
    for (uint32_t m = 1; m <= most; m++) {
        *period = (ProgramPeriod){.first = at, .n = next[m] - at, .microbatches = m};
        if (next[m] == 0)
            continue;
        period_widen(program, period);
        if (period->repeats >= LONG)
            return period_set_depth(program, period);
    }
    return false;
}

Program *program_repeat(const Program *program, const ProgramPeriod *p, uint32_t repeats)
{
    g_assert(repeats > 0 && repeats <= program_all_repeats(program, p));
    const int64_t more = (int64_t)repeats - p->repeats, shift = more * p->microbatches;
    const uint32_t end = p->first + p->repeats * p->n, now = p->first + repeats * p->n,
                   kept = MIN(end, now);
    Program *changed = program_copy_groups(program);
    changed->n = changed->capacity = now + program->n - end;
    changed->n_microbatches = (uint32_t)(program->n_microbatches + shift);
    changed->left_out = (uint32_t)(program->left_out - shift);
    changed->instr = g_new(Instr, changed->n);
    memcpy(changed->instr, program->instr, kept * sizeof *changed->instr);
    for (uint32_t i = kept; i < now; i++)
        changed->instr[i] = period_shifted(changed->instr[i - p->n], p->microbatches);
    for (uint32_t i = end; i < program->n; i++)
        changed->instr[now + i - end] = period_shifted(program->instr[i], shift);
    return changed;
}

uint64_t program_whole_n(const Program *program)
{
    ProgramPeriod p;
    if (program->left_out == 0 || !program_find_period(program, &p))
        return program->n;
    return program->n + (uint64_t)(program_all_repeats(program, &p) - p.repeats) * p.n;
}

void program_whole(Program **program)
{
    if ((*program)->left_out == 0)
        return;
    g_autoptr(Program) part = *program;
    ProgramPeriod period;
    const bool found = program_find_period(part, &period);
    g_assert(found);
    *program = program_repeat(part, &period, program_all_repeats(part, &period));
}
