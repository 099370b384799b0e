// herring: writing and reading the files of a checkpoint.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CHECKPOINT_FILE_IMPL_HPP
#define HERRING_CHECKPOINT_FILE_IMPL_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/codec.hpp"
#include "herring/base/config.hpp"
#include "herring/base/crc32c.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/base/text.hpp"
#include "herring/checkpoint/file.hpp"
#include "herring/checkpoint/folder.hpp"
#include "herring/checkpoint/manifest.hpp"
#include "herring/checkpoint/tensor_memory.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <tuple>
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
    std::uint64_t next = 0; // its first element that no range has covered yet
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

HERRING_SEPARABLE file_writer::file_writer(folder const& where, std::string name)
    : where_(where), entry_{.name = std::move(name)}, file_(where.create(entry_.name)),
      block_(file_table::block_bytes) {}

HERRING_SEPARABLE void file_writer::append(std::span<std::byte const> bytes) {
    entry_.data_bytes += bytes.size();
    while (!bytes.empty()) {
        std::size_t const size = std::min(bytes.size(), block_.size() - filled_);
        crc_ = crc32c_copy(block_.data() + filled_, bytes.first(size), crc_);
        filled_ += size;
        bytes = bytes.subspan(size);
        if (filled_ == block_.size()) write_block();
    }
}

HERRING_SETUP inline void file_writer::write_block() {
    where_.write(file_, entry_.name, {block_.data(), filled_});
    table_.blocks.push_back(crc_);
    filled_ = 0;
    crc_ = 0;
}

HERRING_SEPARABLE void file_writer::seal(std::vector<tensor_range> ranges) {
    if (filled_ > 0) write_block();
    table_.ranges = std::move(ranges);
    byte_buffer const bytes = write_table(table_);
    where_.write(file_, entry_.name, bytes);
    entry_.table_bytes = bytes.size();
    entry_.table_crc = crc32c(bytes);
}

HERRING_SEPARABLE file_entry file_writer::finish(std::vector<tensor_range> ranges) {
    seal(std::move(ranges));
    sync();
    return std::move(entry_);
}

HERRING_SETUP inline std::vector<tensor_range> ranges_of(std::span<tensor_memory const> all) {
    std::vector<tensor_range> table;
    for (tensor_memory const& one : all) table.push_back({one.tensor, one.offset, one.elements});
    return table;
}

HERRING_SEPARABLE file_entry write_part(folder const& where, std::string name,
                                        std::span<tensor_memory const> ranges, state_shape const& shape) {
    file_writer file(where, std::move(name));
    for (std::size_t array = 0; array < shape.arrays(); ++array)
        for (tensor_memory const& one : ranges)
            file.append({shape.place(one, array), one.elements * shape.bytes_of(array)});
    return file.finish(ranges_of(ranges));
}

HERRING_SEPARABLE file_entry write_bytes(folder const& where, std::string name,
                                         std::span<std::byte const> bytes) {
    file_writer file(where, std::move(name));
    file.append(bytes);
    return file.finish({});
}

HERRING_SEPARABLE file_reader::file_reader(folder const& where, file_entry const& entry)
    : where_(where), entry_(entry), file_(where.open(entry.name)), block_(file_table::block_bytes) {
    if (file_.get() < 0) fail({"the file is missing"});
    std::uint64_t const size = where.size(file_, entry.name);
    if (size < entry.data_bytes || size - entry.data_bytes != entry.table_bytes)
        fail({"it has ", size, " bytes, where the manifest has ", entry.data_bytes, " of data and ",
              entry.table_bytes, " of a table"});
    fixed_array<std::byte> bytes(entry.table_bytes);
    std::span<std::byte> const table(bytes.data(), bytes.size());
    where.read(file_, entry.name, entry.data_bytes, table);
    if (crc32c(table) != entry.table_crc)
        fail({"the table at byte ", entry.data_bytes, " has another checksum than the manifest says"});
    if (!read_table(table, table_) ||
        table_.blocks.size() !=
            entry.data_bytes / file_table::block_bytes + (entry.data_bytes % file_table::block_bytes != 0))
        fail({"the table at byte ", entry.data_bytes, " is none"});
}

HERRING_SEPARABLE void file_reader::read(std::uint64_t at, std::span<std::byte> into) {
    while (!into.empty()) {
        std::uint64_t const number = at / file_table::block_bytes, begin = number * file_table::block_bytes;
        if (begin >= entry_.data_bytes) // the file may have changed since its table was checked
            fail({"there is no byte ", at, " in its ", entry_.data_bytes, " bytes of data"});
        std::span<std::byte> const block(
            block_.data(), std::min<std::uint64_t>(file_table::block_bytes, entry_.data_bytes - begin));
        if (number != in_block_) {
            in_block_ = none;
            where_.read(file_, entry_.name, begin, block);
            if (crc32c(block) != table_.blocks[number])
                fail({"the block of ", block.size(), " bytes at byte ", begin,
                      " has another checksum than when it was written"});
            in_block_ = number;
        }
        std::size_t const from = at - begin, size = std::min(into.size(), block.size() - from);
        std::memcpy(into.data(), block.data() + from, size);
        at += size;
        into = into.subspan(size);
    }
}

HERRING_SEPARABLE void file_reader::fail(std::initializer_list<text_part> said) const {
    where_.fail_damaged(entry_.name, said);
}

HERRING_SEPARABLE std::vector<std::byte> read_bytes(folder const& where, file_entry const& entry) {
    file_reader file(where, entry);
    std::vector<std::byte> all(entry.data_bytes);
    file.read(0, all);
    return all;
}

HERRING_SEPARABLE void check_parts(folder const& where, std::span<file_entry const> parts,
                                   std::span<std::uint64_t const> tensor_elements, state_shape const& shape) {
    std::vector<tensor_range> all;
    for (file_entry const& part : parts) {
        file_reader const file(where, part);
        std::vector<tensor_range> const& ranges = file.table().ranges;
        std::uint64_t elements = 0; // at most data_bytes: no overflow
        for (tensor_range const& one : ranges) {
            if (one.elements > part.data_bytes - elements)
                file.fail({"its table has more elements than its data"});
            elements += one.elements;
        }
        if (elements > part.data_bytes / shape.element_bytes() ||
            elements * shape.element_bytes() != part.data_bytes)
            file.fail({"its table has ", elements, " elements, which are not its ", part.data_bytes,
                       " bytes of data"});
        all.insert(all.end(), ranges.begin(), ranges.end());
    }
    if (!cover_once(all, tensor_elements))
        where.fail_damaged(manifest::name, {"the parts together are not every element of the tensors once"});
}

HERRING_SEPARABLE void read_part(folder const& where, file_entry const& part,
                                 std::span<tensor_memory const> to, state_shape const& shape,
                                 std::size_t from_array, std::size_t end_array) {
    if (to.empty()) return;
    file_reader file(where, part);
    std::uint64_t at = 0; // of the range, in the data
    for (std::size_t array = 0; array < from_array; ++array)
        at += part.data_bytes / shape.element_bytes() * shape.bytes_of(array);
    for (std::size_t array = from_array; array < end_array; ++array) {
        std::size_t const bytes = shape.bytes_of(array);
        for (tensor_range const& range : file.table().ranges) {
            std::uint64_t const end = range.offset + range.elements;
            auto one = std::partition_point(to.begin(), to.end(), [&](tensor_memory const& before) {
                return std::tuple(before.tensor, before.offset + before.elements) <=
                       std::tuple(range.tensor, range.offset);
            });
            for (; one != to.end() && one->tensor == range.tensor && one->offset < end; ++one) {
                std::byte* const place = shape.place(*one, array);
                std::uint64_t const from = std::max<std::uint64_t>(one->offset, range.offset),
                                    till = std::min<std::uint64_t>(one->offset + one->elements, end);
                file.read(at + (from - range.offset) * bytes,
                          {place + (from - one->offset) * bytes, (till - from) * bytes});
            }
            at += range.elements * bytes;
        }
    }
}

} // namespace HERRING_NAMESPACE::detail::checkpoints

#endif // HERRING_CHECKPOINT_FILE_IMPL_HPP
