// herring: which sanitizer a test was compiled with, asked in one way of g++ and of clang++, and how much it is to try there.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_SANITIZERS_HPP
#define HERRING_TESTS_SANITIZERS_HPP

// g++ defines macros, clang 14 has features.
#if defined(__has_feature)
#define HERRING_TEST_FEATURE(name) __has_feature(name)
#else
#define HERRING_TEST_FEATURE(name) 0
#endif

/// 1 under AddressSanitizer: memory, address space and time are not what they are elsewhere.
#if defined(__SANITIZE_ADDRESS__) || HERRING_TEST_FEATURE(address_sanitizer)
#define HERRING_TEST_ASAN 1
#else
#define HERRING_TEST_ASAN 0
#endif

/// 1 under ThreadSanitizer: a signal waits until the thread calls something.
#if defined(__SANITIZE_THREAD__) || HERRING_TEST_FEATURE(thread_sanitizer)
#define HERRING_TEST_TSAN 1
#else
#define HERRING_TEST_TSAN 0
#endif

/// 1 under either: everything takes several times as long.
#define HERRING_TEST_SLOW (HERRING_TEST_ASAN || HERRING_TEST_TSAN)

/// What shapes of nodes, seeds and repetitions are divided by. A sanitizer's findings depend on sizes, routes and numbers of
/// lists, not on who is on which node; the full run has all shapes, by g++ at -O2.
#ifdef HERRING_TESTS_QUICK
#define HERRING_TEST_PART (HERRING_TEST_SLOW ? 4 : 2)
#else
#define HERRING_TEST_PART (HERRING_TEST_SLOW ? 2 : 1)
#endif

#endif // HERRING_TESTS_SANITIZERS_HPP
