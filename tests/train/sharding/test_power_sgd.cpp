// SPDX-License-Identifier: Apache-2.0
#include "train/sharding/power_sgd.h"

#include <ATen/ATen.h>

#include <limits>

#include "parallel/backends/comm_virtual.h"
#include "tests/support/catch.h"
#include "tests/train/sharding/shard_samples.h"

using namespace aifs;
using namespace aifs::train;
using parallel::Communicator;
using test::hold;
using test::max_difference;
using test::random_tensor;

namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr int64_t kRows = 9, kColumns = 7, kBias = 17;

// One matrix and one vector, which is not worth the trouble.
struct Sample {
  model::ParameterSet set{at::kDouble, 7};
  ShardBucket bucket;

  explicit Sample(int64_t columns = kColumns) {
    test::add_random(set, "weight", {kRows, columns});
    test::add_random(set, "bias", {kBias});
    set.flatten(at::kCPU);
    bucket = ShardLayout(set, set.flat_size(), false, 1, 0).buckets().at(0);
  }
  at::Tensor empty() const { return at::zeros({bucket.size()}, at::kDouble); }
  at::Tensor matrix(const at::Tensor& flat) const {
    return model::view_in(flat, set.at("weight"), bucket.begin);
  }
  at::Tensor vector(const at::Tensor& flat) const {
    return model::view_in(flat, set.at("bias"), bucket.begin);
  }
};

uint64_t seed_of(int rank) {
  return static_cast<uint64_t>(100 + rank);
}

}  // namespace

TEST_CASE("sums of matrices whose rank is no higher than that of the factors are exact",
          "[train]") {
  const at::Tensor left = random_tensor({kRows, 2}, 1);
  parallel::run_as_threads(3, [&](Communicator& group) {
    const Sample s;
    PowerSgd power(s.set, {.compression = Compression::kPowerSgd, .rank = 2}, 5);
    const auto of_rank = [&](int rank) {
      return left.matmul(random_tensor({2, kColumns}, seed_of(rank)));
    };
    const at::Tensor gradients = s.empty();
    s.matrix(gradients).copy_(of_rank(group.rank()));
    power.reduce(s.bucket, gradients, group);
    const at::Tensor expected = of_rank(0) + of_rank(1) + of_rank(2);
    const double largest = expected.abs().max().item<double>();
    hold(max_difference(s.matrix(gradients), expected) <= 256.0 * kEpsilon * largest,
         "a matrix of rank 2 is not its two factors");
  });
}

TEST_CASE("vectors are summed as they are, and all ranks get the same bits", "[train]") {
  parallel::run_as_threads(2, [](Communicator& group) {
    const Sample s;
    PowerSgd power(s.set, {.compression = Compression::kPowerSgd, .rank = 1}, 5);
    const at::Tensor gradients = s.empty();
    s.vector(gradients).fill_(group.rank() + 1.0);
    s.matrix(gradients).copy_(random_tensor({kRows, kColumns}, seed_of(group.rank())));
    power.reduce(s.bucket, gradients, group);
    hold(at::equal(s.vector(gradients), at::full({kBias}, 3.0, at::kDouble)), "a vector's sum");
    const at::Tensor first = gradients.clone();
    group.broadcast(first, 0);
    hold(at::equal(first, gradients), "ranks have other sums");
  });
}

// A step takes (I - p p^T) R of R, what was left in all ranks together, with p = R q / |R q| and
// the direction q of the step before, so the rank falls by one. Rounding: let R be a matrix of the
// rank that it should have plus an E of norm e. E turns p by the angle |E q| / |R q| at most, and
// then |R| times that stays. New rounding, of the two products and the differences of a step, is
// r = c epsilon s, where s are the norms of what ranks hold and c the lengths of the sums of an
// element and 8 operations. So e <- (1 + |R| / |R q|) (e + r), which is what is left in the end.
TEST_CASE("what one step loses comes with the next ones, all of it within the matrix's rank",
          "[train]") {
  constexpr int64_t kFew = 3;
  parallel::run_as_threads(2, [](Communicator& group) {
    const Sample s(kFew);
    PowerSgd power(s.set, {.compression = Compression::kPowerSgd, .rank = 1}, 5);
    const auto of_rank = [](int rank) { return random_tensor({kRows, kFew}, seed_of(rank)); };
    at::Tensor left = of_rank(0) + of_rank(1), direction;
    const double held = 2.0 * (of_rank(0).norm() + of_rank(1).norm()).item<double>();
    const double rounding = static_cast<double>(kRows + kFew + 8) * kEpsilon * held;
    double e = 0.0;
    for (int64_t step = 0; step < kFew; ++step) {
      // The first direction is PowerSGD's own; no direction is shortened more than by the smallest
      // singular value.
      const at::Tensor reach =
          step == 0 ? at::linalg_svdvals(left).min() : left.matmul(direction).norm();
      e = (1.0 + (left.norm() / reach).item<double>()) * (e + rounding);
      const at::Tensor gradients = s.empty();
      if (step == 0) s.matrix(gradients).copy_(of_rank(group.rank()));
      power.reduce(s.bucket, gradients, group);
      const at::Tensor given = s.matrix(gradients);
      left = left - given;
      const at::Tensor row = given[given.norm(2, 1).argmax().item<int64_t>()];
      direction = row / row.norm();
      if (step + 1 < kFew) hold(left.norm().item<double>() > 0.1, "fewer directions are not all");
    }
    hold(e < 1e-6, "the bound says nothing");
    hold(left.norm().item<double>() <= e, "something was lost for good");
  });
}

TEST_CASE("without error feedback, or once it was told to forget, nothing comes later", "[train]") {
  const auto single = parallel::make_single_communicator();
  for (const bool feedback : {false, true}) {
    const Sample s;
    PowerSgd power(
        s.set, {.compression = Compression::kPowerSgd, .rank = 1, .error_feedback = feedback}, 5);
    at::Tensor gradients = s.empty();
    s.matrix(gradients).copy_(random_tensor({kRows, kColumns}, 3));
    power.reduce(s.bucket, gradients, *single);
    if (feedback) power.forget();
    gradients.zero_();
    power.reduce(s.bucket, gradients, *single);
    REQUIRE(gradients.abs().max().item<double>() == 0.0);
  }
}

TEST_CASE("what is sent are the factors and all that is no matrix", "[train]") {
  const Sample s;
  const PowerSgd power(s.set, {.compression = Compression::kPowerSgd, .rank = 2}, 5);
  REQUIRE(power.elements_sent(s.bucket) ==
          (kRows + kColumns) * 2 + s.bucket.size() - kRows * kColumns);
  const PowerSgd useless(s.set, {.compression = Compression::kPowerSgd, .rank = 4}, 5);
  REQUIRE(useless.elements_sent(s.bucket) == s.bucket.size());
}
