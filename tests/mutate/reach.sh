#!/bin/sh
# Prints which tests reach which lines: test, its seconds, file, line; separated by tabs.
#
#     tests/mutate/reach.sh BUILD LINES TEST...        from the root of a checkout
#
# BUILD is a folder built with KILTER_COVERAGE, LINES a file with a file's name and a line per line, separated by a tab. A line that has no
# code of its own, as the second one of a condition, counts as the last one before it that has. Tests that fail are left out, and said.
set -eu
build=$1
lines=$2
shift 2
failed=
for test; do
    find "$build" -name '*.gcda' -exec rm -f {} +
    if ! ctest --test-dir "$build" -LE long -R "^$test\$" >"$build/reach.log" 2>&1; then
        failed="$failed $test"
        continue
    fi
    seconds=$(awk '/ Test +#.* sec$/ { print $(NF - 1); exit }' "$build/reach.log")
    for file in $(cut -f1 "$lines" | sort -u); do
        rest=${file#*/}
        (
            cd "$build" # where names of sources that the compiler wrote are right
            for data in "${file%%/*}"/CMakeFiles/*.dir/"$rest.gcda"; do
                [ ! -e "$data" ] || gcov -t "$data" 2>/dev/null
            done
        )
    done | awk -v lines="$lines" -v test="$test" -v seconds="$seconds" '
        BEGIN { FS = "\t"; while ((getline < lines) > 0) { wanted[$1, $2 + 0] = 1; name[$1] = 1 } FS = ":" }
        $2 + 0 == 0 && $3 == "Source" {
            of = ""
            for (f in name) if (substr($4, length($4) - length(f)) == "/" f || $4 == f) of = f
            reached = 0
        }
        $1 ~ /[0-9#=]/ { reached = $1 ~ /[0-9]/ }
        reached && ((of, $2 + 0) in wanted) { printf "%s\t%s\t%s\t%d\n", test, seconds, of, $2 }' | sort -u
done
[ -z "$failed" ] || echo "reach: left out as they fail without a change:$failed" >&2
