// SPDX-License-Identifier: Apache-2.0
// The page of `aifs-train graph plot` in a browser. Skipped where there is none.
#include <cmath>

#include "core/file_io.h"
#include "graph/graph_file.h"
#include "tests/app/browser.h"
#include "tests/app/page_data.h"
#include "tests/app/program.h"
#include "tests/support/catch.h"

using namespace aifs;
using Json = nlohmann::json;

namespace {

// The page of the tiny graph with a small cut-off, in a folder, opened in the browser.
class Page {
 public:
  Page() : browser_(test::browser()) {
    const std::string graph = concat("'", test::program("aifs-train").string(), "' graph ");
    const std::string few = concat("--config '", test::tiny_config(),
                                   "' --set graph.encoder.cutoff_factor=0.4 --out '");
    run(concat(graph, "build ", few, file("graph.nc"), "'"));
    run(concat(graph, "plot ", few, file("page.html"), "'"));
  }

  std::string file(const char* name) const { return (folder_.path() / name).string(); }
  // What the browser prints or writes about the page at an address.
  std::string open(const std::string& what, const std::string& place = "") const {
    const test::CommandResult result =
        test::open_page(browser_, what, {file("page.html"), file("profile"), place});
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return result.out;
  }
  std::string screenshot(const std::string& place) const {
    open(concat("--screenshot='", file("shot.png"), "'"), place);
    return read_file(file("shot.png"));
  }

 private:
  static std::string run(const std::string& command) {
    const test::CommandResult result = test::run_command("timeout 120 " + command);
    INFO(command);
    INFO(result.err);
    REQUIRE(result.exit_code == 0);
    return result.out;
  }

  std::string browser_;
  test::TemporaryFolder folder_;
};

// What a hand would do, and what came of it.
constexpr const char* kHand = R"(<script>
const at = (type, x, y) => canvas.dispatchEvent(
    new PointerEvent(type, {clientX: x, clientY: y, pointerId: 1, bubbles: true}));
const mesh = byName.get("hidden"), place = [0, 0, 0], tried = {};
for (let i = 0; i < mesh.count; ++i) {
  view.project(mesh.xyz, i, place);
  if (place[2] > 0.9) tried.wanted = `hidden ${i}`, tried.x = place[0], tried.y = place[1];
}
at("pointerdown", tried.x, tried.y);
at("pointerup", tried.x, tried.y);
tried.picked = document.querySelector("#picked div").textContent;
const lon = view.lon, zoom = view.zoom;
at("pointerdown", 300, 300);
at("pointermove", 320, 300);
at("pointermove", 400, 300);
at("pointerup", 400, 300);
tried.turned_px = (lon - view.lon) * view.scale;
tried.still = document.querySelector("#picked div").textContent;
canvas.dispatchEvent(new WheelEvent("wheel", {deltaY: -100, cancelable: true}));
tried.zoomed = view.zoom / zoom;
document.querySelectorAll("#edges input")[0].click();
tried.shown = edgeSets[0].shown;
document.querySelector("#orphans button").click();
tried.next = document.querySelector("#picked div").textContent;
document.documentElement.dataset.tried = JSON.stringify(tried);
</script>)";

// How many nodes are on the half of the globe that is seen first.
int64_t in_front(const graph::NodeSet& nodes) {
  const double lat = 0.45, lon = 0.2;  // of page/globe.js
  int64_t count = 0;
  for (size_t i = 0; i < nodes.lat_rad.size(); ++i) {
    const double a = nodes.lat_rad[i], o = nodes.lon_rad[i];
    const double z = std::sin(lat) * std::sin(a) + std::cos(lat) * std::cos(a) * std::cos(o - lon);
    count += z > 0 ? 1 : 0;
  }
  return count;
}

uint32_t big_endian(const std::string& bytes, size_t place) {
  uint32_t value = 0;
  for (size_t k = 0; k < 4; ++k)
    value = value << 8 | static_cast<uint8_t>(bytes[place + k]);
  return value;
}

}  // namespace

TEST_CASE("a browser draws the nodes that are in front, and tells what is missing",
          "[graph_page]") {
  const Page page;
  const std::string dom = page.open("--dump-dom");
  const Json drawn = test::told(dom, "data-drawn");
  for (const graph::NodeSet& nodes : graph::load_graph(page.file("graph.nc")).graph.node_sets) {
    const int64_t count = drawn[nodes.name];
    INFO(nodes.name);
    CHECK(std::abs(count - in_front(nodes)) <= 2);  // nodes on the rim
  }
  const Json data = test::graph_of_page(read_file(page.file("page.html")));
  CHECK_THAT(dom, ContainsSubstring("data nodes have no edge to hidden"));
  CHECK_THAT(dom, ContainsSubstring("graph.encoder.cutoff_factor 0.4"));
  CHECK_THAT(dom, ContainsSubstring("edges of a hidden node"));
  CHECK_FALSE(data["orphans"].empty());
}

TEST_CASE("the globe is seen in a screenshot, and its sets can be hidden", "[graph_page]") {
  const Page page;
  const std::string all = page.screenshot("show=data>hidden,hidden>data");
  REQUIRE(all.substr(1, 3) == "PNG");
  CHECK(big_endian(all, 16) == 1280);
  CHECK(big_endian(all, 20) == 860);
  const std::string none = page.screenshot("hide=data,hidden,hidden>hidden,marks");
  CHECK(3 * none.size() < 2 * all.size());
}

TEST_CASE("an address turns to a node and lists its edges", "[graph_page]") {
  const Page page;
  const std::string dom = page.open("--dump-dom", "node=hidden/7");
  CHECK_THAT(dom, ContainsSubstring("hidden 7"));
  CHECK_THAT(dom, ContainsSubstring("from data"));
  CHECK_THAT(dom, ContainsSubstring("to data"));
}

TEST_CASE("the hand picks, turns, zooms and switches", "[graph_page]") {
  const Page page;
  const std::string whole = read_file(page.file("page.html"));
  write_file_atomic(page.file("page.html"), whole + kHand);
  const Json tried = test::told(page.open("--dump-dom"), "data-tried");
  INFO(tried.dump(1));
  CHECK(tried["picked"] == tried["wanted"]);
  CHECK(tried["still"] == tried["wanted"]);
  CHECK(tried["turned_px"].get<double>() == Approx(100.0));
  CHECK(tried["zoomed"].get<double>() > 1.0);
  CHECK(tried["shown"] == true);
  const Json orphans = test::graph_of_page(whole)["orphans"][0];
  CHECK(tried["next"] == concat(orphans["set"].get<std::string>(), " ",
                                test::indices_of_base64(orphans["nodes"])[0]));
}
