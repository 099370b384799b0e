// herring: tests of gpu/runtime.hpp: each clause of runtime_policy fails alone, where a runtime lacks what it asks for.
// SPDX-License-Identifier: Apache-2.0
#include "herring/gpu/runtime.hpp"

#include "gpu_model/host_runtime.hpp"

#include "doctest/doctest.h"

#include <cstddef>
#include <span>
#include <string>

using namespace herring;
namespace rungs = gpu::clauses;
using whole = gpu::host_runtime;

namespace {

/// The clauses that do not hold, by their place in runtime_policy.
template <class Runtime> std::string broken() {
    bool const hold[] = {rungs::reports_errors<Runtime>, rungs::owns_memory<Runtime>,
                         rungs::orders_streams<Runtime>, rungs::copies<Runtime>,
                         rungs::folds<Runtime>,          rungs::inspects<Runtime>,
                         rungs::captures<Runtime>,       rungs::shares_with_peers<Runtime>};
    std::string list;
    bool all = true;
    for (std::size_t i = 0; i < 8; ++i) {
        if (!hold[i]) list += std::to_string(i);
        all = all && hold[i];
    }
    CHECK(gpu::runtime_policy<Runtime> == all);
    return list;
}

struct without_number : whole {
    using whole::whole;
    void number() const = delete;
};
struct with_a_throwing_check : whole {
    using whole::whole;
    char const* check_tensor(void const*) const { return nullptr; }
};
struct without_memory_of_a_size : whole {
    using whole::whole;
    struct memory {
        std::byte* data() const noexcept { return nullptr; }
        void leave() noexcept {}
        operator whole::memory const&() const noexcept; // exported as before
    };
};
struct without_leaving_events : whole {
    using whole::whole;
    void ended(whole::event&) noexcept {} // no answer
};
struct without_copy : whole {
    using whole::whole;
    void copy(stream_handle, gpu::copy_item const&) = delete;
};
struct without_flush : whole {
    using whole::whole;
    void flush() {} // may throw
};
struct with_another_counter : whole {
    using whole::whole;
    struct counter {
        explicit counter(whole&) {}
        gpu::inspection_result value() const noexcept { return {}; }
    };
};
struct without_capture : whole {
    using whole::whole;
    bool captured(stream_handle, graph&) = delete;
};
struct with_exports_that_own : whole {
    using whole::whole;
    struct export_of_memory {
        std::string name;
    };
};

} // namespace

TEST_CASE("runtime_policy: the model of a device has every clause") {
    CHECK(broken<whole>() == "");
    CHECK(gpu::runtime_policy<whole>);
}

TEST_CASE("runtime_policy: a clause that does not hold is the one whose function is missing") {
    CHECK(broken<without_number>() == "0");
    CHECK(broken<with_a_throwing_check>() == "0");
    CHECK(broken<without_memory_of_a_size>() == "1");
    CHECK(broken<without_leaving_events>() == "2");
    CHECK(broken<without_copy>() == "3");
    CHECK(broken<without_flush>() == "4");
    CHECK(broken<with_another_counter>() == "5");
    CHECK(broken<without_capture>() == "6");
    CHECK(broken<with_exports_that_own>() == "7");
}

TEST_CASE("runtime_policy: a type that is no runtime breaks every clause, and is no error") {
    CHECK(broken<int>() == "01234567");
}
