// SPDX-License-Identifier: Apache-2.0
// Reads, fills, normalises and stacks samples in background threads, ahead of the consumer, and
// delivers batches in order. All threads work on the batch that is needed next: its rows are read
// in pieces (blocks of chunks). Buffers are allocated once and used again. No processes are forked.
// An error in a thread reaches the consumer at the batch it belongs to; the values do not depend on
// the number of threads.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "data/loader/batch.h"

namespace aifs::data {

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
