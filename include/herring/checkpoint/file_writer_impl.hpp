// herring: writes one file of a checkpoint.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CHECKPOINT_FILE_WRITER_IMPL_HPP
#define HERRING_CHECKPOINT_FILE_WRITER_IMPL_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/config.hpp"
#include "herring/base/crc32c.hpp"
#include "herring/checkpoint/file_table.hpp"
#include "herring/checkpoint/file_writer.hpp"
#include "herring/checkpoint/folder.hpp"
#include "herring/checkpoint/manifest.hpp"
#include "herring/checkpoint/tensor_memory.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail::checkpoints {

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

} // namespace HERRING_NAMESPACE::detail::checkpoints

#endif // HERRING_CHECKPOINT_FILE_WRITER_IMPL_HPP
