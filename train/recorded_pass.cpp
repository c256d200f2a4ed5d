// SPDX-License-Identifier: Apache-2.0
#include "train/recorded_pass.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "core/check.h"
#include "core/log.h"
#include "model/network/encoder_processor_decoder.h"

namespace aifs::train {

RecordedPass::RecordedPass(const at::Tensor& values, const Loss& loss,
                           const AddGradients& add_gradients, const RecordedPass* other,
                           parallel::CommunicationCount* count)
    : values_(values.clone()), count_(count) {
  at::Tensor with_history;
  forward_ =
      record([&] { with_history = loss(values_); }, other ? other->forward_.graph.get() : nullptr);
  backward_ = record([&] { add_gradients(with_history); }, forward_.graph.get());
  loss_ = with_history.detach();
}

RecordedPass::Piece RecordedPass::record(const std::function<void()>& work,
                                         const DeviceGraph* other) const {
  Piece piece;
  const auto capture = [&] { piece.graph = std::make_unique<DeviceGraph>(work, other); };
  if (count_) {
    piece.sent = count_->of_recorded(capture);
  } else {
    capture();
  }
  return piece;
}

void RecordedPass::launch(const Piece& piece) {
  piece.graph->launch();
  if (count_) count_->add(piece.sent);
}

at::Tensor RecordedPass::loss_of(const at::Tensor& values) {
  values_.copy_(values);
  launch(forward_);
  return loss_;
}

void RecordedPass::add_gradients() {
  launch(backward_);
}

std::string why_not_recorded(Precision precision, const ShardingOptions& sharding,
                             const ReductionOptions& reduction,
                             const model::EncoderProcessorDecoder& network,
                             const parallel::ProcessMesh& mesh) {
  if (precision == Precision::kFp16Mixed) return "the loss scale changes";
  if (network.has_noise()) return "noise is drawn anew";
  if (network.uses_host_memory()) return "inputs of layers are copied to the host and back";
  if (sharding.states == Sharding::kGradients || sharding.states == Sharding::kParameters)
    return "gradients are shared out as they come";
  if (reduction.compression == Compression::kPowerSgd) return "PowerSGD begins after some steps";
  if (mesh.sizes().pipeline > 1) return "stages of a pipeline wait for each other";
  const parallel::Communicator& world = mesh.world();
  if (world.size() > 1 && std::string_view(world.backend()) != "NCCL")
    return concat("tensors travel over ", world.backend());
  return {};
}

void PassRecorder::start(DeviceGraphs wanted, const std::string& reason,
                         parallel::Communicator& world) {
  wanted_ = wanted;
  world_ = &world;
  if (wanted_ != DeviceGraphs::kOff && !reason.empty()) give_up(reason);
}

RecordedPass* PassRecorder::give_up(const std::string& reason) {
  log::info("no CUDA graph: ", reason);
  stop();
  return nullptr;
}

void PassRecorder::stop() {
  wanted_ = DeviceGraphs::kOff;
  passes_.clear();
}

RecordedPass* PassRecorder::pass(const Kind& kind, const at::Tensor& values,
                                 const RecordedPass::Loss& loss,
                                 const RecordedPass::AddGradients& add_gradients) {
  constexpr double kMostMemory = 0.4;
  if (wanted_ == DeviceGraphs::kOff) return nullptr;
  const auto [known, first] = passes_.try_emplace(kind);
  if (first) {  // it runs by itself: gradients learn their order
    std::erase_if(passes_, [&](const auto& other) { return other.first[0] != kind[0]; });
    return nullptr;
  }
  if (known->second) return known->second.get();
  const double used = DeviceGraph::peak_memory_share();
  if (parallel::on_any_rank(*world_, wanted_ == DeviceGraphs::kAuto && used > kMostMemory)) {
    return give_up(concat("more than ", std::lround(100.0 * kMostMemory),
                          " % of a card's memory is in use (train.cuda_graph: on records)"));
  }
  const auto other = std::find_if(passes_.begin(), passes_.end(),
                                  [](const auto& pass) { return pass.second != nullptr; });
  std::string failure;
  try {
    known->second = std::make_unique<RecordedPass>(
        values, loss, add_gradients, other == passes_.end() ? nullptr : other->second.get(),
        world_->count());
  } catch (const Error& error) {
    failure = error.what();
  }
  if (parallel::on_any_rank(*world_, !failure.empty()))
    return give_up(failure.empty() ? "another rank cannot record" : failure);
  log::info("CUDA graph of ", kind[0], kind[0] == 1 ? " forecast step" : " forecast steps");
  return known->second.get();
}

}  // namespace aifs::train
