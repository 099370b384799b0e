// herring: the bytes gathered from every rank: their allocation.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_GATHER_RESULT_IMPL_HPP
#define HERRING_CONTROL_GATHER_RESULT_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/gather_result.hpp"

#include <cstddef>
#include <utility>

namespace HERRING_NAMESPACE {

HERRING_SEPARABLE gather_result::gather_result(detail::fixed_array<std::size_t> sizes)
    : ends_(std::move(sizes)) {
    std::size_t end = 0;
    for (std::size_t& size : ends_) size = end += size;
    bytes_ = detail::fixed_array<std::byte>(end);
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_CONTROL_GATHER_RESULT_IMPL_HPP
