#!/bin/sh
# Whether the same sources give the same bytes wherever they lie: builds copies of the tracked files at two places, at two times, and compares
# program, library and package.
#
#     tests/same/reproduced.sh [FLAG...]        flags of the compiler; default: -O3
#
# Exits with 1, and keeps both copies, if any differ.
set -eu
cd "$(dirname "$0")/../.."
[ $# -gt 0 ] || set -- -O3
export CCACHE_DISABLE=1 SOURCE_DATE_EPOCH=1700000000
command -v ninja >/dev/null 2>&1 && export CMAKE_GENERATOR=Ninja
copies=$(mktemp -d)
for place in one another/place; do
    folder=$copies/$place
    mkdir -p "$folder"
    git ls-files -z | xargs -0 cp --parents -t "$folder"
    { cmake -S "$folder" -B "$folder/build" -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF -DKILTER_WITH_CUDA=OFF \
        -DCMAKE_C_FLAGS_RELEASE="-DNDEBUG $*" && cmake --build "$folder/build" --parallel "$(nproc)" &&
        (cd "$folder/build" && cpack -G DEB); } >"$folder/log" 2>&1 || { tail -n 20 "$folder/log" >&2; exit 1; }
done
differ=
cd "$copies/one/build"
for file in kilter libkilter.so share/man/man1/kilter.1 *.deb; do
    if cmp "$file" "$copies/another/place/build/$file"; then
        echo "reproduced: $file: the same $(wc -c <"$file") bytes"
    else
        differ=1
    fi
done
[ -z "$differ" ] || { echo "reproduced: differs, see $copies" >&2; exit 1; }
cd /
rm -rf "$copies"
