// SPDX-License-Identifier: Apache-2.0
// Shared-out states and reduced gradients: the same training as on one rank, whatever is shared.
#include <ATen/ATen.h>

#include <nlohmann/json.hpp>

#include "core/file_io.h"
#include "core/safetensors.h"
#include "parallel/backends/comm_virtual.h"
#include "parallel/backends/counting_communicator.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"
#include "tests/support/tensors.h"
#include "tests/train/small_training.h"
#include "train/trainer.h"

using namespace aifs;
using namespace aifs::train;
using test::SmallTraining;

namespace {

TrainerOptions options_in(const fs::path& run_dir) {
  TrainerOptions options;
  options.train.max_steps = 5;
  options.train.validation.at_end = false;
  options.train.rollout = {.start = 2, .maximum = 2};
  options.train.accumulate_batches = 2;
  options.optimizer.schedule.kind = ScheduleKind::kConstant;
  options.optimizer.schedule.lr = 1e-2;
  options.optimizer.schedule.warmup_steps = 0;
  options.optimizer.clip = ClipKind::kNorm;
  options.optimizer.clip_limit = 0.5;
  options.optimizer.average = {.kind = AverageKind::kExponential, .decay = 0.9};
  options.optimizer.groups = {{.parameters = {"encoder"}, .lr_factor = 0.5}};
  options.log.tensorboard = false;
  options.log.progress_bar = false;
  options.log.every_steps = 1000000;
  options.reduction.bucket_mb = 0.001;  // many buckets
  options.run_dir = run_dir;
  make_directories(run_dir);
  options.checkpoint_meta.config_json = "{}";
  return options;
}

// A batch of `samples` over all replicas. Two of 6 are an epoch of 15 rows: every step sees every
// sample, whoever reads it.
TrainerParts parts_of(SmallTraining& t, int64_t samples, const parallel::ProcessMesh& mesh) {
  const parallel::Counts cells = starts_of(t.cells_per_rank);
  const auto part = static_cast<size_t>(mesh.model().rank());
  return {.source = t.source,
          .variables = t.variables,
          .window = t.window,
          .sampling = {.seed = 1,
                       .batch_size = samples / mesh.sizes().data,
                       .num_groups = mesh.sizes().data,
                       .group = mesh.replica()},
          .loading = {.nodes = {cells[part], cells[part + 1]}},
          .parameters = t.parameters,
          .network = *t.network,
          .loss = std::make_shared<PointwiseTerm>(mse_error(), ElementaryOptions()),
          .loss_nodes = slice_of_group(t.cells_per_rank, mesh.model()),
          .mesh = mesh};
}

fs::path find_last(const fs::path& run_dir) {
  std::string name = read_file(run_dir / "checkpoints/latest");
  name.resize(name.find('\n'));
  return run_dir / "checkpoints" / name;
}

// Everything that the checkpoint after the last step holds.
std::map<std::string, std::vector<double>> result_of(const fs::path& run_dir) {
  std::map<std::string, std::vector<double>> tensors;
  for (const char* name : {"parameters.safetensors", "optimizer.safetensors"}) {
    const SafetensorsFile file(find_last(run_dir) / name);
    for (const auto& [key, entry] : file.entries()) {
      if (entry.dtype != DType::kI64) tensors[key] = file.doubles(key);
    }
  }
  return tensors;
}

void require_equal(const fs::path& a, const fs::path& b, double limit) {
  const auto ours = result_of(a), theirs = result_of(b);
  REQUIRE(ours.size() == theirs.size());
  for (const auto& [name, expected] : theirs) {
    INFO(name);
    const std::vector<double>& got = ours.at(name);
    REQUIRE(got.size() == expected.size());
    double worst = 0.0;
    for (size_t i = 0; i < got.size(); ++i)
      worst = std::max(worst, std::abs(got[i] - expected[i]));
    REQUIRE(worst <= limit);
  }
}

void train_on(int ranks, int64_t samples, const TrainerOptions& options) {
  parallel::run_as_threads(ranks, [&](parallel::Communicator& world) {
    const parallel::ProcessMesh mesh(world, {.model = 1, .data = ranks});
    SmallTraining t(15, 3, at::kDouble);
    Trainer(options, parts_of(t, samples, mesh)).run();
  });
}

// The folder of a run of a family under a layout.
fs::path train_family(const test::TemporaryFolder& folder, const test::NetworkFamily& family,
                      const parallel::MeshSizes& sizes, Sharding states) {
  const fs::path dir = folder.path() / concat(sizes.model, sizes.data, sizes.tensor, sizes.pipeline,
                                              enum_name(states));
  TrainerOptions options = options_in(dir);
  options.sharding.states = states;
  // The second step has what the first made of weights, moments and average.
  options.train.max_steps = 2;
  // Nothing depends on the bias of keys, and a smaller epsilon would make its rounding large.
  options.optimizer.adamw.eps = 1e-5;
  const int64_t ranks = sizes.model * sizes.data * sizes.tensor * sizes.pipeline;
  parallel::run_as_threads(static_cast<int>(ranks), [&](parallel::Communicator& world) {
    const parallel::ProcessMesh mesh(world, sizes);
    SmallTraining t(15, family, mesh);
    Trainer(options, parts_of(t, 6, mesh)).run();
  });
  return dir;
}

// Has memory for gradients, as cards of one host have.
class Lending : public parallel::CountingCommunicator {
 public:
  explicit Lending(std::unique_ptr<Communicator> inner)
      : CountingCommunicator(*inner, std::make_shared<parallel::CommunicationCount>()),
        inner_(std::move(inner)) {}
  at::Tensor background_memory(int64_t elements, int64_t largest,
                               const at::TensorOptions& options) override {
    return at::zeros({elements + largest}, options).narrow(0, 0, elements);
  }
  std::unique_ptr<Communicator> split(int colour) override {
    return std::make_unique<Lending>(CountingCommunicator::split(colour));
  }

 private:
  std::unique_ptr<Communicator> inner_;
};

}  // namespace

TEST_CASE("every family trains as on one rank under every layout", "[sharding]") {
  for (const test::NetworkFamily& family : test::network_families()) {
    const model::ModelOptions options = family.plan().options;
    // Threads share the generator that noise comes from.
    if (family.two_datasets || options.ensemble.noise != model::NoiseKind::kNone) continue;
    const test::TemporaryFolder folder;
    const fs::path one = train_family(folder, family, {.data = 1}, Sharding::kNone);
    for (const auto& [sizes, states] : std::vector<std::pair<parallel::MeshSizes, Sharding>>{
             {{.model = 3, .data = 1}, Sharding::kNone},
             {{.model = 2, .data = 2}, Sharding::kGradients},
             {{.data = 2}, Sharding::kParameters},
             {{.data = 2, .tensor = 2}, Sharding::kOptimizer},
             {{.data = 1, .pipeline = 2}, Sharding::kNone},
             {{.data = 2, .pipeline = 3}, Sharding::kParameters}}) {
      if (sizes.pipeline > 1 && options.processor.kind == model::BlockKind::kNone) continue;
      if (sizes.tensor > 1 && !family.can_be_sliced()) continue;
      INFO(family.name << ", model " << sizes.model << ", data " << sizes.data << ", tensor "
                       << sizes.tensor << ", pipeline " << sizes.pipeline << ", states "
                       << enum_name(states));
      require_equal(train_family(folder, family, sizes, states), one, 1e-12);
    }
  }
}

TEST_CASE("shared-out moments, gradients and values train as whole ones do", "[sharding]") {
  const test::TemporaryFolder folder;
  const fs::path one = folder.path() / "one";
  train_on(1, 6, options_in(one));
  struct Layout {
    int ranks;
    Sharding states;
    int64_t per_group;
    Prefetch prefetch;
  };
  for (const Layout& layout : std::vector<Layout>{{3, Sharding::kNone, 0, Prefetch::kNone},
                                                  {3, Sharding::kOptimizer, 0, Prefetch::kNone},
                                                  {3, Sharding::kGradients, 0, Prefetch::kNone},
                                                  {3, Sharding::kParameters, 0, Prefetch::kNone},
                                                  {2, Sharding::kParameters, 0, Prefetch::kPre},
                                                  {6, Sharding::kParameters, 3, Prefetch::kPost},
                                                  {6, Sharding::kGradients, 2, Prefetch::kNone},
                                                  {1, Sharding::kParameters, 0, Prefetch::kPre}}) {
    INFO(layout.ranks << " ranks, states " << enum_name(layout.states) << " over "
                      << layout.per_group);
    const fs::path dir =
        folder.path() / concat(layout.ranks, enum_name(layout.states), layout.per_group);
    TrainerOptions options = options_in(dir);
    options.sharding.states = layout.states;
    options.sharding.ranks = layout.per_group;
    options.sharding.prefetch = layout.prefetch;
    options.sharding.offload = layout.ranks == 2 ? Offload::kParameters : Offload::kNone;
    train_on(layout.ranks, 6, options);
    require_equal(dir, one, 1e-12);
  }
}

TEST_CASE("a rank keeps its share of moments and gradients only", "[sharding]") {
  const test::TemporaryFolder folder;
  parallel::run_as_threads(4, [&](parallel::Communicator& world) {
    const parallel::ProcessMesh mesh(world, {.model = 1, .data = 4});
    SmallTraining t(15, 3, at::kDouble);
    const int64_t all = t.parameters.flat_size();
    ParameterShards shards(t.parameters, {.states = Sharding::kParameters}, 1.0, mesh);
    GradientReducer reducer(t.parameters, shards, {}, mesh, 1);
    shards.take_values();
    const auto blocks = static_cast<int64_t>(shards.layout().buckets().size());
    const int64_t most = all / 4 + blocks * model::ParameterSet::kAlignment;
    const bool ok = !t.parameters.flat_values().defined() &&
                    !t.parameters.flat_gradients().defined() &&
                    shards.local_values().numel() <= most &&
                    reducer.own_gradients().whole.at(0).numel() <= most;
    if (!ok) throw Error("a rank keeps more than its share");
    // Values are there while they are fetched.
    const model::Parameter& weight = t.parameters.at("processor.proc.0.node_mlp.mlp.0.weight");
    if (weight.tensor.storage().nbytes() != 0) throw Error("values are there unasked");
    shards.fetch(weight.unit);
    const bool sound =
        weight.tensor.isfinite().all().item<bool>() && weight.tensor.abs().sum().item<double>() > 0;
    shards.release(weight.unit);
    if (!sound || weight.tensor.storage().nbytes() != 0) throw Error("values do not come and go");
  });
}

TEST_CASE("gradients of one host come in two pieces, others in many or all at once", "[sharding]") {
  constexpr double kAll_mb = 120.0;
  REQUIRE(bucket_mb({}, {}, /*one_host=*/true, kAll_mb) == Approx(100.0));
  REQUIRE(bucket_mb({}, {}, /*one_host=*/false, kAll_mb) == 25.0);
  REQUIRE(bucket_mb({}, {.bucket_mb = 7.0}, true, kAll_mb) == 7.0);
  REQUIRE(bucket_mb({}, {.overlap = false, .bucket_mb = 7.0}, true, kAll_mb) == kAllAtOnce_mb);
  REQUIRE(bucket_mb({}, {.compression = Compression::kBf16}, true, kAll_mb) == kAllAtOnce_mb);
  REQUIRE(bucket_mb({.states = Sharding::kGradients}, {.overlap = false}, true, kAll_mb) == 25.0);
}

TEST_CASE("gradients that lie in memory of their own are counted with what comes of others",
          "[sharding]") {
  parallel::run_as_threads(2, [&](parallel::Communicator& threads) {
    Lending world(threads.split(0));
    const parallel::ProcessMesh mesh(world, {.model = 1, .data = 2});
    for (const double bucket_mb : {1e-3, 1.0}) {
      SmallTraining t;
      ParameterShards shards(t.parameters, {}, bucket_mb, mesh);
      const GradientReducer reducer(t.parameters, shards, {}, mesh, 1);
      int64_t elements = 0;
      for (const ShardBucket& bucket : shards.layout().buckets())
        elements = std::max(elements, bucket.size());
      elements += t.parameters.flat_size();
      const int64_t bytes = shards.layout().buckets().size() > 1
                                ? t.parameters.flat_values().element_size() * elements
                                : 0;
      if (reducer.background_bytes() != bytes)
        throw Error(concat(reducer.background_bytes(), " bytes, expected ", bytes));
      if ((bytes > 0) != (bucket_mb < 1.0)) throw Error("both cases should occur");
    }
  });
}

TEST_CASE("gradients in 16 bits train almost alike", "[sharding]") {
  const test::TemporaryFolder folder;
  const fs::path one = folder.path() / "one";
  train_on(1, 6, options_in(one));
  for (const Compression compression : {Compression::kBf16, Compression::kFp16}) {
    for (const Sharding states : {Sharding::kNone, Sharding::kGradients}) {
      const fs::path dir = folder.path() / concat(enum_name(compression), enum_name(states));
      TrainerOptions options = options_in(dir);
      options.reduction.compression = compression;
      options.sharding.states = states;
      train_on(3, 6, options);
      require_equal(dir, one, 0.05);
      REQUIRE(result_of(dir) != result_of(one));  // it did travel so
    }
  }
}

TEST_CASE("PowerSGD sums what it would not make smaller, and loses nothing in the long run",
          "[sharding]") {
  for (const int64_t rank : {6, 1}) {
    parallel::run_as_threads(3, [&](parallel::Communicator& group) {
      model::ParameterSet set(at::kDouble, 1);
      set.add("bias", {5}, model::Init::zeros());
      set.add("weight", {20, 6}, model::Init::zeros());
      set.flatten(at::kCPU);
      const ShardLayout layout(set, 1 << 20, false, 1, 0);
      const ShardBucket& bucket = layout.buckets().at(0);
      PowerSgd power_sgd(set, {.compression = Compression::kPowerSgd, .rank = rank}, 7);
      // Gives equal gradients in every step, different ones on every rank.
      const auto gradients_of = [&](int member) {
        at::Tensor g = at::zeros({bucket.size()}, at::kDouble);
        g.narrow(0, 0, 5).copy_(test::random_tensor({5}, static_cast<uint64_t>(member)));
        g.narrow(0, 64, 120).copy_(test::random_tensor({120}, static_cast<uint64_t>(9 + member)));
        return g;
      };
      const at::Tensor sum = gradients_of(0) + gradients_of(1) + gradients_of(2);
      at::Tensor total = at::zeros_like(sum);
      constexpr int kSteps = 600;
      for (int step = 0; step < kSteps; ++step) {
        const at::Tensor g = gradients_of(group.rank());
        power_sgd.reduce(bucket, g, group);
        total += g;
      }
      const double limit = rank == 6 ? 1e-10 : 0.05;
      const double off = (total / kSteps - sum).abs().max().item<double>();
      if (off > limit) throw Error(concat("rank ", rank, " is off by ", off));
      const int64_t sent = power_sgd.elements_sent(bucket);
      if (sent != (rank == 6 ? bucket.size() : bucket.size() - 120 + 26))
        throw Error(concat(sent, " elements are sent"));
    });
  }
}

TEST_CASE("a parameter without a gradient is named", "[sharding]") {
  parallel::run_as_threads(2, [&](parallel::Communicator& world) {
    const parallel::ProcessMesh mesh(world, {.model = 1, .data = 2});
    model::ParameterSet set(at::kDouble, 1);
    const at::Tensor used = set.add("used", {3}, model::Init::ones());
    set.add("idle", {3}, model::Init::ones());
    set.flatten(at::kCPU);
    ParameterShards shards(set, {}, 25.0, mesh);
    GradientReducer reducer(set, shards, {}, mesh, 1);
    reducer.start_step(0);
    reducer.start_pass(1, true);
    used.sum().backward();
    try {
      reducer.end_pass();
    } catch (const Error& error) {
      if (std::string(error.what()).find("'idle'") != std::string::npos) return;
    }
    throw Error("nobody missed the gradient of 'idle'");
  });
}

TEST_CASE("choices that do not go together are refused", "[sharding]") {
  REQUIRE_THROWS_WITH(
      check_reduction({.states = Sharding::kOptimizer}, {.compression = Compression::kPowerSgd}),
      ContainsSubstring("parallel.gradients.compression"));
  const ShardingOptions wrong{.states = Sharding::kNone, .offload = Offload::kParameters};
  REQUIRE_THROWS_WITH(wrong.validate("parallel.sharding"),
                      ContainsSubstring("parallel.sharding.offload"));
  parallel::run_as_threads(3, [&](parallel::Communicator& world) {
    const parallel::ProcessMesh mesh(world, {.model = 1, .data = 3});
    SmallTraining t;
    try {
      ParameterShards shards(t.parameters, {.states = Sharding::kOptimizer, .ranks = 2}, 1.0, mesh);
    } catch (const ConfigError&) {
      return;
    }
    throw Error("groups of 2 among 3 ranks");
  });
}
