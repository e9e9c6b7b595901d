#!/bin/sh
# Everything that a machine with a GPU is needed for, in one go: proves, measures, fits, predicts and compares.
#
#     exec/on-device.sh [FOLDER]             on a machine with a GPU; FOLDER is out/device
#     exec/on-device.sh --rehearse [FOLDER]  the same steps on this machine's CPUs, with small models: tries the script
#     exec/on-device.sh --small ...          with small models, as for emulated devices: tries a kit
#     exec/on-device.sh --built DIR ...      the programs in DIR, a build folder or a kit, instead of building
#     exec/on-device.sh --budget S ...       only the steps whose limits fit in S seconds; the next call goes on with the rest
#     exec/on-device.sh --copy DIR ...       DIR gets the summary and the archive after every step, too
#     exec/on-device.sh --pack KIT           where the compilers are: builds, and puts into KIT what another machine needs
#
# Such a machine is often bare: without CMake's packages, GLib or a way to fetch them. Then pack here and take KIT (out/kit)
# there: it has this script, the program and its data, the cuda backend and the conformance suite, compiled for all GPUs that
# the CUDA Toolkit knows (P100 and V100 need one of version 12), and the libraries that they link. There it needs a driver, cuBLAS
# and NCCL 2 of the same CUDA (in CUDA's folder, in the system's, or in Python packages), awk, timeout and tar; nothing is
# compiled. With ten minutes a call and 25 in all, for example, call this until its status is not 3:
#
#     KIT/exec/on-device.sh --budget 570 --copy "$RESULTS" out/device
#
# A step that fails or runs past its limit is noted, and the others go on; what is worth most comes first. All limits together are
# 25 minutes. FOLDER gets
#
#     summary.txt       one line per step: its time, and whether it is done
#     criteria.txt      what the measurements say beside what was wanted
#     measured.csv      ops by kind and shape: what kilter calibrate reads; measured-half.csv: in fp16
#     cluster.yaml      the device, fitted to them, with the date, the driver and the commit; cluster-half.yaml
#     plans/, runs/     each plan that was executed, and the answer of kilter exec
#     results.db        the same measurements as stored results; validate.json and hap-fig18.* compare them with predictions
#                       (without gnuplot there: kilter validate results.db --plot . draws the figure later)
#     STEP.log          the output of each step
#
# and FOLDER.tar.gz, all of it in one file of less than 2 MB, is written anew after every step.
#
# Exit status 0: all steps are done; 1: a step failed; 3: the budget is spent, and steps are left.
# shellcheck disable=SC2317 # functions are called by --step
set -u
cd "$(dirname "$0")/.." || exit

# The script calls itself for a step, --step FUNCTION, since `timeout` runs programs only.
function='' rehearse='' small='' budget=1500 built='' copy='' pack=''
while :; do
    case ${1:-} in
    --step) function=$2 && shift 2 ;;
    --budget) budget=$2 && shift 2 ;;
    --built) built=$2 && shift 2 ;;
    --copy) copy=$2 && shift 2 ;;
    --pack) pack=$2 && shift 2 ;;
    --rehearse) rehearse=--rehearse small=--small && shift ;;
    --small) small=--small && shift ;;
    *) break ;;
    esac
done
out=${1:-out/device}
if [ -z "$pack" ]; then
    mkdir -p "$out"
    out=$(cd "$out" && pwd)
fi
[ -n "$built" ] || [ ! -x kilter ] || built=. # in a kit
at=${built:-build}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1

# step NAME SECONDS COMMAND...: runs the command, a program or a function of this script, with its output in FOLDER/NAME.log,
# unless the summary has it from an earlier call. Its status is that of the command, 0 for an earlier one that was done.
step() {
    name=$1 limit=$2
    shift 2
    line=$(grep "^$name  *[0-9]" "$out/summary.txt")
    [ "$line" ] && case $line in *done) return 0 ;; *) failed=1; return 1 ;; esac
    if [ $(($(date +%s) - started + limit)) -gt "$budget" ]; then
        echo "on-device: the budget of $budget s is spent before $name; call again to go on" >&2
        exit 3
    fi
    case $(command -v "$1") in
    */*) ;;
    *) # shellcheck disable=SC2086 # nothing, or one word
        set -- exec/on-device.sh --step "$1" ${built:+--built "$built"} $rehearse $small "$out" ;;
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
    tar czf "$out.tar.gz" -C "$out/.." "${out##*/}"
    [ -z "$copy" ] || cp "$out/summary.txt" "$out.tar.gz" "$copy"
    return $status
}

# Programs of a kit take its libraries; tools of the system are not given these.
with_libraries() { LD_LIBRARY_PATH="$at/lib:${LD_LIBRARY_PATH:-}" "$@"; }
kilter() { with_libraries "$at/kilter" "$@"; }

# --- what is run, on a GPU and in the rehearsal ---

if [ -n "$rehearse" ]; then
    suite=$at/tests/test_backend_reference
    backend=cpu exec_backend=mpi type=cpu
    verify_options=
else
    suite=$at/tests/test_backend_cuda
    backend=cuda exec_backend=cuda type=gpu
    verify_options="--backend cuda --virtual-ranks"
fi
largest='256 MiB' runs='--warm-up 2 --repeats 9'
[ -z "$small" ] || largest='64 KiB' runs='--warm-up 1 --repeats 5'

# Models whose ops are measured: together they have every kind of op that the executed models have.
profiled() {
    if [ -n "$small" ]; then
        echo "vgg19:width=2,fc=32,global_batch=4"
        echo "bert-base:layers=1,hidden=64,heads=4,ffn=256,seq=16,vocab=256,global_batch=4"
        echo "llama:layers=1,hidden=64,heads=4,kv_heads=2,ffn=128,seq=32,vocab=256,attention=fused"
        return
    fi
    llama="llama:layers=1,hidden=2048,heads=16,kv_heads=4,ffn=5632,vocab=32000"
    for batch in 64 256; do echo "vgg19:batch=$batch"; done
    for batch in 32 64; do echo "vit:layers=1,batch=$batch"; done
    for batch in 16 64; do echo "bert-base:layers=1,batch=$batch"; done
    echo "bert-base:layers=1,hidden=1024,heads=16,ffn=4096,batch=32"
    echo "bert-base:layers=1,seq=512,batch=8"
    for batch in 16 32; do echo "bert-moe:layers=2,batch=$batch"; done
    for batch in 4 8; do echo "gpt2:layers=1,batch=$batch"; done
    echo "gpt2:layers=1,hidden=2048,heads=16,ffn=8192,batch=4"
    echo "$llama,seq=2048,batch=2,attention=fused"
    echo "$llama,seq=1024,batch=4,attention=fused"
    echo "$llama,seq=2048,batch=2,attention=materialized"
    echo "resnet50:batch=32"
}

# The same in half precision, of fewer sizes.
profiled_half() {
    if [ -n "$small" ]; then
        profiled | sed 's/$/,precision=mixed/'
        return
    fi
    llama="llama:layers=1,hidden=2048,heads=16,kv_heads=4,ffn=5632,vocab=32000,precision=mixed"
    for batch in 64 256; do echo "vgg19:batch=$batch,precision=mixed"; done
    for batch in 32 64; do echo "vit:layers=1,batch=$batch,precision=mixed"; done
    for batch in 16 64; do echo "bert-base:layers=1,batch=$batch,precision=mixed"; done
    echo "bert-base:layers=1,hidden=1024,heads=16,ffn=4096,batch=32,precision=mixed"
    for batch in 4 8; do echo "gpt2:layers=1,batch=$batch,precision=mixed"; done
    echo "gpt2:layers=1,hidden=2048,heads=16,ffn=8192,batch=4,precision=mixed"
    echo "$llama,seq=2048,batch=2,attention=fused"
    echo "$llama,seq=1024,batch=4,attention=fused"
    echo "$llama,seq=2048,batch=2,attention=materialized"
}

# Models that are executed, with options of their plans: of several families, depths, widths and batches, with attention
# materialized and fused, with layers computed again, and in mixed precision.
executed() {
    if [ -n "$small" ]; then
        profiled
        [ -n "$rehearse" ] || profiled_half
        echo "bert-base:layers=2,hidden=64,heads=4,ffn=256,seq=16,vocab=256,global_batch=4 --set recompute=full"
        echo "llama:layers=2,hidden=64,heads=4,kv_heads=2,ffn=128,seq=32,vocab=256,attention=fused --set recompute=selective"
        return
    fi
    for batch in 64 128 256; do echo "vgg19:batch=$batch"; done
    for batch in 32 64; do
        echo "resnet50:batch=$batch"
        echo "vit:layers=6,batch=$batch"
        echo "vit:layers=12,batch=$batch"
        echo "bert-base:layers=6,batch=$batch"
        echo "bert-base:layers=12,batch=$batch"
        echo "bert-base:layers=12,batch=$batch --set recompute=full"
        echo "bert-base:layers=4,hidden=1024,heads=16,ffn=4096,batch=$batch"
        echo "bert-base:layers=6,seq=512,batch=$((batch / 4))"
        echo "bert-moe:layers=4,batch=$((batch / 2))"
    done
    for batch in 4 8; do
        echo "gpt2:layers=6,batch=$batch"
        echo "gpt2:layers=12,batch=$batch"
        echo "gpt2:layers=12,batch=$batch --set recompute=selective"
        echo "gpt2:layers=12,batch=$batch --set recompute=full"
        echo "gpt2:layers=4,hidden=2048,heads=16,ffn=8192,batch=$batch"
    done
    llama="llama:hidden=2048,heads=16,kv_heads=4,ffn=5632,vocab=32000"
    for attention in materialized fused; do
        echo "$llama,layers=2,seq=2048,batch=2,attention=$attention"
        echo "$llama,layers=4,seq=2048,batch=2,attention=$attention"
        echo "$llama,layers=4,seq=1024,batch=4,attention=$attention"
        echo "$llama,layers=4,seq=2048,batch=2,attention=$attention --set recompute=selective"
        echo "$llama,layers=4,seq=2048,batch=2,attention=$attention --set recompute=full"
    done
    for batch in 32 64; do
        echo "bert-base:layers=12,batch=$batch,precision=mixed"
        echo "vit:layers=12,batch=$batch,precision=mixed"
    done
    echo "vgg19:batch=128,precision=mixed"
    echo "gpt2:layers=12,batch=8,precision=mixed"
    echo "gpt2:layers=12,batch=8,precision=mixed --set recompute=full"
    echo "$llama,layers=4,seq=2048,batch=2,attention=fused,precision=mixed"
    echo "$llama,layers=4,seq=2048,batch=2,attention=fused,precision=mixed --set recompute=full"
}

# --- steps ---

revision() {
    cat "$at/commit" 2>/dev/null || git rev-parse HEAD 2>/dev/null || echo unknown
}

environment() {
    revision
    date -u +%Y-%m-%d
    uname -srm
    if [ -z "$rehearse" ]; then
        nvidia-smi || return
        echo "libraries: $LD_LIBRARY_PATH"
        with_libraries ldd "$at/kilter_cuda.so" "$at/kilter"
        ! with_libraries ldd "$at/kilter_cuda.so" "$at/kilter" | grep 'not found'
    fi
}

# The folders of CUDA's libraries that the loader does not find by itself, joined by colons.
libraries() {
    # Those of the toolkit that the kit was built with.
    for name in $(ldd "$at/kilter_cuda.so" 2>/dev/null | sed -n 's/^[[:space:]]*\(lib\(cudart\|cublas\|cublasLt\|nccl\)\.so\.[0-9]*\).*/\1/p'); do
        ldconfig -p 2>/dev/null | grep -q "$name" ||
            find /usr/local/cuda/lib64/ /usr/local/lib /usr/lib /opt -name "$name" 2>/dev/null | head -n 1
    done | sed 's|/[^/]*$||' | sort -u | tr '\n' ':'
}

build() {
    [ -z "$built" ] || return 0
    if [ "$rehearse" ]; then
        cmake --preset release || return 1
    else
        cmake --preset release -DCMAKE_CUDA_ARCHITECTURES=native || return 1
    fi
    cmake --build build --parallel "$(nproc)" --target kilter test_backend_reference || return 1
    [ -n "$rehearse" ] || cmake --build build --parallel "$(nproc)" --target test_backend_cuda
}

# The libraries that the programs link, except those of the C compiler, which every machine has, and CUDA's large ones.
linked() {
    ldd "$@" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
        grep -v -E '/(libc|libm|libdl|libpthread|librt|libresolv|libstdc\+\+|libgcc_s|libcuda|libcublas|libcublasLt|libnccl)\.so'
}

# Without MPI, which one GPU does not need and which has plug-ins of its own. An earlier kit is replaced, nothing else.
make_kit() {
    if [ -e "$pack" ] && [ ! -e "$pack/commit" ]; then
        echo "on-device: $pack is there, and is no kit" >&2
        return 2
    fi
    from=${built:-build-kit}
    if [ -z "$built" ]; then
        cmake --preset release -B build-kit -DCMAKE_CUDA_ARCHITECTURES=all-major \
            -DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON || return
        cmake --build build-kit --parallel "$(nproc)" --target kilter kilter_cuda test_backend_cuda test_backend_reference || return
    fi
    rm -rf "$pack"
    mkdir -p "$pack/tests" "$pack/lib" || return
    cp -L "$from/kilter" "$from/kilter_cuda.so" "$pack" &&
        cp -L "$from/tests/test_backend_cuda" "$from/tests/test_backend_reference" "$pack/tests" &&
        linked "$pack/kilter" "$pack/kilter_cuda.so" "$pack/tests/test_backend_cuda" |
        while read -r file; do cp -L "$file" "$pack/lib" || return; done &&
        strip "$pack/kilter" "$pack/kilter_cuda.so" "$pack"/tests/* &&
        tar cf - --exclude='*.[ch]' data plots exec/on-device.sh | tar xf - -C "$pack" &&
        { git rev-parse HEAD 2>/dev/null || echo unknown; } >"$pack/commit" &&
        du -sh "$pack"
}

suite() { with_libraries "$suite"; }
sanitize() { with_libraries compute-sanitizer --tool "$1" --error-exitcode 9 "$suite"; }
memcheck() { sanitize memcheck; }
racecheck() { sanitize racecheck; }
initcheck() { sanitize initcheck; }

# A plan of every planner, those of single GPUs and of pipelines included.
verify_all() {
    bad=0
    for planner in $(kilter planners | sed -n '/^Options/q; s/^\([a-z][a-z-]*\)  *[^ ].*/\1/p'); do
        # shellcheck disable=SC2086 # one word an option
        kilter verify bert-moe:layers=2 hap-8 --planner "$planner" $verify_options || bad=1
    done
    if [ -z "$rehearse" ]; then
        for model in bert-base:layers=2 llama:layers=2,attention=fused gpt2:layers=2; do
            kilter verify "$model,precision=mixed" hap-8 --planner dp-ev --backend cuda --virtual-ranks --half || bad=1
        done
    fi
    return "$bad"
}

profile() {
    # shellcheck disable=SC2046 # one word a model
    kilter profile $(profiled) --backend "$backend" --ranks 1 --device "$type" --largest "$largest" \
        -o "$out/measured.csv" -v
}

profile_half() {
    # shellcheck disable=SC2046 # one word a model
    kilter profile $(profiled_half) --backend "$backend" --ranks 1 --device "$type" -o "$out/measured-half.csv" -v
}

# The device's type, fitted to $1, with where and when it was measured, as $2.
fit() {
    kilter calibrate "$out/$1" -o "$out/$2" --ranks 1 -v || return
    gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -n 1)
    {
        echo "# ${gpu:-$(uname -srm)}; measured $(date -u +%Y-%m-%d) by exec/on-device.sh at $(revision)"
        cat "$out/$2"
    } >"$out/cluster.new" && mv "$out/cluster.new" "$out/$2"
}
calibrate() { fit measured.csv cluster.yaml; }
calibrate_half() { fit measured-half.csv cluster-half.yaml; }

# Executes every Nth of the models, beginning with the one that $1 says.
execute() {
    bad=0
    mkdir -p "$out/plans" "$out/runs"
    executed >"$out/models.txt"
    awk -v first="$1" -v parts=4 'NR % parts == first { print NR, $0 }' "$out/models.txt" >"$out/models.$1"
    while read -r number model options; do
        plan=$out/plans/$number.json
        case $model in
        *precision=*) cluster=$out/cluster-half.yaml ;;
        *) cluster=$out/cluster.yaml ;;
        esac
        # shellcheck disable=SC2086 # words of options
        if ! { kilter plan "$model" "$cluster" --planner dp-ev $options -o "$plan" -q &&
            kilter exec "$plan" --backend "$exec_backend" $runs --timeout 60 --db "$out/results.db" --json \
                >"$out/runs/$number.json"; }; then
            echo "left out: $model $options"
            rm -f "$out/runs/$number.json"
            bad=1
        fi
    done <"$out/models.$1"
    rm "$out/models.$1"
    return "$bad"
}
execute_0() { execute 0; }
execute_1() { execute 1; }
execute_2() { execute 2; }
execute_3() { execute 3; }

compare() {
    kilter validate "$out/results.db" --json >"$out/validate.json" || return
    if command -v gnuplot >/dev/null; then
        kilter validate "$out/results.db" --plot "$out" -v
    else
        kilter validate "$out/results.db" -v
    fi
}

# Members of the answers' outermost objects, which are indented by two spaces.
criteria() {
    awk '
    function member(name) { return match($0, "^  \"" name "\": ") ? substr($0, RLENGTH + 1) + 0 : -1 }
    function percent(a, b) { return b > 0 ? sprintf("%+8.1f %%", 100 * (a / b - 1)) : "       - " }
    function size(a) { return a < 0 ? -a : a }
    BEGIN { printf "%12s %12s %10s %10s %10s  %s\n", "measured ms", "predicted ms", "error", "overhead", "memory", "model" }
    FILENAME ~ /models.txt$/ { model[FNR] = $0; next }
    FNR == 1 { number = FILENAME; sub(/.*\//, "", number); sub(/\.json$/, "", number) }
    /^  "iteration_time_s": / { run = member("iteration_time_s") }
    /^  "predicted_time_s": / { predicted = member("predicted_time_s") }
    /^  "communication_s": / { sum = member("communication_s") }
    /^  "computation_s": / { sum += member("computation_s") }
    /^  "predicted_bytes": / { want = member("predicted_bytes") }
    /^  "allocated_bytes": / { has = member("allocated_bytes") }
    /^}/ {
        n++
        overhead += run / sum - 1
        if (has > 0) { memory += size(want / has - 1); seen++ }
        printf "%12.3f %12.3f %10s %10s %10s  %s\n", 1e3 * run, 1e3 * predicted, percent(predicted, run), percent(run, sum),
            percent(want, has), model[number]
    }
    END {
        if (n == 0) { print "no run has ended"; exit 1 }
        printf "\n%d runs\n", n
        printf "overhead over the sum of the kernels: %.1f %% on average (wanted: at most 2)\n", 100 * overhead / n
        if (seen) printf "peak memory, predicted against allocated: %.1f %% on average (wanted: 5)\n", 100 * memory / seen
    }' "$out/models.txt" "$out"/runs/*.json >"$out/criteria.txt" || return 1
    awk '/^  "mape"/ { printf "time: MAPE %.1f %% (wanted: at most 5)\n", 100 * $2 }
         /^  "spearman"/ { printf "time: Spearman %.3f (wanted: at least .98)\n", $2 }' "$out/validate.json" >>"$out/criteria.txt"
    cat "$out/criteria.txt"
}

if [ "$pack" ]; then
    make_kit
    exit
fi
if [ "$function" ]; then
    "$function"
    exit
fi

# --- all of it; what the sanitizers find is seen last, as they take longest ---

failed=0 started=$(date +%s)
if [ -z "$rehearse" ]; then
    LD_LIBRARY_PATH=$(libraries)${LD_LIBRARY_PATH:-}
    export LD_LIBRARY_PATH PATH="$PATH:/usr/local/cuda/bin:/usr/local/nvidia/bin"
fi
touch "$out/summary.txt"
limit=200
[ -z "$built" ] || limit=5
step build "$limit" build || { echo "on-device: nothing can be run without a build" >&2; exit 1; }
step environment 20 environment
step suite 100 suite
step profile 200 profile
if step calibrate 20 calibrate; then
    if [ -z "$rehearse" ]; then
        step profile-half 130 profile_half
        step calibrate-half 20 calibrate_half
    fi
    for part in 0 1 2 3; do step "execute-$part" 110 "execute_$part"; done
    step compare 30 compare
    step criteria 10 criteria
fi
step verify 100 verify_all
if [ -z "$rehearse" ] && command -v compute-sanitizer >/dev/null; then
    for tool in memcheck racecheck initcheck; do
        step "sanitizer-$tool" 70 "$tool"
    done
elif ! grep -q '^sanitizers' "$out/summary.txt"; then
    echo "sanitizers: not run" | tee -a "$out/summary.txt"
fi
echo "on-device: results are in $out and $out.tar.gz"
exit $failed
