// SPDX-License-Identifier: Apache-2.0
// A fresh folder below that for temporary files ($TMPDIR, else /tmp), which disappears with the
// object.
#pragma once

#include <filesystem>

namespace aifs {

class TemporaryFolder {
 public:
  // Throws Error if it cannot be made.
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace aifs
