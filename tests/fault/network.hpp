// herring: strangers and a man in the middle: sockets that do what no rank does.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_FAULT_NETWORK_HPP
#define HERRING_TESTS_FAULT_NETWORK_HPP

#include "herring/machine/address.hpp"
#include "scene.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cstring>
#include <functional>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

namespace fault {

/// Ports on which a process listens, over IPv4.
inline std::vector<int> listening_ports(int pid) {
    std::set<std::string> inodes;
    std::string const directory = "/proc/" + std::to_string(pid) + "/fd";
    if (DIR* const d = ::opendir(directory.c_str())) {
        while (dirent const* e = ::readdir(d)) {
            char target[64] = {};
            if (::readlink((directory + "/" + e->d_name).c_str(), target, sizeof target - 1) > 0 &&
                std::strncmp(target, "socket:[", 8) == 0)
                inodes.insert(std::string(target + 8, std::strlen(target) - 9));
        }
        ::closedir(d);
    }
    std::vector<int> ports;
    std::ifstream in("/proc/" + std::to_string(pid) + "/net/tcp");
    std::string line;
    std::getline(in, line);
    while (std::getline(in, line)) {
        std::istringstream fields(line);
        std::string number, local, remote, state, queues, timer, retransmits, uid, timeout, inode;
        fields >> number >> local >> remote >> state >> queues >> timer >> retransmits >> uid >> timeout >>
            inode;
        if (state == "0A" && inodes.count(inode) != 0)
            ports.push_back(std::stoi(local.substr(local.find(':') + 1), nullptr, 16));
    }
    return ports;
}

inline int connect_to(int port) {
    int const made = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(made, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0) return made;
    ::close(made);
    return -1;
}

inline bool send_all(int socket, void const* from, std::size_t size) {
    auto const* at = static_cast<char const*>(from);
    while (size > 0) {
        ssize_t const sent = ::send(socket, at, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        at += sent;
        size -= static_cast<std::size_t>(sent);
    }
    return true;
}

/// Most memory that this process has ever used, in KiB.
inline long peak_kib() {
    std::ifstream in("/proc/self/status");
    for (std::string line; std::getline(in, line);)
        if (line.rfind("VmHWM:", 0) == 0) return std::atol(line.c_str() + 6);
    return -1;
}

/// A world that tells this rank another rank's endpoint, so that its connections run through a proxy.
class misled_world : public herring::detail::no_control {
  public:
    /// `rewrite(rank, text)`: what this rank is to believe that `rank` gave to an all_gather.
    using rewrite = std::function<std::string(int, std::string)>;
    /// Called with what this rank is about to give, before it gives it.
    using before = std::function<void(std::string const&)>;

    static world make(
        world& real, rewrite change, before first = [](std::string const&) {}) {
        auto* const self = new misled_world{&real, std::move(change), std::move(first)};
        herring::detail::membership made;
        made.rank = real.rank();
        made.map = real.topology();
        made.job = real.job();
        made.key = herring::detail::secret_key(real.state().info.key.bytes());
        made.has_secret = real.has_secret();
        made.local_address = real.local_address();
        made.ranks_on_this_machine = real.ranks_on_this_machine();
        made.control = herring::detail::control_handle::of(*self);
        return world(std::move(made));
    }

    herring::gather_result all_gather(std::string_view, std::span<std::byte const> mine,
                                      time_point deadline) {
        before_({reinterpret_cast<char const*>(mine.data()), mine.size()});
        auto const all =
            real_->all_gather(mine, std::chrono::duration_cast<milliseconds>(deadline - clock::now()));
        std::vector<std::string> said;
        herring::detail::fixed_array<std::size_t> sizes(all.size());
        for (std::size_t r = 0; r < all.size(); ++r) {
            std::string const was(reinterpret_cast<char const*>(all[r].data()), all[r].size());
            said.push_back(change_(static_cast<int>(r), was));
            sizes[r] = said[r].size();
        }
        herring::gather_result changed(std::move(sizes));
        for (std::size_t r = 0; r < said.size(); ++r)
            if (!said[r].empty()) std::memcpy(changed[r].data(), said[r].data(), said[r].size());
        return changed;
    }
    void barrier(std::string_view, time_point deadline) {
        real_->barrier(std::chrono::duration_cast<milliseconds>(deadline - clock::now()));
    }
    // Failures are looked for in this rank only: what the proxy does is to be found out by the connection's ends.
    void fail(failure const& why) noexcept {
        if (claimed_.exchange(true)) return;
        failure_ = why;
        first_failure_.store(1);
        real_->fail(why);
    }
    void report_suspicion(herring::detail::suspicion_report& of) noexcept { fail(of.why); }
    void destroy() noexcept { delete this; }

  private:
    misled_world(world* real, rewrite change, before first)
        : real_(real), change_(std::move(change)), before_(std::move(first)) {}

    world* real_;
    rewrite change_;
    before before_;
    std::atomic<bool> claimed_{false};
};

/// The port in what a rank says of its data connections, or -1: it is something else that it says.
inline int port_said(std::string const& bytes) {
    herring::detail::endpoint said;
    if (!said.read(std::as_bytes(std::span(bytes)))) return -1;
    return said.family() == AF_INET && said.loopback() ? said.port() : -1;
}
/// The same with another port.
inline std::string with_port(std::string const& bytes, int port) {
    herring::detail::endpoint said;
    require(said.read(std::as_bytes(std::span(bytes))), "a rank says where it listens");
    reinterpret_cast<sockaddr_in*>(&said.raw)->sin_port = htons(static_cast<std::uint16_t>(port));
    auto const now = said.bytes();
    return {reinterpret_cast<char const*>(now.data()), now.size()};
}

/// Sits between two ranks on their data connection, sees whole frames, and may do to them what it likes.
class proxy {
  public:
    enum class verdict { pass, cut };
    /// Called for each header on its way to the rank that dials (`inward`) or away from it; `number` counts from 0 in
    /// each direction. May change the header, and send something of its own before it.
    using meddle =
        std::function<verdict(bool inward, int number, herring::detail::frame_buffer& header, int to)>;

    explicit proxy(meddle what) : meddle_(std::move(what)) {
        listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        sockaddr_in at{};
        at.sin_family = AF_INET;
        at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        require(::bind(listener_, reinterpret_cast<sockaddr*>(&at), sizeof at) == 0 &&
                    ::listen(listener_, 8) == 0,
                "a proxy listens");
        socklen_t size = sizeof at;
        ::getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size);
        port_ = ntohs(at.sin_port);
    }
    proxy(proxy const&) = delete;
    /// Returns when both ends have closed.
    ~proxy() {
        ::shutdown(listener_, SHUT_RDWR);
        for (std::thread& t : threads_) t.join();
        for (int const s : sockets_) ::close(s);
        ::close(listener_);
    }

    /// From now on, who connects to `port()` is connected to `to`.
    void lead_to(int to) {
        threads_.emplace_back([this, to] {
            int const near = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
            if (near < 0) return;
            int const far = connect_to(to);
            int const on = 1;
            for (int const s : {near, far}) ::setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            sockets_ = {near, far};
            std::thread outward([this, near, far] { relay(near, far, false); });
            relay(far, near, true);
            outward.join();
        });
    }
    int port() const { return port_; }
    std::size_t slice = 0; // write so many bytes at a time; 0: as they come
    /// Not −1: in the payload of the first large frame from this one on, on its way in, two words of 16 bits change places. The
    /// sum that TCP would have made of them is the same.
    int swaps_from = -1;

  private:
    void relay(int from, int to, bool inward) {
        std::vector<char> payload(1 << 16);
        // Around the first frame of either direction, the hello, there are nonces and proofs: transport/tcp/connect.hpp.
        auto const raw = [&](std::size_t size) {
            return receive(from, payload.data(), size) && pass(to, payload.data(), size);
        };
        bool swaps = inward && swaps_from >= 0;
        bool const begun = !inward || raw(32);
        for (int number = 0; begun; ++number) {
            herring::detail::frame_buffer header;
            if (!receive(from, header.data(), header.size())) break;
            herring::detail::frame f;
            require(herring::detail::decode(header, f), "real ranks send frames");
            if (meddle_(inward, number, header, to) == verdict::cut) break;
            bool goes_on = pass(to, header.data(), header.size());
            bool const changes = swaps && number >= swaps_from && f.length >= 4'096;
            if (changes) swaps = false;
            for (std::uint64_t left = f.envelope + f.length; goes_on && left > 0;) {
                std::size_t const part =
                    static_cast<std::size_t>(std::min<std::uint64_t>(left, payload.size()));
                goes_on = receive(from, payload.data(), part);
                if (goes_on && changes && left == f.envelope + f.length) {
                    char* const word = payload.data() + f.envelope; // of a float whose halves differ
                    std::swap_ranges(word, word + 2, word + 2);
                }
                goes_on = goes_on && pass(to, payload.data(), part);
                left -= part;
            }
            if (number == 0) goes_on = goes_on && raw(inward ? 32 : 64);
            if (!goes_on) break;
        }
        ::shutdown(to, SHUT_WR);
        ::shutdown(from, SHUT_RD);
    }

    static bool receive(int from, void* into, std::size_t size) {
        auto* at = static_cast<char*>(into);
        while (size > 0) {
            ssize_t const got = ::recv(from, at, size, 0);
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) return false;
            at += got;
            size -= static_cast<std::size_t>(got);
        }
        return true;
    }
    bool pass(int to, void const* from, std::size_t size) const {
        if (slice == 0) return send_all(to, from, size);
        auto const* at = static_cast<char const*>(from);
        for (std::size_t done = 0; done < size; done += slice)
            if (!send_all(to, at + done, std::min(slice, size - done))) return false;
        return true;
    }

    meddle meddle_;
    int listener_ = -1;
    int port_ = 0;
    std::vector<int> sockets_{};
    std::vector<std::thread> threads_{};
};

} // namespace fault

#endif // HERRING_TESTS_FAULT_NETWORK_HPP
