/// @file
/// What a shared library lets others see.
#pragma once

/// Marks what applications may call. The library is compiled with everything else hidden, so whatever lacks this mark
/// cannot be linked against (ci/embedding checks that).
#define SYLVIT_API __attribute__((visibility("default")))
