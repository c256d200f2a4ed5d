// SPDX-License-Identifier: Apache-2.0
#include "verify/spectrum_scores.h"

#include <numeric>

#include "core/check.h"
#include "core/time.h"
#include "data/sources/analytic_dataset.h"
#include "graph/nodes/gaussian_grid.h"
#include "tests/support/catch.h"
#include "tests/support/forecast_writer.h"
#include "tests/support/paths.h"

using namespace aifs;
using namespace aifs::verify;

namespace {

// Waves on o8 as truth, and a forecast of two members: the truth and the truth plus 2.
struct Case {
  test::TemporaryFolder folder;
  graph::Coordinates points = graph::gaussian_coordinates(graph::parse_gaussian_grid("o8"));
  data::AnalyticDataset dataset = waves(points);

  static data::AnalyticDataset waves(const graph::Coordinates& points) {
    data::AnalyticOptions options;
    options.start = "2020-01-01";
    options.end = "2020-01-02T06";
    options.max_degree = 4;
    return {options, points.lat_deg, points.lon_deg};
  }
  Case() {
    const std::vector<float> wanted = column("2020-01-02T06");
    test::ForecastSpec spec{.start = "2020-01-02 00:00:00", .members = 2};
    spec.latitudes = points.lat_deg, spec.longitudes = points.lon_deg;
    for (const double more : {0.0, 2.0})
      for (const float value : wanted)
        spec.values.push_back(static_cast<double>(value) + more);
    spec.values.resize(2 * spec.values.size(), 0.0);
    test::write_forecast(folder.path() / "f.nc", spec);
  }
  std::vector<float> column(const std::string& date) const {
    const auto width = static_cast<size_t>(dataset.info().num_variables());
    std::vector<float> all(points.lat_deg.size() * width), values;
    dataset.evaluate(parse_date(date), {0, points.num_points()}, all);
    for (size_t i = 0; i < points.lat_deg.size(); ++i)
      values.push_back(all[i * width + static_cast<size_t>(dataset.info().column("u_500"))]);
    return values;
  }
};

}  // namespace

TEST_CASE("spectra are means over members and forecasts, where there is truth",
          "[spectrum_scores]") {
  const Case data;
  const ForecastReader forecast(data.folder.path() / "f.nc");
  const ScoredParts parts{{"u_500"}, {21600, 43200}, {{"global"}}};
  Truth truth(data.dataset, forecast, parts.variables);
  const FieldSpectra spectra = spectra_of(forecast, "--spectra");
  const SpectrumSetup setup{
      spectra, spectrum_kinds({"zonal", "degree"}, spectra, parts.regions, "--spectra"), truth, 2};
  auto sums = make_spectrum_sums(setup, parts);
  add_forecast(forecast, setup, parts, sums);
  const auto rows = spectrum_rows(setup, parts, sums);
  REQUIRE(rows.size() == 2);  // nothing at 12 h, of which the dataset has no truth
  REQUIRE(rows[0]["kind"] == "zonal");
  REQUIRE(rows[1]["kind"] == "degree");
  for (const auto& row : rows) {
    REQUIRE(row["fields"] == 2);
    // One member errs by 2 everywhere, the other not at all.
    REQUIRE(row["error"][0].get<double>() == Approx(2.0).epsilon(1e-5));
    REQUIRE(row["error"][1].get<double>() == Approx(0.0).margin(1e-9));
  }
  const auto powers = rows[1]["truth"].get<std::vector<double>>();
  REQUIRE(powers.size() == 8);
  REQUIRE(powers[2] > 0.0);
  REQUIRE_THAT(spectra_csv(rows), ContainsSubstring("u_500,6.0,degree,global,7,"));
}

TEST_CASE("zonal spectra are of regions around the globe", "[spectrum_scores]") {
  const Case data;
  const FieldSpectra spectra = spectra_of(ForecastReader(data.folder.path() / "f.nc"), "");
  const auto kinds = spectrum_kinds(
      {"zonal"}, spectra,
      {parse_region("europe", ""), parse_region("nh", ""), parse_region("tropics", "")}, "");
  REQUIRE(kinds.size() == 2);
  REQUIRE(kinds[0].region == "nh");
  const std::vector<double>& weights = kinds[0].row_weights;
  REQUIRE(weights[0] > 0.0);
  REQUIRE(std::accumulate(weights.begin() + 8, weights.end(), 0.0) == 0.0);
}

TEST_CASE("spectra that a grid does not have are refused", "[spectrum_scores]") {
  const Case data;
  const FieldSpectra spectra = spectra_of(ForecastReader(data.folder.path() / "f.nc"), "");
  const std::vector<Region> global{{"global"}}, europe{parse_region("europe", "")};
  REQUIRE_THROWS_WITH(spectrum_kinds({"wavelet"}, spectra, global, "--spectra"),
                      ContainsSubstring("'--spectra'") && ContainsSubstring("wavelet"));
  REQUIRE_THROWS_WITH(spectrum_kinds({"zonal"}, spectra, europe, "--spectra"),
                      ContainsSubstring("around the globe"));
  const FieldSpectra regular(
      *latitude_rows(std::vector<double>{10, 10, -10, -10}, std::vector<double>{0, 180, 0, 180}));
  REQUIRE_THROWS_WITH(spectrum_kinds({"degree"}, regular, global, "--spectra"),
                      ContainsSubstring("not Gaussian"));
  test::write_forecast(data.folder.path() / "points.nc", {.values = std::vector<double>(8, 0.0)});
  REQUIRE_THROWS_WITH(spectra_of(ForecastReader(data.folder.path() / "points.nc"), "--spectra"),
                      ContainsSubstring("points.nc") && ContainsSubstring("no rows"));
}
