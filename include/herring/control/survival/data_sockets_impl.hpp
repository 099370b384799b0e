// herring: data connections of a rank, their reports, and the bound of their bytes in flight: the functions.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_SURVIVAL_DATA_SOCKETS_IMPL_HPP
#define HERRING_CONTROL_SURVIVAL_DATA_SOCKETS_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/control/survival/data_sockets.hpp"
#include "herring/machine/monitor.hpp"
#include "herring/machine/time.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace HERRING_NAMESPACE::detail {

// The front of the kernel's struct tcp_info, whose fields keep their places; netinet/tcp.h may end before
// min_rtt.
struct kernel_tcp_info {
    std::uint8_t state, ca_state, retransmits, probes, backoff, options, wscale, flags;
    std::uint32_t rto, ato, snd_mss, rcv_mss, unacked, sacked, lost, retrans, fackets;
    std::uint32_t last_data_sent, last_ack_sent, last_data_recv, last_ack_recv;
    std::uint32_t pmtu, rcv_ssthresh, rtt, rttvar, snd_ssthresh, snd_cwnd, advmss, reordering, rcv_rtt,
        rcv_space;
    std::uint32_t total_retrans;
    std::uint64_t pacing_rate, max_pacing_rate, bytes_acked, bytes_received;
    std::uint32_t segs_out, segs_in, notsent_bytes, min_rtt, data_segs_in, data_segs_out;
    std::uint64_t delivery_rate, busy_time, rwnd_limited, sndbuf_limited;
    std::uint32_t delivered, delivered_ce;
    std::uint64_t bytes_sent, bytes_retrans;
    std::uint32_t dsack_dups;
};
static_assert(offsetof(kernel_tcp_info, last_data_recv) == 52 && offsetof(kernel_tcp_info, min_rtt) == 148 &&
              offsetof(kernel_tcp_info, dsack_dups) == 216);

HERRING_SEPARABLE bool socket_report::read(int socket) noexcept {
    kernel_tcp_info info{};
    socklen_t size = sizeof info;
    if (::getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
    since_data = std::chrono::milliseconds(info.last_data_recv);
    since_packet = std::chrono::milliseconds(std::min(info.last_data_recv, info.last_ack_recv));
    round_trip = std::chrono::microseconds(std::max(info.rtt, 1u));
    bool const measured =
        size >= offsetof(kernel_tcp_info, data_segs_in) && info.min_rtt != 0 && info.min_rtt < info.rtt;
    queueing = std::chrono::microseconds(measured ? info.rtt - info.min_rtt : 0);
    shortest = std::chrono::microseconds(size >= offsetof(kernel_tcp_info, data_segs_in) ? info.min_rtt : 0);
    in_flight = std::size_t{info.unacked} * info.snd_mss;
    received = info.bytes_received;
    acknowledged = info.bytes_acked;
    unanswered = std::max<unsigned>(info.retransmits, info.probes);
    lost = info.total_retrans - std::min(info.dsack_dups, info.total_retrans);
    on_its_way = info.state != TCP_CLOSE && (info.unacked != 0 || info.notsent_bytes != 0);
    return true;
}

HERRING_SEPARABLE double incoming_rate::look(time_point now, std::uint64_t received) noexcept {
    auto const since = [&](int i) {
        double const seconds = std::chrono::duration<double>(now - at_[i]).count();
        return static_cast<double>(received - received_[i]) / std::max(seconds, 0.001);
    };
    double const slowest = std::min(since(0), since(3));
    for (int i = 0; i < 4; ++i) {
        at_[i] = i == 3 ? now : at_[i + 1];
        received_[i] = i == 3 ? received : received_[i + 1];
    }
    return slowest;
}

HERRING_SEPARABLE data_sockets* data_sockets::make() noexcept { return new (std::nothrow) data_sockets; }

HERRING_SEPARABLE void data_sockets::release() noexcept {
    if (uses_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

HERRING_SEPARABLE void data_sockets::add(int rank, int socket) {
    monitor::guard const held(lock_);
    first_ = new entry{rank, socket, first_};
}

HERRING_SEPARABLE void data_sockets::remove(int socket) noexcept {
    monitor::guard const held(lock_);
    for (entry** e = &first_; *e != nullptr; e = &(*e)->next) {
        if ((*e)->socket != socket) continue;
        delete std::exchange(*e, (*e)->next);
        return;
    }
}

HERRING_SEPARABLE void data_sockets::keep(int socket) noexcept {
    monitor::guard const held(lock_);
    for (entry** e = &first_; *e != nullptr; e = &(*e)->next) {
        if ((*e)->socket != socket) continue;
        socket_report found;
        (*e)->kept = found.read(socket) && found.on_its_way;
        ::shutdown(socket, SHUT_WR);
        if ((*e)->kept) return;
        ::close(socket);
        delete std::exchange(*e, (*e)->next);
        return;
    }
}

HERRING_SEPARABLE bool data_sockets::close_arrived() noexcept {
    monitor::guard const held(lock_);
    bool any = false;
    for (entry** e = &first_; *e != nullptr;) {
        socket_report found;
        bool const stays = (*e)->kept && found.read((*e)->socket) && found.on_its_way;
        any |= stays;
        if (!(*e)->kept || stays) {
            e = &(*e)->next;
        } else {
            ::close((*e)->socket);
            delete std::exchange(*e, (*e)->next);
        }
    }
    return any;
}

HERRING_SEPARABLE data_sockets::~data_sockets() {
    while (first_ != nullptr) {
        if (first_->kept) ::close(first_->socket);
        delete std::exchange(first_, first_->next);
    }
}

HERRING_SEPARABLE void data_sockets::adapt(entry& e, socket_report const& found) noexcept {
    using namespace std::chrono_literals;
    auto const set = [&](int level, int option, int value) {
        (void)::setsockopt(e.socket, level, option, &value, sizeof value);
    };
    // The bound is on the bytes in the socket, sent or not: the kernel takes twice the number. SO_BUF_LOCK,
    // from Linux 5.15, hands the size of the buffer back to the kernel.
    constexpr int so_buf_lock = 72, rto_max_ms = 44;
    if (std::size_t const most = flight_bound(found); most != 0) {
        set(SOL_SOCKET, SO_SNDBUF, static_cast<int>(most / 2));
        e.bounded = true;
    } else if (e.bounded && found.in_flight != 0 && found.queueing < 50ms) {
        set(SOL_SOCKET, SO_SNDBUF, 4 << 20);
        set(SOL_SOCKET, so_buf_lock, 0);
        e.bounded = false;
    }
    // The network may have been away: then the next retransmission is due soon. Not where a round trip takes
    // as long itself.
    if (bool const prompt = found.round_trip < 250ms; prompt != e.prompt) {
        set(IPPROTO_TCP, rto_max_ms, prompt ? 1'000 : 120'000);
        e.prompt = prompt;
    }
}

HERRING_SEPARABLE data_socket::data_socket(data_sockets* of, int rank, int socket) : socket_(socket) {
    if (of == nullptr) throw std::bad_alloc();
    of->add(rank, socket);
    of->hold();
    of_ = of;
}

HERRING_SEPARABLE void data_socket::reset() noexcept {
    if (of_ == nullptr) return;
    of_->remove(socket_);
    of_->release();
    of_ = nullptr;
}

HERRING_SEPARABLE void data_socket::keep() noexcept {
    if (of_ == nullptr) return;
    of_->keep(socket_);
    of_->release();
    of_ = nullptr;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CONTROL_SURVIVAL_DATA_SOCKETS_IMPL_HPP
