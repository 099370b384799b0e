// herring: waits in an event loop of Boost.Asio's until a descriptor of an ensemble's is readable.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_ENSEMBLE_ASIO_READINESS_HPP
#define HERRING_ENSEMBLE_ASIO_READINESS_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/transport/tcp/boost_asio.hpp"

#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include <fcntl.h>

namespace HERRING_NAMESPACE::detail::ensembles {

/// At most one wait at a time, whoever asks for it.
///
/// Threads: any.
class asio_readiness {
  public:
    using executor_type = boost::asio::any_io_executor;

    /// The descriptor is duplicated.
    /// Errors: `no_resources`.
    HERRING_SETUP asio_readiness(executor_type executor, int descriptor, char const* operation)
        : descriptor_(std::move(executor)) {
        int const own = ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0);
        boost::system::error_code problem;
        if (own >= 0) (void)descriptor_.assign(own, problem);
        if (own < 0 || problem)
            throw error(errc::no_resources, -1, -1, operation,
                        {"no descriptor for the event loop: ", std::strerror(errno), "; raise ulimit -n"});
    }

    executor_type get_executor() noexcept { return descriptor_.get_executor(); }

    /// Has the event loop call `then` once the descriptor is readable. Nothing where a wait is under way, or after `cancel`.
    template <class Then> void wait(Then then) {
        std::lock_guard const lock(mutex_);
        if (waits_ || cancelled_) return;
        waits_ = true;
        descriptor_.async_wait(boost::asio::posix::descriptor_base::wait_read,
                               [then = std::move(then)](boost::system::error_code ended) mutable {
                                   if (!ended) then();
                               });
    }
    /// In `then`: the next wait may begin.
    void done() {
        std::lock_guard const lock(mutex_);
        waits_ = false;
    }
    /// Ends a wait, whose function is not called, and refuses those to come.
    HERRING_SETUP void cancel() {
        std::lock_guard const lock(mutex_);
        cancelled_ = true;
        boost::system::error_code ignored;
        descriptor_.close(ignored);
    }

  private:
    // A descriptor that is only waited for; Asio's own has a destructor for derived ones.
    struct waitable : boost::asio::posix::basic_descriptor<executor_type> {
        using boost::asio::posix::basic_descriptor<executor_type>::basic_descriptor;
    };

    std::mutex mutex_{};
    waitable descriptor_;
    bool waits_ = false;
    bool cancelled_ = false;
};

} // namespace HERRING_NAMESPACE::detail::ensembles

#endif // HERRING_ENSEMBLE_ASIO_READINESS_HPP
