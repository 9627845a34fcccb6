/**
 * @file
 * The C interface: open a device, load a Vision Transformer, run it; attention on its own, forward and backward. Plain
 * C11, and stable: functions keep their signatures, structs only grow at their end and carry their size. So other
 * languages can use it, too.
 *
 *     sylvit_device* device = NULL;
 *     sylvit_model* model = NULL;
 *     if (sylvit_device_open("", &device) != SYLVIT_OK ||
 *         sylvit_model_load(device, "vit.safetensors", NULL, &model) != SYLVIT_OK ||
 *         sylvit_model_run(model, image, 1, logits, NULL) != SYLVIT_OK)
 *       fprintf(stderr, "%s\n", sylvit_last_error());
 *     sylvit_model_free(model);
 *     sylvit_device_close(device);
 *
 * Every function that can fail returns a sylvit_status; sylvit_last_error() has the sentence that says why. No C++
 * exception leaves these functions.
 *
 * Threads: a device may be used by any number of threads at once. A model may be used by one thread at a time;
 * different models, also of one device, by different threads.
 */
#ifndef SYLVIT_SYLVIT_H
#define SYLVIT_SYLVIT_H

/* NOLINTBEGIN(modernize-*): this is C. */

#include <stddef.h>
#include <stdint.h>

#if defined(__cplusplus)
extern "C" {
#endif

/** Marks what the library exports. */
#define SYLVIT_C_API __attribute__((visibility("default")))

/** What a call came to. Numbers may be added, and never change. */
typedef enum sylvit_status {
  SYLVIT_OK = 0,              /**< done */
  SYLVIT_FAILED = 1,          /**< it failed; sylvit_last_error() says why */
  SYLVIT_INVALID_ARGUMENT = 2 /**< the call was wrong, e.g. a null pointer; sylvit_last_error() says how */
} sylvit_status;

/** A device, and the kernels built for it. */
typedef struct sylvit_device sylvit_device;
/** A Vision Transformer with its weights, on a device. */
typedef struct sylvit_model sylvit_model;

/** The library's version, "0.1.0". */
SYLVIT_C_API const char* sylvit_version(void);

/**
 * Why the last call of this thread that failed did so, as one sentence; empty before any failure. It stays valid until
 * the next failing call of the same thread.
 */
SYLVIT_C_API const char* sylvit_last_error(void);

/**
 * Opens a device: an index, a backend ("opencl", "cuda", ...), a type ("cpu", "gpu"), both ("opencl:cpu"), or a part of
 * its name. Empty or null: the variable SYLVIT_DEVICE, else the first usable GPU, else the first usable device.
 * `*device` is written on success only, and wants sylvit_device_close().
 */
SYLVIT_C_API sylvit_status sylvit_device_open(const char* selector, sylvit_device** device);

/** The device's name; valid as long as the device is open. Empty for null. */
SYLVIT_C_API const char* sylvit_device_name(const sylvit_device* device);

/** Closes a device; null is left alone. Models on it may live on: what they need of the device lives with them. */
SYLVIT_C_API void sylvit_device_close(sylvit_device* device);

/** How a model is made. Initialise it with SYLVIT_MODEL_OPTIONS_INIT and change what is to be otherwise. */
typedef struct sylvit_model_options {
  size_t struct_size;  /**< sizeof(sylvit_model_options) of the caller */
  size_t batch;        /**< the most images that a call will bring; default 1 */
  const char* dtype;   /**< "f32" (default), "bf16" or "f16" */
  const char* model;   /**< "S/16", "vit_small_patch16_224", ...; default: what the file tells */
  const char* score;   /**< "softmax", "relu", ...; default: what the file tells, else "softmax" (or "relu" if it has
                            learned alphas) */
  const char* pooling; /**< "tok", "gap" or "map"; default: what the file tells, or "tok" */
  float alpha;         /**< of point-wise scores; below 0: what the file tells, else 1 */
  int gelu_tanh;       /**< not 0: GELU in its tanh form, as in big_vision's own models; 0: what the file tells */
  int64_t heads;       /**< the number of heads; 0: the model's, or what the file tells, else of size 64 */
  int64_t image_size;  /**< height and width of the images; 0: what the file tells */
  int override_file;   /**< not 0: options may contradict what was written down with the weights */
} sylvit_model_options;

/** The defaults. */
#define SYLVIT_MODEL_OPTIONS_INIT \
  { sizeof(sylvit_model_options), 1, NULL, NULL, NULL, NULL, -1.0F, 0, 0, 0, 0 }

/** What a model is. Set struct_size to sizeof(sylvit_model_info) before the call. */
typedef struct sylvit_model_info {
  size_t struct_size;   /**< sizeof(sylvit_model_info) of the caller; no more than that is written */
  int64_t batch;        /**< the most images that a call may bring */
  int64_t channels;     /**< of an image */
  int64_t image_height; /**< in pixels */
  int64_t image_width;  /**< in pixels */
  int64_t classes;      /**< logits of an image */
  int64_t features;     /**< numbers that the head sees of an image */
} sylvit_model_info;

/**
 * Loads a model's weights (safetensors under timm's names, or an .npz of big_vision). What was written down with them
 * (metadata of the file, or timm's config.json beside it) says which model it is; options that contradict it are
 * SYLVIT_INVALID_ARGUMENT, unless override_file is set. `options` may be null. `*model` is written on success only, and
 * wants sylvit_model_free().
 */
SYLVIT_C_API sylvit_status sylvit_model_load(const sylvit_device* device, const char* path,
                                             const sylvit_model_options* options, sylvit_model** model);

/**
 * A model with random weights from a seed, the same bits on every device; options->model says which (default "S/16").
 */
SYLVIT_C_API sylvit_status sylvit_model_random(const sylvit_device* device, uint64_t seed,
                                               const sylvit_model_options* options, sylvit_model** model);

/** Fills in what the model is. */
SYLVIT_C_API sylvit_status sylvit_model_get_info(const sylvit_model* model, sylvit_model_info* info);

/**
 * Runs the model over `batch` images and waits. All pointers are the host's: `images` [batch, channels, height, width],
 * `logits` [batch, classes], `features` [batch, features]; either of the last two may be null.
 */
SYLVIT_C_API sylvit_status sylvit_model_run(sylvit_model* model, const float* images, size_t batch, float* logits,
                                            float* features);

/** Frees a model; null is left alone. */
SYLVIT_C_API void sylvit_model_free(sylvit_model* model);

/**
 * Which attention it is: o_i = sum over the keys j that query i sees of w_ij v_j, where w is softmax of the scores
 * s_ij = scale q_i·k_j, or N^-alpha h(s_ij) for every other score h. Initialise it with SYLVIT_ATTENTION_INIT, set
 * heads, queries and head_size, and change what is to be otherwise.
 */
typedef struct sylvit_attention {
  size_t struct_size;     /**< sizeof(sylvit_attention) of the caller */
  int64_t batch;          /**< sequences; default 1 */
  int64_t heads;          /**< of the queries */
  int64_t kv_heads;       /**< of keys and values, a divisor of heads; 0 (default): as many as heads */
  int64_t queries;        /**< of a sequence */
  int64_t keys;           /**< of a sequence; 0 (default): as many as queries */
  int64_t head_size;      /**< a multiple of 8 from 16 to 256 */
  const char* score;      /**< "softmax" (default), "relu", "relu2", "gelu", "gelu_tanh", "softplus", "identity", ... */
  float alpha;            /**< of point-wise scores, 0 to 2; below 0 (default): 1 */
  float divisor;          /**< N; 0 (default): the number of keys that the sequence has */
  float scale;            /**< 0 (default): 1/sqrt(head_size) */
  int causal;             /**< not 0: query i sees the keys 0 to i only */
  const int32_t* lengths; /**< [batch]: how many keys each sequence has; null (default): all of them */
} sylvit_attention;

/** The defaults. */
#define SYLVIT_ATTENTION_INIT \
  { sizeof(sylvit_attention), 1, 0, 0, 0, 0, 0, NULL, -1.0F, 0.0F, 0.0F, 0, NULL }

/**
 * Computes o and waits. All pointers are the host's, all tensors dense f32: `q` and `o` [batch, heads, queries,
 * head_size], `k` and `v` [batch, kv_heads, keys, head_size]. `lse` is for softmax only: [batch, heads, queries], the
 * logarithm of each row's sum, which the backward pass needs; it may be null.
 *
 * Each call copies to the device and back. Who has the tensors there already uses C++ (sylvit/attention.hpp), which
 * also has 16-bit types, strides, layer norm of queries and keys, and learned factors.
 */
SYLVIT_C_API sylvit_status sylvit_attention_forward(const sylvit_device* device, const sylvit_attention* attention,
                                                    const float* q, const float* k, const float* v, float* o,
                                                    float* lse);

/**
 * Computes the gradients of q, k and v from that of o, and waits. `o` and `lse` are what the forward pass of the same
 * inputs gave; only softmax needs them, and with other scores they may be null. The shapes of gradients are those of
 * what they belong to.
 */
SYLVIT_C_API sylvit_status sylvit_attention_backward(const sylvit_device* device, const sylvit_attention* attention,
                                                     const float* q, const float* k, const float* v, const float* o,
                                                     const float* lse, const float* o_gradient, float* q_gradient,
                                                     float* k_gradient, float* v_gradient);

#if defined(__cplusplus)
}
#endif

/* NOLINTEND(modernize-*) */

#endif
