// SPDX-License-Identifier: Apache-2.0
#include "app/conformance/dataset_stores.h"

namespace aifs::conformance {

DatasetStores::DatasetStores(const CaseFile& file) {
  const fs::path beside = file.json_path.parent_path() / file.name;
  for (const char* ending : {"", "_stores"}) {
    const fs::path folder = beside.string() + ending, archive = folder.string() + ".tar";
    if (fs::is_directory(folder)) {
      folder_ = folder;
      return;
    }
    if (fs::exists(archive)) {
      unpacked_.emplace();
      unpack_tar(archive, unpacked_->path());
      folder_ = unpacked_->path();
      return;
    }
  }
  throw DataError(
      concat("neither '", beside.string(), "' nor '", beside.string(), ".tar' holds the stores"));
}

std::string text_of(const Error& error) {
  return error.hint().empty() ? error.what() : concat(error.what(), " (", error.hint(), ")");
}

}  // namespace aifs::conformance
