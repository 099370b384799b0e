// herring: the table of a checkpoint's file: as bytes and back.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CHECKPOINT_FILE_TABLE_IMPL_HPP
#define HERRING_CHECKPOINT_FILE_TABLE_IMPL_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/codec.hpp"
#include "herring/base/config.hpp"
#include "herring/checkpoint/file_table.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail::checkpoints {

HERRING_SEPARABLE byte_buffer write_table(file_table const& from) {
    byte_buffer out;
    wire::append<std::uint64_t>(out, from.ranges.size());
    wire::append<std::uint64_t>(out, from.blocks.size());
    for (tensor_range const& one : from.ranges)
        for (std::uint64_t const number : {one.tensor, one.offset, one.elements})
            wire::append<std::uint64_t>(out, number);
    for (std::uint32_t const crc : from.blocks) wire::append<std::uint32_t>(out, crc);
    return out;
}

HERRING_SEPARABLE bool read_table(std::span<std::byte const> bytes, file_table& to) {
    wire::reader in{bytes};
    auto const ranges = in.number<std::uint64_t>(), blocks = in.number<std::uint64_t>();
    if (ranges > in.rest.size() / 24 || blocks > in.rest.size() / 4) return false;
    file_table read;
    read.ranges.resize(ranges);
    for (tensor_range& one : read.ranges)
        for (std::uint64_t* const number : {&one.tensor, &one.offset, &one.elements})
            *number = in.number<std::uint64_t>();
    read.blocks.resize(blocks);
    for (std::uint32_t& crc : read.blocks) crc = in.number<std::uint32_t>();
    if (!in.done()) return false;
    to = std::move(read);
    return true;
}

HERRING_SEPARABLE bool cover_once(std::vector<tensor_range>& ranges,
                                  std::span<std::uint64_t const> elements) {
    std::sort(ranges.begin(), ranges.end());
    std::size_t tensor = 0;
    std::uint64_t next = 0; // its first element that no range had yet
    auto const skip_full = [&] {
        while (tensor < elements.size() && next == elements[tensor]) ++tensor, next = 0;
    };
    skip_full();
    for (tensor_range const& one : ranges) {
        if (tensor == elements.size() || one.tensor != tensor || one.offset != next || one.elements == 0 ||
            one.elements > elements[tensor] - next)
            return false;
        next += one.elements;
        skip_full();
    }
    return tensor == elements.size();
}

} // namespace HERRING_NAMESPACE::detail::checkpoints

#endif // HERRING_CHECKPOINT_FILE_TABLE_IMPL_HPP
