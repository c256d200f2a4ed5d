// SPDX-License-Identifier: Apache-2.0
#include "conformance/tar_file.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>

#include "core/check.h"
#include "core/first_line.h"

namespace aifs::conformance {

namespace {

constexpr size_t kBlock = 512;

// Fields of a header block: offset and length.
struct Field {
  size_t offset, length;
};
constexpr Field kName{0, 100}, kSize{124, 12}, kType{156, 1}, kMagic{257, 5}, kPrefix{345, 155};

class TarReader {
 public:
  TarReader(const fs::path& archive, const fs::path& folder)
      : file_(archive), bytes_(file_.bytes()), folder_(folder) {}

  // Calls visit(name, type, content) for every entry; type "0": a file, "5": a folder. Ends early
  // if it returns false.
  template <class Visit>
  void run(const Visit& visit) {
    bool go_on = true;
    while (go_on && at_ + kBlock <= bytes_.size() && bytes_[at_] != std::byte{0})
      go_on = read_entry(visit);
  }

  void unpack() {
    run([&](const std::string& name, const std::string& type, std::string_view content) {
      if (type == "0") write(target(name), content);
      if (type == "5") make_directories(target(name));
      return true;
    });
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw DataError(concat("'", file_.path().string(), "': damaged archive: ", why));
  }

  std::string text(Field field) const {
    const auto* start =
        static_cast<const char*>(static_cast<const void*>(bytes_.data())) + at_ + field.offset;
    return {start, std::find(start, start + field.length, '\0')};
  }

  size_t content_size() const {
    size_t size = 0;
    for (const char c : text(kSize)) {
      if (c == ' ') continue;
      if (c < '0' || c > '7') fail("a size is not octal");
      size = size * 8 + static_cast<size_t>(c - '0');
    }
    if (size > bytes_.size() - at_ - kBlock) fail("it ends within a file");
    return size;
  }

  template <class Visit>
  bool read_entry(const Visit& visit) {
    if (text(kMagic) != "ustar" && text(kMagic) != "") fail("not a ustar header");
    const size_t size = content_size();
    const auto* start =
        static_cast<const char*>(static_cast<const void*>(bytes_.data())) + at_ + kBlock;
    const std::string_view content(start, size);
    const std::string type = text(kType).empty() ? "0" : text(kType);
    bool go_on = true;
    if (type == "x") {
      long_name_ = pax_path(content);
    } else if (type == "L") {
      long_name_ = std::string(content.substr(0, content.find('\0')));
    } else {
      const std::string prefix = text(kPrefix);
      std::string name = prefix.empty() ? text(kName) : prefix + "/" + text(kName);
      if (!long_name_.empty()) name = std::exchange(long_name_, "");
      go_on = visit(name, type, content);
    }
    at_ += kBlock + (size + kBlock - 1) / kBlock * kBlock;
    return go_on;
  }

  // The record "<length> path=<name>\n" of a pax header, or "".
  static std::string pax_path(std::string_view records) {
    const std::string_view key = " path=";
    const size_t found = records.find(key);
    if (found == std::string_view::npos) return "";
    const std::string_view rest = records.substr(found + key.size());
    return first_line(std::string(rest));
  }

  fs::path target(const std::string& name) const {
    const fs::path relative = fs::path(name).lexically_normal();
    if (relative.is_absolute() || (!relative.empty() && *relative.begin() == "..")) {
      fail(concat("it would write to '", name, "'"));
    }
    return folder_ / relative;
  }

  static void write(const fs::path& path, std::string_view content) {
    make_directories(path.parent_path());
    std::ofstream out(path, std::ios::binary);
    out.write(content.data(), static_cast<std::streamsize>(content.size()));
    if (!out.flush()) throw Error(concat("cannot write '", path.string(), "'"));
  }

  MappedFile file_;
  std::span<const std::byte> bytes_;
  fs::path folder_;
  size_t at_ = 0;  // of the present header
  std::string long_name_;
};

}  // namespace

void unpack_tar(const fs::path& archive, const fs::path& folder) {
  TarReader(archive, folder).unpack();
}

bool tar_holds(const fs::path& archive, const std::string& folder) {
  bool found = false;
  try {
    TarReader(archive, {}).run([&](const std::string& name, const std::string&, std::string_view) {
      const fs::path path = fs::path(name).lexically_normal();
      found = !path.empty() && *path.begin() == folder;
      return !found;
    });
  } catch (const DataError&) {
    return false;
  }
  return found;
}

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (fs::temp_directory_path() / "aifs-conformance-XXXXXX").string();
  if (!::mkdtemp(pattern.data())) {
    throw Error(concat("cannot create a temporary folder: ", system_error_text()));
  }
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace aifs::conformance
