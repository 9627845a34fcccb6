// Everything an application includes (images.hpp belongs to a library of its own).
#pragma once

/// Attention variants and Vision Transformers on SYCL devices.
namespace sylvit {}

#include <sylvit/attention.hpp>
#include <sylvit/custom_score.hpp>
#include <sylvit/device.hpp>
#include <sylvit/error.hpp>
#include <sylvit/export.hpp>
#include <sylvit/float16.hpp>
#include <sylvit/gemm.hpp>
#include <sylvit/memory.hpp>
#include <sylvit/own_kernel.hpp>
#include <sylvit/pass.hpp>
#include <sylvit/score.hpp>
#include <sylvit/tensor.hpp>
#include <sylvit/training.hpp>
#include <sylvit/tuning.hpp>
#include <sylvit/version.hpp>
#include <sylvit/vit.hpp>
#include <sylvit/vit_config.hpp>
#include <sylvit/weights.hpp>
