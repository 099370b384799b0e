// herring: a small limit of file sizes, for tests of what writes files.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_FILE_LIMIT_HPP
#define HERRING_TESTS_FILE_LIMIT_HPP

#include <csignal>

#include <sys/resource.h>

namespace herring::tests {

/// Of this process; a write beyond ends it, by a signal.
class file_limit {
  public:
    explicit file_limit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_DFL)) {
        ::getrlimit(RLIMIT_FSIZE, &usual_);
        rlimit small = usual_;
        small.rlim_cur = bytes;
        ::setrlimit(RLIMIT_FSIZE, &small);
    }
    ~file_limit() {
        ::setrlimit(RLIMIT_FSIZE, &usual_);
        std::signal(SIGXFSZ, handler_);
    }
    file_limit(file_limit const&) = delete;
    file_limit& operator=(file_limit const&) = delete;

  private:
    rlimit usual_{};
    void (*handler_)(int);
};

} // namespace herring::tests

#endif // HERRING_TESTS_FILE_LIMIT_HPP
