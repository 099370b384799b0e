// herring: the bodies of control messages, as bytes and back. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_WIRE_MESSAGES_HPP
#define HERRING_CONTROL_WIRE_MESSAGES_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/bytes.hpp"
#include "herring/base/codec.hpp"
#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/control/failure/deadlock.hpp"
#include "herring/control/failure/wait_graph.hpp"
#include "herring/control/wire/message_kind.hpp"
#include "herring/control/wire/racks.hpp"
#include "herring/control/world_times.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/machine/time.hpp"
#include "herring/model/links.hpp"
#include "herring/model/topology.hpp"
#include "herring/net/handshake.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace HERRING_NAMESPACE::detail::wire {

/// The names by which ranks and rank 0 prove themselves.
inline constexpr handshake_names rank_names{"herring control 7", "rank", "rank 0"};

/// The sequence number of a refusal, as its proof covers it.
HERRING_SETUP inline byte_buffer refusal_front(std::uint64_t sequence) {
    byte_buffer out;
    append<std::uint64_t>(out, sequence);
    return out;
}

/// Writes the body of `deadline_passed`: how long a rank has waited.
HERRING_SETUP inline byte_buffer write_wait(std::chrono::milliseconds waited) {
    byte_buffer out;
    append<std::uint64_t>(out, static_cast<std::uint64_t>(waited.count()));
    return out;
}
/// Reads that body. False: no rank has waited for so long.
HERRING_SETUP inline bool read_wait(std::span<std::byte const> from,
                                    std::chrono::milliseconds& waited) noexcept {
    reader in{from};
    auto const number = in.number<std::uint64_t>();
    if (!in.done() || number > static_cast<std::uint64_t>(std::chrono::milliseconds(never).count()))
        return false;
    waited = std::chrono::milliseconds(static_cast<long long>(number));
    return true;
}

/// The ranks that rank 0 waits for, in the body of `still_waiting_for`.
struct waiting_for {
    int rank = 0; ///< the first of them
    std::string who{};

    HERRING_SETUP byte_buffer write() const {
        byte_buffer out;
        append<std::uint32_t>(out, static_cast<std::uint32_t>(rank));
        append(out, who);
        return out;
    }
    /// False: no rank 0 of a world of `ranks` sends that.
    HERRING_SETUP bool read(std::span<std::byte const> from, std::size_t ranks) {
        reader in{from};
        auto const first = in.number<std::uint32_t>();
        if (!in.ok || first >= ranks) return false;
        rank = static_cast<int>(first);
        who = in.text(in.rest.size());
        make_printable(who);
        return true;
    }
};

/// The part of a heartbeat to rank 0 about other ranks: nothing, or bits.
struct signs_of_life {
    int cut_off = -1; ///< a rank through whose data connection nothing comes, though it was asked; −1: none
    byte_buffer bits{}; ///< rank r: bit r mod 8 of byte r / 8: data of it has come; empty: of no rank

    HERRING_SETUP void add(int rank, std::size_t ranks) {
        auto const r = static_cast<std::size_t>(rank);
        while (bits.size() < (ranks + 7) / 8) append<std::uint8_t>(bits, 0);
        bits.data()[r / 8] |= std::byte{1} << (r % 8);
    }
    bool has(std::size_t rank) const noexcept {
        return rank / 8 < bits.size() && (bits.data()[rank / 8] >> (rank % 8) & std::byte{1}) != std::byte{0};
    }

    /// Calls `with(rank)` for each rank of which data has come.
    template <class With> HERRING_SETUP void for_each(With const& with) const {
        for (std::size_t i = 0; i < bits.size(); i += 8) {
            std::byte eight[8] = {};
            std::memcpy(eight, bits.data() + i, std::min<std::size_t>(8, bits.size() - i));
            for (auto some = get<std::uint64_t>(eight); some != 0; some &= some - 1)
                with(static_cast<int>(8 * i) + std::countr_zero(some));
        }
    }

    HERRING_SETUP byte_buffer write() const {
        byte_buffer out;
        if (cut_off < 0 && bits.empty()) return out;
        append<std::uint32_t>(out, static_cast<std::uint32_t>(cut_off + 1));
        out.append(bits);
        return out;
    }
    /// False: no rank of a world of `ranks` sends that.
    HERRING_SETUP bool read(std::span<std::byte const> from, std::size_t ranks) {
        *this = {};
        if (from.empty()) return true;
        reader in{from};
        auto const cut = in.number<std::uint32_t>();
        if (!in.ok || cut > ranks || (!in.rest.empty() && in.rest.size() != (ranks + 7) / 8)) return false;
        cut_off = static_cast<int>(cut) - 1;
        bits.append(in.rest);
        for (std::size_t r = ranks; r < 8 * bits.size(); ++r)
            if (has(r)) return false;
        return true;
    }
};

/// Reads a role and a rate, as ranks declare them. False: no rank declares that.
HERRING_SETUP inline bool read_role(reader& in, role& what, int& rate) noexcept {
    auto const number = in.number<std::uint32_t>();
    auto const kind = in.number<std::uint8_t>();
    if (!in.ok || number > static_cast<std::uint32_t>(most_rate) ||
        kind > static_cast<std::uint8_t>(role::server))
        return false;
    rate = static_cast<int>(number);
    what = static_cast<role>(kind);
    return true;
}
HERRING_SETUP inline void append_role(byte_buffer& out, role what, int rate) {
    append<std::uint32_t>(out, static_cast<std::uint32_t>(rate));
    append<std::uint8_t>(out, static_cast<std::uint8_t>(what));
}

/// Rank 0's message to all ranks once every rank is here.
struct welcome {
    std::uint64_t job = 0;
    world_times times{};
    std::vector<int> nodes{},
        machines{};           // by rank: numbers below that of ranks, in order of the first rank that has one
    std::vector<int> rates{}; // by rank, in Mbit/s; 0: not declared
    fixed_array<role> roles{}; // by rank; a server's node has no other rank
    herring::links links{};
    std::vector<int> racks{}; // by rank, numbered as nodes are; empty: none are declared

    HERRING_SETUP byte_buffer write() const {
        byte_buffer out;
        append<std::uint64_t>(out, job);
        for (std::size_t i = 0; i < world_times::count; ++i)
            append<std::uint64_t>(out, static_cast<std::uint64_t>(times[i].count()));
        for (std::size_t i = 0; i < links.count; ++i) append<std::uint32_t>(out, links[i]);
        append<std::uint8_t>(out, links.probe ? 1 : 0);
        for (std::size_t r = 0; r < nodes.size(); ++r) {
            append<std::uint32_t>(out, static_cast<std::uint32_t>(nodes[r]));
            append<std::uint32_t>(out, static_cast<std::uint32_t>(machines[r]));
            append<std::uint32_t>(out, static_cast<std::uint32_t>(racks.empty() ? 0 : racks[r]));
            append_role(out, roles.empty() ? role::worker : roles[r], rates.empty() ? 0 : rates[r]);
        }
        return out;
    }
    /// Returns nullptr, or the reason why it cannot be read. `ranks`: of the receiver's world.
    HERRING_SETUP char const* read(std::span<std::byte const> from, std::size_t ranks) {
        if (from.size() != welcome_bytes(ranks)) return "a welcome to a world of another size";
        reader in{from};
        job = in.number<std::uint64_t>();
        for (std::size_t i = 0; i < world_times::count; ++i) {
            constexpr auto most = static_cast<std::uint64_t>(std::chrono::milliseconds(never).count());
            auto const time = std::chrono::milliseconds(std::min(in.number<std::uint64_t>(), most));
            if (time < time_names[i].least) return "times that no rank would choose";
            times[i] = time;
        }
        for (std::size_t i = 0; i < links.count; ++i)
            if ((links[i] = in.number<std::uint32_t>()) > most_link)
                return "links that no rank would declare";
        auto const probe = in.number<std::uint8_t>();
        if (probe > 1) return "links that no rank would declare";
        links.probe = probe == 1;
        nodes.clear();
        machines.clear();
        racks.clear();
        rates.clear();
        roles = fixed_array<role>(ranks);
        int next_node = 0, next_machine = 0, next_rack = 0;
        auto const take = [&](std::vector<int>& ids, int& next) {
            auto const id = in.number<std::uint32_t>();
            if (id > static_cast<std::uint32_t>(next)) return false;
            if (id == static_cast<std::uint32_t>(next)) ++next;
            ids.push_back(static_cast<int>(id));
            return true;
        };
        for (std::size_t r = 0; r < ranks; ++r) {
            if (!take(nodes, next_node) || !take(machines, next_machine) || !take(racks, next_rack))
                return "nodes that no rank 0 counts so";
            int rate = 0;
            if (!read_role(in, roles[r], rate)) return "a role or a rate that no rank has";
            rates.push_back(rate);
        }
        topology const map(nodes, {roles.data(), roles.size()});
        if (map.node_of != nodes) return "a server that shares a node";
        for (std::size_t r = 0; r < ranks; ++r)
            if (racks[r] != racks[static_cast<std::size_t>(map.rank_of(nodes[r], 0))])
                return "a node in two racks";
        return in.done() ? nullptr : "a welcome to a world of another size";
    }
};

/// A rank's reply to the challenge. On the wire a proof follows it.
struct hello {
    wire::nonce nonce{}; // of this connection
    bool has_secret = false;
    bool seals = false; // `nonce` is a public key then
    std::uint32_t size = 0;
    std::uint32_t rank = 0;
    std::uint64_t incarnation = 0;
    std::uint64_t times[world_times::count]{}; // milliseconds; 0: the time of rank 0
    herring::role role = herring::role::worker;
    int rate = 0; // of its network, in Mbit/s; 0: not declared
    std::string node{};
    std::string boot{};
    std::string rack{}; // empty: not declared
    /// Bytes of the names; the rest is cut. One of a rack that is cut is longer than racks may be.
    static constexpr std::size_t most_node = 540, most_boot = 300, most_rack_sent = most_rack + 1;

    HERRING_SETUP byte_buffer write() const {
        byte_buffer out;
        out.append(nonce);
        append<std::uint8_t>(out, write_flags(has_secret, seals));
        append<std::uint32_t>(out, size);
        append<std::uint32_t>(out, rank);
        append<std::uint64_t>(out, incarnation);
        for (std::uint64_t const time : times) append<std::uint64_t>(out, time);
        append_role(out, role, rate);
        std::string_view const n = std::string_view(node).substr(0, most_node);
        std::string_view const b = std::string_view(boot).substr(0, most_boot);
        std::string_view const k = std::string_view(rack).substr(0, most_rack_sent);
        append<std::uint16_t>(out, n.size());
        append<std::uint16_t>(out, b.size());
        append<std::uint16_t>(out, k.size());
        append(out, n);
        append(out, b);
        append(out, k);
        return out;
    }

    HERRING_SETUP bool read(std::span<std::byte const> from) {
        reader in{from};
        in.bytes(nonce);
        bool const sound = read_flags(in.number<std::uint8_t>(), has_secret, seals);
        size = in.number<std::uint32_t>();
        rank = in.number<std::uint32_t>();
        incarnation = in.number<std::uint64_t>();
        for (std::uint64_t& time : times) time = in.number<std::uint64_t>();
        bool const has_role = read_role(in, role, rate);
        std::size_t const n = in.number<std::uint16_t>();
        std::size_t const b = in.number<std::uint16_t>();
        std::size_t const k = in.number<std::uint16_t>();
        if (!in.ok || !sound || !has_role || n > most_node || b > most_boot || k > most_rack_sent ||
            n + b + k != in.rest.size())
            return false;
        node = in.text(n);
        boot = in.text(b);
        rack = in.text(k);
        return true;
    }
};

/// Rank 0's reply to a hello that it accepts.
struct admit {
    wire::proof proof{};
    std::array<std::byte, secret_key::size>
        wrapped{}; // XORed with a key of this connection, where there is a secret

    HERRING_SETUP byte_buffer write() const {
        byte_buffer out;
        out.append(proof);
        out.append(wrapped);
        return out;
    }
    HERRING_SETUP bool read(std::span<std::byte const> from) noexcept {
        reader in{from};
        in.bytes(proof);
        in.bytes(wrapped);
        return in.done();
    }
};

/// A rank's reply to the challenge where it has been admitted before: its number, and its world. On the wire
/// a proof follows.
struct resume {
    wire::nonce nonce{}; // of this connection; a public key where control connections are sealed
    std::uint32_t rank = 0;
    std::uint64_t incarnation = 0;
    std::uint64_t job = 0;
    std::uint64_t attempt = 0; // counts from 1; the connection with the largest one wins

    HERRING_SETUP byte_buffer write() const {
        byte_buffer out;
        out.append(nonce);
        append<std::uint32_t>(out, rank);
        append<std::uint64_t>(out, incarnation);
        append<std::uint64_t>(out, job);
        append<std::uint64_t>(out, attempt);
        return out;
    }
    HERRING_SETUP bool read(std::span<std::byte const> from) noexcept {
        reader in{from};
        in.bytes(nonce);
        rank = in.number<std::uint32_t>();
        incarnation = in.number<std::uint64_t>();
        job = in.number<std::uint64_t>();
        attempt = in.number<std::uint64_t>();
        return in.done();
    }
};

HERRING_SETUP inline byte_buffer write_failure(failure const& why) {
    std::string_view const operation(why.operation), text(why.text);
    byte_buffer out;
    for (int const number : {static_cast<int>(why.what), why.reporter, why.peer})
        append<std::uint32_t>(out, static_cast<std::uint32_t>(number));
    append<std::uint16_t>(out, operation.size());
    append<std::uint16_t>(out, text.size());
    append(out, operation);
    append(out, text);
    return out;
}

/// Reads a failure. False: the bytes are none, or name ranks that a world of `ranks` does not have. Its texts
/// can be shown.
HERRING_SETUP inline bool read_failure(std::span<std::byte const> from, std::size_t ranks,
                                       failure& why) noexcept {
    reader in{from};
    auto const code = in.number<std::uint32_t>();
    auto const reporter = static_cast<int>(in.number<std::uint32_t>());
    auto const peer = static_cast<int>(in.number<std::uint32_t>());
    std::size_t const o = in.number<std::uint16_t>();
    std::size_t const t = in.number<std::uint16_t>();
    if (!in.ok || o + t != in.rest.size()) return false;
    if (code == 0 || code > static_cast<std::uint32_t>(errc::internal)) return false;
    for (int const rank : {reporter, peer})
        if (rank < -1 || (rank >= 0 && static_cast<std::size_t>(rank) >= ranks)) return false;
    std::string_view const operation = in.text(o);
    why = failure::make(static_cast<errc>(code), reporter, peer, operation, in.text(t));
    make_printable({why.operation, std::strlen(why.operation)});
    make_printable({why.text, std::strlen(why.text)});
    return true;
}

HERRING_SETUP inline byte_buffer write_answer(wait_report const& said) {
    byte_buffer out;
    append<std::uint32_t>(out, said.state == rank_state::waiting ? static_cast<std::uint32_t>(said.awaits + 2)
                                                                 : 0u);
    return out;
}

HERRING_SETUP inline byte_buffer write_report(blocked_report const& mine) {
    byte_buffer out;
    for (std::uint64_t const number : {mine.waits, mine.channels, mine.waits_of_process})
        append<std::uint64_t>(out, number);
    for (std::uint64_t const letters : mine.call) append<std::uint64_t>(out, letters);
    auto const add = [&](blocked_report::entry const& e) {
        append<std::uint64_t>(out, e.channel);
        append<std::uint64_t>(out, e.number);
    };
    for (std::size_t i = 0; i < mine.waits; ++i) add(mine.waiting[i]);
    for (std::size_t i = 0; i < mine.channels; ++i) add(mine.begun[i]);
    return out;
}
/// Reads a report. False: no rank sends that.
HERRING_SETUP inline bool read_report(std::span<std::byte const> from, blocked_report& report) noexcept {
    reader in{from};
    report = {};
    report.waits = in.number<std::uint64_t>();
    report.channels = in.number<std::uint64_t>();
    report.waits_of_process = in.number<std::uint64_t>();
    for (std::uint64_t& letters : report.call) letters = in.number<std::uint64_t>();
    if (!in.ok || !report.sound()) return report = {}, false;
    auto const take = [&](blocked_report::entry& e) {
        e.channel = in.number<std::uint64_t>();
        e.number = in.number<std::uint64_t>();
    };
    for (std::size_t i = 0; i < report.waits; ++i) take(report.waiting[i]);
    for (std::size_t i = 0; i < report.channels; ++i) take(report.begun[i]);
    return in.done();
}

/// Reads the reply to a probe. False: no rank of a world of `ranks` sends that.
HERRING_SETUP inline bool read_answer(std::span<std::byte const> from, int ranks,
                                      wait_report& said) noexcept {
    reader in{from};
    auto const word = in.number<std::uint32_t>();
    if (!in.done() || word > static_cast<std::uint32_t>(ranks) + 1) return false;
    said = wait_report::read(word, 0);
    return true;
}

} // namespace HERRING_NAMESPACE::detail::wire

#endif // HERRING_CONTROL_WIRE_MESSAGES_HPP
