// herring: HKDF-SHA256: keys from a key, a label each.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CRYPTO_HKDF_HPP
#define HERRING_CRYPTO_HKDF_HPP

#include "herring/base/config.hpp"
#include "herring/crypto/secret_key.hpp"

#include <cstddef>
#include <initializer_list>
#include <span>
#include <string_view>

namespace HERRING_NAMESPACE::detail {

/// A key from material that nobody can guess but that is not evenly random, or not to be used itself.
///
/// Source:  RFC 5869, 2.2.
HERRING_SEPARABLE secret_key hkdf_extract(std::span<std::byte const> salt,
                                          std::span<std::byte const> material) noexcept;

/// Fills `to`, at most 8,160 bytes, from a key. `info` in pieces, whose borders do not count.
///
/// Source:  RFC 5869, 2.3.
HERRING_SEPARABLE void hkdf_expand(secret_key const& key,
                                   std::initializer_list<std::span<std::byte const>> info,
                                   std::span<std::byte> to) noexcept;

/// The key of this label and context: those of other labels or contexts say nothing of it. Its info is the label, a zero, the
/// context; a label has no zero in it, so no two pairs meet.
HERRING_SEPARABLE secret_key hkdf_key(secret_key const& key, std::string_view label,
                                      std::span<std::byte const> context = {}) noexcept;

} // namespace HERRING_NAMESPACE::detail

#ifndef HERRING_SEPARATE
#include "herring/crypto/hkdf_impl.hpp"
#endif

#endif // HERRING_CRYPTO_HKDF_HPP
