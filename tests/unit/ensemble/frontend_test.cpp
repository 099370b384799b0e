// herring: the frontend that programs have, over a stand-in for its engine.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/frontend.hpp"

#include "doctest/doctest.h"

#include <chrono>
#include <string>

namespace ensemble_frontend_test {

using namespace herring;
using namespace std::chrono_literals;
namespace ensembles = herring::detail::ensembles;

struct format {
    static constexpr bool dense = true;
    struct results {
        std::span<float> values;
    };
    static results results_in(std::span<std::byte>, std::size_t, std::size_t) noexcept { return {}; }
    static bool fold(std::span<std::span<std::byte const> const>, std::span<float const>, std::size_t,
                     results&) noexcept {
        return true;
    }
    static bool is_sound(results const&) noexcept { return true; }
    static ensembles::row_check check(std::span<std::byte const>, std::size_t) noexcept {
        return ensembles::row_check::good;
    }
};
struct core {
    using format = ensemble_frontend_test::format;
    struct settings {
        bool* destroyed;
        bool in_handler = false;
    };
    struct accepted {
        outcome refused = outcome::busy;
        ensembles::slot_index slot = 0;
        std::uint64_t id = 0;
    };
    struct record {
        outcome how = outcome::failed;
        std::uint64_t id = 3, cookie = 4;
        member_set contributors{};
        bool shared = false;
    } of;
    explicit core(settings s) : made_of(s) {}
    ~core() { *made_of.destroyed = true; }
    bool is_in_handler() const noexcept { return made_of.in_handler; }
    bool shut() noexcept { return true; }
    struct intent {
        bool is_async = false;
        std::uint64_t cookie = 0;
        bool expect = false;
        std::uint64_t id = 0;
    };
    accepted ask(std::span<std::byte const>, std::chrono::nanoseconds, ask_options const&,
                 intent const& what) {
        return what.is_async ? accepted{outcome::full, 0, 5} : accepted{};
    }
    bool next_done(ensembles::slot_index&) noexcept { return !done++; }
    record const& request(ensembles::slot_index) const noexcept { return of; }
    std::span<std::byte> result(ensembles::slot_index) noexcept { return {}; }
    std::size_t elements() const noexcept { return 0; }
    std::size_t most_members() const noexcept { return 0; }
    std::span<std::span<std::byte const> const> rows(ensembles::slot_index) const noexcept { return {}; }
    std::span<float const> row_weights(ensembles::slot_index) const noexcept { return {}; }
    outcome refuse(ensembles::slot_index, member_set const&) noexcept { return of.how; }
    bool release(ensembles::slot_index) noexcept { return false; }
    std::string address() const { return "[::1]:7001"; }
    settings made_of;
    int done = 0;
};
using frontend = ensembles::basic_frontend<float, core>;

TEST_CASE("ensemble frontend: refusals, tickets and the port") {
    bool destroyed = false;
    {
        frontend front({&destroyed});
        CHECK(front.ask({}, 1ms).outcome() == outcome::busy);
        auto const t = front.submit({}, 1ms, 4);
        CHECK(t.accepted());
        CHECK(t.id == 5);
        frontend::answer a;
        std::uint64_t cookie = 0;
        CHECK(front.next_done(a, cookie));
        CHECK(cookie == 4);
        CHECK(a.id() == 3);
        CHECK(!front.next_done(a, cookie));
        CHECK(front.port() == 7001);
        CHECK(!destroyed);
    }
    CHECK(destroyed);
}

TEST_CASE("ensemble frontend: destroyed in its own handler it says so, and stays") {
    bool destroyed = false;
    core* kept = nullptr;
    auto* const front = new frontend({&destroyed, true});
    kept = &front->core();
    try {
        delete front;
        CHECK(false);
    } catch (error const& e) {
        CHECK(e.code() == errc::bad_state);
    }
    CHECK(!destroyed);
    delete kept;
}

} // namespace ensemble_frontend_test
