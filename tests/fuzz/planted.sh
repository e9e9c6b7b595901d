#!/bin/sh
# Whether the fuzz targets find bugs: plants one in each reader (tests/fuzz/planted.txt), and replays damaged seeds for 60 s at most.
#
#     tests/fuzz/planted.sh [READER...]        default: all
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
cp tests/fuzz/planted.txt "$place"
cd "$place"
ninja=
command -v ninja >/dev/null 2>&1 && ninja=-GNinja
cmake $ninja -B build -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS_RELEASE=-O1 -DKILTER_WITH_CUDA=OFF >configure.log 2>&1
tab=$(printf '\t')
failed=
grep -v '^#' planted.txt >bugs.txt
while IFS=$tab read -r reader file from to <&3; do
    [ "$wanted" = "  " ] || case $wanted in *" $reader "*) ;; *) continue ;; esac
    cp "$file" kept.c
    # As the text is: no character means anything but itself.
    FROM=$from TO=$to awk '{
        at = index($0, ENVIRON["FROM"])
        print at ? substr($0, 1, at - 1) ENVIRON["TO"] substr($0, at + length(ENVIRON["FROM"])) : $0 }' kept.c >"$file"
    if cmp -s kept.c "$file" || ! cmake --build build --target "replay_$reader" >build.log 2>&1; then
        echo "planted: $reader: the bug cannot be planted in $file" >&2
        exit 1
    fi
    started=$(date +%s)
    seed=1
    found=
    while [ -z "$found" ] && [ $(($(date +%s) - started)) -lt 60 ]; do
        status=0
        timeout 60 "build/tests/replay_$reader" --mutants 3000 --seed "$seed" --dict "tests/fuzz/seeds/$reader.dict" \
            "tests/fuzz/seeds/$reader" >found.log 2>&1 </dev/null || status=$?
        # 124: the minute is over
        [ "$status" = 0 ] || [ "$status" = 124 ] || found=1
        seed=$((seed + 1))
    done
    if [ -n "$found" ]; then
        echo "planted: $reader: found within $((3000 * (seed - 1))) damaged seeds: $(grep -v '^[0-9]* files' found.log | head -n 1)"
    else
        echo "planted: $reader: NOT found in 60 s ($((3000 * (seed - 1))) damaged seeds)"
        failed="$failed $reader"
    fi
    cp kept.c "$file"
done 3<bugs.txt
[ -z "$failed" ] || { echo "planted: not found:$failed" >&2; exit 1; }
