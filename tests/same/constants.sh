#!/bin/sh
# What the constants of searches decide: each is doubled and halved in a copy of the tree, and the plans that become others
# are counted.
#
#     tests/same/constants.sh synth/joint/search.c:FAR synth/hap/certify.c:narrow
#     synth/joint/search.c:FAR x2 0 /2 1 of 12
#
# COPY (default: a new worktree, which goes) is where it builds. A value that does not build, or takes over a minute, says so.
set -eu
copy=${COPY:-$(mktemp -d)}
[ -n "${COPY:-}" ] || { git worktree add -q --detach "$copy"; trap 'git worktree remove --force "$copy"' EXIT; }
plan=$(mktemp)

build() {
    [ -d "$copy/build" ] || cmake -G Ninja -S "$copy" -B "$copy/build" -DCMAKE_BUILD_TYPE=Release -DKILTER_WITH_CUDA=OFF >/dev/null
    ninja -C "$copy/build" kilter >/dev/null 2>&1
}

# A sum of each plan, without times and revision.
sums() {
    while read -r model cluster planner; do
        rm -f "$plan"
        timeout 60 "$copy/build/kilter" plan "$model" "$cluster" --planner "$planner" --quiet -o "$plan" >/dev/null 2>&1 || echo "$?"
        sed 's/"\(search\|balance\|certificate\)_time_s": *[0-9.e+-]*//; s/"\(seal\|revision\)": *"[^"]*"//' "$plan" | cksum
    done <<END
vgg19 hap-8 hap
vit hap-16 hap
bert-moe hap-8 hap
bert-base hidup-2x8 hidup
gpt2 amp-homogeneous amp
vgg19 tag-testbed tag
bert-base tag-testbed tag
bert-base hap-8 joint
vgg19 hap-8 joint
gpt2 1x8xl40s+1x4xa100-80g@ib-hdr joint
vit hap-16 auto
bert-moe hidup-2x8 auto
END
}

build
sums >"$plan.before"
n=$(wc -l <"$plan.before")
for constant; do
    file=${constant%:*} name=${constant#*:} said=$constant
    for change in '* 2' '/ 2'; do
        sed -i "/static const\|enum {/s|\b$name = \([^,;}]*[^,;} ]\)|$name = (\1) $change|" "$copy/$file"
        if build; then
            sums >"$plan.after"
            said="$said $change $(diff "$plan.before" "$plan.after" | grep -c '^>' || true)"
        else
            said="$said $change does not build"
        fi
        git -C "$copy" checkout -q "$file"
    done
    echo "$said of $n"
done
rm -f "$plan" "$plan.before" "$plan.after"
