// SPDX-License-Identifier: Apache-2.0
// Unpacks a tar archive (POSIX ustar, with pax and GNU long names): plain files and folders.
#pragma once

#include "core/file_io.h"

namespace aifs::conformance {

// Throws DataError naming the archive if it is damaged or an entry would leave `folder`.
void unpack_tar(const fs::path& archive, const fs::path& folder);

// Whether an archive has entries in such a folder. False for what cannot be read as an archive.
bool tar_holds(const fs::path& archive, const std::string& folder);

// A fresh folder that disappears with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace aifs::conformance
