// SPDX-License-Identifier: Apache-2.0
// The configuration of a training of Anemoi's as one of ours (docs/anemoi_configs.md): of recent
// releases with sections "task", "system" and "datasets", and of those of 2025 without.
#pragma once

#include <string>
#include <vector>

#include "anemoi/target.h"

namespace aifs::anemoi {

struct Imported {
  Target target;
  std::vector<Remark> remarks;

  const Json& config() const { return target.config(); }
  // How many keys would change what is trained, and are not honoured.
  size_t num_not_honoured() const;
};

// Translates; `name` is for the run folder and messages. Throws ConfigError for what is no resolved
// configuration of Anemoi.
Imported import_training_config(const Json& tree, const std::string& name);

// The remarks for people, those that matter most first; and for programs.
std::string remarks_text(const std::vector<Remark>& remarks);
Json remarks_json(const std::vector<Remark>& remarks);

}  // namespace aifs::anemoi
