// SPDX-License-Identifier: Apache-2.0
// One batch of samples, what to read for it, and how.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>

#include <cstdint>
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

// Describes what to read for one batch: for each anchor the rows anchor + offset.
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
  // Says where buffers come from; null: a pool of the loader's own.
  std::shared_ptr<BufferPool> pool = nullptr;
};

}  // namespace aifs::data
