#!/bin/sh
# Counts the changes that the tests notice: makes N random small changes (tests/mutate/changes.awk), one at a time, builds, and
# runs the default tests until one fails.
#
#     tests/mutate/mutate.sh N [SEED [MODULE...]]          modules: data sim synth balance exec experiments
#
# Works on a copy of the last commit in out/mutate; surviving changes are printed and written to out/mutate/survivors.txt, with the
# command's arguments in its first line. A change that does not compile is not counted.
set -eu
cd "$(dirname "$0")/../.."
wanted=$1
seed=${2:-1}
shift "$(($# < 2 ? $# : 2))"
[ $# -gt 0 ] || set -- data sim synth balance exec experiments
out=$PWD/out/mutate
copy=$out/tree

mkdir -p "$out"
rm -rf "$copy"
git archive --prefix=tree/ HEAD | tar -x -C "$out"
[ ! -e ../shared ] || [ -e "$out/shared" ] || ln -s "$(cd ../shared && pwd)" "$out/shared"
cd "$copy"
find "$@" -name '*.c' ! -path '*cuda*' | sort | xargs awk -f tests/mutate/changes.awk >"$out/changes.txt"
# A seed gives the same order everywhere.
awk -v seed="$seed" 'BEGIN { srand(seed) } { printf "%.9f\t%s\n", rand(), $0 }' "$out/changes.txt" | sort | cut -f2- >"$out/order.txt"

ninja=
command -v ninja >/dev/null 2>&1 && ninja=-GNinja
cmake $ninja --preset release >"$out/configure.log"
cmake --build build --parallel "$(nproc)" >"$out/build.log" 2>&1

# passes: whether no test fails.
passes() {
    ctest --test-dir build -LE long -E '^(golden|documentation|sources|format)' --stop-on-failure --timeout 120 -j "$(nproc)" \
        >"$out/tests.log" 2>&1
}
passes || {
    echo "mutate: the tests fail without a change (out/mutate/tests.log)" >&2
    exit 1
}

killed=0 survived=0
echo "# $wanted $seed $*" >"$out/survivors.txt"
: >"$out/counts.txt"
tab=$(printf '\t')
while IFS=$tab read -r file line what text && [ $((killed + survived)) -lt "$wanted" ]; do
    cp "$file" "$out/original.c"
    # The original line begins with these blanks, which read removes.
    awk -v n="$line" -v order="$out/order.txt" -v key="$file$tab$line$tab$what$tab" '
        BEGIN { while ((getline l < order) > 0) if (index(l, key) == 1) { by = substr(l, length(key) + 1); break } }
        { print FNR == n ? by : $0 }' "$out/original.c" >"$file"
    if cmake --build build --parallel "$(nproc)" >"$out/build.log" 2>&1; then
        if passes; then
            survived=$((survived + 1))
            printf '%s:%s: %s\n    %s\n' "$file" "$line" "$what" "$text" | tee -a "$out/survivors.txt"
            echo "${file%%/*} 0" >>"$out/counts.txt"
        else
            killed=$((killed + 1))
            echo "${file%%/*} 1" >>"$out/counts.txt"
        fi
    fi
    cp "$out/original.c" "$file"
done <"$out/order.txt"
awk '{ n[$1]++; killed[$1] += $2; n["all"]++; killed["all"] += $2 }
     END { for (m in n) printf "%-12s %3d of %3d noticed\n", m, killed[m], n[m] }' "$out/counts.txt" | sort
