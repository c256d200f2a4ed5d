// SPDX-License-Identifier: Apache-2.0
#include "plan/all_reduce_cost.h"

#include <bit>

namespace aifs::plan {

namespace {

// Returns the time of the messages of an operation, without the fixed time.
double messages_s(AllReduce algorithm, int64_t ranks, double bytes, const LinkOptions& link) {
  const auto p = static_cast<double>(ranks);
  const double alpha = link.latency_s(), transfer = bytes / link.bytes_per_s();
  const auto count = static_cast<uint64_t>(ranks);
  switch (algorithm) {
    case AllReduce::kRing:
      return 2.0 * (p - 1.0) * alpha + 2.0 * (p - 1.0) / p * transfer;
    case AllReduce::kTree:
      return 2.0 * std::bit_width(count - 1) * alpha + 2.0 * transfer;
    case AllReduce::kHalvingDoubling: {
      const auto whole = static_cast<double>(std::bit_floor(count));
      const double folding = std::has_single_bit(count) ? 0.0 : 2.0 * (alpha + transfer);
      return folding + 2.0 * (std::bit_width(count) - 1) * alpha +
             2.0 * (whole - 1.0) / whole * transfer;
    }
  }
  return 0.0;
}

double half_ring_s(int64_t ranks, double bytes, const LinkOptions& link) {
  return 0.5 * messages_s(AllReduce::kRing, ranks, bytes, link);
}

}  // namespace

double all_reduce_s(AllReduce algorithm, int64_t ranks, double bytes, const LinkOptions& link) {
  return ranks == 1 ? 0.0 : link.call_s() + messages_s(algorithm, ranks, bytes, link);
}

double reduce_scatter_s(int64_t ranks, double bytes, const LinkOptions& link) {
  return ranks == 1 ? 0.0 : link.call_s() + half_ring_s(ranks, bytes, link);
}

double all_gather_s(int64_t ranks, double bytes, const LinkOptions& link) {
  return reduce_scatter_s(ranks, bytes, link);
}

double broadcast_s(int64_t ranks, double bytes, const LinkOptions& link) {
  return ranks == 1 ? 0.0 : link.call_s() + 0.5 * messages_s(AllReduce::kTree, ranks, bytes, link);
}

double send_s(double bytes, const LinkOptions& link) {
  return link.call_s() + link.latency_s() + bytes / link.bytes_per_s();
}

double exchange_s(int64_t peers, double bytes, const LinkOptions& link) {
  return link.call_s() + static_cast<double>(peers) * link.latency_s() + bytes / link.bytes_per_s();
}

double all_reduce_s(AllReduce algorithm, bool hierarchical, int64_t ranks, double bytes,
                    const Machine& machine) {
  const int64_t local = machine.ranks_per_node;
  if (!hierarchical || ranks <= local)
    return all_reduce_s(algorithm, ranks, bytes, machine.link(ranks));
  const int64_t nodes = (ranks + local - 1) / local;
  return reduce_scatter_s(local, bytes, machine.node) +
         all_reduce_s(algorithm, nodes, bytes / static_cast<double>(local), machine.network) +
         all_gather_s(local, bytes, machine.node);
}

ReduceChoice best_all_reduce(int64_t ranks, double bytes, const Machine& machine) {
  ReduceChoice best{AllReduce::kRing, false,
                    all_reduce_s(AllReduce::kRing, false, ranks, bytes, machine)};
  for (const auto& [algorithm, name] : EnumNames<AllReduce>::table) {
    for (const bool hierarchical : {false, true}) {
      if (hierarchical && ranks <= machine.ranks_per_node) continue;
      const double seconds = all_reduce_s(algorithm, hierarchical, ranks, bytes, machine);
      if (seconds < best.seconds) best = {algorithm, hierarchical, seconds};
    }
  }
  return best;
}

}  // namespace aifs::plan
