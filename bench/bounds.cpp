// herring: what the machine itself can do, measured in the same run as the rows that are held against it.
// SPDX-License-Identifier: Apache-2.0
//
//   bounds --kind memory --ranks 4 --threads 2 --sizes 8,1024 --suite shm [--out FILE]
//       the least that n ranks' buffers of M bytes need: each read once and written once (n·M + n·M bytes),
//       in huge pages, by `threads` threads, each an equal part; and the time one cache line takes to another core
//   bounds --kind link --listen 10.77.0.1 &  bounds --kind link --connect 10.77.0.1 --suite tcp [--out FILE]
//       the best two-way throughput of one TCP connection, and a message's way one way
//   bounds --kind mesh --ranks 8 --sizes 1048576,16777216 --suite forms [--out FILE]
//       what n ranks of one thread each take on loopback to send each other, over a connection a pair, the bytes of an all-reduce
//       by reduce-scatter and all-gather: 2·M/n to each and from each. Without a sum, and nobody waits for what he sends
#include "harness.hpp"

#include "herring/memory/huge_pages.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

namespace {

std::FILE* output(bench::options const& opt) {
    return std::fopen(opt.text("out", "/dev/stdout").c_str(), "a");
}

// ---- memory
// ---------------------------------------------------------------------------------------------------------

/// All N buffers become their average, elements [begin, end).
template <std::size_t N> void average(float* const* at, std::size_t begin, std::size_t end) {
    float* __restrict__ x[N];
    std::copy(at, at + N, x);
#pragma GCC ivdep
    for (std::size_t i = begin; i < end; ++i) {
        float sum = x[0][i];
        for (std::size_t r = 1; r < N; ++r) sum += x[r][i];
        sum *= 1.0f / static_cast<float>(N);
        for (std::size_t r = 0; r < N; ++r) x[r][i] = sum;
    }
}

/// Spins until `ready()`; yields when that takes long, as another program may hold the core that it waits
/// for.
template <class F> void spin_until(F ready) {
    for (int i = 1; !ready(); ++i)
        if (i % 1000 == 0) sched_yield();
}

/// Two threads hand a counter to and fro; half a round trip, µs.
double line_latency_us() {
    std::atomic<int> turn{0};
    int const rounds = 20000;
    std::thread other([&] {
        for (int i = 0; i < rounds; ++i) {
            spin_until([&] { return turn.load(std::memory_order_acquire) == 2 * i + 1; });
            turn.store(2 * i + 2, std::memory_order_release);
        }
    });
    double best = 1e9;
    for (int i = 0; i < rounds; ++i) {
        double const start = bench::now_us();
        turn.store(2 * i + 1, std::memory_order_release);
        spin_until([&] { return turn.load(std::memory_order_acquire) == 2 * i + 2; });
        best = std::min(best, bench::now_us() - start);
    }
    other.join();
    return best / 2;
}

/// The best of many repetitions, µs. A thread's part is one range, or every so-manieth piece of 64 KiB; the
/// same in each repetition, so that what fits a core's cache stays there.
double streaming_us(std::vector<float*> const& at, std::size_t threads, std::size_t elements,
                    bool interleaved) {
    std::size_t const piece = (std::size_t{64} << 10) / sizeof(float);
    std::atomic<int> go{0}, done{0};
    auto const range = [&](std::size_t begin, std::size_t end) {
        if (at.size() == 2)
            average<2>(at.data(), begin, end);
        else
            average<4>(at.data(), begin, end);
    };
    auto const part = [&](std::size_t t) {
        if (!interleaved)
            range(elements * t / threads, elements * (t + 1) / threads);
        else
            for (std::size_t i = t * piece; i < elements; i += threads * piece)
                range(i, std::min(i + piece, elements));
    };
    std::vector<std::thread> others;
    for (std::size_t t = 1; t < threads; ++t)
        others.emplace_back([&, t] {
            for (int turn = 1;; ++turn) {
                int now = 0;
                spin_until([&] { return (now = go.load(std::memory_order_acquire)) >= turn || now < 0; });
                if (now < 0) return;
                part(t);
                done.fetch_add(1, std::memory_order_release);
            }
        });
    double best = 1e18;
    int turn = 1;
    double const until = bench::now_us() + 0.1e6;
    for (; turn <= 10 || (bench::now_us() < until && turn < 5000); ++turn) {
        done.store(0, std::memory_order_relaxed);
        double const start = bench::now_us();
        go.store(turn, std::memory_order_release);
        part(0);
        spin_until([&] { return done.load(std::memory_order_acquire) + 1 >= static_cast<int>(threads); });
        best = std::min(best, bench::now_us() - start);
    }
    go.store(-1, std::memory_order_release);
    for (auto& t : others) t.join();
    return best;
}

/// The faster of the two ways to divide `ranks` buffers.
double streaming_us(std::size_t ranks, std::size_t threads, std::size_t elements) {
    using buffer = std::vector<float, herring::huge_page_allocator<float>>;
    std::vector<buffer> memory(ranks, buffer(elements)); // zeroed, so every page is there
    std::vector<float*> at;
    for (buffer& one : memory) at.push_back(one.data());
    return std::min(streaming_us(at, threads, elements, false), streaming_us(at, threads, elements, true));
}

int memory(bench::options const& opt) {
    auto const ranks = static_cast<std::size_t>(opt.number("ranks", 2)),
               threads = static_cast<std::size_t>(opt.number("threads", 2));
    double const latency = threads > 1 ? line_latency_us() : 0;
    std::FILE* out = output(opt);
    if (!out || (ranks != 2 && ranks != 4)) return 1;
    for (auto bytes : opt.sizes())
        std::fprintf(
            out,
            "{\"suite\":\"%s\",\"what\":\"memory bound\",\"ranks\":%zu,\"bytes\":%zu,\"bound_us\":%.3f}\n",
            opt.text("suite").c_str(), ranks, bytes,
            std::max(latency, streaming_us(ranks, threads, bytes / sizeof(float))));
    return std::fclose(out);
}

// ---- one TCP connection
// ---------------------------------------------------------------------------------------------

constexpr std::uint16_t port = 47077;
constexpr int pings = 3000;

void fail(char const* what) {
    std::perror(what);
    std::exit(1);
}

/// A connected, non-blocking socket; both sides of a trial ask for the same congestion control ("" is the
/// system's own).
int connected(bench::options const& opt, std::string const& congestion, int send_buffer) {
    bool const listens = !opt.text("listen").empty();
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(port);
    inet_pton(AF_INET, opt.text(listens ? "listen" : "connect").c_str(), &at.sin_addr);
    auto const* address = reinterpret_cast<sockaddr const*>(&at);
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    if (listens) {
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
        if (bind(fd, address, sizeof at) || listen(fd, 1)) fail("bounds: listen");
        int const accepted = accept(fd, nullptr, nullptr);
        close(fd);
        fd = accepted;
    } else {
        for (int i = 0; connect(fd, address, sizeof at); ++i) {
            if (i == 500) fail("bounds: connect");
            usleep(10000);
            close(fd);
            fd = socket(AF_INET, SOCK_STREAM, 0);
        }
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (send_buffer) setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof send_buffer);
    if (!congestion.empty())
        setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion.data(),
                   static_cast<socklen_t>(congestion.size()));
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

bool one_byte(int fd, bool sends) {
    char byte = 0;
    for (;;) {
        auto const n = sends ? send(fd, &byte, 1, MSG_NOSIGNAL) : recv(fd, &byte, 1, 0);
        if (n == 1) return true;
        if (n == 0 || (n < 0 && errno != EAGAIN)) return false;
    }
}

/// One trial: pings, then both sides send and receive blocks as fast as they can until the connecting side
/// hangs up.
void trial(int fd, bool connects, std::size_t block, double& best_gb, double& best_us) {
    for (int i = 0; i < pings; ++i) {
        double const start = bench::now_us();
        if (!one_byte(fd, connects) || !one_byte(fd, !connects)) return;
        if (connects) best_us = std::min(best_us, (bench::now_us() - start) / 2);
    }
    std::vector<char> out(block), in(block);
    double bytes = 0;
    double const start = bench::now_us(), until = start + (connects ? 0.25e6 : 60e6);
    while (bench::now_us() < until) {
        auto const r = recv(fd, in.data(), block, 0);
        auto const s = send(fd, out.data(), block, MSG_NOSIGNAL);
        if (r == 0 || (r < 0 && errno != EAGAIN) || (s < 0 && errno != EAGAIN)) return;
        bytes += static_cast<double>(std::max<ssize_t>(r, 0) + std::max<ssize_t>(s, 0));
        if (r < 0 && s < 0) {
            pollfd p{fd, POLLIN | POLLOUT, 0};
            poll(&p, 1, 1000);
        }
    }
    best_gb = std::max(best_gb, bytes / (bench::now_us() - start) * 1e-3);
}

int link(bench::options const& opt) {
    bool const connects = opt.text("listen").empty();
    double best_gb = 0, best_us = 1e9;
    for (std::string congestion : {"", "reno"})
        for (int send_buffer : {0, 128 << 10})
            for (std::size_t block : {std::size_t{64} << 10, std::size_t{256} << 10, std::size_t{1} << 20}) {
                int const fd = connected(opt, congestion, send_buffer);
                trial(fd, connects, block, best_gb, best_us);
                close(fd);
            }
    if (!connects) return 0;
    std::FILE* out = output(opt);
    if (!out) return 1;
    std::fprintf(out, "{\"suite\":\"%s\",\"what\":\"link\",\"both_ways_gb_s\":%.3f,\"one_way_us\":%.2f}\n",
                 opt.text("suite").c_str(), best_gb, best_us);
    return std::fclose(out);
}

// ---- connections between all pairs
// ---------------------------------------------------------------------------------------------

/// What the ranks of a mesh share: processes count themselves in.
struct meeting {
    std::atomic<int> turn{0}, here{0};
    std::atomic<double> longest{0};

    void wait(int ranks) {
        int const now = turn.load();
        if (here.fetch_add(1) + 1 < ranks)
            return spin_until([&] { return turn.load(std::memory_order_acquire) != now; });
        here = 0;
        turn = now + 1;
    }
    double longest_of(double mine, int ranks) {
        wait(ranks);
        longest = 0;
        wait(ranks);
        for (double seen = longest; seen < mine && !longest.compare_exchange_weak(seen, mine);) {
        }
        wait(ranks);
        return longest;
    }
};

/// One connection of loopback, both ends.
void connect_pair(int listener, sockaddr_in const& at, int& a, int& b) {
    a = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(a, reinterpret_cast<sockaddr const*>(&at), sizeof at)) fail("bounds: connect");
    b = accept(listener, nullptr, nullptr);
    int one = 1;
    for (int const fd : {a, b}) {
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        fcntl(fd, F_SETFL, O_NONBLOCK);
    }
}

/// `each` bytes to every peer and as many from every peer, out of one buffer and into another.
void exchange(std::vector<int> const& peers, std::vector<char> const& out, std::vector<char>& in,
              std::size_t each) {
    constexpr std::size_t most = std::size_t{256} << 10;
    std::vector<std::size_t> sent(peers.size(), 0), got(peers.size(), 0);
    std::vector<pollfd> wanted;
    int idle = 0; // rounds
    for (std::size_t left = 2 * peers.size() * each; left > 0;) {
        std::size_t moved = 0;
        wanted.clear();
        for (std::size_t p = 0; p < peers.size(); ++p) {
            auto const move = [&](auto call, auto* at, std::size_t& done) {
                if (done == each) return;
                auto const n = call(peers[p], at + p * each + done, std::min(most, each - done));
                if (n > 0) done += static_cast<std::size_t>(n), moved += static_cast<std::size_t>(n);
            };
            move([](int fd, char* to, std::size_t n) { return recv(fd, to, n, 0); }, in.data(), got[p]);
            move([](int fd, char const* from, std::size_t n) { return send(fd, from, n, MSG_NOSIGNAL); },
                 out.data(), sent[p]);
            short const events =
                static_cast<short>((got[p] < each ? POLLIN : 0) | (sent[p] < each ? POLLOUT : 0));
            if (events != 0) wanted.push_back({peers[p], events, 0});
        }
        left -= moved;
        idle = moved == 0 ? idle + 1 : 0;
        if (idle > 200)
            poll(wanted.data(), wanted.size(), 1000);
        else if (idle > 0)
            sched_yield();
    }
}

int mesh(bench::options const& opt) {
    auto const ranks = static_cast<int>(opt.number("ranks", 8));
    if (ranks < 2) return 2;
    auto const count = static_cast<std::size_t>(ranks);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    int const listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, reinterpret_cast<sockaddr const*>(&at), sizeof at) || listen(listener, 1) ||
        getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size))
        fail("bounds: listen");
    std::vector<std::vector<int>> ends(count);
    for (std::size_t a = 0; a < count; ++a)
        for (std::size_t b = a + 1; b < count; ++b) {
            int first = -1, second = -1;
            connect_pair(listener, at, first, second);
            ends[a].push_back(first), ends[b].push_back(second);
        }
    void* const memory =
        mmap(nullptr, sizeof(meeting), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) fail("bounds: mmap");
    auto& all = *new (memory) meeting;
    std::vector<pid_t> others;
    std::size_t rank = 0;
    while (rank + 1 < count) {
        pid_t const child = fork();
        if (child < 0) fail("bounds: fork");
        if (child == 0) break; // this is rank `rank`
        others.push_back(child);
        ++rank;
    }
    bool const tells = others.size() + 1 == count; // the last rank is the process that was started
    for (auto bytes : opt.sizes()) {
        std::size_t const each = (2 * bytes + count - 1) / count;
        std::vector<char> out((count - 1) * each, 1), in(out.size());
        std::vector<double> us;
        std::size_t calls = 1;
        for (double spent = 0; us.size() < 6 || (spent < 0.5e6 && us.size() < 200);) {
            all.wait(ranks);
            double const start = bench::now_us();
            for (std::size_t i = 0; i < calls; ++i) exchange(ends[rank], out, in, each);
            double const took = all.longest_of(bench::now_us() - start, ranks);
            us.push_back(took / static_cast<double>(calls));
            spent += took;
            if (us.size() == 1) calls = static_cast<std::size_t>(std::clamp(20e3 / us[0], 1.0, 1000.0));
        }
        if (!tells) continue;
        us.erase(us.begin()); // warms up
        std::FILE* const to = output(opt);
        if (!to) return 1;
        std::fprintf(
            to, "{\"suite\":\"%s\",\"what\":\"mesh bound\",\"ranks\":%d,\"bytes\":%zu,\"bound_us\":%.3f}\n",
            opt.text("suite").c_str(), ranks, bytes, bench::quantile(us, 0.5));
        std::fclose(to);
    }
    int failed = 0;
    for (pid_t const other : others) {
        int status = 0;
        waitpid(other, &status, 0);
        failed |= status;
    }
    return failed != 0;
}

} // namespace

int main(int argc, char** argv) {
    bench::options const opt(argc, argv);
    std::string const kind = opt.text("kind");
    return kind == "memory" ? memory(opt) : kind == "mesh" ? mesh(opt) : link(opt);
}
