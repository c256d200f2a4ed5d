// SPDX-License-Identifier: Apache-2.0
// Reads, fills, normalises and stacks samples in background threads, ahead of the consumer, and
// delivers batches in order. All threads work on the batch that is needed next: its rows are read
// in pieces (blocks of chunks). Buffers are allocated once and used again. No processes are forked.
// An error in a thread reaches the consumer at the batch it belongs to; the values do not depend on
// the number of threads.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "data/data_source.h"

namespace aifs::data {

class BufferPool;
class HostShare;

// Order of the last two axes of a batch: one cell after the other, as networks want them, or one
// variable after the other, as they are read.
enum class BatchLayout { kCells, kFields };

// One training or validation batch, on the CPU.
struct Batch {
  at::Tensor values;    // (B, T, E, N, V) f32, or (B, T, E, V, N) with fields apart; normalised,
                        // all variables
  at::Tensor nan_mask;  // (B, N, V) u8: 1 where a filled variable was NaN at the first time;
                        // undefined if nothing is filled
  std::vector<int64_t> anchors;  // (B) row of time offset 0
};

// What to read for one batch: for each anchor the rows anchor + offset.
struct BatchRequest {
  std::vector<int64_t> anchors;  // (B)
  std::vector<int64_t> offsets;  // (T) ascending
};

struct LoaderOptions {
  NodeRange nodes = {};  // the cells to read
  int64_t threads = 2;
  // How far to read ahead of the consumer: batches, and bytes of all buffers, those of batches that
  // the consumer holds included. 0: as many batches as memory_bytes has room for, or a few; as many
  // bytes as they take, at most this process's share of a quarter of the memory that it may use.
  int64_t prefetch_batches = 0;
  int64_t memory_bytes = 0;
  int64_t processes = 1;  // of this machine that read like this one
  // How often a read that fails is tried again, after 0.2, 0.8, 3.2, ... seconds.
  int64_t retries = 0;
  // Batches will be copied to this device: page-locked tensors, if it is a GPU.
  c10::Device device = c10::Device(c10::kCPU);
  BatchLayout layout = BatchLayout::kCells;
  // Memory in which the ranks of this host that need other cells of the same samples read together;
  // all of them make the same requests. Null: this rank reads for itself.
  std::shared_ptr<HostShare> share = nullptr;
  // Where buffers come from; null: a pool of the loader's own.
  std::shared_ptr<BufferPool> pool = nullptr;
};

// Memory that a process may read batches into if nobody says how much: its share of a quarter of
// what it may use, among so many of a machine.
int64_t automatic_memory(int64_t processes);

// How many batches of `batch_bytes` are kept at a time, the one that is used included: as many as
// are wanted ahead and have room. Throws ConfigError if options.memory_bytes has no room for one.
int64_t num_buffers(const LoaderOptions& options, int64_t batch_bytes);

// Asked now and then by whoever waits for data; true: stop waiting. Empty: wait for ever.
using GiveUp = std::function<bool()>;

// Thrown by next() when its caller has given up waiting. The batch can be asked for again.
class GivenUp : public std::exception {
 public:
  const char* what() const noexcept override { return "waiting for data was given up"; }
};

// Reads one batch in the calling thread.
Batch read_batch(const SampleSource& source, const LoaderOptions& options,
                 const BatchRequest& request);

class DataLoader {
 public:
  // Starts reading at once; batches are delivered in the order of the requests. `source` outlives
  // the loader. Throws ConfigError if options.memory_bytes has no room for the largest batch.
  DataLoader(const SampleSource& source, LoaderOptions options, std::vector<BatchRequest> requests);
  // Stops the threads; batches that were not taken are dropped.
  ~DataLoader();
  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;

  // Adds batches after those that are known. Where ranks read together, by all of them. Throws
  // ConfigError as the constructor.
  void add(std::vector<BatchRequest> requests);

  // The next batch; waits for it. False after the last one that is known. Its tensors may be kept;
  // their buffer is used again when the last of them is gone. Rethrows the error of a reader
  // thread; throws GivenUp within a fifth of a second after `give_up` became true, unless the batch
  // is there.
  bool next(Batch& batch, const GiveUp& give_up = {});

  // Seconds next() has spent waiting since construction.
  double wait_s() const;
  // Seconds that threads have spent reading since construction, all of them together.
  double busy_s() const;
  // Bytes of the buffers of batches that are being read, wait, or are held by the consumer.
  int64_t buffer_bytes() const;

 private:
  struct State;
  std::shared_ptr<State> state_;  // tensors of batches hold it, too
};

}  // namespace aifs::data
