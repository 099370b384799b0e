// herring: what there is to reduce: the names and element counts of the tensors, in the order backward ends them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_LAYOUT_HPP
#define HERRING_LAYOUT_HPP

#include "herring/detail/config.hpp"
#include "herring/error.hpp"

#include <cstddef>
#include <cstdio>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE {

/// One tensor: its name (for messages and the digest) and how many elements it has; zero is allowed.
struct tensor_spec {
    std::string name;
    std::size_t elements = 0;
};

/// The tensors that every rank declares alike, in the order in which backward finishes them.
///
/// Shape:    any number of tensors, any sizes, also empty ones.
/// Lifetime: a value; the reducer copies what it needs.
/// Errors:   a CSV that cannot be read names the file, the line and what stands there (`errc::bad_argument`).
///
///     herring::layout l{{"fc.bias", 10}, {"fc.weight", 4096}};
///     herring::layout r = herring::layout::from_csv("resnet50.csv");   // header: name,shape,elements
class layout {
  public:
    layout() = default;
    layout(std::initializer_list<tensor_spec> tensors) : tensors_(tensors) {}
    explicit layout(std::vector<tensor_spec> tensors) : tensors_(std::move(tensors)) {}

    /// From a range of element counts; the tensors are named "0", "1", ...
    template <class Counts>
    requires requires(Counts const& counts) { static_cast<std::size_t>(*std::begin(counts)); }
    static layout of(Counts const& counts) {
        layout made;
        for (auto const count : counts)
            made.tensors_.push_back({std::to_string(made.size()), static_cast<std::size_t>(count)});
        return made;
    }

    /// Reads a table with the header `name,shape,elements`; the shape column is not interpreted.
    static layout from_csv(std::string const& path) {
        std::FILE* const file = std::fopen(path.c_str(), "r");
        if (file == nullptr)
            throw error(errc::bad_argument, -1, -1, "layout",
                        {"cannot open '", path, "': check the path and its permissions"});
        std::string text;
        char buffer[4096];
        for (std::size_t got; (got = std::fread(buffer, 1, sizeof buffer, file)) > 0;)
            text.append(buffer, got);
        bool const unreadable = std::ferror(file) != 0;
        std::fclose(file);
        if (unreadable)
            throw error(errc::bad_argument, -1, -1, "layout",
                        {"cannot read '", path, "': is it a directory?"});
        return from_csv_text(text, path);
    }

    /// The same from text in memory; `source` is what messages call it.
    static layout from_csv_text(std::string_view text, std::string const& source = "text") {
        layout made;
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
            made.tensors_.push_back(
                {std::string(row.substr(0, first)), count(row.substr(last + 1), source, line, row)});
        }
        if (line == 0) refuse(source, 1, "", "the header name,shape,elements");
        return made;
    }

    std::size_t size() const noexcept { return tensors_.size(); }
    tensor_spec const& operator[](std::size_t i) const noexcept { return tensors_[i]; }
    auto begin() const noexcept { return tensors_.begin(); }
    auto end() const noexcept { return tensors_.end(); }

    /// Sum of all element counts.
    std::size_t elements() const noexcept {
        std::size_t total = 0;
        for (tensor_spec const& tensor : tensors_) total += tensor.elements;
        return total;
    }

  private:
    [[noreturn]] static void refuse(std::string const& source, std::size_t line, std::string_view row,
                                    std::string_view expected) {
        throw error(errc::bad_argument, -1, -1, "layout",
                    {source, ":", line, ": expected ", expected, ", found '", row.substr(0, 80), "'"});
    }

    static std::size_t count(std::string_view digits, std::string const& source, std::size_t line,
                             std::string_view row) {
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

    std::vector<tensor_spec> tensors_;
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_LAYOUT_HPP
