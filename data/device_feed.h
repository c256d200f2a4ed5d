// SPDX-License-Identifier: Apache-2.0
// Batches on the device that computes. On a GPU, the copy of the next batch runs on a stream of its
// own while the caller works on the present one; on the CPU batches pass through.
#pragma once

#include "data/data_loader.h"

namespace aifs::data {

class DeviceFeed {
 public:
  // As DataLoader; tensors are page-locked whatever `options` says if `device` is a GPU.
  DeviceFeed(const SampleSource& source, LoaderOptions options, std::vector<BatchRequest> requests,
             c10::Device device);
  ~DeviceFeed();
  DeviceFeed(const DeviceFeed&) = delete;
  DeviceFeed& operator=(const DeviceFeed&) = delete;

  // The next batch, its tensors ready for the current stream; at most one more is on the device.
  // False after the last one. Rethrows the error of a reader thread at the batch it belongs to.
  // Throws GivenUp as DataLoader::next() does; after that, next() must not be called again.
  bool next(Batch& batch, const GiveUp& give_up = {});

  // Seconds next() has spent waiting for readers since construction.
  double wait_s() const;

 private:
  struct Copies;
  DataLoader loader_;
  std::unique_ptr<Copies> copies_;  // none on the CPU
};

}  // namespace aifs::data
