// SPDX-License-Identifier: Apache-2.0
// `aifs-train forecast` from a trained run, with its data, as users call it.
#include "app/forecast_tools/make_forecasts.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/file_io.h"
#include "core/time.h"
#include "data/sources/analytic_dataset.h"
#include "data/sources/netcdf_file.h"
#include "tests/app/program.h"
#include "tests/support/catch.h"

using namespace aifs;

namespace {

constexpr const char* kTenSteps =
    "--set train.max_steps=10 --set checkpoint.every_steps=0 --set train.validation.every_epochs=0 "
    "--set train.validation.at_end=false ";

test::CommandResult forecast(const fs::path& run, const fs::path& out, const std::string& more,
                             const std::string& launcher = "") {
  return test::run_command(concat(launcher, "'", test::program("aifs-train").string(),
                                  "' forecast '", run.string(), "' --out '", out.string(), "' ",
                                  more));
}

void require_success(const test::CommandResult& result) {
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
}

std::vector<double> field(const fs::path& file, const std::string& variable) {
  const data::NetcdfFile netcdf(file.string());
  const data::NetcdfVariable* found = netcdf.find(variable);
  REQUIRE(found);
  return netcdf.read_all(*found);
}

// The fields of all variables and lead times.
std::vector<double> all_fields(const fs::path& file) {
  std::vector<double> all;
  for (const char* name : {"u_850", "v_500", "z_250", "ke_850"})
    for (const double value : field(file, name))
      all.push_back(value);
  return all;
}

// The waves of tests/app/tiny.json.
data::AnalyticOptions tiny_waves() {
  data::AnalyticOptions options;
  options.start = "2020-01-01";
  options.end = "2020-02-29";
  options.max_degree = 6;
  return options;
}

// Those of configs/lam_demo.json, which are the same flow on two levels.
data::AnalyticOptions lam_waves() {
  data::AnalyticOptions options = tiny_waves();
  options.levels = {{850, 14300, 8, 8}, {500, 54600, 15, 12}};
  return options;
}

// Weighted with the cosine of latitude, of one variable of a file at one lead time.
double rmse(const fs::path& file, const data::AnalyticOptions& waves, const std::string& variable,
            int64_t date_s, size_t lead) {
  const data::AnalyticDataset dataset(waves, field(file, "latitude"), field(file, "longitude"));
  const data::DatasetInfo& info = dataset.info();
  std::vector<float> truth(static_cast<size_t>(info.num_nodes() * info.num_variables()));
  dataset.evaluate(date_s, {0, info.num_nodes()}, truth);
  const std::vector<double> values = field(file, variable);
  const auto n = static_cast<size_t>(info.num_nodes());
  const auto width = static_cast<size_t>(info.num_variables());
  const auto column = static_cast<size_t>(info.column(variable));
  double sum = 0.0, weights = 0.0;
  for (size_t i = 0; i < n; ++i) {
    const double weight = std::cos(info.latitudes_deg[i] * 0.017453292519943295);
    const double error = values[lead * n + i] - static_cast<double>(truth[i * width + column]);
    sum += weight * error * error;
    weights += weight;
  }
  return std::sqrt(sum / weights);
}

}  // namespace

TEST_CASE("a forecast has the errors that the validation of its run says", "[make_forecasts]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "run", out = folder.path() / "out";
  require_success(test::run_train(run, kTenSteps));
  require_success(test::run_train(
      run,
      "--validate-only --set train.validation.max_dates=1 --set 'train.validation.lead_times="
      "[\"6h\",\"18h\"]' --set data.validation.start=2020-02-01 --set "
      "data.validation.end=2020-02-02"));
  const auto figures = nlohmann::json::parse(read_file(run / "validation-step-10.json"));
  require_success(forecast(run, out, "--dates 2020-02-01T06 --lead-time 18h"));
  const fs::path file = out / "forecast-20200201T0600.nc";
  const int64_t start = parse_date("2020-02-01T06");
  for (const char* variable : {"u_850", "v_500", "z_250", "ke_850"}) {
    INFO(variable);
    const auto& leads = figures["lead_times"];
    const double first = leads["6h"]["rmse"][variable], last = leads["18h"]["rmse"][variable];
    REQUIRE(rmse(file, tiny_waves(), variable, start + 6 * 3600, 0) == Approx(first).epsilon(1e-5));
    REQUIRE(rmse(file, tiny_waves(), variable, start + 18 * 3600, 2) == Approx(last).epsilon(1e-5));
  }
}

TEST_CASE("a forecast of a limited area has its cells, and the truth around them",
          "[make_forecasts]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "run", out = folder.path() / "out";
  const std::string config = (test::source_folder() / "configs/lam_demo.json").string();
  std::string options = kTenSteps;
  for (const char* assignment :
       {"run.device=cpu", "model.channels=8", "model.layers=1", "data.analytic.region.spacing=5",
        "data.analytic.grid=o8", "graph.nodes.hidden.refinement=3", "data.training.end=2020-01-05"})
    options += concat("--set ", assignment, " ");
  require_success(test::run_train(run, options, config));
  require_success(test::run_train(
      run,
      options + "--validate-only --set train.validation.max_dates=1 --set "
                "'train.validation.lead_times=[\"6h\",\"18h\"]' --set "
                "train.validation.weights=cos_latitude --set data.validation.end=2020-07-02",
      config));
  const auto figures = nlohmann::json::parse(read_file(run / "validation-step-10.json"));
  require_success(forecast(run, out, "--dates 2020-07-01T06 --lead-time 18h"));
  const fs::path file = out / "forecast-20200701T0600.nc";
  for (const double latitude : field(file, "latitude"))
    REQUIRE((latitude >= 38.0 && latitude <= 68.0));
  const int64_t start = parse_date("2020-07-01T06");
  for (const char* variable : {"u_850", "z_500", "ke_850"}) {
    INFO(variable);
    const auto& leads = figures["lead_times"];
    const double first = leads["6h"]["rmse_inside_lam"][variable];
    const double last = leads["18h"]["rmse_inside_lam"][variable];
    REQUIRE(rmse(file, lam_waves(), variable, start + 6 * 3600, 0) == Approx(first).epsilon(1e-5));
    REQUIRE(rmse(file, lam_waves(), variable, start + 18 * 3600, 2) == Approx(last).epsilon(1e-5));
  }
  const auto beyond = forecast(run, out, "--dates 2020-07-31 --lead-time 2d");
  REQUIRE(beyond.exit_code == 3);
  REQUIRE_THAT(beyond.err, ContainsSubstring("2020-08-01T00:00:00"));
}

TEST_CASE("forecasts go beyond the dataset, are made once, and belong to what made them",
          "[make_forecasts]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "run", out = folder.path() / "out";
  require_success(test::run_train(run, kTenSteps));
  const std::string all = "--first 2020-02-28T18 --last 2020-02-29T18 --every 12h --lead-time 1d ";
  require_success(forecast(run, out, all));
  const fs::path last = out / "forecast-20200229T1800.nc";
  REQUIRE(field(last, "lead_time") == std::vector<double>{6, 12, 18, 24});
  for (const double value : all_fields(last))
    REQUIRE(std::isfinite(value));
  const std::string before = read_file(last);
  fs::remove(out / "forecast-20200228T1800.nc");
  const auto again = forecast(run, out, all);
  require_success(again);
  REQUIRE_THAT(again.err, ContainsSubstring("2 of 3 forecasts are there already"));
  REQUIRE(fs::exists(out / "forecast-20200228T1800.nc"));
  REQUIRE(read_file(last) == before);
  const auto other = forecast(run, out, all + "--set train.precision=fp64");
  REQUIRE(other.exit_code == 2);
  REQUIRE_THAT(other.err, ContainsSubstring("is another forecast") && ContainsSubstring("'--out'"));
  const auto other_states = forecast(run, out, all + "--set data.analytic.seed=9");
  REQUIRE(other_states.exit_code == 2);
  REQUIRE_THAT(other_states.err, ContainsSubstring("is another forecast"));
  require_success(forecast(run, folder.path() / "stores",
                           "--dates 2020-02-01T06 --format zarr"
                           " --lead-time 12h"));
  const auto info = test::run_command(
      concat("'", test::program("aifs-train").string(), "' data info '",
             (folder.path() / "stores/forecast-20200201T0600.zarr").string(), "'"));
  require_success(info);
  REQUIRE_THAT(info.out, ContainsSubstring("2020-02-01T12:00:00") && ContainsSubstring("u_850"));
  require_success(forecast(run, folder.path() / "few",
                           "--dates 2020-02-01T06 --lead-time 6h --variables z_250,u_850"));
  const data::NetcdfFile few((folder.path() / "few/forecast-20200201T0600.nc").string());
  REQUIRE(few.find("z_250"));
  REQUIRE_FALSE(few.find("ke_850"));
}

#ifdef AIFS_HAVE_MPI
TEST_CASE("ranks that share forecasts or dates give the same fields as one", "[make_forecasts]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "run";
  require_success(test::run_train(run, kTenSteps));
  const std::string dates = "--dates 2020-02-01T06,2020-02-07 --lead-time 2d ";
  require_success(forecast(run, folder.path() / "one", dates));
  require_success(forecast(run, folder.path() / "replicas", dates, test::mpirun(2)));
  require_success(
      forecast(run, folder.path() / "shared", dates + "--set parallel.model=3", test::mpirun(3)));
  for (const char* name : {"forecast-20200201T0600.nc", "forecast-20200207T0000.nc"}) {
    const std::vector<double> one = all_fields(folder.path() / "one" / name);
    REQUIRE(all_fields(folder.path() / "replicas" / name) == one);
    const std::vector<double> shared = all_fields(folder.path() / "shared" / name);
    REQUIRE(shared.size() == one.size());
    for (size_t i = 0; i < one.size(); ++i)
      REQUIRE(shared[i] == Approx(one[i]).epsilon(1e-4).margin(1e-4));
  }
}
#endif

TEST_CASE("what cannot be forecast is refused by name", "[make_forecasts]") {
  const test::TemporaryFolder folder;
  const fs::path run = folder.path() / "run", out = folder.path() / "out";
  require_success(test::run_train(run, kTenSteps));
  struct Fault {
    const char* options;
    int exit_code;
    std::vector<const char*> words;
  };
  const std::vector<Fault> faults{
      {"--dates 2020-02-01 --lead-time 7h", 2, {"'--lead-time'", "data.timestep"}},
      {"--dates 2020-02-01 --lead-time 0h", 2, {"'--lead-time'"}},
      {"--dates never", 2, {"'--dates'", "never"}},
      {"--dates 2020-01-01", 3, {"2019-12-31T18:00:00", "'analytic'"}},
      {"--dates 2020-02-01 --variables u_849", 2, {"'--variables'", "u_849", "'u_850'"}},
      {"--dates 2020-02-01 --constant lsn", 2, {"'--constant'", "lsn"}},
      {"--dates 2020-02-01 --constant u_850", 2, {"'--constant'", "no forcing 'u_850'"}},
      {"--dates 2020-02-01 --constant cos_latitude", 2, {"'--constant'", "computed"}},
      {"--dates 2020-02-01 --variables cos_latitude", 2, {"'--variables'", "cos_latitude"}},
      {"--dates 2020-02-01 --lead-time 1000000d", 2, {"'--lead-time'"}},
      {"--dates 2020-02-01T06,2020-03-05", 3, {"2020-03-05T00:00:00"}},
      {"", 2, {"'--dates'"}}};
  for (const Fault& fault : faults) {
    INFO(fault.options);
    const auto result = forecast(run, out, fault.options);
    INFO(result.err);
    REQUIRE(result.exit_code == fault.exit_code);
    for (const char* word : fault.words)
      REQUIRE_THAT(result.err, ContainsSubstring(word));
  }
  const auto nothing = forecast(folder.path() / "nothing", out, "--dates 2020-02-01");
  REQUIRE(nothing.exit_code == 3);
  REQUIRE_THAT(nothing.err, ContainsSubstring("nothing"));
}
