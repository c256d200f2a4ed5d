// SPDX-License-Identifier: Apache-2.0
#include "model/kernels/adamw.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <limits>

#include "tests/support/catch.h"

using namespace aifs::model;

namespace {

struct State {
  at::Tensor value, gradient, moment1, moment2;
};

State make_state(int64_t size) {
  at::manual_seed(3);
  return {at::randn({size}), at::randn({size}), 0.1 * at::randn({size}), at::rand({size})};
}

State updated(State s, float clip) {
  for (at::Tensor* t : {&s.value, &s.gradient, &s.moment1, &s.moment2})
    *t = t->clone();
  cpu::adamw_step({.value = s.value.data_ptr<float>(),
                   .gradient = s.gradient.data_ptr<float>(),
                   .moment1 = s.moment1.data_ptr<float>(),
                   .moment2 = s.moment2.data_ptr<float>(),
                   .clip = clip,
                   .decay = 0.999f,
                   .lerp = 0.1f,
                   .beta2 = 0.95f,
                   .square = 0.05f,
                   .root_correction2 = 0.5f,
                   .eps = 1e-8f,
                   .step = -0.02f},
                  s.value.numel());
  return s;
}

}  // namespace

TEST_CASE("an update of AdamW is that of LibTorch's operators", "[adamw]") {
  const State before = make_state(1003);  // no whole number of vectors
  for (const float clip : {0.5f, std::numeric_limits<float>::infinity()}) {
    const State after = updated(before, clip);
    const at::Tensor gradient = before.gradient.clamp(-clip, clip);
    const at::Tensor m = before.moment1.lerp(gradient, 0.1);
    const at::Tensor v = 0.95 * before.moment2 + 0.05 * gradient.square();
    const at::Tensor value = 0.999 * before.value - 0.02 * m / (v.sqrt() / 0.5 + 1e-8);
    REQUIRE(at::equal(after.gradient, gradient));
    // A few roundings of values of size one to four; the quotient adds that of its denominator.
    const double eps = std::numeric_limits<float>::epsilon();
    REQUIRE(at::allclose(after.moment1, m, 4 * eps, 4 * eps));
    REQUIRE(at::allclose(after.moment2, v, 4 * eps, 4 * eps));
    REQUIRE(at::allclose(after.value, value, 8 * eps, 8 * eps));
  }
}

TEST_CASE("an update of AdamW has the same bits for any number of threads", "[adamw]") {
  const State before = make_state(100003);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const State one = updated(before, 1.0f);
  at::set_num_threads(3);
  const State three = updated(before, 1.0f);
  at::set_num_threads(threads);
  REQUIRE(at::equal(one.value, three.value));
  REQUIRE(at::equal(one.moment1, three.moment1));
  REQUIRE(at::equal(one.moment2, three.moment2));
}
