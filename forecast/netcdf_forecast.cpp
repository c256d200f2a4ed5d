// SPDX-License-Identifier: Apache-2.0
#include "forecast/netcdf_forecast.h"

#include <netcdf.h>

#include <future>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <sstream>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/join.h"
#include "core/netcdf_lock.h"
#include "core/time.h"
#include "data/fields/variables.h"
#include "forecast/chunk_writer.h"

namespace aifs::forecast {

namespace {

constexpr float kFill = std::numeric_limits<float>::quiet_NaN();

// What the CF standard name table calls parameters as weather centres name them, with the units of
// datasets that do not say theirs.
struct KnownParameter {
  const char *name, *standard_name, *units;
};
constexpr KnownParameter kKnown[] = {
    {"10u", "eastward_wind", "m s-1"},
    {"10v", "northward_wind", "m s-1"},
    {"2d", "dew_point_temperature", "K"},
    {"2t", "air_temperature", "K"},
    {"lsm", "land_binary_mask", "1"},
    {"msl", "air_pressure_at_mean_sea_level", "Pa"},
    {"q", "specific_humidity", "kg kg-1"},
    {"skt", "surface_temperature", "K"},
    {"sp", "surface_air_pressure", "Pa"},
    {"t", "air_temperature", "K"},
    {"u", "eastward_wind", "m s-1"},
    {"v", "northward_wind", "m s-1"},
    {"vo", "atmosphere_relative_vorticity", "s-1"},
    {"w", "lagrangian_tendency_of_air_pressure", "Pa s-1"},
    {"z", "geopotential", "m2 s-2"},
};

// Latitudes of the rows and longitudes of the columns, if all cells are where these cross.
struct Axes {
  std::vector<double> latitudes, longitudes;
};
std::optional<Axes> axes_of(const ForecastContents& contents) {
  if (contents.field_shape.size() != 2) return std::nullopt;
  const auto rows = static_cast<size_t>(contents.field_shape[0]);
  const auto columns = static_cast<size_t>(contents.field_shape[1]);
  Axes axes;
  for (size_t r = 0; r < rows; ++r)
    axes.latitudes.push_back(contents.latitudes_deg[r * columns]);
  for (size_t c = 0; c < columns; ++c)
    axes.longitudes.push_back(contents.longitudes_deg[c]);
  for (size_t i = 0; i < rows * columns; ++i) {
    if (contents.latitudes_deg[i] != axes.latitudes[i / columns] ||
        contents.longitudes_deg[i] != axes.longitudes[i % columns])
      return std::nullopt;
  }
  return axes;
}

class NetcdfForecast : public ForecastFile {
 public:
  NetcdfForecast(fs::path path, ForecastContents contents, int compression)
      : path_(std::move(path)),
        contents_(std::move(contents)),
        temporary_(contents_.partial.path.empty() ? temporary_name(path_)
                                                  : contents_.partial.path) {
    const std::lock_guard lock(netcdf_mutex());
    set_cell_lengths();
    const bool goes_on = !contents_.partial.state.empty();
    if (!goes_on)
      check(nc_create(temporary_.c_str(), NC_NETCDF4 | NC_CLOBBER, &id_), "cannot be created");
    try {
      if (goes_on) {
        open_kept(compression > 0);
      } else {
        define(compression);
      }
      if (compression > 0) compress_beside(compression);
    } catch (...) {
      discard();
      throw;
    }
  }
  ~NetcdfForecast() override {
    const std::lock_guard lock(netcdf_mutex());
    discard();
  }

  void write(int64_t lead_time, std::span<const float> fields) override {
    const size_t num_variables = contents_.variables.size();
    const auto members = static_cast<size_t>(contents_.num_members);
    const size_t cells = contents_.latitudes_deg.size();
    AIFS_CHECK(fields.size() == members * num_variables * cells, "fields of another size");
    std::vector<ChunkWriter::Chunk> chunks;
    for (size_t v = 0; v < num_variables; ++v) {
      for (size_t e = 0; e < members; ++e) {
        const Slab slab = slab_of(static_cast<size_t>(lead_time), e);
        chunks.push_back({v, slab.start, fields.subspan((e * num_variables + v) * cells, cells)});
      }
    }
    // For restarts, beside the writing.
    std::future<std::string> digest;
    if (!contents_.partial.path.empty())
      digest = std::async(std::launch::async, [=] { return sha256_hex(std::as_bytes(fields)); });
    if (chunks_) {
      chunks_->write(chunks);
    } else {
      put(chunks, static_cast<size_t>(lead_time));
    }
    if (!digest.valid()) return;
    digests_.resize(static_cast<size_t>(lead_time) + 1);
    digests_.back() = digest.get();
  }

  // A process that is killed may leave anything behind the state: digests tell whether all before
  // it can still be read.
  std::string keep() override {
    const std::lock_guard lock(netcdf_mutex());
    if (chunks_) {
      chunks_->sync();
    } else {
      check(nc_sync(id_), "its last fields");
    }
    is_kept_ = !contents_.partial.path.empty();
    return join(digests_);
  }

  void finish() override {
    const std::lock_guard lock(netcdf_mutex());
    if (chunks_) chunks_->finish();
    if (id_ >= 0) check(nc_close(std::exchange(id_, -1)), "its last fields");
    sync_to_disk(temporary_);
    replace_file(temporary_, path_);
    finished_ = true;
  }

 private:
  // Leaves the file to several threads that compress, where that can be had.
  void compress_beside(int level) {
    check(nc_close(std::exchange(id_, -1)), "its head");
    std::vector<std::string> names;
    for (const ForecastVariable& v : contents_.variables)
      names.push_back(v.name);
    chunks_ = open_chunks(temporary_, names, level);
    if (!chunks_) check(nc_open(temporary_.c_str(), NC_WRITE, &id_), "its head");
  }

  void put(const std::vector<ChunkWriter::Chunk>& chunks, size_t lead_time) {
    const std::lock_guard lock(netcdf_mutex());
    const std::vector<size_t> count = slab_of(lead_time, 0).count;
    for (const ChunkWriter::Chunk& chunk : chunks) {
      check(nc_put_vara_float(id_, variables_[chunk.variable], chunk.start.data(), count.data(),
                              chunk.values.data()),
            concat("variable '", contents_.variables[chunk.variable].name, "' at ",
                   format_lead_time(contents_.lead_times_s[lead_time])));
    }
  }

  // Where a field is in its variable.
  struct Slab {
    std::vector<size_t> start, count;
  };
  Slab slab_of(size_t lead_time, size_t member) const {
    Slab slab{{lead_time}, {1}};
    if (contents_.num_members > 1) {
      slab.start.push_back(member);
      slab.count.push_back(1);
    }
    for (const size_t length : cell_lengths_) {
      slab.start.push_back(0);
      slab.count.push_back(length);
    }
    return slab;
  }

  void open_kept(bool is_compressed) {
    is_kept_ = true;
    if (nc_open(temporary_.c_str(), NC_WRITE, &id_) != NC_NOERR)
      refuse_partial(temporary_, "cannot be opened");
    for (const ForecastVariable& variable : contents_.variables) {
      variables_.push_back(-1);
      int shuffle = 0, deflate = 0, level = 0;
      if (nc_inq_varid(id_, variable.name.c_str(), &variables_.back()) != NC_NOERR ||
          nc_inq_var_deflate(id_, variables_.back(), &shuffle, &deflate, &level) != NC_NOERR)
        refuse_partial(temporary_, concat("lacks '", variable.name, "'"));
      // Chunks that others compress would be taken as they are.
      if ((deflate != 0) == is_compressed && (shuffle != 0) == is_compressed) continue;
      refuse_partial(temporary_, "is compressed in another way");
    }
    std::istringstream digests(contents_.partial.state);
    for (std::string digest; std::getline(digests, digest, ',');) {
      digest.erase(0, digest.find_first_not_of(' '));
      digests_.push_back(digest);
    }
    for (size_t lead_time = 0; lead_time < digests_.size(); ++lead_time) {
      if (digest_of(lead_time) == digests_[lead_time]) continue;
      refuse_partial(temporary_, concat("is damaged at lead time ", lead_time));
    }
  }

  // Of the fields that can be read; "" if they cannot.
  std::string digest_of(size_t lead_time) const {
    const size_t cells = contents_.latitudes_deg.size(), variables = variables_.size();
    const auto members = static_cast<size_t>(contents_.num_members);
    std::vector<float> fields(members * variables * cells);
    for (size_t e = 0; e < members; ++e) {
      for (size_t v = 0; v < variables; ++v) {
        const Slab slab = slab_of(lead_time, e);
        if (nc_get_vara_float(id_, variables_[v], slab.start.data(), slab.count.data(),
                              fields.data() + (e * variables + v) * cells) != NC_NOERR)
          return "";
      }
    }
    return sha256_hex(std::as_bytes(std::span(fields)));
  }

  void set_cell_lengths() {
    for (const int64_t length : contents_.field_shape)
      cell_lengths_.push_back(static_cast<size_t>(length));
    if (cell_lengths_.size() != 2) cell_lengths_ = {contents_.latitudes_deg.size()};
  }

  void discard() {
    if (finished_) return;
    chunks_.reset();
    if (id_ >= 0) nc_close(std::exchange(id_, -1));  // its status adds nothing
    std::error_code ignored;
    if (!is_kept_) fs::remove(temporary_, ignored);
  }

  void check(int status, const std::string& what) const {
    if (status == NC_NOERR) return;
    throw Error(concat("forecast file '", path_.string(), "': ", what, ": ",
                       status > 0 ? system_error_text() : "the file cannot be written"),
                status > 0 ? "" : kFullDiskHint);
  }

  int dimension(const char* name, size_t length) {
    int dim = -1;
    check(nc_def_dim(id_, name, length, &dim), concat("dimension '", name, "'"));
    return dim;
  }
  int variable(const std::string& name, nc_type type, const std::vector<int>& dims) {
    int var = -1;
    check(nc_def_var(id_, name.c_str(), type, static_cast<int>(dims.size()), dims.data(), &var),
          concat("variable '", name, "'"));
    return var;
  }
  void text(int var, const char* key, const std::string& value) {
    check(nc_put_att_text(id_, var, key, value.size(), value.c_str()),
          concat("attribute '", key, "'"));
  }
  void coordinate(int var, const char* standard_name, const char* units) {
    text(var, "standard_name", standard_name);
    text(var, "units", units);
  }
  void put(int var, const std::vector<double>& values) {
    check(nc_put_var_double(id_, var, values.data()), "coordinates");
  }

  void define(int compression) {
    text(NC_GLOBAL, "Conventions", "CF-1.8");
    text(NC_GLOBAL, "title", concat("forecast from ", format_date(contents_.start_s)));
    text(NC_GLOBAL, "source", contents_.model);
    text(NC_GLOBAL, kIdentityAttribute, contents_.identity);
    text(NC_GLOBAL, "history", concat("written by ", contents_.program));
    const int time = dimension("time", contents_.lead_times_s.size());
    const int member = contents_.num_members > 1
                           ? dimension("member", static_cast<size_t>(contents_.num_members))
                           : -1;
    define_times(time);
    if (member >= 0) {
      const int var = variable("member", NC_INT, {member});
      coordinate(var, "realization", "1");
      std::vector<int> numbers;
      for (int e = 0; e < contents_.num_members; ++e)
        numbers.push_back(e);
      check(nc_put_var_int(id_, var, numbers.data()), "coordinates");
    }
    std::vector<int> dims{time};
    if (member >= 0) dims.push_back(member);
    for (const int dim : define_cells())
      dims.push_back(dim);
    for (const ForecastVariable& v : contents_.variables)
      define_field(v, dims, compression);
    check(nc_enddef(id_), "its head");
  }

  void define_times(int time) {
    std::string units = concat("seconds since ", format_date(contents_.start_s));
    units.replace(units.find('T'), 1, " ");
    const auto date = [&](const char* name, const std::vector<int>& dims, const char* standard) {
      const int var = variable(name, NC_DOUBLE, dims);
      coordinate(var, standard, units.c_str());
      text(var, "calendar", "proleptic_gregorian");
      return var;
    };
    std::vector<long long> seconds;
    std::vector<double> hours;
    for (const int64_t lead_s : contents_.lead_times_s) {
      seconds.push_back(lead_s);
      hours.push_back(static_cast<double>(lead_s) / 3600.0);
    }
    const int valid = date("time", {time}, "time");
    text(valid, "axis", "T");
    check(nc_put_var_longlong(id_, valid, seconds.data()), "coordinates");
    const long long zero = 0;
    const int start = date("forecast_reference_time", {}, "forecast_reference_time");
    check(nc_put_var_longlong(id_, start, &zero), "coordinates");
    const int lead = variable("lead_time", NC_DOUBLE, {time});
    coordinate(lead, "forecast_period", "hours");
    put(lead, hours);
  }

  // Returns the dimensions of fields.
  std::vector<int> define_cells() {
    const std::optional<Axes> axes = axes_of(contents_);
    std::vector<int> dims, latitude, longitude;
    if (axes) {
      dims = {dimension("latitude", cell_lengths_[0]), dimension("longitude", cell_lengths_[1])};
      latitude = {dims[0]}, longitude = {dims[1]};
    } else {
      dims = cell_lengths_.size() == 2
                 ? std::vector{dimension("y", cell_lengths_[0]), dimension("x", cell_lengths_[1])}
                 : std::vector{dimension("cell", cell_lengths_[0])};
      latitude = longitude = dims;
    }
    const int lat = variable("latitude", NC_DOUBLE, latitude);
    coordinate(lat, "latitude", "degrees_north");
    const int lon = variable("longitude", NC_DOUBLE, longitude);
    coordinate(lon, "longitude", "degrees_east");
    put(lat, axes ? axes->latitudes : contents_.latitudes_deg);
    put(lon, axes ? axes->longitudes : contents_.longitudes_deg);
    coordinates_ = axes ? "lead_time forecast_reference_time"
                        : "lead_time forecast_reference_time latitude longitude";
    return dims;
  }

  void define_field(const ForecastVariable& v, const std::vector<int>& dims, int compression) {
    const int var = variable(v.name, NC_FLOAT, dims);
    variables_.push_back(var);
    std::vector<size_t> chunk(dims.size() - cell_lengths_.size(), 1);
    chunk.insert(chunk.end(), cell_lengths_.begin(), cell_lengths_.end());
    check(nc_def_var_chunking(id_, var, NC_CHUNKED, chunk.data()), v.name);
    check(nc_def_var_fill(id_, var, NC_FILL, &kFill), v.name);
    if (compression > 0) check(nc_def_var_deflate(id_, var, 1, 1, compression), v.name);
    const auto [parameter, level] = data::split_variable_name(v.name);
    std::string units = v.units;
    for (const KnownParameter& known : kKnown) {
      if (parameter != known.name) continue;
      text(var, "standard_name", known.standard_name);
      if (units.empty()) units = known.units;
    }
    text(var, "long_name", level < 0 ? v.name : concat(parameter, " at level ", level));
    if (!units.empty()) text(var, "units", units);
    text(var, "coordinates", coordinates_);
  }

  fs::path path_;
  ForecastContents contents_;
  fs::path temporary_;
  int id_ = -1;  // -1: closed, or in the hands of chunks_
  std::unique_ptr<ChunkWriter> chunks_;
  bool finished_ = false, is_kept_ = false;
  std::vector<std::string> digests_;  // of the lead times that are written
  std::vector<int> variables_;
  std::vector<size_t> cell_lengths_;
  std::string coordinates_;
};

}  // namespace

std::unique_ptr<ForecastFile> create_netcdf_forecast(const fs::path& path,
                                                     ForecastContents contents, int compression) {
  return std::make_unique<NetcdfForecast>(path, std::move(contents), compression);
}

std::string forecast_identity(const fs::path& path) {
  check_readable(path);  // what the system says of it is lost in the library
  const std::lock_guard lock(netcdf_mutex());
  int id = -1;
  if (nc_open(path.c_str(), NC_NOWRITE, &id) != NC_NOERR)
    throw DataError(concat("'", path.string(), "' is not a netCDF file, or damaged"),
                    "remove it, or choose another folder");
  size_t length = 0;
  std::string text;
  if (nc_inq_attlen(id, NC_GLOBAL, kIdentityAttribute, &length) == NC_NOERR) {
    text.resize(length);
    if (nc_get_att_text(id, NC_GLOBAL, kIdentityAttribute, text.data()) != NC_NOERR) text.clear();
  }
  nc_close(id);
  return text;
}

}  // namespace aifs::forecast
