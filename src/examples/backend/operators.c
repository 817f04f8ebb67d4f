/* Five operators over strided tensors. A call is checked whole before anything is written. */
#include <string.h>

#include "backend.h"

/* ---- Elements: float32 and float64, computed with as double and rounded once */

static int is_float(tb_dtype d) {
  return d.lanes == 1 && d.code == TB_DTYPE_FLOAT && (d.bits == 32 || d.bits == 64);
}
static double load(const char* at, uint8_t bits) {
  float single = 0;
  double value = 0;
  if (bits == 32) return memcpy(&single, at, 4), single;
  return memcpy(&value, at, 8), value;
}
static void store(char* at, uint8_t bits, double value) {
  const float single = (float)value;
  memcpy(at, bits == 32 ? (const void*)&single : &value, bits / 8);
}

/* ---- Tensors */

/* The bytes before and behind the first element that a tensor's elements reach to. */
static int extent(const tb_tensor* t, uint64_t* before, uint64_t* behind) {
  const int64_t bytes = t->dtype.bits / 8;
  int64_t low = 0, high = bytes;
  for (uint32_t d = 0; d < t->ndim; ++d) {
    int64_t span;
    if (__builtin_mul_overflow(t->sizes[d] - 1, t->strides[d], &span) ||
        __builtin_mul_overflow(span, bytes, &span) ||
        __builtin_add_overflow(span < 0 ? low : high, span, span < 0 ? &low : &high))
      return 0;
  }
  *before = 0 - (uint64_t)low;
  *behind = (uint64_t)high;
  return 1;
}
static int is_empty(const tb_tensor* t) {
  for (uint32_t d = 0; d < t->ndim; ++d)
    if (t->sizes[d] == 0) return 1;
  return 0;
}
static tb_status check_tensor(const tb_tensor* t, int with_memory, tb_error* error) {
  if (t == NULL || t->struct_size < TB_TENSOR_SIZE_V1)
    return refuse(error, TB_E_INVALID, "a tensor is NULL, or its structure too small");
  if (t->ndim > TB_MAX_RANK)
    return decline(error, TB_REASON_RANK, "%u dimensions, more than %d", t->ndim, TB_MAX_RANK);
  for (uint32_t d = 0; d < t->ndim; ++d)
    if (t->sizes[d] < 0) return refuse(error, TB_E_INVALID, "dimension %u has a negative size", d);
  if (!with_memory || is_empty(t)) return TB_OK;
  uint64_t before = 0, behind = 0;
  if (!extent(t, &before, &behind) || before > t->address || behind > UINT64_MAX - t->address)
    return refuse(error, TB_E_INVALID, "the strides of a tensor leave the address space");
  if (t->base != 0 && (t->address < t->base || t->address - t->base < before ||
                       t->base_bytes < behind || t->address - t->base > t->base_bytes - behind))
    return refuse(error, TB_E_INVALID, "a tensor reaches beyond its storage of %llu bytes",
                  (unsigned long long)t->base_bytes);
  return check_range(t->address - before, before + behind, error);
}

static int same_dtype(const tb_tensor* a, const tb_tensor* b) {
  return a->dtype.code == b->dtype.code && a->dtype.bits == b->dtype.bits &&
         a->dtype.lanes == b->dtype.lanes;
}
/* Where a tensor lies, and its strides in bytes along the dimensions of a result; 0 where it is
 * repeated. False: its shape does not broadcast to that. */
typedef struct {
  char* at;
  int64_t strides[TB_MAX_RANK];
} view;
static int broadcast(const tb_tensor* t, const tb_tensor* out, view* v) {
  if (t->ndim > out->ndim) return 0;
  const uint32_t lead = out->ndim - t->ndim;
  memset(v, 0, sizeof *v);
  v->at = pointer_of(t->address);
  for (uint32_t d = 0; d < t->ndim; ++d) {
    if (t->sizes[d] != 1 && t->sizes[d] != out->sizes[lead + d]) return 0;
    if (t->sizes[d] != 1) v->strides[lead + d] = t->strides[d] * (t->dtype.bits / 8);
  }
  return 1;
}
/* Is each dimension of the result that of an operand? The result itself is never repeated. */
static int covers(const tb_tensor* out, const tb_tensor* a, const tb_tensor* b) {
  for (uint32_t d = 1; d <= out->ndim; ++d) {
    const int64_t of_a = d <= a->ndim ? a->sizes[a->ndim - d] : 1;
    const int64_t of_b = b != NULL && d <= b->ndim ? b->sizes[b->ndim - d] : 1;
    if (out->sizes[out->ndim - d] != (of_a == 1 ? of_b : of_a)) return 0;
  }
  return 1;
}

/* ---- Operators over elements */

typedef struct job {
  void (*element)(const struct job*, char* const at[3]); /* the result, then the operands */
  uint8_t bits, from;                                    /* of the result's and a source's type */
  int has_number;                                        /* then it is the second operand */
  double number, alpha;
} job;

/* Steps through all elements, the last dimension first. */
static void run(const job* j, const tb_tensor* out, view views[3]) {
  if (is_empty(out)) return;
  char* at[3] = {views[0].at, views[1].at, views[2].at};
  int64_t index[TB_MAX_RANK] = {0};
  for (uint32_t d = 0; d != UINT32_MAX;) {
    j->element(j, at);
    for (d = out->ndim - 1; d != UINT32_MAX; --d) {
      const int wraps = ++index[d] == out->sizes[d];
      for (int k = 0; k < 3; ++k)
        at[k] += wraps ? -views[k].strides[d] * (out->sizes[d] - 1) : views[k].strides[d];
      if (!wraps) break;
      index[d] = 0;
    }
  }
}

static void move_element(const job* j, char* const at[3]) { memmove(at[0], at[1], j->bits / 8); }
static void convert_element(const job* j, char* const at[3]) {
  store(at[0], j->bits, load(at[1], j->from));
}
static void set_element(const job* j, char* const at[3]) { store(at[0], j->bits, j->number); }
static void add_element(const job* j, char* const at[3]) {
  const double b = j->has_number ? j->number : load(at[2], j->bits);
  store(at[0], j->bits, load(at[1], j->bits) + j->alpha * b);
}
static void mul_element(const job* j, char* const at[3]) {
  const double b = j->has_number ? j->number : load(at[2], j->bits);
  store(at[0], j->bits, load(at[1], j->bits) * b);
}

/* A Python-style number comes as one, also where the schema says Tensor. */
static tb_status number_of(const tb_value* v, double* number, tb_error* error) {
  if (v->tag == TB_BOOL || v->tag == TB_INT)
    *number = (double)v->as.i;
  else if (v->tag == TB_FLOAT)
    *number = v->as.f;
  else
    return decline(error, TB_REASON_ARGUMENT, "an argument of tag %u", v->tag);
  return TB_OK;
}
static tb_status tensor_of(const tb_value* v, const tb_tensor** t, tb_error* error) {
  if (v->tag != TB_TENSOR) return decline(error, TB_REASON_ARGUMENT, "an argument is no tensor");
  *t = v->as.p;
  return TB_OK;
}

/* Moves elements of any type, and converts between the two that it knows. */
static tb_status copy(const tb_call* call, int dry, tb_error* error) {
  const tb_tensor *out = call->outs[0], *src = NULL; /* `self` only has the result's shape */
  REQUIRE(tensor_of(&call->args[1], &src, error));
  job j = {.element = move_element, .bits = out->dtype.bits, .from = src->dtype.bits};
  if (!same_dtype(out, src)) {
    if (!is_float(out->dtype) || !is_float(src->dtype))
      return decline(error, TB_REASON_DTYPE, "copy.out converts between float32 and float64");
    j.element = convert_element;
  }
  view views[3] = {{0}};
  if (!broadcast(out, out, &views[0]) || !broadcast(src, out, &views[1]))
    return refuse(error, TB_E_INVALID, "copy.out: the source does not broadcast to the result");
  if (!dry) run(&j, out, views);
  return TB_OK;
}

static tb_status fill(const tb_call* call, int dry, tb_error* error) {
  const tb_tensor* out = call->outs[0];
  job j = {.element = set_element, .bits = out->dtype.bits};
  if (!is_float(out->dtype))
    return decline(error, TB_REASON_DTYPE, "fill.Scalar_out takes float32 and float64");
  REQUIRE(number_of(&call->args[1], &j.number, error));
  view views[3] = {{0}};
  broadcast(out, out, &views[0]);
  if (!dry) run(&j, out, views);
  return TB_OK;
}

/* add.out and mul.out. Both operands have the result's type: a backend that promotes takes more. */
static tb_status combine(const tb_call* call, int dry, tb_error* error) {
  const int adds = call->arg_count == 3; /* with alpha */
  const tb_tensor *out = call->outs[0], *a = NULL, *b = NULL;
  job j = {.element = adds ? add_element : mul_element, .bits = out->dtype.bits};
  j.has_number = call->args[1].tag != TB_TENSOR;
  REQUIRE(tensor_of(&call->args[0], &a, error));
  REQUIRE(j.has_number ? number_of(&call->args[1], &j.number, error)
                       : tensor_of(&call->args[1], &b, error));
  if (adds) REQUIRE(number_of(&call->args[2], &j.alpha, error));
  if (!is_float(out->dtype) || !same_dtype(out, a) || (b != NULL && !same_dtype(out, b)))
    return decline(error, TB_REASON_DTYPE, "operands that are not all float32, or all float64");
  view views[3] = {{0}};
  broadcast(out, out, &views[0]);
  if (!broadcast(a, out, &views[1]) || (b != NULL && !broadcast(b, out, &views[2])) ||
      !covers(out, a, b))
    return refuse(error, TB_E_INVALID, "the shapes do not broadcast to the result's");
  if (!dry) run(&j, out, views);
  return TB_OK;
}

/* ---- The matrix product */

static int share_memory(const tb_tensor* a, const tb_tensor* b) {
  uint64_t before_a = 0, behind_a = 0, before_b = 0, behind_b = 0;
  return !is_empty(a) && !is_empty(b) && extent(a, &before_a, &behind_a) &&
         extent(b, &before_b, &behind_b) && a->address - before_a < b->address + behind_b &&
         b->address - before_b < a->address + behind_a;
}
static char* element(const tb_tensor* t, int64_t row, int64_t column) {
  return (char*)pointer_of(t->address) +
         (row * t->strides[0] + column * t->strides[1]) * (t->dtype.bits / 8);
}

static tb_status mm(const tb_call* call, int dry, tb_error* error) {
  const tb_tensor *out = call->outs[0], *a = NULL, *b = NULL;
  REQUIRE(tensor_of(&call->args[0], &a, error));
  REQUIRE(tensor_of(&call->args[1], &b, error));
  if (!is_float(out->dtype) || !same_dtype(out, a) || !same_dtype(out, b))
    return decline(error, TB_REASON_DTYPE, "matrices that are not all float32, or all float64");
  if (a->ndim != 2 || b->ndim != 2 || out->ndim != 2 || a->sizes[1] != b->sizes[0] ||
      out->sizes[0] != a->sizes[0] || out->sizes[1] != b->sizes[1])
    return refuse(error, TB_E_INVALID, "mm.out: the shapes are not [n, k], [k, m] and [n, m]");
  /* An output may be an input: what was written would be read again. */
  if (share_memory(out, a) || share_memory(out, b))
    return decline(error, TB_REASON_LAYOUT, "mm.out in place");
  if (dry || is_empty(out)) return TB_OK;
  const uint8_t bits = out->dtype.bits;
  for (int64_t row = 0; row < out->sizes[0]; ++row)
    for (int64_t column = 0; column < out->sizes[1]; ++column) {
      double total = 0;
      for (int64_t k = 0; k < a->sizes[1]; ++k)
        total += load(element(a, row, k), bits) * load(element(b, k, column), bits);
      store(element(out, row, column), bits, total);
    }
  return TB_OK;
}

/* ---- The table */

struct tb_op_s {
  const char *name, *schema, *family;
  uint32_t arguments;
  tb_status (*run)(const tb_call* call, int dry, tb_error* error);
};
static const struct tb_op_s operators[] = {
    {"copy.out",
     "copy.out(Tensor self, Tensor src, bool non_blocking=False, *, Tensor(a!) out) -> Tensor(a!)",
     "copy", 3, copy},
    {"fill.Scalar_out",
     "fill.Scalar_out(Tensor self, Scalar value, *, Tensor(a!) out) -> Tensor(a!)", "copy", 2,
     fill},
    {"add.out",
     "add.out(Tensor self, Tensor other, *, Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)",
     "pointwise", 3, combine},
    {"mul.out", "mul.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)", "pointwise",
     2, combine},
    {"mm.out", "mm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor(a!)", "matmul", 2,
     mm}};
enum { OPERATORS = sizeof operators / sizeof *operators };

static tb_status operator_count(uint32_t* count, tb_error* error) {
  (void)error;
  *count = OPERATORS;
  return TB_OK;
}
static tb_status operator_at(uint32_t index, tb_op* op, tb_op_info* info, tb_error* error) {
  if (index >= OPERATORS)
    return refuse(error, TB_E_INVALID, "there are %d operators, and no %u", OPERATORS, index);
  if (info->struct_size < TB_OP_INFO_SIZE_V1)
    return refuse(error, TB_E_INVALID, "tb_op_info has only %u bytes", info->struct_size);
  *op = &operators[index];
  info->flags = 0;
  info->name = operators[index].name;
  info->schema = operators[index].schema;
  info->family = operators[index].family;
  return TB_OK;
}
static tb_status operator_find(const char* name, tb_op* op, tb_error* error) {
  for (int i = 0; i < OPERATORS; ++i)
    if (strcmp(operators[i].name, name) == 0) return *op = &operators[i], TB_OK;
  return decline(error, TB_REASON_OPERATOR, "this backend has no operator %s", name);
}

/* Everything that can be wrong with a call whatever its operator. */
static tb_status check_call(const tb_call* call, int with_memory, tb_error* error) {
  REQUIRE(check_process(error));
  if (call == NULL || call->struct_size < TB_CALL_SIZE_V1)
    return refuse(error, TB_E_INVALID, "the call is NULL, or its structure too small");
  if (call->op < operators || call->op >= operators + OPERATORS)
    return refuse(error, TB_E_INVALID, "the operator is none of this backend's");
  if (call->arg_count != call->op->arguments || call->out_count != 1)
    return refuse(error, TB_E_INVALID, "%s takes %u arguments and 1 output, not %u and %u",
                  call->op->name, call->op->arguments, call->arg_count, call->out_count);
  REQUIRE(check_tensor(call->outs[0], with_memory, error));
  for (uint32_t i = 0; i < call->arg_count; ++i)
    if (call->args[i].tag == TB_TENSOR)
      REQUIRE(check_tensor(call->args[i].as.p, with_memory, error));
  return TB_OK;
}
static tb_status operator_supports(const tb_call* call, tb_error* error) {
  REQUIRE(check_call(call, 0, error));
  return call->op->run(call, 1, error);
}
static tb_status operator_invoke(const tb_call* call, tb_error* error) {
  REQUIRE(check_call(call, 1, error));
  REQUIRE(check_stream(call->stream, error));
  pthread_mutex_lock(&call->stream->mutex);
  const tb_status status = call->op->run(call, 0, error);
  pthread_mutex_unlock(&call->stream->mutex);
  return status;
}

void fill_operators(tb_operator_api* table) {
  table->count = operator_count;
  table->at = operator_at;
  table->find = operator_find;
  table->supports = operator_supports;
  table->invoke = operator_invoke;
}
