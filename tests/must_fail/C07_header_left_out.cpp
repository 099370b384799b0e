// herring: must not compile: work in gaps without its header, which herring.hpp leaves out.
// SPDX-License-Identifier: Apache-2.0
#include "herring/herring.hpp"

#include "herring/progress/progress.hpp"
#include "herring/transport/tcp.hpp"

#include <chrono>

#ifdef HERRING_TWIN
#include "herring/in_gaps.hpp"
#endif

struct task {
    std::chrono::nanoseconds quantum() noexcept { return std::chrono::microseconds(50); }
    bool next() noexcept { return false; }
};
using reducer = herring::reducer<float, herring::transport::tcp, herring::progress::thread>;
void train(reducer& reduce, task& idle) {
    auto work = reduce.in_gaps(idle);
    work.wait();
}
