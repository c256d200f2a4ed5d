// SPDX-License-Identifier: Apache-2.0
#include "anemoi/model_checkpoint.h"

#include <set>

#include "anemoi/plain_json.h"
#include "core/check.h"
#include "core/log.h"

namespace aifs::anemoi {

namespace {

constexpr size_t kMostTensors = 1'000'000;
constexpr int kMostModules = 100;  // within each other
constexpr size_t kLongestName = 2000;
constexpr const char* kOfModel = "model.";  // of Lightning's module
constexpr const char* kTruncation = "truncation";
constexpr const char* kMask = "_orig_mod.";  // of compiled modules

// The member of a pickled dictionary at a path of keys, if all are there.
std::optional<PickleValue> find_in(std::optional<PickleValue> value,
                                   const std::vector<const char*>& keys) {
  for (const char* key : keys) {
    if (!value || !(value->is(PickleKind::kDict) || value->is(PickleKind::kObject)))
      return std::nullopt;
    value = value->find(key);
  }
  return value;
}

std::optional<int64_t> integer_in(const PickleValue& value, const std::vector<const char*>& keys) {
  const std::optional<PickleValue> found = find_in(value, keys);
  return found && found->is(PickleKind::kInteger) ? std::optional(found->integer()) : std::nullopt;
}

// A name without what the compilation of a module puts into it.
std::string uncompiled(std::string name) {
  const std::string mark = kMask;
  for (size_t at = name.find(mark); at != std::string::npos; at = name.find(mark))
    name.erase(at, mark.size());
  return name;
}

// Names in a set, which older protocols write as a call with a list of them.
std::set<std::string> names_in(const std::optional<PickleValue>& set) {
  std::set<std::string> names;
  if (!set) return names;
  const bool is_call = set->is(PickleKind::kObject);
  if (is_call && set->arguments().size() == 0) return names;
  const PickleValue list = is_call ? set->arguments()[0] : *set;
  for (size_t i = 0; i < list.size(); ++i)
    names.insert(std::string(list[i].text()));
  return names;
}

}  // namespace

ModelCheckpoint::ModelCheckpoint(const fs::path& path)
    : archive_(path), model_(path), graph_(path) {
  const PickleValue root = archive_.root();
  if (root.is(PickleKind::kDict)) {
    read_training(root);
  } else if (root.is(PickleKind::kObject) && root.attribute("_modules")) {
    const std::optional<PickleValue> graph = root.attribute("graph_data");
    if (!graph) fail(concat("holds ", root.describe(), " without graph_data"));
    read_module(root, "", 0);
    read_graphs(*graph);
    read_metadata(std::nullopt);
  } else {
    fail(concat("holds ", root.describe(), ", and no checkpoint of Anemoi"));
  }
  if (model_.names().empty()) fail("holds no weights");
  model_ = history_.present(model_, graph_);
  if (is_of_earlier_release() && training_) training_->optimizer = "";
}

void ModelCheckpoint::count_one(std::string_view name) {
  // Values may be shared: a few of them can stand for more than any walk ends with.
  if (++num_walked_ > kMostTensors) fail("holds modules or tensors without end");
  if (name.size() > kLongestName) fail(concat("has a name of ", name.size(), " letters"));
}

void ModelCheckpoint::fail(const std::string& what) const {
  throw DataError(concat("'", path().string(), "' ", what),
                  "checkpoints that anemoi-training writes, of training or inference, can be read");
}

void ModelCheckpoint::read_training(const PickleValue& root) {
  const std::optional<PickleValue> state = root.find("state_dict");
  if (!state) fail("holds a dictionary without state_dict, and no checkpoint of Anemoi");
  for (const auto& [key, value] : state->entries()) {
    count_one(key.text());
    const std::string name = uncompiled(std::string(key.text()));
    if (!name.starts_with(kOfModel) || !archive_.is_tensor(value)) continue;
    const std::string own = name.substr(std::string_view(kOfModel).size());
    model_.add(own, archive_.tensor(value, name));
  }
  const std::optional<PickleValue> graph = find_in(root, {"hyper_parameters", "graph_data"});
  if (!graph) fail("holds no graph: hyper_parameters.graph_data is missing");
  read_graphs(*graph);
  read_metadata(root.find("hyper_parameters"));
  read_progress(root);
  if (root.find("current_model_state")) {  // Lightning's averages stand in state_dict
    log::warning("'", path().string(),
                 "' holds averaged weights, which are taken; of the training ",
                 "that they come from nothing is");
    training_.reset();
  }
  const std::optional<PickleValue> optimizers = root.find("optimizer_states");
  if (training_ && optimizers && optimizers->is(PickleKind::kList) && optimizers->size() == 1)
    read_moments((*optimizers)[0]);
}

// As torch.nn.Module.state_dict(): parameters, buffers, then modules.
void ModelCheckpoint::read_module(const PickleValue& module, const std::string& prefix, int depth) {
  count_one(prefix);
  if (depth > kMostModules) fail("holds modules within each other without end");
  if (!module.is(PickleKind::kObject)) fail(concat("has '", prefix, "' as ", module.describe()));
  read_members(module, prefix);
  const std::optional<PickleValue> modules = module.attribute("_modules");
  if (!modules) return;
  for (const auto& [key, inner] : modules->entries()) {
    if (inner.is(PickleKind::kNone)) continue;
    const std::string name = uncompiled(concat(key.text(), "."));
    read_module(inner, prefix + name, depth + 1);
  }
}

void ModelCheckpoint::read_members(const PickleValue& module, const std::string& prefix) {
  const std::set<std::string> passing = names_in(module.attribute("_non_persistent_buffers_set"));
  for (const char* kind : {"_parameters", "_buffers"}) {
    const std::optional<PickleValue> members = module.attribute(kind);
    if (!members) continue;
    for (const auto& [key, value] : members->entries()) {
      const std::string name(key.text());
      if (value.is(PickleKind::kNone) || passing.contains(name)) continue;
      count_one(name);
      model_.add(prefix + name, archive_.tensor(value, prefix + name));
    }
  }
}

void ModelCheckpoint::read_store(const PickleValue& store, const std::string& place,
                                 const std::string& coordinates) {
  const std::optional<PickleValue> mapping =
      store.is(PickleKind::kObject) ? store.attribute("_mapping") : std::nullopt;
  if (!mapping) fail(concat("has a graph whose ", place, " cannot be read"));
  for (const auto& [key, value] : mapping->entries()) {
    if (!archive_.is_tensor(value)) continue;
    count_one(key.text());
    const std::string name(key.text());
    TensorEntry entry = archive_.tensor(value, concat("graph.", place, name));
    if (entry.shape.size() != 2) continue;
    graph_.add(place + (name == "x" ? coordinates : name), std::move(entry));
  }
}

void ModelCheckpoint::read_graphs(const PickleValue& saved) {
  if (!saved.is(PickleKind::kDict)) return read_graph(saved);
  const auto graphs = saved.entries();  // one for each dataset, in releases of early 2026
  if (graphs.size() != 1)
    fail(concat("has ", graphs.size(), " graphs: models of several datasets are not read yet"));
  read_graph(graphs[0].second);
}

void ModelCheckpoint::read_graph(const PickleValue& graph) {
  if (!graph.is(PickleKind::kObject)) fail(concat("has ", graph.describe(), " as its graph"));
  const std::optional<PickleValue> nodes = graph.attribute("_node_store_dict"),
                                   edges = graph.attribute("_edge_store_dict");
  if (!nodes || !edges) fail(concat("has ", graph.describe(), " as its graph"));
  for (const auto& [key, store] : nodes->entries()) {
    const std::string name(key.text());
    if (name.find(kTruncation) == std::string::npos)  // derived from the configuration
      read_store(store, concat("nodes/", name, "/"), "latlon_rad");
  }
  for (const auto& [key, store] : edges->entries()) {
    const std::string name = concat(key[0].text(), "_to_", key[2].text());
    if (name.find(kTruncation) == std::string::npos)
      read_store(store, concat("edges/", name, "/"), "x");
  }
}

void ModelCheckpoint::read_metadata(const std::optional<PickleValue>& saved) {
  std::optional<nlohmann::ordered_json> metadata = archive_.metadata();
  if (!metadata && saved && saved->is(PickleKind::kDict)) {
    metadata = nlohmann::ordered_json::object();
    if (const auto config = saved->find("config"))
      (*metadata)["config"] = plain_json(*config, concat("'", path().string(), "'"));
  }
  if (saved) base_seed_ = integer_in(*saved, {"metadata", "base_seed"});
  if (!metadata || !metadata->is_object()) return;
  const auto config = metadata->find("config"), seed = metadata->find("base_seed");
  if (config != metadata->end() && config->is_object()) config_ = *config;
  if (seed != metadata->end() && seed->is_number_integer()) base_seed_ = seed->get<int64_t>();
  if (base_seed_ && *base_seed_ < 0) fail(concat("has a base_seed of ", *base_seed_));
}

void ModelCheckpoint::read_progress(const PickleValue& root) {
  const std::optional<int64_t> step = integer_in(root, {"global_step"});
  if (!step) return;
  SavedTraining& training = training_.emplace();
  const auto of_epochs = [&](const char* what) {
    return integer_in(root, {"loops", "fit_loop", "epoch_progress", "current", what});
  };
  const std::vector<const char*> batches{"loops", "fit_loop", "epoch_loop.batch_progress"};
  const std::optional<PickleValue> progress = find_in(root, batches);
  const auto checked = [&](const char* what, int64_t count) {
    constexpr int64_t kMost = int64_t{1} << 50;
    if (count < 0 || count > kMost) fail(concat("has ", count, " as ", what));
    return count;
  };
  training.step = checked("global_step", *step);
  const std::optional<int64_t> begun = of_epochs("ready"), done = of_epochs("processed");
  training.epoch = checked("epoch", done.value_or(integer_in(root, {"epoch"}).value_or(0)));
  if (!progress || (begun && done && *begun == *done)) return;
  const std::optional<PickleValue> last = find_in(progress, {"is_last_batch"});
  if (last && last->is(PickleKind::kBool) && last->boolean()) {
    ++training.epoch;  // over, but for what comes at its end
    return;
  }
  // "completed" counts only what hooks of the batch have seen, of which the one that saves is one.
  training.batch_in_epoch =
      checked("batch of the epoch", integer_in(*progress, {"current", "processed"}).value_or(0));
}

void ModelCheckpoint::read_moments(const PickleValue& optimizer) {
  const std::optional<PickleValue> states = find_in(optimizer, {"state"}),
                                   groups = find_in(optimizer, {"param_groups"});
  if (!states || !groups || !groups->is(PickleKind::kList)) return;
  if (groups->size() != 1) {  // their order is not that of the weights
    log::warning("'", path().string(), "' has ", groups->size(), " groups of parameters: their ",
                 "moments are not taken");
    return;
  }
  std::map<int64_t, PickleValue> of_parameter;
  for (const auto& [key, state] : states->entries())
    of_parameter.emplace(key.integer(), state);
  for (size_t g = 0; g < groups->size(); ++g) {
    const PickleValue numbers = (*groups)[g].at("params");
    for (size_t i = 0; i < numbers.size(); ++i) {
      count_one("");
      const auto found = of_parameter.find(numbers[i].integer());
      SavedTraining::Moments& moments = training_->moments.emplace_back();
      if (found == of_parameter.end()) continue;
      const PickleValue& state = found->second;
      const auto first = state.find("exp_avg"), second = state.find("exp_avg_sq");
      if (!first || !second) return;  // of another optimiser
      const std::string name = concat("optimizer_states.", numbers[i].integer());
      moments = {archive_.tensor(*first, name), archive_.tensor(*second, name)};
      const std::optional<PickleValue> step = state.find("step");
      if (!step) continue;
      int64_t steps = 0;
      if (step->is(PickleKind::kInteger)) {
        steps = step->integer();
      } else {
        NamedTensors one(path());
        one.add("step", archive_.tensor(*step, name));
        const std::vector<double> values = one.doubles("step");
        steps = values.size() == 1 && values[0] >= 0 && values[0] < 9e15
                    ? static_cast<int64_t>(values[0])
                    : 0;
      }
      training_->optimizer_steps = std::max(training_->optimizer_steps, steps);
    }
  }
  training_->optimizer = "adamw";
}

}  // namespace aifs::anemoi
