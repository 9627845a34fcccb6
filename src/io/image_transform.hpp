// What stands between an image and a model (sylvit/images.hpp), under this room's names.
#pragma once

#include "io/images.hpp"

namespace sylvit::io {

using sylvit::ImageTransform;
using sylvit::resized_and_cropped;
using sylvit::transform_image;

}  // namespace sylvit::io
