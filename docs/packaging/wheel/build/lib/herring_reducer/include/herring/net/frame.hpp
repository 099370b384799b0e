// herring: the frame of a message: its head, and the tag or the seal that proves its sender. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_NET_FRAME_HPP
#define HERRING_NET_FRAME_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/bytes.hpp"
#include "herring/base/codec.hpp"
#include "herring/base/config.hpp"
#include "herring/base/crc32c.hpp"
#include "herring/crypto/seal_provider.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/crypto/sha256.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE::detail::wire {

inline constexpr std::uint32_t magic = 0x52524548u; // "HERR"
inline constexpr std::size_t head_bytes = 32;

/// The kind of a message. Each protocol has its own enumerators: worlds in control/wire/message_kind.hpp.
enum class message_kind : std::uint16_t;

/// The fixed front of every message.
// Layout: magic 0, version 4, type 6, rank 8, length 12, sequence 16, CRC of the body 24, CRC of bytes 0 to
//         27 28.
// Magic, version and both CRCs keep their places in every later version, so that versions can refuse each
// other.
struct head {
    std::uint16_t version = 0; ///< of the protocol
    message_kind type{};
    std::uint32_t rank = 0;   ///< of the sender
    std::uint32_t length = 0; ///< of the body, in bytes
    std::uint64_t sequence = 0;
    std::uint32_t body_crc = 0;

    /// Reads a head. False: the bytes are no message.
    HERRING_SETUP bool read(std::span<std::byte const> from) noexcept {
        if (from.size() < head_bytes) return false;
        reader in{from.first(head_bytes)};
        if (in.number<std::uint32_t>() != magic) return false;
        version = in.number<std::uint16_t>();
        type = static_cast<message_kind>(in.number<std::uint16_t>());
        rank = in.number<std::uint32_t>();
        length = in.number<std::uint32_t>();
        sequence = in.number<std::uint64_t>();
        body_crc = in.number<std::uint32_t>();
        return in.number<std::uint32_t>() == crc32c(from.first(head_bytes - 4));
    }
};

/// Appends the head of a message with this body.
HERRING_SETUP inline void append_head(byte_buffer& to, message_kind type, std::uint32_t rank,
                                      std::uint64_t sequence, std::span<std::byte const> body,
                                      std::uint16_t version) {
    std::size_t const at = to.size();
    append<std::uint32_t>(to, magic);
    append<std::uint16_t>(to, version);
    append<std::uint16_t>(to, static_cast<std::uint16_t>(type));
    append<std::uint32_t>(to, rank);
    append<std::uint32_t>(to, body.size());
    append<std::uint64_t>(to, sequence);
    append<std::uint32_t>(to, crc32c(body));
    append<std::uint32_t>(to, crc32c(std::span<std::byte const>(to).subspan(at, head_bytes - 4)));
}

/// Appends a whole message.
HERRING_SETUP inline void append_message(byte_buffer& to, message_kind type, std::uint32_t rank,
                                         std::uint64_t sequence, std::span<std::byte const> body,
                                         std::uint16_t version) {
    append_head(to, type, rank, sequence, body, version);
    to.append(body);
}

inline constexpr std::size_t tag_bytes = 16;
using message_tag = std::array<std::byte, tag_bytes>;

/// The two keys of a connection whose messages have tags, one a direction, each with the number of its
/// messages.
///
/// The tag of a message that was changed, left out, repeated, or sent back to where it came from is wrong.
/// Cost:    one SHA-256 of the body, which is the same for all receivers, and one HMAC of 72 bytes.
class message_keys {
  public:
    message_keys(secret_key const& out, secret_key const& in) noexcept : out_(out.bytes()), in_(in.bytes()) {}

    /// Returns the tag of the next message that is sent, from its head and the digest of its body.
    HERRING_SETUP message_tag next(std::span<std::byte const> head, sha256_digest const& body) noexcept {
        return tag_of(out_, sent_++, head, body);
    }
    /// True if the next message that came in has the right tag.
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

inline constexpr std::size_t sealed_head_bytes = head_bytes + seal_tag_bytes;
/// Returns the sealed bytes of a body of that length, as its head gives it.
constexpr std::size_t sealed_body_bytes(std::size_t length) noexcept {
    return length == 0 ? 0 : length + seal_tag_bytes;
}

/// The keys of one direction, which seals or opens numbered parts.
///
/// Each part, a head or a body, has the next number as its nonce, whether it succeeds or not. So a part that
/// is changed, left out, repeated, or comes in another order does not open. After at most `blocks_a_key`
/// blocks of 16 bytes the next key follows from the last, and cannot be followed back.
class seal_direction {
  public:
    static constexpr std::uint64_t most_blocks = std::uint64_t{1} << 32;

    HERRING_SETUP seal_direction(seal_provider const& by, bool seals, secret_key first,
                                 std::uint64_t blocks_a_key = most_blocks) noexcept
        : chain_(std::move(first)), cipher_(by, seals, key()), blocks_a_key_(blocks_a_key) {}

    HERRING_SETUP bool seal(std::span<std::byte> data, std::byte* tag) noexcept {
        return begin(data.size()) && cipher_.seal(nonce(), data, tag);
    }
    HERRING_SETUP bool open(std::span<std::byte> data, std::byte const* tag) noexcept {
        return begin(data.size()) && cipher_.open(nonce(), data, tag);
    }

  private:
    /// Begins a part. Both ends count the same parts, so they change keys at the same one.
    HERRING_SETUP bool begin(std::size_t bytes) noexcept {
        std::uint64_t const blocks = (std::uint64_t{bytes} + 15) / 16 + 2; // two blocks of GCM itself
        used_ += blocks;
        if (used_ <= blocks_a_key_ || used_ == blocks) return true;
        used_ = blocks;
        chain_ = hkdf_key(chain_, "herring control sealed next");
        return cipher_.take(key());
    }
    secret_key key() const noexcept { return hkdf_key(chain_, "herring control sealed key"); }
    /// Layout: zero 0, number 4. A key belongs to one direction, so the direction is not in the nonce.
    seal_nonce nonce() noexcept {
        seal_nonce made{};
        put(made.data() + 4, number_++);
        return made;
    }

    secret_key chain_;
    seal_cipher cipher_;
    std::uint64_t blocks_a_key_;
    std::uint64_t used_ = 0;   // blocks under the current key
    std::uint64_t number_ = 0; // of the next part
};

/// Both directions of a sealed control connection.
///
/// Layout:  sealed head (32), its tag (16); where there is a body: the sealed body, its tag (16). The head is
///          sealed alone, so that the length in it is known to be true before anything waits for the body.
/// Cost:    two calls of AES-256-GCM a message, one where there is no body: some 0.6 us.
class frame_seal {
  public:
    HERRING_SETUP frame_seal(seal_direction&& out, seal_direction&& in) noexcept
        : out_(std::move(out)), in_(std::move(in)) {}

    /// Appends a whole message, as `append_message` does. False: the library failed; the bytes appended to
    /// `to` must not be sent.
    HERRING_SETUP bool append(byte_buffer& to, message_kind type, std::uint32_t rank, std::uint64_t sequence,
                              std::span<std::byte const> body, std::uint16_t version) {
        std::size_t const at = to.size();
        append_head(to, type, rank, sequence, body, version);
        return append_tag(to, at) && (body.empty() || append_body(to, body));
    }

    /// Opens the head at the front of the bytes that came in, in place, once. False: the head is not as it
    /// was sealed.
    HERRING_SETUP bool open_head(std::span<std::byte, sealed_head_bytes> front) noexcept {
        return has_head_ || (has_head_ = in_.open(front.first<head_bytes>(), front.data() + head_bytes));
    }
    /// Opens the body behind the last head, with its tag, in place. The next head follows.
    HERRING_SETUP bool open_body(std::span<std::byte> sealed) noexcept {
        has_head_ = false;
        if (sealed.empty()) return true;
        std::span<std::byte> const body = sealed.first(sealed.size() - seal_tag_bytes);
        return in_.open(body, body.data() + body.size());
    }

  private:
    HERRING_SETUP bool append_body(byte_buffer& to, std::span<std::byte const> body) {
        std::size_t const at = to.size();
        to.append(body);
        return append_tag(to, at);
    }
    /// Seals the bytes from `at` on.
    HERRING_SETUP bool append_tag(byte_buffer& to, std::size_t at) {
        std::array<std::byte, seal_tag_bytes> tag{};
        bool const good = out_.seal({to.data() + at, to.size() - at}, tag.data());
        if (good) to.append(tag);
        return good;
    }

    seal_direction out_, in_;
    bool has_head_ = false;
};

} // namespace HERRING_NAMESPACE::detail::wire

#endif // HERRING_NET_FRAME_HPP
