// herring: must not compile: a gather that returns the bytes of all ranks in one buffer.
// SPDX-License-Identifier: Apache-2.0
#include "herring/join/gather.hpp"

#include <cstddef>
#include <span>
#include <vector>

#ifndef HERRING_TWIN
using replies = std::vector<std::byte>;
#else
using replies = std::vector<std::vector<std::byte>>;
#endif

replies gather(std::span<std::byte const> mine);

herring::world joined(int rank, int size) { return herring::join(gather, rank, size); }
