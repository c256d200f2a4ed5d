// SPDX-License-Identifier: Apache-2.0
// The node sets of a file of post-processors as they were before: from a case that leaves them as
// they are, or from the builder that the file names for them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "conformance/case_file.h"
#include "conformance/graph_setup.h"

namespace aifs::conformance {

class UnprocessedNodes {
 public:
  // Both must outlive the object.
  UnprocessedNodes(const CaseFile& file, const SafetensorsFile& tensors)
      : file_(file), tensors_(tensors) {}

  // A set with its mesh, if it is one that we have, and its attributes. Throws NotSupported if
  // neither a case nor a builder tells what it was.
  const CaseNodes& nodes(const std::string& name) const;

  // The sets whose coordinates are inputs of the file.
  std::vector<std::string> input_sets() const;

 private:
  CaseNodes found(const std::string& name) const;
  CaseNodes built(const std::string& name) const;
  // "<case>/nodes/<name>/" of a case that stores the set and keeps all of it, or "".
  std::string whole_in(const std::string& name) const;
  void add_attributes(const std::string& name, CaseNodes& nodes) const;

  const CaseFile& file_;
  const SafetensorsFile& tensors_;
  mutable std::map<std::string, CaseNodes> sets_;
};

}  // namespace aifs::conformance
