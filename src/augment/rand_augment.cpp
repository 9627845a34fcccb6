#include "augment/rand_augment.hpp"

#include <sylvit/error.hpp>

#include <charconv>
#include <limits>

#include "augment/colours.hpp"

namespace sylvit::augment {

namespace {

constexpr Fill grey{128, 128, 128};

/// big_vision's meaning of a level. A threshold of solarize lives in a byte there, and 256 becomes 0.
double big_vision_argument(const RandAugment& options, const Step& step) {
  const double sign = step.negative ? -1 : 1;
  const double share = step.level / 10;
  switch (step.operation) {
    case Operation::rotate:
      return sign * share * 30;
    case Operation::posterize: {
      // The shift too lives in a byte, and one of 8 or more (of less than 0, too) is one of 7.
      const int bits = static_cast<int>(share * 4);
      return bits < 1 || bits > 8 ? 1 : bits;
    }
    case Operation::solarize:
      return static_cast<int>(share * 256) % 256;
    case Operation::solarize_add:
      return static_cast<int>(share * 110);
    case Operation::color:
    case Operation::contrast:
    case Operation::brightness:
    case Operation::sharpness:
      return share * 1.8 + 0.1;
    case Operation::shear_x:
    case Operation::shear_y:
      return sign * share * 0.3;
    case Operation::translate_x:
    case Operation::translate_y:
      return sign * share * options.translate;
    case Operation::cutout:
      return static_cast<int>(share * options.cutout);
    default:
      return 0;
  }
}

double timm_argument(const RandAugment& options, const Step& step, std::int64_t size) {
  const double sign = step.negative ? -1 : 1;
  const double share = step.level / 10;
  switch (step.operation) {
    case Operation::rotate:
      return sign * (share * 30);
    case Operation::posterize:
      return options.increasing ? 4 - static_cast<int>(share * 4) : static_cast<int>(share * 4);
    case Operation::solarize: {
      const int threshold = std::min(256, static_cast<int>(share * 256));
      return options.increasing ? 256 - threshold : threshold;
    }
    case Operation::solarize_add:
      return std::min(128, static_cast<int>(share * 110));
    case Operation::color:
    case Operation::contrast:
    case Operation::brightness:
    case Operation::sharpness:
      return options.increasing ? std::max(0.1, 1 + sign * (share * 0.9)) : share * 1.8 + 0.1;
    case Operation::shear_x:
    case Operation::shear_y:
      return sign * (share * 0.3);
    case Operation::translate_x:
    case Operation::translate_y:
      return sign * (share * 0.45) * static_cast<double>(size);
    default:
      return 0;
  }
}

void apply_geometric(Image& image, RandAugmentForm form, const Step& step, double argument, const Fill& fill) {
  const bool timm = form == RandAugmentForm::timm;
  Affine affine;
  switch (step.operation) {
    case Operation::rotate:
      affine = timm ? pillow_rotation(image.height, image.width, argument)
                    : tensorflow_rotation(image.height, image.width, argument);
      break;
    case Operation::shear_x:
      affine.b = argument;
      break;
    case Operation::shear_y:
      affine.d = argument;
      break;
    case Operation::translate_x:
      affine.c = argument;
      break;
    default:
      affine.f = argument;
  }
  image = timm ? transformed(image, affine, step.resampling, fill) : nearest(image, affine, grey);
}

}  // namespace

double argument_of(const RandAugment& options, const Step& step, std::int64_t size) {
  return options.form == RandAugmentForm::timm ? timm_argument(options, step, size)
                                               : big_vision_argument(options, step);
}

void apply(Image& image, const RandAugment& options, const Step& step, const Fill& fill) {
  const bool across = step.operation == Operation::translate_x;
  const double argument = argument_of(options, step, across ? image.width : image.height);
  const Library library = options.form == RandAugmentForm::timm ? Library::pillow : Library::tensorflow;
  const auto factor = static_cast<float>(argument);
  switch (step.operation) {
    case Operation::autocontrast:
      return autocontrast(image, library);
    case Operation::equalize:
      return equalize(image);
    case Operation::invert:
      return invert(image);
    case Operation::posterize:
      return posterize(image, static_cast<int>(argument));
    case Operation::solarize:
      return solarize(image, static_cast<int>(argument));
    case Operation::solarize_add:
      return solarize_add(image, static_cast<int>(argument));
    case Operation::color:
      return color(image, factor, library);
    case Operation::contrast:
      return contrast(image, factor, library);
    case Operation::brightness:
      return brightness(image, factor);
    case Operation::sharpness:
      return sharpness(image, factor, library);
    case Operation::cutout: {
      const auto half = static_cast<std::int64_t>(argument);
      return augment::fill(image, {step.x - half, step.y - half, 2 * half, 2 * half}, grey);
    }
    default:
      return apply_geometric(image, options.form, step, argument, fill);
  }
}

}  // namespace sylvit::augment

namespace sylvit {

namespace {

/// A number at the beginning of a text, which it is cut from.
bool cut_number(std::string_view& text, double& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !std::isfinite(number) || number < 0) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

bool cut_word(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

/// "2,10)"
bool parse_big_vision(std::string_view text, RandAugment& options) {
  double count = 0;
  if (!cut_number(text, count) || !cut_word(text, ",") || !cut_number(text, options.level) || text != ")") return false;
  options.form = RandAugmentForm::big_vision;
  options.operations = static_cast<std::int64_t>(count);
  return static_cast<double>(options.operations) == count;
}

/// "-m9-mstd0.5-inc1"
bool parse_timm(std::string_view text, RandAugment& options) {
  options.form = RandAugmentForm::timm;
  while (!text.empty()) {
    double value = 0;
    if (!cut_word(text, "-")) return false;
    if (cut_word(text, "mstd")) {
      if (!cut_number(text, options.level_deviation)) return false;
      if (options.level_deviation > 100) options.level_deviation = std::numeric_limits<double>::infinity();
    } else if (cut_word(text, "mmax")) {
      if (!cut_number(text, options.level_limit)) return false;
    } else if (cut_word(text, "inc")) {
      // There it is whether anything stands behind it.
      if (!cut_number(text, value)) return false;
      options.increasing = true;
    } else if (cut_word(text, "m")) {
      if (!cut_number(text, options.level)) return false;
    } else if (cut_word(text, "n")) {
      if (!cut_number(text, value)) return false;
      options.operations = static_cast<std::int64_t>(value);
      if (static_cast<double>(options.operations) != value) return false;
    } else if (cut_word(text, "p")) {
      if (!cut_number(text, options.probability) || options.probability > 1) return false;
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

RandAugment parse_rand_augment(std::string_view text) {
  RandAugment options;
  std::string_view rest = text;
  if (text == "none") return options;
  const bool understood = cut_word(rest, "randaug(") ? parse_big_vision(rest, options)
                                                     : cut_word(rest, "rand") && parse_timm(rest, options);
  constexpr std::int64_t most_operations = 100;
  if (!understood || options.operations > most_operations || options.level > 100)
    throw Error("\"" + std::string(text) + "\" is no RandAugment",
                "big_vision's form is randaug(2,10), timm's rand-m9-mstd0.5-inc1 (also with n, p and mmax), or none");
  return options;
}

}  // namespace sylvit
