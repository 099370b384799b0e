// herring: random bytes of the kernel, for keys and nonces: these or an error.
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

/// Fills `to` by calls of getrandom's form.
///
/// Blocks:  until the kernel has collected enough, in the first seconds of a machine.
/// Errors:  `unsupported`, where there is no such call (a seccomp filter): there are never weaker bytes.
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

/// 32 bytes that nobody can guess and that have never been before: a nonce, or a key.
///
/// Errors:  as above.
HERRING_SETUP inline std::array<std::byte, 32> random_nonce() {
    std::array<std::byte, 32> bytes{};
    random_bytes(bytes, ::getrandom);
    return bytes;
}

/// As many, as a key.
HERRING_SETUP inline secret_key random_key() {
    secret_key key;
    random_bytes(key.bytes(), ::getrandom);
    return key;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_CRYPTO_RANDOM_HPP
