// SPDX-License-Identifier: Apache-2.0
// The way of an ensemble's noise from the nodes that it is drawn on to the hidden nodes (the
// noise_matrix and noise_edges_name of Anemoi's NoiseConditioning).
#pragma once

#include <string>

#include "graph/base/graph.h"
#include "model/kernels/sparse_product.h"
#include "model/network/options.h"

namespace aifs::model {

// The matrix to the nodes of `mesh`, in f32: of a file, or of edges of the graph. Undefined if
// noise is drawn on the mesh. Throws ConfigError naming the option of model.ensemble.
SparseMatrix noise_matrix(const EnsembleOptions& options, const graph::Graph& graph,
                          const std::string& mesh);

}  // namespace aifs::model
