// The Vision Transformer that tests compute with.
#pragma once

#include <sylvit/vit_config.hpp>

namespace sylvit::test {

/// It takes no time, and its sizes differ, so that none can stand for another.
inline VitConfig tiny_vit() {
  return {
      .width = 48, .depth = 2, .heads = 3, .mlp = 80, .patch = 4, .image_height = 12, .image_width = 8, .classes = 7};
}

template <class Change>
VitConfig tiny_vit(Change&& change) {
  VitConfig config = tiny_vit();
  change(config);
  return config;
}

/// The same on a command line, but for the images' size.
inline constexpr const char* tiny_vit_options = "--width 48 --depth 2 --heads 3 --mlp 80 --patch 4 --classes 7";

}  // namespace sylvit::test
