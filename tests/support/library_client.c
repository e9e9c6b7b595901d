/* A client of libkilter: prints the time of an iteration for each given planner, and the answer to
 * a bad request. */
#include <stdio.h>

#include <kilter.h>

int main(int argc, char **argv)
{
    char request[200], *json;
    for (int i = 2; i < argc; i++) {
        snprintf(request, sizeof request,
                 "{\"model\": \"%s\", \"cluster\": \"hap-8\", \"planner\": \"%s\"}",
                 argv[1], argv[i]);
        const KilterStatus status = kilter_simulate(request, &json);
        printf("%s: status %d\n%s\n", argv[i], (int)status, json);
        kilter_free(json);
        if (status != KILTER_DONE)
            return 1;
    }
    if (kilter_models(NULL) != KILTER_DONE || kilter_plan(NULL, NULL) != KILTER_BAD_INPUT)
        return 1; /* whoever wants no answer gets the status */
    const KilterStatus status = kilter_plan("{\"modle\": \"vit\"}", &json);
    printf("bad: status %d\n%s\n", (int)status, json);
    kilter_free(json);
    return status == KILTER_BAD_INPUT ? 0 : 1;
}
