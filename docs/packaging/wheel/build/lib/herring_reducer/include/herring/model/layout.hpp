// herring: the layout: names and element counts of the tensors, in the order in which backward ends them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_MODEL_LAYOUT_HPP
#define HERRING_MODEL_LAYOUT_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace HERRING_NAMESPACE {

/// One tensor: its name (for messages and the digest), its number of elements (zero is allowed), and, with an
/// optimizer, the group whose hyper values apply to it.
struct tensor_spec {
    std::string name;
    std::size_t elements = 0;
    std::size_t group = 0;
};

/// The tensors, alike on every rank, in the order in which backward finishes them.
///
/// Shape:    any number of tensors of any sizes, empty ones included.
/// Lifetime: a value; the reducer copies what it needs.
/// Errors:   `bad_argument` for a CSV that cannot be read, naming the file, the line and its text.
///
///     herring::layout l{{"fc.bias", 10}, {"fc.weight", 4096}};
///     herring::layout r = herring::layout::from_csv("resnet50.csv");   // header: name,shape,elements
class layout {
  public:
    layout() = default;
    HERRING_SEPARABLE layout(std::initializer_list<tensor_spec> tensors);
    explicit layout(std::vector<tensor_spec> tensors) : tensors_(std::move(tensors)) {}

    /// Makes a layout from a range of element counts; the tensors are named "0", "1", ...
    template <class Counts>
    requires requires(Counts const& counts) { static_cast<std::size_t>(*std::begin(counts)); }
    static layout of(Counts const& counts) {
        layout result;
        for (auto const count : counts)
            result.tensors_.push_back({std::to_string(result.size()), static_cast<std::size_t>(count)});
        return result;
    }

    /// Reads a table with the header `name,shape,elements`; the shape column is not interpreted.
    HERRING_SEPARABLE static layout from_csv(std::string const& path);

    /// Reads the same table from a text in memory; `source` is its name in messages.
    HERRING_SEPARABLE static layout from_csv_text(std::string_view text, std::string const& source = "text");

    std::size_t size() const noexcept { return tensors_.size(); }
    tensor_spec const& operator[](std::size_t i) const noexcept { return tensors_[i]; }
    auto begin() const noexcept { return tensors_.begin(); }
    auto end() const noexcept { return tensors_.end(); }

    /// Returns the sum of all element counts.
    std::size_t elements() const noexcept {
        std::size_t total = 0;
        for (tensor_spec const& tensor : tensors_) total += tensor.elements;
        return total;
    }

  private:
    [[noreturn]] HERRING_SEPARABLE static void refuse(std::string const& source, std::size_t line,
                                                      std::string_view row, std::string_view expected);

    HERRING_SEPARABLE static std::size_t count(std::string_view digits, std::string const& source,
                                               std::size_t line, std::string_view row);

    std::vector<tensor_spec> tensors_;
};

} // namespace HERRING_NAMESPACE

#ifndef HERRING_SEPARATE
#include "herring/model/layout_impl.hpp"
#endif

#endif // HERRING_MODEL_LAYOUT_HPP
