// SPDX-License-Identifier: Apache-2.0
// The figures of a validation against those of `aifs-train verify`, field by field.
#include "train/scores/field_sums.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "parallel/backends/comm_virtual.h"
#include "tests/support/catch.h"
#include "tests/support/tensors.h"
#include "tests/train/small_training.h"
#include "verify/scores.h"

using namespace aifs;
using train::FieldSums;
using train::ScoredFields;

namespace {

constexpr int64_t kManyCells = 50, kSomeOutputs = 3;

// (1, E, n, V) fp32.
at::Tensor random_fields(uint64_t seed, int64_t members = 1) {
  return test::random_tensor({1, members, kManyCells, kSomeOutputs}, seed).to(at::kFloat) + 2.0;
}

// (n, 1) of all cells and of the first twenty, whose sums are 1.
std::vector<at::Tensor> row_weights() {
  at::Tensor all = test::random_tensor({kManyCells, 1}, 7).abs().to(at::kDouble);
  at::Tensor part = all.clone();
  part.slice(0, 20).zero_();
  return {all / all.sum(), part / part.sum()};
}

std::vector<float> output_of(const at::Tensor& field, int64_t output) {
  const at::Tensor values = field[0].select(-1, output).contiguous();
  return {values.const_data_ptr<float>(), values.const_data_ptr<float>() + values.numel()};
}

verify::FieldScores figures_of(const ScoredFields& date, const at::Tensor& weight, int64_t output) {
  const std::vector<float> forecast = output_of(date.forecast, output),
                           truth = output_of(date.truth, output),
                           start = output_of(date.persistence, output);
  const at::Tensor flat = weight.contiguous();
  return verify::score_field({forecast, truth, start},
                             {flat.const_data_ptr<double>(), static_cast<size_t>(kManyCells)})
      .value();
}

}  // namespace

TEST_CASE("sums of dates are those of verify, in every row", "[field_sums]") {
  const std::vector<ScoredFields> dates{{random_fields(1), random_fields(2), random_fields(3), {}},
                                        {random_fields(4), random_fields(5), random_fields(6), {}}};
  const std::vector<at::Tensor> rows = row_weights();
  FieldSums sums(2, kSomeOutputs, at::kCPU), second(2, kSomeOutputs, at::kCPU);
  sums.add_date(dates[0], rows);
  second.add_date(dates[1], rows);
  sums.add(second);
  sums.sum_over_ranks(test::single_mesh());
  for (int64_t row = 0; row < 2; ++row) {
    for (int64_t v = 0; v < kSomeOutputs; ++v) {
      verify::FieldScores wanted;
      for (const ScoredFields& date : dates) {
        const verify::FieldScores one = figures_of(date, rows[static_cast<size_t>(row)], v);
        wanted.squared_error += one.squared_error;
        wanted.persistence_squared_error += one.persistence_squared_error;
        wanted.error += one.error;
        wanted.absolute_error += one.absolute_error;
        wanted.activity += one.activity;
        wanted.truth_activity += one.truth_activity;
      }
      // Differences are rounded to fp32 here, and are of fp64 numbers there.
      const auto is = [&](const at::Tensor& sum) {
        return Approx(sum[row][v].item<double>()).epsilon(1e-6).margin(1e-7);
      };
      REQUIRE(wanted.squared_error == is(sums.squared));
      REQUIRE(wanted.persistence_squared_error == is(sums.persistence_squared));
      REQUIRE(wanted.error == is(sums.error));
      REQUIRE(wanted.absolute_error == is(sums.absolute));
      REQUIRE(wanted.activity == is(sums.activity));
      REQUIRE(wanted.truth_activity == is(sums.truth_activity));
    }
  }
}

TEST_CASE("figures of several members are means over them", "[field_sums]") {
  const at::Tensor members = random_fields(1, 3), truth = random_fields(2),
                   start = random_fields(3);
  const std::vector<at::Tensor> rows = row_weights();
  FieldSums all(2, kSomeOutputs, at::kCPU);
  all.add_date({members, truth, start, {}}, rows);
  all.sum_over_ranks(test::single_mesh());
  at::Tensor activity = at::zeros({2, kSomeOutputs}, at::kDouble), error = activity.clone();
  for (int64_t e = 0; e < 3; ++e) {
    FieldSums one(2, kSomeOutputs, at::kCPU);
    one.add_date({members.narrow(1, e, 1), truth, start, {}}, rows);
    one.sum_over_ranks(test::single_mesh());
    activity += one.activity / 3.0;
    error += one.absolute / 3.0;
  }
  REQUIRE(at::allclose(all.activity, activity, 1e-12, 1e-14));
  REQUIRE(at::allclose(all.absolute, error, 1e-12, 1e-14));
}

TEST_CASE("cells without truth have no error, and do not count for activity", "[field_sums]") {
  const at::Tensor forecast = random_fields(1), truth = random_fields(2), start = random_fields(3);
  at::Tensor valid = at::ones({1, 1, kManyCells, kSomeOutputs});
  valid.slice(2, 10, 30).select(3, 1).zero_();
  const std::vector<at::Tensor> rows = row_weights();
  FieldSums masked(2, kSomeOutputs, at::kCPU), whole(2, kSomeOutputs, at::kCPU);
  masked.add_date({forecast, truth, start, valid}, rows);
  masked.sum_over_ranks(test::single_mesh());
  whole.add_date({forecast, truth, start, {}}, rows);
  whole.sum_over_ranks(test::single_mesh());
  at::Tensor seen = rows[0].clone();
  seen.slice(0, 10, 30).zero_();
  const verify::FieldScores wanted =
      figures_of({forecast, truth, start, {}}, seen, 1);  // of weights that are not 1 in sum
  REQUIRE(masked.activity[0][1].item<double>() == Approx(wanted.activity).epsilon(1e-6));
  REQUIRE(masked.absolute[0][1].item<double>() ==
          Approx(wanted.absolute_error * seen.sum().item<double>()).epsilon(1e-6));
  for (const int64_t v : {0, 2}) {
    REQUIRE(masked.activity[0][v].item<double>() ==
            Approx(whole.activity[0][v].item<double>()).epsilon(1e-12));
    REQUIRE(masked.squared[1][v].item<double>() == whole.squared[1][v].item<double>());
  }
  valid.zero_();
  FieldSums none(2, kSomeOutputs, at::kCPU);
  none.add_date({forecast, truth, start, valid}, rows);
  none.sum_over_ranks(test::single_mesh());
  REQUIRE(none.activity.abs().max().item<double>() == 0.0);
}

TEST_CASE("ranks that share cells and dates find the sums of one", "[field_sums][parallel]") {
  const std::vector<at::Tensor> rows = row_weights();
  const auto date = [](uint64_t number) {
    return ScoredFields{random_fields(10 * number + 1),
                        random_fields(10 * number + 2),
                        random_fields(10 * number + 3),
                        {}};
  };
  FieldSums one(2, kSomeOutputs, at::kCPU);
  for (const uint64_t number : {0, 1, 2})
    one.add_date(date(number), rows);
  one.sum_over_ranks(test::single_mesh());
  parallel::run_as_threads(4, [&](parallel::Communicator& world) {
    const parallel::ProcessMesh mesh(world, parallel::MeshSizes{.model = 2, .data = 2});
    const int64_t begin = mesh.model().rank() == 0 ? 0 : 30;
    const int64_t count = mesh.model().rank() == 0 ? 30 : kManyCells - 30;
    std::vector<at::Tensor> own;
    for (const at::Tensor& weight : rows)
      own.push_back(weight.narrow(0, begin, count));
    FieldSums sums(2, kSomeOutputs, at::kCPU);
    for (uint64_t number = static_cast<uint64_t>(mesh.replica()); number < 3; number += 2) {
      const ScoredFields all = date(number);
      sums.add_date({all.forecast.narrow(2, begin, count),
                     all.truth.narrow(2, begin, count),
                     all.persistence.narrow(2, begin, count),
                     {}},
                    own);
    }
    sums.sum_over_ranks(mesh);
    for (const auto& [a, b] :
         {std::pair(sums.squared, one.squared), std::pair(sums.error, one.error),
          std::pair(sums.activity, one.activity),
          std::pair(sums.truth_activity, one.truth_activity)}) {
      if (!at::allclose(a, b, 1e-12, 1e-14)) throw Error("the sums of ranks differ");
    }
  });
}
