// SPDX-License-Identifier: Apache-2.0
// Batches on the device that computes. On a GPU a thread of its own takes batches from the loader
// as they come, copies them on a stream of their own while the caller works on another, and turns
// them from fields to cells there; on the CPU batches pass through.
#pragma once

#include "data/loader/data_loader.h"

namespace aifs::data {

class DeviceFeed {
 public:
  // As DataLoader; whatever `options` says of layout and device, batches have one cell after the
  // other.
  DeviceFeed(const SampleSource& source, LoaderOptions options, std::vector<BatchRequest> requests,
             c10::Device device);
  ~DeviceFeed();
  DeviceFeed(const DeviceFeed&) = delete;
  DeviceFeed& operator=(const DeviceFeed&) = delete;

  // As DataLoader::add(), before the last batch that is known was taken: the feed ends with it.
  void add(std::vector<BatchRequest> requests);

  // The next batch, its tensors ready for the current stream; one more is on the device, or on its
  // way there. False after the last one. Rethrows the error of a reader thread at the batch it
  // belongs to. Throws GivenUp as DataLoader::next() does; the batch can be asked for again.
  bool next(Batch& batch, const GiveUp& give_up = {});

  // Seconds next() has spent waiting since construction.
  double wait_s() const;
  // Seconds that reader threads have spent reading since construction, all of them together.
  double busy_s() const { return loader_.busy_s(); }

 private:
  class Copies;
  DataLoader loader_;
  std::unique_ptr<Copies> copies_;  // none on the CPU
};

}  // namespace aifs::data
