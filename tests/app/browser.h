// SPDX-License-Identifier: Apache-2.0
// Opens pages in a browser without a screen.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <string>

#include "core/check.h"
#include "tests/support/paths.h"
#include "tests/support/skip.h"

namespace aifs::test {

// The name of a browser. Ends the test program as skipped where there is none.
inline std::string browser() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
    if (run_command(concat("command -v ", name)).exit_code == 0) return name;
  }
  skip("there is no chromium");
}

struct BrowserCall {
  std::filesystem::path page, profile;
  std::string place;  // after the # of the address
  int width = 1280, height = 860;
};

// What the browser prints or writes about a page: `what` is "--dump-dom" or "--screenshot='FILE'".
inline CommandResult open_page(const std::string& browser, const std::string& what,
                               const BrowserCall& call) {
  return run_command(concat("timeout 120 ", browser,
                            " --headless --no-sandbox --disable-gpu --hide-scrollbars"
                            " --enable-logging=stderr --window-size=",
                            call.width, ",", call.height,
                            " --virtual-time-budget=4000 --user-data-dir='", call.profile.string(),
                            "' ", what, " 'file://", call.page.string(), "#", call.place, "'"));
}

// The JSON of an attribute of the page's first element.
inline nlohmann::json told(const std::string& dom, const std::string& name) {
  std::smatch match;
  AIFS_CHECK(std::regex_search(dom, match, std::regex(name + "=\"([^\"]*)\"")), "no ", name);
  return nlohmann::json::parse(std::regex_replace(match[1].str(), std::regex("&quot;"), "\""));
}

}  // namespace aifs::test
