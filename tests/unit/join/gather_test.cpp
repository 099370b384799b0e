// herring: tests of join/gather.hpp: ranks that join through a gather, and gathers that do not work.
// SPDX-License-Identifier: Apache-2.0
#include "herring/join/gather.hpp"

#include "doctest/doctest.h"
#include "free_port.hpp"
#include "herring/control/all_or_none.hpp"
#include "herring/join/gather_exchange.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

using herring::errc;
using herring::failure;
using herring::world;
using std::chrono::milliseconds;

namespace {

using bytes = std::vector<std::byte>;

/// A store in memory, as a Redis is one.
class store {
  public:
    explicit store(std::chrono::seconds patience = std::chrono::seconds(20)) : patience_(patience) {}

    void set(std::string const& key, bytes value) {
        std::lock_guard const hold(lock_);
        values_[key] = std::move(value);
        changed_.notify_all();
    }
    bytes get(std::string const& key) {
        std::unique_lock hold(lock_);
        if (!changed_.wait_for(hold, patience_, [&] { return values_.count(key) != 0; }))
            throw std::runtime_error("nobody has set " + key);
        return values_[key];
    }
    /// True if any value has `words`.
    bool has(std::string_view words) {
        std::lock_guard const hold(lock_);
        for (auto const& [key, value] : values_)
            if (std::string_view(reinterpret_cast<char const*>(value.data()), value.size()).find(words) !=
                std::string_view::npos)
                return true;
        return false;
    }

  private:
    std::chrono::seconds patience_;
    std::mutex lock_;
    std::condition_variable changed_;
    std::map<std::string, bytes> values_;
};

/// A gather of rank `rank` over a store.
struct gather {
    store& in;
    int rank, size;
    std::string prefix = "job/";
    /// Changes what gather returns: call, replies.
    std::function<void(int, std::vector<bytes>&)> spoil{};
    int calls = 0;

    std::vector<bytes> operator()(std::span<std::byte const> mine) {
        std::string const call = prefix + std::to_string(++calls) + "/";
        in.set(call + std::to_string(rank), bytes(mine.begin(), mine.end()));
        std::vector<bytes> all;
        for (int r = 0; r < size; ++r) all.push_back(in.get(call + std::to_string(r)));
        if (spoil) spoil(calls, all);
        return all;
    }
};

/// How `join` ends on each of `size` threads; `each(rank)` returns what it throws.
std::vector<failure> on_threads(int size, std::function<void(int)> const& each) {
    std::vector<failure> ends(static_cast<std::size_t>(size));
    std::vector<std::thread> threads;
    for (int r = 0; r < size; ++r)
        threads.emplace_back([&, r] {
            ends[static_cast<std::size_t>(r)] = herring::detail::failure_of(r, "test", [&] { each(r); });
        });
    for (std::thread& each_of : threads) each_of.join();
    return ends;
}

bool says(failure const& why, std::string_view words) {
    return std::string_view(why.text).find(words) != std::string_view::npos;
}

herring::join_options within(milliseconds timeout) {
    herring::join_options made;
    made.timeout = timeout;
    return made;
}
herring::join_options with_secret(char digit, milliseconds timeout = milliseconds(20'000)) {
    herring::join_options made = within(timeout);
    made.secret = std::string(64, digit);
    return made;
}

} // namespace

TEST_CASE("join by gather: ranks join, gather is called twice, and no secret but a drawn one travels") {
    store board;
    std::atomic<int> calls{0};
    auto const ends = on_threads(3, [&](int rank) {
        gather by{board, rank, 3};
        world w = herring::join(by, rank, 3);
        calls += by.calls;
        if (w.rank() != rank || w.size() != 3 || !w.has_secret() || w.nodes() != 1)
            throw std::runtime_error("another world");
        auto const all = w.all_gather(std::as_bytes(std::span(&rank, 1)));
        if (all.size() != 3) throw std::runtime_error("another all_gather");
    });
    for (failure const& end : ends) CHECK(std::string(end.text) == "");
    CHECK(calls == 6);
    store kept;
    auto const with = on_threads(2, [&](int rank) {
        world w = herring::join(gather{kept, rank, 2}, rank, 2, with_secret('7'));
        w.barrier();
    });
    for (failure const& end : with) CHECK(std::string(end.text) == "");
    CHECK_FALSE(kept.has(std::string(64, '7')));
}

TEST_CASE("join by gather: what gather returns may be strings, a gather_result, or of a plain function") {
    auto const alone = [](auto&& each) {
        world const w = herring::join(each, 0, 1);
        CHECK(w.size() == 1);
    };
    alone([](std::span<std::byte const> mine) {
        return std::vector<std::string>{{reinterpret_cast<char const*>(mine.data()), mine.size()}};
    });
    alone([](std::span<std::byte const> mine) { return std::vector<std::span<std::byte const>>{mine}; });
    alone([](std::span<std::byte const> mine) {
        herring::detail::fixed_array<std::size_t> sizes(1);
        sizes[0] = mine.size();
        herring::gather_result all(std::move(sizes));
        std::copy(mine.begin(), mine.end(), all[0].begin());
        return all;
    });
    alone(+[](std::span<std::byte const> mine) {
        auto const* const data = reinterpret_cast<unsigned char const*>(mine.data());
        return std::vector<std::vector<unsigned char>>{{data, data + mine.size()}};
    });
    bytes kept;
    std::vector<std::span<std::byte const>> seen;
    alone([&](std::span<std::byte const> mine) -> std::vector<std::span<std::byte const>> const& {
        kept.assign(mine.begin(), mine.end());
        seen.assign(1, kept);
        return seen;
    });
}

TEST_CASE("join by gather: a rank outside size is an error that the other ranks are told") {
    store board;
    auto const ends = on_threads(3, [&](int thread) {
        int const rank = thread == 2 ? 5 : thread;
        gather by{board, rank, 3};
        for (char const* const call : {"job/1/2", "job/2/2"})
            by.in.set(call, {std::byte{0}}); // nobody else is rank 2
        herring::join(by, rank, 3);
    });
    CHECK(ends[2].what == errc::bad_argument);
    CHECK(says(ends[2], "rank 5 of 3"));
    CHECK(says(ends[2], "ranks go from 0 to 2"));
    CHECK(ends[0].what == errc::mismatch);
    CHECK(ends[1].what == errc::mismatch);
    for (std::pair<int, int> const& of : {std::pair{-1, 2}, {0, 0}, {0, -3}, {2, 2}}) {
        failure const why = herring::detail::failure_of(0, "test", [&] {
            herring::join([](auto mine) { return std::vector<decltype(mine)>{mine}; }, of.first, of.second);
        });
        CHECK(why.what == errc::bad_argument);
        CHECK(says(why, "is out of range"));
    }
}

TEST_CASE("join by gather: a setting that is wrong on one rank is an error on every rank") {
    store board;
    auto const ends = on_threads(3, [&](int rank) {
        herring::join_options options;
        if (rank == 1) options.interface = "no-such-interface";
        herring::join(gather{board, rank, 3}, rank, 3, options);
    });
    CHECK(ends[1].what == errc::unreachable);
    for (int const r : {0, 2}) {
        CHECK(ends[static_cast<std::size_t>(r)].what == errc::peer_failed);
        CHECK(ends[static_cast<std::size_t>(r)].peer == 1);
    }
}

TEST_CASE("join by gather: replies that are wrong on one rank end the join on every rank") {
    struct {
        char const* words;
        std::function<void(std::vector<bytes>&)> spoil;
    } const wrong[] = {
        {"the bytes of 2 ranks in a world of 3", [](auto& all) { all.pop_back(); }},
        {"the bytes of 4 ranks in a world of 3", [](auto& all) { all.push_back(all[0]); }},
        {"no bytes of rank 0 in call 1", [](auto& all) { all[0].clear(); }},
        {"cut short", [](auto& all) { all[0].resize(all[0].size() / 2); }},
        {"of rank 1 in place of rank 0's", [](auto& all) { std::swap(all[0], all[1]); }},
        {"other bytes of this rank than it gave", [](auto& all) { all[2] = all[1]; }},
    };
    for (auto const& each : wrong) {
        CAPTURE(each.words);
        store board(std::chrono::seconds(5));
        auto const ends = on_threads(3, [&](int rank) {
            gather by{board, rank, 3};
            if (rank == 2)
                by.spoil = [&](int call, auto& all) {
                    if (call == 1) each.spoil(all);
                };
            herring::join(by, rank, 3);
        });
        CHECK(says(ends[2], each.words));
        for (int const r : {0, 1}) {
            CHECK(ends[static_cast<std::size_t>(r)].what == errc::peer_failed);
            CHECK(ends[static_cast<std::size_t>(r)].peer == 2);
            CHECK(says(ends[static_cast<std::size_t>(r)], each.words));
        }
    }
}

TEST_CASE("join by gather: a rank that is given bytes of an earlier job is found by every rank") {
    store board;
    bytes old;
    {
        auto const ends = on_threads(2, [&](int rank) {
            gather by{board, rank, 2, "yesterday/"};
            world w = herring::join(by, rank, 2);
            w.barrier();
        });
        CHECK(ends[0].what == errc::ok);
        old = board.get("yesterday/1/0");
    }
    for (bool const in_both : {false, true}) { // calls
        CAPTURE(in_both);
        store fresh;
        auto const ends = on_threads(2, [&](int rank) {
            gather by{fresh, rank, 2};
            if (rank == 1)
                by.spoil = [&](int call, auto& all) {
                    if (call == 1) all[0] = old;
                    if (call == 2 && in_both) all[0] = board.get("yesterday/2/0");
                };
            herring::join(by, rank, 2, within(milliseconds(5'000)));
        });
        for (failure const& end : ends) {
            CHECK(end.what == errc::mismatch);
            CHECK(says(end, "has given it other bytes than this rank"));
            CHECK(says(end, "a fresh folder or prefix"));
        }
    }
}

TEST_CASE("join by gather: an address of another job leads into no other world, under one secret too") {
    store first, second;
    auto const ends = on_threads(4, [&](int thread) {
        int const rank = thread % 2;
        bool const other = thread >= 2; // its rank 1 ends before it connects
        gather by{other ? second : first, rank, 2};
        if (rank == 1)
            by.spoil = [&](int call, auto& all) {
                if (call != 2) return;
                bytes const given = second.get("job/2/0");
                if (other) throw std::runtime_error("gone");
                // The front and the digest of this job, the address of the other one.
                auto const front = herring::detail::gather_front{}.write().size() + 1 + 32;
                all[0].resize(front);
                for (std::byte const b : std::span(given).subspan(front)) all[0].push_back(b);
            };
        herring::join(by, rank, 2, with_secret('9', milliseconds(4'000)));
    });
    CHECK(ends[1].what == errc::mismatch);
    CHECK(says(ends[1], "its secret is not rank 0's"));
    for (std::size_t const rank_0 : {0u, 2u}) { // nobody has become their rank 1
        CHECK(ends[rank_0].what == errc::timeout);
        CHECK(ends[rank_0].peer == 1);
    }
}

TEST_CASE("join by gather: a gather that throws ends the join on its rank, and is not called again") {
    store board;
    std::atomic<int> calls{0};
    auto const ends = on_threads(2, [&](int rank) {
        gather by{board, rank, 2};
        by.spoil = [&](int, auto&) {
            if (rank == 0) return;
            ++calls;
            throw std::runtime_error("the store is gone");
        };
        if (rank == 0) // its gather's deadline
            by.spoil = [&](int call, auto&) {
                if (call == 2) throw herring::error(errc::timeout, -1, 1, "store", "rank 1 has set nothing");
            };
        if (rank == 1) board.set("job/2/1", {});
        herring::join(by, rank, 2);
    });
    CHECK(calls == 1);
    CHECK(ends[1].what == errc::unreachable);
    CHECK(says(ends[1], "gather threw in call 1 of 2: the store is gone"));
    CHECK(ends[0].what == errc::timeout);
    CHECK(ends[0].peer == 1);
    CHECK(ends[0].reporter == 0);
}

TEST_CASE(
    "join by gather: what rank 0 listens on is closed where its gather throws what is no std::exception") {
    auto const open_files = [] {
        std::filesystem::directory_iterator const all("/proc/self/fd");
        return std::distance(begin(all), end(all));
    };
    auto const before = open_files();
    store board;
    std::atomic<int> thrown{0};
    on_threads(2, [&](int rank) {
        gather by{board, rank, 2};
        by.spoil = [&](int call, auto&) {
            if (call == 2) throw rank;
        };
        try {
            herring::join(by, rank, 2);
        } catch (int) {
            ++thrown;
        }
    });
    CHECK(thrown == 2);
    CHECK(open_files() == before);
}

TEST_CASE("join by gather: ranks of different sizes, and two processes of one rank") {
    store sizes;
    auto ends = on_threads(2, [&](int rank) {
        herring::join(gather{sizes, rank, 2}, rank, rank == 0 ? 2 : 3);
    });
    CHECK(ends[0].what == errc::mismatch);
    CHECK(says(ends[0], "it joins a world of 3 ranks, this rank one of 2"));
    CHECK(ends[1].what == errc::bad_argument);
    CHECK(says(ends[1], "the bytes of 2 ranks in a world of 3"));

    store ranks;
    std::atomic<int> writers{0};
    ends = on_threads(2, [&](int) { // both are rank 1, and rank 0 is given by hand
        gather by{ranks, 1, 2};
        by.spoil = [&](int call, auto& all) {
            if (call == 1) { // until both have written
                ++writers;
                while (writers < 2) std::this_thread::yield();
                all[1] = ranks.get("job/1/1");
            }
        };
        ranks.set("job/1/0", {std::byte{0}});
        ranks.set("job/2/0", {std::byte{0}});
        herring::join(by, 1, 2);
    });
    int told = 0;
    for (failure const& end : ends) {
        CHECK(end.what == errc::mismatch);
        told += says(end, "another process says that it is rank 1");
    }
    CHECK(told == 1); // the one whose bytes were overwritten; the other sees those of rank 0
}

TEST_CASE("join by gather: secrets on some ranks only; require_secret wants one that gather does not carry") {
    store board;
    auto ends = on_threads(2, [&](int rank) {
        herring::join(gather{board, rank, 2}, rank, 2,
                      rank == 0 ? with_secret('1') : within(milliseconds(20'000)));
    });
    CHECK(says(ends[0], "it has no secret, this rank has one"));
    CHECK(says(ends[1], "it has a secret, this rank has none"));
    CHECK(says(ends[1], "then gather hands one out"));
    store other;
    ends = on_threads(2, [&](int rank) {
        herring::join_options options;
        options.require_secret = true;
        herring::join(gather{other, rank, 2}, rank, 2, options);
    });
    for (failure const& end : ends) {
        CHECK(end.what == errc::bad_argument);
        CHECK(says(end, "require_secret is set"));
    }
}

TEST_CASE("join by gather: an address that is given serves one world, and a second one is told so") {
    std::string const address = free_address();
    store board;
    std::atomic<int> joined{0};
    auto const ends = on_threads(2, [&](int rank) {
        herring::join_options options;
        if (rank == 0) options.address = address; // on rank 0 alone
        world first = herring::join(gather{board, rank, 2, "first/"}, rank, 2, options);
        ++joined;
        first.barrier();
        herring::join(gather{board, rank, 2, "second/"}, rank, 2, options);
    });
    CHECK(joined == 2);
    CHECK(ends[0].what == errc::no_resources);
    CHECK(says(ends[0], "joins several worlds leaves HERRING_ADDR out"));
    CHECK(ends[1].what == errc::peer_failed);
    CHECK(ends[1].peer == 0);
}

TEST_CASE("join by gather: a rank that ends behind its last call is named at the deadline") {
    store board;
    auto const ends = on_threads(3, [&](int rank) {
        gather by{board, rank, 3};
        by.spoil = [&](int call, auto&) {
            if (call == 2 && rank == 1) throw std::runtime_error("gone");
        };
        herring::join(by, rank, 3, within(milliseconds(1'500)));
    });
    CHECK(says(ends[1], "gone"));
    for (int const r : {0, 2}) {
        CHECK(ends[static_cast<std::size_t>(r)].what == errc::timeout);
        CHECK(ends[static_cast<std::size_t>(r)].peer == 1);
    }
}
