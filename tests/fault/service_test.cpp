// herring: a service whose jobs, ranks and parent are killed, stopped and told to end; and tenants that mean harm.
// SPDX-License-Identifier: Apache-2.0
#include "herring/service.hpp"

#include "conformance/suite.hpp"
#include "doctest/doctest.h"
#include "herring/checkpoint.hpp"
#include "herring/join/environment.hpp"
#include "herring/machine/address.hpp"
#include "herring/machine/name_lookup.hpp"
#include "herring/net/sockets.hpp"
#include "herring/optimizer/adamw.hpp"
#include "herring/service/messages.hpp"
#include "herring/training.hpp"
#include "herring/transport/tcp.hpp"
#include "service_scene.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/socket.h>

using namespace herring;
using namespace std::chrono_literals;

namespace {

using sums = reducer<float, transport::tcp, placement::dedicated, update::sum>;
using trainer = reducer<float, transport::tcp, placement::dedicated, optimizer::adamw, update::average>;
using lends = service<sums, trainer>;

lends const started{service_options{}};

layout const tensors{{"a", 40'001}, {"b", 17}};

template <class Reducer = sums>
lent_servers wish(tenant_files const& files, std::string const& at, std::string const& who, int count) {
    lent_servers all;
    all.count = count;
    all.tenant = who;
    all.key_file = files.path(who);
    return served_by<Reducer>({at}, tensors, all);
}

void run_step(sums& reduce, world& w, int turn) {
    for (std::size_t i = 0; i < reduce.size(); ++i) {
        std::ranges::fill(reduce.tensor(i), static_cast<float>(w.worker() + turn % 1000));
        reduce.ready(i);
    }
    reduce.wait();
    float const due = static_cast<float>(w.workers() * (w.workers() - 1 + 2 * (turn % 1000))) / 2;
    for (std::size_t i = 0; i < reduce.size(); ++i)
        for (float const x : reduce.tensor(i))
            if (x != due) throw std::runtime_error("a wrong sum");
}
/// A counter that processes share.
struct counter {
    std::atomic<int>* at = static_cast<std::atomic<int>*>(
        ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    counter() = default;
    counter(counter const&) = delete;
    counter& operator=(counter const&) = delete;
    ~counter() { ::munmap(at, 4096); }
    bool grows() const {
        int const before = *at;
        for (int i = 0; i < 4000 && *at == before; ++i) ::usleep(5'000);
        return *at > before;
    }
};
/// Steps without an end; counts them, if asked to.
void steps(world& w, counter* turns = nullptr) {
    sums reduce(w, tensors);
    for (int turn = 0;; ++turn) {
        run_step(reduce, w, turn);
        if (turns != nullptr) ++*turns->at;
    }
}

std::vector<pid_t> children(pid_t of) {
    std::string const id = std::to_string(of);
    std::istringstream text(herring::detail::small_file("/proc/" + id + "/task/" + id + "/children"));
    std::vector<pid_t> all;
    for (pid_t one = 0; text >> one;) all.push_back(one);
    return all;
}
/// Waits until this process has so many children; false after 8 s.
bool has_children(pid_t of, std::size_t count) {
    for (int i = 0; i < 1600; ++i) {
        if (children(of).size() == count) return true;
        ::usleep(5'000);
    }
    return false;
}

} // namespace

TEST_CASE("service: ranks and workers are killed in every phase: no wrong sum, another tenant's steps go on, "
          "all is given back") {
    tenant_files files;
    service_process<lends> lender(files);
    counter turns;
    job other(files, 2, wish(files, lender.address, "bob", 1), [&](world& w) { steps(w, &turns); });
    REQUIRE(turns.grows());
    std::vector<pid_t> const of_other = children(lender.pid);
    REQUIRE(of_other.size() == 1);
    char const* const count = std::getenv("HERRING_TEST_KILLS");
    std::uint64_t const seed = count == nullptr ? 7 : static_cast<std::uint64_t>(::getpid());
    CAPTURE(seed);
    conformance::dice random(seed);
    for (int kill = 0; kill < (count == nullptr ? 30 : std::atoi(count)); ++kill) {
        job one(
            files, 2, wish(files, lender.address, "alice", 2), [](world& w) { steps(w); }, 3s);
        bool const server = random(2) == 0;
        auto const victims = [&] {
            if (!server) return one.pids;
            std::vector<pid_t> found = children(lender.pid);
            std::erase(found, of_other[0]);
            return found;
        };
        if (random(3) != 0) has_children(lender.pid, 3); // else while it asks
        ::usleep(static_cast<useconds_t>(random(60'000)));
        if (std::vector<pid_t> const now = victims(); !now.empty())
            ::kill(now[random(now.size())], random(4) == 0 ? SIGUSR1 : SIGKILL);
        else
            ::kill(one.pids[0], SIGKILL);
        CHECK(one.failures() == 2);
        CHECK_MESSAGE(one.said().find("wrong sum") == std::string::npos, one.said());
        CHECK(has_children(lender.pid, 1));
    }
    CHECK(turns.grows());
    CHECK(children(lender.pid) == of_other);
    CHECK(lender.running());
}

TEST_CASE("service: a stopped rank, and a stopped rank 0, are found, and all is given back") {
    tenant_files files;
    service_process<lends> lender(files);
    for (bool const server : {true, false}) {
        counter turns;
        job one(files, 2, wish(files, lender.address, "alice", 2), [&](world& w) { steps(w, &turns); });
        REQUIRE(turns.grows());
        ::kill(server ? children(lender.pid)[0] : one.pids[0], SIGSTOP);
        CHECK(has_children(lender.pid, 0));
        for (pid_t const pid : one.pids) ::kill(pid, SIGKILL);
    }
}

TEST_CASE("service: told to end it has its jobs save, which go on at another one; one that dies is named") {
    tenant_files files;
    auto first = std::make_unique<service_process<lends>>(files);
    tenant_files second_files;
    std::filesystem::copy_file(files.path("alice"), second_files.path("alice"),
                               std::filesystem::copy_options::overwrite_existing);
    second_files.write_tenants("alice " + second_files.path("alice") + " 1 8 4G 4 " +
                               files.path("checkpoints-alice") + "\n");
    service_process<lends> second(second_files);
    std::filesystem::create_directory(files.path("checkpoints-alice/model"));
    counter turns, leaves;
    // Until it is told to leave, or all is done.
    auto const training = [&](int steps, int* done_by) {
        return [&, steps, done_by](world& w) {
            if (::chdir(files.path("checkpoints-alice").c_str()) != 0) throw std::runtime_error("chdir");
            trainer train(w, tensors);
            int done = 0;
            if (std::filesystem::exists("model/herring.manifest"))
                std::memcpy(&done, train.load("model").data(), sizeof done);
            else
                train.start(0,
                            [](std::size_t, std::span<float> weights) { std::ranges::fill(weights, 1.0f); });
            std::vector<float> leave(1);
            while (done < steps && leave[0] == 0) {
                for (std::size_t i = 0; i < train.size(); ++i) {
                    std::ranges::fill(train.tensor(i), static_cast<float>(done % 7));
                    train.ready(i);
                }
                train.wait();
                ++done;
                ++*turns.at;
                leave[0] = *leaves.at > 0 && w.worker() == 0 ? 2.0f : 0.0f;
                train.all_reduce(std::span<float>(leave));
            }
            train.save("model", std::as_bytes(std::span(&done, 1)));
            if (done_by != nullptr && w.worker() == 0) *done_by = done;
            if (leave[0] != 0) return;
            double sum = 0;
            for (std::size_t i = 0; i < train.size(); ++i)
                for (float const x : train.weights(i)) sum += static_cast<double>(x);
            if (w.worker() == 0) std::ofstream(files.path("sum")) << std::hexfloat << sum;
        };
    };
    lent_servers wanted = wish<trainer>(files, first->address + "," + second.address, "alice", 2);
    wanted.on_drain = [&](failure const&) { ++*leaves.at; };
    job one(files, 2, wanted, training(1'000'000, nullptr));
    REQUIRE(turns.grows());
    ::kill(first->pid, SIGTERM);
    CHECK(first->says("1 jobs have 30000 ms to leave"));
    CHECK_MESSAGE(one.failures() == 0, one.said());
    CHECK(first->end() == 0);
    CHECK(std::filesystem::exists(files.path("checkpoints-alice/model/herring.manifest")));

    *leaves.at = 0;
    job again(files, 3, wanted, training(1'000'000, nullptr)); // on other ranks, at the second service
    REQUIRE_MESSAGE(turns.grows(), again.said());
    CHECK(second.says("lends 2 ranks"));
    ::kill(second.pid, SIGKILL);
    CHECK(again.failures() == 3);
    CHECK_MESSAGE(again.said().find("the service at " + second.address) != std::string::npos, again.said());
}

TEST_CASE("service: a folder that is not beneath the tenant's is refused, and the service goes on") {
    tenant_files files;
    service_process<lends> lender(files);
    std::filesystem::create_directory(files.path("checkpoints-bob/theirs"));
    std::filesystem::create_symlink(files.path("checkpoints-bob"), files.path("checkpoints-alice/link"));
    for (std::string const& name : {std::string("../checkpoints-bob/theirs"),
                                    files.path("checkpoints-bob/theirs"), std::string("link/theirs")}) {
        job one(files, 1, wish<trainer>(files, lender.address, "alice", 1), [&](world& w) {
            if (::chdir(files.path("checkpoints-alice").c_str()) != 0) throw std::runtime_error("chdir");
            trainer train(w, tensors);
            train.start(0, [](std::size_t, std::span<float> weights) { std::ranges::fill(weights, 1.0f); });
            train.save(name);
        });
        CHECK(one.failures() == 1);
        CHECK_MESSAGE(one.said().find("beneath the tenant's folder") != std::string::npos, one.said());
    }
    CHECK(std::filesystem::is_empty(files.path("checkpoints-bob/theirs")));
    CHECK(lender.running());
}

TEST_CASE("service: a disk that is full fails a save, after which its job and another tenant's go on") {
    tenant_files files;
    std::string const model = files.path("checkpoints-alice/model");
    std::filesystem::create_directory(model);
    if (::mount("herring", model.c_str(), "tmpfs", 0, "size=64k") != 0) {
        MESSAGE("left out: a file system of a test's own takes root");
        return;
    }
    struct unmounted {
        std::string const& path;
        ~unmounted() { ::umount2(path.c_str(), MNT_DETACH); }
    } const afterwards{model};
    service_process<lends> lender(files);
    counter turns;
    job other(files, 1, wish(files, lender.address, "bob", 1), [&](world& w) { steps(w, &turns); });
    job one(files, 2, wish<trainer>(files, lender.address, "alice", 1), [&](world& w) {
        if (::chdir(files.path("checkpoints-alice").c_str()) != 0) throw std::runtime_error("chdir");
        trainer train(w, tensors);
        train.start(0, [](std::size_t, std::span<float> weights) { std::ranges::fill(weights, 1.0f); });
        try {
            train.save("model");
            throw std::runtime_error("it was saved");
        } catch (error const& why) {
            if (std::string(why.what()).find("No space left on device") == std::string::npos) throw;
        }
        for (std::size_t i = 0; i < train.size(); ++i) train.ready(i);
        train.wait();
    });
    CHECK_MESSAGE(one.failures() == 0, one.said());
    CHECK(std::filesystem::is_empty(model));
    CHECK(turns.grows());
}

TEST_CASE("service: a grant whose job does not come is given back in its time, and so is its lease") {
    tenant_files files;
    service_process<lends> lender(files);
    lent_servers const wanted = wish(files, lender.address, "alice", 2);
    herring::detail::lease const held =
        wanted.ask(wanted, {.workers = 1, .address = "127.0.0.1:9", .timeout = 300ms});
    CHECK(lender.says("job 2 of tenant alice has given its ranks back"));
    CHECK(has_children(lender.pid, 0));
    pollfd over{held.connection.get(), POLLIN, 0};
    CHECK(::poll(&over, 1, 20'000) == 1);
    char byte = 0;
    CHECK(::recv(held.connection.get(), &byte, 1, MSG_DONTWAIT) == 0);
    job next(files, 1, wish(files, lender.address, "alice", 8), [](world& w) { sums const all(w, tensors); });
    CHECK_MESSAGE(next.failures() == 0, next.said()); // all of them are free
}

TEST_CASE("service: a job that has its servers take memory without bound ends, and no other does") {
    tenant_files files;
    service_process<lends> lender(files);
    counter turns;
    job other(files, 1, wish(files, lender.address, "bob", 1), [&](world& w) { steps(w, &turns); });
    job greedy(files, 2, wish(files, lender.address, "alice", 1), [&](world& w) {
        sums reduce(w, tensors);
        std::vector<float> large(std::size_t{1} << 28); // 1 GiB, of a layout of 160 kB
        reduce.all_reduce(std::span<float>(large));
    });
    CHECK(greedy.failures() == 2);
    CHECK_MESSAGE(greedy.said().find("cannot get 1073741824 bytes of memory") != std::string::npos,
                  greedy.said());
    CHECK(turns.grows());
}

namespace {

/// True if memory that the process may write has these bytes.
bool holds_bytes(pid_t process, std::string const& bytes) {
    std::string const at = "/proc/" + std::to_string(process);
    std::ifstream maps(at + "/maps"), memory(at + "/mem", std::ios::binary);
    bool found = false;
    for (std::string line; std::getline(maps, line);) {
        std::size_t first = 0, last = 0;
        char rights[5] = {};
        if (std::sscanf(line.c_str(), "%zx-%zx %4s", &first, &last, rights) != 3 || rights[1] != 'w' ||
            last - first > std::size_t{1} << 30) // a sanitizer's
            continue;
        std::string part(last - first, '\0');
        memory.clear();
        memory.seekg(static_cast<std::streamoff>(first));
        memory.read(part.data(), static_cast<std::streamsize>(part.size()));
        found = found || part.find(bytes) != std::string::npos;
    }
    return found;
}

} // namespace

TEST_CASE("service: once its ranks have their secret, the parent has it nowhere") {
    tenant_files files;
    service_process<lends> lender(files);
    lent_servers const wanted = wish(files, lender.address, "alice", 1);
    herring::detail::lease const held =
        wanted.ask(wanted, {.workers = 1, .address = "127.0.0.1:9", .timeout = 60s});
    CHECK(has_children(lender.pid, 1));
    CHECK(holds_bytes(lender.pid, lender.address)); // it would be found
    CHECK_FALSE(holds_bytes(lender.pid, held.secret));
    std::string key;
    for (std::size_t i = 0; i < held.secret.size(); i += 2)
        key += static_cast<char>(std::stoi(held.secret.substr(i, 2), nullptr, 16));
    CHECK(key.size() == herring::detail::secret_key::size);
    CHECK_FALSE(holds_bytes(lender.pid, key));
}

namespace {

namespace leasing = herring::detail::leasing;
namespace wire = herring::detail::wire;
using herring::detail::byte_buffer;
using herring::detail::descriptor;
using leasing::lease_link;
using leasing::message;

herring::detail::endpoint endpoint_of(std::string const& address) {
    std::string why;
    auto const at = herring::detail::split_address(address, "the test");
    return herring::detail::resolve(at.host, at.port, clock::now() + 5s, why)[0];
}
/// A connection to an address; its socket does not block.
descriptor dialled(std::string const& address) {
    auto const to = endpoint_of(address);
    descriptor made(::socket(to.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(::connect(made.get(), to.get(), to.size) == 0);
    ::fcntl(made.get(), F_SETFL, O_NONBLOCK);
    return made;
}
/// Waits for a message; 4 s at most.
lease_link::state answer(lease_link& from) {
    lease_link::state got{};
    for (int i = 0; i < 4000 && (got = from.receive()) == lease_link::state::nothing; ++i) ::usleep(1'000);
    return got;
}
/// Knocks, says hello with alice's key, or `recorded`, which is one, and waits for the answer.
wire::dialler_handshake greet(lease_link& one, tenant_files const& files, byte_buffer& recorded) {
    one.send(message::knock);
    REQUIRE(answer(one) == lease_link::state::whole);
    wire::challenge asked;
    REQUIRE(asked.read(one.body()));
    byte_buffer challenge;
    challenge.append(one.body());
    wire::dialler_handshake by;
    if (recorded.empty()) {
        auto const key = herring::detail::read_secrets(files.path("alice"), "key").proves.key(asked.salt);
        REQUIRE(
            by.reply(leasing::names, recorded, challenge, asked, leasing::hello{{}, "alice"}, nullptr, &key));
    }
    one.send(message::hello, recorded);
    REQUIRE(answer(one) == lease_link::state::whole);
    return by;
}
/// The text of a refusal that has come.
std::string refusal(lease_link& from) {
    failure said;
    if (answer(from) != lease_link::state::whole || from.kind() != message::refuse ||
        !wire::read_failure(from.body(), 1, said))
        return "no refusal";
    return said.text;
}

} // namespace

TEST_CASE("service: another version of the protocol, or of Herring, is named at either end") {
    tenant_files files;
    service_process<lends> lender(files);
    byte_buffer later;
    wire::append_message(later, static_cast<wire::message_kind>(message::knock), 0, 0, {},
                         leasing::protocol_version + 1);
    auto const send_later = [&](descriptor const& to) {
        return ::send(to.get(), later.data(), later.size(), MSG_NOSIGNAL) ==
               static_cast<ssize_t>(later.size());
    };
    descriptor of_later = dialled(lender.address);
    CHECK(send_later(of_later));
    lease_link at_later(std::move(of_later));
    CHECK(refusal(at_later) == leasing::other_version);

    lease_link of_job(dialled(lender.address));
    byte_buffer hello;
    wire::dialler_handshake by = greet(of_job, files, hello);
    wire::proof shown{};
    std::span<std::byte const> words;
    REQUIRE(wire::split_proof(of_job.body(), words, shown));
    REQUIRE(by.proves(shown, words));
    of_job.protect(by.keys(), false);
    leasing::ask wanted;
    wanted.version = "9.9.9";
    of_job.send(message::ask, leasing::write(wanted));
    CHECK(refusal(of_job).find("the job of 9.9.9; build both from one version") != std::string::npos);

    std::string const address = free_address(); // of a service of a later version
    descriptor const door(herring::detail::listen_on(endpoint_of(address)));
    job one(files, 1, wish(files, address, "alice", 1), [](world&) {});
    pollfd asked{door.get(), POLLIN, 0};
    REQUIRE(::poll(&asked, 1, 20'000) == 1);
    descriptor const asking(::accept(door.get(), nullptr, nullptr));
    CHECK(send_later(asking));
    CHECK(one.failures() == 1);
    CHECK_MESSAGE(one.said().find(leasing::other_version) != std::string::npos, one.said());
}

TEST_CASE("service: strangers, junk, replays and a lease that says what none does harm nobody") {
    tenant_files files;
    service_process<lends> lender(files);
    counter turns;
    job other(files, 1, wish(files, lender.address, "bob", 1), [&](world& w) { steps(w, &turns); });
    std::vector<descriptor> silent;
    for (int i = 0; i < 200; ++i) silent.push_back(dialled(lender.address));
    // All but 64 have lost their places: they are counted, and not logged one by one.
    CHECK(lender.reaches("unknown_connections_total", 136));
    CHECK(lender.says("connections ended without a proof of a tenant's key"));
    std::string const log = files.read("log");
    CHECK(std::ranges::count(log, '\n') < 100);
    for (std::string const& junk : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(5000, '\0')}) {
        descriptor const one = dialled(lender.address);
        CHECK(::send(one.get(), junk.data(), junk.size(), MSG_NOSIGNAL) > 0);
        lease_link end(descriptor(::dup(one.get())));
        CHECK(answer(end) == lease_link::state::closed);
    }
    // A hello that is worth something once: the challenge of the next connection has another nonce.
    herring::detail::byte_buffer recorded;
    for (bool const again : {false, true}) {
        lease_link one(dialled(lender.address));
        (void)greet(one, files, recorded);
        CHECK(one.kind() == (again ? message::refuse : message::admit));
    }
    CHECK(lender.says("the last that was refused: 127.0.0.1:"));
    lent_servers const wanted = wish(files, lender.address, "alice", 1);
    herring::detail::lease held =
        wanted.ask(wanted, {.workers = 1, .address = "127.0.0.1:9", .timeout = 60s});
    CHECK(has_children(lender.pid, 2));
    CHECK(::send(held.connection.get(), "junk", 4, MSG_NOSIGNAL) == 4);
    CHECK(has_children(lender.pid, 1));
    CHECK(turns.grows());
    CHECK(lender.running());
}
