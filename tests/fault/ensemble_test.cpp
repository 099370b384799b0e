// herring: ensembles of processes under faults: none of their requests is lost, none is another's, none outlives its deadline.
// SPDX-License-Identifier: Apache-2.0
#include "fault/ensemble_scene.hpp"

#include "herring/ensemble/tcp_lane.hpp"

using namespace ensemble_faults;

namespace {

// ---- the roles of processes -------------------------------------------------------------------------------------

voters::member* to_stop = nullptr;

int serve(int port, std::size_t number) {
    voters::member me(member_of(port, number));
    to_stop = &me;
    (void)std::signal(SIGTERM, [](int) { to_stop->stop(); });
    while (auto job = me.next(long_time)) {
        fill(job, number);
        job.send();
    }
    return me.leave(long_time) ? 0 : 1; // as told
}
/// Asks without end, and counts.
int front(int port, board& told) {
    voters::frontend of(frontend_at(port, 3));
    for (std::uint64_t n = 0; !told.stop.load(); n = (n + 1) % 997) {
        voters::answer const a = of.ask(request(n), long_time, {.k = 3});
        if (!a.has_values()) continue; // not all are here yet
        ++told.asked;
        told.wrong += !is_right(a, n);
    }
    return 0;
}
/// 0: it is refused for good, and told why.
template <class Ensemble> int refused(member_options const& o, char const* why) {
    typename Ensemble::member me(o);
    if (me.next(long_time)) return 1;
    auto const status = me.status();
    return status[0].now == frontend_status::state::refused && status[0].why.find(why) != std::string::npos
               ? 0
               : 2;
}
/// 0: a frontend with another secret does not let it in, and says why; it goes on, for anybody could have said so.
int kept_out(member_options o) {
    o.secret = std::string(64, 'b');
    voters::member me(o);
    return comes_true([&] {
               (void)me.try_next();
               return me.status()[0].why.find("secret") != std::string::npos;
           }) && me.status()[0].times == 0
               ? 0
               : 1;
}
/// A member whose rows are wrong: one with NaN, a short one, a long one; the last ends its connection.
int rogue(int port) {
    std::string const address = "127.0.0.1:" + std::to_string(port);
    ensemble_control::member_peer peer(address, 1, names[1]);
    peer.said.shape = {"ensemble",
                       herring::detail::ensembles::names_of<voters::pack>(),
                       std::string(element<float>::name),
                       elements,
                       voters::format::row_bytes(elements),
                       request_bytes,
                       ""};
    peer.said.lanes = lane::tcp;
    peer.join();
    herring::detail::ensembles::tcp_lane_member rows(
        peer.lane(address), {4, request_bytes, voters::format::row_bytes(elements) + 64});
    struct sink {
        herring::detail::ensembles::tcp_lane_member& rows;
        int sent = 0;
        void asked(std::uint64_t id, std::uint64_t, std::span<std::byte const>,
                   herring::detail::ensembles::place_index place) {
            std::size_t const due = voters::format::row_bytes(elements);
            std::span<std::byte> const to = rows.row(place);
            std::fill(to.begin(), to.end(), std::byte{0});
            if (sent == 0) std::fill(to.begin(), to.end(), std::byte{0xff}); // NaN
            (void)rows.send(id, place, sent == 0 ? due : sent == 1 ? due - 4 : due + 4);
            ++sent;
        }
    } to{rows};
    while (rows.poll(to) && to.sent < 4) {
        pollfd ready{rows.descriptor(), POLLIN, 0};
        if (::poll(&ready, 1, 60'000) != 1) return 1;
    }
    return to.sent == 3 ? 0 : 2;
}

TEST_CASE("ensemble faults: a process" * doctest::skip()) {
    char const* const role_said = std::getenv("ENSEMBLE_FAULT_ROLE");
    if (role_said == nullptr) return;
    std::string const role = role_said;
    auto const number_of = [](char const* name) { return std::atoi(std::getenv(name)); };
    int const port = number_of("ENSEMBLE_FAULT_PORT"), memory = number_of("ENSEMBLE_FAULT_BOARD");
    auto const number = static_cast<std::size_t>(number_of("ENSEMBLE_FAULT_NUMBER"));
    member_options o = member_of(port, number);
    int status = 100;
    try {
        if (role == "member") status = serve(port, number);
        if (role == "frontend") status = front(port, *static_cast<board*>(shared_board::mapped(memory)));
        if (role == "rogue") status = rogue(port);
        if (role == "secret") status = kept_out(o);
        if (role == "elements") {
            o.elements = elements + 1;
            status = refused<voters>(o, "elements");
        }
        if (role == "version") {
            o.model_version = "v9";
            status = refused<voters>(o, "v9");
        }
        if (role == "name") {
            o.name = "stranger";
            status = refused<voters>(o, "stranger");
        }
        if (role == "type") status = refused<ensemble<double, rule>>(o, "double");
        if (role == "policies") status = refused<ensemble<float, combine::mean<space::logit>>>(o, "logit");
    } catch (std::exception const& e) {
        std::fprintf(stderr, "in the process that is %s: %s\n", role.c_str(), e.what());
    }
    ::_exit(status);
}

// ---- members ----------------------------------------------------------------------------------------------------

TEST_CASE(
    "ensemble faults: members are killed, stopped and started again under load, by TCP and shared memory") {
    int const port = free_port();
    voters::frontend front(frontend_at(port, 4));
    std::vector<std::unique_ptr<process>> members(4);
    auto const start = [&](std::size_t m) { members[m] = std::make_unique<process>("member", port, m); };
    for (std::size_t m = 0; m < 4; ++m) start(m);
    REQUIRE(await_all(front, 4));
    for (auto const& m : front.members()) CHECK(m.shared == (m.member % 2 == 1));
    std::uint64_t const before = ended(front);
    int asked = 0;
    {
        load most(front, 2, 2, 30s);  // never fails: two members are there all the time
        load all(front, 1, 4, 100ms); // has all four, or fails at its deadline
        most.await(50);
        for (std::size_t round = 0; round < 4; ++round) {
            CAPTURE(round);
            std::size_t const slow = round, dead = (round + 1) % 4;
            members[slow]->stop();
            members[dead]->kill();
            most.await(30);
            ::poll(nullptr, 0, 300);
            start(dead);
            if (round % 2 == 0) {
                members[slow]->signal(SIGCONT);
            } else { // it dies with requests that it has not read
                members[slow]->kill();
                start(slow);
            }
            most.await(30);
            int const wanted = all.good.load() + 3;
            CHECK(comes_true([&] { return all.good.load() >= wanted; })); // all four are back
        }
        asked = most.end_well() + all.end_well();
        INFO("the first that failed: ", most.first_failure());
        CHECK(most.failed == 0);
        CHECK(all.failed > 0);
    }
    CHECK(ended(front) - before == static_cast<std::uint64_t>(asked));
    REQUIRE(await_all(front, 4));
    counters_add_up(front);
    for (std::size_t m = 0; m < 4; ++m) CHECK(front.counters(m).lost >= 1);
}

TEST_CASE("ensemble faults: a row of a process that has died comes after its successor, and never counts") {
    frontend_options o = frontend_at(free_port(), 1);
    o.peer_timeout = std::chrono::minutes(5); // it is not its silence that ends it
    voters::frontend front(std::move(o));
    relay between(front.address());
    process old("member", between.port(), 0);
    REQUIRE(await_all(front, 1));
    for (int round = 0; round < 20; ++round) { // no answer but its own
        auto const a = front.ask(request(7), long_time);
        CHECK(is_right(a, 7));
    }
    between.hold(true);
    std::size_t const before = between.bytes_held();
    std::uint64_t cookie = 0;
    REQUIRE(front.submit(request(500), long_time, 1).accepted());
    front.poll();
    CHECK(comes_true([&] { return between.bytes_held() >= before + elements * sizeof(float); })); // its row
    old.kill();
    process fresh("member", front.port(), 0);
    voters::answer a;
    REQUIRE(comes_true([&] {
        front.poll();
        return front.next_done(a, cookie);
    }));
    CHECK(a.outcome() == outcome::failed); // at once: the process that was asked is replaced
    CHECK(a.why(0) == miss::lost);
    a = {};
    REQUIRE(comes_true([&] { return front.admitted() == 1; })); // its successor
    for (std::uint64_t n = 0; n < 100; ++n) {
        if (n == 10) between.hold(false); // now they come
        CHECK(is_right(front.ask(request(n), long_time), n));
    }
    REQUIRE(await_all(front, 1));
    counters_add_up(front);
    CHECK(front.counters(0).late == 0);
    CHECK(front.counters(0).lost == 1);
}

TEST_CASE("ensemble faults: members leave while they are asked, and no request waits for them") {
    int const port = free_port();
    voters::frontend front(frontend_at(port, 3));
    std::vector<std::unique_ptr<process>> members(3);
    for (std::size_t m = 0; m < 3; ++m) members[m] = std::make_unique<process>("member", port, m);
    REQUIRE(await_all(front, 3));
    load most(front, 3, 2, 30s);
    for (std::size_t round = 0; round < 6; ++round) {
        std::size_t const m = round % 3;
        most.await(20);
        members[m]->signal(SIGTERM);
        CHECK(members[m]->status() == 0); // the frontend has let it go
        most.await(20);
        members[m] = std::make_unique<process>("member", port, m);
        CHECK(comes_true([&] { return front.admitted() == 3; }));
    }
    CHECK(most.failed == 0);
    most.end_well();
    counters_add_up(front);
}

// ---- the frontend -----------------------------------------------------------------------------------------------

TEST_CASE(
    "ensemble faults: a frontend is killed; members dial with growing pauses, and serve its successor") {
    int const port = free_port();
    shared_board told;
    std::vector<std::unique_ptr<process>> members;
    for (std::size_t m = 0; m < 3; ++m) members.push_back(std::make_unique<process>("member", port, m));
    auto frontend = std::make_unique<process>("frontend", port, 0, told.descriptor());
    auto const answers = [&](int more) {
        int const before = told->asked.load();
        return comes_true([&] { return told->asked.load() >= before + more; });
    };
    CHECK(answers(50));
    frontend->kill();
    int dials = 0;
    {
        herring::detail::endpoint const at =
            ensemble_control::endpoint_of("127.0.0.1:" + std::to_string(port));
        herring::detail::descriptor const listener(herring::detail::listen_on(at));
        REQUIRE(listener.get() >= 0);
        auto const until = herring::clock::now() + 1500ms;
        while (herring::clock::now() < until) { // hangs up on whoever dials
            pollfd ready{listener.get(), POLLIN, 0};
            if (::poll(&ready, 1, 10) != 1) continue;
            ::close(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
            ++dials;
        }
    }
    CHECK(dials >= 1);
    CHECK(dials <= 45); // 10 ms and twice as long each time: some eight a member
    frontend = std::make_unique<process>("frontend", port, 0, told.descriptor());
    CHECK(answers(50));
    told->stop.store(true);
    CHECK(frontend->status() == 0);
    CHECK(told->wrong == 0);
}

// ---- who is none of them ----------------------------------------------------------------------------------------

TEST_CASE("ensemble faults: junk, a flood and slow senders on the port cost nobody a request") {
    int const port = free_port();
    voters::frontend front(frontend_at(port, 3));
    std::vector<std::unique_ptr<process>> members(3);
    for (std::size_t m = 0; m < 2; ++m) members[m] = std::make_unique<process>("member", port, m);
    REQUIRE(comes_true([&] { return front.admitted() == 2; }));
    load both(front, 2, 2, 30s);
    std::string const address = front.address();
    std::vector<herring::detail::descriptor> silent, slow;
    std::string const junk(5000, '\xff');
    for (int i = 0; i < 150; ++i) {
        silent.push_back(ensemble_control::connected_to(address));
        auto const text = ensemble_control::connected_to(address);
        (void)::send(text.get(), "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL);
        auto const bytes = ensemble_control::connected_to(address);
        (void)::send(bytes.get(), junk.data(), junk.size(), MSG_NOSIGNAL);
    }
    for (int i = 0; i < 20; ++i) slow.push_back(ensemble_control::connected_to(address));
    herring::detail::byte_buffer knock;
    herring::detail::wire::append_message(knock, herring::detail::wire::message_kind::knock, 0, 0, {});
    for (std::size_t at = 0; at < 8; ++at) { // a byte at a time
        for (auto const& each : slow) (void)::send(each.get(), knock.data() + at, 1, MSG_NOSIGNAL);
        both.await(5);
    }
    members[2] = std::make_unique<process>("member", port, 2);
    CHECK(comes_true([&] { return front.admitted() == 3; })); // beside all of them
    both.await(50);
    CHECK(both.failed == 0);
    both.end_well();
    counters_add_up(front);
    for (std::size_t m = 0; m < 3; ++m) CHECK(front.counters(m).lost == 0);
}

TEST_CASE("ensemble faults: what a member has said, said once more, is worth nothing") {
    voters::frontend front(frontend_at(free_port(), 1));
    relay between(front.address());
    process member("member", between.port(), 0);
    REQUIRE(await_all(front, 1));
    auto const said = between.freeze();
    CHECK(said.size() >= 2); // control and lane
    for (auto const& words : said) {
        auto const replay = ensemble_control::connected_to(front.address());
        (void)::send(replay.get(), words.data(), words.size(), MSG_NOSIGNAL);
        CHECK(ensemble_control::closes(replay.get()));
    }
    CHECK(front.admitted() == 1);
    CHECK(front.counters(0).lost == 0);
}

TEST_CASE("ensemble faults: members that do not fit are told why, and the others are asked meanwhile") {
    int const port = free_port();
    auto o = frontend_at(port, 3);
    o.model_version = "v1";
    voters::frontend versioned(std::move(o));
    process version("version", port, 1);
    CHECK(version.status() == 0);
    int const other = free_port();
    voters::frontend front(frontend_at(other, 3));
    process member("member", other, 0);
    REQUIRE(comes_true([&] { return front.admitted() == 1; }));
    load one(front, 1, 1, 30s);
    std::vector<std::pair<char const*, std::unique_ptr<process>>> misfits;
    for (char const* const role : {"elements", "type", "policies", "name", "secret"})
        misfits.emplace_back(role, std::make_unique<process>(role, other, 1));
    for (auto const& misfit : misfits) {
        CAPTURE(misfit.first);
        CHECK(misfit.second->status() == 0);
    }
    CHECK(front.admitted() == 1);
    CHECK(front.counters(1).asked == 0);
    CHECK(one.failed == 0);
    one.end_well();
}

// ---- rows and requests ------------------------------------------------------------------------------------------

TEST_CASE("ensemble faults: rows with NaN, too short and too long are refused, counted, and cost their "
          "member alone") {
    int const port = free_port();
    voters::frontend front(frontend_at(port, 2));
    process member("member", port, 0), rogue("rogue", port, 1);
    REQUIRE(comes_true([&] { return front.admitted() == 2; }));
    for (miss const why : {miss::refused_row, miss::refused_row, miss::lost}) {
        auto const a = front.ask(request(5), long_time, {.k = 2});
        CHECK(a.outcome() == outcome::failed); // at once, for two cannot come any more
        CHECK(!a.contributors().contains(1));
        CHECK(a.why(1) == why);
    }
    auto const of = front.counters(1);
    using herring::detail::ensembles::row_check;
    CHECK(of.refused() == 2);
    CHECK(of.refused_rows[static_cast<std::size_t>(row_check::not_a_number)] == 1);
    CHECK(of.refused_rows[static_cast<std::size_t>(row_check::wrong_size)] == 1);
    CHECK(of.lost == 1);
    CHECK(rogue.status() == 0);
    auto const a = front.ask(request(6), long_time);
    CHECK(a.outcome() == outcome::partial);
    CHECK(is_right(a, 6));
}

TEST_CASE("ensemble faults: what no ensemble can do is refused at once, and the load goes on") {
    int const port = free_port();
    voters::frontend front(frontend_at(port, 3));
    process first("member", port, 0), second("member", port, 1);
    REQUIRE(comes_true([&] { return front.admitted() == 2; }));
    load both(front, 2, 2, 30s);
    std::vector<std::byte> const large(request_bytes + 1);
    float const zero_for_both[] = {0, 0, 5}, none[] = {0, 0, 0};
    for (int i = 0; i < 20; ++i) {
        CHECK_THROWS_AS((void)front.ask(large, long_time), error);
        CHECK_THROWS_AS((void)front.ask(request(1), long_time, {.k = 4}), error);
        CHECK_THROWS_AS((void)front.ask(request(1), long_time, {.weights = none}), error);
        auto const a = front.ask(request(1), long_time, {.k = 2, .weights = zero_for_both});
        CHECK(a.outcome() == outcome::failed); // those who came have no weight
        CHECK(a.values().empty());
        CHECK(a.contributors() == member_set{0, 1});
        CHECK(front.ask(request(1), 0ns).outcome() == outcome::failed);
        CHECK(front.ask(request(1), long_time, {.k = 3}).outcome() == outcome::failed); // one is not here
    }
    both.await(20);
    CHECK(both.failed == 0);
    both.end_well();
}

} // namespace
