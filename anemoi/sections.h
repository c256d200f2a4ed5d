// SPDX-License-Identifier: Apache-2.0
// The parts of a translation, one a section of Anemoi's configuration. In this order, because later
// ones look at what earlier ones found out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "anemoi/target.h"

namespace aifs::anemoi {

struct Translation {
  Place root;
  Target& target;
  std::string name;                               // of the run
  std::vector<std::string> datasets = {"data"};   // their names
  std::vector<std::string> meshes = {"hidden"};   // hidden node sets, fine to coarse
  std::optional<int64_t> batches_per_epoch = {};  // where an epoch is cut short
  std::vector<std::string> node_attributes = {};  // of data nodes, that losses use
  bool is_whole = true;                           // false: of one section only
  bool keeps_names = false;                       // one dataset has a name, too

  bool has_several_datasets() const { return datasets.size() > 1; }
  Section section(const std::string& key) const { return {target, {key}}; }
  // Section "system" of recent releases, or "hardware" of older ones.
  Place hardware() const;
  int64_t gpus_per_model() const { return hardware()["num_gpus_per_model"].integer(1); }
  // Groups of ranks that make the members of one ensemble there, and are one group here.
  int64_t groups_per_ensemble() const;
  int64_t num_gpus() const;
  int64_t accumulated_batches() const;
  // Section "rollout" of "task" in recent releases, or of "training".
  Place rollout() const;
  // Gives what holds for a dataset in a section that may have "datasets"; for all of them that of
  // the first, others being refused if they differ.
  Place of_dataset(const Place& place, const std::string& dataset) const;
  Place of_all_datasets(const Place& place, const std::string& why) const;
  // Says of "datasets" in such a section which of them are none.
  void leave_other_datasets(const Place& place) const;
};

// True if a limit of batches is 1.0, which means all of them to Lightning, where 1 is one.
bool is_whole_epoch(const Place& limit);
// Their product; ConfigError about `place` if it is larger than any integer.
int64_t checked_product(int64_t a, int64_t b, const Place& place);

// How a section "loss" is made.
struct LossRules {
  // Every scaler keeps its name, as one of loss.named_scalers.
  bool keeps_names = false;
  // Names of scalers without a definition, which the caller adds to loss.named_scalers.
  std::vector<std::string> defined_elsewhere = {};
  // Scalers that are translated even if no loss uses them.
  std::vector<std::string> also = {};
  // The scaler that comes first in losses of class Weighted...; empty: none.
  std::string sample_weights = {};
  // True if the graph has edges from data nodes to data nodes, for loss_graph.
  bool has_data_edges = false;
};

void import_data(Translation& t);
// `variables` of the dataset, if they are known.
void import_processors(const Place& processors, const Section& out,
                       const std::vector<std::string>& variables = {});
void import_graph(Translation& t);
// True if the recipe has edges from the nodes of each dataset to themselves.
bool has_data_edges(const Translation& t);
void import_model(Translation& t);
void import_loss(Translation& t, const LossRules& rules);
void import_optimisation(Translation& t);
void import_training(Translation& t);
// Says of sections that are about other things that they have no effect here.
void pass_over_the_rest(Translation& t);

}  // namespace aifs::anemoi
