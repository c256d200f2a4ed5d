// SPDX-License-Identifier: Apache-2.0
#include "core/temporary_folder.h"

#include <cstdlib>
#include <string>

#include "core/check.h"
#include "core/file_io.h"

namespace aifs {

TemporaryFolder::TemporaryFolder() {
  const std::filesystem::path pattern = std::filesystem::temp_directory_path() / "aifs-XXXXXX";
  std::string name = pattern.string();
  if (!::mkdtemp(name.data()))
    throw Error(concat("cannot make a folder '", pattern.string(), "': ", system_error_text()));
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace aifs
