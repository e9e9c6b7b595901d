/* The formats of files: what they hold, which commands read and write them, and by which of its
 * first bytes a file is told.
 *
 * A format is a row. Readers lie in the folders beside this file (and, for Kilter's own formats,
 * with their nouns); no command knows how a format begins: it asks format_of_file. */
#pragma once

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

/* The contents that a file can have; a set where several will do. */
typedef enum {
    FORMAT_MEASURED = 1 << 0,  /* times of ops and collectives */
    FORMAT_MACHINE = 1 << 1,   /* machines, their GPUs and links */
    FORMAT_EXECUTION = 1 << 2, /* work in order, with times or sizes */
    FORMAT_MODEL = 1 << 3,
    FORMAT_PLANNED = 1 << 4, /* plans and results */
    FORMAT_ANY = (1 << 5) - 1
} FormatNoun;

/* clang-format off */
/*    id, name, noun; JSON's format.name, or NULL; commands that read it, that write it; library that
 * it needs, or ""; what it is. A file is of the first format of the nouns asked for whose sniffer
 * (format_sniff_ID in format.c) takes it. */
#define FORMAT_TABLE(X)                                                                                                                             \
    X(STORE, "store", PLANNED, NULL, "table, show, league, figure, report, merge", "sweep, reproduce, exec --db", "", "results (SQLite)")           \
    X(NSYS, "nsys", MEASURED, NULL, "import, calibrate", "", "", "report of Nsight Systems (SQLite)")                                               \
    X(ONNX, "onnx", MODEL, "kilter-onnx", "models, plan, ...", "", "libprotobuf-c-dev protobuf-c-compiler", "graph of ONNX")                                                   \
    X(TORCH, "torch-export", MODEL, NULL, "models, plan, ...", "", "", "program of torch.export (.pt2)")                                            \
    X(CHAKRA, "chakra", EXECUTION, NULL, "run-trace, import", "simulate --chakra", "libprotobuf-c-dev protobuf-c-compiler", "execution trace of Chakra (ASTRA-sim)")            \
    X(NCCL_TOPOLOGY, "nccl-topology", MACHINE, NULL, "cluster import", "", "", "topology file of NCCL or RCCL (XML)")                               \
    X(PLAN, "plan", PLANNED, NULL, "plan, simulate, compare, export, verify, exec, ...", "plan -o", "", "plan (JSON)")                              \
    X(GRAPH, "graph", MODEL, "kilter-graph", "models, plan, ...", "models -o", "", "training program of one device (JSON)")                         \
    X(PROFILE, "profile", MODEL, "kilter-profile", "models, plan, ...", "", "", "workload of ops with given times (JSON)")                          \
    X(HUGGINGFACE, "huggingface", MODEL, NULL, "models, plan, ...", "", "", "config.json of Hugging Face")                                          \
    X(CHECKPOINT, "checkpoint", MODEL, NULL, "models", "", "", "index of a checkpoint's shards (Hugging Face; JSON)")                               \
    X(BLOCKS, "blocks", MODEL, NULL, "models, plan, ...", "", "", "model in facts (YAML)")                                                          \
    X(PROFILE_TABLE, "profile-table", MODEL, NULL, "models, plan, ...", "", "", "NAME-ops.csv and NAME-edges.csv of a profile")                     \
    X(KINETO, "kineto", MEASURED, NULL, "import", "", "", "trace of PyTorch's profiler (JSON)")                                                     \
    X(SNAPSHOT, "snapshot", MEASURED, NULL, "memory --measured", "memory --snapshot", "", "memory snapshot of PyTorch (pickle or JSON)")                      \
    X(TASKS, "tasks", EXECUTION, NULL, "run-trace", "", "", "task graph with given times (TAG; JSON)")                                               \
    X(MEASUREMENTS, "measurements", MEASURED, NULL, "calibrate, import", "profile -o, import -o", "", "measurements (CSV)")                         \
    X(NCCL_TESTS, "nccl-tests", MEASURED, NULL, "import, calibrate", "", "", "output of nccl-tests or rccl-tests (text)")                           \
    X(NCCL_TESTS_JSON, "nccl-tests-json", MEASURED, NULL, "import, calibrate", "", "", "output of nccl-tests (JSON)")                               \
    X(TRAINING_LOG, "training-log", MEASURED, NULL, "fit (column log)", "", "", "log of a training (Megatron-LM, torchtitan, Transformers, ...)")             \
    X(SLURM, "slurm", MACHINE, NULL, "cluster import", "", "", "nodes of Slurm (scontrol, sinfo) or Kubernetes")                                    \
    X(ROCM_SMI, "rocm-smi", MACHINE, NULL, "cluster import", "", "", "tables of rocm-smi")                                               \
    X(NVIDIA_SMI, "nvidia-smi", MACHINE, NULL, "cluster import", "", "", "table, list or matrix of nvidia-smi")                                         \
    X(GOAL, "goal", EXECUTION, NULL, "", "simulate --goal", "", "work of all ranks, as messages (LogGOPSim, ATLAHS)")                               \
    X(TIMELINE, "timeline", EXECUTION, NULL, "", "simulate --trace", "", "timeline for Perfetto (JSON, or its own format) and chrome://tracing")                       \
    X(DOT, "dot", EXECUTION, NULL, "", "simulate --dot", "", "program as a graph of Graphviz")                                                      \
    X(FRAMEWORK, "framework", PLANNED, NULL, "", "export --to", "", "plan for a framework: megatron, deepspeed, torchtitan, ...")
/* clang-format on */

#define FORMAT_ID(id, ...) FORMAT_##id,
typedef enum { FORMAT_TABLE(FORMAT_ID) FORMATS /* none of them */ } FileFormat;

typedef struct {
    const char *name, *mark, *reads, *writes, *library, *what;
    FormatNoun noun;
    bool built; /* whether this build has the library */
} FormatRow;

const FormatRow *format_row(FileFormat format);

/* The format of a file by its first bytes (unpacked if gzipped) or, where these say nothing, its
 * name; FORMATS if it is none of `nouns` or cannot be read. */
FileFormat format_of_file(const char *file, FormatNoun nouns);
/* The same of a text that ends in '\0' after `length` bytes. */
FileFormat format_of_text(const char *text, gsize length, FormatNoun nouns);
/* The format of a model's object, by its member format.name; FORMAT_HUGGINGFACE without one. */
FileFormat format_of_model(const json_t *root);

/* "; it looks like a trace of PyTorch's profiler (JSON), which kilter import reads", for a message
 * about a file (or, with file NULL, a text) that is not what was expected; "" if it is of no
 * format, or of one that is only written. Caller frees. */
char *format_hint(const char *file, const char *text, gsize length);
