// herring: `join_pmix()`: becomes one rank of a world, in a job whose launcher is a PMIx server.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_JOIN_PMIX_HPP
#define HERRING_JOIN_PMIX_HPP

#include "herring/base/config.hpp"
#include "herring/base/error.hpp"
#include "herring/base/text.hpp"
#include "herring/control/control.hpp"
#include "herring/control/variables.hpp"
#include "herring/control/world.hpp"
#include "herring/join/gather.hpp"
#include "herring/join/gather_call.hpp"
#include "herring/machine/futex.hpp"
#include "herring/machine/time.hpp"
#include "herring/model/join_options.hpp"

#include <pmix.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>
#include <unistd.h>

namespace HERRING_NAMESPACE {

namespace detail {

/// An attribute of a call of PMIx.
HERRING_SETUP inline pmix_info_t pmix_attribute(std::string_view key) noexcept {
    pmix_info_t made{};
    std::copy(key.begin(), key.end(), made.key);
    made.value.type = PMIX_BOOL;
    made.value.data.flag = true;
    return made;
}
HERRING_SETUP inline pmix_info_t pmix_attribute(std::string_view key, int number) noexcept {
    pmix_info_t made = pmix_attribute(key);
    made.value.type = PMIX_INT;
    made.value.data.integer = number;
    return made;
}

/// This process as PMIx knows it, from the first join on until the process exits. A PMIx_Finalize before
/// would end fences in which other ranks of the job are, and an exit without one is a crash to a launcher.
class pmix_session {
  public:
    /// Errors: `unreachable` without a server; `bad_state` in a process that was forked off after a join.
    HERRING_SETUP static pmix_proc_t const& of_process() {
        static pmix_session const session;
        if (session.owner_ == ::getpid()) return session.self_;
        throw error(
            errc::bad_state, -1, -1, "join",
            "this process was forked off from one that PMIx knows, and PMIx does not know this one; call "
            "join_pmix() in processes that the launcher has started");
    }
    pmix_session(pmix_session const&) = delete;
    pmix_session& operator=(pmix_session const&) = delete;

  private:
    HERRING_SETUP pmix_session() {
        if (!variables::of_process().is_set("PMIX_NAMESPACE"))
            throw error(
                errc::unreachable, -1, -1, "join",
                "no launcher has started this process as one of a PMIx job: PMIX_NAMESPACE is not set; "
                "start it by srun --mpi=pmix, prterun or mpirun of Open MPI, or call join()");
        if (pmix_status_t const rc = PMIx_Init(&self_, nullptr, 0); rc != PMIX_SUCCESS)
            throw error(
                errc::unreachable, -1, -1, "join",
                {"PMIx_Init failed: ", PMIx_Error_string(rc),
                 ": the PMIx server of this process's launcher does not answer; see whether the launcher "
                 "runs on this node, and has a PMIx that libpmix (",
                 PMIx_Get_version(), ") understands"});
    }
    ~pmix_session() {
        if (owner_ == ::getpid()) PMIx_Finalize(nullptr, 0);
    }

    pid_t owner_ = ::getpid();
    pmix_proc_t self_{};
};

/// The gather over PMIx.
class pmix_gather {
  public:
    /// Errors: those of `pmix_session`; `unsupported` where the server does not give the job's size.
    HERRING_SETUP explicit pmix_gather(std::chrono::milliseconds timeout)
        : timeout_(timeout), deadline_(deadline_in(timeout)), self_(pmix_session::of_process()),
          rank_(static_cast<int>(self_.rank)) {
        static std::atomic<unsigned> joins{0}; // the same on every rank
        join_ = joins++;
        constexpr int max_int = std::numeric_limits<int>::max(); // too many for a world: join says so
        read(PMIX_RANK_WILDCARD, PMIX_JOB_SIZE, pmix_attribute(PMIX_IMMEDIATE),
             [&](pmix_value_t const& value) {
                 if (value.type == PMIX_UINT32)
                     size_ = static_cast<int>(std::min<std::uint32_t>(value.data.uint32, max_int));
             });
        if (size_ < 1)
            throw error(errc::unsupported, rank_, -1, "join",
                        "the launcher's PMIx server does not say how many processes the job has "
                        "(PMIX_JOB_SIZE); set HERRING_RANK, HERRING_SIZE and HERRING_ADDR, and call join()");
    }

    int rank() const noexcept { return rank_; }
    int size() const noexcept { return size_; }

    /// Puts the bytes of this rank, and returns those of all.
    ///
    /// Errors: `timeout` or `peer_lost` where a rank has put nothing; `unsupported` where PMIx fails.
    HERRING_SETUP std::vector<std::vector<char>> operator()(std::span<std::byte const> mine) {
        std::string const key = text({"herring.", join_, ".", calls_++});
        std::vector<char> bytes(reinterpret_cast<char const*>(mine.data()),
                                reinterpret_cast<char const*>(mine.data()) + mine.size());
        pmix_value_t given{};
        given.type = PMIX_BYTE_OBJECT;
        given.data.bo.bytes = bytes.data();
        given.data.bo.size = bytes.size();
        check(PMIx_Put(PMIX_GLOBAL, key.c_str(), &given), "PMIx_Put");
        check(PMIx_Commit(), "PMIx_Commit");
        if (pmix_status_t const rc = fence(); rc != PMIX_SUCCESS)
            throw absent(first_absent(key), "PMIx_Fence", rc);
        std::vector<std::vector<char>> all(static_cast<std::size_t>(size_));
        for (int r = 0; r < size_; ++r) {
            std::vector<char>& reply = all[static_cast<std::size_t>(r)];
            // Servers let a fence that has timed out succeed for some.
            pmix_status_t const rc = read(
                static_cast<pmix_rank_t>(r), key.c_str(),
                pmix_attribute(PMIX_TIMEOUT, std::min(seconds_left(), 5)), [&](pmix_value_t const& value) {
                    if (value.type == PMIX_BYTE_OBJECT)
                        reply.assign(value.data.bo.bytes, value.data.bo.bytes + value.data.bo.size);
                });
            if (rc != PMIX_SUCCESS) throw absent(r, "PMIx_Get", rc);
        }
        return all;
    }

  private:
    /// A fence under way: a thread of PMIx ends it, perhaps after the one that waits has given up.
    struct pending {
        pmix_proc_t job{};
        pmix_info_t how[2]{};
        pmix_status_t status = PMIX_ERR_TIMEOUT;
        std::atomic<std::uint32_t> over{0};
    };

    HERRING_SETUP int seconds_left() const noexcept {
        auto const left = std::chrono::ceil<std::chrono::seconds>(deadline_ - clock::now()).count();
        return static_cast<int>(std::max<long>(left, 1));
    }

    /// Waits until every process of the job has called this, at most until the deadline, which the server may
    /// keep or not.
    HERRING_SETUP pmix_status_t fence() const {
        auto const mine = std::make_shared<pending>();
        mine->job = self_;
        mine->job.rank = PMIX_RANK_WILDCARD;
        mine->how[0] = pmix_attribute(PMIX_COLLECT_DATA);
        mine->how[1] = pmix_attribute(PMIX_TIMEOUT, seconds_left());
        auto peers = std::make_unique<std::shared_ptr<pending>>(mine);
        pmix_status_t const begun = PMIx_Fence_nb(
            &mine->job, 1, mine->how, 2,
            [](pmix_status_t status, void* data) {
                std::unique_ptr<std::shared_ptr<pending>> const fence(
                    static_cast<std::shared_ptr<pending>*>(data));
                (*fence)->status = status;
                (*fence)->over.store(1, std::memory_order_release);
                futex_wake((*fence)->over, false);
            },
            peers.get());
        if (begun == PMIX_OPERATION_SUCCEEDED) return PMIX_SUCCESS;
        if (begun != PMIX_SUCCESS) return begun;
        (void)peers.release(); // the function's now
        while (mine->over.load(std::memory_order_acquire) == 0) {
            auto const rest = deadline_ + std::chrono::milliseconds(500) - clock::now();
            if (rest.count() <= 0) return PMIX_ERR_TIMEOUT;
            futex_wait(mine->over, 0, rest, false);
        }
        return mine->status;
    }

    /// Calls `take` with a value of `rank`, if there is one.
    template <class Take>
    HERRING_SETUP pmix_status_t read(pmix_rank_t rank, char const* key, pmix_info_t const& how,
                                     Take&& take) const {
        pmix_proc_t of = self_;
        of.rank = rank;
        pmix_value_t* value = nullptr;
        pmix_status_t const rc = PMIx_Get(&of, key, &how, 1, &value);
        if (rc == PMIX_SUCCESS && value != nullptr) take(*value);
        if (value != nullptr) PMIX_VALUE_RELEASE(value);
        return rc;
    }

    /// Returns the first rank of this node without bytes, or −1. Those of other nodes may be here or not.
    HERRING_SETUP int first_absent(std::string const& key) const {
        std::string near = ",";
        read(PMIX_RANK_WILDCARD, PMIX_LOCAL_PEERS, pmix_attribute(PMIX_IMMEDIATE),
             [&](pmix_value_t const& value) {
                 if (value.type == PMIX_STRING) append(near, {std::string_view(value.data.string), ","});
             });
        for (int r = 0; r < size_; ++r)
            if (near.find(text({",", r, ","})) != std::string::npos &&
                read(static_cast<pmix_rank_t>(r), key.c_str(), pmix_attribute(PMIX_IMMEDIATE),
                     [](pmix_value_t const&) {}) != PMIX_SUCCESS)
                return r;
        return -1;
    }

    /// Returns the error of a call that ended since `rank` has put nothing; −1: another one.
    HERRING_SETUP error absent(int rank, char const* call, pmix_status_t rc) const {
        bool const late = rc == PMIX_ERR_TIMEOUT;
        return error(late ? errc::timeout : errc::peer_lost, rank_, rank, "join",
                     {"not every process of the PMIx job has called join_pmix()", late ? " within " : "",
                      late ? duration_text(timeout_) : std::string(), ": ", call, " ended with ",
                      PMIx_Error_string(rc), "; let each of the ", size_,
                      " processes that the launcher has started call it, as often as the others"});
    }

    HERRING_SETUP void check(pmix_status_t rc, char const* call) const {
        if (rc == PMIX_SUCCESS) return;
        throw error(
            errc::unsupported, rank_, -1, "join",
            {call, " failed: ", PMIx_Error_string(rc), "; see what the launcher says of its PMIx server"});
    }

    std::chrono::milliseconds timeout_;
    time_point deadline_;
    pmix_proc_t self_;
    int rank_, size_ = 0;
    unsigned join_ = 0, calls_ = 0;
};

} // namespace detail

/// Joins the processes of this PMIx job, in the order of their ranks there: all that one srun --mpi=pmix,
/// prterun or mpirun has started, also from several programs. Collective over them.
///
/// PMIx gives number and order of the ranks; all other settings are those of `join()`. Rank 0 listens on
/// HERRING_ADDR if that is set, else on a free port: of HERRING_INTERFACE, of 127.0.0.1 if all ranks are on
/// one node, or of its first address that is not loopback. If no rank has a secret, rank 0 draws one, and
/// PMIx carries it to the others.
///
/// Cost:     PMIx_Put, PMIx_Commit and a PMIx_Fence that collects data, twice; PMIx_Init in the first call of
///           a process, and PMIx_Finalize when the process exits, also beside others that use PMIx, as MPI
///           does.
/// Threads:  PMIx has one, which sleeps until the process exits.
/// Blocks:   until every process has called it, at most `options.timeout`; then as `join()`.
/// Errors:   as `join()`. `unreachable` without a PMIx server; `timeout` where a rank has not called this,
///           naming it if it is on this node, `peer_lost` where it has exited; `unsupported` where PMIx
///           fails; `bad_state` in a process that was forked off after a join.
/// Example:  herring::world world = herring::join_pmix();
HERRING_SETUP inline world join_pmix(join_options const& options = {}) {
    detail::pmix_gather by(options.timeout);
    auto const gather = [&](std::span<std::byte const> mine) { return by(mine); };
    return detail::join_by(detail::gather_call::by(gather), by.rank(), by.size(), options,
                           {"PMIx", "worlds", true});
}

} // namespace HERRING_NAMESPACE

#endif // HERRING_JOIN_PMIX_HPP
