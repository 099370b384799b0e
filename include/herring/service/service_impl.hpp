// herring: set-up code of service.hpp: the parent, which starts and takes back ranks, and their processes.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SERVICE_SERVICE_IMPL_HPP
#define HERRING_SERVICE_SERVICE_IMPL_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/text.hpp"
#include "herring/control/control.hpp"
#include "herring/control/wire/messages.hpp"
#include "herring/crypto/random.hpp"
#include "herring/crypto/secret.hpp"
#include "herring/join/environment.hpp"
#include "herring/join/join.hpp"
#include "herring/machine/address.hpp"
#include "herring/machine/files.hpp"
#include "herring/machine/free_memory.hpp"
#include "herring/machine/identity.hpp"
#include "herring/machine/name_lookup.hpp"
#include "herring/machine/time.hpp"
#include "herring/net/handshake.hpp"
#include "herring/net/poller.hpp"
#include "herring/net/sockets.hpp"
#include "herring/service/messages.hpp"
#include "herring/service/pacing.hpp"
#include "herring/service/service.hpp"
#include "herring/service/tenants.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <limits>
#include <list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail::leasing {

/// The variable by which a process that a service has started knows the descriptor of its orders.
inline constexpr char const* orders_variable = "HERRING_SERVICE_ORDERS";

HERRING_SETUP inline auto find_type(std::span<served_type const> all, std::string_view name) noexcept {
    return std::find_if(all.begin(), all.end(), [&](served_type const& one) { return one.name == name; });
}

/// A connection: of an unknown peer, a tenant that asks or waits, or a job, whose lease it is.
struct client {
    enum class stage { unknown, challenged, proven, queued, running, ending, gone };

    std::uint64_t number = 0; ///< also its key in the poller
    lease_link over{};
    stage at = stage::unknown;
    std::string from{};
    time_point until{}; ///< it is closed or refused then, or its ranks are killed
    time_point since{}, told{};
    byte_buffer challenge{};
    std::string tenant{};
    secret_key key{}; ///< of its ranks' secret, until they have it
    ask wish{};
    need each{};                      ///< of its ranks
    std::vector<served_rank> ranks{}; ///< those that run

    bool is_stranger() const noexcept {
        return at == stage::unknown || at == stage::challenged || at == stage::ending;
    }
    int servers() const noexcept { return static_cast<int>(wish.servers); }
};

/// The jobs of a tenant, or of all, with their ranks and memory.
struct holding {
    int jobs = 0, ranks = 0;
    std::uint64_t bytes = 0;

    bool fits(holding const& in) const noexcept {
        return jobs <= in.jobs && ranks <= in.ranks && bytes <= in.bytes;
    }
    holding operator+(holding const& more) const noexcept {
        return {jobs + more.jobs, ranks + more.ranks, bytes + more.bytes};
    }
    HERRING_SETUP std::string text() const {
        return detail::text({ranks, " ranks and ", bytes_text(bytes), " in ", jobs, " jobs"});
    }
};

/// The decision on an ask. `blocks`: the service itself has too little left, so later asks wait behind it.
struct verdict {
    enum { granted, later, never } is = granted;
    bool blocks = false;
    std::string why{};
};

/// The parent. One thread runs it; the jobs' work is done by the processes that it starts.
///
/// A job's ranks are given back when its last process has ended. When its connection ends, or one of its
/// processes ends in an error, the others have `grace` to end by themselves.
class lender {
    using stage = client::stage;
    static constexpr std::uint64_t listener_key = 0, signal_key = 1, first_client = 2;
    static constexpr std::chrono::milliseconds grace{2'000}, handshake_time{5'000};
    static constexpr std::ptrdiff_t most_strangers = 64, most_of_tenant = 64;
    static constexpr std::uint64_t most_shards = 1 << 20, most_elements = std::uint64_t{1} << 43;
    static constexpr char const* about_to_end = "it is about to end; ask another one";

  public:
    HERRING_SETUP lender(service_options options, std::span<served_type const> types)
        : options_(std::move(options)), types_(types), tenants_(read_tenants(options_.tenants)) {
        if (options_.ranks <= 0) options_.ranks = usable_cores();
        if (options_.memory == 0) options_.memory = free_memory();
        std::memcpy(salt_.data(), random_nonce().data(), salt_.size());
        host_and_port const at = split_address(options_.listen, "service_options::listen", 1, "service");
        std::string why;
        for (endpoint const& one : resolve(at.host, at.port, clock::now() + handshake_time, why)) {
            listener_ = descriptor(listen_on(one));
            if (listener_.get() >= 0) break;
            why = std::strerror(errno);
        }
        if (listener_.get() < 0)
            throw error(errc::unreachable, -1, -1, "service",
                        {"cannot listen on ", options_.listen, ": ", why,
                         "; give an address of this machine and a free port (ss -ltnp shows who has it)"});
        int const fault = fault_of_copies(listener_.get());
        looks_ = fault == 0 && (options_.rate > 0 || !options_.metrics.empty());
        if (fault != 0 && options_.rate > 0)
            throw error(errc::unsupported, -1, -1, "service",
                        {"service_options::rate is set, and the system forbids to limit the sockets of other "
                         "processes (pidfd_getfd: ",
                         std::strerror(fault),
                         "); allow it: --cap-add SYS_PTRACE for a container's seccomp profile, "
                         "kernel.yama.ptrace_scope 0 or 1, Linux 5.6 or later; or leave rate 0"});
        ::sigset_t ours;
        ::sigemptyset(&ours);
        for (int const one : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&ours, one);
        ::pthread_sigmask(SIG_BLOCK, &ours, nullptr);
        ::signal(SIGCHLD, SIG_DFL); // where it is ignored, exit statuses are lost
        signals_ = descriptor(::signalfd(-1, &ours, SFD_NONBLOCK | SFD_CLOEXEC));
        if (signals_.get() < 0 || !thread_.watch(signals_.get(), signal_key, EPOLLIN) ||
            !thread_.watch(listener_.get(), listener_key, EPOLLIN))
            refuse_to_sleep("service", -1);
    }
    HERRING_SETUP ~lender() { // waits for no rank that the system holds, as in a file system that hangs
        for (client const& c : clients_) kill(c);
    }

    HERRING_SETUP void run() {
        say({"listens on ", options_.listen, " for ", tenants_.size(), " tenants: ", options_.ranks,
             " ranks, ", bytes_text(options_.memory)});
        epoll_event events[64];
        while (!draining_ || (held_by("").jobs > 0 && clock::now() < drain_until_ + grace)) {
            // A burst of a job that seldom communicates is not to wait for what another has just ended.
            std::chrono::milliseconds const turn(options_.rate > 0 && !clients_.empty() ? 25 : 100);
            int const got = thread_.wait(events, 64, static_cast<int>(turn.count()));
            for (int i = 0; i < got; ++i) {
                if (events[i].data.u64 == signal_key) on_signals();
                if (events[i].data.u64 == listener_key) accept();
                for (client& c : clients_)
                    if (c.number == events[i].data.u64) on_readable(c);
            }
            time_point const now = clock::now();
            for (client& c : clients_) look_after(c, now);
            serve_queue(now);
            if (looks_ && now - paced_ >= turn) pace(now);
            clients_.remove_if([this](client const& c) {
                bool const ends = c.at == stage::gone && c.ranks.empty();
                strangers_ += ends && c.tenant.empty();
                return ends;
            });
            tell_of_refusals(now);
            if (options_.metrics.empty() || now - written_ < std::chrono::seconds(1)) continue;
            written_ = now;
            if (!try_write_whole_file(options_.metrics, metrics(now), "service"))
                written_ += std::chrono::minutes(1); // a line a minute
        }
        tell_of_refusals(time_point::max());
        say({"ends: all jobs have left"});
    }

  private:
    HERRING_SETUP void on_signals() {
        signalfd_siginfo got{};
        while (::read(signals_.get(), &got, sizeof got) == static_cast<ssize_t>(sizeof got)) {
            if (got.ssi_signo == SIGHUP) try {
                    tenants_ = read_tenants(options_.tenants);
                    say({options_.tenants, " was read anew: ", tenants_.size(), " tenants"});
                } catch (error const& why) {
                    say({why.why().text, "; the tenants of before stay"});
                }
            else if (!std::exchange(draining_, true))
                drain();
        }
    }
    HERRING_SETUP void drain() {
        drain_until_ = clock::now() + options_.drain_time;
        say({"is to end: ", held_by("").jobs, " jobs have ", options_.drain_time.count(), " ms to leave"});
        listener_ = descriptor();
        for (client& c : clients_) {
            if (c.at == stage::running) c.over.send(message::drain);
            if (c.at == stage::queued) refuse(c, errc::refused, {about_to_end});
        }
    }

    // ---- connections --------------------------------------------------------------------------------------

    HERRING_SETUP void accept() {
        for (int i = 0; i < 16; ++i) {
            endpoint from;
            descriptor made = accept_next(listener_.get(), from);
            if (made.get() < 0) return; // out of descriptors, too: the next turn looks again
            auto const of = [&](auto&& holds) {
                return std::find_if(clients_.begin(), clients_.end(), holds);
            };
            if (std::count_if(clients_.begin(), clients_.end(),
                              [](client const& c) { return c.is_stranger(); }) >= most_strangers) {
                auto oldest =
                    of([](client const& c) { return c.at == stage::unknown; }); // a job sends at once
                if (oldest == clients_.end()) oldest = of([](client const& c) { return c.is_stranger(); });
                on_end(*oldest);
            }
            tune(made.get(), handshake_time);
            client& c = clients_.emplace_back();
            c.number = next_number_++;
            c.from = from.text();
            c.until = clock::now() + handshake_time;
            if (!thread_.watch(made.get(), c.number, EPOLLIN)) c.at = stage::gone;
            c.over = lease_link(std::move(made));
        }
    }

    HERRING_SETUP void on_readable(client& c) {
        for (int i = 0; i < 16 && c.at != stage::gone; ++i) {
            lease_link::state const got = c.over.receive();
            if (got == lease_link::state::nothing) return;
            message const kind = c.over.kind();
            if (got == lease_link::state::other && c.at == stage::unknown)
                refuse(c, errc::mismatch, {other_version});
            else if (got != lease_link::state::whole)
                on_end(c);
            else if (c.at == stage::unknown && kind == message::knock)
                challenge(c);
            else if (c.at == stage::challenged && kind == message::hello)
                on_hello(c);
            else if (c.at == stage::proven && kind == message::ask)
                on_ask(c);
            else if (c.at != stage::ending) // no job sends anything else
                on_end(c);
        }
    }

    HERRING_SETUP void on_end(client& c) {
        thread_.forget(c.over.socket()); // a connection that has ended stays readable
        if (c.at != stage::running) return void(c.at = stage::gone);
        c.until = std::min(c.until, clock::now() + grace);
    }

    HERRING_SETUP void challenge(client& c) {
        c.challenge = wire::challenge{salt_, random_nonce(), true}.write();
        c.at = stage::challenged;
        c.over.send(message::challenge, c.challenge);
    }

    HERRING_SETUP void on_hello(client& c) {
        hello said;
        wire::proof shown{};
        std::span<std::byte const> words;
        if (!wire::split_proof(c.over.body(), words, shown) || !said.read(words)) return on_end(c);
        tenant const* const who = find_tenant(said.tenant);
        std::optional<wire::handshake> proven;
        if (who != nullptr) proven = wire::proven_by(names, who->key, salt_, c.challenge, words, shown);
        if (!proven) // in the same words, so that an unknown peer learns no names
            return refuse(
                c, errc::refused,
                {"it knows no tenant '", said.tenant,
                 "' with this key; see lent_servers::tenant and key_file, and the service's tenants"});
        auto const others = std::count_if(clients_.begin(), clients_.end(), [&](client const& o) {
            return o.tenant == who->name && o.at != stage::running;
        });
        c.tenant = who->name;
        c.key = proven->resumption_key();
        c.over.send(message::admit, proven->proof_of_acceptor({}));
        c.over.protect(*proven, true);
        c.at = stage::proven;
        if (others >= most_of_tenant)
            refuse(c, errc::refused, {"tenant '", c.tenant, "' has ", others, " connections; end some"});
    }

    HERRING_SETUP void on_ask(client& c) {
        reading first{{c.over.body()}}; // of another version the rest may be other fields
        std::string version;
        first.text(version, most_name);
        wire::make_printable(version);
        if (first.in.ok && version != HERRING_VERSION_STRING)
            return refuse(c, errc::mismatch,
                          {"it is of version " HERRING_VERSION_STRING " of Herring, the job of ", version,
                           "; build both from one version"});
        if (!read(c.wish, c.over.body())) return on_end(c);
        if (draining_) return refuse(c, errc::refused, {about_to_end});
        auto const found = find_type(types_, c.wish.type);
        if (found == types_.end()) {
            std::string all;
            for (served_type const& t : types_) append(all, {all.empty() ? "'" : "', '", t.name});
            return refuse(c, errc::unsupported,
                          {"it was not compiled with '", c.wish.type, "'; it has ", all, "'"});
        }
        if (c.servers() > options_.ranks) // before a plan is made for them
            return refuse(c, errc::bad_argument,
                          {"it has ", options_.ranks, " ranks, and ", c.servers(), " were asked for"});
        std::uint64_t elements = 0;
        for (tensor_spec const& t : c.wish.tensors)
            elements += std::min<std::uint64_t>(t.elements, most_elements);
        // A larger plan would take the time of others; one that no memory holds is refused below.
        if (elements < most_elements &&
            (c.wish.tensors.size() + elements / 1_MiB) * c.wish.servers > most_shards)
            return refuse(c, errc::bad_argument,
                          {c.wish.tensors.size(), " tensors of ", elements, " elements are too many for ",
                           c.servers(), " servers; ask for fewer servers, or join tensors"});
        try {
            c.each = found->needs(layout(c.wish.tensors), c.wish.terms.workers, c.servers());
        } catch (error const& why) {
            return refuse(c, why.code(), {why.why().text});
        } catch (std::exception const& why) {
            return refuse(c, errc::no_resources, {"no plan can be made: ", why.what()});
        }
        c.at = stage::queued;
        c.since = clock::now();
        c.until = c.since + c.wish.queue_for;
    }

    HERRING_SETUP void refuse(client& c, errc what, std::initializer_list<text_part> why) {
        failure const said = failure::make(what, -1, -1, "service", why);
        std::string told = text({c.from, ": ", said.text});
        if (tenant* const t = find_tenant(c.tenant)) {
            ++t->refused;
            t->last_refusal = std::move(told);
        } else {
            last_stranger_ = std::move(told);
        }
        c.over.send(message::refuse, wire::write_failure(said));
        c.over.finish();
        c.at = stage::ending; // until the other end has read it
        c.until = clock::now() + handshake_time;
    }

    /// One line a second at most of unknown peers, and of each tenant, however many there are.
    HERRING_SETUP void tell_of_refusals(time_point now) {
        if (now - refusals_told_at_ < std::chrono::seconds(1)) return;
        refusals_told_at_ = now;
        auto const last = [](std::string& of) {
            return of.empty() ? std::string() : "; the last that was refused: " + std::exchange(of, {});
        };
        if (strangers_ != strangers_told_)
            say({strangers_ - std::exchange(strangers_told_, strangers_),
                 " connections ended without a proof of a tenant's key", last(last_stranger_)});
        for (tenant& t : tenants_)
            if (t.refused > 0)
                say({"tenant ", t.name, ": refused ", std::exchange(t.refused, 0), last(t.last_refusal)});
    }

    // ---- admission ----------------------------------------------------------------------------------------

    HERRING_SETUP tenant* find_tenant(std::string_view name) noexcept {
        for (tenant& t : tenants_)
            if (t.name == name) return &t;
        return nullptr;
    }

    static holding of(client const& c) noexcept { return {1, c.servers(), c.each.memory * c.wish.servers}; }
    /// `name` empty: of all tenants.
    HERRING_SETUP holding held_by(std::string_view name, stage at = stage::running) const noexcept {
        holding all;
        for (client const& c : clients_)
            if (c.at == at && (name.empty() || c.tenant == name)) all = all + of(c);
        return all;
    }

    HERRING_SETUP verdict admits(client const& c) {
        tenant const* const who = find_tenant(c.tenant);
        if (who == nullptr) return {verdict::never, false, "the tenant is none any more"};
        holding const wish = of(c), limits{who->jobs, who->ranks, who->bytes},
                      service{std::numeric_limits<int>::max(), options_.ranks, options_.memory},
                      own = held_by(c.tenant);
        std::string const asked = text({"asked for are ", wish.text(), ", and "}),
                          of_tenant = text({asked, "the tenant's limits are ", limits.text()}),
                          of_service = text({asked, "the service has ", options_.ranks, " ranks and ",
                                             bytes_text(options_.memory)});
        if (!wish.fits(limits)) return {verdict::never, false, of_tenant};
        if (!wish.fits(service)) return {verdict::never, false, of_service};
        if (!(own + wish).fits(limits))
            return {verdict::later, false, text({of_tenant, "; it holds ", own.text()})};
        if ((held_by("") + wish).fits(service)) return {};
        std::string all;
        for (tenant const& t : tenants_)
            if (holding const h = held_by(t.name); h.jobs > 0)
                append(all, {all.empty() ? "; held by " : ", ", t.name, ": ", h.text()});
        return {verdict::later, true, of_service + all};
    }

    HERRING_SETUP void serve_queue(time_point now) {
        bool blocked = false; // an earlier job waits for the service's ranks or memory: none overtakes it
        for (client& c : clients_) {
            if (c.at != stage::queued) continue;
            verdict const v = admits(c);
            if (v.is == verdict::never) {
                refuse(c, errc::bad_argument, {v.why});
            } else if (v.is == verdict::granted && !blocked) {
                start(c, now);
            } else if (now >= c.until) {
                refuse(c, errc::no_resources,
                       {v.why.empty() ? "earlier jobs wait before it" : v.why,
                        "; give lent_servers::queue_for, or ask for less"});
            } else {
                blocked = blocked || v.blocks;
                if (now - c.told < std::chrono::seconds(1)) continue;
                c.told = now;
                c.over.send(message::wait);
            }
        }
    }

    // ---- processes ----------------------------------------------------------------------------------------

    HERRING_SETUP pid_t start_rank(client const& c, std::uint32_t rank) {
        byte_buffer const told = write(orders{rank, find_tenant(c.tenant)->checkpoints, c.wish});
        descriptor const file(::memfd_create("herring-orders", MFD_CLOEXEC));
        for (std::span<std::byte const> const part :
             {std::span<std::byte const>(c.key.bytes()), std::span<std::byte const>(told)})
            if (::write(file.get(), part.data(), part.size()) != static_cast<ssize_t>(part.size())) return -1;
        std::string line = small_file("/proc/self/cmdline"), mark = text({orders_variable, "=", file.get()});
        std::vector<char*> arguments, environment;
        for (std::size_t at = 0; at < line.size(); at = line.find('\0', at) + 1)
            arguments.push_back(&line[at]);
        for (char** one = ::environ; *one != nullptr; ++one)
            if (std::string_view const v = *one;
                !v.starts_with("HERRING_") || v.starts_with("HERRING_INTERFACE="))
                environment.push_back(*one);
        environment.push_back(mark.data());
        arguments.push_back(nullptr);
        environment.push_back(nullptr);
        int level = 0, most_share = 1; // each nice level is a weight of 1.25
        for (tenant const& t : tenants_) most_share = std::max(most_share, t.share);
        for (int left = most_share; left * 9 / 10 > find_tenant(c.tenant)->share; left = left * 4 / 5)
            ++level;
        rlimit most{};
        if (::getrlimit(RLIMIT_AS, &most) == 0 && most.rlim_max < c.each.address_space) {
            errno = ENOMEM;
            return -1;
        }
        pid_t const parent = ::getpid(), pid = ::fork();
        if (pid != 0) return pid;
        // No allocation from here on. Signals that a terminal or systemd sends to all are for the parent.
        for (int const one : {SIGTERM, SIGINT, SIGHUP}) ::signal(one, SIG_IGN);
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)::setpriority(PRIO_PROCESS, 0, std::min(level, 19));
        rlimit const space{c.each.address_space, c.each.address_space}, nothing{0, 0};
        if (::getppid() == parent && ::setrlimit(RLIMIT_CORE, &nothing) == 0 &&
            ::setrlimit(RLIMIT_AS, &space) == 0 && ::fcntl(file.get(), F_SETFD, 0) == 0)
            ::execve("/proc/self/exe", arguments.data(), environment.data());
        ::_exit(127);
    }

    HERRING_SETUP void start(client& c, time_point now) {
        for (std::uint32_t rank = 0; rank < c.wish.servers; ++rank) {
            c.ranks.push_back({start_rank(c, rank)});
            if (c.ranks.back().process > 0) continue;
            std::string const why = std::strerror(errno);
            c.ranks.pop_back();
            kill(c);
            return refuse(c, errc::no_resources,
                          {"it cannot start a process: ", why, "; raise its limits (ulimit -u, -n and -v)"});
        }
        auto const waited = now - c.since;
        say({"lends ", of(c).text(), " to tenant ", c.tenant, " at ", c.from, ", job ", c.number, ", after ",
             std::chrono::duration_cast<std::chrono::milliseconds>(waited).count(), " ms"});
        tenant& of_job = *find_tenant(c.tenant);
        of_job.waited += waited;
        ++of_job.granted;
        c.key = {};
        c.at = stage::running;
        c.until = time_point::max();
        c.over.send(message::grant);
        // An outage that the job survives is no end of it; its ranks find out what is.
        leave_to_detector(c.over.socket(),
                          std::max<std::chrono::milliseconds>(c.wish.terms.timeout, std::chrono::minutes(1)));
    }

    /// Kills the ranks of a job; `look_after` takes them back when they have ended.
    HERRING_SETUP static void kill(client const& c) noexcept {
        for (served_rank const& one : c.ranks) ::kill(one.process, SIGKILL);
    }

    HERRING_SETUP void look_after(client& c, time_point now) {
        c.over.flush();
        std::erase_if(c.ranks, [&](served_rank const& one) {
            int how = 0;
            if (::waitpid(one.process, &how, WNOHANG) != one.process) return false;
            if (how == 0) return true;
            say({"a rank of job ", c.number, " of tenant ", c.tenant,
                 WIFSIGNALED(how) ? " was killed by signal " : " ended with status ",
                 WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how)});
            c.until = std::min(c.until, now + grace);
            return true;
        });
        if (c.at != stage::running) {
            if (c.at != stage::queued && now >= c.until) c.at = stage::gone;
            return;
        }
        if (now >= std::min(c.until, drain_until_)) kill(c); // a later turn takes them back
        if (!c.ranks.empty()) return;
        say({"job ", c.number, " of tenant ", c.tenant, " has given its ranks back"});
        c.at = stage::gone;
    }

    /// Looks at all ranks, and divides the network among the busy ones: each tenant has its share.
    HERRING_SETUP void pace(time_point now) {
        paced_ = now;
        for (tenant& t : tenants_) t.busy = 0;
        auto const for_each_rank = [this](auto&& act) {
            for (client& c : clients_)
                if (tenant* const t = find_tenant(c.tenant))
                    for (served_rank& one : c.ranks) act(*t, one);
        };
        for_each_rank([](tenant& t, served_rank& one) {
            one.look();
            t.busy += one.busy;
            t.busy_looks += one.busy;
            ++t.looks;
        });
        if (options_.rate == 0) return;
        int shares = 0; // of tenants that are busy
        for (tenant const& t : tenants_) shares += t.busy > 0 ? t.share : 0;
        auto const rate = static_cast<std::uint64_t>(options_.rate) * 125'000;
        for_each_rank([&](tenant const& t, served_rank& one) {
            one.limit(rate_of_rank(rate, t.share, shares - (t.busy > 0 ? t.share : 0), t.busy));
        });
    }

    HERRING_SETUP std::string metrics(time_point now) {
        std::string all = text({"# TYPE herring_service_draining gauge\nherring_service_draining ", draining_,
                                "\n# TYPE herring_service_unknown_connections_total "
                                "counter\nherring_service_unknown_connections_total ",
                                strangers_, "\n"});
        auto const rows = [&](char const* name, char const* type, auto const& value) {
            append(all, {"# TYPE herring_service_", name, " ", type, "\n"});
            for (tenant& t : tenants_)
                append(all, {"herring_service_", name, "{tenant=\"", t.name, "\"} ", value(t), "\n"});
        };
        for (stage const at : {stage::running, stage::queued}) {
            std::string const front = at == stage::queued ? "waiting_" : "";
            auto const held = [&](char const* name, auto what) {
                rows((front + name).c_str(), "gauge",
                     [&](tenant const& t) { return held_by(t.name, at).*what; });
            };
            held("jobs", &holding::jobs);
            held("ranks", &holding::ranks);
            held("bytes", &holding::bytes);
        }
        rows("waiting_seconds", "gauge", [&](tenant const& t) {
            time_point first = now;
            for (client const& c : clients_)
                if (c.at == stage::queued && c.tenant == t.name) first = std::min(first, c.since);
            return std::to_string(std::chrono::duration<double>(now - first).count());
        });
        rows("waited_seconds_total", "counter",
             [](tenant const& t) { return std::to_string(t.waited.count()); });
        rows("granted_jobs_total", "counter", [](tenant const& t) { return t.granted; });
        if (looks_)
            rows("busy_share", "gauge", [](tenant& t) {
                std::uint64_t const busy = std::exchange(t.busy_looks, 0), of = std::exchange(t.looks, 0);
                return std::to_string(of == 0 ? 0.0 : static_cast<double>(busy) / static_cast<double>(of));
            });
        return all;
    }

    HERRING_SETUP static void say(std::initializer_list<text_part> words) {
        std::string line = text(words); // of others, too
        wire::make_printable(line);
        std::replace_if(
            line.begin(), line.end(), [](char c) { return c == '\n' || c == '\t'; }, '?');
        std::fprintf(stderr, "herring: service: %s\n", line.c_str());
    }

    service_options options_;
    std::span<served_type const> types_;
    std::vector<tenant> tenants_;
    poller thread_{"service"};
    descriptor listener_{}, signals_{};
    wire::salt salt_{};
    std::list<client> clients_; // in the order in which they came
    std::uint64_t next_number_ = first_client;
    std::uint64_t strangers_ = 0, strangers_told_ = 0; // connections that ended without a proof
    std::string last_stranger_;
    time_point drain_until_ = time_point::max(), written_{}, paced_{}, refusals_told_at_{};
    bool draining_ = false, looks_ = false;
};

HERRING_SEPARABLE void run_service(service_options const& options, std::span<served_type const> types) {
    lender(options, types).run();
}

/// Serves the rank that the orders name. Erases `file`, which has them and a secret.
HERRING_SETUP inline void serve_as_ordered(std::span<served_type const> types, std::string& file) {
    constexpr std::size_t key = secret_key::size;
    auto const bytes = std::as_bytes(std::span(file));
    orders told;
    bool const sound = bytes.size() >= key && read(told, bytes.subspan(key));
    auto const type = find_type(types, told.of.type);
    if (!sound || type == types.end())
        throw error(errc::internal, -1, -1, "service", "orders that no service of this build gives");
    // Folders that a job names lie beneath its tenant's folder, or are refused.
    int const root = ::open(told.checkpoints.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    process_wide::folder_root = root < 0 ? -2 : root;
    if (root < 0 && !told.checkpoints.empty())
        std::fprintf(stderr, "herring: service: no checkpoints: %s: %s\n", told.checkpoints.c_str(),
                     std::strerror(errno));
    lease_terms const& terms = told.of.terms;
    if (terms.seals) ::setenv("HERRING_CONTROL", "sealed", 1);
    join_options how{.rank = terms.workers + static_cast<int>(told.rank),
                     .size = terms.workers + static_cast<int>(told.of.servers),
                     .address = terms.address,
                     .role = role::server,
                     .secret = secret_text(bytes.first<key>()),
                     .timeout = terms.timeout};
    erase(file);
    world ranks = join(how);
    erase(*how.secret);
    type->serve(ranks, layout(std::move(told.of.tensors)));
}

HERRING_SEPARABLE void serve_if_started(std::span<served_type const> types) {
    char const* const mark = std::getenv(orders_variable);
    if (mark == nullptr) return;
    descriptor const orders(std::atoi(mark));
    std::string file = small_file(text({"/proc/self/fd/", orders.get()}));
    ::unsetenv(orders_variable);
    int status = 0;
    try {
        serve_as_ordered(types, file);
    } catch (std::exception const& why) {
        std::fprintf(stderr, "herring: service: a rank: %s\n", why.what());
        status = 1;
    }
    std::_Exit(status);
}

} // namespace HERRING_NAMESPACE::detail::leasing

#endif // HERRING_SERVICE_SERVICE_IMPL_HPP
