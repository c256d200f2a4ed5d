// SPDX-License-Identifier: Apache-2.0
// Section "model" of a configuration of Anemoi's: what changes of it change here.
#include <tuple>

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
using test::two_datasets;
using test::value_at;

namespace {

Json parse(const char* text) {
  return Json::parse(text);
}

}  // namespace

TEST_CASE("parts of networks", "[anemoi]") {
  const Imported result =
      changed({{"/model/processor/window_size", nullptr},
               {"/model/processor/attention_implementation", "scaled_dot_product_attention"},
               {"/model/processor/dropout_p", 0.1},
               {"/model/processor/cpu_offload", true},
               {"/model/processor/use_rotary_embeddings", true},
               {"/model/encoder/_target_", "a.TransformerForwardMapper"},
               {"/model/encoder/use_rotary_embeddings", true},
               {"/model/encoder/window_size", -1},
               {"/model/encoder/layer_kernels/Activation/_target_", "torch.nn.SiLU"},
               {"/model/encoder/layer_kernels/LayerNorm/eps", 1e-6},
               {"/model/decoder/layer_kernels/LayerNorm/eps", 1e-4},
               {"/model/decoder/layer_kernels/Linear/_target_", "a.QuantLinear"},
               {"/model/decoder/gradient_checkpointing", false}});
  REQUIRE(value_at(result, "/model/processor/attention") == "sdpa");
  REQUIRE(value_at(result, "/model/processor/window").is_null());
  REQUIRE(value_at(result, "/model/processor/offload") == 1);
  REQUIRE(value_at(result, "/model/encoder").dump() ==
          R"({"kind":"transformer","mlp_hidden_ratio":4.0,"mlp_implementation":"mlp","heads":16,)"
          R"("qk_norm":false,"window":-1,"attention":"flash","rotary":true,"recompute":"full",)"
          R"("norm_eps":1e-06,"activation":"silu"})");
  REQUIRE(value_at(result, "/model/decoder/recompute") == "none");
  REQUIRE(value_at(result, "/model/decoder/norm_eps") == 1e-4);
  REQUIRE(value_at(result, "/model/processor/norm_eps").is_null());
  for (const char* path : {"model.processor.dropout_p", "model.decoder.layer_kernels.Linear"}) {
    INFO(path);
    REQUIRE(is_refused(result, path));
  }
  REQUIRE(
      is_refused(changed({{"/model/processor/_target_", "a.MambaProcessor"}}), "model.processor"));
}

TEST_CASE("kinds of networks", "[anemoi]") {
  const Imported diffusion =
      changed({{"/model/model/_target_", "a.AnemoiTransportModelEncProcDec"}});
  REQUIRE(is_refused(diffusion, "model.model._target_"));
  REQUIRE(is_refused(diffusion, "training.ensemble_size_per_device"));
  const Imported levels = changed({{"/model/model/_target_", "a.AnemoiModelEncProcDecHierarchical"},
                                   {"/model/model/hidden_nodes_name", {"h1", "h2"}},
                                   {"/model/enable_hierarchical_level_processing", true},
                                   {"/model/level_process_num_layers", 2},
                                   {"/training/ensemble_size_per_device", 1}});
  REQUIRE(value_at(levels, "/model/hierarchy/meshes").dump() == R"(["h1","h2"])");
  REQUIRE(value_at(levels, "/model/hierarchy/level_layers") == 2);
  REQUIRE(value_at(levels, "/model/hierarchy/upscale/kind") == "graph_transformer");
  REQUIRE(value_at(levels, "/graph/file") == "test.nc");
  const auto with_zero = [](bool zero) {
    const Json up = json_config()["model"]["encoder"];
    Json down = json_config()["model"]["decoder"];
    down["initialise_data_extractor_zero"] = zero;
    return changed({{"/model/model/_target_", "a.AnemoiModelEncProcDecHierarchical"},
                    {"/model/model/hidden_nodes_name", {"h1", "h2"}},
                    {"/model/upscale_mapper", up},
                    {"/model/downscale_mapper", down}});
  };
  const std::string zero = "model.downscale_mapper.initialise_data_extractor_zero";
  REQUIRE(is_refused(with_zero(true), zero));
  REQUIRE_FALSE(is_refused(with_zero(false), zero));
  Json old = json_config();
  old["graph"]["hidden"] = {"h1", "h2"};
  old["model"]["model"].erase("hidden_nodes_name");
  old["model"]["model"]["_target_"] = "a.AnemoiModelEncProcDecHierarchical";
  REQUIRE(value_at(imported(old), "/model/hierarchy/meshes").dump() == R"(["h1","h2"])");
  const Imported shared = changed({{"/system/hardware/num_gpus_per_ensemble", 4},
                                   {"/model/noise_injector/noise_edges_name", {"a", "to", "b"}},
                                   {"/model/output_mask/_target_", "a.AnotherMask"}});
  REQUIRE(value_at(shared, "/model/ensemble/members") == 8);
  REQUIRE(is_refused(shared, "model.noise_injector.noise_edges_name"));
  REQUIRE(is_refused(shared, "model.output_mask"));
}

TEST_CASE("norms of queries and keys have an eps of their own", "[anemoi]") {
  const std::string kernels = "/model/processor/layer_kernels";
  const Imported usual =
      changed({{"/model/processor/qk_norm", true}, {kernels + "/LayerNorm/eps", 1e-3}});
  REQUIRE(value_at(usual, "/model/processor/norm_eps") == 1e-3);
  REQUIRE(value_at(usual, "/model/processor/qk_norm_eps") == 1e-5);  // torch's
  const Imported own = changed({{"/model/processor/qk_norm", true},
                                {kernels + "/QueryNorm/eps", 1e-4},
                                {kernels + "/KeyNorm/eps", 1e-4}});
  REQUIRE(value_at(own, "/model/processor/qk_norm_eps") == 1e-4);
  REQUIRE(value_at(own, "/model/processor/norm_eps").is_null());
  REQUIRE(
      is_refused(changed({{"/model/processor/qk_norm", true}, {kernels + "/KeyNorm/eps", 1e-4}}),
                 "model.processor.layer_kernels.KeyNorm.eps"));
  const Imported unused =
      changed({{"/model/processor/qk_norm", false}, {kernels + "/KeyNorm/eps", 1e-4}});
  REQUIRE(value_at(unused, "/model/processor/qk_norm_eps").is_null());
  REQUIRE_FALSE(is_refused(unused, "model.processor.layer_kernels.KeyNorm.eps"));
}

TEST_CASE("noise may be drawn on other nodes, or brought by a matrix", "[anemoi]") {
  const std::string injector = "/model/noise_injector";
  const Imported edges = changed({{injector + "/noise_edges_name", {"data", "to", "hidden"}},
                                  {injector + "/edge_weight_attribute", "edge_length"},
                                  {injector + "/row_normalize_noise_matrix", true}});
  REQUIRE(value_at(edges, "/model/ensemble/noise_nodes") == "data");
  REQUIRE(value_at(edges, "/model/ensemble/noise_weights") == "edge_length");
  REQUIRE(value_at(edges, "/model/ensemble/noise_normalised") == true);
  REQUIRE(edges.num_not_honoured() == imported(json_config()).num_not_honoured());
  const Imported matrix = changed({{injector + "/noise_matrix", "noise.npz"}});
  REQUIRE(value_at(matrix, "/model/ensemble/noise_matrix") == "noise.npz");
  REQUIRE(value_at(matrix, "/model/ensemble/noise_nodes").is_null());
  REQUIRE(is_refused(changed({{injector + "/noise_matrix", "noise.npz"},
                              {injector + "/noise_edges_name", {"data", "to", "hidden"}}}),
                     "model.noise_injector.noise_edges_name"));
}

TEST_CASE("each of several datasets has the parts that Anemoi gives it", "[anemoi]") {
  Json tree = two_datasets();
  Json& model = tree["model"];
  for (const auto& [one, list, served] : {std::tuple{"encoder", "encoders", "source_datasets"},
                                          std::tuple{"decoder", "decoders", "target_datasets"}}) {
    for (const char* name : {"era5", "cerra"}) {
      Json& entry = model[list][std::string("of_") + name];
      entry = {{served, Json::array({name})}, {"mapper", model[one]}};
      entry["mapper"]["trainable_size"] = 3;
    }
    model.erase(one);
  }
  Json& other = model["encoders"]["of_cerra"]["mapper"];
  other["num_heads"] = 2;
  other["trainable_size"] = 5;
  model["decoders"]["of_cerra"]["target_node_features"] = Json::array({"coordinates"});
  Json& widths = model["trainable_parameters"];
  widths.erase("data");
  widths["era5"] = 3;
  widths["cerra"] = 2;
  model["residual"] = {{"datasets",
                        {{"era5", {{"_target_", "a.SkipConnection"}}},
                         {"cerra", {{"_target_", "a.NoConnection"}}}}}};
  model["bounding"] = {
      {"datasets",
       {{"era5", parse(R"([{"_target_": "a.ReluBounding", "variables": ["tp"]}])")},
        {"cerra", Json::array()}}}};
  const Imported result = imported(tree);
  INFO(remarks_text(result.remarks));
  REQUIRE(result.num_not_honoured() == imported(two_datasets()).num_not_honoured());
  REQUIRE(value_at(result, "/data/datasets/cerra/encoder") == "of_cerra");
  REQUIRE(value_at(result, "/data/datasets/cerra/decoder") == "of_cerra");
  REQUIRE(value_at(result, "/model/encoders/of_cerra/heads") == 2);
  REQUIRE(value_at(result, "/model/encoders/of_cerra/trainable") == 5);
  REQUIRE(value_at(result, "/model/encoders/of_era5").is_null());
  REQUIRE(value_at(result, "/model/trainable_parameters/data_to_hidden") == 3);
  REQUIRE(value_at(result, "/model/decoders/of_cerra/target_features").dump() ==
          R"(["coordinates"])");
  REQUIRE(value_at(result, "/model/trainable_parameters/data") == 3);
  REQUIRE(value_at(result, "/model/trainable_parameters/nodes").dump() == R"({"cerra":2})");
  REQUIRE(value_at(result, "/model/residual/kind") == "skip");
  REQUIRE(value_at(result, "/model/residuals/cerra/kind") == "none");
  REQUIRE(value_at(result, "/model/bounding").dump() ==
          R"([{"kind":"relu","variables":["tp"],"datasets":["era5"]}])");
  tree["model"]["decoders"]["of_era5"]["target_datasets"] = {"era5", "cerra"};
  REQUIRE(is_refused(imported(tree), "model.decoders.of_era5.target_datasets"));
}

TEST_CASE("a network or graph without one of its parts is refused", "[anemoi]") {
  for (const char* part : {"processor", "encoder", "decoder", "model"}) {
    Json tree = json_config();
    tree["model"].erase(part);
    REQUIRE_THROWS_WITH(imported(tree),
                        ContainsSubstring(concat("'model.", part, "': is missing")));
  }
  Json tree = json_config();
  tree["graph"]["edges"].erase(1);
  REQUIRE_THROWS_WITH(imported(tree),
                      ContainsSubstring("'graph.edges': has no edges from 'hidden' to 'data'"));
  tree["graph"]["edges"].clear();
  REQUIRE_THROWS_WITH(imported(tree), ContainsSubstring("from 'data' to 'hidden'"));
  REQUIRE_THROWS_WITH(changed({{"/model/processor/_target_", "a.GNNProcessor"}}),
                      ContainsSubstring("from 'hidden' to 'hidden'"));
}

TEST_CASE("residuals and limits", "[anemoi]") {
  const auto residual = [](const char* text) {
    return value_at(changed({{"/model/residual", parse(text)}}), "/model/residual").dump();
  };
  REQUIRE(residual(R"({"_target_": "a.SkipConnection", "step": -2})") ==
          R"({"kind":"skip","step":-2})");
  REQUIRE(residual(R"({"_target_": "a.NoConnection"})") == R"({"kind":"none"})");
  REQUIRE(residual(R"({"_target_": "a.TruncatedConnection", "truncation_up_file_path": "u.npz",
                       "truncation_down_file_path": "d.npz"})") ==
          R"({"kind":"truncated","truncation_up":"u.npz","truncation_down":"d.npz"})");
  REQUIRE(
      residual(R"({"_target_": "a.SpectralOrnsteinConnection", "lmax": 4, "theta_buff": 0.1})") ==
      R"({"kind":"spectral_ornstein","lmax":4,"theta_buffer":0.1})");
  REQUIRE(is_refused(changed({{"/model/residual", parse(R"({"_target_": "a.Other"})")}}),
                     "model.residual"));
  const Imported limits = changed({{"/model/bounding", parse(R"([
      {"_target_": "a.NormalizedReluBounding", "variables": ["sst"], "min_val": [-2],
          "normalizer": ["mean-std"]},
      {"_target_": "a.HardtanhBounding", "variables": ["tcc"], "min_val": 0, "max_val": 1},
      {"_target_": "a.SoftBounding", "variables": ["x"]}])")}});
  REQUIRE(value_at(limits, "/model/bounding").dump() ==
          R"([{"kind":"normalized_relu","variables":["sst"],"thresholds":[-2.0],)"
          R"("normalizer":["mean-std"]},)"
          R"({"kind":"hardtanh","variables":["tcc"],"min_val":0.0,"max_val":1.0}])");
  REQUIRE(is_refused(limits, "model.bounding.2"));
}

TEST_CASE("output masks are attributes of the nodes, which the graph keeps", "[anemoi]") {
  const Imported masked =
      changed({{"/model/output_mask/_target_", "anemoi.training.utils.masks.Boolean1DMask"},
               {"/model/output_mask/attribute_name", "cutout_mask"},
               {"/graph/nodes/data/attributes/cutout_mask",
                {{"_target_", "anemoi.graphs.nodes.attributes.CutOutMask"}}},
               {"/training/validation_metrics/datasets/data/mse_inside_lam",
                {{"_target_", "a.MSELoss"}, {"scalers", {"node_weights"}}}}});
  REQUIRE_FALSE(is_refused(masked, "model.output_mask"));
  REQUIRE(value_at(masked, "/model/output_mask") == "cutout_mask");
  REQUIRE(value_at(masked, "/graph/nodes/data/attributes/cutout_mask/kind") == "cutout_mask");
  REQUIRE(value_at(masked, "/train/validation/region") == "cutout_mask");
  const Imported none =
      changed({{"/model/output_mask/_target_", "anemoi.training.utils.masks.NoOutputMask"}});
  REQUIRE(value_at(none, "/model/output_mask").is_null());
  REQUIRE(value_at(none, "/train/validation/region").is_null());
}
