// SPDX-License-Identifier: Apache-2.0
// The form of graph files, for those who write and read them (graph/graph_file.h,
// graph/slice_file.h): groups, dimensions, variables.
#pragma once

#include <netcdf.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/file_io.h"
#include "graph/base/graph.h"

namespace aifs::graph {

constexpr const char* kGraphConventions = "aifs-graph-1";
constexpr const char* kAboutGraphs =
    "Graph of a data-driven weather model. Group nodes/<set>: coordinates in radians and "
    "attributes "
    "of each node. Group edges/<source>_to_<target>: directed edges as positions (from 0) of their "
    "two ends, and attributes of each edge. content_hash is the SHA-256 of names, coordinates, "
    "indices and attributes in the order of 'position'.";

constexpr const char* kNetcdfLocking = "HDF5_USE_FILE_LOCKING";

// What can be done about a file that cannot be read although its bytes can.
inline const char* hint_of_graph_file() {
  const char* locking = std::getenv(kNetcdfLocking);
  const bool locks = locking && (*locking == 'T' || *locking == '1' || *locking == 'B');
  return locks
             ? "HDF5_USE_FILE_LOCKING asks for locks, which some file systems have not got; unset "
               "it, or delete the file to have the graph built again"
             : "delete the file to have the graph built again";
}

// What a status of the library means for a graph file; those above 0 are of the system.
inline std::string reason_of_netcdf(int status) {
  if (status > 0) return std::strerror(status);
  switch (status) {
    case NC_ENOTNC:
      return "it is not a netCDF file";
    case NC_EHDFERR:
      return "it is damaged, or another program holds it";
    case NC_EPERM:
      return "it may not be written to";
    case NC_ENOTATT:
      return "there is no such attribute";
    case NC_ENOTVAR:
      return "there is no such variable";
    case NC_ENOGRP:
      return "there is no such group";
    case NC_EBADTYPE:
    case NC_ECHAR:
    case NC_ERANGE:
      return "it has another type than a graph file has";
    case NC_ENOMEM:
      return "there is not enough memory";
    default:
      return "it is not as a graph file is";
  }
}

// An open NetCDF file; every call is checked and its failure names file and item.
class NcFile {
 public:
  enum class Mode { kRead, kCreate };

  NcFile(const fs::path& path, Mode mode) : path_(path), reading_(mode == Mode::kRead) {
    const std::string name = path.string();
    check(reading_ ? nc_open(name.c_str(), NC_NOWRITE, &id_)
                   : nc_create(name.c_str(), NC_NETCDF4 | NC_CLOBBER, &id_),
          reading_ ? "cannot be opened" : "cannot be created");
    open_ = true;
  }
  ~NcFile() {
    if (open_) nc_close(id_);  // only after an error: its status adds nothing
  }
  NcFile(const NcFile&) = delete;
  NcFile& operator=(const NcFile&) = delete;

  int id() const { return id_; }
  void check(int status, const std::string& what) const {
    if (status == NC_NOERR) return;
    // Positive ones are of the system.
    const std::string text =
        concat("graph file '", path_.string(), "': ", what, ": ", reason_of_netcdf(status));
    if (reading_ && status > 0) throw DataError(text);
    if (reading_) throw DataError(text, hint_of_graph_file());
    throw Error(text, status > 0 ? "" : "is the disk full or the quota used up?");
  }
  [[noreturn]] void damaged(const std::string& what) const {
    throw DataError(concat("graph file '", path_.string(), "' is damaged: ", what),
                    hint_of_graph_file());
  }
  void close() {
    open_ = false;
    check(nc_close(id_), "cannot be closed");
  }

 private:
  fs::path path_;
  bool reading_;
  int id_ = -1;
  bool open_ = false;
};

struct NcMeaning {
  std::string long_name, units;
};
inline const NcMeaning kAttributeMeaning{"attribute of the rows", "1"};

inline NcMeaning meaning_of(const std::string& end, const EdgeSet& edges) {
  if (end == "source_index")
    return {concat("node of '", edges.source, "' where the edge starts"), "1"};
  return {concat("node of '", edges.target, "' where the edge ends"), "1"};
}

// One group of the file being written.
class GroupWriter {
 public:
  GroupWriter(const NcFile& file, int parent, const std::string& name) : file_(file), name_(name) {
    file_.check(nc_def_grp(parent, name.c_str(), &id_), concat("group '", name, "'"));
  }
  int id() const { return id_; }

  void text(const char* key, const std::string& value) const { put_text(NC_GLOBAL, key, value); }
  void position(int value) const {
    file_.check(nc_put_att_int(id_, NC_GLOBAL, "position", NC_INT, 1, &value),
                concat(name_, ", 'position'"));
  }
  // A dimension of length 0 becomes an unlimited one without records.
  int dimension(const std::string& name, int64_t length) const {
    int dim = -1;
    file_.check(nc_def_dim(id_, name.c_str(), static_cast<size_t>(length), &dim),
                concat(name_, ", dimension '", name, "'"));
    return dim;
  }
  void write(const std::string& name, const std::vector<int>& dims,
             const std::vector<float>& values, const NcMeaning& meaning) const {
    const int var = define(name, NC_FLOAT, dims, meaning);
    file_.check(nc_put_var_float(id_, var, values.data()), item(name));
  }
  void write(const std::string& name, const std::vector<int>& dims,
             const std::vector<int32_t>& values, const NcMeaning& meaning) const {
    const int var = define(name, NC_INT, dims, meaning);
    file_.check(nc_put_var_int(id_, var, values.data()), item(name));
  }
  void write(const std::map<std::string, Attribute>& attributes, int rows) const {
    for (const auto& [name, attribute] : attributes)
      write(name, dims_of(name, rows, attribute.width), attribute.values, kAttributeMeaning);
  }
  std::vector<int> dims_of(const std::string& attribute, int rows, int64_t width) const {
    if (width == 1) return {rows};
    return {rows, dimension(attribute + "_column", width)};
  }
  int define(const std::string& name, nc_type type, const std::vector<int>& dims,
             const NcMeaning& meaning) const {
    int var = -1;
    file_.check(
        nc_def_var(id_, name.c_str(), type, static_cast<int>(dims.size()), dims.data(), &var),
        item(name));
    file_.check(nc_def_var_fill(id_, var, NC_NOFILL, nullptr), item(name));
    put_text(var, "long_name", meaning.long_name);
    put_text(var, "units", meaning.units);
    return var;
  }

 private:
  std::string item(const std::string& name) const { return concat(name_, "/", name); }
  void put_text(int var, const char* key, const std::string& value) const {
    file_.check(nc_put_att_text(id_, var, key, value.size(), value.c_str()),
                concat(name_, ", '", key, "'"));
  }
  const NcFile& file_;
  std::string name_;
  int id_ = -1;
};

inline void write_nodes(const NcFile& file, int parent, const NodeSet& nodes, int position) {
  const GroupWriter group(file, parent, nodes.name);
  group.position(position);
  const int rows = group.dimension("node", nodes.num_nodes());
  group.write("latitude", {rows}, nodes.lat_rad, {"latitude, positive north", "radian"});
  group.write("longitude", {rows}, nodes.lon_rad, {"longitude, positive east", "radian"});
  group.write(nodes.attributes, rows);
}

// Begins the group of an edge set.
inline GroupWriter edge_group(const NcFile& file, int parent, const EdgeSet& edges, int position) {
  GroupWriter group(file, parent, edges.source + "_to_" + edges.target);
  group.position(position);
  group.text("source", edges.source);
  group.text("target", edges.target);
  return group;
}

inline void write_edges(const NcFile& file, int parent, const EdgeSet& edges, int position) {
  const GroupWriter group = edge_group(file, parent, edges, position);
  const int rows = group.dimension("edge", edges.num_edges());
  group.write("source_index", {rows}, edges.source_index, meaning_of("source_index", edges));
  group.write("target_index", {rows}, edges.target_index, meaning_of("target_index", edges));
  group.write(edges.attributes, rows);
}

inline void write_root_text(const NcFile& file, const char* key, const std::string& value) {
  file.check(nc_put_att_text(file.id(), NC_GLOBAL, key, value.size(), value.c_str()),
             concat("'", key, "'"));
}

inline int define_group(const NcFile& file, const char* name) {
  int group = -1;
  file.check(nc_def_grp(file.id(), name, &group), concat("group '", name, "'"));
  return group;
}

// Calls write(temporary) beside `path` and renames what it has written.
template <class Write>
std::string written_beside(const fs::path& path, const Write& write) {
  make_directories(absolute_path(path).parent_path());
  const fs::path temporary = temporary_name(path);
  try {
    std::string content_hash = write(temporary);
    sync_to_disk(temporary);
    replace_file(temporary, path);
    return content_hash;
  } catch (...) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw;
  }
}

}  // namespace aifs::graph
