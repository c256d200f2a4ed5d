// SPDX-License-Identifier: Apache-2.0
// Precompiled once for all targets that use LibTorch (see AifsModule.cmake).
#pragma once

#include <ATen/ATen.h>

#include "cmake/plain_pch.h"
