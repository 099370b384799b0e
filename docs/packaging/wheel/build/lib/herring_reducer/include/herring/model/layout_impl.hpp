// herring: the layout of tensors, read from a table: the functions.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MODEL_LAYOUT_IMPL_HPP
#define HERRING_MODEL_LAYOUT_IMPL_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/model/layout.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

namespace HERRING_NAMESPACE {

HERRING_SEPARABLE layout::layout(std::initializer_list<tensor_spec> tensors) : tensors_(tensors) {}

HERRING_SEPARABLE layout layout::from_csv(std::string const& path) {
    std::FILE* const file = std::fopen(path.c_str(), "r");
    if (file == nullptr)
        throw error(errc::bad_argument, -1, -1, "layout",
                    {"cannot open '", path, "': check the path and its permissions"});
    std::string text;
    char buffer[4096];
    for (std::size_t got; (got = std::fread(buffer, 1, sizeof buffer, file)) > 0;) text.append(buffer, got);
    bool const unreadable = std::ferror(file) != 0;
    std::fclose(file);
    if (unreadable)
        throw error(errc::bad_argument, -1, -1, "layout", {"cannot read '", path, "': is it a directory?"});
    return from_csv_text(text, path);
}

HERRING_SEPARABLE layout layout::from_csv_text(std::string_view text, std::string const& source) {
    layout result;
    std::size_t line = 0;
    for (std::size_t at = 0; at < text.size();) {
        std::size_t const end = std::min(text.find('\n', at), text.size());
        std::string_view row = text.substr(at, end - at);
        at = end + 1;
        ++line;
        if (!row.empty() && row.back() == '\r') row.remove_suffix(1);
        if (line == 1) {
            if (row != "name,shape,elements") refuse(source, line, row, "the header name,shape,elements");
            continue;
        }
        if (row.empty()) continue;
        std::size_t const last = row.rfind(',');
        std::size_t const first = row.find(',');
        if (first == std::string_view::npos || first == last || first == 0)
            refuse(source, line, row, "name,shape,elements");
        result.tensors_.push_back(
            {std::string(row.substr(0, first)), count(row.substr(last + 1), source, line, row)});
    }
    if (line == 0) refuse(source, 1, "", "the header name,shape,elements");
    return result;
}

HERRING_SEPARABLE void layout::refuse(std::string const& source, std::size_t line, std::string_view row,
                                      std::string_view expected) {
    throw error(errc::bad_argument, -1, -1, "layout",
                {source, ":", line, ": expected ", expected, ", found '", row.substr(0, 80), "'"});
}

HERRING_SEPARABLE std::size_t layout::count(std::string_view digits, std::string const& source,
                                            std::size_t line, std::string_view row) {
    std::size_t value = 0;
    if (digits.empty()) refuse(source, line, row, "a count of elements");
    for (char const c : digits) {
        if (c < '0' || c > '9') refuse(source, line, row, "a count of elements");
        auto const digit = static_cast<std::size_t>(c - '0');
        if (value > (std::numeric_limits<std::size_t>::max() / 64 - digit) / 10)
            refuse(source, line, row, "a count of elements that fits in memory");
        value = value * 10 + digit;
    }
    return value;
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_MODEL_LAYOUT_IMPL_HPP
