// SPDX-License-Identifier: Apache-2.0
// The library of the file format (HDF5) takes a lock on every file that it opens, and fails where
// the file system has none. No lock is needed here: a graph file is written under a name of its own
// and never changes once it has its name.
#include "graph/graph_file.h"

#include <netcdf.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <future>
#include <memory>
#include <span>

#include "core/check.h"
#include "core/file_io.h"
#include "core/netcdf_lock.h"
#include "graph/base/content_hash.h"
#include "graph/base/large_vector.h"
#include "graph/nc_file.h"

namespace aifs::graph {

namespace {

// HDF5 looks at this variable once, when it is first used. It is set before main(), because other
// threads may look at the environment later. What the user has set stays.
[[maybe_unused]] const int locking_is_off = ::setenv(kNetcdfLocking, "FALSE", /*overwrite=*/0);

std::string write_graph(const fs::path& path, const Graph& graph, const std::string& options_hash,
                        const std::string& origin) {
  NcFile file(path, NcFile::Mode::kCreate);
  write_root_text(file, "Conventions", kGraphConventions);
  write_root_text(file, "about", kAboutGraphs);
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
  // Waits for what is being hashed, so that no more than one piece is kept.
  void wait() {
    if (last_.valid()) last_.get();
  }
  std::string finish() {
    wait();
    return hash_.finish();
  }

 private:
  ContentHash hash_;
  std::future<void> last_;  // waits when destroyed
};

int read_rows(const Variable& from, const size_t* start, const size_t* count, float* values) {
  return nc_get_vara_float(from.group, from.id, start, count, values);
}
int read_rows(const Variable& from, const size_t* start, const size_t* count, int32_t* values) {
  return nc_get_vara_int(from.group, from.id, start, count, values);
}

// The arrays of one group of the file being read.
class GroupArrays {
 public:
  GroupArrays(const NcFile& file, int group)
      : file_(file), variables_(read_variables(file, group)) {}

  const Variable& find(const char* name) const {
    for (const Variable& variable : variables_) {
      if (variable.name == name) return variable;
    }
    file_.damaged(concat("there is no variable '", name, "'"));
  }
  // Everything but the two variables that every group has, by name.
  std::map<std::string, const Variable*> attributes(
      const std::array<const char*, 2>& others) const {
    std::map<std::string, const Variable*> by_name;
    for (const Variable& variable : variables_)
      if (variable.name != others[0] && variable.name != others[1])
        by_name[variable.name] = &variable;
    return by_name;
  }
  // Rows begin, ..., end - 1 of an array.
  template <class T>
  std::vector<T> rows(const Variable& variable, int64_t begin, int64_t end) const {
    auto values = large_vector<T>(static_cast<size_t>((end - begin) * variable.width));
    if (values.empty()) return values;
    const std::array<size_t, 2> start{static_cast<size_t>(begin), 0};
    const std::array<size_t, 2> count{static_cast<size_t>(end - begin),
                                      static_cast<size_t>(variable.width)};
    file_.check(read_rows(variable, start.data(), count.data(), values.data()), variable.name);
    return values;
  }

 private:
  const NcFile& file_;
  std::vector<Variable> variables_;
};

// Reads arrays and hashes them in the order of the calls.
class HashedReader {
 public:
  HashedReader(const NcFile& file, int group, HashBehind& hash)
      : arrays_(file, group), hash_(hash) {}

  // The values stay where they are until the hash is finished.
  template <class T>
  std::vector<T> read(const Variable& variable) const {
    std::vector<T> values = arrays_.rows<T>(variable, 0, variable.rows);
    hash_.values(values);
    return values;
  }
  std::vector<float> floats(const char* name) const { return read<float>(arrays_.find(name)); }
  std::vector<int32_t> integers(const char* name) const {
    return read<int32_t>(arrays_.find(name));
  }
  // Reads an array piece by piece and keeps nothing of it.
  template <class T>
  void pass_over(const Variable& variable) const {
    constexpr int64_t kPieceRows = int64_t{1} << 20;
    hash_.then(
        [values = variable.rows * variable.width](ContentHash& hash) { hash.count(values); });
    for (int64_t begin = 0; begin < variable.rows; begin += kPieceRows) {
      const int64_t end = std::min(variable.rows, begin + kPieceRows);
      const auto piece =
          std::make_shared<const std::vector<T>>(arrays_.rows<T>(variable, begin, end));
      hash_.wait();
      hash_.then([piece](ContentHash& hash) { hash.more(std::span<const T>(*piece)); });
    }
  }
  void pass_over_integers(const char* name) const { pass_over<int32_t>(arrays_.find(name)); }
  // Calls visit(name, variable) for all but the two variables that every group has.
  template <class Visit>
  void for_attributes(const std::array<const char*, 2>& others, const Visit& visit) const {
    for (const auto& [name, variable] : arrays_.attributes(others)) {
      hash_.then([name = name, width = variable->width](ContentHash& hash) {
        hash.text(name);
        hash.width(width);
      });
      visit(name, *variable);
    }
  }

 private:
  GroupArrays arrays_;
  HashBehind& hash_;
};

constexpr std::array<const char*, 2> kCoordinates{"latitude", "longitude"};
constexpr std::array<const char*, 2> kEnds{"source_index", "target_index"};

// All fill a set that outlives the hash, also when they throw.
void read_nodes(const NcFile& file, int group, HashBehind& hash, NodeSet& nodes) {
  nodes.name = group_name(file, group);
  hash.text(nodes.name);
  const HashedReader reader(file, group, hash);
  nodes.lat_rad = reader.floats(kCoordinates[0]);
  nodes.lon_rad = reader.floats(kCoordinates[1]);
  reader.for_attributes(kCoordinates, [&](const std::string& name, const Variable& variable) {
    nodes.attributes[name] = {variable.width, reader.read<float>(variable)};
  });
}

void read_ends(const NcFile& file, int group, HashBehind& hash, EdgeSet& edges) {
  edges.source = read_text(file, group, "source");
  edges.target = read_text(file, group, "target");
  hash.text(edges.source);
  hash.text(edges.target);
}

void read_edges(const NcFile& file, int group, HashBehind& hash, EdgeSet& edges) {
  read_ends(file, group, hash, edges);
  const HashedReader reader(file, group, hash);
  edges.source_index = reader.integers(kEnds[0]);
  edges.target_index = reader.integers(kEnds[1]);
  reader.for_attributes(kEnds, [&](const std::string& name, const Variable& variable) {
    edges.attributes[name] = {variable.width, reader.read<float>(variable)};
  });
}

// Keeps of the edges what they are, without ends and values.
void pass_over_edges(const NcFile& file, int group, HashBehind& hash, EdgeSet& edges) {
  read_ends(file, group, hash, edges);
  const HashedReader reader(file, group, hash);
  for (const char* end : kEnds)
    reader.pass_over_integers(end);
  reader.for_attributes(kEnds, [&](const std::string& name, const Variable& variable) {
    edges.attributes[name] = {variable.width, {}};
    reader.pass_over<float>(variable);
  });
}

// Opens a file that says that it holds a graph.
std::unique_ptr<NcFile> open_graph_file(const fs::path& path) {
  if (!path_exists(path))
    throw DataError(concat("graph file '", path.string(), "' does not exist"));
  check_readable(path);  // what the system says of it is lost in the library
  auto file = std::make_unique<NcFile>(path, NcFile::Mode::kRead);
  const std::string conventions = read_text(*file, file->id(), "Conventions");
  if (conventions == kGraphConventions) return file;
  throw DataError(concat("'", path.string(), "' follows the conventions '", conventions,
                         "', expected '", kGraphConventions, "'"));
}

// Reads a graph and holds it against its hash; `read_edges_of` is for each edge set.
template <class ReadEdges>
StoredGraph read_checked(const fs::path& path, const ReadEdges& read_edges_of) {
  const std::unique_ptr<NcFile> opened = open_graph_file(path);
  NcFile& file = *opened;
  StoredGraph stored;
  stored.options_hash = read_text(file, file.id(), "options_hash");
  if (nc_inq_attid(file.id(), NC_GLOBAL, "origin", nullptr) == NC_NOERR)
    stored.origin = read_text(file, file.id(), "origin");
  stored.content_hash = read_text(file, file.id(), "content_hash");
  HashBehind hash;  // waits before the arrays go
  for (const int group : read_groups(file, "nodes"))
    read_nodes(file, group, hash, stored.graph.node_sets.emplace_back());
  for (const int group : read_groups(file, "edges"))
    read_edges_of(file, group, hash, stored.graph.edge_sets.emplace_back());
  if (hash.finish() != stored.content_hash) {
    file.damaged("its content does not have the stored hash");
  }
  file.close();
  return stored;
}

NodeSet read_whole_nodes(const NcFile& file, int group) {
  NodeSet nodes;
  nodes.name = group_name(file, group);
  const GroupArrays arrays(file, group);
  const auto whole = [&](const Variable& variable) {
    return arrays.rows<float>(variable, 0, variable.rows);
  };
  nodes.lat_rad = whole(arrays.find(kCoordinates[0]));
  nodes.lon_rad = whole(arrays.find(kCoordinates[1]));
  for (const auto& [name, variable] : arrays.attributes(kCoordinates))
    nodes.attributes[name] = {variable->width, whole(*variable)};
  return nodes;
}

}  // namespace

std::string save_graph(const fs::path& path, const Graph& graph, const std::string& options_hash,
                       const std::string& origin) {
  const std::lock_guard lock(netcdf_mutex());
  graph.check();
  return written_beside(path, [&](const fs::path& temporary) {
    return write_graph(temporary, graph, options_hash, origin);
  });
}

StoredGraph load_graph(const fs::path& path) {
  const std::lock_guard lock(netcdf_mutex());
  return read_checked(path, read_edges);
}

StoredGraph load_outline(const fs::path& path) {
  const std::lock_guard lock(netcdf_mutex());
  return read_checked(path, pass_over_edges);
}

std::string stored_content_hash(const fs::path& path) {
  const std::lock_guard lock(netcdf_mutex());
  try {
    const std::unique_ptr<NcFile> file = open_graph_file(path);
    return read_text(*file, file->id(), "content_hash");
  } catch (const DataError&) {
    return "";
  }
}

namespace {

// Throws DataError for edges between nodes that are not there. The hash of a file is checked by
// those who read all of it, perhaps of a copy on another host.
void check_ends(const fs::path& path, const Graph& graph, const EdgeSet& edges) {
  const auto check = [&](const std::string& nodes, const std::vector<int32_t>& ends) {
    const int64_t count = graph.nodes(nodes).num_nodes();
    const auto is_outside = [&](int32_t node) { return node < 0 || node >= count; };
    if (std::none_of(ends.begin(), ends.end(), is_outside)) return;
    throw DataError(
        concat("graph file '", path.string(), "' is damaged: edges from '", edges.source, "' to '",
               edges.target, "' are of nodes that '", nodes, "' has not"),
        "remove it: it is built again");
  };
  check(edges.source, edges.source_index);
  check(edges.target, edges.target_index);
}

}  // namespace

GraphSlice load_slice(const fs::path& path, int64_t rank, int64_t size) {
  const std::lock_guard lock(netcdf_mutex());
  const std::unique_ptr<NcFile> file = open_graph_file(path);
  GraphSlice slice;
  for (const int group : read_groups(*file, "nodes"))
    slice.graph.node_sets.push_back(read_whole_nodes(*file, group));
  for (const int group : read_groups(*file, "edges")) {
    const GroupArrays arrays(*file, group);
    const EdgeRange range = edge_range(arrays.find(kEnds[0]).rows, rank, size);
    EdgeSet& edges = slice.graph.edge_sets.emplace_back();
    edges.source = read_text(*file, group, "source");
    edges.target = read_text(*file, group, "target");
    edges.source_index = arrays.rows<int32_t>(arrays.find(kEnds[0]), range.begin, range.end);
    edges.target_index = arrays.rows<int32_t>(arrays.find(kEnds[1]), range.begin, range.end);
    for (const auto& [name, variable] : arrays.attributes(kEnds))
      edges.attributes[name] = {variable->width,
                                arrays.rows<float>(*variable, range.begin, range.end)};
    check_ends(path, slice.graph, edges);
    slice.ranges.push_back(range);
  }
  return slice;
}

}  // namespace aifs::graph
