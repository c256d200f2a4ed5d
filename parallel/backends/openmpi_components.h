// SPDX-License-Identifier: Apache-2.0
// What an installed OpenMPI can read of a launcher. Where it cannot, its initialisation prints a
// page about building it anew and ends the process, so that is found out before.
#pragma once

#include <filesystem>

namespace aifs::parallel {

// False if the OpenMPI of version 4 whose libmpi.so is `library` surely has no component for PMI-1
// and PMI-2: components are files of folders beside it, others for PMIx are there, and these are
// not. Reads only folders; never throws.
bool may_read_pmi2(const std::filesystem::path& library);

}  // namespace aifs::parallel
