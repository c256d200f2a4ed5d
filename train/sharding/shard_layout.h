// SPDX-License-Identifier: Apache-2.0
// The flat buffers of a ParameterSet cut into buckets, and each bucket into one part a rank.
#pragma once

#include "model/base/parameters.h"

namespace aifs::train {

// Consecutive parameters whose gradients are reduced together, either whole tensors or slices.
// Positions are in elements of the flat buffers unless they are said to be local: own parts of all
// buckets, one after another.
struct ShardBucket {
  int64_t begin = 0, end = 0;
  int64_t unit = 0;                     // of all its parameters, where buckets follow units
  bool sliced = false;                  // over tensor ranks
  std::vector<size_t> parameters = {};  // in ParameterSet::entries()
  std::vector<int64_t> counts = {};     // elements per rank
  int64_t own_begin = 0, own_size = 0;
  int64_t local_begin = 0;

  int64_t size() const { return end - begin; }
};

class ShardLayout {
 public:
  // Buckets of at least `bucket_elements`, but for what is left over at the front, whose gradients
  // come last and which so is reduced soonest after the backward pass; or one for each unit and
  // stretch between units, two where some of its tensors are sliced. Parts are multiples of
  // ParameterSet::kAlignment.
  ShardLayout(const model::ParameterSet& parameters, int64_t bucket_elements, bool by_unit,
              int64_t num_shards, int64_t shard);

  const std::vector<ShardBucket>& buckets() const { return buckets_; }
  int64_t local_size() const { return local_size_; }
  // Returns where own parts of slices begin; before are those of whole tensors.
  int64_t local_first_sliced() const { return local_first_sliced_; }
  // The bucket of a parameter with an offset.
  size_t bucket_of(size_t parameter) const { return bucket_of_[parameter]; }

 private:
  std::vector<ShardBucket> buckets_;
  std::vector<size_t> bucket_of_;
  int64_t local_size_ = 0, local_first_sliced_ = 0;
};

}  // namespace aifs::train
