// Image files as pixels (sylvit/images.hpp), under this room's names.
#pragma once

#include <sylvit/images.hpp>

namespace sylvit::images {

using sylvit::decode_image;
using sylvit::encode_png;
using sylvit::Image;
using sylvit::image_extents;
using sylvit::image_file_limit;
using sylvit::image_pixel_limit;
using sylvit::ImageBox;
using sylvit::named_as_image;
using sylvit::read_image;
using sylvit::Resampling;
using sylvit::with_channels;

}  // namespace sylvit::images
