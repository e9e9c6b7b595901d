#!/bin/sh
# Whether equal input gives equal bytes however Kilter is built and on however many threads: builds it by gcc and by clang, with and without
# optimization, with sums and products fused or not, and compares the answers of all to tests/same/lines.txt.
#
#     tests/same/same.sh [NAME...]        names of the builds below; default: all
#
# Builds are in out/same/NAME, answers in out/same/NAME-THREADS.txt. Exits with 1 if any differ.
set -eu
cd "$(dirname "$0")/../.."
[ $# -gt 0 ] || set -- gcc gcc-O0 gcc-O2 gcc-fused gcc-apart clang clang-O0
ninja=
command -v ninja >/dev/null 2>&1 && ninja=-GNinja
mkdir -p out/same

# flags NAME: compiler and flags. Processors that fuse a product with a sum are asked to only where the name says so.
flags() {
    case $1 in
    gcc) echo gcc -O3 ;;
    gcc-O0) echo gcc -O0 ;;
    gcc-O2) echo gcc -O2 ;;
    gcc-fused) echo gcc -O3 -mfma -ffp-contract=on ;;
    gcc-apart) echo gcc -O3 -mfma -ffp-contract=off ;;
    clang) echo clang -O2 ;;
    clang-O0) echo clang -O0 ;;
    *) echo "same: unknown build '$1'" >&2 && exit 2 ;;
    esac
}

first=
differ=
for name; do
    # shellcheck disable=SC2046 # words
    set -- $(flags "$name")
    compiler=$1
    shift
    folder=out/same/$name
    { cmake $ninja -B "$folder" -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF -DKILTER_WITH_CUDA=OFF -DCMAKE_C_COMPILER="$compiler" \
        -DCMAKE_C_FLAGS_RELEASE="-DNDEBUG $*" && cmake --build "$folder" --parallel "$(nproc)" --target kilter; } >"$folder.log" 2>&1 ||
        { tail -n 20 "$folder.log" >&2; exit 1; }
    for threads in 1 2 8; do
        answers=out/same/$name-$threads.txt
        tests/same/answers.sh "$folder/kilter" "$threads" >"$answers"
        : "${first:=$answers}"
        if cmp -s "$first" "$answers"; then
            echo "same: $name, $threads threads: the same $(wc -c <"$answers") bytes"
        else
            echo "same: $name, $threads threads: differs from $first: diff $first $answers"
            differ=1
        fi
    done
done
[ -z "$differ" ]
