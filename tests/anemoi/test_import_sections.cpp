// SPDX-License-Identifier: Apache-2.0
// Section by section: what changes of a configuration of Anemoi's change here, and what is refused.
#include "core/check.h"
#include "tests/anemoi/configs_folder.h"
#include "tests/support/catch.h"

using namespace aifs;
using anemoi::Imported;
using anemoi::Json;
using test::changed;
using test::imported;
using test::is_refused;
using test::json_config;
using test::remark_on;
using test::two_datasets;
using test::value_at;

namespace {

Json parse(const char* text) {
  return Json::parse(text);
}

const std::string kDataset = "/data/datasets/data";
const std::string kLoss = "/training/training_loss/datasets/data";
const std::string kScalers = "/training/scalers/datasets/data";

}  // namespace

// ---------------------------------------------------------------------------------------- data ---

TEST_CASE("processors become imputers, maps, a normaliser and post-processors", "[anemoi]") {
  const Imported result = changed({{kDataset + "/processors", parse(R"({
      "fill": {"_target_": "a.InputImputer", "config": {"default": "none", "mean": ["sst"],
          "stdev": "x"}},
      "copy": {"_target_": "a.CopyImputer", "config": {"default": "none", "skt": ["sst2"]}},
      "map": {"_target_": "a.Remapper", "config": {"default": "none", "power": ["tp"],
          "log1p": ["cp"],
              "method_kwargs": {"power": {"lambd": 0.4, "tangent_linear_above_one": true}}}},
      "normalizer": {"_target_": "a.InputNormalizer", "config": {"default": "std", "none": null}},
      "zero": {"_target_": "a.ConditionalZeroPostprocessor", "config": {"default": "none",
          "remap": "x", "0.5": ["y"]}},
      "nan": {"_target_": "a.ConditionalNaNPostprocessor", "config": {"remap": "x", "nan": ["y"]}},
      "relu": {"_target_": "a.NormalizedReluPostprocessor", "config": {"normalizer": "none",
          "2": ["q"]}}})")}});
  REQUIRE(value_at(result, "/data/imputer").dump() ==
          R"([{"variables":["sst"],"method":"mean"},{"variables":["x"],"method":"stdev"},)"
          R"({"variables":["sst2"],"method":"copy","from":"skt"}])");
  REQUIRE(value_at(result, "/data/remapper").dump() ==
          R"([{"variables":["tp"],"method":"power","exponent":0.4,"linear_above_one":true},)"
          R"({"variables":["cp"],"method":"log1p"}])");
  REQUIRE(value_at(result, "/data/normalizer").dump() == R"({"default":"std"})");
  REQUIRE(value_at(result, "/data/postprocessor").dump() ==
          R"([{"variables":["y"],"method":"conditional_zero","value":0.5,"from":"x"},)"
          R"({"variables":["y"],"method":"conditional_nan","from":"x"},)"
          R"({"variables":["q"],"method":"threshold","value":2}])");
  REQUIRE(result.num_not_honoured() == 0);
}

TEST_CASE("without a normaliser values stay as they are", "[anemoi]") {
  const Imported result = changed({{kDataset + "/processors", Json::object()}});
  REQUIRE(value_at(result, "/data/normalizer").dump() == R"({"default":"none"})");
}

TEST_CASE("parts of sections that are about other things are passed over", "[anemoi]") {
  const Imported result = changed(
      {{"/diagnostics/plot", parse(R"({"own": 1, "shared": [1, 2], "use": "${.own}"})")},
       {"/training/training_loss/datasets/left_over", parse(R"({"_target_": "x"})")},
       {"/task", parse(R"({"_target_": "a.TemporalDownscaler", "output_timestep": "1h"})")}});
  REQUIRE(!is_refused(result, "diagnostics.plot.shared"));
  REQUIRE(remark_on(result, "diagnostics.plot.shared"));
  REQUIRE(!remark_on(result, "diagnostics.plot.own"));
  REQUIRE(!is_refused(result, "training.training_loss.datasets.left_over"));
  REQUIRE(is_refused(result, "task._target_"));
  REQUIRE(is_refused(result, "task.output_timestep"));
}

TEST_CASE("processors in another order, or for all variables, are refused", "[anemoi]") {
  const Imported result = changed({{kDataset + "/processors", parse(R"({
      "normalizer": {"_target_": "a.InputNormalizer", "config": {"default": "std"}},
      "fill": {"_target_": "a.InputImputer", "config": {"default": "mean"}},
      "other": {"_target_": "a.Whitener", "config": {"x": 1}}})")}});
  const std::string at = "data.datasets.data.processors.";
  REQUIRE(is_refused(result, at + "fill._target_"));
  REQUIRE(is_refused(result, at + "fill.config.default"));
  REQUIRE(is_refused(result, at + "other"));
}

TEST_CASE("roles, datasets and dates", "[anemoi]") {
  const std::string training = "/dataloader/training/datasets/data";
  const Imported result = changed(
      {{kDataset + "/target", {"lsm", "sst"}},
       {training + "/dataset_config",
        parse(
            R"({"dataset": {"cutout": [{"dataset": "lam-1", "thinning": 2}, {"dataset": "/g.zarr"}],
                  "adjust": "all"}, "start": null})")},
       {training + "/start", "1979-01-01"},
       {"/task/multistep_output", 2},
       {"/task/timestep", "12H"}});
  REQUIRE(is_refused(result, "data.datasets.data.target"));
  REQUIRE(is_refused(result, "dataloader.validation.datasets.data.dataset_config"));
  REQUIRE(value_at(result, "/data/dataset/dataset/cutout/1/dataset") == "/g.zarr");
  REQUIRE(!value_at(result, "/data/dataset").contains("start"));
  REQUIRE(remark_on(result,
                    "dataloader.training.datasets.data.dataset_config.dataset.cutout.0."
                    "dataset")
              ->verdict == anemoi::Verdict::kNote);
  REQUIRE(value_at(result, "/data/training/start") == "1979-01-01");
  REQUIRE(value_at(result, "/data/multistep_output") == 2);
  REQUIRE(value_at(result, "/data/timestep") == "12h");
}

TEST_CASE("several datasets have parts of their own", "[anemoi]") {
  Json tree = two_datasets();
  tree["data"]["datasets"]["cerra"]["diagnostic"] = {"tp"};
  tree["training"]["training_loss"]["datasets"]["cerra"]["weights"] = {1, 1, 1};
  const Imported result = imported(tree);
  REQUIRE(value_at(result, "/data/datasets/cerra/diagnostic").dump() == R"(["tp"])");
  REQUIRE(value_at(result, "/data/datasets/era5/dataset/frequency") == "6h");
  REQUIRE(value_at(result, "/data/dataset").is_null());
  REQUIRE(is_refused(result, "training.training_loss.datasets.cerra"));
  REQUIRE(result.num_not_honoured() == 1);
}

TEST_CASE("unknown keys are named where datasets are compared, too", "[anemoi]") {
  REQUIRE(is_refused(changed({{"/graph/edges/0/edge_builders/0/surprise", 1}}),
                     "graph.edges.0.edge_builders.0.surprise"));
  REQUIRE(is_refused(changed({{"/graph/edges/1/edge_builders/0/surprise", 1}}),
                     "graph.edges.1.edge_builders.0.surprise"));
  Json tree = two_datasets();
  for (const char* name : {"era5", "cerra"}) {
    tree["training"]["training_loss"]["datasets"][name]["surprise"] = 1;
    tree["training"]["scalers"]["datasets"][name]["node_weights"]["surprise"] = 1;
  }
  tree["model"]["encoders"]["one"] = {{"source_datasets", {"era5"}},
                                      {"mapper", tree["model"]["encoder"]}};
  tree["model"]["encoders"]["one"]["mapper"]["surprise"] = 1;
  tree["model"]["encoders"]["two"] = tree["model"]["encoders"]["one"];
  tree["model"]["encoders"]["two"]["source_datasets"] = {"cerra"};
  tree["model"].erase("encoder");
  const Imported result = imported(tree);
  for (const char* path : {"training.training_loss.datasets.era5.surprise",
                           "training.scalers.datasets.era5.node_weights.surprise",
                           "model.encoders.one.mapper.surprise"}) {
    INFO(path << "\n" << remarks_text(result.remarks));
    REQUIRE(is_refused(result, path));
  }
  REQUIRE(!remark_on(result, "training.training_loss.datasets.cerra"));
}

TEST_CASE("what is named for the first dataset only is refused for the others", "[anemoi]") {
  Json tree = two_datasets();
  tree["training"]["training_loss"]["datasets"]["cerra"] = nullptr;
  tree["training"]["scalers"]["datasets"].erase("cerra");
  for (const char* key : {"residual", "bounding"}) {
    const Json one = tree["model"][key];
    tree["model"][key] = {{"datasets", {{"era5", one}}}};
  }
  tree["dataloader"]["training"]["datasets"]["cerra"]["end"] = nullptr;
  const Imported result = imported(tree);
  for (const char* path :
       {"training.training_loss.datasets.cerra", "training.scalers.datasets.cerra",
        "model.residual.datasets.cerra", "model.bounding.datasets.cerra",
        "dataloader.training.datasets.cerra.end"}) {
    INFO(path << "\n" << remarks_text(result.remarks));
    REQUIRE(is_refused(result, path));
  }
}

TEST_CASE("epochs that are cut short are counted in steps", "[anemoi]") {
  const Imported result =
      changed({{"/dataloader/limit_batches/training", 100},
               {"/training/accum_grad_batches", 3},
               {"/training/max_epochs", 5},
               {"/task/rollout", parse(R"({"start": 1, "epoch_increment": 2, "maximum": 4})")}});
  REQUIRE(value_at(result, "/train/max_steps") == 170);
  REQUIRE(value_at(result, "/train/rollout/step_increment") == 68);
  REQUIRE(value_at(result, "/train/validation/every_steps") == 34);
  REQUIRE(value_at(result, "/checkpoint/every_steps") == 34);
  REQUIRE(value_at(result, "/optimizer/reference_samples") == 6);
  REQUIRE(is_refused(changed({{"/dataloader/limit_batches/training", 0.5}}),
                     "dataloader.limit_batches.training"));
}

TEST_CASE("a limit of 1.0 is a whole epoch, and 1 is a batch", "[anemoi]") {
  const auto limited = [](const Json& limit) {
    return changed({{"/dataloader/limit_batches/training", limit},
                    {"/dataloader/limit_batches/validation", limit}});
  };
  const Imported whole = limited(1.0), batch = limited(1);
  REQUIRE(value_at(whole, "/train/max_epochs") == 1);
  REQUIRE(value_at(whole, "/train/max_steps") == 150000);
  REQUIRE(value_at(whole, "/train/validation/max_dates").is_null());
  for (const char* stage : {"training", "validation"}) {
    REQUIRE(remark_on(whole, concat("dataloader.limit_batches.", stage))->verdict ==
            anemoi::Verdict::kNote);
  }
  REQUIRE(value_at(batch, "/train/max_steps") == 1);
  REQUIRE(value_at(batch, "/train/validation/max_dates") == 4);
}

TEST_CASE("readers that end with an epoch are worth a note", "[anemoi]") {
  const auto verdict = [](bool persistent, int increment) {
    const Imported result = changed(
        {{"/dataloader/persistent_workers", persistent},
         {"/task/rollout", {{"start", 1}, {"epoch_increment", increment}, {"maximum", 4}}}});
    return remark_on(result, "dataloader.persistent_workers")->verdict;
  };
  REQUIRE(verdict(true, 0) == anemoi::Verdict::kNoEffect);
  REQUIRE(verdict(false, 1) == anemoi::Verdict::kNoEffect);
  REQUIRE(verdict(false, 0) == anemoi::Verdict::kNote);
}

TEST_CASE("numbers of steps, batches and GPUs that cannot be are refused", "[anemoi]") {
  const Json huge = int64_t{1} << 62;
  for (const int64_t accumulated : {0, -1}) {
    REQUIRE_THROWS_WITH(changed({{"/training/accum_grad_batches", accumulated}}),
                        ContainsSubstring("'training.accum_grad_batches'"));
  }
  const std::pair<std::string, Json> limit{"/dataloader/limit_batches/training", huge};
  REQUIRE_THROWS_WITH(changed({limit, {"/training/max_epochs", 4}}),
                      ContainsSubstring("'training.max_epochs': is too large"));
  REQUIRE_THROWS_WITH(
      changed(
          {limit, {"/training/max_epochs", nullptr}, {"/diagnostics/check_val_every_n_epoch", 4}}),
      ContainsSubstring("'diagnostics.check_val_every_n_epoch'"));
  REQUIRE_THROWS_WITH(
      changed({{"/system/hardware/num_gpus_per_node", huge}, {"/system/hardware/num_nodes", 4}}),
      ContainsSubstring("'system.hardware.num_nodes'"));
  REQUIRE_THROWS_WITH(changed({{"/dataloader/limit_batches/validation", huge}}),
                      ContainsSubstring("'dataloader.limit_batches.validation'"));
  REQUIRE_THROWS_AS(changed({{"/training/accum_grad_batches", huge}}), ConfigError);
}

// --------------------------------------------------------------------------------------- graph ---

TEST_CASE("hidden nodes of every class, and an icosphere in place of hexagons", "[anemoi]") {
  const auto hidden = [](const char* builder) {
    const Imported result = changed({{"/graph/nodes/hidden/node_builder", parse(builder)}});
    REQUIRE(result.num_not_honoured() == 0);
    return value_at(result, "/graph/hidden").dump();
  };
  REQUIRE(hidden(R"({"_target_": "a.ReducedGaussianGridNodes", "grid": "o96"})") ==
          R"({"kind":"gaussian","grid":"o96"})");
  REQUIRE(hidden(R"({"_target_": "a.TriNodes", "resolution": [3, 4]})") ==
          R"({"kind":"tri","refinement":4})");
  REQUIRE(hidden(R"({"_target_": "a.HEALPixNodes", "resolution": 5})") ==
          R"({"kind":"healpix","resolution":5})");
  REQUIRE(hidden(R"({"_target_": "a.NPZFileNodes", "npz_file": "x.npz", "lat_key": "la"})") ==
          R"({"kind":"npz","file":"x.npz","latitudes":"la"})");
  REQUIRE(
      hidden(R"({"_target_": "a.ICONMultiMeshNodes", "grid_filename": "i.nc", "max_level": 3})") ==
      R"({"kind":"icon_vertices","file":"i.nc","max_level":3})");
  REQUIRE(hidden(R"({"_target_": "a.StretchedTriNodes", "global_resolution": 4,
                     "lam_resolution": 8, "reference_node_name": "data"})") ==
          R"({"kind":"stretched_tri","global_refinement":4,"local_refinement":8,)"
          R"("reference":"data"})");
  const Imported hexagons = changed({{"/graph/nodes/hidden/node_builder",
                                      parse(R"({"_target_": "a.HexNodes", "resolution": 2})")}});
  REQUIRE(is_refused(hexagons, "graph.nodes.hidden.node_builder"));
  REQUIRE(value_at(hexagons, "/graph/hidden/refinement") == 5);
}

TEST_CASE("levels that are no whole numbers, and empty coordinates, are refused", "[anemoi]") {
  const auto hidden = [](const char* builder) {
    return changed({{"/graph/nodes/hidden/node_builder", parse(builder)}});
  };
  const std::string key = "'graph.nodes.hidden.node_builder.";
  for (const char* levels : {"2.7", "1e300", "-1", "100"}) {
    const std::string builder =
        concat(R"({"_target_": "a.TriNodes", "resolution": [1, )", levels, "]}");
    REQUIRE_THROWS_WITH(hidden(builder.c_str()), ContainsSubstring(key + "resolution.1'"));
    REQUIRE_THROWS_AS(hidden(builder.c_str()), ConfigError);
  }
  const char* empty = R"({"_target_": "a.LatLonNodes", "latitudes": [[]], "longitudes": [[1.0]]})";
  REQUIRE_THROWS_WITH(hidden(empty), ContainsSubstring(key + "latitudes.0'"));
  REQUIRE_THROWS_AS(hidden(empty), ConfigError);
}

TEST_CASE("a recipe beyond one mesh with one builder each becomes the long form", "[anemoi]") {
  const Json processor =
      parse(R"({"source_name": "hidden", "target_name": "hidden", "edge_builders":
      [{"_target_": "a.KNNEdges", "num_nearest_neighbours": 4}], "attributes": {}})");
  const Imported result = changed(
      {{"/graph/edges/2", processor},
       {"/graph/nodes/data/attributes/cutout_mask", parse(R"({"_target_": "a.CutOutMask"})")},
       {"/graph/nodes/data/attributes/far",
        parse(R"({"_target_": "a.BooleanNot", "masks": {"_target_": "a.GridsMask", "grids": 1}})")},
       {"/graph/edges/0/edge_builders/0",
        parse(R"({"_target_": "a.KNNEdges", "num_nearest_neighbours": 12,
                  "source_mask_attr_name": "far", "target_mask_attr_name": null})")},
       {"/graph/edges/1/edge_builders/0",
        parse(R"({"_target_": "a.CutOffEdges", "cutoff_distance_km": 100,
                  "max_num_neighbours": 9})")},
       {"/graph/edges/1/edge_builders/1",
        parse(R"({"_target_": "a.ReversedKNNEdges", "num_nearest_neighbours": 1})")},
       {"/graph/edges/0/attributes/azimuth", parse(R"({"_target_": "a.Azimuth"})")},
       {"/graph/post_processors",
        parse(R"([{"_target_": "a.RemoveUnconnectedNodes", "nodes_name": "hidden"}])")}});
  REQUIRE(result.num_not_honoured() == 0);
  REQUIRE(value_at(result, "/graph/nodes/data/attributes/far").dump() ==
          R"({"kind":"not","masks":["_far_0"]})");
  REQUIRE(value_at(result, "/graph/nodes/data/attributes/_far_0").dump() ==
          R"({"kind":"grids_mask","grids":[1]})");
  REQUIRE_FALSE(result.config()
                    .at("graph")
                    .at("nodes")
                    .at("data")
                    .at("attributes")
                    .contains("cutout_mask"));  // nothing uses it
  REQUIRE(value_at(result, "/graph/edges/0/kinds/0").dump() ==
          R"({"kind":"knn","num_neighbours":12,"source_mask":"far"})");
  REQUIRE(value_at(result, "/graph/edges/1/kinds").dump() ==
          R"([{"kind":"cutoff","cutoff_distance_km":100.0,"max_neighbours":9},)"
          R"({"kind":"reversed_knn","num_neighbours":1}])");
  REQUIRE(value_at(result, "/graph/edges/0/attributes/azimuth/kind") == "azimuth");
  REQUIRE(value_at(result, "/graph/edges/2/kinds/0/kind") == "knn");
  REQUIRE(value_at(result, "/graph/post_process").dump() ==
          R"([{"kind":"remove_unconnected","nodes":["hidden"]}])");
}

TEST_CASE("edges of an icosphere have the levels of the mesh", "[anemoi]") {
  const auto processor = [](const char* builder) {
    return changed({{"/graph/nodes/hidden/node_builder",
                     parse(R"({"_target_": "a.TriNodes", "resolution": 4})")},
                    {"/graph/edges/2", parse(R"({"source_name": "hidden", "target_name": "hidden",
                                                 "attributes": {}})")},
                    {"/graph/edges/2/edge_builders", Json::array({parse(builder)})}});
  };
  const Imported listed = processor(
      R"({"_target_": "a.MultiScaleEdges", "x_hops": 2, "scale_resolutions": [3, 4, 9]})");
  REQUIRE(value_at(listed, "/graph/processor/levels").dump() == "[3,4]");
  REQUIRE(value_at(listed, "/graph/processor/x_hops") == 2);
  REQUIRE(is_refused(listed, "graph.edges.2.edge_builders.0.scale_resolutions"));
  const Imported all = processor(R"({"_target_": "a.MultiScaleEdges", "x_hops": 1})");
  REQUIRE(value_at(all, "/graph/processor/include_level_0") == true);
}

TEST_CASE("a stored graph, weights of cells", "[anemoi]") {
  Json tree = json_config();
  tree["graph"] = {{"overwrite", false}};
  const Imported given = imported(tree);
  REQUIRE_FALSE(is_refused(given, "system.input.graph"));
  REQUIRE(value_at(given, "/graph/given") == true);
  REQUIRE(value_at(given, "/graph/file").get<std::string>().ends_with("_graph.nc"));
  tree["system"]["input"]["graph"] = nullptr;
  REQUIRE(is_refused(imported(tree), "graph"));
  const std::string weights = "/graph/nodes/data/attributes/area_weight";
  const Imported uniform = changed(
      {{weights, parse(R"({"_target_": "a.UniformWeights", "norm": null})")},
       {"/graph/nodes/data/attributes/cutout_mask", parse(R"({"_target_": "a.CutOutMask"})")}});
  REQUIRE(value_at(uniform, "/graph/area_weight").dump() == R"({"kind":"uniform","norm":"none"})");
  REQUIRE(uniform.num_not_honoured() == 0);
  const Imported masked = changed(
      {{"/graph/nodes/data/attributes/cutout_mask", parse(R"({"_target_": "a.CutOutMask"})")},
       {kScalers + "/node_weights",
        parse(R"({"_target_": "a.ReweightedGraphNodeAttributeScaler", "nodes_attribute_name":
              "area_weight", "scaling_mask_attribute_name": "cutout_mask",
              "weight_frac_of_total": 0.25, "norm": "l1"})")}});
  REQUIRE(value_at(masked, "/graph/nodes/data/attributes/cutout_mask/kind") == "cutout_mask");
  REQUIRE(value_at(masked, "/loss/node_mask_share") == 0.25);
  REQUIRE(value_at(masked, "/loss/node_norm") == "unit-sum");
}

// ---------------------------------------------------------------------------------------- loss ---

TEST_CASE("sums, aggregates and scales of losses", "[anemoi]") {
  const Imported sum =
      changed({{kLoss, parse(R"({"_target_": "a.CombinedLoss", "loss_weights": [0.6, 0.4],
      "scalers": ["node_weights", "time_steps"], "losses": [
        {"_target_": "a.MultiscaleLossWrapper", "multiscale_config": null, "weights": [2.0],
         "per_scale_loss": {"_target_": "a.CRPS", "scalers": ["*", "!stdev_tendency",
             "!var_tendency"]}},
        {"_target_": "a.TimeAggregateLossWrapper", "time_aggregation_types": ["mean", "diff"],
         "scalers": ["node_weights"], "loss_fn": {"_target_": "a.HuberLoss", "delta": 0.5}}]})")}});
  const Json terms = value_at(sum, "/loss/terms");
  REQUIRE(
      terms[0].dump() ==
      R"({"kind":"crps","weight":1.2,"alpha":0.95,"scalers":["general_variable","pressure_level",)"
      R"("nan_mask_weights","node_weights","time_steps"]})");
  REQUIRE(terms[1].dump() ==
          R"({"kind":"huber","weight":0.4,"delta":0.5,"time_aggregation":["mean","diff"],)"
          R"("scalers":["node_weights"]})");
  REQUIRE(value_at(sum, "/loss/scalers").dump() == "[]");
  const Imported files =
      changed({{kLoss, parse(R"({"_target_": "a.MultiscaleLossWrapper", "weights": [1, 2],
      "loss_matrices_path": "/m", "loss_matrices": ["a.npz", null],
      "per_scale_loss": {"_target_": "a.CRPS", "scalers": ["node_weights"]}})")}});
  REQUIRE(value_at(files, "/loss/scales").dump() ==
          R"({"weights":[1.0,2.0],"files":["/m/a.npz",""]})");
  REQUIRE(files.num_not_honoured() == 0);
  const auto folder = [](const char* at_config) {
    const std::string at = at_config;
    const Imported result = changed(
        {{kLoss, parse(R"({"_target_": "a.MultiscaleLossWrapper", "weights": [1, 2],
        "loss_matrices_path": "/m", "multiscale_config": {"loss_matrices": ["a.npz", null]},
        "per_scale_loss": {"_target_": "a.CRPS", "scalers": ["node_weights"]}})")},
         {kLoss + "/multiscale_config/loss_matrices_path", at.empty() ? Json() : Json(at)}});
    return value_at(result, "/loss/scales/files").dump();
  };
  REQUIRE(folder("") == R"(["/m/a.npz",""])");
  REQUIRE(folder("/own") == R"(["/own/a.npz",""])");
}

TEST_CASE("an empty list of scalers is none, but in a wrapper it is those around", "[anemoi]") {
  const Imported sum =
      changed({{kLoss, parse(R"({"_target_": "a.CombinedLoss", "scalers": ["node_weights"],
      "losses": [{"_target_": "a.MSELoss", "scalers": []}, {"_target_": "a.MAELoss"},
        {"_target_": "a.TimeAggregateLossWrapper", "time_aggregation_types": ["mean"],
         "loss_fn": {"_target_": "a.MSELoss", "scalers": []}},
        {"_target_": "a.TimeAggregateLossWrapper", "time_aggregation_types": ["mean"],
         "scalers": [], "loss_fn": {"_target_": "a.MSELoss"}},
        {"_target_": "a.MultiscaleLossWrapper", "weights": [1], "scalers": ["time_steps"],
         "per_scale_loss": {"_target_": "a.CRPS", "scalers": []}}]})")}});
  Json scalers = Json::array();
  for (const Json& term : value_at(sum, "/loss/terms"))
    scalers.push_back(term["scalers"]);
  REQUIRE(scalers.dump() == R"([[],["node_weights"],["node_weights"],[],["time_steps"]])");
}

TEST_CASE("spectral and graph scores", "[anemoi]") {
  const Imported spectral = changed({{kLoss, parse(R"({"_target_": "a.SpectralCRPSLoss",
      "transform": "octahedral_sht", "nlat": 192, "truncation": 40, "scalers": [],
      "projection_config": {"grid": "o32", "num_nearest_neighbours": 3, "sigma": 0.1}})")}});
  REQUIRE(value_at(spectral, "/loss/transform").dump() ==
          R"({"kind":"octahedral_sht","grid":"o96","truncation":40,)"
          R"("projection":{"grid":"o32","neighbours":3,"sigma":0.1}})");
  REQUIRE(value_at(spectral, "/loss/alpha") == 1.0);
  const Imported graph =
      changed({{kLoss, parse(R"({"_target_": "a.GraphVariogramScoreLoss", "p": 0.5,
      "fair": false, "scalers": [], "loss_graph": {"edges_name": ["data", "to", "data"]}})")}});
  REQUIRE(value_at(graph, "/loss/variogram_power") == 0.5);
  REQUIRE(is_refused(graph, "training.training_loss.datasets.data.loss_graph"));
  const Imported with_edges = changed(
      {{kLoss, parse(R"({"_target_": "a.GraphVariogramScoreLoss", "scalers": [],
                         "loss_graph": {"edges_name": ["data", "to", "data"]}})")},
       {"/graph/edges/2", parse(R"({"source_name": "data", "target_name": "data", "attributes": {},
          "edge_builders": [{"_target_": "a.KNNEdges", "num_nearest_neighbours": 4}]})")}});
  REQUIRE(value_at(with_edges, "/loss/graph/of_graph") == true);
  REQUIRE(value_at(with_edges, "/graph/edges/2/target") == "data");
  REQUIRE(is_refused(changed({{kLoss, parse(R"({"_target_": "a.OwnLoss", "scalers": []})")}}),
                     "training.training_loss.datasets.data"));
}

TEST_CASE("scalers have names of their own in Anemoi", "[anemoi]") {
  const Imported result = changed(
      {{kLoss,
        parse(R"({"_target_": "a.MSELoss", "scalers": ["heights", "grid", "lead", "mask", "second",
                         "missing"]})")},
       {kScalers, parse(R"({
          "heights": {"_target_": "a.LinearVariableLevelScaler", "group": "sfc",
              "y_intercept": 0.1, "slope": 0.01},
          "grid": {"_target_": "a.GraphNodeAttributeScaler",
              "nodes_attribute_name": "area_weight", "norm": "unit-mean"},
          "lead": {"_target_": "a.LeadTimeDecayScaler", "decay_factor": 0.5, "max_lead_time": 24,
                   "output_lead_times": [6, 12], "decay_type": "exponential"},
          "mask": {"_target_": "a.VariableMaskingLossScaler", "variables": ["tp"], "invert": true},
          "second": {"_target_": "a.GraphNodeAttributeScaler", "nodes_attribute_name": "x"},
          "steps": {"_target_": "a.TimeStepScaler", "weights": [1, 2]}})")},
       {"/training/variable_groups/datasets/data/sfc", {"2t", "sp"}}});
  REQUIRE(value_at(result, "/loss/scalers").dump() ==
          R"(["pressure_level","node_weights","lead_time_decay","variable_mask","second"])");
  REQUIRE(value_at(result, "/loss/named_scalers").dump() ==
          R"({"second":{"kind":"node_weights","node_attribute":"x"}})");
  REQUIRE(value_at(result, "/loss/level").dump() ==
          R"({"kind":"linear","y_intercept":0.1,"slope":0.01,"parameters":["2t","sp"]})");
  REQUIRE(value_at(result, "/loss/lead_time/kind") == "exponential");
  REQUIRE(value_at(result, "/loss/masked_variables").dump() == R"(["tp"])");
  REQUIRE(value_at(result, "/loss/mask_inverse") == true);
  REQUIRE(value_at(result, "/loss/node_norm") == "unit-mean");
  REQUIRE(is_refused(result, "training.training_loss.datasets.data.scalers"));
}

TEST_CASE("a scaler that is not the usual one of its kind keeps its name", "[anemoi]") {
  const Imported result = changed({{kLoss, parse(R"({"_target_": "a.MSELoss",
                         "scalers": ["node_weights", "pressure_level", "steps"]})")},
                                   {kScalers, parse(R"({
          "node_weights": {"_target_": "a.GraphNodeAttributeScaler",
              "nodes_attribute_name": "cutout", "inverse": true},
          "pressure_level": {"_target_": "a.NoVariableLevelScaler", "group": "pl",
              "norm": "unit-mean"},
          "steps": {"_target_": "a.TimeStepScaler", "weights": [1], "norm": null}})")}});
  REQUIRE(value_at(result, "/loss/scalers").dump() ==
          R"(["node_weights_own","pressure_level_own","steps"])");
  REQUIRE(value_at(result, "/loss/named_scalers/node_weights_own").dump() ==
          R"({"kind":"node_weights","node_attribute":"cutout","node_inverse":true})");
  REQUIRE(value_at(result, "/loss/named_scalers/pressure_level_own/norm") == "unit-mean");
  REQUIRE(value_at(result, "/loss/named_scalers/steps").dump() ==
          R"({"kind":"time_steps","time_weights":[1.0]})");
}

TEST_CASE("the norm of time steps is the schema's, or none without its validation", "[anemoi]") {
  for (const bool validated : {true, false}) {
    const Imported result =
        changed({{kLoss, parse(R"({"_target_": "a.MSELoss", "scalers": ["cells", "steps"]})")},
                 {kScalers, parse(R"({
            "cells": {"_target_": "a.GraphNodeAttributeScaler",
                "nodes_attribute_name": "area_weight", "norm": "unit-sum"},
            "steps": {"_target_": "a.TimeStepScaler", "weights": [2]}})")},
                 {"/config_validation", validated}});
    INFO("config_validation " << validated);
    if (validated) {
      REQUIRE(value_at(result, "/loss/scalers").dump() == R"(["node_weights","time_steps"])");
      REQUIRE(value_at(result, "/loss/time_weights").dump() == "[2.0]");
    } else {
      REQUIRE(value_at(result, "/loss/scalers").dump() == R"(["node_weights","steps"])");
      REQUIRE(value_at(result, "/loss/named_scalers/steps").dump() ==
              R"({"kind":"time_steps","time_weights":[2.0]})");
    }
  }
}

TEST_CASE("wrappers of losses keep their order", "[anemoi]") {
  const auto wrapped = [](const char* text) { return changed({{kLoss, parse(text)}}); };
  const Imported outer = wrapped(R"({"_target_": "a.TimeAggregateLossWrapper",
      "time_aggregation_types": ["max"], "scalers": [], "loss_fn": {
        "_target_": "a.MultiscaleLossWrapper", "weights": [1, 2, 3], "multiscale_config": {
          "smoothers": {"fine": {"num_nearest_neighbours": 3, "sigma": 0.1},
                        "coarse": {"num_nearest_neighbours": 9, "sigma": 0.3}}},
        "per_scale_loss": {"_target_": "a.MSELoss"}}})");
  REQUIRE(value_at(outer, "/loss/scales").dump() ==
          R"({"weights":[1.0,2.0,3.0],"smoothers":[{"neighbours":9,"sigma":0.3},)"
          R"({"neighbours":3,"sigma":0.1}],"of_aggregates":true})");
  REQUIRE_THROWS_AS(wrapped(R"({"_target_": "a.TimeAggregateLossWrapper", "ignore_nans": true,
      "time_aggregation_types": ["max"], "loss_fn": {"_target_": "a.MSELoss"}})"),
                    ConfigError);
}

TEST_CASE("scalers of levels have exact names", "[anemoi]") {
  const auto scaled_by = [](const char* name) {
    return changed({{kLoss, parse(R"({"_target_": "a.MSELoss", "scalers": ["pressure_level"]})")},
                    {kScalers + "/pressure_level/_target_", name}});
  };
  REQUIRE(value_at(scaled_by("a.NoVariableLevelScaler"), "/loss/level/kind") == "none");
  REQUIRE(value_at(scaled_by("a.PolynomialVariableLevelScaler"), "/loss/level/kind") ==
          "polynomial");
  for (const char* name : {"a.ReluSquaredVariableLevelScaler", "a.VariableLevelScaler",
                           "a.ExponentialVariableLevelScaler"}) {
    const Imported result = scaled_by(name);
    REQUIRE(value_at(result, "/loss/scalers").dump() == "[]");
    REQUIRE(is_refused(result, "training.training_loss.datasets.data.scalers"));
  }
}

// ------------------------------------------------------------------------------------ training ---

TEST_CASE("optimisers, rates and averages", "[anemoi]") {
  const std::string at = "/training/optimization";
  const Imported zero = changed(
      {{at + "/optimizer", parse(R"({"_target_": "torch.distributed.optim.ZeroRedundancyOptimizer",
          "optimizer_class": {"_target_": "torch.optim.AdamW", "_partial_": true},
              "betas": [0.9, 0.99]})")},
       {at + "/lr_scheduler", nullptr},
       {"/training/gradient_clip/val", 0},
       {"/training/weight_averaging",
        parse(R"({"_target_": "pytorch_lightning.callbacks.StochasticWeightAveraging",
          "swa_lrs": 1e-4})")}});
  REQUIRE(value_at(zero, "/parallel/sharding/states") == "optimizer");
  REQUIRE(value_at(zero, "/optimizer/beta2") == 0.99);
  REQUIRE(value_at(zero, "/optimizer/schedule/kind") == "constant");
  REQUIRE(value_at(zero, "/optimizer/clip") == "none");
  REQUIRE(is_refused(zero, "training.weight_averaging"));
  const Imported mixed = changed(
      {{at + "/optimizer", parse(R"({"_target_": "anemoi.training.optimizers.AdEMAMix.AdEMAMix",
          "betas": [0.9, 0.95, 0.9999], "alpha": 8.0, "alpha_warmup": 10, "beta3_warmup": 20,
              "fused": true})")},
       {at + "/lr_scheduler/t_in_epochs", true},
       {at + "/pl_lr_scheduler/interval", "epoch"},
       {"/training/weight_averaging",
        parse(R"({"_target_": "anemoi.x.SWAWeightAveraging", "update_every_n_steps": 9})")}});
  REQUIRE(value_at(mixed, "/optimizer/kind") == "ademamix");
  REQUIRE(value_at(mixed, "/optimizer/beta3") == 0.9999);
  REQUIRE(value_at(mixed, "/optimizer/average/kind") == "mean");
  REQUIRE(is_refused(mixed, "training.optimization.lr_scheduler.t_in_epochs"));
  REQUIRE(is_refused(mixed, "training.optimization.pl_lr_scheduler.interval"));
  const Imported adam = changed(
      {{at + "/optimizer", parse(R"({"_target_": "torch.optim.Adam", "lr": 1, "eps": 1e-7})")}});
  REQUIRE(value_at(adam, "/optimizer/weight_decay") == 0.0);
  REQUIRE(is_refused(adam, "training.optimization.optimizer.lr"));
  REQUIRE(is_refused(changed({{at + "/optimizer", parse(R"({"_target_": "x.Muon"})")}}),
                     "training.optimization.optimizer._target_"));
}

TEST_CASE("optimisers without options have those of their class", "[anemoi]") {
  const auto optimizer = [](const char* text) {
    const Json options{{"optimizer", parse(text)}, {"lr", 1e-4}, {"lr_scheduler", nullptr}};
    return changed({{"/training/optimization", options}});
  };
  for (const char* text : {R"({"_target_": "torch.optim.AdamW"})", R"({"_target_": "x.Adam"})"}) {
    const Imported adam = optimizer(text);
    REQUIRE(value_at(adam, "/optimizer/beta1") == 0.9);
    REQUIRE(value_at(adam, "/optimizer/beta2") == 0.999);
  }
  const Imported mixed = optimizer(R"({"_target_": "x.AdEMAMix"})");
  REQUIRE(value_at(mixed, "/optimizer/beta2") == 0.999);
  REQUIRE(value_at(mixed, "/optimizer/beta3") == 0.9999);
  REQUIRE(value_at(mixed, "/optimizer/alpha") == 2.0);
  REQUIRE(value_at(mixed, "/optimizer/weight_decay") == 0.0);
  Json tree = json_config();
  tree["training"].erase("optimization");
  REQUIRE(value_at(imported(tree), "/optimizer/beta2") == 0.95);
}

TEST_CASE("precisions", "[anemoi]") {
  const auto precision = [](const Json& value) {
    return value_at(changed({{"/training/precision", value}}), "/train/precision");
  };
  REQUIRE(precision("16-mixed") == "fp16-mixed");
  REQUIRE(precision("bf16-mixed") == "bf16-mixed");
  REQUIRE(precision("32-true") == "tf32");
  REQUIRE(precision(32) == "tf32");
  REQUIRE(precision(64) == "fp64");
  REQUIRE(
      is_refused(changed({{"/training/precision", "transformer-engine"}}), "training.precision"));
}

TEST_CASE("precision and steps that are absent are Anemoi's, and null is not", "[anemoi]") {
  Json tree = json_config();
  tree["training"].erase("precision");
  tree["training"].erase("max_steps");
  const Imported absent = imported(tree);
  REQUIRE(value_at(absent, "/train/precision") == "fp16-mixed");
  REQUIRE(value_at(absent, "/train/max_steps") == 150000);
  const Imported null =
      changed({{"/training/precision", nullptr}, {"/training/max_steps", nullptr}});
  REQUIRE(value_at(null, "/train/precision") == "tf32");
  REQUIRE(value_at(null, "/train/max_steps") == 0);
}

TEST_CASE("runs that go on, stop early, or are of another kind", "[anemoi]") {
  const Imported result =
      changed({{"/training/run_id", "abc"},
               {"/training/transfer_learning", true},
               {"/system/input/warm_start", "last.ckpt"},
               {"/training/loss_gradient_scaling", true},
               {"/training/method/_target_", "anemoi.training.train.methods.TransportTraining"},
               {"/training/strategy/_target_", "pytorch_lightning.strategies.FSDPStrategy"},
               {"/training/transport", parse(R"({"objective": "edm_diffusion"})")},
               {"/task/_target_", "anemoi.training.tasks.TemporalDownscaler"},
               {"/system/hardware/accelerator", "tpu"},
               {"/diagnostics/callbacks", parse(R"([{"_target_": "a.EarlyStopping", "patience": 3},
                                            {"_target_": "a.RolloutEval", "rollout": 12}])")}});
  for (const char* path :
       {"training.run_id", "training.transfer_learning", "system.input.warm_start",
        "training.loss_gradient_scaling", "training.method._target_", "training.strategy",
        "training.transport", "task._target_", "system.hardware.accelerator",
        "diagnostics.callbacks.0"}) {
    INFO(path);
    REQUIRE(is_refused(result, path));
  }
  REQUIRE(!is_refused(result, "diagnostics.callbacks.1"));
}

TEST_CASE("validation has as many dates as there are ensembles at a time", "[anemoi]") {
  const auto dates = [](const char* network) {
    const Imported result = changed({{"/model/model/_target_", network},
                                     {"/dataloader/limit_batches/validation", 10},
                                     {"/system/hardware/num_gpus_per_node", 8},
                                     {"/system/hardware/num_gpus_per_model", 2},
                                     {"/system/hardware/num_gpus_per_ensemble", 4}});
    return value_at(result, "/train/validation/max_dates");
  };
  REQUIRE(dates("a.AnemoiEnsModelEncProcDec") == 10 * 4 * 2);
  REQUIRE(dates("a.AnemoiModelEncProcDec") == 10 * 4 * 4);
}

TEST_CASE("all checkpoints are kept if those of one frequency are", "[anemoi]") {
  const std::string at = "/diagnostics/checkpoint";
  const auto kept = [&](const char* epochs, const char* steps) {
    return changed(
        {{at + "/every_n_epochs", parse(epochs)}, {at + "/every_n_train_steps", parse(steps)}});
  };
  const char* five = R"({"save_frequency": 5, "num_models_saved": 5})";
  const char* all = R"({"save_frequency": 5, "num_models_saved": -1})";
  const char* none = R"({"save_frequency": null, "num_models_saved": -1})";
  const Imported both = kept(all, five);
  REQUIRE(value_at(both, "/checkpoint/keep") == 0);
  REQUIRE(remark_on(both, "diagnostics.checkpoint.every_n_train_steps.num_models_saved")->verdict ==
          anemoi::Verdict::kNote);
  REQUIRE(value_at(kept(five, all), "/checkpoint/keep") == 0);
  const Imported one = kept(none, five);
  REQUIRE(value_at(one, "/checkpoint/keep") == 5);
  REQUIRE(!remark_on(one, "diagnostics.checkpoint.every_n_train_steps.num_models_saved"));
}

TEST_CASE("checkpoints, ranks and logs", "[anemoi]") {
  const Imported result =
      changed({{"/diagnostics/checkpoint/every_n_train_steps",
                parse(R"({"save_frequency": 500, "num_models_saved": 4})")},
               {"/diagnostics/checkpoint/every_n_epochs/save_frequency", nullptr},
               {"/diagnostics/log/interval", 7},
               {"/system/hardware/num_nodes", 4},
               {"/system/hardware/num_gpus_per_model", 2},
               {"/system/hardware/num_gpus_per_ensemble", 2}});
  REQUIRE(value_at(result, "/checkpoint").dump() ==
          R"({"every_steps":500,"keep":4,"at_end":true})");
  REQUIRE(value_at(result, "/log/every_steps") == 7);
  REQUIRE(value_at(result, "/parallel/model") == 2);
  REQUIRE(value_at(result, "/model/ensemble/members") == 2);
  REQUIRE(remark_on(result, "system.hardware.num_gpus_per_node")->text.find("4 ranks") !=
          std::string::npos);
  const Imported none = changed({{"/diagnostics/enable_checkpointing", false}});
  REQUIRE(value_at(none, "/checkpoint").dump() == R"({"keep":0,"at_end":false})");
}
