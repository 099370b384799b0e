// herring: the secret that the ranks of a job share: from digits or a file of them to a key.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CRYPTO_SECRET_HPP
#define HERRING_CRYPTO_SECRET_HPP

#include "herring/base/config.hpp"
#include "herring/crypto/secret_key.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace HERRING_NAMESPACE::detail {

inline constexpr std::size_t most_secret_file_bytes = 4096;

/// Why a text is no secret, which has 64 hexadecimal digits, in words that follow its name ("is empty; ..."); empty when it is
/// one. Says nothing of the text but its size.
HERRING_SEPARABLE std::string secret_fault(std::string_view text);

/// Erases a copy of a text that is a secret.
inline void erase(std::string& text) noexcept { erase(text.data(), text.size()); }

/// What a user's 64 hexadecimal digits become: a key of 32 bytes, from which come those that are used.
///
/// Lifetime: moves, and erases what it leaves; there is no copy. The text is the caller's to erase.
class secret {
  public:
    /// `text`: one for which secret_fault() is empty.
    HERRING_SEPARABLE explicit secret(std::string_view text) noexcept;

    /// The key of this secret and this salt: for hkdf_key(), with a label for each use.
    ///
    /// Cost:    four blocks of SHA-256.
    HERRING_SEPARABLE secret_key key(std::span<std::byte const> salt) const noexcept;

  private:
    secret_key key_;
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
///          ordinary file, is everyone's to read, write or execute, has more than 4 KiB, no secret, more than two, or one
///          that secret_fault() refuses. Rights of its group are a warning, but that a group reads what root owns; so is an
///          owner who is neither root nor this user.
HERRING_SEPARABLE secrets read_secrets(std::string const& path, std::string_view name);

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/crypto/secret_impl.hpp"
#endif

#endif // HERRING_CRYPTO_SECRET_HPP
