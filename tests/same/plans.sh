#!/bin/sh
# The plans of all planners, as a list of sums to compare before and after a change that may not change plans:
#
#     tests/same/plans.sh build/kilter >before; ...; tests/same/plans.sh build/kilter >after; diff before after
#
# MODELS, CLUSTERS and PLANNERS (words) narrow the list; a plan that takes more than LIMIT seconds (default 60)
# is "late" and says nothing. Times of searches and the revision are no part of the sum.
set -u
kilter=$1
models=${MODELS:-$("$kilter" models --json | jq -r '.. | .name? // empty' | grep -v '^kilter')}
clusters=${CLUSTERS:-hap-8 hap-16 hidup-2x8 amp-homogeneous tag-testbed dgx-h100}
planners=${PLANNERS:-$("$kilter" planners --json | jq -r '.. | .name? // empty' | grep -v '^kilter')}
plan=$(mktemp)
trap 'rm -f "$plan"' EXIT
for cluster in $clusters; do
    for model in $models; do
        for planner in $planners; do
            for granularity in machine gpu; do
                rm -f "$plan"
                timeout "${LIMIT:-60}" "$kilter" plan "$model" "$cluster" --planner "$planner" \
                    --granularity $granularity --quiet -o "$plan" >/dev/null 2>"$plan.err"
                status=$?
                sum=$(sed 's/"\(search\|balance\|certificate\)_time_s": *[0-9.e+-]*//; s/"\(seal\|revision\)": *"[^"]*"//' "$plan" "$plan.err" 2>/dev/null | cksum)
                [ $status = 124 ] && sum=late
                echo "$cluster $model $planner $granularity $status $sum"
            done
        done
    done
done
rm -f "$plan.err"
