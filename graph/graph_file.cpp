// SPDX-License-Identifier: Apache-2.0
// The library of the file format (HDF5) takes a lock on every file that it opens, and fails where
// the file system has none. No lock is needed here: a graph file is written under a name of its own
// and never changes once it has its name.
#include "graph/graph_file.h"

#include <netcdf.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <future>

#include "core/check.h"
#include "core/file_io.h"
#include "core/netcdf_lock.h"
#include "graph/base/content_hash.h"
#include "graph/base/large_vector.h"

namespace aifs::graph {

namespace {

constexpr const char* kConventions = "aifs-graph-1";
constexpr const char* kAbout =
    "Graph of a data-driven weather model. Group nodes/<set>: coordinates in radians and "
    "attributes "
    "of each node. Group edges/<source>_to_<target>: directed edges as positions (from 0) of their "
    "two ends, and attributes of each edge. content_hash is the SHA-256 of names, coordinates, "
    "indices and attributes in the order of 'position'.";

constexpr const char* kLocking = "HDF5_USE_FILE_LOCKING";

// HDF5 looks at this variable once, when it is first used. It is set before main(), because other
// threads may look at the environment later. What the user has set stays.
[[maybe_unused]] const int locking_is_off = ::setenv(kLocking, "FALSE", /*overwrite=*/0);

// What can be done about a file that cannot be read although its bytes can.
const char* hint_of_reading() {
  const char* locking = std::getenv(kLocking);
  const bool locks = locking && (*locking == 'T' || *locking == '1' || *locking == 'B');
  return locks
             ? "HDF5_USE_FILE_LOCKING asks for locks, which some file systems have not got; unset "
               "it, or delete the file to have the graph built again"
             : "delete the file to have the graph built again";
}

// What a status of the library means for a graph file; those above 0 are of the system.
std::string reason_of(int status) {
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
        concat("graph file '", path_.string(), "': ", what, ": ", reason_of(status));
    if (reading_ && status > 0) throw DataError(text);
    if (reading_) throw DataError(text, hint_of_reading());
    throw Error(text, status > 0 ? "" : "is the disk full or the quota used up?");
  }
  [[noreturn]] void damaged(const std::string& what) const {
    throw DataError(concat("graph file '", path_.string(), "' is damaged: ", what),
                    hint_of_reading());
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

std::string edge_group_name(const EdgeSet& edges) {
  return edges.source + "_to_" + edges.target;
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
  struct Meaning {
    std::string long_name, units;
  };
  void write(const std::string& name, const std::vector<int>& dims,
             const std::vector<float>& values, const Meaning& meaning) const {
    const int var = define(name, NC_FLOAT, dims, meaning);
    file_.check(nc_put_var_float(id_, var, values.data()), item(name));
  }
  void write(const std::string& name, const std::vector<int>& dims,
             const std::vector<int32_t>& values, const Meaning& meaning) const {
    const int var = define(name, NC_INT, dims, meaning);
    file_.check(nc_put_var_int(id_, var, values.data()), item(name));
  }
  void write(const std::map<std::string, Attribute>& attributes, int rows) const {
    for (const auto& [name, attribute] : attributes) {
      std::vector<int> dims{rows};
      if (attribute.width != 1) dims.push_back(dimension(name + "_column", attribute.width));
      write(name, dims, attribute.values, {"attribute of the rows", "1"});
    }
  }

 private:
  std::string item(const std::string& name) const { return concat(name_, "/", name); }
  void put_text(int var, const char* key, const std::string& value) const {
    file_.check(nc_put_att_text(id_, var, key, value.size(), value.c_str()),
                concat(name_, ", '", key, "'"));
  }
  int define(const std::string& name, nc_type type, const std::vector<int>& dims,
             const Meaning& meaning) const {
    int var = -1;
    file_.check(
        nc_def_var(id_, name.c_str(), type, static_cast<int>(dims.size()), dims.data(), &var),
        item(name));
    file_.check(nc_def_var_fill(id_, var, NC_NOFILL, nullptr), item(name));
    put_text(var, "long_name", meaning.long_name);
    put_text(var, "units", meaning.units);
    return var;
  }

  const NcFile& file_;
  std::string name_;
  int id_ = -1;
};

void write_nodes(const NcFile& file, int parent, const NodeSet& nodes, int position) {
  const GroupWriter group(file, parent, nodes.name);
  group.position(position);
  const int rows = group.dimension("node", nodes.num_nodes());
  group.write("latitude", {rows}, nodes.lat_rad, {"latitude, positive north", "radian"});
  group.write("longitude", {rows}, nodes.lon_rad, {"longitude, positive east", "radian"});
  group.write(nodes.attributes, rows);
}

void write_edges(const NcFile& file, int parent, const EdgeSet& edges, int position) {
  const GroupWriter group(file, parent, edge_group_name(edges));
  group.position(position);
  group.text("source", edges.source);
  group.text("target", edges.target);
  const int rows = group.dimension("edge", edges.num_edges());
  group.write("source_index", {rows}, edges.source_index,
              {concat("node of '", edges.source, "' where the edge starts"), "1"});
  group.write("target_index", {rows}, edges.target_index,
              {concat("node of '", edges.target, "' where the edge ends"), "1"});
  group.write(edges.attributes, rows);
}

void write_root_text(const NcFile& file, const char* key, const std::string& value) {
  file.check(nc_put_att_text(file.id(), NC_GLOBAL, key, value.size(), value.c_str()),
             concat("'", key, "'"));
}

int define_group(const NcFile& file, const char* name) {
  int group = -1;
  file.check(nc_def_grp(file.id(), name, &group), concat("group '", name, "'"));
  return group;
}

std::string write_graph(const fs::path& path, const Graph& graph, const std::string& options_hash,
                        const std::string& origin) {
  NcFile file(path, NcFile::Mode::kCreate);
  write_root_text(file, "Conventions", kConventions);
  write_root_text(file, "about", kAbout);
  write_root_text(file, "options_hash", options_hash);
  if (!origin.empty()) write_root_text(file, "origin", origin);
  std::future<std::string> hash =
      std::async(std::launch::async, [&] { return graph.content_hash(); });
  const int nodes = define_group(file, "nodes"), edges = define_group(file, "edges");
  int position = 0;
  for (const NodeSet& set : graph.node_sets)
    write_nodes(file, nodes, set, position++);
  position = 0;
  for (const EdgeSet& set : graph.edge_sets)
    write_edges(file, edges, set, position++);
  const std::string content_hash = hash.get();
  write_root_text(file, "content_hash", content_hash);
  file.close();
  return content_hash;
}

std::string read_text(const NcFile& file, int group, const char* key) {
  size_t length = 0;
  const std::string what = concat("'", key, "'");
  file.check(nc_inq_attlen(group, NC_GLOBAL, key, &length), what);
  std::string text(length, '\0');
  file.check(nc_get_att_text(group, NC_GLOBAL, key, text.data()), what);
  return text;
}

std::string group_name(const NcFile& file, int group) {
  std::array<char, NC_MAX_NAME + 1> name{};
  file.check(nc_inq_grpname(group, name.data()), "name of a group");
  return name.data();
}

// The groups inside a top group, by their position.
std::vector<int> read_groups(const NcFile& file, const char* parent) {
  int top = -1, count = 0;
  file.check(nc_inq_ncid(file.id(), parent, &top), concat("group '", parent, "'"));
  file.check(nc_inq_grps(top, &count, nullptr), concat("group '", parent, "'"));
  std::vector<int> groups(static_cast<size_t>(count));
  file.check(nc_inq_grps(top, &count, groups.data()), concat("group '", parent, "'"));
  std::vector<std::pair<int, int>> by_position;
  for (const int group : groups) {
    int position = -1;
    file.check(nc_get_att_int(group, NC_GLOBAL, "position", &position),
               concat(group_name(file, group), ", 'position'"));
    by_position.emplace_back(position, group);
  }
  std::sort(by_position.begin(), by_position.end());
  std::transform(by_position.begin(), by_position.end(), groups.begin(),
                 [](const auto& entry) { return entry.second; });
  return groups;
}

struct Variable {
  std::string name;
  int group = -1, id = -1;
  int64_t rows = 0, width = 1;
};

std::vector<Variable> read_variables(const NcFile& file, int group) {
  const std::string owner = group_name(file, group);
  int count = 0;
  file.check(nc_inq_varids(group, &count, nullptr), owner);
  std::vector<int> ids(static_cast<size_t>(count));
  file.check(nc_inq_varids(group, &count, ids.data()), owner);
  std::vector<Variable> variables;
  for (const int id : ids) {
    std::array<char, NC_MAX_NAME + 1> name{};
    std::array<int, NC_MAX_VAR_DIMS> dims{};
    int num_dims = 0;
    file.check(nc_inq_var(group, id, name.data(), nullptr, &num_dims, dims.data(), nullptr), owner);
    const std::string item = concat(owner, "/", name.data());
    if (num_dims < 1 || num_dims > 2) file.damaged(concat(item, " has ", num_dims, " dimensions"));
    std::array<size_t, 2> lengths{0, 1};
    for (size_t d = 0; d < static_cast<size_t>(num_dims); ++d)
      file.check(nc_inq_dimlen(group, dims[d], &lengths[d]), item);
    variables.push_back({name.data(), group, id, static_cast<int64_t>(lengths[0]),
                         static_cast<int64_t>(lengths[1])});
  }
  return variables;
}

// Hashes what is read on a thread of its own, while the next array is read.
class HashBehind {
 public:
  template <class Step>  // step(hash): the next one
  void then(Step step) {
    last_ = std::async(std::launch::async, [this, step, before = std::move(last_)]() mutable {
      if (before.valid()) before.get();
      step(hash_);
    });
  }
  void text(const std::string& text) {
    then([text](ContentHash& hash) { hash.text(text); });
  }
  // The values may move, not change.
  template <class T>
  void values(const std::vector<T>& values) {
    then([view = std::span<const T>(values)](ContentHash& hash) { hash.values(view); });
  }
  std::string finish() {
    if (last_.valid()) last_.get();
    return hash_.finish();
  }

 private:
  ContentHash hash_;
  std::future<void> last_;  // waits when destroyed
};

// The arrays of one group of the file being read, hashed in the order of the calls.
class GroupReader {
 public:
  GroupReader(const NcFile& file, int group, HashBehind& hash)
      : file_(file), hash_(hash), variables_(read_variables(file, group)) {}

  std::vector<float> floats(const char* name) const { return floats(find(name)); }
  std::vector<int32_t> integers(const char* name) const {
    const Variable& variable = find(name);
    auto values = large_vector<int32_t>(static_cast<size_t>(variable.rows * variable.width));
    file_.check(nc_get_var_int(variable.group, variable.id, values.data()), variable.name);
    hash_.values(values);
    return values;
  }
  // Everything but the two variables that every group has.
  void attributes(const std::array<const char*, 2>& others,
                  std::map<std::string, Attribute>& attributes) const {
    std::map<std::string, const Variable*> by_name;
    for (const Variable& variable : variables_)
      if (variable.name != others[0] && variable.name != others[1])
        by_name[variable.name] = &variable;
    for (const auto& [name, variable] : by_name) {
      hash_.then([name, width = variable->width](ContentHash& hash) {
        hash.text(name);
        hash.width(width);
      });
      attributes[name] = {variable->width, floats(*variable)};
    }
  }

 private:
  const Variable& find(const char* name) const {
    for (const Variable& variable : variables_) {
      if (variable.name == name) return variable;
    }
    file_.damaged(concat("there is no variable '", name, "'"));
  }
  std::vector<float> floats(const Variable& variable) const {
    auto values = large_vector<float>(static_cast<size_t>(variable.rows * variable.width));
    file_.check(nc_get_var_float(variable.group, variable.id, values.data()), variable.name);
    hash_.values(values);
    return values;
  }

  const NcFile& file_;
  HashBehind& hash_;
  std::vector<Variable> variables_;
};

// Both fill a set that outlives the hash, also when they throw.
void read_nodes(const NcFile& file, int group, HashBehind& hash, NodeSet& nodes) {
  nodes.name = group_name(file, group);
  hash.text(nodes.name);
  const GroupReader reader(file, group, hash);
  nodes.lat_rad = reader.floats("latitude");
  nodes.lon_rad = reader.floats("longitude");
  reader.attributes({"latitude", "longitude"}, nodes.attributes);
}

void read_edges(const NcFile& file, int group, HashBehind& hash, EdgeSet& edges) {
  edges.source = read_text(file, group, "source");
  edges.target = read_text(file, group, "target");
  hash.text(edges.source);
  hash.text(edges.target);
  const GroupReader reader(file, group, hash);
  edges.source_index = reader.integers("source_index");
  edges.target_index = reader.integers("target_index");
  reader.attributes({"source_index", "target_index"}, edges.attributes);
}

}  // namespace

std::string save_graph(const fs::path& path, const Graph& graph, const std::string& options_hash,
                       const std::string& origin) {
  const std::lock_guard lock(netcdf_mutex());
  graph.check();
  make_directories(absolute_path(path).parent_path());
  const fs::path temporary = temporary_name(path);
  try {
    std::string content_hash = write_graph(temporary, graph, options_hash, origin);
    sync_to_disk(temporary);
    replace_file(temporary, path);
    return content_hash;
  } catch (...) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    throw;
  }
}

StoredGraph load_graph(const fs::path& path) {
  const std::lock_guard lock(netcdf_mutex());
  if (!path_exists(path))
    throw DataError(concat("graph file '", path.string(), "' does not exist"));
  check_readable(path);  // what the system says of it is lost in the library
  NcFile file(path, NcFile::Mode::kRead);
  const std::string conventions = read_text(file, file.id(), "Conventions");
  if (conventions != kConventions) {
    throw DataError(concat("'", path.string(), "' follows the conventions '", conventions,
                           "', expected '", kConventions, "'"));
  }
  StoredGraph stored;
  stored.options_hash = read_text(file, file.id(), "options_hash");
  if (nc_inq_attid(file.id(), NC_GLOBAL, "origin", nullptr) == NC_NOERR)
    stored.origin = read_text(file, file.id(), "origin");
  stored.content_hash = read_text(file, file.id(), "content_hash");
  HashBehind hash;  // waits before the arrays go
  for (const int group : read_groups(file, "nodes"))
    read_nodes(file, group, hash, stored.graph.node_sets.emplace_back());
  for (const int group : read_groups(file, "edges"))
    read_edges(file, group, hash, stored.graph.edge_sets.emplace_back());
  if (hash.finish() != stored.content_hash) {
    file.damaged("its content does not have the stored hash");
  }
  file.close();
  return stored;
}

}  // namespace aifs::graph
