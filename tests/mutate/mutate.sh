#!/bin/sh
# Counts the changes that the tests notice: makes N random small changes (tests/mutate/changes.awk), one at a time, builds, and
# runs the default tests until one fails: first those of the changed module, then all.
#
#     tests/mutate/mutate.sh N [SEED [MODULE...]]          modules: data sim synth balance exec experiments
#
# A changed program may do anything, delete recursively what it should not, for one. So it is built and run as a user without rights, on a
# copy of the last commit that has no other files beside it (tests/mutate/apart.sh; tests/fault/test_apart.c); tests that need reference
# data skip. KILTER_MUTATE_OWN=1: only the tests of the changed module. Surviving changes are printed and written to
# out/mutate/survivors.txt, with the command's arguments in its first line. A change that does not compile is not counted.
set -eu
cd "$(dirname "$0")/../.."
here=$PWD
wanted=$1
seed=${2:-1}
shift "$(($# < 2 ? $# : 2))"
[ $# -gt 0 ] || set -- data sim synth balance exec experiments
out=$here/out/mutate
place=$(mktemp -d "${TMPDIR:-/tmp}/kilter-mutate.XXXXXX")
chmod 755 "$place"
copy=$place/tree
trap 'rm -rf -- "$place"' EXIT
trap 'exit 130' INT TERM HUP

apart() {
    "$here/tests/mutate/apart.sh" "$place" "$@"
}

mkdir -p "$out"
git archive --prefix=tree/ HEAD | tar -x -C "$place"
(cd "$copy" && find "$@" -name '*.c' ! -path '*cuda*' | sort | xargs awk -f tests/mutate/changes.awk) >"$out/changes.txt"
# A seed gives the same order everywhere.
awk -v seed="$seed" 'BEGIN { srand(seed) } { printf "%.9f\t%s\n", rand(), $0 }' "$out/changes.txt" | sort | cut -f2- >"$out/order.txt"

ninja=
command -v ninja >/dev/null 2>&1 && ninja=-GNinja
apart sh -c "cd tree && cmake $ninja --preset release" >"$out/configure.log" 2>&1

# build TARGET
build() {
    apart cmake --build tree/build --parallel "$(nproc)" --target "$1" >"$out/build.log" 2>&1
}

# passes LABEL...: whether no test fails.
passes() {
    apart ctest --test-dir tree/build -LE long -E '^(golden|documentation|sources|format)' --stop-on-failure --timeout 120 \
        -j "$(nproc)" "$@" >"$out/tests.log" 2>&1
}

# survives MODULE: whether the tests of the module, and then all, pass.
survives() {
    passes -L "^$1\$" || return 1
    [ -z "${KILTER_MUTATE_OWN:-}" ] || return 0
    build all && passes
}

for module; do
    build "tests_$module" && passes -L "^$module\$" || {
        echo "mutate: the tests of $module fail without a change (out/mutate/tests.log)" >&2
        exit 1
    }
done

killed=0 survived=0
echo "# $wanted $seed $*" >"$out/survivors.txt"
: >"$out/counts.txt"
tab=$(printf '\t')
while IFS=$tab read -r file line what text && [ $((killed + survived)) -lt "$wanted" ]; do
    git show "HEAD:$file" >"$out/original.c"
    module=${file%%/*}
    # The original line begins with these blanks, which read removes.
    awk -v n="$line" -v order="$out/order.txt" -v key="$file$tab$line$tab$what$tab" '
        BEGIN { while ((getline l < order) > 0) if (index(l, key) == 1) { by = substr(l, length(key) + 1); break } }
        { print FNR == n ? by : $0 }' "$out/original.c" >"$out/changed.c"
    apart cp /dev/stdin "tree/$file" <"$out/changed.c"
    if build "tests_$module"; then
        if survives "$module"; then
            survived=$((survived + 1))
            printf '%s:%s: %s\n    %s\n' "$file" "$line" "$what" "$text" | tee -a "$out/survivors.txt"
            echo "$module 0" >>"$out/counts.txt"
        else
            killed=$((killed + 1))
            echo "$module 1" >>"$out/counts.txt"
        fi
    fi
    apart cp /dev/stdin "tree/$file" <"$out/original.c"
done <"$out/order.txt"
awk '{ n[$1]++; killed[$1] += $2; n["all"]++; killed["all"] += $2 }
     END { for (m in n) printf "%-12s %3d of %3d noticed\n", m, killed[m], n[m] }' "$out/counts.txt" | sort
