// SPDX-License-Identifier: Apache-2.0
// Reads, fills, normalises and stacks samples in background threads, a bounded number ahead of the
// consumer, and delivers them in order. No processes are forked. An error in a thread reaches the
// consumer at the batch it belongs to.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "data/dataset.h"
#include "data/imputer.h"
#include "data/normaliser.h"
#include "data/remapper.h"

namespace aifs::data {

// One training or validation batch, on the CPU.
struct Batch {
  at::Tensor values;    // (B, T, E, N, V) f32, normalised, all dataset variables
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
  NodeRange nodes;  // the cells to read
  int64_t threads = 2;
  int64_t prefetch_batches = 2;  // read ahead of the consumer at most this many
  bool pin_memory = false;       // page-locked tensors, for asynchronous copies to a GPU
};

// Asked now and then by whoever waits for data; true: stop waiting. Empty: wait for ever.
using GiveUp = std::function<bool()>;

// Thrown by next() when its caller has given up waiting. The batch can be asked for again.
class GivenUp : public std::exception {
 public:
  const char* what() const noexcept override { return "waiting for data was given up"; }
};

// Everything that turns rows into normalised tensors; outlives the loader.
struct SampleSource {
  std::shared_ptr<const Dataset> dataset;
  Normaliser normaliser;
  Imputer imputer;
  Remapper remapper = {};
};

// Reads one batch in the calling thread.
Batch read_batch(const SampleSource& source, const LoaderOptions& options,
                 const BatchRequest& request);

class DataLoader {
 public:
  // Starts reading at once; batches are delivered in the order of the requests.
  DataLoader(const SampleSource& source, LoaderOptions options, std::vector<BatchRequest> requests);
  // Stops the threads; batches that were not taken are dropped.
  ~DataLoader();
  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;

  // The next batch; waits for it. False after the last one. Rethrows the error of a reader thread;
  // throws GivenUp within a fifth of a second after `give_up` became true, unless the batch is
  // there.
  bool next(Batch& batch, const GiveUp& give_up = {});

  // Seconds next() has spent waiting since construction.
  double wait_s() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace aifs::data
