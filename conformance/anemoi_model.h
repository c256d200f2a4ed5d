// SPDX-License-Identifier: Apache-2.0
// The network of a reference case as the sections of a configuration of Anemoi's that mean it. Two
// layouts exist: parts named "encoder", "processor", "decoder", and Anemoi's own with named maps of
// encoders and decoders.
#pragma once

#include "conformance/case_file.h"
#include "graph/base/graph.h"

namespace aifs::conformance {

// Sections "model" and "training" for anemoi::import_model_section(). Matrices that the case stores
// are written to files in `folder`, which the section names. Throws NotSupported for a key that is
// not understood.
Json anemoi_sections(const Json& json, const SafetensorsFile& tensors, const graph::Graph& graph,
                     const fs::path& folder);

// Limits on outputs as Anemoi lists them.
Json anemoi_boundings(const Json& list);

}  // namespace aifs::conformance
