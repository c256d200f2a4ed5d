// SPDX-License-Identifier: Apache-2.0
// The stores that belong to a reference JSON of datasets: unpacked in a folder of its name (or
// name_stores) beside it, or in a tar archive of that name, which is unpacked for as long as the
// object lives.
#pragma once

#include <optional>
#include <string>

#include "app/conformance/case_file.h"
#include "app/conformance/tar_file.h"
#include "core/check.h"

namespace aifs::conformance {

class DatasetStores {
 public:
  // Throws DataError if there are none.
  explicit DatasetStores(const CaseFile& file);
  std::string path(const std::string& store) const { return (folder_ / store).string(); }

 private:
  std::optional<TemporaryFolder> unpacked_;
  fs::path folder_;
};

// Message and hint of an error.
std::string text_of(const Error& error);

}  // namespace aifs::conformance
