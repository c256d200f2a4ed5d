// SPDX-License-Identifier: Apache-2.0
#include "data/batch_reader.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>

#include "data/field_kernels.h"
#include "data/host_share.h"

namespace aifs::data {

namespace {

// Fields beyond this are written past the caches.
constexpr int64_t kCachedBytes = int64_t{8} << 20;
constexpr int64_t kTurnedCells = 8192;  // of one task
constexpr auto kFloatBytes = static_cast<int64_t>(sizeof(float));

}  // namespace

void BatchJob::close() {
  assemblies.clear();
  readers.clear();
}

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

BatchSizes BatchReader::largest(const std::vector<BatchRequest>& requests) const {
  BatchSizes largest = sizes_of({});
  for (const BatchRequest& request : requests) {
    largest.samples = std::max(largest.samples, static_cast<int64_t>(request.anchors.size()));
    largest.times = std::max(largest.times, static_cast<int64_t>(request.offsets.size()));
  }
  return largest;
}

int64_t BatchReader::shared_bytes(const BatchSizes& sizes) const {
  return kFloatBytes * sizes.values() + (fills() ? sizes.marks() : 0);
}

int64_t BatchReader::slot_bytes(const BatchSizes& sizes) const {
  const bool has_cells = options_.layout == BatchLayout::kCells;
  return shared_bytes(sizes) + (has_cells ? kFloatBytes * sizes.own_values() : 0);
}

std::unique_ptr<BatchSlot> BatchReader::make_slot(const BatchSizes& sizes,
                                                  std::byte* shared) const {
  auto slot = std::make_unique<BatchSlot>();
  const auto type = at::TensorOptions(at::kFloat).pinned_memory(options_.pin_memory);
  if (options_.layout == BatchLayout::kCells) slot->cells = at::empty({sizes.own_values()}, type);
  if (shared) {
    slot->fields = static_cast<float*>(static_cast<void*>(shared));
    std::byte* marks = shared + kFloatBytes * sizes.values();
    if (fills()) slot->mask = static_cast<uint8_t*>(static_cast<void*>(marks));
    return slot;
  }
  slot->own_fields = at::empty({sizes.values()}, type);
  slot->fields = slot->own_fields.data_ptr<float>();
  if (fills()) {
    slot->own_mask = at::empty({sizes.marks()}, type.dtype(at::kByte));
    slot->mask = slot->own_mask.data_ptr<uint8_t>();
  }
  return slot;
}

void BatchReader::prepare(BatchJob& job, const BatchRequest& request) const {
  job.sizes = sizes_of(request);
  job.readers.resize(static_cast<size_t>(job.sizes.rows()));
  job.assemblies.resize(static_cast<size_t>(job.sizes.rows()));
  for (int64_t row = 0; row < job.sizes.rows(); ++row)
    job.tasks.push_back({BatchJob::Kind::kOpen, row});
}

RowPlace BatchReader::place_of(const BatchJob& job, const BatchRequest& request,
                               int64_t row) const {
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

std::vector<BatchJob::Task> BatchReader::run(BatchJob& job, const BatchRequest& request,
                                             BatchJob::Task task, ReadScratch& scratch) const {
  std::vector<BatchJob::Task> following;
  const auto row = static_cast<size_t>(task.row);
  switch (task.kind) {
    case BatchJob::Kind::kOpen: {
      const RowPlace place = place_of(job, request, task.row);
      // A shared mask is clear already: its users have left it so.
      if (!options_.share) std::fill(place.nan_mask.begin(), place.nan_mask.end(), uint8_t{0});
      if (!maps_.are_independent()) {
        if (is_own(task.row)) read_whole_row(source_, maps_, place, scratch);
        break;
      }
      job.readers[row] = source_.dataset->open_row(place.row, place.nodes);
      job.assemblies[row] = std::make_unique<RowAssembly>(source_, maps_, place);
      const auto count = static_cast<int64_t>(job.readers[row]->num_pieces());
      for (int64_t piece = 0; piece < count; ++piece) {
        if (is_own(task.row + piece))
          following.push_back({BatchJob::Kind::kPiece, task.row, piece});
      }
      break;
    }
    case BatchJob::Kind::kPiece:
      job.readers[row]->read_piece(static_cast<size_t>(task.first), *job.assemblies[row], scratch);
      break;
    case BatchJob::Kind::kTurn: {
      const BatchSizes& sizes = job.sizes;
      const int64_t count = std::min(kTurnedCells, sizes.own_nodes - task.first);
      for (int64_t e = 0; e < sizes.members; ++e) {
        const float* fields = fields_of(job, task.row) + e * sizes.variables * sizes.read_nodes +
                              own_offset() + task.first;
        float* cells =
            job.slot->cells.data_ptr<float>() +
            ((task.row * sizes.members + e) * sizes.own_nodes + task.first) * sizes.variables;
        fields_to_cells(fields, sizes.read_nodes, sizes.variables, count, cells, sizes.variables);
      }
      break;
    }
  }
  return following;
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

Batch BatchReader::batch_of(const BatchJob& job, const BatchRequest& request,
                            const std::shared_ptr<BatchSlot>& slot) const {
  const BatchSizes& s = job.sizes;
  const auto type = at::TensorOptions(at::kFloat);
  const auto keep = [slot](void*) {};
  Batch batch;
  batch.anchors = request.anchors;
  if (options_.layout == BatchLayout::kCells) {
    batch.values =
        at::from_blob(slot->cells.data_ptr(),
                      {s.samples, s.times, s.members, s.own_nodes, s.variables}, keep, type);
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
