// herring: the index arithmetic of kernels covers every element once, and keeps 16-byte accesses aligned.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gpu/kernel/slices.hpp"

#include "doctest/doctest.h"

#include <vector>

using namespace herring::gpu;

TEST_CASE("slices: the ranks of a node share all elements, each once") {
    for (std::size_t const elements : {0u, 1u, 5u, 16u, 17u, 1000u})
        for (std::size_t const chunk : {1u, 3u, 16u, 1000u, 5000u})
            for (std::uint32_t const ranks : {1u, 2u, 3u, 8u}) {
                std::vector<int> seen(elements + 7);
                for (std::uint32_t l = 0; l < ranks; ++l) {
                    slices const mine{7, elements, chunk, l, ranks};
                    for (std::size_t j = 0; j < mine.count(); ++j) {
                        CHECK(mine.size(j) > 0);
                        for (std::size_t i = 0; i < mine.size(j); ++i) ++seen[mine.begin(j) + i];
                    }
                }
                std::vector<int> once(elements + 7, 1);
                for (std::size_t i = 0; i < 7; ++i) once[i] = 0;
                CHECK(seen == once);
            }
    static_assert(slices{0, 100, 30, 1, 2}.count() == 2 && slices{0, 100, 30, 1, 2}.size(1) == 10);
}

TEST_CASE("cut_for_vectors: head, accesses and tail make the run; accesses are aligned") {
    for (std::size_t const size : {2u, 4u, 8u})
        for (std::uintptr_t address = 4096; address < 4096 + 32; address += size)
            for (std::size_t count = 0; count < 40; ++count) {
                std::size_t const lanes = access_bytes / size;
                vector_cut const cut = cut_for_vectors(address, count, size, true);
                std::size_t const tail = cut.tail(count, lanes);
                CHECK(cut.head + cut.vectors * lanes + tail == count);
                CHECK(tail < count + 1);
                if (cut.vectors > 0) {
                    CHECK((address + cut.head * size) % access_bytes == 0);
                    CHECK(cut.head < lanes);
                    CHECK(tail < lanes);
                }
                vector_cut const plain = cut_for_vectors(address, count, size, false);
                CHECK(plain.head == count);
                CHECK(plain.vectors == 0);
            }
}

TEST_CASE("aligned_alike: two buffers, the second of wider elements too") {
    static_assert(aligned_alike(4096, 4, 8192, 4) && aligned_alike(4100, 4, 8196, 4));
    static_assert(!aligned_alike(4100, 4, 8192, 4));
    // bfloat16 from 4098: the first access is 7 elements on, where floats have moved by 28 bytes.
    static_assert(aligned_alike(4098, 2, 4096 + 4, 4) && !aligned_alike(4098, 2, 4096, 4));
    CHECK(true);
}
