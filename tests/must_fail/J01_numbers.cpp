// herring: must not compile: a gather of numbers.
// SPDX-License-Identifier: Apache-2.0
#include "herring/join/gather.hpp"

#include <cstddef>
#include <span>
#include <vector>

#ifndef HERRING_TWIN
using replies = std::vector<std::vector<int>>;
#else
using replies = std::vector<std::vector<unsigned char>>;
#endif

replies gather(std::span<std::byte const> mine);

herring::world joined(int rank, int size) { return herring::join(gather, rank, size); }
