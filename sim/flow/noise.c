/* Noise of computations, and stragglers. */
#include "sim/flow/noise.h"

#include <gsl/gsl_randist.h>
#include <math.h>
#include <string.h>

#include "data/base/free.h"
#include "data/base/names.h"
#include "data/base/units.h"
#include "sim/event/random.h"

#define ANY_DEVICE   UINT32_MAX
#define EVERY_DEVICE (UINT32_MAX - 1)

typedef struct {
    uint32_t device; /* ANY_DEVICE: drawn anew in each sample */
    double factor;
} Straggler;

struct SimNoise {
    const SimCase *sim;
    const SimTasks *tasks;
    GArray *stragglers;
    uint64_t *device_name; /* [device]: hash */
    uint64_t *instr_name;  /* [instr]: hash of the op's or the tensor's name */
};

bool sim_noise_separates(const SimOptions *options)
{
    return options->jitter > 0 || options->straggler[0] != '\0';
}

/* --- stragglers --- */

static bool find_device(const ClusterView *view, const char *name, uint32_t *device,
                        GError **error)
{
    *device = strcmp(name, "any") == 0 ? ANY_DEVICE : EVERY_DEVICE;
    if (*device == ANY_DEVICE || strcmp(name, "every") == 0)
        return true;
    *device = NAME_PLACE(view->device, view->n_devices, name, name);
    return *device < view->n_devices ||
           refuse(error, "no device '%s', expected any, every or one such as %s", name,
                  view->device[0].name);
}

static bool read_straggler(SimNoise *noise, const char *text, GError **error)
{
    const char *star = strrchr(text, '*');
    g_autofree char *name = g_strndup(text, star ? (gsize)(star - text) : strlen(text));
    const double least = 1e-6, most = 1e6;
    Straggler straggler = {ANY_DEVICE, 0};
    if (!star || !number_read(star + 1, least, most, &straggler.factor))
        return refuse(error, "expected DEVICE*FACTOR such as %s*1.5, got '%s'",
                      noise->sim->view->device[0].name, text);
    if (!find_device(noise->sim->view, name, &straggler.device, error))
        return false;
    g_array_append_val(noise->stragglers, straggler);
    return true;
}

static bool read_stragglers(SimNoise *noise, GError **error)
{
    g_auto(GStrv) texts = g_strsplit(noise->sim->options->straggler, "+", -1);
    for (char **text = texts; *text; text++)
        if (!read_straggler(noise, *text, error))
            return kilter_prefix(error, "option 'straggler': ");
    return true;
}

/* The slowdown of each device: [device]. The caller frees it. */
static double *slowness(const SimNoise *noise, uint64_t run_key)
{
    g_assert(noise);
    const uint32_t n = noise->sim->view->n_devices;
    double *factor = g_new(double, n);
    for (uint32_t j = 0; j < n; j++)
        factor[j] = 1;
    array_at (const Straggler, s, i, noise->stragglers) {
        SimRandom random;
        sim_random_start(&random, sim_random_mix(sim_random_mix(run_key, i),
                                                 sim_random_name("straggler")));
        const uint32_t drawn = (uint32_t)gsl_rng_uniform_int(&random.rng, n);
        for (uint32_t j = 0; j < n; j++)
            if (s->device == EVERY_DEVICE ||
                j == (s->device == ANY_DEVICE ? drawn : s->device))
                factor[j] *= s->factor;
    }
    return factor;
}

/* --- jitter --- */

static double draw(const SimOptions *options, uint64_t key)
{
    const double s = options->jitter, variance = log1p(s * s);
    SimRandom random;
    if (s == 0)
        return 1;
    sim_random_start(&random, key);
    switch (options->distribution) {
    case SIM_NORMAL:
        return fmax(0, 1 + gsl_ran_gaussian_ziggurat(&random.rng, s));
    case SIM_LOGNORMAL:
        return exp(gsl_ran_gaussian_ziggurat(&random.rng, sqrt(variance)) - variance / 2);
    default:
        return gsl_ran_gamma(&random.rng, 1 / (s * s), s * s);
    }
}

void sim_noise_durations(const SimNoise *noise, uint64_t sample, double *duration_s)
{
    const SimTasks *tasks = noise->tasks;
    const SimOptions *options = noise->sim->options;
    const uint64_t run_key = sim_random_mix(options->seed, sample);
    g_autofree double *slow = slowness(noise, run_key);
    items_at (const SimTask, task, i, tasks->task, tasks->n_tasks) {
        duration_s[i] = task->duration_s;
        if (task->kind != TASK_COMPUTE)
            continue;
        const uint32_t device = tasks->teams->device[task->lane];
        const uint64_t entity =
            sim_random_mix(noise->device_name[device],
                           noise->instr_name[task->instr] + task->microbatch);
        duration_s[i] *= slow[device] * draw(options, sim_random_mix(run_key, entity));
    }
}

/* --- making --- */

static uint64_t name_of(const SimCase *sim, const Instr *instr)
{
    if (instr->kind == INSTR_COMPUTE)
        return sim_random_name(graph_get_op(sim->graph, instr->op)->name);
    /* The complement, as an op may have its output's name. */
    return ~sim_random_name(graph_tensor(sim->graph, instr->tensor)->name);
}

SimNoise *sim_noise_new(const SimCase *sim, const SimTasks *tasks, GError **error)
{
    g_autoptr(SimNoise) noise = g_new0(SimNoise, 1);
    const Program *program = sim->plan->program;
    noise->sim = sim;
    noise->tasks = tasks;
    noise->stragglers = g_array_new(false, false, sizeof(Straggler));
    noise->device_name = g_new(uint64_t, sim->view->n_devices);
    noise->instr_name = g_new(uint64_t, program->n);
    for (uint32_t j = 0; j < sim->view->n_devices; j++)
        noise->device_name[j] = sim_random_name(sim->view->device[j].name);
    for (uint32_t i = 0; i < program->n; i++)
        noise->instr_name[i] = name_of(sim, &program->instr[i]);
    return read_stragglers(noise, error) ? g_steal_pointer(&noise) : NULL;
}

FREE_DEFINE(sim_noise_free, SimNoise, noise, g_array_unref(noise->stragglers),
            free_each(noise->device_name, noise->instr_name));
