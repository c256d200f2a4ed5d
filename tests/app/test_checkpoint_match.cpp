// SPDX-License-Identifier: Apache-2.0
// Weights of a checkpoint with other data, another network or another graph than they were trained
// with: refused where they would mean something else, told where the course changes.
#include <nlohmann/json.hpp>

#include "core/file_io.h"
#include "core/safetensors.h"
#include "tests/app/program.h"
#include "tests/support/catch.h"
#include "tests/support/wave_store.h"

using namespace aifs;
using test::CommandResult;
using test::run_train;
using test::WaveStore;

namespace {

std::string set(const std::string& assignment) {
  return concat(" --set '", assignment, "' ");
}

// A run of four steps on the plain store, and others on other stores.
class Trained {
 public:
  Trained() {
    store("plain", {});
    require(run_train(run(), options("plain")), 0);
  }

  fs::path run() const { return folder_.path() / "run"; }
  fs::path file(const std::string& name) const { return folder_.path() / name; }
  std::string checkpoint() const { return (run() / "checkpoints/step-00000004").string(); }

  std::string store(const std::string& name, const WaveStore& spec) const {
    test::write_wave_store(spec, file(name + ".zarr"));
    return name;
  }
  std::string options(const std::string& name, const std::string& forcing = R"(["lsm"])",
                      const std::string& diagnostic = "[]") const {
    return test::wave_options(file(name + ".zarr"), forcing, diagnostic);
  }

  // Returns what going on with the run says, in a copy of it.
  std::string resumed(int code, const std::string& more) const {
    return used(code, more + set("train.max_steps=6") + "--resume");
  }
  std::string scored(int code, const std::string& more) const {
    return used(code, more + "--validate-only");
  }
  std::string started(int code, const std::string& more) const {
    return require(run_train(fresh(), more + start()), code);
  }
  // Returns what a check of it says.
  std::string checked(int code, const std::string& more) const {
    return require(run_train(fresh(), more + start() + "--check-config"), code);
  }
  std::string exported(int code, const std::string& more) const {
    const fs::path to = fresh();
    return require(test::run_command(concat("'", test::program("aifs-train").string(), "' export '",
                                            checkpoint(), "' '", to.string(), "' ", more)),
                   code);
  }
  double last_loss() const { return last_loss_; }

  fs::path fresh() const { return folder_.path() / concat("other", ++count_); }
  std::string start() const { return set(concat("init.from=", checkpoint())); }

  static std::string require(const CommandResult& result, int code) {
    INFO(result.out << result.err);
    REQUIRE(result.exit_code == code);
    return result.out + result.err;
  }

 private:
  std::string used(int code, const std::string& more) const {
    const fs::path copy = fresh();
    fs::copy(run(), copy, fs::copy_options::recursive);
    const std::string text = require(run_train(copy, more), code);
    if (fs::exists(copy / "validation-step-4.json"))
      last_loss_ = nlohmann::json::parse(read_file(copy / "validation-step-4.json"))["loss"];
    return text;
  }

  test::TemporaryFolder folder_;
  mutable int count_ = 0;
  mutable double last_loss_ = 0.0;
};

}  // namespace

TEST_CASE("a run goes on, is scored and exported with the variables that it was trained on only",
          "[checkpoint_match]") {
  const Trained t;
  const std::string swapped = t.options(t.store("swapped", {.variables = {"q", "t", "z", "lsm"}}));
  const std::string text = "variable 0 was 't' and is 'q'; variable 1 was 'q' and is 't'";
  REQUIRE_THAT(t.resumed(3, swapped), ContainsSubstring(text));
  REQUIRE_THAT(t.scored(3, swapped), ContainsSubstring(text));
  REQUIRE_THAT(t.started(2, swapped),
               ContainsSubstring("'init.from'") &&
                   ContainsSubstring("of the inputs, column 0 was 't' and is 'q'") &&
                   ContainsSubstring("of the outputs, column 0"));
  REQUIRE_THAT(t.checked(2, swapped), ContainsSubstring("column 0 was 't' and is 'q'"));
  const fs::path config = t.file("swapped.json");
  fs::copy(test::tiny_config(), config);
  const std::string given = concat("--config '", config.string(), "'", swapped);
  REQUIRE_THAT(t.exported(3, given), ContainsSubstring(text));
  t.exported(0, "");
  // Roles count as names do.
  REQUIRE_THAT(t.resumed(3, t.options("plain", R"(["lsm", "z"])")),
               ContainsSubstring("'z' was prognostic and is forcing"));
}

TEST_CASE("statistics are the checkpoint's where weights are scored, and must be to go on",
          "[checkpoint_match]") {
  const Trained t;
  t.scored(0, t.options("plain"));
  const double loss = t.last_loss();
  const std::string other = t.options(t.store("stdev", {.stdev_of_q = 1.3}));
  REQUIRE_THAT(t.resumed(3, other), ContainsSubstring("'q' was normalised as"));
  REQUIRE_THAT(t.resumed(0, other + set("data.tables=checkpoint")),
               ContainsSubstring("the statistics are those of checkpoint"));
  REQUIRE_THAT(t.scored(0, other), ContainsSubstring("the stdev of 'q' was"));
  REQUIRE(t.last_loss() == loss);  // fields are the same, and so are tables
  t.scored(0, other + set("data.tables=dataset"));
  REQUIRE(t.last_loss() != loss);
  REQUIRE_THAT(t.started(0, other), ContainsSubstring("values are not normalised"));
  REQUIRE_THAT(t.checked(0, other), ContainsSubstring("warning: values are not normalised"));
  const std::string tendency = t.options(t.store("tendency", {.tendency_stdev_of_q = 2.0}));
  REQUIRE_THAT(t.resumed(0, tendency),
               ContainsSubstring("the stdev of the tendency over 6h of 'q' was"));
  REQUIRE_THAT(
      t.resumed(0, t.options(t.store("longer", {.num_dates = 20}))),
      ContainsSubstring("validation data were 7 dates") && ContainsSubstring("they are 11 dates"));
}

TEST_CASE("a limit made of statistics is compared with them, and anew for a new run",
          "[checkpoint_match]") {
  const Trained t;
  const std::string limit = set(R"(model.bounding=[{"kind": "normalized_relu",
      "variables": ["q"], "thresholds": [0.5], "normalizer": ["mean-std"]}])") +
                            set(R"(data.normalizer={"default": "none"})");
  const fs::path first = t.fresh();
  Trained::require(run_train(first, t.options("plain") + limit), 0);
  const std::string other = t.options(t.store("stdev", {.stdev_of_q = 1.3})) + limit;
  REQUIRE_THAT(Trained::require(run_train(first, other + set("train.max_steps=6") + "--resume"), 3),
               ContainsSubstring("the limit of 'q' (model.bounding.0) was made of mean"));
  const fs::path second = t.fresh();
  const std::string text =
      Trained::require(run_train(second, other + set(concat("init.from=", first.string()))), 0);
  REQUIRE_THAT(text, ContainsSubstring("norm_min_val' differs and follows from data"));
  const auto value = [](const fs::path& run) {
    const SafetensorsFile file(run / "checkpoints/step-00000004/parameters.safetensors");
    for (const auto& [name, entry] : file.entries()) {
      if (name.ends_with("norm_min_val")) return file.doubles(name).at(0);
    }
    return 0.0;
  };
  REQUIRE(value(first) / value(second) == Approx(1.3).epsilon(1e-5));
}

TEST_CASE("one more input or output is a matter of what may be skipped", "[checkpoint_match]") {
  const Trained t;
  t.store("more", {.variables = {"t", "q", "z", "lsm", "new"}});
  const std::string forcing = t.options("more", R"(["lsm", "new"])");
  const std::string diagnostic = t.options("more", R"(["lsm"])", R"(["new"])");
  REQUIRE_THAT(t.resumed(3, forcing), ContainsSubstring("variable 'new' was not there"));
  REQUIRE_THAT(t.started(2, forcing), ContainsSubstring("of the inputs, 'new' is new") &&
                                          ContainsSubstring("'init.may_skip'") &&
                                          ContainsSubstring("encoder.") &&
                                          !ContainsSubstring("of the outputs"));
  REQUIRE_THAT(t.started(2, diagnostic), ContainsSubstring("of the outputs, 'new (diagnostic)'") &&
                                             ContainsSubstring("'init.may_skip'") &&
                                             !ContainsSubstring("of the inputs"));
  const std::string all = set(R"(init.may_skip=["encoder", "decoder"])");
  for (const std::string& one : {forcing, diagnostic}) {
    REQUIRE_THAT(t.checked(2, one), ContainsSubstring("'init.may_skip'"));
    const std::string text = t.started(0, one + all);
    REQUIRE_THAT(text, ContainsSubstring("it keeps its first value") &&
                           ContainsSubstring("starting from the weights of") &&
                           ContainsSubstring(" tensors"));
    REQUIRE_THAT(t.checked(0, one + all), ContainsSubstring("tensors are taken") &&
                                              ContainsSubstring("it keeps its first value"));
  }
  // Another variable in the place of one: everything would fit.
  t.store("replaced", {.variables = {"t", "q", "z", "new"}});
  REQUIRE_THAT(t.started(2, t.options("replaced", R"(["new"])") +
                                set(R"(data.normalizer={"default": "mean-std"})") + all),
               ContainsSubstring("of the inputs, 'new' is new; 'lsm' is left out") &&
                   ContainsSubstring("mean something else"));
  // The tables of the checkpoint for what it knows, those of the dataset for the rest.
  t.store("wider", {.variables = {"t", "q", "z", "lsm", "new"}, .stdev_of_q = 1.3});
  const std::string wider = t.options("wider", R"(["lsm", "new"])") + all;
  REQUIRE_THAT(t.started(0, wider), ContainsSubstring("values are not normalised") &&
                                        ContainsSubstring("'q' was normalised as"));
  const std::string kept = t.started(0, wider + set("data.tables=checkpoint"));
  REQUIRE_THAT(kept, ContainsSubstring("the statistics are those of checkpoint") &&
                         !ContainsSubstring("values are not normalised"));
}

TEST_CASE("another network is refused for the same weights, or told to a new run",
          "[checkpoint_match]") {
  const Trained t;
  const std::string plain = t.options("plain");
  for (const auto& [assignment, text] : std::vector<std::pair<std::string, std::string>>{
           {"model.processor.activation=silu",
            "model.processor.activation was \"gelu\" and is \"silu\""},
           {R"(model.bounding=[{"kind": "relu", "variables": ["q"]}])", "model.bounding was []"},
           {"model.layer_norm_eps=1e-4", "model.layer_norm_eps was 1e-05 and is 0.0001"},
           {"model.latent_skip=false", "model.latent_skip was true and is false"}}) {
    const std::string more = plain + set(assignment);
    REQUIRE_THAT(t.resumed(3, more), ContainsSubstring(text));
    REQUIRE_THAT(t.scored(3, more), ContainsSubstring(text));
    REQUIRE_THAT(t.started(0, more), ContainsSubstring("W ") && ContainsSubstring(text));
    REQUIRE_THAT(t.checked(0, more), ContainsSubstring("warning: ") && ContainsSubstring(text));
  }
  // How it is computed is no difference, and what scores depend on is told.
  t.resumed(0, plain + set("model.processor.recompute=block"));
  REQUIRE_THAT(t.scored(0, plain + set("loss.kind=mae") + set("optimizer.schedule.lr=1")),
               ContainsSubstring("in what determines the scores: loss.kind\n"));
}

TEST_CASE("another graph is refused unless a new run says that it is meant", "[checkpoint_match]") {
  const Trained t;
  const std::string other = t.options("plain") + set("graph.edge_length_norm=unit-max");
  REQUIRE_THAT(t.resumed(3, other), ContainsSubstring("another graph"));
  REQUIRE_THAT(t.scored(3, other), ContainsSubstring("another graph"));
  REQUIRE_THAT(t.started(2, other), ContainsSubstring("'init.from'") &&
                                        ContainsSubstring("another graph") &&
                                        ContainsSubstring("init.other_graph"));
  REQUIRE_THAT(t.checked(2, other), ContainsSubstring("another graph"));
  REQUIRE_THAT(t.started(0, other + set("init.other_graph=true")),
               ContainsSubstring("another graph"));
  // If tensors do not fit, they have to be named as well.
  const std::string finer =
      t.options("plain") + set("graph.hidden.refinement=2") + set("init.other_graph=true");
  REQUIRE_THAT(t.started(2, finer), ContainsSubstring("'init.may_skip'"));
}

#ifdef AIFS_HAVE_MPI
TEST_CASE("two ranks refuse together and say it once", "[checkpoint_match]") {
  const Trained t;
  const std::string swapped = t.options(t.store("swapped", {.variables = {"q", "t", "z", "lsm"}}));
  const auto refused = [&](const fs::path& run, const std::string& more, int code) {
    const CommandResult result =
        test::run_command(test::mpirun(2) + test::train_command(run, more));
    INFO(result.err);
    REQUIRE(result.exit_code == code);
    const size_t first = result.err.find("was 't' and is 'q'");
    REQUIRE(first != std::string::npos);
    REQUIRE(result.err.find("belong to other data", first) == std::string::npos);
  };
  refused(t.run(), swapped + "--resume", 3);
  refused(t.run(), swapped + "--validate-only", 3);
  refused(t.fresh(), swapped + t.start(), 2);
  const CommandResult good = test::run_command(
      test::mpirun(2) + test::train_command(t.run(), t.options(t.store("s", {.stdev_of_q = 1.3})) +
                                                         "--validate-only"));
  INFO(good.err);
  REQUIRE(good.exit_code == 0);
}
#endif
