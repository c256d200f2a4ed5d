// SPDX-License-Identifier: Apache-2.0
// The stores that belong to a reference JSON of datasets: unpacked in a folder beside it, or in a
// tar archive, which is unpacked for as long as the object lives. Its name is that of the JSON, or
// begins with it ("options_stores.tar" of "options.json").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "conformance/case_file.h"
#include "conformance/tar_file.h"
#include "core/check.h"
#include "core/temporary_folder.h"
#include "data/sources/anemoi_dataset.h"

namespace aifs::conformance {

class DatasetStores {
 public:
  // Throws DataError if there are none.
  explicit DatasetStores(const CaseFile& file);
  std::string path(const std::string& store) const { return (folder_ / store).string(); }
  // The store <name>.zarr, or the only one there is. Throws DataError if it is neither.
  std::string single(const std::string& name) const;

 private:
  bool use(const fs::path& place);

  std::optional<TemporaryFolder> unpacked_;
  fs::path folder_;
};

// Message and hint of an error.
std::string text_of(const Error& error);

// True if the package refuses a quantity or a case: then a text (the class of its error) or
// {"python_error": ...} stands where a value of another type is expected.
bool is_refusal(const Json& value);

// For every row of a whole dataset its number in the store: rows that are declared missing have
// one, dates that the store leaves out are -1.
std::vector<int64_t> stored_rows(const data::AnemoiDataset& dataset);

}  // namespace aifs::conformance
