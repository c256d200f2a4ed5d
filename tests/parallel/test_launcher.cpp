// SPDX-License-Identifier: Apache-2.0
#include "parallel/launcher.h"

#include <cstdlib>
#include <map>
#include <string>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;

namespace {

using Variables = std::map<std::string, std::string>;

// The environment holds these launcher variables, and no others, while the object lives.
class Environment {
 public:
  explicit Environment(const Variables& variables) {
    for (const char* name : {"OMPI_COMM_WORLD_SIZE",
                             "OMPI_COMM_WORLD_RANK",
                             "OMPI_COMM_WORLD_LOCAL_RANK",
                             "OMPI_COMM_WORLD_LOCAL_SIZE",
                             "PMI_SIZE",
                             "PMI_RANK",
                             "PMIX_RANK",
                             "SLURM_STEP_NUM_TASKS",
                             "SLURM_PROCID",
                             "SLURM_LOCALID",
                             "SLURM_STEP_NODELIST",
                             "SLURM_STEP_TASKS_PER_NODE",
                             "SLURM_JOB_ID",
                             "SLURM_STEP_ID",
                             "WORLD_SIZE",
                             "RANK",
                             "LOCAL_RANK",
                             "LOCAL_WORLD_SIZE",
                             "MASTER_ADDR",
                             "MASTER_PORT"}) {
      if (const char* value = std::getenv(name)) before_[name] = value;
      unsetenv(name);
    }
    set(variables);
  }
  ~Environment() {
    for (const auto& [name, value] : now_)
      unsetenv(name.c_str());
    set(before_);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  void set(const Variables& variables) {
    for (const auto& [name, value] : variables)
      setenv(name.c_str(), value.c_str(), 1);
    now_ = variables;
  }
  Variables before_, now_;
};

}  // namespace

TEST_CASE("without a launcher there is one process", "[parallel]") {
  const Environment none(Variables{{"SLURM_NTASKS", "8"}});  // a batch script
  const parallel::Launch launch = parallel::read_launch();
  REQUIRE(launch.ranks == 1);
  REQUIRE(launch.rank == 0);
  REQUIRE_FALSE(launch.has_mpi);
  REQUIRE_FALSE(launch.local_size);
}

TEST_CASE("mpirun is found", "[parallel]") {
  const Environment ompi(Variables{{"OMPI_COMM_WORLD_SIZE", "6"},
                                   {"OMPI_COMM_WORLD_RANK", "4"},
                                   {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                   {"OMPI_COMM_WORLD_LOCAL_SIZE", "3"}});
  const parallel::Launch launch = parallel::read_launch();
  REQUIRE(launch.ranks == 6);
  REQUIRE(launch.rank == 4);
  REQUIRE(launch.local_rank == 1);
  REQUIRE(launch.local_size == 3);
  REQUIRE(launch.has_mpi);
}

TEST_CASE("srun is found, with PMIx and without", "[parallel]") {
  Variables variables{{"SLURM_STEP_NUM_TASKS", "16"},
                      {"SLURM_PROCID", "9"},
                      {"SLURM_LOCALID", "1"},
                      {"SLURM_STEP_NODELIST", "gpu[007-010],cpu1"},
                      {"SLURM_STEP_TASKS_PER_NODE", "4(x4)"},
                      {"SLURM_JOB_ID", "1234567"},
                      {"SLURM_STEP_ID", "0"}};
  uint16_t port = 0;
  {
    const Environment slurm(variables);
    const parallel::Launch launch = parallel::read_launch();
    REQUIRE(launch.ranks == 16);
    REQUIRE(launch.rank == 9);
    REQUIRE(launch.local_rank == 1);
    REQUIRE(launch.local_size == 4);
    REQUIRE_FALSE(launch.has_mpi);
    REQUIRE(launch.address == "gpu007");
    port = launch.port;
    REQUIRE(port >= 20000);
  }
  variables["SLURM_STEP_ID"] = "1";
  variables["PMIX_RANK"] = "9";
  const Environment slurm(variables);
  const parallel::Launch launch = parallel::read_launch();
  REQUIRE(launch.has_mpi);
  REQUIRE(launch.port != port);
}

TEST_CASE("a named address goes before that of the launcher", "[parallel]") {
  const Environment torchrun(Variables{{"WORLD_SIZE", "2"},
                                       {"RANK", "1"},
                                       {"SLURM_STEP_NODELIST", "n[1-2]"},
                                       {"MASTER_ADDR", "10.0.0.7"},
                                       {"MASTER_PORT", "29500"}});
  const parallel::Launch launch = parallel::read_launch();
  REQUIRE(launch.ranks == 2);
  REQUIRE(launch.rank == 1);
  REQUIRE(launch.address == "10.0.0.7");
  REQUIRE(launch.port == 29500);
}

TEST_CASE("variables that cannot be are named", "[parallel]") {
  const auto message = [](const Variables& variables) {
    const Environment environment(variables);
    try {
      parallel::read_launch();
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  REQUIRE_THAT(message({{"WORLD_SIZE", "two"}}), ContainsSubstring("'WORLD_SIZE'"));
  REQUIRE_THAT(message({{"WORLD_SIZE", "-1"}}), ContainsSubstring("'WORLD_SIZE'"));
  REQUIRE_THAT(message({{"WORLD_SIZE", "2"}, {"RANK", "2"}}), ContainsSubstring("'RANK'"));
  REQUIRE_THAT(message({{"WORLD_SIZE", "2"}, {"RANK", "0"}, {"MASTER_PORT", "abc"}}),
               ContainsSubstring("'MASTER_PORT'"));
  REQUIRE_THAT(message({{"WORLD_SIZE", "2"}, {"RANK", "0"}, {"MASTER_PORT", "70000"}}),
               ContainsSubstring("'MASTER_PORT'"));
  REQUIRE(message({{"WORLD_SIZE", "2"}, {"RANK", "1"}}).empty());
}

TEST_CASE("torchrun under srun has ranks of its own", "[parallel]") {
  const Environment nested(Variables{{"SLURM_STEP_NUM_TASKS", "1"},
                                     {"SLURM_PROCID", "0"},
                                     {"PMIX_RANK", "0"},
                                     {"WORLD_SIZE", "4"},
                                     {"RANK", "3"},
                                     {"LOCAL_RANK", "3"}});
  const parallel::Launch launch = parallel::read_launch();
  REQUIRE(launch.ranks == 4);
  REQUIRE(launch.rank == 3);
  REQUIRE(launch.local_rank == 3);
  REQUIRE_FALSE(launch.has_mpi);
}

TEST_CASE("the first host of a compressed list", "[parallel]") {
  using parallel::first_host;
  REQUIRE(first_host("node1") == "node1");
  REQUIRE(first_host("node1,node2") == "node1");
  REQUIRE(first_host("node[007-012,020],x1") == "node007");
  REQUIRE(first_host("node[3,5]") == "node3");
  REQUIRE(first_host("rack[1-2]node[04-08].site,other") == "rack1node04.site");
}
