// herring: the ensemble bench over Herring: requests one behind the other, late members, busy members, a member killed or stopped.
// SPDX-License-Identifier: Apache-2.0
//
// --row names what is measured:
//   tcp, shared              4 members, one request behind the other; frontend and members wait as by default: yield, then sleep
//   tcp_asleep, shared_asleep    the same with a frontend and members that sleep at once
//   tcp_spin, shared_spin    with a frontend that polls, and members that sleep at once
//   shared_bf16, ...         rows of bf16 (--elements 128256), in these three ways
//   shared_top64, ...        rows of the 64 most probable classes (--elements 128256)
//   flood                    1,000 requests in flight at members who take 200 us for each
//   late                     8 members that answer after 5 ms by a timer, 1 % of the time after 500 ms; 6 are enough
//   busy                     the same with members that are occupied meanwhile
//   killed, stopped          a member is killed, or stopped for 300 ms every second, under load
//   idle                     nobody asks: processor time of the frontend and of a member
//   rules                    what the frontend's rules cost a request, without lanes: a quorum of 3 of 4, nobody is late

#include "ensemble_harness.hpp"

#include <herring/ensemble.hpp>
#include <herring/ensemble/quorum.hpp>
#include <herring/waiting/waiting.hpp>
#include <herring/wire/codecs.hpp>

#include <chrono>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <poll.h>

namespace {

using namespace ensemble_bench;
using namespace std::chrono_literals;

template <class Wire, class Waiting, std::size_t K>
using ensemble_of = herring::ensemble<float, herring::combine::mean<herring::space::probability>, Wire,
                                      herring::quorum::at_least<K>, Waiting>;
using by_default = herring::waiting::adaptive;
using asleep = herring::waiting::block;

std::string name_of(std::size_t member) { return std::string(1, static_cast<char>('a' + member)); }

bool starts_with(std::string const& text, char const* front) { return text.rfind(front, 0) == 0; }

herring::frontend_options options_of(options const& set) {
    herring::frontend_options with{
        .listen = "127.0.0.1:0", .elements = set.elements, .request_bytes = set.request_bytes};
    for (std::size_t m = 0; m < set.members; ++m) with.members.push_back(name_of(m));
    with.lanes = starts_with(set.row, "shared") ? herring::lane::shared
                 : starts_with(set.row, "tcp")  ? herring::lane::tcp
                                                : herring::lane::any;
    return with;
}

/// Tells the members where the frontend is, and waits until all are there.
template <class Frontend> void wait_for_members(Frontend& front, options const& set, send_times& times) {
    times.go().store(static_cast<std::uint32_t>(front.port()));
    for (int i = 0; front.admitted() < set.members; ++i) {
        if (i == 3000) throw std::runtime_error("members have not come");
        std::this_thread::sleep_for(10ms);
    }
}

template <class Ensemble>
typename Ensemble::member make_member(std::size_t m, options const& set, send_times& times,
                                      std::size_t concurrency = 1) {
    while (times.go().load() == 0) ::usleep(1000);
    return typename Ensemble::member({.frontends = {"127.0.0.1:" + std::to_string(times.go().load())},
                                      .name = name_of(m),
                                      .elements = set.elements,
                                      .request_bytes = set.request_bytes,
                                      .concurrency = concurrency});
}

/// The request as the id that send_times knows, then filling.
std::uint64_t id_in(std::span<std::byte const> input) {
    std::uint64_t id = 0;
    std::memcpy(&id, input.data(), sizeof id);
    return id;
}
std::span<std::byte const> with_id(std::vector<std::byte>& input, std::uint64_t id) {
    std::memcpy(input.data(), &id, sizeof id);
    return input;
}

/// One request behind the other, all members counted.
template <class Wire, class Waiting> int in_a_row(options const& set) {
    using voters = ensemble_of<Wire, Waiting, 1>;
    send_times times;
    using members_waiting =
        std::conditional_t<std::is_same_v<Waiting, herring::waiting::spin>, asleep, Waiting>;
    member_processes const members(set.members, [&](std::size_t m) {
        auto me = make_member<ensemble_of<Wire, members_waiting, 1>>(m, set, times);
        std::vector<float> const row = logits(m, set.elements);
        while (auto job = me.next()) {
            std::copy(row.begin(), row.end(), job.row().begin());
            if (!job.encode()) throw std::runtime_error("a row cannot be encoded");
            times.sending(m, id_in(job.input()));
            job.send();
        }
    });
    herring::frontend_options with = options_of(set);
    with.k = set.members; // all are waited for, as by the other contenders
    typename voters::frontend front(std::move(with));
    wait_for_members(front, set, times);
    std::vector<std::byte> input(set.request_bytes);
    latencies result = measure(set, times, [&](std::uint64_t id) {
        auto const answer = front.ask(with_id(input, id), 1s);
        return answer.contributors().count();
    });
    result.print(set, "herring");
    return 0;
}

/// Requests a second with 1,000 of them in flight, beside what the members do without a frontend: each of them works, and encodes
/// what comes of it, while the others do so too; the slowest counts, for a request needs all of them.
int flood(options const& set) {
    using voters = ensemble_of<herring::wire::as_is, by_default, 1>;
    constexpr std::size_t in_flight = 1000, own_requests = 4000;
    auto const work = [] { std::this_thread::sleep_for(200us); };
    send_times times;
    member_processes const members(set.members, [&](std::size_t m) {
        std::vector<float> const row = logits(m, set.elements);
        std::vector<std::byte> encoded(format::row_bytes(set.elements));
        while (times.go().load() == 0) ::usleep(1000);
        times.sending(m, 0);
        for (std::size_t i = 0; i < own_requests; ++i) {
            work();
            (void)format::encode(row, encoded);
        }
        times.sending(m, 1);
        while (times.go().load() == 1) ::usleep(1000);
        typename voters::member me({.frontends = {"127.0.0.1:" + std::to_string(times.go().load())},
                                    .name = name_of(m),
                                    .elements = set.elements,
                                    .request_bytes = set.request_bytes,
                                    .credits = in_flight});
        while (auto job = me.next()) {
            work();
            std::copy(row.begin(), row.end(), job.row().begin());
            job.send();
        }
    });
    times.go().store(1);
    std::int64_t own_ns = 0;
    for (std::size_t m = 0; m < set.members; ++m) {
        while (times.at(m, 1) == 0) ::usleep(1000);
        own_ns = std::max(own_ns, times.at(m, 1) - times.at(m, 0));
    }
    double const own = static_cast<double>(own_requests) * 1e9 / static_cast<double>(own_ns);
    herring::frontend_options with = options_of(set);
    with.in_flight = in_flight;
    with.k = set.members;
    voters::frontend front(std::move(with));
    wait_for_members(front, set, times);
    std::vector<std::byte> const input(set.request_bytes);
    std::size_t begun = 0, done = 0, full = 0;
    std::int64_t const begin = now_ns();
    while (done < set.requests) {
        while (begun < set.requests && begun - done < in_flight && front.submit(input, 60s, begun).accepted())
            ++begun;
        pollfd ready{front.descriptor(), POLLIN, 0};
        ::poll(&ready, 1, 1000);
        front.poll();
        voters::answer answer;
        std::uint64_t cookie = 0;
        while (front.next_done(answer, cookie)) {
            ++done;
            full += answer.outcome() == herring::outcome::full;
            answer = {};
        }
    }
    double const rate = static_cast<double>(set.requests) * 1e9 / static_cast<double>(now_ns() - begin);
    latencies none;
    none.print(set, "herring",
               (",\"requests_per_s\":" + std::to_string(rate) + ",\"member_per_s\":" + std::to_string(own) +
                ",\"full\":" + std::to_string(full) + ",\"in_flight\":1000")
                   .c_str());
    return 0;
}

/// A row of `members` that take 5 ms, 1 % of the time a hundred times as long.
int late(options const& set, bool busy) {
    using voters = ensemble_of<herring::wire::as_is, by_default, 6>;
    send_times times;
    member_processes const members(set.members, [&](std::size_t m) {
        auto me = make_member<voters>(m, set, times, busy ? 1 : 256);
        std::vector<float> const row = logits(m, set.elements);
        std::uint32_t state = 12345u * static_cast<std::uint32_t>(m + 1);
        struct waiting_job {
            std::int64_t due;
            typename voters::job job;
        };
        std::vector<waiting_job> waiting;
        auto const answer = [&](typename voters::job& job) {
            std::copy(row.begin(), row.end(), job.row().begin());
            if (!job.encode()) throw std::runtime_error("a row cannot be encoded");
            times.sending(m, id_in(job.input()));
            job.send();
        };
        while (true) {
            std::int64_t next = now_ns() + 1'000'000'000;
            for (auto const& w : waiting) next = std::min(next, w.due);
            auto job = me.next(std::chrono::nanoseconds(std::max<std::int64_t>(next - now_ns(), 0)));
            if (job) {
                state = state * 1664525u + 1013904223u;
                std::int64_t const takes = (state >> 8) % 100 == 0 ? 500'000'000 : 5'000'000;
                if (busy) {
                    std::this_thread::sleep_for(std::chrono::nanoseconds(takes));
                    answer(job);
                } else {
                    waiting.push_back({now_ns() + takes, std::move(job)});
                }
            }
            for (std::size_t i = 0; i < waiting.size();)
                if (waiting[i].due <= now_ns()) {
                    answer(waiting[i].job);
                    waiting[i] = std::move(waiting.back());
                    waiting.pop_back();
                } else {
                    ++i;
                }
        }
    });
    voters::frontend front(options_of(set));
    wait_for_members(front, set, times);
    std::vector<std::byte> input(set.request_bytes);
    latencies result;
    std::size_t fewer = 0;
    for (std::uint64_t id = 0; id < 50 + set.requests; ++id) {
        std::int64_t const begin = now_ns();
        auto const answer = front.ask(with_id(input, id), 1s);
        std::int64_t const end = now_ns();
        if (id < 50) continue;
        fewer += answer.contributors().count() < 6;
        result.whole.push_back(static_cast<double>(end - begin) * 1e-3);
    }
    result.print(set, "herring", (",\"fewer_than_k\":" + std::to_string(fewer)).c_str());
    return 0;
}

/// How far beyond its deadline a request ends, while a member is killed and restarted, or stopped and continued.
int disturbed(options const& set, bool stop) {
    using voters = ensemble_of<herring::wire::as_is, by_default, 1>;
    constexpr auto deadline = 20ms;
    send_times times;
    member_processes const members(set.members, [&](std::size_t m) {
        auto me = make_member<voters>(m, set, times);
        std::vector<float> const row = logits(m, set.elements);
        while (auto job = me.next()) {
            std::copy(row.begin(), row.end(), job.row().begin());
            job.send();
        }
    });
    voters::frontend front(options_of(set));
    wait_for_members(front, set, times);
    std::vector<std::byte> input(set.request_bytes);
    pid_t const victim = members.process(set.members - 1);
    latencies result;
    std::size_t unanswered = 0;
    std::int64_t const begin_all = now_ns();
    bool stopped = false, killed = false;
    for (std::uint64_t id = 0; id < set.requests; ++id) {
        std::int64_t const begin = now_ns(), since = (begin - begin_all) / 1'000'000 % 1000;
        if (stop && (since < 300) != stopped) ::kill(victim, stopped ? SIGCONT : SIGSTOP), stopped = !stopped;
        if (!stop && !killed && id == set.requests / 2) ::kill(victim, SIGKILL), killed = true;
        auto const answer = front.ask(with_id(input, id), deadline);
        std::int64_t const took = now_ns() - begin;
        unanswered +=
            answer.outcome() != herring::outcome::full && answer.outcome() != herring::outcome::partial;
        result.whole.push_back(static_cast<double>(took) * 1e-3);
        std::this_thread::sleep_for(200us);
    }
    std::string const extra = ",\"deadline_us\":20000,\"unanswered\":" + std::to_string(unanswered);
    result.print(set, "herring", extra.c_str());
    return 0;
}

/// Shares of a core that an idle frontend and an idle member take, over 5 s.
int idle(options const& set) {
    using voters = ensemble_of<herring::wire::as_is, by_default, 1>;
    send_times times;
    member_processes const members(set.members, [&](std::size_t m) {
        auto me = make_member<voters>(m, set, times);
        while (auto job = me.next()) job.send();
    });
    voters::frontend front(options_of(set));
    wait_for_members(front, set, times);
    auto const cpu_ns = [](pid_t process) {
        clockid_t clock{};
        timespec t{};
        if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &t) != 0)
            throw std::runtime_error("there is no clock of a process");
        return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
    };
    pid_t const processes[] = {::getpid(), members.process(0)};
    double percent[2];
    for (int i = 0; i < 2; ++i) percent[i] = -cpu_ns(processes[i]);
    std::this_thread::sleep_for(5s);
    for (int i = 0; i < 2; ++i) percent[i] = (percent[i] + cpu_ns(processes[i])) / 5e9 * 100;
    latencies none;
    none.print(set, "herring",
               (",\"idle_percent_of_a_core\":" + std::to_string(percent[0]) +
                ",\"idle_member_percent\":" + std::to_string(percent[1]))
                   .c_str());
    return 0;
}

/// What a request costs in the table of rules: with a quorum, and with none (all are waited for).
int rules(options const& set) {
    using namespace herring::detail::ensembles;
    auto const ns_a_request = [&](std::size_t k) {
        request_table table({.members = set.members, .k = k});
        for (std::size_t m = 0; m < set.members; ++m) table.admitted(static_cast<peer_index>(m), 1, 0);
        std::int64_t const begin = now_ns();
        for (std::size_t i = 0; i < set.requests; ++i) {
            std::int64_t const entered = begin + static_cast<std::int64_t>(i) * 2'000'000;
            auto const b = table.begin({.entered = entered, .deadline = entered + 1'000'000'000}, entered);
            for (std::size_t m = 0; m < set.members; ++m) // all within the grace
                (void)table.row(static_cast<peer_index>(m), 1, b.id, static_cast<place_index>(m),
                                row_check::good, entered + 1'000'000 + static_cast<std::int64_t>(m));
            slot_index at = no_slot;
            if (!table.next_decided(at) || table.result(at) != herring::outcome::full)
                throw std::runtime_error("a request is not decided by its last row");
            table.release(at, [](peer_index, place_index) {});
        }
        return static_cast<double>(now_ns() - begin) / static_cast<double>(set.requests);
    };
    double const with = ns_a_request(set.members - 1), without = ns_a_request(set.members);
    latencies none;
    none.print(
        set, "herring",
        (",\"rules_ns\":" + std::to_string(with) + ",\"rules_all_ns\":" + std::to_string(without)).c_str());
    return 0;
}

} // namespace

int main(int count, char** value) try {
    using herring::wire::as_is, herring::wire::bf16, herring::waiting::spin;
    using top_64 = herring::wire::top_k<64>;
    options const set(count, value);
    if (set.row == "tcp" || set.row == "shared") return in_a_row<as_is, by_default>(set);
    if (set.row == "tcp_asleep" || set.row == "shared_asleep") return in_a_row<as_is, asleep>(set);
    if (set.row == "tcp_spin" || set.row == "shared_spin") return in_a_row<as_is, spin>(set);
    if (set.row == "shared_bf16") return in_a_row<bf16, by_default>(set);
    if (set.row == "shared_bf16_asleep") return in_a_row<bf16, asleep>(set);
    if (set.row == "shared_bf16_spin") return in_a_row<bf16, spin>(set);
    if (set.row == "shared_top64") return in_a_row<top_64, by_default>(set);
    if (set.row == "shared_top64_asleep") return in_a_row<top_64, asleep>(set);
    if (set.row == "shared_top64_spin") return in_a_row<top_64, spin>(set);
    if (set.row == "flood") return flood(set);
    if (set.row == "late" || set.row == "busy") return late(set, set.row == "busy");
    if (set.row == "killed" || set.row == "stopped") return disturbed(set, set.row == "stopped");
    if (set.row == "idle") return idle(set);
    if (set.row == "rules") return rules(set);
    throw std::runtime_error("there is no row " + set.row);
} catch (std::exception const& problem) {
    std::fprintf(stderr, "ensemble_bench: %s\n", problem.what());
    return 1;
}
