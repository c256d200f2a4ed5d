// SPDX-License-Identifier: Apache-2.0
// The values of a network shared out over ranks: each rank updates its part of every bucket, and
// the others get it, at once (ZeRO-1, ZeRO-2) or when a layer needs it (ZeRO-3, FSDP).
//
// Between take_values() and the end values are kept as parts only, where that is wanted: layers
// fetch theirs through UnitKeeper, all that belongs to no layer is there from fetch(0) to
// release(0). Everything but the accessors is collective over the shard group.
#pragma once

#include "parallel/process_mesh.h"
#include "parallel/side_stream.h"
#include "train/sharding/shard_layout.h"
#include "train/sharding/sharding.h"

namespace aifs::train {

class ParameterShards : public model::UnitKeeper {
 public:
  // Both outlive it.
  ParameterShards(model::ParameterSet& parameters, const ShardingOptions& options, double bucket_mb,
                  const parallel::ProcessMesh& mesh);
  ~ParameterShards() override;
  ParameterShards(const ParameterShards&) = delete;
  ParameterShards& operator=(const ParameterShards&) = delete;

  Sharding states() const { return options_.states; }
  bool on_host() const { return options_.offload != Offload::kNone; }
  const ShardLayout& layout() const { return *layout_; }
  // The ranks that hold everything together, and those that hold the same part.
  parallel::Communicator& shard_group() const { return *shard_group_; }
  parallel::Communicator& copy_group() const { return *copy_group_; }

  // Values of the own part of a bucket, (own_size): what an optimiser updates.
  at::Tensor own_values(const ShardBucket& bucket) const;
  // Own parts of all buckets, (local_size): the storage itself or a copy.
  at::Tensor local_values() const;
  // Replaces own parts and publishes them.
  void set_local_values(const at::Tensor& local);

  // Own parts have changed: gives them to the others.
  void publish();
  // From (local_size) of each rank to what is laid out as the flat values, and back.
  at::Tensor whole(const at::Tensor& local) const;
  at::Tensor own(const at::Tensor& whole) const;

  // Ends the time in which every rank has all values, if values are shared out.
  void take_values();
  bool has_taken() const { return local_values_.defined(); }
  // All values at once, until release_all(): for validation, a checkpoint or a report.
  void fetch_all();
  void release_all();
  // A pass over the layers begins: fetches are foreseen from those of the last one of this kind.
  void start_pass(int64_t kind);

  void fetch(int64_t unit) override;
  void release(int64_t unit) override;

 private:
  struct Unit {
    std::vector<size_t> buckets;
    bool here = false;
  };
  void gather(int64_t unit);
  void drop(int64_t unit);
  void fetch_ahead();

  model::ParameterSet& parameters_;
  ShardingOptions options_;
  std::unique_ptr<parallel::Communicator> shard_group_, copy_group_;
  std::unique_ptr<ShardLayout> layout_;
  at::Tensor local_values_;              // defined once values are taken
  std::vector<at::Tensor> full_values_;  // per bucket, without memory unless fetched
  std::vector<Unit> units_;
  std::unique_ptr<parallel::SideStream> side_;
  int64_t num_here_ = 0;                             // layers fetched
  bool held_ = false;                                // between fetch_all() and release_all()
  std::map<int64_t, std::vector<int64_t>> fetches_;  // of the last pass of each kind
  std::vector<int64_t> fetched_now_;
  int64_t pass_kind_ = 0;
};

}  // namespace aifs::train
