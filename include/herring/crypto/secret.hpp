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

/// Returns why a text is no secret (64 hexadecimal digits), in words that follow its name ("is empty; ...");
/// empty if it is one. Reveals nothing of the text but its size.
HERRING_SEPARABLE std::string secret_fault(std::string_view text);

/// Returns 32 bytes as the 64 digits of a secret.
HERRING_SEPARABLE std::string secret_text(std::span<std::byte const, secret_key::size> bytes);

/// Erases a text that is a secret.
inline void erase(std::string& text) noexcept { erase(text.data(), text.size()); }

/// The 32 bytes of a user's 64 hexadecimal digits, from which the keys in use are derived.
///
/// Lifetime: movable, not copyable; erases what it moves from. The caller erases the text.
class secret {
  public:
    /// `text`: secret_fault() of it is empty.
    HERRING_SEPARABLE explicit secret(std::string_view text) noexcept;

    /// Returns the key of this secret and a salt, for hkdf_key() with a label for each use.
    ///
    /// Cost:    four blocks of SHA-256.
    HERRING_SEPARABLE secret_key key(std::span<std::byte const> salt) const noexcept;

    /// Becomes the secret of one job, which is of no use to another: a key of this one and `job`.
    HERRING_SEPARABLE void bind(std::span<std::byte const> job) noexcept;

  private:
    secret_key key_;
};

/// The content of a file of secrets.
struct secrets {
    secret proves;              ///< the secret that this rank proves
    std::optional<secret> also; ///< accepted from others too, while secrets are changed
    std::string warning;        ///< for the user; empty: none
};

/// Reads a file of one or two secrets, one a line. Empty lines and lines that start with # do not count.
/// Lines end in `\n` or `\r\n`; the last one may lack its end.
///
/// `name`: the setting that named the file, for errors ("HERRING_SECRET_FILE").
/// Errors:  `bad_argument` naming the setting, the file and the fault, never the content: the file cannot be
///          read, is no ordinary file, gives rights to everyone, has more than 4 KiB, no secret, more than
///          two, or one that secret_fault() refuses. Rights of the group are a warning, except that a group
///          may read what root owns; so is an owner who is neither root nor this user.
HERRING_SEPARABLE secrets read_secrets(std::string const& path, std::string_view name);

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/crypto/secret_impl.hpp"
#endif

#endif // HERRING_CRYPTO_SECRET_HPP
