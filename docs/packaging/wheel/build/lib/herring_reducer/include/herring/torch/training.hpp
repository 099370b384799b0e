// herring: the calls by which DataParallel under PyTorch reaches a reducer that trains; knows no torch.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TORCH_TRAINING_HPP
#define HERRING_TORCH_TRAINING_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/version.hpp"
#include "herring/checkpoint.hpp"
#include "herring/control/world.hpp"
#include "herring/lazy_reducer.hpp"
#include "herring/model/layout.hpp"
#include "herring/model/roles.hpp"
#include "herring/optimizer/adamw.hpp"
#include "herring/optimizer/clipped.hpp"
#include "herring/optimizer/lamb.hpp"
#include "herring/optimizer/momentum.hpp"
#include "herring/optimizer/nesterov.hpp"
#include "herring/optimizer/on_nonfinite.hpp"
#include "herring/optimizer/optimizer.hpp"
#include "herring/optimizer/sgd.hpp"
#include "herring/policy/policy.hpp"
#include "herring/reducer.hpp"
#include "herring/serve.hpp"
#include "herring/session/training.hpp"
#include "herring/sync/sync.hpp"
#include "herring/torch/calls.hpp"
#include "herring/torch/table.hpp"
#include "herring/training.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace herring::torch {

/// A rank's part of a training: its world, and its reducer.
struct trainer;

/// `herring::tensor_spec`.
struct tensor_entry {
    char const* name;
    std::size_t elements;
    std::size_t group;
};

/// The arguments of `training_table::open`.
struct training {
    std::int32_t rank, size;
    std::int32_t servers; ///< the last ranks, which have no tensors and call `serve`
    std::int64_t timeout_ms;
    gather_function through;
    tensor_entry const* tensors;
    std::size_t count;
};

/// Takes bytes that a call returns.
using reply_function = void (*)(void* to, void const* bytes, std::size_t size);
/// Takes a `herring::state_range`.
using range_function = void (*)(void* to, std::size_t tensor, std::size_t array, std::size_t offset,
                                void const* first, std::size_t elements);

/// The calls of a reducer that trains, filled at compile time. Python mirrors it.
///
/// Threads: one at a time.
struct training_table {
    std::uint32_t abi;     ///< `herring::torch::abi`
    std::uint32_t size;    ///< sizeof(training_table)
    char const* version;   ///< of Herring
    std::size_t hypers;    ///< hyper values: of the optimizer, or of the sync policy's outer one
    std::uint8_t averages; ///< 1: the sync policy averages weights, which the program updates

    char const* (*hyper_name)(std::size_t i) noexcept; ///< nullptr where the optimizer checks no values

    /// Joins, and constructs the reducer, or leaves that to `serve`. Returns nullptr after a failure.
    trainer* (*open)(training const& with, outcome& result) noexcept;
    void (*close)(trainer*) noexcept;
    void (*serve)(trainer*, outcome& result) noexcept;

    /// `from[i]`: tensor i's weights, read on rank `root` alone.
    void (*start)(trainer*, std::int32_t root, void const* const* from, outcome& result) noexcept;
    void* (*gradient)(trainer*, std::size_t i) noexcept;
    void* (*weights)(trainer*, std::size_t i) noexcept; ///< behind `start`

    void (*ready)(trainer*, std::size_t i, outcome& result) noexcept;
    std::int32_t (*wait)(trainer*, outcome& result) noexcept; ///< returns a `herring::step`
    /// Where the sync policy averages: all weights are updated; returns when what is due is the mean.
    void (*settle)(trainer*, outcome& result) noexcept;

    void (*hyper)(trainer*, std::size_t group, double* to) noexcept;
    void (*set)(trainer*, std::size_t group, double const* from, outcome& result) noexcept;
    void (*scale)(trainer*, double loss_scale, outcome& result) noexcept;
    double (*norm)(trainer*) noexcept; ///< of the last step's gradients; a NaN where none is known

    void (*save)(trainer*, char const* folder, void const* bytes, std::size_t size, outcome& result) noexcept;
    void (*load)(trainer*, char const* folder, void* to, reply_function reply, outcome& result) noexcept;
    void (*state)(trainer*, void* to, range_function reply, outcome& result) noexcept;
};

} // namespace herring::torch

namespace HERRING_NAMESPACE::torch_calls {

template <class Element, class... Policies> class trainer_of {
    using handle = herring::torch::trainer;
    using pack = resolve_t<Element, Policies...>;
    using reducer = herring::reducer<Element, Policies...>;

    static constexpr bool averages = detail::skips_steps<typename pack::sync>;
    static constexpr bool updates = detail::optimizes<typename pack::optimizer>;
    static_assert(averages || updates,
                  "herring::torch::training_of: names neither an optimizer nor a sync policy that skips "
                  "steps; name herring::optimizer::adamw, say, or herring::sync::every<8>");

    struct none {
        struct hyper {};
    };
    static constexpr auto with_values() {
        if constexpr (updates)
            return typename pack::optimizer();
        else if constexpr (pack::sync::facts.outer)
            return typename pack::sync::outer();
        else
            return none();
    }
    using optimizer = decltype(with_values());
    using hyper_type = typename optimizer::hyper;
    static constexpr std::size_t hypers =
        std::is_empty_v<hyper_type> ? 0 : sizeof(hyper_type) / sizeof(double);

    world ranks_; // destroyed last
    layout tensors_;
    std::optional<reducer> reducer_; // not on a server

    trainer_of(world joined, layout tensors) : ranks_(std::move(joined)), tensors_(std::move(tensors)) {
        if (ranks_.role() == role::worker) reducer_.emplace(ranks_, tensors_);
    }

    static trainer_of& from(handle* of) noexcept { return *reinterpret_cast<trainer_of*>(of); }
    static reducer& reducer_of(handle* of) noexcept { return *from(of).reducer_; }
    template <class Run>
    static void run(handle* of, outcome& result, char const* operation, Run&& run) noexcept {
        store_outcome(result, from(of).ranks_.rank(), operation, [&] {
            run(reducer_of(of));
            return status();
        });
    }

    // ---- the table's functions ----------------------------------------------------------------------------

    static char const* hyper_name([[maybe_unused]] std::size_t i) noexcept {
        if constexpr (hypers > 0)
            return detail::hyper_members<optimizer>()[i];
        else
            return nullptr;
    }
    static handle* open(training const& with, outcome& result) noexcept {
        trainer_of* opened = nullptr;
        store_outcome(result, with.rank, "join", [&] {
            std::vector<tensor_spec> tensors;
            for (tensor_entry const& one : std::span(with.tensors, with.count))
                tensors.push_back({one.name, one.elements, one.group});
            join_options options;
            options.role = with.rank < with.size - with.servers ? role::worker : role::server;
            opened = new trainer_of(
                join_through(with.through, with.rank, with.size, with.timeout_ms, std::move(options)),
                layout(std::move(tensors)));
            return status();
        });
        return reinterpret_cast<handle*>(opened);
    }
    static void close(handle* of) noexcept { delete &from(of); }
    static void serve(handle* of, outcome& result) noexcept {
        store_outcome(result, from(of).ranks_.rank(), "serve", [&] {
            if constexpr (pack::placement::facts.dedicated_servers)
                herring::serve<reducer>(from(of).ranks_, from(of).tensors_);
            return status();
        });
    }

    static void start(handle* of, std::int32_t root, void const* const* given, outcome& result) noexcept {
        run(of, result, "start", [&](reducer& train) {
            train.start(root, [&](std::size_t i, std::span<Element> to) {
                if (!to.empty()) std::memcpy(to.data(), given[i], to.size_bytes());
            });
        });
    }
    static void* gradient(handle* of, std::size_t i) noexcept { return reducer_of(of).tensor(i).data(); }
    static void* weights(handle* of, std::size_t i) noexcept {
        return const_cast<Element*>(reducer_of(of).weights(i).data());
    }

    static void ready(handle* of, std::size_t i, outcome& result) noexcept {
        run(of, result, "ready", [&](reducer& train) { train.ready(i); });
    }
    static std::int32_t wait(handle* of, outcome& result) noexcept {
        step became = step::exchanged;
        run(of, result, "wait", [&](reducer& train) { became = train.wait(); });
        return static_cast<std::int32_t>(became);
    }
    static void settle(handle* of, outcome& result) noexcept {
        run(of, result, "settle", [&](reducer& train) {
            if constexpr (averages)
                for (std::size_t i = 0; i < train.size(); ++i) train.updated(i);
            train.settle();
        });
    }

    static void hyper([[maybe_unused]] handle* of, [[maybe_unused]] std::size_t group,
                      [[maybe_unused]] double* to) noexcept {
        if constexpr (updates)
            std::memcpy(to, &reducer_of(of).hyper(group), sizeof(hyper_type));
        else if constexpr (hypers > 0)
            std::memcpy(to, &reducer_of(of).hyper(), sizeof(hyper_type));
    }
    static void set(handle* of, [[maybe_unused]] std::size_t group, [[maybe_unused]] double const* values,
                    outcome& result) noexcept {
        run(of, result, "set", [&]([[maybe_unused]] reducer& train) {
            hyper_type all;
            if constexpr (hypers > 0) std::memcpy(static_cast<void*>(&all), values, sizeof all);
            if constexpr (updates)
                train.set(group, all);
            else if constexpr (hypers > 0)
                train.set(all);
        });
    }
    static void scale(handle* of, [[maybe_unused]] double loss_scale, outcome& result) noexcept {
        run(of, result, "set_loss_scale", [&]([[maybe_unused]] reducer& train) {
            if constexpr (requires { train.set_loss_scale(loss_scale); })
                train.set_loss_scale(loss_scale);
            else
                throw error(errc::unsupported, from(of).ranks_.rank(), -1, "set_loss_scale",
                            "gradients of 16 bits have a scale of the loss, with an optimizer of Herring's");
        });
    }
    static double norm([[maybe_unused]] handle* of) noexcept {
        if constexpr (requires { reducer_of(of).gradient_norm(); })
            return reducer_of(of).gradient_norm();
        else
            return std::numeric_limits<double>::quiet_NaN();
    }

    static void save(handle* of, char const* folder, void const* bytes, std::size_t size,
                     outcome& result) noexcept {
        run(of, result, "save", [&](reducer& train) {
            train.save(std::string(folder), std::span(static_cast<std::byte const*>(bytes), size));
        });
    }
    static void load(handle* of, char const* folder, void* to, reply_function reply,
                     outcome& result) noexcept {
        run(of, result, "load", [&](reducer& train) {
            std::vector<std::byte> const bytes = train.load(std::string(folder));
            reply(to, bytes.data(), bytes.size());
        });
    }
    static void state(handle* of, [[maybe_unused]] void* to, [[maybe_unused]] range_function reply,
                      outcome& result) noexcept {
        run(of, result, "state", [&]([[maybe_unused]] reducer& train) {
            if constexpr (updates)
                for (auto const& one : train.state())
                    reply(to, one.tensor, one.array, one.offset, one.span.data(), one.span.size());
        });
    }

  public:
    static constexpr training_table table{
        .abi = herring::torch::abi,
        .size = sizeof(training_table),
        .version = HERRING_VERSION_STRING,
        .hypers = hypers,
        .averages = averages,
        .hyper_name = hyper_name,
        .open = open,
        .close = close,
        .serve = serve,
        .start = start,
        .gradient = gradient,
        .weights = weights,
        .ready = ready,
        .wait = wait,
        .settle = settle,
        .hyper = hyper,
        .set = set,
        .scale = scale,
        .norm = norm,
        .save = save,
        .load = load,
        .state = state,
    };
};

} // namespace HERRING_NAMESPACE::torch_calls

namespace herring::torch {
/// The calls of a pack that trains: with an optimizer, or with a sync policy that skips steps.
template <class Element, class... Policies> training_table const& training_of() noexcept {
    return herring::torch_calls::trainer_of<Element, Policies...>::table;
}
} // namespace herring::torch

/// Exports the table of an element type and policies from a shared library, as `herring_torch_training`: in
/// one source file, at its end.
///
/// Example: HERRING_TORCH_TRAINING(float, herring::transport::tcp, herring::optimizer::adamw)
#define HERRING_TORCH_TRAINING(...)                                                                          \
    extern "C" [[gnu::visibility("default")]] herring::torch::training_table const*                          \
    herring_torch_training() {                                                                               \
        return &herring::torch::training_of<__VA_ARGS__>();                                                  \
    }

#endif // HERRING_TORCH_TRAINING_HPP
