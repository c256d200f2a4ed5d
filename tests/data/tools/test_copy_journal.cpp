// SPDX-License-Identifier: Apache-2.0
#include "data/tools/copy_journal.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "tests/support/catch.h"
#include "tests/support/paths.h"

using namespace aifs;
using namespace aifs::data;
using Json = nlohmann::ordered_json;

TEST_CASE("a journal remembers what is done, but no line that was cut off", "[data]") {
  const test::TemporaryFolder folder;
  const fs::path store = folder.path() / "new", copy = store / "_copy";
  const Json request{{"chunks", 3}};
  {
    CopyJournal journal(store, copy, request);
    journal.add("data/0.0.0.0", 0x12345678);
    journal.add("data/1.0.0.0", 0xffffffff);
    CHECK(journal.checksum("data/1.0.0.0") == 0xffffffff);
  }
  std::ofstream(copy / "files", std::ios::app) << "\ndata/2.0.0.0 1234";
  CopyJournal journal(store, copy, request);
  CHECK(journal.checksum("data/0.0.0.0") == 0x12345678);
  CHECK(journal.is_done("data/1.0.0.0"));
  CHECK_FALSE(journal.is_done("data/2.0.0.0"));
  journal.add("data/3.0.0.0", 1);  // right behind the cut
  journal.forget({"data/0.0.0.0"});
  CHECK_FALSE(journal.is_done("data/0.0.0.0"));
  journal.close();
  CHECK_FALSE(path_exists(copy));
}

TEST_CASE("a copy of something else, or a folder in use, is refused", "[data]") {
  const test::TemporaryFolder folder;
  const fs::path store = folder.path() / "new", copy = store / "_copy";
  {
    const CopyJournal journal(store, copy, Json{{"chunks", 3}});
    CHECK_THROWS_AS(CopyJournal(store, copy, Json{{"chunks", 3}}), ConfigError);  // in use
  }
  CHECK_THROWS_AS(CopyJournal(store, copy, Json{{"chunks", 4}}), ConfigError);
  CHECK_NOTHROW(CopyJournal(store, copy, Json{{"chunks", 3}}));
  make_directories(folder.path() / "other" / "data");
  CHECK_THROWS_AS(CopyJournal(folder.path() / "other", folder.path() / "other/_copy", Json{}),
                  ConfigError);
  CHECK_FALSE(path_exists(folder.path() / "other/_copy"));
}
