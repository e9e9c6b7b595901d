"""`pip install .`: compiles the library and the program by CMake, and packs them with their data and kilter.py."""
import os
import re
import subprocess

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

HERE = os.path.dirname(os.path.abspath(__file__))


class Build(build_py):
    """Installs the project below kilter_home/, beside the module, where the library finds its data."""

    def run(self):
        super().run()
        build = os.path.join(HERE, "build-wheel")
        home = os.path.join(os.path.abspath(self.build_lib), "kilter_home")
        cmake = os.environ.get("CMAKE", "cmake")
        subprocess.check_call([cmake, "-S", HERE, "-B", build, "-DCMAKE_BUILD_TYPE=Release", "-DBUILD_TESTING=OFF"])
        subprocess.check_call([cmake, "--build", build, "--parallel", str(os.cpu_count() or 1)])
        subprocess.check_call([cmake, "--install", build, "--prefix", home, "--strip"])


class Compiled(Distribution):
    """The wheel is for one machine."""

    def has_ext_modules(self):
        return True


with open(os.path.join(HERE, "CMakeLists.txt"), encoding="utf-8") as file:
    version = re.search(r"project\(.*?VERSION ([0-9.]+)", file.read(), re.S).group(1)

setup(version=version, package_dir={"": "experiments/library"}, py_modules=["kilter"], cmdclass={"build_py": Build},
      distclass=Compiled)
