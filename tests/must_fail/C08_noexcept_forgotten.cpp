// herring: must not compile: a task for gaps whose quanta may throw.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"

#include "herring/in_gaps.hpp"
#include "herring/progress/progress.hpp"
#include "herring/transport/tcp.hpp"

#include <chrono>

struct task {
    std::chrono::nanoseconds quantum() noexcept { return std::chrono::microseconds(50); }
#ifdef HERRING_TWIN
    bool next() noexcept { return false; }
#else
    bool next() { return false; }
#endif
};
using reducer = herring::reducer<float, herring::transport::tcp, herring::progress::thread>;
void train(reducer& reduce, task& idle) {
    auto work = reduce.in_gaps(idle);
    work.wait();
}
