// herring: a program of somebody else's that only includes and links: what a way of finding Herring gives.
// SPDX-License-Identifier: Apache-2.0
#include <herring/herring.hpp>

#include <cstdio>

int main() { std::printf("herring %s\n", herring::version_string); }
