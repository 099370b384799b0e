// herring: the stand-in for the reducer of a refused pack.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_STEP_INERT_HPP
#define HERRING_STEP_INERT_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/control/world.hpp"
#include "herring/engine/counters.hpp"
#include "herring/machine/time.hpp"
#include "herring/model/layout.hpp"
#include "herring/model/range.hpp"
#include "herring/model/step_outcome.hpp"
#include "herring/plan/plan.hpp"
#include "herring/policy/policy.hpp"
#include "herring/update/update.hpp"

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace HERRING_NAMESPACE::detail {

/// Weights are the program's, and the same on every rank: all update them by the same gradients. See
/// `basic_lazy_reducer`.
template <class Element> struct every_step_calls {
    static constexpr bool due(std::size_t) noexcept { return true; }
    static constexpr bool synchronized(std::size_t) noexcept { return true; }
    void updated(std::size_t) noexcept {}
    void updated(std::size_t, std::span<Element>) noexcept {}
    void settle() noexcept {}
    status settle(std::chrono::milliseconds) noexcept { return {}; }
    status settle(time_point) noexcept { return {}; }
};

/// Returned after a sentence of the compiler: converts to any type that the caller expects.
struct inert_result {
    template <class Anything> operator Anything() const noexcept;
    bool ok() const noexcept { return false; }
    void value() const noexcept {}
};

} // namespace HERRING_NAMESPACE::detail

namespace HERRING_NAMESPACE {

/// Stands for the reducer of a refused pack. The sentence about the pack has been printed, and nothing else
/// is to be: so this takes every call that a reducer takes, and returns the same types. The functions of
/// `herring/collectives/` take it too.
template <class Element> class basic_reducer<rejected<Element>> : public detail::every_step_calls<Element> {
  public:
    using element_type = Element;
    explicit basic_reducer(world&) noexcept {}
    template <class... Anything> basic_reducer(world&, layout const&, Anything&&...) noexcept {}
    basic_reducer(basic_reducer const&) = delete;
    basic_reducer& operator=(basic_reducer const&) = delete;
    ~basic_reducer() {} // as a reducer's: an object that is only constructed is not «unused»

    std::size_t size() const noexcept { return 0; }
    range owned(std::size_t, int = 0) const noexcept { return {}; }
    std::span<Element> tensor(std::size_t) { return {}; }
    void ready(std::size_t) {}
    void ready(std::size_t, std::span<Element>) {}
    step wait() { return step::exchanged; }
    status wait(std::chrono::milliseconds) { return {}; }
    status wait(time_point) { return {}; }
    void poll() {}
    bool done() { return true; }
    void all_reduce(std::span<Element>) {}
    status all_reduce(std::span<Element>, std::chrono::milliseconds) { return {}; }
    status all_reduce(std::span<Element>, time_point) { return {}; }
    void all_reduce(std::span<Element const>, std::span<Element>) {}
    status all_reduce(std::span<Element const>, std::span<Element>, std::chrono::milliseconds) { return {}; }
    status all_reduce(std::span<Element const>, std::span<Element>, time_point) { return {}; }
    Element all_reduce(Element value) { return value; }
    status all_reduce(Element&, std::chrono::milliseconds) { return {}; }
    status all_reduce(Element&, time_point) { return {}; }
    template <class Buffer, class... More>
    requires(update_policy<More> || ...) //
        detail::inert_result all_reduce(Buffer&&, More const&...) {
        return {};
    }
    struct hyper_type {
        template <class Anything> hyper_type& operator=(Anything const&) { return *this; }
    };
    template <class Fill> void start(int, Fill&&) {}
    std::span<Element> weights(std::size_t) { return {}; }
    hyper_type hyper(std::size_t = 0) const noexcept { return {}; }
    hyper_type state() const noexcept { return {}; }
    template <class Hyper> void set(Hyper const&) {}
    template <class Hyper> void set(std::size_t, Hyper const&) {}
    void freeze(std::size_t, bool = true) {}
    bool frozen(std::size_t) const noexcept { return false; }
    double loss_scale() const noexcept { return 1; }
    void set_loss_scale(double) {}
    double gradient_norm() const noexcept { return 0; }
    detail::inert_result norms(std::size_t) const noexcept { return {}; }
    std::size_t groups() const noexcept { return 0; }
    void save(std::string const&, std::span<std::byte const> = {}) {}
    template <class Fill> void save(std::string const&, Fill&&, std::span<std::byte const> = {}) {}
    std::vector<std::byte> load(std::string const&) { return {}; }
    step outcome() const noexcept { return step::exchanged; }
    herring::plan const& plan() const noexcept { return plan_; }
    herring::counters counters() const noexcept { return {}; }

    struct inert {
        template <class... Anything> void operator()(Anything&&...) const noexcept {}
    };
    inert& trace() noexcept { return inert_; }
    inert& transport() noexcept { return inert_; }
    inert& intra_node() noexcept { return inert_; }

  private:
    herring::plan plan_;
    inert inert_;
};

} // namespace HERRING_NAMESPACE

#endif // HERRING_STEP_INERT_HPP
