// herring: a host's addresses, looked up without waiting for them.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_NAME_LOOKUP_HPP
#define HERRING_ENSEMBLE_NAME_LOOKUP_HPP

#include "herring/base/address.hpp"
#include "herring/base/config.hpp"
#include "herring/base/fixed_array.hpp"
#include "herring/base/start_thread.hpp"
#include "herring/base/time.hpp"
#include "herring/control/control.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include <pthread.h>

namespace HERRING_NAMESPACE::detail::ensembles {

/// A name that is looked up by a thread of its own, so that a slow resolver stops nothing else.
class name_lookup {
  public:
    HERRING_SETUP name_lookup(std::string const& host, std::uint16_t port, time_point deadline)
        : shared_(std::make_shared<question>()) {
        shared_->host = host;
        shared_->port = port;
        shared_->deadline = deadline;
        auto* const held = new std::shared_ptr<question>(shared_);
        pthread_t thread;
        if (start_thread(thread, answer, held) != 0) {
            delete held;
            shared_->why = "no thread for the resolver";
            shared_->done.store(true);
            return;
        }
        ::pthread_detach(thread);
    }

    bool done() const noexcept { return shared_->done.load(std::memory_order_acquire); }
    /// Once done.
    fixed_array<endpoint>& found() noexcept { return shared_->found; }
    std::string const& why() const noexcept { return shared_->why; }

  private:
    struct question {
        std::string host{};
        std::uint16_t port = 0;
        time_point deadline{};
        fixed_array<endpoint> found{};
        std::string why{};
        std::atomic<bool> done{false};
    };
    HERRING_SETUP static void* answer(void* argument) {
        std::unique_ptr<std::shared_ptr<question>> const held(
            static_cast<std::shared_ptr<question>*>(argument));
        question& q = **held;
        q.found = resolve(q.host, q.port, q.deadline, q.why);
        q.done.store(true, std::memory_order_release);
        return nullptr;
    }

    std::shared_ptr<question> shared_;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_NAME_LOOKUP_HPP
