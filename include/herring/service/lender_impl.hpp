// herring: the parent of a service: the functions.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_SERVICE_LENDER_IMPL_HPP
#define HERRING_SERVICE_LENDER_IMPL_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/text.hpp"
#include "herring/control/wire/messages.hpp"
#include "herring/crypto/random.hpp"
#include "herring/crypto/secret.hpp"
#include "herring/join/environment.hpp"
#include "herring/join/join.hpp"
#include "herring/machine/address.hpp"
#include "herring/machine/files.hpp"
#include "herring/machine/free_memory.hpp"
#include "herring/machine/name_lookup.hpp"
#include "herring/net/handshake.hpp"
#include "herring/net/poller.hpp"
#include "herring/net/sockets.hpp"
#include "herring/service/messages.hpp"
#include "herring/service/service.hpp"
#include "herring/service/tenants.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sched.h>
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
inline constexpr int orders_descriptor = 3;

HERRING_SETUP inline ::sigset_t service_signals() noexcept {
    ::sigset_t all;
    ::sigemptyset(&all);
    for (int const one : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) ::sigaddset(&all, one);
    return all;
}

HERRING_SETUP inline auto find_type(std::span<served_type const> all, std::string_view name) noexcept {
    return std::find_if(all.begin(), all.end(), [&](served_type const& one) { return one.name == name; });
}

/// A connection: of a stranger, a tenant that asks or waits, or a job, whose lease it is.
struct client {
    enum class stage { unknown, challenged, proven, queued, running, ending, gone };

    std::uint64_t number = 0; ///< also its key in the poller
    lease_link over{};
    stage at = stage::unknown;
    std::string from{};
    time_point until{}; ///< closed, refused, or its ranks are killed then
    time_point since{}, told{};
    byte_buffer challenge{};
    std::string tenant{}, secret{};
    ask wish{};
    need each{};                ///< of its ranks
    std::vector<pid_t> ranks{}; ///< those that run
    bool watches_write = false;

    int servers() const noexcept { return static_cast<int>(wish.servers); }
};

/// What a tenant, or all, have: of jobs that run.
struct holding {
    int jobs = 0, ranks = 0;
    std::uint64_t bytes = 0;
};

/// Whether an ask can be granted. `blocks`: what is missing is the service's, so later ones wait behind it.
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
    static constexpr std::uint64_t signal_key = 15, first_client = 16;

  public:
    static constexpr std::chrono::milliseconds grace{2'000}, handshake_time{5'000};
    static constexpr std::size_t most_strangers = 64, most_of_tenant = 64;

    HERRING_SETUP lender(service_options options, std::span<served_type const> types)
        : options_(std::move(options)), types_(types), tenants_(read_tenants(options_.tenants)) {
        ::cpu_set_t cores;
        if (options_.ranks <= 0)
            options_.ranks = ::sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
        if (options_.memory == 0) options_.memory = free_memory();
        std::memcpy(salt_.data(), random_nonce().data(), salt_.size());
        listen();
    }

    HERRING_SETUP ~lender() {
        for (client& c : clients_) kill(c);
    }

    HERRING_SETUP void listen() {
        host_and_port const at = split_address(options_.listen, "service_options::listen", 1, "service");
        std::string why;
        for (endpoint const& one : resolve(at.host, at.port, clock::now() + handshake_time, why)) {
            descriptor made(listen_on(one));
            if (made.get() < 0) {
                why = std::strerror(errno);
                continue;
            }
            if (listeners_.size() < signal_key && thread_.watch(made.get(), listeners_.size(), EPOLLIN))
                listeners_.push_back(std::move(made));
        }
        if (listeners_.empty())
            throw error(errc::unreachable, -1, -1, "service",
                        {"cannot listen on ", options_.listen, ": ", why,
                         "; give an address of this machine and a free port (ss -ltnp shows who has it)"});
    }

    HERRING_SETUP void run() {
        ::sigset_t const ours = service_signals();
        ::sigset_t before;
        ::pthread_sigmask(SIG_BLOCK, &ours, &before);
        struct sigaction keeps_children {
        }, child_before{};
        keeps_children.sa_handler = SIG_DFL; // where SIGCHLD is ignored, nobody learns how a process ended
        ::sigaction(SIGCHLD, &keeps_children, &child_before);
        signals_ = descriptor(::signalfd(-1, &ours, SFD_NONBLOCK | SFD_CLOEXEC));
        if (signals_.get() < 0 || !thread_.watch(signals_.get(), signal_key, EPOLLIN))
            refuse_to_sleep("service", -1);
        say({"listens on ", options_.listen, " for ", tenants_.size(), " tenants: ", options_.ranks,
             " ranks, ", bytes_text(options_.memory)});
        epoll_event events[64];
        while (!draining_ || held_by("").jobs > 0) {
            int const got = thread_.wait(events, 64, 100);
            for (int i = 0; i < got; ++i) {
                std::uint64_t const key = events[i].data.u64;
                if (key == poller::wake_key && thread_.woken()) drain();
                if (key == signal_key) on_signals();
                if (key < listeners_.size()) accept(listeners_[static_cast<std::size_t>(key)].get());
                for (client& c : clients_)
                    if (c.number == key && c.at != stage::gone) on_readable(c);
            }
            time_point const now = clock::now();
            for (client& c : clients_) look_after(c, now);
            serve_queue(now);
            clients_.remove_if([](client const& c) { return c.at == stage::gone; });
            if (!options_.metrics.empty() && now - written_ >= std::chrono::seconds(1)) {
                written_ = now;
                (void)try_write_whole_file(options_.metrics, metrics(), "service");
            }
        }
        say({"ends: all jobs have left"});
        signals_ = descriptor();
        ::sigaction(SIGCHLD, &child_before, nullptr);
        ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    }

    HERRING_SETUP void on_signals() {
        signalfd_siginfo got{};
        while (::read(signals_.get(), &got, sizeof got) == static_cast<ssize_t>(sizeof got)) {
            if (got.ssi_signo == SIGHUP) reload();
            if (got.ssi_signo == SIGTERM || got.ssi_signo == SIGINT) drain();
        }
    }

    HERRING_SETUP void reload() {
        try {
            tenants_ = read_tenants(options_.tenants);
            say({options_.tenants, " was read anew: ", tenants_.size(), " tenants"});
        } catch (error const& why) {
            say({why.why().text, "; the tenants of before stay"});
        }
    }

    HERRING_SETUP void drain() {
        if (std::exchange(draining_, true)) return;
        drain_until_ = clock::now() + options_.drain_time;
        say({"is to end: ", held_by("").jobs, " jobs have ", options_.drain_time.count(), " ms to leave"});
        listeners_.clear();
        for (client& c : clients_) {
            if (c.at == stage::running) c.over.send(message::drain);
            if (c.at == stage::queued) refuse(c, errc::refused, {"it is about to end; ask another one"});
        }
    }

    // ---- connections ------------------------------------------------------------------------------------------

    HERRING_SETUP void accept(int listener) {
        for (int i = 0; i < 16; ++i) {
            endpoint from;
            descriptor made = accept_next(listener, from);
            if (made.get() < 0) return; // out of descriptors, too: the next turn looks again
            std::size_t strangers = 0;
            client* oldest = nullptr;
            for (client& c : clients_)
                if (c.at == stage::unknown || c.at == stage::challenged || c.at == stage::ending) {
                    ++strangers;
                    if (oldest == nullptr || (c.at == stage::unknown && oldest->at != stage::unknown))
                        oldest = &c;
                }
            if (strangers >= most_strangers) oldest->at = stage::gone;
            clients_.remove_if([](client const& c) { return c.at == stage::gone && c.ranks.empty(); });
            tune(made.get(), handshake_time);
            client& c = clients_.emplace_back();
            c.number = next_number_++;
            c.from = from.text();
            c.since = clock::now();
            c.until = c.since + handshake_time;
            if (!thread_.watch(made.get(), c.number, EPOLLIN)) c.at = stage::gone;
            c.over = lease_link(std::move(made));
        }
    }

    HERRING_SETUP void on_readable(client& c) {
        for (int i = 0; i < 16 && c.at != stage::gone; ++i) {
            c.over.flush();
            lease_link::state const got = c.over.receive();
            if (got == lease_link::state::nothing) return;
            if (got != lease_link::state::whole) return on_end(c);
            on_message(c);
        }
    }

    HERRING_SETUP void on_end(client& c) {
        if (c.at != stage::running) {
            c.at = stage::gone;
            return;
        }
        thread_.forget(c.over.socket()); // a connection that has ended stays readable
        c.until = std::min(c.until, clock::now() + grace);
    }

    HERRING_SETUP void on_message(client& c) {
        if (c.at == stage::unknown && c.over.kind() == message::knock) {
            c.challenge = wire::challenge{salt_, random_nonce(), true}.write();
            c.at = stage::challenged;
            return c.over.send(message::challenge, c.challenge);
        }
        if (c.at == stage::challenged && c.over.kind() == message::hello) return on_hello(c);
        if (c.at == stage::proven && c.over.kind() == message::ask) return on_ask(c);
        on_end(c); // no job sends anything else
    }

    HERRING_SETUP void on_hello(client& c) {
        hello said;
        wire::proof shown{};
        std::span<std::byte const> words;
        if (!wire::split_proof(c.over.body(), words, shown) || !said.read(words)) return on_end(c);
        tenant const* const who = find_tenant(said.tenant);
        std::optional<wire::handshake> const proven =
            who == nullptr ? std::optional<wire::handshake>()
                           : wire::proven_by(names, who->key, salt_, c.challenge, words, shown);
        if (!proven) // in the same words, so that a stranger learns no names
            return refuse(
                c, errc::refused,
                {"it knows no tenant '", said.tenant,
                 "' with this key; see lent_servers::tenant and key_file, and the service's file of "
                 "tenants"});
        std::size_t const others = static_cast<std::size_t>(std::count_if(
            clients_.begin(), clients_.end(), [&](client const& o) { return o.tenant == who->name; }));
        c.tenant = who->name;
        c.secret = secret_text(proven->resumption_key().bytes());
        c.over.send(message::admit, proven->proof_of_acceptor({}));
        c.over.protect(*proven, true);
        c.at = stage::proven;
        if (others >= most_of_tenant)
            refuse(c, errc::refused, {"tenant '", c.tenant, "' has ", others, " connections; end some"});
    }

    HERRING_SETUP void on_ask(client& c) {
        if (!c.wish.read(c.over.body())) return on_end(c);
        if (c.wish.version != HERRING_VERSION_STRING)
            return refuse(c, errc::mismatch,
                          {"it is of version " HERRING_VERSION_STRING " of Herring, the job of ",
                           c.wish.version, "; build both from one version"});
        if (draining_) return refuse(c, errc::refused, {"it is about to end; ask another one"});
        auto const found = find_type(types_, c.wish.type);
        if (found == types_.end()) {
            std::string all;
            for (served_type const& t : types_) append(all, {all.empty() ? "'" : "', '", t.name});
            return refuse(c, errc::unsupported,
                          {"it was not compiled with '", c.wish.type, "'; it has ", all, "'"});
        }
        try {
            if (c.servers() > options_.ranks) // before a plan is made for them
                return refuse(c, errc::bad_argument,
                              {"it has ", options_.ranks, " ranks, and ", c.servers(), " were asked for"});
            c.each = found->needs(c.wish.tensors, c.wish.terms.workers, c.servers());
        } catch (error const& why) {
            return refuse(c, why.code(), {why.why().text});
        }
        c.at = stage::queued;
        c.since = clock::now();
        c.until = c.since + c.wish.queue_for;
        serve_queue(c.since); // what does not have to wait does not
    }

    HERRING_SETUP void refuse(client& c, errc what, std::initializer_list<text_part> why) {
        failure const said = failure::make(what, -1, -1, "service", why);
        say({"refuses ", c.from, c.tenant.empty() ? "" : ", tenant ", c.tenant, ": ", said.text});
        c.over.send(message::refuse, wire::write_failure(said));
        c.over.finish();
        c.at = stage::ending; // until the other end has read it
        c.until = clock::now() + handshake_time;
    }

    // ---- admission --------------------------------------------------------------------------------------------

    HERRING_SETUP tenant const* find_tenant(std::string_view name) const noexcept {
        for (tenant const& t : tenants_)
            if (t.name == name) return &t;
        return nullptr;
    }

    /// `name` empty: of all tenants.
    HERRING_SETUP holding held_by(std::string_view name, stage at = stage::running) const noexcept {
        holding all;
        for (client const& c : clients_) {
            if (c.at != at || (!name.empty() && c.tenant != name)) continue;
            ++all.jobs;
            all.ranks += c.servers();
            all.bytes += c.each.memory * c.wish.servers;
        }
        return all;
    }

    HERRING_SETUP std::string holders() const {
        std::string all;
        for (tenant const& t : tenants_)
            if (holding const h = held_by(t.name); h.jobs > 0)
                append(all,
                       {all.empty() ? "" : ", ", t.name, " ", h.ranks, " ranks and ", bytes_text(h.bytes)});
        return all.empty() ? "nobody" : all;
    }

    HERRING_SETUP verdict admits(client const& of) const {
        tenant const* const who = find_tenant(of.tenant);
        if (who == nullptr)
            return {verdict::never, false, text({"tenant '", of.tenant, "' is none any more"})};
        int const ranks = of.servers();
        std::uint64_t const bytes = of.each.memory * of.wish.servers;
        auto const asks = [&](std::string_view whose, int most_ranks, std::uint64_t most_bytes) {
            return text({"asked for are ", ranks, " ranks of ", bytes_text(of.each.memory), ", ", whose, " ",
                         most_ranks, " ranks and ", bytes_text(most_bytes)});
        };
        if (ranks > who->ranks || bytes > who->bytes)
            return {verdict::never, false, asks("and the tenant's limits are", who->ranks, who->bytes)};
        if (ranks > options_.ranks || bytes > options_.memory)
            return {verdict::never, false, asks("and the service has", options_.ranks, options_.memory)};
        holding const own = held_by(of.tenant), all = held_by("");
        if (own.jobs >= who->jobs || own.ranks + ranks > who->ranks || own.bytes + bytes > who->bytes)
            return {verdict::later, false,
                    text({asks("and the tenant's limits are", who->ranks, who->bytes), ", in ", who->jobs,
                          " jobs; it holds ", own.ranks, " ranks and ", bytes_text(own.bytes), " in ",
                          own.jobs, " jobs"})};
        if (all.ranks + ranks > options_.ranks || all.bytes + bytes > options_.memory)
            return {verdict::later, true,
                    text({asks("and the service has", options_.ranks, options_.memory), "; held by ",
                          holders()})};
        return {};
    }

    HERRING_SETUP void serve_queue(time_point now) {
        bool blocked = false; // an earlier one waits for what is the service's: nobody overtakes it
        for (client& c : clients_) {
            if (c.at != stage::queued) continue;
            verdict const v = admits(c);
            if (v.is == verdict::never) {
                refuse(c, errc::bad_argument, {v.why});
            } else if (v.is == verdict::granted && !blocked) {
                start(c, now);
            } else {
                blocked = blocked || v.blocks;
                std::string const why = v.why.empty() ? "earlier jobs wait before it" : v.why;
                if (now >= c.until)
                    refuse(c, errc::no_resources, {why, "; give lent_servers::queue_for, or ask for less"});
                else if (now - c.told >= std::chrono::seconds(1)) {
                    c.told = now;
                    c.over.send(message::wait);
                }
            }
        }
    }

    // ---- processes --------------------------------------------------------------------------------------------

    HERRING_SETUP pid_t start_rank(client const& c, std::uint32_t rank) const {
        tenant const* const who = find_tenant(c.tenant);
        byte_buffer const told =
            orders{rank, c.secret, who == nullptr ? std::string() : who->checkpoints, c.wish}.write();
        descriptor const file(::memfd_create("herring-orders", MFD_CLOEXEC));
        if (file.get() < 0 ||
            ::write(file.get(), told.data(), told.size()) != static_cast<ssize_t>(told.size()))
            return -1;
        std::string line = small_file("/proc/self/cmdline");
        std::vector<char*> arguments, environment;
        for (std::size_t at = 0; at < line.size(); at = line.find('\0', at) + 1)
            arguments.push_back(&line[at]);
        arguments.push_back(nullptr);
        std::string mark = text({orders_variable, "=", orders_descriptor});
        for (char** one = ::environ; *one != nullptr; ++one)
            if (std::string_view const v = *one;
                !v.starts_with("HERRING_") || v.starts_with("HERRING_INTERFACE="))
                environment.push_back(*one);
        environment.push_back(mark.data());
        environment.push_back(nullptr);
        pid_t const parent = ::getpid(), pid = ::fork();
        if (pid != 0) return pid;
        // No allocation from here on. What a terminal or systemd sends to all is for the parent.
        for (int const one : {SIGTERM, SIGINT, SIGHUP}) ::signal(one, SIG_IGN);
        ::sigset_t none;
        ::sigemptyset(&none);
        ::sigprocmask(SIG_SETMASK, &none, nullptr);
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        rlimit const space{c.each.address_space, c.each.address_space}, nothing{0, 0};
        bool const ready =
            ::getppid() == parent && ::setrlimit(RLIMIT_CORE, &nothing) == 0 &&
            ::setrlimit(RLIMIT_AS, &space) == 0 &&
            ::fcntl(file.get(), F_SETFD, file.get() == orders_descriptor ? 0 : FD_CLOEXEC) == 0 &&
            ::lseek(file.get(), 0, SEEK_SET) == 0 &&
            (file.get() == orders_descriptor || ::dup2(file.get(), orders_descriptor) >= 0);
        if (ready) ::execve("/proc/self/exe", arguments.data(), environment.data());
        ::_exit(127);
    }

    HERRING_SETUP void start(client& c, time_point now) {
        for (std::uint32_t rank = 0; rank < c.wish.servers; ++rank) {
            pid_t const pid = start_rank(c, rank);
            if (pid < 0) {
                std::string const why = std::strerror(errno);
                kill(c);
                return refuse(
                    c, errc::no_resources,
                    {"it cannot start a process: ", why, "; raise its limits (ulimit -u, ulimit -n)"});
            }
            c.ranks.push_back(pid);
        }
        say({"lends ", c.servers(), " ranks of ", bytes_text(c.each.memory), " to tenant ", c.tenant, " at ",
             c.from, ", job ", c.number, ", after ",
             std::chrono::duration_cast<std::chrono::milliseconds>(now - c.since).count(), " ms"});
        c.at = stage::running;
        c.since = now;
        c.until = time_point::max();
        c.over.send(message::grant);
    }

    HERRING_SETUP void kill(client& c) noexcept {
        for (pid_t const pid : c.ranks) {
            ::kill(pid, SIGKILL);
            while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
            }
        }
        c.ranks.clear();
    }

    HERRING_SETUP void reap(client& c, time_point now) {
        std::erase_if(c.ranks, [&](pid_t pid) {
            int how = 0;
            if (::waitpid(pid, &how, WNOHANG) != pid) return false;
            if (WIFEXITED(how) && WEXITSTATUS(how) == 0) return true;
            say({"a rank of job ", c.number, " of tenant ", c.tenant,
                 WIFSIGNALED(how) ? " was killed by signal " : " ended with status ",
                 WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how)});
            c.until = std::min(c.until, now + grace);
            return true;
        });
        if (now >= std::min(c.until, drain_until_)) kill(c);
        if (!c.ranks.empty()) return;
        say({"job ", c.number, " of tenant ", c.tenant, " has given its ranks back"});
        c.at = stage::gone;
    }

    HERRING_SETUP void look_after(client& c, time_point now) {
        if (c.at == stage::running) return reap(c, now);
        if (c.at == stage::gone || c.at == stage::queued) return;
        if (now >= c.until) c.at = stage::gone;
        if (c.at != stage::gone && c.over.wants_write() != c.watches_write) {
            c.watches_write = c.over.wants_write();
            thread_.rewatch(c.over.socket(), c.number, c.watches_write ? EPOLLIN | EPOLLOUT : EPOLLIN);
        }
    }

    HERRING_SETUP std::string metrics() const {
        std::string all;
        auto const gauge = [&](char const* name, char const* help, auto const& value) {
            append(all, {"# HELP herring_service_", name, " ", help, "\n# TYPE herring_service_", name,
                         " gauge\n"});
            for (tenant const& t : tenants_)
                append(all, {"herring_service_", name, "{tenant=\"", t.name, "\"} ", value(t), "\n"});
        };
        gauge("jobs", "Jobs that run.", [&](tenant const& t) { return held_by(t.name).jobs; });
        gauge("ranks", "Server ranks that are lent.", [&](tenant const& t) { return held_by(t.name).ranks; });
        gauge("bytes", "Memory that is lent.", [&](tenant const& t) { return held_by(t.name).bytes; });
        gauge("waiting", "Jobs that wait.",
              [&](tenant const& t) { return held_by(t.name, stage::queued).jobs; });
        gauge("waiting_ms", "How long the first of them has waited.", [&](tenant const& t) {
            for (client const& c : clients_)
                if (c.at == stage::queued && c.tenant == t.name)
                    return std::chrono::duration_cast<std::chrono::milliseconds>(clock::now() - c.since)
                        .count();
            return std::chrono::milliseconds::rep{0};
        });
        append(all,
               {"# HELP herring_service_draining 1: it is about to end.\n# TYPE herring_service_draining "
                "gauge\nherring_service_draining ",
                draining_ ? 1 : 0, "\n"});
        return all;
    }

    HERRING_SETUP void say(std::initializer_list<text_part> words) const {
        std::fprintf(stderr, "herring: service: %s\n", text(words).c_str());
    }

    service_options options_;
    std::span<served_type const> types_;
    std::vector<tenant> tenants_;
    poller thread_{"service"};
    std::vector<descriptor> listeners_;
    descriptor signals_{};
    wire::salt salt_{};
    std::list<client> clients_; // in the order in which they came
    std::uint64_t next_number_ = first_client;
    time_point drain_until_ = time_point::max(), written_{};
    bool draining_ = false;
};

HERRING_SEPARABLE void run_service(service_options const& options, std::span<served_type const> types) {
    lender(options, types).run();
}

// ---- the started process ----------------------------------------------------------------------------------

HERRING_SEPARABLE void serve_if_started(std::span<served_type const> types) {
    char const* const mark = std::getenv(orders_variable);
    if (mark == nullptr) return;
    ::unsetenv(orders_variable);
    int status = 1;
    try {
        std::string const file = small_file(text({"/proc/self/fd/", mark}));
        ::close(orders_descriptor);
        orders told;
        bool const sound = told.read(std::as_bytes(std::span(file)));
        auto const type = find_type(types, told.of.type);
        if (!sound || type == types.end())
            throw error(errc::internal, -1, -1, "service", "orders that no service of this build gives");
        lease_terms const& terms = told.of.terms;
        // What a job names lies beneath its tenant's folder, or is refused.
        process_wide::folder_root = ::open(told.checkpoints.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (process_wide::folder_root < 0) {
            process_wide::folder_root = -2;
            if (!told.checkpoints.empty())
                std::fprintf(stderr, "herring: service: no checkpoints: %s: %s\n", told.checkpoints.c_str(),
                             std::strerror(errno));
        }
        if (terms.seals) ::setenv("HERRING_CONTROL", "sealed", 1);
        world ranks = join({.rank = terms.workers + static_cast<int>(told.rank),
                            .size = terms.workers + static_cast<int>(told.of.servers),
                            .address = terms.address,
                            .role = role::server,
                            .secret = told.secret,
                            .timeout = terms.timeout});
        type->serve(ranks, std::move(told.of.tensors));
        status = 0;
    } catch (std::exception const& why) {
        std::fprintf(stderr, "herring: service: a rank: %s\n", why.what());
    }
    std::_Exit(status);
}

} // namespace HERRING_NAMESPACE::detail::leasing

#endif // HERRING_SERVICE_LENDER_IMPL_HPP
