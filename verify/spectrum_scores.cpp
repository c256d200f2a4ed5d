// SPDX-License-Identifier: Apache-2.0
#include "verify/spectrum_scores.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/check.h"
#include "core/run_on_threads.h"
#include "verify/degrees.h"

namespace aifs::verify {

namespace {

using Json = nlohmann::ordered_json;

// (rows) 0 where a region has no row; all 0 if it does not reach around the globe.
std::vector<double> row_weights(const Region& region, const LatitudeRows& rows) {
  std::vector<double> weights(static_cast<size_t>(rows.num_rows()), 0.0);
  const bool is_band =
      region.part == RegionPart::kAll && region.east_deg - region.west_deg >= 360.0;
  for (size_t r = 0; is_band && r < weights.size(); ++r)
    if (region.contains(rows.latitudes_deg[r], 0.0))
      weights[r] = std::max(std::cos(rows.latitudes_deg[r] * kRadiansOfDegree), 1e-12);
  return weights;
}

// The fields of some variables at one lead time, which a thread transforms together: harmonics of
// a latitude are computed once for all of them.
class Batch {
 public:
  Batch(const SpectrumSetup& setup, const ScoredParts& parts, size_t lead_time)
      : setup_(setup), parts_(parts), lead_time_(lead_time) {}

  // Reads and transforms a variable, all members; `truth` is (variables, N).
  void add(const ForecastReader& forecast, size_t variable, const std::vector<float>& truth) {
    const auto n = static_cast<size_t>(forecast.num_cells());
    std::vector<float> values(static_cast<size_t>(forecast.num_members()) * n);
    forecast.read(parts_.variables[variable],
                  lead_time_in(forecast, parts_.lead_times_s[lead_time_]), values);
    const FieldSpectra::Rows wanted =
        setup_.spectra.transform(std::span(truth).subspan(variable * n, n));
    for (size_t first = 0; first < values.size(); first += n)
      fields_.push_back(
          {variable, setup_.spectra.transform(std::span(values).subspan(first, n)), wanted});
  }

  // Adds the spectra to the sums of their variables.
  void finish(std::vector<SpectrumSum>& sums) const {
    for (size_t kind = 0; kind < setup_.kinds.size(); ++kind) {
      const SpectrumKind& wanted = setup_.kinds[kind];
      std::vector<std::optional<PowerSpectra>> found;
      if (wanted.name == "degree") {
        std::vector<FieldSpectra::Pair> pairs;
        for (const Field& field : fields_)
          pairs.push_back({field.forecast, field.truth});
        found = setup_.spectra.by_degree(pairs);
      } else {
        for (const Field& field : fields_)
          found.push_back(setup_.spectra.zonal(field.forecast, field.truth, wanted.row_weights));
      }
      for (size_t i = 0; i < fields_.size(); ++i) {
        if (!found[i]) continue;
        const size_t lead = fields_[i].variable * parts_.lead_times_s.size() + lead_time_;
        SpectrumSum& sum = sums[lead * setup_.kinds.size() + kind];
        sum.powers.add(*found[i]);
        ++sum.count;
      }
    }
  }

 private:
  struct Field {
    size_t variable;
    FieldSpectra::Rows forecast, truth;
  };
  const SpectrumSetup& setup_;
  const ScoredParts& parts_;
  size_t lead_time_;
  std::vector<Field> fields_;
};

}  // namespace

FieldSpectra spectra_of(const ForecastReader& forecast, const std::string& option) {
  auto rows = latitude_rows(forecast.latitudes_deg(), forecast.longitudes_deg());
  if (!rows)
    throw ConfigError(option,
                      concat("the cells of '", forecast.path(),
                             "' are no rows around the globe, at equal distances"),
                      "spectra are of regular and reduced grids");
  return FieldSpectra(std::move(*rows));
}

std::vector<SpectrumKind> spectrum_kinds(const std::vector<std::string>& names,
                                         const FieldSpectra& spectra,
                                         const std::vector<Region>& regions,
                                         const std::string& option) {
  std::vector<SpectrumKind> kinds;
  for (const std::string& name : names) {
    if (name == "degree") {
      if (!spectra.has_degrees())
        throw ConfigError(option,
                          "the grid is not Gaussian, or finer than N320: it has no spectrum by "
                          "degree",
                          "choose 'zonal'");
      kinds.push_back({name, "global"});
      continue;
    }
    if (name != "zonal")
      throw ConfigError(option, concat("there is no spectrum '", name, "'"), "zonal, degree");
    const size_t before = kinds.size();
    for (const Region& region : regions) {
      std::vector<double> weights = row_weights(region, spectra.rows());
      if (std::any_of(weights.begin(), weights.end(), [](double w) { return w > 0.0; }))
        kinds.push_back({name, region.name, std::move(weights)});
    }
    if (kinds.size() == before)
      throw ConfigError(option, "no region reaches around the globe",
                        "--regions global, nh, sh, tropics, or name=north/-180/south/180");
  }
  return kinds;
}

std::vector<SpectrumSum> make_spectrum_sums(const SpectrumSetup& setup, const ScoredParts& parts) {
  return std::vector<SpectrumSum>(parts.variables.size() * parts.lead_times_s.size() *
                                  setup.kinds.size());
}

void add_forecast(const ForecastReader& forecast, const SpectrumSetup& setup,
                  const ScoredParts& parts, std::vector<SpectrumSum>& sums) {
  constexpr size_t kTogether = 4;  // variables
  setup.truth.check_cells(forecast);
  const size_t num_batches = (parts.variables.size() + kTogether - 1) / kTogether;
  for (size_t t = 0; t < parts.lead_times_s.size(); ++t) {
    const auto truth = setup.truth.at(forecast.start_s() + parts.lead_times_s[t]);
    if (!truth) continue;
    run_on_threads(static_cast<int64_t>(num_batches), setup.threads, [&](int64_t item) {
      Batch batch(setup, parts, t);
      const size_t first = static_cast<size_t>(item) * kTogether;
      for (size_t v = first; v < std::min(first + kTogether, parts.variables.size()); ++v)
        batch.add(forecast, v, *truth);
      batch.finish(sums);
    });
  }
}

std::vector<Json> spectrum_rows(const SpectrumSetup& setup, const ScoredParts& parts,
                                const std::vector<SpectrumSum>& sums) {
  std::vector<Json> rows;
  size_t place = 0;
  for (const std::string& variable : parts.variables) {
    for (const int64_t lead_s : parts.lead_times_s) {
      for (const SpectrumKind& kind : setup.kinds) {
        const SpectrumSum& sum = sums[place++];
        if (sum.count == 0) continue;
        PowerSpectra mean = sum.powers;
        mean.divide(static_cast<double>(sum.count));
        rows.push_back({{"variable", variable},
                        {"lead_time_h", static_cast<double>(lead_s) / 3600.0},
                        {"kind", kind.name},
                        {"region", kind.region},
                        {"fields", sum.count},
                        {"forecast", mean.forecast},
                        {"truth", mean.truth},
                        {"error", mean.error}});
      }
    }
  }
  return rows;
}

std::string spectra_csv(const std::vector<Json>& rows) {
  std::string text = "variable,lead_time_h,kind,region,wavenumber,forecast,truth,error\n";
  for (const Json& row : rows) {
    const std::string head =
        concat(row["variable"].get<std::string>(), ",", row["lead_time_h"].dump(), ",",
               row["kind"].get<std::string>(), ",", row["region"].get<std::string>(), ",");
    for (size_t k = 0; k < row["forecast"].size(); ++k)
      text += concat(head, k, ",", row["forecast"][k].dump(), ",", row["truth"][k].dump(), ",",
                     row["error"][k].dump(), "\n");
  }
  return text;
}

}  // namespace aifs::verify
