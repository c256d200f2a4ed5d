// SPDX-License-Identifier: Apache-2.0
#include "report/page_text.h"

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::report;

TEST_CASE("base64 is that of RFC 4648", "[page_text]") {
  CHECK(base64("") == "");
  CHECK(base64("f") == "Zg==");
  CHECK(base64("fo") == "Zm8=");
  CHECK(base64("foobar") == "Zm9vYmFy");
  CHECK(base64("\xff\xfe") == "//4=");
  const std::vector<float> one{1.0F};  // 0x3f800000
  CHECK(base64_floats(one) == "AACAPw==");
}

TEST_CASE("no text can end the element of a page that it stands in", "[page_text]") {
  CHECK(harmless(R"({"a":"</script><!--"})") == R"({"a":"\u003c/script>\u003c!--"})");
}

TEST_CASE("texts come to their places, and what they hold is not looked at", "[page_text]") {
  CHECK(filled("<@A@|@B@>", {{"@A@", "@B@"}, {"@B@", "b"}}) == "<@B@|b>");
  CHECK_THROWS_WITH(filled("<@A@>", {{"@B@", ""}}), ContainsSubstring("@B@"));
}
