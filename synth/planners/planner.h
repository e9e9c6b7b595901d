/* Planners: methods that make a plan, behind one interface.
 *
 *     model, cluster, options  --question_open-->    Question  graph, pins and segments, checked
 *                              --question_answer-->  Answer    plan and report, rounded and bounded
 *
 * A planner is a row of the table in synth/planners/planner.c (of choosers.c if it chooses among
 * the plans of others): name, abilities, and a function make(), declared in the
 * make.h of its room, that gets the question (synth/question/question.h) and fills in program and
 * ratios of the answer's plan (synth/answer/answer.h; complete.h has the tools). Options are rows
 * of tables as well (synth/question/planner_options.h). */
#pragma once

#include "sim/sim.h"
#include "synth/question/planner_options.h"

/* A question to a planner, opened once: the graph is built, the options are checked. */
typedef struct Question Question; /* synth/question/question.h */
/* The kinds of a planner's answer. */
typedef struct Answer Answer; /* synth/answer/answer.h */

/* The abilities of planners; other code asks for abilities, never for a planner's name. X(id,
 * whether `options` ask for it, by which option, why only planners with it take the option); they
 * are checked in this order. */
/* clang-format off */
#define ABILITY_TABLE(X)                                                                             \
    /* keeps the forms that pins ask for */                                                          \
    X(PINS, options->pins != NULL, "pin",                                                            \
      "since the others have forms of their own for every tensor")                                   \
    /* gives each segment its own ratios */                                                          \
    X(SEGMENTS, options->segments != NULL, "segments",                                               \
      "since the others have one vector of ratios")                                                  \
    /* its own search knows two microbatches that take turns */                                      \
    X(TURNS, options->noise != 0 || options->communication != 0 ||                                   \
             options->backward != BACKWARD_OVERLAPPED,                                               \
      "backward, communication, noise", "whose search takes them")                                   \
    /* takes the options of pipelines: degrees, schedule, ... */                                     \
    X(STRATEGY, planner_options_of_pipelines(options), "pp, dp, tmp, mbs, schedule, ...",            \
      "since the others have no pipelines, or choose all of them")                                   \
    /* counts states that lie on hosts */                                                            \
    X(HOSTS, options->strategy.offload != NULL, "offload",                                           \
      "since searches of the others do not count what waits on hosts")                               \
    /* its replicas can divide their equal states */                                                 \
    X(ZERO, options->strategy.zero > 0 || options->strategy.zero_ranks > 0, "zero, zero_ranks",      \
      "since the others have no replicas that hold the same, or divide it where that is faster")     \
    /* takes search=best, mcts or exact */                                                           \
    X(TREES, options->search == SEARCH_BEST || options->search == SEARCH_MCTS, "search",             \
      "since the others have one search")                                                            \
    /* takes the options of op groups: groups, evaluations, ... */                                   \
    X(PLACES, planner_options_of_op_groups(options), "groups, evaluations, ...",                     \
      "since the others place no op groups")                                                         \
    /* can compare its plans with a bound on all programs */                                         \
    X(CERTIFIES, options->certify > 0, "certify",                                                    \
      "since the bound is on programs of one microbatch for all devices, no pipelines")              \
    /* lays out every strategy, and searches for none */                                             \
    X(WHOLE, planner_can(method, PLANNER_PIPELINES) && planner_options_unsearched(options),          \
      planner_options_unsearched(options), "which takes all of a strategy")                          \
    X(RATIOS, false, NULL, NULL)   /* can be given ratios by speed, or asked for the best ones */    \
    X(SHARES, false, NULL, NULL)   /* its own shares are unequal, and nobody chooses them */          \
    X(GROUPS, false, NULL, NULL)   /* its programs run on groups of devices, microbatch by microbatch */ \
    X(GPUS, false, NULL, NULL)     /* plans for single GPUs only */                                  \
    X(BALANCES, false, NULL, NULL) /* the ratios it chooses are the best ones for its program */     \
    X(SEARCHES, false, NULL, NULL) /* searches all programs: where its plan does not fit, another may */ \
    X(BOUNDS, false, NULL, NULL)   /* always compares its plans with the quick bound */              \
    X(TRIED, false, NULL, NULL)    /* tried by `advise`: needs nothing but its options */            \
    X(CHOOSES, false, NULL, NULL)  /* chooses the machines and the granularity */                    \
    X(EVEN, false, NULL, NULL)     /* its own ratios are equal shares per GPU */                     \
    X(FIRST, false, NULL, NULL)    /* quick and seldom beaten: tried first */                        \
    X(LAST, false, NULL, NULL)     /* a long search that seldom wins: tried last */
/* clang-format on */
#define X(id, ...) ABILITY_##id,
enum { ABILITY_TABLE(X) };
#undef X
#define X(id, ...) PLANNER_##id = 1u << ABILITY_##id,
typedef enum { ABILITY_TABLE(X) } PlannerAbility;
#undef X

/* Stages and replicas of single GPUs. */
enum {
    PLANNER_PIPELINES =
        PLANNER_STRATEGY | PLANNER_GROUPS | PLANNER_GPUS | PLANNER_ZERO | PLANNER_HOSTS
};

typedef struct Planner Planner;
struct Planner {
    const char *name; /* what it does, and its paper: data/commands/methods.txt */
    uint32_t ability; /* PlannerAbility, or-ed */
    /* Fills in program, ratios, search and balance times of answer->plan; question_answer() rounds,
     * evaluates and bounds. A planner with PLANNER_CHOOSES makes the whole plan and sets the
     * answer's view and report. */
    bool (*make)(const Question *question, Answer *answer, GError **error);
    /* where planners share make(): which of them it is, by make.h of its room */
    uint32_t variant;
    /* The sizes of questions up to which a search takes about 20 s and 2 GiB; 0: any. Where nothing
     * fits a device, it holds many more states: its memory has a number of ops of its own. */
    uint32_t ops, memory_ops; /* of the model with backward pass and updates */
    uint32_t devices, memory_devices;
    uint32_t most_gpus; /* beyond, the planner refuses; 0: never */
};

/* The words on what the planner does, and its paper with the section. Free with g_strfreev. */
char **planner_about(const Planner *planner);

/* Refuses a cluster that is too large for the planner, with KILTER_ERROR_INPUT. */
bool planner_takes_size(const Planner *of, const ClusterView *view, GError **error);
/* Hears before a search that it may take more than 20 s or 2 GiB, in the thread that searches. */
typedef void (*PlannerHear)(double seconds, const char *words);
/* Who hears, in this process; NULL, as at the beginning: nobody. Not while anything is planned. */
void planner_tell(PlannerHear hear);
/* Says so of `what`; bytes 0: nothing is said of memory. */
void planner_say(const char *what, double seconds, double bytes);
/* The seconds and bytes that a planner's search takes at most, as those measured. */
void planner_expects(const Planner *of, uint32_t ops, uint32_t devices, double *seconds,
                     double *bytes);
/* Says so of one planner's search, if it may. */
void planner_say_size(const Planner *of, const Graph *graph, const ClusterView *view);

uint32_t planner_count(void);
const Planner *planner_at(uint32_t index);
/* [{name, description, source}] of all. */
struct json_t *planners_json(void);
/* The planners that make plans themselves, in contrast to those that choose among the plans of
 * others. */
const Planner *planner_makers(uint32_t *n);
/* Whether the planner has all of these abilities. */
static inline bool planner_can(const Planner *planner, uint32_t ability)
{
    return (planner->ability & ability) == ability;
}

/* The makers with an ability, as text: "planner hap", "one of the planners amp, megatron". Caller
 * frees. */
char *planners_that(uint32_t ability);
const Planner *planner_find(const char *name,
                            GError **error); /* KILTER_ERROR_INPUT lists the known ones */

/* Builds the graph and checks the options against the planner's abilities; KILTER_ERROR_INPUT names
 * the option, the pin, or what is wrong with the model. The view is not taken over, the options are
 * copied. */
Question *question_open(const Planner *planner, const char *model,
                        const ClusterView *view, const PlannerOptions *options,
                        GError **error);
/* The same on an existing graph of the canonical spec `model`; the question takes its own
 * reference. */
Question *question_open_on(const Planner *planner, const char *model, Graph *graph,
                           const ClusterView *view, const PlannerOptions *options,
                           GError **error);
/* The runtime beside plans of that planner: the option's or, for GPUs of data sheets, by the kind
 * of plans; NULL: none, or not known before a plan is chosen. */
const char *planner_runtime(const Planner *planner, const PlannerOptions *options,
                            const Cluster *cluster);
/* The cluster's machines with the prices of ops that a plan for the runtime (NULL: none) sees; NULL
 * if its file cannot be read. */
ClusterView *planner_view(const PlannerOptions *options, const char *runtime,
                          const Cluster *cluster, Granularity granularity);
/* The bundled files of runtimes that plans can depend on though no option names them; free with
 * g_strfreev. */
char **planner_runtime_files(const Planner *planner, const PlannerOptions *options,
                             const Cluster *cluster);
AUTOPTR(question_free, Question)

/* The model with every parameter. */
const char *question_spec(const Question *question);
/* The graph; the caller gets a reference of its own. */
Graph *question_graph(const Question *question);

/* How far a planner needs to go. */
typedef struct {
    double upper_s; /* a plan that takes this long is of no use; 0: any is of use */
    bool unbounded; /* the plan needs no bound, which can take longer than the plan */
    /* the memory of plans that take this long is not counted, and they fit; 0: it is counted */
    double enough_s;
    bool brief;   /* a long pipeline may be as plan_make_whole() takes it */
    bool *beaten; /* NULL, or set if a bound shows that no plan is faster than upper_s */
} AnswerLimits;

/* Runs the planner. A plan that does not fit has feasible == false; it is not an error here.
 * cluster: the cluster's name in the plan. limits: NULL: none. */
Answer *question_answer(const Question *question, const char *cluster,
                        const AnswerLimits *limits, GError **error);
AUTOPTR(answer_free, Answer)

/* Parts of the answer, which the caller then owns. */
Plan *answer_take_plan(Answer *answer);
/* The plan's report by the fidelity plan_fidelity() with the question's prices of ops and otherwise
 * the default options of the simulation. */
SimReport *answer_take_report(Answer *answer);
/* Sentences (char *) on the search and its choices; NULL: none. */
GPtrArray *answer_take_notes(Answer *answer);
/* Whether a budget of seconds ended the search, so that another run may end elsewhere. */
bool answer_is_stopped(const Answer *answer);
/* The plan's view if the planner chose the machines, with its cluster; NULL if the plan is on the
 * question's view. */
ClusterView *answer_take_view(Answer *answer);

/* Opens, plans and closes; a planner that chooses the machines fails with KILTER_ERROR_INPUT.
 * *graph, if not NULL, gets the graph. */
Plan *planner_plan(const Planner *planner, const char *model, const char *cluster_name,
                   const ClusterView *view, const PlannerOptions *options, Graph **graph,
                   GError **error);
