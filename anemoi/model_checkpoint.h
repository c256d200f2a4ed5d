// SPDX-License-Identifier: Apache-2.0
// A checkpoint of Anemoi's: of training (the dictionary that Lightning saves) or of inference (the
// pickled model). Gives what docs/formats/exchange.md has in a folder: the state dict of
// AnemoiModelInterface, the graph with the order of its edges, and Anemoi's configuration.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "anemoi/key_history.h"
#include "anemoi/torch_archive.h"
#include "core/named_tensors.h"

namespace aifs::anemoi {

// What a training checkpoint keeps besides weights.
struct SavedTraining {
  int64_t step = 0;            // optimiser steps done
  int64_t epoch = 0;           // in progress, from 0
  int64_t batch_in_epoch = 0;  // batches of it that were used
  int64_t optimizer_steps = 0;
  std::string optimizer;  // "" if it has no moments: another one, or none was saved
  struct Moments {
    TensorEntry first, second;  // without bytes: the parameter never had a gradient
  };
  std::vector<Moments> moments;  // of the parameters that are trained, in their order
};

class ModelCheckpoint {
 public:
  // Throws DataError naming the file, and what of it cannot be used.
  explicit ModelCheckpoint(const fs::path& path);

  const fs::path& path() const { return archive_.path(); }
  // pre_processors..., post_processors..., model...: in the order of the file, by present names.
  const NamedTensors& model() const { return model_; }
  // nodes/<set>/latlon_rad, edges/<source>_to_<target>/edge_index, and attributes.
  const NamedTensors& graph() const { return graph_; }
  // Anemoi's configuration, and the seed of its runs, if the file has them.
  const std::optional<nlohmann::ordered_json>& config() const { return config_; }
  std::optional<int64_t> base_seed() const { return base_seed_; }
  const std::optional<SavedTraining>& training() const { return training_; }
  // True if names are those of an earlier release, in the file; its moments are not read.
  bool is_of_earlier_release() const { return history_.was_earlier(); }

 private:
  [[noreturn]] void fail(const std::string& what) const;
  // Bounds what is walked through.
  void count_one(std::string_view name);
  void read_training(const PickleValue& root);
  void read_module(const PickleValue& module, const std::string& prefix, int depth);
  void read_members(const PickleValue& module, const std::string& prefix);
  void read_graphs(const PickleValue& saved);
  void read_graph(const PickleValue& graph);
  void read_store(const PickleValue& store, const std::string& place,
                  const std::string& coordinates);
  void read_progress(const PickleValue& root);
  void read_moments(const PickleValue& optimizer);
  void read_metadata(const std::optional<PickleValue>& saved);

  TorchArchive archive_;
  NamedTensors model_, graph_;
  KeyHistory history_;
  size_t num_walked_ = 0;  // modules and tensors
  std::optional<nlohmann::ordered_json> config_;
  std::optional<int64_t> base_seed_;
  std::optional<SavedTraining> training_;
};

}  // namespace aifs::anemoi
