/* kilter memory. */
#include "data/base/json.h"
#include "data/base/output.h"
#include "data/formats/measured/memory_snapshot.h"
#include "experiments/answers/evaluation_report.h"
#include "experiments/answers/plan_words.h"
#include "experiments/cli/memory_most.h"

#define MEMORY_OPTIONS(X)                                                                \
    X(TEXT, most, "most", 0,                                                             \
      "Find the largest batch, micro_batch, seq or other number of MODEL that fits, or " \
      "the "                                                                             \
      "fewest gpus",                                                                     \
      "WHAT")                                                                            \
    X(TEXT, fidelity, "fidelity", 0,                                                     \
      "The simulation that says what is alive when: stage, in the program's order, or "  \
      "flow",                                                                            \
      "NAME")                                                                            \
    X(FILE, snapshot, "snapshot", 0,                                                     \
      "Write what the fullest rank of each stage allocates, as PyTorch's memory "        \
      "snapshot (JSON, for its page memory_viz)",                                        \
      "FILE")                                                                            \
    X(FILE, measured, "measured", 0,                                                     \
      "Compare with the peak of a memory snapshot of PyTorch (JSON)", "FILE")
COMMAND_OPTIONS(MemoryOwn, memory_own, MEMORY_OPTIONS)

static const char TEXT[] =
    "{model} on {cluster} with {planner}\n"
    "[{?most}  most         {most.key} {most.value}[; {most.beyond} do not "
    "fit]\n]" PLAN_TEXT_STRATEGY PLAN_TEXT_MEMORY PLAN_TEXT_HOST PLAN_TEXT_PEAKS
    "[{?measured}  measured     {measured.allocated:bytes} allocated on device "
    "{measured.device} at its peak, "
    "{measured.reserved:bytes} reserved; predicted {measured.predicted:bytes}[, "
    "{measured.error:%}]\n]";

/* Writes the blocks of the rank of each row of `peaks`. */
static bool memory_write_snapshot(const Evaluation *evaluation, const json_t *peaks,
                                  const char *file, GError **error)
{
    size_t k;
    const json_t *peak;
    g_autoptr(GArray) block = g_array_new(false, false, sizeof(SnapshotBlock));
    json_array_foreach (peaks, k, peak)
        if (!sim_memory_blocks(
                evaluation->plan, evaluation->graph, evaluation->view,
                evaluation->report->runtime,
                (uint32_t)json_integer_value(json_object_get(peak, "rank")), block,
                error))
            return false;
    g_autofree char *text = snapshot_write(block, evaluation->view->n_devices);
    return output_write(file, text, -1, error);
}

/* The fullest device of a snapshot beside what the allocator gives out on the fullest rank; NULL
 * with an error. */
static json_t *memory_measured_json(const Evaluation *evaluation, const char *file,
                                    GError **error)
{
    g_autoptr(GArray) peaks = snapshot_read(file, error);
    g_autoptr(GArray) rows =
        peaks ? sim_memory_table(evaluation->plan, evaluation->graph, evaluation->view,
                                 evaluation->report->runtime,
                                 evaluation->report->memory_bytes, error)
              : NULL;
    if (!rows)
        return NULL;
    const SnapshotPeak *most = &g_array_index(peaks, SnapshotPeak, 0);
    for (guint d = 1; d < peaks->len; d++)
        if (g_array_index(peaks, SnapshotPeak, d).allocated_bytes > most->allocated_bytes)
            most = &g_array_index(peaks, SnapshotPeak, d);
    uint64_t predicted = 0;
    for (guint k = 0; k < rows->len; k++) {
        const SimMemoryRow *row = &g_array_index(rows, SimMemoryRow, k);
        predicted = MAX(predicted, row->total_bytes - row->bytes[MEMORY_RUNTIME]);
    }
    return json_pack(
        "{s:i, s:i, s:I, s:I, s:I, s:o}", "device", (int)most->device, "event",
        (int)most->event, "allocated", (json_int_t)most->allocated_bytes, "reserved",
        (json_int_t)most->reserved_bytes, "predicted", (json_int_t)predicted, "error",
        most->allocated_bytes > 0
            ? json_number((double)predicted / (double)most->allocated_bytes - 1)
            : json_null());
}

bool cmd_memory(int argc, char **argv, GError **error)
{
    g_auto(CommandOptions) options = {0};
    g_auto(CommandPlanning) how = {0};
    g_auto(MemoryOwn) own = {0};
    const GOptionEntry entries[] = {
        MEMORY_OPTIONS(COMMAND_ENTRY) COMMAND_PLANNING_ENTRIES(how),
        COMMAND_CHANGE_ENTRIES(how), COMMAND_PIN_ENTRIES(&options), G_OPTION_ENTRY_NULL};
    const CommandSyntax syntax = {
        .name = "memory",
        .arguments = "MODEL CLUSTER | PLAN.json",
        .min_arguments = 1,
        .max_arguments = 2,
        .summary =
            "Shows what the memory of the fullest GPU of each type holds at its peak, "
            "for a plan that is\n"
            "read or made as by kilter plan.\n"
            "\n"
            "  weights      parameters as they are kept between iterations\n"
            "  gradients    gradients of parameters\n"
            "  optimizer    optimizer states, with float32 copies of parameters\n"
            "  activations  results of the forward pass that the backward pass needs\n"
            "  buffers      short-lived tensors: gradients of activations, gathered "
            "parameters, ...\n"
            "  runtime      memory of the driver and libraries, from the cluster's file\n"
            "\n"
            "The memory that the framework holds beside the plan counts too, on GPUs of "
            "data "
            "sheets by the kind\n"
            "of plan, else with --set runtime=NAME (a file of data/runtimes): gradients "
            "between iterations,\n"
            "copies of gradients and logits (as buffers), and the rest (as runtime).\n"
            "\n"
            "With --most WHAT the plan is made again and again, and the largest WHAT "
            "that "
            "fits is shown: a number\n"
            "of MODEL (batch, seq in steps of 128, layers, ...), micro_batch with as "
            "many "
            "microbatches, or the\n"
            "fewest gpus.\n"
            "\n"
            "Then follows where the peak is, for the fullest rank of each pipeline "
            "stage: in "
            "which pass and\n"
            "microbatch, when (with --fidelity flow), and what most of it is.\n"
            "\n"
            "With --set offload=optimizer the host's memory is shown, too. The exit "
            "status is 3 "
            "if the plan does not fit.",
        .example =
            "kilter memory gpt2:batch=8 hap-a100-4 --planner dp-ev --set recompute=full",
        .entries = entries,
    };
    g_auto(Evaluation) evaluation = {0};
    json_t *most = NULL;
    if (!command_parse(&syntax, &argc, argv, &options, error))
        return false;
    if (own.most && argc == 2)
        return kilter_fail(error, KILTER_ERROR_INPUT,
                           "--most is for MODEL CLUSTER; %s is a plan already", argv[1]);
    if (own.most && own.fidelity)
        return kilter_fail(
            error, KILTER_ERROR_INPUT,
            "--most goes by the planner's own fidelity, without --fidelity");
    if (!(own.most
              ? memory_most(&how, argv, own.most, &options, &evaluation, &most, error)
              : command_evaluate(&how, argc, argv, own.fidelity, &options, &evaluation,
                                 error)))
        return false;
    json_t *answer = evaluation_json(&evaluation, options.verbose);
    if (most)
        json_object_set_new(answer, "most", most);
    json_t *peaks = plan_words_peaks_json(&evaluation),
           *measured = own.measured
                           ? memory_measured_json(&evaluation, own.measured, error)
                           : NULL;
    json_t *host = plan_words_host_json(&evaluation);
    json_object_set_new(answer, "peaks", peaks);
    if (host)
        json_object_set_new(answer, "host", host);
    if (measured)
        json_object_set_new(answer, "measured", measured);
    if ((own.measured && !measured) ||
        (own.snapshot && !memory_write_snapshot(&evaluation, peaks, own.snapshot, error)))
        return json_decref(answer), false;
    if (command_is_silent(&options))
        json_decref(answer);
    else
        command_report(&options, answer, TEXT, NULL);
    /* The table is printed whether the plan fits or not; the exit status says whether it does. */
    return evaluation_check_fits(&evaluation, error);
}
