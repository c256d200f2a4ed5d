// SPDX-License-Identifier: Apache-2.0
// Which errors of the operating system mean that a file system has no such operation. One list for
// the trial of a folder (core/folder_trial.h) and for what is done in it later: what the one lets
// pass the other must do without.
#pragma once

namespace aifs {

// A flush of a file, or of a folder. A disk that is full or fails is no such case.
bool is_missing_flush(int error, bool of_folder);
// A renaming of a file over another one, or of a folder.
bool is_missing_rename(int error);

}  // namespace aifs
