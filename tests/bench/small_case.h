// SPDX-License-Identifier: Apache-2.0
// The cases of bench/cases, made small.
#pragma once

#include <string>
#include <vector>

#include "app/run/run_config.h"
#include "core/check.h"
#include "tests/support/paths.h"

namespace aifs::test {

inline app::RunConfig case_config(const std::string& name,
                                  const std::vector<std::string>& overrides = {}) {
  const fs::path file = source_folder() / "bench/cases" / (name + ".json");
  return app::load_config(file.string(), overrides);
}

// With 16 channels (64 where there are heads) on O8 and one refinement, in fp32; then `overrides`.
inline app::RunConfig small_case(const std::string& name,
                                 const std::vector<std::string>& overrides = {}) {
  std::vector<std::string> all{concat("model.channels=", name.starts_with("gnn") ? 16 : 64),
                               "graph.grid=o8", "graph.hidden.refinement=1",
                               "train.precision=fp32"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return case_config(name, all);
}

}  // namespace aifs::test
