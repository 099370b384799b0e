// herring: joining, and failures as outcomes, for the tables of calls under PyTorch; knows no torch.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TORCH_CALLS_HPP
#define HERRING_TORCH_CALLS_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/control/world.hpp"
#include "herring/join/gather.hpp"
#include "herring/model/join_options.hpp"
#include "herring/torch/table.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <string>
#include <vector>

namespace HERRING_NAMESPACE::torch_calls {

using namespace herring::torch; // of the tables
using herring::torch::outcome;  // not that of ensembles

HERRING_SETUP inline void set(outcome& result, failure const& why) noexcept {
    result.code = static_cast<std::int32_t>(why.what);
    result.peer = why.peer;
    try {
        std::string const text = why.message();
        std::size_t const size = std::min(text.size(), sizeof result.text - 1);
        std::memcpy(result.text, text.data(), size);
        result.text[size] = 0;
    } catch (...) {
        std::memcpy(result.text, why.text, sizeof why.text);
    }
}

/// Calls `run`, which returns a status; stores what it returns or throws.
template <class Run>
void store_outcome(outcome& result, int rank, char const* operation, Run&& run) noexcept {
    try {
        status const ended = run();
        if (!ended.ok()) set(result, ended.why());
    } catch (error const& e) {
        set(result, e.why());
    } catch (std::bad_alloc const&) {
        set(result, failure::make(errc::no_resources, rank, -1, operation, "memory is exhausted"));
    } catch (std::exception const& e) {
        set(result, failure::make(errc::internal, rank, -1, operation, e.what()));
    }
}

/// Joins the ranks of `through`. `timeout_ms`: of the world's calls, too.
HERRING_SETUP inline world join_through(gather_function const& through, int rank, int size,
                                        std::int64_t timeout_ms, join_options options = {}) {
    auto const gather = [&](std::span<std::byte const> mine) {
        std::vector<std::vector<std::byte>> all;
        char const* const fault = through.all(
            through.context, mine.data(), mine.size(), &all,
            [](void* to, void const* bytes, std::size_t count) {
                auto const* const first = static_cast<std::byte const*>(bytes);
                static_cast<std::vector<std::vector<std::byte>>*>(to)->emplace_back(first, first + count);
            });
        if (fault != nullptr) throw error(errc::unreachable, rank, -1, "join", fault);
        return all;
    };
    options.timeout = options.default_timeout = std::chrono::milliseconds(timeout_ms);
    return join(gather, rank, size, options);
}

} // namespace HERRING_NAMESPACE::torch_calls

#endif // HERRING_TORCH_CALLS_HPP
