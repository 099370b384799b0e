// herring: a host behind a slow link, in virtual time: queues, TCP connections, and what the kernel would say of these.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_SLOW_LINK_HPP
#define HERRING_TESTS_SLOW_LINK_HPP

#include "herring/control/survival/data_sockets.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

namespace slow_link {

constexpr std::size_t segment = 1448, header = 66;

/// One way of the link: packets pass it one behind the other, at its rate. None is lost.
struct queue {
    struct packet {
        int connection; // -1: of other programs
        bool acknowledges;
        std::uint64_t end; // of the bytes that it carries or acknowledges
        std::int64_t sent; // ms; of what is acknowledged
        std::size_t bytes;
    };
    double rate = 0; // bytes a ms
    std::deque<packet> waits{};
    double credit = 0;
    bool cut = false; // what comes is dropped

    /// So many bytes of other programs wait.
    void occupy(std::size_t bytes) {
        for (; bytes > 0; bytes -= std::min(bytes, segment))
            push({-1, false, 0, 0, std::min(bytes, segment) + header});
    }
    void push(packet const& p) {
        if (!cut) waits.push_back(p);
    }
    /// A ms passes.
    template <class Arrived> void step(Arrived&& arrived) {
        credit = waits.empty() ? 0 : credit + rate;
        while (!waits.empty() && credit >= static_cast<double>(waits.front().bytes)) {
            credit -= static_cast<double>(waits.front().bytes);
            packet const p = waits.front();
            waits.pop_front();
            arrived(p);
        }
    }
};

/// What one end of a TCP connection sends to the other: a congestion window in packets, which is one after a timeout, timeouts that
/// double (of `thin` connections they are at most a second), round trips by timestamps.
struct sender {
    bool thin = false;
    std::uint64_t written = 0, sent = 0, acknowledged = 0;      // bytes
    std::size_t most = std::numeric_limits<std::size_t>::max(); // in flight
    std::size_t window = 10;                                    // packets
    std::size_t threshold = 1'000'000;
    double round_trip = 1, shortest = 1; // ms
    unsigned unanswered = 0;
    std::int64_t timer = 0;
    std::deque<std::uint64_t> ends{}; // of the packets in flight

    std::size_t in_flight() const { return sent - acknowledged; }
    std::int64_t timeout() const {
        double const first = std::max(200.0, 1.5 * round_trip);
        if (thin) return static_cast<std::int64_t>(std::min(first, 1'000.0));
        return static_cast<std::int64_t>(std::min(first * (1u << std::min(unanswered, 9u)), 120'000.0));
    }
    /// Sends a packet, if it may.
    bool send(std::int64_t now, int connection, queue& way) {
        if (sent == written || ends.size() >= window || in_flight() >= most) return false;
        std::size_t const bytes = std::min<std::size_t>(segment, written - sent);
        if (ends.empty()) timer = now + timeout();
        sent += bytes;
        ends.push_back(sent);
        way.push({connection, false, sent, now, bytes + header});
        return true;
    }
    void send_again(std::int64_t now, int connection, queue& way) {
        if (ends.empty() || now < timer) return;
        ++unanswered;
        threshold = std::max<std::size_t>(ends.size() / 2, 2);
        window = 1;
        timer = now + timeout();
        way.push({connection, false, ends.front(), now, std::min(segment, in_flight()) + header});
    }
    /// As far as the sender knows.
    herring::detail::socket_report report() const {
        using std::chrono::microseconds;
        herring::detail::socket_report found;
        found.round_trip = microseconds(static_cast<std::int64_t>(round_trip * 1'000));
        found.shortest = microseconds(static_cast<std::int64_t>(shortest * 1'000));
        found.queueing = found.round_trip - found.shortest;
        found.in_flight = ends.size() * segment;
        found.unanswered = unanswered;
        found.acknowledged = acknowledged;
        found.on_its_way = !ends.empty();
        return found;
    }
    /// As `data_sockets` bounds what is in flight. To be called with each heartbeat.
    void adapt() {
        herring::detail::socket_report const found = report();
        if (std::size_t const bound = herring::detail::flight_bound(found); bound != 0)
            most = bound;
        else if (in_flight() != 0 && found.queueing < std::chrono::milliseconds(50))
            most = std::numeric_limits<std::size_t>::max();
    }
    void answered(std::uint64_t end, std::int64_t when, std::int64_t now) {
        if (end <= acknowledged) return;
        acknowledged = end;
        while (!ends.empty() && ends.front() <= end) {
            ends.pop_front();
            ++window; // slow start
            if (window > threshold) window = threshold;
        }
        double const trip = std::max(1.0, static_cast<double>(now - when));
        round_trip += (trip - round_trip) / 8;
        shortest = std::min(shortest, trip);
        unanswered = 0;
        timer = now + timeout();
    }
};

/// A connection of the host with the slow link, which is `here`, to another one, `there`.
struct connection {
    int rank = 0; // of the other end
    bool data = false;
    sender here{}, there{};
    std::uint64_t came_here = 0, came_there = 0;
    std::int64_t heard_here = 0, heard_there = 0;   // when data last came
    std::int64_t packet_here = 0, packet_there = 0; // when anything did

    /// What the kernel says, here or there.
    herring::detail::socket_report report(std::int64_t now, bool at_there = false) const {
        herring::detail::socket_report found = (at_there ? there : here).report();
        found.rank = rank;
        found.since_data = std::chrono::milliseconds(now - (at_there ? heard_there : heard_here));
        found.since_packet = std::chrono::milliseconds(now - (at_there ? packet_there : packet_here));
        found.received = at_there ? came_there : came_here;
        return found;
    }
};

/// The host, its link and its connections: of each of `peers` other hosts one for data; the last one is the control connection to
/// the first host.
class host {
  public:
    queue in, out;
    std::vector<connection> connections;
    std::int64_t now = 0; // ms
    bool stopped = false; // the process of the first host: its kernel goes on
    bool halted = false;  // the process of this host: its kernel goes on
    bool gone = false;    // the first host: nothing comes from it, nothing gets there

    /// `kbit`: a second, each way, from now on.
    host(int peers, double kbit) : connections(static_cast<std::size_t>(peers) + 1) {
        in.rate = out.rate = kbit / 8;
        for (int p = 0; p < peers; ++p) {
            connections[static_cast<std::size_t>(p)].rank = p;
            connections[static_cast<std::size_t>(p)].data = true;
        }
        control().here.thin = control().there.thin = true;
    }
    /// All ranks exchange data in turn: each has so many bytes to say to each other one beyond what all have of all. What a bounded
    /// connection has no room for waits in the program. `first`: the windows of the first host and for it.
    void exchange(std::size_t out_window, std::size_t in_window, std::size_t first) {
        auto const in_of = [&](connection const& c) { return c.rank == 0 ? first : in_window; };
        auto const out_of = [&](connection const& c) {
            return c.rank == 0 ? std::min(first, out_window) : out_window;
        };
        double all = std::numeric_limits<double>::max(); // windows
        auto const windows = [](std::uint64_t bytes, std::size_t window) {
            return static_cast<double>(bytes) / static_cast<double>(window);
        };
        for (connection const& c : connections)
            if (c.data)
                all = std::min({all, windows(c.came_here, in_of(c)), windows(c.came_there, out_of(c))});
        auto const write = [&](sender& by, std::size_t window) {
            auto const due = static_cast<std::uint64_t>((all + 1) * static_cast<double>(window));
            by.written = std::max(by.written, std::min(due, by.acknowledged + std::min(by.most, window)));
        };
        for (connection& c : connections) {
            if (!c.data) continue;
            if (!halted) write(c.here, out_of(c));
            if (!stopped || c.rank != 0) write(c.there, in_of(c));
        }
    }
    connection& control() { return connections.back(); }

    void step() {
        ++now;
        for (bool any = true; any;) { // in turn: queues are mixed
            any = false;
            for (std::size_t i = 0; i < connections.size(); ++i) {
                connection& c = connections[i];
                any |= c.here.send(now, static_cast<int>(i), out);
                any |= !(gone && c.rank == 0) && c.there.send(now, static_cast<int>(i), in);
            }
        }
        for (std::size_t i = 0; i < connections.size(); ++i) {
            connections[i].here.send_again(now, static_cast<int>(i), out);
            if (!(gone && connections[i].rank == 0))
                connections[i].there.send_again(now, static_cast<int>(i), in);
        }
        in.step([&](queue::packet const& p) {
            if (p.connection < 0) return;
            connection& c = connections[static_cast<std::size_t>(p.connection)];
            c.packet_here = now;
            if (p.acknowledges) return c.here.answered(p.end, p.sent, now);
            if (p.end > c.came_here) {
                c.came_here = p.end;
                c.heard_here = now;
            }
            out.push({p.connection, true, c.came_here, p.sent, header});
        });
        out.step([&](queue::packet const& p) {
            if (p.connection < 0) return;
            connection& c = connections[static_cast<std::size_t>(p.connection)];
            if (gone && c.rank == 0) return;
            c.packet_there = now;
            if (p.acknowledges) return c.there.answered(p.end, p.sent, now);
            if (p.end > c.came_there) {
                c.came_there = p.end;
                c.heard_there = now;
            }
            in.push({p.connection, true, c.came_there, p.sent, header});
        });
    }
};

} // namespace slow_link

#endif // HERRING_TESTS_SLOW_LINK_HPP
