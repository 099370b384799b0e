// herring: tests of net/frame.hpp: what is changed, left out, repeated or reordered does not open; no nonce comes twice.
// SPDX-License-Identifier: Apache-2.0
#include "herring/net/frame.hpp"

#include "herring/control/wire/message_kind.hpp"
#include "herring/crypto/random.hpp"

#include "doctest/doctest.h"
#include "toy_seals.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace frame_seal_tests {

using namespace herring::detail;
using wire::frame_seal;
using wire::message_kind;
using wire::seal_direction;

using sealed_bytes = std::vector<std::byte>;

/// Both ends of one connection.
struct sealed_pair {
    frame_seal rank, rank_0;

    explicit sealed_pair(seal_provider const& by = toy_seals::table(),
                         std::uint64_t blocks = seal_direction::most_blocks)
        : sealed_pair(by, blocks, secret_key(random_nonce()), secret_key(random_nonce())) {}
    sealed_pair(seal_provider const& by, std::uint64_t blocks, secret_key const& up, secret_key const& down)
        : rank(end(by, up, blocks, true), end(by, down, blocks, false)),
          rank_0(end(by, down, blocks, true), end(by, up, blocks, false)) {}
    static seal_direction end(seal_provider const& by, secret_key const& key, std::uint64_t blocks,
                              bool seals) {
        return seal_direction(by, seals, secret_key(key.bytes()), blocks);
    }
};

sealed_bytes bytes_for(std::size_t size, int seed = 1) {
    sealed_bytes made(size);
    for (std::size_t i = 0; i < size; ++i)
        made[i] = static_cast<std::byte>(i * 7 + static_cast<unsigned>(seed));
    return made;
}

sealed_bytes sealed_by(frame_seal& end, std::uint64_t sequence, sealed_bytes const& body) {
    byte_buffer out;
    out.append(bytes_for(3)); // what waits to be sent stays as it is
    CHECK(end.append(out, message_kind::contribute, 2, sequence, body, wire::protocol_version));
    CHECK(sealed_bytes(out.begin(), out.begin() + 3) == bytes_for(3));
    return sealed_bytes(out.begin() + 3, out.end());
}

/// The body, if the message opens whole; and that its head says what it has to.
std::optional<sealed_bytes> opened_by(frame_seal& end, sealed_bytes message, std::uint64_t sequence) {
    std::span<std::byte> const all(message);
    if (all.size() < wire::sealed_head_bytes) return {};
    if (!end.open_head(all.first<wire::sealed_head_bytes>())) return {};
    wire::head front;
    if (!front.read(all) || front.sequence != sequence || front.rank != 2) return {};
    std::size_t const size = wire::sealed_body_bytes(front.length);
    if (all.size() != wire::sealed_head_bytes + size) return {};
    if (!end.open_body(all.subspan(wire::sealed_head_bytes))) return {};
    auto const body = all.subspan(wire::sealed_head_bytes, front.length);
    return sealed_bytes(body.begin(), body.end());
}

/// A library that notes under which key it was given which nonce.
struct noting_seals : toy_seals {
    static inline std::set<std::pair<std::string, seal_nonce>> used{};
    static inline std::size_t keys = 0;
    static inline bool twice = false;

    class cipher : public toy_seals::cipher {
      public:
        bool begin(bool seals, secret_key const& key) noexcept { return seals_ = seals, take(key); }
        bool take(secret_key const& key) noexcept {
            if (seals_) ++keys;
            key_ = std::string(reinterpret_cast<char const*>(key.bytes().data()), key.bytes().size());
            return toy_seals::cipher::take(key);
        }
        bool seal(seal_nonce const& once, std::span<std::byte> data, std::byte* tag) noexcept {
            twice = !used.insert({key_, once}).second || twice;
            return toy_seals::cipher::seal(once, data, tag);
        }

      private:
        bool seals_ = false;
        std::string key_;
    };
};

TEST_CASE("frame_seal: messages of both directions and any size come through, and show nothing") {
    sealed_pair ends;
    for (std::uint64_t i = 0; i < 40; ++i) {
        sealed_bytes const body = bytes_for(i * i % 700, static_cast<int>(i));
        sealed_bytes const up = sealed_by(ends.rank, i, body), down = sealed_by(ends.rank_0, i, body);
        CHECK(up.size() == wire::sealed_head_bytes + wire::sealed_body_bytes(body.size()));
        CHECK(up != down);
        byte_buffer plain;
        wire::append_message(plain, message_kind::contribute, 2, i, body);
        std::size_t same = 0;
        for (std::size_t b = 0; b < plain.size(); ++b)
            same += up[b < wire::head_bytes ? b : b + seal_tag_bytes] == plain.begin()[b] ? 1 : 0;
        CHECK(same <= 8 + plain.size() / 16); // by chance one of 256
        CHECK(opened_by(ends.rank_0, up, i) == body);
        CHECK(opened_by(ends.rank, down, i) == body);
    }
}

TEST_CASE("frame_seal: no message opens with any one of its bits flipped, nor cut, nor longer") {
    secret_key const up(random_nonce()), down(random_nonce());
    sealed_bytes const body = bytes_for(37);
    for (std::size_t size : {std::size_t{0}, body.size()}) {
        sealed_bytes const part(body.begin(), body.begin() + static_cast<std::ptrdiff_t>(size));
        sealed_pair first(toy_seals::table(), seal_direction::most_blocks, up, down);
        sealed_bytes const good = sealed_by(first.rank, 5, part);
        auto const opens = [&](sealed_bytes const& message) {
            sealed_pair fresh(toy_seals::table(), seal_direction::most_blocks, up, down);
            return opened_by(fresh.rank_0, message, 5).has_value();
        };
        CHECK(opens(good));
        for (std::size_t at = 0; at < good.size(); ++at)
            for (int bit = 0; bit < 8; ++bit) {
                sealed_bytes changed = good;
                changed[at] ^= static_cast<std::byte>(1 << bit);
                CHECK_FALSE(opens(changed));
            }
        for (std::size_t less = 1; less <= good.size(); ++less)
            CHECK_FALSE(opens(sealed_bytes(good.begin(), good.end() - static_cast<std::ptrdiff_t>(less))));
        sealed_bytes longer = good;
        longer.push_back(std::byte{0});
        CHECK_FALSE(opens(longer));
    }
}

TEST_CASE("frame_seal: what is repeated, left out, reordered or sent back does not open") {
    secret_key const up(random_nonce()), down(random_nonce());
    sealed_pair sender(toy_seals::table(), seal_direction::most_blocks, up, down);
    sealed_bytes const first = sealed_by(sender.rank, 1, bytes_for(9)),
                       second = sealed_by(sender.rank, 2, bytes_for(9)),
                       empty = sealed_by(sender.rank, 3, {});
    auto const fresh = [&] { return sealed_pair(toy_seals::table(), seal_direction::most_blocks, up, down); };
    sealed_pair in_order = fresh();
    CHECK(opened_by(in_order.rank_0, first, 1));
    CHECK(opened_by(in_order.rank_0, second, 2));
    CHECK(opened_by(in_order.rank_0, empty, 3));
    CHECK_FALSE(opened_by(in_order.rank_0, empty, 3)); // repeated
    sealed_pair replayed = fresh();
    CHECK(opened_by(replayed.rank_0, first, 1));
    CHECK_FALSE(opened_by(replayed.rank_0, first, 1));
    sealed_pair reordered = fresh();
    CHECK_FALSE(opened_by(reordered.rank_0, second, 2));
    sealed_pair left_out = fresh();
    CHECK(opened_by(left_out.rank_0, first, 1));
    CHECK_FALSE(opened_by(left_out.rank_0, empty, 3));
    sealed_pair reflected = fresh();
    CHECK_FALSE(opened_by(reflected.rank, first, 1));
    // A body of another message of the same length, behind a head that is genuine.
    sealed_bytes mixed = first;
    std::copy(second.begin() + wire::sealed_head_bytes, second.end(),
              mixed.begin() + wire::sealed_head_bytes);
    sealed_pair swapped = fresh();
    CHECK_FALSE(opened_by(swapped.rank_0, mixed, 1));
}

TEST_CASE("frame_seal: keys change after so many blocks, at the same part on both ends; no nonce twice") {
    seal_provider const& by = seal_provider_of<noting_seals>;
    noting_seals::used.clear();
    noting_seals::keys = 0;
    noting_seals::twice = false;
    {
        sealed_pair ends(by, 24);
        for (std::uint64_t i = 0; i < 200; ++i) {
            sealed_bytes const body =
                bytes_for(i * 13 % 500, static_cast<int>(i)); // some larger than 24 blocks
            CHECK(opened_by(ends.rank_0, sealed_by(ends.rank, i, body), i) == body);
            if (i % 3 == 0) CHECK(opened_by(ends.rank, sealed_by(ends.rank_0, i, body), i) == body);
        }
    }
    CHECK_FALSE(noting_seals::twice);
    CHECK(noting_seals::used.size() > 500);
    CHECK(noting_seals::keys > 100);
    CHECK(toy_seals::ciphers == 0);
}

TEST_CASE("frame_seal: a key is of one handshake, direction and exchange") {
    static_assert(!std::is_copy_constructible_v<frame_seal>); // two of one key would use its nonces twice
    sealed_pair one, other;
    CHECK_FALSE(opened_by(other.rank_0, sealed_by(one.rank, 1, bytes_for(9)), 1));
}

} // namespace frame_seal_tests
