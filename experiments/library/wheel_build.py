"""Builds the wheel of `pip install .` (PEP 517) with the standard library alone: CMake compiles and installs into a
folder, which goes beside kilter.py as kilter_home/."""
import base64
import hashlib
import os
import re
import subprocess
import sysconfig
import tarfile
import tempfile
import zipfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


def _version():
    with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
        return re.search(r"project\(kilter VERSION ([0-9.]+)", file.read()).group(1)


def _installed(home):
    """Compiles in a folder of its own, so that the checkout stays as it is."""
    cmake = os.environ.get("CMAKE", "cmake")
    with tempfile.TemporaryDirectory() as build:
        subprocess.check_call([cmake, "-S", ROOT, "-B", build, "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF"])
        subprocess.check_call([cmake, "--build", build, "--parallel", str(os.cpu_count() or 1)])
        subprocess.check_call([cmake, "--install", build, "--prefix", home, "--strip"])


def _wanted(path):
    """The program, the library under the name that is loaded, and the data."""
    return (path == "bin/kilter" or os.path.basename(path) == "libkilter.so.0" or path.startswith("share/kilter/")
            and not path.startswith("share/kilter/python/"))


def _files(home):
    """(name in the wheel, content, whether it may be run)"""
    # With a file of its own in kilter_home, pip removes the whole folder again.
    for source, name in ((os.path.join(HERE, "kilter.py"), "kilter.py"),
                         (os.path.join(ROOT, "LICENSE"), "kilter_home/LICENSE")):
        with open(source, "rb") as file:
            yield name, file.read(), False
    for folder, _, names in os.walk(home):
        for name in sorted(names):
            path = os.path.join(folder, name)
            relative = os.path.relpath(path, home)
            if _wanted(relative):
                with open(path, "rb") as file:
                    yield "kilter_home/" + relative, file.read(), os.access(path, os.X_OK)


def _about(version):
    tag = "py3-none-" + re.sub(r"[^0-9A-Za-z]+", "_", sysconfig.get_platform())
    info = f"kilter-{version}.dist-info/"
    return tag, info, [
        (info + "METADATA", f"Metadata-Version: 2.1\nName: kilter\nVersion: {version}\nRequires-Python: >=3.8\n"
         "License: MIT\nSummary: Plans and simulates training of deep networks on clusters of unlike GPUs\n"),
        (info + "WHEEL", f"Wheel-Version: 1.0\nGenerator: kilter\nRoot-Is-Purelib: false\nTag: {tag}\n"),
        (info + "entry_points.txt", "[console_scripts]\nkilter = kilter:main\n"),
    ]


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    _, info, texts = _about(_version())
    os.makedirs(os.path.join(metadata_directory, info), exist_ok=True)
    for path, text in texts:
        with open(os.path.join(metadata_directory, path), "w", encoding="utf-8") as file:
            file.write(text)
    return info.rstrip("/")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    version = _version()
    tag, info, texts = _about(version)
    name = f"kilter-{version}-{tag}.whl"
    record = ""
    with tempfile.TemporaryDirectory() as home, zipfile.ZipFile(
            os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as wheel:
        _installed(home)
        for path, content, runs in [*_files(home), *((path, text.encode(), False) for path, text in texts)]:
            entry = zipfile.ZipInfo(path)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if runs else 0o100644) << 16
            wheel.writestr(entry, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record += f"{path},sha256={digest},{len(content)}\n"
        wheel.writestr(info + "RECORD", record + info + "RECORD,,\n")
    return name


def build_sdist(sdist_directory, config_settings=None):
    base = f"kilter-{_version()}"
    with tarfile.open(os.path.join(sdist_directory, base + ".tar.gz"), "w:gz") as archive:
        for path in subprocess.check_output(["git", "-C", ROOT, "ls-files", "-z"]).decode().split("\0"):
            if path:
                archive.add(os.path.join(ROOT, path), os.path.join(base, path))
    return base + ".tar.gz"
