// SPDX-License-Identifier: Apache-2.0
// References within a configuration of Anemoi: ${data.frequency}, also of whole sections and within
// texts, ${.key} beside it, and ${oc.env:NAME}. `anemoi-training config dump` leaves them as they
// are.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

namespace aifs::anemoi {

struct ResolvedTree {
  nlohmann::ordered_json tree;
  std::set<std::string> referenced;             // paths whose values stand elsewhere, too
  std::map<std::string, std::string> failures;  // path of a reference: what is wrong with it
};

// The tree with the values that its references stand for. What cannot be resolved stays as it is
// and is noted: it matters only if somebody needs the value. Throws ConfigError if the tree grows
// beyond all reason.
ResolvedTree resolve_references(const nlohmann::ordered_json& tree);

}  // namespace aifs::anemoi
