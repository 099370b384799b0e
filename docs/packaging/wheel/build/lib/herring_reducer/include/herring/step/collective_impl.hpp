// herring: collectives on buffers of the caller: the errors of a call.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_STEP_COLLECTIVE_IMPL_HPP
#define HERRING_STEP_COLLECTIVE_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/step/collective.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace HERRING_NAMESPACE::detail {

HERRING_SEPARABLE void throw_not_apart(calls& checks, char const* operation, std::span<std::byte const> in,
                                       std::span<std::byte const> out, std::size_t element_bytes) {
    if (in.size() != out.size())
        checks.throw_misuse(errc::bad_argument, operation,
                            {"one size is due: ", in.size() / element_bytes, " elements in, ",
                             out.size() / element_bytes, " out"});
    auto const from = reinterpret_cast<std::uintptr_t>(in.data());
    auto const to = reinterpret_cast<std::uintptr_t>(out.data());
    checks.throw_misuse(errc::bad_argument, operation,
                        {"the buffers of ", in.size() / element_bytes, " elements overlap, ",
                         (from < to ? to - from : from - to),
                         " bytes apart: give one buffer, or two that do not overlap"});
}

HERRING_SEPARABLE void check_owned(calls& checks, char const* operation, std::span<std::byte const> whole,
                                   std::span<std::byte const> part, range const& own,
                                   std::size_t element_bytes) {
    if (part.size() != own.elements * element_bytes)
        checks.throw_misuse(errc::bad_argument, operation,
                            {"of the ", whole.size() / element_bytes, " elements this rank owns ",
                             own.elements, ", from ", own.offset, " on; the span for them has ",
                             part.size() / element_bytes, "; reducer::owned(n, rank) tells the range"});
    if (part.empty()) return;
    auto const from = reinterpret_cast<std::uintptr_t>(whole.data());
    auto const to = reinterpret_cast<std::uintptr_t>(part.data());
    if (to != from + own.offset * element_bytes && from < to + part.size() && to < from + whole.size())
        checks.throw_misuse(errc::bad_argument, operation,
                            {"the range of this rank overlaps the buffer of ", whole.size() / element_bytes,
                             " elements, and is not where it belongs in it: give elements ", own.offset,
                             " to ", own.end(), " of that buffer, or memory beside it"});
}

HERRING_SEPARABLE void check_moments(calls& checks, char const* operation, std::span<std::byte const> in,
                                     std::span<std::byte const> mean, std::span<std::byte const> deviation,
                                     std::size_t element_bytes) {
    if (in.size() != mean.size() || in.size() != deviation.size())
        checks.throw_misuse(errc::bad_argument, operation,
                            {"one size is due: ", in.size() / element_bytes, " elements in, ",
                             mean.size() / element_bytes, " means and ", deviation.size() / element_bytes,
                             " deviations out"});
    check_apart(checks, operation, in, mean, element_bytes);
    check_apart(checks, operation, in, deviation, element_bytes);
    if (!mean.empty() && mean.data() == deviation.data())
        checks.throw_misuse(errc::bad_argument, operation,
                            {"the means and the deviations of ", in.size() / element_bytes,
                             " elements have one buffer: give two"});
    check_apart(checks, operation, mean, deviation, element_bytes);
}

HERRING_SEPARABLE void check_divisor(calls& checks, char const* operation, char const* rule, int divisor,
                                     int ranks) {
    if (divisor < 1)
        checks.throw_misuse(errc::bad_argument, operation,
                            {"by the rule '", rule, "' the squares of ", ranks,
                             ranks == 1 ? " rank are" : " ranks are", " divided by ", divisor,
                             ": take update::moments, or more ranks"});
}

HERRING_SEPARABLE void check_root(calls& checks, char const* operation, int root, topology const& map) {
    if (root < 0 || root >= map.size())
        checks.throw_misuse(errc::bad_argument, operation,
                            {"there is no rank ", root, " to be the root: the world has ", map.size()});
    if (map.is_server(root))
        checks.throw_misuse(errc::bad_argument, operation,
                            {"rank ", root, " is a server, and has no buffer: name a worker as the root"});
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_STEP_COLLECTIVE_IMPL_HPP
