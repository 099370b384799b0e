// herring: rank 0's book of the open collective: the ranks that have come, and their contributions. No I/O.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_RENDEZVOUS_PENDING_COLLECTIVE_HPP
#define HERRING_CONTROL_RENDEZVOUS_PENDING_COLLECTIVE_HPP

#include "herring/base/codec.hpp"
#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/gather_result.hpp"
#include "herring/control/wire/message_kind.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE::detail::rendezvous {

using namespace wire;

/// The name of a collective for users.
inline char const* name(message_kind kind) noexcept {
    if (kind == message_kind::split) return "split";
    return kind == message_kind::barrier ? "barrier" : "all_gather";
}

/// The contributions to one collective at a time; empty again once they are taken.
class pending_collective {
  public:
    explicit pending_collective(int ranks) : given_(static_cast<std::size_t>(ranks)) {}

    bool empty() const noexcept { return arrived_ == 0; }
    bool complete() const noexcept { return arrived_ == given_.size(); }
    bool has(int rank) const noexcept { return of(rank) != message_kind::heartbeat; }
    message_kind of(int rank) const noexcept { return given_[static_cast<std::size_t>(rank)].kind; }

    /// The ranks that have not come.
    HERRING_SETUP std::vector<int> absent() const {
        std::vector<int> ranks;
        for (int r = 0; r < static_cast<int>(given_.size()); ++r)
            if (!has(r)) ranks.push_back(r);
        return ranks;
    }

    /// The first rank that has come, if that is in another collective than `kind`; else -1. All that are here
    /// are in one.
    ///
    /// Cost: O(1), for each rank asks when it comes.
    int first_conflict(message_kind kind) const noexcept {
        return !empty() && of(first_) != kind ? first_ : -1;
    }

    /// The collective of the ranks that have come.
    message_kind kind() const noexcept { return empty() ? message_kind::barrier : of(first_); }

    HERRING_SETUP void add(int rank, message_kind kind, std::span<std::byte const> given) {
        contribution& c = given_[static_cast<std::size_t>(rank)];
        c.kind = kind;
        c.given.append(given);
        if (arrived_++ == 0 || rank < first_) first_ = rank;
    }

    /// The bytes of that rank; to be replaced, where the result has others.
    byte_buffer& given(int rank) noexcept { return given_[static_cast<std::size_t>(rank)].given; }

    /// Takes the body of `message_kind::collective_result`: of an all_gather or a split the sizes of all
    /// contributions, then their bytes.
    HERRING_SETUP byte_buffer take() {
        byte_buffer body;
        if (kind() != message_kind::barrier) {
            for (contribution const& c : given_) append<std::uint64_t>(body, c.given.size());
            for (contribution const& c : given_) body.append(c.given);
        }
        for (contribution& c : given_) c = {};
        arrived_ = 0;
        return body;
    }

  private:
    struct contribution {
        message_kind kind = message_kind::heartbeat; // none yet
        byte_buffer given{};
    };

    fixed_array<contribution> given_;
    std::size_t arrived_ = 0;
    int first_ = 0; // the lowest rank that has come
};

/// Reads the contributions of `ranks` from the body that `pending_collective::take` wrote. False: the bytes
/// are something else.
HERRING_SETUP inline bool unpack(std::span<std::byte const> body, std::size_t ranks, gather_result& all) {
    reader in{body};
    fixed_array<std::size_t> sizes(ranks);
    std::size_t total = 0;
    for (std::size_t& size : sizes) {
        size = in.number<std::uint64_t>();
        if (!in.ok || size > body.size() - total) return false;
        total += size;
    }
    if (total != in.rest.size()) return false;
    all = gather_result(std::move(sizes));
    for (std::size_t r = 0; r < ranks; ++r)
        if (std::string_view const theirs = in.text(all[r].size()); !theirs.empty())
            std::memcpy(all[r].data(), theirs.data(), theirs.size());
    return true;
}

} // namespace HERRING_NAMESPACE::detail::rendezvous

#endif // HERRING_CONTROL_RENDEZVOUS_PENDING_COLLECTIVE_HPP
