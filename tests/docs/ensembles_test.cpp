// herring: the code of docs/ensembles.md, at work: a frontend and three members, each in a thread.
// SPDX-License-Identifier: Apache-2.0
//
// What stands between [snippet] and [end] is shown there; tests/docs/check_snippets.sh compares.
#include "doctest/doctest.h"

// [snippet frontend]
#include <herring/ensemble.hpp>
#include <herring/ensemble/combine.hpp>
#include <herring/ensemble/quorum.hpp>

#include <chrono>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

using namespace std::chrono_literals;

using voters = herring::ensemble<float, herring::combine::mean<herring::space::probability>,
                                 herring::quorum::at_least<2>>;

/// Asks once, and prints the probability of each of ten classes.
bool ask(voters::frontend& front, std::span<std::byte const> image, std::chrono::milliseconds within) {
    voters::answer const answer = front.ask(image, within);
    std::printf("%s, by %zu members:", herring::to_string(answer.outcome()), answer.contributors().count());
    for (float const probability : answer.values()) std::printf(" %.2f", static_cast<double>(probability));
    std::printf("\n");
    return !answer.values().empty();
}

herring::frontend_options options(std::string const& address) { // "127.0.0.1:7001"
    return {.listen = address, .members = {"a", "b", "c"}, .elements = 10, .request_bytes = 256};
}
// [end]

// [snippet member]
/// Serves one frontend, or several, until it is told to stop.
void serve(voters::member& me) {
    while (auto job = me.next()) {
        for (std::size_t i = 0; i < job.row().size(); ++i) // the logits of your model
            job.row()[i] = std::to_integer<int>(job.input()[i]) == 1 ? 2.0f : 0.0f;
        job.send();
    }
}

herring::member_options as(std::string const& name, std::string const& frontend) { // "frontend:7001"
    return {.frontends = {frontend}, .name = name, .elements = 10, .request_bytes = 256};
}
// [end]

// [snippet asio]
#include <herring/ensemble_asio.hpp>

#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <map>

/// Asks ten times at once; the event loop goes on meanwhile.
void ask_ten(herring::asio_frontend<voters>& front, std::span<std::byte const> image,
             std::chrono::milliseconds within, int& good) {
    for (int i = 0; i < 10; ++i)
        front.async_ask(image, within, [&good](voters::answer answer) { good += answer.has_values(); });
}

/// A server of one thread. Of changes another thread tells, and posts them to the event loop.
struct server {
    boost::asio::io_context loop; // is destroyed last
    std::map<std::string, std::string> members{};
    herring::asio_frontend<voters> front;

    explicit server(std::string const& address) : front(loop.get_executor(), told_here(options(address))) {}
    herring::frontend_options told_here(herring::frontend_options made) {
        made.on_change = [this](herring::change const& c) {
            boost::asio::post(loop, [this, name = std::string(c.name), what = c.what] {
                members[name] = herring::to_string(what);
            });
        };
        return made;
    }
};
// [end]

#include <cstddef>
#include <memory>
#include <thread>

namespace {
template <class Then> void with_three_members(voters::frontend& front, Then then) {
    std::vector<std::unique_ptr<voters::member>> members;
    std::vector<std::thread> threads;
    for (std::string const name : {"a", "b", "c"}) {
        members.push_back(
            std::make_unique<voters::member>(as(name, "127.0.0.1:" + std::to_string(front.port()))));
        threads.emplace_back([me = members.back().get()] { serve(*me); });
    }
    for (int i = 0; i < 3000 && front.admitted() < 3; ++i) std::this_thread::sleep_for(10ms);
    REQUIRE(front.admitted() == 3);

    then();
    for (auto& me : members) me->stop();
    for (auto& thread : threads) thread.join();
}
} // namespace

TEST_CASE("docs/ensembles.md: a frontend and three members") {
    voters::frontend front(options("127.0.0.1:0"));
    with_three_members(front, [&] {
        std::vector<std::byte> image(256);
        image[4] = std::byte{1};
        CHECK(ask(front, image, 30s));
        voters::answer const answer = front.ask(image, 30s, {.k = 3});
        REQUIRE(answer.outcome() == herring::outcome::full);
        REQUIRE(answer.values().size() == 10);
        float sum = 0;
        for (float const p : answer.values()) sum += p;
        CHECK(sum == doctest::Approx(1.0).epsilon(1e-5));
        CHECK(answer.values()[4] > 0.4f);
    });
}

TEST_CASE("docs/ensembles.md: ten requests at once in an event loop, which is told of members") {
    server s("127.0.0.1:0");
    with_three_members(s.front.frontend(), [&] {
        std::vector<std::byte> const image(256);
        int good = 0;
        ask_ten(s.front, image, 30s, good);
        s.loop.run();
        CHECK(good == 10);
        for (int i = 0; i < 3000 && s.members.size() < 3; ++i) {
            s.loop.restart();
            s.loop.run_for(10ms);
        }
        CHECK(s.members.count("c") == 1); // joined, or slow since
    });
}
