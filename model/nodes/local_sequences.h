// SPDX-License-Identifier: Apache-2.0
// Attention between two node sets, or within one, as one rank sees it: own rows in, own rows out.
// Two ways to meet the rows of the other ranks:
//   heads     each rank gets all rows of a share of the heads, attends, and gives the results back
//             (the all-to-all of DeepSpeed-Ulysses); heads need not divide evenly, and where there
//             are more ranks than heads some have none
//   sequence  each rank gets the keys and values that its own queries see: with a window a halo of
//             its share, without one all of them. Needs nodes shared out in their own order
// Positions are those in the whole node set, whoever owns which nodes.
#pragma once

#include "model/kernels/sequence_attention.h"
#include "model/nodes/graph_tensors.h"

namespace aifs::model {

// Describes what attention works between; by default this rank has all rows of both.
struct SequenceNodes {
  NodeTensors sources = {}, targets = {};
  AttentionSharing sharing = AttentionSharing::kAuto;
};

class LocalSequences {
 public:
  virtual ~LocalSequences() = default;
  // Rows of own targets (copies * n_q, H d) from their queries and from keys and values of own
  // sources (copies * n_k, H d). Differentiable. Collective over the ranks that share the nodes.
  virtual at::Tensor attend(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            int64_t copies) const = 0;
};

// kHeads or kSequence, for nodes that are divided; `options` are those of the whole sequences.
// kAuto becomes whichever sends fewer numbers. Throws ConfigError if kSequence is asked for and
// nodes are not in order.
AttentionSharing choose_sharing(const SequenceNodes& nodes,
                                const SequenceAttentionOptions& options);
// Describes what one rank does of a divided attention, in numbers of one copy.
struct SequenceShare {
  int64_t heads = 0, queries = 0, keys = 0;  // that meet there
  int64_t shift = 0;                         // position of the first query among the keys
  // Each exchange of a forward pass: rows times heads for other ranks and from them.
  struct Exchange {
    int64_t sent = 0, received = 0;
  };
  std::vector<Exchange> exchanges;
};
SequenceShare share_of_rank(int64_t rank, AttentionSharing sharing,
                            const graph::NodePartition& sources,
                            const graph::NodePartition& targets,
                            const SequenceAttentionOptions& options);
std::shared_ptr<const LocalSequences> make_local_sequences(const SequenceNodes& nodes,
                                                           const SequenceAttentionOptions& options);

}  // namespace aifs::model
