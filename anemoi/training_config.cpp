// SPDX-License-Identifier: Apache-2.0
#include "anemoi/training_config.h"

#include <algorithm>

#include "anemoi/document.h"
#include "anemoi/sections.h"
#include "core/check.h"
#include "core/join.h"
#include "core/json_read.h"

namespace aifs::anemoi {

namespace {

const char* heading(Verdict verdict) {
  switch (verdict) {
    case Verdict::kNotHonoured:
      return "Not honoured: these keys change what is trained";
    case Verdict::kNote:
      return "To know";
    case Verdict::kNoEffect:
      return "Without effect here";
  }
  return "";
}

// Refuses what a program composes configurations from, rather than trains with.
void check_is_whole(const Json& tree) {
  const char* hint = "dump the whole configuration: anemoi-training config dump --name NAME";
  if (tree.contains("defaults") && tree["defaults"].is_array() && !tree["defaults"].empty()) {
    throw ConfigError("defaults", "names files that are still to be put together", hint);
  }
  for (const char* section : {"data", "dataloader", "graph", "model", "training"}) {
    if (!tree.contains(section) || !tree[section].is_object())
      throw ConfigError(section, "is missing: this is no configuration of a training of Anemoi's",
                        hint);
  }
}

}  // namespace

Place Translation::hardware() const {
  const Place system = root["system"]["hardware"];
  return system ? system : root["hardware"];
}

int64_t Translation::groups_per_ensemble() const {
  const int64_t model = std::max<int64_t>(1, gpus_per_model());
  return std::max<int64_t>(1, hardware()["num_gpus_per_ensemble"].integer(model) / model);
}

int64_t Translation::num_gpus() const {
  const Place nodes = hardware()["num_nodes"];
  return checked_product(hardware()["num_gpus_per_node"].integer(1), nodes.integer(1), nodes);
}

Place Translation::rollout() const {
  const Place task = root["task"]["rollout"];
  return task ? task : root["training"]["rollout"];
}

int64_t Translation::accumulated_batches() const {
  const Place place = root["training"]["accum_grad_batches"];
  const int64_t number = place.integer(1);
  if (number < 1) throw ConfigError(place.path(), concat("is ", number, ", must be at least 1"));
  return number;
}

Place Translation::of_dataset(const Place& place, const std::string& dataset) const {
  if (!place.is_object() || !place["datasets"]) return place;
  return place["datasets"][dataset];
}

Place Translation::of_all_datasets(const Place& place, const std::string& why) const {
  const Place first = of_dataset(place, datasets[0]);
  for (size_t i = 1; i < datasets.size(); ++i)
    of_dataset(place, datasets[i]).expect_like(first, why);
  leave_other_datasets(place);
  return first;
}

void Translation::leave_other_datasets(const Place& place) const {
  if (!place.is_object() || !place["datasets"]) return;
  for (const auto& [key, other] : place["datasets"].members()) {
    if (!contains(datasets, key)) other.leave("is for no dataset of data.datasets");
  }
}

bool is_whole_epoch(const Place& limit) {
  return limit.is_float() && limit.number() == 1.0;
}

int64_t checked_product(int64_t a, int64_t b, const Place& place) {
  int64_t product = 0;
  if (!__builtin_mul_overflow(a, b, &product)) return product;
  throw ConfigError(place.path(), concat("is too large: ", a, " x ", b, " is no integer here"));
}

Imported import_training_config(const Json& tree, const std::string& name) {
  if (!is_utf8(name)) {
    throw ConfigError(
        "", concat("the run is named after the file, but '", name, "' is not a text in UTF-8"),
        "rename the file");
  }
  check_is_whole(tree);
  const Source source(tree);
  Imported imported;
  Translation t{source.root(), imported.target, name};
  t.section("run").set("dir", "runs/" + name);
  import_data(t);
  import_model(t);
  import_loss(t, {.has_data_edges = has_data_edges(t)});
  import_graph(t);
  import_training(t);
  import_optimisation(t);
  pass_over_the_rest(t);
  imported.target.order({"run", "data", "graph", "model", "loss", "train", "optimizer"});
  imported.remarks = source.remarks();
  return imported;
}

size_t Imported::num_not_honoured() const {
  return static_cast<size_t>(std::count_if(remarks.begin(), remarks.end(), [](const Remark& r) {
    return r.verdict == Verdict::kNotHonoured;
  }));
}

std::string remarks_text(const std::vector<Remark>& remarks) {
  std::string text;
  for (const Verdict verdict : {Verdict::kNotHonoured, Verdict::kNote, Verdict::kNoEffect}) {
    bool first = true;
    for (const Remark& remark : remarks) {
      if (remark.verdict != verdict) continue;
      if (first) text += concat(text.empty() ? "" : "\n", heading(verdict), "\n");
      first = false;
      const std::string value =
          remark.value.is_structured() ? "" : concat(" = ", json_shown(remark.value, 60));
      text += concat("  ", remark.path, value, ": ", remark.text, "\n");
    }
  }
  return text;
}

Json remarks_json(const std::vector<Remark>& remarks) {
  Json list = Json::array();
  for (const Remark& remark : remarks) {
    list.push_back(Json{{"path", remark.path},
                        {"value", remark.value},
                        {"verdict", enum_name(remark.verdict)},
                        {"text", remark.text}});
  }
  return list;
}

}  // namespace aifs::anemoi
