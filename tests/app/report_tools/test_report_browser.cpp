// SPDX-License-Identifier: Apache-2.0
// The page of `aifs-train report` in a browser. Skipped where there is none.
#include "core/file_io.h"
#include "tests/app/browser.h"
#include "tests/app/report_tools/reported_run.h"
#include "tests/support/catch.h"

using namespace aifs;
using Json = nlohmann::json;

namespace {

// A run whose configuration and log are hostile, opened after a script has done something.
class ReportPage {
 public:
  ReportPage() : browser_(test::browser()) {
    const fs::path log = run_.folder() / "train.log";
    write_file_atomic(log, read_file(log) +
                               "2099-01-01 00:00:00.000 warning </script><img src=x "
                               "onerror=document.title='hacked'>\n");
    const auto made = run_.report(concat("'", run_.folder().string(), "' ", run_.everything()));
    INFO(made.err);
    REQUIRE(made.exit_code == 0);
  }
  // What the script leaves in data-tried, and what the browser said meanwhile.
  Json after(const std::string& script, std::string* said = nullptr) const {
    const std::string whole = read_file(run_.page());
    const fs::path tried = run_.page().parent_path() / "tried.html";
    write_file_atomic(tried, concat(whole, "<script>document.documentElement.dataset.tried = ",
                                    "JSON.stringify((() => {", script, "})());</script>"));
    const auto opened =
        test::open_page(browser_, "--dump-dom", {tried, run_.profile(), "theme=dark"});
    INFO(opened.err);
    REQUIRE(opened.exit_code == 0);
    if (said) *said = opened.err;
    return test::told(opened.out, "data-tried");
  }
  std::string screenshot(const std::string& theme, int width) const {
    const fs::path file = run_.page().parent_path() / "shot.png";
    const auto opened = test::open_page(browser_, concat("--screenshot='", file.string(), "'"),
                                        {run_.page(), run_.profile(), theme, width, 1600});
    REQUIRE(opened.exit_code == 0);
    return read_file(file);
  }

 private:
  std::string browser_;
  test::ReportedRun run_;
};

// How many colours each figure has, by its title.
constexpr const char* kColours = R"(
const colours = {};
for (const figure of figures) {
  const {width, height} = figure.canvas;
  const data = figure.canvas.getContext("2d").getImageData(0, 0, width, height).data;
  colours[figure.title] = new Set(new Uint32Array(data.buffer)).size;
}
return {colours, title: document.title, images: document.querySelectorAll("img").length,
        sections: [...document.querySelectorAll("h2")].map(h => h.textContent),
        wide: document.documentElement.scrollWidth - document.documentElement.clientWidth};
)";

// What keys, lists and buttons do.
constexpr const char* kHand = R"(
const tried = {}, key = (element, name) => element.dispatchEvent(
    new KeyboardEvent("keydown", {key: name, bubbles: true, cancelable: true}));
const pixels = figure => figure.canvas.toDataURL();
const loss = figures.find(f => f.title === "Training loss");
key(loss.canvas, "ArrowRight");
tried.readout = loss.readout.textContent;
const card = figures.find(f => f.title.startsWith("Scorecard"));
key(card.canvas, "ArrowDown");
tried.cell = card.readout.textContent;
const map = mapSection.forecasts[0], before = pixels(map);
mapSection.slider.value = 0;
mapSection.slider.oninput();
tried.lead = mapSection.output.textContent;
tried.moved = pixels(map) !== before;
const later = pixels(map);
key(map.canvas, "ArrowLeft");
tried.turned = pixels(map) !== later;
mapSection.flatButton.click();
tried.flat = map.canvas.height < map.canvas.width;
map.tell(map.view.width / 2, map.view.height / 2);
tried.place = map.readout.textContent;
const picture = loss.image();
tried.image = picture.toDataURL().length > 5000 && picture.width > loss.canvas.width;
document.getElementById("theme").click();
tried.theme = document.documentElement.dataset.theme;
const search = document.querySelector("input[type=search]");
search.value = "run.seed";
search.oninput();
const rows = [...document.querySelectorAll("table.keys tbody tr")];
tried.rows = rows.filter(row => !row.hidden).map(row => row.textContent);
return tried;
)";

}  // namespace

TEST_CASE("a browser draws every figure of a report, and nothing of a run folder is run",
          "[report_browser]") {
  const ReportPage page;
  std::string said;
  const Json tried = page.after(kColours, &said);
  INFO(tried.dump(1));
  INFO(said);
  CHECK(said.find("CONSOLE") == std::string::npos);
  CHECK(tried["title"] == "run");
  CHECK(tried["images"] == 0);
  CHECK(tried["wide"] == 0);
  CHECK(tried["sections"] ==
        Json{"Summary", "Training", "Time", "Scores", "Maps", "Configuration"});
  CHECK(tried["colours"].size() >= 12);
  for (const auto& [title, count] : tried["colours"].items()) {
    INFO(title);
    CHECK(count.get<int>() > 10);
  }
}

TEST_CASE("keys, lists and buttons of a report do what they say", "[report_browser]") {
  const ReportPage page;
  const Json tried = page.after(kHand);
  INFO(tried.dump(1));
  CHECK_THAT(tried["readout"].get<std::string>(),
             ContainsSubstring("step ") && ContainsSubstring("run "));
  CHECK_THAT(tried["cell"].get<std::string>(), ContainsSubstring("RMSE"));
  CHECK(tried["lead"] == "6 h");
  CHECK(tried["moved"] == true);
  CHECK(tried["turned"] == true);
  CHECK(tried["flat"] == true);
  CHECK_THAT(tried["place"].get<std::string>(), ContainsSubstring("° "));
  CHECK(tried["image"] == true);
  CHECK(tried["theme"] == "light");
  CHECK(tried["rows"] == Json::array({"run.seed7"}));
}

TEST_CASE("screenshots of a report differ by theme and fit a phone", "[report_browser]") {
  const ReportPage page;
  const std::string dark = page.screenshot("theme=dark", 1280);
  REQUIRE(dark.substr(1, 3) == "PNG");
  CHECK(dark.size() > 30000);
  CHECK(page.screenshot("theme=light", 1280) != dark);
  CHECK(page.screenshot("theme=dark", 390).size() > 15000);
}
