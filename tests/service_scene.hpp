// herring: a service with two tenants in a process of its own, and jobs of processes that ask it for servers.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_TESTS_SERVICE_SCENE_HPP
#define HERRING_TESTS_SERVICE_SCENE_HPP

#include "free_port.hpp"
#include "herring/crypto/random.hpp"
#include "herring/crypto/secret.hpp"
#include "herring/herring.hpp"
#include "herring/join.hpp"
#include "herring/service.hpp"
#include "herring/transport/tcp.hpp"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/// Temporary files: keys of alice and bob, and the file of tenants.
class tenant_files {
  public:
    tenant_files() {
        char name[] = "/tmp/herring-service-XXXXXX";
        folder = ::mkdtemp(name);
        for (char const* const who : {"alice", "bob"}) {
            write_key(who);
            std::filesystem::create_directory(path(std::string("checkpoints-") + who));
        }
        write_tenants(line("alice", 3, 8, "4G", 4) + line("bob", 1, 2, "4G", 1));
    }
    ~tenant_files() { std::filesystem::remove_all(folder); }

    std::string path(std::string const& name) const { return folder + "/" + name; }
    void write_key(std::string const& who) const {
        std::ofstream(path(who)) << herring::detail::secret_text(herring::detail::random_nonce()) << "\n";
        ::chmod(path(who).c_str(), 0600);
    }
    std::string line(std::string const& who, int share, int ranks, std::string const& bytes, int jobs) const {
        std::ostringstream out;
        out << who << ' ' << path(who) << ' ' << share << ' ' << ranks << ' ' << bytes << ' ' << jobs << ' '
            << path("checkpoints-" + who) << '\n';
        return out.str();
    }
    void write_tenants(std::string const& text) const { std::ofstream(path("tenants")) << text; }
    std::string read(std::string const& name) const {
        std::ostringstream out;
        out << std::ifstream(path(name)).rdbuf();
        return out.str();
    }

    std::string folder;
};

/// A process that runs `Service`. What it says goes to the file `log`.
template <class Service> class service_process {
  public:
    explicit service_process(tenant_files const& files, herring::service_options options = {})
        : files_(files), address(options.listen.empty() ? free_address() : options.listen) {
        options.listen = address;
        options.tenants = files.path("tenants");
        if (options.ranks == 0) options.ranks = 8;
        if (options.memory == 0) options.memory = std::uint64_t{8} << 30;
        options.metrics = files.path("metrics");
        std::fflush(nullptr);
        pid = ::fork();
        if (pid != 0) {
            while (files_.read("log").find("listens on") == std::string::npos && running()) ::usleep(2'000);
            return;
        }
        int status = 1;
        std::freopen(files.path("log").c_str(), "a", stderr);
        std::setvbuf(stderr, nullptr, _IOLBF, 4096);
        try {
            Service(options).run();
            status = 0;
        } catch (std::exception const& why) {
            std::fprintf(stderr, "%s\n", why.what());
        }
        ::_exit(status);
    }
    ~service_process() {
        if (pid > 0 && running()) {
            ::kill(pid, SIGKILL);
            (void)end();
        }
    }

    bool running() const {
        return ::waitid(P_PID, static_cast<id_t>(pid), &ended_, WEXITED | WNOHANG | WNOWAIT) == 0 &&
               ended_.si_pid == 0;
    }
    /// Waits until the log has these words; false after 20 s.
    bool says(std::string const& words) const {
        for (int i = 0; i < 4000; ++i) {
            if (files_.read("log").find(words) != std::string::npos) return true;
            ::usleep(5'000);
        }
        std::fprintf(stderr, "the service never said «%s»:\n%s", words.c_str(), files_.read("log").c_str());
        return false;
    }
    /// Waits until a line of the metrics, "jobs{tenant=\"alice\"}", has at least this value; false after 20 s.
    bool reaches(std::string const& line, double value) const {
        std::string const front = "\nherring_service_" + line + ' ';
        for (int i = 0; i < 4000; ++i) {
            std::string const all = files_.read("metrics");
            std::size_t const at = all.find(front);
            if (at != std::string::npos && std::atof(all.c_str() + at + front.size()) >= value) return true;
            ::usleep(5'000);
        }
        std::fprintf(stderr, "%s never reached %g:\n%s", line.c_str(), value, files_.read("metrics").c_str());
        return false;
    }
    /// Exit status; −signal.
    int end() {
        int raw = 0;
        ::waitpid(std::exchange(pid, -1), &raw, 0);
        return WIFEXITED(raw) ? WEXITSTATUS(raw) : -WTERMSIG(raw);
    }

  private:
    tenant_files const& files_;
    mutable ::siginfo_t ended_{};

  public:
    std::string const address;
    pid_t pid = -1;
};

/// Worker processes of one job.
class job {
  public:
    /// Each of `workers` ranks joins, with `wanted`, and calls `function(world&)`; its status is 0, or 1 after an exception, whose
    /// text is a line of `said()`. `joins`: how, which may change the options.
    job(
        tenant_files const& files, int workers, herring::lent_servers const& wanted,
        std::function<void(herring::world&)> const& function,
        std::chrono::milliseconds timeout = std::chrono::seconds(20),
        herring::world (*joins)(herring::join_options&) =
            [](herring::join_options& how) { return herring::join(how); })
        : log_(files.path("job" + std::to_string(next_++))) {
        std::string const address = free_address(),
                          secret = herring::detail::secret_text(herring::detail::random_nonce());
        std::fflush(nullptr);
        for (int r = 0; r < workers; ++r) {
            pid_t const pid = ::fork();
            if (pid == 0) {
                int status = 0;
                try {
                    herring::join_options how;
                    how.rank = r;
                    how.size = workers;
                    how.address = address;
                    how.secret = secret;
                    how.timeout = timeout;
                    how.node = "node" + std::to_string(r);
                    how.servers = wanted;
                    herring::world w = joins(how);
                    function(w);
                } catch (std::exception const& why) {
                    std::ofstream(log_, std::ios::app) << why.what() << std::endl;
                    status = 1;
                }
                ::_exit(status);
            }
            pids.push_back(pid);
        }
    }
    ~job() {
        for (pid_t const pid : pids) ::kill(pid, SIGKILL);
        (void)failures();
    }

    /// Waits for all; how many ended otherwise than with 0.
    int failures() {
        int wrong = 0;
        for (pid_t const pid : std::exchange(pids, {})) {
            int raw = 0;
            ::waitpid(pid, &raw, 0);
            wrong += raw != 0;
        }
        return wrong;
    }
    std::string said() const {
        std::ostringstream out;
        out << std::ifstream(log_).rdbuf();
        return out.str();
    }

    std::vector<pid_t> pids;

  private:
    inline static int next_ = 0;
    std::string log_;
};

#endif // HERRING_TESTS_SERVICE_SCENE_HPP
