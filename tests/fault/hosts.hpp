// herring: machines for faults of the network: namespaces behind one switch, whose links can be cut, lose packets, or be slow.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_FAULT_HOSTS_HPP
#define HERRING_TESTS_FAULT_HOSTS_HPP

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fault {

inline std::int64_t monotonic_ns() { return std::chrono::steady_clock::now().time_since_epoch().count(); }
constexpr std::int64_t ns(double seconds) { return static_cast<std::int64_t>(seconds * 1e9); }
inline void sleep_for(std::int64_t some_ns) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(some_ns));
}

template <class T> T* in_shared_memory() {
    void* const at = ::mmap(nullptr, sizeof(T), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    return ::new (at) T;
}

/// The least value that a share `p` of them does not exceed; -1 without any.
inline double percentile(std::vector<double> values, double p) {
    if (values.empty()) return -1;
    std::sort(values.begin(), values.end());
    auto const rank = static_cast<std::size_t>(std::ceil(p * static_cast<double>(values.size())));
    return values[std::clamp<std::size_t>(rank, 1, values.size()) - 1];
}

/// A TCP connection over IPv4 as the kernel lists it, or a socket that listens.
struct tcp_socket {
    std::uint32_t local = 0, remote = 0; // addresses, as they stand in memory
    int local_port = 0, remote_port = 0;
    bool listens = false, established = false;
};

inline std::string text_of(std::uint32_t address) {
    char text[INET_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET, &address, text, sizeof text);
    return text;
}

/// The sockets of a process.
inline std::vector<tcp_socket> tcp_sockets(int pid) {
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
    std::vector<tcp_socket> found;
    std::ifstream in("/proc/" + std::to_string(pid) + "/net/tcp");
    std::string line;
    std::getline(in, line);
    while (std::getline(in, line)) {
        std::istringstream fields(line);
        std::string number, local, remote, state, queues, timer, retransmits, uid, timeout, inode;
        fields >> number >> local >> remote >> state >> queues >> timer >> retransmits >> uid >> timeout >>
            inode;
        if (inodes.count(inode) == 0) continue;
        tcp_socket s;
        s.local = static_cast<std::uint32_t>(std::stoul(local, nullptr, 16));
        s.remote = static_cast<std::uint32_t>(std::stoul(remote, nullptr, 16));
        s.local_port = std::stoi(local.substr(local.find(':') + 1), nullptr, 16);
        s.remote_port = std::stoi(remote.substr(remote.find(':') + 1), nullptr, 16);
        s.listens = state == "0A";
        s.established = state == "01";
        found.push_back(s);
    }
    return found;
}

/// Runs commands of sh; true if all went well.
inline bool shell(std::string const& commands) {
    return std::system(
               ("PATH=$PATH:/usr/sbin:/sbin; set -e; { " + commands + "\n} >/dev/null 2>&1").c_str()) == 0;
}

/// Machines that are network namespaces behind one switch: 10.79.0.1, .2, ...; this process is at the switch, .254. They go with
/// the process that made them.
class hosts {
  public:
    static constexpr char const* needs =
        "network namespaces, bridge, veth, nft and ss need root, and ip, tc, nft and ss";

    /// From now on this process is in a network of its own. Check `made()`.
    explicit hosts(int count) {
        if (::unshare(CLONE_NEWNET) != 0) return;
        if (!shell("ip link set lo up; ip link add br0 type bridge; ip addr add 10.79.0.254/24 dev br0; ip "
                   "link set br0 up; ss -h; nft add table bridge fault; nft add chain bridge fault forward "
                   "'{ type filter hook forward priority 0; }'"))
            return;
        for (int h = 0; h < count; ++h) {
            int ready[2];
            if (::pipe(ready) != 0) return;
            std::fflush(nullptr);
            pid_t const holder = ::fork(); // what lives in a namespace keeps it
            if (holder == 0) {
                ::prctl(PR_SET_PDEATHSIG, SIGKILL);
                for (int const number : {SIGTERM, SIGINT}) ::signal(number, SIG_DFL);
                bool const alone = ::unshare(CLONE_NEWNET) == 0 && ::write(ready[1], "", 1) == 1;
                while (alone) ::pause();
                ::_exit(1);
            }
            char word = 0;
            ::close(ready[1]);
            bool const alone = ::read(ready[0], &word, 1) == 1;
            ::close(ready[0]);
            if (!alone) return;
            holders_.push_back(holder);
            if (!shell("ip link add " + port(h) + " type veth peer name eth0 netns " +
                       std::to_string(holder) + "; ip link set " + port(h) +
                       " master br0 up; nft add chain bridge fault " + port(h) +
                       "; nft add rule bridge fault forward jump " + port(h)) ||
                !on(h, "ip link set lo up; ip addr add " + address(h) +
                           "/24 dev eth0; ip link set eth0 up; "
                           "nft add table inet fault; "
                           "nft add chain inet fault out '{ type filter hook output priority 0; }'; "
                           "nft add chain inet fault in '{ type filter hook input priority 0; }'; "
                           // What heal() leaves as it is.
                           "nft add chain inet fault lost_out '{ type filter hook output priority 1; }'; "
                           "nft add chain inet fault lost_in '{ type filter hook input priority 1; }'"))
                return;
        }
        made_ = true;
    }
    hosts(hosts const&) = delete;
    ~hosts() {
        for (pid_t const holder : holders_) {
            ::kill(holder, SIGKILL);
            ::waitpid(holder, nullptr, 0);
        }
    }

    bool made() const { return made_; }
    int count() const { return static_cast<int>(holders_.size()); }
    static std::string address(int host) { return "10.79.0." + std::to_string(host + 1); }

    /// This process is on that machine from now on.
    bool enter(int host) const {
        int const at =
            ::open(("/proc/" + std::to_string(holder(host)) + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC);
        bool const entered = at >= 0 && ::setns(at, CLONE_NEWNET) == 0;
        if (at >= 0) ::close(at);
        return entered;
    }
    /// Commands on that machine.
    bool on(int host, std::string const& commands) const {
        return shell("exec nsenter -t " + std::to_string(holder(host)) + " -n sh -e <<'END_OF_COMMANDS'\n" +
                     commands + "\nEND_OF_COMMANDS\n");
    }

    /// Nothing goes in or out. The host itself drops it: a socket that sends is told, and tries again sooner than over a network.
    bool cut(int host) const {
        return on(
            host,
            "nft 'add rule inet fault out oifname eth0 drop; add rule inet fault in iifname eth0 drop'");
    }
    /// Nothing goes from one to the other; what goes back is not touched.
    bool cut(int from, int to) const {
        return on(from, "nft 'add rule inet fault out ip daddr " + address(to) + " drop'");
    }
    /// The connections of that process to a port get no packet through any more, in or out; new ones do. Returns how many.
    int cut_connections(int host, int pid, int remote_port) const {
        std::string rules;
        int count = 0;
        for (tcp_socket const& s : tcp_sockets(pid)) {
            if (!s.established || s.remote_port != remote_port) continue;
            std::string const here = std::to_string(s.local_port), there = std::to_string(s.remote_port);
            rules += "add rule inet fault lost_out tcp sport " + here + " tcp dport " + there +
                     " drop; add rule inet fault lost_in tcp sport " + there + " tcp dport " + here +
                     " drop; ";
            ++count;
        }
        return count != 0 && on(host, "nft '" + rules + "'") ? count : 0;
    }
    /// Loses packets in and out.
    bool lose(int host, int per_1000) const {
        std::string const some = " numgen random mod 1000 < " + std::to_string(per_1000) + " drop";
        return on(host, "nft 'add rule inet fault out oifname eth0" + some +
                            "; add rule inet fault in iifname eth0" + some + "'");
    }
    /// The same, dropped at the switch, as a network does: nobody is told.
    bool cut_at_switch(int host) const { return at_switch(host, " drop"); }
    bool lose_at_switch(int host, int per_1000) const {
        return at_switch(host, " numgen random mod 1000 < " + std::to_string(per_1000) + " drop");
    }
    /// Every packet from one host to another may be lost, for good.
    bool lose_between(int per_1000) const {
        return shell("nft 'add rule bridge fault forward ether type ip numgen random mod 1000 < " +
                     std::to_string(per_1000) + " drop'");
    }
    /// What goes out is limited; so many bytes wait.
    bool slow_down(int host, int kbit, int queue_bytes) const {
        return on(host, "tc qdisc replace dev eth0 root tbf rate " + std::to_string(kbit) +
                            "kbit burst 8kb limit " + std::to_string(queue_bytes));
    }
    /// The same for what comes in.
    bool slow_down_at_switch(int host, int kbit, int queue_bytes) const {
        return shell("tc qdisc replace dev " + port(host) + " root tbf rate " + std::to_string(kbit) +
                     "kbit burst 8kb limit " + std::to_string(queue_bytes));
    }
    /// As at first.
    bool heal(int host) const {
        return shell("nft flush chain bridge fault " + port(host) + "; tc qdisc del dev " + port(host) +
                     " root || true") &&
               on(host, "nft 'flush chain inet fault out; flush chain inet fault in'; tc qdisc del dev eth0 "
                        "root 2>/dev/null || true");
    }
    /// Resets connections between two processes; returns how many. `host`: that of `pid`, or -1: this network.
    int reset(int host, int pid, int other) const {
        std::vector<tcp_socket> const theirs = tcp_sockets(other);
        std::string commands;
        int count = 0;
        for (tcp_socket const& s : tcp_sockets(pid))
            for (tcp_socket const& t : theirs)
                if (s.established && s.local == t.remote && s.remote == t.local &&
                    s.local_port == t.remote_port && s.remote_port == t.local_port) {
                    commands += "ss -K -t src " + text_of(s.local) +
                                " sport = " + std::to_string(s.local_port) + " dst " + text_of(s.remote) +
                                " dport = " + std::to_string(s.remote_port) + "\n";
                    ++count;
                }
        if (count == 0) return 0;
        return (host >= 0 ? on(host, commands) : shell(commands)) ? count : 0;
    }

  private:
    static std::string port(int host) { return "port" + std::to_string(host); }
    bool at_switch(int host, std::string const& what) const {
        std::string const add = "add rule bridge fault " + port(host) + " ether type ip ";
        return shell("nft '" + add + "oifname " + port(host) + what + "; " + add + "iifname " + port(host) +
                     what + "'");
    }
    pid_t holder(int host) const { return holders_[static_cast<std::size_t>(host)]; }

    std::vector<pid_t> holders_{};
    bool made_ = false;
};

} // namespace fault

#endif // HERRING_TESTS_FAULT_HOSTS_HPP
