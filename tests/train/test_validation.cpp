// SPDX-License-Identifier: Apache-2.0
#include "train/validation.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "parallel/backends/comm_virtual.h"
#include "tests/support/catch.h"
#include "tests/train/small_training.h"
#include "train/scores/named_scores.h"

using namespace aifs;
using namespace aifs::train;
using test::kCells;
using test::SmallTraining;

namespace {

ValidationSetup setup_of(const SmallTraining& t) {
  std::vector<float> weights;
  for (int64_t n = 0; n < kCells; ++n)
    weights.push_back(static_cast<float>(1 + n % 3));
  return {.source = t.source,
          .variables = t.variables,
          .window = t.window,
          .timestep_s = 6 * 3600,
          .cell_weights = weights,
          .nodes = {0, kCells},
          .mesh = test::single_mesh(),
          .dtype = t.parameters.dtype()};
}

ValidationOptions options_of(std::vector<std::string> lead_times, int64_t max_dates = 0) {
  ValidationOptions options;
  options.lead_times = std::move(lead_times);
  options.max_dates = max_dates;
  return options;
}

ValidationResult run(const SmallTraining& t, const ValidationOptions& options) {
  const Forecaster forecaster(*t.network, t.variables, t.window, at::kCPU);
  return Validation(options, setup_of(t)).run(forecaster, PointwiseTerm(mse_error(), {}));
}

}  // namespace

TEST_CASE("scores are weighted root mean squares in physical units", "[validation]") {
  const SmallTraining t(9, 3, at::kDouble);
  const ValidationResult result = run(t, options_of({"6h", "18h"}));
  const ValidationSetup setup = setup_of(t);
  const Forecaster forecaster(*t.network, t.variables, t.window, at::kCPU);
  const at::NoGradGuard no_grad;
  for (const LeadTimeScores& scores : result.lead_times) {
    const int64_t steps = scores.lead_time_s / (6 * 3600);
    const int64_t column = t.dataset->info().column("b");
    const double stdev = t.dataset->info().statistics.stdev[static_cast<size_t>(column)];
    const int64_t output = t.variables.find_output("b");
    double squares = 0.0, persistence = 0.0, weight_sum = 0.0;
    int64_t dates = 0;
    for (int64_t row = 1; row + steps < t.dataset->info().num_rows(); ++row, ++dates) {
      const at::Tensor batch = t.sample(row, steps);
      forecaster.run(batch, steps, [&](const ForecastStep& step) {
        if (step.step + 1 != steps) return;
        for (int64_t n = 0; n < kCells; ++n) {
          const auto at_cell = [&](const at::Tensor& field) {
            return field[0][0][0][n][output].item<double>();
          };
          const double weight = setup.cell_weights[static_cast<size_t>(n)];
          const double truth = at_cell(step.truth);
          squares += weight * std::pow((at_cell(step.prediction) - truth) * stdev, 2);
          persistence +=
              weight * std::pow((at_cell(forecaster.persistence(batch)) - truth) * stdev, 2);
          weight_sum += weight;
        }
      });
    }
    REQUIRE(scores.num_dates == dates);
    REQUIRE(scores.rmse[static_cast<size_t>(output)] ==
            Approx(std::sqrt(squares / weight_sum)).epsilon(1e-6));
    REQUIRE(scores.persistence_rmse[static_cast<size_t>(output)] ==
            Approx(std::sqrt(persistence / weight_sum)).epsilon(1e-6));
  }
  REQUIRE(result.lead_times.size() == 2);
}

TEST_CASE("scores inside and outside a region add up to those of the whole", "[validation]") {
  const SmallTraining t(9, 3, at::kDouble);
  const Forecaster forecaster(*t.network, t.variables, t.window, at::kCPU);
  const PointwiseTerm loss(mse_error(), {});
  ValidationSetup setup = setup_of(t);
  setup.region = at::zeros({kCells}, at::kBool);
  setup.region.slice(0, 2, 7).fill_(true);
  const ValidationOptions options = options_of({"6h", "12h"});
  const ValidationResult parts = Validation(options, setup).run(forecaster, loss);
  const ValidationResult whole = run(t, options);
  // The scores of a validation of the region's cells alone, by their weights.
  ValidationSetup inside = setup_of(t);
  double weight = 0.0, sum = 0.0;
  for (int64_t n = 0; n < kCells; ++n) {
    float& cell = inside.cell_weights[static_cast<size_t>(n)];
    sum += static_cast<double>(cell);
    if (n < 2 || n >= 7) cell = 0.0f;
    weight += static_cast<double>(cell);
  }
  const ValidationResult alone = Validation(options, inside).run(forecaster, loss);
  for (size_t i = 0; i < 2; ++i) {
    const LeadTimeScores& scores = parts.lead_times[i];
    REQUIRE(scores.rmse == whole.lead_times[i].rmse);
    REQUIRE(scores.regions.size() == 2);
    const RegionScores &in = scores.regions[0], &out = scores.regions[1];
    REQUIRE(in.name == "inside_lam");
    REQUIRE(out.name == "outside_lam");
    REQUIRE(in.share == Approx(weight / sum).epsilon(1e-12));
    REQUIRE(in.share + out.share == Approx(1.0).epsilon(1e-12));
    for (size_t v = 0; v < scores.rmse.size(); ++v) {
      REQUIRE(in.rmse[v] == Approx(alone.lead_times[i].rmse[v]).epsilon(1e-12));
      REQUIRE(in.persistence_rmse[v] ==
              Approx(alone.lead_times[i].persistence_rmse[v]).epsilon(1e-12));
      REQUIRE(in.share * in.rmse[v] * in.rmse[v] + out.share * out.rmse[v] * out.rmse[v] ==
              Approx(scores.rmse[v] * scores.rmse[v]).epsilon(1e-12));
    }
  }
  // Of cells that all count, there is no outside; a region of cells that do not count is none.
  inside.region = setup.region;
  REQUIRE(Validation(options, inside).run(forecaster, loss).lead_times[0].regions.size() == 1);
  inside.region = at::logical_not(setup.region);
  try {
    const Validation refused(options, inside);
    FAIL("a region without weight is taken");
  } catch (const ConfigError& error) {
    REQUIRE(error.path() == "train.validation.region");
  }
}

TEST_CASE("named regions have scores of their own, and every score has a name", "[validation]") {
  const SmallTraining t(9, 3, at::kDouble);
  const Forecaster forecaster(*t.network, t.variables, t.window, at::kCPU);
  const PointwiseTerm loss(mse_error(), {});
  const ValidationOptions options = options_of({"6h", "12h"});
  ValidationSetup setup = setup_of(t);
  const at::Tensor cells = at::zeros({kCells}, at::kBool);
  cells.slice(0, 2, 7).fill_(true);
  setup.regions = {{"some", cells}, {"rest", at::logical_not(cells)}};
  const Validation validation(options, setup);
  const ValidationResult parts = validation.run(forecaster, loss);
  setup.regions.clear();
  setup.region = cells;
  const ValidationResult lam = Validation(options, setup).run(forecaster, loss);
  for (size_t i = 0; i < 2; ++i) {
    const LeadTimeScores &own = parts.lead_times[i], &other = lam.lead_times[i];
    REQUIRE(own.regions.size() == 2);
    REQUIRE(own.regions[0].name == "some");
    for (size_t r = 0; r < 2; ++r) {
      REQUIRE(own.regions[r].rmse == other.regions[r].rmse);
      REQUIRE(own.regions[r].activity == other.regions[r].activity);
    }
    for (size_t v = 0; v < own.bias.size(); ++v) {
      REQUIRE(std::abs(own.bias[v]) <= own.mae[v]);
      REQUIRE(own.mae[v] <= own.rmse[v] * (1 + 1e-9));
      const double share = own.regions[0].share;
      REQUIRE(share * own.regions[0].bias[v] + (1 - share) * own.regions[1].bias[v] ==
              Approx(own.bias[v]).margin(1e-9));
    }
  }
  std::vector<std::string> names;
  for (const NamedScore& score : named_scores(to_json(parts, t.variables)))
    names.push_back(score.name);
  REQUIRE(validation.score_names() == names);
  REQUIRE(std::count(names.begin(), names.end(), "bias_some_b_12h") == 1);
  setup.regions = {{"none", at::zeros({kCells}, at::kBool)}};
  REQUIRE_THROWS_WITH(Validation(options, setup), ContainsSubstring("train.validation.regions"));
}

TEST_CASE("a network that adds nothing scores as persistence", "[validation]") {
  const SmallTraining t(9);
  t.parameters.flat_values().zero_();
  const ValidationResult result = run(t, options_of({"6h", "12h"}));
  for (const LeadTimeScores& scores : result.lead_times) {
    REQUIRE(mean_ratio(scores, t.variables) == Approx(1.0).epsilon(1e-6));
  }
}

TEST_CASE("imputed points weigh nothing in the validation loss if the loss says so",
          "[validation]") {
  SmallTraining t(9);
  t.dataset->nan_row = 4;  // variable a of cell 0
  t.source.imputer = data::Imputer(t.dataset->info().variables, t.dataset->info().statistics,
                                   {{{"a"}, data::ImputeMethod::kConstant, 1000.0}});
  const Forecaster forecaster(*t.network, t.variables, t.window, at::kCPU);
  const auto loss_with = [&](std::vector<Scaler> scalers) {
    scalers.push_back(over_axis("node_weights", at::ones({kCells}), kGrid));
    const PointwiseTerm loss(mse_error(), {.scalers = std::move(scalers)});
    return Validation(options_of({}), setup_of(t)).run(forecaster, loss).loss;
  };
  const double plain = loss_with({});
  const double masked = loss_with({{kNanMaskName, {}, {kBatch, kGrid, kVariable}}});
  // The mask is that of the first input time: row 4 is first for one of seven dates, whose forecast
  // of `a` at cell 0 no longer counts.
  double lost = 0.0;
  const at::NoGradGuard no_grad;
  forecaster.run(t.sample(5, 1), 1, [&](const ForecastStep& step) {
    const int64_t output = t.variables.find_output("a");
    const at::Tensor error = (step.prediction - step.truth)[0][0][0][0][output];
    lost = error.square().item<double>() / static_cast<double>(t.variables.num_outputs());
  });
  REQUIRE(lost > 0.0);
  REQUIRE(plain - masked == Approx(lost / 7.0).epsilon(1e-3));
}

TEST_CASE("errors of imputed points count as 0 in scores, over as many cells as before",
          "[validation]") {
  SmallTraining t(4, 3, at::kDouble);  // one date with a forecast of 12 h
  t.dataset->nan_row = 0;              // variable a of cell 0
  t.source.imputer = data::Imputer(t.dataset->info().variables, t.dataset->info().statistics,
                                   {{{"a"}, data::ImputeMethod::kConstant, 1000.0}});
  const ValidationSetup setup = setup_of(t);
  const Forecaster forecaster(*t.network, t.variables, t.window, at::kCPU);
  const auto column = static_cast<size_t>(t.dataset->info().column("a"));
  const auto output = static_cast<size_t>(t.variables.find_output("a"));
  const at::NoGradGuard no_grad;
  const at::Tensor batch =
      data::read_batch(t.source, {.nodes = setup.nodes}, {{1}, t.window.offsets(2)})
          .values.to(at::kDouble);
  at::Tensor weights = at::tensor(at::ArrayRef<float>(setup.cell_weights), at::kDouble);
  weights = weights / weights.sum();
  weights[0] = 0.0;
  const ValidationResult result = run(t, options_of({"12h"}, 1));
  REQUIRE(result.lead_times.at(0).num_dates == 1);
  forecaster.run(batch, 2, [&](const ForecastStep& step) {
    if (step.step != 1) return;
    const auto rms = [&](const at::Tensor& field) {
      const at::Tensor error =
          (field - step.truth)[0][0][0].select(-1, static_cast<int64_t>(output));
      return std::sqrt((error.square() * weights).sum().item<double>()) *
             t.dataset->info().statistics.stdev[column];
    };
    REQUIRE(result.lead_times[0].rmse[output] == Approx(rms(step.prediction)).epsilon(1e-6));
    REQUIRE(result.lead_times[0].persistence_rmse[output] ==
            Approx(rms(forecaster.persistence(batch))).epsilon(1e-6));
  });
}

TEST_CASE("lead times are sorted, named once, and one timestep if none is given", "[validation]") {
  const SmallTraining t(9);
  const ValidationSetup setup = setup_of(t);
  REQUIRE(Validation(options_of({"12h", "6h", "12h"}), setup).lead_times_s() ==
          std::vector<int64_t>{21600, 43200});
  REQUIRE(Validation(options_of({}), setup).lead_times_s() == std::vector<int64_t>{21600});
  REQUIRE_THROWS_AS(Validation(options_of({"7h"}), setup), ConfigError);
}

TEST_CASE("a lead time that no date reaches is an error, not a gap in the table", "[validation]") {
  const SmallTraining t(5);  // inputs at rows 0 and 1, truth at 2, 3, 4
  REQUIRE_NOTHROW(Validation(options_of({"6h", "18h"}), setup_of(t)));
  REQUIRE_THROWS_WITH(Validation(options_of({"6h", "24h"}), setup_of(t)),
                      ContainsSubstring("24h") && ContainsSubstring("at most 18h"));
  REQUIRE_THROWS_AS(Validation(options_of({"999999999999d"}), setup_of(t)), DataError);
}

TEST_CASE("dates are spread evenly and need inputs and truth", "[validation]") {
  const SmallTraining t(12);
  REQUIRE(Validation(options_of({}), setup_of(t)).num_dates() == 10);
  REQUIRE(Validation(options_of({}, 4), setup_of(t)).num_dates() == 4);
  REQUIRE(Validation(options_of({}, 99), setup_of(t)).num_dates() == 10);
  t.dataset->info_.missing_rows = {5};  // neither input nor truth
  REQUIRE(Validation(options_of({}), setup_of(t)).num_dates() == 7);
  const SmallTraining none(2);
  REQUIRE_THROWS_AS(Validation(options_of({}), setup_of(none)), DataError);
}

TEST_CASE("validation is a pure function of weights and data", "[validation]") {
  const SmallTraining t(12);
  const Forecaster forecaster(*t.network, t.variables, t.window, at::kCPU);
  const Validation validation(options_of({"6h", "12h"}), setup_of(t));
  const auto first =
      to_json(validation.run(forecaster, PointwiseTerm(mse_error(), {})), t.variables).dump();
  REQUIRE(to_json(validation.run(forecaster, PointwiseTerm(mse_error(), {})), t.variables).dump() ==
          first);
  const auto json = nlohmann::json::parse(first);
  REQUIRE(json["lead_times"]["12h"]["rmse"].size() == 3);
  REQUIRE(json["lead_times"]["6h"]["num_dates"] == 10);
}

TEST_CASE("a variable that persistence forecasts without error is left out of the mean ratio",
          "[validation]") {
  const SmallTraining t(9);
  LeadTimeScores scores{6 * 3600, 7, {2.0, 3.0, 5.0}, {4.0, 0.0, 10.0}};
  const int64_t b = t.variables.find_output("b");
  scores.constant = {b};
  REQUIRE(mean_ratio(scores, t.variables) == 0.5);  // of "a" alone: "d" is diagnostic
  scores.constant = t.variables.output_prognostic();
  REQUIRE(std::isnan(mean_ratio(scores, t.variables)));
  ValidationResult result;
  result.lead_times = {scores};
  result.lead_times[0].constant = {b};
  const auto json = to_json(result, t.variables);
  REQUIRE(json["lead_times"]["6h"]["constant"].size() == 1);
  REQUIRE(json["lead_times"]["6h"]["constant"][0] == "b");
}

TEST_CASE("the loss is the mean over the steps of its rollout, of dates that have them",
          "[validation]") {
  const SmallTraining t(9, 3, at::kDouble);  // inputs at rows 0 and 1: 7 dates, 5 of three steps
  const PointwiseTerm loss(mse_error(), {});
  const Forecaster forecaster(*t.network, t.variables, t.window, at::kCPU);
  const at::NoGradGuard no_grad;
  ValidationSetup setup = setup_of(t);
  setup.longest_rollout = 3;
  const ValidationResult result =
      Validation(options_of({}), setup).run(forecaster, loss, {.rollout = 3});
  double expected = 0.0;
  for (int64_t row = 1; row + 3 < 9; ++row) {
    forecaster.run(t.sample(row, 3), 3, [&](const ForecastStep& step) {
      expected += loss(step.prediction, step.truth, {}).item<double>() / 15.0;
    });
  }
  REQUIRE(result.rollout == 3);
  REQUIRE(result.num_dates == 7);
  REQUIRE(result.loss_dates == 5);
  REQUIRE(result.loss == Approx(expected).epsilon(1e-12));
  // As long as the data allow: three steps were prepared for, and ten are asked for.
  REQUIRE(Validation(options_of({}), setup).run(forecaster, loss, {.rollout = 10}).rollout == 3);
}

TEST_CASE("a validation whose data cannot be read has no scores but a reason", "[validation]") {
  const SmallTraining t(9);
  t.dataset->lost_row = 5;
  const ValidationResult result = run(t, options_of({"6h"}));
  REQUIRE_FALSE(result.has_scores());
  REQUIRE_THAT(result.failure, ContainsSubstring("'waves/5' is missing"));
}

TEST_CASE("a validation is left between two forecast steps", "[validation]") {
  const SmallTraining t(9);
  const Forecaster forecaster(*t.network, t.variables, t.window, at::kCPU);
  int asked = 0;
  const ValidationResult result =
      Validation(options_of({"6h", "30h"}), setup_of(t))
          .run(forecaster, PointwiseTerm(mse_error(), {}),
               {.should_stop = [&] { return ++asked == 3; }});  // a date, and two of its steps
  REQUIRE(result.stopped);
  REQUIRE_FALSE(result.has_scores());
  REQUIRE(asked == 3);
}

TEST_CASE("all ranks leave a validation that one is asked to leave, whatever their dates",
          "[validation]") {
  // Replicas have 4 and 3 dates, some with fewer steps; stages of a pipeline visit nothing but the
  // last one.
  for (const parallel::MeshSizes& sizes : {parallel::MeshSizes{.model = 1, .data = 2},
                                           parallel::MeshSizes{.data = 1, .pipeline = 2}}) {
    for (const int asking_rank : {0, 1}) {
      for (const int question : {1, 2, 4, 7, 9}) {
        std::array<int, 2> stopped{};
        parallel::run_as_threads(2, [&](parallel::Communicator& world) {
          const parallel::ProcessMesh mesh(world, sizes);
          const SmallTraining t(9, test::network_families().front(), mesh);
          ValidationSetup setup{.source = t.source,
                                .variables = t.variables,
                                .window = t.window,
                                .timestep_s = 6 * 3600,
                                .cell_weights = std::vector<float>(kCells, 1.0f),
                                .nodes = {0, kCells},
                                .mesh = mesh,
                                .dtype = t.parameters.dtype()};
          const Forecaster forecaster(*t.network, t.variables, t.window, at::kCPU);
          int asked = 0;
          const ValidationResult result =
              Validation(options_of({"6h", "30h"}), setup)
                  .run(forecaster, PointwiseTerm(mse_error(), {}), {.should_stop = [&] {
                         return ++asked == question && world.rank() == asking_rank;
                       }});
          stopped[static_cast<size_t>(world.rank())] = result.stopped ? asked : -1;
        });
        REQUIRE(stopped == std::array<int, 2>{question, question});
      }
    }
  }
}

TEST_CASE("an error of one replica is a failed validation on all", "[validation]") {
  class Failing : public Loss {
   public:
    explicit Failing(int number) : left_(number) {}
    at::Tensor operator()(const at::Tensor& prediction, const at::Tensor& truth,
                          const LossCall& call) const override {
      if (left_ > 0 && --left_ == 0) throw Error("of rank 1");
      return mse_(prediction, truth, call);
    }

   private:
    PointwiseTerm mse_{mse_error(), {}};
    mutable int left_;
  };
  for (const int number : {1, 2, 3, 5}) {  // of the losses of rank 1
    std::array<std::string, 2> failures;
    parallel::run_as_threads(2, [&](parallel::Communicator& world) {
      const parallel::ProcessMesh mesh(world, {1, 2});
      const SmallTraining t(9);
      const std::vector<float> weights(kCells, 1.0f);
      const ValidationSetup setup{.source = t.source,
                                  .variables = t.variables,
                                  .window = t.window,
                                  .timestep_s = 6 * 3600,
                                  .cell_weights = weights,
                                  .nodes = {0, kCells},
                                  .mesh = mesh,
                                  .dtype = t.parameters.dtype(),
                                  .longest_rollout = 2};
      const Forecaster forecaster(*t.network, t.variables, t.window, at::kCPU);
      failures[static_cast<size_t>(world.rank())] =
          Validation(options_of({"6h", "18h"}), setup)
              .run(forecaster, Failing(world.rank() == 1 ? number : 0), {.rollout = 2})
              .failure;
    });
    REQUIRE(failures == std::array<std::string, 2>{"of rank 1", "of rank 1"});
  }
}

TEST_CASE(
    "values that are no numbers fail a validation and are named, forecasts that run away do "
    "not",
    "[validation]") {
  const auto failure_of = [](float value, size_t column) {
    const SmallTraining t(9);
    t.dataset->bad_row = 5;
    t.dataset->bad_value = value;
    t.dataset->bad_column = column;
    return run(t, options_of({"6h"})).failure;
  };
  constexpr float kFill = 9.9692099683868690e+36f,
                  kInfinity = std::numeric_limits<float>::infinity();
  for (const size_t column : {0U, 2U, 3U}) {  // prognostic, diagnostic, forcing
    for (const float value : {kFill, kInfinity, -kInfinity}) {
      INFO(column << " " << value);
      REQUIRE_THAT(failure_of(value, column),
                   ContainsSubstring(concat("'waves': ", std::string("abdf")[column], " is ")) &&
                       ContainsSubstring(" on 2020-01-02T06:00:00 in cell 0"));
    }
  }
  REQUIRE(failure_of(2.0f, 0).empty());
  const SmallTraining t(9);
  t.parameters.flat_values().mul_(1e30);
  const ValidationResult result = run(t, options_of({"6h"}));
  REQUIRE(result.has_scores());
  REQUIRE_FALSE(std::isfinite(result.loss));
}

TEST_CASE("variables that the dataset calls constant are left out of the mean ratio",
          "[validation]") {
  const SmallTraining t(9);
  const auto ratio = [&] {
    return mean_ratio(run(t, options_of({"6h"})).lead_times[0], t.variables);
  };
  const ValidationResult before = run(t, options_of({"6h"}));
  REQUIRE(before.lead_times[0].constant.empty());
  t.dataset->info_.constant_fields = {"b", "f"};
  const LeadTimeScores scores = run(t, options_of({"6h"})).lead_times[0];
  REQUIRE(scores.constant == std::vector<int64_t>{t.variables.find_output("b")});
  const auto a = static_cast<size_t>(t.variables.find_output("a"));
  REQUIRE(ratio() == Approx(scores.rmse[a] / scores.persistence_rmse[a]).epsilon(1e-12));
  REQUIRE(ratio() != mean_ratio(before.lead_times[0], t.variables));
}
