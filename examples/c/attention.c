/*
 * Attention from C over the program's own memory: relu/L, forward and backward, checked against plain loops.
 */
#include <sylvit/sylvit.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { HEADS = 2, TOKENS = 37, HEAD_SIZE = 32, COUNT = HEADS * TOKENS * HEAD_SIZE };

static int failed(const char* what) {
  fprintf(stderr, "attention: %s: %s\n", what, sylvit_last_error());
  return 1;
}

/* Numbers between -1 and 1. */
static void fill(float* values, unsigned seed) {
  for (int i = 0; i < COUNT; ++i) {
    seed = seed * 1664525U + 1013904223U;
    values[i] = (float)(seed >> 8) / 8388608.0F - 1.0F;
  }
}

static double dot(const float* a, const float* b, int count) {
  double sum = 0;
  for (int i = 0; i < count; ++i) sum += (double)a[i] * (double)b[i];
  return sum;
}

/* The largest difference from o in plain loops. */
static double error_of(const float* o, const float* q, const float* k, const float* v) {
  double worst = 0;
  for (int head = 0; head < HEADS; ++head)
    for (int i = 0; i < TOKENS; ++i) {
      const int at = (head * TOKENS + i) * HEAD_SIZE;
      double expected[HEAD_SIZE] = {0};
      for (int j = 0; j < TOKENS; ++j) {
        const int key = (head * TOKENS + j) * HEAD_SIZE;
        const double weight = fmax(0, dot(q + at, k + key, HEAD_SIZE) / sqrt(HEAD_SIZE)) / TOKENS;
        for (int c = 0; c < HEAD_SIZE; ++c) expected[c] += weight * (double)v[key + c];
      }
      for (int c = 0; c < HEAD_SIZE; ++c) worst = fmax(worst, fabs(expected[c] - (double)o[at + c]));
    }
  return worst;
}

int main(void) {
  static float q[COUNT], k[COUNT], v[COUNT], o[COUNT], o_gradient[COUNT], dq[COUNT], dk[COUNT], dv[COUNT];
  fill(q, 1);
  fill(k, 2);
  fill(v, 3);
  fill(o_gradient, 4);

  sylvit_device* device = NULL;
  if (sylvit_device_open(NULL, &device) != SYLVIT_OK) return failed("no device");
  sylvit_attention attention = SYLVIT_ATTENTION_INIT;
  attention.heads = HEADS;
  attention.queries = TOKENS;
  attention.head_size = HEAD_SIZE;
  attention.score = "relu";
  if (sylvit_attention_forward(device, &attention, q, k, v, o, NULL) != SYLVIT_OK) return failed("forward");
  if (sylvit_attention_backward(device, &attention, q, k, v, NULL, NULL, o_gradient, dq, dk, dv) != SYLVIT_OK)
    return failed("backward");

  /* o grows in proportion to q, to k and to v, so each with its gradient makes the same sum as o with its own. */
  const double sum = dot(o, o_gradient, COUNT);
  const double worst =
      fmax(fabs(dot(q, dq, COUNT) - sum), fmax(fabs(dot(k, dk, COUNT) - sum), fabs(dot(v, dv, COUNT) - sum)));
  const double error = error_of(o, q, k, v);
  printf("attention on %s: error %.1e, gradients off by %.1e of %.1f\n", sylvit_device_name(device), error, worst, sum);

  attention.head_size = 20;
  const int refused = sylvit_attention_forward(device, &attention, q, k, v, o, NULL) == SYLVIT_FAILED;
  printf("a head size of 20: %s\n", sylvit_last_error());
  sylvit_device_close(device);
  return error <= 1e-5 && worst <= 1e-3 && refused ? 0 : 1;
}
