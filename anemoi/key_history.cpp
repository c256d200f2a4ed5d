// SPDX-License-Identifier: Apache-2.0
#include "anemoi/key_history.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>

#include "core/check.h"
#include "core/join.h"

namespace aifs::anemoi {

namespace {

using Parts = std::vector<std::string>;

constexpr const char* kDataset = "data";  // the only one of models before there were several
constexpr const char* kLayout = "trainable_layout_version";
constexpr const char* kFeatures = ".trainable.trainable";
constexpr const char* kCombined = ".lin_qkv.";
const int64_t kPresentLayout = 1;

Parts split_name(const std::string& name) {
  Parts parts;
  size_t begin = 0;
  for (size_t dot = name.find('.'); dot != std::string::npos; dot = name.find('.', begin)) {
    parts.push_back(name.substr(begin, dot - begin));
    begin = dot + 1;
  }
  parts.push_back(name.substr(begin));
  return parts;
}

std::string joined(const Parts& parts, size_t count) {
  return join(Parts(parts.begin(), parts.begin() + static_cast<ptrdiff_t>(count)), ".");
}

bool is_number(const std::string& part) {
  return !part.empty() && part.size() < 9 &&
         std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
}

int64_t number_of(const std::string& part) {
  return std::stoi(part);
}

bool is_mapper(const std::string& part) {
  return part == "encoder" || part == "decoder";
}

// What the names of one state dict are to each other.
class OldNames {
 public:
  explicit OldNames(const NamedTensors& model) : model_(model) {
    for (const std::string& name : model.names()) {
      const Parts parts = split_name(name);
      if (parts.size() > 6 && parts[2] == "proc" && parts[4] == "blocks" && parts[3] == "0" &&
          is_number(parts[5]))
        blocks_per_chunk_ = std::max(blocks_per_chunk_, number_of(parts[5]) + 1);
    }
  }

  // The present name, or "" for what is gone.
  std::string present(const std::string& name) const {
    Parts parts = split_name(name);
    if (parts[0].find("_processors") != std::string::npos && parts.size() > 1 &&
        parts[1] == "processors")
      parts.insert(parts.begin() + 1, kDataset);
    if (parts[0] != "model" || parts.size() < 3) return join(parts, ".");
    if (!move_layers(parts)) return "";
    move_nodes(parts);
    move_parts(parts);
    return join(parts, ".");
  }

 private:
  bool is_norm(const std::string& layer) const {
    const std::string weight = layer + ".weight";
    return model_.contains(weight) && model_.at(weight).shape.size() == 1;
  }

  bool is_attention(const std::string& block) const {
    return model_.contains(block + ".attention.projection.weight");
  }

  // Layers within a block; false for what is there twice.
  bool move_layers(Parts& parts) const {
    for (size_t i = 2; i + 1 < parts.size(); ++i) {
      const bool numbered = is_number(parts[i + 1]);
      const std::string before = joined(parts, i), layer = joined(parts, i + 2);
      if (parts[i] == "model" && numbered) {  // of an MLP, whose norm was its last layer
        parts[i] = "mlp";
        if (!is_norm(layer)) continue;
        parts[i] = "layer_norm";
        parts.erase(parts.begin() + static_cast<ptrdiff_t>(i) + 1);
      } else if ((parts[i] == "node_dst_mlp" || parts[i] == "node_src_mlp") && numbered) {
        const std::string first = joined(parts, i + 1) + ".0";
        if (is_norm(layer)) return false;  // it is layer_norm_mlp, too
        if (is_norm(first)) parts[i + 1] = std::to_string(number_of(parts[i + 1]) - 1);
        parts.insert(parts.begin() + static_cast<ptrdiff_t>(i) + 1, "mlp");
        ++i;
      } else if (parts[i] == "mlp" && numbered && is_attention(before)) {
        parts.insert(parts.begin() + static_cast<ptrdiff_t>(i), "mlp");
        ++i;
      } else if (parts[i] == "layer_norm_mlp" && model_.contains(before + ".lin_edge.weight")) {
        parts[i] = "layer_norm_mlp_dst";
      }
    }
    return true;
  }

  static void move_nodes(Parts& parts) {
    if (parts[1] == "trainable_data" || parts[1] == "trainable_hidden") {
      parts = {"model", "node_attributes", "trainable_tensors",
               parts[1].substr(parts[1].find('_') + 1), parts[2]};
    } else if (parts[1] == "node_attributes" && parts.size() > 3 && parts[2] == kDataset) {
      parts.erase(parts.begin() + 2);  // one for each dataset, in releases of early 2026
    } else if (parts[1] == "boundings" && is_number(parts[2])) {
      parts.insert(parts.begin() + 2, kDataset);
    }
  }

  // Mappers and the processor, their edges and their chunks.
  void move_parts(Parts& parts) const {
    const bool is_processor = parts[1] == "processor";
    if (is_mapper(parts[1]) && parts[2] == kDataset) parts.erase(parts.begin() + 2);
    if (parts.size() < 3) return;
    if ((is_mapper(parts[1]) || is_processor) && parts[2] == "edge_inc") {
      parts = {"model", parts[1] + "_graph_provider", kLayout};
    } else if ((is_mapper(parts[1]) || is_processor) && parts[2] == "trainable") {
      parts[1] += "_graph_provider";
    } else if (is_mapper(parts[1]) && !is_number(parts[2])) {
      parts.insert(parts.begin() + 2, "0");
    } else if (is_processor && parts.size() > 6 && parts[4] == "blocks" && is_number(parts[3]) &&
               is_number(parts[5])) {
      const int64_t block = number_of(parts[3]) * blocks_per_chunk_ + number_of(parts[5]);
      parts[3] = std::to_string(block);
      parts.erase(parts.begin() + 4, parts.begin() + 6);
    }
    const bool of_mapper =
        parts[1] == "encoder_graph_provider" || parts[1] == "decoder_graph_provider";
    if (of_mapper && (parts[2] == "trainable" || parts[2] == kLayout))
      parts.insert(parts.begin() + 2, kDataset);
  }

  const NamedTensors& model_;
  int64_t blocks_per_chunk_ = 0;
};

// Puts the parts of a layer that made queries, keys and values at once.
void add_thirds(const std::string& name, const TensorEntry& whole, NamedTensors& result) {
  const size_t at = name.find(kCombined), third = whole.bytes.size() / 3;
  if (whole.shape.empty() || whole.shape[0] % 3 != 0) return result.add(name, whole);
  TensorEntry part = whole;
  part.shape[0] /= 3;
  size_t place = 0;
  for (const char* layer : {".lin_q.", ".lin_k.", ".lin_v."}) {
    part.bytes = whole.bytes.subspan(third * place++, third);
    result.add(std::string(name).replace(at, std::strlen(kCombined), layer), part);
  }
}

// True for learnt features of edges.
bool is_of_edges(const std::string& name) {
  return name.find("_graph_provider.") != std::string::npos && name.ends_with(kFeatures);
}

std::string layout_beside(const std::string& features) {
  return concat(features.substr(0, features.size() - std::strlen(kFeatures)), ".", kLayout);
}

TensorEntry present_layout() {
  return {DType::kI64, {}, std::as_bytes(std::span(&kPresentLayout, 1))};
}

// The rows of a tensor in another order.
std::vector<std::byte> rows_in_order(const TensorEntry& tensor, const std::vector<size_t>& order) {
  const size_t width = tensor.bytes.size() / order.size();
  std::vector<std::byte> rows(tensor.bytes.size());
  for (size_t i = 0; i < order.size(); ++i)
    std::memcpy(rows.data() + i * width, tensor.bytes.data() + order[i] * width, width);
  return rows;
}

}  // namespace

TensorEntry KeyHistory::by_target(const TensorEntry& features, const std::string& provider,
                                  const NamedTensors& graph, const fs::path& file) {
  std::vector<std::string> found;
  for (const std::string& name : graph.names()) {
    const bool from_data = name.starts_with("edges/data_to_"),
               to_data = name.ends_with("_to_data/edge_index");
    const bool wanted = provider.find("encoder") != std::string::npos   ? from_data && !to_data
                        : provider.find("decoder") != std::string::npos ? to_data && !from_data
                                                                        : !from_data && !to_data;
    if (name.ends_with("/edge_index") && wanted) found.push_back(name);
  }
  const auto rows = features.shape.empty() ? 0 : static_cast<size_t>(features.shape[0]);
  const std::vector<int64_t> index =
      found.size() == 1 ? graph.integers(found[0]) : std::vector<int64_t>();
  if (rows == 0 || index.size() != 2 * rows) {
    throw DataError(concat("'", file.string(), "': '", provider, "' belongs to ", rows,
                           " edges, and the graph has no such edges"));
  }
  constexpr size_t kMostCopies = 1000;
  if (copies_.size() >= kMostCopies)
    throw DataError(
        concat("'", file.string(), "' has more than ", kMostCopies, " tensors of edges"));
  std::vector<size_t> order(rows);
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t edge) { return index[rows + edge]; });
  copies_.push_back(rows_in_order(features, order));
  return {features.dtype, features.shape, copies_.back()};
}

NamedTensors KeyHistory::present(const NamedTensors& model, const NamedTensors& graph) {
  const OldNames names(model);
  NamedTensors result(model.path());
  was_earlier_ = false;
  for (const std::string& name : model.names()) {
    const std::string now = names.present(name);
    const TensorEntry& entry = model.at(name);
    if (now != name) was_earlier_ = true;
    if (now.empty()) continue;
    if (now.find(kCombined) != std::string::npos) {
      add_thirds(now, entry, result);
      was_earlier_ = true;
    } else if (now.ends_with(kLayout)) {
      result.add(now, now == name ? entry : present_layout());
    } else if (is_of_edges(now) && !model.contains(layout_beside(now))) {
      result.add(layout_beside(now), present_layout());
      result.add(now, by_target(entry, now, graph, model.path()));
      was_earlier_ = true;
    } else {
      result.add(now, entry);
    }
  }
  return result;
}

}  // namespace aifs::anemoi
