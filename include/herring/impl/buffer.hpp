// herring: checks of the caller's buffers outside the layout.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_IMPL_BUFFER_HPP
#define HERRING_IMPL_BUFFER_HPP

#include "herring/base/config.hpp"
#include "herring/error.hpp"
#include "herring/step/buffer.hpp"
#include "herring/step/calls.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

HERRING_SEPARABLE void check_apart(calls& checks, char const* operation, std::span<std::byte const> in,
                                   std::span<std::byte const> out, std::size_t element_bytes) {
    if (in.size() != out.size())
        checks.throw_misuse(errc::bad_argument, operation,
                            {"one size is due: ", in.size() / element_bytes, " elements in, ",
                             out.size() / element_bytes, " out"});
    auto const from = reinterpret_cast<std::uintptr_t>(in.data());
    auto const to = reinterpret_cast<std::uintptr_t>(out.data());
    if (from != to && from < to + out.size() && to < from + in.size())
        checks.throw_misuse(errc::bad_argument, operation,
                            {"the buffers of ", in.size() / element_bytes, " elements overlap, ",
                             (from < to ? to - from : from - to),
                             " bytes apart: give one buffer, or two that do not overlap"});
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_IMPL_BUFFER_HPP
