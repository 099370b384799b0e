// herring: what the suites stand on: ranks as threads or processes, and findings instead of assertions.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_CONFORMANCE_SUITE_HPP
#define HERRING_TESTS_CONFORMANCE_SUITE_HPP

#include "conformance/seeds.hpp"

#include "herring/error.hpp"
#include "herring/launch.hpp"
#include "herring/world.hpp"
#include "sanitizers.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef HERRING_TEST_SCALE
#define HERRING_TEST_SCALE                                                                                   \
    (HERRING_TEST_SLOW ? 8 : 2 * HERRING_TEST_PART - 1) // repetitions are divided by it
#endif

/// Suites that a model of a policy axis must pass, one a concept. They use no test framework: what is wrong comes back
/// as a list of findings, which is empty for a sound model.
///
///     for (auto const& f : herring::conformance::transport_suite<my_transport>()) std::puts(text(f).c_str());
namespace herring::conformance {

/// One thing that is not as the concept says.
struct finding {
    std::string test; ///< the suite's case
    int rank = -1;    ///< that saw it; −1: none in particular
    std::string what;
};
using findings = std::vector<finding>;

inline std::string text(finding const& f) {
    return f.test + (f.rank >= 0 ? ": rank " + std::to_string(f.rank) : std::string()) + ": " + f.what;
}
inline std::string text(findings const& all) {
    std::string out;
    for (finding const& f : all) out += text(f) + "\n";
    return out;
}

enum class ranks_as { threads, processes };

struct settings {
    ranks_as start = ranks_as::threads;
    /// What has not happened by then never will. Only a defect waits for it.
    std::chrono::milliseconds patience{20'000};
    std::string_view only{}; ///< one case by its name; empty: all
};

/// Repetitions, fewer where the program is slowed down by a sanitizer.
constexpr int times(int count) noexcept {
    return count / HERRING_TEST_SCALE > 0 ? count / HERRING_TEST_SCALE : 1;
}

/// Bytes that depend on a seed, and a check of them: a block of odd length in words, again and again, which costs little where
/// nothing is optimised, and does not look the same from one chunk or frame to another.
class pattern {
  public:
    explicit pattern(std::uint64_t seed) noexcept
        : state_(seed * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du) {}

    void fill(std::span<std::byte> memory) noexcept {
        std::byte* const to = memory.data();
        std::size_t const size = memory.size();
        prepare(size);
        for (std::size_t i = 0; i < size; i += sizeof block_)
            std::memcpy(to + i, block_, std::min(sizeof block_, size - i));
    }
    /// Where it differs first; −1: nowhere.
    std::ptrdiff_t difference(std::span<std::byte const> memory) noexcept {
        std::byte const* const from = memory.data();
        std::size_t const size = memory.size();
        prepare(size);
        for (std::size_t i = 0; i < size; i += sizeof block_)
            if (std::memcmp(from + i, block_, std::min(sizeof block_, size - i)) != 0) return first(from, i);
        return -1;
    }

  private:
    void prepare(std::size_t bytes) noexcept {
        std::uint64_t state = state_;
        std::uint64_t* to = block_;
        std::uint64_t* const end = to + std::min(words, (bytes + 7) / 8);
        while (to != end) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *to++ = state;
        }
    }
    std::ptrdiff_t first(std::byte const* from, std::size_t i) const noexcept {
        std::byte const* const due = reinterpret_cast<std::byte const*>(block_);
        std::size_t k = 0;
        while (from[i + k] == due[k]) ++k;
        return static_cast<std::ptrdiff_t>(i + k);
    }

    static constexpr std::size_t words = 509; // a prime: 4072 bytes
    std::uint64_t state_;
    std::uint64_t block_[words];
};

/// A small generator, the same everywhere.
class dice {
  public:
    explicit dice(std::uint64_t seed) noexcept : state_(seed * 0x9e3779b97f4a7c15u | 1) {}
    /// 0 … below − 1
    std::size_t operator()(std::size_t below) noexcept {
        state_ = state_ * 6364136223846793005u + 1442695040888963407u;
        return static_cast<std::size_t>((state_ >> 33) % below);
    }
    template <class Range> void shuffle(Range& range) noexcept {
        for (std::size_t i = range.size(); i > 1; --i) std::swap(range[i - 1], range[(*this)(i)]);
    }

  private:
    std::uint64_t state_;
};

/// Between two looks at what another thread or process has to do: it begins to sleep where that takes long, for ranks are more than
/// cores.
class idle_rounds {
  public:
    void pause() noexcept {
        if (++rounds_ < 200)
            ::sched_yield();
        else
            ::usleep(50);
    }
    void progress() noexcept { rounds_ = 0; }

  private:
    int rounds_ = 0;
};

namespace detail {

/// What all ranks of a case see, threads or processes: flags, and what each of them found.
struct board {
    static constexpr int most_ranks = 16;
    static constexpr std::size_t text_bytes = 4096;
    struct place {
        std::atomic<std::uint32_t> length{0};
        char text[text_bytes] = {}; // lines
    };
    std::atomic<std::uint32_t> flags[64] = {};
    std::atomic<std::uint64_t> seed{0};
    place places[most_ranks];

    static board* make() {
        void* const at =
            ::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (at == MAP_FAILED)
            throw error(errc::no_resources, -1, -1, "conformance", "no memory for the suite's board");
        return ::new (at) board;
    }
    void destroy() noexcept { ::munmap(this, sizeof(board)); }
};

} // namespace detail

/// What a case gets: its world, and means to meet the other ranks and to tell what it finds.
class stage {
  public:
    stage(world& w, detail::board& b, std::chrono::milliseconds patience) noexcept
        : ranks(w), board_(b), patience_(patience), deadline_(clock::now() + patience) {}

    world& ranks;
    int rank() const noexcept { return ranks.rank(); }
    int size() const noexcept { return ranks.size(); }

    void find(std::string const& what) noexcept {
        detail::board::place& mine = board_.places[ranks.rank()];
        std::uint32_t const at = mine.length.load();
        if (at + what.size() + 1 >= detail::board::text_bytes) return; // the first ones tell enough
        std::memcpy(mine.text + at, what.data(), what.size());
        mine.text[at + what.size()] = '\n';
        mine.length.store(at + static_cast<std::uint32_t>(what.size()) + 1);
    }
    bool expect(bool holds, std::string const& what) noexcept {
        if (!holds) find(what);
        return holds;
    }

    /// What repeats this run; told if something is found.
    void seed(std::uint64_t used) noexcept { board_.seed.store(used); }

    std::chrono::milliseconds patience() const noexcept { return patience_; }
    time_point deadline() const noexcept { return deadline_; }
    bool late() const noexcept { return clock::now() > deadline_; }
    /// From here on, patience starts anew.
    void rest() noexcept { deadline_ = clock::now() + patience_; }

    std::atomic<std::uint32_t>& flag(int i) noexcept { return board_.flags[i]; }
    /// Waits until the flag has at least this value; does `meanwhile` in between. False: patience has ended.
    template <class Meanwhile> bool await(int i, std::uint32_t value, Meanwhile&& meanwhile) noexcept {
        for (idle_rounds between; flag(i).load() < value; between.pause()) {
            meanwhile();
            if (late()) return false;
        }
        return true;
    }
    bool await(int i, std::uint32_t value) noexcept {
        return await(i, value, [] {});
    }
    /// All ranks meet; `meanwhile` goes on. Flag i must not be used for anything else.
    template <class Meanwhile> bool meet(int i, Meanwhile&& meanwhile) noexcept {
        std::uint32_t const all = static_cast<std::uint32_t>(size());
        std::uint32_t const mine = flag(i).fetch_add(1);
        return await(i, (mine / all + 1) * all, meanwhile);
    }
    bool meet(int i) noexcept {
        return meet(i, [] {});
    }

  private:
    detail::board& board_;
    std::chrono::milliseconds patience_;
    time_point deadline_;
};

/// Runs one case in `ranks` ranks; `nodes` as in launch_options, or "rack/node".
template <class Function>
findings run_case(std::string const& name, int ranks, std::vector<std::string> nodes, settings const& how,
                  Function&& function) {
    findings found;
    if (!how.only.empty() && how.only != name) return found;
    detail::board* const board = detail::board::make();
    launch_options options;
    for (std::string const& node : nodes) {
        options.roles.push_back(node.ends_with("server") ? role::server : role::worker);
        if (std::size_t const end = node.find('/'); end != node.npos)
            options.racks.push_back(node.substr(0, end));
    }
    options.nodes = std::move(nodes);
    auto const body = [&](world& w) {
        stage on(w, *board, how.patience);
        try {
            function(on);
        } catch (std::exception const& why) {
            on.find(std::string("exception: ") + why.what());
            w.fail(failure::make(errc::peer_failed, w.rank(), -1, "conformance", why.what()));
        }
        return 0;
    };
    int const status =
        how.start == ranks_as::threads ? launch_threads(ranks, body, options) : launch(ranks, body, options);
    for (int r = 0; r < ranks; ++r) {
        detail::board::place const& place = board->places[r];
        std::string_view lines(place.text, place.length.load());
        while (!lines.empty()) {
            std::size_t const end = lines.find('\n');
            found.push_back({name, r, std::string(lines.substr(0, end))});
            lines.remove_prefix(end + 1);
        }
    }
    if (status != 0) found.push_back({name, -1, "a rank ended with status " + std::to_string(status)});
    if (std::uint64_t const seed = board->seed.load(); !found.empty() && seed != 0)
        found.push_back({name, -1, "again: " + replay(seed)});
    board->destroy();
    return found;
}

inline void append(findings& to, findings const& more) { to.insert(to.end(), more.begin(), more.end()); }

} // namespace herring::conformance

#endif // HERRING_TESTS_CONFORMANCE_SUITE_HPP
