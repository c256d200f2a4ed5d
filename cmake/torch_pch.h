// SPDX-License-Identifier: Apache-2.0
// Precompiled once for all targets that use LibTorch (see AifsModule.cmake).
#pragma once

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>
