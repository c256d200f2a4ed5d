// SPDX-License-Identifier: Apache-2.0
#include "graph/slice_file.h"

#include <netcdf.h>

#include <array>
#include <exception>
#include <mutex>
#include <optional>

#include "core/netcdf_lock.h"
#include "graph/nc_file.h"

namespace aifs::graph {

namespace {

// Writes a graph that comes in pieces, and hashes it. The library is held for a piece at a time:
// other ranks may be threads.
class FileSink : public PieceSink {
 public:
  FileSink(fs::path path, std::string options_hash)
      : path_(std::move(path)), options_hash_(std::move(options_hash)) {}

  void nodes(const NodeSet& nodes) override {
    const std::lock_guard lock(netcdf_mutex());
    if (!file_) open();
    write_nodes(*file_, nodes_, nodes, num_nodes_++);
    hash_.nodes(nodes);
  }
  void edges(const EdgeSet& edges, int64_t total) override {
    const std::lock_guard lock(netcdf_mutex());
    names_.source = edges.source;
    names_.target = edges.target;
    group_.emplace(edge_group(*file_, edges_, edges, num_edges_++));
    rows_ = group_->dimension("edge", total);
    hash_.edges(edges, total);
  }
  void ends(const std::string& name) override {
    begin(name, NC_INT, 1, meaning_of(name, names_));
    hash_.ends(name);
  }
  void attribute(const std::string& name, int64_t width) override {
    begin(name, NC_FLOAT, width, kAttributeMeaning);
    hash_.attribute(name, width);
  }
  void piece(std::span<const int32_t> values) override {
    put(values.size(), [&](const size_t* start, const size_t* count) {
      return nc_put_vara_int(group_->id(), variable_, start, count, values.data());
    });
    hash_.piece(values);
  }
  void piece(std::span<const float> values) override {
    put(values.size(), [&](const size_t* start, const size_t* count) {
      return nc_put_vara_float(group_->id(), variable_, start, count, values.data());
    });
    hash_.piece(values);
  }
  // Closes the file; returns the hash.
  std::string finish() {
    const std::lock_guard lock(netcdf_mutex());
    const std::string content_hash = hash_.finish();
    write_root_text(*file_, "content_hash", content_hash);
    file_->close();
    return content_hash;
  }

 private:
  void open() {
    file_.emplace(path_, NcFile::Mode::kCreate);
    write_root_text(*file_, "Conventions", kGraphConventions);
    write_root_text(*file_, "about", kAboutGraphs);
    write_root_text(*file_, "options_hash", options_hash_);
    nodes_ = define_group(*file_, "nodes");
    edges_ = define_group(*file_, "edges");
  }
  void begin(const std::string& name, int type, int64_t width, const NcMeaning& meaning) {
    const std::lock_guard lock(netcdf_mutex());
    array_ = name;
    variable_ = group_->define(name, type, group_->dims_of(name, rows_, width), meaning);
    width_ = static_cast<size_t>(width);
    next_ = 0;
  }
  template <class Put>
  void put(size_t num_values, const Put& write) {
    if (num_values == 0) return;
    const std::lock_guard lock(netcdf_mutex());
    const std::array<size_t, 2> start{next_, 0}, count{num_values / width_, width_};
    file_->check(write(start.data(), count.data()), array_);
    next_ += count[0];
  }

  fs::path path_;
  std::string options_hash_;
  std::optional<NcFile> file_;  // made when the first nodes come, so that its errors are those then
  HashSink hash_;
  int nodes_ = -1, edges_ = -1, num_nodes_ = 0, num_edges_ = 0;
  std::optional<GroupWriter> group_;  // of the edge set that is being written
  EdgeSet names_;
  int rows_ = -1, variable_ = -1;
  std::string array_;
  size_t width_ = 1, next_ = 0;
};

}  // namespace

std::string save_slices(const fs::path& path, const GraphSlice& slice,
                        const std::string& options_hash, Peers& peers) {
  if (peers.rank() != 0) {
    HashSink unused;
    give_pieces(slice, peers, unused);
    return text_of_first("", peers);
  }
  std::string hash;
  std::exception_ptr error;
  bool given = false;
  try {
    hash = written_beside(path, [&](const fs::path& temporary) {
      FileSink sink(temporary, options_hash);
      given = true;
      give_pieces(slice, peers, sink);
      return sink.finish();
    });
  } catch (...) {
    error = std::current_exception();
  }
  HashSink unused;
  if (!given) give_pieces(slice, peers, unused);  // the others give all the same
  text_of_first(hash, peers);
  if (error) std::rethrow_exception(error);
  return hash;
}

}  // namespace aifs::graph
