// herring: a stage for faults: real ranks as processes, what became of each, and what they left behind.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_FAULT_SCENE_HPP
#define HERRING_TESTS_FAULT_SCENE_HPP

#include "herring/herring.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/join.hpp"
#include "herring/launch.hpp"
#include "herring/transport/tcp.hpp"

#include "doctest/doctest.h"
#include "free_port.hpp"
#include "sanitizers.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fault {

using herring::clock;
using herring::errc;
using herring::failure;
using herring::layout;
using herring::time_point;
using herring::world;
using std::chrono::milliseconds;

/// One bucket a tensor, so that a test knows what is on its way.
template <class... More>
using flat_of = herring::reducer<float, herring::transport::tcp, herring::update::sum,
                                 herring::fusion::per_tensor, More...>;
using flat = flat_of<>;
using shared = flat_of<herring::intra_node::shared_memory>; // one node or several, as the world says

// Nothing takes that long: only a defect waits for it.
inline constexpr milliseconds plenty{25'000};
// What is promised within a second, on a machine that does other things as well.
inline constexpr milliseconds promptly{2'000};
inline constexpr int slower = HERRING_TEST_ASAN ? 3 : 1;

inline std::int64_t now_ns() { return clock::now().time_since_epoch().count(); }

inline void require(bool holds, std::string const& what) {
    if (!holds) throw std::runtime_error("not so: " + what);
}

enum class state : int { silent, done, error, other };

inline std::string to_string(state s) {
    switch (s) {
    case state::silent:
        return "silent";
    case state::done:
        return "done";
    case state::error:
        return "error";
    case state::other:
        return "not as required";
    }
    return "?";
}

/// What became of one rank; it lies in memory that all processes of the scene map.
struct ending {
    std::atomic<int> pid{0};
    std::atomic<state> how{state::silent};
    failure why{};
    std::int64_t at_ns = 0;
    char note[600] = {};
    std::atomic<std::uint64_t> job{0};
    std::atomic<long> value{0}; // whatever the test wants to know
};

struct board {
    std::atomic<int> steps{0};
    std::atomic<int> entered{0};
    std::atomic<std::uint32_t> ended{0};    // ranks that are through
    std::atomic<std::int64_t> struck_ns{0}; // when the fault happened
    std::atomic<int> port{0};
    ending ranks[16];

    /// The fault happens now; the first one counts.
    void strike() {
        std::int64_t none = 0;
        struck_ns.compare_exchange_strong(none, now_ns());
    }
    [[noreturn]] void die() {
        strike();
        ::kill(::getpid(), SIGKILL);
        std::abort();
    }
};

template <class Word, class Value> void await(std::atomic<Word> const& word, Value least) {
    time_point const until = clock::now() + plenty;
    while (word.load() < static_cast<Word>(least)) {
        require(clock::now() < until, "what a test waits for comes");
        ::sched_yield();
    }
}

/// Stays until `ranks` others have ended, as a rank that hangs does.
inline void outlast(board& b, int ranks) {
    for (std::uint32_t seen = 0; (seen = b.ended.load()) < static_cast<std::uint32_t>(ranks);)
        herring::detail::futex_wait(b.ended, seen, plenty);
}

enum class start { launch, join };

inline std::string to_string(start s) { return s == start::launch ? "launch" : "join"; }

struct setup {
    start how = start::launch;
    int ranks = 2;
    std::vector<std::string> nodes{};   // empty: one node
    std::vector<herring::role> roles{}; // empty: all are workers
    milliseconds limit = plenty;
    std::string name{};
    herring::join_options join{}; // what all ranks have in common
    herring::failure_detector_options failure_detector{};
    milliseconds default_timeout = herring::detail::not_given;
    herring::detail::failure_handler on_failure{};
};

inline std::vector<std::string> two_nodes(int ranks) {
    std::vector<std::string> made;
    for (int r = 0; r < ranks; ++r) made.push_back(2 * r < ranks ? "a" : "b");
    return made;
}

/// How a scene went, with copies of all endings.
struct report {
    struct one {
        state how = state::silent;
        failure why{};
        double after_ms = -1; // from the fault, or from the start of the scene where there was none
        std::string note{};
        long value = 0;
        std::uint64_t job = 0;
        int exit_status = 0; // join only
    };
    std::vector<one> ranks{};
    bool hung = false;
    double took_ms = 0;

    double slowest_ms(int except) const {
        double most = 0;
        for (std::size_t r = 0; r < ranks.size(); ++r)
            if (static_cast<int>(r) != except) most = std::max(most, ranks[r].after_ms);
        return most;
    }
    std::string text() const {
        std::string out = hung ? "the scene HUNG\n" : "";
        for (std::size_t r = 0; r < ranks.size(); ++r) {
            char ms[32];
            std::snprintf(ms, sizeof ms, "%.0f ms", ranks[r].after_ms);
            out += "  rank " + std::to_string(r) + ": " + to_string(ranks[r].how) + " (exit " +
                   std::to_string(ranks[r].exit_status) + ") after " + ms + " " +
                   (ranks[r].how == state::error ? ranks[r].why.message() : ranks[r].note) + "\n";
        }
        return out;
    }
};

/// Names of things that could be left behind, of all programs.
inline std::set<std::string> shared_files() {
    std::set<std::string> found;
    if (DIR* const d = ::opendir("/dev/shm")) {
        while (dirent const* e = ::readdir(d)) found.insert(e->d_name);
        ::closedir(d);
    }
    return found;
}

/// Abstract sockets of one job; their names hold it.
inline int sockets_of(std::uint64_t job) {
    char name[64];
    std::snprintf(name, sizeof name, "@herring.%016llx", static_cast<unsigned long long>(job));
    std::ifstream in("/proc/net/unix");
    int count = 0;
    for (std::string line; std::getline(in, line);) count += line.find(name) != std::string::npos ? 1 : 0;
    return count;
}

inline bool has_children() { return ::waitpid(-1, nullptr, WNOHANG) >= 0 || errno != ECHILD; }

namespace backstage {

/// Runs one rank's part and writes down how it ended.
template <class Function> void act(world& w, board& b, Function& function) noexcept {
    for (int const number : {SIGTERM, SIGINT, SIGABRT, SIGSEGV}) ::signal(number, SIG_DFL); // not doctest's
    ending& mine = b.ranks[w.rank()];
    mine.pid.store(::getpid());
    mine.job.store(w.job());
    state how = state::done;
    try {
        function(w, b);
    } catch (herring::error const& why) {
        mine.why = why.why();
        how = state::error;
    } catch (std::exception const& why) {
        std::snprintf(mine.note, sizeof mine.note, "%s", why.what());
        how = state::other;
    }
    mine.at_ns = now_ns();
    mine.how.store(how);
    b.ended.fetch_add(1);
    herring::detail::futex_wake(b.ended);
}

inline void reap_all(std::vector<pid_t> const& pids, std::vector<int>& statuses, milliseconds limit,
                     bool& hung) {
    time_point const until = clock::now() + limit;
    std::vector<pollfd> waiting;
    for (pid_t const pid : pids)
        waiting.push_back({static_cast<int>(::syscall(SYS_pidfd_open, pid, 0u)), POLLIN, 0});
    statuses.assign(pids.size(), 0);
    for (std::size_t left = pids.size(); left > 0;) {
        auto const ms = std::chrono::duration_cast<milliseconds>(until - clock::now()).count();
        if (ms <= 0 && !hung) {
            hung = true;
            for (std::size_t i = 0; i < pids.size(); ++i)
                if (waiting[i].fd >= 0) ::kill(pids[i], SIGKILL);
        }
        ::poll(waiting.data(), waiting.size(), hung ? 1000 : static_cast<int>(ms));
        for (std::size_t i = 0; i < pids.size(); ++i) {
            if (waiting[i].fd < 0) continue;
            int raw = 0;
            if (::waitpid(pids[i], &raw, WNOHANG) != pids[i]) continue;
            statuses[i] = WIFSIGNALED(raw) ? 128 + WTERMSIG(raw) : WEXITSTATUS(raw);
            ::close(waiting[i].fd);
            waiting[i].fd = -1;
            --left;
        }
    }
}

} // namespace backstage

/// Plays `function(world&, board&)` on every rank, and checks that nothing is left when all have ended.
template <class Function> report play(setup const& how, Function function) {
    auto* const b =
        ::new (::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
            board;
    std::set<std::string> const files = shared_files();
    report made;
    std::int64_t const started = now_ns();
    std::vector<int> statuses(static_cast<std::size_t>(how.ranks), 0);
    if (how.how == start::launch) {
        herring::launch_options options;
        options.nodes = how.nodes;
        options.roles = how.roles;
        options.timeout = how.limit;
        options.failure_detector = how.failure_detector;
        options.default_timeout = how.default_timeout;
        options.on_failure = how.on_failure;
        int const status = herring::launch(
            how.ranks, [&](world& w) { backstage::act(w, *b, function); }, options);
        made.hung = status == 124;
    } else {
        std::string const address = free_address();
        std::vector<pid_t> pids;
        std::fflush(nullptr);
        for (int r = 0; r < how.ranks; ++r) {
            pid_t const pid = ::fork();
            if (pid == 0) {
                ::prctl(PR_SET_PDEATHSIG, SIGKILL);
                try {
                    herring::join_options options = how.join;
                    options.rank = r;
                    options.size = how.ranks;
                    options.address = address;
                    options.timeout = plenty;
                    options.failure_detector = how.failure_detector;
                    options.default_timeout = how.default_timeout;
                    options.on_failure = how.on_failure;
                    if (!how.nodes.empty()) options.node = how.nodes[static_cast<std::size_t>(r)];
                    if (!how.roles.empty()) options.role = how.roles[static_cast<std::size_t>(r)];
                    world w = herring::join(options);
                    backstage::act(w, *b, function);
                } catch (std::exception const& why) {
                    std::snprintf(b->ranks[r].note, sizeof b->ranks[r].note, "join: %s", why.what());
                    b->ranks[r].how.store(state::other);
                }
                ::_exit(0);
            }
            pids.push_back(pid);
        }
        backstage::reap_all(pids, statuses, how.limit, made.hung);
    }
    made.took_ms = static_cast<double>(now_ns() - started) * 1e-6;
    std::int64_t const from = b->struck_ns.load() != 0 ? b->struck_ns.load() : started;
    for (int r = 0; r < how.ranks; ++r) {
        ending const& e = b->ranks[r];
        report::one seen;
        seen.how = e.how.load();
        seen.why = e.why;
        seen.note = e.note;
        seen.value = e.value.load();
        seen.job = e.job.load();
        seen.exit_status = statuses[static_cast<std::size_t>(r)];
        if (e.at_ns != 0) seen.after_ms = static_cast<double>(e.at_ns - from) * 1e-6;
        made.ranks.push_back(seen);
    }
    ::munmap(b, sizeof *b);

    INFO(how.name << " over " << to_string(how.how) << ", " << how.ranks << " ranks\n" << made.text());
    CHECK_FALSE(made.hung);
    CHECK_FALSE(has_children());
    for (std::string const& file : shared_files()) {
        if (files.count(file) != 0) continue; // it was there before
        bool ours = false; // other programs may be at work; a name of Herring's has the job in it
        for (report::one const& r : made.ranks)
            ours = ours || (r.job != 0 && file.find(std::to_string(r.job)) != std::string::npos);
        MESSAGE("new in /dev/shm (" << (ours ? "of these ranks" : "of others") << "): " << file);
        CHECK_FALSE(ours);
    }
    for (report::one const& r : made.ranks)
        if (r.job != 0) CHECK(sockets_of(r.job) == 0);
    return made;
}

/// Every rank but `victim` ended in an error that names it, within `limit` of the fault.
inline void check_named(setup const& how, report const& seen, int victim, std::vector<errc> const& codes,
                        milliseconds limit = promptly) {
    INFO(how.name << " over " << to_string(how.how) << ", " << how.ranks << " ranks, of which " << victim
                  << " is at fault\n"
                  << seen.text());
    for (int r = 0; r < how.ranks; ++r) {
        if (r == victim) continue;
        CAPTURE(r);
        auto const& one = seen.ranks[static_cast<std::size_t>(r)];
        CHECK(one.how == state::error);
        CHECK(one.why.peer == victim);
        CHECK(std::find(codes.begin(), codes.end(), one.why.what) != codes.end());
        CHECK(one.after_ms <= static_cast<double>(limit.count() * slower));
    }
}

/// What rank r writes into tensor i in a step, and what the sum must be: small integers, exact in any order.
inline float value_of(int rank, int step, std::size_t i) {
    return static_cast<float>((rank + 1) * (step + 1)) + static_cast<float>(i);
}
inline float sum_of(int ranks, int step, std::size_t i) {
    return static_cast<float>(ranks * (ranks + 1) / 2 * (step + 1)) +
           static_cast<float>(ranks) * static_cast<float>(i);
}

template <class Reducer> void fill(Reducer& r, world const& w, int step, std::size_t i) {
    std::span<float> const t = r.tensor(i);
    std::fill(t.begin(), t.end(), value_of(w.rank(), step, i));
}

template <class Reducer>
void verify(Reducer& r, world const& w, int step, std::size_t but = ~std::size_t{0}) {
    for (std::size_t i = 0; i < r.size(); ++i) {
        if (i == but) continue; // whose result lies elsewhere
        float const expected = sum_of(w.size(), step, i);
        for (float const value : r.tensor(i))
            if (value != expected)
                throw std::runtime_error("not so: tensor " + std::to_string(i) + " of step " +
                                         std::to_string(step) + " is " + std::to_string(expected) + ", not " +
                                         std::to_string(value));
    }
}

/// One whole step with checked results.
template <class Reducer> void step(Reducer& r, world const& w, int number) {
    for (std::size_t i = 0; i < r.size(); ++i) {
        fill(r, w, number, i);
        r.ready(i);
    }
    r.wait();
    verify(r, w, number);
}

/// All sizes of routes: empty, tiny, one hop, two hops.
inline layout mixed_layout() {
    return layout{{"tiny", 3},           {"empty", 0},    {"one hop", 3000},
                  {"two hops", 700'001}, {"odd", 12'345}, {"last", 300'000}};
}

inline double milliseconds_since(std::int64_t ns) { return static_cast<double>(now_ns() - ns) * 1e-6; }

} // namespace fault

#endif // HERRING_TESTS_FAULT_SCENE_HPP
