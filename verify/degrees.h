// SPDX-License-Identifier: Apache-2.0
// Angles of coordinates.
#pragma once

namespace aifs::verify {

inline constexpr double kRadiansOfDegree = 0.017453292519943295;

}  // namespace aifs::verify
