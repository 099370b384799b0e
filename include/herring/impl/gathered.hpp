// herring: bytes of every rank: room for them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_IMPL_GATHERED_HPP
#define HERRING_IMPL_GATHERED_HPP

#include "herring/detail/config.hpp"
#include "herring/detail/table.hpp"
#include "herring/gathered.hpp"

#include <cstddef>
#include <utility>

namespace HERRING_NAMESPACE {

HERRING_SEPARABLE gathered::gathered(detail::table<std::size_t> sizes) : ends_(std::move(sizes)) {
    std::size_t end = 0;
    for (std::size_t& size : ends_) size = end += size;
    bytes_ = detail::table<std::byte>(end);
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_IMPL_GATHERED_HPP
