// SPDX-License-Identifier: Apache-2.0
#include "model/nodes/local_sequences.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "core/check.h"
#include "model/nodes/node_rows.h"

namespace aifs::model {

namespace {

using graph::NodePartition;
using parallel::Counts;

at::Tensor index_tensor(const std::vector<int64_t>& index, at::Device device) {
  return at::tensor(index, at::kLong).to(device);
}

// -------------------------------------------------------------------------------------- heads ---

// Own rows of all heads to all rows of own heads, and back. Rows travel head by head.
class HeadExchange {
 public:
  HeadExchange(const NodeTensors& nodes, const Counts& heads)
      : group_(nodes.share->group), rank_(static_cast<size_t>(group_->rank())), heads_(heads) {
    const NodePartition& partition = nodes.share->partition;
    num_heads_ = starts_of(heads).back();
    num_own_ = partition.num_owned(group_->rank());
    num_nodes_ = partition.num_nodes();
    for (size_t p = 0; p < heads.size(); ++p) {
      all_to_own_.push_back(heads[p] * num_own_);
      own_to_all_.push_back(heads[rank_] * partition.num_owned(static_cast<int64_t>(p)));
    }
    // Rows come by sender, then head, then node.
    std::vector<int64_t> place, back(static_cast<size_t>(heads[rank_] * num_nodes_));
    for (int64_t head = 0; head < heads[rank_]; ++head) {
      for (int64_t node = 0; node < num_nodes_; ++node) {
        const int32_t owner = partition.owner(node);
        place.push_back(partition.begin(owner) * heads[rank_] + partition.num_owned(owner) * head +
                        partition.local(node));
        back[static_cast<size_t>(place.back())] = head * num_nodes_ + node;
      }
    }
    place_ = index_tensor(place, nodes.rows.device());
    back_ = index_tensor(back, nodes.rows.device());
  }

  // (copies * own nodes, heads * width) -> (copies * nodes, own heads * width), in node order.
  at::Tensor to_heads(const at::Tensor& rows, int64_t copies) const {
    const int64_t width = rows.size(1) / num_heads_;
    const at::Tensor by_head = rows.view({copies, num_own_, num_heads_, width})
                                   .permute({2, 1, 0, 3})
                                   .reshape({num_heads_ * num_own_, copies * width});
    return parallel::all_to_all_rows(by_head, all_to_own_, own_to_all_, *group_)
        .index_select(0, place_)
        .view({heads_[rank_], num_nodes_, copies, width})
        .permute({2, 1, 0, 3})
        .reshape({copies * num_nodes_, heads_[rank_] * width});
  }
  // And back, for heads of this width.
  at::Tensor to_rows(const at::Tensor& rows, int64_t copies, int64_t width) const {
    const at::Tensor by_head = rows.view({copies, num_nodes_, heads_[rank_], width})
                                   .permute({2, 1, 0, 3})
                                   .reshape({heads_[rank_] * num_nodes_, copies * width})
                                   .index_select(0, back_);
    return parallel::all_to_all_rows(by_head, own_to_all_, all_to_own_, *group_)
        .view({num_heads_, num_own_, copies, width})
        .permute({2, 1, 0, 3})
        .reshape({copies * num_own_, num_heads_ * width});
  }

 private:
  parallel::Communicator* group_;
  size_t rank_;
  Counts heads_;  // of each rank
  int64_t num_heads_, num_own_, num_nodes_;
  Counts all_to_own_, own_to_all_;  // rows for and from each rank on the way to heads
  at::Tensor place_, back_;         // i64
};

class SharedHeads : public LocalSequences {
 public:
  SharedHeads(const SequenceNodes& nodes, const Counts& heads,
              const SequenceAttentionOptions& options)
      : options_(options), sources_(nodes.sources, heads), targets_(nodes.targets, heads) {
    const auto rank = static_cast<size_t>(nodes.targets.share->group->rank());
    options_.heads = heads[rank];
    if (options.alibi_slopes.defined()) {
      options_.alibi_slopes = options.alibi_slopes.narrow(0, starts_of(heads)[rank], heads[rank]);
    }
    num_heads_ = options.heads;
  }

  at::Tensor attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                    int64_t copies) const override {
    // Keys and values of a head travel together.
    const int64_t width = key.size(1) / num_heads_, own_width = options_.heads * width;
    const auto by_head = [&](const at::Tensor& rows) {
      return rows.view({rows.size(0), num_heads_, width});
    };
    const at::Tensor both =
        sources_.to_heads(at::cat({by_head(key), by_head(value)}, 2).flatten(1), copies);
    const auto half = [&](int64_t first) {
      return both.view({both.size(0), options_.heads, 2 * width})
          .narrow(2, first, width)
          .reshape({both.size(0), own_width});
    };
    return targets_.to_rows(sequence_attention(targets_.to_heads(query, copies), half(0),
                                               half(width), copies, options_),
                            copies, width);
  }

 private:
  SequenceAttentionOptions options_;  // of own heads
  int64_t num_heads_;
  HeadExchange sources_, targets_;
};

// ----------------------------------------------------------------------------------- sequence ---

// Keys that the queries of a rank see.
KeyRange keys_of(int64_t rank, const NodePartition& sources, const NodePartition& targets,
                 const SequenceAttentionOptions& options) {
  if (targets.num_owned(rank) == 0) return {};
  return visible_keys(targets.begin(rank), targets.num_owned(rank), sources.num_nodes(), options);
}

// The part of it that `owner` has.
KeyRange part_of(const KeyRange& keys, const NodePartition& sources, int64_t owner) {
  const int64_t first = sources.begin(owner), end = first + sources.num_owned(owner);
  const int64_t begin = std::clamp(keys.begin, first, end);
  return {begin, std::clamp(keys.end, begin, end)};
}

// Own keys that another rank sees, and its keys that are seen here.
struct KeyExchange {
  KeyRange sent, received;
};

// With each rank, this one included.
std::vector<KeyExchange> key_exchanges(int64_t rank, const NodePartition& sources,
                                       const NodePartition& targets,
                                       const SequenceAttentionOptions& options) {
  const KeyRange mine = keys_of(rank, sources, targets, options);
  std::vector<KeyExchange> exchanges;
  for (int64_t p = 0; p < sources.num_ranks(); ++p) {
    exchanges.push_back(
        {part_of(keys_of(p, sources, targets, options), sources, rank), part_of(mine, sources, p)});
  }
  return exchanges;
}

class SharedSequence : public LocalSequences {
 public:
  SharedSequence(const SequenceNodes& nodes, const SequenceAttentionOptions& options)
      : options_(options), group_(nodes.targets.share->group) {
    const NodePartition &sources = nodes.sources.share->partition,
                        &targets = nodes.targets.share->partition;
    const int64_t me = group_->rank();
    std::vector<int64_t> rows;
    for (const auto& [sent, received] : key_exchanges(me, sources, targets, options)) {
      for (int64_t node = sent.begin; node < sent.end; ++node)
        rows.push_back(sources.local(node));
      send_counts_.push_back(sent.end - sent.begin);
      recv_counts_.push_back(received.end - received.begin);
    }
    send_rows_ = index_tensor(rows, nodes.sources.rows.device());
    options_.shift += targets.begin(me) - keys_of(me, sources, targets, options).begin;
  }

  at::Tensor attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                    int64_t copies) const override {
    const at::Tensor rows = side_by_side(at::cat({key, value}, 1), copies);
    const at::Tensor seen =
        copy_after_copy(parallel::all_to_all_rows(rows.index_select(0, send_rows_), send_counts_,
                                                  recv_counts_, *group_),
                        copies);
    const int64_t width = key.size(1);
    return sequence_attention(query, seen.narrow(1, 0, width), seen.narrow(1, width, width), copies,
                              options_);
  }

 private:
  SequenceAttentionOptions options_;  // positions are counted from own queries and received keys
  parallel::Communicator* group_;
  at::Tensor send_rows_;  // i64
  Counts send_counts_, recv_counts_;
};

// ------------------------------------------------------------------------------------- choice ---

Counts heads_of(const SequenceAttentionOptions& options, const NodePartition& targets) {
  return balanced_counts(options.heads, targets.num_ranks());
}

// Heads of rows that cross ranks in one forward pass of one copy: queries, keys, values, results.
int64_t heads_moved(const NodePartition& sources, const NodePartition& targets,
                    const Counts& heads) {
  int64_t moved = 0;
  for (size_t p = 0; p < heads.size(); ++p) {
    const auto rank = static_cast<int64_t>(p);
    moved += 2 * (sources.num_owned(rank) + targets.num_owned(rank)) *
             (starts_of(heads).back() - heads[p]);
  }
  return moved;
}

int64_t sequence_moved(const NodePartition& sources, const NodePartition& targets,
                       const SequenceAttentionOptions& options) {
  int64_t moved = 0;
  for (int64_t rank = 0; rank < targets.num_ranks(); ++rank) {
    const KeyRange keys = keys_of(rank, sources, targets, options);
    const KeyRange own = part_of(keys, sources, rank);
    moved += 2 * options.heads * ((keys.end - keys.begin) - (own.end - own.begin));
  }
  return moved;
}

AttentionSharing choose(AttentionSharing wanted, const NodePartition& sources,
                        const NodePartition& targets, const SequenceAttentionOptions& options) {
  const bool in_order = sources.in_node_order() && targets.in_node_order();
  if (wanted == AttentionSharing::kSequence && !in_order) {
    throw ConfigError("parallel.attention",
                      "\"sequence\" needs hidden nodes that are divided in their own order",
                      "set parallel.hidden_order to \"mesh\" or \"auto\"");
  }
  if (wanted != AttentionSharing::kAuto) return wanted;
  const bool fewer = sequence_moved(sources, targets, options) <=
                     heads_moved(sources, targets, heads_of(options, targets));
  return in_order && fewer ? AttentionSharing::kSequence : AttentionSharing::kHeads;
}

}  // namespace

AttentionSharing choose_sharing(const SequenceNodes& nodes,
                                const SequenceAttentionOptions& options) {
  return choose(nodes.sharing, nodes.sources.share->partition, nodes.targets.share->partition,
                options);
}

SequenceShare share_of_rank(int64_t rank, AttentionSharing sharing, const NodePartition& sources,
                            const NodePartition& targets, const SequenceAttentionOptions& options) {
  const int64_t own_sources = sources.num_owned(rank), own_targets = targets.num_owned(rank);
  if (choose(sharing, sources, targets, options) == AttentionSharing::kHeads) {
    const int64_t own = heads_of(options, targets)[static_cast<size_t>(rank)],
                  others = options.heads - own;
    const int64_t other_sources = sources.num_nodes() - own_sources,
                  other_targets = targets.num_nodes() - own_targets;
    return {own,
            targets.num_nodes(),
            sources.num_nodes(),
            options.shift,
            {{own_targets * others, other_targets * own},
             {2 * own_sources * others, 2 * other_sources * own},
             {other_targets * own, own_targets * others}}};
  }
  const KeyRange mine = keys_of(rank, sources, targets, options);
  const std::vector<KeyExchange> exchanges = key_exchanges(rank, sources, targets, options);
  SequenceShare::Exchange both;  // keys and values
  for (int64_t p = 0; p < sources.num_ranks(); ++p) {
    if (p == rank) continue;
    const auto& [sent, received] = exchanges[static_cast<size_t>(p)];
    both.sent += 2 * options.heads * (sent.end - sent.begin);
    both.received += 2 * options.heads * (received.end - received.begin);
  }
  return {options.heads,
          own_targets,
          mine.end - mine.begin,
          options.shift + targets.begin(rank) - mine.begin,
          {both}};
}

std::shared_ptr<const LocalSequences> make_local_sequences(
    const SequenceNodes& nodes, const SequenceAttentionOptions& options) {
  if (choose_sharing(nodes, options) == AttentionSharing::kSequence)
    return std::make_shared<SharedSequence>(nodes, options);
  const Counts heads = heads_of(options, nodes.targets.share->partition);
  return std::make_shared<SharedHeads>(nodes, heads, options);
}

}  // namespace aifs::model
