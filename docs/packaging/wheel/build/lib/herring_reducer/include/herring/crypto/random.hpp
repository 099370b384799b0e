// herring: random bytes of the kernel, for keys and nonces; never weaker ones.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_CRYPTO_RANDOM_HPP
#define HERRING_CRYPTO_RANDOM_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/crypto/secret_key.hpp"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>

#include <sys/random.h>
#include <sys/types.h>

namespace HERRING_NAMESPACE::detail {

/// Fills `to` by calls of `getrandom`.
///
/// Blocks:  until the kernel has collected enough, in the first seconds of a machine.
/// Errors:  `unsupported` where the call is missing (a seccomp filter); there is no weaker source.
template <class Getrandom> HERRING_SETUP void random_bytes(std::span<std::byte> to, Getrandom&& getrandom) {
    while (!to.empty()) {
        ssize_t const got = getrandom(to.data(), to.size(), 0u);
        if (got > 0)
            to = to.subspan(static_cast<std::size_t>(got));
        else if (got == 0 || errno != EINTR)
            throw error(
                errc::unsupported, -1, -1, "join",
                {"the kernel gives no random bytes (getrandom: ", got == 0 ? "none" : std::strerror(errno),
                 "), without which nobody can prove that it has the secret; let the filter of system calls "
                 "pass "
                 "getrandom"});
    }
}

/// Returns 32 bytes that are unpredictable and have never been used before: a nonce.
///
/// Errors:  as `random_bytes`.
HERRING_SETUP inline std::array<std::byte, 32> random_nonce() {
    std::array<std::byte, 32> bytes{};
    random_bytes(bytes, ::getrandom);
    return bytes;
}

/// Returns a random key.
///
/// Errors:  as `random_bytes`.
HERRING_SETUP inline secret_key random_key() {
    secret_key key;
    random_bytes(key.bytes(), ::getrandom);
    return key;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CRYPTO_RANDOM_HPP
