// herring: tests of memory/huge_pages.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/memory/huge_pages.hpp"

#include "doctest/doctest.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

using herring::advise_huge_pages;
using herring::huge_page_allocator;
using herring::huge_page_bytes;
using herring::huge_page_setting;

namespace {

/// Bytes of huge pages in the mapping that this address lies in, as the kernel has it; -1: it does not say.
long long huge_bytes_at(void const* address) {
    std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen("/proc/self/smaps", "r"), &std::fclose);
    if (!file) return -1;
    char line[512];
    bool here = false;
    while (std::fgets(line, sizeof line, file.get()) != nullptr) {
        unsigned long long from = 0, to = 0;
        long long kilobytes = 0;
        auto const at = reinterpret_cast<std::uintptr_t>(address);
        if (std::sscanf(line, "%llx-%llx ", &from, &to) == 2) here = from <= at && at < to;
        if (here && std::sscanf(line, "AnonHugePages: %lld kB", &kilobytes) == 1) return kilobytes << 10;
    }
    return -1;
}

bool grants() {
    auto const setting = herring::system_huge_pages();
    return setting == huge_page_setting::madvise || setting == huge_page_setting::always;
}

} // namespace

TEST_CASE("huge_pages: the system's setting is the one in brackets") {
    std::string text;
    if (std::FILE* const file = std::fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r")) {
        char buffer[64] = {};
        text.assign(buffer, std::fread(buffer, 1, sizeof buffer, file));
        std::fclose(file);
    }
    std::string const said = to_string(herring::system_huge_pages());
    CAPTURE(text);
    if (text.empty())
        CHECK(said == "unknown");
    else
        CHECK(text.find("[" + said + "]") != std::string::npos);
}

TEST_CASE("huge_page_allocator: vectors of every size, aligned, zeroed by their elements") {
    for (std::size_t const n : {std::size_t{1}, std::size_t{1000}, huge_page_bytes / 4 - 1,
                                huge_page_bytes / 4, huge_page_bytes / 4 + 1, 3 * huge_page_bytes}) {
        CAPTURE(n);
        std::vector<float, huge_page_allocator<float>> x(n);
        bool const large = n * sizeof(float) >= huge_page_bytes;
        CHECK(reinterpret_cast<std::uintptr_t>(x.data()) % (large ? huge_page_bytes : 64) == 0);
        CHECK(std::all_of(x.begin(), x.end(), [](float v) { return v == 0; }));
        x.front() = x.back() = 1;
        auto y = std::move(x);
        y.resize(2 * n, 3);
        CHECK(y[n - 1] == 1);
        CHECK(y.back() == 3);
    }
}

TEST_CASE("huge_page_allocator: its pages are huge where the system grants them") {
    if (!grants()) {
        MESSAGE("SKIPPED: the system's setting is " << to_string(herring::system_huge_pages()));
        return;
    }
    std::vector<float, huge_page_allocator<float>> x(8 * huge_page_bytes / sizeof(float), 1.0f);
    if (long long const huge = huge_bytes_at(x.data()); huge >= 0)
        CHECK(huge >= static_cast<long long>(huge_page_bytes)); // all 8, unless memory is fragmented
}

TEST_CASE("huge_page_allocator: too much is bad_alloc, and no size wraps around") {
    huge_page_allocator<double> of;
    for (std::size_t const n :
         {std::size_t{1} << 58, ~std::size_t{0} / 8, ~std::size_t{0} / 8 + 2, ~std::size_t{0}})
        CHECK_THROWS_AS((void)of.allocate(n), std::bad_alloc);
    static_assert(huge_page_allocator<float>{} == huge_page_allocator<double>{});
    static_assert(std::is_empty_v<huge_page_allocator<float>>);
}

TEST_CASE("advise_huge_pages: moves what is in use, keeps what is in it") {
    std::vector<std::uint32_t> x(8 * huge_page_bytes / sizeof(std::uint32_t));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint32_t>(i * 2654435761u);
    long long const before = huge_bytes_at(x.data());
    bool const advised = advise_huge_pages(std::span(x));
    bool same = true;
    for (std::size_t i = 0; i < x.size(); ++i)
        same = same && x[i] == static_cast<std::uint32_t>(i * 2654435761u);
    CHECK(same);
    if (!advised) {
        MESSAGE("SKIPPED: the system grants none here");
        return;
    }
    if (before >= 0)
        CHECK(huge_bytes_at(x.data() + x.size() / 2) >= static_cast<long long>(7 * huge_page_bytes));
    CHECK(advise_huge_pages(std::span(x))); // twice does no harm
}

TEST_CASE("advise_huge_pages: memory that nobody has touched gets them when it is") {
    std::size_t const n = 4 * huge_page_bytes;
    std::unique_ptr<std::byte[]> const x(new std::byte[n]);
    if (!advise_huge_pages(std::span(x.get(), n))) {
        MESSAGE("SKIPPED: the system grants none here");
        return;
    }
    std::memset(x.get(), 1, n);
    if (long long const huge = huge_bytes_at(x.get() + n / 2); huge >= 0)
        CHECK(huge >= static_cast<long long>(huge_page_bytes));
}

TEST_CASE("advise_huge_pages: false for what has no whole huge page") {
    std::vector<std::byte> small(huge_page_bytes - 1);
    CHECK_FALSE(advise_huge_pages(std::span(small)));
    CHECK_FALSE(advise_huge_pages(std::span<float>()));
    std::vector<std::byte, huge_page_allocator<std::byte>> x(2 * huge_page_bytes);
    CHECK_FALSE(advise_huge_pages(std::span(x).subspan(1, huge_page_bytes + 1))); // it straddles two
}
