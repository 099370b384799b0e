// herring: thresholds so low that small buffers take every route, in many chunks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "herring/model/tunings.hpp"

namespace herring::conformance {

inline constexpr exchange_tuning small_chunks{.chunk_bytes = 4096,
                                              .window_bytes = 12'288,
                                              .one_hop_bytes = 2048,
                                              .one_hop_bytes_two_nodes = 9000,
                                              .message_ns = 1,
                                              .two_level_bytes = 1};

} // namespace herring::conformance
