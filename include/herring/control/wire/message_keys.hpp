// herring: the keys and counters of a control connection: the tag behind each message. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_WIRE_MESSAGE_KEYS_HPP
#define HERRING_CONTROL_WIRE_MESSAGE_KEYS_HPP

#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/crypto/sha256.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace HERRING_NAMESPACE::detail::wire {

inline constexpr std::size_t tag_bytes = 16;
using message_tag = std::array<std::byte, tag_bytes>;

/// The two keys of a control connection, one a direction, each with the number of its messages.
///
/// The tag of a message that was changed, left out, repeated, or sent back to where it came from is wrong.
/// Cost:    one SHA-256 of the body, which is the same for all receivers, and one HMAC of 72 bytes.
class message_keys {
  public:
    message_keys(secret_key const& out, secret_key const& in) noexcept : out_(out.bytes()), in_(in.bytes()) {}

    /// Of the next message that is sent: its head and the digest of its body.
    HERRING_SETUP message_tag next(std::span<std::byte const> head, sha256_digest const& body) noexcept {
        return tag_of(out_, sent_++, head, body);
    }
    /// Whether the next message that came in has the right tag.
    HERRING_SETUP bool accepts(std::span<std::byte const> head, std::span<std::byte const> body,
                               std::span<std::byte const> tag) noexcept {
        return equal_in_constant_time(tag_of(in_, received_++, head, sha256().update(body).finish()), tag);
    }

  private:
    HERRING_SETUP static message_tag tag_of(hmac_sha256& with, std::uint64_t number,
                                            std::span<std::byte const> head,
                                            sha256_digest const& body) noexcept {
        std::array<std::byte, 8> count{};
        put(count.data(), number);
        sha256_digest const all = with.update(count).update(head).update(body).finish();
        message_tag tag{};
        std::memcpy(tag.data(), all.data(), tag.size());
        return tag;
    }

    hmac_sha256 out_, in_;
    std::uint64_t sent_ = 0, received_ = 0;
};

} // namespace HERRING_NAMESPACE::detail::wire

#endif // HERRING_CONTROL_WIRE_MESSAGE_KEYS_HPP
