// SPDX-License-Identifier: Apache-2.0
// Loss and gradients of a batch as device graphs, for batches of one shape.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "parallel/backends/counting_communicator.h"
#include "parallel/process_mesh.h"
#include "train/device_graph.h"
#include "train/options.h"
#include "train/sharding/sharding.h"

namespace aifs::model {
class EncoderProcessorDecoder;
}

namespace aifs::train {

class RecordedPass {
 public:
  using Loss = std::function<at::Tensor(const at::Tensor& values)>;
  using AddGradients = std::function<void(const at::Tensor& loss)>;

  // Records both, on batches like `values`, in the memory of another pass, if one is given: only
  // one of them is under way at a time. What they send is added to `count`, if there is one, at
  // each launch. Throws Error with the reason if they cannot be recorded.
  RecordedPass(const at::Tensor& values, const Loss& loss, const AddGradients& add_gradients,
               const RecordedPass* other = nullptr, parallel::CommunicationCount* count = nullptr);

  // The loss of a batch, scalar; it holds until the next call.
  at::Tensor loss_of(const at::Tensor& values);
  // After loss_of(): adds its gradients, as recorded.
  void add_gradients();

 private:
  struct Piece {
    std::unique_ptr<DeviceGraph> graph;
    parallel::OperationCounts sent;
  };
  Piece record(const std::function<void()>& work, const DeviceGraph* other) const;
  void launch(const Piece& piece);

  at::Tensor values_, loss_;
  parallel::CommunicationCount* count_;
  Piece forward_, backward_;
};

// Why passes of such a run cannot be recorded; empty: they can.
std::string why_not_recorded(Precision precision, const ShardingOptions& sharding,
                             const ReductionOptions& reduction,
                             const model::EncoderProcessorDecoder& network,
                             const parallel::ProcessMesh& mesh);

// Records the passes of a run, the second of each kind. Says in the log what it does.
class PassRecorder {
 public:
  // Passes of a kind are the same for the device: rollout, samples, what divides the gradients,
  // whether gradients are reduced.
  using Kind = std::array<int64_t, 4>;

  // Until then nothing is recorded; nor afterwards if there is a reason against it. All ranks of
  // `world`, which outlives this, record or none: NCCL wants it so.
  void start(DeviceGraphs wanted, const std::string& reason, parallel::Communicator& world);
  // The recorded pass, or none: the caller runs it by itself. Passes of another rollout are
  // dropped.
  RecordedPass* pass(const Kind& kind, const at::Tensor& values, const RecordedPass::Loss& loss,
                     const RecordedPass::AddGradients& add_gradients);
  // Frees what was recorded; nothing is any more.
  void stop();

 private:
  RecordedPass* give_up(const std::string& reason);

  parallel::Communicator* world_ = nullptr;
  DeviceGraphs wanted_ = DeviceGraphs::kOff;
  std::map<Kind, std::unique_ptr<RecordedPass>> passes_;  // null after the first of a kind
};

}  // namespace aifs::train
