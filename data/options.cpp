// SPDX-License-Identifier: Apache-2.0
#include "data/options.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "core/check.h"
#include "core/time.h"

namespace aifs::data {

void Period::bind(config::Binder& b) {
  bind_date_or_share(b, "start", start, {"first date; empty: from the beginning"});
  bind_date_or_share(b, "end", end,
                     {"last date, incomplete dates end with their period; empty: to the end"});
}

void CacheOptions::bind(config::Binder& b) {
  b.text("dir", dir, {"folder on a disk of each host, for example NVMe; empty: no copies"},
         config::TextKind::kPath);
  b.number("limit_gib", limit_gib, {.min = 0.001},
           {"what all copies in it may take; those not used for longest go first", "GiB"});
}

void NamedDataset::bind(config::Binder& b) {
  b.section("dataset", dataset, {"as data.dataset"}, "dataset");
  b.text_list("forcing", roles.forcing, {"as data.forcing; left out: those"});
  b.text_list("diagnostic", roles.diagnostic, {"as data.diagnostic; left out: those"});
  b.section("normalizer", normalizer, {"as data.normalizer; left out: that one"});
  b.list("imputer", imputer, {"as data.imputer; left out: that one"});
  b.list("remapper", remapper, {"as data.remapper; left out: that one"});
  b.list("postprocessor", postprocessor, {"as data.postprocessor; left out: that one"});
  b.text("encoder", encoder,
         {"name of its encoder; datasets of as many inputs that give the same name share the "
          "weights; empty: one of its own"});
  b.text("decoder", decoder, {"name of its decoder; empty: the dataset's"});
  // An empty list is another thing than none.
  for (config::Field& field : b.fields()) {
    field.read = [this, key = field.key, read = field.read](const config::Json& json,
                                                            const std::string& path,
                                                            const config::ReadContext& context) {
      given.insert(key);
      read(json, path, context);
    };
    field.write = [this, key = field.key, write = field.write] {
      return given.contains(key) ? write() : config::Json();
    };
  }
}

void DataOptions::bind(config::Binder& b) {
  b.choice("kind", kind,
           {"anemoi reads the Zarr stores named in data.dataset, analytic computes exact waves"});
  b.section("dataset", dataset, {"the Anemoi dataset (kind anemoi): what open_dataset takes"},
            "dataset");
  b.map("datasets", datasets,
        {"several datasets by name, in place of data.dataset: each with cells, encoder and decoder "
         "of its own, on the same hidden nodes and dates; the loss is the sum of theirs"});
  b.section("analytic", analytic, {"the embedded analytic dataset (kind analytic)"});
  b.section("training", training, {"dates to train on"});
  b.section("validation", validation, {"dates to validate on"});
  roles.bind(b);
  b.text("timestep", timestep, {"time step of the model"}, config::TextKind::kDuration);
  b.integer("multistep_input", multistep_input, {.min = 1, .max = 64}, {"input times"});
  b.integer("multistep_output", multistep_output, {.min = 1, .max = 64},
            {"times predicted by one model step"});
  b.choice("tables", tables,
           {"whose statistics normalise, fill and weigh when weights come from a checkpoint. auto: "
            "the dataset's to go on with a run, which is refused if they are not those of the "
            "checkpoint, and to start a new one; the checkpoint's to score weights"});
  b.section("normalizer", normalizer, {"from physical to normalised values"});
  b.list("imputer", imputer, {"how NaN are filled before normalising"});
  b.list("remapper", remapper, {"maps of variables, after filling NaN and before normalising"});
  b.list("postprocessor", postprocessor,
         {"what is done to predictions in physical units, in this order"});
  b.integer("batch_size", batch_size, {.min = 1, .max = 4096}, {"samples per batch and replica"});
  b.integer("anemoi_workers", anemoi_workers, {.min = 1, .max = 1024},
            {"reproduce the sample order of Anemoi with so many dataloader workers"});
  b.integer("threads", threads, {.min = 0, .max = 256},
            {"reader threads; 0: two, on a GPU the cores of the process but one, at least 2 and at "
             "most 8"});
  b.section(
      "cache", cache,
      {"copies of chunks of the dataset, made when they are first read and read ever after, by "
       "all ranks of a host and by later runs"});
  b.integer(
      "retries", retries, {.min = 0, .max = 100},
      {"how often a file that cannot be read, or has vanished, is tried again, after 0.2, 0.8, "
       "3.2 ... seconds, before the run stops with a checkpoint"});
  b.boolean(
      "share_on_host", share_on_host,
      {"ranks of a host that share samples read them together: each decodes its part of a date "
       "for all. Not with parallel.reproducible, slices or stages of layers"});
  b.integer(
      "memory_mib", memory_mib, {.min = 0, .max = int64_t{1} << 30},
      {"memory of all buffers that batches are read into, ahead of training; a third of it is for "
       "validation, if there is any. 0: room for a few batches, at most a quarter of what the "
       "processes of a machine may use together",
       "MiB"});
  b.integer("prefetch_batches", prefetch_batches, {.min = 0, .max = 1024},
            {"batches read ahead of training at most; 0: as many as memory_mib has room for, or 4",
             "batches"});
}

namespace {

// Names become those of node sets, tensors and metrics.
void check_name(const std::string& name, const std::string& path) {
  const bool is_plain =
      !name.empty() && name.size() <= 64 &&
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") ==
          std::string::npos;
  if (!is_plain) {
    throw ConfigError(path, concat("'", name, "' cannot be the name of a dataset"),
                      "use up to 64 letters, digits, - and _");
  }
  if (name == "hidden" || name.starts_with("hidden_"))
    throw ConfigError(path, concat("'", name, "' is a name of hidden nodes"), "choose another");
}

void check_datasets(const DataOptions& o, const std::string& path) {
  if (o.datasets.empty()) return;
  for (const auto& [name, dataset] : o.datasets) {
    const std::string at = concat(path, ".datasets.", name);
    check_name(name, at);
    if (dataset.dataset.source_key().empty()) {
      throw ConfigError(at + ".dataset", "no dataset is named",
                        "give the path of a .zarr folder, or datasets to combine");
    }
  }
  if (o.kind == SourceKind::kAnalytic)
    throw ConfigError(path + ".datasets", "goes with kind \"anemoi\" only", "leave it out");
  if (!o.dataset.source_key().empty()) {
    throw ConfigError(path + ".dataset", "and data.datasets are both given",
                      "leave it out: each of data.datasets names its own");
  }
  config::refuse_unused(o.dataset, {}, path + ".dataset", "a run with data.datasets");
}

}  // namespace

std::vector<std::string> DataOptions::names() const {
  std::vector<std::string> all;
  for (const auto& named : datasets)
    all.push_back(named.first);
  return all.empty() ? std::vector<std::string>{"data"} : all;
}

DataOptions DataOptions::of_dataset(size_t number) const {
  DataOptions one = *this;
  if (datasets.empty()) return one;
  const NamedDataset& chosen = datasets[number].second;
  one.datasets.clear();
  one.dataset = chosen.dataset;
  one.dataset.path = concat("data.datasets.", datasets[number].first, ".dataset");
  one.dataset.start_path = one.dataset.path_of("start");
  one.dataset.end_path = one.dataset.path_of("end");
  const auto take = [&](const char* key, const auto& own, auto& shared) {
    if (chosen.given.contains(key)) shared = own;
  };
  take("forcing", chosen.roles.forcing, one.roles.forcing);
  take("diagnostic", chosen.roles.diagnostic, one.roles.diagnostic);
  take("normalizer", chosen.normalizer, one.normalizer);
  take("imputer", chosen.imputer, one.imputer);
  take("remapper", chosen.remapper, one.remapper);
  take("postprocessor", chosen.postprocessor, one.postprocessor);
  return one;
}

void DataOptions::validate(const std::string& path) const {
  if (parse_duration(timestep) <= 0) throw ConfigError(path + ".timestep", "must be positive");
  check_datasets(*this, path);
  if (kind != SourceKind::kAnalytic) return;
  const std::pair<const char*, const std::string*> dates[] = {
      {".training.start", &training.start},
      {".training.end", &training.end},
      {".validation.start", &validation.start},
      {".validation.end", &validation.end}};
  for (const auto& [key, text] : dates) {
    if (text->empty() || is_date(*text)) continue;
    throw ConfigError(path + key, concat("'", *text, "' counts dates of a stored dataset"),
                      "name a date: the analytic dataset has no others");
  }
}

}  // namespace aifs::data
