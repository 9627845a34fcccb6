// Image files as pixels (sylvit/images.hpp), under this room's names.
#pragma once

#include <sylvit/images.hpp>

namespace sylvit::images {

using sylvit::decode_image;
using sylvit::Image;
using sylvit::image_file_limit;
using sylvit::image_pixel_limit;
using sylvit::read_image;

}  // namespace sylvit::images
