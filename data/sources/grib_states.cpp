// SPDX-License-Identifier: Apache-2.0
#include "data/sources/grib_states.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <utility>

#include "core/check.h"
#include "core/file_io.h"
#include "core/time.h"
#include "data/sources/grib_message.h"

namespace aifs::data {

namespace {

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using OpenFile = std::unique_ptr<std::FILE, FileCloser>;

OpenFile open_file(const std::string& path) {
  OpenFile file(std::fopen(path.c_str(), "rb"));
  if (!file) throw DataError(concat("cannot open '", path, "': ", system_error_text()));
  return file;
}

// "t_500": the level of pressure levels, in hPa, and of model levels.
std::string name_of(const GribMessage& message) {
  const std::string name = message.text("shortName"), type = message.text("typeOfLevel");
  const int64_t level = message.find_integer("level").value_or(0);
  if (type == "isobaricInhPa" || type == "hybrid") return concat(name, "_", level);
  if (type == "isobaricInPa") return concat(name, "_", static_cast<double>(level) / 100.0);
  return name;
}

int64_t date_of(const GribMessage& message) {
  const int64_t day = message.integer("validityDate"), time = message.integer("validityTime");
  return from_calendar({.year = day / 10000,
                        .month = static_cast<int>(day / 100 % 100),
                        .day = static_cast<int>(day % 100),
                        .hour = static_cast<int>(time / 100),
                        .minute = static_cast<int>(time % 100)});
}

// The coordinates that unstructured grids have as fields: 1 latitudes, 2 longitudes; 0: none.
int64_t coordinate_number(const GribMessage& message) {
  const auto is = [&](const char* key, int64_t value) {
    return message.find_integer(key) == value;
  };
  if (!is("edition", 2) || !is("discipline", 0) || !is("parameterCategory", 191)) return 0;
  const int64_t number = message.integer("parameterNumber");
  return number <= 2 ? number : 0;
}

class GribStates : public StateFile {
 public:
  explicit GribStates(const std::string& path) : path_(path) {
    const OpenFile file = open_file(path);
    while (std::optional<GribMessage> message = GribMessage::read_next(file.get(), path))
      add(*message);
    for (auto& [key, offsets] : members_) {
      std::vector<int64_t> in_order;
      for (const auto& [number, offset] : offsets)
        in_order.push_back(offset);
      StateField field = described_.at(key);
      field.members = std::ssize(in_order);
      fields_.push_back(std::move(field));
      offsets_.push_back(std::move(in_order));
    }
  }

  const std::string& path() const override { return path_; }
  const std::vector<StateField>& fields() const override { return fields_; }
  const std::vector<StateGrid>& grids() const override { return grids_; }

  void read(size_t field, std::span<float> out) const override {
    const auto cells = static_cast<size_t>(grids_[fields_[field].grid].num_cells);
    AIFS_CHECK(out.size() == offsets_[field].size() * cells, "room for ", out.size(), " values");
    for (size_t m = 0; m < offsets_[field].size(); ++m)
      read_message(field, offsets_[field][m], out.subspan(m * cells, cells));
  }

 private:
  using Key = std::pair<std::string, int64_t>;  // name, date

  void add(GribMessage& message) {
    const size_t grid = grid_of(message);
    if (const int64_t number = coordinate_number(message); number > 0) {
      (number == 1 ? grids_[grid].latitudes_deg : grids_[grid].longitudes_deg) =
          message.reals("values");
      return;
    }
    const Key key{name_of(message), date_of(message)};
    const int64_t member = message.find_integer("number").value_or(0);
    const bool is_new = members_[key].try_emplace(member, message.integer("offset")).second;
    const StateField field{key.first, message.text("units"), key.second, 1, grid};
    const auto [described, is_first] = described_.try_emplace(key, field);
    // Many files have more than states are made of: whether it matters is for them to say.
    if (!is_new) described->second.is_ambiguous = true;
    if (!is_first && is_new && described->second.grid != grid)
      throw DataError(
          concat("GRIB file '", path_, "': members of '", key.first, "' are on different grids"));
  }

  size_t grid_of(const GribMessage& message) {
    const std::string key = message.text("md5GridSection");
    const auto [found, is_new] = grid_numbers_.try_emplace(key, grids_.size());
    if (!is_new) return found->second;
    StateGrid grid{.latitudes_deg = {},
                   .longitudes_deg = {},
                   .num_cells = message.integer("numberOfDataPoints")};
    if (message.text("gridType") != "unstructured_grid") {
      grid.latitudes_deg = message.reals("latitudes");
      grid.longitudes_deg = message.reals("longitudes");
    }
    grids_.push_back(std::move(grid));
    return found->second;
  }

  void read_message(size_t field, int64_t offset, std::span<float> out) const {
    const OpenFile file = open_file(path_);
    std::optional<GribMessage> message;
    if (std::fseek(file.get(), static_cast<long>(offset), SEEK_SET) == 0)
      message = GribMessage::read_next(file.get(), path_);
    const std::vector<double> values = message ? values_of(*message) : std::vector<double>();
    if (values.size() != out.size())
      throw DataError(concat("GRIB file '", path_, "': '", fields_[field].name,
                             "' has changed since the file was opened"));
    std::ranges::transform(values, out.begin(), [](double value) {
      return value == kMissing ? std::numeric_limits<float>::quiet_NaN()
                               : static_cast<float>(value);
    });
  }

  static std::vector<double> values_of(GribMessage& message) {
    message.set("missingValue", kMissing);
    return message.reals("values");
  }

  static constexpr double kMissing = 1e30;
  std::string path_;
  std::map<std::string, size_t> grid_numbers_;         // by their checksum
  std::map<Key, std::map<int64_t, int64_t>> members_;  // offsets by the number of the member
  std::map<Key, StateField> described_;
  std::vector<StateGrid> grids_;
  std::vector<StateField> fields_;
  std::vector<std::vector<int64_t>> offsets_;  // of each field, by member
};

}  // namespace

std::unique_ptr<StateFile> open_grib_states(const std::string& path, const std::string& option) {
  require_grib(option);
  try {
    return std::make_unique<GribStates>(path);
  } catch (const DataError&) {
    throw;
  } catch (const Error& error) {
    throw DataError(concat("GRIB file '", path, "': ", error.what()), error.hint());
  }
}

}  // namespace aifs::data
