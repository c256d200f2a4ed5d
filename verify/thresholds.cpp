// SPDX-License-Identifier: Apache-2.0
#include "verify/thresholds.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/check.h"

namespace aifs::verify {

std::vector<std::vector<double>> parse_thresholds(const std::vector<std::string>& texts,
                                                  const std::vector<std::string>& variables,
                                                  const std::string& option) {
  if (texts.empty()) return {};
  constexpr const char* kForm = "variable=number,number: tp=0.001,0.01";
  std::vector<std::vector<double>> thresholds(variables.size());
  std::vector<double>* own = nullptr;
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals != std::string::npos) {
      const std::string name = text.substr(0, equals);
      const auto found = std::find(variables.begin(), variables.end(), name);
      if (found == variables.end())
        throw ConfigError(option, concat("'", text, "': no variable '", name, "' is scored"),
                          nearest_names(name, variables));
      own = &thresholds[static_cast<size_t>(found - variables.begin())];
    }
    if (!own) throw ConfigError(option, concat("'", text, "' is of no variable"), kForm);
    const std::string value = text.substr(equals == std::string::npos ? 0 : equals + 1);
    char* end = nullptr;
    own->push_back(std::strtod(value.c_str(), &end));
    if (value.empty() || *end != '\0' || !std::isfinite(own->back()))
      throw ConfigError(option, concat("'", text, "': '", value, "' is no number"), kForm);
  }
  for (std::vector<double>& values : thresholds) {
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
  }
  return thresholds;
}

}  // namespace aifs::verify
