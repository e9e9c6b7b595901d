#!/bin/sh
# Asks a build of Kilter what the command lines of tests/same/lines.txt say, and prints all answers without the times that planning took.
#
#     tests/same/answers.sh KILTER [THREADS]        from the root of a checkout
#
# Lines run in a folder of their own; "-j THREADS" in the place of JOBS. A line that fails prints its status and its message.
set -eu
kilter=$(realpath "$1")
threads=${2:-2}
lines=$PWD/tests/same/lines.txt
folder=$(mktemp -d "${TMPDIR:-/tmp}/kilter-same.XXXXXX")
trap 'rm -rf -- "$folder"' EXIT
cp tests/same/*.yaml "$folder"
cd "$folder"
grep -v '^#' "$lines" | sed "s/JOBS/-j $threads/" | while read -r line; do
    printf '== %s\n' "$line" | sed 's/ -j [0-9]*//'
    status=0
    eval "'$kilter' $line" >answer 2>message </dev/null || status=$?
    for file in answer message p.json t.json; do
        case $line in *" $file"*) ;; *) [ "$file" = answer ] || [ "$file" = message ] || continue ;; esac
        [ ! -s "$file" ] || sed -E '/"(search|balance|certificate|planning)_time_s"|"(elapsed|planning)_s"/d' "$file"
    done
    [ "$status" = 0 ] || echo "status $status"
done
