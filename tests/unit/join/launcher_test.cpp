// herring: tests of join/launcher.hpp: which launcher is found, and where rank 0 is by its variables.
// SPDX-License-Identifier: Apache-2.0
#include "herring/join/launcher.hpp"

#include "doctest/doctest.h"

#include "herring/error.hpp"

#include <string>
#include <vector>

using namespace herring;
using detail::find_launcher, detail::find_rank_0, detail::launcher;
using kind = launcher::kind;

namespace {
/// A process with these variables.
struct process {
    std::vector<char const*> entries;
    explicit process(std::vector<char const*> set) : entries(std::move(set)) { entries.push_back(nullptr); }
    detail::variables variables() const { return detail::variables(entries.data()); }
    launcher found(join_options const& options = {}) const { return find_launcher(options, variables()); }
    std::string rank_0() const {
        auto const at = find_rank_0(found(), variables(), 4711);
        return at.host + ":" + std::to_string(at.port);
    }
};
template <class Call> std::string refused(Call const& call) {
    try {
        call();
    } catch (error const& why) {
        return why.code() == errc::bad_argument ? why.what() : "another error";
    }
    return "no error";
}
} // namespace

TEST_CASE("launcher: each is known by its variables, Herring's own first") {
    CHECK_FALSE(process({"PATH=/bin"}).found().known());
    std::vector<char const*> all{"SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=2", "SLURM_JOB_ID=9"};
    CHECK(process(all).found().is == kind::slurm);
    all.insert(all.end(), {"PMI_RANK=2", "PMI_SIZE=3", "MPI_LOCALNRANKS=3"});
    CHECK(process(all).found().is == kind::mpi);
    all.insert(all.end(), {"OMPI_COMM_WORLD_RANK=3", "OMPI_COMM_WORLD_SIZE=4"});
    CHECK(process(all).found().rank == 3);
    all.insert(all.end(), {"RANK=4", "WORLD_SIZE=5"});
    CHECK(process(all).found().is == kind::torchrun);
    all.insert(all.end(), {"HERRING_RANK=5", "HERRING_SIZE=6"});
    launcher const by_variables = process(all).found();
    CHECK(by_variables.is == kind::program);
    CHECK((by_variables.rank == 5 && by_variables.size == 6));
    join_options options;
    options.rank = 1;
    launcher const by_options = process(all).found(options);
    CHECK((by_options.rank == 1 && by_options.size == 6 && by_options.source == "join_options"));
}

TEST_CASE("launcher: where rank 0 is") {
    CHECK(process({"RANK=1", "WORLD_SIZE=2", "MASTER_ADDR=10.0.0.1", "MASTER_PORT=29500"}).rank_0() ==
          "10.0.0.1:29501");
    process const local({"OMPI_COMM_WORLD_RANK=1", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_LOCAL_SIZE=2"});
    CHECK(local.rank_0().starts_with("127.0.0.1:"));
    // srun --mpi=pmi2 is Slurm, whose list of nodes says it; the port follows from the job.
    std::vector<char const*> pmi2{"PMI_RANK=1",      "PMI_SIZE=2",     "SLURM_JOB_ID=77",
                                  "SLURM_STEP_ID=0", "SLURM_NNODES=2", "SLURM_NODELIST=gpu[07-09]"};
    CHECK(process(pmi2).found().is == kind::slurm);
    std::string const there = process(pmi2).rank_0();
    CHECK(there.starts_with("gpu07:"));
    pmi2[3] = "SLURM_STEP_ID=1";
    CHECK(process(pmi2).rank_0() != there);
}

TEST_CASE("launcher: what is missing or impossible is named") {
    CHECK(refused([] { process({"RANK=1"}).found(); }).find("WORLD_SIZE is not set") != std::string::npos);
    CHECK(refused([] {
              process({"RANK=2", "WORLD_SIZE=2"}).found();
          }).find("rank 2 of 2") != std::string::npos);
    CHECK(refused([] {
              process({"RANK=1", "WORLD_SIZE=2"}).rank_0();
          }).find("set MASTER_ADDR") != std::string::npos);
    CHECK(refused([] {
              process({"HERRING_RANK=1", "HERRING_SIZE=2"}).rank_0();
          }).find("HERRING_ADDR") != std::string::npos);
    CHECK(refused([] {
              detail::check_no_launcher(process({"FLUX_TASK_RANK=0"}).variables());
          }).find("Flux") != std::string::npos);
}
