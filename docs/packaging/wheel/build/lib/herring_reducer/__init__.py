# herring: says where the headers of this package lie.
# SPDX-License-Identifier: Apache-2.0
#
#   g++ -std=c++20 $(python3 -m herring_reducer --includes) program.cpp -pthread
#   cmake -Dherring_DIR=$(python3 -m herring_reducer --cmakedir) ...
import sys
from pathlib import Path

folder = Path(__file__).resolve().parent


def includes():
    return f"-isystem {folder / 'include'}"


def cmakedir():
    return str(next(folder.glob("**/herringConfig.cmake")).parent)


def main():
    answers = {"--includes": includes, "--cmakedir": cmakedir}
    if len(sys.argv) != 2 or sys.argv[1] not in answers:
        sys.exit("usage: python3 -m herring_reducer --includes | --cmakedir")
    print(answers[sys.argv[1]]())
