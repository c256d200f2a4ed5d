// SPDX-License-Identifier: Apache-2.0
#include "app/data_tools/page_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <functional>
#include <vector>

namespace aifs::app {

namespace {

void open_file(const fs::path& path, uintmax_t bytes,
               const std::function<void(int, size_t)>& visit) {
  if (bytes == 0 || bytes == static_cast<uintmax_t>(-1)) return;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  visit(file, bytes);
  ::close(file);
}

// Calls `visit(descriptor, bytes)` for every file that has any and can be opened; for a file alone
// if it is no folder.
void for_each_file(const fs::path& folder, const std::function<void(int, size_t)>& visit) {
  std::error_code error, ignored;
  if (fs::is_regular_file(folder, ignored))
    return open_file(folder, fs::file_size(folder, ignored), visit);
  for (fs::recursive_directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    const uintmax_t bytes = it->is_regular_file(ignored) ? it->file_size(ignored) : 0;
    open_file(it->path(), bytes, visit);
  }
}

}  // namespace

void drop_page_cache(const fs::path& folder) {
  for_each_file(folder, [](int file, size_t) {
    ::fdatasync(file);  // what was written lately stays otherwise
    ::posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  });
}

double resident_share(const fs::path& folder) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  size_t pages = 0, resident = 0;
  for_each_file(folder, [&](int file, size_t bytes) {
    const size_t count = (bytes + page - 1) / page;
    pages += count;
    std::vector<unsigned char> states(count, 1);
    void* mapped = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED) {
      ::mincore(mapped, bytes, states.data());
      ::munmap(mapped, bytes);
    }
    resident += static_cast<size_t>(std::count_if(
        states.begin(), states.end(), [](unsigned char state) { return (state & 1U) != 0; }));
  });
  return pages == 0 ? 1.0 : static_cast<double>(resident) / static_cast<double>(pages);
}

}  // namespace aifs::app
