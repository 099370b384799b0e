// herring: tests of layout.hpp.
// SPDX-License-Identifier: Apache-2.0
#include "herring/layout.hpp"

#include "doctest/doctest.h"

#include <cstdio>
#include <string>
#include <vector>

#include <unistd.h>

using herring::layout;

namespace {

/// The message of the error that reading this table gives.
std::string refusal(std::string const& text) {
    try {
        (void)layout::from_csv_text(text, "t.csv");
    } catch (herring::error const& why) {
        CHECK(why.code() == herring::errc::bad_argument);
        return why.what();
    }
    return "no error";
}

bool says(std::string const& text, std::string const& word) { return text.find(word) != std::string::npos; }

} // namespace

TEST_CASE("layout: from a list, from a vector, from counts") {
    layout const list{{"fc.bias", 10}, {"fc.weight", 4096}, {"nothing", 0}};
    REQUIRE(list.size() == 3);
    CHECK(list[1].name == "fc.weight");
    CHECK(list[1].elements == 4096);
    CHECK(list.elements() == 4106);
    std::size_t seen = 0;
    for (herring::tensor_spec const& tensor : list) seen += tensor.elements;
    CHECK(seen == 4106);

    std::vector<std::size_t> const counts{3, 0, 5};
    layout const numbered = layout::of(counts);
    REQUIRE(numbered.size() == 3);
    CHECK(numbered[2].name == "2");
    CHECK(numbered[2].elements == 5);
    CHECK(layout::of(std::span<std::size_t const>()).size() == 0);

    CHECK(layout(std::vector<herring::tensor_spec>{{"a", 1}}).elements() == 1);
    CHECK(layout().size() == 0);
    CHECK(layout().elements() == 0);
}

TEST_CASE("layout: a table in text") {
    layout const read =
        layout::from_csv_text("name,shape,elements\n"
                              "conv1.weight,64x3x7x7,9408\r\n"
                              "\n"
                              "scalar,,1\n"
                              "odd,\"2,3\",6\n" // a comma in the shape, which is not interpreted
                              "last,10,10");    // no end of line
    REQUIRE(read.size() == 4);
    CHECK(read[0].name == "conv1.weight");
    CHECK(read[0].elements == 9408);
    CHECK(read[1].elements == 1);
    CHECK(read[2].elements == 6);
    CHECK(read[3].name == "last");
    CHECK(layout::from_csv_text("name,shape,elements\n").size() == 0);
    CHECK(layout::from_csv_text("name,shape,elements").size() == 0);
}

TEST_CASE("layout: what is wrong with a table, and where") {
    CHECK(says(refusal(""), "t.csv:1: expected the header name,shape,elements"));
    CHECK(says(refusal("tensor,elements\n"), "found 'tensor,elements'"));
    std::string const head = "name,shape,elements\na,1,1\n";
    CHECK(says(refusal(head + "b,2\n"), "t.csv:3: expected name,shape,elements, found 'b,2'"));
    CHECK(says(refusal(head + ",2,2\n"), "t.csv:3:"));
    CHECK(says(refusal(head + "b,2,\n"), "a count of elements"));
    CHECK(says(refusal(head + "b,2,two\n"), "a count of elements, found 'b,2,two'"));
    CHECK(says(refusal(head + "b,2,-2\n"), "a count of elements"));
    CHECK(says(refusal(head + "b,2, 2\n"), "a count of elements"));
    CHECK(says(refusal(head + "b,2,99999999999999999999999\n"), "fits in memory"));
    CHECK(says(refusal(head + "b,2,18446744073709551615\n"), "fits in memory"));
    // Junk is quoted, but not all of it.
    CHECK(refusal(head + std::string(100'000, 'x')).size() < 500);
}

TEST_CASE("layout: a table in a file") {
    char path[] = "/tmp/herring_layout_XXXXXX";
    int const file = ::mkstemp(path);
    REQUIRE(file >= 0);
    // Longer than any buffer that reads it.
    std::string text = "name,shape,elements\n";
    for (int i = 0; i < 2000; ++i)
        text += "tensor" + std::to_string(i) + ",3x5," + std::to_string(15 * i) + "\n";
    REQUIRE(::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    ::close(file);
    layout const read = layout::from_csv(path);
    REQUIRE(read.size() == 2000);
    CHECK(read[1999].elements == 15 * 1999);
    CHECK(read[1999].name == "tensor1999");
    ::unlink(path);
    CHECK_THROWS_AS((void)layout::from_csv(path), herring::error);
    CHECK_THROWS_WITH(
        (void)layout::from_csv("/no/such/file.csv"),
        "herring: layout: bad argument: cannot open '/no/such/file.csv': check the path and its permissions");
    CHECK_THROWS_WITH((void)layout::from_csv("/tmp"),
                      "herring: layout: bad argument: cannot read '/tmp': is it a directory?");
}
