#!/usr/bin/env python3
"""Which plans the constants of searches decide, and what they cost: each is doubled and halved, or,
of a factor near 1, its distance from 1.

    tests/same/constants.py list                 constants that tests/same/constants.txt lacks
    tests/same/constants.py stale                its rows without a constant; all: all constants
    tests/same/constants.py measure [NAME...]    measures them (default: those of list), a row each

NAME is FILE:CONSTANT. In a copy of the tree (out/constants) each constant is multiplied by a factor
from the environment and says when it is read, so that the copy is built once, and only the plans
that read a constant are made again. A row: NAME, plans made again / plans that read it; for the double
and for the half how many plans change, and the product of the plans' times by flow over those
before; CPU seconds with the double over those with the half. `fails`: a plan fails, or takes two
minutes. What no question reads has 0/0. Sizes, bits, sentinels and limits of input are `shape`.
"""
import json
import math
import os
import re
import subprocess
import sys
import tempfile

HOME = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COPY = os.path.join(HOME, "out", "constants")
TABLE = os.path.join(HOME, "tests", "same", "constants.txt")
MOST_PLANS = 4
QUESTIONS = os.path.join(HOME, "tests", "same", "questions.txt")

# A constant of a search has a value of its own: no bit, sentinel or index.
DECLARED = re.compile(
    r"^(?P<indent>[ \t]*)(?:(?P<enum>enum) \{(?P<list>[^{}]*)\}|"
    r"static const (?P<type>double|uint32_t|uint64_t|gint64|int)\s+(?:(?P<values>\w+\s*=[^;{}]*)|"
    r"(?P<array>\w+)(?P<extents>(?:\[\w*\])+) = (?P<items>\{[\d\s.,e{}/-]*\})));", re.M)
NUMBER = re.compile(r"[\d.]+(?:e-?\d+)?(?: / \d+)?")

KNOB = """
#ifndef KNOB_H
#define KNOB_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static inline double knob_read(const char *name, double value)
{
    const char *log = getenv("KNOB_LOG"), *changed = getenv("KNOB"), *factor = getenv("KNOB_FACTOR");
    FILE *file = log ? fopen(log, "a") : NULL;
    if (file) {
        fprintf(file, "%s\\n", name);
        fclose(file);
    }
    return changed && strcmp(changed, name) == 0 ? value * atof(factor) : value;
}
#define KNOB(name, value)                                            \\
    ({                                                               \\
        static double knob_is;                                       \\
        static int knob_known;                                       \\
        if (!knob_known) {                                           \\
            knob_is = knob_read(name, (double)(value));              \\
            knob_known = 1;                                          \\
        }                                                            \\
        (__typeof__(value))knob_is;                                  \\
    })
#endif
"""


def without_comments(text):
    """The text with comments as blanks, so that places stay."""
    return re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group()), text, flags=re.S)


def constants_of(text):
    """(match, [(name, value)]) of each declaration of constants with values."""
    for match in DECLARED.finditer(without_comments(text)):
        if match["array"]:
            yield match, [(match["array"], match["items"])]
            continue
        values = match["list"] if match["enum"] else match["values"]
        pairs = re.findall(r"(\w+)\s*=\s*((?:[^,(]|\([^)]*\))+)", values)
        pairs = [(name, " ".join(value.split())) for name, value in pairs]
        if len(pairs) == len([v for v in values.split(",") if v.strip()]):
            yield match, pairs


def sources():
    for module in ("balance", "synth"):
        for folder, _, files in sorted(os.walk(os.path.join(HOME, module))):
            for name in sorted(files):
                if name.endswith((".c", ".h")):
                    yield os.path.relpath(os.path.join(folder, name), HOME)


def rows_of(path):
    with open(path) as file:
        return [line.split("#")[0].split() for line in file if line.split("#")[0].strip()]


def lacking():
    known = {row[0] for row in rows_of(TABLE)}
    return [name for name in values() if name not in known]


def stale():
    found = values()
    return [row[0] for row in rows_of(TABLE) if row[0] not in found]


def with_knobs(path, text, names):
    """The text with the constants of `names` read at run time."""
    pieces, at = [], 0
    for match, pairs in constants_of(text):
        if not any(f"{path}:{name}" in names for name, _ in pairs):
            continue
        pieces.append(text[at:match.start()])
        lines = []
        for name, value in pairs:
            knob = f'KNOB("{path}:{name}", {value})' if f"{path}:{name}" in names else f"({value})"
            kind, extents = match["type"] or "int", match["extents"] or ""
            if extents:
                knob = NUMBER.sub(lambda m: f'KNOB("{path}:{name}", {m.group()})', value)
            if extents and not match["indent"]:
                lines.append(f"#define {name} ((const {kind} {extents}){knob})")
            elif match["indent"]:
                lines.append(f"{match['indent']}const {kind} {name}{extents} = {knob};")
            else:
                lines += [f"#undef {name}", f"#define {name} (({kind}){knob})"]
        pieces.append("\n".join(lines))
        at = match.end()
    return '#include "knob.h"\n' + "".join(pieces) + text[at:] if pieces else text


def build(names):
    """Makes the copy's program, which has the constants of `names` as knobs."""
    os.makedirs(COPY, exist_ok=True)
    subprocess.run(f"git archive HEAD | tar -x -C {COPY}", shell=True, cwd=HOME, check=True)
    with open(os.path.join(COPY, "knob.h"), "w") as file:
        file.write(KNOB)
    for path in {name.split(":")[0] for name in names}:
        with open(os.path.join(HOME, path)) as file:
            text = with_knobs(path, file.read(), set(names))
        with open(os.path.join(COPY, path), "w") as file:
            file.write(text)
    if not os.path.exists(os.path.join(COPY, "build", "build.ninja")):
        subprocess.run(["cmake", "-G", "Ninja", "-S", COPY, "-B", os.path.join(COPY, "build"),
                        "-DCMAKE_BUILD_TYPE=Release", "-DKILTER_WITH_CUDA=OFF"], check=True,
                       stdout=subprocess.DEVNULL)
    subprocess.run(["ninja", "-k", "0", "-C", os.path.join(COPY, "build"), "kilter"], check=True,
                   stdout=subprocess.DEVNULL if "-v" not in sys.argv else None)


def ask(words, knob="", factor=1, known=None):
    """{sum, flow_s, cpu_s, read} of the plan that a question gets; `known`: without the knob."""
    kilter = os.path.join(COPY, "build", "kilter")
    with tempfile.TemporaryDirectory() as folder:
        plan, log = os.path.join(folder, "plan.json"), os.path.join(folder, "log")
        env = dict(os.environ, KNOB_LOG=log, KNOB=knob, KNOB_FACTOR=str(factor))
        before = os.times()
        try:
            done = subprocess.run([kilter, "plan", *words, "--quiet", "-o", plan], env=env, timeout=120,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return None
        after = os.times()
        read = set(open(log).read().split()) if os.path.exists(log) else set()
        cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
        if done.returncode or not os.path.exists(plan):
            return dict(sum=done.returncode, flow_s=0, cpu_s=cpu_s, read=read)
        text = re.sub(r'"((search|balance|certificate)_time_s": *[0-9.e+-]*|(seal|revision)": *"[^"]*")', "",
                      open(plan).read())
        if known and known["sum"] == text:
            return dict(known, cpu_s=cpu_s)
        flow = subprocess.run([kilter, "simulate", plan, "-f", "flow", "--json"], text=True,
                              capture_output=True)
        flow_s = json.loads(flow.stdout)["iteration_time_s"] if flow.returncode == 0 else 0
        return dict(sum=text, flow_s=flow_s, cpu_s=cpu_s, read=read)


def values():
    """{FILE:NAME: text of the value}."""
    found = {}
    for path in sources():
        with open(os.path.join(HOME, path)) as file:
            for _, pairs in constants_of(file.read()):
                found.update((f"{path}:{name}", value) for name, value in pairs)
    return found


def part(value, factor):
    """The factor that a constant with this text is multiplied by."""
    near = re.fullmatch(r"[01]\.\d+", value) and 0.5 < float(value) < 2
    return (1 + (float(value) - 1) * factor) / float(value) if near else factor


def compare(before, after):
    """`changed time` of plans beside those before; `fails`."""
    if None in after or any((a["flow_s"] > 0) != (b["flow_s"] > 0) for a, b in zip(after, before)):
        return "fails -"
    changed = sum(a["sum"] != b["sum"] for a, b in zip(after, before))
    return f"{changed} {math.prod(a['flow_s'] / b['flow_s'] for a, b in zip(after, before) if a['flow_s']):.4f}"


def row_of(name, value, questions, before):
    """The row of a constant, by at most MOST_PLANS of the plans that read it, the quickest."""
    readers = [i for i, b in enumerate(before) if b and name in b["read"]]
    used = sorted(readers, key=lambda i: before[i]["cpu_s"])[:MOST_PLANS]
    after = [[ask(questions[i], name, part(value, f), before[i]) for i in used] for f in (2, 0.5)]
    said = [compare([before[i] for i in used], a) for a in after]
    cpu_s = [sum(a["cpu_s"] for a in all_ if a) for all_ in after]
    cpu = f"{cpu_s[0] / cpu_s[1]:.2f}" if used else "-"
    return f"{name} {len(used)}/{len(readers)} {said[0]} {said[1]} {cpu}"


def measure(names):
    build(names)
    questions, value = rows_of(QUESTIONS), values()
    before = [ask(words) for words in questions]
    for name in names:
        print(row_of(name, value[name], questions, before), flush=True)


if __name__ == "__main__":
    words = [w for w in sys.argv[1:] if not w.startswith("-")]
    lists = {"all": values, "list": lacking, "stale": stale}
    if len(words) == 1 and words[0] in lists:
        print(*lists[words[0]](), sep="\n")
    elif words[:1] == ["measure"]:
        measure(words[1:] or lacking())
    else:
        sys.exit(__doc__)
