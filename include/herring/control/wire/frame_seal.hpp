// herring: seals control messages of one connection, and opens them: each once, in their order. Pure.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CONTROL_WIRE_FRAME_SEAL_HPP
#define HERRING_CONTROL_WIRE_FRAME_SEAL_HPP

#include "herring/base/byte_buffer.hpp"
#include "herring/base/bytes.hpp"
#include "herring/base/config.hpp"
#include "herring/control/wire/frame.hpp"
#include "herring/crypto/seal_provider.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/crypto/sha256.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace HERRING_NAMESPACE::detail::wire {

inline constexpr std::size_t sealed_head_bytes = head_bytes + seal_tag_bytes;
/// Of the body of a message whose head says that it has so many.
constexpr std::size_t sealed_body_bytes(std::size_t length) noexcept {
    return length == 0 ? 0 : length + seal_tag_bytes;
}

/// One direction: what is sealed or opened under its keys, numbered.
///
/// Each part, a head or a body, has the next number as its nonce, whether it succeeds or not. So a part that is changed, left out,
/// repeated, or comes in another order does not open. After at most `blocks_a_key` blocks of 16 bytes the next key follows
/// from the last, and cannot be followed back.
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
    /// Both ends count the same parts, so they change keys at the same one.
    HERRING_SETUP bool begin(std::size_t bytes) noexcept {
        std::uint64_t const blocks = (std::uint64_t{bytes} + 15) / 16 + 2; // two of GCM itself
        used_ += blocks;
        if (used_ <= blocks_a_key_ || used_ == blocks) return true;
        used_ = blocks;
        chain_ = hkdf_key(chain_, "herring control sealed next");
        return cipher_.take(key());
    }
    secret_key key() const noexcept { return hkdf_key(chain_, "herring control sealed key"); }
    /// Layout: zero 0, number 4. A key is of one direction, so that is not in it.
    seal_nonce nonce() noexcept {
        seal_nonce made{};
        put(made.data() + 4, number_++);
        return made;
    }

    secret_key chain_;
    seal_cipher cipher_;
    std::uint64_t blocks_a_key_;
    std::uint64_t used_ = 0;   // blocks under this key
    std::uint64_t number_ = 0; // of the next part
};

/// Both directions of a sealed control connection.
///
/// Layout:  sealed head (32), its tag (16); where there is a body: the sealed body, its tag (16). The head is sealed alone, so
///          that what it says of the body is known to be true before anything waits for it.
/// Cost:    two calls of AES-256-GCM a message, one where there is no body: some 0.6 us.
class frame_seal {
  public:
    HERRING_SETUP frame_seal(seal_direction&& out, seal_direction&& in) noexcept
        : out_(std::move(out)), in_(std::move(in)) {}

    /// Appends a whole message, as `append_message` does. False: the library failed; what lies behind `to` must not be sent.
    HERRING_SETUP bool append(byte_buffer& to, message_kind type, std::uint32_t rank, std::uint64_t sequence,
                              std::span<std::byte const> body) {
        std::size_t const at = to.size();
        append_head(to, type, rank, sequence, body);
        return append_tag(to, at) && (body.empty() || append_body(to, body));
    }

    /// The head at the front of what came in, opened in place once. False: it is not what was sealed.
    HERRING_SETUP bool open_head(std::span<std::byte, sealed_head_bytes> front) noexcept {
        return has_head_ || (has_head_ = in_.open(front.first<head_bytes>(), front.data() + head_bytes));
    }
    /// The body behind the head that was opened last, with its tag; in place. The next head follows.
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
    /// Seals what begins at `at`.
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

#endif // HERRING_CONTROL_WIRE_FRAME_SEAL_HPP
