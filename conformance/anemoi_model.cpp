// SPDX-License-Identifier: Apache-2.0
#include "conformance/anemoi_model.h"

#include <ATen/ATen.h>

#include "conformance/anemoi_form.h"
#include "conformance/report.h"
#include "conformance/tensors.h"

namespace aifs::conformance {

namespace {

constexpr double kTorchNormEps = 1e-5;

std::string class_of(const Json& json) {
  const auto name = json.at("class").get<std::string>();
  return name.substr(name.rfind('.') + 1);  // with or without its module
}

// "GELU (erf)" -> "GELU", whose exact form is the only one there is.
std::string plain_name(const std::string& text) {
  const size_t end = text.find(" (");
  if (end == std::string::npos) return text;
  if (text.substr(end) != " (erf)") throw NotSupported("activation " + text);
  return text.substr(0, end);
}

// Parts by one name.

Json simple_residual(const Json& json) {
  const std::string kind =
      json.contains("residual") ? json["residual"].value("kind", std::string("skip")) : "skip";
  for (const auto& [start, name] : {std::pair{"skip", "SkipConnection"},
                                    {"none", "NoConnection"},
                                    {"truncated", "TruncatedConnection"}}) {
    if (kind.starts_with(start)) return Json{{"class", name}};
  }
  throw NotSupported("residual " + kind);
}

// "encoder", "processor" and "decoder" at the top, as Anemoi's own layout.
Json simple_model(const Json& json) {
  const Json& m = json.at("model");
  require_known_keys(
      m,
      {"encoder", "processor", "decoder", "decoder_target_features", "layer_norm_eps", "activation",
       "latent_skip", "node_trainable", "edge_trainable", "edge_attributes_in_order", "input_dim",
       "input_dim_latent", "target_dim", "output_dim", "parameters_trainable", "output_mask"});
  const auto part = [&](const char* name) {
    Json one = m.at(name);
    one["activation"] = plain_name(m.value("activation", std::string("GELU (erf)")));
    one["layer_kernels"]["LayerNorm"] = {{"class", "LayerNorm"},
                                         {"eps", m.value("layer_norm_eps", kTorchNormEps)}};
    return one;
  };
  const Json encoder = part("encoder"), processor = part("processor");
  const Json data = Json::array({"data"});
  Json model;
  model["num_channels"] =
      processor.contains("num_channels") ? processor["num_channels"] : encoder.at("num_channels");
  model["model"] = {{"class", "AnemoiModelEncProcDec"},
                    {"hidden_nodes_name", "hidden"},
                    {"latent_skip", m.at("latent_skip")}};
  model["processor"] = processor;
  model["encoders"]["0"] = {{"mapper", encoder}, {"source_datasets", data}};
  model["decoders"]["0"] = {{"mapper", part("decoder")}, {"target_datasets", data}};
  if (m.contains("decoder_target_features"))
    model["decoders"]["0"]["target_node_features"] = m["decoder_target_features"];
  model["node_trainable_parameters"] = m.at("node_trainable");
  model["edge_trainable_parameters"] = m.at("edge_trainable");
  model["attributes"]["edges"] = m.at("edge_attributes_in_order");
  model["residual"]["datasets"]["data"] = simple_residual(json);
  return model;
}

// Matrices.

// Writes a matrix of the case to a file that configurations can name.
std::string write_matrix(const SafetensorsFile& tensors, const std::string& name,
                         const std::array<int64_t, 2>& shape, const fs::path& file) {
  const char* separator = tensors.contains(name + "_index") ? "_" : "/";
  const at::Tensor index = read_tensor(tensors, name + separator + "index", at::kLong).contiguous();
  const at::Tensor value =
      read_tensor(tensors, name + separator + "value", at::kFloat).contiguous();
  write_safetensors(file,
                    {{"index", DType::kI64, index.sizes().vec(), index.const_data_ptr<int64_t>()},
                     {"value", DType::kF32, value.sizes().vec(), value.const_data_ptr<float>()},
                     {"shape", DType::kI64, {2}, shape.data()}});
  return file.string();
}

void name_truncation(const SafetensorsFile& tensors, int64_t num_nodes, const fs::path& folder,
                     Json& residual) {
  const std::string prefix = "truncation/";
  if (!tensors.contains(prefix + "down_index")) throw NotSupported("a truncation without matrices");
  const int64_t coarse = tensors.at(prefix + "node_latlon_rad").shape[0];
  residual = {
      {"class", "TruncatedConnection"},
      {"truncation_down_file_path",
       write_matrix(tensors, prefix + "down", {coarse, num_nodes}, folder / "down.safetensors")},
      {"truncation_up_file_path",
       write_matrix(tensors, prefix + "up", {num_nodes, coarse}, folder / "up.safetensors")}};
}

// Edges of the graph give the matrix but for the rounding of its rows' sums: the stored one counts.
void name_noise_matrix(const SafetensorsFile& tensors, const graph::Graph& graph,
                       const fs::path& folder, Json& model) {
  const std::string name = "noise_projection";
  if (!tensors.contains(name + "/index")) return;
  Json& injector = model.at("noise_injector");
  const Json& ends = injector.at("noise_edges_name");
  const std::string source = ends.is_array() ? ends[0].get<std::string>() : "data";
  const std::vector<std::string> meshes =
      texts(model["model"].at("hidden_nodes_name").is_array()
                ? model["model"]["hidden_nodes_name"]
                : Json::array({model["model"]["hidden_nodes_name"]}));
  injector["noise_matrix"] = write_matrix(
      tensors, name, {graph.nodes(meshes.at(0)).num_nodes(), graph.nodes(source).num_nodes()},
      folder / "noise.safetensors");
  for (const char* key :
       {"noise_edges_name", "edge_weight_attribute", "row_normalize_noise_matrix"})
    injector[key] = nullptr;
}

// Whole.

// Recomputes nothing: cases do not say it, and it changes no number.
void keep_all(Json& part) {
  if (!part.contains("gradient_checkpointing")) part["gradient_checkpointing"] = false;
}

void keep_all_of(Json& model) {
  for (const char* list : {"encoders", "decoders"})
    for (Json& entry : model.at(list))
      keep_all(entry.at("mapper"));
  for (const char* part : {"processor", "upscale_mapper", "downscale_mapper"})
    if (model.contains(part)) keep_all(model[part]);
}

}  // namespace

Json anemoi_boundings(const Json& list) {
  Json boundings = Json::array();
  for (const Json& one : list) {
    Json bounding{{"_target_", class_of(one)}};
    for (const char* key : {"variables", "min_val", "max_val", "total_var", "normalizer"})
      if (one.contains(key)) bounding[key] = one[key];
    boundings.push_back(bounding);
  }
  return boundings;
}

Json anemoi_sections(const Json& json, const SafetensorsFile& tensors, const graph::Graph& graph,
                     const fs::path& folder) {
  Json model = json.at("model").contains("encoders") ? json["model"] : simple_model(json);
  keep_all_of(model);
  for (auto& [name, residual] : model.at("residual").at("datasets").items()) {
    if (class_of(residual) == "TruncatedConnection")
      name_truncation(tensors, graph.nodes(name).num_nodes(), folder, residual);
  }
  name_noise_matrix(tensors, graph, folder, model);
  const Json& boundings = json.at("bounding_in_order");
  Json limits = Json::object();
  for (const auto& [name, residual] : model["residual"]["datasets"].items())
    limits[name] = anemoi_boundings(boundings.is_array() ? boundings : boundings.at(name));
  Json sections;
  sections["model"] = anemoi_form(model);
  sections["model"]["bounding"]["datasets"] = limits;
  if (json.contains("members")) sections["training"]["ensemble_size_per_device"] = json["members"];
  return sections;
}

}  // namespace aifs::conformance
