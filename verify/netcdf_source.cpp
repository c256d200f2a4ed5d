// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "core/check.h"
#include "core/time.h"
#include "data/sources/netcdf_file.h"
#include "verify/forecast_source.h"

namespace aifs::verify {

namespace {

class NetcdfSource : public ForecastSource {
 public:
  explicit NetcdfSource(const fs::path& path) : file_(path.string()) {
    description_.path = file_.path();
    read_times();
    read_cells();
    read_variables();
  }

  const ForecastDescription& description() const override { return description_; }

  void read(const std::string& name, size_t lead_time, std::span<float> out) const override {
    const data::NetcdfVariable& variable = find(name);
    std::vector<int64_t> start(variable.shape.size(), 0), count = variable.shape;
    start[0] = static_cast<int64_t>(lead_time);
    count[0] = 1;
    file_.read(variable, start, count, out.data());
  }

 private:
  DataError error(const std::string& what) const {
    return DataError(concat("'", file_.path(), "'", what), kForecastHint);
  }
  const data::NetcdfVariable& find(const std::string& name) const {
    const data::NetcdfVariable* found = file_.find(name);
    if (!found) throw error(concat(" has no variable '", name, "'"));
    return *found;
  }
  void read_times();
  void read_cells();
  void read_variables();

  data::NetcdfFile file_;
  ForecastDescription description_;
};

void NetcdfSource::read_variables() {
  ForecastDescription& d = description_;
  const auto num_fields = static_cast<int64_t>(d.lead_times_s.size());
  const auto num_cells = static_cast<int64_t>(d.latitudes_deg.size());
  for (const data::NetcdfVariable& variable : file_.variables()) {
    const bool is_field = variable.dimensions.size() > 1 && variable.dimensions[0] == "time";
    if (!is_field) continue;
    const int64_t members = variable.dimensions[1] == "member" ? variable.shape[1] : 1;
    if (d.variables.empty()) d.num_members = members;
    if (members != d.num_members || variable.shape[0] != num_fields ||
        variable.num_items() != num_fields * d.num_members * num_cells)
      throw error(concat(": '", variable.name,
                         "' has another shape than the coordinates, or variables before it"));
    d.variables.push_back(variable.name);
    d.units.push_back(file_.text(variable, "units"));
  }
  if (d.variables.empty()) throw error(" has no fields");
}

void NetcdfSource::read_times() {
  const data::NetcdfVariable& time = find("time");
  const std::string units = file_.text(time, "units"), since = "seconds since ";
  if (!units.starts_with(since))
    throw error(
        concat(": 'time' is in '", units, "', expected seconds since the start of the forecast"));
  try {
    description_.start_s = parse_date(units.substr(since.size()));
  } catch (const Error& cause) {
    throw error(concat(": units of 'time', '", units, "': ", cause.what()));
  }
  for (const double seconds : file_.read_all(time))
    description_.lead_times_s.push_back(std::llround(seconds));
}

void NetcdfSource::read_cells() {
  ForecastDescription& d = description_;
  const data::NetcdfVariable& latitude = find("latitude");
  const std::vector<double> latitudes = file_.read_all(latitude);
  const std::vector<double> longitudes = file_.read_all(find("longitude"));
  if (latitude.dimensions != std::vector<std::string>{"latitude"}) {  // of each cell
    if (latitudes.size() != longitudes.size())
      throw error(
          concat(" has ", latitudes.size(), " latitudes and ", longitudes.size(), " longitudes"));
    d.latitudes_deg = latitudes, d.longitudes_deg = longitudes;
    return;
  }
  for (const double lat : latitudes) {
    for (const double lon : longitudes) {
      d.latitudes_deg.push_back(lat);
      d.longitudes_deg.push_back(lon);
    }
  }
}

}  // namespace

std::unique_ptr<ForecastSource> open_netcdf_forecast(const fs::path& path) {
  return std::make_unique<NetcdfSource>(path);
}

}  // namespace aifs::verify
