// SPDX-License-Identifier: Apache-2.0
// The section "data" of a configuration.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/config.h"
#include "data/combine/dataset_tree.h"
#include "data/fields/variables.h"
#include "data/sources/analytic_options.h"
#include "data/transforms/imputer.h"
#include "data/transforms/normaliser.h"
#include "data/transforms/post_processor.h"
#include "data/transforms/remapper.h"

namespace aifs::data {

enum class SourceKind { kAnemoi, kAnalytic };

// Says where the statistics come from that normalise, fill and weigh, when weights come from a
// checkpoint. Auto: the dataset's, which must be those of the checkpoint where a run goes on; the
// checkpoint's where weights are scored.
enum class TableSource { kAuto, kCheckpoint, kDataset };

// A period, both ends included; empty means as far as the data go.
struct Period {
  std::string start, end;
  void bind(config::Binder& b);
};

// Copies of chunks on a disk of each host.
struct CacheOptions {
  std::string dir;  // empty: none
  double limit_gib = 100.0;

  void bind(config::Binder& b);
};

// One of several datasets of a run. What it leaves out is as the keys of DataOptions say.
struct NamedDataset {
  DatasetTree dataset;
  RoleOptions roles;
  NormaliserOptions normalizer;
  std::vector<ImputeRule> imputer;
  std::vector<RemapRule> remapper;
  std::vector<PostRule> postprocessor;
  std::string encoder, decoder;      // those that it uses; empty: of its own name
  std::set<std::string> given = {};  // keys that the configuration has, even if empty

  void bind(config::Binder& b);
};

struct DataOptions {
  SourceKind kind = SourceKind::kAnemoi;
  DatasetTree dataset;                                         // kind anemoi
  std::vector<std::pair<std::string, NamedDataset>> datasets;  // instead of it
  AnalyticOptions analytic;                                    // kind analytic
  Period training, validation;
  RoleOptions roles;
  std::string timestep = "6h";
  int64_t multistep_input = 2;
  int64_t multistep_output = 1;
  TableSource tables = TableSource::kAuto;
  NormaliserOptions normalizer;
  std::vector<ImputeRule> imputer;
  std::vector<RemapRule> remapper;
  std::vector<PostRule> postprocessor;
  int64_t batch_size = 1;
  int64_t anemoi_workers = 1;
  int64_t threads = 0;  // of reading; 0: chosen where they start
  int64_t retries = 3;
  CacheOptions cache;
  bool share_on_host = true;
  int64_t memory_mib = 0;        // 0: automatic
  int64_t prefetch_batches = 0;  // 0: as many as there is memory for, or a few

  void bind(config::Binder& b);
  void validate(const std::string& path) const;
  // The names of all datasets: "data" for a single one.
  std::vector<std::string> names() const;
  // These options with one of `datasets` as the single dataset.
  DataOptions of_dataset(size_t number) const;
};

constexpr auto enum_table(TableSource) {
  using enum TableSource;
  return std::to_array<EnumName<TableSource>>(
      {{kAuto, "auto"}, {kCheckpoint, "checkpoint"}, {kDataset, "dataset"}});
}

constexpr auto enum_table(SourceKind) {
  using enum SourceKind;
  return std::to_array<EnumName<SourceKind>>({{kAnemoi, "anemoi"}, {kAnalytic, "analytic"}});
}

}  // namespace aifs::data
