// herring: the secret that the ranks of a job share: from a text or a file to a key.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CRYPTO_SECRET_HPP
#define HERRING_CRYPTO_SECRET_HPP

#include "herring/base/config.hpp"
#include "herring/crypto/key_place.hpp"
#include "herring/crypto/secret_key.hpp"
#include "herring/crypto/sha256.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace HERRING_NAMESPACE::detail {

/// Rounds of PBKDF2 between a text and its key. Both ends of a job must have the same.
inline constexpr std::uint32_t secret_rounds = 600'000;
inline constexpr std::size_t least_secret_bytes = 8;
inline constexpr std::size_t most_secret_file_bytes = 4096;

/// Why a text cannot be a secret, in words that follow its name ("is empty; ..."); empty when it can. Says nothing of the text
/// but its size.
HERRING_SEPARABLE std::string_view secret_fault(std::string_view text) noexcept;

/// Erases a copy of a text that is a secret.
inline void erase(std::string& text) noexcept { erase(text.data(), text.size()); }

/// What a user's text becomes. 64 hexadecimal digits are a key of 32 bytes. Any other text is *weak*: somebody may guess it, so
/// each guess is made dear, and who has recorded a handshake can go on guessing without asking anybody.
///
/// Lifetime: moves, and erases what it leaves; there is no copy. The text is the caller's to erase.
class secret {
  public:
    /// `text`: one for which secret_fault() is empty.
    HERRING_SEPARABLE explicit secret(std::string_view text) noexcept;

    bool weak() const noexcept { return weak_; }

    /// The key of this secret and this salt: for hkdf_key(), with a label for each use.
    ///
    /// Cost:    of a key four blocks of SHA-256; of a weak text 600,000 rounds of PBKDF2, 0.07 to 0.2 s. Once a salt.
    HERRING_SEPARABLE secret_key key(std::span<std::byte const> salt,
                                     std::uint32_t rounds = secret_rounds) const noexcept;

  private:
    // The text as HMAC takes a key (zeroes behind it, or its digest), or the key of 32 bytes.
    key_place<std::array<std::byte, sha256_block_bytes>> block_;
    bool weak_ = true;
};

/// What a file of secrets has.
struct secrets {
    secret proves;              ///< this rank proves that it has this one
    std::optional<secret> also; ///< while secrets are changed: others may prove this one too
    std::string warning;        ///< words for the user, empty when there is nothing to say
};

/// Reads a file of one or two secrets, one a line. Lines that are empty or start with # do not count; the end of a line may be
/// \n or \r\n, the last one may lack it.
///
/// `name`: of the setting that named the file, for errors ("HERRING_SECRET_FILE").
/// Errors:  `bad_argument` naming the setting, the file and what is wrong with it, never its contents: it cannot be read, is no
///          ordinary file, is everyone's to read, write or execute, has more than 4 KiB, a NUL byte, no secret, more than two, or
///          one that secret_fault() refuses. Rights of its group are a warning, but that a group reads what root owns; so is an
///          owner who is neither root nor this user.
HERRING_SEPARABLE secrets read_secrets(std::string const& path, std::string_view name);

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/crypto/secret_impl.hpp"
#endif

#endif // HERRING_CRYPTO_SECRET_HPP
