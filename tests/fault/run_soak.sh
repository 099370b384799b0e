#!/usr/bin/env bash
# herring: builds the soak (build/soak) and runs it with the arguments given: tests/fault/run_soak.sh --seconds 3600 --seed 1
# SPDX-License-Identifier: Apache-2.0
set -eu
cd "$(dirname "$0")/../.."
mkdir -p build
compiler=${CXX:-g++}
command -v ccache >/dev/null && compiler="ccache $compiler"
$compiler -std=c++20 -O2 -g -Wall -Wextra -Wpedantic -Iinclude -Itests tests/fault/soak.cpp -o build/soak -pthread
exec build/soak "$@"
