// herring: too few descriptors, ports, bytes; interfaces and names that do not exist. An error on every rank, never a hang.
// SPDX-License-Identifier: Apache-2.0
#include "scene.hpp"

#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>

using namespace fault;

namespace {

void limit(int what, rlim_t most) {
    rlimit now{};
    ::getrlimit(what, &now);
    now.rlim_cur = most;
    require(::setrlimit(what, &now) == 0, "a limit is set");
}

/// The highest descriptor in use: the limit is about numbers, not about how many there are.
int highest_descriptor() {
    int most = 2;
    if (DIR* const d = ::opendir("/proc/self/fd")) {
        while (dirent const* e = ::readdir(d)) most = std::max(most, std::atoi(e->d_name));
        ::closedir(d);
    }
    return most - 1;
}

/// Fills the gaps below the highest descriptor, so that a limit leaves exactly `free` of them.
void leave_descriptors(int free) {
    int last = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    while (last < highest_descriptor()) last = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    limit(RLIMIT_NOFILE, static_cast<rlim_t>(last + 1 + free));
}

/// Every rank ended well, or every rank in an error: the poor one's own says what it lacks, the others' name it.
void check_together(setup const& s, report const& seen, int poor, errc what, milliseconds most = promptly) {
    INFO(s.name << " over " << to_string(s.how) << ", rank " << poor << " is poor\n" << seen.text());
    bool const well = seen.ranks[0].how == state::done;
    for (int r = 0; r < s.ranks; ++r) {
        CAPTURE(r);
        auto const& one = seen.ranks[static_cast<std::size_t>(r)];
        CHECK(one.how == (well ? state::done : state::error));
        if (well) continue;
        if (r == poor) {
            CHECK(one.why.what == what);
        } else {
            CHECK(one.why.peer == poor);
            CHECK((one.why.what == errc::peer_failed || one.why.what == errc::peer_lost));
        }
        CHECK(one.after_ms <= static_cast<double>(most.count() * slower));
    }
}

} // namespace

TEST_CASE("resources: no file descriptors left at construction") {
    for (start const how : {start::launch, start::join}) {
        for (bool const on_node : {false, true}) {
            int failed = 0;
            int enough = -1;
            double most = 0;
            for (int free = 0; free < 12 && enough < 0; ++free) {
                setup s;
                s.how = how;
                s.ranks = 3;
                s.name = std::string(on_node ? "shared memory" : "tcp") + " with " + std::to_string(free) +
                         " descriptors";
                int const poor = free % 3;
                report const seen = play(s, [&](world& w, board& b) {
                    w.barrier();
                    if (w.rank() == poor) leave_descriptors(free);
                    b.strike();
                    auto const body = [&](auto* which) {
                        std::remove_pointer_t<decltype(which)> reduce(w, mixed_layout());
                        for (int n = 0; n < 2; ++n) step(reduce, w, n);
                    };
                    if (on_node)
                        body(static_cast<shared*>(nullptr));
                    else
                        body(static_cast<flat*>(nullptr));
                });
                check_together(s, seen, poor, errc::no_resources);
                if (seen.ranks[0].how == state::done)
                    enough = free;
                else
                    ++failed;
                most = std::max(most, seen.slowest_ms(-1));
            }
            CHECK(failed > 0);
            CHECK(enough >= 0);
            std::printf(
                "[resources] %-14s %-7s %d descriptors are enough; with fewer, %.0f ms to the last error\n",
                on_node ? "shared memory" : "tcp", to_string(how).c_str(), enough, most);
        }
    }
}

TEST_CASE("resources: no file descriptors left at join") {
    for (int free = 0; free < 8; ++free) {
        std::string const address = free_address();
        int const poor = free % 2;
        auto* const b =
            ::new (::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
                board;
        std::int64_t const from = now_ns();
        int const status = herring::launch(2,
                                           [&](world& l) {
                                               herring::join_options options;
                                               options.rank = l.rank();
                                               options.size = 2;
                                               options.address = address;
                                               options.timeout =
                                                   milliseconds(1'500); // the other one cannot know better
                                               l.barrier();
                                               if (l.rank() == poor) leave_descriptors(free);
                                               ending& mine = b->ranks[l.rank()];
                                               try {
                                                   world w = herring::join(options);
                                                   w.barrier(milliseconds(3'000));
                                                   mine.how.store(state::done);
                                               } catch (herring::error const& why) {
                                                   mine.why = why.why();
                                                   mine.how.store(state::error);
                                               }
                                           },
                                           {.timeout = plenty});
        double const took = milliseconds_since(from);
        CAPTURE(free);
        INFO("rank 0: " << b->ranks[0].why.message() << "\nrank 1: " << b->ranks[1].why.message());
        CHECK(status == 0);
        CHECK(took < 5'000.0 * slower);
        state const of_poor = b->ranks[poor].how.load();
        CHECK((of_poor == state::done || of_poor == state::error));
        CHECK(b->ranks[1 - poor].how.load() == of_poor);
        if (of_poor == state::error) {
            errc const what = b->ranks[poor].why.what;
            CHECK((what == errc::no_resources || what == errc::unreachable || what == errc::timeout));
            CHECK(b->ranks[1 - poor].why.peer == poor);
        }
        ::munmap(b, sizeof *b);
    }
}

TEST_CASE("resources: interfaces and names that do not exist") {
    struct {
        char const* name;
        char const* interface;
        char const* host; // instead of rank 0's
        std::vector<std::string> parts;
    } const cases[] = {
        {"an interface", "nosuch0", nullptr, {"HERRING_INTERFACE", "nosuch0", "lo (127.0.0.1"}},
        {"an address of another machine",
         "203.0.113.7",
         nullptr,
         {"203.0.113.7", "no such interface or address"}},
        {"a name", nullptr, "no-such-host.invalid", {"no-such-host.invalid", "does not resolve"}}};
    for (auto const& c : cases) {
        for (bool const everywhere : {false, true}) {
            std::string const address = free_address();
            auto* const b = ::new (::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE,
                                          MAP_SHARED | MAP_ANONYMOUS, -1, 0)) board;
            std::int64_t const from = now_ns();
            int const status =
                herring::launch(3,
                                [&](world& l) {
                                    ending& mine = b->ranks[l.rank()];
                                    bool const wrong = everywhere || l.rank() == 1;
                                    try {
                                        herring::join_options options;
                                        options.rank = l.rank();
                                        options.size = 3;
                                        options.address = address;
                                        options.timeout = milliseconds(1'000);
                                        if (wrong && c.interface != nullptr) options.interface = c.interface;
                                        if (wrong && c.host != nullptr)
                                            options.address =
                                                std::string(c.host) + address.substr(address.rfind(':'));
                                        world w = herring::join(options);
                                        mine.how.store(state::done);
                                    } catch (herring::error const& why) {
                                        mine.why = why.why();
                                        mine.how.store(state::error);
                                    }
                                },
                                {.timeout = plenty});
            double const took = milliseconds_since(from);
            CAPTURE(c.name);
            CAPTURE(everywhere);
            CHECK(status == 0);
            CHECK(took < 4'000.0 * slower);
            for (int r = 0; r < 3; ++r) {
                CAPTURE(r);
                ending const& one = b->ranks[r];
                CHECK(one.how.load() == state::error);
                std::string const text = one.why.message();
                if (everywhere || r == 1) {
                    CHECK(one.why.what == errc::unreachable);
                    for (std::string const& part : c.parts)
                        CHECK_MESSAGE(text.find(part) != std::string::npos, part << " in " << text);
                } else {
                    CHECK(one.why.what == errc::timeout);
                    CHECK_MESSAGE(one.why.peer == 1, text);
                }
            }
            ::munmap(b, sizeof *b);
        }
    }
}

TEST_CASE("resources: no free port for data") {
    // A network of its own, with two ports, both taken.
    auto const alone = [] {
        if (::unshare(CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
        int const any = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        ifreq loopback{};
        std::strcpy(loopback.ifr_name, "lo");
        loopback.ifr_flags = IFF_UP | IFF_RUNNING;
        bool const up = ::ioctl(any, SIOCSIFFLAGS, &loopback) == 0;
        ::close(any);
        std::ofstream range("/proc/sys/net/ipv4/ip_local_port_range");
        range << "40000 40001" << std::flush;
        if (!up || !range) return false;
        for (int port : {40000, 40001}) {
            int const s = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            sockaddr_in at{};
            at.sin_family = AF_INET;
            at.sin_port = htons(static_cast<std::uint16_t>(port));
            at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
            if (::bind(s, reinterpret_cast<sockaddr*>(&at), sizeof at) != 0 || ::listen(s, 1) != 0)
                return false;
        }
        return true;
    };
    std::fflush(nullptr);
    pid_t const child = ::fork();
    if (child == 0) {
        if (!alone()) ::_exit(77);
        auto* const b =
            ::new (::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))
                board;
        int const status = herring::launch(
            2,
            [&](world& w) {
                try {
                    flat reduce(w, mixed_layout());
                } catch (herring::error const& why) {
                    // Both lack a port; each says so itself, or hears it of the other.
                    bool const own =
                        why.code() == errc::no_resources && std::strstr(why.what(), "free ports") != nullptr;
                    if (own || (why.code() == errc::peer_failed && why.peer() == 1 - w.rank()))
                        b->entered.fetch_add(1);
                    else
                        std::fprintf(stderr, "%s\n", why.what());
                }
            },
            {.timeout = plenty});
        ::_exit(status == 0 && b->entered.load() == 2 ? 0 : 1);
    }
    int raw = 0;
    ::waitpid(child, &raw, 0);
    int const status = WIFEXITED(raw) ? WEXITSTATUS(raw) : 128;
    if (status == 77)
        MESSAGE("skipped: no network namespace may be made here");
    else
        CHECK(status == 0);
}

TEST_CASE("resources: too little shared memory, by the limit of file sizes") {
    for (start const how : {start::launch, start::join}) {
        for (int const poor : {0, 1}) {
            setup s;
            s.how = how;
            s.ranks = 3;
            s.name = "files of at most 1 MiB";
            report const seen = play(s, [&](world& w, board& b) {
                ::signal(SIGXFSZ, SIG_DFL);
                if (w.rank() == poor) limit(RLIMIT_FSIZE, 1 << 20);
                b.strike();
                shared reduce(w, layout{{"large", 4'000'000}});
                for (int n = 0; n < 2; ++n) step(reduce, w, n);
            });
            check_together(s, seen, poor, errc::no_resources);
            if (poor == 0) CHECK(seen.ranks[0].how == state::error); // it makes the file
            if (poor == 0) CHECK(std::string(seen.ranks[0].why.text).find("ulimit -f") != std::string::npos);
        }
    }
}

#if !HERRING_TEST_ASAN
TEST_CASE("resources: too little address space on one rank") {
    for (start const how : {start::launch, start::join}) {
        for (bool const on_node : {false, true}) {
            int failed = 0, well = 0;
            for (long const mib : {0L, 1L, 3L, 10L, 30L, 60L, 120L, 400L}) {
                setup s;
                s.how = how;
                s.ranks = 2;
                s.name = std::string(on_node ? "shared memory" : "tcp") + " with " + std::to_string(mib) +
                         " MiB more";
                int const poor = mib % 2 == 0 ? 1 : 0;
                report const seen = play(s, [&](world& w, board& b) {
                    w.barrier();
                    if (w.rank() == poor) {
                        long pages = 0;
                        std::ifstream("/proc/self/statm") >> pages;
                        limit(RLIMIT_AS, static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE) + (mib << 20)));
                    }
                    b.strike();
                    auto const body = [&](auto* which) {
                        std::remove_pointer_t<decltype(which)> reduce(
                            w, layout{{"large", 5'000'000}, {"small", 100}});
                        for (int n = 0; n < 2; ++n) step(reduce, w, n);
                    };
                    if (on_node)
                        body(static_cast<shared*>(nullptr));
                    else
                        body(static_cast<flat*>(nullptr));
                });
                check_together(s, seen, poor, errc::no_resources);
                (seen.ranks[0].how == state::done ? well : failed) += 1;
            }
            CHECK(failed > 0);
            CHECK(well > 0);
        }
    }
}
#endif

TEST_CASE("resources: a layout that no machine holds") {
    for (bool const on_node : {false, true}) {
        setup s;
        s.ranks = 2;
        s.name = on_node ? "4 TiB over shared memory" : "4 TiB over tcp";
        report const seen = play(s, [&](world& w, board& b) {
            b.strike();
            layout const huge{{"huge", std::size_t{1} << 40}};
            if (on_node)
                shared reduce(w, huge);
            else
                flat reduce(w, huge);
            throw std::runtime_error("not so: it was constructed");
        });
        INFO(seen.text());
        int own = 0;
        for (auto const& one : seen.ranks) {
            CHECK(one.how == state::error);
            CHECK((one.why.what == errc::no_resources || one.why.what == errc::peer_failed));
            own += one.why.what == errc::no_resources ? 1 : 0;
            CHECK(one.after_ms <= static_cast<double>(promptly.count() * slower));
        }
        CHECK(own >= 1);
    }
}
