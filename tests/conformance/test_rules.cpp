// SPDX-License-Identifier: Apache-2.0
// What reference cases expect, in words, and how near results must be.
#include <algorithm>
#include <cmath>
#include <map>

#include "conformance/case_file.h"
#include "conformance/error_names.h"
#include "conformance/expectation.h"
#include "conformance/limits.h"
#include "conformance/spectral_plane.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::conformance;

namespace {

// The outcomes that are allowed: "r"ead, "e"rror, "m"issing rows, "a"ny values, error when used to
// "n"ormalise.
std::string allowed(const std::string& must, const std::string& note = "") {
  const Expectation e = parse_expectation(must, note);
  return std::string(e.read ? "r" : "") + (e.refuse ? "e" : "") + (e.missing_rows ? "m" : "") +
         (e.any_values ? "a" : "") + (e.refuse_to_normalise ? "n" : "");
}

struct Counts {
  int passed, failed, skipped;
  bool operator==(const Counts&) const = default;
};

Counts counts_of(const std::function<void(Comparison&)>& body) {
  Report report;
  report.run("hostile", "a case", body);
  return {report.num_passed(), report.num_failed(), report.num_skipped()};
}

Counts names(const std::vector<std::string>& wanted, const std::string& message) {
  StoreNames known{{"2t", "tp"}, {"data", "dates", "mean", ".zattrs"}};
  return counts_of([&](Comparison& c) { check_names(wanted, known, {message}, c); });
}

}  // namespace

TEST_CASE("an expectation is a list of alternatives", "[conformance]") {
  REQUIRE(allowed("read") == "r");
  REQUIRE(allowed("error") == "e");
  REQUIRE(allowed("Error") == "e");
  REQUIRE(allowed("read or error") == "re");
  REQUIRE(allowed("read or refuse") == "re");
  REQUIRE(allowed("either refuse or read") == "re");
  REQUIRE(allowed("error or wrong values, no crash") == "ea");
  REQUIRE(allowed("error or treat the absent rows as missing") == "em");
  REQUIRE(allowed("error, or take the missing dates as missing") == "em");
  REQUIRE(allowed("read, error when used to normalise") == "rn");
  REQUIRE(allowed("error if normalised") == "rn");
  REQUIRE(allowed("error or read within a memory limit") == "re");
  REQUIRE(allowed("refuse, or read the values of good within a time and memory limit") == "re");
  REQUIRE(allowed("no crash") == "ea");
}

TEST_CASE("limits of an expectation with a number are those of the case", "[conformance]") {
  const IsolationLimits usual;
  const auto limits = [](const std::string& must) { return parse_expectation(must).limits; };
  REQUIRE(limits("read").extra_bytes == usual.extra_bytes);
  REQUIRE(limits("error or read within a memory limit").extra_bytes == usual.extra_bytes);
  REQUIRE(limits("error or read within 512 MB").extra_bytes == 512'000'000);
  REQUIRE(limits("error or read within 1.5 GiB of memory").extra_bytes == size_t{3} << 29);
  REQUIRE(limits("read within 20 s").seconds == 20);
  REQUIRE(limits("read within 20 s").extra_bytes == usual.extra_bytes);
  REQUIRE(limits("read in at most 2 minutes").seconds == 120);
}

TEST_CASE("words that are not known are quoted", "[conformance]") {
  for (const std::string must : {"sing", "read or sing", "error (or so)", "", "maybe, no crash"}) {
    INFO(must);
    REQUIRE_THROWS_AS(parse_expectation(must), NotUnderstood);
  }
  REQUIRE_THROWS_WITH(parse_expectation("read or sing"), ContainsSubstring("'sing'"));
}

TEST_CASE("notes open alternatives, and descriptions do not", "[conformance]") {
  for (const std::string note :
       {"trainers do not use this, refusing it is as right", "read it, or refuse and name the file",
        "a reader may also refuse it", "An error is as good."}) {
    INFO(note);
    REQUIRE(allowed("read", note) == "re");
  }
  for (const std::string note : {"reading it is as right", "it may be read", "or read as zeros"}) {
    INFO(note);
    REQUIRE(allowed("error", note) == "re");
  }
  REQUIRE(allowed("error", "treating the row as missing is fine") == "em");
  REQUIRE(allowed("error", "LZ4 has no checksum: a flipped byte may go unnoticed") == "ea");
  for (const std::string note :
       {"must not try to allocate it", "a recursive parser must not overflow the stack",
        "never in a read or write out of bounds", "the decoded chunk has half the bytes of <f8",
        "reading it is never right", "bare NaN is what Python's json writes"}) {
    INFO(note);
    REQUIRE(allowed("error", note) == "e");
    REQUIRE(allowed("read", note) == "r");
  }
}

TEST_CASE("a note gives rows other values", "[conformance]") {
  using Values = std::map<int64_t, float>;
  REQUIRE(noted_values("row 2 is 7.5 everywhere") == Values{{2, 7.5f}});
  REQUIRE(noted_values("rows 0, 2 and 4 are -1e-3; row 1 holds 4.") ==
          Values{{0, -1e-3f}, {1, 4.0f}, {2, -1e-3f}, {4, -1e-3f}});
  REQUIRE(noted_values("Rows 1 to 3 are all 0") == Values{{1, 0.0f}, {2, 0.0f}, {3, 0.0f}});
  REQUIRE(noted_values("all values are 3 everywhere") == Values{{-1, 3.0f}});
  REQUIRE(std::isnan(noted_values("row 1 is NaN everywhere").at(1)));
  REQUIRE(noted_values("row 2 is 3 days late").empty());
  REQUIRE(speaks_of_values("row 2 is the mean of its neighbours"));
  REQUIRE_FALSE(speaks_of_values("name the variable; never divide by zero silently"));
}

TEST_CASE("files, keys and variables must be named, descriptions may be put otherwise",
          "[conformance]") {
  const std::string message = "'STORE/data/2.0.0.0' is cut short: mean of variable '2t'";
  REQUIRE(names({"data/2.0.0.0", "mean", "2t"}, message) == Counts{1, 0, 0});
  REQUIRE(names({"data/2.0.0.0", "truncated or corrupt"}, message) == Counts{1, 0, 0});
  REQUIRE(names({"data/3.0.0.0"}, message) == Counts{0, 1, 0});
  REQUIRE(names({"tp"}, message) == Counts{0, 1, 0});
  REQUIRE(names({"stdev"}, message) == Counts{0, 1, 0});
  REQUIRE(names({".zattrs"}, message) == Counts{0, 1, 0});
  REQUIRE(names({"dates"}, message) == Counts{0, 1, 0});
  REQUIRE(names({}, message) == Counts{1, 0, 0});
}

TEST_CASE("words beside a chunk's file describe its bytes, beside metadata they are keys",
          "[conformance]") {
  const StoreNames known{{"2t"}, {"data"}};
  REQUIRE(kind_of_name("shape", known, /*beside_chunk=*/false) == NameKind::kKey);
  REQUIRE(kind_of_name("shape", known, /*beside_chunk=*/true) == NameKind::kDescription);
  REQUIRE(kind_of_name("data/.zarray", known, true) == NameKind::kFile);
  REQUIRE(kind_of_name("zarr.json", known, false) == NameKind::kFile);
  REQUIRE(kind_of_name("2t", known, true) == NameKind::kVariable);
  REQUIRE(kind_of_name("data", known, true) == NameKind::kKey);
  REQUIRE(kind_of_name("codec", known, false) == NameKind::kDescription);
  REQUIRE(kind_of_name("JSON", known, false) == NameKind::kDescription);
}

TEST_CASE("cases that are not understood are skipped, foreign errors fail in our words",
          "[conformance]") {
  REQUIRE(counts_of([](Comparison&) { throw NotUnderstood("x"); }) == Counts{0, 0, 1});
  REQUIRE(counts_of([](Comparison&) { throw NotSupported("x"); }) == Counts{0, 1, 0});
  REQUIRE(counts_of([](Comparison& c) { c.remark("x"); }) == Counts{0, 1, 0});  // nothing compared
  REQUIRE(counts_of([](Comparison& c) {
            c.remark("x");
            c.require(true, "");
          }) == Counts{1, 0, 0});
  const Json json{{"a", 1}};
  REQUIRE(counts_of([&](Comparison&) { json.at("b").get<int>(); }) == Counts{0, 1, 0});
}

TEST_CASE("limits stretch to the reference's own error, but not far", "[conformance]") {
  const auto passes = [](double error, double limit, double own_error) {
    Comparison comparison;
    comparison.add("x", error, limit, own_error);
    return comparison.passed();
  };
  REQUIRE(passes(1.0, 1.0, 0.0));
  REQUIRE_FALSE(passes(1.1, 1.0, 0.0));
  REQUIRE(passes(3.9, 1.0, 1.0));
  REQUIRE_FALSE(passes(4.1, 1.0, 1.0));
  REQUIRE(passes(9.9, 1.0, 100.0));
  REQUIRE_FALSE(passes(10.1, 1.0, 100.0));
  REQUIRE_FALSE(passes(NAN, 1.0, 100.0));
}

TEST_CASE("gradients in fp64 have a floor of 1e-13 of the model's largest", "[conformance]") {
  REQUIRE(kGradientF64 * gradient_scale_f64(1.0, 1.0) == Approx(1e-10));
  REQUIRE(kGradientF64 * gradient_scale_f64(1e-2, 1.0) == Approx(1e-12));
  REQUIRE(kGradientF64 * gradient_scale_f64(1e-9, 1.0) == Approx(1e-13));
  REQUIRE(kGradientF64 * gradient_scale_f64(0.0, 50.0) == Approx(5e-12));
  REQUIRE(gradient_scale_f64(0.0, 0.0) > 0.0);
}

TEST_CASE("losses in bfloat16 have 3e-3 for 20 steps, then 1e-2", "[conformance]") {
  REQUIRE(bf16_loss_limit(0) == 3e-3);
  REQUIRE(bf16_loss_limit(19) == 3e-3);
  REQUIRE(bf16_loss_limit(20) == 1e-2);
  REQUIRE(bf16_loss_limit(199) == 1e-2);
}

TEST_CASE("limits of normalised attributes grow as their norm stretches rounding",
          "[conformance]") {
  const std::vector<double> raw{0.10, 0.11, 0.12};
  const std::vector<double> scaled{10.0, 11.0, 12.0};
  REQUIRE(norm_slope(raw, scaled) == Approx(100.0));
  REQUIRE(norm_slope(std::vector<double>{2.0, 2.0}, std::vector<double>{1.0, 1.0}) == 1.0);
  REQUIRE(attribute_limits("EdgeLength", 1.0).float32 == 5e-5);
  REQUIRE(attribute_limits("EdgeLength", 1000.0).float32 == Approx(1e-3));
  REQUIRE(attribute_limits("EdgeLength", 1.0).float64 == 1e-12);
  REQUIRE(attribute_limits("EdgeDirection", 1.0).float32 == 2e-4);
  REQUIRE(attribute_limits("EdgeDirection", 10.0).float32 == Approx(1e-3));
  REQUIRE(raw_attribute_limit("DirectionalHarmonics", 5) == Approx(5e-4));
  REQUIRE(spread_limit(1e-6, 1.0) == Approx(1e-5));
  REQUIRE(spread_limit(0.0, 2.0) == Approx(8 * 0x1p-23));
}

TEST_CASE("planes of patches follow from their size and number", "[conformance]") {
  // Side by side, evenly overlapping, over the end: the plane is 6 x 8 each time.
  REQUIRE(planes_of_patches(48, {3, 4}, {2, 2}).front() == PatchedPlane{{6, 8}, {3, 4}});
  const auto has = [](const std::vector<PatchedPlane>& planes, const PatchedPlane& wanted) {
    return std::find(planes.begin(), planes.end(), wanted) != planes.end();
  };
  REQUIRE(has(planes_of_patches(48, {4, 4}, {2, 3}), {{6, 8}, {2, 2}}));
  REQUIRE(has(planes_of_patches(48, {4, 3}, {2, 3}), {{6, 8}, {4, 3}}));
  REQUIRE(planes_of_patches(47, {6, 6}, {2, 2}).empty());
}

TEST_CASE("every way to cut a plane is among those of its shapes", "[conformance]") {
  const auto count = [](int64_t length, int64_t size, int64_t stride) {
    int64_t patches = 1;
    for (int64_t end = size; end < length; end += stride)
      ++patches;
    return patches;
  };
  for (const Extent plane : {Extent{6, 8}, Extent{9, 5}, Extent{12, 20}, Extent{7, 7}}) {
    for (int64_t y = 1; y <= plane.y; ++y) {
      for (int64_t stride = 1; stride <= y; ++stride) {
        const Extent size{y, 4}, number{count(plane.y, y, stride), count(plane.x, 4, 4)};
        const auto planes = planes_of_patches(plane.y * plane.x, size, number);
        const bool found = std::any_of(planes.begin(), planes.end(), [&](const PatchedPlane& cut) {
          return cut.plane == plane && count(plane.y, y, cut.stride.y) == number.y &&
                 (cut.stride.y == stride || number.y == 1);
        });
        INFO(plane.y << " x " << plane.x << ", patches of " << y << ", stride " << stride);
        REQUIRE(found);
      }
    }
  }
}
