// SPDX-License-Identifier: Apache-2.0
#include "core/zip_archive.h"

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"
#include "tests/support/zip_writer.h"

using namespace aifs;

namespace {

const std::map<std::string, std::string> kMembers{{"m/a", "first"}, {"m/b", std::string(300, 'x')}};

fs::path written(const test::TemporaryFolder& folder, const std::string& bytes) {
  write_file_atomic(folder.path() / "file.zip", bytes);
  return folder.path() / "file.zip";
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Opens the archive and reads all of it.
void read_all(const fs::path& path) {
  const ZipArchive zip(path);
  for (const auto& [name, member] : zip.members())
    zip.read(name, 1 << 20);
}

}  // namespace

TEST_CASE("members come out as they went in, packed or not, in 32 and 64 bits") {
  const test::TemporaryFolder folder;
  for (const bool deflated : {false, true}) {
    for (const bool zip64 : {false, true}) {
      INFO(deflated << zip64);
      const test::ZipStyle style{.deflated = deflated, .zip64 = zip64, .comment = "PK\x05\x06"};
      const ZipArchive zip(written(folder, test::zip_bytes(kMembers, style)));
      REQUIRE(zip.members().size() == 2);
      for (const auto& [name, value] : kMembers)
        REQUIRE(zip.read(name, 300) == value);
      if (deflated) {
        REQUIRE_THROWS_AS(zip.stored("m/b"), DataError);
      } else {
        REQUIRE(text_of(zip.stored("m/a")) == "first");
      }
      REQUIRE_THROWS_WITH(zip.read("m/b", 299), ContainsSubstring("at most 299"));
      REQUIRE_THROWS_WITH(zip.read("m/c", 299), ContainsSubstring("no member 'm/c'"));
    }
  }
}

TEST_CASE("an archive that is cut short anywhere is an error that names the file") {
  const test::TemporaryFolder folder;
  for (const bool zip64 : {false, true}) {
    const std::string whole = test::zip_bytes(kMembers, {.zip64 = zip64});
    for (size_t size = 0; size < whole.size(); ++size) {
      INFO(size);
      REQUIRE_THROWS_AS(read_all(written(folder, whole.substr(0, size))), DataError);
    }
  }
  REQUIRE_THROWS_WITH(read_all(written(folder, "no zip archive at all, only a line of text")),
                      ContainsSubstring("file.zip'"));
}

TEST_CASE("another byte in a content is found by its checksum") {
  const test::TemporaryFolder folder;
  std::string bytes = test::zip_bytes(kMembers);
  bytes[bytes.find("first")] = 'F';
  REQUIRE_THROWS_WITH(read_all(written(folder, bytes)),
                      ContainsSubstring("checksum of 'm/a' is wrong"));
}

TEST_CASE("names that leave a folder, and names that are there twice, are refused") {
  const test::TemporaryFolder folder;
  for (const char* name : {"../a", "/a", "m/../../a", "m/.."}) {
    INFO(name);
    REQUIRE_THROWS_WITH(ZipArchive(written(folder, test::zip_bytes({{name, "x"}}))),
                        ContainsSubstring("has a member called"));
  }
  std::string twice = test::zip_bytes(kMembers);
  for (size_t at = twice.find("m/b"); at != std::string::npos; at = twice.find("m/b"))
    twice[at + 2] = 'a';
  REQUIRE_THROWS_WITH(ZipArchive(written(folder, twice)), ContainsSubstring("two members"));
}

TEST_CASE("places outside the file are refused, whatever number says so") {
  const test::TemporaryFolder folder;
  for (const bool zip64 : {false, true}) {
    const std::string whole = test::zip_bytes(kMembers, {.zip64 = zip64});
    const size_t directory = whole.find("PK\x01\x02");
    // Packed and unpacked size, length of the name, place of the header; the end of the directory.
    for (size_t at = directory; at < whole.size(); ++at) {
      for (const char byte : {'\xff', '\x7f'}) {
        std::string spoilt = whole;
        spoilt[at] = byte;
        INFO(at);
        try {
          read_all(written(folder, spoilt));
        } catch (const DataError&) {
          continue;
        }
        SUCCEED("what the byte says is not used");
      }
    }
  }
}
