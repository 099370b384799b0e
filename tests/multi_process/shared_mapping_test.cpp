// herring: the mapping of a node between real processes: shared, bounded, and gone when they are.
// SPDX-License-Identifier: Apache-2.0
#include "herring/intra_node/shared_mapping.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "doctest/doctest.h"
#include "herring/control/memory_check.hpp"
#include "herring/launch.hpp"
#include "herring/machine/local_socket.hpp"
#include "sanitizers.hpp"

using herring::errc;
using herring::world;
using herring::detail::descriptor;
using herring::detail::dial_locally;
using herring::detail::receive_packet;
using herring::detail::send_packet;
using herring::detail::shared_mapping;

namespace {

constexpr uid_t nobody = 65534;

// Sanitizers need address space and descriptors of their own, so that these cannot be limited.
constexpr bool sanitized = HERRING_TEST_ASAN || HERRING_TEST_TSAN;

// In a forked rank a failed CHECK would be nobody's; an exception is the launch's status.
void require(bool holds, std::string const& what) {
    if (!holds) throw std::runtime_error("not so: " + what);
}

int entries(char const* folder) {
    int count = 0;
    if (DIR* const open = ::opendir(folder)) {
        while (::readdir(open) != nullptr) ++count;
        ::closedir(open);
    }
    return count;
}

int lines_with(char const* path, std::string const& text) {
    std::ifstream file(path);
    int count = 0;
    for (std::string line; std::getline(file, line);) count += line.find(text) != std::string::npos;
    return count;
}

herring::launch_options nodes(std::vector<std::string> names) {
    herring::launch_options made;
    made.nodes = std::move(names);
    return made;
}

// Every rank writes its own part and sees the parts of its node's ranks, and of nobody else.
void share(world& all) {
    std::size_t const mine =
        all.node() == 0 ? 100'000u + static_cast<std::size_t>(all.local_rank()) : 5'000'001u;
    shared_mapping const made(all, mine);
    auto const bytes = made.bytes();
    std::size_t const most =
        all.node() == 0 ? 100'000u + static_cast<std::size_t>(all.local_size()) - 1 : 5'000'001u;
    require(bytes.size() == most, "the largest request of the node decides");
    require(reinterpret_cast<std::uintptr_t>(bytes.data()) % 4096 == 0, "starts on a page");
    for (std::byte const b : bytes) require(b == std::byte{0}, "zeroed at first");
    all.barrier();
    made.prefault(0, bytes.size());
    auto const locals = static_cast<std::size_t>(all.local_size()),
               me = static_cast<std::size_t>(all.local_rank());
    for (std::size_t i = me; i < bytes.size(); i += locals) bytes[i] = static_cast<std::byte>(all.rank() + 1);
    made.prefault(bytes.size() - 1, 100); // contents stay, and the end is respected
    made.prefault(bytes.size() + 1, 100);
    all.barrier();
    for (std::size_t i = 0; i < bytes.size(); ++i)
        require(bytes[i] == static_cast<std::byte>(
                                all.topology().rank_of(all.node(), static_cast<int>(i % locals)) + 1),
                "what each rank of the node wrote is there");
    all.barrier();
}

} // namespace

TEST_CASE("processes of a node share one mapping; nodes do not") {
    for (auto const& names : std::vector<std::vector<std::string>>{{"a"},
                                                                   {"a", "a"},
                                                                   {"a", "b", "a", "b"},
                                                                   {"a", "b", "b", "c", "b"},
                                                                   {"a", "a", "a", "a", "a", "a", "a"}}) {
        CAPTURE(names.size());
        CHECK(herring::launch(static_cast<int>(names.size()), share, nodes(names)) == 0);
    }
}

TEST_CASE("threads of one process share one mapping as well") {
    int const before = entries("/proc/self/fd");
    CHECK(herring::launch_threads(4, share, nodes({"a", "a", "b", "b"})) == 0);
    CHECK(entries("/proc/self/fd") == before);
}

TEST_CASE("a world of one, nothing asked for, moved") {
    world alone;
    shared_mapping one(alone, 10);
    CHECK(one.bytes().size() == 10);
    one.bytes()[9] = std::byte{7};
    shared_mapping two(std::move(one));
    CHECK(two.bytes()[9] == std::byte{7});
    CHECK(one.bytes().empty());
    shared_mapping three(alone, 0);
    CHECK(three.bytes().empty());
    three = std::move(two);
    CHECK(three.bytes()[9] == std::byte{7});
    CHECK(herring::launch(3, [](world& all) { require(shared_mapping(all, 0).bytes().empty(), "empty"); }) ==
          0);
}

TEST_CASE("no descriptor and no name is left, during its life either") {
    int const shm = entries("/dev/shm");
    CHECK(herring::launch(3, [](world& all) {
              all.barrier();
              int const before = entries("/proc/self/fd");
              for (int i = 0; i < 20; ++i) {
                  shared_mapping const made(all, 1 << 20);
                  require(entries("/proc/self/fd") == before, "no descriptor beside the mapping");
                  all.barrier();
                  char job[32];
                  std::snprintf(job, sizeof job, "herring.%016llx",
                                static_cast<unsigned long long>(all.job()));
                  require(lines_with("/proc/net/unix", job) == 0, "no socket");
                  require(lines_with("/proc/self/maps", "memfd:herring (deleted)") == 1,
                          "one mapping, of a file without a name");
                  all.barrier();
              }
              require(lines_with("/proc/self/maps", "herring") == 0 ||
                          lines_with("/proc/self/maps", "memfd:herring") == 0,
                      "unmapped by the destructor");
          }) == 0);
    CHECK(entries("/dev/shm") == shm);
}

TEST_CASE("a failure of one rank is an error that names it, on every rank, and leaves nothing") {
    // Rank 2 makes the mapping of node b; the kernel would answer its ftruncate with SIGXFSZ.
    CHECK(herring::launch(
              4,
              [](world& all) {
                  all.barrier();
                  int const before = entries("/proc/self/fd");
                  rlimit old{};
                  ::getrlimit(RLIMIT_FSIZE, &old);
                  if (all.rank() == 2) {
                      rlimit const tiny{65536, old.rlim_max};
                      ::setrlimit(RLIMIT_FSIZE, &tiny);
                  }
                  try {
                      shared_mapping const made(all, 1 << 20);
                      require(false, "an error");
                  } catch (herring::error const& why) {
                      std::string const text = why.what();
                      if (all.rank() == 2) {
                          require(why.code() == errc::no_resources && why.reported_by() == 2, text);
                          require(text.find("ulimit -f") != std::string::npos, text);
                      } else {
                          require(why.code() == errc::peer_failed && why.peer() == 2, text);
                      }
                      require(text.find("1048576 bytes") != std::string::npos &&
                                  text.find("rank 2") != std::string::npos,
                              text);
                  }
                  require(entries("/proc/self/fd") == before, "no descriptor left");
                  require(lines_with("/proc/self/maps", "memfd:herring") == 0, "nothing mapped");
                  ::setrlimit(RLIMIT_FSIZE, &old);
                  require(shared_mapping(all, 1 << 20).bytes().size() == 1 << 20, "a second try works");
              },
              nodes({"a", "a", "b", "b"})) == 0);
}

TEST_CASE("more than the machine has is refused before the kernel starts to kill") {
    CHECK(herring::launch(2, [](world& all) {
              try {
                  shared_mapping const made(all, std::size_t{1} << 45);
                  require(false, "an error");
              } catch (herring::error const& why) {
                  std::string const text = why.what();
                  require(text.find("of memory are free") != std::string::npos, text);
                  require(text.find("smaller layout") != std::string::npos, text);
              }
          }) == 0);
}

TEST_CASE("too little address space, or no descriptor, on one rank" * doctest::skip(sanitized)) {
    CHECK(herring::launch(2, [](world& all) { // the address space of one rank
              rlimit old{};
              ::getrlimit(RLIMIT_AS, &old);
              rlimit const tight{std::size_t{1} << 26, old.rlim_max};
              if (all.rank() == 1) ::setrlimit(RLIMIT_AS, &tight);
              try {
                  shared_mapping const made(all, std::size_t{1} << 27);
                  require(false, "an error");
              } catch (herring::error const& why) {
                  require(std::string(why.what()).find("ulimit -v") != std::string::npos, why.what());
                  require(all.rank() == 1 ? why.reported_by() == 1 : why.peer() == 1, why.what());
              }
              ::setrlimit(RLIMIT_AS, &old);
          }) == 0);
    CHECK(herring::launch(3, [](world& all) { // no descriptor free on one rank
              all.barrier();
              rlimit old{};
              ::getrlimit(RLIMIT_NOFILE, &old);
              rlimit const none{0, old.rlim_max};
              if (all.rank() == 1) ::setrlimit(RLIMIT_NOFILE, &none);
              try {
                  shared_mapping const made(all, 4096);
                  require(false, "an error");
              } catch (herring::error const& why) {
                  require(all.rank() == 1 ? why.reported_by() == 1 : why.peer() == 1, why.what());
                  require(std::string(why.what()).find("ulimit -n") != std::string::npos, why.what());
              }
              ::setrlimit(RLIMIT_NOFILE, &old);
          }) == 0);
}

TEST_CASE("a rank that is killed while the mapping is made: the others hear of it") {
    CHECK(herring::launch(3, [](world& all) {
              if (all.rank() == 1) ::raise(SIGKILL);
              try {
                  shared_mapping const made(all, 4096);
                  require(false, "an error");
              } catch (herring::error const& why) {
                  require(why.code() == errc::peer_lost && why.peer() == 1, why.what());
              }
          }) == 128 + SIGKILL);
}

TEST_CASE("the memory is freed when the last rank is killed") {
    // 0: not told, 1: freed, 2: still there after 10 s, 3: the kernel does not let this user watch it
    auto* const told =
        static_cast<int*>(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    REQUIRE(told != MAP_FAILED);
    int const shm = entries("/dev/shm");
    int const status = herring::launch(
        3,
        [&](world& all) {
            shared_mapping const made(all, 4 << 20);
            std::uint64_t mine[3] = {static_cast<std::uint64_t>(::getpid()),
                                     reinterpret_cast<std::uintptr_t>(made.bytes().data()),
                                     (made.bytes().size() + 4095) / 4096 * 4096};
            std::vector<std::byte> message(sizeof mine);
            std::memcpy(message.data(), mine, sizeof mine);
            auto const every = all.all_gather(message);
            if (all.node() == 0)
                while (true) ::pause();
            std::memcpy(mine, every[0].data(), sizeof mine);
            char path[96];
            std::snprintf(path, sizeof path, "/proc/%d/map_files/%llx-%llx", static_cast<int>(mine[0]),
                          static_cast<unsigned long long>(mine[1]),
                          static_cast<unsigned long long>(mine[1] + mine[2]));
            int const watch = ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
            bool const watched = ::inotify_add_watch(watch, path, IN_DELETE_SELF) >= 0;
            ::kill(static_cast<pid_t>(mine[0]), SIGKILL);
            std::memcpy(mine, every[1].data(), sizeof mine);
            pollfd freed{watch, POLLIN, 0};
            require(!watched || ::poll(&freed, 1, 100) == 0,
                    "one of its ranks still lives, so does the memory");
            ::kill(static_cast<pid_t>(mine[0]), SIGKILL);
            *told = !watched ? 3 : ::poll(&freed, 1, 10'000) == 1 ? 1 : 2;
        },
        nodes({"a", "a", "b"}));
    CHECK(status == 128 + SIGKILL);
    CHECK((*told == 1 || *told == 3));
    if (*told == 3)
        MESSAGE("not allowed to watch the memory of other processes: that it is freed was not seen");
    CHECK(entries("/dev/shm") == shm);
    ::munmap(told, 4096);
}

namespace {

// Connects to every socket of every job, sends a descriptor in a packet of the right size, keeps some connections and says
// nothing on them; until seen[0]. Counts connections in seen[1], and in seen[2] descriptors that somebody gave it.
void pester(int volatile* seen, uid_t user) {
    if (user != ::geteuid() && ::setuid(user) != 0) ::_exit(1);
    std::vector<descriptor> kept;
    descriptor const worthless(::memfd_create("stranger", MFD_CLOEXEC));
    std::array<std::byte, 16> bytes{};
    while (seen[0] == 0) {
        std::ifstream file("/proc/net/unix");
        for (std::string line; std::getline(file, line);) {
            std::size_t const at = line.find("@herring.");
            if (at == std::string::npos) continue;
            descriptor to = dial_locally(line.substr(at + 1));
            if (to.get() < 0) continue;
            seen[1] = seen[1] + 1;
            if (kept.size() % 2 == 0) (void)send_packet(to.get(), bytes, worthless.get());
            kept.push_back(std::move(to));
        }
        for (descriptor const& one : kept)
            if (receive_packet(one.get(), bytes).descriptors != 0) seen[2] = seen[2] + 1;
        if (kept.size() > 200) kept.clear();
    }
    ::_exit(0);
}

} // namespace

TEST_CASE("strangers who connect to every socket of every job get nothing, and do no harm") {
    auto* const seen = static_cast<int volatile*>(
        ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    std::vector<uid_t> users{::geteuid()};
    if (::geteuid() == 0)
        users.push_back(nobody);
    else
        MESSAGE("SKIPPED: not root, so no stranger is another user");
    std::vector<pid_t> strangers;
    for (uid_t const user : users) {
        pid_t const stranger = ::fork();
        if (stranger == 0) pester(seen, user);
        strangers.push_back(stranger);
    }
    CHECK(herring::launch(3, [&](world& all) {
              // Some of them connect before the node's first rank does.
              for (int i = 0; i < 300; ++i) {
                  shared_mapping const made(all, 4096);
                  made.bytes()[static_cast<std::size_t>(all.rank())] = std::byte{1};
                  all.barrier();
                  require(made.bytes()[0] == std::byte{1} && made.bytes()[2] == std::byte{1}, "shared");
              }
          }) == 0);
    MESSAGE("connections of strangers: ", int(seen[1]));
    CHECK(seen[2] == 0);
    seen[0] = 1;
    for (pid_t const stranger : strangers) {
        int status = -1;
        ::waitpid(stranger, &status, 0);
        CHECK(status == 0);
    }
}

TEST_CASE("another user's process in the place of a rank does not get the memory") {
    if (::geteuid() != 0) {
        MESSAGE("SKIPPED: not root, so no process is another user's");
        return;
    }
    CHECK(herring::launch(2, [](world& all) {
              if (all.rank() == 0) {
                  try {
                      shared_mapping const made(all, 4096);
                      require(false, "an error");
                  } catch (herring::error const& why) {
                      std::string const text = why.what();
                      require(why.code() == errc::refused && why.reported_by() == 0 && why.peer() == 1, text);
                      require(text.find("another user") != std::string::npos, text);
                  }
              } else { // what a rank says until the first rank has connected
                  struct {
                      std::uint64_t bytes = 4096, random = 1;
                      herring::detail::memory_need memory{};
                  } const mine;
                  char name[64];
                  std::snprintf(name, sizeof name, "herring.%016llx.1.%016llx",
                                static_cast<unsigned long long>(all.job()), 1ull);
                  require(::seteuid(nobody) == 0, "another user");
                  descriptor const listener = herring::detail::listen_locally(name);
                  require(::seteuid(0) == 0 && listener.get() >= 0, "listens");
                  std::vector<std::byte> said(1 + sizeof mine);
                  std::memcpy(said.data() + 1, &mine, sizeof mine);
                  (void)all.all_gather(said);
                  (void)all.all_gather(std::vector<std::byte>(1)); // rank 0 has sent what it sends
                  std::array<std::byte, 64> bytes{};
                  descriptor const first(::accept(listener.get(), nullptr, nullptr));
                  auto const got = receive_packet(first.get(), bytes);
                  require(first.get() >= 0 && got.bytes == 0 && got.descriptors == 0,
                          "closed, without a word");
              }
              shared_mapping const made(all, 4096); // the world goes on
              require(made.bytes().size() == 4096, "shared");
          }) == 0);
}
