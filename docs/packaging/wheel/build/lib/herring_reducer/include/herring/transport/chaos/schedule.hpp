// herring: the schedule of transport::chaos: a seed that all ranks share, and the faults drawn from it.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TRANSPORT_CHAOS_SCHEDULE_HPP
#define HERRING_TRANSPORT_CHAOS_SCHEDULE_HPP

#include "herring/base/codec.hpp"
#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/gather_result.hpp"
#include "herring/control/world.hpp"
#include "herring/join/environment.hpp"
#include "herring/machine/identity.hpp"
#include "herring/transport/chaos/tuning.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// Draws the same numbers from the same seed on every machine.
///
/// Source: Steele, Lea, Flood, OOPSLA'14 (SplitMix64).
class draws {
  public:
    explicit draws(std::uint64_t seed = 0) noexcept : state_(seed) {}
    std::uint64_t next() noexcept { return mixed(state_ += 0x9e3779b97f4a7c15u); }
    /// Returns a number from 0 to below − 1.
    std::uint64_t operator()(std::uint64_t below) noexcept { return next() % below; }
    bool chance(std::uint32_t per_1000) noexcept { return per_1000 > 0 && next() % 1000 < per_1000; }

    static constexpr std::uint64_t mixed(std::uint64_t z) noexcept {
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        return z ^ (z >> 31);
    }

  private:
    std::uint64_t state_;
};

/// An append buffer that can be put into a random order.
template <class Value> class shuffle_buffer : public append_buffer<Value> {
  public:
    using append_buffer<Value>::append_buffer;
    std::size_t size() const noexcept { return this->size_; }
    bool full() const noexcept { return this->size_ == this->room_.size(); }
    Value& operator[](std::size_t i) noexcept { return this->room_[i]; }
    /// Keeps the values for which `keep` returns true, in their order.
    template <class Keep> void keep_if(Keep&& keep) noexcept {
        std::size_t kept = 0;
        for (std::size_t i = 0; i < this->size_; ++i)
            if (keep(this->room_[i])) this->room_[kept++] = this->room_[i];
        this->size_ = kept;
    }
    void shuffle(draws& random) noexcept {
        for (std::size_t i = this->size_; i > 1; --i) std::swap(this->room_[i - 1], this->room_[random(i)]);
    }
};

/// Agrees on one seed, and draws the faults from it, the same on every rank.
///
/// Blocks: in the constructor, which is collective.
/// Errors: `bad_argument` when HERRING_CHAOS_SEED is not a number.
class chaos_schedule {
  public:
    static constexpr std::uint64_t never = ~std::uint64_t{0};

    /// `asked`: the seed that the program gives, or 0.
    HERRING_SETUP chaos_schedule(world& ranks, transport::chaos_tuning const& tuning, std::uint64_t asked,
                                 std::chrono::milliseconds timeout) {
        std::uint64_t mine = asked != 0 ? asked : tuning.seed;
        if (mine == 0) mine = seed_of_environment(ranks.rank());
        auto const all = ranks.all_gather(std::as_bytes(std::span(&mine, 1)), timeout);
        if (!wire::read_value(std::as_const(all)[0], seed))
            throw error(errc::mismatch, ranks.rank(), 0, "chaos",
                        "it is in another collective; let every rank make the same calls in the same order");
        draws common(seed);
        int const size = ranks.size();
        int const victim = draw_rank(common, size);
        int const a = draw_rank(common, size);
        int const b = (a + 1 + draw_rank(common, size - 1)) % size;
        when_ = common(std::uint64_t{tuning.after} + 1);
        bool const drawn = tuning.stop == transport::chaos_tuning::drawn;
        if ((drawn ? victim : tuning.stop) == ranks.rank()) stops = when_;
        cut_ = tuning.cut.a == transport::chaos_tuning::drawn ? transport::chaos_link{a, b} : tuning.cut;
    }

    std::uint64_t seed = 0;
    std::uint64_t stops = never; ///< sends after which this rank falls silent
    /// Returns the number of sends after which the link of two ranks is cut.
    std::uint64_t cuts(int rank, int peer) const noexcept {
        bool const is_cut = (cut_.a == rank && cut_.b == peer) || (cut_.b == rank && cut_.a == peer);
        return is_cut ? when_ : never;
    }

  private:
    static int draw_rank(draws& from, int below) noexcept {
        return static_cast<int>(from(static_cast<std::uint64_t>(below)));
    }
    HERRING_SETUP static std::uint64_t seed_of_environment(int rank) {
        constexpr long long most = 999'999'999'999'999'999;
        char const* const text = std::getenv("HERRING_CHAOS_SEED");
        // Short, because a person types it in again.
        if (text == nullptr || text[0] == 0) return random_bits() % 999'999'999 + 1;
        long long const given = number_in(text, 1, most);
        if (given < 0)
            throw error(errc::bad_argument, rank, -1, "chaos",
                        {"HERRING_CHAOS_SEED is '", text, "', which is not a number from 1 to ", most});
        return static_cast<std::uint64_t>(given);
    }

    std::uint64_t when_ = never;
    transport::chaos_link cut_{};
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_TRANSPORT_CHAOS_SCHEDULE_HPP
