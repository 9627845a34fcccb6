/*
 * A Vision Transformer from C: loads weights, runs two made-up images together and one alone, and prints the best
 * class.
 *
 *     classify <weights>
 *
 * Checked: an image gives the same logits alone and in a batch, another image gives others, and errors are sentences.
 */
#include <sylvit/sylvit.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failed(const char* what) {
  fprintf(stderr, "classify: %s: %s\n", what, sylvit_last_error());
  return 1;
}

/* A made-up image: waves whose length depends on the number. */
static void draw(float* pixels, size_t count, int number) {
  for (size_t i = 0; i < count; ++i) pixels[i] = sinf((float)i / (float)(3 + 2 * number));
}

static double difference(const float* a, const float* b, size_t count) {
  double worst = 0;
  for (size_t i = 0; i < count; ++i) worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
  return worst;
}

int main(int count, char** words) {
  if (count != 2) {
    fputs("usage: classify <weights>\n", stderr);
    return 2;
  }
  sylvit_device* device = NULL;
  sylvit_model* model = NULL;
  if (sylvit_device_open(NULL, &device) != SYLVIT_OK) return failed("no device");

  sylvit_model_options options = SYLVIT_MODEL_OPTIONS_INIT;
  options.batch = 2;
  if (sylvit_model_load(device, words[1], &options, &model) != SYLVIT_OK) return failed("no model");
  sylvit_model_info info = {.struct_size = sizeof(info)};
  if (sylvit_model_get_info(model, &info) != SYLVIT_OK) return failed("no info");
  printf("sylvit %s on %s: images %d x %d x %d, %d classes, %d features\n", sylvit_version(),
         sylvit_device_name(device), (int)info.channels, (int)info.image_height, (int)info.image_width,
         (int)info.classes, (int)info.features);

  const size_t values = (size_t)(info.channels * info.image_height * info.image_width);
  const size_t classes = (size_t)info.classes, width = (size_t)info.features;
  float* images = malloc(2 * values * sizeof(float));
  float* logits = malloc(3 * classes * sizeof(float));
  float* features = malloc(3 * width * sizeof(float));
  if (images == NULL || logits == NULL || features == NULL) return failed("no memory");
  draw(images, values, 0);
  draw(images + values, values, 1);
  if (sylvit_model_run(model, images, 2, logits, features) != SYLVIT_OK) return failed("both images");
  if (sylvit_model_run(model, images + values, 1, logits + 2 * classes, features + 2 * width) != SYLVIT_OK)
    return failed("the second image alone");

  size_t best = 0;
  for (size_t i = 1; i < classes; ++i)
    if (logits[classes + i] > logits[classes + best]) best = i;
  const double alone = difference(logits + classes, logits + 2 * classes, classes);
  const double alone_features = difference(features + width, features + 2 * width, width);
  const double other = difference(logits, logits + classes, classes);
  printf("best class of the second image %zu; alone it differs by %.1e, the first by %.1e\n", best,
         fmax(alone, alone_features), other);
  int good = alone < 1e-4 && alone_features < 1e-4 && other > 1e-3;

  /* What goes wrong is a status and a sentence, and leaves pointers alone. */
  sylvit_model* none = NULL;
  good = good && sylvit_model_load(device, "there/is/no.such", NULL, &none) == SYLVIT_FAILED && none == NULL &&
         strstr(sylvit_last_error(), "there/is/no.such") != NULL;
  good = good && sylvit_model_run(model, images, 3, logits, NULL) == SYLVIT_INVALID_ARGUMENT;
  good = good && sylvit_model_run(NULL, images, 1, logits, NULL) == SYLVIT_INVALID_ARGUMENT;
  printf("%s\n", good ? "all as expected" : "NOT as expected");

  free(images);
  free(logits);
  free(features);
  sylvit_model_free(model);
  sylvit_device_close(device);
  return good ? 0 : 1;
}
