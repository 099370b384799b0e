# herring: a conan recipe of the headers. Run and tested by docs/packaging/check conan, or: conan create docs/packaging/conan
# SPDX-License-Identifier: Apache-2.0
import re
from pathlib import Path

from conan import ConanFile
from conan.tools.cmake import CMake, CMakeToolchain
from conan.tools.files import copy


class herring(ConanFile):
    name = "herring"
    description = "Reduces gradients, or any tensors, over processes and machines, along a path composed at compile time"
    license = "Apache-2.0"
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    no_copy_source = True

    @property
    def tree(self):
        return Path(self.recipe_folder).parents[2]

    def set_version(self):
        self.version = re.search(r'VERSION_STRING "(.*)"', (self.tree / "include/herring/base/version.hpp").read_text())[1]

    def export_sources(self):
        for part in ("include/*", "CMakeLists.txt", "LICENSE"):
            copy(self, part, self.tree, self.export_sources_folder)

    def generate(self):
        CMakeToolchain(self).generate()

    def package(self):
        cmake = CMake(self)
        cmake.configure(variables={"HERRING_BUILD_TESTS": "OFF", "HERRING_BUILD_EXAMPLES": "OFF"})
        cmake.install()

    def package_id(self):
        self.info.clear()

    def package_info(self):
        # The tree's own package for CMake, with all its components.
        self.cpp_info.set_property("cmake_find_mode", "none")
        self.cpp_info.builddirs = ["share/cmake/herring"]
        self.cpp_info.bindirs = self.cpp_info.libdirs = []
