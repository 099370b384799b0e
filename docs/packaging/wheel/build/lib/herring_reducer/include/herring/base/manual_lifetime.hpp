// herring: room for a member that is constructed later than its owner.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_BASE_MANUAL_LIFETIME_HPP
#define HERRING_BASE_MANUAL_LIFETIME_HPP

#include "herring/base/config.hpp"

#include <new>
#include <utility>

namespace HERRING_NAMESPACE::detail {

/// Room for one value, constructed once by `emplace` and destroyed with its owner; neither copied nor moved.
/// Costs a fraction of std::optional to compile.
template <class Value> class manual_lifetime {
  public:
    manual_lifetime() noexcept {}
    manual_lifetime(manual_lifetime const&) = delete;
    manual_lifetime& operator=(manual_lifetime const&) = delete;
    ~manual_lifetime() {
        if (constructed_) value_.~Value();
    }

    /// Destroys the value now, if there is one.
    void reset() noexcept {
        if (std::exchange(constructed_, false)) value_.~Value();
    }

    /// Leaves the value without ever destroying it: in a forked child it belongs to the parent.
    void abandon() noexcept { constructed_ = false; }

    /// Constructs the value. At most once.
    template <class... Arguments> Value& emplace(Arguments&&... arguments) {
        Value* const value = ::new (static_cast<void*>(&value_)) Value(std::forward<Arguments>(arguments)...);
        constructed_ = true;
        return *value;
    }

    explicit operator bool() const noexcept { return constructed_; }
    Value& operator*() noexcept { return value_; }
    Value* operator->() noexcept { return &value_; }
    Value const& operator*() const noexcept { return value_; }
    Value const* operator->() const noexcept { return &value_; }

  private:
    union {
        Value value_;
    };
    bool constructed_ = false;
};

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_BASE_MANUAL_LIFETIME_HPP
