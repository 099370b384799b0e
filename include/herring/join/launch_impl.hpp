// herring: set-up code of launch.hpp.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_JOIN_LAUNCH_IMPL_HPP
#define HERRING_JOIN_LAUNCH_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/text.hpp"
#include "herring/control/shared/shared_control.hpp"
#include "herring/control/timeouts.hpp"
#include "herring/control/variables.hpp"
#include "herring/control/wire/racks.hpp"
#include "herring/control/world.hpp"
#include "herring/crypto/random.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/join/launch.hpp"
#include "herring/machine/threads.hpp"
#include "herring/model/links.hpp"
#include "herring/model/topology.hpp"
#include "herring/net/life_signs.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace HERRING_NAMESPACE {

namespace detail {

HERRING_SETUP inline topology launch_map(int ranks, launch_options const& options) {
    if (ranks < 1)
        throw error(errc::bad_argument, -1, -1, "launch",
                    {"asked for ", ranks, " ranks; ask for at least 1"});
    auto const count = static_cast<std::size_t>(ranks);
    auto const check = [&](char const* what, std::size_t given) {
        if (given != 0 && given != count)
            throw error(errc::bad_argument, -1, -1, "launch",
                        {"launch_options::", what, " has ", given,
                         what == std::string_view("nodes") ? " names" : " entries", " for ", ranks,
                         " ranks; give one a rank, or none"});
    };
    check("nodes", options.nodes.size());
    check("roles", options.roles.size());
    check("rates", options.rates.size());
    check("racks", options.racks.size());
    for (int const rate : options.rates)
        if (rate < 0)
            throw error(
                errc::bad_argument, -1, -1, "launch",
                {"launch_options::rates has ", rate, "; a rate is in Mbit/s, or 0 where it is not declared"});
    std::vector<std::string> const nodes =
        options.nodes.empty() ? std::vector<std::string>(count) : options.nodes;
    if (options.racks.empty()) return topology::of_names(nodes, options.roles, options.rates);
    int wrong = 0;
    if (std::string const fault =
            wire::fault_of_racks(options.racks, topology::of_names(nodes, options.roles), wrong);
        !fault.empty())
        throw error(errc::bad_argument, -1, wrong, "launch", {"launch_options::racks: ", fault});
    return topology::of_names(nodes, options.roles, options.rates, topology::of_names(options.racks).node_of);
}

/// The settings of all ranks of a launch, read before the first one starts.
struct launch_settings {
    topology map;
    world_times times;
    herring::links links;
    secret_key key;
};
HERRING_SETUP inline launch_settings read_launch(int ranks, launch_options const& options) {
    variables const from = variables::of_process();
    return {launch_map(ranks, options),
            resolve(read_times(options.failure_detector, options.default_timeout, from, "launch_options",
                               "launch")),
            read_links({}, from, "launch"), random_key()};
}

HERRING_SETUP inline world launched_world(shared_region* region, int rank, launch_settings const& all,
                                          failure_handler const& on_failure) {
    membership joined;
    joined.rank = rank;
    joined.map = all.map;
    joined.job = region->job();
    joined.key = secret_key(all.key.bytes());
    joined.has_secret = true;
    joined.ranks_on_this_machine = all.map.size();
    joined.times = all.times;
    joined.links = all.links;
    joined.control = control_shared::make(region, rank, on_failure);
    return world(std::move(joined));
}

/// Runs one rank in the forked child.
[[noreturn]] HERRING_SETUP inline void run_forked(shared_region* region, int rank, launch_settings const& all,
                                                  failure_handler const& called, rank_function function) {
    int status = 1;
    try {
        world here = launched_world(region, rank, all, called);
        try {
            status = function(here);
        } catch (error const& why) {
            here.fail(why.why());
            std::fprintf(stderr, "%s\n", why.what());
        } catch (std::exception const& why) {
            here.fail(failure::make(errc::peer_failed, rank, -1, "launch", why.what()));
            std::fprintf(stderr, "herring: rank %d: uncaught exception: %s\n", rank, why.what());
        } catch (...) {
            here.fail(failure::make(errc::peer_failed, rank, -1, "launch",
                                    "uncaught exception of an unknown type"));
            std::fprintf(stderr, "herring: rank %d: uncaught exception of an unknown type\n", rank);
        }
        if (status != 0)
            here.fail(
                failure::make(errc::peer_failed, rank, -1, "launch", {"its function returned ", status}));
    } catch (std::exception const& why) {
        std::fprintf(stderr, "herring: rank %d: %s\n", rank, why.what());
    }
    std::fflush(nullptr);
    ::_exit(status);
}

struct child {
    pid_t pid = -1;
    int descriptor = -1; // pidfd, or -1 if the kernel has none
    bool running = false;
    int status = 0; // exit status as in a shell: 128 + n for signal n
    bool by_signal = false;
    bool unknown = false; // reaped by another part of the program
    int stopped = 0;      // signal that stopped it; 0: not stopped
    time_point since{};
};

/// Keeps ended children as zombies until they are reaped. Where SIGCHLD is ignored, which a program inherits
/// through exec, the kernel would discard their exit status.
class keep_children {
  public:
    keep_children() noexcept {
        ::sigaction(SIGCHLD, nullptr, &before_);
        changed_ = before_.sa_handler == SIG_IGN || (before_.sa_flags & SA_NOCLDWAIT) != 0;
        if (!changed_) return;
        struct sigaction ours = before_;
        if (ours.sa_handler == SIG_IGN) ours.sa_handler = SIG_DFL;
        ours.sa_flags &= ~SA_NOCLDWAIT;
        ::sigaction(SIGCHLD, &ours, nullptr);
    }
    keep_children(keep_children const&) = delete;
    keep_children& operator=(keep_children const&) = delete;
    ~keep_children() { restore(); }

    /// Restores the program's action; also called in a forked child.
    void restore() noexcept {
        if (changed_) ::sigaction(SIGCHLD, &before_, nullptr);
        changed_ = false;
    }

  private:
    struct sigaction before_ {};
    bool changed_ = false;
};

HERRING_SETUP inline void reap(child& c) noexcept {
    int raw = 0;
    while (true) {
        pid_t const got = ::waitpid(c.pid, &raw, WNOHANG | WUNTRACED | WCONTINUED);
        if (got < 0 && errno == EINTR) continue;
        if (got == 0) return;
        if (got < 0) { // another part of the program reaped the child: its exit status is lost
            raw = -1;
            break;
        }
        if (!WIFSTOPPED(raw) && !WIFCONTINUED(raw)) break;
        c.stopped = WIFSTOPPED(raw) ? WSTOPSIG(raw) : 0;
        c.since = clock::now();
    }
    c.running = false;
    c.stopped = 0;
    if (raw == -1) {
        c.status = 1;
        c.unknown = true;
    } else if (WIFSIGNALED(raw)) {
        c.status = 128 + WTERMSIG(raw);
        c.by_signal = true;
    } else {
        c.status = WEXITSTATUS(raw);
    }
    if (c.descriptor >= 0) ::close(c.descriptor);
    c.descriptor = -1;
}

/// Publishes which processes are stopped. Returns a rank that has been stopped for `peer_timeout`, or −1.
HERRING_SETUP inline int publish_stopped(std::vector<child> const& children, shared_region* region,
                                         time_point now) noexcept {
    int timed_out = -1;
    for (std::size_t r = 0; r < children.size(); ++r) {
        child const& c = children[r];
        region->stopped(static_cast<int>(r), c.stopped != 0);
        if (timed_out < 0 && c.stopped != 0 && now - c.since >= region->times().peer_timeout)
            timed_out = static_cast<int>(r);
    }
    return timed_out;
}

/// Sleeps until a child may have ended or stopped, or until `next`. False: no child runs any more.
HERRING_SETUP inline bool wait_for_news(std::vector<child> const& children, std::vector<pollfd>& polled,
                                        stall_detector& own, clock::duration heartbeat, time_point next) {
    polled.clear();
    bool any = false, all_have_descriptors = true;
    for (child const& c : children) {
        if (!c.running) continue;
        any = true;
        if (c.descriptor >= 0)
            polled.push_back({c.descriptor, POLLIN, 0});
        else
            all_have_descriptors = false;
    }
    if (!any) return false;
    // Polls, because no event reports that a process is stopped.
    using std::chrono::milliseconds;
    auto wait = std::chrono::duration_cast<milliseconds>(heartbeat / 2);
    if (next != time_point::max()) {
        auto const left = std::chrono::duration_cast<milliseconds>(next - clock::now());
        if (left < wait) wait = left < milliseconds(0) ? milliseconds(0) : left + milliseconds(1);
    }
    if (!all_have_descriptors) wait = std::min(wait, milliseconds(10));
    own.expect(clock::now(), wait);
    ::poll(polled.data(), polled.size(), static_cast<int>(wait.count()));
    return true;
}

/// Reaps children that have ended. Returns the rank that is the root cause, if one has failed, or −1.
HERRING_SETUP inline int reap_all(std::vector<child>& children, shared_region* region) {
    int worst = -1;
    for (std::size_t r = 0; r < children.size(); ++r) {
        child& c = children[r];
        if (!c.running) continue;
        reap(c);
        if (c.running) continue;
        int const rank = static_cast<int>(r);
        if (c.status == 0)
            region->leave(rank); // a function that called exit(0) has not left
        else if (worst < 0 || (c.by_signal && !children[static_cast<std::size_t>(worst)].by_signal))
            worst = rank; // a death by a signal is the cause of errors in other ranks
    }
    return worst;
}

/// Returns the text about a child that failed or stays stopped.
HERRING_SETUP inline std::string how_it_failed(child const& c, std::chrono::milliseconds peer_timeout) {
    if (c.running)
        return text({"its process has been stopped for ", duration_text(peer_timeout), " (signal ", c.stopped,
                     ", ", ::strsignal(c.stopped), "); see who stopped it, and continue it sooner"});
    if (c.by_signal)
        return text(
            {"its process was killed by signal ", c.status - 128, " (", ::strsignal(c.status - 128), ")"});
    if (c.unknown)
        return "it ended, and another part of this program has reaped its process (a handler of SIGCHLD, or "
               "a wait for any child), so that nobody knows how; let it wait for its own children only";
    return text({"its process ended with status ", c.status});
}

/// Tells the groups of ended processes, and of that of rank `stopped`, what became of them, those that a
/// signal killed first: also groups that were made since the last call.
HERRING_SETUP inline void tell_groups(std::vector<child> const& children, shared_region* region,
                                      int stopped) {
    for (bool const by_signal : {true, false})
        for (std::size_t r = 0; r < children.size(); ++r) {
            child const& c = children[r];
            if ((c.running && static_cast<int>(r) != stopped) || c.by_signal != by_signal) continue;
            bool const left = !c.running && c.status == 0; // a function that called exit(0) has not left
            std::string const how = left ? std::string() : how_it_failed(c, region->times().peer_timeout);
            region->each_group_of(static_cast<int>(r), [&](shared_region& group, int rank) {
                if (left) return group.leave(rank);
                group.fail(group.ranks(), failure::make(errc::peer_lost, -1, rank, "launch", how));
            });
        }
}

/// Waits for the children. When one fails or stays stopped, announces that and ends the others after
/// `options.grace`.
HERRING_SETUP inline int watch(std::vector<child>& children, shared_region* region,
                               launch_options const& options) {
    int const nobody = region->ranks();
    int first_status = 0;
    int signal_to_send = 0;
    // Time of the next signal to children that still run.
    time_point next = options.timeout.count() > 0 ? deadline_in(options.timeout) : time_point::max();
    std::vector<pollfd> polled;
    stall_detector own;
    while (wait_for_news(children, polled, own, region->times().heartbeat, next)) {
        int worst = reap_all(children, region);
        time_point const now = clock::now();
        // Stop times are unknown after a stall of this process, for example if all processes were suspended.
        if (own.late(now) > clock::duration(0))
            for (child& c : children) c.since = now;
        int const timed_out = publish_stopped(children, region, now);
        if (worst < 0) worst = timed_out;
        if (worst >= 0 && first_status == 0) {
            child const& c = children[static_cast<std::size_t>(worst)];
            first_status = c.running ? 128 + c.stopped : c.status;
            std::string const how = how_it_failed(c, region->times().peer_timeout);
            if (c.unknown) std::fprintf(stderr, "herring: launch: rank %d: %s\n", worst, how.c_str());
            region->fail(nobody, failure::make(errc::peer_lost, -1, worst, "launch", how));
            next = deadline_in(options.grace);
            signal_to_send = SIGTERM;
        }
        tell_groups(children, region, timed_out);
        if (now < next) continue;
        if (first_status == 0) {
            first_status = 124;
            region->fail(nobody, failure::make(errc::timeout, -1, -1, "launch",
                                               {"the launch took longer than launch_options::timeout, ",
                                                duration_text(options.timeout)}));
            std::fprintf(stderr, "herring: launch: not done after %s; ending the ranks that still run\n",
                         duration_text(options.timeout).c_str());
            signal_to_send = SIGTERM;
        }
        for (child const& c : children)
            if (c.running) ::kill(c.pid, signal_to_send);
        next =
            signal_to_send == SIGTERM ? now + std::chrono::seconds(1) : now + std::chrono::milliseconds(100);
        signal_to_send = SIGKILL;
    }
    return first_status;
}

HERRING_SEPARABLE int launch_processes(int ranks, rank_function function, launch_options const& options) {
    launch_settings const all = read_launch(ranks, options); // children have a copy, of its key too
    shared_region* const region = shared_region::make(ranks, true, all.times.detector);
    std::fflush(nullptr); // else every child would print the text that is buffered now
    pid_t const parent = ::getpid();
    std::vector<child> children(static_cast<std::size_t>(ranks));
    keep_children kept;
    for (int r = 0; r < ranks; ++r) {
        pid_t const pid = ::fork();
        if (pid == 0) {
            kept.restore();
            ::prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (::getppid() != parent) ::_exit(1); // the parent died before prctl
            for (child const& sibling : children)
                if (sibling.descriptor >= 0) ::close(sibling.descriptor);
            run_forked(region, r, all, options.on_failure, function);
        }
        if (pid < 0) {
            std::string const why = std::strerror(errno);
            for (int k = 0; k < r; ++k) {
                child& c = children[static_cast<std::size_t>(k)];
                ::kill(c.pid, SIGKILL);
                while (::waitpid(c.pid, nullptr, 0) < 0 && errno == EINTR) {
                }
                if (c.descriptor >= 0) ::close(c.descriptor);
            }
            region->release();
            throw error(errc::no_resources, -1, r, "launch",
                        {"fork of rank ", r, " failed: ", why,
                         "; raise the limit of processes (ulimit -u) or launch fewer ranks"});
        }
        child& c = children[static_cast<std::size_t>(r)];
        c.pid = pid;
        c.running = true;
#if defined(SYS_pidfd_open)
        c.descriptor = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0u));
#endif
    }
    int const status = watch(children, region, options);
    region->release();
    return status;
}

HERRING_SEPARABLE int run_in_threads(int ranks, rank_function function, launch_options const& options) {
    struct shared {
        rank_function function;
        std::atomic<int> order{0};
    } all{function};
    struct one {
        shared* all = nullptr;
        world* here = nullptr;
        int status = 0;
        int order = -1; // position among the ranks that threw; −1: did not throw
        std::exception_ptr thrown{};
        pthread_t thread{};
    };
    std::vector<world> worlds = thread_worlds(ranks, options);
    std::vector<one> ones(worlds.size());
    auto const body = +[](void* argument) -> void* {
        one& me = *static_cast<one*>(argument);
        world here = std::move(*me.here); // destroyed at the end of the function, as in a process
        try {
            me.status = me.all->function(here);
        } catch (error const& why) {
            me.order = me.all->order.fetch_add(1);
            me.thrown = std::current_exception();
            here.fail(why.why());
        } catch (std::exception const& why) {
            me.order = me.all->order.fetch_add(1);
            me.thrown = std::current_exception();
            here.fail(failure::make(errc::peer_failed, here.rank(), -1, "launch", why.what()));
        } catch (...) {
            me.order = me.all->order.fetch_add(1);
            me.thrown = std::current_exception();
            here.fail(failure::make(errc::peer_failed, here.rank(), -1, "launch",
                                    "an exception of an unknown type"));
        }
        return nullptr;
    };
    // pthread_create, because <thread> costs compile time in every program.
    std::size_t started = 0;
    int refused = 0;
    for (; started < ones.size() && refused == 0; ++started) {
        ones[started].all = &all;
        ones[started].here = &worlds[started];
        refused = ::pthread_create(&ones[started].thread, nullptr, body, &ones[started]);
    }
    if (refused != 0) {
        --started;
        worlds[started].fail(failure::make(errc::no_resources, static_cast<int>(started), -1, "launch",
                                           {"no further thread: ", std::strerror(refused)}));
    }
    blocked_threads::own(1); // this thread only waits
    for (std::size_t r = 0; r < started; ++r) ::pthread_join(ones[r].thread, nullptr);
    blocked_threads::own(-1);
    if (refused != 0) worlds[started].check();
    one const* first = nullptr;
    for (one const& o : ones)
        if (o.order >= 0 && (first == nullptr || o.order < first->order)) first = &o;
    if (first != nullptr) std::rethrow_exception(first->thrown);
    for (one const& o : ones)
        if (o.status != 0) return o.status;
    return 0;
}

} // namespace detail

HERRING_SEPARABLE std::vector<world> thread_worlds(int ranks, launch_options const& options) {
    detail::launch_settings const all = detail::read_launch(ranks, options);
    detail::shared_region* const region = detail::shared_region::make(ranks, false, all.times.detector);
    std::vector<world> worlds;
    worlds.reserve(static_cast<std::size_t>(ranks));
    for (int r = 0; r < ranks; ++r) {
        region->hold();
        worlds.push_back(detail::launched_world(region, r, all, options.on_failure));
    }
    region->release();
    return worlds;
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_JOIN_LAUNCH_IMPL_HPP
