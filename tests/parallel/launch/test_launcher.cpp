// SPDX-License-Identifier: Apache-2.0
#include "parallel/launch/launcher.h"

#include <cstdlib>
#include <map>
#include <string>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;

namespace {

using Variables = std::map<std::string, std::string>;

constexpr const char* kNames[]{"OMPI_COMM_WORLD_SIZE",
                               "OMPI_COMM_WORLD_RANK",
                               "OMPI_COMM_WORLD_LOCAL_RANK",
                               "OMPI_COMM_WORLD_LOCAL_SIZE",
                               "MV2_COMM_WORLD_SIZE",
                               "MV2_COMM_WORLD_RANK",
                               "PMI_SIZE",
                               "PMI_RANK",
                               "PMI_LOCAL_RANK",
                               "PMI_LOCAL_SIZE",
                               "MPI_LOCALRANKID",
                               "MPI_LOCALNRANKS",
                               "PALS_LOCAL_RANKID",
                               "PALS_LOCAL_SIZE",
                               "PMIX_RANK",
                               "JSM_NAMESPACE_SIZE",
                               "JSM_NAMESPACE_RANK",
                               "JSM_NAMESPACE_LOCAL_RANK",
                               "JSM_NAMESPACE_LOCAL_SIZE",
                               "FLUX_JOB_SIZE",
                               "FLUX_TASK_RANK",
                               "FLUX_TASK_LOCAL_ID",
                               "FLUX_JOB_NNODES",
                               "FLUX_JOB_ID",
                               "SLURM_STEP_NUM_TASKS",
                               "SLURM_PROCID",
                               "SLURM_LOCALID",
                               "SLURM_NODEID",
                               "SLURM_STEP_NODELIST",
                               "SLURM_STEP_TASKS_PER_NODE",
                               "SLURM_JOB_ID",
                               "SLURM_STEP_ID",
                               "SLURM_STEPID",
                               "LSB_JOBID",
                               "TORCHELASTIC_RUN_ID",
                               "WORLD_SIZE",
                               "RANK",
                               "LOCAL_RANK",
                               "LOCAL_WORLD_SIZE",
                               "MASTER_ADDR",
                               "MASTER_PORT"};

// The environment holds these launcher variables, and no others, while the object lives.
class Environment {
 public:
  explicit Environment(const Variables& variables) {
    for (const char* name : kNames) {
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
    REQUIRE(launch.launcher == "srun");
    REQUIRE(launch.ranks == 16);
    REQUIRE(launch.rank == 9);
    REQUIRE(launch.local_rank == 1);
    REQUIRE(launch.local_size == 4);
    REQUIRE_FALSE(launch.has_mpi);
    REQUIRE(parallel::read_meeting_point(launch).address == "gpu007");
    port = parallel::read_meeting_point(launch).port;
    REQUIRE(port >= 20000);
  }
  variables["SLURM_STEP_ID"] = "1";
  variables["PMIX_RANK"] = "9";
  const Environment slurm(variables);
  const parallel::Launch launch = parallel::read_launch();
  REQUIRE(launch.has_mpi);
  REQUIRE(parallel::read_meeting_point(launch).port != port);
}

TEST_CASE("numbers of jobs and steps may be as large as they are", "[parallel]") {
  Variables variables{{"SLURM_STEP_NUM_TASKS", "2"},
                      {"SLURM_PROCID", "1"},
                      {"SLURM_LOCALID", "1"},
                      {"SLURM_STEP_NODELIST", "n1"},
                      {"SLURM_STEP_ID", "0"}};
  for (const char* job : {"2952160490", "4294967295", "18446744073709551615",
                          "99999999999999999999999", "of letters"}) {
    variables["SLURM_JOB_ID"] = job;
    const Environment slurm(variables);
    const parallel::Launch launch = parallel::read_launch();
    REQUIRE(launch.ranks == 2);
    const uint16_t port = parallel::read_meeting_point(launch).port;
    REQUIRE((port >= 20000 && port < 32000));
  }
}

TEST_CASE("the shell of an interactive job is no launcher, and what runs in it counts",
          "[parallel]") {
  Variables variables{{"SLURM_JOB_ID", "1731344"},   {"SLURM_STEP_ID", "4294967290"},
                      {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "0"},
                      {"SLURM_LOCALID", "0"},        {"SLURM_STEP_TASKS_PER_NODE", "4"},
                      {"SLURM_STEP_NODELIST", "n1"}};
  {
    const Environment shell(variables);
    const parallel::Launch launch = parallel::read_launch();
    REQUIRE(launch.ranks == 1);
    REQUIRE(launch.launcher.empty());
  }
  {  // older versions have one name only
    Variables older = variables;
    older.erase("SLURM_STEP_ID");
    older["SLURM_STEPID"] = "4294967290";
    const Environment shell(older);
    REQUIRE(parallel::read_launch().ranks == 1);
  }
  variables.insert({{"OMPI_COMM_WORLD_SIZE", "2"},
                    {"OMPI_COMM_WORLD_RANK", "1"},
                    {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                    {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  const Environment mpirun(variables);
  const parallel::Launch launch = parallel::read_launch();
  REQUIRE(launch.launcher == "mpirun");
  REQUIRE((launch.ranks == 2 && launch.rank == 1));
  REQUIRE((launch.local_rank == 1 && launch.local_size == 2));
}

TEST_CASE("processes of a host are those of its own number in Slurm's list", "[parallel]") {
  Variables variables{{"SLURM_STEP_NUM_TASKS", "7"},
                      {"SLURM_PROCID", "6"},
                      {"SLURM_LOCALID", "0"},
                      {"SLURM_STEP_TASKS_PER_NODE", "2(x3),1"}};
  const auto local_size = [&](const char* node) {
    if (node) variables["SLURM_NODEID"] = node;
    const Environment slurm(variables);
    return parallel::read_launch().local_size;
  };
  REQUIRE_FALSE(local_size(nullptr));  // of any of several
  REQUIRE(local_size("0") == 2);
  REQUIRE(local_size("2") == 2);
  REQUIRE(local_size("3") == 1);
  REQUIRE_FALSE(local_size("4"));
  REQUIRE_FALSE(local_size("x"));
  variables["SLURM_STEP_TASKS_PER_NODE"] = "nonsense";  // counted later
  REQUIRE_FALSE(local_size("0"));
  variables["SLURM_STEP_TASKS_PER_NODE"] = "7";
  REQUIRE(local_size("0") == 7);
}

TEST_CASE("compressed lists of numbers", "[parallel]") {
  using parallel::number_on_node;
  REQUIRE(number_on_node("4", 0) == 4);
  REQUIRE(number_on_node("4(x2)", 1) == 4);
  REQUIRE_FALSE(number_on_node("4(x2)", 2));
  REQUIRE(number_on_node("1,2(x4294967290),3", 5) == 2);
  REQUIRE(number_on_node("72,128(x2),72", 3) == 72);
  for (const char* text : {"", "x", "(x2)", "2(x", "2(x)", "2(y3)", "-1", "99999999999"})
    REQUIRE_FALSE(number_on_node(text, 0));
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
  const parallel::MeetingPoint point = parallel::read_meeting_point(launch);
  REQUIRE(point.address == "10.0.0.7");
  REQUIRE(point.port == 29500);
}

TEST_CASE("flux and jsrun are found, with MPI and without", "[parallel]") {
  Variables variables{{"FLUX_JOB_SIZE", "8"},
                      {"FLUX_TASK_RANK", "5"},
                      {"FLUX_TASK_LOCAL_ID", "5"},
                      {"FLUX_JOB_NNODES", "1"},
                      {"FLUX_JOB_ID", "f2Xyz"}};
  {
    const Environment flux(variables);
    const parallel::Launch launch = parallel::read_launch();
    REQUIRE(launch.launcher == "flux");
    REQUIRE((launch.ranks == 8 && launch.rank == 5 && launch.local_rank == 5));
    REQUIRE(launch.local_size == 8);
    REQUIRE_FALSE(launch.has_mpi);
    REQUIRE(parallel::read_meeting_point(launch).address == "127.0.0.1");
  }
  variables["FLUX_JOB_NNODES"] = "2";
  variables["FLUX_TASK_LOCAL_ID"] = "1";
  {
    const Environment flux(variables);
    const parallel::Launch launch = parallel::read_launch();
    REQUIRE_FALSE(launch.local_size);
    REQUIRE_THROWS_WITH(parallel::read_meeting_point(launch), ContainsSubstring("'MASTER_ADDR'"));
  }
  {  // as it starts programs unless told otherwise
    Variables pmi = variables;
    pmi.insert({{"PMI_SIZE", "8"}, {"PMI_RANK", "5"}});
    const Environment flux(pmi);
    const parallel::Launch launch = parallel::read_launch();
    REQUIRE((launch.has_mpi && launch.rank == 5 && launch.local_rank == 1));
  }
  const Environment jsrun(Variables{{"JSM_NAMESPACE_SIZE", "12"},
                                    {"JSM_NAMESPACE_RANK", "7"},
                                    {"JSM_NAMESPACE_LOCAL_RANK", "1"},
                                    {"JSM_NAMESPACE_LOCAL_SIZE", "6"}});
  const parallel::Launch launch = parallel::read_launch();
  REQUIRE(launch.launcher == "jsrun");
  REQUIRE((launch.ranks == 12 && launch.rank == 7));
  REQUIRE((launch.local_rank == 1 && launch.local_size == 6));
  REQUIRE_THROWS_WITH(parallel::read_meeting_point(launch), ContainsSubstring("'MASTER_ADDR'"));
}

TEST_CASE("PMI says who is where, or the launcher behind it does", "[parallel]") {
  Variables variables{{"PMI_SIZE", "4"}, {"PMI_RANK", "3"}};
  const auto local = [&](const Variables& more) {
    Variables all = variables;
    all.insert(more.begin(), more.end());
    const Environment environment(all);
    const parallel::Launch launch = parallel::read_launch();
    REQUIRE((launch.has_mpi && launch.ranks == 4 && launch.rank == 3));
    return std::pair(launch.local_rank.value_or(-1), launch.local_size.value_or(-1));
  };
  REQUIRE(local({}) == std::pair(-1, -1));
  REQUIRE(local({{"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}}) == std::pair(1, 2));
  REQUIRE(local({{"PMI_LOCAL_RANK", "1"}, {"PMI_LOCAL_SIZE", "2"}}) == std::pair(1, 2));
  const Variables srun{{"SLURM_STEP_NUM_TASKS", "4"},
                       {"SLURM_PROCID", "3"},
                       {"SLURM_LOCALID", "1"},
                       {"SLURM_NODEID", "1"},
                       {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"}};
  REQUIRE(local(srun) == std::pair(1, 2));
  const auto by_srun = [&](Variables more) {
    more.insert(variables.begin(), variables.end());
    const Environment environment(more);
    return parallel::read_launch().srun_pmi2;
  };
  REQUIRE(by_srun(srun));
  REQUIRE_FALSE(by_srun({}));
  // Variables of a step that started something else, in which this was started.
  Variables other = srun;
  other["SLURM_STEP_NUM_TASKS"] = "2";
  other["SLURM_PROCID"] = "0";
  REQUIRE(local(other) == std::pair(-1, -1));
  REQUIRE_FALSE(by_srun(other));
}

TEST_CASE("what other launchers left stops nothing", "[parallel]") {
  const Variables rubbish{{"SLURM_JOB_ID", "?"},
                          {"SLURM_STEP_ID", "?"},
                          {"SLURM_STEP_NUM_TASKS", "?"},
                          {"SLURM_PROCID", "?"},
                          {"SLURM_LOCALID", "?"},
                          {"SLURM_STEP_TASKS_PER_NODE", "?"},
                          {"PMI_SIZE", "?"},
                          {"PMI_RANK", "?"},
                          {"MPI_LOCALRANKID", "?"},
                          {"FLUX_JOB_SIZE", "?"},
                          {"FLUX_TASK_RANK", "?"},
                          {"MASTER_PORT", "?"},
                          {"WORLD_SIZE", "?"},
                          {"RANK", "?"}};
  Variables all = rubbish;
  all.insert({{"OMPI_COMM_WORLD_SIZE", "2"},
              {"OMPI_COMM_WORLD_RANK", "1"},
              {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
              {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}});
  {
    const Environment mpirun(all);
    const parallel::Launch launch = parallel::read_launch();
    REQUIRE((launch.ranks == 2 && launch.rank == 1 && launch.has_mpi));
  }
  Variables empty;  // as good as absent
  for (const char* name : kNames)
    empty[name] = "";
  const Environment nothing(empty);
  REQUIRE(parallel::read_launch().ranks == 1);
}

TEST_CASE("variables that cannot be are named", "[parallel]") {
  const auto message = [](const Variables& variables) {
    const Environment environment(variables);
    try {
      parallel::read_meeting_point(parallel::read_launch());
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
  REQUIRE_THAT(message({{"WORLD_SIZE", "4294967290"}, {"RANK", "1"}}),
               ContainsSubstring("'WORLD_SIZE': the environment has '4294967290'"));
}

TEST_CASE("variables that contradict each other are named, both", "[parallel]") {
  const auto message = [](const Variables& variables) {
    const Environment environment(variables);
    try {
      parallel::read_launch();
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const auto names = [&](const Variables& variables, const char* one, const char* other) {
    const std::string text = message(variables);
    INFO(text);
    return text.find(one) != std::string::npos && text.find(other) != std::string::npos;
  };
  REQUIRE(names({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "5"}},
                "'OMPI_COMM_WORLD_RANK'", "OMPI_COMM_WORLD_SIZE"));
  const Variables two{{"WORLD_SIZE", "2"}, {"RANK", "1"}};
  Variables more = two;
  more["LOCAL_WORLD_SIZE"] = "3";
  REQUIRE(names(more, "'LOCAL_WORLD_SIZE'", "(WORLD_SIZE)"));
  more = two;
  more.insert({{"LOCAL_WORLD_SIZE", "1"}, {"LOCAL_RANK", "1"}});
  REQUIRE(names(more, "'LOCAL_RANK'", "LOCAL_WORLD_SIZE"));
  REQUIRE(names({{"WORLD_SIZE", "2"}}, "'WORLD_SIZE'", "RANK"));
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

TEST_CASE("torchrun under mpirun has ranks of its own, variables by hand do not", "[parallel]") {
  Variables variables{{"OMPI_COMM_WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "1"},
                      {"WORLD_SIZE", "8"},           {"RANK", "6"},
                      {"LOCAL_RANK", "2"},           {"LOCAL_WORLD_SIZE", "4"}};
  {
    const Environment by_hand(variables);
    REQUIRE(parallel::read_launch().launcher == "mpirun");
    REQUIRE(parallel::read_launch().ranks == 2);
  }
  variables["TORCHELASTIC_RUN_ID"] = "none";
  const Environment torchrun(variables);
  const parallel::Launch launch = parallel::read_launch();
  REQUIRE(launch.launcher == "torchrun");
  REQUIRE((launch.ranks == 8 && launch.rank == 6 && launch.local_rank == 2));
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
