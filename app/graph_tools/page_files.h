// SPDX-License-Identifier: Apache-2.0
// The files of app/graph_tools/page as texts: the build makes a source of them
// (cmake/embed_files.cmake).
#pragma once

namespace aifs::app {

extern const char* const kGlobeHtml;
extern const char* const kGlobeCss;
extern const char* const kGraphScript;
extern const char* const kGlobeScript;
extern const char* const kPanelScript;

}  // namespace aifs::app
