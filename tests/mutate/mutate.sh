#!/bin/sh
# Counts the changes that the tests notice: makes N random small changes (tests/mutate/changes.awk), one at a time, builds, and runs the
# default tests that reach the changed line (tests/mutate/reach.sh), the quickest and closest first, until one fails.
#
#     tests/mutate/mutate.sh N [SEED [MODULE...]]          modules: data sim synth balance exec experiments
#
# A changed program may do anything, delete recursively what it should not, for one. So it is built and run as a user without rights, on a
# copy of the last commit that has no other files beside it (tests/mutate/apart.sh; tests/fault/test_apart.c); tests that need reference
# data skip. Its processor time and memory are limited. KILTER_MUTATE_BUSY=1: no two builds or tests at a time. KILTER_MUTATE_REACH=FILE: what
# reach.sh printed for the same commit, N and seed (out/mutate/reach.txt), which takes the longest. Surviving changes are printed
# and written to out/mutate/survivors.txt, with the command's arguments in its first line, and all to out/mutate/verdicts.txt: noticed,
# survived, or unreached, where no test runs the line. A change that does not compile is not counted.
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
jobs=$(nproc)
[ -z "${KILTER_MUTATE_BUSY:-}" ] || jobs=1
ninja=
command -v ninja >/dev/null 2>&1 && ninja=-GNinja
tab=$(printf '\t')

apart() {
    "$here/tests/mutate/apart.sh" "$place" "$@"
}

# write FILE: a file of the copy, from stdin.
write() {
    apart sh -c 'cat >"$1"' sh "tree/$1"
}

# before FOLDER OPTION...: configures a build of the copy while nothing is changed yet, with the caller's rights and environment (ccache).
before() {
    folder=$1
    shift
    (cd "$copy" && cmake $ninja -B "$folder" -DCMAKE_BUILD_TYPE=Release -DKILTER_WITH_CUDA=OFF "$@") >"$out/configure.log" 2>&1
}

# made FOLDER TARGET...: builds there, likewise.
made() {
    folder=$1
    shift
    cmake --build "$copy/$folder" --parallel "$jobs" --target "$@" >"$out/build.log" 2>&1
}

# build TARGET...: what is changed is built apart.
build() {
    apart cmake --build tree/build --parallel "$jobs" --target "$@" >"$out/build.log" 2>&1
}

# The targets of tests, one per line: that of a fuzz test replays its reader's seeds.
targets() {
    sed 's/^fuzz_/replay_/; t; s/^/test_/'
}

# tests FOLDER: the default tests, one per line; those of the repository's texts notice too much, or nothing.
tests() {
    ctest --test-dir "$copy/$1" -N -LE long \
        -E '^(documentation|sources|format|apart|install|words|walks|includes|cycles|golden_.*)$' | awk '/^ *Test *#/ { print $NF }'
}

# reached FILE LINE: the tests that reach it: quick ones that reach little else first, as these are about it.
reached() {
    awk -F '\t' -v f="$1" -v l="$2" 'NR == FNR { n[$1]++; next } $3 == f && $4 == l { print ($2 + 0.1) * n[$1] "\t" $1 }' \
        "$out/reach.txt" "$out/reach.txt" | sort -g | cut -f2
}

# passes TEST...: whether none of them fails. No process of theirs gets more than a minute or 8 GB.
passes() {
    apart sh -c "ulimit -t 60 && ulimit -v 8000000 && exec ctest --test-dir tree/build -LE long --stop-on-failure --timeout 120 \
        -j $jobs -R '^($(echo "$@" | tr ' ' '|'))\$'" >"$out/tests.log" 2>&1
}

# survives FILE LINE: whether all tests that reach it pass; a few at a time, as most changes are noticed by the first.
survives() {
    n=3
    # shellcheck disable=SC2046 # one word per test
    set -- $(reached "$1" "$2")
    while [ $# -gt 0 ]; do
        some=
        while [ $# -gt 0 ] && [ "$(echo $some | wc -w)" -lt "$n" ]; do
            some="$some $1"
            shift
        done
        # shellcheck disable=SC2046,SC2086 # one word per test
        build kilter $(printf '%s\n' $some | targets) && passes $some || return 1
        n=$((2 * n))
    done
}

# judge FILE LINE: prints noticed, survived, unreached, or nothing for a change that does not compile.
judge() {
    build kilter || return 0
    if [ -z "$(reached "$1" "$2")" ]; then
        echo unreached
    elif survives "$1" "$2"; then
        echo survived
    else
        echo noticed
    fi
}

# The lines of FILE with line N replaced; read removes the blanks before a line, so it is looked up once more.
changed() {
    git show "HEAD:$1" | awk -v n="$2" -v order="$out/order.txt" -v key="$1$tab$2$tab$3$tab" '
        BEGIN { while ((getline l < order) > 0) if (index(l, key) == 1) { by = substr(l, length(key) + 1); break } }
        { print FNR == n ? by : $0 }'
}

# sound: whether the test that just failed passes without the change, in the same surroundings. One that does not is not asked again.
sound() {
    failed=$(sed -n 's/^[^0-9]*[0-9]* - \([a-z0-9_]*\) (.*/\1/p' "$out/tests.log" | head -n 1)
    [ -n "$failed" ] || return 1
    grep -qx "$failed" "$out/sound.txt" && return 0
    # shellcheck disable=SC2046 # one word per test
    if build kilter $(echo "$failed" | targets) && passes "$failed"; then
        echo "$failed" >>"$out/sound.txt"
        return 0
    fi
    echo "mutate: left out, as it fails without a change: $failed" >&2
    awk -F '\t' -v failed="$failed" '$1 != failed' "$out/reach.txt" >"$out/rest.txt"
    mv "$out/rest.txt" "$out/reach.txt"
    return 1
}

mkdir -p "$out"
: >"$out/sound.txt"
git archive --prefix=tree/ HEAD | tar -x -C "$place"
(cd "$copy" && find "$@" -name '*.c' ! -path '*cuda*' | sort | xargs awk -f tests/mutate/changes.awk) >"$out/changes.txt"
# A seed gives the same order everywhere; some of the changes do not compile.
awk -v seed="$seed" 'BEGIN { srand(seed) } { printf "%.9f\t%s\n", rand(), $0 }' "$out/changes.txt" | sort | cut -f2- |
    head -n "$((wanted + wanted / 4 + 5))" >"$out/order.txt"

before build
# shellcheck disable=SC2046 # one word per test
made build kilter failing $(tests build | targets)
if [ -n "${KILTER_MUTATE_REACH:-}" ]; then
    [ "$KILTER_MUTATE_REACH" = "$out/reach.txt" ] || cp "$KILTER_MUTATE_REACH" "$out/reach.txt"
else
    echo "mutate: looking which tests reach the changed lines"
    before build-reach -DKILTER_COVERAGE=ON -DCMAKE_C_FLAGS_RELEASE=-O1
    # shellcheck disable=SC2046 # one word per test
    made build-reach kilter failing $(tests build | targets)
    cut -f1,2 "$out/order.txt" >"$place/lines.txt"
    # shellcheck disable=SC2046 # one word per test
    apart sh -c "cd tree && tests/mutate/reach.sh build-reach ../lines.txt $(tests build | tr '\n' ' ')" >"$out/reach.txt"
fi

echo "# $wanted $seed $*" | tee "$out/verdicts.txt" >"$out/survivors.txt"
n=0
while IFS=$tab read -r file line what text <&3 && [ "$n" -lt "$wanted" ]; do
    changed "$file" "$line" "$what" | write "$file"
    verdict=$(judge "$file" "$line")
    git show "HEAD:$file" | write "$file"
    [ "$verdict" != noticed ] || grep -q 'FAILED' "$out/tests.log" || verdict=build # a test of it no longer compiles
    while [ "$verdict" = noticed ] && ! sound; do
        changed "$file" "$line" "$what" | write "$file"
        verdict=$(judge "$file" "$line")
        git show "HEAD:$file" | write "$file"
    done
    [ -n "$verdict" ] && [ "$verdict" != build ] || continue
    n=$((n + 1))
    printf '%s\t%s\t%s\t%s\n' "$verdict" "$file:$line" "$what" "$text" >>"$out/verdicts.txt"
    [ "$verdict" = noticed ] ||
        printf '%s:%s: %s (%s)\n    %s\n' "$file" "$line" "$what" "$verdict" "$text" | tee -a "$out/survivors.txt"
done 3<"$out/order.txt"
awk -F '\t' 'NR > 1 { sub("/.*", "", $2); n[$2]++; n["all"]++; killed[$2] += $1 == "noticed"; killed["all"] += $1 == "noticed" }
     END { for (m in n) printf "%-12s %3d of %3d noticed\n", m, killed[m], n[m] }' "$out/verdicts.txt" | sort
