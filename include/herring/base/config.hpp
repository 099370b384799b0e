// herring: the few compiler facts that the other headers share.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BASE_CONFIG_HPP
#define HERRING_BASE_CONFIG_HPP

// After the sentence, a header that does not exist: it stops the compiler, which would go on for pages.
#if __cplusplus < 202002L
#error "Herring needs C++20: compile with -std=c++20"
#include <herring needs -std=c++20>
#elif !defined(__cpp_exceptions)
#error "Herring needs exceptions: compile without -fno-exceptions (-fno-rtti is fine)"
#include <herring needs exceptions>
#endif

#include "herring/base/target.hpp"

#if defined(__CUDACC__) || defined(__HIPCC__)
#define HERRING_HOST_DEVICE __host__ __device__
#else
#define HERRING_HOST_DEVICE
#endif

/// For the pieces of a kernel that must disappear into its loop: vectors that cross a call lose their
/// registers.
#define HERRING_ALWAYS_INLINE [[gnu::always_inline]] inline

/// Set-up and error paths: compiled for size and kept out of line, which is most of what a translation unit costs.
#define HERRING_SETUP [[gnu::cold, gnu::noinline]]

/// Set-up functions that are no templates: a header x.hpp declares them, and x_impl.hpp beside it defines them. The
/// header includes that at its end; with HERRING_SEPARATE, herring/src.hpp alone does, in one source file of the program. Not noinline: g++
/// warns of that where an inline function is declared before it is defined.
#ifdef HERRING_SEPARATE
#define HERRING_SEPARABLE [[gnu::cold]]
#else
#define HERRING_SEPARABLE [[gnu::cold]] inline
#endif

#endif // HERRING_BASE_CONFIG_HPP
