#!/bin/sh
# Prints which part of each reader's lines and branches (tests/fuzz/readers.txt) its seeds, their damaged copies and the learnt corpus reach.
#
#     tests/fuzz/coverage.sh BUILD [READER...]        from the root of a checkout
#
# BUILD is a folder built with KILTER_COVERAGE. The corpus is out/fuzz/READER, which ./run fuzz makes. Lines that were not reached are
# listed in out/fuzz/READER.missed.
set -eu
build=$1
shift
[ $# -gt 0 ] || set -- $(sed '/^#/d; s/ .*//' tests/fuzz/readers.txt)
mkdir -p out/fuzz
for reader; do
    files=$(sed -n "s/^$reader //p" tests/fuzz/readers.txt)
    [ -n "$files" ] || { echo "coverage: no reader '$reader' in tests/fuzz/readers.txt" >&2; exit 2; }
    find "$build" -name '*.gcda' -exec rm -f {} +
    # Learnt inputs are accepted or refused, which replay does not know beforehand.
    "$build/tests/replay_$reader" --mutants "${KILTER_MUTANTS:-3000}" --dict "tests/fuzz/seeds/$reader.dict" "tests/fuzz/seeds/$reader" >"out/fuzz/$reader.replay" 2>&1 ||
        { cat "out/fuzz/$reader.replay" >&2; exit 1; }
    [ ! -d "out/fuzz/$reader" ] || "$build/tests/replay_$reader" --learnt "out/fuzz/$reader" >>"out/fuzz/$reader.replay" 2>&1 ||
        { cat "out/fuzz/$reader.replay" >&2; exit 1; }
    for file in $files; do
        (cd "$build" && gcov -t -b "${file%%/*}"/CMakeFiles/*.dir/"${file#*/}.gcda") 2>/dev/null | awk -F: -v file="$file" '
            /^branch/ { if (mine) print "branch", ($0 ~ /taken [1-9]/) }
            /^(branch|call|unconditional|function)/ { next }
            $2 + 0 == 0 && $3 == "Source" { mine = substr($4, length($4) - length(file) + 1) == file }
            mine && $1 ~ /[0-9]/ { print "reached" }
            mine && $1 ~ /[#=]/ { print "missed " file ":" $2 + 0 }'
    done >"out/fuzz/$reader.lines"
    grep '^missed' "out/fuzz/$reader.lines" >"out/fuzz/$reader.missed" || :
    awk -v reader="$reader" '
        $1 == "branch" { branches++; taken += $2; next }
        { lines++; n += $1 == "reached" }
        END {
            printf "%-14s %4d of %4d lines, %3.0f %%; %4d of %4d branches, %3.0f %%\n", reader,
                n, lines, lines ? 100 * n / lines : 0, taken, branches, branches ? 100 * taken / branches : 0
        }' "out/fuzz/$reader.lines"
    rm -f "out/fuzz/$reader.lines"
done
