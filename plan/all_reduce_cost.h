// SPDX-License-Identifier: Apache-2.0
// Seconds of collective operations in the alpha-beta model: a message of n bytes takes alpha + n *
// beta (latency and the inverse of bandwidth), every rank sends and receives one at a time, and an
// operation costs a fixed time once. `bytes` are those of the tensor of one rank.
#pragma once

#include "core/enum_names.h"
#include "plan/machine.h"

namespace aifs::plan {

// p ranks, n bytes:
//   ring               2 (p - 1) alpha + 2 (p - 1) / p n beta
//   tree               2 ceil(log2 p) alpha + 2 n beta        (pipelined: up, then down)
//   halving-doubling   2 log2 p alpha + 2 (p - 1) / p n beta  (Rabenseifner; p not a power of two:
//                                                              two messages of n bytes more)
enum class AllReduce { kRing, kTree, kHalvingDoubling };

double all_reduce_s(AllReduce algorithm, int64_t ranks, double bytes, const LinkOptions& link);
// Ring: half of an all-reduce.
double reduce_scatter_s(int64_t ranks, double bytes, const LinkOptions& link);
double all_gather_s(int64_t ranks, double bytes, const LinkOptions& link);
double broadcast_s(int64_t ranks, double bytes, const LinkOptions& link);
double send_s(double bytes, const LinkOptions& link);
// To and from each of `peers`, `bytes` in all.
double exchange_s(int64_t peers, double bytes, const LinkOptions& link);

// A layout of an all-reduce over ranks, some to a node.
struct ReduceChoice {
  AllReduce algorithm = AllReduce::kRing;
  // Reduce-scatter in each node, all-reduce of the shares between nodes, all-gather in each node;
  // flat: one algorithm over all ranks, at the speed of the network.
  bool hierarchical = false;
  double seconds = 0.0;
};
double all_reduce_s(AllReduce algorithm, bool hierarchical, int64_t ranks, double bytes,
                    const Machine& machine);
ReduceChoice best_all_reduce(int64_t ranks, double bytes, const Machine& machine);

constexpr auto enum_table(AllReduce) {
  using enum AllReduce;
  return std::to_array<EnumName<AllReduce>>(
      {{kRing, "ring"}, {kTree, "tree"}, {kHalvingDoubling, "halving-doubling"}});
}

}  // namespace aifs::plan
