// Everything an application includes.
#pragma once

#include <sylvit/attention.hpp>
#include <sylvit/device.hpp>
#include <sylvit/error.hpp>
#include <sylvit/float16.hpp>
#include <sylvit/gemm.hpp>
#include <sylvit/memory.hpp>
#include <sylvit/score.hpp>
#include <sylvit/tensor.hpp>
#include <sylvit/tuning.hpp>
#include <sylvit/version.hpp>
#include <sylvit/vit.hpp>
#include <sylvit/vit_config.hpp>
