// herring: facts about the compiler, and the attributes that the other headers share.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BASE_CONFIG_HPP
#define HERRING_BASE_CONFIG_HPP

// Including a header that does not exist stops the compiler, which would go on for pages.
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

/// For parts of a kernel that must be inlined into its loop: vectors lose their registers at a call.
#define HERRING_ALWAYS_INLINE [[gnu::always_inline]] inline

/// For set-up and error paths, most of what a translation unit costs: compiled for size, out of line.
#define HERRING_SETUP [[gnu::cold, gnu::noinline]]

/// For set-up functions that are no templates: x.hpp declares them and x_impl.hpp defines them. x.hpp
/// includes x_impl.hpp at its end; with HERRING_SEPARATE only herring/src.hpp does, in one source file of the
/// program. Not noinline: g++ warns about noinline where an inline function is declared before it is defined.
#ifdef HERRING_SEPARATE
#define HERRING_SEPARABLE [[gnu::cold]]
#else
#define HERRING_SEPARABLE [[gnu::cold]] inline
#endif

#endif // HERRING_BASE_CONFIG_HPP
