// SPDX-License-Identifier: Apache-2.0
// Sections "data" and "dataloader", and the times of "task".
#include "anemoi/sections.h"
#include "core/check.h"
#include "core/join.h"

namespace aifs::anemoi {

namespace {

// A dataset as a stage of the training opens it: what open_dataset takes.
Json opened(const Place& stage) {
  Json dataset = Json::object();
  if (const Place config = stage["dataset_config"]) {
    dataset = config.whole();
    return dataset.is_object() ? dataset : Json{{"dataset", dataset}};
  }
  for (const auto& [key, member] : stage.members()) {
    if (key != "start" && key != "end" && key != "trajectory" && member)
      dataset[key] = member.whole();
  }
  return dataset;
}

Place stage_of(const Translation& t, const std::string& stage, const std::string& dataset) {
  return t.of_dataset(t.root["dataloader"][stage], dataset);
}

// Anemoi looks names without folder and extension up in the user's settings.
void note_bare_names(const Place& place) {
  if (place.is_object()) {
    for (const auto& [key, member] : place.members()) {
      const bool leads_to_paths =
          member.is_list() || member.is_object() || key == "dataset" || key == "statistics";
      if (leads_to_paths && key != "select" && key != "drop") note_bare_names(member);
    }
  } else if (place.is_list()) {
    for (const Place& element : place.elements()) {
      if (element.is_object() || element.is_list()) note_bare_names(element);
    }
  } else if (place.is_text()) {
    const std::string name = place.text();
    const bool is_path =
        name.find('/') != std::string::npos || name.ends_with(".zarr") || name.ends_with(".zip");
    if (!is_path)
      place.note("Anemoi looks such a name up in its settings; here it is a path: complete it");
  }
}

void import_roles(const Place& dataset, const Section& out) {
  const Place forcing = dataset["forcing"], diagnostic = dataset["diagnostic"];
  const std::vector<std::string> forcings = forcing.texts();
  out.set("forcing", forcings, forcing);
  out.set("diagnostic", diagnostic.texts(), diagnostic);
  for (const std::string& name : dataset["target"].texts()) {
    if (!contains(forcings, name)) {
      dataset["target"].not_honoured(
          "there are no variables that are only compared with; name them as forcing to keep them "
          "out of the prognostic ones");
      return;
    }
  }
}

void import_dataset(const Translation& t, const std::string& name, const Section& out) {
  const Place stage = stage_of(t, "training", name);
  const Json training = opened(stage);
  out.set("dataset", training, stage["dataset_config"] ? stage["dataset_config"] : stage);
  note_bare_names(stage["dataset_config"] ? stage["dataset_config"] : stage["dataset"]);
  stage["trajectory"].expect(nullptr, "datasets of forecasts (trajectories) are not read");
  if (const Place validation = stage_of(t, "validation", name)) {
    validation["trajectory"].expect(nullptr, "datasets of forecasts (trajectories) are not read");
    if (opened(validation) != training) {
      const Place config = validation["dataset_config"];
      (config ? config : validation["dataset"])
          .not_honoured("another dataset than that of the training; here both have one");
    }
  }
  const Place dataset = t.of_dataset(t.root["data"], name);
  import_roles(dataset, out);
  import_processors(dataset["processors"], out);
  for (const char* key : {"normalizer", "imputer", "remapper"})
    dataset[key].no_effect("is meant for references: processors count");
}

void import_period(const Translation& t, const std::string& stage, const Section& out) {
  const Place first = stage_of(t, stage, t.datasets[0]);
  for (const char* end : {"start", "end"}) {
    const Json value = first[end].whole();
    if (!value.is_null()) out[stage].set(end, value, first[end]);
    for (const std::string& name : t.datasets) {
      stage_of(t, stage, name)[end].expect_like(
          first[end], "other dates than those of the first dataset; here they are for all");
    }
  }
}

void import_times(const Translation& t, const Section& out) {
  const Place task = t.root["task"], training = t.root["training"], data = t.root["data"];
  const auto put = [&](const char* key, int64_t otherwise) {
    const Place place = task[key] ? task[key] : training[key];
    out.set(key, place.integer(otherwise), place);
  };
  put("multistep_input", 2);
  put("multistep_output", 1);
  const Place timestep = task["timestep"]   ? task["timestep"]
                         : data["timestep"] ? data["timestep"]
                                            : data["frequency"];
  const std::string name = task.class_name();
  const bool forecasts = name.empty() || name == "Forecaster";
  out.set("timestep", lower_case(forecasts ? timestep.text() : timestep.text("6h")), timestep);
  data["timestep"].mark();
  if (!forecasts)
    task["_target_"].not_honoured("forecasts are the only task; this is trained as one");
}

// Readers that end with an epoch draw the order of the next one from another seed. They always end
// where rollouts grow with the epochs.
void import_persistence(const Translation& t, const Place& persistent) {
  const int64_t increment = t.rollout()["epoch_increment"].integer(0);
  if (persistent.boolean(true) || increment > 0) {
    persistent.no_effect("readers live as long as the run");
  } else {
    persistent.note(
        "from the second epoch on samples come in another order than Anemoi's: that of readers "
        "which live as long as the run");
  }
}

void import_reading(Translation& t, const Section& out) {
  const Place loader = t.root["dataloader"];
  const Place batch = loader["batch_size"];
  out.set("batch_size", batch["training"].integer(1), batch["training"]);
  batch["validation"].no_effect("validation reads batches of the training's size");
  batch["test"].no_effect("there is no test stage");
  const Place workers = loader["num_workers"];
  const int64_t num_workers = workers["training"].integer(8);
  out.set("anemoi_workers", num_workers, workers["training"]);
  out.set("threads", num_workers, workers["training"]);
  workers["validation"].no_effect("validation has the readers of the training");
  workers["test"].no_effect("there is no test stage");
  const Place limits = loader["limit_batches"];
  if (const Place limit = limits["training"]) {
    if (is_whole_epoch(limit)) {
      limit.note("1.0 is the whole epoch, as for Lightning; 1 would be one batch");
    } else if (limit.number() >= 1.0 && limit.number() == static_cast<double>(limit.integer(0))) {
      t.batches_per_epoch = limit.integer();
      limit.note(
          "epochs are not cut short here: what is counted in epochs is counted in steps instead, "
          "and samples are drawn until all have been seen");
    } else {
      limit.not_honoured("a share of an epoch; epochs are not cut short here");
    }
  }
  limits["test"].no_effect("there is no test stage");
  for (const char* key : {"prefetch_factor", "pin_memory", "multiprocessing_context"})
    loader[key].no_effect("reading ahead is automatic (data.memory_mib, data.prefetch_batches)");
  loader["read_group_size"].no_effect("ranks of a sample read what they need of it");
  import_persistence(t, loader["persistent_workers"]);
  loader["test"].no_effect("there is no test stage");
  loader["dataset"].no_effect("is meant for references");
  if (const Place grid = t.of_dataset(loader["grid_indices"], t.datasets[0])) {
    const std::string kind = grid.class_name();
    if (kind == "FullGrid") {
      grid.no_effect("all cells are read");
    } else {
      grid.not_honoured("all cells are read");
    }
  }
}

}  // namespace

void import_data(Translation& t) {
  const Place data = t.root["data"];
  const Section out = t.section("data");
  if (const Place datasets = data["datasets"]) {
    t.datasets.clear();
    for (const auto& [name, dataset] : datasets.members())
      t.datasets.push_back(name);
    if (t.datasets.empty()) throw ConfigError(datasets.path(), "names no dataset");
  }
  out.set("kind", "anemoi");
  if (t.has_several_datasets()) {
    for (const std::string& name : t.datasets)
      import_dataset(t, name, out["datasets"][name]);
  } else {
    import_dataset(t, t.datasets[0], out);
  }
  import_period(t, "training", out);
  import_period(t, "validation", out);
  import_times(t, out);
  import_reading(t, out);
  data["format"].no_effect("datasets say what they are");
  data["frequency"].no_effect("is meant for references: datasets name theirs");
  data["resolution"].no_effect("is meant for references");
  data["num_features"].no_effect("follows from the dataset");
}

}  // namespace aifs::anemoi
