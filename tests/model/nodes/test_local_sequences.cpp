// SPDX-License-Identifier: Apache-2.0
// Which way attention goes over ranks. That its numbers are those of one rank is tested with whole
// networks (test_sharded_network.cpp).
#include "model/nodes/local_sequences.h"

#include <ATen/ATen.h>

#include "core/check.h"
#include "tests/support/catch.h"

using namespace aifs;
using namespace aifs::model;
using graph::NodePartition;

namespace {

// Nodes of both ends over four ranks; only numbers are asked for.
SequenceNodes nodes(const NodePartition& sources, const NodePartition& targets,
                    AttentionSharing sharing = AttentionSharing::kAuto) {
  const auto shared = [](const NodePartition& partition) {
    NodeTensors set;
    set.share = std::make_shared<const NodeShare>(NodeShare{partition, nullptr});
    return set;
  };
  return {shared(sources), shared(targets), sharing};
}

const NodePartition kLong = NodePartition::contiguous(4000, 4);
const NodePartition kShort = NodePartition::contiguous(400, 4);
const NodePartition kMixed = NodePartition::along({3, 1, 2, 0, 7, 5, 6, 4}, 4);

}  // namespace

TEST_CASE("a small window takes keys of neighbours, attention to all goes by heads",
          "[local_sequences]") {
  using S = AttentionSharing;
  REQUIRE(choose_sharing(nodes(kLong, kLong), {.heads = 4, .window = 100}) == S::kSequence);
  REQUIRE(choose_sharing(nodes(kLong, kLong), {.heads = 4, .window = 3000}) == S::kHeads);
  REQUIRE(choose_sharing(nodes(kLong, kLong), {.heads = 4}) == S::kHeads);
  // Few keys for many queries: cheaper to send whole than the queries.
  REQUIRE(choose_sharing(nodes(kShort, kLong), {.heads = 4}) == S::kSequence);
}

TEST_CASE("positions that are not in order go by heads, or are refused", "[local_sequences]") {
  using S = AttentionSharing;
  const SequenceAttentionOptions narrow{.heads = 4, .window = 1};
  REQUIRE(choose_sharing(nodes(kMixed, kMixed), narrow) == S::kHeads);
  REQUIRE_THROWS_WITH(choose_sharing(nodes(kMixed, kMixed, S::kSequence), narrow),
                      ContainsSubstring("parallel.attention"));
  REQUIRE(choose_sharing(nodes(kLong, kLong, S::kHeads), narrow) == S::kHeads);
}
