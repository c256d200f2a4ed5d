// SPDX-License-Identifier: Apache-2.0
// Runs on several datasets, each with cells, variables, encoder and decoder of its own.
#include <cmath>

#include "tests/app/ranks.h"
#include "tests/support/wave_store.h"

using namespace aifs;
using namespace aifs::test;

namespace {

std::string set(const std::string& assignment) {
  return concat(" --set '", assignment, "' ");
}

// A network of one kind in every part.
std::string parts(const std::string& kind) {
  std::string options;
  for (const char* part : {"encoder", "processor", "decoder"})
    options += set(concat("model.", part, ".kind=", kind));
  return options;
}

// Two datasets of the same dates: "all" with 72 cells, and "few" with 48 of them and other
// variables in another order.
class TwoDatasets {
 public:
  TwoDatasets() {
    write_wave_store({}, path("all.zarr"));
    write_wave_store({.variables = {"w", "lsm", "t"}}, path("few.zarr"));
  }

  fs::path path(const std::string& name) const { return folder_.path() / name; }
  fs::path fresh() const { return folder_.path() / concat("run", ++count_); }

  std::string datasets(const std::string& of_few = "") const {
    return set(concat(R"(data.datasets={"all": {"dataset": ")", path("all.zarr").string(),
                      R"("}, "few": {"dataset": {"dataset": ")", path("few.zarr").string(),
                      R"(", "area": [50, 0, -50, 360]})", of_few, "}}"));
  }
  std::string options(const std::string& of_few = "") const {
    std::string all;
    for (const std::string& assignment : std::vector<std::string>{
             "data.kind=anemoi", "graph.grid=dataset", "graph.hidden.refinement=1",
             R"(data.training={"start": "2020-01-01", "end": "2020-01-03T06"})",
             R"(data.validation={"start": "2020-01-03T06", "end": "2020-01-04T18"})",
             R"(data.forcing=["lsm"])", "data.diagnostic=[]",
             R"(data.normalizer={"default": "mean-std", "none": ["lsm"]})", "model.bounding=[]",
             "train.max_steps=6", "checkpoint.every_steps=3", "train.validation.every_epochs=0",
             "optimizer.schedule.total_steps=100"})
      all += set(assignment);
    return all + datasets(of_few);
  }
  fs::path trained(const std::string& more = "") const {
    const fs::path dir = fresh();
    const auto result = run_train(dir, options() + more);
    INFO(result.out << result.err);
    REQUIRE(result.exit_code == 0);
    return dir;
  }
  std::string fails(int code, const std::string& options) const {
    const auto result = run_train(fresh(), options);
    INFO(result.out << result.err);
    REQUIRE(result.exit_code == code);
    return result.err;
  }

 private:
  TemporaryFolder folder_;
  mutable int count_ = 0;
};

const std::string kSixth = "checkpoints/step-00000006";

}  // namespace

TEST_CASE("two datasets train one network: the same bits on any threads and after a break",
          "[several_datasets]") {
  const TwoDatasets t;
  const fs::path wanted = t.trained();
  const std::vector<double> losses = losses_of(wanted);
  REQUIRE(losses.size() == 6);
  REQUIRE(losses.back() < losses.front());
  const std::string bits = read_file(wanted / kSixth / "parameters.safetensors");
  const SafetensorsFile weights(wanted / kSixth / "parameters.safetensors");
  for (const char* name : {"all", "few"}) {
    INFO(name);
    const auto has = [&](const std::string& start) {
      return std::any_of(weights.entries().begin(), weights.entries().end(),
                         [&](const auto& entry) { return entry.first.starts_with(start); });
    };
    REQUIRE(has(concat("encoder.", name, ".")));
    REQUIRE(has(concat("decoder.", name, ".")));
  }
  for (const int threads : {1, 8}) {
    const fs::path dir = t.trained(set(concat("data.threads=", threads)));
    REQUIRE(losses_of(dir) == losses);
    REQUIRE(read_file(dir / kSixth / "parameters.safetensors") == bits);
  }
  const fs::path broken = t.trained(set("train.max_steps=3"));
  const auto resumed = run_train(broken, t.options() + "--resume");
  INFO(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  REQUIRE(losses_of(broken) == losses);
  REQUIRE(read_file(broken / kSixth / "parameters.safetensors") == bits);
}

TEST_CASE("each of several datasets has scores, the same in training and by themselves",
          "[several_datasets]") {
  const TwoDatasets t;
  const fs::path dir = t.trained(set(R"(train.validation.lead_times=["6h", "12h"])"));
  const Json scores = lines_of(dir / "validation.jsonl").back();
  REQUIRE_FALSE(scores.contains("lead_times"));
  REQUIRE(scores["datasets"]["all"]["lead_times"]["12h"]["rmse"].size() == 3);  // t, q, z
  REQUIRE(scores["datasets"]["few"]["lead_times"]["6h"]["rmse"].contains("w"));
  REQUIRE_FALSE(scores["datasets"]["few"]["lead_times"]["6h"]["rmse"].contains("q"));
  const auto again = run_train(
      dir, t.options() + set(R"(train.validation.lead_times=["6h", "12h"])") + "--validate-only");
  INFO(again.err);
  REQUIRE(again.exit_code == 0);
  REQUIRE_THAT(again.out, ContainsSubstring("few"));
  const Json alone = Json::parse(read_file(dir / "validation-step-6.json"));
  REQUIRE(alone["datasets"] == scores["datasets"]);
  REQUIRE(alone["loss"] == scores["loss"]);
}

TEST_CASE("the loss of several datasets is the sum of theirs", "[several_datasets]") {
  // Weights of a variable that only one dataset has change the loss by its part alone: the loss is
  // linear in them, whatever the other dataset gives.
  const TwoDatasets t;
  const auto first_loss = [&](const std::string& weights) {
    const fs::path dir = t.trained(set("train.max_steps=1") + set("train.validation.at_end=false") +
                                   set(concat("loss.variable_weights=", weights)));
    return losses_of(dir).at(0);
  };
  const double none = first_loss(R"({"default": 1, "w": 0, "q": 0})");
  const double w = first_loss(R"({"default": 1, "w": 1, "q": 0})");
  const double q = first_loss(R"({"default": 1, "w": 0, "q": 1})");
  const double both = first_loss(R"({"default": 1, "w": 1, "q": 1})");
  REQUIRE(w > none);
  REQUIRE(q > none);
  REQUIRE(std::abs((both - none) - (w - none) - (q - none)) < 1e-6 * both);
}

TEST_CASE("gaps of one dataset are left out of all", "[several_datasets]") {
  const TwoDatasets t;
  const auto samples = [&](const std::string& of_few) {
    const fs::path dir = t.fresh();
    const auto result = run_train(
        dir,
        t.options() + set("train.max_steps=0") + set("train.max_epochs=1") +
            set("data.batch_size=1") + set("optimizer.schedule.kind=constant") +
            set(concat(R"(data.datasets.few.dataset={"dataset": ")", t.path("few.zarr").string(),
                       R"(", "area": [50, 0, -50, 360])", of_few, "}")));
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return losses_of(dir).size();
  };
  // The date at which one period ends and the other begins: a sample of each.
  REQUIRE(samples(R"(, "set_missing_dates": ["2020-01-03T06:00:00"])") == samples("") - 1);
}

TEST_CASE("what several datasets cannot be is said with its place", "[several_datasets]") {
  const TwoDatasets t;
  REQUIRE_THAT(t.fails(2, t.options(R"(, "forcing": ["lsm", "nowhere"])")),
               ContainsSubstring("'data.datasets.few.forcing'"));
  REQUIRE_THAT(t.fails(2, t.options(R"(, "colour": 1)")),
               ContainsSubstring("data.datasets.few.colour"));
  REQUIRE_THAT(t.fails(2, t.options() + set("data.datasets.few.dataset.colour=1")),
               ContainsSubstring("data.datasets.few.dataset.colour"));
  REQUIRE_THAT(
      t.fails(2, t.options(R"(, "encoder": "all")") + set("data.datasets.all.encoder=all")),
      ContainsSubstring("'data.datasets.few.encoder'") && ContainsSubstring("inputs"));
  REQUIRE_THAT(t.fails(2, t.options() + set("parallel.model=2")),
               ContainsSubstring("'parallel.model'"));
  REQUIRE_THAT(t.fails(2, t.options() + set("graph.grid=o8")), ContainsSubstring("'graph.grid'"));
  REQUIRE_THAT(t.fails(2, t.options() + set(R"(data.datasets={"hidden": {"dataset": "x"}})")),
               ContainsSubstring("'data.datasets.hidden'"));
  REQUIRE_THAT(t.fails(2, t.options() + set(R"(data.datasets={"a": {}})")),
               ContainsSubstring("'data.datasets.a.dataset'"));
  REQUIRE_THAT(t.fails(2, t.options() + set("data.datasets=[]")),
               ContainsSubstring("'data.datasets'"));
  REQUIRE_THAT(t.fails(2, t.options() + set(concat("data.dataset=", t.path("all.zarr").string()))),
               ContainsSubstring("'data.dataset'"));
  REQUIRE_THAT(
      t.fails(2, t.options() +
                     set(R"(model.bounding=[{"kind": "relu", "variables": ["w", "nowhere"]}])")),
      ContainsSubstring("'model.bounding.0.variables'"));
  write_wave_store({.variables = {"w", "lsm", "t"}, .num_dates = 12}, t.path("short.zarr"));
  REQUIRE_THAT(t.fails(3, t.options() + set(concat("data.datasets.few.dataset=",
                                                   t.path("short.zarr").string()))),
               ContainsSubstring("have the same dates"));
  const auto checked = run_train(t.fresh(), t.options() + "--check-config");
  INFO(checked.err);
  REQUIRE(checked.exit_code == 0);
  REQUIRE_THAT(checked.out, ContainsSubstring("data 'few'") && ContainsSubstring("48 few nodes"));
}

TEST_CASE("a run of several datasets goes on with the same ones only", "[several_datasets]") {
  const TwoDatasets t;
  const fs::path dir = t.trained();
  const auto used = [&](int code, const std::string& more) {
    const auto result =
        run_train(dir, t.options() + set("train.max_steps=7") + more + "--validate-only");
    INFO(result.out << result.err);
    REQUIRE(result.exit_code == code);
    return result.err;
  };
  const std::string all = concat(R"("all": {"dataset": ")", t.path("all.zarr").string(), R"("})");
  REQUIRE_THAT(used(3, set(concat("data.datasets={", all, "}"))), ContainsSubstring("'few'"));
  REQUIRE_THAT(used(3, set(concat("data.datasets={", all, R"(, "other": {"dataset": ")",
                                  t.path("few.zarr").string(), R"("}})"))),
               ContainsSubstring("'few'"));
  // A variable that plays another role.
  REQUIRE_THAT(used(3, set(R"(data.datasets.few.forcing=["lsm", "w"])")),
               ContainsSubstring("'w' was prognostic and is forcing"));
}

TEST_CASE("latents side by side, shared encoders and a single named dataset train and go on",
          "[several_datasets]") {
  const TwoDatasets t;
  const auto goes_on = [&](const std::string& options) {
    const fs::path dir = t.fresh();
    for (const char* more : {"", "--validate-only"}) {
      const auto result = run_train(dir, options + more);
      INFO(options << result.out << result.err);
      REQUIRE(result.exit_code == 0);
    }
    return dir;
  };
  const std::string concat_options =
      t.options() + parts("graph_transformer") + set("model.encoder.heads=2") +
      set("model.processor.heads=2") + set("model.decoder.heads=2") +
      set("model.aggregation=concat") + set("model.processor.channels=16") +
      set(R"(model.bounding=[{"kind": "relu", "variables": ["q"]}])");
  goes_on(concat_options);
  REQUIRE_THAT(t.fails(2, t.options() + set("model.aggregation=concat")),
               ContainsSubstring("'model.processor.channels'"));
  goes_on(t.options() + set("model.aggregation=mean"));
  const auto named = [&](const std::string& datasets) {
    return t.options() + set(concat("data.datasets={", datasets, "}"));
  };
  const std::string store = concat(R"("dataset": ")", t.path("all.zarr").string(), R"(")");
  goes_on(named(concat(R"("data": {)", store, "}")));
  const std::string own = concat(R"("a": {)", store, R"(}, "b": {)", store);
  const fs::path shared = goes_on(named(own + R"(, "encoder": "a"})"));
  const SafetensorsFile weights(shared / kSixth / "parameters.safetensors");
  for (const auto& [name, entry] : weights.entries())
    REQUIRE_FALSE(name.starts_with("encoder.b."));
  const auto swapped = run_train(shared, named(own + "}") + "--validate-only");
  REQUIRE(swapped.exit_code == 3);
  // An option that is given counts, even where it is the default, or empty.
  const auto first_loss = [&](const std::string& more, const std::string& of_a) {
    const fs::path dir = t.fresh();
    const auto result = run_train(
        dir, named(concat(R"("a": {)", store, of_a, "}")) + more + set("train.max_steps=1"));
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return losses_of(dir).at(0);
  };
  const std::string none = set(R"(data.normalizer={"default": "none"})");
  const std::string mean = set(R"(data.normalizer={"default": "mean-std"})");
  REQUIRE(first_loss(none, R"(, "normalizer": {"default": "mean-std"})") == first_loss(mean, ""));
  REQUIRE(first_loss(none, "") != first_loss(mean, ""));
  REQUIRE(first_loss(mean + set(R"(data.forcing=["nowhere"])"), R"(, "forcing": [])") ==
          first_loss(mean + set("data.forcing=[]"), ""));
  // And is kept in what a checkpoint says of its configuration.
  const auto printed = run_train(
      t.fresh(), named(concat(R"("a": {)", store, R"(, "forcing": []})")) + "--print-config");
  REQUIRE(Json::parse(printed.out)["data"]["datasets"]["a"]["forcing"].is_array());
  REQUIRE(Json::parse(printed.out)["data"]["datasets"]["a"]["imputer"].is_null());
}

TEST_CASE("each of several datasets may have its own parts", "[several_datasets]") {
  const TwoDatasets t;
  const std::string own =
      set(R"(model.encoders={"few": {"mlp_hidden_ratio": 2, "trainable": 3}})") +
      set(R"(model.decoders={"few": {"trainable": 2}})") +
      set(R"(model.residuals={"few": {"kind": "none"}})") +
      set(R"(model.trainable_parameters.nodes={"few": 5, "hidden": 1})") +
      set(R"(model.bounding=[{"kind": "relu", "variables": ["t"], "datasets": ["all"]}])");
  const fs::path dir = t.trained(own);
  const SafetensorsFile weights(dir / kSixth / "parameters.safetensors");
  const auto shape = [&](const std::string& name) { return weights.at(name).shape; };
  REQUIRE(shape("node_attributes.trainable_tensors.few.trainable").back() == 5);
  REQUIRE(shape("node_attributes.trainable_tensors.hidden.trainable").back() == 1);
  REQUIRE(shape("encoder_graph_provider.few.trainable.trainable").back() == 3);
  REQUIRE(shape("decoder_graph_provider.few.trainable.trainable").back() == 2);
  REQUIRE(shape("encoder_graph_provider.all.trainable.trainable").back() !=
          shape("encoder_graph_provider.few.trainable.trainable").back());
  const auto scored = run_train(dir, t.options() + own + "--validate-only");
  INFO(scored.err);
  REQUIRE(scored.exit_code == 0);
  // Another residual makes another network of the same tensors.
  const auto other =
      run_train(dir, t.options() + own + set("model.residuals={}") + "--validate-only");
  REQUIRE(other.exit_code == 3);
  REQUIRE_THAT(other.err, ContainsSubstring("model.residuals"));
  REQUIRE_THAT(t.fails(2, t.options() + set(R"(model.encoders={"fwe": {}})")),
               ContainsSubstring("'model.encoders.fwe'"));
  REQUIRE_THAT(t.fails(2, t.options() + set(R"(model.encoders={"few": {"kind": "point_wise"}})")),
               ContainsSubstring("'model.encoders.few.kind'"));
}

TEST_CASE("shared keys are named where they stand, with the dataset that they do not fit",
          "[several_datasets]") {
  const TwoDatasets t;
  REQUIRE_THAT(t.fails(2, t.options() + set(R"(data.forcing=["lsm", "q"])")),
               ContainsSubstring("'data.forcing'") && ContainsSubstring("'few'"));
  REQUIRE_THAT(t.fails(2, t.options() + set(R"(data.dataset={"drop": ["q"]})")),
               ContainsSubstring("'data.dataset.drop'"));
  REQUIRE_THAT(t.fails(2, t.options() +
                              set(concat("data.datasets={\"a\": {\"dataset\": \"",
                                         t.path("all.zarr").string(), "\"}}")) +
                              set("model.aggregation=mean")),
               ContainsSubstring("'model.aggregation'"));
  REQUIRE_THAT(
      t.fails(2, t.options() + set(R"(model.bounding=[{"kind": "fraction", "variables": ["t"],
                                       "total_var": "q"}])")),
      ContainsSubstring("'model.bounding.0.total_var'") && ContainsSubstring("'few'"));
  REQUIRE_THAT(t.fails(2, t.options() + parts("point_wise")),
               ContainsSubstring("'model.encoder.kind'"));
  const auto missing = run_train(
      t.fresh(), t.options() + set("data.datasets.few.dataset=/nowhere.zarr") + "--check-config");
  REQUIRE(missing.exit_code == 3);
  REQUIRE_THAT(missing.out, ContainsSubstring("data.datasets.few.dataset"));
}

#ifdef AIFS_HAVE_MPI
TEST_CASE("replicas train on several datasets", "[several_datasets]") {
  const TwoDatasets t;
  const std::string replicas = t.options() + set("data.batch_size=1") +
                               set("parallel.reproducible=true") + set("parallel.virtual_ranks=2");
  const fs::path one = t.fresh(), two = t.fresh();
  const auto alone = run_train(one, replicas), result = run_ranks(2, two, replicas);
  INFO(alone.err << result.err);
  REQUIRE(alone.exit_code == 0);
  REQUIRE(result.exit_code == 0);
  REQUIRE(losses_of(two) == losses_of(one));
  REQUIRE(read_file(two / kSixth / "parameters.safetensors") ==
          read_file(one / kSixth / "parameters.safetensors"));
}
#endif
