// SPDX-License-Identifier: Apache-2.0
// Limited areas and stretched grids, end to end: the two demos learn, train alike on any number of
// ranks, resume, are scored inside and outside the region, and are exported with their mask.
#include "tests/app/ranks.h"

using namespace aifs;
using namespace aifs::test;

namespace {

std::string set(const std::string& assignment) {
  return " --set '" + assignment + "'";
}

std::string config_of(const std::string& name) {
  return (source_folder() / "configs" / (name + ".json")).string();
}

constexpr const char* kLam = "lam_demo";
constexpr const char* kStretched = "stretched_demo";

// Short and small, on one core; of `steps` the last have forecasts of two steps.
std::string small(int steps) {
  std::string options;
  for (const std::string& assignment : std::vector<std::string>{
           "run.device=cpu", "run.threads=1", "model.channels=8", "model.layers=1",
           "data.analytic.region.spacing=5", "data.analytic.grid=o8",
           "data.training.end=2020-01-05", "data.validation.end=2020-07-03",
           "train.validation.max_dates=2", "train.validation.every_steps=0",
           R"(train.validation.lead_times=["6h", "12h"])", "train.rollout.step_increment=2",
           "train.rollout.maximum=2", "optimizer.schedule.total_steps=100",
           "checkpoint.every_steps=0", "log.every_steps=1"})
    options += set(assignment);
  return options + set(concat("train.max_steps=", steps));
}

// What the meshes of the two demos are beside cells of 5 degrees.
std::string coarse(const std::string& name) {
  return name == kLam ? set("graph.nodes.hidden.refinement=3")
                      : set("graph.nodes.hidden.global_refinement=1") +
                            set("graph.nodes.hidden.local_refinement=3");
}

class Demo {
 public:
  explicit Demo(const std::string& name) : name_(name) {}

  const fs::path& folder() const { return folder_.path(); }
  std::string command(const std::string& run, const std::string& more) const {
    return train_command(folder() / run, more, config_of(name_));
  }
  fs::path run(const std::string& run, const std::string& more, int ranks = 1) const {
    const auto result = run_command((ranks > 1 ? mpirun(ranks) : "") + command(run, more));
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return folder() / run;
  }
  std::string refused(const std::string& more) const {
    const auto result = run_command(command("refused", more));
    INFO(result.out << result.err);
    REQUIRE(result.exit_code == 2);
    return result.err;
  }

 private:
  std::string name_;
  TemporaryFolder folder_;
};

// The share of the region, and its squared errors and those outside as parts of the whole.
void require_parts_add_up(const Json& scores) {
  const double share = scores["weight_inside_lam"];
  const bool has_outside = scores.contains("weight_outside_lam");
  REQUIRE(share + (has_outside ? scores["weight_outside_lam"].get<double>() : 0.0) ==
          Approx(1.0).epsilon(1e-12));
  for (const std::string figure : {"rmse", "persistence_rmse"}) {
    for (const auto& [variable, whole] : scores[figure].items()) {
      INFO(figure << " " << variable);
      const auto square = [&](const std::string& key) {
        const double value = scores[figure + key][variable];
        return value * value;
      };
      const double outside = has_outside ? (1.0 - share) * square("_outside_lam") : 0.0;
      REQUIRE(share * square("_inside_lam") + outside == Approx(square("")).epsilon(1e-10));
    }
  }
}

}  // namespace

TEST_CASE("the demos beat persistence inside and outside after 100 steps", "[limited_areas]") {
  for (const std::string name : {kLam, kStretched}) {
    INFO(name);
    const Demo demo(name);
    const fs::path dir =
        demo.run("r", set("run.device=cpu") + set("train.max_steps=100") +
                          set("train.validation.every_steps=0") + set("checkpoint.every_steps=0"));
    const Json line = lines_of(dir / "validation.jsonl").back();
    for (const char* lead : {"6h", "24h"}) {
      const Json scores = line["lead_times"][lead];
      INFO(scores.dump(1));
      require_parts_add_up(scores);
      REQUIRE(scores["mean_ratio_inside_lam"].get<double>() < 0.9);
      // A limited area predicts nothing outside: there is no score of it.
      REQUIRE(scores.contains("rmse_outside_lam") == (name == kStretched));
      if (name == kStretched) REQUIRE(scores["mean_ratio_outside_lam"].get<double>() < 0.9);
    }
    std::string events;
    for (const auto& entry : fs::directory_iterator(dir / "tensorboard"))
      events += read_file(entry.path());
    REQUIRE_THAT(events, ContainsSubstring("validation/mean_ratio_inside_lam_24h"));
    const std::string log = read_file(dir / "train.log");
    REQUIRE_THAT(log, ContainsSubstring("inside_lam"));
    if (name == kLam)
      REQUIRE_THAT(log, ContainsSubstring("416 of 504 cells; the others are given"));
    // Cells that are given have no edges from the mesh, which is as it should be.
    REQUIRE_THAT(log, !ContainsSubstring("get no forecast"));
  }
}

TEST_CASE("limited areas and stretched grids train and score alike on 1, 2 and 3 ranks",
          "[limited_areas]") {
  for (const std::string name : {kLam, kStretched}) {
    INFO(name);
    const Demo demo(name);
    const std::string more = small(3) + coarse(name) + set("train.precision=fp64") +
                             set("optimizer.eps=1e-5") + set("data.batch_size=2");
    const fs::path one = demo.run("one", more);
    const Json wanted = lines_of(one / "validation.jsonl").back()["lead_times"]["12h"];
    for (const int ranks : {2, 3}) {
      INFO(ranks << " ranks");
      const fs::path dir =
          demo.run(concat("ranks", ranks), more + set(concat("parallel.model=", ranks)), ranks);
      require_alike(dir, one, "fp64");
      const Json scores = lines_of(dir / "validation.jsonl").back()["lead_times"]["12h"];
      for (const auto& [variable, rmse] : wanted["rmse_inside_lam"].items())
        REQUIRE(scores["rmse_inside_lam"][variable].get<double>() ==
                Approx(rmse.get<double>()).epsilon(1e-10));
      require_parts_add_up(scores);
    }
    // The checkpoint scores the same by itself.
    demo.run("one", more + " --validate-only");
    const Json alone = Json::parse(read_file(one / "validation-step-3.json"));
    REQUIRE(alone["lead_times"]["12h"]["rmse_inside_lam"].dump() ==
            wanted["rmse_inside_lam"].dump());
  }
}

TEST_CASE("a run of a limited area that is stopped or killed goes on to the same bits",
          "[limited_areas]") {
  for (const std::string name : {kLam, kStretched}) {
    INFO(name);
    const Demo demo(name);
    const std::string more = coarse(name) + set("checkpoint.every_steps=1");
    const std::string last = "checkpoints/step-00000006";
    const fs::path whole = demo.run("whole", small(6) + more);
    demo.run("parted", small(4) + more);  // the last two steps have longer forecasts
    require_same_bits(demo.run("parted", concat(small(6), more, " --resume")), whole, last);
    int kills = 0;
    for (const double delay_s : {0.6, 0.9, 1.2, 1.5}) {
      const auto result = run_command(concat(
          "timeout -s KILL ", delay_s, " ", demo.command("killed", small(6) + more + " --resume")));
      if (result.exit_code != 0) ++kills;
    }
    WARN(name << ": killed " << kills << " times");
    require_same_bits(demo.run("killed", concat(small(6), more, " --resume")), whole, last);
  }
}

TEST_CASE("what is outside a limited area counts as given, not as predicted", "[limited_areas]") {
  const Demo demo(kLam);
  const std::string more = small(4) + coarse(kLam) + set("train.precision=fp64");
  const fs::path dir = demo.run("r", more);
  // Weights of the cells outside do not matter: they are 0 behind the mask, before the norm.
  const fs::path other =
      demo.run("other", more +
                            set(R"(graph.nodes.data.attributes.outside={"kind": "not", )"
                                R"("masks": ["cutout_mask"]})") +
                            set(R"(graph.nodes.data.attributes.all={"kind": "or", )"
                                R"("masks": ["cutout_mask", "outside"]})") +
                            set("loss.node_attribute=all"));
  const fs::path inside = demo.run("inside", more + set("loss.node_attribute=cutout_mask"));
  REQUIRE(losses_of(other) == losses_of(inside));
  REQUIRE(losses_of(other) != losses_of(dir));
  // Without the mask, cells that no edge reaches are predicted, too: another loss.
  const fs::path whole =
      demo.run("whole", more + set("model.output_mask=") + set("loss.node_attribute=cutout_mask"));
  const std::vector<double> a = losses_of(whole), b = losses_of(inside);
  REQUIRE(a[0] == Approx(b[0]).epsilon(1e-12));  // forecasts of one step
  REQUIRE(std::abs(a[2] / b[2] - 1.0) > 1e-6);   // of two, which go on from the boundary
}

TEST_CASE("ensembles have the same boundary for all members", "[limited_areas]") {
  const Demo demo(kLam);
  std::string more = small(3) + coarse(kLam) + set("train.precision=fp64");
  for (const char* assignment :
       {"model.processor.kind=graph_transformer", "model.processor.heads=2",
        "model.ensemble.members=3", "model.ensemble.noise=conditioning"})
    more += set(assignment);
  const std::string smooth = more + set("loss.kind=mse"), crps = more + set("loss.kind=crps");
  require_alike(demo.run("two", smooth + set("parallel.model=2"), 2), demo.run("one", smooth),
                "fp64");
  // Members begin nearly equal. There the CRPS has a kink: the sign of a difference that is all
  // rounding, another one on two ranks, decides which way a gradient points.
  const fs::path one = demo.run("one crps", crps);
  for (const double loss : losses_of(one))
    REQUIRE(std::isfinite(loss));
  require_close(losses_of(demo.run("two crps", crps + set("parallel.model=2"), 2)), losses_of(one),
                1e-6);
}

TEST_CASE("masks and regions that are not there are named, with the nearest names",
          "[limited_areas]") {
  const Demo demo(kLam);
  const std::string more = small(1) + coarse(kLam);
  for (const char* use : {"", " --check-config", " --dry-run"}) {
    INFO(use);
    REQUIRE_THAT(demo.refused(more + set("model.output_mask=cutout_maks") + use),
                 ContainsSubstring("'model.output_mask'") &&
                     ContainsSubstring("no attribute 'cutout_maks'") &&
                     ContainsSubstring("cutout_mask"));
  }
  for (const char* use : {"", " --check-config"}) {
    INFO(use);
    REQUIRE_THAT(
        demo.refused(more + set("train.validation.region=boundry_mask") + use),
        ContainsSubstring("'train.validation.region'") && ContainsSubstring("boundary_mask"));
    REQUIRE_THAT(demo.refused(more + set("loss.scalers=[]") + use),
                 ContainsSubstring("'loss.scalers'") && ContainsSubstring("node_weights"));
    REQUIRE_THAT(demo.refused(more + set(R"(model.output_masks={"data": "cutout_mask"})") + use),
                 ContainsSubstring("'model.output_masks'"));
  }
  REQUIRE_THAT(demo.refused(more + set("train.validation.region=boundary_mask")),
               ContainsSubstring("none of its cells counts"));
  const std::string nothing = set(R"(graph.nodes.data.attributes.nothing={"kind": "and", )"
                                  R"("masks": ["cutout_mask", "boundary_mask"]})");
  REQUIRE_THAT(demo.refused(more + nothing + set("model.output_mask=nothing") + " --check-config"),
               ContainsSubstring("marks no node"));
  const std::string waves =
      set(R"(loss.terms=[{"kind": "mse"}, {"kind": "log_spectral_distance", "scalers": )"
          R"(["spectral"], "transform": {"kind": "fft2d", "x_dim": 9, "y_dim": 9}}])");
  demo.refused(more + waves + " --check-config");
}

TEST_CASE("cells that are given are not missed by the graph's checks", "[limited_areas]") {
  const TemporaryFolder folder;
  const std::string graph = concat("'", program("aifs-train").string(), "' graph "),
                    lam = concat(" --config '", config_of(kLam), "' ");
  const auto out_of = [](const std::string& command) {
    const auto result = run_command(command);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return result.out + result.err;
  };
  const std::string missed = "have no edge from 'hidden'";
  REQUIRE_THAT(out_of(graph + "info" + lam), !ContainsSubstring(missed));
  const std::string file = (folder.path() / "graph.nc").string();
  REQUIRE_THAT(out_of(concat(graph, "build", lam, "--out '", file, "'")),
               !ContainsSubstring(missed));
  // A file does not say which cells are given, and without a mask none are.
  REQUIRE_THAT(out_of(concat(graph, "info '", file, "'")), ContainsSubstring("88 of 504"));
  REQUIRE_THAT(out_of(graph + "info" + lam + set("model.output_mask=")),
               ContainsSubstring("88 of 504"));
  // Cells in the mask are.
  const std::string more = set(R"(graph.nodes.data.attributes.all={"kind": "or", "masks": )"
                               R"(["cutout_mask", "boundary_mask"]})") +
                           set("model.output_mask=all");
  REQUIRE_THAT(out_of(graph + "info" + lam + more), ContainsSubstring("88 of 504"));
}

TEST_CASE("the same configurations check and plan", "[limited_areas]") {
  for (const std::string name : {kLam, kStretched}) {
    INFO(name);
    const Demo demo(name);
    for (const char* use : {" --check-config", " --dry-run"}) {
      const auto result = run_command(demo.command("r", use));
      INFO(use << result.out << result.err);
      REQUIRE(result.exit_code == 0);
    }
  }
}

TEST_CASE("a limited area is exported with its mask", "[limited_areas]") {
  const Demo demo(kLam);
  const fs::path dir = demo.run("r", small(1) + coarse(kLam)), out = demo.folder() / "exported";
  const auto result =
      run_command(concat("'", program("aifs-train").string(), "' export --format anemoi '",
                         dir.string(), "' '", out.string(), "'"));
  INFO(result.err);
  REQUIRE(result.exit_code == 0);
  const Json metadata = Json::parse(read_file(out / "metadata.json"));
  const auto mask = metadata["output_mask"].get<std::vector<bool>>();
  REQUIRE(mask.size() == metadata["num_nodes"].get<size_t>());
  // The cells of the region come first: 7 rows of 11.
  for (size_t n = 0; n < mask.size(); ++n)
    REQUIRE(mask[n] == (n < 77));
  REQUIRE(mask.size() > 77);
}

TEST_CASE("each of several datasets has the mask of its own nodes", "[limited_areas]") {
  const TemporaryFolder folder;
  std::string more = concat(kThreeSteps, unmeasured_cells(folder));
  const std::string base = (folder.path() / "base.zarr").string();
  more += set(concat(R"(data.datasets={"lam": {"dataset": {"cutout": [{"dataset": ")", base,
                     R"(", "area": [70, 0, 0, 90]}, ")", base,
                     R"("], "min_distance_km": 0}}, "globe": {"dataset": ")", base, R"("}})"));
  more += set("data.dataset=null") + set("train.rollout.start=2") + set("train.rollout.maximum=2") +
          set("data.training={\"start\": \"2020-01-01\", \"end\": \"2020-01-03\"}") +
          set("data.validation={\"start\": \"2020-01-01\", \"end\": \"2020-01-03\"}") +
          set("graph.hidden=null") + set("graph.encoder=null") + set("graph.processor=null") +
          set("graph.decoder=null") + set("graph.area_weight=null") +
          set(R"(graph.nodes={"lam": {"kind": "dataset", "attributes": {)"
              R"("cutout_mask": {"kind": "cutout_mask"}, "area_weight": {"kind": "uniform"}}},)"
              R"("globe": {"kind": "dataset", "attributes": {"area_weight": {"kind": "uniform"}}},)"
              R"("hidden": {"kind": "tri", "refinement": 2}})") +
          set("train.validation.region=cutout_mask");
  std::string edges;
  for (const auto& [source, target] : {std::pair("lam", "hidden"),
                                       {"globe", "hidden"},
                                       {"hidden", "hidden"},
                                       {"hidden", "lam"},
                                       {"hidden", "globe"}})
    edges += concat(edges.empty() ? "" : ", ", R"({"source": ")", source, R"(", "target": ")",
                    target, R"(", "kinds": [{"kind": "knn", "num_neighbours": 3}]})");
  more += set(concat("graph.edges=[", edges, "]"));
  const std::string masks = set(R"(model.output_masks={"lam": "cutout_mask"})");
  const auto masked = run_train(folder.path() / "masked", more + masks);
  INFO(masked.err);
  REQUIRE(masked.exit_code == 0);
  REQUIRE_THAT(masked.err, ContainsSubstring("predicted") && ContainsSubstring("lam: "));
  const auto whole = run_train(folder.path() / "whole", more);
  INFO(whole.err);
  REQUIRE(whole.exit_code == 0);
  REQUIRE(losses_of(folder.path() / "masked") != losses_of(folder.path() / "whole"));
  const Json scores = lines_of(folder.path() / "masked" / "validation.jsonl").back()["datasets"];
  REQUIRE(scores["lam"]["lead_times"]["6h"].contains("rmse_inside_lam"));
  REQUIRE_FALSE(scores["lam"]["lead_times"]["6h"].contains("rmse_outside_lam"));
  REQUIRE_FALSE(scores["globe"]["lead_times"]["6h"].contains("rmse_inside_lam"));
  // A mask for all must be there in all.
  const auto refused =
      run_train(folder.path() / "refused", more + set("model.output_mask=cutout_mask"));
  REQUIRE(refused.exit_code == 2);
  REQUIRE_THAT(refused.err, ContainsSubstring("'model.output_mask'"));
}
