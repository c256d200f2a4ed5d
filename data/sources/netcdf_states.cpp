// SPDX-License-Identifier: Apache-2.0
#include "data/sources/netcdf_states.h"

#include <map>

#include "data/sources/cf_fields.h"

namespace aifs::data {

namespace {

// What variables are called in netCDF files, whose names do not begin with digits.
std::string anemoi_name(const std::string& name) {
  static const std::map<std::string, std::string> names{{"t2m", "2t"},    {"d2m", "2d"},
                                                        {"u10", "10u"},   {"v10", "10v"},
                                                        {"u100", "100u"}, {"v100", "100v"}};
  const auto found = names.find(name);
  return found == names.end() ? name : found->second;
}

class NetcdfStates : public StateFile {
 public:
  explicit NetcdfStates(const std::string& path) : file_(path), content_(read_cf_file(file_, {})) {
    if (!content_.grid) return;
    grids_.push_back({content_.grid->latitudes_deg, content_.grid->longitudes_deg,
                      std::ssize(content_.grid->latitudes_deg)});
    for (size_t f = 0; f < content_.fields.size(); ++f) {
      const CfField& field = content_.fields[f];
      const StateField named{anemoi_name(field.name), field.units, {}, field.members, 0};
      if (field.time_axis < 0) {
        add(named, f, 0);
        continue;
      }
      const std::string& time = field.variable.dimensions[static_cast<size_t>(field.time_axis)];
      const std::vector<int64_t>& dates_s = content_.dates_s.at(time);
      for (size_t t = 0; t < dates_s.size(); ++t) {
        StateField dated = named;
        dated.date_s = dates_s[t];
        add(dated, f, static_cast<int64_t>(t));
      }
    }
  }

  const std::string& path() const override { return file_.path(); }
  const std::vector<StateField>& fields() const override { return fields_; }
  const std::vector<StateGrid>& grids() const override { return grids_; }

  void read(size_t field, std::span<float> out) const override {
    const Place& place = places_[field];
    read_cf_field(file_, *content_.grid, content_.fields[place.field], place.time,
                  {0, grids_.front().num_cells}, out);
  }

 private:
  struct Place {
    size_t field = 0;
    int64_t time = 0;
  };
  void add(const StateField& named, size_t field, int64_t time) {
    fields_.push_back(named);
    places_.push_back({field, time});
  }

  NetcdfFile file_;
  CfFile content_;
  std::vector<StateField> fields_;
  std::vector<Place> places_;  // of the fields
  std::vector<StateGrid> grids_;
};

}  // namespace

std::unique_ptr<StateFile> open_netcdf_states(const std::string& path) {
  return std::make_unique<NetcdfStates>(path);
}

}  // namespace aifs::data
