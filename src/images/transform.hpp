// What stands between an image and a model (sylvit/images.hpp), under this room's names.
#pragma once

#include "images/images.hpp"

namespace sylvit::images {

using sylvit::ImageTransform;
using sylvit::resized_and_cropped;
using sylvit::transform_image;

}  // namespace sylvit::images
