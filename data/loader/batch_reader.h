// SPDX-License-Identifier: Apache-2.0
// The work on one batch, cut into tasks for the threads of a DataLoader: rows are opened, read in
// pieces, and turned from fields to cells. Used by data_loader.cpp alone.
#pragma once

#include <atomic>
#include <deque>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "data/loader/batch.h"
#include "data/loader/buffer_pool.h"
#include "data/loader/row_assembly.h"

namespace aifs::data {

// Sizes of a batch. Fields are those of all cells that are read, which are more than the own ones
// where ranks of a host read together.
struct BatchSizes {
  int64_t samples = 0, times = 0, members = 1, variables = 0;
  int64_t read_nodes = 0, own_nodes = 0;

  int64_t rows() const { return samples * times; }
  int64_t row_values() const { return members * read_nodes * variables; }
  int64_t values() const { return rows() * row_values(); }
  int64_t own_values() const { return rows() * members * own_nodes * variables; }
  int64_t marks() const { return samples * read_nodes * variables; }
};

// Memory of one batch: its own, or a slot of what ranks share.
struct BatchSlot {
  float* fields = nullptr;            // (B, T, E, V, N read)
  uint8_t* mask = nullptr;            // (B, N read, V); null: nothing is filled
  float* cells = nullptr;             // (B, T, E, N own, V) in that layout, else null
  std::shared_ptr<std::byte> memory;  // its own; null if there is none
};

struct BatchJob {
  enum class Kind { kOpen, kPiece, kTurn };
  struct Task {
    Kind kind;
    int64_t row = 0;    // of the batch: sample * times + time
    int64_t first = 0;  // piece, or first own cell
  };
  enum class Phase { kReading, kWaitingForOthers, kTurning, kDone };

  size_t number = 0;
  BatchRequest request;
  BatchSizes sizes;
  std::unique_ptr<BatchSlot> slot;
  struct Row {  // once it is open, and until its last piece is read
    std::unique_ptr<RowReader> reader;
    std::unique_ptr<RowAssembly> assembly;
    std::atomic<int64_t> pieces_left = 0;
  };
  std::deque<Row> rows;
  std::deque<Task> tasks;  // that wait for a thread
  int64_t running = 0;     // tasks that threads are at
  Phase phase = Phase::kReading;
  std::exception_ptr error;  // the first one, in the order of rows
  int64_t error_row = 0;
};

class BatchReader {
 public:
  // Both outlive this.
  BatchReader(const SampleSource& source, const LoaderOptions& options);

  bool fills() const { return !source_.imputer.empty(); }
  NodeRange read_nodes() const;
  BatchSizes sizes_of(const BatchRequest& request) const;
  // Makes `sizes` those that have room for a request, too.
  void grow(BatchSizes& sizes, const BatchRequest& request) const;
  // Bytes of a slot: in the memory that ranks may share, and in all.
  int64_t shared_bytes(const BatchSizes& sizes) const;
  int64_t slot_bytes(const BatchSizes& sizes) const;
  // Memory of the pool, with `shared` the fields in a slot of the share.
  std::unique_ptr<BatchSlot> make_slot(const BatchSizes& sizes, std::byte* shared,
                                       BufferPool& pool) const;

  // Fills in sizes and first tasks.
  void prepare(BatchJob& job) const;
  // Carries out a task; returns those that follow from it. Errors of reading name the date.
  std::vector<BatchJob::Task> run(BatchJob& job, BatchJob::Task task, ReadScratch& scratch) const;
  // The tasks that follow when all rows are read, by all ranks.
  std::vector<BatchJob::Task> turns(const BatchJob& job) const;
  // Tensors over the memory of a slot, which they keep alive.
  Batch batch_of(const BatchJob& job, const std::shared_ptr<BatchSlot>& slot) const;
  // Makes the own part of a shared mask what it was before the batch.
  void clear_own_mask(const BatchJob& job, BatchSlot& slot) const;

 private:
  std::vector<BatchJob::Task> run_task(BatchJob& job, BatchJob::Task task,
                                       ReadScratch& scratch) const;
  std::vector<BatchJob::Task> open_row(BatchJob& job, int64_t row, ReadScratch& scratch) const;
  void turn(const BatchJob& job, BatchJob::Task task) const;
  RowPlace place_of(const BatchJob& job, int64_t row) const;
  std::string date_of(const BatchJob& job, int64_t row) const;
  float* fields_of(const BatchJob& job, int64_t row) const {
    return job.slot->fields + row * job.sizes.row_values();
  }
  // True for pieces that are this rank's among those that read together.
  bool is_own(int64_t piece) const;
  int64_t own_offset() const { return options_.nodes.begin - read_nodes().begin; }

  const SampleSource& source_;
  const LoaderOptions& options_;
  ColumnMaps maps_;
};

}  // namespace aifs::data
