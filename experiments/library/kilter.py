"""Kilter from Python, by ctypes: requests and answers are dicts (kilter.h describes them).

    import kilter
    times = {p: kilter.simulate(model="vgg19", cluster="hap-8", planner=p)["iteration_time_s"] for p in ("hap", "dp-ev")}

The library is $KILTER_LIBRARY, or lies beside this file, in its prefix or in the build folder of its checkout, or is
found by the loader."""
import ctypes
import json
import glob
import os
import sys


def _find_library():
    name = "libkilter.so.0"
    here = os.path.dirname(os.path.realpath(__file__))
    up = os.path.dirname
    for pattern in (
        os.path.join(here, "kilter_home", "lib*", name),  # a wheel
        os.path.join(here, "kilter_home", "lib*", "*", name),
        os.path.join(up(up(up(here))), "lib*", name),  # PREFIX/share/kilter/python
        os.path.join(up(up(up(here))), "lib*", "*", name),
        os.path.join(up(up(here)), "build", name),  # a checkout
    ):
        for path in sorted(glob.glob(pattern)):
            return path
    return name


_library = ctypes.CDLL(os.environ.get("KILTER_LIBRARY") or _find_library())
_library.kilter_version.restype = ctypes.c_char_p


class Error(Exception):
    """`status` is the program's exit status: 1 failed, 2 bad input, 3 no plan fits."""

    def __init__(self, status, message):
        super().__init__(message)
        self.status = status


def _call(name, *arguments):
    text = ctypes.c_char_p()
    status = getattr(_library, name)(*arguments, ctypes.byref(text))
    answer = json.loads(text.value)
    _library.kilter_free(text)
    if "error" in answer and status != 0 and "right" not in answer:
        raise Error(status, answer["error"]["message"])
    return answer


def _ask(name, request):
    return _call(name, json.dumps(request).encode())


_Hear = ctypes.CFUNCTYPE(None, ctypes.c_double, ctypes.c_char_p)


def hear(function):
    """Calls function(seconds, words) before a search that may take long. Until then: prints the words."""
    global _heard  # ctypes needs it as long as the library does
    _heard = _Hear(lambda seconds, words: function(seconds, words.decode()))
    _library.kilter_hear(_heard)


hear(lambda seconds, words: print(f"kilter: {words}", file=sys.stderr))


def version():
    return _library.kilter_version().decode()


def models():
    return _call("kilter_models")["models"]


def clusters():
    return _call("kilter_clusters")["clusters"]


def planners():
    return _call("kilter_planners")["planners"]


def plan(**request):
    return _ask("kilter_plan", request)


def simulate(**request):
    return _ask("kilter_simulate", request)


def verify(**request):
    return _ask("kilter_verify", request)


def main():
    """The program `kilter` of a wheel."""
    program = os.path.join(os.path.dirname(os.path.realpath(__file__)), "kilter_home", "bin", "kilter")
    os.execv(program, [program, *sys.argv[1:]])
