// SPDX-License-Identifier: Apache-2.0
#include "model/base/parameters.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "parallel/backends/comm_virtual.h"
#include "tests/support/catch.h"
#include "tests/support/tensors.h"

using namespace aifs;
using namespace aifs::model;

TEST_CASE("flattening keeps the values, and the handles then view the buffer", "[parameters]") {
  ParameterSet set(at::kFloat, 7);
  const at::Tensor a = set.add("a", {3, 5}, Init::uniform(0.5));
  const at::Tensor b = set.add("b", {70}, Init::ones());
  const at::Tensor before = a.detach().clone();
  set.flatten(at::kCPU);
  REQUIRE(at::equal(a.detach(), before));
  set.flat_values().fill_(2.5);
  REQUIRE((a == 2.5).all().item<bool>());
  REQUIRE((b == 2.5).all().item<bool>());
}

TEST_CASE("every tensor starts at a multiple of the alignment, padding is zero", "[parameters]") {
  ParameterSet set(at::kFloat, 7);
  set.add("a", {3, 5}, Init::ones());
  set.add("b", {64}, Init::ones());
  set.add("c", {65}, Init::ones());
  set.flatten(at::kCPU);
  REQUIRE(set.at("a").offset == 0);
  REQUIRE(set.at("b").offset == 64);
  REQUIRE(set.at("c").offset == 128);
  REQUIRE(set.flat_values().numel() == 256);
  REQUIRE(set.flat_values().sum().item<double>() == 15 + 64 + 65);
  REQUIRE(set.num_trainable() == 15 + 64 + 65);
}

TEST_CASE("gradients land in the flat buffer and are cleared there", "[parameters]") {
  ParameterSet set(at::kDouble, 7);
  const at::Tensor a = set.add("a", {2, 3}, Init::uniform(1.0));
  const at::Tensor unused = set.add("unused", {4}, Init::uniform(1.0));
  set.flatten(at::kCPU);
  const at::Tensor weights = test::random_tensor({2, 3}, 1);
  (a * weights).sum().backward();
  REQUIRE(at::equal(set.gradient(set.at("a")), weights));
  REQUIRE(at::equal(set.flat_gradients().narrow(0, 0, 6), weights.reshape({6})));
  REQUIRE(set.flat_gradients().narrow(0, 6, 122).abs().max().item<double>() == 0.0);
  (a * weights).sum().backward();  // accumulates
  REQUIRE(at::equal(set.gradient(set.at("a")), 2 * weights));
  set.zero_gradients();
  REQUIRE(a.grad().abs().max().item<double>() == 0.0);
}

TEST_CASE("an alias is the same tensor under a second name, optimised once", "[parameters]") {
  ParameterSet set(at::kFloat, 7);
  set.add("a", {3}, Init::ones());
  set.add_alias("again", "a");
  REQUIRE(set.num_trainable() == 3);
  set.flatten(at::kCPU);
  REQUIRE(set.flat_values().numel() == ParameterSet::kAlignment);
  set.assign("again", at::full({3}, 4.0f));
  REQUIRE((set.at("a").tensor == 4.0f).all().item<bool>());
  REQUIRE((set.flat_values().narrow(0, 0, 3) == 4.0f).all().item<bool>());
  REQUIRE(set.at("again").alias_of == "a");
}

TEST_CASE("buffers and constants are not optimised, constants not even saved", "[parameters]") {
  ParameterSet set(at::kFloat, 7);
  const at::Tensor version = set.add_buffer("version", at::scalar_tensor(1, at::kLong));
  set.add_constant(at::ones({2}));
  set.add("a", {3}, Init::zeros());
  set.flatten(at::kCPU);
  REQUIRE(set.entries().size() == 2);
  REQUIRE(set.num_trainable() == 3);
  REQUIRE_FALSE(set.at("version").trainable);
  set.assign("version", at::scalar_tensor(5, at::kLong));
  REQUIRE(version.item<int64_t>() == 5);
  REQUIRE_THROWS_WITH(set.gradient(set.at("version")), ContainsSubstring("'version'"));
}

TEST_CASE("models of both precisions start from the same numbers", "[parameters]") {
  ParameterSet single(at::kFloat, 11), twin(at::kDouble, 11), other(at::kFloat, 12);
  const at::Tensor a = single.add("a", {40}, Init::uniform(0.25));
  REQUIRE(at::equal(a.detach().to(at::kDouble), twin.add("a", {40}, Init::uniform(0.25)).detach()));
  REQUIRE_FALSE(at::equal(a, other.add("a", {40}, Init::uniform(0.25))));
  REQUIRE(a.abs().max().item<double>() <= 0.25);
  REQUIRE(a.abs().max().item<double>() > 0.2);
}

TEST_CASE("scopes put names together", "[parameters]") {
  ParameterSet set(at::kFloat, 7);
  const ParameterScope scope = ParameterScope(set) / "mlp" / 2;
  scope.add("weight", {1}, Init::ones());
  REQUIRE(set.contains("mlp.2.weight"));
  REQUIRE(ParameterScope(set).name("x") == "x");
}

TEST_CASE("slices start as on one rank, come after whole tensors, and make the whole again",
          "[parameters]") {
  ParameterSet alone(at::kFloat, 11);
  const at::Tensor whole = alone.add("whole", {4}, Init::uniform(1.0)).detach();
  const at::Tensor rows = alone.add("rows", {5, 2}, Init::uniform(1.0)).detach();
  const at::Tensor columns = alone.add("columns", {3, 2}, Init::uniform(1.0)).detach();
  REQUIRE_NOTHROW(parallel::run_as_threads(3, [&](parallel::Communicator& group) {
    ParameterSet set(at::kFloat, 11);
    set.slice_over(group);
    const ParameterScope scope = ParameterScope(set).sliced();
    scope.add("whole", {4}, Init::uniform(1.0));
    scope.add("rows", {5, 2}, Init::uniform(1.0), scope.ranks().slice(0, 5));
    scope.add("columns", {3, 2}, Init::uniform(1.0), scope.ranks().slice(1, 2));  // none for one
    set.flatten(at::kCPU);
    for (const auto& [name, wanted] : {std::pair("rows", rows), std::pair("columns", columns)}) {
      const Parameter& p = set.at(name);
      AIFS_CHECK(whole_sizes(p) == wanted.sizes().vec(), "another shape of ", name);
      AIFS_CHECK(at::equal(p.tensor.detach(), own_slice(p, wanted)), "another start of ", name);
      AIFS_CHECK(at::equal(whole_tensor(p, p.tensor.detach()), wanted), "not the whole ", name);
      set.assign(name, 2 * wanted);
      AIFS_CHECK(at::equal(whole_tensor(p, p.tensor.detach()), 2 * wanted), "not assigned: ", name);
    }
    AIFS_CHECK(at::equal(set.at("whole").tensor.detach(), whole), "another start of what is whole");
    AIFS_CHECK(set.first_sliced() == ParameterSet::kAlignment, "slices begin elsewhere");
    AIFS_CHECK(set.num_trainable() == 4 + 10 + 6, "counted ", set.num_trainable());
  }));
}

TEST_CASE("misuse is refused by name", "[parameters]") {
  ParameterSet set(at::kFloat, 7);
  set.add("weight", {2, 3}, Init::ones());
  REQUIRE_THROWS_WITH(set.add("weight", {2}, Init::ones()), ContainsSubstring("'weight'"));
  REQUIRE_THROWS_WITH(set.at("wieght"), ContainsSubstring("no tensor 'wieght'"));
  set.flatten(at::kCPU);
  REQUIRE_THROWS_WITH(set.assign("weight", at::ones({3, 2})),
                      ContainsSubstring("'weight' has shape [2, 3], the given one [3, 2]"));
  REQUIRE_THROWS_WITH(set.add("late", {1}, Init::ones()), ContainsSubstring("'late'"));
  REQUIRE_THROWS_AS(set.flatten(at::kCPU), Error);
}

TEST_CASE("working values are views of one copy, as of its last renewal", "[parameters]") {
  ParameterSet set(at::kFloat, 7, at::kBFloat16);
  set.add("a", {2, 3}, Init::uniform(1.0));
  const at::Tensor b = set.add("b", {5}, Init::uniform(1.0));
  REQUIRE(at::equal(set.working(b, at::kBFloat16), b.detach().to(at::kBFloat16)));  // before any
  set.flatten(at::kCPU);
  set.update_working_values();
  const at::Tensor working = set.working(b, at::kBFloat16), part = set.working(b, at::kBFloat16);
  REQUIRE(working.data_ptr() == part.data_ptr());
  REQUIRE(at::equal(working, b.detach().to(at::kBFloat16)));
  set.flat_values().fill_(3.0);
  set.update_working_values();
  REQUIRE((working == 3.0).all().item<bool>());
  REQUIRE(set.working(b, at::kFloat).data_ptr() == b.data_ptr());
  REQUIRE_FALSE(working.requires_grad());
}
