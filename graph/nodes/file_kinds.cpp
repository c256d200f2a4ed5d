// SPDX-License-Identifier: Apache-2.0
#include "graph/nodes/file_kinds.h"

#include <sstream>

#include "core/check.h"
#include "core/npz.h"
#include "graph/base/netcdf_arrays.h"

namespace aifs::graph {

namespace {

void require_file(const std::string& file, const std::string& path) {
  if (file.empty()) throw ConfigError(path + ".file", "no file is named");
}

// The numbers of a line, separated by white space or commas.
std::vector<double> numbers_of(std::string line, const std::string& file, size_t number) {
  for (char& c : line)
    if (c == ',' || c == ';') c = ' ';
  std::istringstream words(line);
  std::vector<double> numbers;
  for (std::string word; words >> word;) {
    char* end = nullptr;
    numbers.push_back(std::strtod(word.c_str(), &end));
    if (*end == '\0') continue;
    throw DataError(concat("'", file, "', line ", number, ": '", word, "' is no number"));
  }
  return numbers;
}

// Lines that hold numbers; "#" begins a comment.
std::vector<std::vector<double>> table_of(const std::string& file) {
  if (!path_exists(file)) throw DataError(concat("there is no file '", file, "'"));
  std::istringstream lines(read_file(file));
  std::vector<std::vector<double>> table;
  size_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::vector<double> numbers = numbers_of(line.substr(0, line.find('#')), file, number);
    if (!numbers.empty()) table.push_back(std::move(numbers));
  }
  return table;
}

}  // namespace

void LatLonKind::bind(config::Binder& b) {
  b.number_list("latitudes", latitudes, {.min = -90.0, .max = 90.0}, {"of the nodes", "degrees"});
  b.number_list("longitudes", longitudes, {.min = -360.0, .max = 540.0},
                {"of the nodes", "degrees"});
  b.choice("coordinates", coordinates, {"arithmetic that turns degrees into radians"});
}

void LatLonKind::validate(const std::string& path) const {
  if (latitudes.empty()) throw ConfigError(path + ".latitudes", "there are none");
  if (latitudes.size() == longitudes.size()) return;
  throw ConfigError(path + ".longitudes", concat("there are ", longitudes.size(), " of them, and ",
                                                 latitudes.size(), " latitudes"));
}

MeshNodes LatLonKind::make(const NodePlace& place) const {
  NodePlace own = place;
  own.arithmetic = coordinates;
  return {.set = own.at_degrees({latitudes, longitudes})};
}

void NpzKind::bind(config::Binder& b) {
  b.text("file", file, {"file of NumPy arrays (.npz)"}, config::TextKind::kPath);
  b.text("latitudes", latitudes, {"name of the array of latitudes, in degrees"});
  b.text("longitudes", longitudes, {"name of the array of longitudes, in degrees"});
}

void NpzKind::validate(const std::string& path) const {
  require_file(file, path);
}

MeshNodes NpzKind::make(const NodePlace& place) const {
  const NpzFile arrays(file);
  return {.set = place.at_degrees({arrays.numbers(latitudes), arrays.numbers(longitudes)})};
}

void LimitedAreaNpzKind::bind(config::Binder& b) {
  NpzKind::bind(b);
  area.bind(b);
}

MeshNodes LimitedAreaNpzKind::make(const NodePlace& place) const {
  return limited_to(area.make(place), NpzKind::make(place));
}

void TextKind::bind(config::Binder& b) {
  b.text("file", file, {"text file; numbers are separated by white space or commas"},
         config::TextKind::kPath);
  b.integer("latitude_line", latitude_line, {.min = 0},
            {"which of the lines with numbers, from 0, holds all latitudes in degrees"});
  b.integer("longitude_line", longitude_line, {.min = 0}, {"which holds all longitudes"});
}

void TextKind::validate(const std::string& path) const {
  require_file(file, path);
}

MeshNodes TextKind::make(const NodePlace& place) const {
  const auto table = table_of(file);
  const auto line = [&](int64_t number, const char* key) {
    if (number < static_cast<int64_t>(table.size())) return table[static_cast<size_t>(number)];
    throw ConfigError(concat(place.path, ".", key),
                      concat("line ", number, " (from 0) of '", file, "', which has ", table.size(),
                             " lines with numbers"),
                      "a line holds one coordinate of all nodes; a file of columns must be turned");
  };
  return {.set = place.at_degrees(
              {line(latitude_line, "latitude_line"), line(longitude_line, "longitude_line")})};
}

void NetcdfKind::bind(config::Binder& b) {
  b.text("file", file, {"netCDF file"}, config::TextKind::kPath);
  b.text("latitudes", latitudes, {"variable of latitudes, in degrees"});
  b.text("longitudes", longitudes,
         {"variable of longitudes, in degrees, of the size of the other: one pair for each node"});
}

void NetcdfKind::validate(const std::string& path) const {
  require_file(file, path);
}

MeshNodes NetcdfKind::make(const NodePlace& place) const {
  const NetcdfArrays arrays(file);
  return {.set = place.at_degrees({arrays.numbers(latitudes), arrays.numbers(longitudes)})};
}

}  // namespace aifs::graph
