// SPDX-License-Identifier: Apache-2.0
#include "report/maps.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>

#include "core/check.h"
#include "core/time.h"
#include "report/map_points.h"
#include "report/page_text.h"
#include "report/round_digits.h"
#include "report/spectrum.h"
#include "verify/cell_weights.h"

namespace aifs::report {

namespace {

using Json = nlohmann::ordered_json;

template <class T>
bool holds(const std::vector<T>& list, const T& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// `most` of a list, evenly spread, with the last one.
template <class T>
std::vector<T> evenly(const std::vector<T>& all, size_t most) {
  const size_t count = std::min(all.size(), most);
  std::vector<T> chosen;
  for (size_t i = 1; i <= count; ++i)
    chosen.push_back(all[i * all.size() / count - 1]);
  return chosen;
}

void check_alike(const std::vector<NamedForecast>& forecasts) {
  const verify::ForecastReader& first = *forecasts.front().file;
  for (const NamedForecast& forecast : forecasts) {
    const verify::ForecastReader& file = *forecast.file;
    if (file.start_s() != first.start_s())
      throw DataError(concat("'", first.path(), "' starts from ", format_date(first.start_s()),
                             ", '", file.path(), "' from ", format_date(file.start_s())),
                      "choose a date that all have: --date");
    if (file.latitudes_deg() != first.latitudes_deg() ||
        file.longitudes_deg() != first.longitudes_deg())
      throw DataError(concat("'", first.path(), "' and '", file.path(), "' have different cells"),
                      "report forecasts of one grid at a time");
  }
}

// The names or lead times that all forecasts have, in the order of the first.
template <class T, class Get>
std::vector<T> common(const std::vector<NamedForecast>& forecasts, const Get& get) {
  std::vector<T> values = get(*forecasts.front().file);
  for (const NamedForecast& forecast : forecasts)
    std::erase_if(values, [&](const T& value) { return !holds(get(*forecast.file), value); });
  return values;
}

// The mean of the members of a field, (N).
std::vector<float> mean_field(const verify::ForecastReader& file, const std::string& variable,
                              int64_t lead_s) {
  const size_t lead = verify::lead_time_in(file, lead_s);
  const auto n = static_cast<size_t>(file.num_cells());
  const auto members = static_cast<size_t>(file.num_members());
  std::vector<float> all(members * n);
  file.read(variable, lead, all);
  std::vector<float> mean(n);
  for (size_t i = 0; i < n; ++i) {
    double sum = 0.0;
    for (size_t e = 0; e < members; ++e)
      sum += static_cast<double>(all[e * n + i]);
    mean[i] = static_cast<float>(sum / static_cast<double>(members));
  }
  return mean;
}

class MapWriter {
 public:
  MapWriter(const std::vector<NamedForecast>& forecasts, const MapChoice& choice,
            verify::Truth* truth, std::vector<int64_t> points)
      : forecasts_(forecasts),
        choice_(choice),
        truth_(truth),
        points_(std::move(points)),
        first_(*forecasts.front().file),
        circles_(latitude_circles(first_.latitudes_deg(), first_.longitudes_deg(), kSouth_deg,
                                  kNorth_deg)),
        weights_(verify::cell_weights(verify::WeightKind::kCosine, first_.latitudes_deg(),
                                      first_.longitudes_deg(), "--truth")) {
    for (const int64_t lead_s : evenly(choice_.lead_times_s, kMostSpectra))
      spectra_of_.push_back(lead_s);
  }

  Json write() const;

 private:
  static constexpr double kSouth_deg = 30.0, kNorth_deg = 60.0;
  static constexpr size_t kMostSpectra = 4, kMostWavenumbers = 160;

  Json variable(size_t v, const std::string& units) const;
  Json beside_truth(size_t v, const verify::ForecastReader& file,
                    const std::vector<std::vector<float>>& truths) const;
  Json field(std::span<const float> values) const;
  Json spectrum(std::span<const float> values, int64_t lead_s) const;
  Json coordinates(const std::vector<double>& degrees) const;
  std::vector<float> truth_at(size_t v, int64_t lead_s) const;

  const std::vector<NamedForecast>& forecasts_;
  const MapChoice& choice_;
  verify::Truth* truth_;
  std::vector<int64_t> points_;
  const verify::ForecastReader& first_;
  std::vector<LatitudeCircle> circles_;
  std::vector<double> weights_;
  std::vector<int64_t> spectra_of_;
};

Json MapWriter::coordinates(const std::vector<double>& degrees) const {
  std::vector<float> chosen;
  for (const int64_t point : points_)
    chosen.push_back(static_cast<float>(degrees[static_cast<size_t>(point)]));
  return base64_floats(chosen);
}

Json MapWriter::field(std::span<const float> values) const {
  const CodedField code = coded(values, points_);
  return {{"low", rounded(code.low, 7)},
          {"high", rounded(code.high, 7)},
          {"codes", base64(code.codes)}};
}

// Null at lead times that have none in the page.
Json MapWriter::spectrum(std::span<const float> values, int64_t lead_s) const {
  if (!holds(spectra_of_, lead_s)) return nullptr;
  const std::vector<double> power = zonal_spectrum(values, circles_, kMostWavenumbers);
  if (power.empty()) return nullptr;
  Json numbers = Json::array();
  for (const double value : power)
    numbers.push_back(rounded(value, 4));
  return numbers;
}

// Empty where there is none.
std::vector<float> MapWriter::truth_at(size_t v, int64_t lead_s) const {
  const auto fields = truth_ ? truth_->at(first_.start_s() + lead_s) : nullptr;
  if (!fields) return {};
  const auto n = first_.num_cells();
  const auto begin = fields->begin() + static_cast<std::ptrdiff_t>(v) * n;
  return {begin, begin + n};
}

// The fields of one forecast beside the truth, by lead time.
Json MapWriter::beside_truth(size_t v, const verify::ForecastReader& file,
                             const std::vector<std::vector<float>>& truths) const {
  Json own{{"fields", Json::array()}, {"errors", Json::array()},  {"rmse", Json::array()},
           {"bias", Json::array()},   {"spectra", Json::array()}, {"error_spectra", Json::array()}};
  for (size_t t = 0; t < truths.size(); ++t) {
    const int64_t lead_s = choice_.lead_times_s[t];
    const std::vector<float> values = mean_field(file, choice_.variables[v], lead_s);
    own["fields"].push_back(field(values));
    own["spectra"].push_back(spectrum(values, lead_s));
    const std::vector<float>& truth = truths[t];
    std::vector<float> errors(truth.size());
    for (size_t i = 0; i < errors.size(); ++i)
      errors[i] = values[i] - truth[i];
    const auto scores =
        truth.empty() ? std::nullopt : verify::score_field({values, truth, truth}, weights_);
    own["errors"].push_back(truth.empty() ? Json() : field(errors));
    own["error_spectra"].push_back(truth.empty() ? Json() : spectrum(errors, lead_s));
    own["rmse"].push_back(scores ? Json(rounded(std::sqrt(scores->squared_error), 5)) : Json());
    own["bias"].push_back(scores ? Json(rounded(scores->error, 5)) : Json());
  }
  return own;
}

Json MapWriter::variable(size_t v, const std::string& units) const {
  Json json{{"name", choice_.variables[v]},
            {"units", units},
            {"truth", Json::array()},
            {"truth_spectra", Json::array()},
            {"forecasts", Json::array()}};
  std::vector<std::vector<float>> truths;
  for (const int64_t lead_s : choice_.lead_times_s) {
    const std::vector<float>& truth = truths.emplace_back(truth_at(v, lead_s));
    json["truth"].push_back(truth.empty() ? Json() : field(truth));
    json["truth_spectra"].push_back(truth.empty() ? Json() : spectrum(truth, lead_s));
  }
  for (const NamedForecast& forecast : forecasts_)
    json["forecasts"].push_back(beside_truth(v, *forecast.file, truths));
  return json;
}

Json MapWriter::write() const {
  Json json{{"start", format_date(first_.start_s())},
            {"num_points", points_.size()},
            {"num_cells", first_.num_cells()},
            {"num_members", first_.num_members()},
            {"has_truth", truth_ != nullptr},
            {"lat", coordinates(first_.latitudes_deg())},
            {"lon", coordinates(first_.longitudes_deg())},
            {"num_circles", circles_.size()},
            {"forecasts", Json::array()},
            {"lead_times_h", Json::array()},
            {"variables", Json::array()}};
  for (const NamedForecast& forecast : forecasts_)
    json["forecasts"].push_back(forecast.name);
  for (const int64_t lead_s : choice_.lead_times_s)
    json["lead_times_h"].push_back(static_cast<double>(lead_s) / 3600.0);
  const std::vector<std::string>& names = first_.variables();
  for (size_t v = 0; v < choice_.variables.size(); ++v) {
    const auto place = std::find(names.begin(), names.end(), choice_.variables[v]) - names.begin();
    json["variables"].push_back(variable(v, first_.units()[static_cast<size_t>(place)]));
  }
  return json;
}

// How many points a page has room for, if each has a byte for every field, in base64.
int64_t room_for_points(const MapChoice& choice, size_t num_forecasts, bool has_truth,
                        int64_t most_bytes) {
  const auto num_fields =
      static_cast<int64_t>(choice.variables.size() * choice.lead_times_s.size() *
                           (has_truth ? 1 + 2 * num_forecasts : num_forecasts));
  constexpr int64_t kCoordinates = 8, kFewest = 500;
  const int64_t room = most_bytes * 3 / 4 / (num_fields + kCoordinates);
  if (room >= kFewest) return room;
  throw ConfigError("--variables",
                    concat(num_fields, " fields leave room for ", std::max<int64_t>(0, room),
                           " points each in a page of this size"),
                    "name fewer variables or --lead-times, or raise --max-mb");
}

}  // namespace

MapChoice choose_maps(const std::vector<NamedForecast>& forecasts, const MapChoice& wanted) {
  check_alike(forecasts);
  const auto names = common<std::string>(
      forecasts, [](const verify::ForecastReader& file) { return file.variables(); });
  const auto leads = common<int64_t>(
      forecasts, [](const verify::ForecastReader& file) { return file.lead_times_s(); });
  if (names.empty() || leads.empty())
    throw DataError("the forecasts have no variables or no lead times in common");
  for (const std::string& name : wanted.variables) {
    if (!holds(names, name))
      throw ConfigError("--variables", concat("the forecasts have no variable '", name, "'"),
                        nearest_names(name, names));
  }
  for (const int64_t lead_s : wanted.lead_times_s) {
    if (!holds(leads, lead_s))
      throw ConfigError(
          "--lead-times", concat("the forecasts have no fields at ", format_lead_time(lead_s)),
          concat("they have ", leads.size(), " lead times up to ", format_lead_time(leads.back())));
  }
  MapChoice choice = wanted;
  if (choice.variables.empty())
    choice.variables.assign(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                               names.size(), kMostMapVariables)));
  if (choice.lead_times_s.empty()) choice.lead_times_s = evenly(leads, kMostMapLeadTimes);
  std::sort(choice.lead_times_s.begin(), choice.lead_times_s.end());
  return choice;
}

nlohmann::ordered_json maps_json(const std::vector<NamedForecast>& forecasts,
                                 const MapChoice& choice, verify::Truth* truth,
                                 int64_t most_bytes) {
  const verify::ForecastReader& first = *forecasts.front().file;
  const int64_t most = room_for_points(choice, forecasts.size(), truth != nullptr, most_bytes);
  std::vector<int64_t> points = even_points(first.latitudes_deg(), first.longitudes_deg(), most);
  return MapWriter(forecasts, choice, truth, std::move(points)).write();
}

}  // namespace aifs::report
