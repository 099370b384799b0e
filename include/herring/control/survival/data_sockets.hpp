// herring: a rank's data sockets: the kernel's counts tell which ranks live, and which links are slow.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_SURVIVAL_DATA_SOCKETS_HPP
#define HERRING_CONTROL_SURVIVAL_DATA_SOCKETS_HPP

#include "herring/base/config.hpp"
#include "herring/machine/monitor.hpp"
#include "herring/machine/time.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// The kernel's report of a TCP connection (TCP_INFO).
struct socket_report {
    int rank = -1;                            ///< at the other end
    std::chrono::milliseconds since_data{};   ///< time since data came in that continues the earlier data
    std::chrono::milliseconds since_packet{}; ///< time since anything at all came in
    std::chrono::microseconds queueing{};     ///< excess of a round trip over the shortest one
    std::chrono::microseconds round_trip{};   ///< smoothed
    std::chrono::microseconds shortest{};     ///< round trip; 0: not measured
    std::size_t in_flight = 0;                ///< bytes that are sent and not acknowledged, in whole packets
    unsigned unanswered = 0;                  ///< retransmissions and probes in a row without an answer
    std::uint64_t received = 0;               ///< bytes, since the connection was opened
    double incoming = 0;                      ///< bytes a second, at a heartbeat, of `incoming_rate`
    std::uint64_t acknowledged = 0;           ///< of the bytes that were sent
    std::uint32_t lost =
        0; ///< packets that were sent again, and not for nothing, since the connection was opened
    bool on_its_way = false; ///< some of the sent bytes have not been acknowledged

    /// Reads the report. False: the socket is no such connection.
    ///
    /// Cost: one system call.
    HERRING_SEPARABLE bool read(int socket) noexcept;
};

/// Returns how many bytes of a connection may be written and not acknowledged: half a second of the link's
/// rate, at least two packets; 0: any number, because the link carries 100 Mbit/s or more, or nothing waits
/// in its queues. Pure.
// The rate is the bytes in flight by the time of a round trip (Little's law): that of one connection's share
// of the link, so that the bounds of all that share the link come to half a second together.
constexpr std::size_t flight_bound(socket_report const& of) noexcept {
    using namespace std::chrono_literals;
    constexpr std::size_t two_packets = 3'000, fast = 12'500'000;
    if (of.queueing < 100ms || of.in_flight == 0) return 0;
    auto const rate = of.in_flight * 1'000'000 / static_cast<std::size_t>(of.round_trip.count());
    return rate >= fast ? 0 : rate / 2 < two_packets ? two_packets : rate / 2;
}

/// The rate at which data comes in over a connection: since the last heartbeat, or since the fourth last if
/// that is less. Pure.
// The shorter time sees a link that has just become slow; the longer one is not misled by a single packet.
class incoming_rate {
  public:
    /// To be called with each heartbeat. `received`: bytes, since the connection was opened. Returns bytes a
    /// second; of a new connection next to none.
    HERRING_SEPARABLE double look(time_point now, std::uint64_t received) noexcept;

  private:
    time_point at_[4]{}; // the newest last
    std::uint64_t received_[4]{};
};

/// The data connections of a rank in one world, under its transports.
///
/// The thread of the control connections looks at them with each heartbeat. Incoming data is a sign of life
/// of the rank that sent it: over a slow link heartbeats queue behind it. Acknowledgements are not: they come
/// from a host. The bytes that a connection may have in flight are bounded while its link is slow, so that
/// little waits in queues before the next heartbeat. A socket whose transport has ended is kept while its
/// bytes are in flight: a socket that is closed with unread bytes, or that gets some later, resets the
/// connection, and the other end loses the bytes that have not arrived.
/// Threads:  any. A socket is taken out before it is closed.
/// Lifetime: held by the world and by each `data_socket`; the last holder frees it, and closes the kept
///           sockets.
/// Cost:     a look is one system call a connection.
class data_sockets {
  public:
    /// Returns an object that is held once; nullptr without memory.
    HERRING_SEPARABLE static data_sockets* make() noexcept;
    void hold() noexcept { uses_.fetch_add(1, std::memory_order_relaxed); }
    HERRING_SEPARABLE void release() noexcept;

    /// Errors: `std::bad_alloc`.
    HERRING_SEPARABLE void add(int rank, int socket);
    HERRING_SEPARABLE void remove(int socket) noexcept;
    /// Sends nothing over `socket` any more, and reads nothing. Closes it as soon as all bytes have arrived.
    HERRING_SEPARABLE void keep(int socket) noexcept;
    /// Closes kept sockets over which all has arrived. Returns whether any is left.
    HERRING_SEPARABLE bool close_arrived() noexcept;

    /// Calls `report(socket_report const&)` for each connection, and bounds the bytes in flight over slow
    /// links. `beats`: it is time for a heartbeat.
    template <class Report> HERRING_SETUP void look(time_point now, bool beats, Report&& report) {
        (void)close_arrived();
        monitor::guard const held(lock_);
        for (entry* e = first_; e != nullptr; e = e->next) {
            if (e->kept) continue;
            socket_report found;
            found.rank = e->rank;
            if (!found.read(e->socket)) continue;
            if (beats) found.incoming = e->incoming.look(now, found.received);
            adapt(*e, found);
            report(std::as_const(found));
        }
    }

  private:
    struct entry {
        int rank;
        int socket;
        entry* next;
        incoming_rate incoming{};
        bool bounded = false;
        bool prompt = false; // retransmits after a second at most
        bool kept = false;
    };

    data_sockets() = default;
    HERRING_SEPARABLE ~data_sockets();
    HERRING_SEPARABLE static void adapt(entry& e, socket_report const& found) noexcept;

    std::atomic<int> uses_{1};
    monitor lock_;
    entry* first_ = nullptr;
};

/// A socket's place among the data connections of its world, while it is open.
class data_socket {
  public:
    data_socket() = default;
    /// Errors: `std::bad_alloc`, also where `of` is nullptr.
    HERRING_SEPARABLE data_socket(data_sockets* of, int rank, int socket);
    data_socket(data_socket&& other) noexcept
        : of_(std::exchange(other.of_, nullptr)), socket_(other.socket_) {}
    data_socket& operator=(data_socket&& other) noexcept {
        std::swap(of_, other.of_);
        std::swap(socket_, other.socket_);
        return *this;
    }
    ~data_socket() { reset(); }

    /// To be called before the socket is closed.
    HERRING_SEPARABLE void reset() noexcept;
    /// Hands the socket over to the world: nothing is sent over it any more, nor read.
    HERRING_SEPARABLE void keep() noexcept;

  private:
    data_sockets* of_ = nullptr;
    int socket_ = -1;
};

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/control/survival/data_sockets_impl.hpp"
#endif

#endif // HERRING_CONTROL_SURVIVAL_DATA_SOCKETS_HPP
