// SPDX-License-Identifier: Apache-2.0
// What an error about a store has to name. Cases list names of files ("data/2.0.0.0", ".zattrs"),
// of keys and arrays ("chunks", "latitudes"), of variables ("2t"), and descriptions of the fault
// ("truncated or corrupt"). The first three must stand in the message; a description may be put in
// other words, so that its absence is only remarked on.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "conformance/report.h"
#include "core/file_io.h"

namespace aifs::conformance {

enum class NameKind { kFile, kKey, kVariable, kDescription };

// Describes what could be named of a store.
struct StoreNames {
  std::set<std::string> variables;
  std::set<std::string> members;  // files and folders at the top: arrays, groups, metadata

  // Adds the files and folders of a store.
  void add_members(const fs::path& store);
};

// `beside_chunk`: the same case names the file of a chunk, whose words are not those of JSON.
NameKind kind_of_name(const std::string& name, const StoreNames& known, bool beside_chunk);

// True if a message says `wanted`, in letters of any case: as it stands or, if it is a description,
// all its words.
bool says(const std::string& message, const std::string& wanted);

// One of the messages must name everything that has to be named; the nearest one is shown.
void check_names(const std::vector<std::string>& wanted, const StoreNames& known,
                 const std::vector<std::string>& messages, Comparison& comparison);

}  // namespace aifs::conformance
