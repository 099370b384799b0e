// herring: ranks, members and frontends that fork: what is the parent's stays the parent's, and nobody notices the child.
// SPDX-License-Identifier: Apache-2.0
#include "fork_scene.hpp"

#include "herring/ensemble.hpp"
#include "herring/lazy_reducer.hpp"

#include <array>
#include <cstring>
#include <thread>

using namespace fault;

namespace fork_test {

void check_done(setup const& s, report const& seen) {
    INFO(s.name << " over " << to_string(s.how) << "\n" << seen.text());
    for (auto const& one : seen.ranks) CHECK(one.how == state::done);
}

TEST_CASE("fork: a child is refused the reducer, and destroys it and the world by exit: ranks go on") {
    using in_thread = flat_of<herring::progress::thread>;
    using on_nodes = flat_of<herring::intra_node::shared_memory, herring::progress::thread>;
    for (start const how : {start::join, start::launch}) {
        setup const s{.how = how, .ranks = 3, .name = "tcp"};
        check_done(s, play(s, [](world& w, board&) { fork_in_a_loop<flat>(w); }));
        setup const t{.how = how, .ranks = 3, .name = "a thread for progress"};
        check_done(t, play(t, [](world& w, board&) { fork_in_a_loop<in_thread>(w); }));
        setup const n{.how = how, .ranks = 4, .nodes = two_nodes(4), .name = "two nodes"};
        check_done(n, play(n, [](world& w, board&) { fork_in_a_loop<shared>(w); }));
        setup const both{.how = how, .ranks = 4, .nodes = two_nodes(4), .name = "two nodes, threads"};
        check_done(both, play(both, [](world& w, board&) { fork_in_a_loop<on_nodes>(w); }));
    }
}

TEST_CASE("fork: the same of a reducer that skips steps, whose votes are on their way") {
    using herring::sync::selective_tuning;
    using lazy = herring::reducer<float, herring::transport::tcp, herring::fusion::per_tensor,
                                  herring::sync::selective<selective_tuning{.window = 2}>>;
    setup const s{.how = start::join, .ranks = 3, .name = "a lazy reducer"};
    report const seen = play(s, [](world& w, board&) {
        fork_among_steps<lazy>(
            w, layout{{"a", 3'000}, {"b", 10}},
            [](lazy& r, world const&, int number, auto&& meanwhile) {
                if (number == 0)
                    r.start(0, [](std::size_t, std::span<float> to) { std::ranges::fill(to, 1.0f); });
                for (std::size_t i = 0; i < r.size(); ++i) {
                    std::ranges::fill(r.tensor(i), 1.0f);
                    r.ready(i);
                    if (i == 0) meanwhile();
                }
                r.wait();
                for (std::size_t i = 0; i < r.size(); ++i) r.updated(i);
                r.settle();
            },
            [](lazy& r, pid_t parent) {
                require_refused(
                    "world", parent, [&] { r.ready(0); }, [&] { r.wait(); }, [&] { r.updated(0); },
                    [&] { r.settle(); });
            });
    });
    check_done(s, seen);
}

TEST_CASE("fork: a rank is killed whose child lives on: all others hear of it at once") {
    for (bool const on_nodes : {false, true}) {
        setup s{.how = start::join, .ranks = 4, .name = "killed, and its child lives on"};
        s.failure_detector.peer_timeout = milliseconds(15'000); // silence would be noticed too late
        if (on_nodes) s.nodes = two_nodes(4);
        if (on_nodes)
            killed_with_a_child<shared>(s);
        else
            killed_with_a_child<flat>(s);
    }
}

TEST_CASE("fork: children of all ranks join a world of their own, while the ranks go on") {
    std::string const address = free_address();
    setup const s{.how = start::join, .ranks = 2, .name = "children join"};
    report const seen = play(s, [&](world& w, board&) {
        using all = globals<flat>;
        int const rank = w.rank(), size = w.size();
        all::make(w, layout{{"a", 30'000}});
        step(*all::reduce, *all::ranks, 0);
        pid_t const child = forked([&] {
            {
                herring::join_options options;
                options.rank = rank;
                options.size = size;
                options.address = address;
                options.timeout = milliseconds(15'000);
                world own = herring::join(options);
                flat reduce(own, layout{{"a", 5'000}});
                for (int n = 0; n < 5; ++n) step(reduce, own, n);
            }
            *all::ranks = world(); // may be assigned; what was there is left alone
            all::ranks->barrier();
            return 7;
        });
        for (int n = 1; n < 6; ++n) step(*all::reduce, *all::ranks, n);
        require(status_of(child) == 7, "the children have reduced");
        step(*all::reduce, *all::ranks, 6);
        all::end();
    });
    check_done(s, seen);
}

TEST_CASE("fork: launch works in a process that has a world, and in a child of it") {
    setup const s{.how = start::join, .ranks = 2, .name = "launch"};
    report const seen = play(s, [&](world& w, board&) {
        using all = globals<flat>;
        all::make(w, layout{{"a", 30'000}});
        step(*all::reduce, *all::ranks, 0);
        auto const launched = [] {
            return herring::launch(2, [](world& own) {
                flat reduce(own, layout{{"a", 5'000}});
                for (int n = 0; n < 3; ++n) step(reduce, own, n);
            });
        };
        require(launched() == 0, "launched ranks end well");
        step(*all::reduce, *all::ranks, 1);
        require(status_of(forked([&] { return launched() + 7; })) == 7, "those of a child do");
        step(*all::reduce, *all::ranks, 2);
        all::end();
    });
    check_done(s, seen);
}

// ---- ensembles --------------------------------------------------------------------------------------------------

using voters =
    herring::ensemble<float, herring::combine::mean<herring::space::logit>, herring::quorum::at_least<1>>;
constexpr std::size_t elements = 300;

herring::frontend_options frontend_at(int port, herring::lane lanes) {
    herring::frontend_options o;
    o.listen = "127.0.0.1:" + std::to_string(port);
    o.members = {"a"};
    o.elements = elements;
    o.request_bytes = 8;
    o.lanes = lanes;
    o.peer_timeout = milliseconds(20'000); // silence would be noticed too late
    return o;
}
herring::member_options member_of(int port, herring::lane lanes) {
    herring::member_options o;
    o.frontends = {"127.0.0.1:" + std::to_string(port)};
    o.name = "a";
    o.elements = elements;
    o.request_bytes = 8;
    o.lanes = lanes;
    return o;
}
template <class Condition> bool comes_true(Condition&& holds, milliseconds most = plenty) {
    for (auto const until = herring::clock::now() + most; !holds();) {
        if (herring::clock::now() > until) return false;
        ::poll(nullptr, 0, 1);
    }
    return true;
}
std::array<std::byte, 8> request(std::uint64_t number) {
    std::array<std::byte, 8> bytes{};
    std::memcpy(bytes.data(), &number, sizeof number);
    return bytes;
}
bool answers(voters::frontend& front, std::uint64_t number) {
    auto const a = front.ask(request(number), plenty);
    return a.outcome() == herring::outcome::full && a.values()[elements - 1] == static_cast<float>(number);
}
template <class Member, class Each> void serve(Member& me, Each&& each) {
    while (auto job = me.next(plenty)) {
        std::uint64_t number = 0;
        std::memcpy(&number, job.input().data(), sizeof number);
        each(number, job);
        for (float& value : job.row()) value = static_cast<float>(number);
        job.send();
    }
}

struct both { // as a program has them that ends by exit
    static inline std::unique_ptr<voters::frontend> front{};
    static inline std::unique_ptr<voters::member> member{};
    static inline voters::answer kept{};
    static inline voters::job job{};
};

TEST_CASE("fork: a child is refused frontend and member, and destroys both by exit: both go on") {
    for (herring::lane const lanes : {herring::lane::tcp, herring::lane::shared}) {
        CAPTURE(to_string(lanes));
        int const port = free_port();
        both::front = std::make_unique<voters::frontend>(frontend_at(port, lanes));
        both::member = std::make_unique<voters::member>(member_of(port, lanes));
        std::atomic<int> child_status{-1};
        pid_t const parent = ::getpid();
        std::thread serving([&] {
            serve(*both::member, [&](std::uint64_t number, voters::job& asked) {
                if (number != 3) return;
                both::job = std::move(asked);
                bool const waits = comes_true([] { // another request, here and not taken
                    (void)both::member->try_next();
                    return both::member->counters().asked == 3;
                });
                require(waits, "the next request comes");
                child_status = status_of(forked([&] {
                    auto& front = *both::front;
                    auto& me = *both::member;
                    auto const bytes = request(1);
                    voters::answer into;
                    std::uint64_t cookie = 0;
                    require_refused(
                        "frontend", parent, [&] { (void)front.ask(bytes, plenty); },
                        [&] { (void)front.submit(bytes, plenty, 1); }, [&] { (void)front.expect(1, plenty); },
                        [&] { (void)front.members(); }, [&] { (void)front.counters(); },
                        [&] { front.add_member("b"); }, [&] { (void)front.next_done(into, cookie); });
                    front.poll();
                    front.close();
                    require(!front.ready() && !front.cancel(1) && front.descriptor() == -1,
                            "nothing is done");
                    std::vector<float> const row(elements, 1.0f);
                    require_refused(
                        "member", parent, [&] { (void)me.next(plenty); },
                        [&] { (void)me.contribute(1, row); }, [&] { (void)me.leave(); },
                        [&] { (void)me.status(); });
                    me.stop();
                    require(me.is_over() && !me.try_next(), "nothing comes");
                    require(both::kept.values()[0] == 1.0f, "an answer keeps its values");
                    require(!both::job.encode(), "a row is not written"); // and exit declines its job
                    return 7;
                }));
                asked = std::move(both::job);
            });
        });
        CHECK(comes_true([&] { return both::front->ready(); }));
        both::kept = both::front->ask(request(1), plenty);
        for (std::uint64_t const number : {3u, 5u})
            CHECK(both::front->submit(request(number), plenty, number).accepted());
        for (std::uint64_t number = 0; number != 5;) {
            voters::answer a;
            bool const decided = comes_true([&] {
                both::front->poll();
                return both::front->next_done(a, number);
            });
            REQUIRE(decided);
            CHECK(a.outcome() == herring::outcome::full);
        }
        CHECK(child_status == 7);
        CHECK(answers(*both::front, 4));
        both::kept = {};
        both::member->stop();
        serving.join();
        both::member.reset();
        both::front.reset();
    }
}

TEST_CASE("fork: a member is killed whose child lives on: its frontend hears of it at once") {
    for (herring::lane const lanes : {herring::lane::tcp, herring::lane::shared}) {
        CAPTURE(to_string(lanes));
        int const port = free_port();
        int gate[2];
        REQUIRE(::pipe(gate) == 0);
        pid_t const member = forked([&] {
            ::close(gate[1]);
            voters::member me(member_of(port, lanes));
            serve(me, [&](std::uint64_t number, voters::job&) {
                if (number != 3) return;
                if (::fork() == 0) { // lives as long as the test case holds the gate
                    char byte = 0;
                    ::alarm(40);
                    (void)!::read(gate[0], &byte, 1);
                    ::_exit(0);
                }
                ::kill(::getpid(), SIGKILL);
            });
            return 0;
        });
        voters::frontend front(frontend_at(port, lanes));
        CHECK(comes_true([&] { return front.ready(); }));
        CHECK(answers(front, 1));
        (void)front.ask(request(3), milliseconds(500));
        CHECK(status_of(member) == 128 + SIGKILL);
        CHECK(comes_true([&] { return !front.ready(); }, promptly));
        ::close(gate[1]);
        ::close(gate[0]);
    }
}

} // namespace fork_test
