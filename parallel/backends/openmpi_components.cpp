// SPDX-License-Identifier: Apache-2.0
// The names: opal/mca/pmix of OpenMPI 4.1; the folders: its own installation, and Debian's.
#include "parallel/backends/openmpi_components.h"

#include <string>
#include <system_error>

namespace aifs::parallel {

namespace fs = std::filesystem;

bool may_read_pmi2(const fs::path& library) {
  std::error_code error;
  const fs::path real = fs::canonical(library, error);
  if (error) return true;
  bool knows_others = false;
  for (const char* folder : {"openmpi", "openmpi/lib/openmpi", "openmpi/lib/openmpi3"}) {
    const fs::directory_iterator files(real.parent_path() / folder, error);
    if (error) continue;
    for (const fs::directory_entry& file : files) {
      const std::string name = file.path().filename().string();
      if (name == "mca_pmix_s1.so" || name == "mca_pmix_s2.so") return true;
      if (name.starts_with("mca_pmix_") && name.ends_with(".so")) knows_others = true;
    }
  }
  return !knows_others;
}

}  // namespace aifs::parallel
