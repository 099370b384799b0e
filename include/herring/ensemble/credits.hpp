// herring: the requests that a peer was sent and has not answered, whatever became of them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_CREDITS_HPP
#define HERRING_ENSEMBLE_CREDITS_HPP

#include "herring/base/config.hpp"
#include "herring/ensemble/hedging.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace HERRING_NAMESPACE::detail::ensembles {

/// A request that one peer has not answered. It outlives the request: a late row gives the credit back.
struct unanswered {
    std::uint64_t id = 0;
    std::int64_t asked = 0;
    /// When the request was decided without this peer's member; never_ns: it was not.
    std::int64_t frozen = never_ns;
    /// Up to when its row is in time, though it is late for the answer; never_ns: that has been judged.
    std::int64_t in_time = never_ns;
};

/// The credits of one peer: it is sent a request only while fewer than `size()` are unanswered.
///
/// Cost:    a place is looked for from id mod size on. With as many credits as requests in flight it is found at once;
///          what was never asked is looked for in all places.
class credits {
  public:
    explicit credits(std::size_t size) : ids_(size, free), asks_(size) {}

    std::size_t size() const noexcept { return ids_.size(); }
    std::size_t used() const noexcept { return used_; }
    bool left() const noexcept { return used_ < ids_.size(); }

    /// Requires left(), and an id that is not in it.
    void take(std::uint64_t id, std::int64_t now) noexcept {
        std::size_t at = near(id);
        while (ids_[at] != free) at = after(at);
        ids_[at] = id;
        asks_[at] = {.id = id, .asked = now};
        ++used_;
    }
    /// nullptr: the peer does not owe it.
    unanswered* find(std::uint64_t id) noexcept {
        if (used_ == 0 || id == free) return nullptr;
        std::size_t at = near(id);
        for (std::size_t seen = 0; seen < ids_.size(); ++seen, at = after(at))
            if (ids_[at] == id) return &asks_[at];
        return nullptr;
    }
    void give_back(unanswered const& ask) noexcept {
        ids_[static_cast<std::size_t>(&ask - asks_.data())] = free;
        --used_;
    }
    template <class Visit> void for_each(Visit&& f) const {
        for (std::size_t i = 0; i < ids_.size(); ++i)
            if (ids_[i] != free) f(asks_[i]);
    }
    void clear() noexcept {
        for (std::uint64_t& id : ids_) id = free;
        used_ = 0;
    }

  private:
    static constexpr std::uint64_t free = 0; // no request's id

    std::size_t near(std::uint64_t id) const noexcept {
        return static_cast<std::uint32_t>(id) % static_cast<std::uint32_t>(ids_.size());
    }
    std::size_t after(std::size_t at) const noexcept { return at + 1 < ids_.size() ? at + 1 : 0; }

    std::vector<std::uint64_t> ids_; // beside asks_, so that a search reads little
    std::vector<unanswered> asks_;
    std::size_t used_ = 0;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_CREDITS_HPP
