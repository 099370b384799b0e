// herring: writing a file of a checkpoint in pieces, from a copy.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CHECKPOINT_SNAPSHOT_PART_IMPL_HPP
#define HERRING_CHECKPOINT_SNAPSHOT_PART_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/checkpoint/file.hpp"
#include "herring/checkpoint/folder.hpp"
#include "herring/checkpoint/manifest.hpp"
#include "herring/checkpoint/snapshot_part.hpp"
#include "herring/checkpoint/tensor_memory.hpp"
#include "herring/machine/private_memory.hpp"
#include "herring/machine/threads.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <utility>

#include <pthread.h>

namespace HERRING_NAMESPACE::detail::checkpoints {

HERRING_SEPARABLE void snapshot_part::reserve(std::size_t bytes) {
    if (memory_.bytes().size() >= bytes) return;
    memory_ = {};
    memory_ = private_memory(bytes, rank_);
    std::memset(memory_.data(), 0, bytes); // maps the pages now, and not while a step waits
}

HERRING_SETUP inline void snapshot_part::take(std::span<tensor_memory const> ranges,
                                              state_shape const& shape) {
    ranges_.clear();
    std::size_t elements = 0;
    for (tensor_memory const& one : ranges) {
        ranges_.push_back({one.tensor, one.offset, one.elements});
        elements += one.elements;
    }
    reserve(elements * shape.element_bytes());
    std::byte* to = memory_.data();
    for (std::size_t array = 0; array < shape.arrays(); ++array)
        for (tensor_memory const& one : ranges) {
            std::size_t const bytes = one.elements * shape.bytes_of(array);
            std::memcpy(to, shape.place(one, array), bytes);
            to += bytes;
        }
    left_ = memory_.bytes().first(static_cast<std::size_t>(to - memory_.data()));
}

template <class Step> void snapshot_part::attempt(stage then, Step const& step) noexcept {
    doing_ = stage::nothing;
    try {
        step();
        doing_ = then;
    } catch (error const& why) {
        how_ = why.why();
    } catch (std::exception const& why) {
        how_ = failure::make(errc::no_resources, rank_, -1, "save", why.what());
    }
}

HERRING_SEPARABLE void snapshot_part::open(std::span<tensor_memory const> ranges, state_shape const& shape,
                                           folder const& where, std::uint64_t steps,
                                           std::uint64_t generation) noexcept {
    how_ = {};
    file_.reset();
    attempt(stage::writing, [&] {
        take(ranges, shape);
        file_.emplace(where, file_name(steps, generation, std::to_string(rank_)));
    });
}

HERRING_SEPARABLE bool snapshot_part::next() noexcept {
    switch (doing_) {
    case stage::writing:
        attempt(left_.size() > file_table::block_bytes ? stage::writing : stage::sealing, [&] {
            std::size_t const bytes = std::min(left_.size(), file_table::block_bytes);
            file_->append(left_.first(bytes));
            left_ = left_.subspan(bytes);
        });
        return true;
    case stage::sealing:
        attempt(stage::syncing, [&] {
            file_->seal(std::move(ranges_));
            synced_how_ = {};
            synced_.store(false);
            has_thread_ = start_thread(
                              thread_,
                              [](void* self) -> void* {
                                  static_cast<snapshot_part*>(self)->sync();
                                  return nullptr;
                              },
                              this) == 0;
        });
        if (doing_ == stage::syncing && !has_thread_) sync(); // no thread could be started
        return true;
    case stage::syncing:
        if (done()) join();
        return false;
    case stage::nothing:
        break;
    }
    return false;
}

HERRING_SETUP inline void snapshot_part::sync() noexcept {
    try {
        file_->sync();
    } catch (error const& why) {
        synced_how_ = why.why();
    } catch (std::exception const& why) {
        synced_how_ = failure::make(errc::no_resources, rank_, -1, "save", why.what());
    }
    synced_.store(true, std::memory_order_release);
}

HERRING_SEPARABLE void snapshot_part::join() noexcept {
    if (std::exchange(has_thread_, false)) pthread_join(thread_, nullptr);
    if (doing_ != stage::syncing) return;
    how_ = synced_how_;
    doing_ = stage::nothing;
}

HERRING_SEPARABLE void snapshot_part::finish() noexcept {
    while (next()) {
    }
    join();
}

} // namespace HERRING_NAMESPACE::detail::checkpoints

#endif // HERRING_CHECKPOINT_SNAPSHOT_PART_IMPL_HPP
