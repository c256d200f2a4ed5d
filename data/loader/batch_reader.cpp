// SPDX-License-Identifier: Apache-2.0
#include "data/loader/batch_reader.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>

#include "core/time.h"
#include "data/fields/field_kernels.h"
#include "data/host_share.h"
#include "data/zarr/store.h"

namespace aifs::data {

namespace {

// Fields beyond this are written past the caches.
constexpr int64_t kCachedBytes = int64_t{8} << 20;
constexpr int64_t kTurnedCells = 8192;  // of one task
constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));

}  // namespace

BatchReader::BatchReader(const SampleSource& source, const LoaderOptions& options)
    : source_(source), options_(options), maps_(source) {}

NodeRange BatchReader::read_nodes() const {
  return options_.share ? options_.share->place().cells : options_.nodes;
}

bool BatchReader::is_own(int64_t piece) const {
  if (!options_.share) return true;
  const HostShare::Place& place = options_.share->place();
  return piece % place.ranks == place.rank;
}

BatchSizes BatchReader::sizes_of(const BatchRequest& request) const {
  const DatasetInfo& info = source_.dataset->info();
  return {.samples = static_cast<int64_t>(request.anchors.size()),
          .times = static_cast<int64_t>(request.offsets.size()),
          .members = info.ensemble_size,
          .variables = info.num_variables(),
          .read_nodes = read_nodes().size(),
          .own_nodes = options_.nodes.size()};
}

void BatchReader::grow(BatchSizes& sizes, const BatchRequest& request) const {
  const BatchSizes wanted = sizes_of(request);
  const BatchSizes before = sizes;
  sizes = wanted;
  sizes.samples = std::max(before.samples, wanted.samples);
  sizes.times = std::max(before.times, wanted.times);
}

int64_t BatchReader::shared_bytes(const BatchSizes& sizes) const {
  return kFloatBytes * sizes.values() + (fills() ? sizes.marks() : 0);
}

int64_t BatchReader::slot_bytes(const BatchSizes& sizes) const {
  const bool has_cells = options_.layout == BatchLayout::kCells;
  return shared_bytes(sizes) + (has_cells ? kFloatBytes * sizes.own_values() : 0);
}

std::unique_ptr<BatchSlot> BatchReader::make_slot(const BatchSizes& sizes, std::byte* shared,
                                                  BufferPool& pool) const {
  auto slot = std::make_unique<BatchSlot>();
  const int64_t fields = kFloatBytes * sizes.values(), marks = fills() ? sizes.marks() : 0;
  const bool has_cells = options_.layout == BatchLayout::kCells;
  const int64_t cells = has_cells ? kFloatBytes * sizes.own_values() : 0;
  const int64_t own = (shared ? 0 : fields + marks) + cells;
  if (own > 0) slot->memory = pool.take(own);
  const auto floats = [](std::byte* at) { return static_cast<float*>(static_cast<void*>(at)); };
  std::byte* next = slot->memory.get();
  if (has_cells) {  // first: whole floats, on the page
    slot->cells = floats(next);
    next += cells;
  }
  if (shared) next = shared;
  slot->fields = floats(next);
  if (fills()) slot->mask = static_cast<uint8_t*>(static_cast<void*>(next + fields));
  return slot;
}

void BatchReader::prepare(BatchJob& job) const {
  job.sizes = sizes_of(job.request);
  job.rows.resize(static_cast<size_t>(job.sizes.rows()));
  for (int64_t row = 0; row < job.sizes.rows(); ++row)
    job.tasks.push_back({BatchJob::Kind::kOpen, row});
}

RowPlace BatchReader::place_of(const BatchJob& job, int64_t row) const {
  const BatchRequest& request = job.request;
  const BatchSizes& sizes = job.sizes;
  const auto sample = row / sizes.times, time = row % sizes.times;
  RowPlace place{.row = request.anchors[static_cast<size_t>(sample)] +
                        request.offsets[static_cast<size_t>(time)],
                 .nodes = read_nodes(),
                 .fields = {fields_of(job, row), static_cast<size_t>(sizes.row_values())},
                 .nan_mask = {},
                 .streams = kFloatBytes * sizes.values() > kCachedBytes};
  if (job.slot->mask && time == 0) {  // only the first time of a sample is marked
    const int64_t marks = sizes.marks() / sizes.samples;
    place.nan_mask = {job.slot->mask + sample * marks, static_cast<size_t>(marks)};
  }
  return place;
}

std::string BatchReader::date_of(const BatchJob& job, int64_t row) const {
  const DatasetInfo& info = source_.dataset->info();
  return format_date(info.dates_s[static_cast<size_t>(place_of(job, row).row)]);
}

std::vector<BatchJob::Task> BatchReader::run(BatchJob& job, BatchJob::Task task,
                                             ReadScratch& scratch) const {
  const auto with_date = [&](const DataError& error) {
    const std::string date = date_of(job, task.row);
    const std::string what = error.what();
    return what.find(date) == std::string::npos ? concat(what, " (date ", date, ")") : what;
  };
  try {
    return run_task(job, task, scratch);
  } catch (const zarr::ReadError& error) {
    throw zarr::ReadError(with_date(error), error.hint());
  } catch (const DataError& error) {
    throw DataError(with_date(error), error.hint());
  }
}

std::vector<BatchJob::Task> BatchReader::open_row(BatchJob& job, int64_t number,
                                                  ReadScratch& scratch) const {
  std::vector<BatchJob::Task> pieces;
  const RowPlace place = place_of(job, number);
  // A shared mask is clear already: its users have left it so.
  if (!options_.share) std::fill(place.nan_mask.begin(), place.nan_mask.end(), uint8_t{0});
  if (!maps_.are_independent()) {
    if (is_own(number)) read_whole_row(source_, maps_, place, scratch);
    return pieces;
  }
  std::unique_ptr<RowReader> reader = source_.dataset->open_row(place.row, place.nodes);
  const auto count = static_cast<int64_t>(reader->num_pieces());
  for (int64_t piece = 0; piece < count; ++piece) {
    if (is_own(number + piece)) pieces.push_back({BatchJob::Kind::kPiece, number, piece});
  }
  if (pieces.empty()) return pieces;
  BatchJob::Row& row = job.rows[static_cast<size_t>(number)];
  row.reader = std::move(reader);
  row.assembly = std::make_unique<RowAssembly>(source_, maps_, place);
  row.pieces_left = static_cast<int64_t>(pieces.size());
  return pieces;
}

void BatchReader::turn(const BatchJob& job, BatchJob::Task task) const {
  const BatchSizes& sizes = job.sizes;
  const int64_t count = std::min(kTurnedCells, sizes.own_nodes - task.first);
  for (int64_t e = 0; e < sizes.members; ++e) {
    const float* fields = fields_of(job, task.row) + e * sizes.variables * sizes.read_nodes +
                          own_offset() + task.first;
    float* cells =
        job.slot->cells +
        ((task.row * sizes.members + e) * sizes.own_nodes + task.first) * sizes.variables;
    fields_to_cells(fields, sizes.read_nodes, sizes.variables, count, cells, sizes.variables);
  }
}

std::vector<BatchJob::Task> BatchReader::run_task(BatchJob& job, BatchJob::Task task,
                                                  ReadScratch& scratch) const {
  if (task.kind == BatchJob::Kind::kOpen) return open_row(job, task.row, scratch);
  if (task.kind == BatchJob::Kind::kTurn) {
    turn(job, task);
    return {};
  }
  BatchJob::Row& row = job.rows[static_cast<size_t>(task.row)];
  row.reader->read_piece(static_cast<size_t>(task.first), *row.assembly, scratch);
  if (--row.pieces_left == 0) {  // files are closed, and what they held is given back
    row.reader.reset();
    row.assembly.reset();
  }
  return {};
}

std::vector<BatchJob::Task> BatchReader::turns(const BatchJob& job) const {
  std::vector<BatchJob::Task> tasks;
  if (options_.layout == BatchLayout::kFields) return tasks;
  for (int64_t row = 0; row < job.sizes.rows(); ++row) {
    for (int64_t cell = 0; cell < job.sizes.own_nodes; cell += kTurnedCells)
      tasks.push_back({BatchJob::Kind::kTurn, row, cell});
  }
  return tasks;
}

Batch BatchReader::batch_of(const BatchJob& job, const std::shared_ptr<BatchSlot>& slot) const {
  const BatchSizes& s = job.sizes;
  const auto type = at::TensorOptions(at::kFloat);
  const auto keep = [slot](void*) {};
  Batch batch;
  batch.anchors = job.request.anchors;
  if (options_.layout == BatchLayout::kCells) {
    batch.values = at::from_blob(
        slot->cells, {s.samples, s.times, s.members, s.own_nodes, s.variables}, keep, type);
  } else {
    const int64_t field = s.read_nodes, member = s.variables * field, row = s.members * member;
    batch.values = at::from_blob(slot->fields + own_offset(),
                                 {s.samples, s.times, s.members, s.variables, s.own_nodes},
                                 {s.times * row, row, member, field, 1}, keep, type);
  }
  if (slot->mask) {
    const int64_t cell = s.variables;
    batch.nan_mask =
        at::from_blob(slot->mask + own_offset() * cell, {s.samples, s.own_nodes, s.variables},
                      {s.read_nodes * cell, cell, 1}, keep, type.dtype(at::kByte));
  }
  return batch;
}

void BatchReader::clear_own_mask(const BatchJob& job, BatchSlot& slot) const {
  if (!slot.mask) return;
  const BatchSizes& s = job.sizes;
  for (int64_t sample = 0; sample < s.samples; ++sample) {
    std::memset(slot.mask + (sample * s.read_nodes + own_offset()) * s.variables, 0,
                static_cast<size_t>(s.own_nodes * s.variables));
  }
}

}  // namespace aifs::data
