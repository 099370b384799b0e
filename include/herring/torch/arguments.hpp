// herring: arguments of a backend of PyTorch: what is refused, and what of them a call of the table takes.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TORCH_ARGUMENTS_HPP
#define HERRING_TORCH_ARGUMENTS_HPP

#include "herring/base/error.hpp"
#include "herring/torch/device.hpp"
#include "herring/torch/streams.hpp"
#include "herring/torch/table.hpp"
#include "herring/torch/work.hpp"

#include <ATen/ATen.h>
#include <torch/csrc/distributed/c10d/Types.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace herring::torch {

using tensors = std::vector<at::Tensor>;
using tensor_lists = std::vector<tensors>;

/// The elements of a list, one tensor after the other.
inline at::Tensor joined(tensors const& list) {
    tensors parts;
    for (auto const& tensor : list) parts.push_back(tensor.reshape({-1}));
    return at::cat(parts);
}

/// Memory for the elements of a list.
inline at::Tensor room_for(tensors const& list) {
    std::int64_t elements = 0;
    for (auto const& tensor : list) elements += tensor.numel();
    return at::empty({elements}, list[0].options());
}

/// Copies the elements of `all` to a list that `room_for` made it for.
inline void copy_parts(at::Tensor const& all, tensors const& list) {
    std::int64_t at = 0;
    for (auto const& tensor : list) {
        tensor.copy_(all.narrow(0, at, tensor.numel()).view(tensor.sizes()));
        at += tensor.numel();
    }
}

/// The type and the rule of a reduction.
struct reduction {
    type of = type::float32;
    rule by = rule::sum;

    std::size_t index() const noexcept { return static_cast<std::size_t>(of); }
    call call_of(host_memory<torch_device>& memory, at::Tensor const& in, at::Tensor const& out) const {
        void* const to = out.is_same(in) ? memory.change(memory_of(out)) : memory.write(memory_of(out));
        return {.in = out.is_same(in) ? to : memory.read(memory_of(in)),
                .out = to,
                .count = static_cast<std::size_t>(in.numel()),
                .by = by};
    }
};

/// A call in words, for the comparison with other ranks: "all_reduce of 10 Float by SUM".
inline std::string in_words(char const* operation, tensors const& given, reduction const* by, int root = -1) {
    std::string words = operation;
    for (std::size_t i = 0; i < given.size(); ++i)
        words += (i == 0 ? " of " : ", ") + std::to_string(given[i].numel()) + " " +
                 c10::toString(given[i].scalar_type());
    if (by != nullptr && !given.empty())
        words += std::string(" by ") + rule_names[static_cast<std::size_t>(by->by)];
    if (root >= 0) words += ", root " + std::to_string(root);
    return words;
}

/// Checks the arguments of a rank's calls.
///
/// Errors: an exception that names the rank, the operation and what to do.
class arguments {
  public:
    arguments(table const& calls, int rank, int size) : calls_(calls), rank_(rank), size_(size) {}

    [[noreturn]] void refuse(char const* operation, std::string const& text,
                             errc what = errc::bad_argument) const {
        throw work::error_of("herring: rank " + std::to_string(rank_) + ": " + operation + ": " +
                             to_string(what) + ": " + text);
    }
    [[noreturn]] void refuse_pairs(char const* operation) const {
        refuse(operation,
               "herring has collectives only, no messages between two ranks; make a group for these by "
               "new_group(backend=\"gloo\")",
               errc::unsupported);
    }
    [[noreturn]] void refuse_devices(char const* operation, at::Tensor const& a, at::Tensor const& b) const {
        refuse(operation, "the tensors lie on " + a.device().str() + " and " + b.device().str() +
                              ": a call takes those of one device");
    }
    at::Tensor const& one(char const* operation, tensors const& given) const {
        if (given.size() != 1) refuse(operation, "it takes one tensor");
        return given[0];
    }
    int root_of(char const* operation, std::int64_t root) const {
        if (root < 0 || root >= size_)
            refuse(operation,
                   "there is no rank " + std::to_string(root) + " in a group of " + std::to_string(size_));
        return static_cast<int>(root);
    }
    /// `any_order`: the strides may be permuted, as those of channels_last.
    void check(char const* operation, at::Tensor const& tensor, bool any_order = false) const {
        if (!tensor.defined()) refuse(operation, "a tensor is not defined");
        if (tensor.layout() != at::kStrided)
            refuse(operation, std::string("the tensor's layout is ") + c10::str(tensor.layout()) +
                                  ": it needs a dense one; call to_dense() first");
        if (!tensor.is_cpu() && !tensor.is_cuda())
            refuse(operation,
                   "the tensor lies on " + tensor.device().str() +
                       ", and this backend is of tensors of the CPU and of CUDA; call cpu() first");
        if (!(any_order ? tensor.is_non_overlapping_and_dense() : tensor.is_contiguous()))
            refuse(operation, "the tensor is not contiguous; call contiguous() first");
        if (tensor.nbytes() > tensor.storage().nbytes())
            refuse(operation, "the tensor's memory is freed, as that of a sharded parameter is");
    }
    void check_pair(char const* operation, at::Tensor const& in, at::Tensor const& out) const {
        check(operation, in);
        check(operation, out);
        if (in.device() != out.device()) refuse_devices(operation, in, out);
        if (in.scalar_type() != out.scalar_type())
            refuse(operation, std::string("the tensors have different types, ") +
                                  c10::toString(in.scalar_type()) + " and " +
                                  c10::toString(out.scalar_type()));
    }
    void check_counts(char const* operation, tensors const& out, tensors const& in) const {
        if (in.size() != out.size() || in.empty())
            refuse(operation, "it takes as many tensors as results, and at least one");
    }
    /// `lists`: one list, with a tensor like `mine` for each rank.
    void check_list(char const* operation, tensor_lists const& lists, at::Tensor const& mine) const {
        if (lists.size() != 1 || lists[0].size() != ranks())
            refuse(operation, "it needs a list of one tensor for each rank, " + std::to_string(size_));
        for (auto const& tensor : lists[0]) {
            check_pair(operation, mine, tensor);
            if (tensor.numel() != mine.numel())
                refuse(operation, "the tensors of the list have " + std::to_string(tensor.numel()) +
                                      " elements, that of this rank " + std::to_string(mine.numel()));
        }
    }
    std::vector<std::size_t> bytes_of_splits(char const* operation, at::Tensor const& tensor,
                                             std::vector<std::int64_t> const& splits) const {
        std::int64_t const rows = tensor.dim() == 0 ? 1 : tensor.size(0);
        std::size_t const row = rows == 0 ? 0 : tensor.nbytes() / static_cast<std::size_t>(rows);
        if (splits.empty()) {
            if (rows % size_ != 0)
                refuse(operation, "the first dimension, " + std::to_string(rows) +
                                      ", cannot be divided by the ranks; name the sizes of the splits");
            return std::vector<std::size_t>(ranks(), tensor.nbytes() / ranks());
        }
        std::vector<std::size_t> bytes;
        std::int64_t sum = 0;
        for (std::int64_t const split : splits) {
            if (split < 0) refuse(operation, "a split has a negative size");
            sum += split;
            bytes.push_back(static_cast<std::size_t>(split) * row);
        }
        if (splits.size() != ranks() || sum != rows)
            refuse(operation,
                   "the splits need to be one a rank, and as many rows together as the tensor has");
        return bytes;
    }

    reduction reduction_of(char const* operation, at::Tensor const& tensor,
                           ::c10d::ReduceOp const& op) const {
        reduction found;
        switch (tensor.scalar_type()) {
        case at::kFloat:
            break;
        case at::kDouble:
            found.of = type::float64;
            break;
        case at::kBFloat16:
            found.of = type::bfloat16;
            break;
        case at::kHalf:
            found.of = type::float16;
            break;
        case at::kLong:
            found.of = type::int64;
            break;
        case at::kInt:
            found.of = type::int32;
            break;
        case at::kShort:
            found.of = type::int16;
            break;
        case at::kChar:
            found.of = type::int8;
            break;
        case at::kByte:
            found.of = type::uint8;
            break;
        case at::kBool:
            found.of = type::boolean;
            break;
        default:
            refuse(operation, std::string("elements of type ") + c10::toString(tensor.scalar_type()) +
                                  " are not reduced; convert them to float32 or int64");
        }
        switch (op.op_) {
        case ::c10d::ReduceOp::SUM:
            break;
        case ::c10d::ReduceOp::AVG:
            found.by = rule::average;
            break;
        case ::c10d::ReduceOp::PRODUCT:
            found.by = rule::product;
            break;
        case ::c10d::ReduceOp::MIN:
            found.by = rule::min;
            break;
        case ::c10d::ReduceOp::MAX:
            found.by = rule::max;
            break;
        default:
            refuse(operation, "the rule has to be SUM, AVG, MIN, MAX or PRODUCT", errc::unsupported);
        }
        if ((calls_.by_type[found.index()] >> static_cast<unsigned>(found.by) & 1u) == 0)
            refuse(operation,
                   std::string(c10::toString(tensor.scalar_type())) + " has no " +
                       rule_names[static_cast<std::size_t>(found.by)] +
                       ": it would be rounded; take SUM, or convert to float32",
                   errc::unsupported);
        return found;
    }

  private:
    std::size_t ranks() const noexcept { return static_cast<std::size_t>(size_); }

    table const& calls_;
    int const rank_, size_;
};

} // namespace herring::torch

#endif // HERRING_TORCH_ARGUMENTS_HPP
