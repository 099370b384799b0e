// herring: tests of ensemble_asio.hpp: requests and jobs as asynchronous operations, over real sockets.
// SPDX-License-Identifier: Apache-2.0
// Own object: it specialises templates of Asio.
#include "herring/ensemble_asio.hpp"

#include "herring/ensemble/combine.hpp"
#include "herring/ensemble/quorum.hpp"

#include "doctest/doctest.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/use_future.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace ensemble_asio_test {

using namespace herring;
using namespace std::chrono_literals;

using voters = ensemble<float, combine::mean<space::value>, quorum::at_least<2>>;
using frontend_t = asio_frontend<voters>;
using member_t = asio_member<voters>;

frontend_options at_port(std::size_t in_flight = 8) {
    return {.listen = "127.0.0.1:0",
            .members = {"a", "b"},
            .elements = 4,
            .request_bytes = 16,
            .in_flight = in_flight};
}
member_options named(std::string name, int port) {
    return {.frontends = {"127.0.0.1:" + std::to_string(port)},
            .name = std::move(name),
            .elements = 4,
            .request_bytes = 16,
            .concurrency = 4};
}

/// Members that answer with their number and the request's first byte, each in a thread with blocking calls.
class members {
  public:
    explicit members(int port) {
        for (std::size_t i = 0; i < 2; ++i) {
            each_.push_back(std::make_unique<voters::member>(named(i == 0 ? "a" : "b", port)));
            threads_.emplace_back([&me = *each_.back(), i] {
                while (auto job = me.next()) {
                    float const x =
                        static_cast<float>(std::to_integer<int>(job.input()[0])) + static_cast<float>(i);
                    std::fill(job.row().begin(), job.row().end(), x);
                    job.send();
                }
            });
        }
    }
    ~members() {
        for (auto& m : each_) m->stop();
        for (auto& t : threads_) t.join();
    }

  private:
    std::vector<std::unique_ptr<voters::member>> each_;
    std::vector<std::thread> threads_;
};

template <class Front> void wait_for_both(Front& front) {
    for (int i = 0; i < 6000 && front.frontend().admitted() < 2; ++i) std::this_thread::sleep_for(5ms);
    REQUIRE(front.frontend().admitted() == 2);
}

std::array<std::byte, 1> byte(int x) { return {static_cast<std::byte>(x)}; }

TEST_CASE("ensemble_asio: requests complete in the event loop, which ends when none is under way") {
    boost::asio::io_context loop;
    frontend_t front(loop.get_executor(), at_port());
    CHECK(loop.run() == 0); // nothing waits
    members const both(front.frontend().port());
    wait_for_both(front);

    auto const here = std::this_thread::get_id();
    std::vector<float> values;
    bool inside = true;
    for (int i = 0; i < 5; ++i)
        front.async_ask(byte(10 * i), 30s, [&](voters::answer a) {
            CHECK_FALSE(inside);
            CHECK(std::this_thread::get_id() == here);
            REQUIRE(a.outcome() == outcome::full);
            CHECK(a.contributors().count() == 2);
            values.push_back(a.values()[3]);
        });
    inside = false;
    loop.restart();
    loop.run();
    std::sort(values.begin(), values.end());
    CHECK(values == std::vector<float>{0.5f, 10.5f, 20.5f, 30.5f, 40.5f});
}

TEST_CASE("ensemble_asio: a handler asks again; one of more than its place, and one that can only be moved") {
    boost::asio::io_context loop;
    frontend_t front(loop.get_executor(), at_port());
    members const both(front.frontend().port());
    wait_for_both(front);

    int done = 0;
    struct asks_again {
        frontend_t& front;
        int& done;
        std::unique_ptr<int> left;
        std::array<char, 400> large{};
        void operator()(voters::answer a) {
            REQUIRE(a);
            ++done;
            if ((*left)-- > 0) front.async_ask(byte(1), 30s, std::move(*this));
        }
    };
    front.async_ask(byte(1), 30s, asks_again{front, done, std::make_unique<int>(20), {}});
    loop.run();
    CHECK(done == 21);
}

TEST_CASE("ensemble_asio: futures, from a thread that does not run the event loop") {
    boost::asio::io_context loop;
    auto work = boost::asio::make_work_guard(loop);
    std::thread runs([&] { loop.run(); });
    {
        frontend_t front(loop.get_executor(), at_port());
        members const both(front.frontend().port());
        wait_for_both(front);
        std::vector<std::future<voters::answer>> each;
        for (int i = 0; i < 6; ++i) each.push_back(front.async_ask(byte(i), 30s, boost::asio::use_future));
        for (int i = 0; i < 6; ++i) {
            voters::answer const a = each[static_cast<std::size_t>(i)].get();
            REQUIRE(a.outcome() == outcome::full);
            CHECK(a.values()[0] == static_cast<float>(i) + 0.5f);
        }
        each.clear();
        // Blocking calls go on beside it.
        CHECK(front.frontend().ask(byte(7), 30s).values()[0] == 7.5f);
    }
    work.reset();
    runs.join();
}

TEST_CASE("ensemble_asio: refused, cancelled, closed, and bad arguments") {
    boost::asio::io_context loop;
    std::vector<outcome> ends;
    auto const note = [&](voters::answer a) { ends.push_back(a.outcome()); };
    {
        frontend_t front(loop.get_executor(), at_port(2));
        CHECK_THROWS_AS(front.async_ask(std::array<std::byte, 17>{}, 30s, note), error);
        CHECK_THROWS_AS(front.async_ask(byte(1), -25h, note), error);

        front.async_ask(byte(1), 30s, note); // nobody is here: fewer than k can come
        loop.run();
        REQUIRE(ends.size() == 1);
        CHECK(ends[0] == outcome::failed);

        // Members who expect nothing: these wait until they are cancelled.
        voters::member a(named("a", front.frontend().port())), b(named("b", front.frontend().port()));
        wait_for_both(front);
        std::uint64_t id = 0;
        front.async_ask(byte(1), 30s, note, {}, &id);
        front.async_expect(77, 30s, note);
        front.async_ask(byte(1), 30s, note); // in_flight is 2
        loop.restart();
        loop.poll();
        REQUIRE(ends.size() == 2);
        CHECK(ends[1] == outcome::busy);
        CHECK(id != 0);
        CHECK(front.frontend().cancel(id));
        CHECK_FALSE(front.frontend().cancel(id));
        while (ends.size() < 3) loop.run_one();
        CHECK(ends[2] == outcome::cancelled);
    }
    loop.restart();
    loop.run(); // the frontend is gone: what was under way has ended as closed
    REQUIRE(ends.size() == 4);
    CHECK(ends[3] == outcome::closed);
}

/// A token whose operation begins when `begin` is called, which must not throw, as in `co_await`.
struct begun_later {
    std::function<void()>& begin;
    std::optional<outcome>& end;
};

} // namespace ensemble_asio_test

template <>
struct boost::asio::async_result<ensemble_asio_test::begun_later, void(ensemble_asio_test::voters::answer)> {
    template <class Initiation, class... Arguments>
    static void initiate(Initiation initiation, ensemble_asio_test::begun_later token, Arguments... with) {
        token.begin = [=]() noexcept {
            Initiation now = initiation;
            now([&end = token.end](ensemble_asio_test::voters::answer a) { end = a.outcome(); }, with...);
        };
    }
};

namespace ensemble_asio_test {

TEST_CASE("ensemble_asio: an argument that makes no sense is an error of the call, not of where the "
          "operation begins") {
    boost::asio::io_context loop;
    frontend_t front(loop.get_executor(), at_port());
    std::function<void()> begin;
    std::optional<outcome> end;
    begun_later const token{begin, end};
    CHECK_THROWS_AS(front.async_ask(std::array<std::byte, 17>{}, 30s, token), error);
    CHECK_THROWS_AS(front.async_ask(byte(1), -25h, token), error);
    CHECK_THROWS_AS(front.async_ask(byte(1), 1s, token, {.k = 3}), error);
    CHECK_THROWS_AS(front.async_expect(0, 1s, token), error);
    CHECK_THROWS_AS(front.async_expect(1, 25h, token), error);
    CHECK_FALSE(begin);

    // What was right at the call, and is not any more where it begins.
    voters::member a(named("a", front.frontend().port())), b(named("b", front.frontend().port()));
    wait_for_both(front);
    front.async_expect(7, 30s, token);
    front.async_expect(7, 30s, [](voters::answer) {});
    CHECK_THROWS_AS(front.async_expect(7, 30s, [](voters::answer) {}), error);
    begin();
    while (!end) loop.run_one();
    CHECK(end == outcome::failed);
    CHECK(front.frontend().cancel(7));
    loop.run();
}

#if defined(BOOST_ASIO_HAS_CO_AWAIT)
boost::asio::awaitable<void> ask_in_turn(frontend_t& front, std::vector<std::string>& ends) {
    std::array<std::byte, 17> const input{};
    for (auto const& [bytes, within] :
         {std::pair<std::size_t, std::chrono::nanoseconds>{1, 30s}, {17, 30s}, {1, -1ms}, {1, 25h}}) {
        try {
            auto const a =
                co_await front.async_ask(std::span(input).first(bytes), within, boost::asio::use_awaitable);
            ends.emplace_back(to_string(a.outcome()));
        } catch (error const& e) {
            ends.emplace_back(to_string(e.code()));
        }
    }
}

TEST_CASE("ensemble_asio: in a coroutine an error of a request is caught, and a deadline that has passed is "
          "an outcome") {
    boost::asio::io_context loop;
    frontend_t front(loop.get_executor(), at_port());
    std::vector<std::string> ends;
    boost::asio::co_spawn(loop, ask_in_turn(front, ends), boost::asio::detached);
    loop.run();
    CHECK(ends == std::vector<std::string>{"failed", "bad argument", "failed", "bad argument"});
}
#endif

TEST_CASE("ensemble_asio: an answer that the event loop's end destroys may outlive its frontend") {
    boost::asio::io_context loop;
    frontend_t front(loop.get_executor(), at_port()); // goes first
    members const both(front.frontend().port());
    wait_for_both(front);
    front.async_ask(byte(3), 30s, [&](voters::answer a) {
        CHECK(a.values()[0] == 3.5f);
        auto timer = std::make_shared<boost::asio::steady_timer>(loop, 1h); // as if its client were slow
        timer->async_wait([timer, held = std::make_shared<voters::answer>(std::move(a))](
                              boost::system::error_code) { FAIL("the loop has ended"); });
        loop.stop();
    });
    loop.run();
}

#if BOOST_VERSION >= 107700
TEST_CASE("ensemble_asio: a handler's cancellation slot cancels its request") {
    boost::asio::io_context loop;
    frontend_t front(loop.get_executor(), at_port());
    voters::member a(named("a", front.frontend().port())), b(named("b", front.frontend().port()));
    wait_for_both(front);
    boost::asio::cancellation_signal signal;
    std::optional<outcome> end;
    front.async_ask(byte(1), 30s, boost::asio::bind_cancellation_slot(signal.slot(), [&](voters::answer x) {
                        end = x.outcome();
                    }));
    signal.emit(boost::asio::cancellation_type::terminal);
    loop.run();
    CHECK(end == outcome::cancelled);
}
#endif

TEST_CASE("ensemble_asio: a member's jobs, several open at once and answered from timers") {
    boost::asio::io_context loop;
    frontend_t front(loop.get_executor(), at_port());
    member_t a(loop.get_executor(), named("a", front.frontend().port()));
    member_t b(loop.get_executor(), named("b", front.frontend().port()));
    int answered = 0, over = 0;
    struct serves {
        boost::asio::io_context& loop;
        member_t& me;
        int &answered, &over;
        void operator()(voters::job job) {
            if (!job) {
                ++over;
                return;
            }
            auto timer = std::make_shared<boost::asio::steady_timer>(loop, 1ms);
            auto held = std::make_shared<voters::job>(std::move(job));
            timer->async_wait([timer, held, this_ = *this](boost::system::error_code) {
                std::fill(held->row().begin(), held->row().end(), 2.0f);
                this_.answered += held->send() == job_end::sent;
            });
            me.async_next(*this);
        }
    };
    a.async_next(serves{loop, a, answered, over});
    b.async_next(serves{loop, b, answered, over});
    for (int i = 0; i < 6000 && front.frontend().admitted() < 2; ++i) loop.run_for(5ms);
    REQUIRE(front.frontend().admitted() == 2);

    int done = 0;
    for (int i = 0; i < 4; ++i)
        front.async_ask(byte(1), 30s, [&](voters::answer x) {
            CHECK(x.outcome() == outcome::full);
            CHECK(x.values()[0] == 2.0f);
            if (++done == 4) {
                a.member().stop();
                b.member().stop();
            }
        });
    while (over < 2) loop.run_one();
    CHECK(done == 4);
    CHECK(answered == 8);
}

} // namespace ensemble_asio_test
