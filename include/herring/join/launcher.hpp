// herring: the launcher of this process: rank, size and address of rank 0 by its variables.
// SPDX-License-Identifier: Apache-2.0
#ifndef HERRING_JOIN_LAUNCHER_HPP
#define HERRING_JOIN_LAUNCHER_HPP

#include "herring/base/config.hpp"
#include "herring/base/text.hpp"
#include "herring/control/variables.hpp"
#include "herring/machine/identity.hpp"
#include "herring/model/join_options.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace HERRING_NAMESPACE::detail {

inline constexpr int most_ranks = 1 << 20;

/// Rank and size of this process, by options or by variables of a launcher.
struct launcher {
    enum class kind {
        none,
        program, ///< the program itself: options, or HERRING_RANK and HERRING_SIZE
        torchrun,
        mpi,
        slurm
    };
    kind is = kind::none;
    int rank = 0;
    int size = 1;
    std::string source = "no launcher"; ///< where the rank comes from, for errors
    std::string job{};                  ///< a name of the job that all its ranks know
    bool one_machine = false;           ///< all ranks are on this machine

    bool known() const noexcept { return is != kind::none; }
};

/// An address as programs write it.
struct host_and_port {
    std::string host{};
    std::uint16_t port = 0;
};

/// Returns the first host of a Slurm node list: "gpu[07-09,12],login" → "gpu07"; empty if it is no such list.
HERRING_SETUP inline std::string first_host(std::string_view list) {
    std::string host;
    for (std::size_t i = 0; i < list.size() && list[i] != ','; ++i) {
        if (list[i] != '[') {
            host += list[i];
            continue;
        }
        std::size_t const close = list.find(']', i);
        if (close == std::string_view::npos) return {};
        for (++i; i < close && list[i] != '-' && list[i] != ','; ++i) host += list[i];
        i = close;
    }
    return host;
}

/// Returns the port that all ranks of a job derive from its name: 20000 to 31999, below the ports that Linux
/// assigns by itself.
HERRING_SETUP inline std::uint16_t port_for(std::string_view job) noexcept {
    return static_cast<std::uint16_t>(20'000 + hash_of(job.data(), job.size()) % 12'000);
}

/// Throws if this process would run alone though a launcher has started it as one of several: by a variable
/// from which the number of ranks and the address of rank 0 do not follow.
HERRING_SETUP inline void check_no_launcher(variables const& from) {
    static constexpr struct {
        char const *variable, *launcher;
    } known[] = {{"PMIX_RANK", "PMIx"},
                 {"PALS_RANKID", "PALS"},
                 {"FLUX_TASK_RANK", "Flux"},
                 {"JSM_NAMESPACE_RANK", "jsrun"},
                 {"MV2_COMM_WORLD_RANK", "MVAPICH2"},
                 {"ALPS_APP_PE", "aprun"}};
    // Open MPI's MPI_Init sets PMIX_RANK=0 without a launcher. With several ranks another rank throws.
    for (auto const& one : known) {
        bool const pmix = one.variable == known[0].variable;
        if (!from.has(one.variable) || (pmix && from.text(one.variable) == "0")) continue;
        bad_setting({one.variable, " is '", from.text(one.variable), "', so a launcher of ", one.launcher,
                     " has started this rank, and join does not know from it how many ranks there are and "
                     "where rank 0 is; ",
                     pmix ? "call herring::join_pmix() (herring/join/pmix.hpp); or " : "",
                     "set HERRING_RANK and HERRING_SIZE from the launcher's variables and "
                     "HERRING_ADDR=host:port of rank 0, or call join(MPI_COMM_WORLD) in an MPI program; to "
                     "run alone, HERRING_RANK=0 HERRING_SIZE=1"});
    }
}

/// Reads rank and size from two variables, of which both are set, or neither. True if they are set.
HERRING_SETUP inline bool read_rank_and_size(launcher& into, launcher::kind is, char const* source,
                                             variables const& from, char const* rank, char const* size) {
    if (!from.has(rank) && !from.has(size)) return false;
    if (!from.has(rank) || !from.has(size)) {
        char const* const there = from.has(rank) ? rank : size;
        char const* const lacks = from.has(rank) ? size : rank;
        bad_setting({there, " is '", from.text(there), "' but ", lacks,
                     " is not set; set both, or neither to run alone"});
    }
    into.is = is;
    into.size = from.number(size, 1, most_ranks);
    into.rank = from.number(rank, 0, most_ranks - 1);
    into.source = source;
    return true;
}

/// Reads rank and size if options give at least one of them.
HERRING_SETUP inline void read_options(launcher& into, join_options const& options, variables const& from) {
    into.is = launcher::kind::program;
    into.source = "join_options";
    if (options.size >= 0)
        into.size = options.size;
    else if (from.has("HERRING_SIZE"))
        into.size = from.number("HERRING_SIZE", 1, most_ranks);
    else
        bad_setting({"join_options::rank is ", options.rank,
                     " but neither join_options::size nor HERRING_SIZE is set; set one of them"});
    if (options.rank >= 0)
        into.rank = options.rank;
    else if (from.has("HERRING_RANK"))
        into.rank = from.number("HERRING_RANK", 0, most_ranks - 1);
    else
        bad_setting({"join_options::size is ", options.size,
                     " but neither join_options::rank nor HERRING_RANK is set; set one of them"});
}

/// Returns rank and size by options or by the variables of Herring, torchrun, Open MPI, MPICH/Hydra or Slurm,
/// in this order.
///
/// Errors: `bad_argument` naming the variable and its value.
HERRING_SETUP inline launcher find_launcher(join_options const& options, variables const& from) {
    using kind = launcher::kind;
    launcher found;
    if (options.rank >= most_ranks || options.size > most_ranks)
        bad_setting({"join_options say rank ", options.rank, " of ", options.size, "; at most ", most_ranks,
                     " ranks join"});
    auto const by = [&](kind is, char const* source, char const* rank, char const* size) {
        return read_rank_and_size(found, is, source, from, rank, size);
    };
    auto const all_are_local = [&](char const* local_ranks) {
        return from.has(local_ranks) && from.number(local_ranks, 1, most_ranks) == found.size;
    };
    if (options.rank >= 0 || options.size >= 0) {
        read_options(found, options, from);
    } else if (by(kind::program, "HERRING_RANK and HERRING_SIZE", "HERRING_RANK", "HERRING_SIZE")) {
    } else if (by(kind::torchrun, "torchrun (RANK and WORLD_SIZE)", "RANK", "WORLD_SIZE")) {
        found.job = from.text("TORCHELASTIC_RUN_ID");
    } else if (by(kind::mpi, "Open MPI (OMPI_COMM_WORLD_RANK and _SIZE)", "OMPI_COMM_WORLD_RANK",
                  "OMPI_COMM_WORLD_SIZE")) {
        found.one_machine = all_are_local("OMPI_COMM_WORLD_LOCAL_SIZE");
        found.job = from.text("PMIX_NAMESPACE");
        if (found.job.empty()) found.job = from.text("OMPI_MCA_ess_base_jobid");
    } else if (by(kind::mpi, "MPICH (PMI_RANK and PMI_SIZE)", "PMI_RANK", "PMI_SIZE")) {
        found.one_machine = all_are_local("MPI_LOCALNRANKS");
        // srun --mpi=pmi2 sets the same two variables.
        if (!found.one_machine && from.has("SLURM_JOB_ID")) found.is = kind::slurm;
    } else if (from.has("SLURM_PROCID") && (from.has("SLURM_STEP_NUM_TASKS") || from.has("SLURM_NTASKS"))) {
        // Only srun sets both: a batch script, or a shell in an allocation, runs alone.
        by(kind::slurm, "Slurm (SLURM_PROCID and SLURM_NTASKS)", "SLURM_PROCID",
           from.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS");
    }
    if (found.known() && (found.size < 1 || found.rank >= found.size))
        bad_setting({"rank ", found.rank, " of ", found.size, " (from ", found.source,
                     ") is out of range; ranks go from 0 to ", found.size - 1});
    return found;
}

/// Reads the name of the job and, if the step has several nodes, its first host.
HERRING_SETUP inline void read_slurm(launcher& into, host_and_port& at, variables const& from) {
    into.job = text({"slurm ", from.text("SLURM_JOB_ID"), ".",
                     from.text(from.has("SLURM_STEP_ID") ? "SLURM_STEP_ID" : "SLURM_STEPID")});
    char const* const nodes = from.has("SLURM_STEP_NUM_NODES") ? "SLURM_STEP_NUM_NODES" : "SLURM_NNODES";
    char const* const list = from.has("SLURM_STEP_NODELIST") ? "SLURM_STEP_NODELIST" : "SLURM_NODELIST";
    into.one_machine = from.has(nodes) && from.number(nodes, 1, most_ranks) == 1;
    if (into.one_machine || !from.has(list)) return;
    at.host = first_host(from.text(list));
    if (at.host.empty())
        bad_setting({list, " is '", from.text(list),
                     "', which is not a node list; set HERRING_ADDR=host:port of rank 0"});
}

/// Returns the address of rank 0 by a launcher's variables. `parent`: process id of this process's parent.
///
/// Errors: `bad_argument`, if no address follows.
HERRING_SETUP inline host_and_port find_rank_0(launcher by, variables const& from, long long parent) {
    using kind = launcher::kind;
    host_and_port at;
    bool const own = by.is == kind::program;
    if (by.is == kind::slurm) read_slurm(by, at, from);
    if (!own && at.host.empty() && from.has("MASTER_ADDR")) {
        at.host = from.text("MASTER_ADDR");
        // torchrun's store listens on MASTER_PORT.
        if (from.has("MASTER_PORT"))
            at.port = static_cast<std::uint16_t>(from.number("MASTER_PORT", 1, 65534) + 1);
    } else if (!own && at.host.empty() && by.one_machine) {
        at.host = "127.0.0.1";
    }
    if (at.host.empty())
        bad_setting({by.source, own ? " say" : " says", " rank ", by.rank, " of ", by.size,
                     ", but nothing says where rank 0 is",
                     own ? "" : " and the ranks are not known to be on one machine",
                     by.is == kind::torchrun ? "; set MASTER_ADDR and MASTER_PORT (torchrun does), or "
                     : by.is == kind::slurm
                         ? "; start the program by srun, which sets SLURM_STEP_NODELIST, or set "
                         : "; set ",
                     "HERRING_ADDR=host:port, an address of rank 0's machine and a free port there"});
    if (at.port == 0) {
        if (by.job.empty()) {
            if (!by.one_machine)
                bad_setting({"MASTER_ADDR is '", at.host,
                             "' but MASTER_PORT is not set; set it, or HERRING_ADDR=host:port"});
            by.job = text({"parent ", parent});
        }
        at.port = port_for(by.job);
    }
    return at;
}

} // namespace HERRING_NAMESPACE::detail

#endif // HERRING_JOIN_LAUNCHER_HPP
