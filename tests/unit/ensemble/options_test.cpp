// herring: options of frontends and members: what is taken, and the sentence for what is not.
// SPDX-License-Identifier: Apache-2.0
#include "herring/ensemble/options.hpp"

#include "doctest/doctest.h"

#include <chrono>
#include <string>

namespace ensemble_options_test {

using namespace herring;
using namespace std::chrono_literals;
namespace ensembles = herring::detail::ensembles;

frontend_options sound() {
    return {.listen = "127.0.0.1:0", .members = {"a", "b", "c"}, .elements = 10, .request_bytes = 64};
}
member_options sound_member() {
    return {.frontends = {"127.0.0.1:7001"}, .name = "a", .elements = 10, .request_bytes = 64};
}

template <class Options, class... K> std::string refusal(Options options, K... k) {
    try {
        ensembles::check_options(options, k...);
    } catch (error const& e) {
        CHECK(e.code() == errc::bad_argument);
        return e.what();
    }
    return "";
}
bool has(std::string const& text, char const* part) { return text.find(part) != std::string::npos; }

TEST_CASE("ensemble options: what is left out takes its default") {
    frontend_options o = sound();
    ensembles::check_options(o, 2);
    CHECK(o.k == 0);
    CHECK(o.credits == 64);
    CHECK(o.most_members == 64);
    member_options m = sound_member();
    ensembles::check_options(m);
    CHECK(m.concurrency == 1);
}

TEST_CASE("ensemble options: a frontend's slips") {
    auto const with = [](auto change, std::size_t k = 1) {
        frontend_options o = sound();
        change(o);
        return refusal(o, k);
    };
    CHECK(with([](frontend_options&) {}).empty());
    CHECK(has(with([](frontend_options& o) { o.listen = ""; }), "listen is left out"));
    CHECK(has(with([](frontend_options& o) { o.members = {}; }), "members is left out"));
    CHECK(has(with([](frontend_options& o) {
                  o.members = {"a", "b", "a"};
              }),
              "members names 'a' twice, as member 0 and as member 2"));
    CHECK(has(with([](frontend_options& o) { o.members = {"a", ""}; }), "a member's name is left out"));
    CHECK(has(with([](frontend_options& o) { o.members = {"a b"}; }), "is 'a b'"));
    CHECK(has(with([](frontend_options& o) { o.members = {std::string(65, 'x')}; }), "has 65 characters"));
    CHECK(has(with([](frontend_options& o) { o.elements = 0; }), "elements is left out"));
    CHECK(has(with([](frontend_options& o) { o.in_flight = 0; }), "in_flight is 0"));
    CHECK(has(with([](frontend_options& o) { o.credits = 65; }), "credits is 65; it has to be from 1 to 64"));
    CHECK(has(with([](frontend_options& o) { o.most_members = 2; }), "most_members is 2"));
    CHECK(has(with([](frontend_options& o) { o.heartbeat = -1ms; }), "heartbeat is -1000000 ns"));
    CHECK(has(with([](frontend_options& o) { o.peer_timeout = std::chrono::hours(25); }), "more than a day"));
    CHECK(has(with([](frontend_options& o) { o.heartbeat = 3s; }), "at least two heartbeats"));
    CHECK(has(with([](frontend_options& o) { o.k = 4; }), "k is 4, and the roster has 3 members"));
    CHECK(has(with([](frontend_options&) {}, 5), "k is 5"));
}

TEST_CASE("ensemble options: a member's slips") {
    auto const with = [](auto change) {
        member_options o = sound_member();
        change(o);
        return refusal(o);
    };
    CHECK(with([](member_options&) {}).empty());
    CHECK(has(with([](member_options& o) { o.frontends = {}; }), "frontends is left out"));
    CHECK(has(with([](member_options& o) { o.frontends = {"h:1", "h:1"}; }), "names 'h:1' twice"));
    CHECK(has(with([](member_options& o) { o.name = ""; }), "name is left out"));
    CHECK(has(with([](member_options& o) { o.elements = 0; }), "elements is left out"));
    CHECK(has(with([](member_options& o) { o.concurrency = 0; }), "concurrency is 0"));
    CHECK(has(with([](member_options& o) { o.replica = 16; }), "replica is 16"));
}

TEST_CASE("ensemble options: of one request") {
    float const w[] = {1, 2, 3};
    ask_options const o{.k = 2, .among = member_set{0, 2}, .weights = w};
    CHECK(o.among->count() == 2);
    CHECK(o.weights.size() == 3);
}

} // namespace ensemble_options_test
