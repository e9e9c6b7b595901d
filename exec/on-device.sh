#!/bin/sh
# Everything that a machine with a GPU is needed for, in one go: builds, proves, measures, fits, predicts and compares.
#
#     exec/on-device.sh [FOLDER]           on a machine with nvcc, NCCL and a GPU; FOLDER is out/device
#     exec/on-device.sh --rehearse FOLDER  the same steps on this machine's CPUs, with small models: tries the script
#
# A step that fails or runs past its limit is noted, and the others go on; FOLDER/summary.txt has one line for each.
# All limits together are 25 minutes. Exit status 1 if any step failed.
# shellcheck disable=SC2317 # functions are called by --step
set -u
cd "$(dirname "$0")/.." || exit

# The script calls itself for a step, --step FUNCTION, since `timeout` runs programs only.
function=
[ "${1:-}" = --step ] && { function=$2; shift 2; }
rehearse=
[ "${1:-}" = --rehearse ] && { rehearse=--rehearse; shift; }
out=${1:-out/device}
mkdir -p "$out"
out=$(cd "$out" && pwd)
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# step NAME SECONDS COMMAND...: runs the command, a program or a function of this script, with its output in FOLDER/NAME.log.
step() {
    name=$1 limit=$2
    shift 2
    case $(command -v "$1") in
    /* | *.sh | build/*) ;;
    *) # shellcheck disable=SC2086 # nothing, or one word
        set -- exec/on-device.sh --step "$1" $rehearse "$out" ;;
    esac
    began=$(date +%s)
    timeout "$limit" "$@" >"$out/$name.log" 2>&1
    status=$?
    took=$(($(date +%s) - began))
    case $status in
    0) word='done' ;;
    124) word="over its limit of $limit s" ;;
    *) word="failed with status $status" ;;
    esac
    [ $status = 0 ] || failed=1
    printf '%-28s %5d s  %s\n' "$name" "$took" "$word" | tee -a "$out/summary.txt"
    return $status
}

environment() {
    git rev-parse HEAD 2>/dev/null || true
    date -u +%Y-%m-%d
    uname -srm
    if [ -z "$rehearse" ]; then
        nvidia-smi
        nvcc --version
    fi
}

build() {
    if [ "$rehearse" ]; then
        cmake --preset release || return 1
    else
        cmake --preset release -DCMAKE_CUDA_ARCHITECTURES=native || return 1
    fi
    cmake --build build --parallel "$(nproc)" --target kilter test_backend_reference || return 1
    [ -n "$rehearse" ] || cmake --build build --parallel "$(nproc)" --target test_backend_cuda
}

planners="hap dp-ev dp-cp deepspeed gshard tensor-parallel fastmoe ddp horovod hidup"
if [ -n "$rehearse" ]; then
    suite=build/tests/test_backend_reference
    backend=cpu exec_backend=mpi type=cpu
    verify_options=
    largest='64 KiB'
    profile_models="vgg19:width=4,fc=64,global_batch=8 bert-base:layers=1,hidden=64,heads=4,ffn=256,seq=16,vocab=256,global_batch=4"
else
    suite=build/tests/test_backend_cuda
    backend=cuda exec_backend=cuda type=gpu
    verify_options="--backend cuda --virtual-ranks"
    largest='256 MiB'
    profile_models="vgg19:batch=128 vit:layers=2,batch=32 bert-base:layers=2,batch=32 bert-moe:layers=2,batch=16 gpt2:layers=2,batch=8"
fi

# Models that are executed: of several families, depths, widths and batches.
models() {
    if [ -n "$rehearse" ]; then
        echo "vgg19:width=4,fc=64,global_batch=8"
        echo "bert-base:layers=2,hidden=64,heads=4,ffn=256,seq=16,vocab=256,global_batch=4"
        return
    fi
    for batch in 64 128 256; do echo "vgg19:batch=$batch"; done
    for batch in 16 32 64; do
        for layers in 4 8 12; do
            echo "vit:layers=$layers,batch=$batch"
            echo "bert-base:layers=$layers,batch=$batch"
        done
        echo "bert-base:layers=4,hidden=1024,heads=16,ffn=4096,batch=$batch"
        echo "bert-moe:layers=4,batch=$batch"
        echo "bert-base:layers=6,seq=512,batch=$((batch / 4))"
    done
    for batch in 4 8 16; do
        echo "gpt2:layers=6,batch=$batch"
        echo "gpt2:layers=12,batch=$batch"
        echo "gpt2:layers=4,hidden=2048,heads=16,ffn=8192,batch=$batch"
    done
}

verify_all() {
    bad=0
    for planner in $planners; do
        # shellcheck disable=SC2086 # one word an option
        build/kilter verify bert-moe:layers=2 hap-8 --planner "$planner" $verify_options || bad=1
    done
    return $bad
}

execute_all() {
    bad=0
    models >"$out/models.txt"
    while read -r model; do
        build/kilter plan "$model" "$out/cluster.yaml" --planner dp-ev -o "$out/plan.json" -q &&
            build/kilter exec "$out/plan.json" --backend "$exec_backend" --warm-up 3 --repeats 15 \
                --timeout 60 --db "$out/results.db" -q || { echo "left out: $model"; bad=1; }
    done <"$out/models.txt"
    return $bad
}

profile() {
    # shellcheck disable=SC2086 # one word a model
    build/kilter profile $profile_models --backend "$backend" --ranks 1 --device "$type" --largest "$largest" \
        -o "$out/measured.csv" -v
}

calibrate() {
    build/kilter calibrate "$out/measured.csv" -o "$out/cluster.yaml" --ranks 1 -v
}

compare() {
    build/kilter validate "$out/results.db" --plot "$out" -v &&
        build/kilter validate "$out/results.db" --json >"$out/validate.json"
}

if [ "$function" ]; then
    "$function"
    exit
fi

failed=0
: >"$out/summary.txt"
step environment 20 environment
step build 200 build || { echo "on-device: nothing can be run without a build" >&2; exit 1; }
step suite 150 "$suite"
if [ -z "$rehearse" ] && command -v compute-sanitizer >/dev/null 2>&1; then
    for tool in memcheck racecheck initcheck; do
        step "sanitizer-$tool" 100 "$(command -v compute-sanitizer)" --tool "$tool" --error-exitcode 9 "$suite"
    done
else
    echo "sanitizers: not run" | tee -a "$out/summary.txt"
fi
step verify 150 verify_all
step profile 200 profile
step calibrate 30 calibrate && step execute 300 execute_all && step compare 30 compare
echo "on-device: results are in $out"
exit $failed
