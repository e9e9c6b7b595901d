#!/bin/sh
# Whether the same sources give the same bytes wherever they lie: builds copies of the tracked files at two places, at two times, and compares
# program, library and package.
#
#     tests/same/reproduced.sh [--sample N] [FLAG...]        flags of the compiler; default: -O3
#
# With --sample, each Nth object file alone is made and compared, which takes a minute instead of two whole builds (needs ninja).
# Exits with 1, and keeps both copies, if any differ.
set -eu
cd "$(dirname "$0")/../.."
sample=
if [ "${1:-}" = --sample ]; then
    sample=$2
    shift 2
fi
[ $# -gt 0 ] || set -- -O3
export CCACHE_DISABLE=1 SOURCE_DATE_EPOCH=1700000000
command -v ninja >/dev/null 2>&1 && export CMAKE_GENERATOR=Ninja
copies=$(mktemp -d)
configure() {
    cmake -S "$1" -B "$1/build" -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF -DKILTER_WITH_CUDA=OFF \
        -DCMAKE_C_FLAGS_RELEASE="-DNDEBUG $2"
}
make() {
    if [ -n "$sample" ]; then
        objects=$(ninja -C "$1/build" -t targets all | sed -n 's/\.c\.o: .*/.c.o/p' | awk "NR % $sample == 0")
        # shellcheck disable=SC2086 # a word per object
        ninja -C "$1/build" $objects
    else
        cmake --build "$1/build" --parallel "$(nproc)" && (cd "$1/build" && cpack -G DEB)
    fi
}
for place in one another/place; do
    folder=$copies/$place
    mkdir -p "$folder"
    git ls-files -z | xargs -0 cp --parents -t "$folder"
    { configure "$folder" "$*" && make "$folder"; } >"$folder/log" 2>&1 || { tail -n 20 "$folder/log" >&2; exit 1; }
done
differ=
cd "$copies/one/build"
[ -n "$sample" ] && files=$objects || files="kilter libkilter.so share/man/man1/kilter.1 $(echo *.deb)"
for file in $files; do
    if cmp "$file" "$copies/another/place/build/$file"; then
        echo "reproduced: $file: the same $(wc -c <"$file") bytes"
    else
        differ=1
    fi
done
[ -z "$differ" ] || { echo "reproduced: differs, see $copies" >&2; exit 1; }
cd /
rm -rf "$copies"
