/* Kilter as a library: plans, simulates and proves, with JSON in and out.
 *
 *     char *report;
 *     if (kilter_simulate("{\"model\": \"vgg19\", \"cluster\": \"hap-8\", \"planner\": \"dp-ev\"}", &report) == KILTER_DONE)
 *         puts(report);
 *     kilter_free(report);
 *
 * A request is an object:
 *
 *     model          "vgg19" or "vit:layers=24,batch=32"; kilter_models lists them
 *     cluster        a name, a YAML file, or a network such as "star:hosts=8"; kilter_clusters lists the names
 *     planner        default "hap"; kilter_planners lists them
 *     granularity    what a device is: "machine" (default) or "gpu"
 *     fidelity       "stage" (default), "flow" or "analytic"; kilter_plan: by default the one that the planner optimizes
 *     seed           default 1
 *     set            {"bucket": "25MiB", ...}: the options of kilter --set, with values as text
 *     plan           the path of a plan's file, in place of model, cluster, planner and granularity; not for kilter_plan
 *
 * Each call fills *json (NULL: no answer is wanted), on failure with {"error": {"status",
 * "message"}}; free it with kilter_free. An answer begins with "format": {"name", "version"}. Calls
 * may be made from several threads. Names are looked up as the program looks them up: in
 * KILTER_PATH and in the data installed with the library. */
#ifndef KILTER_H
#define KILTER_H

#ifdef __cplusplus
extern "C" {
#endif

/* The exit statuses of the program. */
typedef enum {
    KILTER_DONE,
    KILTER_FAILED,      /* the work failed */
    KILTER_BAD_INPUT,   /* the request is wrong */
    KILTER_DOES_NOT_FIT /* no plan fits the memory */
} KilterStatus;

/* Hears, in the thread that called, before a search that it may take more than 20 s or 2 GiB. */
typedef void (*KilterHear)(double seconds, const char *words);
/* Who hears; NULL, as at the beginning: nobody. Not during other calls. */
void kilter_hear(KilterHear hear);

/* The version of the library, as `kilter --version` prints it; static. */
const char *kilter_version(void);

/* Lists of {name, ...}, as members "models", "clusters" and "planners". */
KilterStatus kilter_models(char **json);
KilterStatus kilter_clusters(char **json);
KilterStatus kilter_planners(char **json);

/* The plan, with the content of the file that kilter plan -o writes. */
KilterStatus kilter_plan(const char *request, char **json);
/* The JSON of kilter simulate --json: times of the iteration and of each device in seconds, memory
 * in bytes. */
KilterStatus kilter_simulate(const char *request, char **json);
/* Proves the plan on a small model of the same structure: "right", the largest relative "error" and
 * its "tolerance". A wrong plan is KILTER_FAILED, with the answer. */
KilterStatus kilter_verify(const char *request, char **json);

void kilter_free(char *json);

#ifdef __cplusplus
}
#endif

#endif
