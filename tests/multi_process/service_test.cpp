// herring: a service that lends servers to several jobs: admission, the same bits, ends and crashes, draining.
// SPDX-License-Identifier: Apache-2.0
#include "herring/service.hpp"

#include "conformance/dedicated_suite.hpp"
#include "doctest/doctest.h"
#include "herring/checkpoint.hpp"
#include "herring/intra_node/shared_memory.hpp"
#include "herring/join/gather.hpp"
#include "herring/optimizer/adamw.hpp"
#include "herring/service/messages.hpp"
#include "herring/training.hpp"
#include "herring/transport/tcp.hpp"
#include "service_scene.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

using namespace herring;

namespace {

using sums = reducer<float, transport::tcp, placement::dedicated, update::sum>;
using sums_colocated = reducer<float, transport::tcp, update::sum>;
using trainer = reducer<float, transport::tcp, placement::dedicated, optimizer::adamw, update::average>;
using lends = service<sums, trainer>;

/// In a process that a service has started this serves a job, and does not return.
lends const started{service_options{}};

layout const tensors{{"a", 40'001}, {"b", 17}, {"c", 1000}};

lent_servers wish(tenant_files const& files, std::string const& at, std::string const& who, int count) {
    lent_servers all;
    all.count = count;
    all.tenant = who;
    all.key_file = files.path(who);
    return served_by<sums>({at}, tensors, all);
}

/// Steps whose sums are known.
void steps(world& w, int count) {
    sums reduce(w, tensors);
    for (int step = 0; step < count; ++step) {
        for (std::size_t i = 0; i < reduce.size(); ++i) {
            std::span<float> const t = reduce.tensor(i);
            std::fill(t.begin(), t.end(), static_cast<float>(w.worker() + 1 + step));
            reduce.ready(i);
        }
        reduce.wait();
        float const due = static_cast<float>(w.workers() * (w.workers() + 1 + 2 * step)) / 2;
        for (std::size_t i = 0; i < reduce.size(); ++i)
            for (float const x : reduce.tensor(i))
                if (x != due) throw std::runtime_error("a wrong sum");
    }
}

} // namespace

TEST_CASE(
    "service: every call of a job has the bits that it has without servers, beside a job of another tenant") {
    tenant_files files;
    service_process<lends> lender(files);
    lent_servers wanted = wish(files, lender.address, "alice", 2);
    wanted.tensors = conformance::all_calls::tensors();
    conformance::results with, without;
    job other(files, 2, wish(files, lender.address, "bob", 1), [](world& w) { steps(w, 40); });
    job lent(files, 3, wanted, [&](world& w) {
        if (w.workers() != 3 || w.servers() != 2 || w.topology().worker(3) >= 0 ||
            w.topology().worker(4) >= 0)
            throw std::runtime_error("servers do not stand last");
        conformance::all_calls::work<sums>(w, with);
    });
    CHECK_MESSAGE(lent.failures() == 0, lent.said());
    CHECK_MESSAGE(other.failures() == 0, other.said());
    launch_options three;
    three.nodes = {"node0", "node1", "node2"};
    CHECK(launch(
              3, [&](world& w) { conformance::all_calls::work<sums_colocated>(w, without); }, three) == 0);
    for (int worker = 0; worker < 3; ++worker) CHECK(with.difference(without, worker) == "");
    CHECK(lender.says("tenant alice has given its ranks back"));
    CHECK(lender.says("tenant bob has given its ranks back"));
    ::kill(lender.pid, SIGTERM);
    CHECK(lender.end() == 0);
}

TEST_CASE("service: what it refuses, it refuses before anything is constructed, and says why") {
    tenant_files files;
    service_process<lends> lender(files, {.ranks = 4});
    auto const refused = [&](lent_servers const& wanted, std::string const& words) {
        job one(files, 1, wanted, [](world&) {});
        CHECK(one.failures() == 1);
        CHECK_MESSAGE(one.said().find(words) != std::string::npos, one.said());
    };
    lent_servers wanted = wish(files, lender.address, "alice", 1);
    wanted.type = "float, transport pigeon";
    refused(wanted, "unsupported: the service at " + lender.address +
                        ": it was not compiled with 'float, transport pigeon'; it has 'float");
    wanted = wish(files, lender.address, "alice", 1);
    wanted.tenant = "mallory";
    refused(wanted, "it knows no tenant 'mallory' with this key");
    wanted = wish(files, lender.address, "alice", 1);
    wanted.key_file = files.path("bob");
    refused(wanted, "it knows no tenant 'alice' with this key");
    refused(wish(files, lender.address, "bob", 3), "and the tenant's limits are 2 ranks");
    refused(wish(files, lender.address, "alice", 5), "it has 4 ranks, and 5 were asked for");
    wanted = wish(files, lender.address, "alice", 1);
    wanted.tensors = layout{{"huge", std::size_t{1} << 32}};
    refused(wanted, "and the tenant's limits are 8 ranks and 4096.0 MiB");
    wanted.tensors = layout{{"huge", std::size_t{1} << 50}};
    refused(wanted, "the layout is larger than any memory");
    refused(wish(files, free_address(), "alice", 1), "it cannot be reached");
    wanted = wish(files, lender.address, "alice", 1);
    wanted.key_file = files.path("nobody");
    refused(wanted, "the key file of tenant 'alice'");
    wanted.tenant.clear();
    refused(wanted, "give lent_servers::tenant and key_file, or HERRING_TENANT");
    CHECK(lender.running());
    CHECK(files.read("log").find("lends") == std::string::npos);
}

TEST_CASE("service: one line a second at most tells what a tenant is refused, and counts all") {
    tenant_files files;
    service_process<lends> lender(files, {.ranks = 4});
    auto const began = std::chrono::steady_clock::now();
    for (int i = 0; i < 8; ++i) {
        job one(files, 1, wish(files, lender.address, "alice", 5), [](world&) {});
        CHECK(one.failures() == 1);
    }
    int refused = 0, lines = 0;
    for (int i = 0; i < 4000 && refused < 8; ++i) {
        ::usleep(5'000);
        std::string const log = files.read("log"), front = "tenant alice: refused ";
        refused = lines = 0;
        for (std::size_t at = 0; (at = log.find(front, at)) != log.npos; at += front.size(), ++lines)
            refused += std::atoi(log.c_str() + at + front.size());
    }
    CHECK(refused == 8);
    CHECK(lines <= (std::chrono::steady_clock::now() - began) / std::chrono::seconds(1) + 2);
    CHECK(lender.says("; the last that was refused: 127.0.0.1:"));
    CHECK(lender.says("it has 4 ranks, and 5 were asked for"));
}

TEST_CASE("service: what others hold is waited for, or refused with who holds it; another service is asked") {
    tenant_files files, other_files;
    service_process<lends> lender(files, {.ranks = 2});
    {
        job holds(files, 1, wish(files, lender.address, "alice", 2), [](world& w) {
            sums reduce(w, tensors);
            ::pause();
        });
        CHECK(lender.says("lends 2 ranks"));
        job refused(files, 1, wish(files, lender.address, "bob", 1), [](world&) {});
        CHECK(refused.failures() == 1);
        CHECK_MESSAGE(refused.said().find("held by alice: 2 ranks") != std::string::npos, refused.said());
        lent_servers patient = wish(files, lender.address, "bob", 1);
        patient.queue_for = std::chrono::seconds(15);
        job waits(files, 2, patient, [](world& w) { steps(w, 2); });
        std::filesystem::copy_file(files.path("bob"), other_files.path("bob"),
                                   std::filesystem::copy_options::overwrite_existing);
        service_process<lends> second(other_files);
        lent_servers either = wish(files, lender.address, "bob", 1);
        either.services += "," + second.address;
        job elsewhere(files, 1, either, [](world& w) { steps(w, 2); });
        CHECK_MESSAGE(elsewhere.failures() == 0, elsewhere.said());
        CHECK(second.says("lends 1 ranks"));
        CHECK(lender.reaches("waiting_jobs{tenant=\"bob\"}", 1));
        CHECK(lender.reaches("waiting_seconds{tenant=\"bob\"}", 0.001));
        for (pid_t const pid : holds.pids) ::kill(pid, SIGKILL);
        (void)holds.failures();
        CHECK_MESSAGE(waits.failures() == 0, waits.said());
        CHECK(lender.reaches("granted_jobs_total{tenant=\"bob\"}", 1));
        CHECK(lender.reaches("waited_seconds_total{tenant=\"bob\"}", 0.001));
    }
    CHECK(lender.says("tenant bob has given its ranks back"));
}

namespace {

/// Bytes a second that the TCP sockets of the children of a service may send together, by process.
std::vector<std::uint64_t> rates(pid_t service) {
    std::vector<std::uint64_t> all;
    std::string const id = std::to_string(service);
    std::istringstream text(detail::small_file("/proc/" + id + "/task/" + id + "/children"));
    for (pid_t child = 0; text >> child;) {
        detail::descriptor const process(static_cast<int>(::syscall(SYS_pidfd_open, child, 0u)));
        std::uint64_t sum = 0, sockets = 0;
        for (int fd = 0; fd < 64; ++fd) {
            detail::descriptor const copy(
                static_cast<int>(::syscall(SYS_pidfd_getfd, process.get(), fd, 0u)));
            std::uint64_t rate = 0;
            socklen_t size = sizeof rate;
            detail::socket_report found;
            if (copy.get() >= 0 && found.read(copy.get()) &&
                ::getsockopt(copy.get(), SOL_SOCKET, SO_MAX_PACING_RATE, &rate, &size) == 0 &&
                rate != ~std::uint64_t{0})
                sum += rate, ++sockets;
        }
        all.push_back(sockets < 2 ? 0 : sum / sockets * (sockets - 1)); // but for the control connection
    }
    return all;
}
/// Waits until they are so many Mbit/s each; false after 20 s.
bool has_rates(pid_t service, std::vector<int> const& due) {
    for (int i = 0; i < 400; ++i) {
        std::vector<std::uint64_t> const now = rates(service);
        bool alike = now.size() == due.size();
        for (std::size_t r = 0; alike && r < due.size(); ++r)
            alike = std::abs(static_cast<double>(now[r]) / 125'000 - due[r]) < 1;
        if (alike) return true;
        ::usleep(50'000);
    }
    for (std::uint64_t const one : rates(service))
        std::fprintf(stderr, "a rate of %g\n", static_cast<double>(one) / 125'000);
    return false;
}

/// A service that may not copy sockets of other processes, as in a container.
struct confined : lends {
    explicit confined(service_options options) : lends((forbid(), std::move(options))) {}
    static void forbid() {
        sock_filter rules[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)},
                               {BPF_JMP | BPF_JEQ | BPF_K, 0, 1, SYS_pidfd_getfd},
                               {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | EPERM},
                               {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW}};
        sock_fprog const all{4, rules};
        if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
            ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) != 0)
            throw std::runtime_error("no filter of system calls");
    }
};

} // namespace

TEST_CASE("service: what it cannot have at its start it names, with what to do") {
    tenant_files files;
    service_process<confined> paces(files, {.rate = 1000});
    REQUIRE(paces.says("(pidfd_getfd: Operation not permitted); allow it: --cap-add SYS_PTRACE"));
    CHECK(paces.end() == 1);
    service_process<confined> divides_nothing(files);
    CHECK(divides_nothing.says("listens on"));
    service_process<lends> same_port(files, {.listen = divides_nothing.address});
    REQUIRE(same_port.says("cannot listen on " + same_port.address + ": Address already in use; give"));
    CHECK(same_port.end() == 1);
    CHECK(divides_nothing.running());
}

TEST_CASE("service: the network is divided by shares among tenants that are busy, and by ranks within one") {
    tenant_files files;
    service_process<lends> lender(files, {.rate = 1000});
    auto* const pauses = static_cast<std::atomic<bool>*>(
        ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    auto const go_on = [](world& w) { steps(w, 1'000'000'000); };
    job first(files, 1, wish(files, lender.address, "alice", 1), go_on);
    CHECK(has_rates(lender.pid, {1000}));
    CHECK(lender.reaches("busy_share{tenant=\"alice\"}", 0.5));
    job other(files, 1, wish(files, lender.address, "bob", 1), [&](world& w) {
        sums reduce(w, tensors);
        while (true) {
            for (std::size_t i = 0; i < reduce.size(); ++i) reduce.ready(i);
            reduce.wait();
            while (*pauses) ::usleep(1'000);
        }
    });
    CHECK(has_rates(lender.pid, {750, 250}));
    job second(files, 1, wish(files, lender.address, "alice", 1), go_on);
    CHECK(has_rates(lender.pid, {375, 250, 375}));
    *pauses = true; // an idle tenant's share is used by others
    CHECK(has_rates(lender.pid, {500, 250, 500}));
    *pauses = false;
    CHECK(has_rates(lender.pid, {375, 250, 375}));
    ::munmap(pauses, 4096);
}

namespace {

int ends[2]; // of a socket between two ranks

/// A gather of two ranks.
struct pair_gather {
    std::size_t rank;

    std::vector<std::string> operator()(std::span<std::byte const> mine) const {
        std::vector<std::string> all(2, std::string(4096, '\0'));
        std::string& others = all[1 - rank];
        all[rank].assign(reinterpret_cast<char const*>(mine.data()), mine.size());
        ssize_t const sent = ::send(ends[rank], mine.data(), mine.size(), 0),
                      got = ::recv(ends[rank], others.data(), others.size(), 0);
        if (sent != static_cast<ssize_t>(mine.size()) || got < 0) throw std::runtime_error("no other rank");
        others.resize(static_cast<std::size_t>(got));
        return all;
    }
};

} // namespace

TEST_CASE("service: ranks that MPI's variables name, and those of a gather, are lent servers too") {
    tenant_files files;
    service_process<lends> lender(files);
    auto const work = [](world& w) { steps(w, 3); };
    job by_variables(files, 2, wish(files, lender.address, "alice", 2), work, std::chrono::seconds(20),
                     [](join_options& how) {
                         ::setenv("OMPI_COMM_WORLD_RANK", std::to_string(how.rank).c_str(), 1);
                         ::setenv("OMPI_COMM_WORLD_SIZE", std::to_string(how.size).c_str(), 1);
                         how.rank = how.size = -1;
                         return join(how);
                     });
    CHECK_MESSAGE(by_variables.failures() == 0, by_variables.said());
    REQUIRE(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    job by_gather(files, 2, wish(files, lender.address, "alice", 2), work, std::chrono::seconds(20),
                  [](join_options& how) {
                      how.address.clear();
                      how.interface = "lo";
                      how.secret.reset(); // the gather carries one
                      return join(pair_gather{static_cast<std::size_t>(how.rank)}, how.rank, how.size, how);
                  });
    CHECK_MESSAGE(by_gather.failures() == 0, by_gather.said());
    for (int const end : ends) ::close(end);
    CHECK(lender.says("job 3 of tenant alice has given its ranks back"));
}

TEST_CASE("service: where none are lent every worker has the service's words") {
    tenant_files files;
    service_process<lends> lender(files, {.ranks = 4});
    job refused(files, 3, wish(files, lender.address, "alice", 5), [](world&) {});
    CHECK(refused.failures() == 3);
    std::string const said = refused.said(), words = "it has 4 ranks, and 5 were asked for";
    for (std::size_t at = 0, i = 0; i < 3; ++i, at += words.size())
        CHECK_MESSAGE((at = said.find(words, at)) < said.size(), said);
}

TEST_CASE("service: tenants are read anew on SIGHUP; a file with an error leaves the last one in force") {
    tenant_files files;
    service_process<lends> lender(files);
    files.write_tenants(files.line("alice", 3, 8, "4G", 4) + "bob half a line\n");
    ::kill(lender.pid, SIGHUP);
    CHECK(lender.says("tenants:2: 4 words; a tenant has 7"));
    CHECK(lender.says("the tenants of before stay"));
    job still(files, 1, wish(files, lender.address, "bob", 1), [](world& w) { steps(w, 1); });
    CHECK_MESSAGE(still.failures() == 0, still.said());
    files.write_tenants(files.line("alice", 3, 8, "4G", 4));
    ::kill(lender.pid, SIGHUP);
    CHECK(lender.says("was read anew: 1 tenants"));
    job none(files, 1, wish(files, lender.address, "bob", 1), [](world&) {});
    CHECK(none.failures() == 1);
}
