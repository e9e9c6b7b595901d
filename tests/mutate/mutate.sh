#!/bin/sh
# Counts the changes that the tests notice: makes N random small changes (tests/mutate/changes.awk), one at a time, compiles the changed
# file, links the default tests that reach the changed statement (tests/mutate/reach.awk), the quickest and closest first, and runs them
# until one fails. All of them pass without a change in the same place, which is seen first.
#
#     tests/mutate/mutate.sh N [SEED [MODULE...]]     modules: data sim synth balance exec experiments, each with its share of the N changes
#     tests/mutate/mutate.sh again                    tries those that survived the last campaign (out/mutate) on the present commit
#
# A changed program may do anything, delete recursively what it should not, for one. So it is run as a user without rights, in a folder of
# its own (tests/mutate/apart.sh; tests/fault/test_apart.c), on a build of the last commit that it cannot change; tests that need reference
# data skip. Its processor time and memory are limited. What passes the quickest tests for some seconds is then tried by all default tests,
# with the changed files compiled for the address and undefined-behaviour sanitizers: all such changes in one program, then halves of them
# where a test fails, until it fails for one alone (and not for its unchanged file). So a change that survives may owe it to another one.
# A function in a header has a copy in each source that includes it: one copy is changed, the first that comes out different.
# Each verdict is appended to out/mutate/verdicts.txt, and a campaign that was interrupted goes on there: noticed (by a test; +: under
# sanitizers) or survived. A change that does not compile, or compiles to the same object, is not counted; nor is one
# that tests/mutate/equivalent.txt shows to be equivalent: file, function, kind of change, line before it, reason,
# separated by tabs.
# KILTER_MUTATE_PLACE: a folder for the build, which is kept and used again; else one is made and removed. KILTER_MUTATE_TESTS: an extended
# regular expression of the tests to run; else all.
set -eu
unset CCACHE_BASEDIR # objects are compared with those of the build, in which paths have to be the same
cd "$(dirname "$0")/../.."
here=$PWD
out=$here/out/mutate
tab=$(printf '\t')
first_s=3 # of the first pass, for a change
# These take more than 4 s, and are left to the second pass.
slow='golden_hap|golden_amp|golden_hidup|schemas|tag_search|auto|tag_rivals|techniques|exec_command|sweep_kill|planners|strategies|calibrate_command|again|tag_program|sweep_failures|foreign_rows|interrupts|portfolio|report'
# Tests of the repository's texts notice too much, or nothing.
left_out='documentation|sources|format|apart|install|words|walks|includes|cycles'
command -v ninja >/dev/null 2>&1 || { echo "mutate: needs ninja" >&2; exit 2; }

# The targets of tests, one per line: that of a fuzz test replays its reader's seeds.
targets() {
    sed 's/^fuzz_command$/&/; t; s/^fuzz_/replay_/; t; s/^/test_/'
}

# tests: the default tests, one per line.
tests() {
    ctest --test-dir "$build" -N -LE long -E "^($left_out)\$" | awk '/^ *Test *#/ { print $NF }' | grep -Ex "${KILTER_MUTATE_TESTS:-.*}"
}

# choose N SEED MODULE...: number, file, line, change, line after and before it, function, tried in this order. Each module has its share of N, at
# least a few; changes that do not count are replaced by the module's next.
choose() {
    n=$1
    seed=$2
    shift 2
    (cd "$tree" && find "$@" -name '*.[ch]' ! -path '*cuda*' | sort | xargs awk -f "$here/tests/mutate/changes.awk") |
        awk -v seed="$seed" 'BEGIN { srand(seed) } { printf "%.9f\t%s\n", rand(), $0 }' | sort | cut -f2- >"$out/changes.txt"
    awk -F '\t' -v wanted="$n" '
        { m = $1; sub("/.*", "", m) }
        NR == FNR { of[m]++; all++; next }
        FNR == 1 {
            for (i in of) modules++
            few = wanted / modules < 5 ? wanted / modules : 5
            for (i in of) { share[i] = wanted * of[i] / all; if (share[i] < few) share[i] = few }
        }
        ++rank[m] <= share[m] * 1.4 + 4 { printf "%.6f\t%s\n", rank[m] / share[m], $0 }' "$out/changes.txt" "$out/changes.txt" |
        sort -g | cut -f2- | awk '{ print NR "\t" $0 }'
}

# survivors: those of the last campaign where the present commit has the line, the nearest of equal ones.
survivors() {
    awk -F '\t' 'NR == FNR { verdict[$1] = $2; next } verdict[$1] ~ /survived/' "$out/verdicts.txt" "$out/order.txt" |
        while IFS=$tab read -r id file line rest; do
            before=$(printf '%s' "$rest" | cut -f3)
            now=$(TEXT=$before awk -v n="$line" '$0 "" == ENVIRON["TEXT"] { d = FNR > n ? FNR - n : n - FNR; if (!l || d < best) { best = d; l = FNR } }
                END { print l }' "$tree/$file" 2>/dev/null) || now=
            if [ -n "$now" ]; then
                printf '%s\t%s\t%s\t%s\n' "$id" "$file" "$now" "$rest"
            else
                printf '%s\tgone\n' "$id" >>"$dir/verdicts.txt"
            fi
        done
}

# made TARGET...
made() {
    cmake --build "$build" --parallel "$(nproc)" --target "$@" >"$out/build.log" 2>&1 || { cat "$out/build.log" >&2; exit 1; }
}

# ready: a build of the last commit in $place, its objects, and which tests reach the changes of $out/order.txt.
ready() {
    mkdir -p "$place/run"
    chmod 755 "$place"
    if [ -e "$place/good" ]; then
        rm -rf "$place/watched" "$build"
        mv "$place/good" "$build"
    fi
    [ ! -e "$tree" ] || find "$tree" -name '*.good' | while read -r f; do mv "$f" "${f%.good}"; done
    if [ ! -e "$place/built" ] || [ "$(cat "$place/built")" != "$commit" ]; then
        echo "mutate: building"
        rm -rf "$place/link"
        mkdir -p "$place/link"
        # shellcheck disable=SC2046 # one word per file
        if old=$(cat "$place/built" 2>/dev/null) && git cat-file -e "$old"; then
            (cd "$tree" && rm -f $(cd "$here" && git diff --name-only --diff-filter=D --no-renames "$old" HEAD))
            set -- $(git diff --name-only --diff-filter=d --no-renames "$old" HEAD)
            [ $# = 0 ] || git archive --prefix=tree/ HEAD "$@" | tar -x -m -C "$place"
        else
            rm -rf "$tree"
            git archive --prefix=tree/ HEAD | tar -x -C "$place"
        fi
        rm -f "$place/built"
        (cd "$tree" && cmake -GNinja -B build -DCMAKE_BUILD_TYPE=Release -DKILTER_WITH_CUDA=OFF) >"$out/configure.log" 2>&1
        # shellcheck disable=SC2046 # one word per test
        made kilter failing $(tests | targets)
        mkdir -p "$build/Testing"
        chown -R nobody "$build/Testing"
        echo "$commit" >"$place/built"
    fi
}

# mark FILE OPTION...: puts the marks of tests/mutate/reach.awk in a file; in a header, at the heads of functions.
mark() {
    marked=$1
    shift
    case $marked in *.h) set -- -v coarse=1 "$@" ;; esac
    [ -e "$tree/$marked.good" ] || mv "$tree/$marked" "$tree/$marked.good"
    awk -f "$here/tests/mutate/reach.awk" -v order="$dir/order.txt" -v file="$marked" -v bytes="$place/run/reached" \
        -v header="$here/tests/mutate/reach.h" "$@" \
        "$tree/$marked.good" >"$tree/$marked"
}

# watched_build: builds the marked sources beside the good build. A file in which a mark is not C is marked at the heads of functions.
watched_build() {
    echo "mutate: building with marks"
    cp -a "$build" "$place/good"
    for marked in $(cut -f2 "$dir/order.txt" | sort -u); do mark "$marked"; done
    # shellcheck disable=SC2046 # one word per test
    set -- kilter $(tests | targets)
    if ! cmake --build "$build" --parallel "$(nproc)" --target "$@" -- -k 0 >"$out/build.log" 2>&1; then
        for marked in $(sed -n 's|^FAILED: \([a-z]*\)/CMakeFiles/[^/]*/\([^ ]*\)[.]o .*|\1/\2|p' "$out/build.log"); do
            mark "$marked" -v coarse=1
        done
        made "$@"
    fi
    find "$tree" -name '*.good' | while read -r f; do mv "$f" "${f%.good}"; done
    mv "$build" "$place/watched"
    mv "$place/good" "$build"
    echo "$key" >"$place/watched/key"
}

# watch: appends to $reach the quick tests that pass, their seconds, and the changes that they reach.
watch() {
    [ -e "$place/watched/key" ] && [ "$(cat "$place/watched/key")" = "$key" ] || { rm -rf "$place/watched"; watched_build; }
    echo "mutate: looking which tests reach the changed lines"
    mv "$build" "$place/good"
    mv "$place/watched" "$build"
    failed=
    head -c 65536 /dev/zero >"$place/zeros"
    for test in $(tests | grep -Exv "$slow" || true); do
        progress "sees what the test $test reaches"
        cp "$place/zeros" "$place/run/reached"
        chmod 666 "$place/run/reached"
        if passes "$test" 60 || passes "$test" 60; then
            seconds=$(awk '/ Test +#.* sec$/ { print $(NF - 1); exit }' "$out/tests.log")
            od -An -v -tu1 -w1 "$place/run/reached" | awk -v test="$test" -v s="$seconds" '$1 > 0 { print test "\t" s "\t" NR - 1 }' >>"$reach"
        else
            failed="$failed $test"
        fi
    done
    [ -z "$failed" ] || echo "mutate: left out, as they fail without a change:$failed" >&2
    echo "# 1" >>"$reach"
    mv "$build" "$place/watched"
    mv "$place/good" "$build"
}

# passes TEST SECONDS [MEMORY]: whether it passes apart, within a multiple of the SECONDS that it takes. No process of it gets more than
# MEMORY KB (8 GB). Memory that is not set is not 0.
passes() {
    limit=$(awk -v s="$2" 'BEGIN { printf "%d", 10 + 5 * s }')
    "$here/tests/mutate/apart.sh" "$place/run" sh -c "ulimit -c 0 && ulimit -t $limit && ulimit -v ${3:-8000000} && export ASAN_OPTIONS=detect_leaks=0 MALLOC_PERTURB_=165 && exec ctest --test-dir '$build' -LE long \
        --timeout $((60 + 4 * limit)) -R '^$1\$'" >"$out/tests.log" 2>&1
}

# built_with TARGET OPTION OBJECT...: links the target with those of the changed objects whose archive it has, before the archives. An object is
# NAME or NAME=FILE, with NAME as the build has it.
built_with() {
    link=$place/link/$1
    [ -e "$link" ] || ninja -C "$build" -t commands "$1" | tail -n 1 >"$link"
    linked=$(sed 's/.* -o \([^ ]*\) .*/\1/' "$link")
    [ -e "$build/$linked.good" ] || mv "$build/$linked" "$build/$linked.good"
    added=$2
    shift 2
    own= # the program's own objects are in its line already
    for part; do
        part_of=${part%%=*}
        archive=${part_of#*/CMakeFiles/}
        if grep -qF " $part_of " "$link"; then
            own="$own; s| $part_of | ${part#*=} |"
        elif grep -qF "/lib${archive%%.dir/*}.a " "$link"; then
            added="$added ${part#*=}"
        fi
    done
    (cd "$build" && sh -c "$(sed "s| -o $linked | $added&|$own" "$link")") >>"$out/build.log" 2>&1
}

# restored: the good programs come back.
restored() {
    find "$build" -name '*.good' | while read -r f; do mv "$f" "${f%.good}"; done
}

# reached ID: the tests that reach it, for $first_s seconds, and their seconds: quick ones that reach little else first, as these are
# about it; fuzz tests say little.
reached() {
    awk -F '\t' -v id="$1" 'NR == FNR { n[$1]++; next }
        $3 == id { print ($2 + 0.1) * n[$1] * ($1 ~ /^fuzz_/ ? 10 : 1) "\t" $1 "\t" $2 }' "$reach" "$reach" | sort -g |
        awk -F '\t' -v most="$first_s" '{ if (NR > 1 && sum + $3 > most) next; sum += $3; print $2 "\t" $3 }'
}

# progress WORDS: a line on a terminal; without words it is wiped off.
progress() {
    [ ! -t 2 ] || printf '\r\033[K%s' "${1:+mutate: $1, $(($(date +%s) - began)) s}" >&2
}

# judged: how far the first pass is.
judged() {
    awk -F '\t' -v wanted="$wanted" '$2 !~ /invalid|identical/ { n++; noticed += $2 == "noticed" }
        END { printf "%d changes judged%s, %d noticed", n, wanted == "again" ? "" : " of " wanted, noticed }' "$dir/verdicts.txt"
}

# file_of ID
file_of() {
    awk -F '\t' -v id="$1" '$1 == id { print $2 }' "$dir/order.txt"
}

# objects ID: where the change can be made: the source's object, or those of a few sources that include the header, first those that name the
# function.
objects() {
    case $(file_of "$1") in
    *.c) ninja -C "$build" -t query "$tree/$(file_of "$1")" | awk '/\.o$/ { print $1; exit }' ;;
    *)
        ninja -C "$build" -t deps | awk -v header="/$(file_of "$1")" '
            /: #deps/ { object = $1; sub(/:$/, "", object) }
            substr($1, length($1) - length(header) + 1) == header && object ~ /^[a-z]*\/CMakeFiles\/kilter/ { print object }' >"$place/includers"
        name=$(awk -F '\t' -v id="$1" '$1 == id { print $7 }' "$dir/order.txt")
        while read -r object; do
            grep -qw "$name" "$tree/$(echo "$object" | sed 's|CMakeFiles/[^/]*/||; s|\.o$||')" && echo "$object"
        done <"$place/includers" | cat - "$place/includers" | head -n 8
        ;;
    esac
}

# compiled ID NAME OBJECT changed|same OPTION: compiles the source of the object NAME, with the change or without, into an object that is not
# the build's own. False: it is not C.
compiled() {
    file=$(file_of "$1")
    ninja -C "$build" -t commands "$2" | tail -n 1 |
        sed "s|^ccache ||; s| -MF [^ ]*| -MF $3.d|; s| -o [^ ]* -c | $5 -o $3 -c |" >"$place/command" # a later -O counts
    if [ "$4" = changed ]; then
        mv "$tree/$file" "$tree/$file.good"
        awk -F '\t' -v id="$1" -v order="$dir/order.txt" '
            BEGIN { while ((getline < order) > 0) if ($1 == id) { n = $3; by = $5 } FS = "\n" }
            { print FNR == n ? by : $0 }' "$tree/$file.good" >"$tree/$file"
    fi
    compiles=true
    (cd "$build" && sh "$place/command") >>"$out/build.log" 2>&1 || compiles=false
    [ "$4" != changed ] || mv "$tree/$file.good" "$tree/$file"
    $compiles
}

# judge ID: what the quick tests say of a change.
judge() {
    : >"$out/build.log"
    verdict=identical
    for object in $(objects "$1"); do
        compiled "$1" "$object" "$place/changed.o" changed "" || { verdict=invalid; return 0; }
        ! cmp -s "$place/changed.o" "$build/$object" || continue
        verdict=different
        break
    done
    [ $verdict = different ] || return 0
    printf '%s\t%s\n' "$1" "$object" >>"$dir/objects.txt"
    built_with kilter "" "$object=$place/changed.o"
    reached "$1" >"$place/tests.txt"
    verdict=survived1
    while read -r test seconds <&4; do
        built_with "$(echo "$test" | targets)" "" "$object=$place/changed.o" || { cat "$out/build.log" >&2; exit 1; }
        if ! passes "$test" "$seconds"; then
            verdict="noticed$tab$test"
            break
        fi
    done 4<"$place/tests.txt"
    restored
}

# say ID VERDICT
say() {
    printf '%s\t%s\n' "$1" "$2" >>"$dir/verdicts.txt"
    progress ""
    case $2 in
    noticed* | invalid | identical) ;;
    *) awk -F '\t' -v id="$1" -v v="$2" '$1 == id { print $2 ":" $3 ": " $4 " (" v ")\n    " $6 "\n    " $5 }' "$dir/order.txt" ;;
    esac
}

# first_pass: judges what has no verdict yet.
first_pass() {
    while IFS=$tab read -r id file line what after before function <&3; do
        awk -F '\t' -v id="$id" '$1 == id { found = 1 } END { exit !found }' "$dir/verdicts.txt" && continue
        enough "${file%%/*}" && continue
        judge "$id"
        say "$id" "$verdict"
        progress "$(judged)"
    done 3<"$dir/order.txt"
}

# fails TEST ID...: whether the test fails where all of these changes are made, under sanitizers.
fails() {
    test=$1
    shift
    objects=
    for id; do objects="$objects $(cat "$place/wide/$id.name")=$place/wide/$id.o"; done
    # shellcheck disable=SC2086 # one word per object
    built_with kilter "$sanitizers" $objects && built_with "$(echo "$test" | targets)" "$sanitizers" $objects || return 1
    ! passes "$test" "$(awk -F '\t' -v t="$test" '$1 == t { s = 2 * $2 } END { print s ? s : 15 }' "$reach")" unlimited
}

# narrow TEST ID...: gives the verdict of each of the changes that fails the test alone.
narrow() {
    fails "$@" || return 0
    if [ $# -gt 2 ]; then
        set -- "$1" $((($# - 1) / 2)) "$@"
        # shellcheck disable=SC2046,SC2086 # the first half of the changes, then the second one
        narrow $(echo "$@" | awk '{ printf "%s", $1; for (i = 4; i <= 3 + $2; i++) printf " %s", $i }')
        # shellcheck disable=SC2046 # likewise
        narrow $(echo "$@" | awk '{ printf "%s", $1; for (i = 4 + $2; i <= NF; i++) printf " %s", $i }')
        return 0
    fi
    mv "$place/wide/$2.o" "$place/wide/$2.changed"
    compiled "$2" "$(cat "$place/wide/$2.name")" "$place/wide/$2.o" same "$sanitizers -O1"
    fails "$1" "$2" || say "$2" "noticed$tab+$1"
    mv "$place/wide/$2.changed" "$place/wide/$2.o"
}

# left TEST: the changes that it has not been tried on, one per line, at most one per object; the rest wait for the next call. Which changes
# a slow test reaches is not known.
left() {
    awk -F '\t' -v test="$1" -v slow="^($slow)\$" '
        FILENAME == ARGV[1] { verdict[$1] = $2; next }
        FILENAME == ARGV[2] { if ($1 == test) tried[$2] = 1; next }
        FILENAME == ARGV[3] { if ($1 == test) reached[$3] = 1; next }
        FILENAME == ARGV[4] { object[$1] = $2; next }
        verdict[$1] == "survived1" && !tried[$1] && (reached[$1] || test ~ slow) && !taken[object[$1]]++ { print $1 }' \
        "$dir/verdicts.txt" "$dir/tried.txt" "$reach" "$dir/objects.txt" "$dir/order.txt"
}

# most_first: the quick tests that reach what survived, those first that try many changes in a short time.
most_first() {
    awk -F '\t' '
        FILENAME == ARGV[1] { verdict[$1] = $2; next }
        verdict[$3] == "survived1" && $1 != "injected" { n[$1]++; s[$1] = $2 }
        END { for (t in n) print n[t] / (s[t] + 0.3) "\t" t }' "$dir/verdicts.txt" "$reach" | sort -rg | cut -f2
}

# second_pass: all tests on what survived the first pass.
second_pass() {
    # What is on the stack before it is set is a number that leads nowhere.
    sanitizers='-fsanitize=address,undefined -fno-sanitize-recover=undefined -ftrivial-auto-var-init=pattern'
    rm -rf "$place/wide"
    mkdir -p "$place/wide"
    touch "$dir/tried.txt"
    for id in $(awk -F '\t' '{ v[$1] = $2 } END { for (i in v) if (v[i] == "survived1") print i }' "$dir/verdicts.txt"); do
        awk -F '\t' -v id="$id" '$1 == id { object = $2 } END { print object }' "$dir/objects.txt" >"$place/wide/$id.name"
        compiled "$id" "$(cat "$place/wide/$id.name")" "$place/wide/$id.o" changed "$sanitizers -O1"
    done
    for test in $(most_first) $(tests | grep -Ex "$slow" || true); do
        while [ -n "$(left "$test")" ]; do
            some=$(left "$test" | tr '\n' ' ')
            progress "the test $test on $(echo "$some" | wc -w) changes under sanitizers"
            # shellcheck disable=SC2086 # one word per change
            narrow "$test" $some
            for id in $some; do printf '%s\t%s\n' "$test" "$id"; done >>"$dir/tried.txt"
        done
        restored
    done
    for id in $(awk -F '\t' '{ v[$1] = $2 } END { for (i in v) if (v[i] == "survived1") print i }' "$dir/verdicts.txt"); do say "$id" survived; done
}

# enough MODULE: whether the module has its share of changes.
enough() {
    [ "$wanted" != again ] && awk -F '\t' -v module="$1" -v wanted="$wanted" '
        FILENAME == ARGV[1] { m = $1; sub("/.*", "", m); of[m]++; all++; next }
        FILENAME == ARGV[2] { m = $2; sub("/.*", "", m); module_of[$1] = m; next }
        $2 !~ /invalid|identical/ && !seen[$1]++ && module_of[$1] == module { n++ }
        END {
            for (i in of) modules++
            few = wanted / modules < 5 ? wanted / modules : 5
            share = wanted * of[module] / all
            exit !(n >= (share < few ? few : share))
        }' "$out/changes.txt" "$out/order.txt" "$out/verdicts.txt"
}

# table: by module, how many changes count, how many are noticed, and how many of the others are equivalent, or gone with their line.
table() {
    again=$out/again/verdicts.txt
    [ -e "$again" ] || again=
    cat "$out/verdicts.txt" $again >"$out/all.txt"
    awk -F '\t' '
        FILENAME == ARGV[1] { same[$1, $2, $3, $4] = 1; next }
        FILENAME == ARGV[2] { verdict[$1] = $2; next }
        verdict[$1] && verdict[$1] !~ /invalid|identical/ {
            m = $2; sub("/.*", "", m); sub(/^ */, "", $6)
            noticed = verdict[$1] == "noticed"
            equal = !noticed && ($2, $7, $4, $6) in same
            for (k = 0; k < 2; k++) {
                n[m]++; killed[m] += noticed; equivalent[m] += equal; gone[m] += verdict[$1] == "gone" && !equal; m = "all"
            }
        }
        END { for (m in n) printf "%-12s %3d of %3d noticed, %d equivalent, %d gone\n", m, killed[m], n[m], equivalent[m], gone[m] }' \
        tests/mutate/equivalent.txt "$out/all.txt" "$out/order.txt" | sort
}

[ $# -gt 0 ] || { echo "mutate: expected N [SEED [MODULE...]] or again" >&2; exit 2; }
wanted=$1
seed=${2:-1}
shift "$(($# < 2 ? $# : 2))"
[ $# -gt 0 ] || set -- data sim synth balance exec experiments
commit=$(git rev-parse HEAD)
key="$commit $wanted $seed $*"
dir=$out # what this run writes; with `again`, what the campaign wrote is in $out
[ "$wanted" != again ] || dir=$out/again
reach=$dir/reach.txt
place=${KILTER_MUTATE_PLACE:-}
if [ -z "$place" ]; then
    place=$(mktemp -d "${TMPDIR:-/tmp}/kilter-mutate.XXXXXX")
    trap 'rm -rf -- "$place"' EXIT
fi
trap 'exit 130' INT TERM HUP
tree=$place/tree
build=$tree/build
mkdir -p "$dir" "$place/link"
began=$(date +%s)
ready
if [ ! -e "$dir/key.txt" ] || [ "$(cat "$dir/key.txt")" != "$key" ]; then
    rm -rf "$reach" "$out/again/verdicts.txt"
    : >"$dir/verdicts.txt"
    : >"$dir/objects.txt"
    if [ "$wanted" = again ]; then
        survivors >"$dir/order.txt"
    else
        choose "$wanted" "$seed" "$@" >"$dir/order.txt"
    fi
    echo "$key" >"$dir/key.txt"
fi
[ -e "$reach" ] && grep -qx "# 1" "$reach" || watch
first_pass
second_pass
progress ""
table
