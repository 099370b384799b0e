// herring: a stage for faults of ensembles: members and frontends as processes, a load, and a relay that holds bytes back.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_FAULT_ENSEMBLE_SCENE_HPP
#define HERRING_TESTS_FAULT_ENSEMBLE_SCENE_HPP

#include "herring/ensemble.hpp"

#include "ensemble_control.hpp"
#include "free_port.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ensemble_faults {

using namespace herring;
using namespace std::chrono_literals;
using ensemble_control::require;

inline constexpr std::size_t elements = 200, request_bytes = 8;
inline constexpr auto long_time = 60s; // only a defect waits for it
/// By how much `ask` may return after its deadline: it is 1 ms where there is a core, and here many share a few.
inline constexpr std::chrono::milliseconds overtime{2000};

using rule = combine::mean<space::value, weighting::renormalised>;
using voters = ensemble<float, rule, quorum::at_least<1>>;

inline std::string const secret(64, 'a');
inline constexpr char const* names[] = {"a", "b", "c", "d"};

inline frontend_options frontend_at(int port, std::size_t members) {
    frontend_options o;
    o.listen = "127.0.0.1:" + std::to_string(port);
    o.members.assign(names, names + members);
    o.elements = elements;
    o.request_bytes = request_bytes;
    o.secret = secret;
    return o;
}
inline member_options member_of(int port, std::size_t number) {
    member_options o;
    o.frontends = {"127.0.0.1:" + std::to_string(port)};
    o.name = names[number];
    o.elements = elements;
    o.request_bytes = request_bytes;
    o.secret = secret;
    o.lanes = number % 2 == 0 ? lane::tcp : lane::shared;
    return o;
}

/// Request n; member m answers 1000 · m + n everywhere.
inline std::array<std::byte, request_bytes> request(std::uint64_t n) {
    std::array<std::byte, request_bytes> bytes;
    std::memcpy(bytes.data(), &n, sizeof n);
    return bytes;
}
template <class Job> void fill(Job const& job, std::size_t member) {
    std::uint64_t n = 0;
    std::memcpy(&n, job.input().data(), sizeof n);
    for (auto& x : job.row()) x = static_cast<float>(1000 * member + n);
}
/// Whether the values are those of the contributors, for this request.
inline bool is_right(voters::answer const& a, std::uint64_t n) {
    float sum = 0;
    a.contributors().for_each([&](std::size_t m) { sum += static_cast<float>(1000 * m + n); });
    float const mean = sum / static_cast<float>(a.contributors().count());
    auto const off = [&](float x) { return x > mean ? x - mean : mean - x; };
    return a.values().size() == elements && off(a.values()[0]) < 0.01f &&
           off(a.values()[elements - 1]) < 0.01f;
}

/// What processes tell the test, in memory that they share.
struct board {
    std::atomic<int> asked{0}, wrong{0}, failed{0};
    std::atomic<bool> stop{false};
};
class shared_board {
  public:
    shared_board() : memory_(::memfd_create("board", 0)) { // processes inherit it
        require(memory_.get() >= 0 && ::ftruncate(memory_.get(), sizeof(board)) == 0, "memory");
        at_ = new (mapped(memory_.get())) board;
    }
    ~shared_board() { ::munmap(at_, sizeof(board)); }
    shared_board(shared_board const&) = delete;
    shared_board& operator=(shared_board const&) = delete;
    board* operator->() const { return at_; }
    int descriptor() const { return memory_.get(); }
    static void* mapped(int descriptor) {
        void* const at = ::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
        require(at != MAP_FAILED, "the memory is mapped");
        return at;
    }

  private:
    herring::detail::descriptor memory_;
    board* at_ = nullptr;
};

/// A process of this program that plays a role: the test case «ensemble faults: a process». It ends with the test.
class process {
  public:
    process(std::string const& role, int port, std::size_t number = 0, int board = -1) {
        // All that allocates is done before the fork: other threads may hold locks at that moment.
        std::string set[] = {"ENSEMBLE_FAULT_ROLE=" + role, "ENSEMBLE_FAULT_PORT=" + std::to_string(port),
                             "ENSEMBLE_FAULT_NUMBER=" + std::to_string(number),
                             "ENSEMBLE_FAULT_BOARD=" + std::to_string(board)};
        std::vector<char*> all;
        for (char** each = environ; *each != nullptr; ++each) all.push_back(*each);
        for (std::string& each : set) all.push_back(each.data());
        all.push_back(nullptr);
        number_ = ::fork();
        if (number_ != 0) return;
        ::alarm(120); // whatever becomes of the test
        ::execle("/proc/self/exe", "process", "--test-case=ensemble faults: a process", "--no-skip",
                 "--minimal", static_cast<char*>(nullptr), all.data());
        ::_exit(127);
    }
    ~process() { kill(); }
    process(process const&) = delete;
    process& operator=(process const&) = delete;

    void kill() {
        if (number_ <= 0) return;
        ::kill(number_, SIGKILL);
        (void)status();
    }
    void stop() const {
        ::kill(number_, SIGSTOP);
        ::waitpid(number_, nullptr, WUNTRACED);
    }
    void signal(int which) const { ::kill(number_, which); }
    /// Waits for its end. −1: by a signal.
    int status() {
        int how = 0;
        if (::waitpid(std::exchange(number_, -1), &how, 0) < 0) return -2;
        return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
    }

  private:
    pid_t number_ = -1;
};

template <class Condition> bool comes_true(Condition&& holds) {
    auto const until = herring::clock::now() + long_time;
    while (!holds()) {
        if (herring::clock::now() > until) return false;
        ::poll(nullptr, 0, 1);
    }
    return true;
}

/// Threads that ask all the time. Every request is counted by what became of it.
class load {
  public:
    load(voters::frontend& front, int threads, std::size_t k, std::chrono::milliseconds within) {
        for (int t = 0; t < threads; ++t)
            all_.emplace_back([&front, k, within, this] {
                while (!stop_.load()) {
                    std::uint64_t const n = numbers_.fetch_add(1) % 997;
                    auto const begin = herring::clock::now();
                    voters::answer const a = front.ask(request(n), within, {.k = k});
                    auto const over =
                        std::chrono::duration_cast<std::chrono::milliseconds>(herring::clock::now() - begin) -
                        within;
                    if (over > overtime) ++overdue;
                    if (a.has_values()) {
                        ++good;
                        if (a.contributors().count() < k || !is_right(a, n)) ++wrong;
                    } else if (a.outcome() == outcome::failed) {
                        if (failed++ == 0) first_failure_ = whys_of(a, front.size(), begin);
                        ::poll(nullptr, 0, 1); // where too few are here it fails at once
                    }
                    ++ended;
                }
            });
    }
    ~load() { end(); }
    load(load const&) = delete;
    load& operator=(load const&) = delete;
    void end() {
        stop_.store(true);
        for (auto& each : all_)
            if (each.joinable()) each.join();
    }
    void await(int more) const {
        int const before = good.load();
        CHECK(comes_true([&] { return good.load() >= before + more; }));
    }
    /// Ends it. None was lost, none is another's, none was given back long after its deadline.
    int end_well() {
        end();
        CHECK(wrong == 0);
        CHECK(overdue == 0);
        CHECK(ended == static_cast<int>(numbers_.load()));
        CHECK(good + failed == ended);
        return ended;
    }

    /// After `end`: why each member was missing in the first request that failed, and after how long.
    std::string const& first_failure() const { return first_failure_; }

    std::atomic<int> good{0}, failed{0}, wrong{0}, overdue{0}, ended{0};

  private:
    static std::string whys_of(voters::answer const& a, std::size_t members, herring::time_point begin) {
        std::string words;
        for (std::size_t m = 0; m < members; ++m)
            words += std::string(names[m]) + ": " + to_string(a.why(m)) + ", ";
        return words + "after " +
               std::to_string(std::chrono::duration<double>(herring::clock::now() - begin).count()) + " s";
    }

    std::string first_failure_;
    std::atomic<bool> stop_{false};
    std::atomic<std::uint64_t> numbers_{0};
    std::vector<std::thread> all_;
};

/// Asks until so many members are in one answer.
inline bool await_all(voters::frontend& front, std::size_t members) {
    return comes_true(
        [&] { return front.ask(request(1), long_time, {.k = members}).contributors().count() == members; });
}
inline std::uint64_t ended(voters::frontend const& front) {
    std::uint64_t sum = 0;
    for (std::uint64_t const each : front.counters().ended) sum += each;
    return sum;
}
/// Nothing is in flight: what each member was asked has ended in one way.
inline void counters_add_up(voters::frontend& front) {
    for (std::size_t m = 0; m < front.size(); ++m) {
        CAPTURE(m);
        auto const of = front.counters(m);
        CHECK(of.asked == of.answered + of.missed);
        CHECK(of.duplicate == 0);
        CHECK(of.refused() == 0);
    }
}

/// Stands between a member and its frontend; remembers what the member says, and can hold it back.
class relay {
  public:
    explicit relay(std::string to) : to_(std::move(to)) {
        thread_ = std::thread([this] { run(); });
    }
    ~relay() {
        stop_.store(true);
        thread_.join();
    }
    relay(relay const&) = delete;
    relay& operator=(relay const&) = delete;
    int port() const { return ensemble_control::endpoint_of(here_.address).port(); }
    /// From now on the member's bytes stay here, and so do its connections, should it end.
    void hold(bool on) { held_.store(on); }
    std::size_t bytes_held() const { return waiting_.load(); }
    /// What each connection of the member has said. After `freeze`.
    std::vector<std::vector<std::byte>> freeze() {
        frozen_.store(true);
        comes_true([&] { return is_frozen_.load(); });
        std::vector<std::vector<std::byte>> all;
        for (way const& each : ways_) all.push_back(each.said);
        return all;
    }

  private:
    struct way {
        herring::detail::descriptor member, frontend;
        std::vector<std::byte> said{}, kept{};
    };
    static bool pass(int to, std::span<std::byte const> bytes) {
        while (!bytes.empty()) {
            ssize_t const n = ::send(to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
            if (n <= 0) return false;
            bytes = bytes.subspan(static_cast<std::size_t>(n));
        }
        return true;
    }
    void run() {
        while (!stop_.load()) {
            if (frozen_.load()) {
                is_frozen_.store(true);
                ::poll(nullptr, 0, 1);
                continue;
            }
            std::vector<pollfd> all{{here_.listener.get(), POLLIN, 0}};
            for (way const& each : ways_) {
                all.push_back({each.member.get(), POLLIN, 0});
                all.push_back({each.frontend.get(), POLLIN, 0});
            }
            if (::poll(all.data(), all.size(), 1) < 0) continue;
            for (std::size_t i = 0; i < ways_.size(); ++i) {
                way& at = ways_[i];
                if (all[1 + 2 * i].revents != 0) from_member(at);
                if (!held_.load() && !at.kept.empty()) {
                    (void)pass(at.frontend.get(), at.kept);
                    waiting_ -= at.kept.size();
                    at.kept.clear();
                }
                if (all[2 + 2 * i].revents != 0) from_frontend(at);
            }
            if (all[0].revents != 0)
                ways_.push_back({herring::detail::descriptor(
                                     ::accept4(here_.listener.get(), nullptr, nullptr, SOCK_CLOEXEC)),
                                 ensemble_control::connected_to(to_)});
        }
    }
    void from_member(way& at) {
        std::byte bytes[4096];
        ssize_t const n = ::recv(at.member.get(), bytes, sizeof bytes, MSG_DONTWAIT);
        if (n > 0) {
            auto const some = std::span(bytes).first(static_cast<std::size_t>(n));
            at.said.insert(at.said.end(), some.begin(), some.end());
            at.kept.insert(at.kept.end(), some.begin(), some.end());
            waiting_ += some.size();
        } else if (n == 0 || errno != EAGAIN) {
            if (!held_.load()) ::shutdown(at.frontend.get(), SHUT_WR);
            at.member = herring::detail::descriptor();
        }
    }
    void from_frontend(way& at) {
        std::byte bytes[4096];
        ssize_t const n = ::recv(at.frontend.get(), bytes, sizeof bytes, MSG_DONTWAIT);
        if (n > 0) {
            if (at.member.get() >= 0)
                (void)pass(at.member.get(), std::span(bytes).first(static_cast<std::size_t>(n)));
        } else if (n == 0 || errno != EAGAIN) {
            at.member = herring::detail::descriptor();
            at.frontend = herring::detail::descriptor();
        }
    }

    std::string to_;
    ensemble_control::false_frontend here_{};
    std::atomic<bool> held_{false}, stop_{false}, frozen_{false}, is_frozen_{false};
    std::atomic<std::size_t> waiting_{0};
    std::vector<way> ways_;
    std::thread thread_;
};

} // namespace ensemble_faults

#endif // HERRING_TESTS_FAULT_ENSEMBLE_SCENE_HPP
