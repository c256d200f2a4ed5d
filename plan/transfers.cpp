// SPDX-License-Identifier: Apache-2.0
// What a rank sends in a step.
#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "plan/all_reduce_cost.h"
#include "plan/step_plan.h"

namespace aifs::plan {

namespace {

class Transfers {
 public:
  Transfers(const StepInput& input, const RankRows& rows, const NetworkCost& cost,
            double backward_s)
      : input_(input),
        layout_(input.layout),
        machine_(input.machine),
        rows_(rows),
        cost_(cost),
        backward_s_(backward_s) {}

  std::vector<Transfer> all(bool divided) {
    if (divided) {
      const bool halo = input_.mapper_sources == graph::SourceRows::kHalo;
      const std::vector<PlacedPart> parts = placed_parts(cost_, rows_);
      for (const PlacedPart& p : parts)
        add_sources(concat(p.what, " sources"), p, halo || !p.is_mapper);
      for (const PlacedPart& p : parts)
        add_exchanges(concat(p.what, " attention"), p.part);
      add_loss();
    }
    if (cost_.on_host() > 0.0) add_host_copies();
    if (layout_.tensor > 1) add_tensor_sums();
    if (layout_.pipeline > 1) add_stages();
    if (layout_.holders() > 1) {
      add_gradients();
      add_parameters();
    }
    if (layout_.ranks() > 1) add_agreement();
    return std::move(list_);
  }

 private:
  // Batches of a step, and the forward passes of each.
  double passes() const { return static_cast<double>(input_.accumulate_batches * input_.rollout); }
  double runs(int64_t forward_runs) const {
    return static_cast<double>(forward_runs + (input_.recompute_steps ? 1 : 0));
  }

  void add_sources(const std::string& what, const PlacedPart& placed, bool halo) {
    const auto& [name, part, edges, own, is_mapper] = placed;
    double row_bytes_forward = 0.0, row_bytes_backward = 0.0, forward = 0.0;
    for (const SourceTransfer& t : part.transfers) {
      row_bytes_forward += t.row_bytes * runs(t.forward_runs);
      row_bytes_backward += t.row_bytes;
      forward += runs(t.forward_runs);
    }
    const auto backward = static_cast<double>(part.transfers.size());
    if (backward == 0.0) return;
    const auto sent = static_cast<double>(edges.sent),
               received = static_cast<double>(edges.received);
    if (!halo) {
      const auto whole = static_cast<double>(own) + received;
      const LinkOptions& link = machine_.link(layout_.model);
      const auto seconds = [&](double bytes, double calls) {
        return passes() * calls * all_gather_s(layout_.model, whole * bytes / calls, link);
      };
      add({.what = what,
           .operation = "all-gather",
           .group = layout_.model,
           .calls = passes() * forward,
           .bytes = passes() * received * row_bytes_forward,
           .seconds = seconds(row_bytes_forward, forward)});
      add({.what = what,
           .operation = "reduce-scatter",
           .group = layout_.model,
           .calls = passes() * backward,
           .bytes = passes() * received * row_bytes_backward,
           .seconds = seconds(row_bytes_backward, backward)});
    } else {
      // Gradients of received rows go back where the rows came from.
      const double most = std::max(sent, received), far = static_cast<double>(edges.far);
      const auto seconds = [&](double row_bytes) {
        const double near_s = exchange_s(edges.peers - edges.far_peers,
                                         std::max(0.0, most - far) * row_bytes, machine_.node);
        const double far_s = exchange_s(edges.far_peers, far * row_bytes, machine_.network);
        return edges.far_peers > 0 ? std::max(near_s, far_s) : near_s;
      };
      const double width = row_bytes_backward / backward;
      add({.what = what,
           .operation = "all-to-all",
           .group = layout_.model,
           .calls = passes() * (forward + backward),
           .bytes = passes() * (sent * row_bytes_forward + received * row_bytes_backward),
           .seconds = passes() * (forward + backward) * seconds(width)});
    }
  }

  // Gradients go the same ways back.
  void add_exchanges(const std::string& what, const PartCost& part) {
    if (part.exchanges.empty()) return;
    Transfer t{.what = what, .operation = "all-to-all", .group = layout_.model};
    for (const AttentionExchange& exchange : part.exchanges) {
      const double forward = runs(exchange.forward_runs), calls = passes() * (forward + 1.0);
      t.calls += calls;
      t.bytes += passes() * (exchange.sent * forward + exchange.received);
      t.seconds += calls * exchange_s(layout_.model - 1, std::max(exchange.sent, exchange.received),
                                      machine_.link(layout_.model));
    }
    add(t);
  }

  void add_loss() {
    constexpr double kSum = 8.0;  // one fp64 number
    const double calls = passes() * static_cast<double>(input_.loss_terms);
    add({.what = "loss",
         .operation = "all-reduce",
         .group = layout_.model,
         .calls = calls,
         .bytes = calls * kSum,
         .seconds = calls * best_all_reduce(layout_.model, kSum, machine_).seconds});
  }

  void add_agreement() {
    // Loss, samples, a wish to stop, lost data; what is not finite, a pass that failed, a
    // checkpoint that is due by the clock.
    constexpr double kBytes = 7 * 8.0;
    add({.what = "agreement",
         .operation = "all-reduce",
         .group = layout_.ranks(),
         .calls = 2,
         .bytes = kBytes,
         .seconds = 2.0 * best_all_reduce(layout_.ranks(), kBytes / 2, machine_).seconds});
  }

  // Inputs of processor layers go out while it runs forward, and come back while it runs backward.
  void add_host_copies() {
    PassTimes times;
    for (const PartCost* part : cost_.parts()) {
      if (part->on_host == 0.0) continue;
      const PassTimes of_part = pass_times(input_, *part);
      times.forward_s += of_part.forward_s;
      times.backward_s += of_part.backward_s;
    }
    const auto batches = static_cast<double>(input_.accumulate_batches);
    const double calls = passes(), bytes = calls * cost_.on_host();
    const double seconds = send_s(bytes, machine_.host);
    for (const auto& [operation, meanwhile_s] :
         {std::pair{"to host", times.forward_s}, std::pair{"from host", times.backward_s}}) {
      list_.push_back({.what = "inputs of layers",
                       .operation = operation,
                       .calls = calls,
                       .bytes = bytes,
                       .seconds = seconds,
                       .exposed = std::max(0.0, seconds - batches * meanwhile_s)});
    }
  }

  void add_tensor_sums() {
    Transfer t{.what = "products", .operation = "all-reduce", .group = layout_.tensor};
    for (const PartCost* part : cost_.parts()) {
      for (const TensorSum& sum : part->tensor_sums) {
        const double calls = passes() * (runs(sum.runs) + 1.0);
        t.calls += calls;
        t.bytes += calls * sum.bytes;
        t.seconds += calls * best_all_reduce(layout_.tensor, sum.bytes, machine_).seconds;
      }
    }
    add(t);
  }

  // Adds what goes on to the next stage, and gradients of as much back; what the first stage gives
  // the last one, who gives nothing on.
  void add_stages() {
    const double more =
        layout_.pipeline > 2 ? std::max(cost_.to_next, cost_.to_last) : cost_.to_last;
    const double bytes = 0.5 * (cost_.to_next + more);
    const double calls = 2.0 * passes();
    // Stages are model x tensor ranks apart.
    const bool near = layout_.model * layout_.tensor * layout_.pipeline <= machine_.ranks_per_node;
    add({.what = "stages",
         .operation = "send",
         .group = layout_.pipeline,
         .calls = calls,
         .bytes = calls * bytes,
         .seconds = calls * send_s(bytes, near ? machine_.node : machine_.network)});
  }

  // Bytes of all gradients on their way.
  double gradient_bytes() const {
    double matrix_ends = 0.0, others = 0.0;
    for (const PartCost* part : cost_.parts()) {
      matrix_ends += static_cast<double>(part->matrix_ends);
      others += static_cast<double>(part->other_parameters);
    }
    const auto elements = static_cast<double>(cost_.flat_elements());
    const auto weight = static_cast<double>(input_.network.types.weight);
    switch (layout_.compression) {
      case Compression::kNone:
        return elements * weight;
      case Compression::kBf16:
      case Compression::kFp16:
        return elements * 2.0;
      case Compression::kPowerSgd:
        return (matrix_ends * static_cast<double>(layout_.powersgd_rank) + others) * weight;
    }
    return 0.0;
  }

  void add_gradients() {
    const double bytes = gradient_bytes();
    const Layout::Pieces pieces = layout_.pieces(bytes, machine_.ranks_per_node);
    const double calls = pieces.count;
    Transfer t{.what = "gradients", .group = layout_.holders(), .calls = calls, .bytes = bytes};
    const double piece = bytes / calls;
    if (layout_.sharding == Sharding::kNone) {
      const ReduceChoice choice = best_all_reduce(layout_.holders(), piece, machine_);
      t.operation = "all-reduce";
      t.seconds = calls * choice.seconds;
      t.note = enum_name(choice.algorithm);
      if (choice.hierarchical) t.note += ", by node";
    } else {
      const int64_t shards = layout_.shards(machine_.ranks_per_node);
      t.operation = "reduce-scatter";
      t.group = shards;
      t.bytes = bytes * static_cast<double>(shards - 1) / static_cast<double>(shards);
      t.seconds = calls * reduce_scatter_s(shards, piece, machine_.link(shards));
    }
    // Buckets travel during the backward pass but for the last; a single reduction comes after it.
    const double last = calls > 1.0 ? t.seconds * pieces.last_bytes / bytes : t.seconds;
    t.exposed = last + std::max(0.0, t.seconds - last - backward_s_);
    list_.push_back(t);
    if (layout_.sharding != Sharding::kHybrid) return;
    const int64_t shards = layout_.shards(machine_.ranks_per_node);
    const int64_t others = layout_.holders() / shards;
    if (others == 1) return;
    const double own = bytes / static_cast<double>(shards);
    add({.what = "gradients",
         .operation = "all-reduce",
         .group = others,
         .calls = 1,
         .bytes = own,
         .seconds = all_reduce_s(AllReduce::kRing, others, own, machine_.network),
         .note = "between nodes"});
  }

  // Weights that are shared out come together: after the update, or part by part in every pass.
  void add_parameters() {
    if (layout_.sharding == Sharding::kNone) return;
    const int64_t shards = layout_.shards(machine_.ranks_per_node);
    const bool by_part =
        layout_.sharding == Sharding::kParameters || layout_.sharding == Sharding::kHybrid;
    const auto layers = static_cast<double>(input_.network.model.num_layers()) /
                        static_cast<double>(layout_.pipeline);
    const double times = by_part ? 2.0 * passes() : 1.0;
    const double calls = by_part ? times * (layers + 2.0) : 1.0;
    const double whole = static_cast<double>(cost_.flat_elements()) *
                         static_cast<double>(input_.network.types.weight);
    Transfer t{
        .what = "parameters",
        .operation = "all-gather",
        .group = shards,
        .calls = calls,
        .bytes = times * whole * static_cast<double>(shards - 1) / static_cast<double>(shards),
        .seconds = calls * all_gather_s(shards, times * whole / calls, machine_.link(shards))};
    // Part by part, the next one comes while the present one computes.
    t.exposed = by_part ? std::max(t.seconds / calls, t.seconds - 1.5 * backward_s_) : t.seconds;
    list_.push_back(t);
  }

  // Nothing goes on meanwhile.
  void add(Transfer t) {
    t.exposed = t.seconds;
    list_.push_back(std::move(t));
  }

  const StepInput& input_;
  const Layout& layout_;
  const Machine& machine_;
  const RankRows& rows_;
  const NetworkCost& cost_;
  double backward_s_;
  std::vector<Transfer> list_;
};

}  // namespace

std::vector<Transfer> plan_transfers(const StepInput& input, const RankRows& rows, bool divided,
                                     const NetworkCost& cost, double backward_s) {
  return Transfers(input, rows, cost, backward_s).all(divided);
}

}  // namespace aifs::plan
