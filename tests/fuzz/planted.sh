#!/bin/sh
# Whether the fuzz targets find bugs: plants one in each reader (tests/fuzz/planted.txt), and replays damaged seeds for 60 s of processor
# time at most; and whether emulated devices do: plants one after the other in the cuda backend (tests/conformance/planted.txt), and runs
# random and planners' plans in at most 100 orders of the devices' work.
#
#     tests/fuzz/planted.sh [READER...|devices]        default: all
#
# Works on a copy of the last commit. Exits with 1 if a bug is not found.
set -eu
cd "$(dirname "$0")/../.."
wanted=" $* "
# Some targets write a file for each input, which would be the disk's time, not the reader's.
[ -n "${TMPDIR:-}" ] || [ ! -w /dev/shm ] || export TMPDIR=/dev/shm
place=$(mktemp -d "${TMPDIR:-/tmp}/kilter-planted.XXXXXX")
trap 'rm -rf -- "$place"' EXIT
trap 'exit 130' INT TERM HUP
git archive HEAD | tar -x -C "$place"
cat tests/fuzz/planted.txt >"$place/planted.txt"
sed 's/^\([^#]\)/devices:\1/' tests/conformance/planted.txt >>"$place/planted.txt"
cd "$place"
ninja=
command -v ninja >/dev/null 2>&1 && ninja=-GNinja
cmake $ninja -B build -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE=-O1 -DKILTER_WITH_CUDA=OFF >configure.log 2>&1
tab=$(printf '\t')
failed=

# replayed COMMAND...: runs it, and sets found if it fails. Who ends it from outside ends the search, as that is no find.
replayed() {
    status=0
    "$@" >found.log 2>&1 </dev/null || status=$?
    case $status in
    0 | 124) ;; # 124: ten minutes are over
    129 | 130 | 143) exit "$status" ;;
    *) found=1 ;;
    esac
}

# count_cpu: sets cpu to the processor seconds of what has ended so far, which a busy machine leaves as they are.
count_cpu() {
    times >times.log # not in a subshell, which has no children
    cpu=$(awk -F '[ms ]+' 'NR == 2 { printf "%d", 60 * ($1 + $3) + $2 + $4 }' times.log)
}

# on_seeds READER: runs its damaged seeds; sets found and tried.
on_seeds() {
    count_cpu
    end=$((cpu + 60))
    seed=1
    while [ -z "$found" ] && [ "$cpu" -lt "$end" ]; do
        replayed timeout 600 "build/tests/replay_$1" --mutants 3000 --seed "$seed" --dict "tests/fuzz/seeds/$1.dict" \
            "tests/fuzz/seeds/$1"
        tried="$((3000 * seed)) damaged seeds"
        seed=$((seed + 1))
        count_cpu
    done
}

# on_devices: runs plans on emulated devices, in few orders first; sets found and tried.
on_devices() {
    for tried in "3 orders" "20 orders" "100 orders"; do
        for test in backend_emulated plans_emulated; do
            replayed env "KILTER_SEEDS=${tried% *}" "build/tests/test_$test"
            [ -z "$found" ] || break 2
        done
    done
    tried="$tried, by $test"
}

grep -v '^#' planted.txt >bugs.txt
while IFS=$tab read -r reader file from to <&3; do
    [ "$wanted" = "  " ] || case $wanted in *" $reader "* | *" ${reader%%:*} "*) ;; *) continue ;; esac
    case $reader in
    devices:*) targets="test_backend_emulated test_plans_emulated" ;;
    *) targets=replay_$reader ;;
    esac
    cp "$file" kept.c
    # As the text is: no character means anything but itself.
    FROM=$from TO=$to awk '{
        at = index($0, ENVIRON["FROM"])
        print at ? substr($0, 1, at - 1) ENVIRON["TO"] substr($0, at + length(ENVIRON["FROM"])) : $0 }' kept.c >"$file"
    # shellcheck disable=SC2086 # one word per target
    if cmp -s kept.c "$file" || ! cmake --build build --parallel 2 --target $targets >build.log 2>&1; then
        echo "planted: $reader: the bug cannot be planted in $file" >&2
        tail -n 20 build.log >&2
        exit 1
    fi
    found=
    case $reader in
    devices:*) on_devices ;;
    *) on_seeds "$reader" ;;
    esac
    if [ -n "$found" ]; then
        echo "planted: $reader: found within $tried: $(grep -a -v -E '^[0-9]* files|^\[' found.log | head -n 1)"
    else
        echo "planted: $reader: NOT found in $tried"
        failed="$failed $reader"
    fi
    cp kept.c "$file"
done 3<bugs.txt
[ -z "$failed" ] || { echo "planted: not found:$failed" >&2; exit 1; }
